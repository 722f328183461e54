/*
 * Patches turn one version of a filter into another. The bytes are
 *
 *     0   8  "TAMISPAT"            24  16  fingerprint of the older version
 *     8   4  format version        40  16  fingerprint of the newer one
 *     12  4  kind                  56   .  one coded stream (delta.h)
 *     16  4  flags: 1 bits only    end  8  XXH3-64 of all before
 *     20  4  first bytes of the check of the family key
 *
 * A fingerprint (set_fingerprint) covers the bytes as which the version would be saved without its key.
 * The stream holds the body (format_head.c) as changes to the old body; for every vector the old one
 * that it comes from, and its record; the records of the parts of lines, each as changes to the old part
 * that began at the same position; then the changes of every vector and of every part; then the pending
 * removals. Values that follow from the rest (numbers of large counters and removals) are written as zero.
 *
 * Applying a patch makes the new version separately and compares its fingerprint before it is used.
 */
#include "patch.h"

#include "base/err.h"

static void front_fields(struct cursor *c, struct patch_front *front)
{
    field_u32(c, &front->version);
    field_u32(c, &front->kind);
    field_u32(c, &front->flags);
    field_u32(c, &front->family);
    field_bytes(c, front->older, sizeof front->older);
    field_bytes(c, front->newer, sizeof front->newer);
}

/* ---- bodies ---------------------------------------------------------------------------------- */

tamis_error patch_body(const struct set *s, bool bits_only, uint8_t **body, uint64_t *len)
{
    struct pending_list none = {.set = s};
    struct head head;
    tamis_error e = set_body(s, &none, bits_only, &head, body);
    if (e != TAMIS_OK)
        return e;
    *len = head_body_len(&head);
    for (uint32_t i = 0; i < head.n; i++) {
        uint8_t *at = *body + HEAD_LEN + RECORD_LEN * (size_t)i;
        struct part_record r = head_record(&head, i);
        struct cursor c = cursor_write(at, RECORD_LEN);
        r.escapes = 0;
        record_fields(&c, &r);
    }
    return TAMIS_OK;
}

const uint8_t *patch_record(const uint8_t *body, uint32_t i)
{
    static const uint8_t none[RECORD_LEN];
    return i == 0 ? none : body + HEAD_LEN + RECORD_LEN * (size_t)(i - 1);
}

/* How many vectors and parts of lines a body has. */
static struct head counts_of(const uint8_t *body)
{
    struct head head = {.kind = KIND_FILTER};
    struct cursor c = cursor_read(body, HEAD_LEN);
    head_fields(&c, &head);
    return head;
}

struct patch_parts patch_parts(const uint8_t *body, const struct lines *lines)
{
    struct head head = counts_of(body);
    return (struct patch_parts){.lines = lines,
                                .records = body + HEAD_LEN + RECORD_LEN * (size_t)head.n,
                                .n = head.line_parts};
}

const uint8_t *patch_part_record(const struct patch_parts *parts, uint32_t i)
{
    static const uint8_t none[PART_LEN];
    return i == 0 ? none : parts->records + LINES_LEN + PART_LEN * (size_t)(i - 1);
}

const uint8_t *patch_lines_record(const struct patch_parts *parts)
{
    static const uint8_t none[LINES_LEN];
    return parts->n ? parts->records : none;
}

uint32_t patch_part_at(struct patch_parts *parts, uint32_t position)
{
    while (parts->i < parts->n && parts->position < position) {
        struct part_facts facts;
        struct cursor c = cursor_read(patch_part_record(parts, parts->i + 1), PART_LEN);
        part_fields(&c, &facts);
        parts->position += SHELF_LEN >> facts.depth;
        parts->i++;
    }
    return parts->i < parts->n && parts->position == position ? parts->i + 1 : 0;
}

/* ---- the front ------------------------------------------------------------------------------- */

