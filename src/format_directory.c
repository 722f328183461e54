/*
 * The bytes of a directory (docs/format.md): plans and matrices with the columns in use alone, names,
 * what each owner has, and whose each column is. Dropped owners are left out, so the numbers of the
 * others close up.
 */
#include "format.h"

#include "err.h"

#define DIRECTORY_HEAD 64
#define PLAN_LEN       48

struct directory_head {
    double fpp;
    uint32_t owners, plans;
    uint64_t names_len, columns;
    const uint8_t *records;
};

/* A plan with its columns. */
struct plan_record {
    struct column_plan plan;
    uint64_t columns;
};

static void directory_fields(struct cursor *c, struct directory_head *h)
{
    field_f64(c, &h->fpp, "the rate is no number");
    field_u32(c, &h->owners);
    field_u32(c, &h->plans);
    field_u64(c, &h->names_len);
    field_u64(c, &h->columns);
    field_zero(c, 32);
}

static void plan_fields(struct cursor *c, struct plan_record *r)
{
    field_u32(c, &r->plan.k);
    field_u32(c, &r->plan.most);
    field_u64(c, &r->plan.units);
    field_u64(c, &r->plan.capacity);
    field_f64(c, &r->plan.rate, "the rate of a column is no number");
    field_u64(c, &r->columns);
    field_zero(c, 8);
}

static struct plan_record plan_at(const struct directory_head *h, uint32_t i)
{
    struct plan_record r = {{0}, 0};
    struct cursor c = cursor_read(h->records + (size_t)PLAN_LEN * i, PLAN_LEN);
    plan_fields(&c, &r);
    return r;
}

static bool section_length(const void *of, uint32_t type, uint32_t i, uint64_t *len)
{
    const struct directory_head *h = of;
    struct plan_record r;
    switch (type) {
    case SECTION_MATRIX:
        if (i >= h->plans)
            return false;
        r = plan_at(h, i);
        *len = r.plan.units * columns_width(r.columns) / 8;
        return true;
    case SECTION_NAMES:
        *len = h->names_len;
        return i == 0;
    case SECTION_OWNERS:
        *len = 16 * (uint64_t)h->owners;
        return i == 0;
    case SECTION_COLUMNS:
        *len = 4 * h->columns;
        return i == 0;
    default:
        return false;
    }
}

static struct section_walk directory_sections(const struct directory_head *h)
{
    return (struct section_walk){
        .length = section_length, .of = h, .owners = h->plans ? h->plans : 1};
}

/* ---- writing --------------------------------------------------------------------------------- */

struct image {
    const tamis_directory *d;
    struct directory_head head;
    uint8_t *body;
    uint64_t body_len;
    uint32_t *numbers;            /* of owners, closed up */
    struct columns_group **group; /* of each plan that is in use */
    uint32_t *plan_numbers;       /* of plans, closed up; UINT32_MAX: not in use */
};

static void image_free(struct image *m)
{
    const tamis_allocator *a = &m->d->allocator;
    mem_free(a, m->body, 1, m->body_len);
    mem_free(a, m->numbers, tamis_directory_owners(m->d), sizeof *m->numbers);
    mem_free(a, m->group, m->d->n_plans, sizeof *m->group);
    mem_free(a, m->plan_numbers, m->d->n_plans, sizeof *m->plan_numbers);
}

/* Plans of one shape share a matrix: the first of them stands for all. */
static bool same_shape(const struct column_plan *x, const struct columns_group *g)
{
    return x->units == g->bits.units && x->k == g->bits.k;
}

static void image_plans(struct image *m)
{
    const struct columns_state *s = columns_now(&m->d->columns);
    for (size_t i = 0; i < m->d->n_plans; i++) {
        m->plan_numbers[i] = UINT32_MAX;
        for (uint32_t j = 0; j < m->head.plans; j++)
            if (same_shape(&m->d->plans[i], m->group[j]))
                m->plan_numbers[i] = j;
        for (uint32_t j = 0; j < s->n && m->plan_numbers[i] == UINT32_MAX; j++)
            if (same_shape(&m->d->plans[i], s->group[j])) {
                m->plan_numbers[i] = m->head.plans;
                m->group[m->head.plans++] = s->group[j];
                m->head.columns += s->group[j]->used;
            }
    }
}

