/*
 * Adding to a Bloom filter of RedisBloom (foreign.c): keys go into a tamis set on top of it. And converting
 * the filter to a tamis value.
 *
 * The set gets the part of the stated rate that the filter, judged by its bits, does not use, but at least an
 * eighth; the stated rate then rises. The first add of an absent key creates the set. Replicas receive the command
 * that creates the same set (TAMIS.ONTOP), then the keys.
 */
#include "foreign.h"

#include <string.h>

#define RATE_MIN   1e-300 /* that a set can have; RedisBloom takes any above 0 */
#define NOT_ON_TOP "ERR ONTOP applies once, to a filter of RedisBloom"

static int take_bytes(void *context, const void *data, size_t len)
{
    return !buffer_add(context, data, len);
}

bool top_stays(bool deletable, tamis_growth growth)
{
    return !deletable && growth != TAMIS_WINDOW && growth != TAMIS_FLEXIBLE;
}

/* Chooses the parameters of the set, and creates it. */
static tamis_error plan_top(RedisModuleCtx *ctx, struct foreign *f, struct creation *c,
                            struct set **out, tamis_reason *reason)
{
    double stated = foreign_rate(f), left = stated - foreign_rate_now(f);
    double least = stated / 8 > RATE_MIN ? stated / 8 : RATE_MIN;
    creation_init(c, WITH_RESERVE | WITH_BF);
    c->o.fpp = left > least ? left : least;
    c->o.memory_limit = value_limit();
    if (!foreign_scales(f)) {
        c->o.growth = TAMIS_FIXED;
        c->o.capacity = foreign_capacity(f); /* for all keys, so that the filter can be converted */
        creation_leave_room(ctx, c);
        return creation_set(ctx, c, out, reason);
    }
    uint64_t usual =
        c->o.capacity; /* smooth takes the least memory for few keys, but has a lowest rate */
    c->o.growth = TAMIS_SMOOTH;
    c->o.capacity = 0;
    if (creation_set(ctx, c, out, reason) == TAMIS_OK)
        return TAMIS_OK;
    c->o.growth = TAMIS_SCALABLE;
    c->o.capacity = usual;
    return creation_set(ctx, c, out, reason);
}

/* Replicates the set by its parameters, as ONTOP key RESERVE: it is empty, and its bytes may be 100 MB. */
static void top_put(RedisModuleCtx *ctx, struct value *v, RedisModuleString *name,
                    const struct creation *c, struct set *top)
{
    RedisModuleString *words[CREATION_WORDS];
    size_t n = creation_words(ctx, c, words);
    value_changes(v, false);
    value_top(v, top);
    rm.Replicate(ctx, "TAMIS.ONTOP", "scv", name, "RESERVE", words, n);
    for (size_t i = 0; i < n; i++)
        rm.FreeString(ctx, words[i]);
}