tamis_error patch_open(struct patch_front *front, const uint8_t *data, size_t len,
                       tamis_reason *reason)
{
    if (!patch_is(data, len))
        return len > sizeof patch_magic && memcmp(data, patch_magic, 5) == 0
                   ? fail(reason, TAMIS_EKIND, "this is a structure, not a patch")
                   : fail(reason, TAMIS_EFORMAT, "not a patch");
    if (len < PATCH_FRONT + PATCH_SUM)
        return fail_at(reason, TAMIS_EFORMAT, len, "cut short after %zu bytes", len);
    struct cursor c = cursor_read(data, PATCH_FRONT);
    c.at = sizeof patch_magic;
    front_fields(&c, front);
    if (front->version == 0)
        return fail_at(reason, TAMIS_EFORMAT, 8, "format version 0");
    if (front->version != FORMAT_VERSION)
        return fail_at(reason, TAMIS_EVERSION, 8,
                       "format version %u: this version of tamis reads version %d", front->version,
                       FORMAT_VERSION);
    if (hash_of(data, len - PATCH_SUM) != get_u64(data + len - PATCH_SUM))
        return fail_at(reason, TAMIS_ECHECKSUM, len - PATCH_SUM,
                       "the checksum of the patch does not match: damaged or cut short");
    if (front->kind != KIND_FILTER)
        return fail_at(reason, TAMIS_EKIND, 12, "not a patch of a filter");
    if (front->flags & ~PATCH_BITS)
        return fail_at(reason, TAMIS_EFORMAT, 16, "unknown flags, %#x", front->flags);
    return TAMIS_OK;
}

tamis_error patch_verify(const void *data, size_t len, tamis_reason *reason)
{
    struct patch_front front;
    return patch_open(&front, data, len, reason);
}

/* ---- diff ------------------------------------------------------------------------------------ */

struct diff {
    const struct set *older, *newer; /* older: NULL if changes are recorded */
    const void *owner;               /* of those changes */
    const struct lines *old_lines;   /* or NULL */
    uint8_t *old_body, *new_body;
    uint64_t old_len, new_len;
    uint32_t n;      /* vectors of newer */
    uint32_t *bases; /* for each of them the old vector plus 1, or 0 */
    bool counted;
    struct patch_models models;
    struct delta_out out;
};

/* The same for vectors whose changes are recorded. */
static uint32_t watched_base(const struct diff *d, const struct layer *layer)
{
    const struct changes *c = layer->part[0].vector->changes;
    uint64_t n = counts_of(d->old_body).n;
    if (!c || c->lost || c->owner != d->owner || c->set + c->cleared > c->positions / 2)
        return 0;
    for (uint32_t i = 1; i <= n; i++)
        if (get_u32(patch_record(d->old_body, i)) == layer->id)
            return i;
    return 0;
}

/* The old vector, plus 1, against which the vector of a layer is coded: the one with the same
   id, if it is closer than an empty one. */
static uint32_t base_number(const struct diff *d, const struct layer *layer)
{
    if (!d->older)
        return watched_base(d, layer);
    const struct layers *layers = set_layers(d->older);
    for (uint32_t i = 0; i < layers_count(layers); i++) {
        const struct vector *old = layers->v[i], *v = layer->part[0].vector;
        if (layers->l[i]->id == layer->id &&
            shape_equal(old, v)) /* half the bits differ: no longer the same vector */
            return vector_distance(v, old) <= vector_positions_total(v) / 2 ? i + 1 : 0;
    }
    return 0;
}

static void out_changes(struct diff *d, uint32_t i)
{
    const struct vector *v = set_layers(d->newer)->v[i];
    struct vector dirty = {.stride = 1};
    struct step step = {.v = v, .counted = d->counted};
    if (d->bases[i] && d->older) {
        step.base = set_layers(d->older)->v[d->bases[i] - 1];
    } else if (d->bases[i]) { /* the difference, as if against nothing */
        dirty.bits = v->bits;
        dirty.bits.words = v->changes->dirty.data;
        step.v = &dirty;
        step.touched = v->changes->touched;
    }
    out_vector(&d->out, &d->models.vectors, &step);
}

/* For lines: records of the parts against those that began at the same positions; then the parts. */
static void out_lines(struct diff *d, bool records)
{
    struct patch_parts old = patch_parts(d->old_body, d->old_lines);
    struct patch_parts now = patch_parts(d->new_body, set_lines(d->newer));
    if (now.n && records)
        out_image(&d->out, &d->models.record, patch_lines_record(&old), patch_lines_record(&now),
                  LINES_LEN);
    for (uint32_t i = 0, position = 0; i < now.n; i++) {
        const struct body *b = lines_part(now.lines, i);
        uint32_t base = patch_part_at(&old, position);
        if (records)
            out_image(&d->out, &d->models.record, patch_part_record(&old, base),
                      patch_part_record(&now, i + 1), PART_LEN);
        else
            out_part(&d->out, &d->models.lines, base ? lines_part(old.lines, base - 1) : NULL, b);
        position += SHELF_LEN >> part_facts(b).depth;
    }
}

