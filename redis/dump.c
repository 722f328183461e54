/*
 * DUMP: a value as the bytes of a .tamis file, in pieces; SCANDUMP is the same for clients of BF.*.
 *
 * A dump is a snapshot of one moment. The bytes of a value up to tamis.work-limit are encoded and held when it
 * starts. A larger value is read a few MB per call, and only the header is held; adds meanwhile are recorded, so
 * that the bits of the beginning can still be read. If a value changes for which this is not possible (deletable,
 * dynamic, window, a table of records), its dump ends.
 *
 * At most DUMPS exist at a time. Together they hold at most HOLD bytes (a single one may hold more), and each
 * expires IDLE after its last call. A cursor is the number of the dump (from bit 40 on) and a position; it stays
 * below 2^53, above which numbers in JavaScript and Lua are not exact. SCANDUMP's position is 1 after the first
 * PIECES_HEAD bytes, otherwise 1 more than the bytes so far, which tells LOADCHUNK where its piece belongs.
 *
 * The bytes do not contain the family key, unless every call has WITHKEY and its user has the permission.
 */
#include "foreign.h"

#include <string.h>

#define DUMPS      16
#define HOLD       ((uint64_t)128 << 20)
#define NUMBERS    8191 /* of dumps, reused in turn: 13 bits */
#define IDLE       60
#define IMPATIENCE 5 /* seconds after which a dump that blocks another is dropped */

static struct dump {
    uint32_t number; /* 0: free */
    int db;
    uint64_t used; /* seconds() of its last call */
    uint64_t turn; /* order of calls */
    struct buffer name;
    struct buffer bytes;    /* all bytes; or room for a piece */
    struct pieces_out *out; /* of the value with this number */
    uint64_t value;
    bool changed; /* the value changed, which ends the dump */
    bool with_key;
} dumps[DUMPS];

static uint32_t last_number;
static uint64_t last_turn;
static bool timer_runs;
int dumps_in_pieces; /* number of dumps with `out` */

/* ---- dumps under way ------------------------------------------------------------------------- */

static uint64_t seconds(void)
{
    return clock_steady(NULL) / 1000000000;
}

unsigned dump_count(void)
{
    unsigned n = 0;
    for (const struct dump *d = dumps; d < dumps + DUMPS; d++)
        n += d->number != 0;
    return n;
}

/* Releases what it holds. */
static void dump_drop(struct dump *d)
{
    buffer_free(&d->bytes);
    dumps_in_pieces -= d->out != NULL;
    pieces_out_end(d->out);
    d->out = NULL;
}

static void dump_end(struct dump *d)
{
    dump_drop(d);
    buffer_free(&d->name);
    d->changed = false;
    d->number = 0;
}

static struct dump *dump_of(const struct value *v)
{
    for (struct dump *d = dumps; dumps_in_pieces && d < dumps + DUMPS; d++)
        if (d->out && d->value == v->number)
            return d;
    return NULL;
}

static void keep_end(struct value *v)
{
    if (v->kept)
        pieces_keep_end(v->set);
    v->kept = false;
}

