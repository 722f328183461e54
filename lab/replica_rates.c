/*
 * Replicas, rates: figure 4, table 1, table 2 and figure 5. Filters have m = 1200 bits and k = 6 or 8
 * hashes. The printed shares of changed bits tell what was done: table 1 deletes 25 objects and adds
 * 50, 100 and 150; table 2 adds 100 and deletes 10 to 100 of all. The printed values are single runs,
 * so they are held against the spread of one run here, not against the error of the mean.
 */
#include <math.h>

#include "common_replica.h"
#include "plan/plan.h"

#define M 1200

static const unsigned hashes[] = {6, 8};
static const size_t starts[] = {25, 75, 150, 300};

/* ---- figure 4: only additions ---------------------------------------------------------------- */

struct point {
    struct mean delta1, estimated, measured, missed, miss_estimated;
};

static void add_step(struct point *p, struct host *h, uint64_t stream, uint64_t asked)
{
    double delta1, delta0;
    host_changed(h, &delta1, &delta0);
    tamis_plan_replica v = tamis_plan_replica_of(M, h->k, (double)h->n, delta1, delta0, 2, 1, 1);
    mean_add(&p->delta1, delta1);
    mean_add(&p->estimated, v.disagree);
    mean_add(&p->measured, host_ask(h, stream, asked).disagree);
    mean_add(&p->missed, host_missed(h));
    mean_add(&p->miss_estimated, v.member_miss);
}

static void figure_4(unsigned k, size_t start)
{
    enum { STEPS = 8 };
    struct point points[STEPS] = {0};
    uint64_t asked = lab_size(10000, 50000, 100000), rounds = lab_size(10, 30, 100);
    for (uint64_t i = 0; i < rounds; i++) {
        struct host h;
        host_new(&h, M, k, start, i * 16 + k);
        for (unsigned s = 0; s < STEPS; s++) {
            host_add(&h, 20);
            add_step(&points[s], &h, i * STEPS + s, asked);
        }
        host_free(&h);
    }
    char figure[16], members[24], name[48];
    snprintf(figure, sizeof figure, "f4 k=%u", k);
    snprintf(members, sizeof members, "members k=%u", k);
    for (unsigned s = 0; s < STEPS; s++) {
        double x = mean_of(&points[s].delta1), added = 20.0 * (s + 1);
        snprintf(name, sizeof name, "n=%zu", start);
        lab_rate(figure, name, x, &points[s].measured, asked);
        snprintf(name, sizeof name, "n=%zu formula", start);
        lab_formula(figure, name, x, mean_of(&points[s].estimated));
        snprintf(name, sizeof name, "n=%zu", start);
        lab_measured(members, name, x, &points[s].missed);
        snprintf(name, sizeof name, "n=%zu formula", start);
        lab_formula(members, name, x,
                    plan_member_miss(added, added + (double)start,
                                     tamis_plan_rate_exp(M, k, (double)start)));
        snprintf(name, sizeof name, "n=%zu estimated", start);
        lab_measured(members, name, x, &points[s].miss_estimated);
    }
}

/* ---- lemma 1: the size of the copy from the bits that differ ---------------------------------- */

/* (6): n̂ = -(m/k) ln(e^{-kn/m} + δ1 - δ0), after 25 deletions and 50 additions; and f+ from it. */
static void lemma_1(unsigned k, size_t start)
{
    struct mean size = {0}, positive = {0};
    char name[48];
    double x = (double)start;
    for (uint64_t i = 0; i < lab_size(40, 200, 1000); i++) {
        struct host h;
        double d1, d0;
        host_new(&h, M, k, start, i * 64 + k + 7000);
        host_delete_old(&h, 25);
        host_add(&h, 50);
        host_changed(&h, &d1, &d0);
        mean_add(&size, -(double)M / k * log(exp(-(double)k * (double)h.n / M) + d1 - d0));
        mean_add(&positive, tamis_plan_replica_of(M, k, (double)h.n, d1, d0, 2, 1, 1).positive);
        host_free(&h);
    }
    double spread = sqrt((double)size.n), n = (double)size.n;
    snprintf(name, sizeof name, "size over n̂ k=%u", k);
    lab_value("lemma 1", name, x, mean_of(&size) / x, mean_error(&size) / x, size.n);
    snprintf(name, sizeof name, "deviation k=%u", k);
    lab_value("lemma 1", name, x, mean_error(&size) * spread / x,
              mean_error(&size) * spread / x / sqrt(2 * n), 0);
    snprintf(name, sizeof name, "estimate deviation k=%u", k);
    lab_value("lemma 1", name, x, mean_error(&positive) * spread / mean_of(&positive),
              mean_error(&positive) * spread / mean_of(&positive) / sqrt(2 * n), 0);
}