static void out_vectors(struct diff *d)
{
    const struct layers *newer = set_layers(d->newer);
    uint32_t expected = 1;
    for (uint32_t i = 0; i < d->n; i++) {
        uint32_t base = d->bases[i] = base_number(d, newer->l[i]);
        out_bit(&d->out, &d->models.in_turn, base == expected);
        if (base != expected)
            out_number(&d->out, &d->models.base, base);
        expected = base ? base + 1 : expected;
        out_image(&d->out, &d->models.record, patch_record(d->old_body, base),
                  patch_record(d->new_body, i + 1), RECORD_LEN);
    }
    out_lines(d, true);
    for (uint32_t i = 0; i < d->n; i++)
        out_changes(d, i);
    out_lines(d, false);
}

static bool same_candidates(const struct diff *d, const struct pending *x, const struct pending *y)
{
    const struct layers *newer = set_layers(d->newer);
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->n; i++) {
        bool here = pending_has(x, newer->l[i]->id);
        if (here != pending_has(y, newer->l[i]->id))
            return false;
        n += here;
    }
    return n > 0;
}

static bool same_pending(const struct diff *d, const struct pending *x, const struct pending *y)
{
    return x->digest.a == y->digest.a && x->digest.b == y->digest.b && x->hides == y->hides &&
           atomic_load(&x->copies) == atomic_load(&y->copies) && same_candidates(d, x, y);
}

static bool pending_before(const struct pending *x, const struct pending *y)
{
    return x->digest.a != y->digest.a ? x->digest.a < y->digest.a : x->digest.b < y->digest.b;
}

static void out_entry(struct diff *d, const struct pending *p)
{
    const struct layers *newer = set_layers(d->newer);
    struct number_models *numbers = &d->models.numbers;
    uint64_t n = 0, next = 0;
    for (uint32_t i = 0; i < d->n; i++)
        n += pending_has(p, newer->l[i]->id);
    out_direct(&d->out, p->digest.a, 64);
    out_direct(&d->out, p->digest.b, 64);
    out_number(&d->out, numbers, atomic_load(&p->copies) - 1);
    out_direct(&d->out, p->hides, 1);
    out_number(&d->out, numbers, n - 1);
    for (uint32_t i = 0; i < d->n; i++)
        if (pending_has(p, newer->l[i]->id)) {
            out_number(&d->out, numbers, i - next);
            next = i + UINT64_C(1);
        }
}

/* For every old entry, whether it stays unchanged; then the number of other entries, and the entries. */
static void out_pending(struct diff *d, const struct pending **before, uint64_t n_before,
                        const struct pending **after, uint64_t n_after)
{
    uint64_t j = 0, kept = 0;
    for (uint64_t i = 0; i < n_before; i++) {
        while (j < n_after && pending_before(after[j], before[i]))
            j++;
        bool keep = j < n_after && same_pending(d, before[i], after[j]);
        out_bit(&d->out, &d->models.kept, keep);
        kept += keep;
    }
    out_number(&d->out, &d->models.numbers, n_after - kept);
    j = 0;
    for (uint64_t i = 0; i < n_after; i++) {
        while (j < n_before && pending_before(before[j], after[i]))
            j++;
        if (j == n_before || !same_pending(d, before[j], after[i]))
            out_entry(d, after[i]);
    }
}

static tamis_error out_removals(struct diff *d)
{
    struct pending_list before, after;
    tamis_error e = pending_list_make(&before, d->older);
    if (e != TAMIS_OK)
        return e;
    e = pending_list_make(&after, d->newer);
    if (e == TAMIS_OK)
        out_pending(d, before.list, before.n, after.list, after.n);
    pending_list_free(&before);
    pending_list_free(&after);
    return e;
}

static tamis_error write_patch(struct diff *d, struct patch_front *front, tamis_write write,
                               void *context)
{
    uint8_t bytes[PATCH_FRONT];
    memcpy(bytes, patch_magic, sizeof patch_magic);
    struct cursor c = cursor_write(bytes, sizeof bytes);
    c.at = sizeof patch_magic;
    front_fields(&c, front);
    models_reset((void *)&d->models, PATCH_MODELS);
    out_begin(&d->out, write, context);
    out_bytes(&d->out, bytes, sizeof bytes);
    out_image(&d->out, &d->models.head, d->old_body, d->new_body, HEAD_LEN);
    out_vectors(d);
    tamis_error e = d->counted ? out_removals(d) : TAMIS_OK;
    if (e != TAMIS_OK)
        return e;
    return out_end(&d->out) ? TAMIS_OK : TAMIS_EIO;
}