static void image_body(struct image *m)
{
    struct cursor c = cursor_write(m->body, (size_t)m->body_len);
    directory_fields(&c, &m->head);
    for (size_t i = 0, next = 0; i < m->d->n_plans; i++)
        if (m->plan_numbers[i] == next) {
            struct plan_record r = {m->d->plans[i], m->group[next++]->used};
            plan_fields(&c, &r);
        }
    m->head.records = m->body + DIRECTORY_HEAD;
}

static tamis_error image_of(struct image *m, const tamis_directory *d)
{
    const tamis_allocator *a = &d->allocator;
    uint32_t n = tamis_directory_owners(d);
    *m = (struct image){.d = d, .head.fpp = d->fpp};
    m->numbers = mem_new(a, n, sizeof *m->numbers);
    m->group = mem_new0(a, d->n_plans, sizeof *m->group);
    m->plan_numbers = mem_new(a, d->n_plans, sizeof *m->plan_numbers);
    if (m->numbers && m->group && m->plan_numbers) {
        image_plans(m);
        m->body_len = DIRECTORY_HEAD + PLAN_LEN * (uint64_t)m->head.plans;
        m->body = mem_new0(a, 1, m->body_len);
    }
    if (!m->body) {
        image_free(m);
        return TAMIS_ENOMEM;
    }
    for (uint32_t i = 0; i < n; i++) {
        const char *name = tamis_directory_name(d, i);
        m->numbers[i] = name ? m->head.owners++ : UINT32_MAX;
        m->head.names_len += name ? strlen(name) + 1 : 0;
    }
    image_body(m);
    return TAMIS_OK;
}

struct bit_sink {
    struct writer *w;
    unsigned at;
    uint64_t words[64];
};

static void bit_put(struct bit_sink *s, uint64_t bit)
{
    s->words[s->at >> 6] |= bit << (s->at & 63);
    if (++s->at == 4096) {
        put(s->w, s->words, sizeof s->words);
        memset(s->words, 0, sizeof s->words);
        s->at = 0;
    }
}

/* Rows of the columns in use, bit by bit. */
static void put_bits(const struct columns_group *g, uint64_t width, struct writer *w)
{
    struct bit_sink s = {.w = w};
    for (uint64_t row = 0; row < g->rows && !w->failed; row++) {
        for (uint64_t i = 0; i < g->width; i++) {
            uint64_t at = row * g->width + i;
            if (g->owner[i] < COLUMN_GONE)
                bit_put(&s, word_load(&g->bits.words[at >> 6]) >> (at & 63) & 1);
        }
        for (uint64_t i = g->used; i < width; i++)
            bit_put(&s, 0);
    }
    put(w, s.words, s.at / 8);
}

static void put_matrix(const struct columns_group *g, struct writer *w)
{
    uint64_t width = columns_width(g->used), words = width / 64, first = 0;
    while (first < g->used && g->owner[first] < COLUMN_GONE)
        first++;
    if (first < g->used || words == 0) {
        put_bits(g, width, w);
        return;
    }
    uint64_t last = g->used % 64 ? (UINT64_C(1) << g->used % 64) - 1 : UINT64_MAX;
    for (uint64_t row = 0; row < g->rows && !w->failed; row++) { /* no gaps: whole words */
        const uint64_t *from = g->bits.words + row * (g->width / 64);
        uint64_t end = word_load(&from[words - 1]) & last;
        put(w, from, 8 * (words - 1));
        put(w, &end, 8);
    }
}

static void put_owners(const struct image *m, bool names, struct writer *w)
{
    for (uint32_t i = 0; i < tamis_directory_owners(m->d) && !w->failed; i++) {
        const struct named *owner = directory_owner(m->d, i);
        uint8_t record[16] = {0};
        if (m->numbers[i] == UINT32_MAX)
            continue;
        if (names) {
            put(w, owner->name, strlen(owner->name) + 1);
            continue;
        }
        put_u64(record, tamis_directory_items(m->d, i));
        put_u32(record + 8, owner->columns ? m->plan_numbers[owner->plan] : 0);
        put_u32(record + 12, owner->columns);
        put(w, record, sizeof record);
    }
}

