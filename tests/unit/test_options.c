/* Options: what zero means, what is refused and with which words; and the names of the errors. */
#include "harness.h"
#include "tamis/plan.h"

#include <math.h>

/* ---- refusals ---- */

#define REFUSED(error, ...) refused(error, (tamis_options){__VA_ARGS__}, #__VA_ARGS__)

/* The error, a reason in words, and no filter; the same without a place for the reason. */
static void refused(tamis_error error, tamis_options o, const char *text)
{
    tamis_filter *untouched = (tamis_filter *)&o, *f = untouched;
    tamis_reason reason = {.text = ""};
    tamis_error e = tamis_filter_new(&f, &o, &reason);
    CHECK_MSG(e == error, "{%s}: %s, not %s", text, tamis_error_name(e), tamis_error_name(error));
    CHECK_MSG(strlen(reason.text) > 10, "{%s}: \"%s\"", text, reason.text);
    CHECK_MSG(f == untouched, "{%s}: a filter was made", text);
    if (e == TAMIS_OK) {
        tamis_filter_free(f);
        f = untouched;
    }
    CHECK_MSG(tamis_filter_new(&f, &o, NULL) == e && f == untouched, "{%s}", text);
}

TEST(rates_out_of_range)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY, -0.01, -1e-300, 1, 1.0000001, 2, 1e300};
    for (int growth = TAMIS_GROWTH_DEFAULT; growth <= TAMIS_WINDOW; growth++)
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
            REFUSED(TAMIS_EARG, .growth = (tamis_growth)growth, .fpp = bad[i]);
}

TEST(capacities_out_of_range)
{
    static const uint64_t bad[] = {(UINT64_C(1) << 40) + 1, UINT64_C(1) << 63, UINT64_MAX};
    for (int growth = TAMIS_GROWTH_DEFAULT; growth <= TAMIS_WINDOW; growth++)
        for (int layout = TAMIS_SPREAD; layout <= TAMIS_BLOCKED; layout++) {
            if (growth == TAMIS_DYNAMIC && layout == TAMIS_BLOCKED)
                continue;
            for (size_t i = 0; i < 3; i++)
                REFUSED(TAMIS_EARG, .growth = (tamis_growth)growth, .capacity = bad[i],
                        .layout = (tamis_layout)layout);
            if (growth == TAMIS_FIXED || growth == TAMIS_SCALABLE || growth == TAMIS_FLEXIBLE)
                REFUSED(TAMIS_ELIMIT, .growth = (tamis_growth)growth, .capacity = UINT64_C(1) << 40,
                        .layout = (tamis_layout)layout);
        }
    REFUSED(TAMIS_ELIMIT, .growth = TAMIS_DYNAMIC, .capacity = UINT64_C(1) << 40, .vectors = 1);
    REFUSED(TAMIS_ELIMIT, .growth = TAMIS_WINDOW, .capacity = UINT64_C(1) << 40, .vectors = 2);
}

TEST(unknown_kinds)
{
    REFUSED(TAMIS_EARG, .growth = (tamis_growth)7);
    REFUSED(TAMIS_EARG, .growth = (tamis_growth)-1);
    REFUSED(TAMIS_EARG, .layout = (tamis_layout)3);
    REFUSED(TAMIS_EARG, .layout = (tamis_layout)-1);
    REFUSED(TAMIS_EARG, .hash = (tamis_hash)4);
    REFUSED(TAMIS_EARG, .hash = (tamis_hash)1000);
}

