/* See move.h. Part 0 is the head and what there is once; then vectors or layers, one a part; then the
   candidates of pending removals, some a part. */
#include "move.h"

#include "index.h"

#define CANDIDATES 64 /* entries a part */

/* Moves what a pointer points to; `place` is where the pointer is. */
static void move_plain(const struct mover *m, void *place)
{
    void *memory, *moved;
    memcpy(&memory, place, sizeof memory);
    moved = memory ? m->move(m->context, memory) : NULL;
    if (moved)
        memcpy(place, &moved, sizeof moved);
}

static void move_block(const struct mover *m, struct block *block)
{
    void *moved = block->base && !block->mapped ? m->move(m->context, block->base) : NULL;
    if (moved)
        block_moved(block, moved);
}

static void move_changes(const struct mover *m, struct changes **changes)
{
    move_plain(m, changes);
    if (*changes)
        move_block(m, &(*changes)->dirty);
}

static void move_vector(const struct mover *m, struct vector **v)
{
    move_plain(m, v);
    move_block(m, &(*v)->memory);
    if ((*v)->memory.base)
        (*v)->bits.words = (*v)->memory.data;
    move_block(m, &(*v)->counters.nibbles);
    move_plain(m, &(*v)->counters.escapes);
    move_block(m, &(*v)->turned);
    move_changes(m, &(*v)->changes);
}

static void move_table(const struct mover *m, struct table *table)
{
    struct table_slots *slots = atomic_load(&table->slots);
    if (!slots)
        return;
    move_plain(m, &slots);
    move_block(m, &slots->memory);
    slots->slot = slots->memory.data;
    atomic_store(&table->slots, slots);
}

static void move_removals(const struct mover *m, struct removals *r)
{
    move_plain(m, &r->entries);
    move_plain(m, &r->keys);
    move_plain(m, &r->index);
    move_plain(m, &r->queue);
    move_plain(m, &r->watches.list);
    move_plain(m, &r->watches.heads);
}

/* Candidates of part `part` of them; false past the last. */
static bool move_candidates(const struct mover *m, struct removals *r, unsigned long part)
{
    if (part >= (r->room + CANDIDATES - 1) / CANDIDATES)
        return false;
    uint32_t first = (uint32_t)part * CANDIDATES;
    for (uint32_t i = first; i < r->room && i < first + CANDIDATES; i++)
        move_plain(m, &r->entries[i].candidates);
    return true;
}

/* ---- filters --------------------------------------------------------------------------------- */

static tamis_filter *move_filter_head(tamis_filter *f, const struct mover *m)
{
    struct stack *stack;
    struct matrix *matrix;
    filter_reclaim(f, true);
    if (!m->pinned)
        move_plain(m, &f);
    stack = filter_stack(f);
    move_plain(m, &stack);
    atomic_store(&f->stack, stack);
    matrix = atomic_load(&f->matrix);
    if (matrix) {
        move_plain(m, &matrix);
        move_block(m, &matrix->memory);
        if (matrix->memory.base)
            matrix->bits.words = matrix->memory.data;
        matrix->bits.family = &f->family;
        atomic_store(&f->matrix, matrix);
        filter_place_columns(f);
    }
    for (uint32_t i = 0; i < stack_count(stack); i++)
        stack->v[i]->bits.family = &f->family;
    move_plain(m, &f->guard);
    move_plain(m, &f->family.h3);
    move_removals(m, &f->removals);
    filter_set_quick(f);
    return f;
}

unsigned long filter_move(tamis_filter **f, const struct mover *m, unsigned long from)
{
    for (unsigned long part = from;; part++) {
        struct stack *stack = filter_stack(*f);
        unsigned long n = stack_count(stack);
        if (part > from && m->stop(m->context))
            return part;
        if (part == 0)
            *f = move_filter_head(*f, m);
        else if (part <= n)
            move_vector(m, &stack->v[part - 1]);
        else if (!move_candidates(m, &(*f)->removals, part - n - 1))
            return 0;
        if (part == 1) /* the one that it asks at once, if it is the only one */
            filter_set_quick(*f);
    }
}

/* ---- indexes --------------------------------------------------------------------------------- */

static tamis_index *move_index_head(tamis_index *x, const struct mover *m)
{
    struct layers *layers;
    index_reclaim(x, true);
    if (!m->pinned)
        move_plain(m, &x);
    layers = index_layers(x);
    move_plain(m, &layers);
    atomic_store(&x->layers, layers);
    for (uint32_t i = 0; i < layers_count(layers); i++)
        for (uint32_t j = 0; j < layers->l[i]->parts; j++)
            if (layers->l[i]->part[j].vector)
                layers->l[i]->part[j].vector->bits.family = &x->family;
    move_plain(m, &x->names);
    move_plain(m, &x->guard);
    move_plain(m, &x->family.h3);
    move_removals(m, &x->removals);
    return x;
}

static void move_layer(const struct mover *m, struct layer **layer)
{
    move_plain(m, layer);
    for (uint32_t i = 0; i < (*layer)->parts; i++) {
        struct part *part = &(*layer)->part[i];
        if (part->vector)
            move_vector(m, &part->vector);
        else
            move_table(m, &part->table);
    }
}

unsigned long index_move(tamis_index **x, const struct mover *m, unsigned long from)
{
    for (unsigned long part = from;; part++) {
        struct layers *layers = index_layers(*x);
        unsigned long n = layers_count(layers);
        if (part > from && m->stop(m->context))
            return part;
        if (part == 0)
            *x = move_index_head(*x, m);
        else if (part <= n)
            move_layer(m, &layers->l[part - 1]);
        else if (!move_candidates(m, &(*x)->removals, part - n - 1))
            return 0;
    }
}
