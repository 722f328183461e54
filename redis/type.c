/*
 * The data type "tamis-set". What the server saves of a value:
 *
 *   unsigned   kind: 1 filter, 2 records, 3 the first bytes of a value that is being loaded
 *              + 16 if it is published: stream, owner and seven numbers follow
 *              + 32 if it is published with its key
 *              + 64 if it belongs to the family of the server that saves it
 *   string     only of a value that is being loaded: the family key for bytes without one
 *   unsigned   the number of bytes of the complete value
 *   strings    the bytes (docs/format.md) in pieces; the last one is empty
 *
 * Saving in pieces needs no memory for the whole. Loading allocates memory for the bytes that have arrived, never for
 * what a length field states, and the library validates every byte.
 */
#include "foreign.h"

#include <stdio.h>
#include <string.h>

enum { PUBLISHED = 16, TELLS = 32, OWN = 64, KEPT = 128, FLAGS = PUBLISHED | TELLS | OWN | KEPT };

RedisModuleType *type, *foreign_type, *cuckoo_type;

/* ---- saving ---------------------------------------------------------------------------------- */

/* Cuts the bytes of a value into pieces. */
struct cutter {
    struct buffer piece;
    void (*put)(void *context, const char *data, size_t len);
    void *context;
};

static int cut(void *context, const void *data, size_t len)
{
    struct cutter *c = context;
    const char *from = data;
    while (len) {
        size_t room = PIECE - c->piece.len, some = len < room ? len : room;
        bool whole = some == PIECE;
        if (whole)
            c->put(c->context, from, some);
        else if (!buffer_add(&c->piece, from, some))
            return 1;
        if (c->piece.len == PIECE) {
            c->put(c->context, c->piece.data, c->piece.len);
            c->piece.len = 0;
        }
        from += some;
        len -= some;
    }
    return 0;
}

static void cut_end(struct cutter *c)
{
    if (c->piece.len)
        c->put(c->context, c->piece.data, c->piece.len);
    buffer_free(&c->piece);
}

static void save_piece(void *io, const char *data, size_t len)
{
    rm.SaveStringBuffer(io, data, len);
}

static void save_bytes(RedisModuleIO *io, const struct value *v)
{
    struct cutter c = {.put = save_piece, .context = io};
    value_insist(true);
    rm.SaveUnsigned(io, value_encoded_size(v));
    if (value_encode(v, 0, cut, &c) != TAMIS_OK) /* such a value cannot be loaded again */
        rm.LogIOError(io, "warning", "tamis: a value could not be saved");
    value_insist(false);
    cut_end(&c);
    rm.SaveStringBuffer(io, "", 0);
}

/* A small filter is saved as its set without the keys that lines would have, and these in the bytes of small.c. */
static struct value small_shown(const struct value *v, const char **kept, size_t *len)
{
    *len = small_kept(v->small);
    char *bytes = rm.Alloc(*len + 1);
    small_keep(v->small, (uint8_t *)bytes);
    *kept = bytes;
    return (struct value){.kind = v->kind, .set = small_start(v->small)};
}

static void small_hidden(struct value *shown, const char *kept)
{
    set_free(shown->set);
    rm.Free((void *)(uintptr_t)kept);
}

static void save_small(RedisModuleIO *io, const struct value *v)
{
    const char *kept;
    size_t len;
    value_insist(true);
    struct value shown = small_shown(v, &kept, &len);
    save_bytes(io, &shown);
    rm.SaveStringBuffer(io, kept, len);
    small_hidden(&shown, kept);
}

