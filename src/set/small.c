/*
 * Small filters in one block of memory, for a server that holds millions of them: the set, stack, layer and vector of
 * a filter take 650 bytes beside its bits. There are four forms.
 *
 *   places   A filter without a stated capacity that is not compact, while it has at most PLACES keys: of each key the
 *            first word of its digest, which is all that lines use. It has no false positives.
 *   page     A compact smooth filter of a small capacity (smooth_packs()), up to it: a page of fingerprints
 *            (bits/packed.h), which takes as much as a vector and uses a tenth of the rate.
 *   packed   The same beyond its capacity: a set of such pages.
 *   bits     Other compact filters of up to SMALL_CAPACITY keys: the bits of the vector. Further keys of a smooth one go
 *            into a set of pages, the `rest`.
 *
 * Pages take 13 to 16 bits per key at 1 % where lines take 25, and no more than the stack of vectors by which RedisBloom
 * grows (tests/redis/test_memory.py). Each time that the keys come to (2^i - 1) times the capacity, entries get so many
 * bits that all of the next stage together match a small share of the rate (plan_known()).
 *
 * A small filter can be queried and added to. For everything else it is turned into the whole set that it stands
 * for. Lines may know fewer bits of an entry than a page does, so pages are saved as they are.
 */
#include "small_form.h"

#define ROOM 4 /* places at a time */

unsigned small_known(const struct settings *opt, uint64_t n, uint32_t *most)
{
    uint64_t last;
    bool page = smooth_packs(opt);
    unsigned known = plan_known(opt->capacity, n, opt->budget, &last);
    last -= page ? 0 : opt->capacity;
    *most = last <= PACKED_KEYS ? (uint32_t)last : page ? PACKED_KEYS : 0;
    return known;
}

/* Pages of those that begin with a page are quicker to change; the vectors of others leave little room for pages. */
static unsigned page_quotient(const struct small *m)
{
    return m->form == FORM_BITS ? 8 : 7;
}

static bool packed_is_due(const struct packed *p)
{
    return p->n >= p->most || p->n >= packed_room(p);
}

/* The bytes that the rest of it may have beside its head. */
static uint64_t room_for_rest(const struct small *m)
{
    uint64_t head = small_size(m) + terms_bytes(m->terms);
    return m->memory_limit == 0 ? UINT64_MAX : m->memory_limit > head ? m->memory_limit - head : 0;
}

/* Makes the pages ready for one more key. */
static enum packed_added packed_ready(const struct small *m, struct packed **p)
{
    const struct settings *opt = &m->terms->opt;
    uint32_t most;
    if (!packed_is_due(*p))
        return PACKED_NEW;
    unsigned known = small_known(opt, m->n + (*p)->n, &most);
    if ((*p)->n >= most)
        return PACKED_CROWDED;
    bool same = known == (*p)->known && (*p)->n < packed_room(*p);
    enum packed_added e =
        same ? PACKED_NEW
             : packed_renew(p, &m->terms->allocator, room_for_rest(m), page_quotient(m), known);
    if (e == PACKED_NEW)
        (*p)->most = most;
    return e;
}

static struct bits bits_of(const struct small *m)
{
    const struct family *family = &m->terms->family;
    return (struct bits){(uint64_t *)(uintptr_t)(m->word + 1), m->units, m->k, family,
                         kernel_choose(TAMIS_SPREAD, family)};
}

/* ---- small and whole ------------------------------------------------------------------------- */

/* Does it have the vector that its settings imply, and nothing else that a small filter lacks? */
static const struct vector *sole_vector(const struct set *s)
{
    const struct layers *layers = set_layers(s);
    const struct settings *opt = set_opt(s);
    if (layers_count(layers) != 1 || s->stack->next_id != 1 || s->stack->grown != 1 ||
        layers->l[0]->id != 0 || layers->l[0]->slot != 0 || layers->retired)
        return NULL;
    const struct vector *v = layers->v[0];
    bool good = v->bits.kernel->layout == TAMIS_SPREAD && v->memory.base && !vector_watched(v) &&
                v->bits.units < UNITS_MAX && v->bits.k < PROBES_MAX && v->load == v->count &&
                s->stack->stored == v->count && opt->capacity <= SMALL_CAPACITY &&
                v->capacity == opt->capacity && v->fpp == growth_first_rate(opt) &&
                v->count <= v->capacity;
    return good && !set_lines(s) ? v : NULL;
}

