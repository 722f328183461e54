/*
 * Dynamic filters, deletion: figures 5 to 7 and table 1 of the paper. Its Algorithm 3 deletes an item
 * only if exactly one row matches; what matches several is left behind permanently. Here that algorithm
 * runs over rows that are deletable fixed filters of this library, with the paper's addresses (11)
 * and with ours, beside the library's own removal, which remembers such items and settles them.
 */
#include "common.h"
#include "tamis/plan.h"

#define K    7
#define C    133
#define M    1280
#define ROWS 24

/* ---- the paper's rows ------------------------------------------------------------------------ */

struct rows {
    tamis_filter *row[ROWS];
    uint64_t n[ROWS]; /* n_r */
    unsigned s;
    bool as_published; /* addresses by (11) */
    bool line_6;       /* Merge() with line 6 as printed: a row's count is lost */
    bool strict;       /* f = 0.001 instead of 0.01: 1920 bits, 10 hashes */
    uint64_t stream;
};

static tamis_filter *row_new(const struct rows *r)
{
    uint8_t family[TAMIS_KEY_LEN];
    lab_family(r->stream, family);
    tamis_options o = {.growth = TAMIS_FIXED,
                       .layout = TAMIS_SPREAD,
                       .bits = r->strict ? 1920 : M,
                       .hashes = r->strict ? 10 : K,
                       .capacity = C,
                       .key = family,
                       .deletable = true,
                       .overfill = true};
    return r->as_published ? lab_filter_own(&o, lab_probe_11, NULL) : lab_filter(&o);
}

static void rows_add(struct rows *r, uint64_t key)
{
    unsigned i = 0;
    while (i < r->s && r->n[i] >= C)
        i++;
    if (i == r->s) {
        r->n[r->s] = 0;
        r->row[r->s++] = row_new(r);
    }
    MUST(tamis_filter_add(r->row[i], &key, 8, NULL));
    r->n[i]++;
}

/* How many rows match, and the last that does. */
static unsigned rows_match(const struct rows *r, uint64_t key, unsigned *which)
{
    unsigned matches = 0;
    for (unsigned i = 0; i < r->s; i++)
        if (tamis_filter_has(r->row[i], &key, 8)) {
            matches++;
            *which = i;
        }
    return matches;
}

/* Merge(), corrected but for line 6 where that is asked for: a pair whose items fit into one row becomes one; the sum of n_r is kept. */
static void rows_merge(struct rows *r)
{
    for (unsigned i = 0; i < r->s; i++)
        for (unsigned j = i + 1; j < r->s; j++) {
            if (r->n[i] + r->n[j] > C)
                continue;
            MUST(tamis_filter_merge(r->row[i], r->row[j], TAMIS_MERGE_RESTATE, NULL));
            r->n[i] = r->line_6 ? r->n[j] : r->n[i] + r->n[j];
            tamis_filter_free(r->row[j]);
            r->s--;
            r->row[j] = r->row[r->s];
            r->n[j] = r->n[r->s];
            return;
        }
}

/* Algorithm 3; false: left behind. */
static bool rows_remove(struct rows *r, uint64_t key)
{
    unsigned which = 0;
    tamis_removed outcome;
    if (rows_match(r, key, &which) != 1)
        return false;
    MUST(tamis_filter_remove(r->row[which], &key, 8, &outcome));
    r->n[which]--;
    rows_merge(r);
    return true;
}

/* Removes keys in their order; what could not be removed is left in keys[0..] */
static size_t rows_remove_all(struct rows *r, uint64_t *keys, size_t n)
{
    size_t left = 0;
    for (size_t i = 0; i < n; i++)
        if (!rows_remove(r, keys[i]))
            keys[left++] = keys[i];
    return left;
}

static double rows_false_rate(const struct rows *r, uint64_t stream, uint64_t asked)
{
    uint64_t *keys = lab_alloc(asked, sizeof *keys), hits = 0;
    unsigned which;
    lab_keys(stream + (UINT64_C(1) << 30), keys, asked);
    for (uint64_t i = 0; i < asked; i++)
        hits += rows_match(r, keys[i], &which) > 0;
    free(keys);
    return (double)hits / (double)asked;
}

static void rows_free(struct rows *r)
{
    for (unsigned i = 0; i < r->s; i++)
        tamis_filter_free(r->row[i]);
    r->s = 0;
}

/* ---- table 1, figure 5 ----------------------------------------------------------------------- */

struct counts {
    struct mean multi, random, inserted, second, rate;
};

