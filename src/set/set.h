/*
 * The inside of a set: of keys (a filter) or of records. It has layers, each with a share of the stated
 * rate. A layer has one part for the keys of a filter, or several parts for records:
 *
 *     part 0 .. p-1        attribute 0 .. p-1, each a vector of its values
 *     part p .. p+v-1      verifier 0 .. v-1, of the attributes in masks[0 .. v-1]: a vector or a table of the
 *                          verification values of its records
 *
 * A record is in all parts of one layer, so a match must come from one layer, and each part is sized for the share of
 * its layer. So single attributes, declared combinations and whole records keep the rate over all layers.
 *
 * set_options.c and record_form.c validate the options, growth.c decides on the next layer and layer_parts.c shapes it,
 * set_layers.c maintains the list, filter_add.c and records_add.c fill the layers, set_remove.c remembers removals
 * that cannot be settled yet, set_merge.c and filter_algebra.c work on whole sets.
 */
#ifndef TAMIS_SET_H
#define TAMIS_SET_H

#include <stdatomic.h>

#include "any_set.h"
#include "base/base.h"
#include "hash/digest.h"
#include "bits/bits.h"
#include "base/mem.h"
#include "os/readers.h"
#include "pending.h"
#include "tamis/records.h"
#include "plan/plan.h"

#define WINDOW_VECTORS     8
#define WINDOW_VECTORS_MAX 1024
#define WINDOW_DEFAULT     (UINT64_C(86400) * 1000000000)
#define CAPACITY_DEFAULT   1024
#define SLOT_NONE          UINT32_MAX /* a layer outside the budget: the stated rate was restated */
#define STACK_MAX          4096       /* layers that are queried one by one */
#define PARTS_MAX          SPOTS_MAX
#define VERIFIERS_MAX      (TAMIS_COMBOS_MAX + 1)
#define ATTRIBUTE_LEN      255 /* of a name */

/* The validated options; plain data, saved with the set. */
struct settings {
    tamis_growth growth;
    tamis_layout layout;
    double fpp;    /* of the whole set; 0: as published, no bound on the total */
    double budget; /* the sum of all shares; fpp unless it was restated */
    uint64_t capacity;
    bool deletable, unique, overfill, shared_adds, add_always;
    bool compact; /* no share of the rate is kept for a union or for vectors of the same size */
    double expansion, tolerate;
    uint32_t vectors_max; /* dynamic, window: maximal number of layers; 0: no limit */
    uint64_t items_max;   /* fixed, dynamic: full at this number; 0: no bound */
    struct shape shape;   /* dynamic filters: of every vector; as published: of the first */
    bool published;
    uint8_t lambdas[TAMIS_LAMBDAS_MAX];
    uint32_t n_lambdas;
    uint64_t window, memory_limit;
};

/* The attributes and verifiers of records; saved with the set. */
struct record_form {
    uint32_t attributes, verifiers;
    tamis_verifier verifier;
    tamis_verify value;
    uint64_t masks[VERIFIERS_MAX]; /* the whole record first, if it is verified */
    uint64_t distinct[TAMIS_ATTRIBUTES_MAX];
    tamis_type types[TAMIS_ATTRIBUTES_MAX];
    const char *names; /* consecutive strings, each with its final 0 */
    uint32_t names_len;
};

struct part {
    struct vector *vector; /* NULL: a table */
    struct table table;
};

struct layer {
    uint32_t id;       /* unique within the set, also over time */
    uint32_t slot;     /* its share of the budget */
    uint64_t capacity; /* keys, or records */
    double fpp;
    uint64_t born, last; /* time of its creation and, in a window, of its last add */
    /* Of records; for keys see the vector. See layer_load and layer_count. */
    uint64_t load;  /* adds that set a bit in some part, minus removals that cleared one */
    uint64_t count; /* copies stored: adds minus settled removals */
    struct layer *next_gone;
    uint32_t parts;
    struct part part[];
};

/* The layers, oldest first. Readers load the pointer, then n, then the layers: a writer fills v[n] and
   l[n] before it raises n, and replaces the list when there is no room. */
