/*
 * A multiset of fingerprints that grows and shrinks without being sized in advance: what `smooth` filters
 * are made of. Keys arrive one by one or in batches, sets have from ten to 10^9 of them, lookups are
 * most of the work and most keys asked for are absent: a lookup is one line of 64 bytes.
 *
 * Word a of a key's digest, read as a fraction, is the key's place. Its top bits choose one of 1 to 256
 * parts; a part has M lines, and with b = width - 1 + floor(log2 M) and w the next b bits of the place
 *
 *     line = w * M >> b        slot = the low `width` bits of 2 w + 1
 *
 * A line spans at most 2^(width-1) values of w, so line and slot together know all of w, for any M: a
 * part grows by a fifth at a time, and each part has its own moments for that. When floor(log2 M)
 * rises, w has one bit more, which older entries do not know: an entry with u unknown bits is
 * (2 (w >> u) + 1) << u. The lowest one in a slot marks where knowledge ends, and an entry matches every
 * key that begins as it does. So an entry stands for 2^(u-b) of all keys whatever the size becomes:
 * the rate of a part is the sum of these over entries that differ, it is known exactly, and before it
 * would pass the stated one a part takes wider slots.
 *
 * Entries are counted, not shared: each add is an entry, and a removal takes away one that matches, the
 * one that knows most. What is left is then a prefix of the other keys too, so no member is denied.
 *
 *     struct lines --> body of the one part: header | line 0 | line 1 | ... | line M-1
 *                      or a shelf of 256     stash: what lines have no room for
 *                      pointers to bodies
 *
 * Readers go beside one writer that adds: bodies, stashes and shelves are replaced whole, and what
 * readers may hold is freed when they are out (os/readers.h). See line.h for the bytes of a line and for
 * the order in which they are written and read.
 *
 * Rejected: quotient filters (two misses where runs are long, and a stop to double the table), cuckoo
 * filters (two lines a lookup, and no way to grow), stacks of Bloom vectors (4 to 5 times slower to ask
 * and 40 to 130 bits per key at most sizes).
 */
#ifndef TAMIS_LINES_H
#define TAMIS_LINES_H

#include <stdatomic.h>

#include "base/arena.h"
#include "base/base.h"
#include "base/mem.h"
#include "os/readers.h"
#include "page_sums.h"

#define LINE_BYTES 64
#define DEPTH_STEP 4 /* a part is split into 16 */
#define DEPTH_LAST 8 /* there are at most 256 */
#define PLACES     (1u << DEPTH_LAST)
#define WIDTH_LAST 24

/* What lines have no room for: see lines_stash.h. */
struct stash {
    struct retired retired;
    uint32_t room, used;
    uint64_t *entry; /* behind it, or in a mapped file */
};

/* Entries kept apart, each as w << 1 | 1 << u, in order. */
struct apart {
    uint64_t key, copies;
};

struct apart_list {
    struct apart *entry;
    uint32_t n, room;
};

/* What few parts have. */
struct rare {
    struct apart_list
        coarse; /* entries with so many unknown bits that slots do not tell them apart; what lines
                                 have of them is derived */
    struct apart_list excess; /* copies of entries past those that a stash counts */
    /* Checksums of the pages of its lines and of its stash, once anyone needed them. They are not in the
       bytes of a set, as those of vectors are not. */
    struct kept_sums *line_sums, *stash_sums;
};

/* What the root of a set points at. */
struct lines_root {
    uint32_t lines; /* 0: a shelf, else a body of so many */
};

/* One part: a header of one line, and the lines behind it. */
struct body {
    uint32_t lines; /* M */
    uint8_t shift;  /* 64 - b */
    uint8_t depth;  /* bits of the place that chose the part */
    uint8_t width;
    uint8_t
        behind; /* the header begins so many bytes behind the memory it is in: see lines_body.c */
    const uint8_t *line;
    struct arena *arena;         /* that it is from; NULL: from the allocator */
    struct stash *_Atomic stash; /* NULL: no line has overflowed */
    uint64_t used;               /* slots and places in the stash */
    union {
        struct { /* for the writer */
            uint64_t keys;
            uint64_t mass; /* the sum of 2^u over all entries that differ: 2^b of it is every key */
            struct rare *rare;
        };
        struct retired retired; /* when it was replaced */
    };
};
_Static_assert(sizeof(struct body) == LINE_BYTES, "the lines behind it are on lines too");

/* The parts by the top 8 bits of a place; a part of less depth stands in many places. A part of another size takes
   the place of the one before; for another width of all, or other depths, comes another shelf. */
struct shelf {
    uint32_t none;  /* 0 */
    uint32_t width; /* of all parts; 0: they differ */
    uint32_t parts; /* 0: it is being filled */
    struct retired retired;
    struct body *_Atomic body[PLACES];
};

/* The parts of a moment, while keys are added: see lines_hold(). */
struct held_parts {
    uint32_t parts, left;      /* left: not copied so far */
    uint8_t number[PLACES];    /* the part of each place */
    uint8_t place[PLACES];     /* the first place of each part */
    struct body *copy[PLACES]; /* of each part that changed since */
};

/* What few sets have: large ones, and those of which a moment is held. */
struct lines_memory {
    struct arena small,
        large; /* where bodies come from if the allocator is the system's; see lines_body.c */
    uint64_t counted;        /* of theirs, and of this, in the bytes of the set */
    struct held_parts *held; /* NULL: no moment is held */
};

