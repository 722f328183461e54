/* One vector: the rate by layout, and the search for sizes and capacities.
 *
 * Searches treat the rate as a black box that falls with the size and rises with the number of keys.
 * They run whenever a filter is created or grows, so they are limited to about twenty evaluations: an
 * initial guess, secant steps on logarithms (rates are nearly powers of the size), and a bracket that
 * always closes.
 */
#include "plan.h"

#include <math.h>

#define STEP       8u    /* sizes are multiples of this many units */
#define FOLDS      64u   /* and of this many from FOLDS_FROM on, where it costs less than 0.1 %: */
#define FOLDS_FROM 64000 /* such vectors can be halved three times */
#define KEYS_MAX   ((uint64_t)1 << 50)
#define NEAR_TIE   1.005
#define ROUND_TIE  1.01 /* blocked, more than 8 probes: one round fewer is worth more */

static tamis_layout layout_of(tamis_layout layout)
{
    return layout == 0 ? TAMIS_BLOCKED : layout;
}

static uint64_t unit_bits(tamis_layout layout)
{
    return layout == TAMIS_BLOCKED ? 512 : 1;
}

double tamis_plan_rate(tamis_layout layout, uint64_t units, unsigned k, double n)
{
    layout = layout_of(layout);
    return layout == TAMIS_SPREAD    ? tamis_plan_rate_spread(units, k, n)
           : layout == TAMIS_BLOCKED ? tamis_plan_rate_blocked(units, k, n)
                                     : NAN;
}

static double items_spread(uint64_t m, unsigned k, double ones)
{
    double bits = (double)m;
    if (m == 0 || k == 0 || k > K_MAX || !(ones >= 0 && ones <= bits))
        return NAN;
    if (m == 1)
        return ones > 0 ? 1 : 0;
    if (ones > bits - 0.5)
        ones = bits - 0.5;
    return log1p(-ones / bits) / (k * log1p(-1 / bits));
}

static double items_of(tamis_layout layout, uint64_t units, unsigned k, double ones)
{
    layout = layout_of(layout);
    return layout == TAMIS_SPREAD    ? items_spread(units, k, ones)
           : layout == TAMIS_BLOCKED ? plan_items_blocked(units, k, ones)
                                     : NAN;
}

double plan_items(tamis_layout layout, uint64_t units, unsigned k, uint64_t ones)
{
    return items_of(layout, units, k, (double)ones);
}

double plan_fill_rate(tamis_layout layout, uint64_t units, unsigned k, double fill)
{
    if (units == 0 || k == 0 || k > K_MAX || !(fill >= 0 && fill <= 1))
        return NAN;
    if (layout_of(layout) == TAMIS_SPREAD)
        return pow(fill, k);
    double bits = (double)units * (double)unit_bits(layout_of(layout));
    double n = items_of(layout, units, k, fill * bits);
    return fill < 1 ? tamis_plan_rate(layout, units, k, n) : 1;
}

/* ---- searches ---- */

/* A predicate on integers x >= 1 that is false up to some x and true from there on. value() is
   <= 0 exactly where it is true, and nearly linear in ln x with the given slope. */
struct search {
    tamis_layout layout;
    unsigned k;
    double n, p;
    uint64_t units;
    double slope; /* estimated slope for the first steps, > 0 */
    double (*value)(const struct search *s, uint64_t x);
};

/* First x in 1..limit for which it is true, searched from `guess`; limit+1 if there is none. */
static uint64_t search_first(const struct search *s, uint64_t guess, uint64_t limit)
{
    uint64_t no = 0, yes = limit + 1, x = guess < 1 ? 1 : guess > limit ? limit : guess;
    double last_ln = 0, last = 0;
    for (int i = 0; yes - no > 1 && i < 400; i++) {
        double v = s->value(s, x), at = log((double)x), next;
        if (v <= 0)
            yes = x;
        else
            no = x;
        double slope = i > 0 && at != last_ln ? (last - v) / (at - last_ln) : s->slope;
        slope = isfinite(slope) && slope > 0.05 ? slope : s->slope;
        last_ln = at;
        last = v;
        double move = v / slope;
        next = ceil(exp(at + (move > 5 ? 5 : move < -5 ? -5 : move)));
        if (i % 4 == 3) /* closes the bracket whatever the shape of the function */
            next = sqrt((double)(no ? no : 1) * (double)yes);
        if (!(next > (double)no))
            x = no + 1;
        else if (!(next < (double)yes))
            x = yes - 1;
        else
            x = (uint64_t)next;
    }
    return yes;
}