struct layers {
    struct layers *retired; /* older lists, kept while readers may be inside */
    struct layer **l;       /* follows v */
    uint32_t room;
    atomic_bool mixed; /* vectors of several layouts (next_smooth()); read after their number */
    _Atomic uint32_t n;
    struct vector *v[]; /* the first part of each, as the kernels need the vectors of a filter */
};

/* Flexible: the arrival rate of keys, from the times at which layers filled. */
struct forecast {
    struct plan_holt holt;
    double base_rate; /* the first */
};

/* What only sets with layers need, except smooth filters: these share an empty one, which is never written. */
struct set_more {
    struct matrix *_Atomic matrix; /* dynamic filters only */
    struct layer *gone;            /* window: layers dropped that readers may still use */
    struct removals removals;
    struct forecast forecast;
    tamis_clock clock;
    void *clock_context;
};

/* The layers and their state. Sets that have only lines share an empty one, which is never written. */
struct stack {
    struct layers *_Atomic layers;
    struct set_more *more;    /* never replaced; see set_stacked() */
    struct vector *into;      /* the vector of quick.add, if all new keys go to one */
    struct record_form *form; /* NULL: a filter */
    struct mapping mapping;   /* the file that vectors, tables and lines are views of, or none */
    uint64_t stored;          /* sum of the layers' counts */
    uint32_t next_id;
    uint32_t grown; /* layers created so far, including the first */
    /* What a writer knows of the layers, until they change (set_quick): */
    uint32_t open;      /* those before this one are full */
    uint64_t tidy_till; /* removals left before a layer can be empty or two can fit into one */
};

/* What a set is created with. Sets created alike share it (terms.c), so that a small set needs little more
   than its keys; a set whose terms change has its own. */
struct terms {
    tamis_allocator allocator; /* the first member, because lines point to it */
    struct family family;
    struct settings opt;      /* without the memory limit */
    _Atomic uint32_t holders; /* changed under the lock of the process; 0: owned by one set */
    struct terms *child[2];   /* of shared ones, like the hash: see terms.c */
    uint64_t hash;
};

/* In the order in which small sets use them: only a set of vectors under xxh3 uses all of `quick`. It is truncated
   in others, in sets of lines alone under another hash to 112 bytes. */
struct set {
    struct stack *stack;
    uint64_t memory_limit; /* 0: none */
    bool guarded;          /* a writer may free what readers use, so readers announce themselves */
    bool read_only;
    bool bits_only; /* permanently: it came without counters and pending removals */
    uint8_t size;   /* of this head, for its whole life: SET_LEAST, SET_OTHER, SET_BRIEF or all */
    struct lines lines; /* smooth filters only; none if there is no root */
    struct quick quick; /* how one key is looked up or added; directly follows the lines */
};
_Static_assert(offsetof(struct set, quick) == QUICK_AT &&
                   offsetof(struct set, lines) + sizeof(struct lines) == QUICK_AT,
               "kernels find both");

#define SET_LEAST (offsetof(struct set, quick) + offsetof(struct quick, units)) /* lines alone */
#define SET_OTHER (offsetof(struct set, quick) + offsetof(struct quick, flip))  /* vectors */
#define SET_BRIEF (offsetof(struct set, quick) + offsetof(struct quick, words)) /* lines, xxh3 */

struct tamis_filter {
    struct set set;
};

struct tamis_records {
    struct set set;
};

/* ---- terms.c ---- */
ALWAYS_INLINE struct terms *set_terms(const struct set *s)
{
    return (struct terms *)(uintptr_t)s->lines.allocator;
}

ALWAYS_INLINE const tamis_allocator *set_allocator(const struct set *s)
{
    return s->lines.allocator;
}

ALWAYS_INLINE struct family *set_family(const struct set *s)
{
    return &set_terms(s)->family;
}

/* May be changed only if the terms are the set's own: terms_own(). */
ALWAYS_INLINE struct settings *set_opt(const struct set *s)
{
    return &set_terms(s)->opt;
}

struct family_key {
    tamis_hash hash;
    const uint8_t *key; /* NULL: a random one */
    bool has_key;       /* see struct family */
};
tamis_error terms_get(struct terms **out, const tamis_allocator *a, const struct settings *opt,
                      struct family_key key);