TEST(what_does_not_go_together)
{
    REFUSED(TAMIS_EARG, .hash = TAMIS_H3, .layout = TAMIS_BLOCKED);
    REFUSED(TAMIS_EARG, .growth = TAMIS_DYNAMIC, .layout = TAMIS_BLOCKED);
    REFUSED(TAMIS_EARG, .growth = TAMIS_WINDOW, .deletable = true);
    REFUSED(TAMIS_EARG, .growth = TAMIS_FIXED, .shared_adds = true, .deletable = true);
    for (int growth = TAMIS_GROWTH_DEFAULT; growth <= TAMIS_WINDOW; growth++) {
        REFUSED(TAMIS_EARG, .growth = (tamis_growth)growth, .unique = true);
        if (growth != TAMIS_FIXED)
            REFUSED(TAMIS_EARG, .growth = (tamis_growth)growth, .shared_adds = true);
        if (growth != TAMIS_DYNAMIC)
            REFUSED(TAMIS_EARG, .growth = (tamis_growth)growth, .tolerate = 0.5);
    }
}

TEST(expansions_out_of_range)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY, -1, 0.5, 0.999, 65537, 1e300};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        REFUSED(TAMIS_EARG, .expansion = bad[i]);
}

TEST(tolerated_rates_out_of_range)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY, -0.5, 1, 2, 0.01, 0.009};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        REFUSED(TAMIS_EARG, .growth = TAMIS_DYNAMIC, .fpp = 0.01, .tolerate = bad[i]);
}

TEST(numbers_of_vectors_out_of_range)
{
    REFUSED(TAMIS_EARG, .growth = TAMIS_DYNAMIC, .capacity = 10, .vectors = 11);
    REFUSED(TAMIS_EARG, .growth = TAMIS_DYNAMIC, .capacity = 1 << 30, .vectors = (1 << 20) + 1);
    REFUSED(TAMIS_EARG, .growth = TAMIS_DYNAMIC, .capacity = 1 << 30, .vectors = UINT32_MAX);
    REFUSED(TAMIS_EARG, .growth = TAMIS_WINDOW, .vectors = 1);
    REFUSED(TAMIS_EARG, .growth = TAMIS_WINDOW, .vectors = 1025);
    REFUSED(TAMIS_EARG, .growth = TAMIS_WINDOW, .vectors = UINT32_MAX);
}

TEST(published_shapes_out_of_range)
{
    for (int growth = TAMIS_FIXED; growth <= TAMIS_FLEXIBLE; growth++) {
        tamis_growth g = (tamis_growth)growth;
        REFUSED(TAMIS_EARG, .growth = g, .bits = 1280);
        REFUSED(TAMIS_EARG, .growth = g, .hashes = 7);
        REFUSED(TAMIS_ELIMIT, .growth = g, .bits = 1280, .hashes = 65);
        REFUSED(TAMIS_ELIMIT, .growth = g, .bits = 1280, .hashes = UINT32_MAX);
        REFUSED(TAMIS_ELIMIT, .growth = g, .bits = (UINT64_C(1) << 40) + 1, .hashes = 7);
        REFUSED(TAMIS_ELIMIT, .growth = g, .bits = UINT64_MAX, .hashes = 7);
        REFUSED(TAMIS_ELIMIT, .growth = g, .bits = UINT64_MAX - 4000, .hashes = 7, .capacity = 9);
        REFUSED(TAMIS_ELIMIT, .growth = g, .layout = TAMIS_SPREAD, .hash = TAMIS_H3,
                .bits = (UINT64_C(1) << 32) + 8, .hashes = 7);
    }
}

TEST(lambdas_out_of_range)
{
    static const uint8_t none[1] = {0}, large[2] = {1, 41}, largest[1] = {255};
    static const uint8_t many[TAMIS_LAMBDAS_MAX + 1] = {1};
    REFUSED(TAMIS_EARG, .growth = TAMIS_FLEXIBLE, .n_lambdas = 1);
    REFUSED(TAMIS_EARG, .growth = TAMIS_FLEXIBLE, .lambdas = none, .n_lambdas = 1);
    REFUSED(TAMIS_EARG, .growth = TAMIS_FLEXIBLE, .lambdas = large, .n_lambdas = 2);
    REFUSED(TAMIS_EARG, .growth = TAMIS_FLEXIBLE, .lambdas = largest, .n_lambdas = 1);
    REFUSED(TAMIS_EARG, .growth = TAMIS_FLEXIBLE, .lambdas = many,
            .n_lambdas = TAMIS_LAMBDAS_MAX + 1);
    REFUSED(TAMIS_EARG, .growth = TAMIS_FLEXIBLE, .lambdas = many, .n_lambdas = SIZE_MAX);
}

