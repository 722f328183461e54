/*
 * Adding to a Bloom filter of RedisBloom (foreign.c): keys go into a tamis set on top of it. And converting
 * the filter to a tamis value.
 *
 * The set gets the part of the stated rate that the filter, judged by its bits, does not use, but at least an
 * eighth; the stated rate then rises. The first add of an absent key creates the set. Replicas receive
 * its bytes (TAMIS.ONTOP), then the keys.
 */
#include "foreign.h"

#include <string.h>

static int take_bytes(void *context, const void *data, size_t len)
{
    return !buffer_add(context, data, len);
}

static tamis_error new_top(struct foreign *f, tamis_filter **out)
{
    struct creation c;
    double stated = foreign_rate(f), left = stated - foreign_rate_now(f);
    creation_init(&c, WITH_INSERT);
    creation_settle(&c);
    c.o.fpp = left > stated / 8 ? left : stated / 8;
    c.o.memory_limit = value_limit();
    c.o.expansion = 0;
    if (!foreign_scales(f)) {
        c.o.growth = TAMIS_FIXED;
        c.o.capacity = foreign_capacity(f); /* for all keys, so that the filter can be converted */
        return tamis_filter_new(out, &c.o, NULL);
    }
    tamis_options smooth = c.o; /* takes the least memory for few keys, but has a lowest rate */
    smooth.growth = TAMIS_SMOOTH;
    smooth.capacity = 0;
    if (tamis_filter_new(out, &smooth, NULL) == TAMIS_OK)
        return TAMIS_OK;
    c.o.growth = TAMIS_SCALABLE;
    return tamis_filter_new(out, &c.o, NULL);
}

bool top_make(RedisModuleCtx *ctx, struct value *v, RedisModuleString *name)
{
    tamis_filter *filter = NULL;
    struct buffer bytes = {0};
    tamis_error e = new_top(v->foreign, &filter);
    if (e == TAMIS_OK)
        e = set_encode(filter_set(filter), 0, take_bytes, &bytes);
    if (e == TAMIS_OK) {
        value_top(v, filter_set(filter));
        rm.Replicate(ctx, "TAMIS.ONTOP", "sb", name, bytes.data, bytes.len);
    } else {
        tamis_filter_free(filter);
        reply_failure(ctx, NULL, e == TAMIS_EIO ? TAMIS_ENOMEM : e, NULL);
    }
    buffer_free(&bytes);
    return e == TAMIS_OK;
}

uint64_t top_items(const struct value *v)
{
    uint32_t parts;
    return v->small ? small_items(v->small, &parts) : v->set ? set_items(v->set, &parts) : 0;
}

bool foreign_full(RedisModuleCtx *ctx, const struct value *v)
{
    const struct foreign *f = v->foreign;
    return !foreign_scales(f) && !follows(ctx) && f->items + top_items(v) >= foreign_capacity(f);
}

/* ONTOP key data: sets the set on top, from a master or an append-only file. */
COMMAND(command_ontop)
{
    const char *error;
    tamis_reason reason = {0};
    struct value *whole = NULL;
    size_t len;
    if (argc != 3)
        return rm.WrongArity(ctx);
    const char *data = rm.StringPtrLen(argv[2], &len);
    secret_redact(ctx, 2);
    RedisModuleKey *key = rm.OpenKey(ctx, argv[1], RM_READ | RM_WRITE);
    struct value *v = find_value(key, VALUE_ITEMS, &error), *partial = NULL;
    if (v && v->foreign && !v->deletable && !v->set && pieces_total(data, len) == len &&
        tamis_kind_of(data, len) == TAMIS_KIND_FILTER)
        partial = value_partial(len, follows(ctx), NULL);
    if (partial && partial_add(partial, data, len, follows(ctx), &reason) == TAMIS_OK)
        partial_end(partial, &whole, follows(ctx), &reason);
    value_free(partial);
    if (whole && !whole->deletable) {
        value_changes(v, false);
        value_top(v, whole->set);
        whole->set = NULL;
        rm.Replicate(ctx, "TAMIS.ONTOP", "sb", argv[1], data, len);
        rm.ReplyWithSimpleString(ctx, "OK");
    } else {
        rm.ReplyWithError(ctx, error ? error : "ERR ONTOP applies once, to a filter of RedisBloom");
    }
    value_free(whole);
    rm.CloseKey(key);
    return RM_OK;
}