/* One more holder of existing terms, for a set created like another; NULL if there is no memory. */
struct terms *terms_share(struct terms *terms);
void terms_release(struct terms *terms);
/* Gives the set its own terms, before they change. */
tamis_error terms_own(struct set *s);
/* Shares the terms again, if equal ones exist, once they no longer change. */
void terms_settle(struct set *s);
uint64_t terms_bytes(const struct terms *terms); /* if one set owns them; 0 if they are shared */

/* ---- set_layers.c ---- */
ALWAYS_INLINE struct layers *set_layers(const struct set *s)
{
    return atomic_load_explicit(&s->stack->layers, memory_order_acquire);
}

ALWAYS_INLINE uint32_t layers_count(const struct layers *layers)
{
    return atomic_load_explicit(&layers->n, memory_order_acquire);
}

/* Does the set have its own `more`? */
ALWAYS_INLINE bool set_stacked(const struct set *s)
{
    return set_opt(s)->growth != TAMIS_SMOOTH;
}

extern const struct stack stack_none; /* of sets without layers */
ALWAYS_INLINE bool set_has_stack(const struct set *s)
{
    return s->stack != &stack_none;
}

/* Gives the set its own stack, before its first layer. */
tamis_error set_stack(struct set *s, uint32_t room);

/* The number of digests of a key: one, or one per attribute. */
ALWAYS_INLINE uint32_t set_width(const struct set *s)
{
    return s->stack->more->removals.width;
}

/* The number of parts of a layer. */
ALWAYS_INLINE uint32_t set_parts(const struct set *s)
{
    return s->stack->form ? s->stack->form->attributes + s->stack->form->verifiers : 1;
}

/* Part i of the set, counted layer by layer. */
ALWAYS_INLINE struct part *set_part(const struct set *s, uint32_t i)
{
    return &set_layers(s)->l[i / set_parts(s)]->part[i % set_parts(s)];
}

/* Are the vectors columns of a matrix? */
ALWAYS_INLINE bool set_sliced(const struct set *s)
{
    return set_opt(s)->growth == TAMIS_DYNAMIC && !s->stack->form;
}

/* Columns are queried 64 at a time; layers that every add and lookup tests one by one have a lower limit. */
ALWAYS_INLINE uint32_t layers_max(tamis_growth growth, bool records)
{
    return growth == TAMIS_DYNAMIC && !records ? MATRIX_COLUMNS_MAX : STACK_MAX;
}

ALWAYS_INLINE uint64_t layer_count(const struct set *s, const struct layer *layer)
{
    return s->stack->form ? layer->count : layer->part[0].vector->count;
}

/* The load that counts towards the capacity: there are no more keys than copies. */
ALWAYS_INLINE uint64_t layer_load(const struct set *s, const struct layer *layer)
{
    const struct vector *v = layer->part[0].vector;
    if (!s->stack->form)
        return vector_load(v);
    return v->deletable ? min_u64(layer->load, layer->count) : layer->load;
}

/* An empty list; NULL if there is no memory. */
struct layers *layers_new(const tamis_allocator *a, uint32_t room);
void layers_free(struct layers *layers, const tamis_allocator *a); /* and the retired ones */
struct layer *layer_new(const tamis_allocator *a, uint32_t parts);
void layer_free(struct layer *layer, const tamis_allocator *a);
/* A copy for the set `to`, possibly folded to half; NULL if there is no memory. */
struct layer *layer_clone(const struct layer *layer, const struct set *to, bool half);
size_t layer_size(uint32_t parts);
/* The index of a layer in the list; the number of layers if there is none. */
uint32_t set_index_of(const struct set *s, uint32_t id);
struct layer *set_layer_by_id(const struct set *s, uint32_t id);
/* Appends a layer; if there is no memory, the layer is freed. If there is a matrix, its column must still be
   placed. */
tamis_error set_append(struct set *s, struct layer *layer);
/* Appends a layer that was saved, with its id; the list has room. Columns must still be placed. */
void set_put_back(struct set *s, struct layer *layer);
/* Removes layer i and frees it; needs exclusive access. */
void set_drop(struct set *s, uint32_t i);
/* Drops the oldest `old` layers while others read; false if there is no memory. */
bool set_let_go(struct set *s, uint32_t old);
/* Frees what was replaced: all of it if the caller has exclusive access, otherwise when no reader is inside. */
void set_reclaim(struct set *s, bool alone);
/* After the layers changed: sets `quick` and `into`, and resets what else was known of the layers. */
void set_quick(struct set *s);

