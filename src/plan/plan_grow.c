/* Growing stacks of vectors: our schedule and error budget, the doubling stack of the course
   report, the flexible stack of SFBF, and the forecast that drives it. */
#include "plan.h"

#include <math.h>

#define LAMBDA_TOP (LAMBDA_MAX + 1) /* 2^40 times the base */

/* ---- our schedule ---- */

/*
 * Shares of the total rate. The first slots are for the small vectors at the start: a hundredth each,
 * since their bits cost little. The large vectors, for which a lookup misses the cache, get a tenth
 * each for as long as the sum allows, and after that a tail that falls as 1/i^2:
 *
 *     4/100 + 9/10 + .0364 * pi^2/6 = .99988 < 1.
 */
#define LARGE_SLOTS 9
#define LARGE_TIMES 1296 /* times the first capacity: what counts as large */

double plan_share(unsigned slot, double p)
{
    if (!(p > 0 && p < 1))
        return NAN;
    if (slot < PLAN_SMALL)
        return p / 100;
    if (slot < PLAN_SMALL + LARGE_SLOTS)
        return p / 10;
    double i = (double)slot - (PLAN_SMALL + LARGE_SLOTS - 1);
    return 0.0364 * p / (i * i);
}

/* 255/256 + 6/pi^2 * pi^2/6 / 256 < 1. */
double plan_share_compact(unsigned slot, double p)
{
    const unsigned halves = 8;
    if (slot < halves)
        return ldexp(p, -(int)slot - 1);
    double i = (double)slot - (halves - 1);
    return ldexp(p, -(int)halves) * 0.6079 / (i * i);
}

unsigned plan_slot(uint64_t first, uint64_t capacity)
{
    return capacity / LARGE_TIMES < (first ? first : 1) ? 0 : PLAN_SMALL;
}

/* With the k of the large vectors, the few small vectors of a blocked stack take more bits, 6 %
   at p/100; deep in the tail it would be too many. Where that k exceeds the limit, the best k
   may not. */
tamis_plan_size plan_in_stack(tamis_layout layout, uint64_t n, double share, double p)
{
    const uint64_t many = 1 << 20; /* any number: k hardly depends on it */
    if (layout != TAMIS_BLOCKED || !(share >= p / 1000))
        return tamis_plan_vector(layout, n, share);
    tamis_plan_size same =
        plan_vector_of(layout, n, share, tamis_plan_vector(layout, many, p / 10).k);
    return same.bits ? same : tamis_plan_vector(layout, n, share);
}

/* Grows sixfold while one more vector costs little per query, then doubles the total. The step
   between is chosen so that 10^5 times the first capacity is reached shortly before a vector is
   full, not shortly after the next one was started. */
uint64_t plan_next_capacity(uint64_t first, uint64_t largest, uint64_t total, double expansion)
{
    double next = (double)largest;
    first = first ? first : 1;
    if (largest == 0)
        next = (double)first;
    else if (expansion != 0)
        next =
            fmax(ceil(next * (expansion >= 1 ? expansion : 1)), ceil((double)total / PLAN_PARTS));
    else if (next < LARGE_TIMES / 6 * (double)first)
        next *= 6;
    else
        next = fmax(next, fmax((double)total, 1600 * (double)first - (double)total));
    return next < (double)BITS_MAX ? (uint64_t)next : BITS_MAX;
}

static const tamis_plan_stack stack_none = {0, NAN, NAN, NAN, NAN};

/* Adds a layer; `clear` is the logarithm of the probability that no layer answers yes. */
static void stack_add(tamis_plan_stack *v, const tamis_plan_layer *l, double *clear)
{
    v->layers++;
    v->bits += (double)l->bits;
    v->items += (double)l->load;
    *clear += log1p(-l->rate);
}

static void stack_finish(tamis_plan_stack *v, double clear)
{
    v->rate = -expm1(clear);
    v->per_item = v->items > 0 ? v->bits / v->items : NAN;
}