static bool untouched_lines(const struct set *s)
{
    const struct lines *l = set_lines(s);
    return l && !set_has_stack(s) && lines_added(l) == 0 && !l->memory &&
           l->fpp == set_opt(s)->budget;
}

/* Are its settings such as small filters have? */
static bool may_be_small(const struct set *s)
{
    const struct settings *opt = set_opt(s);
    return (opt->growth == TAMIS_SMOOTH || opt->compact) && !opt->deletable && !opt->add_always &&
           !opt->shared_adds && !opt->overfill && set_family(s)->hash != TAMIS_H3 &&
           opt->fpp == opt->budget && !s->stack->form && !s->read_only && !s->bits_only &&
           !s->stack->mapping.data;
}

static struct small *small_new(const struct set *s, const struct vector *v)
{
    const struct settings *opt = set_opt(s);
    struct small like = {.terms = set_terms(s), .memory_limit = s->memory_limit};
    like.form = (v ? FORM_BITS : smooth_packs(opt) ? FORM_PAGE : FORM_PLACES) & 3;
    uint32_t words = like.form == FORM_PLACES ? ROOM : words_of_page(first_page(opt), 0);
    like.units = (v ? (uint32_t)v->bits.units : words) & (UNITS_MAX - 1);
    like.k = (v ? v->bits.k : 0) & (PROBES_MAX - 1);
    struct terms *terms = terms_share(like.terms);
    struct small *m = terms ? mem_new0(&terms->allocator, 1, small_size(&like)) : NULL;
    if (terms && !m)
        terms_release(terms);
    if (!m)
        return NULL;
    *m = like;
    if (v) {
        m->n = (uint32_t)v->count;
        memcpy(m->word + 1, v->bits.words, v->bits.units / 8);
    }
    return m;
}

bool small_of(struct set *s, bool places, struct small **out)
{
    const struct vector *v = may_be_small(s) ? sole_vector(s) : NULL;
    *out = NULL;
    if (!v && !(places && may_be_small(s) && untouched_lines(s)))
        return true;
    struct small *m = small_new(s, v);
    if (!m)
        return false;
    set_free(s);
    *out = m;
    return true;
}

/* Adds the vector to a new set. On failure the set is freed. */
static struct set *whole_of_bits(const struct small *m, struct set *s)
{
    struct layer *layer = NULL;
    struct layer_plan plan = {.capacity = set_opt(s)->capacity,
                              .fpp = growth_first_rate(set_opt(s)),
                              .shape[0] = {TAMIS_SPREAD, m->units, m->k},
                              .room[0] = set_opt(s)->capacity};
    tamis_error e = plan_make(s, &plan, &layer);
    if (e == TAMIS_OK) {
        struct vector *v = layer->part[0].vector;
        memcpy(v->bits.words, m->word + 1, m->units / 8);
        v->load = v->count = m->n;
        e = set_append(s, layer);
    }
    if (e != TAMIS_OK) {
        set_free(s);
        return NULL;
    }
    s->stack->stored = m->n;
    return s;
}

/* The set without what small_keep() writes, and without a limit. */
static struct set *bare_of(const struct small *m)
{
    struct terms *terms = terms_share(m->terms);
    struct set *s = terms ? set_blank(terms, NULL, m->form == FORM_BITS) : NULL;
    if (s && m->form == FORM_BITS)
        return whole_of_bits(m, s);
    if (s && smooth_start(s) != TAMIS_OK) {
        set_free(s);
        return NULL;
    }
    return s;
}

struct set *small_start(const struct small *m)
{
    struct set *s = bare_of(m);
    if (s)
        set_limit(s, m->memory_limit);
    return s;
}

static tamis_error put_places(const struct small *m, struct set *s)
{
    tamis_digest digests[PLACES];
    size_t done;
    for (uint32_t i = 0; i < m->n; i++)
        digests[i] = (tamis_digest){m->word[i], 0};
    return tamis_filter_add_many(as_filter(s), digests, m->n, NULL, &done);
}