/* Adds at most a batch of keys or records; `done` were added, all of them unless it fails. */
typedef tamis_error (*add_fn)(struct set *s, const tamis_digest *keys, size_t n, uint8_t *fresh,
                              size_t *done);

/* Adds in batches of at most `most`, which is at most 16 BATCH, from the key number *done on; `fresh` may be NULL. */
ALWAYS_INLINE tamis_error set_add_many(struct set *s, add_fn some, size_t most,
                                       const tamis_digest *keys, size_t n, uint8_t *fresh,
                                       size_t *done)
{
    tamis_error e = TAMIS_OK;
    for (size_t added; e == TAMIS_OK && *done < n; *done += added) {
        uint8_t *to = fresh ? fresh + *done : (uint8_t[16 * BATCH]){0};
        e = some(s, keys + *done * set_width(s), min_u64(n - *done, most), to, &added);
    }
    return e;
}

/* ---- set.c ---- */
/* The clock of flexible and window sets, 0 for others. If the clock was set back, the layers are dated back
   with it and keep their ages, so time only stands still for a moment. Otherwise keys added now would count as
   older than earlier ones, or nothing would expire until the clock is back where it was. */
uint64_t set_clock(struct set *s);
ALWAYS_INLINE uint64_t set_now(struct set *s)
{
    tamis_growth growth = set_opt(s)->growth;
    return growth == TAMIS_FLEXIBLE || growth == TAMIS_WINDOW ? set_clock(s) : 0;
}
tamis_error set_writable(const struct set *s);
/* Does a deletable set have its counters? Not in mapped files and in copies of bits. */
bool set_counted(const struct set *s);
/* A set without layers, with a list for `room` of them; with room 0 it is for lines. The form,
   NULL for a filter, is copied. */
tamis_error set_make(struct set **out, const tamis_allocator *a, const struct settings *opt,
                     const struct record_form *form, struct family_key key, uint32_t room);
/* A set with these terms, which it consumes also if it fails, without layers: like set_make(). */
struct set *set_blank(struct terms *terms, const struct record_form *form, uint32_t room);
/* Frees the layers of a smooth set, which keeps its lines. */
void set_unstack(struct set *s);
/* Replaces the set by `made`, unless e is an error; `made` is consumed in either case. Returns e. */
tamis_error set_become(struct set *s, struct set *made, tamis_error e);
/* Updates the vectors' pointers to their family, which has moved. */
void set_adopt_family(struct set *s);
void set_empty(struct set *s); /* as it was created; cannot fail */
uint64_t set_bytes(const struct set *s);

/* ---- set_columns.c: dynamic filters ---- */
/* Assigns a column to vector number n, widening the matrix if necessary. */
tamis_error set_place_column(struct set *s, struct vector *v, uint32_t n);
/* Makes room for n columns; the first call determines the shape. */
bool set_reserve_columns(struct set *s, uint32_t n, const struct bits *shape);
/* Narrows the matrix to its vectors, as far as the widths allow; if there is no memory, it stays wide. Needs
   exclusive access. */
void set_narrow(struct set *s);
/* After the vector was removed from the list: the last column moves into its column. */
void set_drop_column(struct set *s, struct vector *v);
/* Updates the columns' pointers to the matrix. */
void set_place_columns(struct set *s);
/* Copies or folds the matrix, after the vectors were copied or folded. */
tamis_error set_clone_columns(struct set *to, const struct set *from, bool half);
/* Clears all columns, and narrows to one if there is memory. */
void set_clear_columns(struct set *s);
/* The vectors that have all bits of a digest; for a writer, so that nobody else changes them. */
struct match {
    uint64_t
        columns[64]; /* the matching columns, if `known`; otherwise vectors are tested one by one */
    bool known;
    tamis_digest digest;
};
/* False if no vector has all bits. */
bool set_match(const struct set *s, tamis_digest digest, struct match *match);
ALWAYS_INLINE bool match_has(const struct match *match, const struct vector *v)
{
    return match->known ? match->columns[v->column >> 6] >> (v->column & 63) & 1
                        : vector_has(v, match->digest);
}

