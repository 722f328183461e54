/* The dynamic Bloom filter: s rows of m bits, k probes and c items each, all queried with the
   same k addresses. Equation and section numbers refer to Guo, Wu, Chen, Yuan, Luo, "The Dynamic
   Bloom Filters"; the rate of a row is the exp form, as there. */
#include "plan.h"

#include <math.h>

/* vectors tried for sec. 4.2: more than any optimum for the paper's sets */
#define S_MAX     1000
#define SUM_EXACT 100000 /* row size up to which sums run over every item */

static int bad_row(double m, double k, uint64_t c)
{
    return !(m > 0 && k > 0) || c == 0;
}

/* 1 - (1-f)^s without losing small f. */
static double any_of(double f, double s)
{
    return f >= 1 ? (s > 0 ? 1 : 0) : -expm1(s * log1p(-f));
}

/* ---- rates ---- */

uint64_t tamis_plan_dynamic_rows(uint64_t c, uint64_t n)
{
    return c ? n / c + (n % c != 0) : 0;
}

/* (3): 1-(1-f_c)^{floor(n/c)} (1-f_{n-c floor(n/c)}). The rows share the query's addresses, so
   the exact rate differs slightly (.09478 instead of .09422 for ten rows of 1280 bits). */
double tamis_plan_dynamic_rate(double m, double k, uint64_t c, uint64_t n)
{
    return tamis_plan_dynamic_union(m, k, c, n, 0);
}

/* (4): the product over the rows of both sets. It differs from (3) at na+nb: each set keeps its
   own partial row. */
double tamis_plan_dynamic_union(double m, double k, uint64_t c, uint64_t na, uint64_t nb)
{
    if (bad_row(m, k, c))
        return NAN;
    double full = tamis_plan_rate_exp(m, k, (double)c);
    double fa = tamis_plan_rate_exp(m, k, (double)(na % c));
    double fb = tamis_plan_rate_exp(m, k, (double)(nb % c));
    double rows = (double)(na / c) + (double)(nb / c);
    if (full >= 1)
        return rows > 0 ? 1 : any_of(fa + fb - fa * fb, 1);
    return -expm1(rows * log1p(-full) + log1p(-fa) + log1p(-fb));
}

/* (6): (1-xy)^k + ((1-x)(1-y))^k - (1-x)^k - (1-y)^k with x = e^{-k na/m}, y = e^{-k nb/m}.
   Every query that the two rows accept is accepted by their OR, so it is never negative. */
double tamis_plan_dynamic_union_gain(double m, double k, double na, double nb)
{
    if (!(m > 0 && k > 0 && na >= 0 && nb >= 0))
        return NAN;
    double fa = tamis_plan_rate_exp(m, k, na), fb = tamis_plan_rate_exp(m, k, nb);
    return tamis_plan_rate_exp(m, k, na + nb) + fa * fb - fa - fb;
}

/* Items in the last row, n - c(s-1), in 1..c; unlike the remainder it is not 0 at multiples of
   c. */
static double last_row(uint64_t c, uint64_t n)
{
    return n == 0 ? 0 : (double)((n - 1) % c + 1);
}

/* (9): an item of one of the first s-1 rows also matches another row. */
double tamis_plan_dynamic_f1(double m, double k, uint64_t c, uint64_t n)
{
    if (bad_row(m, k, c))
        return NAN;
    double s = (double)tamis_plan_dynamic_rows(c, n);
    if (s < 2)
        return 0;
    double full = any_of(tamis_plan_rate_exp(m, k, (double)c), s - 2);
    double last = tamis_plan_rate_exp(m, k, last_row(c, n));
    return full + last - full * last;
}

/* (10): an item of the last row also matches one of the others. */
double tamis_plan_dynamic_f2(double m, double k, uint64_t c, uint64_t n)
{
    if (bad_row(m, k, c))
        return NAN;
    double s = (double)tamis_plan_dynamic_rows(c, n);
    return s < 2 ? 0 : any_of(tamis_plan_rate_exp(m, k, (double)c), s - 1);
}

double tamis_plan_dynamic_multi(double m, double k, uint64_t c, uint64_t n)
{
    double last = c ? last_row(c, n) : 0;
    return ((double)n - last) * tamis_plan_dynamic_f1(m, k, c, n) +
           last * tamis_plan_dynamic_f2(m, k, c, n);
}

double tamis_plan_dynamic_multi_bound(double m, double k, uint64_t c, uint64_t n)
{
    return (double)n * tamis_plan_dynamic_f2(m, k, c, n);
}

/* Sum of f(m,k,t) over t = 0..n-1. For long rows Simpson's rule on 2000 panels with the first
   Euler-Maclaurin term: f is smooth, and the error is below 1e-9 of the sum. */
