/*
 * Lines of fingerprints beside a model that shares no code with them: a table of keys and how often each was
 * added. Members are found at every size, through growth, churn and shrinking; the rate is what the set says and
 * stays below the stated one; what is all removed leaves nothing.
 */
#include <math.h>
#include <pthread.h>

#include "bits/kernel.h"
#include "bits/lines.h"
#include "bits/lines_bytes.h"
#include "bits/lines_place.h"
#include "fault.h"
#include "harness.h"

static const double rates[] = {0.1, 0.01, 0.005, 0.001, 0.0001};

/* Key number i, as a digest. */
static tamis_digest digest_of(uint64_t i)
{
    uint64_t x = i * UINT64_C(0xD1342543DE82EF95) + 0x2545F4914F6CDD1D;
    x ^= x >> 32;
    x *= UINT64_C(0xDABA0B6EB09322E3);
    x ^= x >> 32;
    x *= UINT64_C(0xDABA0B6EB09322E3);
    return (tamis_digest){x ^ x >> 29, ~x};
}

static bool lines_remove(struct lines *l, tamis_digest digest)
{
    uint8_t taken;
    lines_remove_many(l, &digest, 1, &taken);
    return taken;
}

static const struct lines_kernel *const kernels[] = {&lines_scalar,
#ifdef TAMIS_X86
                                                     &lines_avx2, &lines_avx512
#endif
};

static unsigned kernels_here(void)
{
    unsigned n = sizeof kernels / sizeof *kernels;
    return min_u64(n, (unsigned)cpu_isa() + 1u);
}

/* How many of keys [from, to) are found, by every kernel alike, in batches and one by one. */
static uint64_t found_in(const struct lines *l, uint64_t from, uint64_t to)
{
    enum { RUN = 500 };
    static tamis_digest digests[RUN];
    static uint8_t found[RUN], other[RUN];
    uint64_t sum = 0;
    for (uint64_t i = from; i < to; i += RUN) {
        size_t n = min_u64(RUN, to - i);
        for (size_t j = 0; j < n; j++)
            digests[j] = digest_of(i + j);
        lines_has(l, digests, n, found);
        for (unsigned k = 0; k < kernels_here(); k++) {
            kernels[k]->has(lines_root_of(l), digests, n, other);
            CHECK_MSG(memcmp(found, other, n) == 0, "%s", kernels[k]->name);
        }
        for (size_t j = 0; j < n; j++) {
            const struct lines_kernel *kernel = kernels[(i + j) % kernels_here()];
            CHECK(kernel->has_one(lines_root_of(l), digests[j]) == (found[j] != 0));
            sum += found[j];
        }
    }
    return sum;
}

#define STRANGER (UINT64_C(1) << 40)

/* The rate for non-members, within six deviations of what the set says, and not above the stated one. */
static void check_rate(const struct lines *l, uint64_t asked, uint64_t seed)
{
    double says = lines_rate(l);
    double hits = (double)found_in(l, STRANGER + seed, STRANGER + seed + asked);
    double expected = says * (double)asked, slack = 6 * sqrt(expected + 1) + 1;
    CHECK_MSG(says <= l->fpp, "says %g, stated %g, %g keys", says, l->fpp, (double)l->keys);
    CHECK_MSG(fabs(hits - expected) <= slack, "%g found, %g expected: stated %g, %g keys", hits,
              expected, l->fpp, (double)l->keys);
}

static double bits_per_key(const struct lines *l)
{
    return 8 * (double)(l->bytes + sizeof *l) / (double)l->keys;
}