static void put_columns(const struct image *m, struct writer *w)
{
    for (uint32_t i = 0; i < m->head.plans; i++)
        for (uint64_t j = 0; j < m->group[i]->width; j++)
            if (m->group[i]->owner[j] < COLUMN_GONE) {
                uint8_t number[4];
                put_u32(number, m->numbers[m->group[i]->owner[j]]);
                put(w, number, sizeof number);
            }
}

static tamis_error put_payload(void *what, tamis_write write, void *context)
{
    const struct image *m = what;
    struct writer w = {write, context, false};
    struct section_walk walk = directory_sections(&m->head);
    for (struct section s; !w.failed && section_next(&walk, &s);) {
        if (s.type == SECTION_MATRIX)
            put_matrix(m->group[s.owner], &w);
        else if (s.type == SECTION_COLUMNS)
            put_columns(m, &w);
        else
            put_owners(m, s.type == SECTION_NAMES, &w);
        put_zeros(&w, round_up(s.len, SECTION_ALIGN) - s.len);
    }
    return w.failed ? TAMIS_EIO : TAMIS_OK;
}

static tamis_error encode(const tamis_directory *d, unsigned flags, tamis_write write,
                          void *context, uint64_t *size)
{
    struct image m;
    tamis_error e = image_of(&m, d);
    if (e != TAMIS_OK)
        return e;
    struct outline o = {.kind = KIND_DIRECTORY,
                        .no_key = (flags & TAMIS_SAVE_NO_KEY) || !d->family.has_key,
                        .family = &d->family,
                        .body = m.body,
                        .body_len = m.body_len};
    outline_count(&o, directory_sections(&m.head));
    *size = outline_header_len(&o) + o.payload_len;
    if (write)
        e = outline_write(&o, directory_sections(&m.head), put_payload, &m, &d->allocator, write,
                          context);
    image_free(&m);
    return e;
}

uint64_t tamis_directory_encoded_size(const tamis_directory *d, unsigned flags)
{
    uint64_t size = 0;
    return encode(d, flags, NULL, NULL, &size) == TAMIS_OK ? size : 0;
}

tamis_error tamis_directory_encode(const tamis_directory *d, unsigned flags, tamis_write write,
                                   void *context)
{
    uint64_t size;
    if (flags & ~(unsigned)TAMIS_SAVE_NO_KEY)
        return TAMIS_EARG;
    return encode(d, flags, write, context, &size);
}

/* ---- reading --------------------------------------------------------------------------------- */

static tamis_error wrong_at(tamis_reason *reason, uint64_t at, const char *what)
{
    return fail_at(reason, TAMIS_EFORMAT, at, "%s", what);
}

static tamis_error parse_body(struct directory_head *h, const struct container *c,
                              tamis_reason *reason)
{
    const uint8_t *body = c->data + BODY_AT;
    struct family family = {.hash = c->hash};
    uint64_t columns = 0;
    if (c->body_len < DIRECTORY_HEAD)
        return wrong_at(reason, BODY_AT, "the body is too short");
    struct cursor at = cursor_read(body, (size_t)c->body_len);
    directory_fields(&at, h);
    h->records = body + DIRECTORY_HEAD;
    if (at.wrong)
        return wrong_at(reason, BODY_AT + at.wrong_at, at.wrong);
    if (!(h->fpp > 0 && h->fpp < 1) || h->owners > TAMIS_OWNERS_MAX || h->names_len > c->len ||
        h->columns > c->len || c->body_len != DIRECTORY_HEAD + PLAN_LEN * (uint64_t)h->plans)
        return wrong_at(reason, BODY_AT, "settings that no directory has");
    for (uint32_t i = 0; i < h->plans; i++) {
        struct plan_record r = plan_at(h, i);
        struct shape shape = {TAMIS_SPREAD, r.plan.units, r.plan.k};
        if (!shape_valid(&shape, &family) || r.plan.capacity == 0 || r.plan.most == 0 ||
            r.columns == 0 || r.columns > h->columns || !(r.plan.rate > 0 && r.plan.rate < 1) ||
            r.plan.units > 8 * c->len / columns_width(r.columns))
            return wrong_at(reason, BODY_AT + DIRECTORY_HEAD + PLAN_LEN * (uint64_t)i,
                            "the shape of a column");
        columns += r.columns;
    }
    return columns == h->columns ? TAMIS_OK : wrong_at(reason, BODY_AT + 24, "the columns");
}

