/*
 * Parallel filters, rates: figures 16 and 17. Asked are three classes of records that were never
 * stored: fresh (no value of theirs is), in range (values drawn from the same range as the stored
 * ones), recombined (every value is stored, but in different records). The published rates are those
 * of fresh questions.
 */
#include "common_records.h"
#include "tamis/records.h"
#include "plan/plan.h"

/* ---- figure 16: verification values, p = 4, q = 6 -------------------------------------------- */

/* Recombined questions pass the attributes, so only the values in the table decide. */
static double value_collisions(tamis_verify value, uint64_t m, uint64_t n, uint64_t asked,
                               uint64_t stream)
{
    struct records r;
    uint64_t *stored = lab_alloc(n * 4, sizeof *stored), *values = lab_alloc(asked * 4, 8);
    uint64_t state = stream + 17;
    records_new(&r, 4, 6, m, TAMIS_VERIFIER_TABLE, value, stream);
    values_distinct(stream, 4, stored, n);
    records_add(&r, stored, n);
    values_recombined(&state, 4, stored, n, values, asked);
    double share = records_share(&r, values, asked);
    records_free(&r);
    free(stored);
    free(values);
    return share;
}

static void figure_16(uint64_t m)
{
    char name[16];
    uint64_t asked = lab_size(4000, 20000, 100000), rounds = lab_size(6, 10, 50);
    struct mean average = {0};
    double total[64] = {0}, expected = 0, places = 0;
    snprintf(name, sizeof name, "f16 m=%" PRIu64, m);
    for (uint64_t n = 50; n <= 500; n += lab_size(150, 50, 50), places++) {
        struct mean basic = {0}, attenuated = {0}, mixed = {0};
        for (uint64_t i = 0; i < rounds; i++) {
            uint64_t stream = 600 + i;
            mean_add(&basic, value_collisions(TAMIS_VERIFY_BASIC, m, n, asked, stream));
            double share = value_collisions(TAMIS_VERIFY_ATTENUATED, m, n, asked, stream);
            mean_add(&attenuated, share);
            total[i] += share;
            mean_add(&mixed, value_collisions(TAMIS_VERIFY_MIXED, m, n, asked, stream));
        }
        tamis_plan_verify v = plan_verify_rates(4, 6, (double)m, (double)n);
        double x = (double)n;
        lab_rate(name, "basic", x, &basic, asked);
        lab_rate(name, "attenuated", x, &attenuated, asked);
        lab_rate(name, "mixed", x, &mixed, asked);
        lab_formula(name, "basic bound", x, v.basic);
        lab_formula(name, "basic mean", x, v.basic_mean);
        lab_formula(name, "attenuated bound", x, v.attenuated);
        lab_formula(name, "attenuated mean", x, v.attenuated_mean);
        expected += v.attenuated_mean;
    }
    for (uint64_t i = 0; i < rounds; i++) /* "the average ... can be bounded by 0.002" */
        mean_add(&average, total[i] / places);
    lab_measured(name, "attenuated average", 500, &average);
    lab_formula(name, "attenuated mean average", 500, expected / places);
}

/* ---- figure 17: p = 3, q = 7 ----------------------------------------------------------------- */

#define P 3
#define Q 7

enum structure { SBF, PBF, HT, BF, HT_MIXED, BF_MIXED, STRUCTURES };
static const char *const names[STRUCTURES] = {"SBF",    "PBF",          "PBF-HT",
                                              "PBF-BF", "PBF-HT mixed", "PBF-BF mixed"};

struct built {
    tamis_filter *sbf;
    struct records r[STRUCTURES];
};

static void build(struct built *b, uint64_t m, const uint64_t *stored, size_t n, uint64_t stream)
{
    static const tamis_verifier verifiers[STRUCTURES] = {[PBF] = TAMIS_VERIFIER_NONE,
                                                         [HT] = TAMIS_VERIFIER_TABLE,
                                                         [BF] = TAMIS_VERIFIER_FILTER,
                                                         [HT_MIXED] = TAMIS_VERIFIER_TABLE,
                                                         [BF_MIXED] = TAMIS_VERIFIER_FILTER};
    b->sbf = concatenated_new(P, Q, m, stream);
    concatenated_add(b->sbf, P, stored, n);
    for (enum structure s = PBF; s < STRUCTURES; s++) {
        records_new(&b->r[s], P, Q, m, verifiers[s],
                    s < HT_MIXED ? TAMIS_VERIFY_ATTENUATED : TAMIS_VERIFY_MIXED, stream);
        records_add(&b->r[s], stored, n);
    }
}

