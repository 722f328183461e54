/* The changes of one vector: which positions, and for counters their new values. */
#include "delta.h"

enum { MODE_SAME, MODE_GAPS, MODE_RAW, MODE_END };

/* ---- gaps ------------------------------------------------------------------------------------ */

/* For n gaps over that many cells: chooses the split so that a run continues with a probability
   near 1/2. */
static void gap_begin(struct gap_models *g, uint64_t cells, uint64_t n)
{
    g->low = 0;
    while (n && g->low < 40 && n << (g->low + 1) <= cells - n)
        g->low++;
    models_reset(g->run, GAP_RUN);
    models_reset(g->level, GAP_LEVELS);
}

static struct model *run_model(struct gap_models *g, uint64_t i)
{
    return &g->run[min_u64(i, GAP_RUN - 1)];
}

/* The lowest bits have probability 1/2; the first GAP_LEVELS below the run are modelled. */
static void out_gap(struct delta_out *o, struct gap_models *g, uint64_t gap)
{
    uint64_t run = gap >> g->low;
    unsigned left = g->low;
    for (uint64_t i = 0; i < run; i++)
        out_bit(o, run_model(g, i), true);
    out_bit(o, run_model(g, run), false);
    for (unsigned level = 0; left && level < GAP_LEVELS; level++)
        out_bit(o, &g->level[level], gap >> --left & 1);
    if (left)
        out_direct(o, gap & ((UINT64_C(1) << left) - 1), left);
}

/* At most `most`; otherwise the stream is broken. */
static uint64_t in_gap(struct delta_in *in, struct gap_models *g, uint64_t most)
{
    uint64_t run = 0, gap = 0;
    unsigned left = g->low;
    while (!in->broken && in_bit(in, run_model(g, run)))
        in->broken |= ++run << g->low > most;
    for (unsigned level = 0; left && level < GAP_LEVELS; level++, left--)
        gap = gap << 1 | in_bit(in, &g->level[level]);
    if (left)
        gap = gap << left | in_direct(in, left);
    gap |= run << g->low;
    in->broken |= gap > most;
    return in->broken ? 0 : gap;
}

/* ---- sets of positions ----------------------------------------------------------------------- */

/*
 * Positions in rising order, as the gaps between them. Where the bits of a key are in one block (a
 * unit of the kernel), gaps are counted within the blocks that have any, and the first position in
 * a new block is preceded by the gap between the blocks.
 */
struct positions {
    struct gap_models cells, blocks;
    uint64_t total, next; /* positions of the vector; the lowest that is still possible */
    uint64_t width;       /* of a block; 0: blocks are not distinguished */
    uint64_t cell, cell_end, block, n_blocks; /* the next cell; block + 1 of the last one */
};

static uint64_t block_width(const struct vector *v)
{
    return v->bits.kernel->local ? v->bits.kernel->unit_bits : 0;
}

static void positions_begin(struct positions *p, const struct vector *v, uint64_t changed,
                            uint64_t touched)
{
    p->total = vector_positions_total(v);
    p->width = block_width(v);
    p->next = p->cell = p->cell_end = p->block = 0;
    p->n_blocks = p->width ? p->total / p->width : 0;
    gap_begin(&p->cells, p->width ? touched * p->width : p->total, changed);
    if (p->width)
        gap_begin(&p->blocks, p->n_blocks, touched);
}

static void out_position(struct delta_out *o, struct positions *p, uint64_t at)
{
    if (!p->width) {
        out_gap(o, &p->cells, at - p->next);
        p->next = at + 1;
        return;
    }
    bool enters = at / p->width + 1 != p->block;
    uint64_t first = enters ? p->cell_end : p->cell_end - p->width;
    uint64_t cell = first + at % p->width;
    out_gap(o, &p->cells, cell - p->cell);
    p->cell = cell + 1;
    if (enters) {
        out_gap(o, &p->blocks, at / p->width - p->block);
        p->block = at / p->width + 1;
        p->cell_end += p->width;
    }
}

