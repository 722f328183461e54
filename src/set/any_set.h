/*
 * A set of either kind, by one pointer: for the encoding, and for the command line and the module,
 * which hold whatever a file or a value contains. A filter and records of the public headers are
 * the same memory under a type that states the kind.
 */
#ifndef TAMIS_ANY_SET_H
#define TAMIS_ANY_SET_H

#include "base/mem.h"
#include "tamis/records.h"

struct set;

/* What options and reports call the values of their enums; "" is the default. */
extern const char *const growth_names[7], *const layout_names[3], *const hash_names[4],
                                                                      *const verifier_names[4];

/* TAMIS_KIND_FILTER or TAMIS_KIND_RECORDS. */
tamis_kind set_kind(const struct set *s);

/* Only for a set of that kind. */
static inline tamis_filter *as_filter(struct set *s)
{
    return (tamis_filter *)(void *)s;
}

static inline tamis_records *as_records(struct set *s)
{
    return (tamis_records *)(void *)s;
}

/* Passes a new set on to the caller of a public function, unless there was an error. */
static inline tamis_error give_filter(tamis_error e, struct set **s, tamis_filter **out)
{
    if (e == TAMIS_OK)
        *out = as_filter(*s);
    return e;
}

static inline tamis_error give_records(tamis_error e, struct set **s, tamis_records **out)
{
    if (e == TAMIS_OK)
        *out = as_records(*s);
    return e;
}

static inline struct set *filter_set(tamis_filter *f)
{
    return (struct set *)(void *)f;
}

static inline struct set *records_set(tamis_records *x)
{
    return (struct set *)(void *)x;
}

/* Like tamis_filter_new. Compact: a smooth filter for which less memory is worth more than that two of them can always
   be united (smooth.c); without effect on others. */
tamis_error filter_new(struct set **out, const tamis_options *o, bool compact,
                       tamis_reason *reason);
/* Like the functions of the public headers with these names for each kind. */
void set_free(struct set *s);
tamis_error set_clone(struct set **out, const struct set *s, bool half); /* half: also folded */
tamis_error set_clear(struct set *s);
tamis_error set_merge(struct set *s, const struct set *other, unsigned flags, tamis_reason *reason);
/* The same for a union of many, which costs what they hold. After an error `s` may hold a part of `other`: free it.
   Needs exclusive access. */
tamis_error set_unite(struct set *s, const struct set *other, unsigned flags, tamis_reason *reason);
void set_brief(const struct set *s, tamis_filter_facts *facts);
uint64_t set_items(const struct set *s, uint32_t *parts); /* parts: layers, and one for lines */
bool set_key(const struct set *s, uint8_t key[TAMIS_KEY_LEN]);
tamis_error set_limit(struct set *s, uint64_t memory_limit);
uint64_t set_memory_limit(const struct set *s);
bool set_equal(const struct set *x, const struct set *y);

/*
 * A plain filter of few keys in much less memory than its set: see small.c.
 */
struct small;
struct mover;
/* Consumes the set and stores its small form; NULL if it has none, or if there is no memory (false), and then nothing
   has changed. Empty: also sets of lines without keys. */
bool small_of(struct set *s, bool places, struct small **out);
/* The set that it stands for, as a copy; NULL if there is no memory. */
struct set *small_whole(const struct small *m);
/* The same without what small_keep() writes. */
struct set *small_start(const struct small *m);
tamis_digest small_digest(const struct small *m, const void *key, size_t len);
void small_digest_many(const struct small *m, const tamis_key *keys, size_t n, tamis_digest *out);
bool small_has(const struct small *m, tamis_digest digest);
/* All but the first two change nothing; after SMALL_OUTGROWN the key must be added to the whole set. */
enum small_added { SMALL_OLD, SMALL_NEW, SMALL_OUTGROWN, SMALL_NO_MEMORY, SMALL_NO_SPACE };
enum small_added small_add(struct small **m, tamis_digest digest);
void small_free(struct small *m);
void small_clear(struct small **m);
struct small *small_copy(const struct small *m);
uint64_t small_bytes(const struct small *m);
uint64_t small_items(const struct small *m, uint32_t *parts); /* like set_items() */
bool small_key(const struct small *m, uint8_t key[TAMIS_KEY_LEN]);
void small_move(struct small **m, const struct mover *mover);
/* Places and pages lose bits when they become lines, so they are saved as they are, beside the set without them:
   small_kept() bytes. The bytes to be put back into an empty one are untrusted: false if they are not as saved, or if
   there is no memory; then free it. */
bool small_keeps(const struct small *m);
size_t small_kept(const struct small *m);
void small_keep(const struct small *m, uint8_t *out);
bool small_put_back(struct small **m, const uint8_t *bytes, size_t len);

/*
 * Moves its memory elsewhere, block by block, for a server that defragments its memory while it
 * runs (relocate.c). The caller needs exclusive access; nothing else changes.
 */
struct mover {
    /* The new address of the block, with the same bytes, the old one freed; NULL: it stays. */
    void *(*move)(void *context, void *memory);
    bool (*stop)(void *context); /* time is up */
    void *context;
    bool pinned; /* the head stays: others point to it */
};

/* Continues from part `from`, 0 at first; returns the part to continue with, or 0 when done.
   Parts that changed between two calls may be skipped. */
unsigned long set_move(struct set **s, const struct mover *m, unsigned long from);

#endif
