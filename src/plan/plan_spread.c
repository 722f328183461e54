/* The spread vector: k probes anywhere in m bits. The published approximations, the exact rate, and
 * Theorem 3 of the dynamic Bloom filter paper, which is the same sum with other weights.
 *
 * The exact rate is E[(X/m)^k], X the occupied cells after T = kn throws. Written with the j
 * distinct cells that the query's k probes hit,
 *
 *     E[(X/m)^k] = sum_j w_j B(T,j),   w_j = P(k throws hit exactly j cells),
 *                                      B(T,j) = P(T throws cover j given cells).
 *
 * B as an alternating sum loses every digit (terms 3^j times the value at half fill), and a Markov
 * chain over X costs m T steps. Instead: if T were Poisson with mean m y, the cells would be
 * independent and B = (1-e^{-y})^j, so
 *
 *     B(T,j) = T!/m^T [y^T] e^{my} (1-e^{-y})^j,
 *
 * and the coefficient is a Cauchy integral over a circle through the saddle point, where the
 * trapezoid rule converges faster than any power: about ten points give twelve digits, for any m
 * and T, in a few microseconds. The function has only positive coefficients, so the saddle on the
 * real axis is its maximum on the circle and nothing cancels.
 */
#include "plan.h"

#include <math.h>

#define EXACT_BELOW 65536.0 /* bits; larger vectors use the expansion */
#define EXACT_MOST  0x1p24  /* where both agree to ten digits */
#define TWO_PI      6.283185307179586
#define SATURATED   40.0 /* throws per cell: e^-40 is below half an ulp of 1 */

/* ---- published forms ---- */

double tamis_plan_rate_exp(double m, double k, double n)
{
    if (!(m > 0 && k > 0 && n >= 0))
        return NAN;
    return pow(-expm1(-k * n / m), k);
}

double tamis_plan_rate_discrete(double m, double k, double n)
{
    if (!(m >= 1 && k > 0 && n >= 0))
        return NAN;
    if (n == 0)
        return 0;
    return pow(-expm1(k * n * log1p(-1 / m)), k);
}

double tamis_plan_capacity_real(double m, double k, double p)
{
    if (!(m > 0 && k > 0 && p > 0 && p < 1))
        return NAN;
    return -m / k * log1p(-pow(p, 1 / k));
}

uint64_t tamis_plan_capacity_whole(double m, double k, double p)
{
    double n = tamis_plan_capacity_real(m, k, p);
    return n >= 1 && n < 9e18 ? (uint64_t)n : 0;
}

double tamis_plan_capacity_best(double m, double p)
{
    if (!(m > 0 && p > 0 && p < 1))
        return NAN;
    return m * LN2 * LN2 / -log(p); /* .6185 = e^{-(ln 2)^2} */
}

double tamis_plan_bits_best(double n, double p)
{
    if (!(n >= 0 && p > 0 && p < 1))
        return NAN;
    return n * -log(p) / (LN2 * LN2);
}

tamis_plan_size tamis_plan_bits_whole(uint64_t n, double p)
{
    tamis_plan_size best = {0, 0, 0, NAN};
    if (n == 0 || !(p > 0 && p < 1))
        return best;
    for (unsigned k = 1; k <= K_MAX; k++) {
        double m = ceil(-(double)k * (double)n / log1p(-pow(p, 1.0 / k)));
        if (!(m < 9e18))
            continue;
        m = m < 1 ? 1 : m;
        /* Rounding of the closed form: at most one step, except for rates within about 1e-12 of
           1. */
        for (double step = 1; tamis_plan_rate_exp(m, k, (double)n) > p; step *= 2)
            m = nextafter(m + step, INFINITY);
        if (best.bits && m >= (double)best.bits)
            continue;
        best.units = best.bits = (uint64_t)m;
        best.k = k;
        best.rate = tamis_plan_rate_exp(m, k, (double)n);
    }
    return best;
}

/* ---- the exact sum ---- */

/* T! e^T / T^T, which is sqrt(2 pi T) and a little more. */
static double factorial_ratio(double t)
{
    if (t >= 16) {
        double i = 1 / t, i2 = i * i;
        return sqrt(TWO_PI * t) * exp(i * (1.0 / 12 - i2 * (1.0 / 360 - i2 / 1260)));
    }
    double v = 1;
    for (double j = 1; j <= t; j++)
        v *= j / t * M_E;
    return v;
}

/* Weights w[0..n-1] of sum_j w_j B(T,j), and values of the integrand on the real axis. */
struct cover {
    double m, t;
    const double *w;
    unsigned n;
    double r;     /* the saddle */
    double value; /* sum w_j p^j at the saddle, p = 1-e^{-r} */
    double kappa; /* variance of the throws, tilted; the width of the peak is its -1/2 power */
};

/* Derivative of the log of the integrand with respect to ln y at y = r; zero at the saddle. */
static double cover_slope(struct cover *c, double r)
{
    double p = -expm1(-r), pj = 1, s0 = 0, s1 = 0, s2 = 0;
    for (unsigned j = 0; j < c->n; j++) {
        double v = c->w[j] * pj;
        s0 += v;
        s1 += v * j;
        s2 += v * j * j;
        pj *= p;
    }
    c->r = r;
    c->value = s0;
    if (!(s0 > 0))
        return NAN;
    double mean = s1 / s0, var = s2 / s0 - mean * mean;
    double a = r * exp(-r) / p; /* d ln p / d ln r */
    c->kappa = c->m * r + a * (1 - r / p) * mean + a * a * var;
    return c->m * r + a * mean - c->t;
}