/* ---- CONVERT --------------------------------------------------------------------------------- */

/* Adds the keys again, whether the filter has them or not. */
static void convert_items(RedisModuleCtx *ctx, struct value *v, RedisModuleString **argv, int argc)
{
    int done = 0;
    tamis_error e = TAMIS_OK;
    if (!v->set && !top_make(ctx, v, argv[1]))
        return;
    value_changes(v, true);
    rm.ReplyWithArray(ctx, RM_POSTPONED);
    for (int i = 3; i < argc && e == TAMIS_OK; i++) {
        size_t len;
        bool fresh = false;
        const char *item = rm.StringPtrLen(argv[i], &len);
        e = tamis_filter_add(as_filter(v->set), item, len, &fresh);
        if (e == TAMIS_OK)
            rm.ReplyWithBool(ctx, fresh);
        done += e == TAMIS_OK;
    }
    if (e != TAMIS_OK)
        reply_failure(ctx, v, e, NULL);
    value_recount(v);
    rm.ReplySetArrayLength(ctx, done + (e != TAMIS_OK));
    if (done)
        rm.Replicate(ctx, "TAMIS.CONVERT", "scv", argv[1], "ITEMS", argv + 3, (size_t)done);
}

/* The caller states that all keys were given: those added before the move, and those added after
   it, some of which were false positives of the filter and so are not in the set. The set replaces
   the filter, and the time to live stays. */
static void convert_end(RedisModuleCtx *ctx, struct value *v, RedisModuleKey *key,
                        RedisModuleString *name)
{
    value_changes(v, false);
    struct value *made = value_lift(v);
    if (!made) {
        reply_failure(ctx, NULL, TAMIS_ENOMEM, NULL);
        return;
    }
    long long ttl = rm.GetExpire(key);
    rm.DeleteKey(key);
    rm.ModuleTypeSetValue(key, type, made);
    if (ttl > 0)
        rm.SetExpire(key, ttl);
    rm.Replicate(ctx, "TAMIS.CONVERT", "sc", name, "FORCE");
    notify(ctx, "tamis.convert", name);
    rm.ReplyWithSimpleString(ctx, "OK");
}

/* CONVERT key [ITEMS item ... | FORCE] */
COMMAND(command_convert)
{
    const char *error;
    bool items = argc > 3 && is_word(argv[2], "ITEMS"), force = argc == 3;
    if (argc != 2 && !items && !(force && is_word(argv[2], "FORCE")))
        return rm.WrongArity(ctx);
    time_of_command(0);
    RedisModuleKey *key = rm.OpenKey(ctx, argv[1], RM_READ | RM_WRITE);
    struct value *v = find_value(key, VALUE_ITEMS, &error);
    if (!v) {
        rm.ReplyWithError(ctx, error ? error : NOT_FOUND);
    } else if (!v->foreign) {
        rm.ReplyWithError(ctx, "ERR this is already a filter of tamis");
    } else if (v->deletable) {
        rm.ReplyWithError(ctx,
                          "ERR a cuckoo filter cannot be converted: add its items to a new filter");
    } else if (items) {
        convert_items(ctx, v, argv, argc);
    } else {
        /* Some of the keys given again are false positives of the set and were not counted. */
        uint64_t was = v->foreign->items, now = top_items(v);
        double slack = 10 + 2 * foreign_rate(v->foreign) * (double)was;
        if (!v->set || (!force && (double)now + slack < (double)was))
            reply_printf(ctx,
                         "ERR %llu of %llu items were given again: give the others by CONVERT key "
                         "ITEMS, or add FORCE",
                         (unsigned long long)now, (unsigned long long)was);
        else
            convert_end(ctx, v, key, argv[1]);
    }
    rm.CloseKey(key);
    return RM_OK;
}

/* ---- chunks ---------------------------------------------------------------------------------- */

