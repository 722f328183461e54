/* The container that all kinds share; see format.h. */
#include "format.h"

#include "base/err.h"
#include "os/file.h"

const uint8_t patch_magic[8] = {'T', 'A', 'M', 'I', 'S', 'P', 'A', 'T'};
const uint8_t message_magic[4] = {'T', 'M', 'S', 'G'};
static const uint8_t magic[8] = {'T', 'A', 'M', 'I', 'S', 0, '\r', '\n'};

static const char *const kind_names[] = {NULL, "a filter", "a set of records", NULL, "a catalog"};

#define SECTION_LEN  24
#define FLAG_BITS    1u
#define CHECKSUM_LEN 8

struct prefix {
    uint32_t version, kind, sections, flags;
    uint64_t total, header, body;
};

/* Both blocks before the body. */
static void prefix_fields(struct cursor *c, struct prefix *p)
{
    field_u32(c, &p->version);
    field_u32(c, &p->kind);
    field_u64(c, &p->total);
    field_u64(c, &p->header);
    field_u64(c, &p->body);
    field_u32(c, &p->sections);
    field_u32(c, &p->flags);
    field_zero(c, 16);
}

static struct cursor read_prefix(const void *data, struct prefix *p)
{
    struct cursor c = cursor_read(data, PREFIX_LEN);
    c.at = sizeof magic;
    prefix_fields(&c, p);
    return c;
}

static void family_fields(struct cursor *c, uint32_t *hash, uint32_t *has_key, uint8_t *key,
                          uint8_t *check)
{
    field_u32(c, hash);
    field_u32(c, has_key);
    field_bytes(c, key, TAMIS_KEY_LEN);
    field_bytes(c, check, TAMIS_KEY_LEN);
    field_zero(c, 24);
}

static void section_fields(struct cursor *c, struct section *s)
{
    field_u32(c, &s->type);
    field_u32(c, &s->owner);
    field_u64(c, &s->offset);
    field_u64(c, &s->len);
}

/* The header of a catalog is padded to whole pages. */
static uint64_t header_len(uint32_t kind, uint64_t body_len, uint64_t sections)
{
    return round_up(BODY_AT + body_len + SECTION_LEN * sections + CHECKSUM_LEN,
                    kind == KIND_CATALOG ? CATALOG_PAGE : SECTION_ALIGN);
}

uint64_t sums_len(uint64_t pages)
{
    return round_up(sizeof(uint64_t) * pages, SECTION_ALIGN);
}

/* ---- reading --------------------------------------------------------------------------------- */

static tamis_error check_magic(const uint8_t *data, size_t len, tamis_reason *reason)
{
    if (len == 0)
        return fail(reason, TAMIS_EFORMAT, "empty");
    if (patch_is(data, len))
        return fail(reason, TAMIS_EKIND, "this is a patch: apply it to a filter");
    if (tamis_kind_of(data, len) == TAMIS_KIND_MESSAGE)
        return fail(reason, TAMIS_EKIND, "this is a message of a replica");
    size_t seen = len < sizeof magic ? len : sizeof magic;
    if (memcmp(data, magic, seen) != 0)
        return fail(reason, TAMIS_EFORMAT, "not a tamis structure");
    if (len < 12)
        return fail_at(reason, TAMIS_EFORMAT, len, "cut short after %zu bytes", len);
    uint32_t version = get_u32(data + 8);
    if (version == 0)
        return fail_at(reason, TAMIS_EFORMAT, 8, "format version 0");
    if (version != FORMAT_VERSION)
        return fail_at(reason, TAMIS_EVERSION, 8,
                       "format version %u: this version of tamis reads version %d", version,
                       FORMAT_VERSION);
    if (len < BODY_AT + CHECKSUM_LEN)
        return fail_at(reason, TAMIS_EFORMAT, len, "cut short after %zu bytes", len);
    return TAMIS_OK;
}

/* Compares all lengths with the available bytes and with each other; nothing can overflow. */
static tamis_error check_lengths(const struct prefix *p, uint64_t len, tamis_reason *reason)
{
    if (p->total != len)
        return fail_at(reason, TAMIS_EFORMAT, 16,
                       "%s: the structure has %llu bytes, but there are %llu here",
                       p->total > len ? "cut short" : "too long", (unsigned long long)p->total,
                       (unsigned long long)len);
    if (p->header > len || p->body > len || p->sections > len / SECTION_LEN)
        return fail_at(reason, TAMIS_EFORMAT, 24, "the header is longer than the structure");
    if (p->header != header_len(p->kind, p->body, p->sections) || len % SECTION_ALIGN)
        return fail_at(reason, TAMIS_EFORMAT, 24, "the lengths in the header do not agree");
    return TAMIS_OK;
}

