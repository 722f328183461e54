/* The blocked vector: all k probes of a key are in one block of 512 bits.
 *
 * A key selects one of `units` blocks and a rotation s in 0..7. With k = 8q + r, it sets q bits in
 * each of the block's 8 lanes of 64, and one more in the r lanes l with ((l - s) & 7) < r; a query
 * probes the same way. So for a block that holds j keys
 *
 *     F(j) = E[ product over lanes of (X_l/64)^{c_l} ],   c_l = q+1 in r lanes, q in the others,
 *
 * and the rate is the mean of F over j, which is binomial (n, 1/units). The uneven load of the blocks
 * is the price of the layout: about 4 % more bits at a rate of 1 %, more at lower rates.
 */
#include "plan.h"

#include <math.h>
#include <stdatomic.h>

#define LANE       64.0
#define LANES      8
#define C_MAX      (K_MAX / LANES)
#define EXACT_KEYS 8    /* number of keys in a block up to which F is summed exactly */
#define MEAN_FULL  24.0 /* mean number from which one block in 10,000 has so few */
/* number of keys from which a block counts as full: x > .9996 even at k = 1 */
#define KEYS_FULL 4096.0

/* One lane after j keys. The moment of its occupied share is a sum of exponentials in j,
 *
 *     g(j,c) = E[(X/64)^c] = sum_u coef[u] rho_u^j,   rho_u = (1-u/64)^q (1 - (r/8) u/64),
 *
 * since u given cells all stay empty under one key with probability rho_u. At most 8 probes fall into a
 * lane, so the alternating signs cost at most three digits; Jensen's bound x^c catches the rest. */
struct lane {
    unsigned q, r;
    double rho[C_MAX + 1], now[C_MAX + 1];  /* rho_u, and rho_u^j for the present j */
    double low[C_MAX + 1], high[C_MAX + 1]; /* coefficients of g(j,q) and g(j,q+1) */
    double skew;                            /* of lane_pull() */
    bool exact;                             /* blocks with few keys matter */
};

/* Coefficients of E[(X/64)^c] in the powers (1-u/64)^throws: the distinct cells of c probes,
   then inclusion-exclusion. */
static void moment_coefficients(unsigned c, double coef[C_MAX + 1])
{
    double w[C_MAX + 1] = {1};
    for (unsigned i = 1; i <= c; i++)
        plan_throw(w, i, LANE);
    for (unsigned u = 0; u <= C_MAX; u++)
        coef[u] = 0;
    for (unsigned j = 0; j <= c; j++) {
        double choose = 1;
        for (unsigned u = 0; u <= j; u++) {
            coef[u] += (u & 1 ? -choose : choose) * w[j];
            choose = choose * (j - u) / (u + 1);
        }
    }
}

/* The lanes are not quite independent: the extra probes of one key fall on an arc of r neighbouring
 * lanes, and so do those of the query. To second order
 *
 *     ln E[prod] - ln prod E = (j/2) d^2 sum_{l != l'} c_l c_l' Cov(I_l, I_l'),
 *
 * I_l = "lane l takes an extra probe", d = (1-x)/(64x) the gain of ln x by one throw. The sum is
 * Var(overlap of two arcs) - sum c_l^2 (r/8)(1-r/8), because the I_l add up to r. It is positive for
 * k = 2, 3, 4 (where the plain product is up to 1 % too low) and negative beyond (up to 3 % too
 * high). The remaining error is below 0.1 % in blocks of the intended load, compared to the exact sum
 * over all rotations; with EXACT_KEYS or fewer keys the form would be up to 1.8 times too low. */
static double lane_pull(unsigned q, unsigned r)
{
    double sum = 0, square = 0, var = r / 8.0 * (1 - r / 8.0);
    for (unsigned s = 0; s < LANES; s++) {
        unsigned met = 0;
        for (unsigned l = 0; l < r; l++)
            met += ((l - s) & 7) < r;
        sum += met;
        square += met * met;
    }
    double arcs = square / LANES - sum / LANES * (sum / LANES);
    return arcs - var * (r * (q + 1.0) * (q + 1.0) + (LANES - r) * (double)q * q);
}

static void lane_start(struct lane *a, unsigned k, double j)
{
    a->q = k / LANES;
    a->r = k % LANES;
    for (unsigned u = 0; u <= C_MAX; u++) {
        a->rho[u] = pow(1 - u / LANE, a->q) * (1 - a->r / 8.0 * u / LANE);
        a->now[u] = pow(a->rho[u], j);
    }
    moment_coefficients(a->q, a->low);
    moment_coefficients(a->r ? a->q + 1 : a->q, a->high);
    a->skew = lane_pull(a->q, a->r);
}

static double lane_moment(const struct lane *a, const double *coef, unsigned c, double x)
{
    double v = 0, least = to_power(x, c);
    for (unsigned u = 0; u <= c; u++)
        v += coef[u] * a->now[u];
    return v > least ? v : least;
}

/* ---- few keys in a block ---- */

/* The query's rotation is 0; at[s] of the j keys have rotation s. moment[0] and moment[1] belong
   to a lane with q and q+1 probes of the query, after that many throws. */
struct few {
    unsigned q, r, j, at[LANES];
    double moment[2][EXACT_KEYS * (C_MAX + 1) + 1];
};

