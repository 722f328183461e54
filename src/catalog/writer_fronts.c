/*
 * Writes fronts to the new file. The keys of all segments, many times the number of distinct ones,
 * pass through an array of their first words per attribute. When the arrays reach their share of
 * the memory they are sorted and duplicates removed; if this is not enough, the longest becomes a
 * run in the spill, and sixteen runs of one length become one. At the commit the runs are merged
 * twice: first to count the new keys, which determines the length of fingerprints, and then to
 * write.
 */
#include "catalog_writer.h"

#include <stdlib.h>

#include "base/err.h"

#define FRONT_SHARE  8     /* fraction of the memory for waiting words, and as much to sort them */
#define FRONT_LEAST  256   /* words, however small the memory */
#define RUNS_MERGED  16    /* runs of one level */
#define RUN_WORDS    512   /* words of a run that are in memory while it is read */
#define FRONT_FIRST  1024  /* fewest keys that the first front of an attribute is planned for */
#define FRONT_BITS   20    /* a full front has the rate 2^-20 */
#define FRONT_BUCKET 16    /* fewest keys per bucket, if there are this many */
#define FRONT_TEXT   200   /* 1/200 of the text for all fronts */
#define FRONT_SPARE  65536 /* in bits, or this much if there is little text */

/* ---- words in order -------------------------------------------------------------------------- */

/* Sorts by the first 33 bits, 11 at a time; few hashes agree in all of those. */
static void sort_words(uint64_t *words, uint64_t *spare, size_t n)
{
    for (unsigned shift = 31; shift < 64; shift += 11) {
        size_t ends[2048] = {0}, sum = 0;
        for (size_t i = 0; i < n; i++)
            ends[words[i] >> shift & 2047]++;
        for (unsigned i = 0; i < 2048; i++) {
            size_t here = ends[i];
            ends[i] = sum;
            sum += here;
        }
        for (size_t i = 0; i < n; i++)
            spare[ends[words[i] >> shift & 2047]++] = words[i];
        memcpy(words, spare, n * sizeof *words);
    }
    for (size_t i = 1; i < n; i++)
        for (size_t j = i; j && words[j - 1] > words[j]; j--) {
            uint64_t word = words[j];
            words[j] = words[j - 1];
            words[j - 1] = word;
        }
}

/* Sorts and removes duplicates, and shrinks the memory to fit. */
static bool words_settle(tamis_catalog_writer *w, struct front_work *f)
{
    size_t kept = 0, n = f->n;
    if (n == 0)
        return true;
    uint64_t *spare = mem_new(&w->allocator, n, sizeof *spare);
    if (!spare)
        return writer_no_memory(w);
    sort_words(f->words, spare, n);
    mem_free(&w->allocator, spare, n, sizeof *spare);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || f->words[kept - 1] != f->words[i])
            f->words[kept++] = f->words[i];
    w->front_words -= n - kept;
    f->n = kept;
    uint64_t *fitting = mem_grow(&w->allocator, f->words, f->room, kept, sizeof *fitting);
    if (fitting) {
        f->words = fitting;
        f->room = kept;
    }
    return true;
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* A run being read: from the spill, or words in memory. */
struct run_reader {
    uint64_t at, left; /* in the spill */
    const uint64_t *words;
    size_t i, n;
    uint64_t buffer[RUN_WORDS];
};

/* Merges several runs and removes duplicates; the run with the lowest word is first in the heap. */
struct merge {
    tamis_catalog_writer *w;
    struct run_reader *runs, **heap;
    size_t n, room;
    uint64_t before;
    bool any;
};

static bool run_ready(struct merge *m, struct run_reader *r)
{
    if (r->i < r->n)
        return true;
    if (r->left == 0 || m->w->failed)
        return false;
    r->n = (size_t)min_u64(RUN_WORDS, r->left);
    r->i = 0;
    spill_get(m->w, r->buffer, r->n * sizeof *r->buffer, r->at);
    r->at += r->n * sizeof *r->buffer;
    r->left -= r->n;
    r->words = r->buffer;
    return !m->w->failed;
}

