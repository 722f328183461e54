/* Formulas of the papers that only experiments and tests need. As those of tamis/plan.h. */
#ifndef TAMIS_LAB_PLAN_H
#define TAMIS_LAB_PLAN_H

#include "tamis/plan.h"

/* DBF Thm 3: chance that BF(A) AND BF(B) = BF(A and B). a = #(A-B), b = #(B-A), c = #(A and B).
 * The published value is a lower bound. The exact one takes k*a, k*b <= 2^16, m <= 2^20 and at
 * most some thousand bits in common; NaN beyond. */
double lab_plan_and_bound(double m, double k, double a, double b);
double lab_plan_and_exact(uint64_t m, unsigned k, uint64_t a, uint64_t b, uint64_t c);

/* Entropy of a change, in bits: `changed` bits over `touched` of `blocks` blocks of 512 bits. */
double lab_plan_entropy_blocks(double blocks, double touched, double changed);

#endif
