/*
 * What a filter must hold, kept the plain way: copies by key, one number a cell. It shares no code
 * with the library and knows of it only the public header; how a digest becomes positions is
 * written here a second time, from the comments in src/hash/digest.h and src/bits/kernel.h.
 *
 * The model does not decide where the library puts a key; it is told (model_put) and then knows what
 * every cell must be, until a union of filters with vectors of several shapes hides it (`placed`).
 */
#ifndef TAMIS_TESTS_MODEL_H
#define TAMIS_TESTS_MODEL_H

#include "tamis.h"

#define MODEL_KEYS    512
#define MODEL_VECTORS 96

struct model_shape {
    tamis_layout layout;
    uint64_t units;
    unsigned k;
};

struct model_vector {
    uint32_t id;
    uint32_t count;              /* sum of the copies */
    uint16_t copies[MODEL_KEYS]; /* stored here, what is pending included */
};

struct model {
    uint32_t keys; /* of the universe */
    bool deletable, unique;
    uint32_t copies[MODEL_KEYS];  /* of members; 0 or 1 in plain filters */
    uint32_t pending[MODEL_KEYS]; /* removals not settled, as the filter says */
    uint64_t added[MODEL_KEYS];   /* clock of the last add */
    uint64_t total;               /* sum of the copies */
    uint64_t fresh;               /* plain: adds that were fresh */
    bool counted;                 /* fresh is what the filter must say */
    bool merged;                  /* a union may have made pending keys visible */
    bool placed;
    uint32_t vectors;
    struct model_vector *vector; /* MODEL_VECTORS of them */
};

bool model_init(struct model *model, uint32_t keys, bool deletable, bool unique);
void model_free(struct model *model);
void model_copy(struct model *to, const struct model *from);
void model_clear(struct model *model); /* empty, placed and counted again */

/* Where a copy went, or was taken from. False if the model knows that it cannot be. */
bool model_put(struct model *model, uint32_t id, uint32_t key);
struct model_vector *model_vector_at(struct model *model, uint32_t id); /* made if new; or NULL */
/* Copies of a key left the vectors: `left` stay in all of them together. Only one vector may have
   held it, or none keeps it: else nobody could know where to take it from. */
bool model_settle(struct model *model, uint32_t key, uint32_t left);

/* The k positions of a digest, by the description alone. */
void model_positions(const struct model_shape *shape, tamis_digest digest, uint64_t *positions);
uint64_t model_cells_total(const struct model_shape *shape);
/* cells[p] += copies of each key times the probes that hit p. */
void model_add_cells(const struct model_shape *shape, tamis_digest digest, uint32_t copies,
                     uint32_t *cells);

#endif
