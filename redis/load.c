/*
 * LOAD: a value from the bytes of a .tamis file, in pieces; LOADCHUNK is the same for clients of BF.*.
 *
 * The pieces are collected under the key in a value of a special kind, which is saved and replicated like
 * any other; the last piece turns it into the final value. Bytes are checked as they arrive and stored
 * where they will be used, so the time for a piece depends only on its size; the checksums come last.
 * If bytes are invalid, the load ends and the key is removed; a piece that is not the next one, or is too long,
 * changes nothing.
 */
#include "foreign.h"

#include <stdio.h>
#include <string.h>

struct loaded_piece {
    RedisModuleString *name;
    uint64_t offset, limit; /* memory limit of the value, 0 if not given */
    const char *data;
    size_t len;
    enum command_dialect dialect;
    const uint8_t *key;            /* for bytes without their key: the server's if none is given */
    bool own;                      /* it is the key of the server that it comes from */
    const RedisModuleString *kept; /* what a small filter has beside the bytes: see save_small() */
};

#define BAD_DATA "ERR received bad data"

static const char *bad_data(const struct loaded_piece *p)
{
    return p->dialect != CF ? BAD_DATA : p->offset == 0 ? "Invalid header" : "Couldn't load chunk!";
}

/* The key holds something other than pieces. */
static const char *in_the_way(const struct loaded_piece *p, bool ours)
{
    bool exists = p->dialect == OURS || (p->dialect == CF && p->offset == 0);
    return !ours ? WRONG_TYPE : exists ? EXISTS : bad_data(p);
}

/* The value that collects the pieces, created for the first one; NULL if it has replied. */
static struct value *load_start(RedisModuleCtx *ctx, const struct loaded_piece *p,
                                struct value *there)
{
    uint64_t have = there ? partial_have(there) : 0;
    if (p->offset != 0) {
        if (!there)
            rm.ReplyWithError(ctx, NOT_FOUND);
        else if (p->offset != have)
            reply_printf(ctx, "%s: the next byte is %llu", bad_data(p), (unsigned long long)have);
        else if (p->len > pieces_in_total(there->in) - have)
            rm.ReplyWithError(ctx, bad_data(p));
        else
            return there;
        return NULL;
    }
    uint64_t total = pieces_total(p->data, p->len);
    tamis_kind kind =
        total && p->len >= PIECES_HEAD ? tamis_kind_of(p->data, p->len) : TAMIS_KIND_NONE;
    if (kind != TAMIS_KIND_FILTER && kind != TAMIS_KIND_RECORDS) {
        rm.ReplyWithError(ctx, bad_data(p));
        return NULL;
    }
    if (total > value_limit_encoded() && !follows(ctx)) {
        reply_printf(ctx, "ERR %llu bytes are more than tamis.value-limit, %llu",
                     (unsigned long long)total, (unsigned long long)value_limit());
        return NULL;
    }
    struct value *v = value_partial(total, follows(ctx), p->key);
    if (!v)
        reply_failure(ctx, NULL, TAMIS_ENOMEM, NULL);
    return v;
}

static bool put_back(struct value *v, const RedisModuleString *kept)
{
    size_t len;
    const char *bytes = rm.StringPtrLen(kept, &len);
    return value_settle(v, true) && v->small &&
           small_put_back(&v->small, (const uint8_t *)bytes, len);
}

/* Completes the value after the last piece; NULL if the result is invalid. */
static struct value *load_end(RedisModuleCtx *ctx, struct loaded_piece *p, struct value *partial,
                              tamis_error *e, tamis_reason *reason)
{
    struct value *v = NULL;
    *e = partial_end(partial, &v, follows(ctx), reason);
    if (!v)
        return NULL;
    uint64_t most = value_limit(), limit = set_memory_limit(v->set);
    bool following = follows(ctx);
    if (!p->limit && !following)
        p->limit = limit && limit < most ? limit : most;
    if (p->limit)
        set_limit(v->set, p->limit);
    if (p->kept && !put_back(v, p->kept)) {
        value_free(v);
        *e = TAMIS_EFORMAT;
        return NULL;
    }
    return v;
}