tamis_error container_family(struct container *c, tamis_reason *reason)
{
    uint32_t hash, has_key;
    WIPED_KEY key[TAMIS_KEY_LEN];
    struct cursor at = cursor_read(c->data, BODY_AT);
    at.at = PREFIX_LEN;
    family_fields(&at, &hash, &has_key, key, c->check);
    if (hash < TAMIS_XXH3 || hash > TAMIS_H3)
        cursor_refuse(&at, PREFIX_LEN, "an unknown hash");
    if (has_key > 1 || (!has_key && !bytes_are_zero(key, TAMIS_KEY_LEN)))
        cursor_refuse(&at, PREFIX_LEN + 4, "an unexpected key");
    c->hash = (tamis_hash)hash;
    c->has_key = has_key;
    return at.wrong ? fail_at(reason, TAMIS_EFORMAT, at.wrong_at, "%s", at.wrong) : TAMIS_OK;
}

bool patch_is(const void *data, size_t len)
{
    return len >= sizeof patch_magic && memcmp(data, patch_magic, sizeof patch_magic) == 0;
}

unsigned family_beside(const char *path, bool key_inside)
{
    uint8_t front[FAMILY_END];
    bool had_key = file_front(path, front, sizeof front) == sizeof front &&
                   memcmp(front, magic, sizeof magic) == 0 && get_u32(front + PREFIX_LEN + 4) == 1;
    explicit_bzero(front, sizeof front);
    return (key_inside ? BESIDE_PRIVATE : 0) | (had_key == key_inside ? BESIDE_KEEP : 0);
}

bool prefix_lengths(const void *data, size_t len, uint64_t *total, uint64_t *header)
{
    struct prefix p;
    if (len < PREFIX_LEN || memcmp(data, magic, sizeof magic) != 0)
        return false;
    read_prefix(data, &p);
    *total = p.total;
    *header = p.header;
    return true;
}

tamis_error prefix_check(const void *data, uint64_t len, tamis_reason *reason)
{
    struct prefix p;
    tamis_error e = check_magic(data, (size_t)len, reason);
    if (e != TAMIS_OK)
        return e;
    read_prefix(data, &p);
    return check_lengths(&p, len, reason);
}

tamis_error container_open(struct container *c, const void *data, size_t len, enum kind want,
                           tamis_reason *reason)
{
    tamis_error e = prefix_check(data, len, reason);
    if (e != TAMIS_OK)
        return e;
    struct prefix p;
    struct cursor at = read_prefix(data, &p);
    *c = (struct container){.data = data,
                            .len = len,
                            .payload = p.header,
                            .body_len = p.body,
                            .sections = p.sections,
                            .bits_only = p.flags & FLAG_BITS};
    if (hash_of(data, p.header - CHECKSUM_LEN) != get_u64(c->data + p.header - CHECKSUM_LEN))
        return fail_at(reason, TAMIS_ECHECKSUM, p.header - CHECKSUM_LEN,
                       "the checksum of the header does not match");
    if (at.wrong)
        return fail_at(reason, TAMIS_EFORMAT, at.wrong_at, "%s", at.wrong);
    if (p.kind >= KIND_END || !kind_names[p.kind])
        return fail_at(reason, TAMIS_EFORMAT, 12, "an unknown kind, %u", p.kind);
    if (p.kind != want)
        return fail_at(reason, TAMIS_EKIND, 12, "this is %s, not %s", kind_names[p.kind],
                       kind_names[want]);
    if (p.flags & ~FLAG_BITS)
        return fail_at(reason, TAMIS_EFORMAT, 44, "unknown flags, %#x", p.flags);
    uint64_t used = BODY_AT + p.body + SECTION_LEN * (uint64_t)p.sections;
    if (!bytes_are_zero(c->data + used, p.header - CHECKSUM_LEN - used))
        return fail_at(reason, TAMIS_EFORMAT, used, "the end of the header is not zero");
    return container_family(c, reason);
}