/* The next position; p->total if there is none, which means broken. */
static uint64_t in_position(struct delta_in *in, struct positions *p)
{
    uint64_t at = p->total;
    if (!p->width) {
        if (p->next < p->total)
            at = p->next + in_gap(in, &p->cells, p->total - 1 - p->next);
        p->next = at + 1;
    } else {
        uint64_t cell = p->cell + in_gap(in, &p->cells, p->cell_end + p->width - 1 - p->cell);
        if (cell >= p->cell_end && p->block < p->n_blocks) {
            p->block += in_gap(in, &p->blocks, p->n_blocks - 1 - p->block) + 1;
            p->cell_end += p->width;
        }
        p->cell = cell + 1;
        if (cell < p->cell_end)
            at = (p->block - 1) * p->width + cell % p->width;
    }
    in->broken |= at >= p->total;
    return in->broken ? p->total : at;
}

/* ---- writing --------------------------------------------------------------------------------- */

static uint64_t change_word(const struct step *s, uint64_t i)
{
    if (s->counted)
        return counters_changed(&s->v->counters, s->base ? &s->base->counters : NULL, i);
    return vector_word(s->v, i) ^ (s->base ? vector_word(s->base, i) : 0);
}

static bool page_changed(const struct step *s, uint64_t page)
{
    if (s->touched)
        return s->touched[page];
    if (!s->base || (s->counted && (s->base->counters.escapes.used || s->v->counters.escapes.used)))
        return true; /* escaped counters are in no page */
    /* Another reader may start to keep them. */
    const struct kept_sums *before =
        __atomic_load_n(s->counted ? &s->base->counter_sums : &s->base->sums, __ATOMIC_ACQUIRE);
    const struct kept_sums *now =
        __atomic_load_n(s->counted ? &s->v->counter_sums : &s->v->sums, __ATOMIC_ACQUIRE);
    return kept_sums_differ(before, now, page);
}

/* Are the eight words of bits from word i on, out of n, unchanged? */
static bool eight_same(const struct step *s, uint64_t i, uint64_t words)
{
    if (s->counted || i + 8 > words || s->v->stride != 1 || (s->base && s->base->stride != 1))
        return false;
    const uint64_t *v = s->v->bits.words + i, *base = s->base ? s->base->bits.words + i : NULL;
    uint64_t turned = 0;
    for (unsigned j = 0; j < 8; j++)
        turned |= v[j] ^ (base ? base[j] : 0);
    return turned == 0;
}

/* The first word from i on, out of n, that may have changed. A word is 8 bytes of bits, 32
   of counters. */
static uint64_t next_word(const struct step *s, uint64_t i, uint64_t words)
{
    uint64_t per_page = PAGE / (s->counted ? 32 : 8);
    while (i < words && i % 8 == 0) {
        if (i % per_page == 0 && !page_changed(s, i / per_page))
            i += per_page;
        else if (eight_same(s, i, words))
            i += 8;
        else
            break;
    }
    return min_u64(i, words);
}

struct change_count {
    uint64_t changed, touched;
};

static struct change_count count_changes(const struct step *s)
{
    struct change_count n = {0};
    uint64_t words = (vector_positions_total(s->v) + 63) / 64, in_block = 0;
    for (uint64_t i = next_word(s, 0, words); i < words; i = next_word(s, i + 1, words)) {
        uint64_t word = change_word(s, i);
        n.changed += (uint64_t)__builtin_popcountll(word);
        in_block |= word;
        if (i % 8 == 7 || i + 1 == words) {
            n.touched += in_block != 0;
            in_block = 0;
        }
    }
    return n;
}

uint64_t vector_distance(const struct vector *x, const struct vector *y)
{
    return count_changes(&(struct step){.base = y, .v = x}).changed;
}

static void out_value(struct delta_out *o, struct vector_models *m, uint64_t old, uint64_t value)
{
    struct model *tree = m->value[min_u64(old, COUNTER_ESCAPE)];
    uint64_t nibble = min_u64(value, COUNTER_ESCAPE), node = 1;
    for (int bit = 3; bit >= 0; bit--) {
        out_bit(o, &tree[node], nibble >> bit & 1);
        node = 2 * node | (nibble >> bit & 1);
    }
    if (nibble == COUNTER_ESCAPE)
        out_number(o, &m->large, value - COUNTER_ESCAPE);
}