static void built_free(struct built *b)
{
    tamis_filter_free(b->sbf);
    for (enum structure s = PBF; s < STRUCTURES; s++)
        records_free(&b->r[s]);
}

static void ask(const struct built *b, const uint64_t *values, size_t asked, struct mean *rates)
{
    mean_add(&rates[SBF], concatenated_share(b->sbf, P, values, asked));
    for (enum structure s = PBF; s < STRUCTURES; s++)
        mean_add(&rates[s], records_share(&b->r[s], values, asked));
}

static double formula_of(const tamis_plan_records_rates *c, enum structure s)
{
    return s == PBF        ? c->pbf
           : s == HT       ? c->ht_attenuated_mean
           : s == BF       ? c->bf_mean
           : s == HT_MIXED ? c->ht_mixed
                           : c->bf_mixed;
}

static void print(const char *figure, double n, const struct mean *rates, uint64_t asked,
                  const tamis_plan_records_rates *c, double sbf)
{
    char name[48];
    for (enum structure s = SBF; s < STRUCTURES; s++) {
        lab_rate(figure, names[s], n, &rates[s], asked);
        snprintf(name, sizeof name, "%s formula", names[s]);
        lab_formula(figure, name, n, s == SBF ? sbf : formula_of(c, s));
    }
}

/* In-range questions hit a stored record by chance only once in range^3 / n. */
#define RANGE 4000

static void figure_17(uint64_t m)
{
    char fresh[24], range[32], recombined[32];
    uint64_t asked = lab_size(2000, 30000, 50000), rounds = lab_size(6, 8, 10);
    uint64_t *values = lab_alloc(asked * P, 8);
    snprintf(fresh, sizeof fresh, "f17 m=%" PRIu64, m);
    snprintf(range, sizeof range, "in range m=%" PRIu64, m);
    snprintf(recombined, sizeof recombined, "recombined m=%" PRIu64, m);
    for (uint64_t n = m / 2; n <= 3 * m; n += lab_is("small") ? m * 5 / 4 : m / 4) {
        struct mean rates[3][STRUCTURES] = {0}, gap = {0};
        uint64_t *stored = lab_alloc(n * P, 8);
        for (uint64_t i = 0; i < rounds; i++) {
            struct built b;
            uint64_t state = 31 * i + n;
            values_distinct(700 + i, P, stored, n);
            build(&b, m, stored, n, 700 + i);
            values_distinct(900 + i, P, values, asked);
            double before = rates[0][BF].sum - rates[0][HT].sum;
            ask(&b, values, asked, rates[0]);
            mean_add(&gap, rates[0][BF].sum - rates[0][HT].sum - before);
            values_recombined(&state, P, stored, n, values, asked);
            ask(&b, values, asked, rates[2]);
            built_free(&b);
            values_in_range(&state, RANGE, P, stored, n);
            build(&b, m, stored, n, 700 + i);
            values_in_range(&state, RANGE, P, values, asked);
            ask(&b, values, asked, rates[1]);
            built_free(&b);
        }
        tamis_plan_records all = tamis_plan_records_of(P, Q, (double)m, (double)n, 0),
                           some = tamis_plan_records_of(P, Q, (double)m, (double)n, RANGE);
        double sbf = tamis_plan_rate_exp((double)(P * Q * m), P * Q, (double)n);
        print(fresh, (double)n, rates[0], asked, &all.fresh, sbf);
        lab_measured(fresh, "PBF-BF less PBF-HT", (double)n, &gap);
        print(range, (double)n, rates[1], asked, &some.in_range, sbf);
        print(recombined, (double)n, rates[2], asked, &all.recombined, sbf);
        free(stored);
    }
    free(values);
}

int main(void)
{
    lab_head();
    figure_16(320);
    figure_16(640);
    for (uint64_t m = 320; m <= 2560; m *= 2)
        figure_17(m);
    return 0;
}