static double row_sum(double m, double k, double n)
{
    double sum = 0;
    if (n <= SUM_EXACT) {
        for (double t = 0; t < n; t++)
            sum += tamis_plan_rate_exp(m, k, t);
        return sum;
    }
    double h = n / 4000;
    for (int i = 0; i <= 4000; i++)
        sum += tamis_plan_rate_exp(m, k, i * h) * (i == 0 || i == 4000 ? 1 : i % 2 ? 4 : 2);
    return sum * h / 3 - tamis_plan_rate_exp(m, k, n) / 2;
}

/* sum_{i<n} f_DBF(i): with r full rows before it, an item matches with probability 1-(1-f_c)^r
   (1-f_t). The rows form a geometric series. Sec. 3.5.1 uses n f2 instead, about twice as much. */
double tamis_plan_dynamic_present(double m, double k, uint64_t c, uint64_t n)
{
    if (bad_row(m, k, c))
        return NAN;
    double f = tamis_plan_rate_exp(m, k, (double)c), items = (double)c;
    double rows = (double)(n / c), rest = (double)(n % c);
    double clear = items - row_sum(m, k, items); /* items that match nothing in their own row */
    double pass = f > 0 ? any_of(f, rows) / f : rows;
    double left = (rest - row_sum(m, k, rest)) * (1 - any_of(f, rows));
    return (double)n - clear * pass - left;
}

double tamis_plan_dynamic_insert_ratio(double f, double s)
{
    return f >= 0 && f <= 1 && s >= 1 ? s * any_of(f, s - 1) : NAN;
}

/* (12): (3) with every row full. */
double tamis_plan_dynamic_bound(double m, double k, uint64_t c, uint64_t n)
{
    if (bad_row(m, k, c))
        return NAN;
    return any_of(tamis_plan_rate_exp(m, k, (double)c), (double)tamis_plan_dynamic_rows(c, n));
}

/* Bits per item of a single filter with k probes at rate f. */
static double bits_per_item(double k, double f)
{
    return -k / log1p(-pow(f, 1 / k));
}

/* (13), y = f_c: a single filter of rate 1-(1-y)^s for s c items, relative to s rows of m bits. */
double tamis_plan_dynamic_size_ratio(double m, double k, double c, double s)
{
    if (!(m > 0 && k > 0 && c > 0 && s >= 1))
        return NAN;
    return bits_per_item(k, any_of(tamis_plan_rate_exp(m, k, c), s)) * c / m;
}

double tamis_plan_dynamic_size_ratio_best(double m, double k, double c, double s)
{
    double best = NAN;
    if (!(m > 0 && k > 0 && c > 0 && s >= 1))
        return NAN;
    double f = any_of(tamis_plan_rate_exp(m, k, c), s);
    for (unsigned i = 1; i <= K_MAX; i++)
        best = fmin(best, bits_per_item(i, f)); /* fmin ignores the initial NaN */
    return best * c / m;
}

/* (14): a single filter rebuilt with ceil(n/c) m bits. Never above f_c. */
double tamis_plan_dynamic_one_rate(double m, double k, uint64_t c, uint64_t n)
{
    if (bad_row(m, k, c))
        return NAN;
    double rows = (double)tamis_plan_dynamic_rows(c, n);
    return n == 0 ? 0 : tamis_plan_rate_exp(m * rows, k, (double)n);
}

/* ---- sec. 4.2: the best number of rows for a known law of the set size ---- */

static int bad_sizes(const double *p, size_t N)
{
    return p == NULL || N == 0 || N > ((size_t)1 << 40);
}

static bool scale(double *p, size_t N)
{
    double sum = 0;
    for (size_t i = 0; i < N; i++) {
        if (!(p[i] >= 0))
            return false;
        sum += p[i];
    }
    if (!(sum > 0) || isinf(sum))
        return false;
    for (size_t i = 0; i < N; i++)
        p[i] /= sum;
    return true;
}

bool tamis_plan_sizes_uniform(double *p, size_t N)
{
    if (bad_sizes(p, N))
        return false;
    for (size_t i = 0; i < N; i++)
        p[i] = 1 / (double)N;
    return true;
}

bool tamis_plan_sizes_normal(double *p, size_t N, double mean, double sd)
{
    if (bad_sizes(p, N) || !isfinite(mean) || !(sd > 0))
        return false;
    /* the size closest to the mean has weight 1 */
    double near = fmin(fmax(round(mean), 1), (double)N);
    for (size_t i = 0; i < N; i++) {
        double z = ((double)i + 1 - mean) / sd, z0 = (near - mean) / sd;
        p[i] = exp((z0 * z0 - z * z) / 2);
    }
    return scale(p, N);
}

bool tamis_plan_sizes_zipf_min(double *p, size_t N, double theta)
{
    if (bad_sizes(p, N) || !(theta >= 0) || isinf(theta))
        return false;
    for (size_t i = 0; i < N; i++)
        p[i] = pow((double)i + 1, -theta);
    return scale(p, N);
}

static void swap(double *a, double *b)
{
    double t = *a;
    *a = *b;
    *b = t;
}