void out_vector(struct delta_out *o, struct vector_models *models, const struct step *s)
{
    const struct vector *base = s->base, *v = s->v;
    bool counted = s->counted;
    struct change_count n = count_changes(s);
    uint64_t m = vector_positions_total(v), words = (m + 63) / 64,
             distance = n.changed < m / 2 ? m / 2 - n.changed : n.changed - m / 2;
    bool raw = !counted && distance < m / 16; /* within 1.2 % of one bit per bit */
    out_number(o, &models->mode, n.changed == 0 ? MODE_SAME : raw ? MODE_RAW : MODE_GAPS);
    for (uint64_t i = 0; raw && i < words; i++)
        out_direct(o, change_word(s, i), (unsigned)min_u64(64, m - 64 * i));
    if (n.changed == 0 || raw)
        return;
    struct positions p;
    positions_begin(&p, v, n.changed, n.touched);
    out_number(o, &models->count, n.changed - 1);
    if (p.width)
        out_number(o, &models->count, n.touched - 1);
    for (uint64_t i = next_word(s, 0, words); i < words; i = next_word(s, i + 1, words))
        for (uint64_t word = change_word(s, i); word; word &= word - 1) {
            uint64_t at = 64 * i + (uint64_t)__builtin_ctzll(word);
            out_position(o, &p, at);
            if (counted)
                out_value(o, models, base ? counters_get(&base->counters, at) : 0,
                          counters_get(&v->counters, at));
        }
}

/* ---- reading --------------------------------------------------------------------------------- */

static void flip(struct vector *v, uint64_t at)
{
    if (vector_bit(v, at))
        vector_bit_clear(v, at);
    else
        vector_bit_set(v, at);
    vector_mark(v, at);
}

static void in_raw(struct delta_in *in, struct vector *v)
{
    uint64_t m = vector_positions_total(v);
    kept_sums_spoil(v->sums);
    for (uint64_t i = 0; 64 * i < m && !in->broken; i++) {
        uint64_t word = in_direct(in, (unsigned)min_u64(64, m - 64 * i));
        if (v->stride == 1)
            v->bits.words[i] ^= word;
        else
            for (; word; word &= word - 1)
                flip(v, 64 * i + (uint64_t)__builtin_ctzll(word));
    }
}

static bool in_value(struct delta_in *in, struct vector_models *m, struct vector *v, uint64_t at,
                     const tamis_allocator *a)
{
    uint64_t old = counters_get(&v->counters, at), node = 1;
    struct model *tree = m->value[min_u64(old, COUNTER_ESCAPE)];
    for (int i = 0; i < 4; i++)
        node = 2 * node | in_bit(in, &tree[node]);
    uint64_t value = node & 15;
    if (value == COUNTER_ESCAPE) {
        value += in_number(in, &m->large);
        in->broken |= value < COUNTER_ESCAPE; /* out of range */
        if (!counters_reserve(&v->counters, a, 1))
            return false;
    }
    if (in->broken)
        return true;
    counters_sub(&v->counters, at, old);
    counters_add(&v->counters, at, value);
    v->ones += value != 0;
    v->ones -= old != 0;
    vector_mark(v, at);
    vector_mark_counter(v, at);
    if (value)
        vector_bit_set(v, at);
    else
        vector_bit_clear(v, at);
    return true;
}

bool in_vector(struct delta_in *in, struct vector_models *models, struct vector *v, bool counted,
               const tamis_allocator *a, bool *memory)
{
    uint64_t mode = in_number(in, &models->mode), m = vector_positions_total(v);
    in->broken |= mode >= MODE_END || (mode == MODE_RAW && counted);
    *memory = true;
    if (mode == MODE_SAME || in->broken)
        return !in->broken;
    if (mode == MODE_RAW) {
        in_raw(in, v);
        return !in->broken;
    }
    struct positions p;
    uint64_t width = block_width(v);
    uint64_t changed = in_number(in, &models->count);
    uint64_t touched = width ? in_number(in, &models->count) : 0;
    in->broken |=
        changed >= m || (width && (touched >= m / width || changed >= (touched + 1) * width));
    if (in->broken)
        return false;
    positions_begin(&p, v, ++changed, ++touched);
    for (uint64_t i = 0; i < changed; i++) {
        uint64_t at = in_position(in, &p);
        if (in->broken)
            return false;
        if (!counted)
            flip(v, at);
        else if (!in_value(in, models, v, at, a))
            return *memory = false;
    }
    return !in->broken;
}
