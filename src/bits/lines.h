/*
 * Fingerprint lines, of which `smooth` filters are made: a multiset of fingerprints that grows and shrinks
 * without being sized in advance. Keys arrive one by one or in batches, a set has from ten to 10^9 of them, and
 * most of the work is lookups of absent keys. A lookup reads one line, which is one cache line of 64 bytes.
 *
 * Word a of a key's digest, read as a binary fraction, is the key's place. Its top bits (none, 4 or 9, the depth)
 * choose one of 1 to 512 parts. A part has M lines, and a line has slots of `width` bits, one for each fingerprint.
 * With b = width - 1 + floor(log2 M) and w the next b bits of the place, a key is stored in
 *
 *     line = w * M >> b        slot = the low `width` bits of 2 w + 1
 *
 * A line covers at most 2^(width-1) values of w, so line and slot together determine w, for any M. Therefore a
 * part can grow by a fifth at a time, and each part grows at its own time.
 *
 * When floor(log2 M) rises, w has one more bit, which is unknown for the entries stored before. An entry with u
 * unknown bits is (2 (w >> u) + 1) << u: its lowest one bit, the mark, separates known from unknown bits, and it
 * matches every key that begins with the known ones. This is a share of 2^(u-b) of the keys of the part, whatever
 * size the part grows to. The sum of these shares over the distinct entries is the false-positive rate of the part;
 * before it would exceed the stated rate, the part is rebuilt with wider slots. Coarse entries have more: where one begins
 * or ends within a line, its slot may also match keys of the line that the entry does not (lines_rate.c).
 *
 * Every add stores an entry, even for a key that is found, unless the caller asks for `once`. A removal deletes one
 * matching entry, the one with the most known bits; those left are prefixes of the keys that remain, so no member is
 * ever denied.
 *
 *     struct lines --> body of the only part:  header | line 0 | line 1 | ... | line M-1
 *                      or a shelf of 16 or     stash: the entries for which their line had no room
 *                      512 parts
 *
 * Any number of readers may run beside one writer that adds: bodies, stashes and shelves are replaced as a whole,
 * and the old ones are freed when no reader can hold them (os/readers.h). See line.h for the bytes of a line and
 * for the order in which they are written and read.
 *
 * Rejected: quotient filters (two cache misses where runs are long, and a pause to double the table), cuckoo
 * filters (two lines per lookup, and no way to grow), stacks of Bloom vectors (lookups take 4 to 5 times as long,
 * and 40 to 130 bits per key at most sizes).
 */
#ifndef TAMIS_LINES_H
#define TAMIS_LINES_H

#include <stdatomic.h>

#include "base/arena.h"
#include "base/base.h"
#include "base/mem.h"
#include "line.h"
#include "os/readers.h"
#include "page_sums.h"

#define LINE_BYTES 64
#define DEPTH_SOME 4 /* a set is split into 2^4 parts, */
#define DEPTH_LAST 9 /* and each of them later into 2^5 */
#define SPLIT_MOST (1u << (DEPTH_LAST - DEPTH_SOME))
#define SHELF_LEN  (1u << DEPTH_LAST)

/* The entries for which their line had no room: see lines_stash.h. */
struct stash {
    struct retired retired;
    uint32_t room, used;
    uint64_t *entry; /* follows the struct, or is in a mapped file */
};

/* Entries outside of lines, each as w << 1 | 1 << u, sorted. */
struct apart {
    uint64_t key, copies;
};

struct apart_list {
    struct apart *entry;
    uint32_t n, room;
};

/* What only a few parts need. */
struct rare {
    /* Entries with so many unknown bits that a slot does not identify them (is_coarse). Their slots in lines are
       derived from this list. */
    struct apart_list coarse;
    struct apart_list excess; /* copies beyond those that the stash can count */
    /* What the slots of coarse entries match beyond the entries, if it is known: see part_beyond(). */
    uint64_t beyond;
    bool beyond_known;
    /* Checksums of the pages of its lines and of its stash, from the first time they are needed. Like those of
       vectors, they are not included in the bytes of a set. */
    struct kept_sums *line_sums, *stash_sums;
};

/* The start of what the root of a set points to: a body or a shelf. */
struct lines_root {
    uint32_t lines; /* of a body; 0: this is a shelf */
};

/* One part: a header of LINE_BYTES, followed by the lines. A shelf has its width where the root of a set that is not
   split has its depth, which is 0. */