static void grow_and_shrink(double fpp, uint64_t most, double bits)
{
    struct lines l = {0};
    uint64_t n = 0;
    double worst = 0;
    CHECK(lines_init(&l, &mem_system, fpp) == TAMIS_OK);
    CHECK(found_in(&l, STRANGER, STRANGER + 1000) == 0);
    for (uint64_t check = 1; n < most;) {
        CHECK(lines_add_slowly(&l, digest_of(n), false, false) == TAMIS_OK);
        n++;
        if (n >= 1000 && n % 97 == 0 && bits_per_key(&l) > worst)
            worst = bits_per_key(&l);
        if (n == check || n == most) {
            CHECK_MSG(found_in(&l, 0, n) == n, "of %" PRIu64 " keys at %g", n, fpp);
            check_rate(&l, 200000, n * 1000000);
            check = check * 3 + 1;
        }
    }
    CHECK(l.keys == n);
    CHECK_MSG(worst <= bits, "%g bits per key at %g", worst, fpp);
    while (n) { /* the oldest go first, then the newest: what is left is coarse or fine */
        uint64_t low = n / 3;
        for (uint64_t i = 0; i < n; i++)
            if (i < low || i >= 2 * low + n % 3)
                CHECK(lines_remove(&l, digest_of(i)));
        CHECK_MSG(found_in(&l, low, 2 * low + n % 3) == low + n % 3, "left of %" PRIu64, n);
        check_rate(&l, 50000, n * 999983);
        for (uint64_t i = low; i < 2 * low + n % 3; i++)
            CHECK(lines_remove(&l, digest_of(i)));
        n = low;
        for (uint64_t i = 0; i < n; i++)
            CHECK(lines_add_slowly(&l, digest_of(i), false, false) == TAMIS_OK);
        CHECK(found_in(&l, 0, n) == n);
    }
    CHECK_MSG(l.keys == 0 && lines_rate(&l) == 0, "%g keys, rate %g, after %" PRIu64,
              (double)l.keys, lines_rate(&l), most);
    CHECK(found_in(&l, 0, 5000) + found_in(&l, STRANGER, STRANGER + 5000) == 0);
    CHECK_MSG(l.bytes < 1024, "%g bytes when empty", (double)l.bytes);
    lines_free(&l);
}

TEST(grows_and_shrinks_at_a_tenth)
{
    grow_and_shrink(0.1, HARNESS_TIMES(150000, 3000000), 24);
}

TEST(grows_and_shrinks_at_a_hundredth)
{
    grow_and_shrink(0.01, HARNESS_TIMES(600000, 10000000), 31);
}

TEST(grows_and_shrinks_at_a_thousandth)
{
    grow_and_shrink(0.001, HARNESS_TIMES(150000, 3000000), 38);
}

TEST(grows_and_shrinks_at_a_ten_thousandth)
{
    grow_and_shrink(0.0001, HARNESS_TIMES(150000, 3000000), 46);
}

/* ---- random lives ---------------------------------------------------------------------------- */

#define WORLD 3000

struct life {
    struct lines l;
    uint32_t copies[WORLD];
    uint64_t base; /* first key of the world */
    uint64_t total;
};

static tamis_error count_copies(void *context, uint64_t place, unsigned known, uint64_t copies)
{
    (void)place;
    (void)known;
    *(uint64_t *)context += copies;
    return TAMIS_OK;
}

static void life_check(const struct life *life)
{
    uint64_t copies = 0;
    CHECK(lines_each(&life->l, count_copies, &copies) == TAMIS_OK && copies == life->total);
    for (uint32_t i = 0; i < WORLD; i++)
        if (life->copies[i])
            CHECK_MSG(lines_has_one(&life->l, digest_of(life->base + i)), "key %u, %u copies", i,
                      life->copies[i]);
    CHECK(life->l.keys == life->total);
}

static void life_add(struct life *life, uint32_t i, uint32_t times)
{
    for (uint32_t t = 0; t < times; t++)
        CHECK(lines_add_slowly(&life->l, digest_of(life->base + i), false, false) == TAMIS_OK);
    life->copies[i] += times;
    life->total += times;
}