/* LOADCHUNK with RedisBloom's bytes. Returns false, without a reply, if they are not. */
bool foreign_loads_chunk(RedisModuleCtx *ctx, RedisModuleString **argv, long long cursor,
                         enum dialect dialect)
{
    size_t len;
    const char *data = rm.StringPtrLen(argv[3], &len), *why = NULL;
    if (!foreign_type || !cuckoo_type || cursor < 1)
        return false;
    RedisModuleKey *key = rm.OpenKey(ctx, argv[1], RM_READ | RM_WRITE);
    bool empty = rm.KeyType(key) == RM_KEY_EMPTY, ours = true, done = false;
    const RedisModuleType *of = empty ? NULL : rm.ModuleTypeGetType(key);
    const RedisModuleType *other = dialect == BF   ? cuckoo_type
                                   : dialect == CF ? foreign_type
                                                   : NULL;
    if (of && of == other) {
        rm.CloseKey(key);
        rm.ReplyWithError(ctx, WRONG_TYPE);
        return true;
    }
    if (of && (of == foreign_type || of == cuckoo_type)) {
        struct value *v = rm.ModuleTypeGetValue(key);
        copy_wait(v, false);
        done = v->foreign->missing && foreign_add_chunk(v->foreign, (uint64_t)cursor, data, len);
    } else if (empty && cursor == 1 && foreign_head(data, len, dialect)) {
        uint64_t most = follows(ctx) ? UINT64_MAX : value_limit();
        struct foreign *f = foreign_begin(data, len, most, &why);
        struct value *v = f ? value_foreign(f, NULL) : NULL;
        done = v != NULL;
        if (v)
            rm.ModuleTypeSetValue(key, v->deletable ? cuckoo_type : foreign_type, v);
    } else {
        ours = false;
    }
    rm.CloseKey(key);
    if (done) {
        rm.Replicate(ctx, "TAMIS.LOADCHUNK", "slb", argv[1], cursor, data, len);
        notify(ctx, "tamis.load", argv[1]);
        rm.ReplyWithSimpleString(ctx, "OK");
    } else if (ours) {
        reply_printf(ctx, "ERR received bad data%s%s", why ? ": " : "", why ? why : "");
    }
    return ours;
}

/* BF.SCANDUMP with RedisBloom's bytes, and CF.SCANDUMP, which ends with a null. */
void foreign_dumps_chunk(RedisModuleCtx *ctx, const struct value *v, long long cursor)
{
    struct buffer head = {0};
    const void *chunk = NULL;
    if (v->set) {
        rm.ReplyWithError(ctx,
                          "ERR items were added to this filter of RedisBloom: TAMIS.CONVERT it");
        return;
    }
    if (cursor == 0 && !foreign_head_bytes(v->foreign, &head)) {
        buffer_free(&head);
        reply_failure(ctx, NULL, TAMIS_ENOMEM, NULL);
        return;
    }
    size_t len = cursor ? foreign_chunk(v->foreign, (uint64_t)cursor, &chunk, PIECE) : head.len;
    rm.ReplyWithArray(ctx, 2);
    rm.ReplyWithLongLong(ctx, cursor == 0 ? 1 : len ? cursor + (long long)len : 0);
    if (len || !v->deletable)
        rm.ReplyWithStringBuffer(ctx, cursor ? chunk : head.data, len);
    else
        rm.ReplyWithNull(ctx);
    buffer_free(&head);
}

void foreign_emit(RedisModuleIO *io, RedisModuleString *key, const struct value *v)
{
    struct buffer bytes = {0};
    const void *chunk;
    size_t len;
    if (foreign_head_bytes(v->foreign, &bytes))
        rm.EmitAOF(io, "TAMIS.LOADCHUNK", "slb", key, 1LL, bytes.data, bytes.len);
    for (uint64_t cursor = 1; (len = foreign_chunk(v->foreign, cursor, &chunk, PIECE));
         cursor += len)
        rm.EmitAOF(io, "TAMIS.LOADCHUNK", "slb", key, (long long)(cursor + len),
                   (const char *)chunk, len);
    bytes.len = 0;
    if (v->set && set_encode(v->set, 0, take_bytes, &bytes) == TAMIS_OK)
        rm.EmitAOF(io, "TAMIS.ONTOP", "sb", key, bytes.data, bytes.len);
    buffer_free(&bytes);
}
