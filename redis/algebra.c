/* Commands on whole filters: CLEAR, FORGET, MERGE, INTERSECT, FOLD. A change that can fail is
   made on a copy, which replaces the value on success. */
#include "module.h"

/* ---- time ------------------------------------------------------------------------------------ */

/* [AT nanoseconds] at the end of a command; false if it has replied. */
static bool read_time(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    long long at = 0;
    if (argc != 2 && argc != 4) {
        rm.WrongArity(ctx);
        return false;
    }
    if (argc == 4 &&
        (!is_word(argv[2], "AT") || rm.StringToLongLong(argv[3], &at) != RM_OK || at < 1)) {
        rm.ReplyWithError(ctx, "ERR only AT and nanoseconds since 1970 may follow the key");
        return false;
    }
    time_of_command((uint64_t)at);
    return true;
}

/* Runs `change` on the filter and replicates it with its time. */
static int change_at(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, const char *command,
                     const char *event, tamis_error (*change)(struct value *))
{
    const char *error;
    if (!read_time(ctx, argv, argc))
        return RM_OK;
    RedisModuleKey *key = rm.OpenKey(ctx, argv[1], RM_READ | RM_WRITE);
    struct value *v = find_value(key, VALUE_FILTER, &error);
    if (v)
        value_changes(v, false);
    tamis_error e = v ? change(v) : TAMIS_OK;
    if (v)
        value_recount(v);
    if (!v) {
        rm.ReplyWithError(ctx, error ? error : NOT_FOUND);
    } else if (e != TAMIS_OK) {
        reply_failure(ctx, v, e, NULL);
    } else {
        rm.Replicate(ctx, command, "scl", argv[1], "AT", (long long)value_clock(NULL));
        notify(ctx, event, argv[1]);
        publish_changes(ctx, v, argv[1]);
        rm.ReplyWithSimpleString(ctx, "OK");
    }
    rm.CloseKey(key);
    return RM_OK;
}

static tamis_error clear(struct value *v)
{
    if (!v->small)
        return set_clear(v->set);
    small_clear(&v->small);
    return TAMIS_OK;
}

COMMAND(command_clear)
{
    return change_at(ctx, argv, argc, "TAMIS.CLEAR", "tamis.clear", clear);
}

static tamis_error expire(struct value *v)
{
    return v->small ? TAMIS_EKIND : tamis_filter_expire(as_filter(v->set));
}

COMMAND(command_forget)
{
    return change_at(ctx, argv, argc, "TAMIS.FORGET", "tamis.forget", expire);
}

/* ---- merging --------------------------------------------------------------------------------- */

#define ELSEWHERE "Do it outside: TAMIS.DUMP, the tamis command, TAMIS.LOAD."

static bool read_merge_flags(RedisModuleString **argv, int argc, int i, unsigned *flags)
{
    for (*flags = 0; i < argc; i++) {
        if (is_word(argv[i], "RESTATE"))
            *flags |= TAMIS_MERGE_RESTATE;
        else if (is_word(argv[i], "CONCAT"))
            *flags |= TAMIS_MERGE_CONCAT;
        else if (is_word(argv[i], "DISJOINT"))
            *flags |= TAMIS_MERGE_DISJOINT;
        else
            return false;
    }
    return true;
}

struct merging {
    struct value *result; /* a copy of the destination, or of the first source */
    uint64_t work;
    unsigned flags;
};

/* Work is measured in bytes of plain filters that are merged, about 0.6 ms per MB (tests/redis/test_time.py,
   bench_algebra). Columns of a matrix are moved, which takes up to three times as long; a fold makes a copy
   first. It takes about 10 ns to test whether two vectors fit into one. */
enum { COLUMNS = 3, FOLDING = 2, PAIR = 16 };

static uint64_t merge_work(const struct value *v)
{
    return value_bytes(v) * (v->growth == TAMIS_DYNAMIC ? COLUMNS : 1);
}

/* The work of uniting two values, of which the second may be a small filter. */
static uint64_t pairs_work(const struct value *x, const struct value *y)
{
    uint32_t mine, theirs = 1;
    set_items(x->set, &mine);
    if (y->set)
        set_items(y->set, &theirs);
    uint64_t vectors = (uint64_t)mine + theirs;
    return PAIR * vectors * vectors;
}

static bool has_pending(const struct value *v)
{
    tamis_filter_facts facts = {0};
    if (v->set)
        set_brief(v->set, &facts);
    return facts.pending > 0;
}