/* ---- smooth.c: filters of lines ---- */
/* Compact filters of up to this many keys have a spread vector: it takes fewer bits than a blocked one, and all its lines
   are in the cache. Up to here the heads of a set count (small.c). */
#define SMALL_CAPACITY 10000
/* Compact smooth filters of up to this many keys and this rate have lines alone, and pages in the small form (small.c). */
#define PAGE_CAPACITY 128
#define PAGE_RATE     0.01
ALWAYS_INLINE bool smooth_packs(const struct settings *opt)
{
    return opt->compact && opt->growth == TAMIS_SMOOTH && opt->capacity > 0 &&
           opt->capacity <= PAGE_CAPACITY && opt->budget <= PAGE_RATE && !opt->deletable;
}
/* The shares of the rate for the first vector, and for the lines beside it: see smooth.c. */
ALWAYS_INLINE double smooth_vector_rate(const struct settings *opt)
{
    return opt->budget * (!opt->compact ? 0.45 : opt->layout == TAMIS_SPREAD ? 0.56 : 0.7);
}
ALWAYS_INLINE double smooth_lines_rate(const struct settings *opt)
{
    return opt->budget * (opt->compact ? 0.43 : 0.045);
}
/* What its vectors and lines leave of the stated rate. */
double smooth_rate_left(const struct set *s);
ALWAYS_INLINE bool may_be_compact(const struct settings *opt)
{
    bool stated = opt->growth == TAMIS_FIXED || opt->growth == TAMIS_SCALABLE;
    return opt->growth == TAMIS_SMOOTH || (stated && !opt->deletable && !opt->published);
}
/* With default growth, filters of a smaller capacity have only lines: a vector and its stack would take more
   memory. */
#define SMOOTH_SIZED 512
ALWAYS_INLINE struct lines *set_lines(const struct set *s)
{
    return lines_root_of(&s->lines) ? (struct lines *)(uintptr_t)&s->lines : NULL;
}
/* The number of copies in vectors and lines. */
ALWAYS_INLINE uint64_t set_stored(const struct set *s)
{
    return s->stack->stored + s->lines.keys;
}
/* Creates the lines, when they are first needed. */
tamis_error smooth_start(struct set *s);
void smooth_free(struct set *s);
/* Updates what the lines may use of the memory limit, after the limit or the vectors changed. */
void smooth_limit(struct set *s);
void smooth_have(const struct set *s, const tamis_digest *digests, size_t n, uint8_t *found);
/* The function that looks up one key; sets the rest of `quick`. */
quick_fn smooth_quick(struct set *s);
/* At most SMOOTH_BATCH keys. */
#define SMOOTH_BATCH (16 * BATCH)
tamis_error smooth_add(struct set *s, const tamis_digest *digests, size_t n, uint8_t *fresh,
                       size_t *done);
/* `outcomes` may be NULL. */
void smooth_remove(struct set *s, const tamis_digest *digests, size_t n, uint8_t *outcomes);
/* Adds all entries of the other's lines. */
tamis_error smooth_unite(struct set *s, const struct set *other);
/* After a union: do vectors and lines keep the stated rate together? Restates it if requested. */
tamis_error smooth_settle(struct set *s, unsigned flags);
bool smooth_equal(const struct set *x, const struct set *y);

/* ---- filter_ask.c ---- */
/* Does some vector of the list have the digest? */
ALWAYS_INLINE bool layers_have_one(const struct layers *layers, tamis_digest digest)
{
    uint32_t n = layers_count(layers);
    if (n == 0)
        return false;
    const struct bits *first = &layers->v[0]->bits;
    return n == 1 ? first->kernel->has_one(first, digest)
           : atomic_load_explicit(&layers->mixed, memory_order_relaxed)
               ? any_in_turn(layers->v, n, digest)
               : first->kernel->has_any(layers->v, n, digest);
}
/* The same for digest i in found[i], with at least one vector. */
void layers_have(const struct layers *layers, const tamis_digest *digests, size_t n,
                 uint8_t *found);