static tamis_error may_diff(const struct set *older, const struct set *newer, bool bits_only,
                            tamis_reason *reason)
{
    if (!family_equal(set_family(older), set_family(newer)))
        return fail(reason, TAMIS_EFAMILY, "the two versions are of different families");
    if (!family_standard(set_family(older)))
        return fail(reason, TAMIS_EKIND,
                    "filters with a caller's probe function cannot be patched");
    if (set_opt(older)->growth != set_opt(newer)->growth ||
        set_opt(older)->layout != set_opt(newer)->layout ||
        set_opt(older)->deletable != set_opt(newer)->deletable)
        return fail(reason, TAMIS_EKIND, "these are not two versions of one filter");
    if (!bits_only && !(set_counted(older) && set_counted(newer)))
        return fail(
            reason, TAMIS_EREADONLY,
            "the counters of an opened file are not in memory: load it, or patch bits only");
    return TAMIS_OK;
}

static tamis_error write_diff(struct diff *d, struct patch_front *front, tamis_write write,
                              void *context)
{
    front->version = FORMAT_VERSION;
    front->kind = KIND_FILTER;
    front->family = family_tag(set_family(d->newer));
    d->n = layers_count(set_layers(d->newer));
    d->bases = mem_new(set_allocator(d->newer), d->n, sizeof *d->bases);
    tamis_error e = d->bases ? TAMIS_OK : TAMIS_ENOMEM;
    if (e == TAMIS_OK)
        e = patch_body(d->newer, front->flags & PATCH_BITS, &d->new_body, &d->new_len);
    if (e == TAMIS_OK)
        e = write_patch(d, front, write, context);
    mem_free(set_allocator(d->newer), d->new_body, 1, d->new_len);
    mem_free(set_allocator(d->newer), d->bases, d->n, sizeof *d->bases);
    return e;
}

static tamis_error diff(struct diff *d, bool bits_only, tamis_write write, void *context)
{
    struct patch_front front = {.flags = bits_only ? PATCH_BITS : 0};
    d->counted = set_opt(d->newer)->deletable && !bits_only;
    tamis_error e = set_fingerprint(d->older, bits_only, front.older);
    if (e == TAMIS_OK)
        e = set_fingerprint(d->newer, bits_only, front.newer);
    if (e == TAMIS_OK)
        e = patch_body(d->older, bits_only, &d->old_body, &d->old_len);
    return e == TAMIS_OK ? write_diff(d, &front, write, context) : e;
}

tamis_error patch_changes(const struct set *s, const struct patch_base *base,
                          const uint8_t print[16], tamis_write write, void *context)
{
    struct patch_front front = {.flags = PATCH_BITS};
    struct diff *d = mem_new0(set_allocator(s), 1, sizeof *d);
    if (!d)
        return TAMIS_ENOMEM;
    d->newer = s;
    d->owner = base->owner;
    d->old_lines = base->lines;
    d->old_body = base->body, d->old_len = base->len;
    memcpy(front.older, base->print, sizeof front.older);
    memcpy(front.newer, print, sizeof front.newer);
    tamis_error e = write_diff(d, &front, write, context);
    mem_free(set_allocator(s), d, 1, sizeof *d);
    return e;
}

tamis_error tamis_filter_diff(const tamis_filter *from, const tamis_filter *to, unsigned flags,
                              tamis_write write, void *context, tamis_reason *reason)
{
    const struct set *older = &from->set, *newer = &to->set;
    bool bits_only = (flags & TAMIS_SAVE_BITS_ONLY) || older->bits_only || newer->bits_only;
    if (flags & ~(unsigned)(TAMIS_SAVE_NO_KEY | TAMIS_SAVE_BITS_ONLY))
        return fail(reason, TAMIS_EARG, "unknown flags");
    tamis_error e = may_diff(older, newer, bits_only, reason);
    if (e != TAMIS_OK)
        return e;
    struct diff *d = mem_new0(set_allocator(newer), 1, sizeof *d);
    if (!d)
        return fail(reason, TAMIS_ENOMEM, "no memory for a patch");
    d->older = older, d->newer = newer;
    d->old_lines = set_lines(older);
    e = diff(d, bits_only, write, context);
    mem_free(set_allocator(older), d->old_body, 1, d->old_len);
    mem_free(set_allocator(newer), d, 1, sizeof *d);
    return e == TAMIS_OK ? e : fail(reason, e, "no patch was made: %s", tamis_error_text(e));
}