static void one_round(struct counts *t, uint64_t s, bool as_published, uint64_t round)
{
    size_t n = s * C, asked = 2000;
    uint64_t *keys = lab_alloc(n, sizeof *keys), state = round + 1;
    for (unsigned order = 0; order < 2; order++) {
        struct rows r = {.as_published = as_published, .stream = round};
        unsigned multi = 0, which;
        lab_keys(round, keys, n);
        for (size_t i = 0; i < n; i++)
            rows_add(&r, keys[i]);
        for (size_t i = 0; i < n && order == 0; i++)
            multi += rows_match(&r, keys[i], &which) > 1;
        if (order == 0) {
            mean_add(&t->multi, multi);
            mean_add(&t->rate, rows_false_rate(&r, round, asked));
            rng_shuffle(&state, keys, n);
        }
        size_t left = rows_remove_all(&r, keys, n);
        mean_add(order ? &t->inserted : &t->random, (double)left);
        mean_add(&t->second, (double)rows_remove_all(&r, keys, left));
        rows_free(&r);
    }
    free(keys);
}

static tamis_filter *new_ours(uint64_t stream)
{
    uint8_t family[TAMIS_KEY_LEN];
    lab_family(stream, family);
    tamis_options o = {.growth = TAMIS_DYNAMIC,
                       .bits = M,
                       .hashes = K,
                       .capacity = C,
                       .key = family,
                       .deletable = true};
    return lab_filter(&o);
}

/* The library's removal over the same items: what is left of the set, of bits and of memory. */
static double ours_left(uint64_t s, uint64_t round)
{
    size_t n = s * C;
    uint64_t *keys = lab_alloc(n, sizeof *keys), state = round + 1, ones = 0;
    tamis_filter *f = new_ours(round);
    tamis_filter_facts info;
    tamis_vector_facts v;
    tamis_removed outcome;
    lab_keys(round, keys, n);
    lab_add(f, keys, n);
    rng_shuffle(&state, keys, n);
    for (size_t i = 0; i < n; i++)
        MUST(tamis_filter_remove(f, &keys[i], 8, &outcome));
    tamis_filter_info(f, &info);
    for (uint32_t i = 0; tamis_filter_vector(f, i, &v); i++)
        ones += v.ones;
    tamis_filter_free(f);
    free(keys);
    return (double)(info.items + info.pending + ones);
}

static void table_1(uint64_t s, bool as_published)
{
    struct counts t = {0};
    struct mean ours = {0};
    double x = (double)s, n = (double)(s * C), asked = 2000;
    for (uint64_t i = 0; i < lab_size(12, 100, 1000); i++) {
        one_round(&t, s, as_published, i);
        if (!as_published)
            mean_add(&ours, ours_left(s, i));
    }
    if (as_published) {
        lab_measured("t1", "multi (11)", x, &t.multi);
        lab_measured("t1", "left (11)", x, &t.random);
        lab_measured("t1", "left in order (11)", x, &t.inserted);
        return;
    }
    lab_measured("t1", "multi", x, &t.multi);
    lab_measured("t1", "left", x, &t.random);
    lab_measured("t1", "left in order", x, &t.inserted);
    lab_measured("t1", "left after a second pass", x, &t.second);
    lab_measured("t1", "left by ours", x, &ours);
    lab_formula("t1", "expected", x, tamis_plan_dynamic_multi(M, K, C, s * C));
    lab_formula("t1", "n f2", x, tamis_plan_dynamic_multi_bound(M, K, C, s * C));
    lab_rate("f5", "DBF rate", x, &t.rate, (uint64_t)asked);
    lab_formula("f5", "DBF rate formula", x, tamis_plan_dynamic_rate(M, K, C, s * C));
    lab_value("f5", "several addresses", x, mean_of(&t.multi) / n, mean_error(&t.multi) / n,
              t.multi.n);
    lab_value("f5", "left behind", x, mean_of(&t.random) / n, mean_error(&t.random) / n,
              t.random.n);
    lab_formula("f5", "f2", x, tamis_plan_dynamic_f2(M, K, C, s * C));
}

/* ---- Merge() as printed ---------------------------------------------------------------------- */

/* Half of ten full rows is deleted; the rate of what is left. */
static void merges(bool line_6)
{
    struct mean rate = {0};
    size_t n = 10 * C, asked = 2000;
    uint64_t *keys = lab_alloc(n, sizeof *keys);
    for (uint64_t i = 0; i < lab_size(20, 40, 200); i++) {
        struct rows r = {.stream = i, .line_6 = line_6};
        uint64_t state = i + 9;
        lab_keys(i, keys, n);
        for (size_t j = 0; j < n; j++)
            rows_add(&r, keys[j]);
        rng_shuffle(&state, keys, n);
        rows_remove_all(&r, keys, n / 2);
        mean_add(&rate, rows_false_rate(&r, i, asked));
        rows_free(&r);
    }
    free(keys);
    lab_rate("merge", line_6 ? "as printed" : "corrected", 10, &rate, asked);
}