struct body {
    uint32_t lines; /* M */
    uint8_t shift;  /* 64 - b */
    uint8_t depth;  /* bits of the place that chose the part */
    uint8_t width;
    /* Offset of the header in its block of memory: see lines_body.c. */
    uint8_t behind;
    const uint8_t *line;
    struct arena *arena;         /* where it was allocated; NULL: the allocator */
    struct stash *_Atomic stash; /* NULL: no line has overflowed */
    uint64_t used;               /* slots in use, with those in the stash */
    union {
        struct { /* of the writer */
            uint64_t keys;
            uint64_t mass; /* the sum of 2^u over the distinct entries; 2^b would match every key */
            struct rare *rare;
        };
        struct retired retired; /* after the body was replaced */
    };
};
_Static_assert(sizeof(struct body) == LINE_BYTES, "the lines behind it are on lines too");

/* What a lookup needs of a part. With s, the number of bits of a place below w,
 *
 *     line = at + 64 * ((place >> s) * factor >> 64)
 *
 * The bits that chose the part are not cut off: `at` is the address of the first line, less 64 bytes for each line that
 * they count for. The factor is M << (64 - b). Lines are aligned, and the low 6 bits of `at` are s.
 */
struct view {
    uintptr_t at;
    uint64_t factor;
};

/* The parts by the top bits of a place, 4 or 9 as the deepest part needs; a part of smaller depth fills several
   positions. A shelf does not change: for a part of another size there is a new one, 0.4 or 12 KB beside the lines of
   the part, so that a reader finds both words of a view from the same moment. */
struct shelf {
    uint32_t none; /* 0: see lines_root */
    uint8_t top;   /* 64 - the bits that choose a position */
    uint8_t width; /* of all parts; 0 if they differ or lines are not aligned: then without views */
    uint16_t parts; /* 0 while the shelf is being filled */
    struct retired retired;
    struct view view[]; /* the pointers to the bodies follow: shelf_bodies() */
};

/* A snapshot of the parts while keys are added: see lines_hold(). */
struct held_parts {
    uint32_t parts, left;         /* left: parts not copied yet */
    uint16_t number[SHELF_LEN];   /* the part at each position */
    uint16_t first[SHELF_LEN];    /* the first position of each part */
    struct body *copy[SHELF_LEN]; /* of each part that has changed since */
};

/* What only some sets need: large ones, and those with a snapshot. */
struct lines_memory {
    struct arena small, large; /* for bodies, if the allocator is the system's: lines_body.c */
    uint64_t counted;          /* bytes of the arenas and of this, included in those of the set */
    struct held_parts *held;   /* NULL: no snapshot */
};

struct lines {
    const tamis_allocator *allocator;
    struct lines_root *_Atomic root;
    double fpp;
    uint64_t keys;
    /* Keys removed since the set was created, which copies elsewhere may still have: see lines_added(). */
    uint64_t removed;
    struct lines_memory *memory; /* usually NULL */
    uint64_t bytes;              /* of bodies, stashes and shelves */
    uint64_t limit;              /* of bytes; 0: none */
    struct retired *retired;
    uint8_t width;    /* of large parts, unless their rate needs more */
    uint32_t refused; /* keys / 256 when a part last could not grow within the limit; 0: it could */
};

/* All keys that were ever in the set since it was created or loaded. */
ALWAYS_INLINE uint64_t lines_added(const struct lines *l)
{
    return l->keys + l->removed;
}

ALWAYS_INLINE struct lines_root *lines_root_of(const struct lines *l)
{
    return atomic_load_explicit(&l->root, memory_order_acquire);
}

/* The snapshot, or NULL. */
ALWAYS_INLINE struct held_parts *lines_moment(const struct lines *l)
{
    return l->memory ? l->memory->held : NULL;
}

/* The lowest rate that lines support. */
#define LINES_RATE_MIN 1e-4

/* Of zeros, which readers may look at meanwhile. */
tamis_error lines_init(struct lines *l, const tamis_allocator *a, double fpp);
/* The bytes of a set without keys. */
uint64_t lines_least(double fpp);
/* The slot width that large parts start with. */
unsigned lines_width(double fpp);
void lines_free(struct lines *l);
/* Frees what was replaced: all of it if the caller has exclusive access, otherwise what no reader can hold. */
void lines_reclaim(struct lines *l, bool alone);
/* Removes all keys, and shrinks to a small part if there is memory for one. Needs exclusive access. */
void lines_clear(struct lines *l);
tamis_error lines_clone(struct lines *out, const struct lines *l, const tamis_allocator *a);

