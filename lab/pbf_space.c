/*
 * Parallel filters, space: figures 18 and 19 and table 1. For n records and a rate f of wrong answers
 * to fresh questions: one filter on the concatenated record (SBF), p attribute filters at f^(1/p)
 * (PBF), p + 1 at f^(1/(p+1)) (PBF-BF), and attributes with a table of values (PBF-HT, as the library
 * stores it). Each is built in its size and its rate measured. No structure can do with less than
 * log2(1/f) bits a record, 69 % of an SBF.
 */
#include <math.h>

#include "common_records.h"
#include "tamis/records.h"
#include "tamis/plan.h"

struct shape_of {
    unsigned q;
    uint64_t m; /* cells of an array, a multiple of 8 */
};

static struct shape_of shape_for(uint64_t n, double rate)
{
    tamis_plan_size size = tamis_plan_vector(TAMIS_SPREAD, n, rate);
    uint64_t m = (size.units + size.k - 1) / size.k;
    return (struct shape_of){size.k, (m + 7) / 8 * 8};
}

/* Bits of `vectors` filters at rate^(1/vectors) each. */
static double bits_of(unsigned vectors, uint64_t n, double rate)
{
    struct shape_of s = shape_for(n, pow(rate, 1.0 / vectors));
    return (double)(vectors * s.q * s.m);
}

enum structure { SBF, PBF, BF, STRUCTURES };
static const char *const names[STRUCTURES] = {"SBF", "PBF", "PBF-BF"};

static double measured_rate(enum structure structure, unsigned p, uint64_t n, double rate,
                            uint64_t asked, uint64_t stream)
{
    uint64_t *stored = lab_alloc(n * p, 8), *values = lab_alloc(asked * p, 8);
    double share;
    values_distinct(stream, p, stored, n);
    values_distinct(stream + 50, p, values, asked);
    if (structure == SBF) {
        struct shape_of s = shape_for(n, rate);
        tamis_filter *f = concatenated_new(1, s.q, s.m, stream);
        concatenated_add(f, p, stored, n);
        share = concatenated_share(f, p, values, asked);
        tamis_filter_free(f);
    } else {
        struct shape_of s = shape_for(n, pow(rate, 1.0 / (structure == BF ? p + 1 : p)));
        struct records r;
        records_new(&r, p, s.q, s.m, structure == BF ? TAMIS_VERIFIER_FILTER : TAMIS_VERIFIER_NONE,
                    TAMIS_VERIFY_MIXED, stream);
        records_add(&r, stored, n);
        share = records_share(&r, values, asked);
        records_free(&r);
    }
    free(stored);
    free(values);
    return share;
}

/* Bits of the library's index with a table: attributes at f^(1/p), 64-bit values. */
static double table_bits(unsigned p, uint64_t n, double rate)
{
    struct shape_of s = shape_for(n, pow(rate, 1.0 / p));
    uint64_t *stored = lab_alloc(n * p, 8);
    struct records r;
    tamis_records_facts empty, full;
    records_new(&r, p, s.q, s.m, TAMIS_VERIFIER_TABLE, TAMIS_VERIFY_MIXED, 800);
    tamis_records_info(r.index, &empty);
    values_distinct(800, p, stored, n);
    records_add(&r, stored, n);
    tamis_records_info(r.index, &full);
    records_free(&r);
    free(stored);
    return (double)(p * s.q * s.m) + 8 * (double)(full.set.bytes - empty.set.bytes);
}

static void figure(const char *name, unsigned p, double rate)
{
    char figure[24];
    snprintf(figure, sizeof figure, "%s p=%u", name, p);
    for (uint64_t n = 1000; n <= 10000; n += lab_size(4500, 1000, 1000)) {
        double x = (double)n;
        lab_formula(figure, "SBF", x, bits_of(1, n, rate));
        lab_formula(figure, "PBF", x, bits_of(p, n, rate));
        lab_formula(figure, "PBF-BF", x, bits_of(p + 1, n, rate));
        lab_exact(figure, "PBF-HT", x, table_bits(p, n, rate));
        lab_formula(figure, "least", x, x * log2(1 / rate));
    }
    uint64_t n = 5000, asked = lab_size(20000, 100000, 1000000);
    for (enum structure s = SBF; s < STRUCTURES; s++) {
        struct mean share = {0};
        for (uint64_t i = 0; i < lab_size(6, 6, 10); i++)
            mean_add(&share, measured_rate(s, p, n, rate, asked, 810 + i));
        char series[32];
        snprintf(series, sizeof series, "%s rate", names[s]);
        lab_rate(figure, series, (double)n, &share, asked);
    }
}

/* Table 1, p = 3: bits over those of an SBF. */
static void table_1(void)
{
    const uint64_t n = 5000;
    uint64_t asked = lab_size(20000, 100000, 1000000);
    for (unsigned percent = 2; percent <= 10; percent += 2) {
        double rate = percent / 100.0, sbf = bits_of(1, n, rate), x = percent;
        struct mean share = {0};
        lab_exact("t1", "PBF", x, bits_of(3, n, rate) / sbf);
        lab_exact("t1", "PBF-HT", x, table_bits(3, n, rate) / sbf);
        lab_exact("t1", "PBF-BF", x, bits_of(4, n, rate) / sbf);
        lab_formula("t1", "least", x, (double)n * log2(1 / rate) / sbf);
        for (uint64_t i = 0; i < lab_size(6, 6, 10); i++)
            mean_add(&share, measured_rate(BF, 3, n, rate, asked, 830 + i) / rate);
        lab_measured("t1", "PBF-BF rate over stated", x, &share);
    }
}

int main(void)
{
    lab_head();
    for (unsigned p = 2; p <= 4; p++) {
        figure("f18", p, 0.0039);
        figure("f19", p, 0.00098);
    }
    table_1();
    return 0;
}
