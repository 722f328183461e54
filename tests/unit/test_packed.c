/* Packed fingerprints against a plain list of prefixes. */
#include "base/bytes.h"
#include "bits/packed.h"
#include "fault.h"
#include "harness.h"

enum { MOST = 3000 };

struct entry {
    uint64_t place;
    unsigned known;
};

struct model {
    struct entry entry[MOST];
    unsigned n, at;
};

static uint64_t cut(uint64_t place, unsigned known)
{
    return place >> (64 - known) << (64 - known);
}

static bool model_has(const struct model *m, uint64_t place)
{
    for (unsigned i = 0; i < m->n; i++)
        if (cut(place, m->entry[i].known) == m->entry[i].place)
            return true;
    return false;
}

static tamis_error compare(void *model, uint64_t place, unsigned known, uint64_t copies)
{
    struct model *m = model;
    bool same = m->at < m->n && m->entry[m->at].place == place && m->entry[m->at].known == known;
    m->at++;
    return CHECK(same && copies == 1) ? TAMIS_OK : TAMIS_EFORMAT;
}

/* By places; of two in one quotient, the middles of what they match. */
static int by_place(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    uint64_t p = x->place | UINT64_C(1) << (63 - x->known), q = y->place | UINT64_C(1)
                                                                               << (63 - y->known);
    return (p > q) - (p < q);
}

static void check_same(const struct packed *p, struct model *m)
{
    qsort(m->entry, m->n, sizeof *m->entry, by_place);
    m->at = 0;
    CHECK(packed_each(p, compare, m) == TAMIS_OK && m->at == m->n && p->n == m->n);
}

/* As kept and put back, and as copied. */
static void check_copies(const struct packed *p, struct model *m)
{
    size_t len = packed_len(p);
    uint8_t *bytes = malloc(2 * len);
    packed_put(p, bytes);
    struct packed *back = packed_get(&mem_system, bytes, len), *copy = packed_copy(p, &mem_system);
    if (CHECK(back && copy)) {
        check_same(back, m);
        check_same(copy, m);
        CHECK(back->bytes == p->bytes && packed_len(back) == len);
        packed_put(back, bytes + len);
        CHECK(memcmp(bytes, bytes + len, len) == 0);
    }
    CHECK(!packed_get(&mem_system, bytes, len - 1));
    packed_free(back, &mem_system);
    packed_free(copy, &mem_system);
    free(bytes);
}

/* Few known bits, so that many keys are found that were never added; and each step that a set can take. */
TEST(sets_of_pages_are_like_a_list_of_prefixes)
{
    uint64_t rng = harness_seed();
    for (unsigned round = 0; round < HARNESS_TIMES(40, 400); round++) {
        unsigned quotient = 3 + 5 * (round % 2), known = 13 + (unsigned)(rng_next(&rng) % 6);
        struct packed *p = packed_new(&mem_system, 3, known);
        struct model *m = calloc(1, sizeof *m);
        unsigned most = 1 + (unsigned)(rng_next(&rng) % MOST);
        while (m->n < most) {
            uint64_t place = rng_next(&rng);
            bool due = p->n >= packed_room(p);
            if (due || rng_next(&rng) % 300 == 0) {
                unsigned more = known < 20 && !due;
                if (packed_renew(&p, &mem_system, UINT64_MAX, quotient, known + more) != PACKED_NEW)
                    break;
                known += more;
                check_same(p, m);
                continue;
            }
            bool there = model_has(m, place);
            CHECK(packed_has(p, place) == there);
            CHECK(packed_add(p, &mem_system, UINT64_MAX, place) ==
                  (there ? PACKED_OLD : PACKED_NEW));
            CHECK(packed_has(p, place));
            if (!there)
                m->entry[m->n++] = (struct entry){cut(place, known), known};
        }
        CHECK(m->n > most / 2 || m->n > 500);
        check_same(p, m);
        check_copies(p, m);
        packed_free(p, &mem_system);
        free(m);
    }
}