/* ---- figure 6: adding again after everything was deleted ------------------------------------- */

#define PLACES 10

static void again_round(struct mean *rate, uint64_t s, bool ours, uint64_t round)
{
    size_t n = s * C, most = PLACES * C, asked = 2000;
    uint64_t *keys = lab_alloc(n + most, sizeof *keys), state = round + 3;
    tamis_filter *f = new_ours(round);
    struct rows r = {.stream = round};
    tamis_removed outcome;
    lab_keys(round, keys, n + most);
    for (size_t i = 0; i < n && !ours; i++)
        rows_add(&r, keys[i]);
    if (ours)
        lab_add(f, keys, n);
    rng_shuffle(&state, keys, n);
    for (size_t i = 0; i < n && ours; i++)
        MUST(tamis_filter_remove(f, &keys[i], 8, &outcome));
    if (!ours)
        rows_remove_all(&r, keys, n);
    for (unsigned p = 0; p < PLACES; p++) {
        for (size_t i = p * C; i < (p + 1) * C && !ours; i++)
            rows_add(&r, keys[n + i]);
        if (ours)
            lab_add(f, keys + n + p * C, C);
        uint64_t stream = round * PLACES + p;
        mean_add(&rate[p],
                 ours ? lab_false_rate(f, stream, asked) : rows_false_rate(&r, stream, asked));
    }
    rows_free(&r);
    tamis_filter_free(f);
    free(keys);
}

static void figure_6(uint64_t s, const char *series, bool ours)
{
    struct mean rate[PLACES] = {0};
    for (uint64_t i = 0; i < lab_size(8, 60, 500); i++)
        again_round(rate, s, ours, i);
    for (unsigned p = 0; p < PLACES; p++) {
        double n = (double)((p + 1) * C);
        lab_rate("f6", series, n, &rate[p], 2000);
        if (ours)
            lab_formula("f6", "formula", n, tamis_plan_dynamic_rate(M, K, C, (p + 1) * C));
    }
}

/* ---- figure 7: when to ask before inserting -------------------------------------------------- */

/* Items that were positive when they came, over c, after each row. */
static void positive_before(struct mean *present, bool strict, uint64_t s)
{
    for (uint64_t round = 0; round < lab_size(20, 100, 1000); round++) {
        uint64_t *keys = lab_alloc(s * C, sizeof *keys), already = 0;
        struct rows r = {.stream = round, .strict = strict};
        unsigned which;
        lab_keys(round, keys, s * C);
        for (size_t i = 0; i < s * C; i++) {
            already += rows_match(&r, keys[i], &which) > 0;
            rows_add(&r, keys[i]);
            if ((i + 1) % C == 0)
                mean_add(&present[(i + 1) / C], (double)already / C);
        }
        rows_free(&r);
        free(keys);
    }
}

static void figure_7(void)
{
    struct mean present[21] = {0}, strict[21] = {0};
    positive_before(present, false, 12);
    positive_before(strict, true, 20);
    for (unsigned s = 1; s <= 20; s++)
        lab_measured("f7", "already positive f=0.001", s, &strict[s]);
    for (unsigned s = 1; s <= 12; s++) {
        lab_measured("f7", "already positive", s, &present[s]);
        lab_formula("f7", "already positive formula", s,
                    tamis_plan_dynamic_present(M, K, C, s * C) / C);
    }
    static const double rates[] = {0.01, 0.005, 0.001};
    static const char *const names[] = {"f=0.01", "f=0.005", "f=0.001"};
    for (unsigned j = 0; j < 3; j++)
        for (unsigned s = 1; s <= 40; s++)
            lab_formula("f7", names[j], s, tamis_plan_dynamic_insert_ratio(rates[j], s));
}

int main(void)
{
    lab_head();
    for (uint64_t s = 2; s <= 10; s += lab_size(4, 1, 1)) {
        table_1(s, false);
        table_1(s, true);
    }
    for (uint64_t s = 5; s <= 10; s += s == 5 ? 3 : 2) {
        char series[32];
        snprintf(series, sizeof series, "n/c=%" PRIu64, s);
        figure_6(s, series, false);
    }
    figure_6(10, "ours", true);
    figure_7();
    merges(false);
    merges(true);
    return 0;
}