/* A published vector times 2^(lambda-1) may not wrap around to something small. */
TEST(published_growth_stops_at_the_limit)
{
    static const uint8_t lambdas[] = {1, 37};
    tamis_options o = {.growth = TAMIS_FLEXIBLE,
                       .layout = TAMIS_SPREAD,
                       .bits = (UINT64_C(1) << 28) + 8,
                       .hashes = 1,
                       .capacity = 3,
                       .lambdas = lambdas,
                       .n_lambdas = 2};
    tamis_filter *f;
    if (!CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK))
        return;
    for (int i = 0; i < 3; i++)
        CHECK(tamis_filter_add(f, &i, sizeof i, NULL) == TAMIS_OK);
    int more = 100;
    CHECK(tamis_filter_add(f, &more, sizeof more, NULL) == TAMIS_ELIMIT);
    CHECK(!tamis_filter_has(f, &more, sizeof more));
    tamis_filter_free(f);
}

/* ---- what is accepted ---- */

static tamis_filter_facts info_with(tamis_options o)
{
    tamis_filter *f = NULL;
    tamis_reason reason = {.text = ""};
    tamis_filter_facts info = {.bits = 0};
    CHECK_MSG(tamis_filter_new(&f, &o, &reason) == TAMIS_OK, "%s", reason.text);
    if (f)
        tamis_filter_info(f, &info);
    tamis_filter_free(f);
    return info;
}

static void check_defaults(const tamis_options *o)
{
    tamis_filter *f;
    tamis_filter_facts info;
    if (!CHECK(tamis_filter_new(&f, o, NULL) == TAMIS_OK))
        return;
    tamis_filter_info(f, &info);
    CHECK(info.growth == TAMIS_SMOOTH && info.layout == TAMIS_BLOCKED);
    CHECK(info.hash == TAMIS_XXH3 && info.fpp == 0.01 && info.capacity == 0);
    CHECK(!info.deletable && !info.unique && !info.read_only && info.has_key);
    CHECK(info.items == 0 && info.distinct == 0 && info.vectors == 0 && info.pending == 0);
    CHECK(info.fpp_now == 0 && info.fill == 0 && info.bits > 0 && info.bytes >= info.bits / 8);
    uint8_t key[TAMIS_KEY_LEN], zero[TAMIS_KEY_LEN] = {0};
    CHECK(tamis_filter_key(f, key) && memcmp(key, zero, sizeof key) != 0);
    tamis_filter_free(f);
}

TEST(nothing_said_means_defaults)
{
    tamis_options zero = {0};
    check_defaults(NULL);
    check_defaults(&zero);
}

TEST(layouts_by_default)
{
    CHECK(info_with((tamis_options){.growth = TAMIS_DYNAMIC}).layout == TAMIS_SPREAD);
    CHECK(info_with((tamis_options){.hash = TAMIS_H3}).layout == TAMIS_SPREAD);
    CHECK(info_with((tamis_options){.fpp = 1e-4}).layout == TAMIS_BLOCKED);
    CHECK(info_with((tamis_options){.fpp = 1e-9}).layout == TAMIS_SPREAD);
    CHECK(info_with((tamis_options){.fpp = 1e-9, .layout = TAMIS_BLOCKED}).layout == TAMIS_BLOCKED);
    CHECK(info_with((tamis_options){.growth = TAMIS_WINDOW}).layout == TAMIS_BLOCKED);
}

