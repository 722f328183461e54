/*
 * An index inside. A layer is a part for each attribute, a vector of its values, and a part for each
 * verifier, a vector or a table of the verification values of its records:
 *
 *     part 0 .. p-1        attribute 0 .. p-1
 *     part p .. p+v-1      verifier 0 .. v-1, of the attributes in masks[0 .. v-1]
 *
 * Layers stand in lockstep: a record is in all parts of one layer, so a match must come from one
 * layer. Each layer has a share of the stated rate, and each of its parts is sized for that share;
 * so single attributes, declared combinations and whole records keep the rate over all layers.
 *
 * A layer takes a record if it has room for one more and the record sets no bit in a part that is
 * full. So an attribute with more values than planned does not close its layer to the values it
 * has, and records with others go into the next layer, which is made with a larger plan for it.
 */
#ifndef TAMIS_INDEX_H
#define TAMIS_INDEX_H

#include <stdatomic.h>

#include "filter.h"
#include "pending.h"
#include "table.h"

#define PARTS_MAX     SPOTS_MAX
#define VERIFIERS_MAX (TAMIS_COMBOS_MAX + 1)
#define ATTRIBUTE_LEN 255 /* of a name */

/* The options as settled when the index was made; plain data, saved with it. */
struct index_settings {
    struct settings grow; /* growth, layout, rate, capacity...; the shape is not used */
    uint32_t attributes, verifiers;
    uint64_t masks[VERIFIERS_MAX]; /* the whole record first, where it is verified */
    uint64_t distinct[TAMIS_ATTRIBUTES_MAX];
    tamis_type types[TAMIS_ATTRIBUTES_MAX];
    tamis_verifier verifier;
    tamis_verify value;
};

struct part {
    struct vector *vector; /* or, if NULL, */
    struct table table;
};

struct layer {
    uint32_t id;       /* never used again in the same index */
    uint32_t slot;     /* which share of the budget it has */
    uint64_t capacity; /* records */
    uint64_t load;     /* adds that set a bit in some part, less removals that cleared one */
    uint64_t count;    /* copies stored: adds less settled removals */
    double fpp;
    uint64_t born;
    uint32_t parts;
    struct part part[];
};

/* The layers, oldest first; readers and the writer share it as a filter's stack. */
struct layers {
    struct layers *retired;
    uint32_t room;
    _Atomic uint32_t n;
    struct layer *l[];
};

struct tamis_index {
    tamis_allocator allocator;
    struct family family;
    struct index_settings set;
    char *names; /* one after the other, each with its final 0 */
    size_t names_len;
    struct layers *_Atomic layers;
    struct guard *guard; /* where readers may be in a table that is replaced */
    struct removals removals;
    uint64_t stored; /* sum of the layers' counts */
    uint32_t next_id;
    struct forecast forecast;
    uint32_t grown; /* layers made so far, the first included */
    tamis_clock clock;
    void *clock_context;
    struct mapping mapping; /* the file that vectors and tables are views of, or none */
    bool read_only;
    bool bits_only; /* came without counters and pending removals; for good */
};

/* ---- index.c ---- */
ALWAYS_INLINE struct layers *index_layers(const tamis_index *x)
{
    return atomic_load_explicit(&x->layers, memory_order_acquire);
}

ALWAYS_INLINE uint32_t layers_count(const struct layers *layers)
{
    return atomic_load_explicit(&layers->n, memory_order_acquire);
}

ALWAYS_INLINE uint64_t index_mask_all(const tamis_index *x)
{
    return UINT64_MAX >> (TAMIS_ATTRIBUTES_MAX - x->set.attributes);
}

/* Of all layers, and one by its number: layer by layer. */
ALWAYS_INLINE uint32_t index_parts(const tamis_index *x)
{
    return layers_count(index_layers(x)) * (x->set.attributes + x->set.verifiers);
}

ALWAYS_INLINE struct part *index_part(const tamis_index *x, uint32_t i)
{
    uint32_t parts = x->set.attributes + x->set.verifiers;
    return &index_layers(x)->l[i / parts]->part[i % parts];
}