static bool run_below(const struct run_reader *x, const struct run_reader *y)
{
    return x->words[x->i] < y->words[y->i];
}

static void heap_sink(const struct merge *m, size_t i)
{
    for (size_t child; (child = 2 * i + 1) < m->n; i = child) {
        if (child + 1 < m->n && run_below(m->heap[child + 1], m->heap[child]))
            child++;
        if (!run_below(m->heap[child], m->heap[i]))
            return;
        struct run_reader *other = m->heap[i];
        m->heap[i] = m->heap[child];
        m->heap[child] = other;
    }
}

/* Opens the runs from `first` on, and the sorted words in memory if `fresh`. */
static bool merge_open(struct merge *m, tamis_catalog_writer *w, const struct front_work *f,
                       size_t first, bool fresh)
{
    size_t room = f->n_runs - first + 1;
    *m = (struct merge){.w = w, .room = room};
    m->runs = mem_new(&w->allocator, room, sizeof *m->runs);
    m->heap = mem_new(&w->allocator, room, sizeof *m->heap);
    if (!m->runs || !m->heap) {
        mem_free(&w->allocator, m->runs, room, sizeof *m->runs);
        mem_free(&w->allocator, m->heap, room, sizeof *m->heap);
        return writer_no_memory(w);
    }
    for (size_t i = 0; i < room; i++) {
        struct run_reader *r = &m->runs[i];
        bool spilled = i + 1 < room;
        r->at = spilled ? f->runs[first + i].at : 0;
        r->left = spilled ? f->runs[first + i].n : 0;
        r->words = f->words;
        r->i = 0;
        r->n = spilled || !fresh ? 0 : f->n;
        if (run_ready(m, r))
            m->heap[m->n++] = r;
    }
    for (size_t i = m->n; i-- > 0;)
        heap_sink(m, i);
    return true;
}

static bool merge_next(struct merge *m, uint64_t *word)
{
    while (m->n && !m->w->failed) {
        struct run_reader *r = m->heap[0];
        *word = r->words[r->i++];
        if (!run_ready(m, r))
            m->heap[0] = m->heap[--m->n];
        heap_sink(m, 0);
        if (m->any && *word == m->before)
            continue;
        m->any = true;
        m->before = *word;
        return !m->w->failed;
    }
    return false;
}

static void merge_close(struct merge *m)
{
    mem_free(&m->w->allocator, m->runs, m->room, sizeof *m->runs);
    mem_free(&m->w->allocator, m->heap, m->room, sizeof *m->heap);
}

/* Merges the last sixteen runs into one. */
static void runs_merge(tamis_catalog_writer *w, struct front_work *f)
{
    size_t first = f->n_runs - RUNS_MERGED, n = 0;
    uint64_t words[RUN_WORDS], room = 0, at;
    struct merge m;
    for (size_t i = first; i < f->n_runs; i++)
        room += f->runs[i].n;
    if (!merge_open(&m, w, f, first, false))
        return;
    struct front_run run = {spill_room(&w->spill, room * sizeof *words), 0,
                            f->runs[first].level + 1};
    at = run.at;
    for (bool more = true; more && !w->failed;) {
        more = merge_next(&m, &words[n]);
        n += more;
        if (n < RUN_WORDS && more)
            continue;
        if (!w->failed)
            spill_put(w, words, n * sizeof *words, at);
        at += n * sizeof *words;
        run.n += n;
        n = 0;
    }
    merge_close(&m);
    for (size_t i = first; i < f->n_runs && !w->failed; i++)
        spill_forget(&w->spill, f->runs[i].at, f->runs[i].n * sizeof *words);
    f->n_runs = first;
    f->runs[f->n_runs++] = run;
}