bool top_make(RedisModuleCtx *ctx, struct value *v, RedisModuleString *name)
{
    struct creation c;
    struct set *top = NULL;
    tamis_reason reason = {0};
    time_of_command(0);
    tamis_error e = plan_top(ctx, v->foreign, &c, &top, &reason);
    if (e == TAMIS_OK)
        top_put(ctx, v, name, &c, top);
    else
        creation_failed(ctx, &c, e, &reason);
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

/* ONTOP key RESERVE rate capacity option ...: creates an empty set, before the first item is added. */
static void put_empty(RedisModuleCtx *ctx, struct value *v, RedisModuleString **argv, int argc)
{
    WIPED_CREATION c;
    struct set *top = NULL;
    tamis_reason reason = {0};
    long long capacity;
    creation_init(&c, WITH_RESERVE);
    const char *error = creation_rate(&c, argv[3]);
    if (!error && (rm.StringToLongLong(argv[4], &capacity) != RM_OK || capacity < 0))
        error = "ERR bad capacity";
    if (!error)
        error = creation_options(&c, argv, argc, 5);
    if (!error && (c.like || !top_stays(c.o.deletable, c.o.growth)))
        error = NOT_ON_TOP;
    if (error) {
        rm.ReplyWithError(ctx, error);
        return;
    }
    time_of_command(c.at);
    c.o.capacity = (uint64_t)capacity;
    if (!creation_limit(ctx, &c))
        return;
    tamis_error e = creation_set(ctx, &c, &top, &reason);
    if (e != TAMIS_OK) {
        creation_failed(ctx, &c, e, &reason);
        return;
    }
    top_put(ctx, v, argv[1], &c, top);
    if (follows(ctx) && c.own)
        secret_adopt(c.o.key);
    rm.ReplyWithSimpleString(ctx, "OK");
}

/* Decodes the set from its bytes; NULL if they are invalid. */
static struct value *read_bytes(RedisModuleCtx *ctx, const char *data, size_t len)
{
    tamis_reason reason = {0};
    struct value *whole = NULL, *partial = NULL;
    if (pieces_total(data, len) == len && tamis_kind_of(data, len) == TAMIS_KIND_FILTER)
        partial = value_partial(len, follows(ctx), NULL);
    if (partial && partial_add(partial, data, len, follows(ctx), &reason) == TAMIS_OK)
        partial_end(partial, &whole, follows(ctx), &reason);
    value_free(partial);
    return whole;
}

/* ONTOP key data [MAXMEM bytes]: a set with the items that it has, from a rewritten append-only file. */
static void put_bytes(RedisModuleCtx *ctx, struct value *v, RedisModuleString **argv, int argc)
{
    long long limit = 0;
    size_t len;
    const char *data = rm.StringPtrLen(argv[2], &len);
    struct value *whole = NULL;
    if (too_much(ctx, len, "Move the filter with RESTORE."))
        return;
    if (argc == 3 || (argc == 5 && is_word(argv[3], "MAXMEM") &&
                      rm.StringToLongLong(argv[4], &limit) == RM_OK && limit > 0))
        whole = read_bytes(ctx, data, len);
    if (!whole || !top_stays(whole->deletable, whole->growth)) {
        value_free(whole);
        rm.ReplyWithError(ctx, NOT_ON_TOP);
        return;
    }
    uint64_t has = limit ? (uint64_t)limit : set_memory_limit(whole->set), most = value_limit();
    if (!follows(ctx))
        has = has && has < most ? has : most;
    set_limit(whole->set, has);
    value_changes(v, false);
    value_top(v, whole->set);
    whole->set = NULL;
    value_free(whole);
    rm.Replicate(ctx, "TAMIS.ONTOP", "sbcl", argv[1], data, len, "MAXMEM", (long long)has);
    rm.ReplyWithSimpleString(ctx, "OK");
}

COMMAND(command_ontop)
{
    const char *error;
    if (argc < 3)
        return rm.WrongArity(ctx);
    bool empty = argc > 4 && is_word(argv[2], "RESERVE");
    RedisModuleKey *key = rm.OpenKey(ctx, argv[1], RM_READ | RM_WRITE);
    struct value *v = find_value(key, VALUE_ITEMS, &error);
    if (!v || !v->foreign || v->deletable || v->set)
        rm.ReplyWithError(ctx, error ? error : NOT_ON_TOP);
    else if (empty)
        put_empty(ctx, v, argv, argc);
    else
        put_bytes(ctx, v, argv, argc);
    if (empty)
        secret_redact_options(ctx, argv, argc);
    else
        secret_redact(ctx, 2);
    rm.CloseKey(key);
    return RM_OK;
}

/* ---- CONVERT --------------------------------------------------------------------------------- */

/* Adds the keys to the set, whether the filter has them or not. */
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
    long long expires = rm.GetAbsExpire(key); /* may be past, where an append-only file is loaded */
    rm.DeleteKey(key);
    rm.ModuleTypeSetValue(key, type, made);
    if (expires >= 0)
        rm.SetAbsExpire(key, expires);
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
                         enum command_dialect dialect)
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
