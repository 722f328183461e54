/*
 * Replicas as the library has them: an origin that watches a growing, deletable filter and a follower
 * that takes its messages, under five targets. Five keys come and two go, over and over, as in figure
 * 6; the origin is asked whether an update is due after every hundred changes. Measured is the share
 * of the members that the follower denies, beside what the origin says it is, and the bytes sent.
 */
#include "common.h"
#include "tamis/replica.h"

struct target {
    const char *name;
    tamis_targets targets;
};

static const struct target targets[] = {
    {"members 0.1 %", {.member_miss = 0.001}},
    {"members 1 %", {.member_miss = 0.01}},
    {"members 10 %", {.member_miss = 0.1}},
    {"dirty bits 10 %", {.member_miss = -1, .dirty = 0.1}},
    {"false rate 2 %", {.member_miss = -1, .false_rate = 0.02}},
};

struct world {
    tamis_filter *filter;
    tamis_origin *origin;
    tamis_follower *follower;
    uint64_t *keys;
    size_t n;
    uint64_t next, state;
};

static int carry(void *context, const void *data, size_t len)
{
    tamis_taken taken;
    return tamis_follower_take(context, data, len, 0, &taken, NULL) != TAMIS_OK;
}

static void change(struct world *w, uint64_t rounds)
{
    for (uint64_t i = 0; i < rounds; i++) {
        for (unsigned j = 0; j < 5; j++) {
            w->keys[w->n] = rng_next(&w->next);
            MUST(tamis_filter_add(w->filter, &w->keys[w->n++], 8, NULL));
        }
        for (unsigned j = 0; j < 2; j++) {
            size_t at = (size_t)rng_below(&w->state, w->n);
            tamis_removed outcome;
            MUST(tamis_filter_remove(w->filter, &w->keys[at], 8, &outcome));
            w->keys[at] = w->keys[--w->n];
        }
    }
}

static double denied(const struct world *w)
{
    size_t missed = 0;
    for (size_t i = 0; i < w->n; i++)
        missed += !tamis_follower_has(w->follower, &w->keys[i], 8);
    return (double)missed / (double)w->n;
}

static void world_new(struct world *w, const struct target *t, size_t start, size_t room)
{
    uint8_t family[TAMIS_KEY_LEN];
    lab_family(7000, family);
    tamis_options o = {.growth = TAMIS_SCALABLE, .fpp = 0.01, .key = family, .deletable = true};
    tamis_origin_options origin = {.owner = "lab", .targets = t->targets, .epoch = 1};
    *w = (struct world){.filter = lab_filter(&o),
                        .keys = lab_alloc(room, sizeof *w->keys),
                        .n = start,
                        .next = lab_seed() * 31 + 7000,
                        .state = lab_seed()};
    for (size_t i = 0; i < start; i++)
        w->keys[i] = rng_next(&w->next);
    lab_add(w->filter, w->keys, start);
    MUST(tamis_origin_new(&w->origin, w->filter, &origin, NULL));
    MUST(tamis_follower_new(&w->follower, NULL, NULL));
    MUST(tamis_origin_publish(w->origin, carry, w->follower, NULL));
}

static void one_target(unsigned number, const struct target *t)
{
    size_t start = lab_size(2000, 20000, 100000), rounds = start / 5 * 4, steps = rounds / 15;
    struct world w;
    struct mean missed = {0}, gap = {0};
    tamis_origin_facts before, after;
    double worst = 0;
    world_new(&w, t, start, start + 5 * rounds + 5);
    tamis_origin_info(w.origin, &before);
    for (size_t i = 1; i <= steps; i++) {
        tamis_estimate e;
        change(&w, 15); /* 105 changes */
        if (tamis_origin_due(w.origin) != TAMIS_DUE_NOT)
            MUST(tamis_origin_publish(w.origin, carry, w.follower, NULL));
        tamis_origin_estimate(w.origin, &e);
        if (i % (steps / 50 + 1) != 0 && i != steps)
            continue;
        double share = denied(&w);
        mean_add(&missed, share);
        mean_add(&gap, share - e.member_miss);
        worst = share > worst ? share : worst;
        lab_exact("origin", t->name, (double)(i * 105), share);
        char name[48];
        snprintf(name, sizeof name, "%s estimated", t->name);
        lab_formula("origin", name, (double)(i * 105), e.member_miss);
    }
    tamis_origin_info(w.origin, &after);
    double x = number, changes = (double)(steps * 105);
    lab_exact("targets", "versions", x, (double)(after.version - before.version));
    lab_exact("targets", "bytes", x, (double)(after.bytes - before.bytes) / changes);
    lab_exact("targets", "mean denied", x, mean_of(&missed));
    lab_exact("targets", "most denied", x, worst);
    lab_measured("targets", "measured less estimated", x, &gap);
    tamis_follower_free(w.follower);
    tamis_origin_free(w.origin);
    tamis_filter_free(w.filter);
    free(w.keys);
}

int main(void)
{
    lab_head();
    for (unsigned i = 0; i < sizeof targets / sizeof *targets; i++)
        one_target(i + 1, &targets[i]);
    return 0;
}