static void few_start(struct few *f, unsigned k)
{
    double p[(int)LANE + 1] = {1}; /* distribution of the occupied cells of a lane */
    *f = (struct few){.q = k / LANES, .r = k % LANES};
    for (unsigned t = 0; t <= EXACT_KEYS * (f->q + 1); t++) {
        for (unsigned x = 0; x <= LANE; x++)
            for (unsigned more = 0; more < 2; more++)
                f->moment[more][t] += p[x] * to_power(x / LANE, f->q + more);
        plan_throw(p, (unsigned)LANE, LANE);
    }
}

/* Sums over all ways to give rotations from s on to the remaining keys. */
static double few_sum(struct few *f, unsigned s, unsigned left, double weight)
{
    double sum = 0, v = weight;
    if (s + 1 < LANES) {
        for (unsigned c = 0; c <= left; weight *= (double)(left - c) / (c + 1), c++) {
            f->at[s] = c;
            sum += few_sum(f, s + 1, left - c, weight);
        }
        return sum;
    }
    f->at[LANES - 1] = left;
    for (unsigned l = 0; l < LANES; l++) {
        unsigned throws = f->j * f->q;
        for (unsigned i = 0; i < f->r; i++)
            throws += f->at[(l - i) & 7];
        v *= f->moment[l < f->r][throws];
    }
    return v;
}

/* The sum for one k has 10^4 terms; it is kept for later calls. */
static double few_rate(unsigned k, unsigned j)
{
    static _Atomic double known[K_MAX + 1][EXACT_KEYS + 1];
    if (atomic_load_explicit(&known[k][EXACT_KEYS], memory_order_acquire) == 0) {
        struct few f;
        few_start(&f, k);
        for (f.j = 1; f.j <= EXACT_KEYS; f.j++)
            atomic_store_explicit(&known[k][f.j], few_sum(&f, 0, f.j, to_power(1.0 / LANES, f.j)),
                                  memory_order_release);
    }
    return atomic_load_explicit(&known[k][j], memory_order_relaxed);
}

/* F(j) for the present j. */
static double block_rate(const struct lane *a, double j)
{
    double x = 1 - a->now[1];
    if (a->r && j <= EXACT_KEYS && a->exact)
        return j > 0 ? few_rate(a->q * LANES + a->r, (unsigned)j) : 0;
    if (!(x > 0))
        return 0;
    double v = to_power(lane_moment(a, a->low, a->q, x), LANES - a->r);
    if (a->r == 0)
        return v;
    v *= to_power(lane_moment(a, a->high, a->q + 1, x), a->r);
    double d = (1 - x) / (LANE * x), pull = 0.5 * j * a->skew * d * d;
    /* few keys: the correction is no longer small */
    pull = pull > 0.25 ? 0.25 : pull < -0.25 ? -0.25 : pull;
    v *= exp(pull);
    return v < 1 ? v : 1;
}

/* Sums over j upwards from ten standard deviations below the mean, where weight and F are both
   negligible. Each weight follows from the previous one, P(j+1)/P(j) = (n-j)/(j+1)/(units-1),
   and all are scaled at the end. It ends when everything that can follow (F <= 1) is below the
   precision of the sum, which for low rates is far beyond the mean: there the fullest blocks
   dominate. */
double tamis_plan_rate_blocked(uint64_t units, unsigned k, double n)
{
    struct lane a;
    if (units == 0 || k == 0 || k > K_MAX || !(n >= 0))
        return NAN;
    double mean = n / (double)units, others = (double)units - 1;
    if (mean > KEYS_FULL + 12 * sqrt(KEYS_FULL))
        return 1;
    double first = units == 1 ? ceil(n) : floor(mean - 10 * sqrt(mean) - 10);
    first = first < 0 ? 0 : first;
    lane_start(&a, k, first);
    a.exact = units == 1 || mean < MEAN_FULL;
    if (units == 1)
        return first > KEYS_FULL ? 1 : block_rate(&a, first);
    double weight = 1, all = 0, sum = 0;
    for (double j = first;; j++) {
        double rate = j > KEYS_FULL ? 1 : block_rate(&a, j);
        all += weight;
        sum += weight * rate;
        double ratio = (n - j) / ((j + 1) * others);
        if (!(ratio > 0) || (ratio < 0.5 && 2 * weight <= 1e-15 * sum) || weight < 1e-290)
            break;
        weight *= ratio;
        for (unsigned u = 1; u <= C_MAX; u++)
            a.now[u] *= a.rho[u];
    }
    return sum / all;
}

double plan_items_blocked(uint64_t units, unsigned k, double ones)
{
    double bits = (double)units * (double)BLOCK_BITS;
    if (units == 0 || k == 0 || k > K_MAX || !(ones >= 0 && ones <= bits))
        return NAN;
    if (ones > bits - 0.5)
        ones = bits - 0.5;
    /* One key leaves a bit unset with probability 1-(1-rho_1)/units: its q or q+1 probes in the
       bit's lane may coincide, so (1-rho_1) is below k/512 (by 1 % at k = 20, 5 % at k = 64). */
    double hit = 1 - pow(1 - 1 / LANE, k / LANES) * (1 - k % LANES / (double)BLOCK_BITS);
    return log1p(-ones / bits) / log1p(-hit / (double)units);
}
