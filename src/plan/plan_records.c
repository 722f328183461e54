/* Parallel Bloom filters: p attributes, each in q arrays of m cells, and a verifier for the record.
 * Theorem numbers refer to Xiao and Hua, "Using Parallel Bloom Filters for Multiattribute
 * Representation on Network Services".
 *
 * The published rates hold for *fresh* queries, none of whose values is stored. A query whose
 * values are all stored, but never in one record, is *recombined*: the attributes always accept it
 * and only the verifier can reject it. In between, values drawn from a common range are stored with
 * probability rho each.
 */
#include "plan/plan.h"

#include <math.h>

#define SQRT_HALF    0.7071067811865476
#define INV_SQRT_2PI 0.3989422804014327

/* 2 Phi(z) - 1: n unit cells side by side in the middle of the distribution, the worst position
   that the stored values can have. z = n/(2 sigma), sigma in lattice steps. */
static double bound_of(double n, double sigma)
{
    return sigma > 0 ? erf(n / (2 * sigma) * SQRT_HALF) : n > 0 ? 1 : 0;
}

/* The mean over random stored values, 1 - E[(1-P(V))^n], where P(v) is the normal density over
   one lattice step: about n/(2 sqrt(pi) sigma) while small. For such tails the trapezoid rule is
   exact up to rounding. */
static double mean_of(double n, double sigma)
{
    double sum = 0, step = 0.05;
    if (!(sigma > 0))
        return n > 0 ? 1 : 0;
    for (int i = -200; i <= 200; i++) {
        double density = INV_SQRT_2PI * exp(-step * step * i * i / 2);
        double cell = density / sigma;
        sum += density * (cell < 1 ? -expm1(n * log1p(-cell)) : n > 0);
    }
    return sum * step;
}

/* Values in lattice steps. Basic, V = sum H_ij: sigma^2 = pq(m^2-1)/12, the variance of a
   uniform integer (the paper has the continuous (m-1)^2). Attenuated, V = sum H_ij/2^j, in steps
   of 2^-q: sigma^2 = p(m^2-1)(4^q-1)/36, so that the bound is 2 Phi(3n/sqrt(p(m^2-1)(4^q-1))) -
   1. */
tamis_plan_verify plan_verify_rates(unsigned p, unsigned q, double m, double n)
{
    tamis_plan_verify v = {NAN, NAN, NAN, NAN, NAN};
    if (p == 0 || q == 0 || !(m >= 1 && n >= 0) || isinf(m))
        return v;
    double one = p * (m * m - 1);
    double weights = ldexp(1, q < 500 ? 2 * (int)q : 1000) - 1; /* 4^q - 1 */
    double basic = sqrt(one * q / 12), fine = sqrt(one / 36 * weights);
    v.basic = bound_of(n, basic);
    v.basic_mean = mean_of(n, basic);
    v.attenuated = bound_of(n, fine);
    v.attenuated_mean = mean_of(n, fine);
    v.mixed = -expm1(-n * ldexp(1, -64));
    return v;
}

/* attributes: probability that all p attributes accept; v: collisions of the verifier; f: rate
   of its filter. Thm 5.6 omits the collisions: a filter accepts h + (1-h) f. */
static tamis_plan_records_rates class_rates(double attributes, const tamis_plan_verify *v, double f)
{
    tamis_plan_records_rates c;
    c.pbf = attributes;
    c.ht_basic = attributes * v->basic;
    c.ht_basic_mean = attributes * v->basic_mean;
    c.ht_attenuated = attributes * v->attenuated;
    c.ht_attenuated_mean = attributes * v->attenuated_mean;
    c.ht_mixed = attributes * v->mixed;
    c.bf = attributes * (v->attenuated + (1 - v->attenuated) * f);
    c.bf_mean = attributes * (v->attenuated_mean + (1 - v->attenuated_mean) * f);
    c.bf_mixed = attributes * (v->mixed + (1 - v->mixed) * f);
    return c;
}

/* Thm 5.1 with M = qm: (1-e^{-qn/M})^q = (1-e^{-n/m})^q; the printed exponent n/M is a misprint. */
static double array_rate(double m, unsigned q, double n)
{
    return pow(-expm1(-n / m), q);
}

tamis_plan_records tamis_plan_records_of(unsigned p, unsigned q, double m, double n, double range)
{
    tamis_plan_records v;
    int bad = p == 0 || q == 0 || !(m >= 1 && n >= 0 && range >= 0) || (range > 0 && range < 1);
    if (bad) { /* rather than pow(NaN, 0), which is 1 */
        m = NAN;
        p = q = 1;
    }
    double distinct = n;
    v.stored = bad ? NAN : 0;
    if (range > 0 && !isinf(range)) {
        v.stored = range > 1 ? -expm1(n * log1p(-1 / range)) : n > 0;
        distinct = v.stored * range; /* few values, drawn often, occupy few cells */
    }
    v.verify = plan_verify_rates(p, q, m, n);
    v.attribute = array_rate(m, q, distinct);
    double record = array_rate(m, q, n), accept = v.stored + (1 - v.stored) * v.attribute;
    v.fresh = class_rates(pow(v.attribute, p), &v.verify, record);
    v.in_range = class_rates(pow(accept, p), &v.verify, record);
    v.recombined = class_rates(bad ? NAN : 1, &v.verify, record);
    return v;
}