static void rdb_save(RedisModuleIO *io, void *value)
{
    const struct value *v = value;
    WIPED_KEY key[TAMIS_KEY_LEN] = {0};
    bool own = value_key(v, key) && secret_is(key), tells = false;
    bool small = v->small && small_keeps(v->small);
    if (v->publication)
        tells = v->publication->with_key;
    rm.SaveUnsigned(io, (uint64_t)v->kind + (v->publication ? PUBLISHED : 0) + (tells ? TELLS : 0) +
                            (own ? OWN : 0) + (small ? KEPT : 0));
    if (v->publication)
        publication_save(io, v->publication);
    if (v->kind == VALUE_PARTIAL)
        rm.SaveStringBuffer(io, (const char *)key, sizeof key);
    if (small)
        save_small(io, v);
    else
        save_bytes(io, v);
}

static void foreign_rdb_save(RedisModuleIO *io, void *value)
{
    const struct value *v = value;
    copy_wait(v, true);
    foreign_save(io, v->foreign, v->set != NULL);
    if (v->set)
        save_bytes(io, v);
}

/* ---- loading --------------------------------------------------------------------------------- */

/* Does the value come from a file of the server or from its master, and not by RESTORE? */
static bool loads(RedisModuleIO *io)
{
    int flags = rm.GetContextFlags(rm.GetContextFromIO(io));
    return flags & (RM_FLAG_LOADING | RM_FLAG_ASYNC_LOADING | RM_FLAG_SLAVE);
}

/* Creates the value that the pieces go into, from the header in the first one. RESTORE can bring anything, so
   its values are limited to tamis.value-limit. */
static struct value *load_into(const uint8_t *key, uint64_t total, const char *piece, size_t len,
                               bool trusted, tamis_reason *reason)
{
    tamis_kind of = tamis_kind_of(piece, len);
    if (of != TAMIS_KIND_FILTER && of != TAMIS_KIND_RECORDS)
        return NULL;
    if (!trusted && total > value_limit_encoded()) {
        snprintf(reason->text, sizeof reason->text, "%llu bytes are more than tamis.value-limit",
                 (unsigned long long)total);
        return NULL;
    }
    return value_partial(total, trusted || !key, key);
}

static struct value *load_pieces(RedisModuleIO *io, const uint8_t *key, uint64_t total,
                                 tamis_reason *reason)
{
    struct value *v = NULL;
    bool trusted = loads(io);
    for (;;) {
        size_t len = 0;
        char *piece = rm.LoadStringBuffer(io, &len);
        bool ok = !rm.IsIOError(io) && piece, last = len == 0, first = !v;
        if (ok && first)
            v = load_into(key, total, piece, len, trusted, reason);
        ok = ok && v && len <= total - partial_have(v) &&
             partial_add(v, piece, len, trusted, reason) == TAMIS_OK;
        if (piece && first) /* it contains the family key */
            explicit_bzero(piece, len);
        rm.Free(piece);
        if (ok && last)
            return v;
        if (!ok) {
            value_free(v);
            return NULL;
        }
    }
}

/* A complete value has its key in its bytes; one that is still being loaded may need one for the rest. */
static bool load_key(RedisModuleIO *io, uint8_t key[TAMIS_KEY_LEN])
{
    size_t len = 0;
    char *bytes = rm.LoadStringBuffer(io, &len);
    bool ok = !rm.IsIOError(io) && bytes && len == TAMIS_KEY_LEN;
    if (ok)
        memcpy(key, bytes, len);
    if (bytes)
        explicit_bzero(bytes, len);
    rm.Free(bytes);
    return ok;
}

static struct value *load_rest(RedisModuleIO *io, uint64_t kind, tamis_reason *reason)
{
    WIPED_KEY key[TAMIS_KEY_LEN];
    struct value *v = NULL, *whole = NULL;
    bool partial = kind == VALUE_PARTIAL;
    if (partial && !load_key(io, key))
        return NULL;
    uint64_t total = rm.LoadUnsigned(io);
    if (!rm.IsIOError(io) && kind >= VALUE_FILTER && kind <= VALUE_PARTIAL)
        v = load_pieces(io, partial ? key : NULL, total, reason);
    if (v && !partial) {
        partial_end(v, &whole, loads(io), reason);
        value_free(v);
        v = whole;
    } else if (v && partial_have(v) == total) {
        value_free(v);
        v = NULL;
    }
    return v;
}