static double log_excess(double rate, double p)
{
    return rate > 0 ? log(rate / p) : -700;
}

static double value_size(const struct search *s, uint64_t x)
{
    return log_excess(tamis_plan_rate(s->layout, x * STEP, s->k, s->n), s->p);
}

static double value_keys(const struct search *s, uint64_t x)
{
    double rate = tamis_plan_rate(s->layout, s->units, s->k, (double)x);
    double v = -log_excess(rate, s->p);
    if (rate > s->p)
        return v < 0 ? v : -1e-300;
    return v > 0 ? v : 1e-300; /* a rate of exactly p still fits */
}

uint64_t tamis_plan_capacity(tamis_layout layout, uint64_t units, unsigned k, double p)
{
    struct search s = {.layout = layout_of(layout),
                       .k = k,
                       .p = p,
                       .units = units,
                       .slope = 0.7 * k + 0.5,
                       .value = value_keys};
    if (units == 0 || k == 0 || k > K_MAX || !(p > 0 && p < 1) ||
        (s.layout != TAMIS_SPREAD && s.layout != TAMIS_BLOCKED))
        return 0;
    double guess = tamis_plan_capacity_real((double)units * (double)unit_bits(s.layout), k, p);
    guess = guess < 1 ? 1 : guess > 1e15 ? 1e15 : guess;
    return search_first(&s, (uint64_t)guess, KEYS_MAX) - 1;
}

/* ---- sizing ---- */

/* Fewest units, a multiple of STEP, for this k; more than the limit if impossible. */
static uint64_t fit(struct search *s, unsigned k, uint64_t guess)
{
    uint64_t limit = BITS_MAX / unit_bits(s->layout) / STEP;
    s->k = k;
    s->slope = 0.7 * k + 0.5;
    return search_first(s, guess / STEP, limit) * STEP;
}

static int fits(struct search *s, unsigned k, uint64_t units)
{
    return units > 0 && tamis_plan_rate(s->layout, units, k, s->n) <= s->p;
}

/* The k to start from: log2(1/p), which leaves half the bits of a spread vector zero. Blocks
   need fewer probes the lower the rate, since the fullest blocks dominate; the denominator is
   fitted to the optima. */
static unsigned first_k(const struct search *s)
{
    double bits = -log2(s->p);
    if (s->layout == TAMIS_BLOCKED)
        bits /= 1 + bits / 70;
    return bits < 1 ? 1 : bits > K_MAX ? K_MAX : (unsigned)(bits + 0.5);
}

/* The size to start from: the exp form, plus for blocks what their uneven load adds at usual
   rates. */
static uint64_t first_guess(const struct search *s, unsigned k)
{
    double m = -(double)k * s->n / log1p(-pow(s->p, 1.0 / k));
    if (s->layout == TAMIS_BLOCKED)
        m *= 1 + 0.006 * k;
    m /= (double)unit_bits(s->layout);
    return m < 1e15 ? (uint64_t)m + 1 : (uint64_t)1e15;
}

/* Walks from k to a k that no neighbour beats by a step. Sizes fall and then rise with k;
   looking further bridges plateaus from rounding to whole steps and the ripple of blocks at
   multiples of 8. One evaluation tells whether a neighbour is better, and only then a search
   follows. */
static unsigned best_k(struct search *s, unsigned k, uint64_t *units)
{
    static const int look[] = {1, -1, 2, -2, 3, -3, 5, -5, 8, -8};
    for (unsigned i = 0; i < sizeof look / sizeof *look;) {
        int next = (int)k + look[i++];
        if (next < 1 || next > K_MAX || !fits(s, (unsigned)next, *units - STEP))
            continue;
        k = (unsigned)next;
        *units = fit(s, k, *units - STEP);
        i = 0;
    }
    return k;
}

/* Smallest k that still fits into `units`, given that `k` does. */
static unsigned least_k(struct search *s, unsigned k, uint64_t units)
{
    unsigned no = 0, yes = k, stride = 1;
    /* equally good values are close to k: strides of 1, 2, 4..., then halving */
    while (yes - no > 1) {
        unsigned mid = no == 0 && stride < yes ? yes - stride : (no + yes) / 2;
        stride *= 2;
        if (fits(s, mid, units))
            yes = mid;
        else
            no = mid;
    }
    return yes;
}

static const tamis_plan_size no_size = {0, 0, 0, NAN};

static int search_start(struct search *s, tamis_layout layout, double n, double p)
{
    *s = (struct search){
        .layout = layout_of(layout), .n = n > 0 ? n : 1, .p = p, .value = value_size};
    return (s->layout == TAMIS_SPREAD || s->layout == TAMIS_BLOCKED) && p > 0 && p < 1;
}