/* A first piece without its key is replicated with it: replicas may not know it yet. */
static void load_replicate(RedisModuleCtx *ctx, const struct loaded_piece *p, bool last,
                           bool keyless)
{
    WIPED_HEX hex[KEY_HEX];
    const char *tail[4];
    char limit[24];
    size_t n = 0;
    RedisModuleString *words[4];
    bool own = follows(ctx) ? p->own : secret_is(p->key);
    snprintf(limit, sizeof limit, "%llu", (unsigned long long)p->limit);
    key_to_hex(p->key, hex);
    if (last && p->limit)
        tail[n++] = "MAXMEM", tail[n++] = limit;
    if (keyless)
        tail[n++] = own ? "FAMILY" : "KEY", tail[n++] = hex;
    for (size_t i = 0; i < n; i++)
        words[i] = rm.CreateString(ctx, tail[i], strlen(tail[i]));
    rm.Replicate(ctx, "TAMIS.LOAD", "slbv", p->name, (long long)p->offset, p->data, p->len, words,
                 n);
    for (size_t i = 0; i < n; i++)
        rm.FreeString(ctx, words[i]);
}

static void load_done(RedisModuleCtx *ctx, const struct loaded_piece *p, uint64_t missing,
                      bool keyless)
{
    if (follows(ctx) && p->own)
        secret_adopt(p->key);
    load_replicate(ctx, p, missing == 0, keyless);
    notify(ctx, "tamis.load", p->name);
    if (p->dialect != OURS)
        rm.ReplyWithSimpleString(ctx, "OK");
    else
        rm.ReplyWithLongLong(ctx, (long long)missing);
}

/* Ends the load and removes the key, here and on replicas. */
static void load_failed(RedisModuleCtx *ctx, const struct loaded_piece *p, RedisModuleKey *key,
                        bool first, tamis_error e, const tamis_reason *reason)
{
    if (e == TAMIS_ENOMEM)
        reply_failure(ctx, NULL, e, NULL);
    else if (e == TAMIS_EKEY)
        rm.ReplyWithError(ctx, BAD_DATA ": it was saved without its key, and belongs to another "
                                        "family than this server's (tamis.family-key)");
    else
        reply_printf(ctx, "%s: %s", bad_data(p),
                     reason->text[0] ? reason->text : tamis_error_text(e));
    if (!first) {
        rm.DeleteKey(key);
        rm.Replicate(ctx, "DEL", "s", p->name);
    }
}

/* Takes one more piece, possibly the last. */
static void load_piece(RedisModuleCtx *ctx, struct loaded_piece *p, RedisModuleKey *key,
                       struct value *v, bool first)
{
    struct value *whole = NULL;
    tamis_reason reason = {0};
    tamis_error e = partial_add(v, p->data, p->len, follows(ctx), &reason);
    uint64_t missing = e == TAMIS_OK ? pieces_in_total(v->in) - partial_have(v) : 0;
    bool keyless = first && pieces_in_keyless(v->in);
    if (e == TAMIS_OK && missing == 0)
        whole = load_end(ctx, p, v, &e, &reason);
    if (first && (whole || e != TAMIS_OK))
        value_free(v);
    else if (first)
        put_value(key, v);
    if (e != TAMIS_OK) {
        load_failed(ctx, p, key, first, e, &reason);
        return;
    }
    if (whole)
        put_value(key, whole);
    load_done(ctx, p, missing, keyless);
}

static int load(RedisModuleCtx *ctx, struct loaded_piece *p)
{
    const char *error;
    RedisModuleKey *key = rm.OpenKey(ctx, p->name, RM_READ | RM_WRITE);
    struct value *there = find_value(key, VALUE_PARTIAL, &error), *v = NULL;
    time_of_command(0);
    if (p->offset == 0)
        secret_redact(ctx, 3); /* the first bytes may contain the key */
    if (error) {
        bool ours = rm.KeyType(key) == RM_KEY_MODULE && rm.ModuleTypeGetType(key) == type;
        rm.ReplyWithError(ctx, in_the_way(p, ours));
    } else if (!too_much(ctx, p->len, "Send it in smaller pieces.")) {
        v = load_start(ctx, p, there);
    }
    if (v)
        load_piece(ctx, p, key, v, v != there);
    rm.CloseKey(key);
    return RM_OK;
}