TEST(every_legal_combination_works)
{
    static const double rates[] = {0.999, 0.5, 0.01, 1e-9, 1e-30};
    for (int growth = TAMIS_FIXED; growth <= TAMIS_WINDOW; growth++)
        for (int layout = TAMIS_SPREAD; layout <= TAMIS_BLOCKED; layout++)
            for (int hash = TAMIS_XXH3; hash <= TAMIS_H3; hash++)
                for (int deletable = 0; deletable <= 2; deletable++)
                    for (size_t p = 0; p < 5; p++) {
                        if (layout == TAMIS_BLOCKED &&
                            (growth == TAMIS_DYNAMIC || hash == TAMIS_H3))
                            continue;
                        if (growth == TAMIS_WINDOW && deletable)
                            continue;
                        tamis_options o = {.growth = (tamis_growth)growth,
                                           .layout = (tamis_layout)layout,
                                           .hash = (tamis_hash)hash,
                                           .deletable = deletable > 0,
                                           .unique = deletable > 1,
                                           .fpp = rates[p],
                                           .capacity = 1 + 40 * p};
                        tamis_filter *f;
                        if (!CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK))
                            continue;
                        tamis_filter_facts info;
                        tamis_filter_info(f, &info);
                        CHECK(info.fpp == rates[p] && info.growth == o.growth);
                        CHECK(info.hash == o.hash && info.unique == o.unique);
                        CHECK(tamis_filter_add(f, "key", 3, NULL) == TAMIS_OK);
                        CHECK(tamis_filter_has(f, "key", 3));
                        CHECK(rates[p] > 0.1 || !tamis_filter_has(f, "other", 5));
                        tamis_filter_free(f);
                    }
}

TEST(published_shapes)
{
    tamis_filter_facts info = info_with((tamis_options){
        .growth = TAMIS_FIXED, .layout = TAMIS_SPREAD, .bits = 1280, .hashes = 7, .capacity = 133});
    CHECK(info.bits == 1280 && info.hashes == 7 && info.capacity == 133);
    CHECK(fabs(info.fpp - tamis_plan_rate_exact(1280, 7, 133)) < 1e-12);
    info = info_with((tamis_options){
        .growth = TAMIS_FIXED, .layout = TAMIS_SPREAD, .bits = 1283, .hashes = 7, .fpp = 0.01});
    CHECK(info.bits == 1288); /* a multiple of 8 */
    CHECK(info.capacity == tamis_plan_capacity(TAMIS_SPREAD, 1288, 7, 0.01));
    info = info_with((tamis_options){.growth = TAMIS_SCALABLE, .bits = 4096, .hashes = 64});
    CHECK(info.bits == 4096 && info.hashes == 64 && info.fpp == 0);
}

TEST(families)
{
    static const uint8_t key[TAMIS_KEY_LEN] = "sixteen bytes ..";
    uint8_t back[TAMIS_KEY_LEN];
    tamis_filter *a, *b, *c, *d;
    tamis_options o = {.key = key}, other = {.key = key, .hash = TAMIS_SIP};
    if (!CHECK(tamis_filter_new(&a, &o, NULL) == TAMIS_OK &&
               tamis_filter_new(&b, &o, NULL) == TAMIS_OK &&
               tamis_filter_new(&c, NULL, NULL) == TAMIS_OK &&
               tamis_filter_new(&d, &other, NULL) == TAMIS_OK))
        return;
    CHECK(tamis_filter_key(a, back) && memcmp(back, key, sizeof key) == 0);
    CHECK(tamis_filter_same_family(a, b) && tamis_filter_equal(a, b));
    CHECK(!tamis_filter_same_family(a, c)); /* random keys */
    CHECK(!tamis_filter_same_family(a, d)); /* another hash */
    tamis_filter_free(a);
    tamis_filter_free(b);
    tamis_filter_free(c);
    tamis_filter_free(d);
    tamis_filter_free(NULL);
}

/* ---- limits and what is told ---- */

