/*
 * Pending removals over a long random life: keys come and go in a deletable filter of several
 * vectors, hundreds of times its size in all. Removals that several vectors could account for are
 * remembered until they are certain. Looked at: how many wait, whether a member is ever denied,
 * whether the rate holds, and what is left when all keys are gone.
 */
#include "common.h"

struct life {
    tamis_filter *filter;
    uint64_t *keys; /* members */
    size_t n, most;
    uint64_t next, state, operations;
};

static void come(struct life *l)
{
    lab_keys(UINT64_C(4000) << 8 | (l->next >> 20), &l->keys[l->n], 1);
    l->keys[l->n] ^= l->next++ * UINT64_C(0x9E3779B97F4A7C15);
    MUST(tamis_filter_add(l->filter, &l->keys[l->n], 8, NULL));
    l->n++;
}

static void go(struct life *l)
{
    size_t i = (size_t)rng_below(&l->state, l->n);
    tamis_removed outcome;
    MUST(tamis_filter_remove(l->filter, &l->keys[i], 8, &outcome));
    if (outcome == TAMIS_ABSENT) /* a member was taken for a non-member */
        MUST(TAMIS_EBASE);
    l->keys[i] = l->keys[--l->n];
}

/* The set drifts between half of the most and all of it. */
static void live(struct life *l, uint64_t operations)
{
    for (uint64_t i = 0; i < operations; i++, l->operations++) {
        bool grow = (l->operations / l->most) % 2 == 0;
        bool add = rng_below(&l->state, 100) < (grow ? 60u : 40u);
        if (l->n < l->most / 2 || (add && l->n < l->most))
            come(l);
        else
            go(l);
    }
}

static void report(const char *figure, const struct life *l, uint64_t asked)
{
    tamis_filter_facts info;
    struct mean rate = {0};
    double x = (double)l->operations;
    tamis_filter_info(l->filter, &info);
    mean_add(&rate, lab_false_rate(l->filter, l->operations % 1000003, asked));
    lab_exact(figure, "pending", x, (double)info.pending);
    lab_exact(figure, "pending share", x, (double)info.pending / (double)l->n);
    lab_exact(figure, "items", x, (double)l->n);
    lab_rate(figure, "rate", x, &rate, asked);
    lab_exact(figure, "members denied", x, (double)(l->n - lab_count(l->filter, l->keys, l->n)));
}

static void one_life(const char *figure, tamis_growth growth)
{
    uint64_t most = lab_size(2000, 20000, 100000), asked = lab_size(5000, 20000, 100000);
    uint8_t family[TAMIS_KEY_LEN];
    lab_family(4000, family);
    tamis_options o = {.growth = growth,
                       .fpp = 0.01,
                       .capacity = growth == TAMIS_DYNAMIC ? most : most / 16,
                       .key = family,
                       .deletable = true};
    struct life l = {.filter = lab_filter(&o), .most = most, .state = 5};
    tamis_filter_facts info;
    tamis_vector_facts v;
    uint64_t ones = 0;
    l.keys = lab_alloc(most, sizeof *l.keys);
    for (unsigned i = 0; i < 20; i++) {
        live(&l, most * lab_size(5, 10, 10));
        report(figure, &l, asked);
    }
    while (l.n)
        go(&l);
    tamis_filter_info(l.filter, &info);
    for (uint32_t i = 0; tamis_filter_vector(l.filter, i, &v); i++)
        ones += v.ones;
    lab_exact(figure, "left at the end", (double)l.operations,
              (double)(info.items + info.pending + ones));
    tamis_filter_free(l.filter);
    free(l.keys);
}

int main(void)
{
    lab_head();
    one_life("life dynamic", TAMIS_DYNAMIC);
    one_life("life scalable", TAMIS_SCALABLE);
    return 0;
}
