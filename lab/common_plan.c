/* Formulas that only experiments and tests need: see common_plan.h. */
#include "common_plan.h"

#include <math.h>

#include "plan/plan.h"

#define BLOCK       512.0
#define SATURATED   40.0 /* throws a cell: e^-40 is under half an ulp of 1 */
#define AND_M_MAX   ((uint64_t)1 << 20)
#define AND_BAND    2048 /* width of a law kept on the stack */
#define AND_COMMON  4096 /* most cells in common */
#define AND_NEGLECT 1e-22

/* ---- DBF Theorem 3 ---- */

double lab_plan_and_bound(double m, double k, double a, double b)
{
    if (!(m >= 1 && k > 0 && a >= 0 && b >= 0))
        return NAN;
    if (a == 0 || b == 0)
        return 1;
    return exp(k * k * a * b * log1p(-1 / m));
}

/* Law of the distinct cells after t throws into m, kept where it is not negligible. */
struct law {
    double first; /* cells of p[0] */
    unsigned n;
    double p[AND_BAND];
};

static int law_throw(struct law *l, double m)
{
    if (l->n == AND_BAND)
        return -1;
    double carry = 0;
    for (unsigned i = 0; i < l->n; i++) {
        double stay = l->p[i] * ((l->first + i) / m), go = l->p[i] - stay;
        l->p[i] = stay + carry;
        carry = go;
    }
    l->p[l->n++] = carry;
    while (l->n > 1 && l->p[l->n - 1] < AND_NEGLECT)
        l->n--;
    unsigned cut = 0;
    while (cut + 1 < l->n && l->p[cut] < AND_NEGLECT)
        cut++;
    if (cut > 0) {
        for (unsigned i = cut; i < l->n; i++)
            l->p[i - cut] = l->p[i];
        l->n -= cut;
        l->first += cut;
    }
    return 0;
}

static int law_make(struct law *l, double m, double throws)
{
    l->first = 0;
    l->n = 1;
    l->p[0] = 1;
    for (double i = 0; i < throws; i++)
        if (law_throw(l, m))
            return -1;
    return 0;
}

static double log_choose(double n, double k)
{
    int sign;
    return lgamma_r(n + 1, &sign) - lgamma_r(k + 1, &sign) - lgamma_r(n - k + 1, &sign);
}

/* Adds weight times the hypergeometric law of the cells common to d and e random cells of m. */
static int common_add(double *w, unsigned *n, double m, double d, double e, double weight)
{
    double mode = floor((d + 1) * (e + 1) / (m + 2)), top = d < e ? d : e;
    double low = d + e - m > 0 ? d + e - m : 0;
    mode = mode < low ? low : mode > top ? top : mode;
    double at = weight * exp(log_choose(d, mode) + log_choose(m - d, e - mode) - log_choose(m, e));
    double v = at;
    for (double j = mode; j <= top && v > AND_NEGLECT * weight; j++) {
        if (j >= AND_COMMON)
            return -1;
        while (*n <= (unsigned)j)
            w[(*n)++] = 0;
        w[(unsigned)j] += v;
        v *= (d - j) * (e - j) / ((j + 1) * (m - d - e + j + 1));
    }
    v = at;
    for (double j = mode; j > low && v > 0; j--) { /* to the end: few in common weigh most */
        v *= j * (m - d - e + j) / ((d - j + 1) * (e - j + 1));
        w[(unsigned)j - 1] += v;
    }
    return 0;
}

/* BF(A) AND BF(B) has bits of its own exactly where BF(A-C) and BF(B-C) meet outside BF(C). So,
 * with K the cells common to the throws of A-C and B-C, the chance is sum_j P(K=j) B(kc,j). */
double lab_plan_and_exact(uint64_t m, unsigned k, uint64_t a, uint64_t b, uint64_t c)
{
    struct law la, lb;
    double w[AND_COMMON], bits = (double)m;
    unsigned n = 0;
    if (m == 0 || k == 0 || a > 65536 / k || b > 65536 / k || m > AND_M_MAX)
        return NAN;
    if (a == 0 || b == 0)
        return 1;
    if (law_make(&la, bits, (double)(k * a)) || law_make(&lb, bits, (double)(k * b)))
        return NAN;
    for (unsigned i = 0; i < la.n; i++)
        for (unsigned j = 0; j < lb.n; j++) {
            double weight = la.p[i] * lb.p[j];
            if (weight > AND_NEGLECT && common_add(w, &n, bits, la.first + i, lb.first + j, weight))
                return NAN;
        }
    double throws = (double)k * (double)c;
    if (throws > SATURATED * bits)
        return 1;
    return throws > 0 ? plan_cover_sum(bits, throws, w, n) : n > 0 ? w[0] : 0;
}

/* ---- size of a change ---- */

/* Bits of entropy of n cells of which a share d is one. */
static double entropy(double n, double d)
{
    return d > 0 && d < 1 ? tamis_plan_entropy(n, n * d) : 0;
}

/* log2 C(n,k) by Stirling's series: n H(k/n) - log2(2 pi k (n-k)/n)/2 and small terms. */
static double log2_choose(double n, double k)
{
    int sign;
    if (k <= 0 || k >= n)
        return 0;
    if (n < 1e6)
        return (lgamma_r(n + 1, &sign) - lgamma_r(k + 1, &sign) - lgamma_r(n - k + 1, &sign)) / LN2;
    double small = k < n - k ? k : n - k, sum = 0;
    if (small < 64) {
        for (double i = 0; i < small; i++)
            sum += log2((n - i) / (i + 1));
        return sum;
    }
    double root = 0.5 * log(6.283185307179586 * k * ((n - k) / n));
    return entropy(n, k / n) - (root + (1 / k + 1 / (n - k) - 1 / n) / 12) / LN2;
}

/* Which blocks were touched, then the bits within them at their mean density. */
double lab_plan_entropy_blocks(double blocks, double touched, double changed)
{
    if (!(blocks > 0 && touched >= 0 && touched <= blocks && changed >= 0 &&
          changed <= touched * BLOCK))
        return NAN;
    if (touched == 0)
        return 0;
    double cells = touched * BLOCK;
    return log2_choose(blocks, touched) + entropy(cells, changed / cells);
}