/* The number of copies of all matching entries. */
uint64_t lines_count(const struct lines *l, tamis_digest digest);
/* Adds any number of keys, in order; fresh[i] = key i was not found. `once`: does not add keys that are found and will
   stay so at every size. *done is the number of keys processed, also after an error. ENOMEM, ESPACE at the limit, and
   ELIMIT where chosen keys crowd a few lines (lines_stash.h) change nothing. */
tamis_error lines_add_many(struct lines *l, const tamis_digest *digests, size_t n, bool once,
                           uint8_t *fresh, size_t *done);
/* Removes one matching entry for each key; taken[i] = there was one, otherwise the key is not a member. Needs
   exclusive access. If there is no memory, the lines stay larger than necessary. */
void lines_remove_many(struct lines *l, const tamis_digest *digests, size_t n, uint8_t *taken);
/* Adds every entry of `from`, with the bits known there. After an error some may have been added. */
tamis_error lines_unite(struct lines *l, const struct lines *from);
/* Makes room in an empty set that is not split for n entries to come, which know `known` bits at most and match this
   share of all keys: lines that are still small would cut off bits of what comes first. Last: they are all that will
   ever come, unless in a union. */
tamis_error lines_expect(struct lines *l, uint64_t n, double rate, unsigned known, bool last);
/* The most bits that one of n entries knows in the narrowest slots, if they are all that will ever come. */
unsigned lines_known(const struct lines *l, uint64_t n);
/* Adds an entry to a set: an entry_fn. */
tamis_error lines_put(void *lines, uint64_t place, unsigned known, uint64_t copies);
/* Do both have the same entries, however they are arranged? */
bool lines_equal(const struct lines *x, const struct lines *y);

bool lines_has_one(const struct lines *l, tamis_digest digest);
/* found[i] = some entry matches digest i; any number of digests. */
void lines_has(const struct lines *l, const tamis_digest *digests, size_t n, uint8_t *found);

/* The probability that a key that was never added is found: exact for the present entries, except that overlapping
   ones count twice. The cost grows with the parts and with their coarse entries. */
double lines_rate(const struct lines *l);
/* The same without what coarse entries match beyond their own keys, for estimates that are made often. */
double lines_rate_rough(const struct lines *l);
/* The same after further adds, when no part has a free slot left and none has been rebuilt. */
double lines_rate_full(const struct lines *l);

/* Calls `take` for every entry, spread evenly over all places: with its place, the number of its known bits (the
   others are zero) and its copies. Stops at the first error. */
typedef tamis_error (*entry_fn)(void *context, uint64_t place, unsigned known, uint64_t copies);
tamis_error lines_each(const struct lines *l, entry_fn take, void *context);

/* ---- kernels: lines_scalar.c, lines_avx2.c, lines_avx512.c ---- */

/* Moves the slots of a part into another body for the same keys, or for a range of them. */
struct pour {
    const struct body *from;
    struct body *to;
    uint64_t first, end; /* the range of w in the old body, without `end` */
    unsigned more;       /* bits that w gains, apart from those that the range determines */
    uint8_t *used;       /* number of used slots in each line of `to` */
    uint64_t keys, mass; /* of the entries moved: their number, and the sum of 2^u */
    /* Takes an entry that does not fit into a single line with room. */
    tamis_error (*rest)(void *context, uint64_t key);
    void *context;
};

struct set;

struct lines_kernel {
    const char *name;
    /* Look up in the lines of a set (see quick_in()), and enter as a reader. NULL: not available. */
    bool (*has_key)(const struct set *set, const void *key, size_t len);
    bool (*has_place)(const struct set *set, uint64_t place);
    bool (*has_one)(const struct lines_root *root, tamis_digest digest);
    /* Any number of digests. */
    void (*has)(const struct lines_root *root, const tamis_digest *digests, size_t n,
                uint8_t *found);
    /* lines_add_many() and lines_remove_many(). */
    tamis_error (*add)(struct lines *l, const tamis_digest *digests, size_t n, bool once,
                       uint8_t *fresh, size_t *done);
    void (*take)(struct lines *l, const tamis_digest *digests, size_t n, uint8_t *taken);
    /* The slots of a line that match q, as a bit mask. */
    uint64_t (*match)(const uint8_t *line, unsigned width, uint32_t q);
    /* The number of used slots of a line: they come first. */
    unsigned (*used)(const uint8_t *line, unsigned width);
    /* The slot with the greatest order in a full line. */
    unsigned (*greatest)(const uint8_t *line, unsigned width);
    /* If no known bits are lost. NULL: not available. */
    tamis_error (*pour)(struct pour *pour);
};

const struct lines_kernel *lines_kernel(void); /* the best one for this machine */
extern const struct lines_kernel lines_scalar, lines_avx2, lines_avx512;

#endif