const char *index_name(const tamis_index *x, uint32_t attribute);
/* Which of n names, one after the other, each with its zero; EARG says which there are. */
tamis_error attribute_find(const char *names, uint32_t n, const char *name, uint32_t *number,
                           tamis_reason *reason);
tamis_error index_writable(const tamis_index *x);
/* Are there counters where the index is deletable? Not in mapped files and copies of bits. */
bool index_counted(const tamis_index *x);
struct layer *index_layer_by_id(const tamis_index *x, uint32_t id);
/* An index without layers, with a list for `room` of them. The names are copied. */
tamis_error index_make(tamis_index **out, const tamis_allocator *a,
                       const struct index_settings *set, const char *names, size_t names_len,
                       uint32_t room);
void index_dispose(tamis_index *x); /* frees what the index holds, not the index */
struct layers *layers_new(const tamis_allocator *a, uint32_t room);
/* Puts back a layer that was saved, with its id; the list has room. */
void index_put_back(tamis_index *x, struct layer *layer);
/* Appends a layer; without memory it is freed. */
tamis_error index_append(tamis_index *x, struct layer *layer);
/* Takes layer i out and frees it; needs the index to itself. */
void index_drop(tamis_index *x, uint32_t i);
/* Frees what readers may have held: all of it when the caller is alone, else when none is inside. */
void index_reclaim(tamis_index *x, bool alone);
void index_empty(tamis_index *x); /* to the first day; cannot fail */

/* ---- index_verify.c: verification values ---- */
/* What a part of the layer has of a record; for a table the value is `a`. */
tamis_digest index_part_digest(const tamis_index *x, const struct layer *layer, uint32_t part,
                               const tamis_digest *record);
/* All parts of a layer with what they have of a record. */
uint32_t index_layer_spots(const tamis_index *x, struct layer *layer, const tamis_digest *record,
                           struct spot *out);
/* Those of a catalog too: a value of an attribute, brought to the normal form of its type, and what a
   filter keeps of the attributes in the mask, `mixed`. */
tamis_digest value_digest(const struct family *family, tamis_type type, uint32_t attribute,
                          tamis_key value);
tamis_digest mixed_digest(uint64_t mask, const tamis_digest *record);
bool spot_has(const struct spot *spot);
/* Brings the bits and counters of deletable parts. */
void spots_prefetch(const struct spot *spots, uint32_t n);

/* ---- index_grow.c ---- */
tamis_error index_settings_from(struct index_settings *set, const tamis_index_options *o,
                                tamis_reason *reason);
/* For settings from elsewhere: NULL, or which of them no index can have. */
const char *index_settings_wrong(const struct index_settings *set, const struct family *family);
uint32_t index_slot(const tamis_index *x, uint32_t from, double fpp);
/* The next layer, sized and given its share, not yet appended. */
tamis_error index_next_layer(tamis_index *x, struct layer **out);
/* One layer more; ESPACE past the limit of memory. */
tamis_error index_grow(tamis_index *x);
struct layer *layer_new(const tamis_allocator *a, uint32_t parts);
void layer_free(struct layer *layer, const tamis_allocator *a);
/* Records in it that count for its capacity. */
uint64_t layer_load(const struct layer *layer, bool deletable);
uint64_t index_bytes(const tamis_index *x);

/* ---- index_ask.c ---- */
/* found[i] = some layer has all of record i in the attributes and verifiers of the mask. */
void index_bits_have(const tamis_index *x, uint64_t mask, const tamis_digest *records, size_t n,
                     uint8_t *found);
/* found[i] = the part has column[i]; at most BATCH. */
void part_has(const struct part *part, const tamis_digest *column, size_t n, uint8_t *found);
void part_prefetch(const struct part *part, const tamis_digest *column, size_t n);

/* ---- index_remove.c ---- */
struct removing index_removing(tamis_index *x);
/* The ids of the layers that may store the record; room for all of them. */
uint32_t index_matches(const tamis_index *x, const tamis_digest *record, uint32_t *ids);

#endif