bool tamis_plan_sizes_zipf_max(double *p, size_t N, double theta)
{
    if (!tamis_plan_sizes_zipf_min(p, N, theta))
        return false;
    for (size_t i = 0; i < N / 2; i++)
        swap(&p[i], &p[N - 1 - i]);
    return true;
}

/* A Fisher-Yates shuffle driven by splitmix64. */
bool tamis_plan_sizes_zipf_random(double *p, size_t N, double theta, uint64_t seed)
{
    if (!tamis_plan_sizes_zipf_min(p, N, theta))
        return false;
    for (size_t i = N - 1; i > 0; i--) {
        seed += GOLDEN;
        swap(&p[i], &p[mix64(seed) % (i + 1)]);
    }
    return true;
}

bool tamis_plan_sizes_cumulate(double *p, size_t N)
{
    if (bad_sizes(p, N) || !scale(p, N))
        return false;
    for (size_t i = 1; i < N; i++)
        p[i] += p[i - 1];
    return true;
}

/* Expected rows in use, the sum of r_i = P(size > c(i-1)), r_1 = 1: an equality, not a bound. */
static double rows_used(const double *cum, size_t N, uint64_t c, uint64_t s)
{
    double used = 1;
    for (uint64_t i = 1; i < s && i * c < N; i++) {
        double r = 1 - cum[i * c - 1];
        used += r > 0 ? r : 0;
    }
    return used;
}

/* The objective with c = ceil(N/s) in both m and r_i. With N/s in m, as printed, large s looks
   too cheap: uniform sizes up to 1330 would get 1329 vectors of one item. */
static tamis_plan_rows rows_at(const double *cum, size_t N, double alpha, uint64_t s)
{
    tamis_plan_rows v = {.s = s, .c = tamis_plan_dynamic_rows(s, N)};
    v.delta = any_of(alpha, 1.0 / (double)s);
    double m = ceil(tamis_plan_bits_best((double)v.c, v.delta)); /* not a number if delta is 0 */
    v.m = m < 9e18 ? (uint64_t)m : 0;
    v.used = rows_used(cum, N, v.c, s);
    v.bits = m * v.used;
    v.one = ceil(tamis_plan_bits_best((double)N, alpha));
    v.ratio = v.bits / v.one;
    return v;
}

static void rows_finish(tamis_plan_rows *v)
{
    tamis_plan_size one = tamis_plan_bits_whole(v->c, v->delta);
    v->m_whole = one.bits;
    v->k = one.k;
}

tamis_plan_rows tamis_plan_dynamic_at(const double *cum, size_t N, double alpha, uint64_t s)
{
    tamis_plan_rows v = {.delta = NAN, .used = NAN, .bits = NAN, .one = NAN, .ratio = NAN};
    if (bad_sizes(cum, N) || !(alpha > 0 && alpha < 1) || s == 0 || s > N)
        return v;
    v = rows_at(cum, N, alpha, s);
    rows_finish(&v);
    return v;
}

tamis_plan_rows tamis_plan_dynamic_best(const double *cum, size_t N, double alpha)
{
    tamis_plan_rows best = tamis_plan_dynamic_at(cum, N, alpha, 1);
    if (best.s == 0)
        return best;
    for (uint64_t s = 2; s <= S_MAX && s <= N; s++) {
        tamis_plan_rows v = rows_at(cum, N, alpha, s);
        if (v.bits < best.bits)
            best = v;
    }
    rows_finish(&best);
    return best;
}

/* ---- sec. 4.3: no bound on the size, the rate may go from beta to gamma ---- */

/* Single filter: f rises from beta to gamma at n0 ln(1-gamma^{1/k})/ln(1-beta^{1/k}) items (the
   printed n0 log(beta-gamma) is undefined). Rows: the printed ceiling is already past gamma;
   floor(ln(1-gamma)/ln(1-beta)) rows are full, and the next takes items up to the rate
   1-(1-gamma)/(1-beta)^rows. */
tamis_plan_limits tamis_plan_dynamic_limits(double k, double n0, double beta, double gamma)
{
    tamis_plan_limits v = {NAN, 0, NAN, NAN, NAN, 0};
    if (!(k > 0 && n0 > 0 && beta > 0 && beta <= gamma && gamma < 1))
        return v;
    double unit = log1p(-pow(beta, 1 / k));
    v.one = n0 * log1p(-pow(gamma, 1 / k)) / unit;
    double rows = log1p(-gamma) / log1p(-beta);
    v.rows = floor(rows * (1 + 4e-16)); /* beta = gamma is one row, whatever the rounding */
    double rest = -expm1(log1p(-gamma) - v.rows * log1p(-beta));
    v.partial = rest > 0 ? n0 * log1p(-pow(rest, 1 / k)) / unit : 0;
    v.dynamic = n0 * v.rows + v.partial;
    v.one_whole = v.one < 9e18 ? (uint64_t)v.one : 0;
    v.dynamic_whole = v.dynamic < 9e18 ? (uint64_t)v.dynamic : 0;
    return v;
}
