/* The vectors of a dynamic filter are columns of one matrix (matrix.h); this file maintains
   their positions in it. */
#include "set.h"

void set_place_columns(struct set *s)
{
    struct matrix *matrix = atomic_load(&s->stack->more->matrix);
    const struct layers *layers = set_layers(s);
    for (uint32_t i = 0; i < layers_count(layers); i++) {
        layers->v[i]->bits.words = matrix->bits.words;
        layers->v[i]->stride = matrix->width;
    }
}

static void matrix_publish(struct set *s, struct matrix *matrix)
{
    atomic_store(&s->stack->more->matrix, matrix);
    set_place_columns(s);
}

bool set_reserve_columns(struct set *s, uint32_t n, const struct bits *shape)
{
    struct matrix *matrix = atomic_load(&s->stack->more->matrix);
    if (matrix && matrix->width >= n)
        return true;
    uint64_t width = matrix_width_for(n);
    struct matrix *wider = matrix ? matrix_resize(matrix, set_allocator(s), width)
                                  : matrix_new(set_allocator(s), shape, width);
    if (!wider)
        return false;
    wider->retired = matrix;
    matrix_publish(s, wider);
    return true;
}

tamis_error set_place_column(struct set *s, struct vector *v, uint32_t n)
{
    if (!set_reserve_columns(s, n + 1, &v->bits))
        return TAMIS_ENOMEM;
    const struct matrix *matrix = atomic_load(&s->stack->more->matrix);
    v->bits.words = matrix->bits.words;
    v->stride = matrix->width;
    v->column = n;
    return TAMIS_OK;
}

void set_narrow(struct set *s)
{
    struct matrix *matrix = atomic_load(&s->stack->more->matrix);
    uint64_t width = matrix_width_for(max_u64(1, layers_count(set_layers(s))));
    struct matrix *narrow =
        width < matrix->width ? matrix_resize(matrix, set_allocator(s), width) : NULL;
    if (!narrow)
        return;
    matrix_free(matrix, set_allocator(s));
    matrix_publish(s, narrow);
}

/* Keeps the columns at 0..n-1, in any order. */
void set_drop_column(struct set *s, struct vector *v)
{
    struct matrix *matrix = atomic_load(&s->stack->more->matrix);
    const struct layers *layers = set_layers(s);
    uint32_t last = layers_count(layers);
    for (uint32_t i = 0; i < last && v->column != last; i++)
        if (layers->v[i]->column == last) {
            matrix_column_move(matrix, v->column, last);
            layers->v[i]->column = v->column;
            v->column = last;
        }
    vector_clear(v);
    if (3 * matrix_width_for(last ? last : 1) <= matrix->width)
        set_narrow(s);
}

tamis_error set_clone_columns(struct set *to, const struct set *from, bool half)
{
    const struct matrix *matrix = atomic_load(&from->stack->more->matrix);
    struct matrix *same = half ? matrix_fold(matrix, set_allocator(to))
                               : matrix_resize(matrix, set_allocator(to), matrix->width);
    if (!same)
        return TAMIS_ENOMEM;
    same->bits.family = set_family(to);
    matrix_publish(to, same);
    return TAMIS_OK;
}

void set_clear_columns(struct set *s)
{
    struct matrix *matrix = atomic_load(&s->stack->more->matrix);
    struct matrix *narrow = matrix_new(set_allocator(s), &matrix->bits, 1);
    if (narrow) {
        matrix_free(matrix, set_allocator(s));
        atomic_store(&s->stack->more->matrix, narrow);
    } else {
        memset(matrix->memory.data, 0, (size_t)(matrix->width * matrix->bits.units / 8));
    }
}

bool set_match(const struct set *s, tamis_digest digest, struct match *match)
{
    const struct matrix *matrix = atomic_load(&s->stack->more->matrix);
    match->digest = digest;
    match->known = matrix && matrix_words(matrix) <= sizeof match->columns / 8;
    if (match->known)
        return matrix_match(matrix, digest, match->columns);
    const struct layers *layers = set_layers(s);
    if (!matrix)
        return layers_have_one(layers, digest);
    uint8_t found = 0;
    matrix_has(matrix, &digest, 1, &found);
    return found;
}