tamis_kind tamis_kind_of(const void *data, size_t len)
{
    if (patch_is(data, len))
        return TAMIS_KIND_PATCH;
    if (len > sizeof message_magic + 4 && memcmp(data, message_magic, sizeof message_magic) == 0)
        return TAMIS_KIND_MESSAGE;
    bool ours = len >= sizeof magic + 8 && memcmp(data, magic, sizeof magic) == 0;
    uint32_t kind = ours ? get_u32((const uint8_t *)data + 12) : 0;
    return kind < KIND_END && kind_names[kind] ? (tamis_kind)kind : TAMIS_KIND_NONE;
}

struct section container_section(const struct container *c, uint32_t i)
{
    struct section s = {0};
    uint64_t from = BODY_AT + c->body_len + SECTION_LEN * (uint64_t)i;
    struct cursor at = cursor_read(c->data + from, SECTION_LEN);
    section_fields(&at, &s);
    return s;
}

/* Sections are sorted by type and owner. */
static uint64_t section_order(struct section s)
{
    return (uint64_t)s.type << 32 | s.owner;
}

const uint8_t *container_find(const struct container *c, uint32_t type, uint32_t owner,
                              uint64_t *len)
{
    const struct section wanted = {.type = type, .owner = owner};
    uint32_t at =
        SEARCH(i, c->sections, section_order(container_section(c, i)) < section_order(wanted));
    struct section s = at < c->sections ? container_section(c, at) : (struct section){0};
    bool there = section_order(s) == section_order(wanted);
    *len = there ? s.len : 0;
    return there ? c->data + s.offset : NULL;
}

bool section_next(struct section_walk *w, struct section *out)
{
    for (w->type = w->type ? w->type : 1; w->type < SECTION_END; w->type++, w->owner = 0)
        while (w->owner < w->owners) {
            uint32_t owner = w->owner++;
            uint64_t len;
            if (!w->length(w->of, w->type, owner, &len))
                continue;
            *out = (struct section){w->type, owner, w->offset, len};
            w->offset += round_up(len, SECTION_ALIGN);
            w->page = w->pages;
            w->pages += (len + PAGE - 1) / PAGE;
            return true;
        }
    return false;
}

/* Lengths stay below 2^61, but 2^20 vectors of 2^40 bits with counters and escapes do not: so
   the sum is checked, and no section may exceed the bytes. */
tamis_error container_check_sections(struct container *c, struct section_walk walk,
                                     tamis_reason *reason)
{
    struct section want;
    uint32_t i = 0;
    walk.offset = c->payload;
    for (; section_next(&walk, &want); i++) {
        struct section have = i < c->sections ? container_section(c, i) : (struct section){0};
        if (have.type != want.type || have.owner != want.owner || have.offset != want.offset ||
            have.len != want.len || want.len > c->len || walk.offset > c->len)
            return fail_at(reason, TAMIS_EFORMAT, BODY_AT + c->body_len + SECTION_LEN * (uint64_t)i,
                           "section %u does not match the vectors", i);
    }
    if (i != c->sections || walk.offset + sums_len(walk.pages) != c->len)
        return fail_at(reason, TAMIS_EFORMAT, 40, "the sections do not match the vectors");
    c->sums = walk.offset;
    c->pages = walk.pages;
    return TAMIS_OK;
}

tamis_error page_check(const struct section *s, uint64_t i, uint64_t sum, const uint8_t *sums,
                       tamis_reason *reason)
{
    uint64_t start = s->offset + i * PAGE, end = min_u64(start + PAGE, s->offset + s->len);
    if (sum == get_u64(sums + sizeof(uint64_t) * i))
        return TAMIS_OK;
    return fail_at(reason, TAMIS_ECHECKSUM, start,
                   "the checksum of bytes %llu to %llu does not match", (unsigned long long)start,
                   (unsigned long long)(end - 1));
}

tamis_error gap_check(const uint8_t *gap, uint64_t len, uint64_t at, tamis_reason *reason)
{
    return bytes_are_zero(gap, len)
               ? TAMIS_OK
               : fail_at(reason, TAMIS_EFORMAT, at, "the padding of a section is not zero");
}

tamis_error container_check_gaps(const struct container *c, tamis_reason *reason)
{
    tamis_error e = TAMIS_OK;
    for (uint32_t i = 0; i < c->sections && e == TAMIS_OK; i++) {
        struct section s = container_section(c, i);
        uint64_t end = s.offset + s.len;
        e = gap_check(c->data + end, round_up(end, SECTION_ALIGN) - end, end, reason);
    }
    return e;
}