/* False if save_small() cannot have written it. */
static bool load_small(RedisModuleIO *io, struct value *v)
{
    size_t len = 0;
    char *kept = rm.LoadStringBuffer(io, &len);
    bool ok = !rm.IsIOError(io) && kept && v->small &&
              small_put_back(&v->small, (const uint8_t *)kept, len);
    rm.Free(kept);
    return ok;
}

static struct value *load_value(RedisModuleIO *io, tamis_reason *reason)
{
    WIPED_KEY key[TAMIS_KEY_LEN];
    uint64_t word = rm.LoadUnsigned(io), flags = word & FLAGS, kind = word & ~(uint64_t)FLAGS;
    bool published = flags & PUBLISHED;
    if (rm.IsIOError(io) || (published && kind != VALUE_FILTER) || (!published && flags & TELLS) ||
        (flags & KEPT && (published || kind != VALUE_FILTER)))
        return NULL;
    struct publication *publication = published ? publication_load(io) : NULL;
    if (rm.IsIOError(io) || (published && !publication))
        return NULL;
    struct value *v = load_rest(io, kind, reason);
    if (publication)
        publication->with_key = flags & TELLS;
    if (v && v->kind == VALUE_FILTER)
        v->publication = publication;
    else
        publication_free(publication);
    if (v)
        value_settle(v, flags & KEPT);
    if (v && flags & KEPT && !load_small(io, v)) {
        value_free(v);
        v = NULL;
    }
    if (v)
        value_recount(v);
    secret_offer(v && flags & OWN && loads(io) && value_key(v, key) ? key : NULL);
    return v;
}

/* Logs the name of the key: the server logs only the type. */
static void *cannot_load(RedisModuleIO *io, const char *what, const char *why)
{
    size_t len = 0;
    const RedisModuleString *name = rm.GetKeyNameFromIO(io);
    const char *text = name ? rm.StringPtrLen(name, &len) : "";
    rm.LogIOError(io, "warning", "tamis: '%.*s', %s, cannot be loaded: %s",
                  len < 100 ? (int)len : 100, text, what, why);
    return NULL;
}

static void *rdb_load(RedisModuleIO *io, int version)
{
    tamis_reason reason = {.text = "cut short"};
    if (version != 0)
        return cannot_load(io, "a value of tamis", "it was saved by a newer version");
    struct value *v = load_value(io, &reason);
    if (!v)
        return cannot_load(io, "a value of tamis", reason.text);
    const RedisModuleString *name = rm.GetKeyNameFromIO(io);
    if (v->publication && name)
        publish_register(rm.GetContextFromIO(io), rm.GetDbIdFromIO(io), name);
    return v;
}

static void *foreign_rdb_load(RedisModuleIO *io, int encoding)
{
    tamis_reason reason = {.text = "cut short"};
    const char *why;
    bool topped = false;
    struct value *top = NULL;
    struct foreign *f =
        foreign_load(io, encoding, loads(io) ? UINT64_MAX : value_limit(), &topped, &why);
    if (f && topped) {
        top = load_rest(io, VALUE_FILTER, &reason);
        why = reason.text;
    }
    if (!f || (topped &&
               (!top || top->kind != VALUE_FILTER || !top_stays(top->deletable, top->growth)))) {
        foreign_free(f);
        value_free(top);
        return cannot_load(io, "a filter of RedisBloom", why);
    }
    struct value *v = value_foreign(f, top ? top->set : NULL);
    if (top)
        top->set = NULL;
    value_free(top);
    return v;
}

static void cuckoo_rdb_save(RedisModuleIO *io, void *value)
{
    copy_wait(value, true);
    cuckoo_save(io, ((const struct value *)value)->foreign);
}