static void life_step(struct life *life, uint64_t *rng)
{
    uint64_t what = rng_next(rng) % 1000;
    uint32_t i = (uint32_t)(rng_next(rng) % WORLD);
    if (what < 500) {
        life_add(life, i, 1);
    } else if (what < 980) {
        if (!life->copies[i])
            return;
        CHECK(lines_remove(&life->l, digest_of(life->base + i)));
        life->copies[i]--;
        life->total--;
    } else if (what < 990) {
        life_add(life, i, 1 + (uint32_t)(rng_next(rng) % 60));
    } else if (what == 990) {
        life_add(life, i, 5000 + (uint32_t)(rng_next(rng) % 5000)); /* past what a stash counts */
    } else if (what < 994) { /* a burst of others, which come and go */
        uint64_t n = rng_next(rng) % 60000, from = STRANGER * 2 + rng_next(rng) % STRANGER;
        for (uint64_t j = 0; j < n; j++)
            CHECK(lines_add_slowly(&life->l, digest_of(from + j), false, false) == TAMIS_OK);
        for (uint64_t j = 0; j < n; j++)
            CHECK(lines_remove(&life->l, digest_of(from + j)));
    } else if (what < 997) {
        struct lines copy;
        CHECK(lines_clone(&copy, &life->l, &mem_system) == TAMIS_OK);
        CHECK(lines_equal(&copy, &life->l) && copy.keys == life->l.keys);
        CHECK_MSG(copy.bytes <= life->l.bytes, "%g of %g", (double)copy.bytes,
                  (double)life->l.bytes);
        CHECK(lines_add_slowly(&copy, digest_of(STRANGER), false, false) == TAMIS_OK &&
              !lines_equal(&copy, &life->l));
        CHECK(lines_remove(&copy, digest_of(STRANGER)));
        lines_free(&life->l);
        life->l = copy;
    } else { /* all of it in a set that has another size */
        struct lines other = {0};
        uint64_t n = rng_next(rng) % 3000, from = STRANGER * 3;
        CHECK(lines_init(&other, &mem_system, life->l.fpp) == TAMIS_OK);
        for (uint64_t j = 0; j < n; j++)
            CHECK(lines_add_slowly(&other, digest_of(from + j), false, false) == TAMIS_OK);
        CHECK(lines_unite(&other, &life->l) == TAMIS_OK && other.keys == n + life->total);
        for (uint64_t j = 0; j < n; j++)
            CHECK(lines_remove(&other, digest_of(from + j)));
        lines_free(&life->l);
        life->l = other;
    }
}

static void live(double fpp, uint64_t seed, unsigned steps)
{
    static struct life life;
    uint64_t rng = seed;
    life = (struct life){.base = rng_next(&rng) >> 30};
    CHECK(lines_init(&life.l, &mem_system, fpp) == TAMIS_OK);
    for (unsigned i = 0; i < steps; i++) {
        life_step(&life, &rng);
        if (i % 500 == 0)
            life_check(&life);
    }
    life_check(&life);
    CHECK(lines_rate(&life.l) < 1);
    for (uint32_t i = 0; i < WORLD; i++)
        for (; life.copies[i]; life.copies[i]--)
            CHECK(lines_remove(&life.l, digest_of(life.base + i)));
    CHECK(life.l.keys == 0 && lines_rate(&life.l) == 0);
    CHECK(found_in(&life.l, life.base, life.base + WORLD) == 0);
    lines_free(&life.l);
}

TEST(random_lives)
{
    uint64_t rng = harness_seed();
    unsigned steps = HARNESS_TIMES(6000, 2500000);
    for (unsigned i = 0; i < 5; i++)
        live(rates[i], rng_next(&rng), steps);
}

/* ---- small ones ------------------------------------------------------------------------------ */

