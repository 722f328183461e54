/*
 * Dynamic filters: theorems 1 to 4, section 4.3 and the incremental update of section 4.4.
 *
 * Theorems 1 and 2 are about the union of filters, 3 about their intersection, 4 about the union of
 * dynamic filters. Section 4.3 asks how far a filter made for n0 items at a rate beta goes before the
 * rate passes gamma. Section 4.4 sends only the rows that changed.
 */
#include "common.h"
#include "common_plan.h"
#include "set/set.h"

#define K 7
#define C 133
#define M 1280

static uint64_t bits_apart(const tamis_filter *a, const tamis_filter *b)
{
    uint64_t apart = 0;
    for (uint64_t i = 0; i < M / 64; i++)
        apart += (uint64_t)__builtin_popcountll(vector_word(set_layers(&a->set)->v[0], i) ^
                                                vector_word(set_layers(&b->set)->v[0], i));
    return apart;
}

/* ---- theorems 1, 2 and 4: unions ------------------------------------------------------------- */

/* A has n items, B a hundred. x is n. */
static void unions(uint64_t n)
{
    struct mean apart = {0}, first = {0}, joined = {0}, rows = {0}, rows_joined = {0};
    uint64_t asked = 10000, nb = 100, *keys = lab_alloc(n + nb, sizeof *keys);
    for (uint64_t i = 0; i < lab_size(20, 100, 400); i++) {
        tamis_filter *a = lab_published(TAMIS_FIXED, M, K, C, i),
                     *b = lab_published(TAMIS_FIXED, M, K, C, i),
                     *all = lab_published(TAMIS_FIXED, M, K, C, i),
                     *da = lab_published(TAMIS_DYNAMIC, M, K, C, i),
                     *db = lab_published(TAMIS_DYNAMIC, M, K, C, i);
        lab_keys(i + 11000, keys, n + nb);
        lab_add(a, keys, n);
        lab_add(b, keys + n, nb);
        lab_add(all, keys, n + nb);
        lab_add(da, keys, n);
        lab_add(db, keys + n, nb);
        mean_add(&first, lab_false_rate(a, i, asked));
        mean_add(&rows, lab_false_rate(da, i, asked));
        MUST(tamis_filter_merge(a, b, TAMIS_MERGE_RESTATE, NULL));
        MUST(tamis_filter_merge(da, db, TAMIS_MERGE_CONCAT, NULL));
        mean_add(&apart, (double)bits_apart(a, all));
        mean_add(&joined, lab_false_rate(a, i, asked));
        mean_add(&rows_joined, lab_false_rate(da, i, asked));
        tamis_filter *made[] = {a, b, all, da, db};
        for (unsigned j = 0; j < 5; j++)
            tamis_filter_free(made[j]);
    }
    free(keys);
    double x = (double)n;
    lab_measured("unions", "bits apart", x, &apart);
    lab_rate("unions", "A", x, &first, asked);
    lab_rate("unions", "A or B", x, &joined, asked);
    lab_rate("unions", "DBF A", x, &rows, asked);
    lab_rate("unions", "DBF A or B", x, &rows_joined, asked);
    lab_formula("unions", "A or B formula", x, tamis_plan_rate_exp(M, K, (double)(n + nb)));
    lab_formula("unions", "DBF A or B formula", x, tamis_plan_dynamic_union(M, K, C, n, nb));
}

/* ---- theorem 3: is BF(A and B) = BF(A) and BF(B)? -------------------------------------------- */

static void intersection(uint64_t apart, uint64_t common, const char *series)
{
    struct mean equal = {0};
    uint64_t n = 2 * apart + common, *keys = lab_alloc(n, sizeof *keys);
    char name[64];
    for (uint64_t i = 0; i < lab_size(1000, 5000, 20000); i++) {
        tamis_filter *a = lab_published(TAMIS_FIXED, M, K, C, i),
                     *b = lab_published(TAMIS_FIXED, M, K, C, i),
                     *c = lab_published(TAMIS_FIXED, M, K, C, i), *both;
        lab_keys(i + 12000, keys, n);
        lab_add(c, keys, common);
        lab_add(a, keys, common + apart);
        lab_add(b, keys, common);
        lab_add(b, keys + common + apart, apart);
        MUST(tamis_filter_intersect(&both, a, b, NULL));
        mean_add(&equal, bits_apart(both, c) == 0);
        tamis_filter *made[] = {a, b, c, both};
        for (unsigned j = 0; j < 4; j++)
            tamis_filter_free(made[j]);
    }
    free(keys);
    double x = (double)apart;
    lab_rate("theorem 3", series, x, &equal, 1);
    snprintf(name, sizeof name, "%s exact", series);
    lab_formula("theorem 3", name, x, lab_plan_and_exact(M, K, apart, apart, common));
    lab_formula("theorem 3", "printed", x, lab_plan_and_bound(M, K, x, x));
}

