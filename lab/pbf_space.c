/*
 * Parallel filters, space: figures 18 and 19 and table 1. For n records and a rate f of wrong answers
 * to fresh questions: one filter on the concatenated record (SBF), p attribute filters at f^(1/p)
 * (PBF), p + 1 at f^(1/(p+1)) (PBF-BF), and attributes with a table of values (PBF-HT, as the library
 * stores it). Each is built in its size and its rate measured. No structure can do with less than
 * log2(1/f) bits per record, 69 % of an SBF.
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

/* The rate of a structure built in its size, and the bits that it says it has. */
static double measured_rate(enum structure structure, unsigned p, uint64_t n, double rate,
                            uint64_t asked, uint64_t stream, double *bits)
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
        *bits = (double)lab_bits(f);
        tamis_filter_free(f);
    } else {
        struct shape_of s = shape_for(n, pow(rate, 1.0 / (structure == BF ? p + 1 : p)));
        struct records r;
        records_new(&r, p, s.q, s.m, structure == BF ? TAMIS_VERIFIER_FILTER : TAMIS_VERIFIER_NONE,
                    TAMIS_VERIFY_MIXED, stream);
        records_add(&r, stored, n);
        share = records_share(&r, values, asked);
        tamis_records_facts info;
        tamis_records_info(r.set, &info);
        *bits = (double)info.set.bits;
        records_free(&r);
    }
    free(stored);
    free(values);
    return share;
}

/* Bits of the library's records with a table: attributes at f^(1/p), 64-bit values. */
static double table_bits(unsigned p, uint64_t n, double rate)
{
    struct shape_of s = shape_for(n, pow(rate, 1.0 / p));
    uint64_t *stored = lab_alloc(n * p, 8);
    struct records r;
    tamis_records_facts empty, full;
    records_new(&r, p, s.q, s.m, TAMIS_VERIFIER_TABLE, TAMIS_VERIFY_MIXED, 800);
    tamis_records_info(r.set, &empty);
    values_distinct(800, p, stored, n);
    records_add(&r, stored, n);
    tamis_records_info(r.set, &full);
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
    uint64_t n = 5500, asked = lab_size(20000, 100000, 1000000);
    for (enum structure s = SBF; s < STRUCTURES; s++) {
        struct mean share = {0};
        double bits = 0;
        for (uint64_t i = 0; i < lab_size(6, 6, 10); i++)
            mean_add(&share, measured_rate(s, p, n, rate, asked, 810 + i, &bits));
        char series[32];
        snprintf(series, sizeof series, "%s built", names[s]);
        lab_exact(figure, series, (double)n, bits);
        lab_formula(figure, names[s], (double)n,
                    bits_of(s == SBF   ? 1
                            : s == PBF ? p
                                       : p + 1,
                            n, rate));
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
        double bits, one;
        measured_rate(SBF, 3, n, rate, 1, 829, &one);
        measured_rate(PBF, 3, n, rate, 1, 829, &bits);
        lab_exact("t1", "PBF", x, bits / one);
        lab_exact("t1", "PBF-HT", x, table_bits(3, n, rate) / one);
        lab_formula("t1", "least", x, (double)n * log2(1 / rate) / sbf);
        for (uint64_t i = 0; i < lab_size(6, 6, 10); i++)
            mean_add(&share, measured_rate(BF, 3, n, rate, asked, 830 + i, &bits) / rate);
        lab_exact("t1", "PBF-BF", x, bits / one);
        lab_measured("t1", "PBF-BF rate over stated", x, &share);
    }
}

/* Deletion: every second record goes. Of those that stay none may be denied; of those that went as
   many are still answered "maybe" as the rate for non-members says, and none for ever. */
static void deletion(tamis_verifier verifier, double x)
{
    static const tamis_attribute names_of[] = {{.name = "a"}, {.name = "b"}, {.name = "c"}};
    const uint64_t n = lab_size(2000, 10000, 50000);
    uint8_t family[TAMIS_KEY_LEN];
    uint64_t *values = lab_alloc(n * 3, sizeof *values), denied = 0, left = 0;
    tamis_records *records;
    tamis_records_options o = {.attributes = names_of,
                               .n_attributes = 3,
                               .no_combos = true,
                               .verifier = verifier,
                               .set.fpp = 0.01,
                               .set.capacity = n,
                               .set.growth = TAMIS_FIXED,
                               .set.key = family,
                               .set.deletable = true};
    lab_family(870, family);
    MUST(tamis_records_new(&records, &o, NULL));
    values_distinct(870, 3, values, n);
    for (unsigned pass = 0; pass < 3; pass++)
        for (uint64_t i = 0; i < n; i++) {
            tamis_key record[3];
            tamis_removed outcome;
            for (unsigned j = 0; j < 3; j++)
                record[j] = (tamis_key){&values[i * 3 + j], 8};
            if (pass == 0)
                MUST(tamis_records_add(records, record, NULL));
            else if (pass == 1 && i % 2)
                MUST(tamis_records_remove(records, record, &outcome));
            else if (pass == 2 && i % 2)
                left += tamis_records_has(records, record, 0).maybe;
            else if (pass == 2)
                denied += !tamis_records_has(records, record, 0).maybe;
        }
    tamis_records_free(records);
    free(values);
    struct mean share = {0};
    mean_add(&share, (double)left / ((double)n / 2));
    lab_exact("deletion", "members denied", x, (double)denied);
    lab_rate("deletion", "deleted but maybe", x, &share, n / 2);
}

int main(void)
{
    lab_head();
    for (unsigned p = 2; p <= 4; p++) {
        figure("f18", p, 0.0039);
        figure("f19", p, 0.00098);
    }
    table_1();
    deletion(TAMIS_VERIFIER_NONE, 1);
    deletion(TAMIS_VERIFIER_TABLE, 2);
    deletion(TAMIS_VERIFIER_FILTER, 3);
    return 0;
}