/* Rounds the units of a large vector to a multiple of FOLDS, as the limit is. */
static uint64_t foldable(uint64_t units)
{
    return units >= FOLDS_FROM && units % FOLDS ? units + FOLDS - units % FOLDS : units;
}

static tamis_plan_size size_of(const struct search *s, uint64_t units, unsigned k)
{
    return (tamis_plan_size){units, units * unit_bits(s->layout), k,
                             tamis_plan_rate(s->layout, units, k, s->n)};
}

static tamis_plan_size vector_for(tamis_layout layout, double n, double p)
{
    struct search s;
    if (!search_start(&s, layout, n, p))
        return no_size;
    uint64_t limit = BITS_MAX / unit_bits(s.layout);
    unsigned k = first_k(&s);
    uint64_t units = fit(&s, k, first_guess(&s, k));
    k = best_k(&s, k, &units);
    if (units > limit)
        return no_size;
    double slack = s.layout == TAMIS_BLOCKED && k > 8 ? ROUND_TIE : NEAR_TIE;
    uint64_t tie = (uint64_t)((double)units * slack) / STEP * STEP;
    tie = tie > limit ? limit : tie;
    unsigned fewer = least_k(&s, k, tie);
    units = foldable(fewer == k ? units : fit(&s, fewer, tie));
    return size_of(&s, units, units % FOLDS ? fewer : least_k(&s, fewer, units));
}

tamis_plan_size tamis_plan_vector(tamis_layout layout, uint64_t n, double p)
{
    return vector_for(layout, (double)n, p);
}

/* Of the n' keys after which the rate is p, this share sets a bit: n = n' - sum of f(t) for t <
   n'. In the exp form that is n' s/a + p/2, with a = -ln(1-P), s = sum of P^i/i for i = 1..k, P
   = p^{1/k}. Returns s/a: .72 at .5, .998 at .01. */
static double fresh_part(unsigned k, double p)
{
    double root = pow(p, 1.0 / k), s = 0, power = 1;
    for (unsigned i = 1; i <= k; i++)
        s += (power *= root) / i;
    return s / -log1p(-root);
}

tamis_plan_size plan_filled(tamis_layout layout, uint64_t n, double p)
{
    tamis_plan_size size = tamis_plan_vector(layout, n, p);
    double keys = size.bits ? ((double)n - p / 2) / fresh_part(size.k, p) : 0;
    bool fits = !(keys > (double)n) || tamis_plan_rate(layout, size.units, size.k, keys) <= p;
    return fits ? size : vector_for(layout, keys, p); /* most small ones fit already */
}

/* In smaller vectors the rounding of tamis_plan_vector costs more than a fifth of a percent. */
#define CLOSE_BELOW 4096

tamis_plan_size plan_close(uint64_t n, double p)
{
    const tamis_layout layout = TAMIS_BLOCKED;
    tamis_plan_size size = plan_filled(layout, n, p);
    if (size.units >= CLOSE_BELOW || size.units == 0)
        return size;
    for (unsigned k = size.k; size.units > 1 && k <= size.k + 4;) {
        double keys = ((double)n - p / 2) / fresh_part(k, p);
        double rate =
            tamis_plan_rate(layout, size.units - 1, k, keys > (double)n ? keys : (double)n);
        if (!(rate <= p)) {
            k++;
            continue;
        }
        size = (tamis_plan_size){size.units - 1, size.bits - size.bits / size.units, k, rate};
    }
    return size;
}

uint64_t plan_takes(tamis_layout layout, uint64_t units, unsigned k, double p)
{
    uint64_t keys = tamis_plan_capacity(layout, units, k, p);
    return keys ? (uint64_t)((double)keys * fresh_part(k, p) + p / 2) : keys;
}

tamis_plan_size plan_vector_of(tamis_layout layout, uint64_t n, double p, unsigned k)
{
    struct search s;
    if (!search_start(&s, layout, (double)n, p) || k == 0 || k > K_MAX)
        return no_size;
    uint64_t units = fit(&s, k, first_guess(&s, k));
    return units > BITS_MAX / unit_bits(s.layout) ? no_size : size_of(&s, foldable(units), k);
}

double plan_excess(double mean, unsigned room)
{
    double chance = exp(-mean), below = 0; /* of i, and the mean of room - i below room */
    for (unsigned i = 0; i < room; i++) {
        below += chance * (room - i);
        chance *= mean / (i + 1);
    }
    double excess = mean - room + below;
    return excess > 0 ? excess : 0;
}
