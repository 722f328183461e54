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
int plan_fixed_size(const struct plan *plan);
int plan_fixed_rate(const struct plan *plan);
int plan_fixed_capacity(const struct plan *plan);
int plan_dynamic_rates(const struct plan *plan);
int plan_dynamic_sizes(const struct plan *plan);
int plan_dynamic_thresholds(const struct plan *plan);
int plan_scalable(const struct plan *plan);
int plan_smooth(const struct plan *plan);
int plan_flexible_lambda(const struct plan *plan);
int plan_flexible_rate(const struct plan *plan);
int plan_records(const struct plan *plan);
int plan_replica(const struct plan *plan);

/* Opens the report of a form. */
void plan_begin(const struct plan *plan);

#endif