tamis_plan_stack tamis_plan_grow(tamis_layout layout, uint64_t first, double expansion, double p,
                                 uint64_t n, tamis_plan_layer *out, size_t room)
{
    tamis_plan_stack v = {0, 0, 0, 0, 0};
    uint64_t largest = 0, total = 0;
    double clear = 0;
    unsigned slot = 0;
    if (!(p > 0 && p < 1) || out == NULL)
        return stack_none;
    do {
        if (v.layers == room)
            return stack_none;
        tamis_plan_layer *l = &out[v.layers];
        l->capacity = plan_next_capacity(first, largest, total, expansion);
        l->load = n - total < l->capacity ? n - total : l->capacity;
        unsigned least = plan_slot(first, l->capacity);
        slot = slot < least ? least : slot;
        l->share = plan_share(slot++, p);
        tamis_plan_size size = plan_in_stack(layout, l->capacity, l->share, p);
        if (size.bits == 0)
            return stack_none;
        l->bits = size.bits;
        l->k = size.k;
        l->rate = tamis_plan_rate(layout, size.units, size.k, (double)l->load);
        stack_add(&v, l, &clear);
        largest = l->capacity > largest ? l->capacity : largest;
        total += l->capacity;
    } while (total < n);
    stack_finish(&v, clear);
    return v;
}

/* ---- small sets of fingerprints ---- */

/* 128 of them match a tenth of the rate. */
unsigned plan_first_known(double p)
{
    return 10 + (unsigned)ceil(-log2(p));
}

/* As many keys as RedisBloom's stacks of doubling vectors have when the last one is full. Those that it takes for known
   ones by mistake come on top. */
static uint64_t stage_end(uint64_t capacity, unsigned stage)
{
    uint64_t end = (capacity << (stage + 1)) - capacity;
    return end + end / 64;
}

/*
 * The keys of each stage together match at most this share of the rate; bits are whole, so most match less. The shares
 * are such that pages take no more memory at the end of a stage than such a stack does, and later ones, which have more
 * room for that, leave some of the rate for what follows: a stage ends beyond all pages before the sum is 0.44.
 */
unsigned plan_known(uint64_t capacity, uint64_t n, double p, uint64_t *last)
{
    static const double shares[] = {0.196, 0.098, 0.06, 0.025, 0.012};
    unsigned stage = 1;
    while (stage_end(capacity, stage) <= n)
        stage++;
    double share = shares[min_u64(stage, 5) - 1] * p;
    double known = ceil(log2(ldexp((double)capacity, (int)stage) / share));
    *last = stage_end(capacity, stage);
    return (unsigned)fmax(known, plan_first_known(p));
}

/* ---- the course report ---- */

/* Formula 3, with the layer's own 2^i m bits (the report prints m for every layer). */
double tamis_plan_report_capacity(double m, double k, double p, unsigned i)
{
    return i < 64 ? tamis_plan_capacity_real(ldexp(m, (int)i), k, p) : NAN;
}

/* (2^i-1) n0 < n <= (2^{i+1}-1) n0, so i = ceil(log2(n/n0+1))-1, and the L = i+1 layers take
   (2^L-1)m bits; the report's own formulas are off by one with respect to this inequality. */
double tamis_plan_report_expansions(double m, double k, double p, double n)
{
    double n0 = tamis_plan_report_capacity(m, k, p, 0);
    if (!(n0 > 0 && n >= 0))
        return NAN;
    return fmax(0, ceil(log2(n / n0 + 1)) - 1);
}

tamis_plan_stack tamis_plan_report(double m, unsigned k, double p, uint64_t n, int round,
                                   tamis_plan_layer *out, size_t room)
{
    tamis_plan_stack v = {0, 0, 0, 0, 0};
    uint64_t left = n;
    double clear = 0;
    if (!(m >= 1) || k == 0 || !(p > 0 && p < 1) || out == NULL)
        return stack_none;
    do {
        double real = tamis_plan_report_capacity(m, k, p, (unsigned)v.layers);
        double holds = round < 0 ? floor(real) : ceil(real);
        double bits = ldexp(m, (int)v.layers);
        if (v.layers == room || !(bits < 9e18) || !(holds < 9e18))
            return stack_none;
        tamis_plan_layer *l = &out[v.layers];
        l->capacity = (uint64_t)holds;
        l->load = left < l->capacity ? left : l->capacity;
        l->bits = (uint64_t)bits;
        l->k = k;
        l->share = p;
        l->rate = tamis_plan_rate_exp(bits, k, (double)l->load);
        stack_add(&v, l, &clear);
        left -= l->load;
    } while (left > 0);
    stack_finish(&v, clear);
    return v;
}