/* Writes the sorted words of an attribute to the spill. */
static bool run_write(tamis_catalog_writer *w, struct front_work *f)
{
    size_t len = f->n * sizeof *f->words;
    if (!array_room(&w->allocator, &f->runs, f->n_runs, &f->runs_room, sizeof *f->runs))
        return writer_no_memory(w);
    struct front_run run = {spill_room(&w->spill, len), f->n, 0};
    if (!spill_put(w, f->words, len, run.at))
        return false;
    f->runs[f->n_runs++] = run;
    w->front_words -= f->n;
    mem_free(&w->allocator, f->words, f->room, sizeof *f->words);
    f->words = NULL;
    f->n = f->room = 0;
    while (!w->failed && f->n_runs >= RUNS_MERGED &&
           f->runs[f->n_runs - RUNS_MERGED].level == f->runs[f->n_runs - 1].level)
        runs_merge(w, f);
    return !w->failed;
}

/* ---- keys as they come ----------------------------------------------------------------------- */

static size_t words_most(const tamis_catalog_writer *w)
{
    uint64_t most = w->memory / (2 * FRONT_SHARE * sizeof(uint64_t));
    return (size_t)max_u64(most, FRONT_LEAST);
}

/* Frees half of the room for waiting words. */
static void words_relieve(tamis_catalog_writer *w)
{
    for (uint32_t i = 0; i < w->schema.attributes && !w->failed; i++)
        words_settle(w, &w->fronts[i]);
    while (!w->failed && w->front_words > words_most(w) / 2) {
        struct front_work *longest = &w->fronts[0];
        for (uint32_t i = 1; i < w->schema.attributes; i++)
            if (w->fronts[i].n > longest->n)
                longest = &w->fronts[i];
        run_write(w, longest);
    }
}

/* Neither words, which are too many, nor times, for which nobody has lists, have fronts. */
static bool front_kept(const tamis_schema *s, uint32_t attribute)
{
    return !s->bounds_only[attribute] && s->types[attribute] != TAMIS_WORDS &&
           s->types[attribute] != TAMIS_TIME;
}

void fronts_put(tamis_catalog_writer *w, uint32_t attribute, const tamis_digest *digests,
                uint64_t n)
{
    struct front_work *f = &w->fronts[attribute];
    if (f->lost || !front_kept(&w->schema, attribute))
        return;
    f->given += n;
    for (uint64_t done = 0; done < n && !w->failed;) {
        size_t some = (size_t)min_u64(n - done, words_most(w) / 2);
        if (w->front_words + some > words_most(w))
            words_relieve(w);
        if (!array_room(&w->allocator, &f->words, f->n + some - 1, &f->room, sizeof *f->words))
            writer_no_memory(w);
        for (size_t i = 0; i < some && !w->failed; i++)
            f->words[f->n++] = digests[done + i].a;
        w->front_words += some;
        done += some;
    }
}

void fronts_free(tamis_catalog_writer *w)
{
    for (uint32_t i = 0; i < w->schema.attributes; i++) {
        mem_free(&w->allocator, w->fronts[i].words, w->fronts[i].room, sizeof(uint64_t));
        mem_free(&w->allocator, w->fronts[i].runs, w->fronts[i].runs_room,
                 sizeof(struct front_run));
    }
    mem_free(&w->allocator, w->plans, w->plans_room, sizeof *w->plans);
}

/* ---- planning -------------------------------------------------------------------------------- */

/* The next new key that no front of the old version contains. */
static bool fresh_next(struct merge *m, uint32_t attribute, uint64_t *word)
{
    tamis_catalog_writer *w = m->w;
    bool found = true;
    while (found && merge_next(m, word)) {
        found = false;
        if (w->old && attribute < w->old->schema.attributes)
            w->failed = fronts_find(w->old, attribute, *word, &found, &w->why);
    }
    return !found && !w->failed;
}

static uint64_t fresh_count(tamis_catalog_writer *w, uint32_t attribute)
{
    struct merge m;
    uint64_t word, n = 0;
    if (!words_settle(w, &w->fronts[attribute]) ||
        !merge_open(&m, w, &w->fronts[attribute], 0, true))
        return 0;
    while (fresh_next(&m, attribute, &word))
        n++;
    merge_close(&m);
    return n;
}