/* A page of any form becomes a set. */
TEST(pages_become_sets)
{
    uint64_t rng = harness_seed();
    for (unsigned quotient = 0; quotient <= 8; quotient++) {
        struct page_form form = {(uint8_t)quotient, (uint8_t)(17 - quotient), false};
        uint32_t most = quotient ? UINT32_C(1) << quotient : 4;
        uint64_t *page = calloc(page_words(form, most), sizeof *page);
        struct model *m = calloc(1, sizeof *m);
        while (m->n < most) {
            struct page_at at;
            uint64_t place = rng_next(&rng);
            bool there = page_find(page, m->n, form, place >> 47, &at);
            CHECK(there == model_has(m, place));
            if (there)
                continue;
            uint32_t words = page_words(form, m->n + 1);
            uint64_t *wider = calloc(words, sizeof *wider);
            if (words > page_words(form, m->n))
                page_widen(wider, page, m->n, form);
            else
                memcpy(wider, page, words * sizeof *wider);
            page_insert(wider, m->n, form, place >> 47, at);
            free(page);
            page = wider;
            m->entry[m->n++] = (struct entry){cut(place, 17), 17};
            CHECK(page_valid(page, m->n, form));
        }
        qsort(m->entry, m->n, sizeof *m->entry, by_place);
        m->at = 0;
        CHECK(page_each(page, m->n, form, compare, m) == TAMIS_OK && m->at == m->n);
        struct packed *p = NULL;
        CHECK(packed_of_page(&mem_system, page, m->n, form, 7, 19, &p) == PACKED_NEW);
        check_same(p, m);
        for (uint64_t i = 0; i < 2000; i++) {
            uint64_t place = i << 52 | rng_next(&rng) >> 12;
            CHECK(packed_has(p, place) == model_has(m, place));
        }
        packed_free(p, &mem_system);
        free(page);
        free(m);
    }
}

