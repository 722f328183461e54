/* Commands that take keys of a filter: ADD, EXISTS, DEL and their forms for many. */
#include "module.h"

#define BATCH 128

/* Digests of the next keys of a command. */
static size_t digest_batch(const tamis_filter *filter, RedisModuleString **items, size_t n,
                           tamis_digest *digests)
{
    tamis_key keys[BATCH];
    n = n < BATCH ? n : BATCH;
    for (size_t i = 0; i < n; i++)
        keys[i].data = rm.StringPtrLen(items[i], &keys[i].len);
    tamis_filter_digest_many(filter, keys, n, digests);
    return n;
}

/* ---- adding ---------------------------------------------------------------------------------- */

struct adding {
    RedisModuleString *name, **items;
    size_t n;
    bool many;    /* reply with an array */
    size_t added; /* items done */
    bool changed;
};

static long add_all(RedisModuleCtx *ctx, struct adding *a, struct value *v)
{
    bool always = v->deletable || v->growth == TAMIS_WINDOW;
    tamis_filter *filter = as_filter(v->set);
    tamis_digest digests[BATCH];
    uint8_t fresh[BATCH];
    tamis_error e = TAMIS_OK;
    while (e == TAMIS_OK && a->added < a->n) {
        size_t some, done;
        some = digest_batch(filter, a->items + a->added, a->n - a->added, digests);
        e = tamis_filter_add_many(filter, digests, some, fresh, &done);
        for (size_t i = 0; i < done; i++) {
            a->changed |= fresh[i] || always;
            rm.ReplyWithBool(ctx, fresh[i]);
        }
        a->added += done;
    }
    if (e != TAMIS_OK)
        reply_failure(ctx, v, e, NULL);
    return (long)a->added + (e != TAMIS_OK);
}

/* The canonical command, with the items that were added and the time they were added at. */
static void replicate_add(RedisModuleCtx *ctx, const struct adding *a, tamis_growth growth)
{
    long long at = (long long)value_clock(NULL);
    bool clocked = growth == TAMIS_WINDOW || growth == TAMIS_FLEXIBLE;
    if (a->changed && clocked)
        rm.Replicate(ctx, "TAMIS.INSERT", "scclcv", a->name, "NOCREATE", "AT", at, "ITEMS",
                     a->items, a->added);
    else if (a->changed && a->added == 1)
        rm.Replicate(ctx, "TAMIS.ADD", "ss", a->name, a->items[0]);
    else if (a->changed)
        rm.Replicate(ctx, "TAMIS.MADD", "sv", a->name, a->items, a->added);
    else if (growth == TAMIS_WINDOW && a->added == 0) /* old vectors may be gone all the same */
        rm.Replicate(ctx, "TAMIS.FORGET", "scl", a->name, "AT", at);
}

static int add(RedisModuleCtx *ctx, struct adding *a, struct creation *c)
{
    const char *error;
    RedisModuleKey *key = rm.OpenKey(ctx, a->name, RM_READ | RM_WRITE);
    struct value *v = find_value(key, VALUE_FILTER, &error);
    time_of_command(c->at);
    if (!v && (error || c->nocreate))
        rm.ReplyWithError(ctx, error ? error : NOT_FOUND);
    else if (!v)
        v = creation_make(ctx, c, key, a->name);
    if (v) {
        bool free_hand = v->limit && follows(ctx); /* what fitted the master fits here */
        if (free_hand)
            set_limit(v->set, 0);
        if (a->many)
            rm.ReplyWithArray(ctx, RM_POSTPONED);
        value_changes(v, true);
        long replies = add_all(ctx, a, v);
        if (a->many)
            rm.ReplySetArrayLength(ctx, replies);
        if (free_hand)
            set_limit(v->set, v->limit);
        replicate_add(ctx, a, v->growth);
        if (a->changed) {
            notify(ctx, "tamis.add", a->name);
            publish_changes(ctx, v, a->name);
        }
    }
    rm.CloseKey(key);
    return RM_OK;
}

COMMAND(command_add)
{
    struct creation c;
    if (argc != 3)
        return rm.WrongArity(ctx);
    creation_init(&c, WITH_INSERT);
    creation_settle(&c);
    return add(ctx, &(struct adding){.name = argv[1], .items = argv + 2, .n = 1}, &c);
}

COMMAND(command_madd)
{
    struct creation c;
    if (argc < 3)
        return rm.WrongArity(ctx);
    creation_init(&c, WITH_INSERT);
    creation_settle(&c);
    struct adding a = {.name = argv[1], .items = argv + 2, .n = (size_t)argc - 2, .many = true};
    return add(ctx, &a, &c);
}

static int insert(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, int with)
{
    WIPED_CREATION c;
    if (argc < 4)
        return rm.WrongArity(ctx);
    creation_init(&c, with);
    secret_redact_options(ctx, argv, argc);
    const char *error = creation_options(&c, argv, argc, 2);
    if (error)
        return rm.ReplyWithError(ctx, error);
    if (c.items == 0 || c.items == argc)
        return rm.WrongArity(ctx);
    struct adding a = {
        .name = argv[1], .items = argv + c.items, .n = (size_t)(argc - c.items), .many = true};
    return add(ctx, &a, &c);
}

COMMAND(command_insert)
{
    return insert(ctx, argv, argc, WITH_INSERT);
}

COMMAND(command_bf_insert)
{
    return insert(ctx, argv, argc, WITH_INSERT | WITH_BF);
}

/* ---- asking ---------------------------------------------------------------------------------- */

