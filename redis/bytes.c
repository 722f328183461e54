/*
 * DUMP and LOAD: a value as the bytes of a .tamis file, in pieces; SCANDUMP and LOADCHUNK are the
 * same for clients of BF.*.
 *
 * A dump is of one moment: the bytes are taken when it starts and kept aside until the last piece is
 * fetched, at most IDLE after the last call, at most DUMPS at a time. A cursor is the number of the
 * dump (from bit 40 on) and a position. SCANDUMP's position is 1 after the first HEAD bytes, else 1
 * more than the bytes so far, which tells LOADCHUNK where its piece belongs.
 *
 * A load puts the pieces together under the key as a value of their own kind, which is saved and
 * replicated like any other; the last piece turns it into the real thing, or deletes it.
 */
#include "module.h"

#include <string.h>
#include <time.h>

#define HEAD          64 /* magic, kind and length: what a load starts with */
#define PIECE         ((uint64_t)1 << 20)
#define POSITION_BITS 40
#define DUMPS         4
#define IDLE          60

/* ---- dumps under way ------------------------------------------------------------------------- */

static struct dump {
    uint32_t number; /* 0: free */
    int db;
    time_t used;
    uint64_t turn; /* the order of calls */
    struct buffer name, bytes;
} dumps[DUMPS];

static uint32_t last_number;
static uint64_t last_turn;
static bool timer_runs;

