/*
 * Replicas, the updating protocol: figure 6. Two servers, each with a copy of the other's filter; 5
 * objects come and 2 go a time unit; six hashes, eight bits an element at the start. When to publish:
 *
 *   as published     the estimate (13), f+ + f-, passes 10 %; the filter keeps its m bits
 *   resized          the same, and an update also gives the filter eight bits an element again
 *   dirty bits       a tenth of the bits differ (Summary Cache)
 *   members          the estimated share of members that the copy denies passes 10 %
 */
#include "common_replica.h"
#include "tamis/plan.h"

#define K     6
#define UNITS 120

enum policy { PUBLISHED, RESIZED, DIRTY, MEMBERS, POLICIES };
static const char *const names[POLICIES] = {"as published", "resized", "dirty bits", "members"};

struct run {
    struct mean updates, bytes, worst_missed, mean_missed, mean_wrong, gap;
};

static bool due(enum policy policy, const tamis_plan_replica *v, double delta1, double delta0)
{
    return policy == DIRTY     ? delta1 + delta0 > 0.1
           : policy == MEMBERS ? v->member_miss > 0.1
                               : v->overall > 0.1;
}

/* A unit of time; returns the bytes sent. */
static uint64_t unit(struct host *h, enum policy policy, double *estimate)
{
    double delta1, delta0;
    host_add(h, 5);
    host_delete(h, 2);
    host_changed(h, &delta1, &delta0);
    tamis_plan_replica v =
        tamis_plan_replica_of((double)h->m, K, (double)h->n, delta1, delta0, 2, 1, 1);
    *estimate = v.overall;
    if (!due(policy, &v, delta1, delta0))
        return 0;
    uint64_t bytes = policy == PUBLISHED ? host_publish(h) : host_resize(h, 8 * h->n);
    host_changed(h, &delta1, &delta0);
    *estimate =
        tamis_plan_replica_of((double)h->m, K, (double)h->n, delta1, delta0, 2, 1, 1).overall;
    return bytes;
}

static void one_run(struct run *r, enum policy policy, size_t start, uint64_t round, bool print)
{
    struct host h;
    char figure[24], name[48];
    uint64_t asked = 4096, updates = 0, bytes = 0;
    struct mean missed = {0}, wrong = {0}, gap = {0};
    double worst = 0;
    snprintf(figure, sizeof figure, "f6 n=%zu", start);
    host_new(&h, 8 * start, K, start, round * 7 + 40000);
    for (unsigned t = 1; t <= UNITS; t++) {
        double estimate;
        uint64_t sent = unit(&h, policy, &estimate);
        struct met met = host_ask(&h, round * UNITS + t, asked);
        double denied = host_missed(&h), measured = met.positive + met.disagree;
        updates += sent > 0;
        bytes += sent;
        mean_add(&missed, denied);
        mean_add(&wrong, measured);
        mean_add(&gap, measured - estimate);
        worst = denied > worst ? denied : worst;
        if (!print)
            continue;
        lab_exact(figure, names[policy], t, measured);
        snprintf(name, sizeof name, "%s estimated", names[policy]);
        lab_formula(figure, name, t, estimate);
        snprintf(name, sizeof name, "%s missed", names[policy]);
        lab_exact(figure, name, t, denied);
    }
    mean_add(&r->updates, (double)updates);
    mean_add(&r->bytes, (double)bytes);
    mean_add(&r->worst_missed, worst);
    mean_add(&r->mean_missed, mean_of(&missed));
    mean_add(&r->mean_wrong, mean_of(&wrong));
    mean_add(&r->gap, mean_of(&gap));
    host_free(&h);
}

/* With m fixed the filter's own rate passes a tenth however often it is sent: after how many units. */
static void filter_alone(size_t start)
{
    char figure[24];
    unsigned t = 0;
    double n = (double)start;
    while (tamis_plan_rate_exp(8 * (double)start, K, n + 3 * t) <= 0.1)
        t++;
    snprintf(figure, sizeof figure, "f6 n=%zu", start);
    lab_formula(figure, "filter alone passes", 10, t);
}

static void compare(size_t start)
{
    char figure[32];
    filter_alone(start);
    snprintf(figure, sizeof figure, "policies n=%zu", start);
    for (enum policy policy = 0; policy < POLICIES; policy++) {
        struct run r = {0};
        for (uint64_t i = 0; i < lab_size(8, 20, 100); i++)
            one_run(&r, policy, start, i, i == 0);
        double x = policy + 1;
        lab_measured(figure, "updates", x, &r.updates);
        lab_measured(figure, "bytes", x, &r.bytes);
        lab_measured(figure, "wrong", x, &r.mean_wrong);
        lab_measured(figure, "members denied", x, &r.mean_missed);
        lab_measured(figure, "most denied", x, &r.worst_missed);
        lab_measured(figure, "measured less estimated", x, &r.gap);
    }
}

int main(void)
{
    lab_head();
    compare(25);
    compare(150);
    return 0;
}