TEST(small_sets_are_small)
{
    struct lines l = {0};
    CHECK(lines_init(&l, &mem_system, 0.01) == TAMIS_OK);
    for (uint64_t i = 0; i < 10; i++)
        CHECK(lines_add_slowly(&l, digest_of(i), false, false) == TAMIS_OK);
    CHECK_MSG(l.bytes <= 128, "%g bytes for ten keys", (double)l.bytes);
    double worst = 0;
    for (uint64_t i = 10; i < 1200; i++) {
        CHECK(lines_add_slowly(&l, digest_of(i), false, false) == TAMIS_OK);
        if (i >= 999 && bits_per_key(&l) > worst)
            worst = bits_per_key(&l);
    }
    CHECK_MSG(worst <= 30, "%g bits per key at 1,000 keys", worst);
    lines_free(&l);
}

/* ---- batches --------------------------------------------------------------------------------- */

/* Adds and removals in batches beside those one by one: the same answers, the same entries. */
static void change_in_batches(const struct lines_kernel *kernel, double fpp, bool once,
                              uint64_t most, uint64_t seed)
{
    enum { RUN = 700 };
    static tamis_digest digests[RUN];
    static uint8_t fresh[RUN], taken[RUN];
    struct lines many = {0}, one = {0};
    uint64_t rng = seed;
    CHECK(lines_init(&many, &mem_system, fpp) == TAMIS_OK &&
          lines_init(&one, &mem_system, fpp) == TAMIS_OK);
    for (uint64_t done = 0; done < most;) {
        size_t n = 1 + rng_next(&rng) % RUN, added;
        for (size_t i = 0; i < n; i++) /* one in eight comes again */
            digests[i] = digest_of(rng_next(&rng) % 8 ? done + i : rng_next(&rng) % (done + i + 1));
        CHECK(kernel->add(&many, digests, n, once, fresh, &added) == TAMIS_OK && added == n);
        for (size_t i = 0; i < n; i++) {
            bool found = lines_has_one(&one, digests[i]);
            CHECK_MSG(fresh[i] == !found, "%s: key %zu after %" PRIu64, kernel->name, i, done);
            if (!found || !once)
                CHECK(lines_add_slowly(&one, digests[i], false, !found) == TAMIS_OK);
        }
        done += n;
    }
    CHECK(many.keys == one.keys && lines_equal(&many, &one));
    CHECK(lines_rate(&many) == lines_rate(&one));
    for (uint64_t done = 0; done < most; done += RUN) { /* some twice, some that were never there */
        for (size_t i = 0; i < RUN; i++)
            digests[i] = digest_of(rng_next(&rng) % 8 ? done + i : rng_next(&rng) % (2 * most));
        kernel->take(&many, digests, RUN, taken);
        for (size_t i = 0; i < RUN; i++) {
            bool there = lines_take_slowly(&one, digests[i]);
            one.keys -= there; /* the kernels count */
            CHECK_MSG(taken[i] == there, "%s: key %zu of %" PRIu64 " removed", kernel->name, i,
                      done);
        }
    }
    CHECK(many.keys == one.keys && lines_equal(&many, &one));
    lines_free(&many);
    lines_free(&one);
}

TEST(batches_do_what_single_keys_do)
{
    for (unsigned k = 0; k < kernels_here(); k++)
        for (unsigned i = 0; i < 5; i++)
            for (int once = 0; once < 2; once++)
                change_in_batches(kernels[k], rates[i], once, HARNESS_TIMES(60000, 2000000),
                                  harness_seed() + i);
}

/* Through all widths that the rate asks for. */
static void rate_while_growing(double fpp, uint64_t most)
{
    enum { RUN = 1000 };
    static tamis_digest digests[RUN];
    static uint8_t fresh[RUN];
    struct lines l = {0};
    size_t done;
    CHECK(lines_init(&l, &mem_system, fpp) == TAMIS_OK);
    for (uint64_t n = 0, check = 100 * RUN; n < most;) {
        for (size_t i = 0; i < RUN; i++)
            digests[i] = digest_of(n + i);
        CHECK(lines_add_many(&l, digests, RUN, true, fresh, &done) == TAMIS_OK);
        n += RUN;
        CHECK_MSG(lines_rate(&l) <= fpp, "says %g, stated %g, %g keys", lines_rate(&l), fpp,
                  (double)n);
        if (n < check)
            continue;
        check_rate(&l, 200000, n);
        check *= 5;
    }
    lines_free(&l);
}