/* A copy of the value, in the form of a set if it is a small filter. */
static struct value *copy_whole(const struct value *v)
{
    struct value *copy = value_copy(v);
    struct set *set = copy ? value_set(copy) : NULL;
    if (copy && !set) {
        value_free(copy);
        return NULL;
    }
    if (copy)
        value_set_keep(copy, set);
    return copy;
}

/* Unites one source with the result; false if it has replied. */
static bool merge_one(RedisModuleCtx *ctx, struct merging *m, RedisModuleString *name)
{
    RedisModuleKey *key;
    bool replied;
    const struct value *from = find_kind(ctx, name, VALUE_FILTER, &key, &replied);
    tamis_error e = TAMIS_OK;
    tamis_reason reason = {0};
    if (!from && !replied) {
        rm.ReplyWithError(ctx, NOT_FOUND);
    } else if (from) {
        m->work += merge_work(from);
        if (m->result)
            m->work += pairs_work(m->result, from);
        if (m->result && (has_pending(m->result) || has_pending(from)))
            m->work += merge_work(m->result); /* it is copied: see set_unite() */
        replied = too_much(ctx, m->work, ELSEWHERE);
    }
    bool ok = from && !replied;
    if (ok && !m->result) {
        m->result = copy_whole(from);
        e = m->result ? TAMIS_OK : TAMIS_ENOMEM;
    } else if (ok) {
        struct set *set = value_set(from), *result = m->result->set;
        uint64_t limit = set_memory_limit(result);
        if (limit && follows(ctx)) /* what the master accepted must fit here */
            set_limit(result, 0);
        e = set ? set_unite(result, set, m->flags, &reason) : TAMIS_ENOMEM;
        set_limit(result, limit);
        value_set_back(from, set);
    }
    if (e != TAMIS_OK)
        reply_failure(ctx, from, e, &reason);
    rm.CloseKey(key);
    return ok && e == TAMIS_OK;
}

/* A result must fit, and it must be possible to save it: loaded values may have extreme figures,
   each of which is legal although their sum is not. False if it has replied. */
static bool fits(RedisModuleCtx *ctx, const struct value *v)
{
    uint64_t limit = set_memory_limit(v->set) ? set_memory_limit(v->set) : value_limit();
    if (value_encoded_size(v) == 0) {
        rm.ReplyWithError(
            ctx,
            "ERR the result cannot be saved: a number is out of range, or the server is out of memory");
        return false;
    }
    if (value_bytes(v) <= limit || follows(ctx))
        return true;
    reply_printf(ctx, "ERR the result would take %llu bytes, more than its limit of %llu",
                 (unsigned long long)value_bytes(v), (unsigned long long)limit);
    return false;
}

/* Reports to the server which arguments of MERGE are keys. */
static int merge_keys(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    long long n;
    rm.KeyAtPos(ctx, 1);
    if (argc < 4 || rm.StringToLongLong(argv[2], &n) != RM_OK || n > argc - 3)
        return RM_OK;
    for (int i = 0; i < n; i++)
        rm.KeyAtPos(ctx, 3 + i);
    return RM_OK;
}

/* MERGE destination numkeys source [source ...] [RESTATE] [CONCAT] [DISJOINT] */
COMMAND(command_merge)
{
    long long n;
    const char *error;
    struct merging m = {0};
    if (rm.IsKeysPositionRequest(ctx))
        return merge_keys(ctx, argv, argc);
    if (argc < 4)
        return rm.WrongArity(ctx);
    if (rm.StringToLongLong(argv[2], &n) != RM_OK || n < 1 || n > argc - 3)
        return rm.ReplyWithError(ctx, "ERR numkeys is the number of sources that follow it");
    if (!read_merge_flags(argv, argc, (int)n + 3, &m.flags))
        return rm.ReplyWithError(ctx,
                                 "ERR only RESTATE, CONCAT and DISJOINT may follow the sources");
    time_of_command(0);
    RedisModuleKey *key = rm.OpenKey(ctx, argv[1], RM_READ | RM_WRITE);
    const struct value *v = find_value(key, VALUE_FILTER, &error);
    bool ok = !error;
    if (error)
        rm.ReplyWithError(ctx, error);
    if (ok && v) {
        m.work = merge_work(v); /* it is copied */
        ok = !too_much(ctx, m.work, ELSEWHERE);
        m.result = ok ? copy_whole(v) : NULL;
        if (ok && !m.result)
            ok = reply_failure(ctx, NULL, TAMIS_ENOMEM, NULL) != RM_OK; /* false: it has replied */
    }
    for (long long i = 0; ok && i < n; i++)
        ok = merge_one(ctx, &m, argv[3 + i]);
    ok = ok && fits(ctx, m.result);
    if (ok) {
        put_value(key, m.result);
        rm.Replicate(ctx, "TAMIS.MERGE", "v", argv + 1, (size_t)argc - 1);
        notify(ctx, "tamis.merge", argv[1]);
        publish_changes(ctx, m.result, argv[1]);
        rm.ReplyWithSimpleString(ctx, "OK");
    } else {
        value_free(m.result);
    }
    rm.CloseKey(key);
    return RM_OK;
}