static void *cuckoo_rdb_load(RedisModuleIO *io, int encoding)
{
    const char *why;
    struct foreign *f = cuckoo_load(io, encoding, loads(io) ? UINT64_MAX : value_limit(), &why);
    return f ? value_foreign(f, NULL) : cannot_load(io, "a cuckoo filter of RedisBloom", why);
}

/* ---- append-only files ----------------------------------------------------------------------- */

struct emitting {
    RedisModuleIO *io;
    RedisModuleString *key;
    const char *word; /* FAMILY or KEY, before the key that goes with the first piece */
    char hex[KEY_HEX];
    uint64_t offset;
    const char *kept; /* of a small filter, whose bytes are one piece */
    size_t kept_len;
};

static void emit_piece(void *context, const char *data, size_t len)
{
    struct emitting *e = context;
    if (e->kept)
        rm.EmitAOF(e->io, "TAMIS.LOAD", "slbcccb", e->key, 0LL, data, len, e->word, e->hex, "KEPT",
                   e->kept, e->kept_len);
    else if (e->offset == 0)
        rm.EmitAOF(e->io, "TAMIS.LOAD", "slbcc", e->key, 0LL, data, len, e->word, e->hex);
    else
        rm.EmitAOF(e->io, "TAMIS.LOAD", "slb", e->key, (long long)e->offset, data, len);
    e->offset += len;
}

static void aof_rewrite(RedisModuleIO *io, RedisModuleString *key, void *value)
{
    struct emitting e = {.io = io, .key = key};
    struct cutter c = {.put = emit_piece, .context = &e};
    WIPED_KEY family[TAMIS_KEY_LEN] = {0};
    e.word = value_key(value, family) && secret_is(family) ? "FAMILY" : "KEY";
    key_to_hex(family, e.hex);
    struct value shown = *(struct value *)value;
    bool small = shown.small && small_keeps(shown.small);
    value_insist(true);
    if (small)
        shown = small_shown(&shown, &e.kept, &e.kept_len);
    if (value_encode(&shown, 0, cut, &c) != TAMIS_OK)
        rm.LogIOError(io, "warning", "tamis: a value could not be rewritten");
    value_insist(false);
    cut_end(&c);
    if (small)
        small_hidden(&shown, e.kept);
    if (((struct value *)value)->publication)
        publication_emit(io, key, ((struct value *)value)->publication);
    explicit_bzero(e.hex, sizeof e.hex);
}

static void foreign_aof_rewrite(RedisModuleIO *io, RedisModuleString *key, void *value)
{
    value_insist(true);
    foreign_emit(io, key, value);
    value_insist(false);
}

/* ---- the rest -------------------------------------------------------------------------------- */

static int digest_bytes(void *context, const void *data, size_t len)
{
    rm.DigestAddStringBuffer(context, data, len);
    return 0;
}

static void foreign_digest(RedisModuleDigest *d, void *value)
{
    const struct value *v = value;
    struct buffer head = {0};
    const void *chunk;
    size_t len;
    copy_wait(v, true);
    if (foreign_head_bytes(v->foreign, &head))
        rm.DigestAddStringBuffer(d, head.data, head.len);
    buffer_free(&head);
    for (uint64_t at = 1; (len = foreign_chunk(v->foreign, at, &chunk, PIECE)); at += len)
        rm.DigestAddStringBuffer(d, chunk, len);
    if (v->set)
        value_encode(v, 0, digest_bytes, d);
    rm.DigestEndSequence(d);
}

static void digest(RedisModuleDigest *d, void *value)
{
    value_encode(value, 0, digest_bytes, d);
    rm.DigestEndSequence(d);
}

static size_t mem_usage(const void *value)
{
    return value_bytes(value);
}

/* Above 64 the server frees in the background: from 4 MB on, where unmapping the pages takes long. */
static size_t free_effort(RedisModuleString *key, const void *value)
{
    (void)key;
    return 1 + value_bytes(value) / 65536;
}

