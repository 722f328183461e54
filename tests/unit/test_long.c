/*
 * More than 2^32 bits. Only in a long run: 600 million keys take 750 MB and some minutes. Under the
 * sanitizers a few million keys go into vectors of the same size.
 */
#include "harness.h"
#include "tamis.h"

#include <math.h>

#ifdef HARNESS_SANITIZED
#define SHARE 100
#else
#define SHARE 1
#endif

#define CHUNK 8192

static const uint64_t strangers = UINT64_C(1) << 48; /* from here on, keys that nobody adds */

static void digest_range(const tamis_filter *f, uint64_t first, size_t n, tamis_digest *out)
{
    static uint64_t keys[CHUNK];
    for (size_t i = 0; i < n; i++)
        keys[i] = first + i;
    tamis_filter_digest_fixed(f, keys, sizeof *keys, n, out);
}

static void add_range(tamis_filter *f, uint64_t n)
{
    static tamis_digest digests[CHUNK];
    for (uint64_t i = 0; i < n; i += CHUNK) {
        size_t some = n - i < CHUNK ? (size_t)(n - i) : CHUNK;
        digest_range(f, i, some, digests);
        CHECK(tamis_filter_add_many(f, digests, some, NULL, NULL) == TAMIS_OK);
    }
}

/* How many of the chunks that begin at first, first + step ... have their keys found. */
static uint64_t count_range(const tamis_filter *f, uint64_t first, uint64_t step, unsigned chunks)
{
    static tamis_digest digests[CHUNK];
    static uint8_t found[CHUNK];
    uint64_t all = 0;
    for (unsigned i = 0; i < chunks; i++) {
        digest_range(f, first + i * step, CHUNK, digests);
        tamis_filter_has_many(f, digests, CHUNK, found);
        for (size_t j = 0; j < CHUNK; j++)
            all += found[j];
    }
    return all;
}

static void large(tamis_layout layout, uint64_t capacity)
{
    enum { MEMBERS = 128, ASKED = 256 }; /* chunks: a million members, two million non-members */
    tamis_options o = {.growth = TAMIS_FIXED, .layout = layout, .fpp = 0.01, .capacity = capacity};
    tamis_filter *f;
    tamis_filter_facts info;
    tamis_reason reason = {.text = ""};
    if (!harness_long())
        return;
    if (!CHECK_MSG(tamis_filter_new(&f, &o, &reason) == TAMIS_OK, "%s", reason.text))
        return;
    double start = harness_now();
    uint64_t n = capacity / SHARE;
    add_range(f, n);
    double added = harness_now();
    tamis_filter_info(f, &info);
    CHECK(info.bits > UINT64_C(1) << 32);
    uint64_t found = count_range(f, 0, (n - CHUNK) / (MEMBERS - 1), MEMBERS);
    CHECK_MSG(found == MEMBERS * CHUNK, "%" PRIu64 " members denied", MEMBERS * CHUNK - found);
    double asked = (double)ASKED * CHUNK;
    double rate = (double)count_range(f, strangers, CHUNK, ASKED) / asked;
    double sigma = sqrt(0.01 * 0.99 / asked);
    CHECK_MSG(rate <= 0.01 + 6 * sigma, "measured %g", rate);
    CHECK_MSG(fabs(rate - info.fpp_now) <= 6 * sigma + 0.03 * info.fpp_now, "measured %g, said %g",
              rate, info.fpp_now);
    CHECK_MSG(fabs(info.distinct / (double)n - 1) < 1e-3, "%g keys estimated", info.distinct);
    if (SHARE == 1)
        CHECK_MSG(rate >= 0.0095, "measured %g", rate); /* all positions are in use */
    printf("  %s: %" PRIu64 " keys, %" PRIu64 " bits, rate %.5f, said %.5f; %.0f ns per add\n",
           layout == TAMIS_SPREAD ? "spread" : "blocked", n, info.bits, rate, info.fpp_now,
           (added - start) / (double)n * 1e9);
    tamis_filter_free(f);
}

TEST(blocked_600_million)
{
    large(TAMIS_BLOCKED, 600000000);
}

TEST(spread_600_million)
{
    large(TAMIS_SPREAD, 600000000);
}

HARNESS_MAIN