void dump_changes(struct value *v, bool adds)
{
    struct dump *d = dump_of(v);
    if (d && adds && !v->kept)
        v->kept = pieces_keep(v->set);
    if (d && adds && v->kept)
        return;
    for (; d; d = dump_of(v)) {
        dump_drop(d);
        d->changed = true;
    }
    keep_end(v);
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

/* Encodes everything now, or prepares to do it in pieces. */
static tamis_error dump_fill(struct dump *d, const struct value *v, bool pieces)
{
    tamis_error e;
    unsigned flags = d->with_key ? 0 : TAMIS_SAVE_NO_KEY;
    d->bytes.data = rm.TryAlloc(d->bytes.room);
    d->value = v->number;
    if (!d->bytes.data) {
        d->bytes.room = 0;
        return TAMIS_ENOMEM;
    }
    e = pieces ? pieces_out_begin(&d->out, v->set, flags)
               : value_encode(v, flags, dump_write, &d->bytes);
    dumps_in_pieces += d->out != NULL;
    return e;
}

static struct dump *dump_numbered(uint64_t number)
{
    for (struct dump *d = dumps; number && d < dumps + DUMPS; d++)
        if (d->number == number)
            return d;
    return NULL;
}

/* A free entry for a dump that holds that many bytes; if necessary, drops those that were idle longest. */
static struct dump *dump_place(size_t room)
{
    for (;;) {
        struct dump *free = NULL, *oldest = NULL;
        uint64_t held = room;
        for (struct dump *d = dumps; d < dumps + DUMPS; d++) {
            held += d->bytes.room;
            if (!d->number)
                free = d;
            else if (!oldest || d->turn < oldest->turn)
                oldest = d;
        }
        if (!oldest || (free && held <= HOLD))
            return free;
        dump_end(oldest);
    }
}

static tamis_error dump_begin(RedisModuleCtx *ctx, RedisModuleString *name, const struct value *v,
                              bool pieces, bool with_key, struct dump **out)
{
    size_t len, room = pieces ? PIECE : (size_t)value_encoded_size(v);
    const char *text = rm.StringPtrLen(name, &len);
    struct dump *d = dump_place(room);
    d->bytes.room = room;
    d->with_key = with_key;
    tamis_error e = buffer_add(&d->name, text, len) ? dump_fill(d, v, pieces) : TAMIS_ENOMEM;
    if (e != TAMIS_OK) {
        dump_end(d);
        return e;
    }
    do
        last_number = last_number % NUMBERS + 1;
    while (dump_numbered(last_number));
    d->number = last_number;
    d->db = rm.GetSelectedDb(ctx);
    if (!timer_runs)
        rm.CreateTimer(ctx, IDLE * 1000, dump_timer, NULL);
    timer_runs = true;
    *out = d;
    return TAMIS_OK;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static struct dump *dump_find(RedisModuleCtx *ctx, RedisModuleString *name, uint64_t number,
                              const struct value *v, bool with_key)
{
    size_t len;
    const char *text = rm.StringPtrLen(name, &len);
    struct dump *d = dump_numbered(number);
    if (!d || d->db != rm.GetSelectedDb(ctx) || d->name.len != len ||
        (len && memcmp(d->name.data, text, len) != 0) || d->with_key != with_key) {
        rm.ReplyWithError(ctx, "ERR this dump has ended: start again with cursor 0");
        return NULL;
    }
    if (!d->changed && (!d->out || d->value == v->number))
        return d;
    dump_end(d);
    rm.ReplyWithError(ctx, "ERR the value changed during its dump: start again with cursor 0");
    return NULL;
}

/* Drops a dump of an earlier moment, because changes can be recorded only for one moment. False if it has replied. */
static bool make_way(RedisModuleCtx *ctx, struct value *v)
{
    for (struct dump *d = dump_of(v); v->kept && d; d = dump_of(v)) {
        if (seconds() - d->used < IMPATIENCE) {
            rm.ReplyWithError(ctx, "ERR another dump of this value is under way, and the value has "
                                   "changed since it began: try again when it has ended");
            return false;
        }
        dump_end(d);
    }
    keep_end(v);
    return true;
}

static struct dump *dump_start(RedisModuleCtx *ctx, RedisModuleString *name, struct value *v,
                               bool with_key)
{
    static const char advice[] =
        "This value is transferred as a whole: raise the limit (CONFIG SET tamis.work-limit), or use the "
        "server's own DUMP, RESTORE, MIGRATE and RDB, which have none.";
    struct dump *d = NULL;
    uint64_t bytes = value_bytes(v);
    bool pieces = bytes > (uint64_t)server.work_limit && !v->small;
    if (pieces && !make_way(ctx, v))
        return NULL;
    tamis_error e = dump_begin(ctx, name, v, pieces, with_key, &d);
    if (e == TAMIS_EKIND && pieces && !too_much(ctx, bytes, advice))
        e = dump_begin(ctx, name, v, false, with_key, &d);
    if (e != TAMIS_OK && e != TAMIS_EKIND)
        reply_failure(ctx, NULL, e, NULL);
    return d;
}

/* The dump of the cursor, and its value; NULL if it has replied. */
static struct dump *dump_at(RedisModuleCtx *ctx, RedisModuleString *name, long long cursor,
                            bool with_key, RedisModuleKey **key, struct value **v)
{
    bool replied;
    struct dump *d = NULL;
    *v = find_kind(ctx, name, VALUE_ANY, key, &replied);
    if (!*v && !replied)
        rm.ReplyWithError(ctx, NOT_FOUND);
    else if (*v && cursor != 0)
        d = dump_find(ctx, name, (uint64_t)cursor >> POSITION_BITS, *v, with_key);
    else if (*v)
        d = dump_start(ctx, name, *v, with_key);
    if (d) {
        d->used = seconds();
        d->turn = ++last_turn;
    }
    return d;
}

static void dump_over(struct dump *d, struct value *v)
{
    bool pieces = d->out != NULL;
    dump_end(d);
    if (pieces && !dump_of(v))
        keep_end(v);
}

/* Replies with at most `room` bytes from `from` on. Their cursor is the position after them plus `plus`. The cursor 0
   comes with the last piece, or for clients of BF and CF after it. */
static void reply_piece(RedisModuleCtx *ctx, struct dump *d, struct value *v, uint64_t from,
                        size_t room, uint64_t plus, enum command_dialect dialect)
{
    uint64_t total = d->out ? pieces_out_size(d->out) : d->bytes.len;
    const char *data = d->bytes.data;
    size_t len = 0;
    if (d->out) {
        tamis_error e = pieces_out_read(d->out, v->set, from, d->bytes.data, room, &len);
        if (e != TAMIS_OK) {
            if (e == TAMIS_EARG)
                rm.ReplyWithError(ctx, "ERR the cursor is not from an earlier reply");
            else
                reply_failure(ctx, NULL, e, NULL);
            return;
        }
    } else {
        from = from < total ? from : total;
        len = (size_t)(total - from < room ? total - from : room);
        data += from;
    }
    bool over = from + len == total && (dialect == OURS || len == 0);
    uint64_t cursor = (uint64_t)d->number << POSITION_BITS | (from + len + plus);
    rm.ReplyWithArray(ctx, 2);
    rm.ReplyWithLongLong(ctx, over ? 0 : (long long)cursor);
    if (over && dialect == CF)
        rm.ReplyWithNull(ctx);
    else
        rm.ReplyWithStringBuffer(ctx, data, len);
    if (over)
        dump_over(d, v);
}

static uint64_t position_of(long long cursor)
{
    return (uint64_t)cursor & ((UINT64_C(1) << POSITION_BITS) - 1);
}

/* SCANDUMP of a filter of RedisBloom; true if it has replied. */
static bool foreign_asked(RedisModuleCtx *ctx, RedisModuleString *name, long long cursor)
{
    const char *error;
    RedisModuleKey *key = rm.OpenKey(ctx, name, RM_READ);
    const struct value *v = find_value(key, VALUE_ITEMS, &error);
    bool foreign = v && v->foreign;
    if (foreign)
        foreign_dumps_chunk(ctx, v, cursor);
    rm.CloseKey(key);
    return foreign;
}

/* BF.SCANDUMP looks for the key first. */
static int wrong_cursor(RedisModuleCtx *ctx, RedisModuleString *name, enum command_dialect dialect)
{
    static const char *const wrong[] = {[OURS] =
                                            "ERR the cursor is 0, or what the last call replied",
                                        [BF] = "Second argument must be numeric",
                                        [CF] = "Invalid position"};
    const char *error = NULL;
    RedisModuleKey *key = rm.OpenKey(ctx, name, RM_READ);
    if (dialect == BF && !find_value(key, VALUE_ITEMS, &error) && !error)
        error = NOT_FOUND;
    rm.CloseKey(key);
    return rm.ReplyWithError(ctx, error ? error : wrong[dialect]);
}

/* SCANDUMP, except for OURS. */
static int dump_call(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                     enum command_dialect dialect)
{
    long long cursor;
    RedisModuleKey *key;
    struct value *v;
    bool with_key = argc == 4 && is_word(argv[3], "WITHKEY");
    if (argc != 3 && !with_key)
        return rm.WrongArity(ctx);
    if (with_key && !secret_told(ctx))
        return RM_OK;
    if (rm.StringToLongLong(argv[2], &cursor) != RM_OK || cursor < 0)
        return wrong_cursor(ctx, argv[1], dialect);
    if (dialect != OURS && foreign_asked(ctx, argv[1], cursor))
        return RM_OK;
    struct dump *d = dump_at(ctx, argv[1], cursor, with_key, &key, &v);
    uint64_t position = position_of(cursor);
    size_t room = server.work_limit < (long long)PIECE ? (size_t)server.work_limit : PIECE;
    if (d && dialect == OURS)
        reply_piece(ctx, d, v, position, room, 0, dialect);
    else if (d && cursor == 0) /* the first position is 1, not PIECES_HEAD + 1 */
        reply_piece(ctx, d, v, 0, PIECES_HEAD, 1 - PIECES_HEAD, dialect);
    else if (d)
        reply_piece(ctx, d, v, position > 1 ? position - 1 : position * PIECES_HEAD, room, 1,
                    dialect);
    rm.CloseKey(key);
    return RM_OK;
}

COMMAND(command_dump)
{
    return dump_call(ctx, argv, argc, OURS);
}

COMMAND(command_scandump)
{
    return dump_call(ctx, argv, argc, BF);
}

COMMAND(command_cf_scandump)
{
    return dump_call(ctx, argv, argc, CF);
}
