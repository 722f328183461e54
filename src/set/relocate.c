/* Moves the memory of a set: see any_set.h. Part 0 is the head and everything that exists once; then layers and
   the parts of lines, one per part; then the candidates of pending removals, several per part. */
#include "set.h"

#define CANDIDATES 64 /* entries per part */

/* Moves what a pointer points to; `pointer` is its address. */
static void move_plain(const struct mover *m, void *pointer)
{
    void *memory, *moved;
    memcpy(&memory, pointer, sizeof memory);
    moved = memory ? m->move(m->context, memory) : NULL;
    if (moved)
        memcpy(pointer, &moved, sizeof moved);
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
    if (!*changes)
        return;
    move_block(m, &(*changes)->dirty);
    move_plain(m, &(*changes)->touched);
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

static void move_vector(const struct mover *m, struct vector **v)
{
    move_plain(m, v);
    move_block(m, &(*v)->memory);
    if ((*v)->memory.base)
        (*v)->bits.words = (*v)->memory.data;
    move_block(m, &(*v)->turned);
    move_changes(m, &(*v)->changes);
    kept_sums_move(&(*v)->sums, m->move, m->context);
    if ((*v)->deletable) {
        move_block(m, &(*v)->counters.nibbles);
        move_table(m, &(*v)->counters.escapes);
        kept_sums_move(&(*v)->counter_sums, m->move, m->context);
    }
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

static void move_matrix(const struct mover *m, struct set *s)
{
    struct matrix *matrix = atomic_load(&s->stack->more->matrix);
    if (!matrix)
        return;
    move_plain(m, &matrix);
    move_block(m, &matrix->memory);
    if (matrix->memory.base)
        matrix->bits.words = matrix->memory.data;
    atomic_store(&s->stack->more->matrix, matrix);
    set_place_columns(s);
}

/* Terms are not moved: other sets use them too. */
static struct set *move_head(struct set *s, const struct mover *m)
{
    set_reclaim(s, true);
    if (set_lines(s))
        lines_reclaim(set_lines(s), true);
    if (!m->pinned)
        move_plain(m, &s);
    if (set_has_stack(s)) {
        move_plain(m, &s->stack);
        if (set_stacked(s))
            move_plain(m, &s->stack->more);
        struct layers *layers = set_layers(s);
        move_plain(m, &layers);
        layers->l = (struct layer **)(void *)(layers->v + layers->room);
        atomic_store(&s->stack->layers, layers);
        move_matrix(m, s);
        move_plain(m, &s->stack->form);
        if (s->stack->form)
            s->stack->form->names = (const char *)(s->stack->form + 1);
        move_removals(m, &s->stack->more->removals);
    }
    if (set_lines(s))
        lines_move(set_lines(s), m->move, m->context);
    if (set_family(s)->h3)
        move_plain(m, &set_family(s)->h3);
    set_quick(s);
    return s;
}

static void move_layer(const struct mover *m, struct layers *layers, unsigned long i)
{
    move_plain(m, &layers->l[i]);
    for (uint32_t j = 0; j < layers->l[i]->parts; j++) {
        struct part *part = &layers->l[i]->part[j];
        if (part->vector)
            move_vector(m, &part->vector);
        else
            move_table(m, &part->table);
    }
    layers->v[i] = layers->l[i]->part[0].vector;
}

unsigned long set_move(struct set **s, const struct mover *m, unsigned long from)
{
    for (unsigned long part = from;; part++) {
        struct layers *layers = set_layers(*s);
        struct lines *lines = set_lines(*s);
        unsigned long n = layers_count(layers), parts = lines ? lines_parts(lines) : 0;
        if (part > from && m->stop(m->context))
            return part;
        if (part == 0)
            *s = move_head(*s, m);
        else if (part <= n)
            move_layer(m, layers, part - 1);
        else if (part <= n + parts)
            part_move(lines, (uint32_t)(part - n - 1), m->move, m->context);
        else if (!move_candidates(m, &(*s)->stack->more->removals, part - n - parts - 1))
            return 0;
        if (part == 1) /* the vector for single lookups, if it is the only one */
            set_quick(*s);
    }
}
