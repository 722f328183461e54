/*
 * Small filters in one block of memory, for a server that holds millions of them: the set, stack, layer and vector of
 * a filter take 650 bytes beside its bits. There are two forms.
 *
 *   places   A filter without a stated capacity, while it has at most PLACES keys: of each key the first word of its
 *            digest, which is all that lines use. It has no false positives.
 *   bits     A compact filter of up to SMALL_CAPACITY keys: the bits of its vector. Further keys of a smooth one go
 *            into a set of lines, the `rest`, while that is small.
 *
 * A small filter can be queried and added to. For everything else it is turned into the whole set that it stands
 * for, with the same answers and the same bytes as if it had been whole all the time.
 */
#include "set.h"

#include "base/bytes.h"

#define PLACES 24 /* beyond this, lines take less */
#define REST_MAX \
    (UINT64_C(16) << 10) /* bytes of the rest; of larger ones the heads hardly matter */

#define ROOM       4 /* places at a time */
#define UNITS_MAX  (1u << 26)
#define PROBES_MAX (1u << 6)

struct small {
    struct terms *terms;
    struct set *rest; /* NULL: no key has exceeded the capacity */
    uint64_t memory_limit;
    uint32_t n; /* places, or the vector's keys */
    uint32_t units : 26,
        k : 6; /* of the vector; for places k is 0, and there is room for `units` */
    uint64_t word[];
};

static size_t size_for(uint32_t units, uint32_t k)
{
    return sizeof(struct small) + 8 * (size_t)(k ? (units + 63) / 64 : units);
}

static size_t small_size(const struct small *m)
{
    return size_for(m->units, m->k);
}