/* ---- (17): errors weighted -------------------------------------------------------------------- */

/* x is the weight of a false negative, that of a false positive being 1; 150 objects, 25 deleted and
   50 added. */
static void weighted(void)
{
    enum { WEIGHTS = 6 }; /* 1/2, 1, 2 ... 16 */
    struct mean measured[WEIGHTS] = {0}, estimated[WEIGHTS] = {0};
    uint64_t asked = lab_size(10000, 50000, 100000);
    for (uint64_t i = 0; i < lab_size(10, 40, 200); i++) {
        struct host h;
        double d1, d0;
        host_new(&h, M, 6, 150, i * 64 + 8000);
        host_delete_old(&h, 25);
        host_add(&h, 50);
        host_changed(&h, &d1, &d0);
        struct met met = host_ask(&h, i, asked);
        for (unsigned j = 0; j < WEIGHTS; j++) {
            double weight = ldexp(0.5, (int)j);
            mean_add(&measured[j], met.positive + weight * met.disagree);
            mean_add(&estimated[j],
                     tamis_plan_replica_of(M, 6, (double)h.n, d1, d0, 2, 1, weight).weighted);
        }
        host_free(&h);
    }
    for (unsigned j = 0; j < WEIGHTS; j++) {
        lab_measured("weighted", "measured", ldexp(0.5, (int)j), &measured[j]);
        lab_formula("weighted", "formula", ldexp(0.5, (int)j), mean_of(&estimated[j]));
    }
}

/* ---- table 1 --------------------------------------------------------------------------------- */

static void table_1(unsigned k, size_t start, unsigned added, double row)
{
    struct mean delta0 = {0}, delta1 = {0}, estimated = {0}, measured = {0};
    uint64_t asked = lab_size(10000, 100000, 100000), rounds = lab_size(20, 40, 200);
    for (uint64_t i = 0; i < rounds; i++) {
        struct host h;
        double d1, d0;
        host_new(&h, M, k, start, i * 64 + k + 5000);
        host_delete_old(&h, 25);
        host_add(&h, added);
        host_changed(&h, &d1, &d0);
        tamis_plan_replica v = tamis_plan_replica_of(M, k, (double)h.n, d1, d0, 2, 1, 1);
        mean_add(&delta0, d0);
        mean_add(&delta1, d1);
        mean_add(&estimated, 100 * v.positive);
        mean_add(&measured, 100 * host_ask(&h, i, asked).positive);
        host_free(&h);
    }
    lab_measured("t1", "δ0", row, &delta0);
    lab_measured("t1", "δ1", row, &delta1);
    lab_measured("t1", "estimated", row, &estimated);
    lab_measured("t1", "measured", row, &measured);
    lab_formula("t1", "P1(n̂)^k", row, 100 * tamis_plan_rate_exp(M, k, (double)start));
}

/* ---- table 2 and figure 5: five hosts -------------------------------------------------------- */

#define HOSTS 5

struct system {
    struct mean delta0, delta1, estimated, exclusive, measured, apart;
};

/* (16) for each host with the δ of each copy, less (16) of the mean δ, in per cent: the mean of five
   estimates is not the estimate of the means. */
static double estimates_apart(const tamis_plan_replica *each, const tamis_plan_replica *of_means,
                              double own)
{
    double sum = 0;
    for (unsigned i = 0; i < HOSTS; i++) {
        double clear = 1 - own;
        for (unsigned j = 0; j < HOSTS; j++)
            if (j != i)
                clear *= (1 - each[j].positive) * (1 - each[j].disagree);
        sum += 1 - clear;
    }
    return 100 * (sum / HOSTS - of_means->host);
}