struct seen_entries {
    uint64_t mass; /* the places that they match, in 2^-PACKED_KNOWN of all */
    unsigned known, most;
};

static tamis_error see_entry(void *context, uint64_t place, unsigned known, uint64_t copies)
{
    struct seen_entries *all = context;
    (void)place;
    known = known < all->most ? known : all->most;
    all->mass += copies << (PACKED_KNOWN - known);
    all->known = known > all->known ? known : all->known;
    return TAMIS_OK;
}

static tamis_error each_of_pages(const struct small *m, packed_fn take, void *context)
{
    const struct packed *rest = rest_of(m);
    if (m->form == FORM_PAGE)
        return page_each(m->word, m->n, first_page(&m->terms->opt), take, context);
    return packed_each(rest, take, context);
}

/* The share of all places that the entries match if each knows this many bits at most, and how many they know. */
static double rate_of_pages(const struct small *m, unsigned most, unsigned *known)
{
    struct seen_entries all = {.most = most};
    each_of_pages(m, see_entry, &all);
    *known = all.known;
    return (double)all.mass / (double)(UINT64_C(1) << PACKED_KNOWN);
}

/* Beside vectors, lines get no further keys: if they keep the rate, their slots are the narrowest. */
static tamis_error put_pages(const struct small *m, struct set *s)
{
    const struct packed *rest = rest_of(m);
    uint32_t n = rest ? rest->n : m->n;
    unsigned known;
    tamis_error e = smooth_start(s);
    if (e != TAMIS_OK || n == 0)
        return e;
    struct lines *l = set_lines(s);
    bool last = m->form == FORM_BITS;
    double rate = rate_of_pages(m, last ? lines_known(l, n) : PACKED_KNOWN, &known);
    if (last && rate > l->fpp)
        rate = rate_of_pages(m, PACKED_KNOWN, &known);
    e = lines_expect(l, n, rate, known, last);
    return e == TAMIS_OK ? each_of_pages(m, lines_put, l) : e;
}

struct set *small_whole(const struct small *m)
{
    struct set *s = bare_of(m);
    tamis_error e = TAMIS_OK;
    if (s && m->form == FORM_PLACES)
        e = put_places(m, s);
    else if (s && (m->form == FORM_PAGE || rest_of(m)))
        e = put_pages(m, s);
    if (s && e != TAMIS_OK) {
        set_free(s);
        return NULL;
    }
    if (s)
        set_limit(s, m->memory_limit); /* these keys were accepted */
    return s;
}

/* ---- queries and adds ------------------------------------------------------------------------ */

static bool has_place(const struct small *m, uint64_t place)
{
    for (uint32_t i = 0; i < m->n; i++)
        if (m->word[i] == place)
            return true;
    return false;
}

static bool page_has(const struct small *m, uint64_t place)
{
    struct page_form form = first_page(&m->terms->opt);
    struct page_at at;
    return page_find(m->word, m->n, form, place >> (64 - form.quotient - form.rest), &at);
}

void small_digest_many(const struct small *m, const tamis_key *keys, size_t n, tamis_digest *out)
{
    family_digest_many(&m->terms->family, keys, n, out);
}

tamis_digest small_digest(const struct small *m, const void *key, size_t len)
{
    return family_digest(&m->terms->family, key, len);
}

bool small_has(const struct small *m, tamis_digest digest)
{
    const struct packed *rest = rest_of(m);
    if (rest && packed_has(rest, digest.a))
        return true;
    if (m->form == FORM_PLACES)
        return has_place(m, digest.a);
    if (m->form == FORM_PAGE)
        return page_has(m, digest.a);
    struct bits bits = bits_of(m);
    return m->form == FORM_BITS && bits.kernel->has_one(&bits, digest);
}

/* In a block for what `like` says, with the same words. */
static struct small *small_resized(struct small *m, const struct small *like)
{
    const tamis_allocator *a = &m->terms->allocator;
    size_t size = small_size(m);
    struct small *grown = mem_new(a, 1, small_size(like));
    if (!grown)
        return NULL;
    memcpy(grown, m, size);
    mem_free(a, m, 1, size);
    *grown = *like;
    return grown;
}

