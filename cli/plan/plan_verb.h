/* tamis plan: its options, its forms and what they share. */
#ifndef TAMIS_CLI_PLAN_H
#define TAMIS_CLI_PLAN_H

#include "ui/cli.h"

/* Every option of every form; names have dashes for underscores. */
#define PLAN_OPTIONS(X)       \
    X(items, ARG_COUNT)       \
    X(fpp, ARG_RATE)          \
    X(bits, ARG_COUNT)        \
    X(hashes, ARG_COUNT)      \
    X(capacity, ARG_COUNT)    \
    X(union_items, ARG_COUNT) \
    X(max_items, ARG_COUNT)   \
    X(sizes, ARG_TEXT)        \
    X(tolerate, ARG_RATE)     \
    X(lambda, ARG_TEXT)       \
    X(rate, ARG_REAL)         \
    X(base_rate, ARG_REAL)    \
    X(attributes, ARG_COUNT)  \
    X(cells, ARG_COUNT)       \
    X(range, ARG_COUNT)       \
    X(delta1, ARG_REAL)       \
    X(delta0, ARG_REAL)       \
    X(hosts, ARG_COUNT)       \
    X(weights, ARG_TEXT)

enum plan_option {
#define X(name, kind) PLAN_##name,
    PLAN_OPTIONS(X)
#undef X
        PLAN_OPTION_COUNT
};

struct plan {
    uint64_t items, bits, hashes, capacity, union_items, max_items;
    uint64_t attributes, cells, range, hosts;
    double fpp, tolerate, rate, base_rate, delta1, delta0;
    const char *sizes, *lambda, *weights;
    bool given[PLAN_OPTION_COUNT];
    bool json;
    const char *form, *plot;
};

/* The forms; --hashes, if it applies, is from 1 to 64. Each returns the exit status. */
typedef int plan_form(const struct plan *plan);
extern plan_form plan_fixed_size, plan_fixed_rate, plan_fixed_capacity, plan_dynamic_rates,
    plan_dynamic_sizes, plan_dynamic_thresholds, plan_scalable, plan_smooth, plan_flexible_lambda,
    plan_flexible_rate, plan_records, plan_replica;

/* Opens the report of a form. */
void plan_begin(const struct plan *plan);

#endif