struct lines {
    const tamis_allocator *allocator;
    struct lines_root *_Atomic root;
    double fpp;
    uint64_t keys;
    uint64_t
        removed; /* since it was made: what copies elsewhere may not know of; see lines_added() */
    struct lines_memory *memory; /* mostly NULL */
    uint64_t bytes;              /* of bodies, stashes and shelves, */
    uint64_t limit;              /* and how many there may be; 0: no bound */
    struct retired *retired;
    uint8_t width; /* of large parts, unless their rate asks for more */
};

/* All that were, since it was made or loaded. */
ALWAYS_INLINE uint64_t lines_added(const struct lines *l)
{
    return l->keys + l->removed;
}

ALWAYS_INLINE struct lines_root *lines_root_of(const struct lines *l)
{
    return atomic_load_explicit(&l->root, memory_order_acquire);
}

/* The moment that is held, or NULL. */
ALWAYS_INLINE struct held_parts *lines_moment(const struct lines *l)
{
    return l->memory ? l->memory->held : NULL;
}

/* The lowest rate that lines are made for. */
#define LINES_RATE_MIN 1e-4

tamis_error lines_init(struct lines *l, const tamis_allocator *a, double fpp);
/* Bits of the slots that large parts begin with. */
unsigned lines_width(double fpp);
void lines_free(struct lines *l);
/* Frees what was replaced: all of it when the caller is alone, else what no reader can hold. */
void lines_reclaim(struct lines *l, bool alone);
/* Empty, and small if there is memory for a small part. Needs the set to itself. */
void lines_clear(struct lines *l);
tamis_error lines_clone(struct lines *out, const struct lines *l, const tamis_allocator *a);

/* One entry more, whatever is there; `fresh`: no entry matches it. ENOMEM, ESPACE at the limit, or ELIMIT where chosen
   keys crowd a few lines (lines_stash.h), changes nothing. */
tamis_error lines_add(struct lines *l, tamis_digest digest, bool fresh);
/* Of a key that is found: will it be found whatever the size becomes? Not if all that matches it is the slot of a
   coarse entry that ends elsewhere in the line: the slot matches more than the entry does, and another
   body has other lines. For the writer. */
bool lines_keep(const struct lines *l, tamis_digest digest);
/* Copies of all entries that match. */
uint64_t lines_count(const struct lines *l, tamis_digest digest);
/* Any number, one after the other; fresh[i] = key i was not found. `once`: those that are found, and
   will be, are not added again. After an error, so many are done. */
tamis_error lines_add_many(struct lines *l, const tamis_digest *digests, size_t n, bool once,
                           uint8_t *fresh, size_t *done);
/* Removes for each key one entry that matches it; taken[i] = there was one. Otherwise the key is not a
   member. Needs exclusive access. If there is no memory, the lines stay larger than necessary. */
void lines_remove_many(struct lines *l, const tamis_digest *digests, size_t n, uint8_t *taken);
/* Every entry of `from`, as exactly as it is known there. After ENOMEM some are there. */
tamis_error lines_unite(struct lines *l, const struct lines *from);
/* The same entries, however they are arranged. */
bool lines_equal(const struct lines *x, const struct lines *y);

bool lines_has_one(const struct lines *l, tamis_digest digest);
/* found[i] = some entry matches digest i; any number of digests. */
void lines_has(const struct lines *l, const tamis_digest *digests, size_t n, uint8_t *found);
void lines_prefetch(const struct lines *l, const tamis_digest *digests, size_t n);

/* The chance that a key never added is found: exact for the entries as they are, but for those that
   overlap, which count twice. */
double lines_rate(const struct lines *l);

/* Calls `take` for every entry, in an order that is even over all places: its place, the number of bits of
   it that are known (the others are zero), its copies. Ends early with the first error. */
typedef tamis_error (*entry_fn)(void *context, uint64_t place, unsigned known, uint64_t copies);
tamis_error lines_each(const struct lines *l, entry_fn take, void *context);

/* ---- kernels: lines_scalar.c, lines_avx2.c, lines_avx512.c ---- */

/* The slots of all lines of a part on their way into a larger or smaller body of the same depth. */
struct pour {
    const struct body *from;
    struct body *to;
    uint8_t *used;       /* slots of each line of `to` that are */
    bool fewer;          /* bits of w, or copies: what comes may be there already */
    uint64_t keys, mass; /* entries that went, which differ, and the sum of their 2^u */
    /* Takes an entry that does not go into one line with room. */
    tamis_error (*rest)(void *context, uint64_t key);
    void *context;
};

struct quick;

struct lines_kernel {
    const char *name;
    /* In the lines that lie just before `quick`; or NULL. */
    bool (*has_key)(const struct quick *quick, const void *key, size_t len);
    bool (*has_one)(const struct lines_root *root, tamis_digest digest);
    /* Any number of digests. */
    void (*has)(const struct lines_root *root, const tamis_digest *digests, size_t n,
                uint8_t *found);
    /* lines_add_many() and lines_remove_many(). */
    tamis_error (*add)(struct lines *l, const tamis_digest *digests, size_t n, bool once,
                       uint8_t *fresh, size_t *done);
    void (*take)(struct lines *l, const tamis_digest *digests, size_t n, uint8_t *taken);
    /* Slots of a line that match q, as bits. */
    uint64_t (*match)(const uint8_t *line, unsigned width, uint32_t q);
    /* Slots of a line that are used: they are the first ones. */
    unsigned (*used)(const uint8_t *line, unsigned width);
    /* The slot with the greatest order of a line that is full. */
    unsigned (*greatest)(const uint8_t *line, unsigned width);
    /* Both of width 16, `to` with as many bits or one more. NULL: there is none. */
    tamis_error (*pour)(struct pour *pour);
};

const struct lines_kernel *lines_kernel(void); /* the best one for this machine */
extern const struct lines_kernel lines_scalar, lines_avx2, lines_avx512;

#endif