static time_t seconds(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

static void dump_end(struct dump *d)
{
    buffer_free(&d->name);
    buffer_free(&d->bytes);
    d->number = 0;
}

static void dump_timer(RedisModuleCtx *ctx, void *unused)
{
    (void)unused;
    timer_runs = false;
    for (struct dump *d = dumps; d < dumps + DUMPS; d++) {
        if (d->number && seconds() - d->used >= IDLE)
            dump_end(d);
        timer_runs |= d->number != 0;
    }
    if (timer_runs)
        rm.CreateTimer(ctx, IDLE * 1000, dump_timer, NULL);
}

static int dump_write(void *context, const void *data, size_t len)
{
    return !buffer_add(context, data, len);
}

/* Starts a dump, if need be in the place of the one that was idle for longest. */
static struct dump *dump_begin(RedisModuleCtx *ctx, RedisModuleString *name, const struct value *v)
{
    struct dump *d = dumps;
    size_t len;
    const char *text = rm.StringPtrLen(name, &len);
    for (struct dump *other = dumps; other < dumps + DUMPS; other++)
        if (!other->number || (d->number && other->turn < d->turn))
            d = other;
    dump_end(d);
    d->bytes.room = (size_t)value_encoded_size(v);
    d->bytes.data = rm.TryAlloc(d->bytes.room);
    if (!d->bytes.data || !buffer_add(&d->name, text, len) ||
        value_encode(v, dump_write, &d->bytes) != TAMIS_OK) {
        dump_end(d);
        return NULL;
    }
    last_number = last_number % ((1u << 22) - 1) + 1;
    d->number = last_number;
    d->db = rm.GetSelectedDb(ctx);
    if (!timer_runs)
        rm.CreateTimer(ctx, IDLE * 1000, dump_timer, NULL);
    timer_runs = true;
    return d;
}

static struct dump *dump_find(RedisModuleCtx *ctx, RedisModuleString *name, uint64_t number)
{
    size_t len;
    const char *text = rm.StringPtrLen(name, &len);
    for (struct dump *d = dumps; d < dumps + DUMPS; d++)
        if (number && d->number == number && d->db == rm.GetSelectedDb(ctx) && d->name.len == len &&
            memcmp(d->name.data, text, len) == 0)
            return d;
    return NULL;
}

/* The dump that the cursor is of; NULL when it has replied. */
static struct dump *dump_at(RedisModuleCtx *ctx, RedisModuleString *name, long long cursor)
{
    RedisModuleKey *key;
    bool replied;
    struct dump *d = NULL;
    const struct value *v = find_kind(ctx, name, KIND_ANY, &key, &replied);
    if (!v && !replied) {
        rm.ReplyWithError(ctx, NOT_FOUND);
    } else if (v && cursor != 0) {
        d = dump_find(ctx, name, (uint64_t)cursor >> POSITION_BITS);
        if (!d)
            rm.ReplyWithError(ctx, "ERR this dump is over: start again with cursor 0");
    } else if (v &&
               !too_much(ctx, value_bytes(v),
                         "The server's own DUMP, RESTORE, MIGRATE and RDB have no such limit.")) {
        d = dump_begin(ctx, name, v);
        if (!d)
            reply_failure(ctx, NULL, TAMIS_ENOMEM, NULL);
    }
    if (d) {
        d->used = seconds();
        d->turn = ++last_turn;
    }
    rm.CloseKey(key);
    return d;
}

static void reply_piece(RedisModuleCtx *ctx, const struct dump *d, uint64_t from, uint64_t to,
                        uint64_t position)
{
    uint64_t cursor = position ? (uint64_t)d->number << POSITION_BITS | position : 0;
    rm.ReplyWithArray(ctx, 2);
    rm.ReplyWithLongLong(ctx, (long long)cursor);
    rm.ReplyWithStringBuffer(ctx, d->bytes.data + from, (size_t)(to - from));
}

static uint64_t position_of(long long cursor)
{
    return (uint64_t)cursor & ((UINT64_C(1) << POSITION_BITS) - 1);
}

COMMAND(command_dump)
{
    long long cursor;
    if (argc != 3)
        return rm.WrongArity(ctx);
    if (rm.StringToLongLong(argv[2], &cursor) != RM_OK || cursor < 0)
        return rm.ReplyWithError(ctx, "ERR the cursor is 0, or what the last call replied");
    struct dump *d = dump_at(ctx, argv[1], cursor);
    if (!d)
        return RM_OK;
    uint64_t total = d->bytes.len, from = position_of(cursor);
    from = from < total ? from : total;
    uint64_t to = from + PIECE < total ? from + PIECE : total;
    reply_piece(ctx, d, from, to, to < total ? to : 0);
    if (to == total)
        dump_end(d);
    return RM_OK;
}

COMMAND(command_scandump)
{
    long long cursor;
    if (argc != 3)
        return rm.WrongArity(ctx);
    if (rm.StringToLongLong(argv[2], &cursor) != RM_OK || cursor < 0)
        return rm.ReplyWithError(ctx, "Second argument must be numeric");
    struct dump *d = dump_at(ctx, argv[1], cursor);
    if (!d)
        return RM_OK;
    uint64_t total = d->bytes.len, position = position_of(cursor);
    uint64_t from = position > 1 ? position - 1 : position * HEAD;
    from = from < total ? from : total;
    uint64_t to = cursor == 0 ? HEAD : from + PIECE < total ? from + PIECE : total;
    if (from < total) {
        reply_piece(ctx, d, from, to, cursor == 0 ? 1 : to + 1);
    } else {
        reply_piece(ctx, d, 0, 0, 0);
        dump_end(d);
    }
    return RM_OK;
}

/* ---- loading --------------------------------------------------------------------------------- */

struct piece {
    RedisModuleString *name;
    uint64_t offset, limit; /* limit on memory of the value, 0 if not said */
    const char *data;
    size_t len;
    bool bf; /* the replies of BF.LOADCHUNK */
};

#define BAD_DATA "ERR received bad data"

/* The length that the first bytes of a structure state, or 0. */
static uint64_t length_stated(const char *data, size_t len)
{
    static const char magic[8] = {'T', 'A', 'M', 'I', 'S', 0, '\r', '\n'};
    uint64_t total = 0;
    if (len < HEAD || memcmp(data, magic, sizeof magic) != 0)
        return 0;
    for (int i = 7; i >= 0; i--)
        total = total << 8 | (unsigned char)data[16 + i];
    return total >= len ? total : 0;
}

/* The value that the pieces go into, made for the first one; NULL when it has replied. */
static struct value *load_start(RedisModuleCtx *ctx, const struct piece *p, struct value *there)
{
    uint64_t total = length_stated(p->data, p->len);
    if (p->offset != 0) {
        if (!there)
            rm.ReplyWithError(ctx, NOT_FOUND);
        else if (p->offset != there->bytes.len)
            reply_printf(ctx, "%s: the next byte is %llu", BAD_DATA,
                         (unsigned long long)there->bytes.len);
        else if (p->len == 0 || p->len > there->total - there->bytes.len)
            rm.ReplyWithError(ctx, BAD_DATA);
        else
            return there;
        return NULL;
    }
    if (total == 0) {
        rm.ReplyWithError(ctx, BAD_DATA);
        return NULL;
    }
    if (total > (uint64_t)server.value_limit && !follows(ctx)) {
        reply_printf(ctx, "ERR %llu bytes are more than tamis.value-limit, %lld",
                     (unsigned long long)total, server.value_limit);
        return NULL;
    }
    if (too_much(ctx, total, "RESTORE has no such limit."))
        return NULL;
    struct value *v = value_partial(total);
    if (!v)
        reply_failure(ctx, NULL, TAMIS_ENOMEM, NULL);
    return v;
}

/* The last piece has come. NULL: replied; the partial value is of no use any more. */
static struct value *load_end(RedisModuleCtx *ctx, struct piece *p, const char *data, size_t len)
{
    struct value *v = NULL;
    tamis_reason reason = {0};
    tamis_error e = value_decode(&v, data, len, &reason);
    if (e == TAMIS_ENOMEM)
        reply_failure(ctx, NULL, e, NULL);
    else if (e != TAMIS_OK)
        reply_printf(ctx, "%s: %s", BAD_DATA, reason.text[0] ? reason.text : tamis_error_text(e));
    if (!v)
        return NULL;
    uint64_t most = (uint64_t)server.value_limit;
    bool following = follows(ctx);
    if (!p->limit && !following)
        p->limit = v->limit && v->limit < most ? v->limit : most;
    if (p->limit) {
        value_set_limit(v, p->limit);
        v->limit = p->limit;
    }
    if (following)
        settings_adopt(v);
    return v;
}

static void load_done(RedisModuleCtx *ctx, const struct piece *p, uint64_t missing)
{
    if (missing == 0 && p->limit)
        rm.Replicate(ctx, "TAMIS.LOAD", "slbcl", p->name, (long long)p->offset, p->data, p->len,
                     "MAXMEM", (long long)p->limit);
    else
        rm.Replicate(ctx, "TAMIS.LOAD", "slb", p->name, (long long)p->offset, p->data, p->len);
    notify(ctx, "tamis.load", p->name);
    if (p->bf)
        rm.ReplyWithSimpleString(ctx, "OK");
    else
        rm.ReplyWithLongLong(ctx, (long long)missing);
}

/* One piece more, perhaps the last. */
static void load_piece(RedisModuleCtx *ctx, struct piece *p, RedisModuleKey *key, struct value *v,
                       bool first)
{
    struct value *whole = NULL;
    bool all_at_once = p->len == v->total; /* then there is nothing to put together */
    bool last = v->bytes.len + p->len == v->total;
    if (!all_at_once && !buffer_add(&v->bytes, p->data, p->len)) {
        reply_failure(ctx, NULL, TAMIS_ENOMEM, NULL);
        if (first)
            value_free(v);
        return;
    }
    if (!last) {
        if (first)
            put_value(key, v);
        load_done(ctx, p, v->total - v->bytes.len);
        return;
    }
    whole = all_at_once ? load_end(ctx, p, p->data, p->len)
                        : load_end(ctx, p, v->bytes.data, v->bytes.len);
    if (first)
        value_free(v);
    if (whole) {
        put_value(key, whole);
        load_done(ctx, p, 0);
    } else if (!first) { /* nothing is left of it, here and elsewhere */
        rm.DeleteKey(key);
        rm.Replicate(ctx, "DEL", "s", p->name);
    }
}

static int load(RedisModuleCtx *ctx, struct piece *p)
{
    const char *error;
    RedisModuleKey *key = rm.OpenKey(ctx, p->name, RM_READ | RM_WRITE);
    struct value *there = find_value(key, KIND_PARTIAL, &error), *v = NULL;
    time_of_command(0);
    if (error) {
        bool ours = rm.KeyType(key) == RM_KEY_MODULE && rm.ModuleTypeGetType(key) == type;
        rm.ReplyWithError(ctx, !ours ? WRONG_TYPE : p->bf ? BAD_DATA : EXISTS);
    } else {
        v = load_start(ctx, p, there);
    }
    if (v)
        load_piece(ctx, p, key, v, v != there);
    rm.CloseKey(key);
    return RM_OK;
}

/* LOAD key offset data [MAXMEM bytes] */
COMMAND(command_load)
{
    long long offset, limit = 0;
    if (argc != 4 && argc != 6)
        return rm.WrongArity(ctx);
    if (rm.StringToLongLong(argv[2], &offset) != RM_OK || offset < 0)
        return rm.ReplyWithError(ctx, "ERR the offset is the number of bytes loaded before");
    if (argc == 6 &&
        (!is_word(argv[4], "MAXMEM") || rm.StringToLongLong(argv[5], &limit) != RM_OK || limit < 1))
        return rm.ReplyWithError(ctx, "ERR after the data comes nothing, or MAXMEM and bytes");
    if (limit > server.value_limit && !follows(ctx))
        return reply_printf(ctx, "ERR MAXMEM is above tamis.value-limit, %lld bytes",
                            server.value_limit);
    struct piece p = {.name = argv[1], .offset = (uint64_t)offset, .limit = (uint64_t)limit};
    p.data = rm.StringPtrLen(argv[3], &p.len);
    return load(ctx, &p);
}

COMMAND(command_loadchunk)
{
    long long cursor;
    if (argc != 4)
        return rm.WrongArity(ctx);
    if (rm.StringToLongLong(argv[2], &cursor) != RM_OK)
        return rm.ReplyWithError(ctx, "ERR Second argument must be numeric");
    struct piece p = {.name = argv[1], .bf = true};
    p.data = rm.StringPtrLen(argv[3], &p.len);
    uint64_t position = cursor > 0 ? position_of(cursor) : 0;
    p.offset = position == 1 ? 0 : position > p.len + 1 ? position - 1 - p.len : UINT64_MAX;
    return load(ctx, &p);
}