/* Whatever bit is wrong, what is read is refused or is some set: nothing else is read or written. */
TEST(damaged_bytes_are_refused_or_another_set)
{
    uint64_t rng = harness_seed();
    struct packed *p = packed_new(&mem_system, 3, 16);
    for (unsigned i = 0; i < 300; i++) {
        if (p->n >= packed_room(p) || i == 40)
            CHECK(packed_renew(&p, &mem_system, UINT64_MAX, 7, 16 + (i >= 40)) == PACKED_NEW);
        packed_add(p, &mem_system, UINT64_MAX, rng_next(&rng));
    }
    size_t len = packed_len(p), refused = 0;
    uint8_t *bytes = malloc(len);
    packed_put(p, bytes);
    for (size_t bit = 0; bit < 8 * len; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        struct packed *other = packed_get(&mem_system, bytes, len);
        refused += !other;
        if (other)
            CHECK(packed_len(other) == len);
        packed_free(other, &mem_system);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    CHECK_MSG(refused > 8 * 20, "%zu", refused);
    for (size_t less = 0; less < len; less++)
        CHECK(!packed_get(&mem_system, bytes, less));
    packed_free(p, &mem_system);
    free(bytes);
}

/* Foreign bytes may state the longest entries, and as many of them as a page may have; what they are is random, or an
   empty page whose entries are all zero. */
TEST(the_largest_pages_of_foreign_bytes)
{
    uint64_t rng = harness_seed();
    for (unsigned known = 1; known <= 41; known++)
        for (unsigned form = 0; form < 2 * 10 * 3; form++) {
            uint8_t marked = form % 2, quotient = form / 2 % 10, depth = (uint8_t)(form / 20);
            size_t pages = (size_t)1 << depth, words = 0;
            if (known + marked > (unsigned)quotient + depth)
                words = page_words((struct page_form){quotient,
                                                      (uint8_t)(known + marked - quotient - depth),
                                                      marked},
                                   PACKED_MOST);
            size_t len = 4 + (4 + 8 * words) * pages;
            uint8_t *bytes = calloc(1, len);
            memcpy(bytes, (uint8_t[]){(uint8_t)known, depth, marked, quotient}, 4);
            for (size_t i = 0; i < pages; i++)
                put_u32(bytes + 4 + 4 * i, PACKED_MOST);
            for (size_t i = 4 + 4 * pages; i < len && form % 3; i++)
                bytes[i] = (uint8_t)rng_next(&rng);
            packed_free(packed_get(&mem_system, bytes, len), &mem_system);
            free(bytes);
        }
}

TEST(chosen_keys_crowd_a_page)
{
    struct packed *p = packed_new(&mem_system, 8, 30);
    enum packed_added e = PACKED_NEW;
    uint64_t n = 0;
    for (; e == PACKED_NEW; n++)
        e = packed_add(p, &mem_system, UINT64_MAX, n << 40);
    CHECK(e == PACKED_CROWDED && p->n == PACKED_MOST);
    for (uint64_t i = 0; i + 1 < n; i++)
        CHECK(packed_has(p, i << 40));
    packed_free(p, &mem_system);
}

/* An entry that knows 9 bits cannot be in pages that are chosen by 2, and have 8 bits of quotients. */
TEST(entries_that_know_too_few_bits_stay_in_few_pages)
{
    uint64_t rng = harness_seed();
    struct packed *p = packed_new(&mem_system, 8, 9);
    CHECK(packed_add(p, &mem_system, UINT64_MAX, 0) == PACKED_NEW);
    CHECK(packed_renew(&p, &mem_system, UINT64_MAX, 8, 24) == PACKED_NEW);
    enum packed_added e = PACKED_NEW;
    while (e == PACKED_NEW) {
        while (p->n < packed_room(p))
            packed_add(p, &mem_system, UINT64_MAX, rng_next(&rng));
        e = packed_renew(&p, &mem_system, UINT64_MAX, 8, 24);
    }
    CHECK(e == PACKED_CROWDED && p->depth == 1 && p->n == packed_room(p));
    CHECK(packed_has(p, UINT64_C(1) << 54) && packed_has(p, 0));
    packed_free(p, &mem_system);
}

TEST(without_memory_nothing_changes)
{
    struct fault fault;
    uint64_t rng = harness_seed(), failed = 0;
    fault_init(&fault);
    struct packed *p = packed_new(&fault.allocator, 3, 18);
    struct model *m = calloc(1, sizeof *m);
    for (unsigned i = 0; i < 400; i++) {
        uint64_t place = rng_next(&rng);
        enum packed_added e = PACKED_NO_MEMORY;
        for (unsigned at = 1; p->n >= packed_room(p) && e == PACKED_NO_MEMORY; at++) {
            fault_arm(&fault, at, false);
            e = packed_renew(&p, &fault.allocator, UINT64_MAX, 5, 18 + i / 200);
            fault_arm(&fault, 0, false);
            failed += e == PACKED_NO_MEMORY;
            check_same(p, m);
        }
        fault_arm(&fault, 1, false);
        e = packed_add(p, &fault.allocator, UINT64_MAX, place);
        fault_arm(&fault, 0, false);
        if (e == PACKED_NO_MEMORY) {
            failed++;
            check_same(p, m);
            e = packed_add(p, &fault.allocator, UINT64_MAX, place);
        }
        if (e == PACKED_NEW)
            m->entry[m->n++] = (struct entry){cut(place, p->known), p->known};
    }
    for (unsigned at = 1; at < 40; at++) {
        fault_arm(&fault, at, false);
        struct packed *copy = packed_copy(p, &fault.allocator);
        fault_arm(&fault, 0, false);
        failed += !copy;
        packed_free(copy, &fault.allocator);
    }
    CHECK(failed > 20);
    packed_free(p, &fault.allocator);
    CHECK(fault_clean(&fault));
    free(m);
}

HARNESS_MAIN
