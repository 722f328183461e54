/* See model.h. */
#include "model.h"

#include <stdlib.h>
#include <string.h>

bool model_init(struct model *model, uint32_t keys, bool deletable, bool unique)
{
    *model = (struct model){.keys = keys, .deletable = deletable, .unique = unique};
    model->vector = calloc(MODEL_VECTORS, sizeof *model->vector);
    model_clear(model);
    return model->vector != NULL;
}

void model_free(struct model *model)
{
    free(model->vector);
    model->vector = NULL;
}

void model_copy(struct model *to, const struct model *from)
{
    struct model_vector *own = to->vector;
    *to = *from;
    to->vector = own;
    memcpy(own, from->vector, from->vectors * sizeof *own);
}

void model_clear(struct model *model)
{
    memset(model->copies, 0, sizeof model->copies);
    memset(model->pending, 0, sizeof model->pending);
    memset(model->added, 0, sizeof model->added);
    model->total = model->fresh = 0;
    model->counted = model->placed = true;
    model->merged = false;
    model->vectors = 0;
}

/* ---- where copies are ------------------------------------------------------------------------ */

struct model_vector *model_vector_at(struct model *model, uint32_t id)
{
    for (uint32_t i = 0; i < model->vectors; i++)
        if (model->vector[i].id == id)
            return &model->vector[i];
    if (model->vectors == MODEL_VECTORS)
        return NULL;
    struct model_vector *v = &model->vector[model->vectors++];
    memset(v, 0, sizeof *v);
    v->id = id;
    return v;
}

bool model_put(struct model *model, uint32_t id, uint32_t key)
{
    struct model_vector *v = model_vector_at(model, id);
    if (!v) {
        model->placed = false; /* more vectors than it looks after */
        return true;
    }
    v->copies[key]++;
    v->count++;
    return true;
}

bool model_settle(struct model *model, uint32_t key, uint32_t left)
{
    uint32_t holders = 0, stored = 0;
    struct model_vector *last = NULL;
    for (uint32_t i = 0; i < model->vectors; i++) {
        struct model_vector *v = &model->vector[i];
        stored += v->copies[key];
        if (v->copies[key]) {
            last = v;
            holders++;
        }
        if (left == 0) {
            v->count -= v->copies[key];
            v->copies[key] = 0;
        }
    }
    if (stored < left)
        return false;
    if (left == 0 || stored == left)
        return true;
    if (holders != 1)
        return false;
    last->count -= stored - left;
    last->copies[key] = (uint16_t)left;
    return true;
}

/* ---- cells ----------------------------------------------------------------------------------- */

static uint64_t high_word(uint64_t x, uint64_t y)
{
    uint64_t x1 = x >> 32, x0 = x & UINT32_MAX, y1 = y >> 32, y0 = y & UINT32_MAX;
    uint64_t middle = x1 * y0 + (x0 * y0 >> 32);
    uint64_t carry = (middle & UINT32_MAX) + x0 * y1;
    return x1 * y1 + (middle >> 32) + (carry >> 32);
}

/* Each probe is y further than the one before; y turns by 21 bits and grows by c, 2c, 3c ... with
   c = 2^64 / phi, odd. */
static void spread_positions(const struct model_shape *shape, tamis_digest d, uint64_t *positions)
{
    const uint64_t c = UINT64_C(0x9E3779B97F4A7C15);
    uint64_t x = d.a, y = d.b;
    for (uint64_t j = 0; j < shape->k; j++) {
        positions[j] = high_word(x, shape->units);
        x += y;
        y = y * (UINT64_C(1) << 21) + y / (UINT64_C(1) << 43) + (j + 1) * c;
    }
}

/* Probe j is in lane rotation + j of the block; round j / 8 has a word of its own. */
static void blocked_positions(const struct model_shape *shape, tamis_digest d, uint64_t *positions)
{
    const uint64_t mix = UINT64_C(0xD6E8FEB86659FD93);
    uint64_t block = high_word(d.a, shape->units), word = d.b;
    for (unsigned j = 0; j < shape->k; j++) {
        if (j && j % 8 == 0)
            word = word * mix ^ high_word(word, mix);
        uint64_t lane = ((d.b >> 61) + j) % 8;
        positions[j] = 512 * block + 64 * lane + (word >> 6 * lane) % 64;
    }
}

void model_positions(const struct model_shape *shape, tamis_digest digest, uint64_t *positions)
{
    if (shape->layout == TAMIS_BLOCKED)
        blocked_positions(shape, digest, positions);
    else
        spread_positions(shape, digest, positions);
}

uint64_t model_cells_total(const struct model_shape *shape)
{
    return shape->layout == TAMIS_BLOCKED ? 512 * shape->units : shape->units;
}

void model_add_cells(const struct model_shape *shape, tamis_digest digest, uint32_t copies,
                     uint32_t *cells)
{
    uint64_t positions[64];
    model_positions(shape, digest, positions);
    for (unsigned j = 0; j < shape->k; j++)
        cells[positions[j]] += copies;
}