TEST(rate_holds_at_every_size)
{
    for (unsigned i = 0; i < 5; i++)
        rate_while_growing(rates[i], HARNESS_TIMES(2500000, 50000000));
}

/* Entries of 14 bits are coarse when the set has grown by nine doublings, and then their slots match more keys than the
   entries do. At 10 % the rate holds at 130,000,000 keys too, where the lines of all parts are of a number for which this
   is much, and the set says what it is. */
TEST(rate_holds_when_entries_become_coarse)
{
    enum { RUN = 1000 };
    static tamis_digest digests[RUN];
    static uint8_t fresh[RUN];
    struct lines l = {0};
    size_t done;
    uint64_t most = HARNESS_TIMES(2500000, 130000000);
    CHECK(lines_init(&l, &mem_system, 0.1) == TAMIS_OK);
    for (uint64_t n = 0; n < most; n += RUN) {
        for (size_t i = 0; i < RUN; i++)
            digests[i] = digest_of(n + i);
        CHECK(lines_add_many(&l, digests, RUN, false, fresh, &done) == TAMIS_OK);
    }
    double hits = (double)found_in(&l, STRANGER, STRANGER + 1000000), says = lines_rate(&l);
    CHECK_MSG(hits <= 1e5 + 6 * sqrt(1e5), "%g of 10^6 found", hits);
    CHECK_MSG(says < 0.08, "says %g", says);
    CHECK_MSG(hits <= says * 1e6 + 6 * sqrt(says * 1e6), "%g found, says %g", hits, says);
    lines_free(&l);
}

/* What kernels say of a full line. */
TEST(kernels_agree_on_the_greatest_slot)
{
    uint64_t rng = harness_seed();
    for (unsigned step = 0; step < 4000; step++) {
        _Alignas(64) uint8_t line[LINE_BYTES] = {0};
        static const unsigned widths[] = {14, 16, 18, 20, 24};
        unsigned width = widths[step % 5], slots = line_slots(width);
        for (unsigned i = 0; i < slots; i++) {
            uint32_t slot = (uint32_t)rng_next(&rng) & slot_ones(width) >> rng_next(&rng) % 8;
            slot_put(line, width, i, slot ? slot : 1);
        }
        line_set_bound(line, width, (uint32_t)rng_next(&rng) & slot_ones(width));
        uint32_t most = 0; /* of the same order, the one with more unknown bits */
        for (unsigned i = 0; i < slots; i++) {
            uint32_t slot = slot_get(line, width, i), order = slot_order(slot);
            if (order > slot_order(most) || (order == slot_order(most) && slot > most))
                most = slot;
        }
        for (unsigned k = 0; k < kernels_here(); k++) {
            unsigned at = kernels[k]->greatest(line, width);
            CHECK_MSG(at < slots && slot_get(line, width, at) == most, "%s, width %u",
                      kernels[k]->name, width);
        }
    }
}