/* found[i] = all bits of digest i are set in some vector, whatever is pending. */
void filter_bits_have(const struct set *s, const tamis_digest *digests, size_t n, uint8_t *found);
/* What set_quick chooses if there are several vectors, and, with care, if readers must announce themselves too or pending
   removals hide keys. */
bool filter_has_in_layers(const struct set *s, const void *key, size_t len);
bool filter_has_with_care(const struct set *s, const void *key, size_t len);

/* ---- filter_add.c ---- */
/* Adds to a plain vector, and counts the keys that were not there in its load. */
uint64_t vector_add(struct vector *v, const tamis_digest *digests, size_t n, uint8_t *fresh);
/* Prefetches what adding or removing keys of a deletable filter touches; at most BATCH digests. */
void filter_fetch(const struct set *s, const tamis_digest *digests, size_t n);

/* ---- set_options.c ---- */
tamis_error settings_from(struct settings *set, const tamis_options *o, tamis_reason *reason);
/* For settings from untrusted bytes: NULL, or what is impossible about them. */
const char *settings_wrong(const struct settings *set, const struct family *family);
/* The shape for n adds that set a bit, at rate p. */
tamis_error shape_for(tamis_layout layout, uint64_t n, double p, struct shape *out);
tamis_error shape_from_plan(tamis_layout layout, tamis_plan_size size, struct shape *out);

/* ---- record_form.c ---- */
/* Room for all names that a form can have. */
#define NAMES_MAX (TAMIS_ATTRIBUTES_MAX * (ATTRIBUTE_LEN + 1))
tamis_error record_form_from(struct record_form *form, char names[NAMES_MAX],
                             const tamis_records_options *o, tamis_reason *reason);
/* For a form from untrusted bytes, apart from its names, with these settings: NULL, or what is impossible. */
const char *record_form_wrong(const struct record_form *form, const struct settings *set);
bool record_form_equal(const struct record_form *x, const struct record_form *y);
const char *form_name(const struct record_form *form, uint32_t attribute);
/* The number of a name among n consecutive strings; EARG lists the names that exist. */
tamis_error attribute_find(const char *names, uint32_t n, const char *name, uint32_t *number,
                           tamis_reason *reason);
/* Checks the name and type of an attribute that follows n others, and appends its name to theirs. */
tamis_error attribute_add(const tamis_attribute *at, char names[NAMES_MAX], uint32_t *names_len,
                          uint32_t n, tamis_reason *reason);
/* Checks the n names in `len` untrusted bytes, and finds where each starts: NULL, or what is wrong. */
const char *names_wrong(const char *names, size_t len, uint32_t n,
                        uint16_t at[TAMIS_ATTRIBUTES_MAX]);
bool mask_listed(const uint64_t *masks, uint32_t n, uint64_t mask);
/* Is combination i impossible, or one of those before it? `all`: of all attributes. */
bool combo_wrong(const uint64_t *masks, uint32_t i, uint64_t all);
ALWAYS_INLINE uint64_t form_mask_all(const struct record_form *form)
{
    return UINT64_MAX >> (TAMIS_ATTRIBUTES_MAX - form->attributes);
}

/* The attributes of the mask that exist; all, if there are none. */
ALWAYS_INLINE uint64_t form_mask_of(const struct record_form *form, uint64_t mask)
{
    mask &= form_mask_all(form);
    return mask ? mask : form_mask_all(form);
}

/* ---- growth.c ---- */
/* The next layer: its capacity and share, and the shapes that layer_parts.c derives from them. */
struct layer_plan {
    uint64_t capacity;
    double fpp;
    uint32_t slot;
    struct shape shape[PARTS_MAX]; /* units 0: a table */
    uint64_t asked[PARTS_MAX];     /* values that each part is planned for */
    uint64_t room[PARTS_MAX];      /* values that it holds */
};
/* Creates the next layer with its size and share, without appending it. */
tamis_error growth_next(struct set *s, struct layer **out);
/* Creates and appends a layer; if this fails, the forecast is unchanged. */
tamis_error growth_grow(struct set *s, struct layer **out);
/* For a key that no layer takes: a new layer; if the set is full or at its bound, the newest one, which may be
   overfilled if the options allow it, otherwise EFULL. */