/* Newton's method in ln r. The slope rises with r (positive coefficients), so steps of bounded
   length from T/m converge. A tenth of the peak's width from the saddle is close enough. */
static int cover_saddle(struct cover *c)
{
    double s = log(c->t / c->m);
    for (int i = 0; i < 60; i++) {
        double slope = cover_slope(c, exp(s));
        if (isnan(slope) || !(c->kappa > 0))
            return -1;
        if (fabs(slope) < 0.1 * sqrt(c->kappa))
            return 0;
        double step = slope / c->kappa;
        s -= step > 2 ? 2 : step < -2 ? -2 : step;
    }
    return -1;
}

/* Real part of the integrand at angle x, without the factor at angle 0 except `value`. */
static double cover_at(const struct cover *c, double x, double *size)
{
    double re = c->r * cos(x), im = c->r * sin(x), half = sin(im / 2), q = exp(-re);
    /* 1-e^{-y} without cancellation */
    double pr = -expm1(-re) + 2 * q * half * half, pi = q * sin(im);
    double gr = 0, gi = 0;
    for (unsigned j = c->n; j-- > 0;) {
        double t = gr * pr - gi * pi + c->w[j];
        gi = gr * pi + gi * pr;
        gr = t;
    }
    double sx = sin(x / 2), scale = exp(-2 * c->m * c->r * sx * sx);
    double turn = c->m * im - c->t * x;
    *size = scale * (fabs(gr) + fabs(gi));
    return scale * (gr * cos(turn) - gi * sin(turn));
}

/* sum_j w_j B(T,j) for integer T. */
double plan_cover_sum(double m, double t, const double *w, unsigned n)
{
    struct cover c = {.m = m, .t = t, .w = w, .n = n};
    unsigned low = 0;
    while (low < n && !(w[low] > 0))
        low++;
    if (low == n || t < low)
        return 0;
    if (t == low) { /* every throw must cover a new one of the cells: T!/m^T */
        double v = w[low];
        for (unsigned j = 1; j <= low; j++)
            v *= j / m;
        return v;
    }
    if (cover_saddle(&c))
        return 0; /* every term underflows */
    double width = sqrt(c.kappa), nodes = ceil(TWO_PI * width / 0.8);
    nodes = nodes < 41 ? 41 : nodes + (fmod(nodes, 2) == 0); /* odd: no node at pi */
    double step = TWO_PI / nodes, sum = c.value;
    /* in widths: nothing is left beyond */
    double last = fmin((nodes - 1) / 2, 40 / (step * width));
    for (double i = 1; i <= last; i++) {
        double size;
        sum += 2 * cover_at(&c, i * step, &size);
        if (i * step * width > 7 && size < 1e-16 * sum)
            break;
    }
    double rho = m * c.r / t;
    double v = factorial_ratio(t) * exp(t * (rho - 1 - log(rho))) * sum / nodes;
    return v < 0 ? 0 : v > 1 ? 1 : v;
}

void plan_throw(double *p, unsigned most, double m)
{
    for (unsigned j = most; j > 0; j--) {
        double fresh = m - (j - 1);
        p[j] = (p[j] * j + (fresh > 0 ? p[j - 1] * fresh : 0)) / m;
    }
    p[0] = 0;
}

/* The rate for large m: the exp form with the first term in 1/m,
 *
 *     ln f = k ln p + [ k a q / (2p) + k(k-1)/2 (q-(1+a)q^2) / p^2 ] / m,   a = kn/m, q = e^{-a}.
 *
 * The first part accounts for (1-1/m)^T being below e^{-a}, the second for the variance of X. Without
 * the correction the rate at 2^16 bits would be 0.013 % too low at k = 7 and 0.6 % at k = 50; with it,
 * the error is 2e-6 at k = 64. */
static double rate_large(double m, double k, double n)
{
    double a = k * n / m, q = exp(-a), p = -expm1(-a);
    if (n == 0)
        return 0;
    if (a > SATURATED)
        return 1;
    double spread = a < 1e-4 ? a * a * (0.5 - a / 3) : p - a * q; /* 1-(1+a)e^{-a} */
    double first = k * a * q / (2 * p) + k * (k - 1) / 2 * q * spread / (p * p);
    return exp(k * log(p) + first / m);
}

double tamis_plan_rate_exact(uint64_t m, unsigned k, double n)
{
    double bits = (double)m, t = k * n, w[K_MAX + 1] = {1}; /* distinct cells of k throws */
    if (m == 0 || k == 0 || k > K_MAX || !(n >= 0))
        return NAN;
    if (n == 0)
        return 0;
    if (k == 1 || t > SATURATED * bits)
        /* exact for k = 1, and where everything is full */
        return tamis_plan_rate_discrete(bits, k, n);
    if (bits > EXACT_MOST)
        return rate_large(bits, k, n);
    for (unsigned i = 1; i <= k; i++)
        plan_throw(w, i, bits);
    double low = floor(t), part = t - low;
    double v = part < 1 ? plan_cover_sum(bits, low, w, k + 1) : 0;
    if (part > 1e-9) /* an estimated n: linear interpolation between integer numbers of throws */
        v += part * (plan_cover_sum(bits, low + 1, w, k + 1) - v);
    return v;
}

double tamis_plan_rate_spread(uint64_t m, unsigned k, double n)
{
    if (m == 0 || k == 0 || k > K_MAX || !(n >= 0))
        return NAN;
    if ((double)m < EXACT_BELOW)
        return tamis_plan_rate_exact(m, k, n);
    double v = rate_large((double)m, k, n);
    return v > 1 ? 1 : v;
}