enum small_added small_add_place(struct small **at, uint64_t place)
{
    struct small *m = *at;
    if (has_place(m, place))
        return SMALL_OLD;
    if (m->n == PLACES)
        return SMALL_OUTGROWN;
    if (m->n == m->units) {
        struct small like = *m;
        like.units = (like.units + ROOM) & (UNITS_MAX - 1);
        struct small *grown = small_resized(m, &like);
        if (!grown)
            return SMALL_NO_MEMORY;
        *at = m = grown;
    }
    m->word[m->n++] = place;
    return SMALL_NEW;
}

static enum small_added from_packed(enum packed_added added)
{
    return added == PACKED_OLD        ? SMALL_OLD
           : added == PACKED_NEW      ? SMALL_NEW
           : added == PACKED_CROWDED  ? SMALL_OUTGROWN
           : added == PACKED_NO_SPACE ? SMALL_NO_SPACE
                                      : SMALL_NO_MEMORY;
}

static enum small_added add_to_rest(struct small *m, tamis_digest digest)
{
    const tamis_allocator *a = &m->terms->allocator;
    const struct settings *opt = &m->terms->opt;
    struct packed *rest = rest_of(m);
    if (opt->growth != TAMIS_SMOOTH)
        return SMALL_OUTGROWN;
    uint64_t room = room_for_rest(m);
    bool ready = rest && !packed_is_due(rest);
    if (LIKELY(ready))
        return from_packed(packed_add(rest, a, room, digest.a));
    if (rest && packed_has(rest, digest.a))
        return SMALL_OLD;
    if (!rest) {
        uint32_t most;
        rest = packed_new(a, 3, small_known(opt, m->n, &most));
        if (!rest)
            return SMALL_NO_MEMORY;
        if (rest->bytes > room) {
            packed_free(rest, a);
            return SMALL_NO_SPACE;
        }
        rest->most = most;
        rest_put(m, rest);
    }
    enum packed_added e = packed_ready(m, &rest);
    rest_put(m, rest);
    if (e == PACKED_CROWDED && rest->bytes > room / 2) /* lines take nearly twice as much */
        return SMALL_NO_SPACE;
    return from_packed(e == PACKED_NEW ? packed_add(rest, a, room, digest.a) : e);
}

/* The page is full: its entries go into a set of pages. */
static enum small_added leave_page(struct small **at)
{
    struct small *m = *at, like = *m;
    const tamis_allocator *a = &m->terms->allocator;
    struct packed *p = NULL;
    uint32_t most;
    unsigned known = small_known(&m->terms->opt, m->n, &most);
    enum packed_added e =
        packed_of_page(a, m->word, m->n, first_page(&m->terms->opt), page_quotient(m), known, &p);
    if (e != PACKED_NEW)
        return from_packed(e);
    like.n = 0;
    like.units = 0;
    like.form = FORM_PACKED;
    bool fits = p->bytes <= room_for_rest(&like);
    struct small *made = fits ? mem_new0(a, 1, small_size(&like)) : NULL;
    if (!made) {
        packed_free(p, a);
        return fits ? SMALL_NO_MEMORY : SMALL_NO_SPACE;
    }
    p->most = most;
    *made = like;
    rest_put(made, p);
    mem_free(a, m, 1, small_size(m));
    *at = made;
    return SMALL_NEW;
}

static enum small_added add_to_page(struct small **at, uint64_t place)
{
    struct small *m = *at;
    struct page_form form = first_page(&m->terms->opt);
    struct page_at where;
    uint64_t value = place >> (64 - form.quotient - form.rest);
    if (page_find(m->word, m->n, form, value, &where))
        return SMALL_OLD;
    if (page_words(form, m->n + 1) > words_of_page(form, m->n)) {
        struct small like = *m;
        like.units = page_words(form, m->n + 1) & (UNITS_MAX - 1);
        if (room_for_rest(&like) == 0)
            return SMALL_NO_SPACE;
        struct small *grown = mem_new0(&m->terms->allocator, 1, small_size(&like));
        if (!grown)
            return SMALL_NO_MEMORY;
        *grown = like;
        page_widen(grown->word, m->word, m->n, form);
        mem_free(&m->terms->allocator, m, 1, small_size(m));
        *at = m = grown;
    }
    page_insert(m->word, m->n, form, value, where);
    m->n++;
    return SMALL_NEW;
}