tamis_error growth_layer(struct set *s, bool full, struct layer **out);
/* Has the set reached its bound, so that no layer is created and the existing ones can only be overfilled? */
bool growth_bound(const struct set *s);
/* Keys or records that may still be added before the set reaches its bound. */
uint64_t growth_room(const struct set *s);
/* Do all vectors of a part together have more ones than they should? */
bool growth_over(const struct layers *layers, uint32_t part);
/* Filters: a layer with room for a new key, created if necessary. */
tamis_error growth_active(struct set *s, struct layer **out);
/* The maximal number of layers of a dynamic set, or of a window with a given number of layers. */
uint32_t growth_layers_max(const struct settings *set);
/* The rate of the only vector of a smooth, fixed or scalable set. */
double growth_first_rate(const struct settings *opt);
/* Windows: drops old layers and starts a new one when it is due. */
tamis_error growth_turn(struct set *s, uint64_t now);
/* The first free slot from `from` on whose share is at least fpp; or SLOT_NONE. */
uint32_t growth_slot(const struct set *s, uint32_t from, double fpp);

/* ---- layer_parts.c ---- */
/* The shapes of a layer of this capacity and rate. */
tamis_error plan_parts(const struct set *s, struct layer_plan *plan);
tamis_error plan_make(struct set *s, const struct layer_plan *plan, struct layer **out);
/* The square root of m, rounded up: two standard deviations of the ones among m bits. */
uint64_t growth_root(uint64_t m);
/* Sets capacity and rate of a vector in a set, and the ones at which it counts as full. */
void set_limits(const struct settings *set, struct vector *v, uint64_t capacity, double fpp);

/* ---- records_verify.c: verification values ---- */
/* The digest that a part of the layer stores of a record; for a table, the value is `a`. */
tamis_digest part_digest(const struct set *s, const struct layer *layer, uint32_t part,
                         const tamis_digest *key);
/* All parts of a layer with the digest that each stores of a key. */
uint32_t layer_spots(const struct set *s, struct layer *layer, const tamis_digest *key,
                     struct spot *out);
/* Also for catalogs: the digest of an attribute's value in the normal form of its type, and the digest that a
   filter stores of the attributes in the mask, `mixed`. */
tamis_digest value_digest(const struct family *family, tamis_type type, uint32_t attribute,
                          tamis_key value);
tamis_digest normal_digest(const struct family *family, uint32_t attribute, tamis_key normal);
tamis_digest value_part_digest(const struct family *family, uint32_t attribute, tamis_key part);
tamis_digest mixed_digest(uint64_t mask, const tamis_digest *record);
bool spot_has(const struct spot *spot);
/* Prefetches the bits and counters of deletable parts. */
void spots_prefetch(const struct spot *spots, uint32_t n);

/* ---- records_ask.c ---- */
/* found[i] = some layer has all of record i in the attributes and verifiers of the mask. */
void records_bits_have(const struct set *s, uint64_t mask, const tamis_digest *records, size_t n,
                       uint8_t *found);
/* The digests of a part for the records in who[0..n-1], at least one. */
void records_column(const struct set *s, const tamis_digest *records, const struct layer *layer,
                    uint32_t part, const uint8_t *who, size_t n, tamis_digest *column);
/* Tests one part for these records and keeps those it has; returns their number. `fetch`: prefetches it first. */
size_t records_keep(const struct set *s, const tamis_digest *records, const struct layer *layer,
                    uint32_t part, bool fetch, uint8_t *who, size_t n);

/* ---- set_remove.c ---- */
/* Does a pending removal hide the key? May run beside a writer that adds. */
bool set_hides(const struct set *s, const tamis_digest *key);
/* The ids of the layers that may store the key; room for all of them. */
uint32_t set_matches(const struct set *s, const tamis_digest *key, uint32_t *ids);

/* ---- set_merge.c ---- */
/* Dynamic: unites pairs of vectors that fit into one, testing at most `looks` pairs. `merged`: some were
   united, and there may be more. */
tamis_error set_merge_pairs(struct set *s, uint64_t looks, bool *merged);
/* The number of copies that must be removed before two vectors can fit into one; 0: perhaps two do now. */
uint64_t set_pair_distance(const struct set *s);
/* Raises the stated rate. */
void set_restate(struct set *s, double more);

#endif