static tamis_error load_owners(tamis_directory *d, const struct container *c,
                               const struct directory_head *h, tamis_reason *reason)
{
    uint64_t len;
    const char *names = (const char *)container_find(c, SECTION_NAMES, 0, &len);
    uint64_t at = (uint64_t)((const uint8_t *)names - c->data), left = h->names_len;
    const uint8_t *records = container_find(c, SECTION_OWNERS, 0, &len);
    for (uint32_t i = 0; i < h->owners; i++) {
        char name[OWNER_NAME + 1]; /* a copy: they may be those of a mapped file */
        size_t most = (size_t)min_u64(left, sizeof name), name_len = strnlen(names, most);
        if (name_len == most || name_len == 0)
            return wrong_at(reason, at, "the name of an owner");
        memcpy(name, names, name_len);
        name[name_len] = 0;
        uint32_t number = directory_number(d, name, true);
        if (number == TAMIS_OWNERS_MAX)
            return fail(reason, TAMIS_ENOMEM, "no memory for a directory");
        if (number != i)
            return wrong_at(reason, at, "two owners of one name");
        struct named *owner = directory_owner(d, i);
        const uint8_t *record = records + 16 * (size_t)i;
        uint64_t items = fetch_u64(record);
        owner->plan = fetch_u32(record + 8);
        owner->columns = fetch_u32(record + 12);
        atomic_store(&owner->items, items);
        atomic_store(&owner->live, true);
        if ((owner->columns == 0) != (items == 0) || owner->columns > h->columns ||
            (owner->columns ? owner->plan >= h->plans : owner->plan != 0))
            return wrong_at(reason, (uint64_t)(record - c->data), "what an owner has");
        names += name_len + 1;
        at += name_len + 1;
        left -= name_len + 1;
    }
    return left == 0 ? TAMIS_OK : wrong_at(reason, at, "names of nobody");
}

/* No bit in a column that is not there. */
static bool columns_clean(const struct columns_group *g, uint64_t columns)
{
    for (uint64_t row = 0; columns < g->width && row < g->rows; row++)
        for (uint64_t i = columns; i < g->width; i++) {
            uint64_t at = row * g->width + i;
            if (g->bits.words[at >> 6] >> (at & 63) & 1)
                return false;
        }
    return true;
}

static tamis_error load_matrix(tamis_directory *d, const struct container *c, uint32_t i,
                               const struct plan_record *r, const uint8_t *owners, bool view,
                               tamis_reason *reason)
{
    uint64_t len;
    const uint8_t *from = container_find(c, SECTION_MATRIX, i, &len);
    struct bits bits = directory_bits(d, &r->plan);
    struct columns_group *g =
        columns_group_new(&d->allocator, &bits, columns_width(r->columns), !view);
    if (!g || !directory_plan_add(d, &r->plan)) {
        if (g)
            columns_group_free(g, &d->allocator);
        return fail(reason, TAMIS_ENOMEM, "no memory for a directory");
    }
    if (view)
        g->bits.words = (uint64_t *)(uintptr_t)from;
    else
        memcpy(g->bits.words, from, (size_t)len);
    const char *wrong = view || columns_clean(g, r->columns) ? NULL : "a bit of no column";
    for (uint64_t j = 0; j < r->columns && !wrong; j++) {
        g->owner[j] = fetch_u32(owners + 4 * j);
        if (g->owner[j] >= tamis_directory_owners(d) || directory_owner(d, g->owner[j])->plan != i)
            wrong = "a column of nobody";
    }
    tamis_error e =
        wrong ? wrong_at(reason, (uint64_t)(from - c->data), wrong) : columns_adopt(&d->columns, g);
    if (e != TAMIS_OK)
        columns_group_free(g, &d->allocator);
    return e;
}