COMMAND(command_exists)
{
    RedisModuleKey *key;
    bool replied;
    if (argc != 3)
        return rm.WrongArity(ctx);
    const struct value *v = find_kind(ctx, argv[1], VALUE_FILTER, &key, &replied);
    if (!replied) {
        size_t len;
        const char *item = rm.StringPtrLen(argv[2], &len);
        rm.ReplyWithBool(ctx, v && tamis_filter_has(as_filter(v->set), item, len));
    }
    rm.CloseKey(key);
    return RM_OK;
}

COMMAND(command_mexists)
{
    RedisModuleKey *key;
    bool replied;
    if (argc < 3)
        return rm.WrongArity(ctx);
    const struct value *v = find_kind(ctx, argv[1], VALUE_FILTER, &key, &replied);
    size_t n = replied ? 0 : (size_t)argc - 2;
    if (!replied)
        rm.ReplyWithArray(ctx, (long)n);
    for (size_t i = 0; i < n;) {
        tamis_digest digests[BATCH];
        uint8_t found[BATCH] = {0};
        size_t some = n - i < BATCH ? n - i : BATCH;
        if (v) {
            digest_batch(as_filter(v->set), argv + 2 + i, some, digests);
            tamis_filter_has_many(as_filter(v->set), digests, some, found);
        }
        for (size_t j = 0; j < some; j++)
            rm.ReplyWithBool(ctx, found[j]);
        i += some;
    }
    rm.CloseKey(key);
    return RM_OK;
}

/* ---- removing -------------------------------------------------------------------------------- */

const long long removal_replies[3] = {[TAMIS_REMOVED] = 1, [TAMIS_ABSENT] = 0, [TAMIS_PENDING] = 2};

/* Removes what it can; `changed` gets the items that changed something. Returns their number. */
static size_t remove_all(RedisModuleCtx *ctx, struct value *v, RedisModuleString **items, size_t n,
                         RedisModuleString **changed, long *replies)
{
    tamis_digest digests[BATCH];
    uint8_t outcomes[BATCH];
    size_t all = 0, m = 0;
    tamis_error e = TAMIS_OK;
    while (e == TAMIS_OK && all < n) {
        size_t done, some = digest_batch(as_filter(v->set), items + all, n - all, digests);
        e = tamis_filter_remove_many(as_filter(v->set), digests, some, outcomes, &done);
        for (size_t i = 0; i < done; i++) {
            rm.ReplyWithLongLong(ctx, removal_replies[outcomes[i]]);
            if (outcomes[i] != TAMIS_ABSENT)
                changed[m++] = items[all + i];
        }
        all += done;
    }
    if (e != TAMIS_OK)
        reply_failure(ctx, v, e, NULL);
    *replies = (long)all + (e != TAMIS_OK);
    return m;
}

static void replicate_removal(RedisModuleCtx *ctx, const struct value *v, RedisModuleString *name,
                              RedisModuleString **items, size_t n)
{
    if (v->growth == TAMIS_FLEXIBLE) /* a filter that is emptied starts its clock again */
        rm.Replicate(ctx, "TAMIS.REMOVE", "sclcv", name, "AT", (long long)value_clock(NULL),
                     "ITEMS", items, n);
    else
        rm.Replicate(ctx, "TAMIS.MDEL", "sv", name, items, n);
}

static int delete_items(RedisModuleCtx *ctx, RedisModuleString *name, RedisModuleString **items,
                        size_t n, bool many)
{
    const char *error;
    RedisModuleKey *key = rm.OpenKey(ctx, name, RM_READ | RM_WRITE);
    struct value *v = find_value(key, VALUE_FILTER, &error);
    size_t m = 0;
    if (v && !v->deletable)
        error = "ERR the filter is not deletable: make it with DELETABLE";
    RedisModuleString **changed = v && !error ? rm.TryAlloc(n * sizeof *changed) : NULL;
    if (error || (v && !changed)) {
        rm.ReplyWithError(ctx, error ? error : "OOM no memory for the removal");
    } else {
        long replies = (long)n;
        if (many)
            rm.ReplyWithArray(ctx, RM_POSTPONED);
        if (v)
            value_changes(v, false);
        if (v)
            m = remove_all(ctx, v, items, n, changed, &replies);
        for (size_t i = 0; !v && i < n; i++)
            rm.ReplyWithLongLong(ctx, 0);
        if (many)
            rm.ReplySetArrayLength(ctx, replies);
    }
    if (m) {
        replicate_removal(ctx, v, name, changed, m);
        notify(ctx, "tamis.del", name);
        publish_changes(ctx, v, name);
    }
    rm.Free(changed);
    rm.CloseKey(key);
    return RM_OK;
}

COMMAND(command_del)
{
    if (argc != 3)
        return rm.WrongArity(ctx);
    time_of_command(0);
    return delete_items(ctx, argv[1], argv + 2, 1, false);
}

COMMAND(command_mdel)
{
    if (argc < 3)
        return rm.WrongArity(ctx);
    time_of_command(0);
    return delete_items(ctx, argv[1], argv + 2, (size_t)argc - 2, true);
}

/* REMOVE key [AT nanoseconds] ITEMS item [item ...] */
COMMAND(command_remove)
{
    long long at = 0;
    int items = argc > 4 && is_word(argv[2], "AT") ? 4 : 2;
    if (items == 4 && (rm.StringToLongLong(argv[3], &at) != RM_OK || at < 1))
        return rm.ReplyWithError(ctx, "ERR AT is a time in nanoseconds since 1970");
    if (argc < items + 2 || !is_word(argv[items], "ITEMS"))
        return rm.WrongArity(ctx);
    time_of_command((uint64_t)at);
    return delete_items(ctx, argv[1], argv + items + 1, (size_t)(argc - items) - 1, true);
}