static uint32_t bits_of(uint64_t n)
{
    return n ? 64 - (uint32_t)__builtin_clzll(n) : 0;
}

/* Plans the fronts of an attribute: those of the old version, the last of which takes the new
   keys, or one more. */
static bool plan_attribute(tamis_catalog_writer *w, uint32_t attribute)
{
    struct front_plan *last = NULL;
    uint64_t n = fresh_count(w, attribute), before = 0;
    uint32_t i = w->old && attribute < w->old->schema.attributes ? w->old->first_front[attribute]
                                                                 : STRIP_NONE;
    size_t first = w->n_plans;
    for (; !w->failed && i != STRIP_NONE; i = w->old->fronts[i].next) {
        if (!ROOM_FOR_ONE(w, plans, n_plans, plans_room))
            return writer_no_memory(w);
        last = &w->plans[w->n_plans++];
        *last = (struct front_plan){.head = w->old->fronts[i], .old = &w->old->fronts[i]};
        before += last->head.n;
    }
    if (w->failed || (n == 0 && !last))
        return !w->failed;
    if (n && (!last || last->head.n + n > last->head.most)) {
        uint64_t most = 2 * max_u64(max_u64(n, before), FRONT_FIRST);
        if (!ROOM_FOR_ONE(w, plans, n_plans, plans_room))
            return writer_no_memory(w);
        last = &w->plans[w->n_plans++];
        *last = (struct front_plan){.head = {.attribute = attribute,
                                             .most = min_u64(most, UINT32_MAX - 1),
                                             .bits = bits_of(most - 1) + FRONT_BITS}};
    }
    last->fresh = n > 0;
    last->head.n += n;
    last->head.given += w->fronts[attribute].given;
    for (size_t j = first; j < w->n_plans; j++)
        w->plans[j].bits = w->plans[j].head.bits;
    if (n)
        last->head.buckets =
            last->head.n < 2 * FRONT_BUCKET ? 0 : bits_of(last->head.n / FRONT_BUCKET) - 1;
    return true;
}

static void plans_drop(tamis_catalog_writer *w, uint32_t attribute)
{
    size_t kept = 0;
    for (size_t i = 0; i < w->n_plans; i++)
        if (w->plans[i].head.attribute != attribute)
            w->plans[kept++] = w->plans[i];
    w->n_plans = kept;
}

/* Is this front still of use with its fingerprints shortened, or should it be dropped? `len` is the size of all fronts. Lists
   have thousands of values, so a front that rejects fewer than 63 of 64 absent keys leaves its room to the others, unless
   it takes most of the room itself. */
static bool front_shortens(const struct catalog_front *f, uint64_t len)
{
    double most = 2 * front_len(f) < len ? 1.0 / 64 : 1.0 / 4;
    return f->bits > f->buckets + 1 && front_rate(f) <= most && f->n < UINT32_MAX;
}

/*
 * Shortens fingerprints until all fronts fit: the longest give up a bit first, of the largest front if several are
 * equally long, since the sum of the rates is least when all have the same length. A front that would
 * reject too few keys is dropped, and the others begin again with the room that it leaves.
 */
static void plans_fit(tamis_catalog_writer *w)
{
    uint64_t text = 0;
    for (size_t i = 0; i < w->n_segments; i++)
        text += w->segments[i].dropped ? 0 : w->segments[i].text;
    uint64_t most = max_u64(text / FRONT_TEXT, FRONT_SPARE / 8);
    while (w->n_plans) {
        uint64_t len = 0;
        struct catalog_front *longest = &w->plans[0].head;
        for (size_t i = 0; i < w->n_plans; i++) {
            struct catalog_front *f = &w->plans[i].head;
            len += front_len(f);
            if (f->bits > longest->bits || (f->bits == longest->bits && f->n > longest->n))
                longest = f;
        }
        if (len <= most)
            return;
        longest->bits--;
        if (front_shortens(longest, len))
            continue;
        plans_drop(w, longest->attribute);
        for (size_t i = 0; i < w->n_plans; i++)
            w->plans[i].head.bits = w->plans[i].bits;
    }
}