/* ---- section 4.3: from beta to gamma --------------------------------------------------------- */

/* The rate of one filter and of a dynamic one after n items, over gamma. */
static void over_gamma(const char *series, tamis_growth growth, double x, uint64_t n, double gamma)
{
    struct mean rate = {0};
    uint64_t asked = 20000, *keys = lab_alloc(n, sizeof *keys);
    for (uint64_t i = 0; i < lab_size(20, 100, 400); i++) {
        tamis_filter *f = lab_published(growth, M, K, C, i);
        lab_keys(i + 13000, keys, n);
        lab_add(f, keys, n);
        mean_add(&rate, lab_false_rate(f, i, asked) / gamma);
        tamis_filter_free(f);
    }
    free(keys);
    lab_measured("limits", series, x, &rate);
}

static void limits(void)
{
    const double beta = tamis_plan_rate_exp(M, K, C);
    for (unsigned percent = 2; percent <= 8; percent += 2) {
        double gamma = percent / 100.0, x = percent;
        tamis_plan_limits v = tamis_plan_dynamic_limits(K, C, beta, gamma);
        uint64_t printed = C * ((uint64_t)v.rows + 1);
        lab_formula("limits", "items one filter", x, v.one);
        lab_formula("limits", "items dynamic", x, v.dynamic);
        lab_formula("limits", "items dynamic as printed", x, (double)printed);
        over_gamma("rate over γ one filter", TAMIS_FIXED, x, v.one_whole, gamma);
        over_gamma("rate over γ dynamic", TAMIS_DYNAMIC, x, v.dynamic_whole, gamma);
        over_gamma("rate over γ as printed", TAMIS_DYNAMIC, x, printed, gamma);
    }
}

/* ---- section 4.4: only rows that changed are sent -------------------------------------------- */

/* Ten full rows, then `added` items more: bytes of the patch and of the whole. */
static void update(uint64_t added)
{
    struct mean patch = {0}, whole = {0};
    uint64_t n = 10 * C, *keys = lab_alloc(n + added, sizeof *keys);
    for (uint64_t i = 0; i < lab_size(4, 20, 50); i++) {
        tamis_filter *f = lab_published(TAMIS_DYNAMIC, M, K, C, i), *before;
        uint64_t bytes = 0, none = 0;
        lab_keys(i + 14000, keys, n + added);
        lab_add(f, keys, n);
        MUST(tamis_filter_clone(&before, f));
        MUST(tamis_filter_diff(before, f, TAMIS_SAVE_BITS_ONLY, lab_count_bytes, &none, NULL));
        lab_add(f, keys + n, added);
        MUST(tamis_filter_diff(before, f, TAMIS_SAVE_BITS_ONLY, lab_count_bytes, &bytes, NULL));
        mean_add(&patch, (double)(bytes - none));
        mean_add(&whole, (double)tamis_filter_encoded_size(f, TAMIS_SAVE_BITS_ONLY));
        tamis_filter_free(f);
        tamis_filter_free(before);
    }
    free(keys);
    lab_measured("update", "patch", (double)added, &patch);
    lab_measured("update", "whole", (double)added, &whole);
}

int main(void)
{
    lab_head();
    for (uint64_t n = 50; n <= 400; n += lab_size(175, 50, 50))
        unions(n);
    for (uint64_t apart = 1; apart <= 10; apart += lab_size(3, 1, 1)) {
        intersection(apart, 0, "nothing in common");
        intersection(apart, 133, "133 in common");
    }
    limits();
    for (uint64_t added = 1; added <= 512; added *= 2)
        update(added);
    return 0;
}