/* As many columns as each owner says. */
static tamis_error check_columns(const tamis_directory *d, const struct container *c,
                                 tamis_reason *reason)
{
    const struct columns_state *s = columns_now(&d->columns);
    uint32_t n = tamis_directory_owners(d);
    uint32_t *counts = mem_new0(&d->allocator, n, sizeof *counts);
    tamis_error e = TAMIS_OK;
    if (!counts)
        return fail(reason, TAMIS_ENOMEM, "no memory for a directory");
    for (uint32_t i = 0; i < s->n; i++)
        for (uint64_t j = 0; j < s->group[i]->width; j++)
            if (s->group[i]->owner[j] < COLUMN_GONE)
                counts[s->group[i]->owner[j]]++;
    for (uint32_t i = 0; i < n && e == TAMIS_OK; i++)
        if (counts[i] != directory_owner(d, i)->columns)
            e = wrong_at(reason, c->payload, "the columns of an owner");
    mem_free(&d->allocator, counts, n, sizeof *counts);
    return e;
}

static tamis_error fill(tamis_directory *d, const struct container *c,
                        const struct directory_head *h, const uint8_t *key, bool view,
                        tamis_reason *reason)
{
    uint64_t len;
    const uint8_t *owners = container_find(c, SECTION_COLUMNS, 0, &len);
    tamis_error e = family_init(&d->family, &d->allocator, c->hash, key);
    if (e != TAMIS_OK)
        return fail(reason, e, "no memory for a directory");
    d->family.has_key = c->has_key;
    e = load_owners(d, c, h, reason);
    for (uint32_t i = 0; i < h->plans && e == TAMIS_OK; i++) {
        struct plan_record r = plan_at(h, i);
        e = load_matrix(d, c, i, &r, owners, view, reason);
        owners += 4 * r.columns;
    }
    return e == TAMIS_OK ? check_columns(d, c, reason) : e;
}

enum load_how { LOAD_COPY, LOAD_VIEW, LOAD_CHECK };

static tamis_error load(tamis_directory **out, const void *data, size_t len, enum load_how how,
                        const tamis_open_options *o, tamis_reason *reason)
{
    struct container c;
    struct directory_head h;
    uint8_t key[TAMIS_KEY_LEN] = {0};
    tamis_directory *d = NULL;
    tamis_error e = container_open(&c, data, len, KIND_DIRECTORY, reason);
    if (e == TAMIS_OK && (how != LOAD_CHECK || c.has_key))
        e = container_key(&c, o ? o->key : NULL, key, reason);
    if (e == TAMIS_OK)
        e = parse_body(&h, &c, reason);
    if (e == TAMIS_OK)
        e = container_check_sections(&c, directory_sections(&h), reason);
    if (e != TAMIS_OK)
        return e;
    bool all = how != LOAD_VIEW || open_checks_all(o, &c);
    uint64_t names;
    const uint8_t *tables = container_find(&c, SECTION_NAMES, 0, &names);
    e = container_verify(&c, all ? c.payload : (uint64_t)(tables - c.data), c.len, reason);
    if (e == TAMIS_OK && all)
        e = container_check_gaps(&c, reason);
    if (e == TAMIS_OK)
        e = directory_make(&d, open_allocator(o), h.fpp);
    if (e == TAMIS_OK)
        e = fill(d, &c, &h, key, how == LOAD_VIEW, reason);
    if (e != TAMIS_OK) {
        tamis_directory_free(d);
        return e;
    }
    d->read_only = how == LOAD_VIEW;
    *out = d;
    return TAMIS_OK;
}

tamis_error tamis_directory_decode(tamis_directory **out, const void *data, size_t len,
                                   const tamis_open_options *options, tamis_reason *reason)
{
    return load(out, data, len, LOAD_COPY, options, reason);
}

tamis_error directory_from_mapping(tamis_directory **out, struct mapping mapping,
                                   const tamis_open_options *options, tamis_reason *reason)
{
    tamis_error e = load(out, mapping.data, mapping.len, LOAD_VIEW, options, reason);
    if (e == TAMIS_OK)
        (*out)->mapping = mapping;
    return e;
}

tamis_error directory_verify(const void *data, size_t len, tamis_reason *reason)
{
    tamis_directory *d = NULL;
    tamis_error e = load(&d, data, len, LOAD_CHECK, NULL, reason);
    tamis_directory_free(d);
    return e;
}