TEST(a_limit_on_memory_can_be_changed)
{
    tamis_options o = {
        .capacity = 100, .expansion = 2, .memory_limit = 4000, .growth = TAMIS_SCALABLE};
    tamis_filter *f;
    tamis_filter_facts info, brief;
    char key[32];
    if (!CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK))
        return;
    int n = 0;
    tamis_error e = TAMIS_OK;
    for (; e == TAMIS_OK && n < 100000; n++)
        e = tamis_filter_add(f, key, (size_t)snprintf(key, sizeof key, "%d", n), NULL);
    CHECK(e == TAMIS_ESPACE);
    CHECK(tamis_filter_limit(f, 0) == TAMIS_OK);
    CHECK(tamis_filter_add(f, "one more", 8, NULL) == TAMIS_OK);
    CHECK(tamis_filter_limit(f, 9000) == TAMIS_OK);
    tamis_filter_info(f, &info);
    tamis_filter_brief(f, &brief);
    CHECK(info.memory_limit == 9000 && info.expansion == 2 && info.window == 0);
    CHECK(brief.items == info.items && brief.bytes == info.bytes && brief.bits == info.bits);
    CHECK(brief.capacity == info.capacity && brief.vectors == info.vectors && brief.fill == 0);
    CHECK(brief.memory_limit == 9000 && info.fill > 0 && info.fpp_now > 0);
    tamis_filter_free(f);
}

static size_t zeroed_bytes;

static void *plain_alloc(void *context, size_t size)
{
    void *memory = malloc(size);
    (void)context;
    if (memory)
        memset(memory, 0xa5, size);
    return memory;
}

static void *plain_zeroed(void *context, size_t size)
{
    (void)context;
    zeroed_bytes += size;
    return calloc(1, size);
}

static void plain_free(void *context, void *memory, size_t size)
{
    (void)context;
    (void)size;
    free(memory);
}

TEST(vectors_come_from_zeroed_memory)
{
    tamis_allocator own = {plain_alloc, plain_free, NULL, plain_zeroed};
    for (int deletable = 0; deletable < 2; deletable++)
        for (int growth = TAMIS_FIXED; growth <= TAMIS_FLEXIBLE; growth++) {
            tamis_options o = {.growth = (tamis_growth)growth,
                               .capacity = 100000,
                               .deletable = deletable,
                               .allocator = &own};
            tamis_filter *f;
            tamis_filter_facts info;
            zeroed_bytes = 0;
            if (!CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK))
                continue;
            tamis_filter_info(f, &info);
            CHECK(zeroed_bytes >= info.bits / 8 && info.fill == 0);
            CHECK(!tamis_filter_has(f, "key", 3));
            CHECK(tamis_filter_add(f, "key", 3, NULL) == TAMIS_OK && tamis_filter_has(f, "key", 3));
            tamis_filter_free(f);
        }
}

/* ---- errors ---- */

TEST(errors_have_names_and_texts)
{
    for (int i = 0; i < TAMIS_ERROR_COUNT; i++) {
        const char *name = tamis_error_name((tamis_error)i),
                   *text = tamis_error_text((tamis_error)i);
        CHECK(strncmp(name, "TAMIS_", 6) == 0 && strlen(name) > 7);
        CHECK(strlen(text) > 3);
        for (int j = 0; j < i; j++) {
            CHECK(strcmp(name, tamis_error_name((tamis_error)j)) != 0);
            CHECK(strcmp(text, tamis_error_text((tamis_error)j)) != 0);
        }
    }
    CHECK(strcmp(tamis_error_name(TAMIS_OK), "TAMIS_OK") == 0);
    CHECK(strcmp(tamis_error_name(TAMIS_EBUSY), "TAMIS_EBUSY") == 0);
    static const int unknown[] = {-1, TAMIS_ERROR_COUNT, 1000};
    for (int i = 0; i < 3; i++) {
        CHECK(strlen(tamis_error_name((tamis_error)unknown[i])) > 0);
        CHECK(strlen(tamis_error_text((tamis_error)unknown[i])) > 0);
    }
}

HARNESS_MAIN