/* INTERSECT destination a b */
COMMAND(command_intersect)
{
    const char *errors[3] = {0};
    RedisModuleKey *keys[3];
    const struct value *v[3];
    tamis_filter *both = NULL;
    struct value *made = NULL;
    if (argc != 4)
        return rm.WrongArity(ctx);
    time_of_command(0);
    for (int i = 2; i >= 0; i--) {
        keys[i] = rm.OpenKey(ctx, argv[i + 1], i ? RM_READ : RM_READ | RM_WRITE);
        v[i] = find_value(keys[i], VALUE_FILTER, &errors[i]);
        if (i && !v[i] && !errors[i])
            errors[i] = NOT_FOUND;
    }
    if (v[0])
        errors[0] = EXISTS;
    const char *error = errors[0] ? errors[0] : errors[1] ? errors[1] : errors[2];
    if (error) {
        rm.ReplyWithError(ctx, error);
    } else if (!too_much(ctx, merge_work(v[1]) + merge_work(v[2]), ELSEWHERE)) {
        tamis_reason reason = {0};
        struct set *x = value_set(v[1]), *y = value_set(v[2]);
        tamis_error e = x && y ? tamis_filter_intersect(&both, as_filter(x), as_filter(y), &reason)
                               : TAMIS_ENOMEM;
        value_set_back(v[1], x);
        value_set_back(v[2], y);
        made = e == TAMIS_OK ? value_of(filter_set(both)) : NULL;
        if (!made)
            reply_failure(ctx, v[1], e == TAMIS_OK ? TAMIS_ENOMEM : e, &reason);
    }
    if (made && !fits(ctx, made)) {
        value_free(made);
        made = NULL;
    }
    if (made) {
        put_value(keys[0], made);
        rm.Replicate(ctx, "TAMIS.INTERSECT", "v", argv + 1, (size_t)3);
        notify(ctx, "tamis.intersect", argv[1]);
        rm.ReplyWithSimpleString(ctx, "OK");
    }
    for (int i = 0; i < 3; i++)
        rm.CloseKey(keys[i]);
    return RM_OK;
}

/* FOLD key [RESTATE] */
COMMAND(command_fold)
{
    const char *error;
    if (argc != 2 && argc != 3)
        return rm.WrongArity(ctx);
    bool restate = argc == 3 && is_word(argv[2], "RESTATE");
    if (argc == 3 && !restate)
        return rm.ReplyWithError(ctx, "ERR only RESTATE may follow the key");
    time_of_command(0);
    RedisModuleKey *key = rm.OpenKey(ctx, argv[1], RM_READ | RM_WRITE);
    struct value *v = find_value(key, VALUE_FILTER, &error);
    if (!v) {
        rm.ReplyWithError(ctx, error ? error : NOT_FOUND);
    } else if (!too_much(ctx, FOLDING * value_bytes(v), ELSEWHERE)) {
        struct value *half = copy_whole(v);
        tamis_reason reason = {0};
        unsigned flags = restate ? TAMIS_MERGE_RESTATE : 0;
        tamis_error e =
            half ? tamis_filter_fold(as_filter(half->set), flags, &reason) : TAMIS_ENOMEM;
        if (e != TAMIS_OK)
            reply_failure(ctx, v, e, &reason);
        if (e != TAMIS_OK || !fits(ctx, half)) {
            value_free(half);
        } else {
            put_value(key, half);
            rm.Replicate(ctx, "TAMIS.FOLD", "v", argv + 1, (size_t)argc - 1);
            notify(ctx, "tamis.fold", argv[1]);
            publish_changes(ctx, half, argv[1]);
            rm.ReplyWithSimpleString(ctx, "OK");
        }
    }
    rm.CloseKey(key);
    return RM_OK;
}