/* A lookup on host 0 fails if its own filter is wrong, or a copy of another is, either way. */
static double lookups_fail(const struct host *h, uint64_t stream, uint64_t asked)
{
    uint64_t keys[512], failed = 0;
    for (uint64_t i = 0; i < asked; i += 512) {
        lab_keys((UINT64_C(1) << 28) + stream * 512 + i / 512, keys, 512);
        for (unsigned j = 0; j < 512; j++) {
            bool wrong = tamis_filter_has(h[0].filter, &keys[j], 8);
            for (unsigned other = 1; other < HOSTS && !wrong; other++)
                wrong = tamis_filter_has(h[other].copy, &keys[j], 8) ||
                        tamis_filter_has(h[other].filter, &keys[j], 8);
            failed += wrong;
        }
    }
    return (double)failed / (double)asked;
}

static void system_round(struct system *s, unsigned k, size_t start, size_t add, size_t drop,
                         uint64_t round, uint64_t asked)
{
    struct host h[HOSTS];
    tamis_plan_replica each[HOSTS];
    double d1 = 0, d0 = 0;
    for (unsigned i = 0; i < HOSTS; i++) {
        double one, zero;
        host_new(&h[i], M, k, start, round * HOSTS + i + 9000);
        host_add(&h[i], add);
        host_delete(&h[i], drop);
        host_changed(&h[i], &one, &zero);
        each[i] = tamis_plan_replica_of(M, k, (double)h[i].n, one, zero, HOSTS, 1, 1);
        d1 += one / HOSTS;
        d0 += zero / HOSTS;
    }
    tamis_plan_replica v = tamis_plan_replica_of(M, k, (double)h[0].n, d1, d0, HOSTS, 1, 1);
    mean_add(&s->delta1, d1);
    mean_add(&s->delta0, d0);
    mean_add(&s->estimated, 100 * v.host);
    mean_add(&s->apart, estimates_apart(each, &v, tamis_plan_rate_exp(M, k, (double)h[0].n)));
    mean_add(&s->exclusive, 100 * v.host_exclusive);
    mean_add(&s->measured, 100 * lookups_fail(h, round, asked));
    for (unsigned i = 0; i < HOSTS; i++)
        host_free(&h[i]);
}

static void table_2(unsigned k, size_t start, size_t drop, double row)
{
    struct system s = {0};
    uint64_t asked = 5120;
    for (uint64_t i = 0; i < lab_size(10, 40, 200); i++)
        system_round(&s, k, start, 100, drop, i, asked);
    lab_measured("t2", "δ0", row, &s.delta0);
    lab_measured("t2", "δ1", row, &s.delta1);
    lab_measured("t2", "estimated", row, &s.estimated);
    lab_measured("t2", "measured", row, &s.measured);
    lab_measured("t2", "host by host less of the means", row, &s.apart);
    lab_formula("t2", "of the means", row, mean_of(&s.estimated));
    lab_formula("t2", "exclusive", row, mean_of(&s.exclusive));
}

static void figure_5(unsigned k, size_t start)
{
    char figure[16], name[32];
    uint64_t asked = lab_size(2048, 10240, 51200);
    snprintf(figure, sizeof figure, "f5 k=%u", k);
    for (size_t add = 50; add <= 300; add += 50) {
        struct system s = {0};
        for (uint64_t i = 0; i < lab_size(8, 20, 100); i++)
            system_round(&s, k, start, add, 0, i, asked);
        snprintf(name, sizeof name, "n=%zu", start);
        lab_measured(figure, name, (double)add, &s.measured);
        snprintf(name, sizeof name, "n=%zu formula", start);
        lab_formula(figure, name, (double)add, mean_of(&s.estimated));
        snprintf(name, sizeof name, "n=%zu exclusive", start);
        lab_formula(figure, name, (double)add, mean_of(&s.exclusive));
    }
}

int main(void)
{
    double row = 1;
    lab_head();
    for (unsigned i = 0; i < 2; i++)
        for (unsigned j = 0; j < 4; j++) {
            figure_4(hashes[i], starts[j]);
            figure_5(hashes[i], starts[j]);
            lemma_1(hashes[i], starts[j]);
            for (unsigned added = 50; added <= 150; added += 50)
                table_1(hashes[i], starts[j], added, row++);
        }
    weighted();
    for (unsigned i = 0; i < 2; i++)
        for (size_t drop = 10; drop <= 100; drop += 10)
            table_2(hashes[i], i ? 100 : 150, drop, (double)(i * 10 + drop / 10));
    return 0;
}