const tamis_allocator *open_allocator(const tamis_open_options *options)
{
    return options && options->allocator ? options->allocator : &mem_system;
}

/* Is this the key from which the check was made? */
static bool key_fits(const struct container *c, const uint8_t *key)
{
    uint8_t check[TAMIS_KEY_LEN];
    key_check(key, c->hash, check);
    return memcmp(check, c->check, TAMIS_KEY_LEN) == 0;
}

tamis_error container_key(const struct container *c, const uint8_t *given, const uint8_t **key,
                          tamis_reason *reason)
{
    const uint8_t *own = c->data + KEY_AT;
    if (!c->has_key && !given)
        return fail_at(reason, TAMIS_EKEY, PREFIX_LEN + 4,
                       "saved without its family key: queries need the key");
    if (c->has_key && !key_fits(c, own))
        return fail_at(reason, TAMIS_EFORMAT, PREFIX_LEN + 24,
                       "the family key does not match its check");
    if (given && !key_fits(c, given))
        return fail_at(reason, TAMIS_EKEY, PREFIX_LEN + 24,
                       "the given family key is not the key of this structure");
    *key = given ? given : own;
    return TAMIS_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

uint64_t outline_header_len(const struct outline *o)
{
    return header_len(o->kind, o->body_len, o->sections);
}

void outline_count(struct outline *o, struct section_walk walk)
{
    struct section s;
    for (o->sections = 0; section_next(&walk, &s);)
        o->sections++;
    o->payload_len = walk.offset;
    o->pages = walk.pages;
}

/* Returns where the sections go. */
static struct cursor write_front(const struct outline *o, uint8_t *header, uint64_t len)
{
    struct prefix p = {.version = FORMAT_VERSION,
                       .kind = o->kind,
                       .sections = o->sections,
                       .flags = o->bits_only ? FLAG_BITS : 0,
                       .total = len + o->payload_len + sums_len(o->pages),
                       .header = len,
                       .body = o->body_len};
    uint32_t hash = o->family->hash, has_key = !o->no_key;
    WIPED_KEY key[TAMIS_KEY_LEN] = {0};
    uint8_t check[TAMIS_KEY_LEN];
    if (has_key)
        memcpy(key, o->family->secrets->key, TAMIS_KEY_LEN);
    family_check(o->family, check);
    memcpy(header, magic, sizeof magic);
    struct cursor at = cursor_write(header, len);
    at.at = sizeof magic;
    prefix_fields(&at, &p);
    family_fields(&at, &hash, &has_key, key, check);
    memcpy(header + BODY_AT, o->body, o->body_len);
    at.at = BODY_AT + o->body_len;
    return at;
}

static void header_seal(uint8_t *header, uint64_t len)
{
    put_u64(header + len - CHECKSUM_LEN, hash_of(header, len - CHECKSUM_LEN));
}

void outline_header(const struct outline *o, const struct section *sections, uint8_t *header)
{
    uint64_t len = outline_header_len(o);
    struct cursor at = write_front(o, header, len);
    for (uint32_t i = 0; i < o->sections; i++) {
        struct section s = sections[i];
        section_fields(&at, &s);
    }
    header_seal(header, len);
}

void outline_front(const struct outline *o, struct section_walk walk, uint8_t *header)
{
    uint64_t len = outline_header_len(o);
    struct section s;
    struct cursor at = write_front(o, header, len);
    for (walk.offset = len; section_next(&walk, &s);)
        section_fields(&at, &s);
    header_seal(header, len);
}

tamis_error container_write(const struct container *c, bool no_key, const tamis_allocator *a,
                            tamis_write write, void *context)
{
    uint8_t *header = mem_new(a, 1, c->payload);
    if (!header)
        return TAMIS_ENOMEM;
    memcpy(header, c->data, c->payload);
    if (no_key) {
        memset(header + PREFIX_LEN + 4, 0, 4 + TAMIS_KEY_LEN);
        header_seal(header, c->payload);
    }
    bool failed = write(context, header, c->payload) != 0 ||
                  write(context, c->data + c->payload, c->len - c->payload) != 0;
    mem_free_secret(a, header, 1, c->payload);
    return failed ? TAMIS_EIO : TAMIS_OK;
}
