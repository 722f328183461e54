/* Applies patches; patch.c describes them. */
#include "patch.h"

#include "base/err.h"

/* An empty vector costs a patch nothing, so the size of a patch does not limit the memory that
   it can request. No filter grows by more than this from one version to the next. */
#define GROWTH_BYTES  ((uint64_t)1 << 30)
#define GROWTH_FACTOR 4096

struct apply {
    const struct set *s;
    struct set *made;
    uint8_t *old_body, *body;
    uint64_t old_len, len;
    uint32_t n;
    uint32_t *bases; /* for each of n vectors the old one plus 1, or 0 */
    size_t patch_len;
    struct head head;
    struct patch_models models;
    struct delta_in in;
};

static const tamis_error broken = TAMIS_EFORMAT;

/* ---- the body -------------------------------------------------------------------------------- */

/* Reads which old vectors the new ones come from, and their records. */
static tamis_error read_records(struct apply *p, uint32_t n)
{
    uint32_t expected = 1, n_old = layers_count(set_layers(p->s));
    for (uint32_t i = 0; i < n; i++) {
        uint64_t base = expected;
        if (!in_bit(&p->in, &p->models.in_turn))
            base = in_number(&p->in, &p->models.base);
        if (base > n_old || p->in.broken)
            return broken;
        p->bases[i] = (uint32_t)base;
        expected = base ? (uint32_t)base + 1 : expected;
        in_image(&p->in, &p->models.record, patch_record(p->old_body, (uint32_t)base),
                 p->body + HEAD_LEN + RECORD_LEN * (size_t)i, RECORD_LEN);
    }
    return TAMIS_OK;
}

/* Reads the rate and width of the lines, and the records of their parts. */
static tamis_error read_part_records(struct apply *p, uint32_t n)
{
    struct patch_parts old = patch_parts(p->old_body, set_lines(p->s));
    uint8_t *at = p->body + HEAD_LEN + RECORD_LEN * (size_t)p->n;
    if (n)
        in_image(&p->in, &p->models.record, patch_lines_record(&old), at, LINES_LEN);
    at += LINES_LEN;
    for (uint32_t i = 0, position = 0; i < n; i++, at += PART_LEN) {
        struct part_facts facts;
        struct cursor c = cursor_read(at, PART_LEN);
        in_image(&p->in, &p->models.record, patch_part_record(&old, patch_part_at(&old, position)),
                 at, PART_LEN);
        part_fields(&c, &facts);
        if (p->in.broken || c.wrong || part_facts_wrong(&facts))
            return broken;
        position += SHELF_LEN >> facts.depth;
    }
    return TAMIS_OK;
}

static tamis_error read_body(struct apply *p, bool bits_only)
{
    uint8_t front[HEAD_LEN];
    in_image(&p->in, &p->models.head, p->old_body, front, HEAD_LEN);
    struct cursor c = cursor_read(front, HEAD_LEN);
    head_fields(&c, &p->head);
    uint32_t n = p->head.n, n_old = layers_count(set_layers(p->s)), parts = p->head.line_parts;
    if (c.wrong || (n == 0 && parts == 0) || n > MATRIX_COLUMNS_MAX ||
        n > n_old + 8 * p->patch_len || parts > SHELF_LEN)
        return broken;
    p->len = HEAD_LEN + RECORD_LEN * (uint64_t)n + (parts ? LINES_LEN + PART_LEN * parts : 0);
    p->body = mem_new(set_allocator(p->s), 1, p->len);
    p->bases = mem_new(set_allocator(p->s), n, sizeof *p->bases);
    p->n = n;
    if (!p->body || !p->bases)
        return TAMIS_ENOMEM;
    memcpy(p->body, front, HEAD_LEN);
    tamis_error e = read_records(p, n);
    if (e == TAMIS_OK)
        e = read_part_records(p, parts);
    if (e == TAMIS_OK)
        e = head_parse(&p->head, KIND_FILTER, p->body, p->len, bits_only, set_family(p->s)->hash,
                       NULL);
    if (e != TAMIS_OK)
        return e;
    bool same = p->head.set.growth == set_opt(p->s)->growth &&
                p->head.set.layout == set_opt(p->s)->layout &&
                p->head.set.deletable == set_opt(p->s)->deletable;
    return same && p->head.pending == 0 ? TAMIS_OK : broken;
}

static tamis_error check_size(const struct apply *p)
{
    uint64_t bytes = 0, old = p->s->stack->mapping.len;
    const struct layers *layers = set_layers(p->s);
    for (uint32_t i = 0; i < p->head.n; i++) {
        struct part_record r = head_record(&p->head, i);
        bytes += record_positions(&p->head, &r) / 8 * (p->head.counted ? 5 : 1);
    }
    for (uint32_t i = 0; i < layers_count(layers); i++)
        old += vector_positions_total(layers->v[i]) / 8;
    for (uint32_t i = 0; i < p->head.line_parts; i++) {
        struct part_facts facts = head_part(&p->head, i);
        for (unsigned what = 0; what < PART_PIECES; what++)
            bytes += part_len(&facts, what);
    }
    old += set_lines(p->s) ? set_lines(p->s)->bytes : 0;
    uint64_t may = (old + p->patch_len) * GROWTH_FACTOR + GROWTH_BYTES;
    return bytes <= may ? TAMIS_OK : TAMIS_ELIMIT;
}