/* MAXMEM bytes, KEY hex or FAMILY hex, KEPT bytes; returns NULL or what to reply. */
static const char *load_option(struct loaded_piece *p, const RedisModuleString *word,
                               const RedisModuleString *value, uint8_t given[TAMIS_KEY_LEN])
{
    static const char wrong[] = "ERR after the data come MAXMEM and bytes, KEY and 32 hexadecimal "
                                "digits, or nothing";
    long long limit;
    if (is_word(word, "MAXMEM")) {
        p->limit = rm.StringToLongLong(value, &limit) == RM_OK && limit > 0 ? (uint64_t)limit : 0;
        return p->limit ? NULL : wrong;
    }
    if (is_word(word, "KEPT")) {
        p->kept = value;
        return NULL;
    }
    p->own = is_word(word, "FAMILY");
    if (!p->own && !is_word(word, "KEY"))
        return wrong;
    p->key = given;
    return key_from_hex(value, given) ? NULL : "ERR KEY is 32 hexadecimal digits";
}

/* LOAD key offset data [MAXMEM bytes] [KEY hex] */
COMMAND(command_load)
{
    long long offset;
    const char *error = NULL;
    if (argc < 4 || argc % 2)
        return rm.WrongArity(ctx);
    if (rm.StringToLongLong(argv[2], &offset) != RM_OK || offset < 0)
        return rm.ReplyWithError(ctx, "ERR the offset is the number of bytes loaded before");
    WIPED_KEY given[TAMIS_KEY_LEN];
    struct loaded_piece p = {
        .name = argv[1], .offset = (uint64_t)offset, .key = server.secrets->key};
    for (int i = 4; i < argc && !error; i += 2)
        error = load_option(&p, argv[i], argv[i + 1], given);
    secret_redact_options(ctx, argv, argc);
    if (error)
        return rm.ReplyWithError(ctx, error);
    if (p.kept && !follows(ctx))
        return rm.ReplyWithError(ctx, "ERR KEPT belongs to append-only files");
    if (p.limit > value_limit() && !follows(ctx))
        return reply_printf(ctx, "ERR MAXMEM is above tamis.value-limit, %llu bytes",
                            (unsigned long long)value_limit());
    p.data = rm.StringPtrLen(argv[3], &p.len);
    return load(ctx, &p);
}

static int load_chunk(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                      enum command_dialect dialect)
{
    long long cursor;
    if (argc != 4)
        return rm.WrongArity(ctx);
    if (rm.StringToLongLong(argv[2], &cursor) != RM_OK || (dialect == CF && cursor == 0))
        return rm.ReplyWithError(ctx, dialect == CF ? "Invalid position"
                                                    : "ERR Second argument must be numeric");
    if (foreign_loads_chunk(ctx, argv, cursor, dialect))
        return RM_OK;
    struct loaded_piece p = {
        .name = argv[1], .dialect = dialect == CF ? CF : BF, .key = server.secrets->key};
    p.data = rm.StringPtrLen(argv[3], &p.len);
    uint64_t position = cursor > 0 ? (uint64_t)cursor & ((UINT64_C(1) << POSITION_BITS) - 1) : 0;
    p.offset = position == 1 ? 0 : position > p.len + 1 ? position - 1 - p.len : UINT64_MAX;
    return load(ctx, &p);
}

/* BF.LOAD key data */
COMMAND(command_bf_load)
{
    if (argc != 3)
        return rm.WrongArity(ctx);
    struct loaded_piece p = {.name = argv[1], .dialect = BF, .key = server.secrets->key};
    p.data = rm.StringPtrLen(argv[2], &p.len);
    secret_redact(ctx, 2);
    return pieces_total(p.data, p.len) == p.len ? load(ctx, &p) : rm.ReplyWithError(ctx, BAD_DATA);
}

/* The chunks of both dialects are replicated as TAMIS.LOADCHUNK. */
COMMAND(command_loadchunk)
{
    return load_chunk(ctx, argv, argc, OURS);
}

COMMAND(command_bf_loadchunk)
{
    return load_chunk(ctx, argv, argc, BF);
}

COMMAND(command_cf_loadchunk)
{
    return load_chunk(ctx, argv, argc, CF);
}
