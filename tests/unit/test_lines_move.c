/*
 * Moving whole parts into bodies of another size, by every kernel that this processor has, beside a plain model: each
 * entry of the old part is in its line of the new body, or was given to the caller because it does not fit there.
 */
#include "bits/kernel.h"
#include "bits/lines.h"
#include "bits/lines_place.h"
#include "harness.h"

struct rest {
    uint64_t *key;
    size_t n, room;
};

static tamis_error rest_take(void *context, uint64_t key)
{
    struct rest *rest = context;
    if (rest->n < rest->room)
        rest->key[rest->n++] = key;
    return TAMIS_OK;
}

static bool rest_drop(struct rest *rest, uint64_t key)
{
    for (size_t i = rest->n; i-- > 0;)
        if (rest->key[i] == key) {
            rest->key[i] = rest->key[--rest->n];
            return true;
        }
    return false;
}

/* Removes one slot of this value from a line; false if it has none. */
static bool line_drop(uint8_t *line, unsigned width, uint32_t slot)
{
    for (unsigned i = 0; i < line_slots(width); i++)
        if (slot_get(line, width, i) == slot) {
            slot_put(line, width, i, 0);
            return true;
        }
    return false;
}

/* A line without gaps, with as many slots as were counted. */
static void check_line(const uint8_t *line, unsigned width, unsigned used)
{
    for (unsigned i = 0; i < line_slots(width); i++)
        CHECK((slot_get(line, width, i) != 0) == (i < used));
    CHECK(line_bound(line, width) == slot_ones(width));
}

/* Takes an entry with u unknown bits out of the new body or the rest. A full line has turned away others too. */
static void check_entry(struct body *to, struct rest *rest, uint64_t low, unsigned u, unsigned more,
                        uint64_t old, uint64_t *mass)
{
    uint64_t new = low << more, line = line_of(to, new), mark = UINT64_C(1) << (u + more);
    uint32_t slot = (uint32_t)(new << 1 | mark) & slot_ones(to->width);
    bool fits = !is_coarse(to->width, u + more) && line_of(to, new + mark - 1) == line &&
                !slot_bare(to->width, slot);
    if (fits && line_drop(body_line(to, line), to->width, slot))
        *mass += mark;
    else
        CHECK_MSG(rest_drop(rest, old), "lost: w %#llx, u %u", (unsigned long long)low, u);
}

/* Entries with w in [first, end) of the old part go into a body of this many lines. */
static void move(const struct lines_kernel *kernel, struct lines *l, const struct body *from,
                 uint64_t first, uint64_t end, uint64_t lines, unsigned width, unsigned step)
{
    struct body *to = body_new(l, from->depth + step, lines, width, NULL);
    uint8_t *used = calloc(lines, 1);
    struct rest rest = {calloc(from->used + 1, sizeof *rest.key), 0, from->used + 1};
    CHECK(to && used && rest.key);
    int more = (int)from->shift - to->shift + (int)step;
    struct pour p = {.from = from, .to = to, .first = first, .end = end, .used = used};
    p.more = (unsigned)more;
    p.rest = rest_take;
    p.context = &rest;
    if (more >= 0 && more <= (int)width - from->width + 2) {
        CHECK(kernel->pour(&p) == TAMIS_OK);
        uint64_t mass = 0, left = 0;
        for (uint64_t i = 0; i < lines; i++)
            check_line(body_line(to, i), width, used[i]);
        size_t given = rest.n;
        for (uint64_t i = 0; i < from->lines; i++)
            for (unsigned j = 0; j < line_slots(from->width); j++) {
                uint32_t slot = slot_get(body_line(from, i), from->width, j);
                uint64_t begin = first_of(from, i), stop = first_of(from, i + 1);
                unsigned u = slot ? (unsigned)__builtin_ctz(slot) : 0;
                if (slot == 0 || is_coarse(from->width, u))
                    continue;
                uint64_t key = key_in(from, slot, begin, stop - 1), low = (key & (key - 1)) >> 1;
                if (low >= begin && low >= first && low < end)
                    check_entry(to, &rest, low - first, u, p.more, key, &mass);
            }
        for (uint64_t i = 0; i < lines; i++)
            for (unsigned j = 0; j < line_slots(width); j++)
                left += slot_get(body_line(to, i), width, j) != 0;
        CHECK_MSG(left == 0 && rest.n == 0 && mass == p.mass, "%s: %u to %u bits, %llu left",
                  kernel->name, from->width, width, (unsigned long long)left);
        CHECK(p.keys + given > 0 || from->used < 16);
    }
    free(rest.key);
    free(used);
    body_free(to, l->allocator);
}

/* A set that has grown from the first key on, so that its entries know more or fewer bits; returns the part of the
   first key, of which the fewest are known. */
static const struct body *grow(struct lines *l, double fpp, uint64_t n, uint64_t *rng)
{
    CHECK(lines_init(l, &mem_system, fpp) == TAMIS_OK);
    uint64_t first = rng_next(rng);
    for (uint64_t i = 0; i < n; i++)
        CHECK(lines_add_slowly(l, (tamis_digest){i ? rng_next(rng) : first, 0}, false, false) ==
              TAMIS_OK);
    return body_at(lines_root_of(l), shelf_position(lines_root_of(l), first));
}

TEST(every_kernel_moves_all_entries_once)
{
    static const struct lines_kernel *const kernels[] = {
#ifdef TAMIS_X86
        &lines_avx2, &lines_avx512
#endif
    };
    static const double rates[] = {0.1, 0.01, 0.001, 0.0001};
    static const unsigned widths[] = {14, 16, 18, 20, 24};
    unsigned n = (unsigned)min_u64(sizeof kernels / sizeof *kernels, (unsigned)cpu_isa());
    uint64_t rng = harness_seed();
    for (unsigned i = 0; n && i < HARNESS_TIMES(60, 600); i++) {
        struct lines l = {0};
        uint64_t keys = i < 8 ? i * 5 : rng_next(&rng) % (i % 3 ? 3000 : 300000);
        const struct body *b = grow(&l, rates[i % 4], keys, &rng);
        unsigned into = i % 2 ? DEPTH_SOME : DEPTH_LAST - DEPTH_SOME; /* halvings */
        uint64_t all = UINT64_C(1) << body_bits(b), part = all >> into;
        uint64_t first = rng_next(&rng) % (1u << into) * part;
        for (unsigned w = 0; w < 5; w++) {
            uint64_t size = b->lines * b->width / widths[w] * (8 + rng_next(&rng) % 8) / 10;
            for (unsigned k = 0; k < n; k++) {
                move(kernels[k], &l, b, 0, all, lines_fit(size + 1), widths[w], 0);
                move(kernels[k], &l, b, first, first + part, lines_fit((size >> into) + 1),
                     widths[w], into);
            }
        }
        lines_free(&l);
    }
}

HARNESS_MAIN