/* ---- vectors --------------------------------------------------------------------------------- */

static const struct vector *base_vector(const struct apply *p, uint32_t i)
{
    return p->bases[i] ? set_layers(p->s)->v[p->bases[i] - 1] : NULL;
}

static tamis_error make_vector(struct apply *p, uint32_t i)
{
    const tamis_allocator *a = set_allocator(p->made);
    const struct vector *base = base_vector(p, i);
    if (!layer_read(p->made, &p->head, i, NULL))
        return TAMIS_ENOMEM;
    struct vector *v = set_layers(p->made)->v[i];
    if (!base)
        return TAMIS_OK;
    if (!shape_equal(base, v) || (p->head.counted && !base->deletable))
        return broken;
    if (!p->head.width)
        memcpy(v->bits.words, base->bits.words, (size_t)vector_positions_total(v) / 8);
    v->sums = kept_sums_copy(a, base->sums); /* the changes will mark the pages they touch */
    if (p->head.counted) {
        v->counter_sums = kept_sums_copy(a, base->counter_sums);
        counters_free(&v->counters, a);
        if (!counters_copy(&v->counters, &base->counters, a))
            return TAMIS_ENOMEM;
        v->ones = base->ones;
    }
    return TAMIS_OK;
}

static tamis_error make_matrix(struct apply *p)
{
    const struct layers *layers = set_layers(p->made);
    if (!matrix_read(p->made, &p->head, NULL))
        return TAMIS_ENOMEM;
    for (uint32_t i = 0; i < p->head.n; i++)
        if (p->head.width && base_vector(p, i))
            vector_fill_columns(layers->v[i], base_vector(p, i), 1);
    return TAMIS_OK;
}

static tamis_error read_vectors(struct apply *p)
{
    tamis_error e = TAMIS_OK;
    for (uint32_t i = 0; i < p->head.n && e == TAMIS_OK; i++)
        e = make_vector(p, i);
    if (e == TAMIS_OK)
        e = make_matrix(p);
    for (uint32_t i = 0; i < p->head.n && e == TAMIS_OK; i++) {
        bool memory;
        if (!in_vector(&p->in, &p->models.vectors, set_layers(p->made)->v[i], p->head.counted,
                       set_allocator(p->made), &memory))
            e = memory ? broken : TAMIS_ENOMEM;
    }
    return e;
}

static tamis_error read_lines(struct apply *p)
{
    struct patch_parts old = patch_parts(p->old_body, set_lines(p->s));
    if (!lines_read(p->made, &p->head, NULL))
        return TAMIS_ENOMEM;
    for (uint32_t i = 0, position = 0; i < p->head.line_parts; i++) {
        struct body *b = lines_part(set_lines(p->made), i);
        uint32_t base = patch_part_at(&old, position);
        if (!in_part(&p->in, &p->models.lines, base ? lines_part(old.lines, base - 1) : NULL, b,
                     set_allocator(p->made)))
            return broken;
        position += SHELF_LEN >> part_facts(b).depth;
    }
    return TAMIS_OK;
}

/* ---- pending removals ------------------------------------------------------------------------ */

/* Keeps old entries that remain, with their remaining candidates. */
static tamis_error keep_pending(struct apply *p, uint32_t *ids)
{
    struct pending_list list;
    const struct layers *layers = set_layers(p->made);
    tamis_error e = pending_list_make(&list, p->s);
    for (uint64_t i = 0; i < list.n && e == TAMIS_OK; i++) {
        const struct pending *old = list.list[i];
        uint32_t found = 0;
        if (!in_bit(&p->in, &p->models.kept))
            continue;
        for (uint32_t j = 0; j < p->head.n; j++)
            if (pending_has(old, layers->l[j]->id))
                ids[found++] = layers->l[j]->id;
        e = found == 0 ? broken
                       : pending_remember(p->made, &old->digest, atomic_load(&old->copies), ids,
                                          found, old->hides);
    }
    pending_list_free(&list);
    return e;
}

static tamis_error read_entry(struct apply *p, uint32_t *ids)
{
    const struct layers *layers = set_layers(p->made);
    struct number_models *numbers = &p->models.numbers;
    tamis_digest digest;
    digest.a = in_direct(&p->in, 64);
    digest.b = in_direct(&p->in, 64);
    uint64_t copies = in_number(&p->in, numbers), next = 0;
    bool hides = in_direct(&p->in, 1);
    uint64_t n = in_number(&p->in, numbers);
    if (p->in.broken || n >= p->head.n || copies > INT64_MAX || (hides && !p->head.set.unique))
        return broken;
    for (uint64_t i = 0; i <= n; i++) {
        uint64_t at = in_number(&p->in, numbers);
        if (p->in.broken || at >= p->head.n - next)
            return broken;
        ids[i] = layers->l[next + at]->id;
        next += at + 1;
        if (next == p->head.n && i < n)
            return broken;
    }
    return pending_remember(p->made, &digest, copies + 1, ids, (uint32_t)n + 1, hides);
}

