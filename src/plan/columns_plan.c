/* How many columns of which size an owner or a segment gets. Sizes are rounded to steps, so that
   a few shapes fit all. */
#include "plan.h"

#include <stdlib.h>

#define STEPS    64       /* sizes distinguished within one shape */
#define ROUNDING 1.000001 /* allowance for a rate that was split and recombined */
#define SHARES   20       /* parts of all keys that are distinguished */
#define PADDING  4        /* padding columns of a matrix, on average */

uint32_t column_plan_columns(const struct column_plan *plan, uint64_t n)
{
    uint64_t columns = (n + plan->capacity - 1) / plan->capacity;
    return columns <= plan->most ? (uint32_t)columns : 0;
}

static bool plan_settle(struct column_plan *plan)
{
    tamis_plan_size size = tamis_plan_vector(TAMIS_SPREAD, plan->capacity, plan->rate);
    plan->units = size.units;
    plan->k = size.k;
    return size.bits != 0;
}

/* Rounds n up to its leading `bits` + 1 bits. */
static uint64_t ladder(uint64_t n, int bits)
{
    int shift = 63 - __builtin_clzll(n | 1) - bits;
    return shift > 0 ? round_up(n, UINT64_C(1) << shift) : n;
}

bool column_plan_one(struct column_plan *out, uint64_t n, double rate)
{
    if (n > BITS_MAX)
        return false;
    *out = (struct column_plan){.most = 1, .capacity = ladder(n ? n : 1, 4), .rate = rate};
    return plan_settle(out);
}

double column_plan_rate(const struct column_plan *plan, uint64_t n)
{
    uint32_t columns = n ? column_plan_columns(plan, n) : 0;
    if (columns == 0)
        return 0;
    double each = (double)((n + columns - 1) / columns);
    double rate = columns * tamis_plan_rate(TAMIS_SPREAD, plan->units, plan->k, each);
    return rate < 1 ? rate : 1;
}

void column_choice_offer(struct column_choice *c, const struct column_plan *plan, size_t number)
{
    uint32_t columns = column_plan_columns(plan, c->n);
    double least = tamis_plan_bits_best((double)c->n, c->rate), any = 0;
    uint64_t bits = columns * plan->units;
    for (uint32_t i = 0; i < columns; i++)
        any += plan->rate * (1 - any);
    if (columns == 0 || any > c->rate * ROUNDING || (double)bits > c->waste * least + 64 ||
        (c->bits && bits >= c->bits))
        return;
    c->bits = bits;
    c->best = number;
}

/* ---- several shapes -------------------------------------------------------------------------- */

/* Sets of nearly equal size. */
struct size_group {
    uint64_t size, count; /* largest size; number of sets */
};

static int compare_sizes(const void *x, const void *y)
{
    uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return ORDER(a, b, 0);
}

/* Groups sizes within an octave that hold only a small part of all keys: sizes that take most of
   the bits are distinguished most finely. At most PLANS_MAX groups, since no size exceeds
   BITS_MAX. */
static size_t group_sizes(struct size_group *groups, const uint64_t *sizes, size_t n)
{
    double all = 0, so_far = 0;
    size_t found = 0, number = 0;
    uint64_t first = 0;
    for (size_t i = 0; i < n; i++)
        all += (double)sizes[i];
    for (size_t i = 0; i < n; i++) {
        size_t here = (size_t)(so_far / all * SHARES);
        so_far += (double)sizes[i];
        bool same = found && sizes[i] == groups[found - 1].size;
        if (!same && (found == 0 || here != number || sizes[i] >= 2 * first)) {
            groups[found++] = (struct size_group){0};
            first = sizes[i];
        }
        number = here;
        groups[found - 1].size = sizes[i];
        groups[found - 1].count++;
    }
    return found;
}

/* The plan for groups first .. last together; returns the bits of all their columns by the
   formula. */
static double cluster(const struct size_group *groups, size_t first, size_t last, double rate,
                      struct column_plan *plan)
{
    double cum[STEPS] = {0}, n = 0;
    uint64_t largest = groups[last].size, step = (largest + STEPS - 1) / STEPS;
    size_t steps = (size_t)((largest + step - 1) / step);
    for (size_t i = first; i <= last; i++) {
        cum[(groups[i].size - 1) / step] += (double)groups[i].count;
        n += (double)groups[i].count;
    }
    if (!tamis_plan_sizes_cumulate(cum, steps))
        return 0;
    tamis_plan_rows rows = tamis_plan_dynamic_best(cum, steps, rate);
    *plan = (struct column_plan){
        .most = (uint32_t)rows.s, .capacity = min_u64(largest, rows.c * step), .rate = rows.delta};
    double column = tamis_plan_bits_best((double)plan->capacity, rows.delta);
    return column * (n * rows.used + (n > PADDING ? PADDING : 0));
}

size_t column_plans(struct column_plan *out, uint64_t *sizes, size_t n, double rate, bool spare)
{
    struct size_group groups[PLANS_MAX];
    double best[PLANS_MAX + 1] = {0};
    size_t from[PLANS_MAX + 1] = {0}, found = 0;
    struct column_plan plans[PLANS_MAX + 1], plan;
    qsort(sizes, n, sizeof *sizes, compare_sizes);
    if (n == 0 || sizes[0] == 0 || sizes[n - 1] > BITS_MAX)
        return 0;
    size_t n_groups = group_sizes(groups, sizes, n);
    /* one more matrix means k more rows to read, so it must save some space */
    double worth = 0.005 * cluster(groups, 0, n_groups - 1, rate, &plan);
    for (size_t end = 1; end <= n_groups; end++)
        for (size_t start = end; start-- > 0;) {
            double bits = best[start] + worth + cluster(groups, start, end - 1, rate, &plan);
            if (start + 1 == end || bits < best[end]) {
                best[end] = bits;
                from[end] = start;
                plans[end] = plan;
            }
        }
    for (size_t end = n_groups; end > 0; end = from[end]) {
        out[found] = plans[end];
        if (spare)
            out[found].capacity += out[found].capacity / 64;
        if (!plan_settle(&out[found++]))
            return 0;
    }
    return found;
}