/* ---- SFBF ---- */

unsigned tamis_plan_lambda(double predicted, double base, unsigned max)
{
    max = max < 1 ? 1 : max > LAMBDA_TOP ? LAMBDA_TOP : max;
    /* a steady rate must not count as rising */
    double step = ceil(log2(predicted / base) - 1e-9) + 1;
    if (!(predicted > 0 && base > 0) || !(step > 1))
        return 1;
    return step < max ? (unsigned)step : max;
}

/* Every full vector has the m/n of the base and so its rate f0: (3) needs only their number. */
tamis_plan_flex tamis_plan_flexible(double m0, uint64_t n0, double k, uint64_t n,
                                    const unsigned *lambda, size_t n_lambda)
{
    tamis_plan_flex v = {0, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    double left = (double)n, items = (double)n0, full = 0, bits = 0, factor = 1;
    if (!(m0 > 0 && k > 0) || n0 == 0 || (n_lambda > 0 && lambda == NULL))
        return v;
    for (size_t i = 0; i < n_lambda; i++) {
        unsigned step = lambda[i] < 1 ? 1 : lambda[i] > LAMBDA_TOP ? LAMBDA_TOP : lambda[i];
        factor = ldexp(1, (int)step - 1);
        if (left <= factor * items)
            break;
        left -= factor * items;
        bits += factor * m0;
        full++;
    }
    if (left > factor * items) { /* the sequence is exhausted: its last step repeats */
        double more = ceil(left / (factor * items)) - 1;
        left -= more * factor * items;
        bits += more * factor * m0;
        full += more;
    }
    v.last_bits = factor * m0;
    v.last_load = left;
    v.bits = bits + v.last_bits;
    v.vectors = full < 9e18 ? (size_t)full + 1 : SIZE_MAX;
    double f0 = tamis_plan_rate_exp(m0, k, items);
    double last = tamis_plan_rate_exp(v.last_bits, k, left);
    v.rate = -expm1((full > 0 ? full * log1p(-f0) : 0) + log1p(-last));
    if (n > 0) {
        v.load = v.bits / (double)n;
        v.load_min = m0 / items;
        v.load_max = m0 / items + v.last_bits / left;
        v.load_tight = m0 / items + v.last_bits / (double)n;
    }
    return v;
}

/* ---- Holt ---- */

#define HOLT_LEVEL 0.5 /* weight of the newest rate: there are few vectors, and each tells much */
#define HOLT_TREND 0.3
#define HOLT_STEEP 2.8 /* at most x16 from one vector to the next */
#define HOLT_LOG   690.0

static double within(double x, double limit)
{
    return x > limit ? limit : x < -limit ? -limit : x;
}

/* Works on logarithms, since lambda only needs the power of two: a constant growth factor is a
   linear trend and is forecast exactly. */
void plan_holt_add(struct plan_holt *h, double rate)
{
    if (h == NULL || !(rate > 0) || isinf(rate))
        return;
    double x = within(log(rate), HOLT_LOG);
    if (h->n == 0) {
        h->level = x;
        h->trend = 0;
    } else if (h->n == 1) {
        h->trend = within(x - h->level, HOLT_STEEP);
        h->level = x;
    } else {
        double old = h->level;
        h->level = HOLT_LEVEL * x + (1 - HOLT_LEVEL) * (old + h->trend);
        h->trend = within(HOLT_TREND * (h->level - old) + (1 - HOLT_TREND) * h->trend, HOLT_STEEP);
    }
    if (h->n < UINT32_MAX)
        h->n++;
}

double plan_holt_next(const struct plan_holt *h)
{
    return h == NULL || h->n == 0 ? NAN : exp(within(h->level + h->trend, HOLT_LOG));
}