static tamis_error read_pending(struct apply *p)
{
    uint32_t *ids = mem_new(set_allocator(p->made), p->head.n, sizeof *ids);
    if (set_stacked(p->made))
        p->made->stack->more->removals.probes_max =
            p->s->stack->more->removals.probes + probes_for(p->patch_len);
    tamis_error e = ids ? keep_pending(p, ids) : TAMIS_ENOMEM;
    uint64_t n = e == TAMIS_OK ? in_number(&p->in, &p->models.numbers) : 0;
    if (n > (set_stacked(p->made) ? p->patch_len / 16 : 0))
        e = broken;
    for (uint64_t i = 0; i < n && e == TAMIS_OK; i++)
        e = read_entry(p, ids);
    mem_free(set_allocator(p->made), ids, p->head.n, sizeof *ids);
    if (set_stacked(p->made))
        p->made->stack->more->removals.probes_max = 0;
    return e;
}

/* ---- applying -------------------------------------------------------------------------------- */

static tamis_error make(struct apply *p, bool bits_only)
{
    const struct set *s = p->s;
    tamis_error e = check_size(p);
    const struct terms *terms = set_terms(s);
    struct family_key key = {terms->family.hash, terms->family.secrets->key, terms->family.has_key};
    if (e == TAMIS_OK)
        e = set_from_head(&p->made, &p->head, &terms->allocator, key, bits_only);
    if (e != TAMIS_OK)
        return e;
    if (set_stacked(p->made)) {
        p->made->stack->more->clock = s->stack->more->clock;
        p->made->stack->more->clock_context = s->stack->more->clock_context;
    }
    e = read_vectors(p);
    if (e == TAMIS_OK)
        e = read_lines(p);
    if (e == TAMIS_OK && p->head.counted)
        e = read_pending(p);
    return e == TAMIS_OK && (p->in.broken || p->in.at < p->in.len) ? broken : e;
}

static tamis_error run(struct apply *p, const struct patch_front *front, const uint8_t *coded,
                       tamis_reason *reason)
{
    bool bits_only = front->flags & PATCH_BITS;
    uint8_t print[16];
    tamis_error e = set_fingerprint(p->s, bits_only, print);
    if (e == TAMIS_OK && memcmp(print, front->older, sizeof print) != 0)
        return fail_at(reason, TAMIS_EBASE, 24,
                       "the patch was made for another version of this filter");
    if (e == TAMIS_OK)
        e = patch_body(p->s, bits_only, &p->old_body, &p->old_len);
    models_reset((void *)&p->models, PATCH_MODELS);
    in_begin(&p->in, coded, p->patch_len);
    if (e == TAMIS_OK)
        e = read_body(p, bits_only);
    if (e == TAMIS_OK)
        e = make(p, bits_only);
    if (e == TAMIS_OK)
        e = set_fingerprint(p->made, bits_only, print);
    if (e == broken)
        return fail_at(reason, e, PATCH_FRONT + p->in.at, "the contents of the patch are damaged");
    if (e != TAMIS_OK)
        return fail(reason, e, "the patch was not applied: %s", tamis_error_text(e));
    if (memcmp(print, front->newer, sizeof print) != 0)
        return fail_at(reason, TAMIS_ECHECKSUM, 40,
                       "the result is not the version that the patch is for");
    return TAMIS_OK;
}

tamis_error patch_apply(const struct set *s, const void *patch, size_t len, struct set **out,
                        tamis_reason *reason)
{
    struct patch_front front;
    tamis_error e = patch_open(&front, patch, len, reason);
    if (e != TAMIS_OK)
        return e;
    if (!(front.flags & PATCH_BITS) && s->read_only)
        return fail(reason, TAMIS_EREADONLY,
                    "the filter is read-only and the patch is not for bits only");
    if (!family_standard(set_family(s)) || front.family != family_tag(set_family(s)))
        return fail_at(reason, TAMIS_EFAMILY, 20, "the patch is for a filter of another family");
    struct apply *p = mem_new0(set_allocator(s), 1, sizeof *p);
    if (!p)
        return fail(reason, TAMIS_ENOMEM, "no memory to apply a patch");
    p->s = s;
    p->patch_len = len - PATCH_FRONT - PATCH_SUM;
    e = run(p, &front, (const uint8_t *)patch + PATCH_FRONT, reason);
    mem_free(set_allocator(s), p->bases, p->n, sizeof *p->bases);
    mem_free(set_allocator(s), p->body, 1, p->len);
    mem_free(set_allocator(s), p->old_body, 1, p->old_len);
    if (e == TAMIS_OK)
        *out = p->made;
    else
        set_free(p->made);
    mem_free(set_allocator(s), p, 1, sizeof *p);
    return e;
}

tamis_error tamis_filter_apply(tamis_filter *f, const void *patch, size_t len, tamis_reason *reason)
{
    struct set *made;
    tamis_error e = patch_apply(&f->set, patch, len, &made, reason);
    return e == TAMIS_OK ? set_become(&f->set, made, e) : e;
}