/* Rebuilds included: what an add costs does not grow with the set. */
COST(adds_cost_the_same_at_every_size, 800000)
{
    struct lines l = {0};
    uint8_t fresh[1000];
    tamis_digest digests[1000];
    size_t done;
    CHECK(lines_init(&l, &mem_system, 0.01) == TAMIS_OK);
    for (uint64_t i = 0; i < n; i += 1000) {
        for (uint64_t j = 0; j < 1000; j++)
            digests[j] = digest_of(i + j);
        CHECK(lines_add_many(&l, digests, 1000, true, fresh, &done) == TAMIS_OK);
    }
    lines_free(&l);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* What the set says it has is what its allocator gave, within what a block of lines is aligned by. */
TEST(bytes_are_those_of_the_allocator)
{
    struct fault fault;
    struct lines l = {0};
    fault_init(&fault);
    CHECK(lines_init(&l, &fault.allocator, 0.01) == TAMIS_OK);
    for (uint64_t i = 0; i < 300000; i++) {
        CHECK(lines_add_slowly(&l, digest_of(i), false, false) == TAMIS_OK);
        if (i % 1000 == 0)
            CHECK_MSG(l.bytes <= fault.bytes && fault.bytes - l.bytes <= 64 * fault.blocks,
                      "%g of %g bytes", (double)l.bytes, (double)fault.bytes);
    }
    lines_free(&l);
    CHECK(fault_clean(&fault));
}

/* Of the system's memory too: pages of arenas are counted whole, and given back. */
TEST(arenas_are_counted)
{
    struct lines l = {0};
    CHECK(lines_init(&l, &mem_system, 0.01) == TAMIS_OK);
    uint64_t n = harness_long() ? 20000000 : 700000;
    double worst = 0;
    for (uint64_t i = 0; i < n; i++) {
        CHECK(lines_add_slowly(&l, digest_of(i), false, true) == TAMIS_OK);
        if (i > 100000 && i % 1000 == 0 && bits_per_key(&l) > worst)
            worst = bits_per_key(&l);
        if (l.memory)
            CHECK(l.memory->counted >= l.memory->small.mapped + l.memory->large.mapped &&
                  l.bytes > l.memory->counted);
    }
    CHECK_MSG(l.memory && worst < 28, "%g bits per key", worst);
    for (uint64_t i = 0; i < n; i++)
        CHECK(lines_remove(&l, digest_of(i)));
    CHECK(!l.memory && l.bytes < 1024);
    lines_free(&l);
}

/* Keys that somebody chose to lie in few lines: what is added is found, and can be loaded again. In fewer lines still
   their entries would be copies of each other, which are only counted. */
TEST(crowded_lines_are_refused_before_they_cannot_be_read)
{
    enum { KEYS = 20000 };
    struct lines l = {0};
    tamis_error e = TAMIS_OK;
    uint64_t n = 0;
    CHECK(lines_init(&l, &mem_system, 0.01) == TAMIS_OK);
    for (; n < KEYS && e == TAMIS_OK; n += e == TAMIS_OK)
        e = lines_add_slowly(&l, (tamis_digest){digest_of(n).a >> 10, 0}, false, false);
    CHECK_MSG(e == TAMIS_ELIMIT && l.keys == n, "error %d after %g keys", (int)e, (double)n);
    for (uint64_t i = 0; i < n; i++)
        CHECK(lines_has_one(&l, (tamis_digest){digest_of(i).a >> 10, 0}));
    for (uint32_t i = 0; i < lines_parts(&l); i++)
        CHECK_MSG(!part_wrong(lines_part(&l, i)), "%s", part_wrong(lines_part(&l, i)));
    CHECK(lines_add_slowly(&l, digest_of(0), false, false) == TAMIS_OK &&
          lines_remove(&l, digest_of(0)));
    for (uint64_t i = 0; i < n; i++)
        CHECK(lines_remove(&l, (tamis_digest){digest_of(i).a >> 10, 0}));
    CHECK(l.keys == 0);
    lines_free(&l);
}

/* How many slots of a part are in their line more than once? */
static unsigned slots_twice(const struct body *b)
{
    unsigned twice = 0;
    for (uint64_t line = 0; line < b->lines; line++)
        for (unsigned i = 1; i < line_slots(b->width); i++)
            for (unsigned j = 0; j < i; j++) {
                uint32_t slot = slot_get(body_line(b, line), b->width, i);
                twice += slot && slot == slot_get(body_line(b, line), b->width, j);
            }
    return twice;
}

/* At 5 %, parts have slots of 16 bits, and of 14 from some 130,000 keys on. There, an entry may become that of the key
   which makes its part grow. In its line twice, it would leave a wrong sum when both are removed, and the bytes of
   the set could not be read. */
TEST(parts_that_keep_fewer_bits_have_no_slot_twice)
{
    enum { KEYS = 157000 };
    for (uint64_t life = 0; life < HARNESS_TIMES(40, 400); life++) {
        struct lines l = {0};
        uint64_t first = (harness_seed() + life) << 32;
        CHECK(lines_init(&l, &mem_system, 0.05) == TAMIS_OK);
        for (uint64_t i = first; i < first + KEYS; i++)
            CHECK(lines_add_slowly(&l, digest_of(i), false, !lines_has_one(&l, digest_of(i))) ==
                  TAMIS_OK);
        CHECK(part_facts(lines_part(&l, 0)).width == 14);
        for (uint32_t i = 0; i < lines_parts(&l); i++)
            CHECK(slots_twice(lines_part(&l, i)) == 0);
        lines_free(&l);
    }
}

/* All that a set has of the allocator, in bits per key, at sizes that are a 20th apart. At 1 %, sets of less than 10^5
   keys have wider slots and take more: on average up to 10^8 keys it is 24 bits. At 10 % and 0.1 %, 14 and 20 bits suffice at all sizes. */
TEST(bits_per_key_at_every_size)
{
    static const struct {
        double fpp, worst, average;
    } table[] = {{0.01, 26.6, 24.2}, {0.1, 21.5, 19.4}, {0.001, 31.5, 29.2}, {0.0001, 39.5, 36.3}};
    unsigned rows = harness_long() ? sizeof table / sizeof *table : 1;
    for (unsigned i = 0; i < rows; i++) {
        struct lines l = {0};
        double sum = 0, worst = 0, n = 0;
        uint64_t at = 0;
        CHECK(lines_init(&l, &mem_system, table[i].fpp) == TAMIS_OK);
        bool far = i == 0 && harness_long();
        for (double next = 1000; next < (far ? 1e8 : 3e6); next *= 1.05, n++) {
            while (at < (uint64_t)next) {
                tamis_digest digests[256];
                uint8_t fresh[256];
                size_t some = min_u64((uint64_t)next - at, 256), done;
                for (size_t j = 0; j < some; j++)
                    digests[j] = digest_of(at++);
                CHECK(lines_add_many(&l, digests, some, false, fresh, &done) == TAMIS_OK);
            }
            double bits = 8 * (double)(l.bytes + sizeof l) / (double)at;
            sum += bits;
            worst = bits > worst ? bits : worst;
        }
        CHECK_MSG(worst <= (far ? 29 : table[i].worst) && sum / n <= (far ? 24 : table[i].average),
                  "at %g: %.2f bits per key on average, %.2f at worst", table[i].fpp, sum / n,
                  worst);
        lines_free(&l);
    }
}

/* What was in arenas is gone, and the small part that is left is not in them. */
TEST(a_large_set_can_be_cleared)
{
    struct lines l = {0};
    CHECK(lines_init(&l, &mem_system, 0.01) == TAMIS_OK);
    uint64_t empty = l.bytes;
    for (unsigned round = 0; round < 2; round++) {
        for (uint64_t i = 0; i < 400000; i++)
            CHECK(lines_add_slowly(&l, digest_of(i), false, false) == TAMIS_OK);
        CHECK(l.memory && found_in(&l, 0, 400000) == 400000);
        lines_clear(&l);
        CHECK(l.keys == 0 && l.bytes == empty && found_in(&l, 0, 1000) == 0);
    }
    lines_free(&l);
}

/* The first part of a file may have more bytes than the allocator takes from its heap. */
TEST(a_large_part_can_be_loaded)
{
    struct lines l = {0};
    struct part_facts facts = {.lines = 1 << 16, .width = 16};
    CHECK(lines_begin(&l, &mem_system, 0.01, 16, 1) == TAMIS_OK);
    CHECK(lines_append(&l, 0, &facts, NULL, NULL));
    CHECK(l.bytes > (uint64_t)LINE_BYTES << 16);
    for (uint64_t i = 0; i < 1000; i++)
        CHECK(lines_add_slowly(&l, digest_of(i), false, false) == TAMIS_OK);
    CHECK(found_in(&l, 0, 1000) == 1000);
    lines_free(&l);
}

TEST(without_memory_nothing_changes)
{
    struct fault fault;
    struct lines l = {0};
    fault_init(&fault);
    CHECK(lines_init(&l, &fault.allocator, 0.01) == TAMIS_OK);
    uint64_t n = 0, refused = 0;
    while (n < 60000) {
        double rate = lines_rate(&l);
        fault_arm(&fault, 1 + n % 3, true);
        tamis_error e = lines_add_slowly(&l, digest_of(n), false, false);
        fault_arm(&fault, 0, false);
        if (e == TAMIS_OK) {
            n++;
            continue;
        }
        refused++;
        CHECK(e == TAMIS_ENOMEM && l.keys == n && lines_rate(&l) == rate);
        CHECK(n % 10 || found_in(&l, 0, n) == n);
        CHECK(lines_add_slowly(&l, digest_of(n), false, false) == TAMIS_OK);
        n++;
    }
    CHECK_MSG(refused > 50, "%g refused", (double)refused);
    CHECK(found_in(&l, 0, n) == n);
    for (uint64_t i = 0; i < n; i++) { /* removal goes on without memory */
        fault_arm(&fault, 1 + i % 4, true);
        CHECK(lines_remove(&l, digest_of(i)));
    }
    fault_arm(&fault, 0, false);
    CHECK(l.keys == 0 && found_in(&l, 0, n) == 0);
    lines_free(&l);
    CHECK(fault_clean(&fault));
}

/* ---- threads --------------------------------------------------------------------------------- */

struct side {
    struct lines l;
    _Atomic uint64_t n;
    atomic_bool stop;
    _Atomic uint64_t denied, asked;
};

static void *ask_along(void *context)
{
    struct side *s = context;
    uint64_t rng = 1;
    while (!atomic_load(&s->stop)) {
        uint64_t n = atomic_load(&s->n), some = min_u64(n, 200);
        tamis_digest digests[200];
        uint8_t found[200];
        for (uint64_t i = 0; i < some; i++)
            digests[i] = digest_of(rng_next(&rng) % n);
        uint64_t inside = readers_enter();
        lines_has(&s->l, digests, some, found);
        for (uint64_t i = 0; i < some; i++)
            atomic_fetch_add(&s->denied, !found[i] || !lines_has_one(&s->l, digests[i]));
        readers_leave(inside);
        atomic_fetch_add(&s->asked, some);
    }
    return NULL;
}

static void grow_beside_readers(double fpp, uint64_t most)
{
    static struct side s;
    pthread_t thread[2];
    memset(&s, 0, sizeof s);
    CHECK(lines_init(&s.l, &mem_system, fpp) == TAMIS_OK);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&thread[i], NULL, ask_along, &s) == 0);
    for (uint64_t i = 0; i < most; i++) {
        CHECK(lines_add_slowly(&s.l, digest_of(i), false, false) == TAMIS_OK);
        atomic_store(&s.n, i + 1);
        if (i % 1000 == 999) /* readers get their turn */
            for (uint64_t before = atomic_load(&s.asked); atomic_load(&s.asked) == before;)
                sched_yield();
    }
    atomic_store(&s.stop, true);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    CHECK_MSG(atomic_load(&s.denied) == 0, "%g of %g", (double)atomic_load(&s.denied),
              (double)atomic_load(&s.asked));
    lines_reclaim(&s.l, false);
    CHECK(!s.l.retired);
    lines_free(&s.l);
}

TEST(readers_beside_growth)
{
    for (unsigned i = 0; i < 5; i++)
        grow_beside_readers(rates[i], HARNESS_TIMES(60000, 1000000));
}

HARNESS_MAIN