static void *copy(RedisModuleString *from, RedisModuleString *to, const void *value)
{
    (void)from;
    (void)to;
    return value_copy_beside(value);
}

static void release(void *value)
{
    release_value(value);
}

/* ---- moving ---------------------------------------------------------------------------------- */

static void *defrag_block(void *context, void *memory)
{
    return rm.DefragAlloc(context, memory);
}

static bool defrag_stop(void *context)
{
    return rm.DefragShouldStop(context);
}

/* The server moves allocations that share pages with others; large vectors have pages of their own and stay.
   Large values are processed in slices, with a cursor in between; returns 1 while there is more. */
static int defrag(RedisModuleDefragCtx *ctx, RedisModuleString *key, void **value)
{
    (void)key;
    unsigned long part = 0;
    struct value *v = *value;
    struct mover m = {defrag_block, defrag_stop, ctx, v->publication && v->publication->origin};
    copy_wait(v, false);
    if (rm.DefragCursorGet(ctx, &part) != RM_OK)
        part = 0;
    void *moved = part == 0 ? rm.DefragAlloc(ctx, v) : NULL;
    if (moved)
        *value = v = moved;
    if (v->foreign && part == 0)
        foreign_move(&v->foreign, defrag_block, ctx);
    if (v->small)
        small_move(&v->small, &m);
    if (v->set)
        part = set_move(&v->set, &m, part);
    return part && rm.DefragCursorSet(ctx, part) == RM_OK;
}

/* Types of RedisBloom that are not loaded. Without this the server would log "no matching module". */
static void *refused_load(RedisModuleIO *io, int encoding)
{
    (void)encoding;
    return cannot_load(io, "a sketch of RedisBloom", "delete it there before the move");
}

static void refused_save(RedisModuleIO *io, void *value)
{
    (void)io, (void)value; /* there are no values of this type */
}

static void register_refused(RedisModuleCtx *ctx)
{
    static const char *const names[] = {"CMSk-TYPE", "TopK-TYPE", "TDIS-TYPE"};
    static RedisModuleTypeMethods methods = {.version = RM_TYPE_METHODS_VERSION,
                                             .rdb_load = refused_load,
                                             .rdb_save = refused_save,
                                             .free = release};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        rm.CreateDataType(ctx, names[i], 1, &methods);
}

bool type_register(RedisModuleCtx *ctx, bool foreign)
{
    static RedisModuleTypeMethods methods = {
        .version = RM_TYPE_METHODS_VERSION,
        .rdb_load = rdb_load,
        .rdb_save = rdb_save,
        .aof_rewrite = aof_rewrite,
        .mem_usage = mem_usage,
        .digest = digest,
        .free = release,
        .free_effort = free_effort,
        .copy = copy,
        .defrag = defrag,
    };
    static RedisModuleTypeMethods foreign_methods, cuckoo_methods;
    foreign_methods = methods;
    foreign_methods.rdb_load = foreign_rdb_load;
    foreign_methods.rdb_save = foreign_rdb_save;
    foreign_methods.aof_rewrite = foreign_aof_rewrite;
    foreign_methods.digest = foreign_digest;
    cuckoo_methods = foreign_methods;
    cuckoo_methods.rdb_load = cuckoo_rdb_load;
    cuckoo_methods.rdb_save = cuckoo_rdb_save;
    type = rm.CreateDataType(ctx, "tamis-set", 0, &methods);
    if (type && foreign) /* its types, unless RedisBloom itself is loaded */
        foreign_type = rm.CreateDataType(ctx, "MBbloom--", 4, &foreign_methods);
    if (foreign_type) {
        cuckoo_type = rm.CreateDataType(ctx, "MBbloomCF", 4, &cuckoo_methods);
        register_refused(ctx);
    }
    return type != NULL;
}