static struct bits bits_of(const struct small *m)
{
    const struct family *family = &m->terms->family;
    return (struct bits){(uint64_t *)(uintptr_t)m->word, m->units, m->k, family,
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
    const struct lines *l = set_lines(s);
    bool rest = !l || (l->fpp == smooth_lines_rate(opt) && l->bytes <= REST_MAX && !l->memory);
    return good && rest ? v : NULL;
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
    uint32_t units = v ? (uint32_t)v->bits.units : ROOM, k = v ? v->bits.k : 0;
    struct terms *terms = terms_share(set_terms(s));
    struct small *m = terms ? mem_new0(&terms->allocator, 1, size_for(units, k)) : NULL;
    if (terms && !m)
        terms_release(terms);
    if (!m)
        return NULL;
    *m = (struct small){.terms = terms, .memory_limit = s->memory_limit};
    m->units = units & (UNITS_MAX - 1);
    m->k = k & (PROBES_MAX - 1);
    if (v) {
        m->n = (uint32_t)v->count;
        memcpy(m->word, v->bits.words, units / 8);
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
    if (v && set_lines(s)) {
        set_unstack(s);
        m->rest = s;
    } else {
        set_free(s);
    }
    *out = m;
    return true;
}

struct set *small_start(const struct small *m)
{
    struct terms *terms = terms_share(m->terms);
    struct set *s = terms ? set_blank(terms, NULL, 0) : NULL;
    if (s && smooth_start(s) != TAMIS_OK) {
        set_free(s);
        return NULL;
    }
    if (s)
        set_limit(s, m->memory_limit);
    return s;
}

static struct set *whole_of_places(const struct small *m)
{
    tamis_digest digests[PLACES];
    struct set *s = small_start(m);
    size_t done;
    if (!s)
        return NULL;
    for (uint32_t i = 0; i < m->n; i++)
        digests[i] = (tamis_digest){m->word[i], 0};
    set_limit(s, 0); /* these keys were accepted */
    if (tamis_filter_add_many(as_filter(s), digests, m->n, NULL, &done) != TAMIS_OK) {
        set_free(s);
        return NULL;
    }
    set_limit(s, m->memory_limit);
    return s;
}

/* Adds the vector to the set: the rest, or a new one. On failure the set is freed. */
static struct set *whole_of_bits(const struct small *m, struct set *s)
{
    struct layer *layer = NULL;
    struct layer_plan plan = {.capacity = set_opt(s)->capacity,
                              .fpp = growth_first_rate(set_opt(s)),
                              .shape[0] = {TAMIS_SPREAD, m->units, m->k},
                              .room[0] = set_opt(s)->capacity};
    set_limit(s, 0);
    tamis_error e = plan_make(s, &plan, &layer);
    if (e == TAMIS_OK) {
        struct vector *v = layer->part[0].vector;
        memcpy(v->bits.words, m->word, m->units / 8);
        v->load = v->count = m->n;
        e = set_append(s, layer);
    }
    if (e != TAMIS_OK) {
        set_free(s);
        return NULL;
    }
    s->stack->stored = m->n;
    set_limit(s, m->memory_limit);
    return s;
}

struct set *small_whole(const struct small *m)
{
    struct set *s = NULL;
    if (!m->k)
        return whole_of_places(m);
    if (m->rest)
        return set_clone(&s, m->rest, false) == TAMIS_OK ? whole_of_bits(m, s) : NULL;
    struct terms *terms = terms_share(m->terms);
    s = terms ? set_blank(terms, NULL, 1) : NULL;
    return s ? whole_of_bits(m, s) : NULL;
}

/* ---- queries and adds ------------------------------------------------------------------------ */

static bool has_place(const struct small *m, uint64_t place)
{
    for (uint32_t i = 0; i < m->n; i++)
        if (m->word[i] == place)
            return true;
    return false;
}

bool small_has(const struct small *m, const void *key, size_t len)
{
    tamis_digest digest = family_digest(&m->terms->family, key, len);
    if (!m->k)
        return has_place(m, digest.a);
    struct bits bits = bits_of(m);
    return bits.kernel->has_one(&bits, digest) ||
           (m->rest && lines_has_one(&m->rest->lines, digest));
}

static enum small_added add_place(struct small **at, uint64_t place)
{
    struct small *m = *at;
    if (has_place(m, place))
        return SMALL_OLD;
    if (m->n == PLACES)
        return SMALL_OUTGROWN;
    if (m->n == m->units) {
        const tamis_allocator *a = &m->terms->allocator;
        size_t size = small_size(m);
        struct small *grown = mem_new(a, 1, size_for(m->units + ROOM, 0));
        if (!grown)
            return SMALL_NO_MEMORY;
        memcpy(grown, m, size);
        mem_free(a, m, 1, size);
        grown->units += ROOM;
        *at = m = grown;
    }
    m->word[m->n++] = place;
    return SMALL_NEW;
}

static enum small_added add_to_rest(struct small *m, tamis_digest digest)
{
    if (m->terms->opt.growth != TAMIS_SMOOTH)
        return SMALL_OUTGROWN;
    if (!m->rest && (m->rest = small_start(m)))
        m->rest->lines.fpp = smooth_lines_rate(set_opt(m->rest));
    struct lines *l = m->rest ? &m->rest->lines : NULL;
    if (!l || l->bytes > REST_MAX)
        return SMALL_OUTGROWN;
    uint8_t fresh;
    size_t done;
    if (lines_add_many(l, &digest, 1, true, &fresh, &done) != TAMIS_OK)
        return SMALL_OUTGROWN;
    return fresh ? SMALL_NEW : SMALL_OLD;
}

enum small_added small_add(struct small **at, const void *key, size_t len)
{
    struct small *m = *at;
    tamis_digest digest = family_digest(&m->terms->family, key, len);
    if (!m->k)
        return add_place(at, digest.a);
    struct bits bits = bits_of(m);
    if (!m->rest && m->n < m->terms->opt.capacity) {
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
    set_free(m->rest);
    mem_free(&a, m, 1, small_size(m));
    terms_release(terms);
}

void small_clear(struct small *m)
{
    set_free(m->rest);
    m->rest = NULL;
    m->n = 0;
    memset(m->word, 0, small_size(m) - sizeof *m);
}

struct small *small_copy(const struct small *m)
{
    struct set *rest = NULL;
    size_t size = small_size(m);
    if (m->rest && set_clone(&rest, m->rest, false) != TAMIS_OK)
        return NULL;
    struct terms *terms = terms_share(m->terms);
    struct small *copy = terms ? mem_new(&terms->allocator, 1, size) : NULL;
    if (!copy) {
        set_free(rest);
        if (terms)
            terms_release(terms);
        return NULL;
    }
    memcpy(copy, m, size);
    copy->terms = terms;
    copy->rest = rest;
    return copy;
}

uint64_t small_bytes(const struct small *m)
{
    return small_size(m) + terms_bytes(m->terms) + (m->rest ? set_bytes(m->rest) : 0);
}

uint64_t small_items(const struct small *m, uint32_t *parts)
{
    *parts = 1 + (m->rest != NULL);
    return m->n + (m->rest ? m->rest->lines.keys : 0);
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
    if ((*m)->rest)
        set_move(&(*m)->rest, mover, 0);
}

/* ---- the bytes of places --------------------------------------------------------------------- */

bool small_has_places(const struct small *m)
{
    return !m->k;
}

size_t small_places(const struct small *m, uint8_t out[SMALL_PLACES_LEN])
{
    _Static_assert(SMALL_PLACES_LEN == 8 * PLACES, "the caller has room for all of them");
    for (uint32_t i = 0; i < m->n; i++)
        put_u64(out + 8 * (size_t)i, m->word[i]);
    return 8 * (size_t)m->n;
}

bool small_put_places(struct small **m, const uint8_t *bytes, size_t len)
{
    bool ok = !(*m)->k && len % 8 == 0 && len <= SMALL_PLACES_LEN;
    for (size_t i = 0; ok && i < len; i += 8)
        ok = add_place(m, get_u64(bytes + i)) == SMALL_NEW;
    return ok;
}