enum small_added small_add(struct small **at, tamis_digest digest)
{
    struct small *m = *at;
    if (m->form == FORM_PLACES)
        return small_add_place(at, digest.a);
    if (m->form == FORM_PAGE && (m->n < m->terms->opt.capacity || page_has(m, digest.a)))
        return add_to_page(at, digest.a);
    if (m->form == FORM_PAGE) {
        enum small_added left = leave_page(at);
        return left == SMALL_NEW ? add_to_rest(*at, digest) : left;
    }
    if (m->form == FORM_PACKED)
        return add_to_rest(m, digest);
    struct bits bits = bits_of(m);
    if (!rest_of(m) && m->n < m->terms->opt.capacity) {
        bool fresh = bits.kernel->add_one(&bits, digest);
        m->n += fresh;
        return fresh ? SMALL_NEW : SMALL_OLD;
    }
    return bits.kernel->has_one(&bits, digest) ? SMALL_OLD : add_to_rest(m, digest);
}

/* ---- memory and facts ------------------------------------------------------------------------ */

void small_free(struct small *m)
{
    if (!m)
        return;
    struct terms *terms = m->terms;
    const tamis_allocator a = terms->allocator;
    packed_free(rest_of(m), &a);
    mem_free(&a, m, 1, small_size(m));
    terms_release(terms);
}

/* Without memory for an empty page there is an empty set of pages later, and none now. */
void small_clear(struct small **at)
{
    struct small *m = *at, like = *m;
    const tamis_allocator *a = &m->terms->allocator;
    packed_free(rest_of(m), a);
    m->n = 0;
    memset(m->word, 0, small_size(m) - sizeof *m);
    like.n = 0;
    like.form = FORM_PAGE;
    like.units = words_of_page(first_page(&m->terms->opt), 0) & (UNITS_MAX - 1);
    struct small *made = m->form == FORM_PACKED ? mem_new0(a, 1, small_size(&like)) : NULL;
    if (!made)
        return;
    *made = like;
    mem_free(a, m, 1, small_size(m));
    *at = made;
}

struct small *small_copy(const struct small *m)
{
    const struct packed *rest = rest_of(m);
    struct terms *terms = terms_share(m->terms);
    const tamis_allocator *a = terms ? &terms->allocator : NULL;
    struct packed *pages = terms && rest ? packed_copy(rest, a) : NULL;
    struct small *copy = terms && (pages || !rest) ? mem_new(a, 1, small_size(m)) : NULL;
    if (!copy) {
        if (terms) {
            packed_free(pages, a);
            terms_release(terms);
        }
        return NULL;
    }
    memcpy(copy, m, small_size(m));
    copy->terms = terms;
    if (copy->form >= FORM_PACKED)
        rest_put(copy, pages);
    return copy;
}

uint64_t small_bytes(const struct small *m)
{
    const struct packed *rest = rest_of(m);
    return small_size(m) + terms_bytes(m->terms) + (rest ? rest->bytes : 0);
}

uint64_t small_items(const struct small *m, uint32_t *parts)
{
    const struct packed *rest = rest_of(m);
    *parts = 1 + (m->form == FORM_BITS && rest);
    return m->n + (rest ? rest->n : 0);
}

bool small_key(const struct small *m, uint8_t key[TAMIS_KEY_LEN])
{
    const struct family *family = &m->terms->family;
    if (family->has_key)
        memcpy(key, family->secrets->key, TAMIS_KEY_LEN);
    return family->has_key;
}

void small_move(struct small **m, const struct mover *mover)
{
    struct small *moved = mover->move(mover->context, *m);
    if (moved)
        *m = moved;
    struct packed *rest = rest_of(*m);
    if (rest) {
        packed_move(&rest, mover->move, mover->context);
        rest_put(*m, rest);
    }
}