/* ---- writing --------------------------------------------------------------------------------- */

struct packer {
    tamis_catalog_writer *w;
    const struct catalog_front *front;
    uint64_t word, n, bucket; /* pending bits, entries so far, buckets completed */
    unsigned used;
    uint32_t ends[RUN_WORDS];
    size_t n_ends;
    uint64_t ends_at;
};

static void pack_end(struct packer *p)
{
    p->ends[p->n_ends++] = (uint32_t)p->n;
    p->bucket++;
    if (p->n_ends < RUN_WORDS && p->bucket >> p->front->buckets == 0)
        return;
    size_t len = p->n_ends * sizeof *p->ends;
    spill_put(p->w, p->ends, len, p->ends_at);
    p->ends_at += len;
    p->n_ends = 0;
}

static void pack_word(struct packer *p, uint64_t word)
{
    uint32_t bits = p->front->bits - p->front->buckets;
    uint64_t print = word >> (64 - p->front->bits), entry = print & ((UINT64_C(1) << bits) - 1);
    while (p->bucket < print >> bits && !p->w->failed)
        pack_end(p);
    p->n++;
    p->word |= entry << p->used;
    p->used += bits;
    if (p->used < 64)
        return;
    new_file_put(p->w, &p->word, sizeof p->word);
    p->used -= 64;
    p->word = p->used ? entry >> (bits - p->used) : 0;
}

static void pack_close(struct packer *p, uint64_t ends_at)
{
    uint64_t len = UINT64_C(4) << p->front->buckets, zero = 0;
    while (p->bucket >> p->front->buckets == 0 && !p->w->failed)
        pack_end(p);
    if (p->used)
        new_file_put(p->w, &p->word, sizeof p->word);
    new_file_put_spilled(p->w, ends_at, len);
    new_file_put(p->w, &zero, round_up(len, 8) - len);
}

/* Writes the old entries and the new keys, in order, as planned. */
static void front_pack(tamis_catalog_writer *w, struct front_plan *plan, struct merge *m)
{
    uint64_t spilled = spill_room(&w->spill, UINT64_C(4) << plan->head.buckets), before = 0;
    struct packer p = {.w = w, .front = &plan->head, .ends_at = spilled};
    struct front_reader r = {.catalog = w->old, .front = plan->old};
    uint64_t old_word = 0, new_word = 0, cut = 64 - plan->head.bits;
    bool old = plan->old && front_next(&r, &old_word, &w->failed, &w->why);
    bool new = plan->fresh &&fresh_next(m, plan->head.attribute, &new_word);
    while ((old || new) && !w->failed) {
        bool first = old && (!new || old_word <= new_word);
        uint64_t word = first ? old_word : new_word;
        if (p.n == 0 || word >> cut != before >> cut)
            pack_word(&p, word);
        before = word;
        if (first)
            old = front_next(&r, &old_word, &w->failed, &w->why);
        else
            new = fresh_next(m, plan->head.attribute, &new_word);
    }
    plan->head.n = p.n;
    pack_close(&p, spilled);
}

static void front_write(tamis_catalog_writer *w, struct front_plan *plan)
{
    struct merge m;
    new_file_align(w);
    if (plan->old && !plan->fresh && plan->head.bits == plan->old->bits) {
        new_file_copy(w, plan->old->offset, front_len(plan->old));
    } else if (merge_open(&m, w, &w->fronts[plan->head.attribute], 0, true)) {
        front_pack(w, plan, &m);
        merge_close(&m);
    }
}

void fronts_write(tamis_catalog_writer *w)
{
    new_file_align(w);
    for (uint32_t i = 0; i < w->schema.attributes && !w->failed; i++)
        if (!w->fronts[i].lost)
            plan_attribute(w, i);
    plans_fit(w);
    for (size_t i = 0; i < w->n_plans && !w->failed; i++)
        front_write(w, &w->plans[i]);
}
