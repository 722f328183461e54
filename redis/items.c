/* Commands that add, query or remove items: ADD, EXISTS, DEL, and their forms for several items. */
#include "foreign.h"

#include <string.h>

#define ITEMS_BATCH 128

/* Computes the digests of the next items, at most ITEMS_BATCH; returns their number. */
static size_t digest_batch(const struct value *v, RedisModuleString **items, size_t n,
                           tamis_digest *digests)
{
    tamis_key keys[ITEMS_BATCH];
    n = n < ITEMS_BATCH ? n : ITEMS_BATCH;
    for (size_t i = 0; i < n; i++)
        keys[i].data = rm.StringPtrLen(items[i], &keys[i].len);
    value_digests(v, keys, n, digests);
    return n;
}

/* ---- adding ---------------------------------------------------------------------------------- */

/* CF.ADD always adds. The array of CF.INSERTNX has numbers in RESP3 too. */
static void reply_added(RedisModuleCtx *ctx, const struct adding *a, bool fresh)
{
    if (a->dialect == CF && a->nx && a->many)
        rm.ReplyWithLongLong(ctx, fresh);
    else
        rm.ReplyWithBool(ctx, fresh || (a->dialect == CF && !a->nx));
}

/* Replies for an item that was not added. CF commands for several items reply -1, or false, for each. */
static void reply_refused(RedisModuleCtx *ctx, const struct adding *a, const struct value *v,
                          tamis_error e)
{
    server.refused++;
    bool numbers = a->nx || !(rm.GetContextFlags(ctx) & RM_FLAG_RESP3);
    if (a->dialect != CF)
        reply_failure(ctx, v, e, NULL);
    else if (!a->many)
        rm.ReplyWithError(ctx, e == TAMIS_ENOMEM ? "ERR Insufficient memory" : "Filter is full");
    else if (numbers)
        rm.ReplyWithLongLong(ctx, -1);
    else
        rm.ReplyWithBool(ctx, false);
}

static tamis_error add_to_cuckoo(RedisModuleCtx *ctx, const struct adding *a, struct value *v,
                                 const char *item, size_t len, bool *fresh)
{
    size_t was = foreign_bytes(v->foreign);
    tamis_error e = TAMIS_OK;
    *fresh = !a->nx || !cuckoo_has(v->foreign, item, len);
    if (*fresh)
        e = cuckoo_add(&v->foreign, item, len, follows(ctx) ? UINT64_MAX : value_limit());
    value_took(foreign_bytes(v->foreign) - was);
    return e;
}

static tamis_error add_to_foreign(RedisModuleCtx *ctx, const struct adding *a, struct value *v,
                                  const char *item, size_t len, bool *fresh)
{
    if (v->deletable)
        return add_to_cuckoo(ctx, a, v, item, len, fresh);
    bool full = foreign_full(ctx, v), there = foreign_has(v->foreign, item, len);
    if (!there && v->set && (a->nx || full))
        there = tamis_filter_has(as_filter(v->set), item, len);
    if (there || full)
        return there ? TAMIS_OK : TAMIS_EFULL;
    return tamis_filter_add(as_filter(v->set), item, len, fresh);
}

/* Adds the next item. */
static inline tamis_error add_one(RedisModuleCtx *ctx, const struct adding *a, struct value *v,
                                  bool *fresh)
{
    size_t len;
    const char *item = rm.StringPtrLen(a->items[a->added], &len);
    if (v->foreign)
        return add_to_foreign(ctx, a, v, item, len, fresh);
    if (a->nx && value_has(v, item, len))
        return TAMIS_OK;
    return value_add(v, item, len, fresh);
}

/* Replicas ignore memory limits: what the master accepted must fit here. Returns the limit if it was suspended:
   try again, then restore it. */
static uint64_t limit_aside(RedisModuleCtx *ctx, struct value *v, tamis_error e)
{
    if (e != TAMIS_ESPACE || !follows(ctx))
        return 0;
    struct set *set = value_set(v);
    if (set)
        value_set_keep(v, set);
    uint64_t limit = set ? set_memory_limit(set) : 0;
    return limit && set_limit(set, 0) == TAMIS_OK ? limit : 0;
}

/* Adds the next item and replies. The one that outgrows the small form changes the value even if it seems to be there
   already: it may be a false positive of the new form. */
static inline tamis_error add_next(RedisModuleCtx *ctx, struct adding *a, struct value *v)
{
    bool fresh = false, small = v->small;
    tamis_error e = add_one(ctx, a, v, &fresh);
    if (UNLIKELY(e != TAMIS_OK)) {
        uint64_t limit = limit_aside(ctx, v, e);
        if (limit) {
            e = add_one(ctx, a, v, &fresh);
            set_limit(v->set, limit);
        }
        if (e != TAMIS_OK)
            return e;
    }
    a->changed |= fresh || (!a->nx && (v->deletable || v->growth == TAMIS_WINDOW)) ||
                  small != (v->small != NULL);
    a->added++;
    reply_added(ctx, a, fresh);
    return TAMIS_OK;
}

/* The same for the next items, at most ITEMS_BATCH. */
static __attribute__((noinline)) tamis_error add_batch(RedisModuleCtx *ctx, struct adding *a,
                                                       struct value *v)
{
    tamis_digest digests[ITEMS_BATCH];
    uint8_t fresh[ITEMS_BATCH];
    bool small = v->small;
    size_t some = digest_batch(v, a->items + a->added, a->n - a->added, digests), done;
    tamis_error e = value_add_many(v, digests, some, fresh, &done);
    uint64_t limit = done == 0 ? limit_aside(ctx, v, e) : 0;
    if (limit) {
        e = value_add_many(v, digests, some, fresh, &done);
        set_limit(v->set, limit);
    }
    for (size_t i = 0; i < done; i++) {
        a->changed |= fresh[i] || v->deletable || v->growth == TAMIS_WINDOW;
        reply_added(ctx, a, fresh[i]);
    }
    a->changed |= small != (v->small != NULL);
    a->added += done;
    return e;
}

/* Adds all items and replies; returns the number of replies. */
static inline long add_all(RedisModuleCtx *ctx, struct adding *a, struct value *v)
{
    tamis_error e;
    size_t before;
    bool batch = a->n > 1 && !a->nx && !v->foreign;
    do { /* an error within a batch recurs with the next one, if it persists */
        before = a->added;
        e = batch ? add_batch(ctx, a, v) : add_next(ctx, a, v);
    } while (a->added < a->n && a->added > before);
    if (LIKELY(a->added == a->n))
        return (long)a->n;
    size_t refused = a->dialect == CF ? a->n - a->added : 1;
    for (size_t i = 0; i < refused; i++)
        reply_refused(ctx, a, v, e);
    return (long)(a->added + refused);
}

static bool growth_clocked(tamis_growth growth)
{
    return growth == TAMIS_WINDOW || growth == TAMIS_FLEXIBLE;
}

/* With NX, the replica skips the same items as this server. */
static void replicate_timed_add(RedisModuleCtx *ctx, const struct adding *a)
{
    long long at = (long long)value_clock(NULL);
    if (a->nx)
        rm.Replicate(ctx, "TAMIS.INSERT", "sccclcv", a->name, "NOCREATE", "NX", "AT", at, "ITEMS",
                     a->items, a->added);
    else
        rm.Replicate(ctx, "TAMIS.INSERT", "scclcv", a->name, "NOCREATE", "AT", at, "ITEMS",
                     a->items, a->added);
}

/* Replicates the command unchanged if all its items were added and it has no options: RM_Replicate looks up
   the name of a command and builds its arguments, which takes 2,300 instructions, half as many as a whole
   BF.ADD. Otherwise replicates the items that were added, and the time if the filter has a clock. */
static void replicate_add(RedisModuleCtx *ctx, const struct adding *a, tamis_growth growth,
                          bool as_it_came)
{
    if (a->changed && growth_clocked(growth))
        replicate_timed_add(ctx, a);
    else if (a->changed && as_it_came && a->added == a->n)
        rm.ReplicateVerbatim(ctx);
    else if (a->changed && a->nx)
        rm.Replicate(ctx, "TAMIS.INSERT", "scccv", a->name, "NOCREATE", "NX", "ITEMS", a->items,
                     a->added);
    else if (a->changed && a->added == 1)
        rm.Replicate(ctx, "TAMIS.ADD", "ss", a->name, a->items[0]);
    else if (a->changed)
        rm.Replicate(ctx, "TAMIS.MADD", "sv", a->name, a->items, a->added);
    else if (growth == TAMIS_WINDOW && a->added == 0) /* expired vectors may have been dropped */
        rm.Replicate(ctx, "TAMIS.FORGET", "scl", a->name, "AT", (long long)value_clock(NULL));
}

static void add_to(RedisModuleCtx *ctx, struct adding *a, struct value *v, bool as_it_came)
{
    if (a->many)
        rm.ReplyWithArray(ctx, RM_POSTPONED);
    value_changes(v, true);
    long replies = add_all(ctx, a, v);
    if (a->many)
        rm.ReplySetArrayLength(ctx, replies);
    if (a->changed || a->added == 0) /* a window may have moved on */
        value_recount(v);
    replicate_add(ctx, a, v->growth, as_it_came);
    if (a->changed) {
        notify(ctx, "tamis.add", a->name);
        if (v->publication)
            publish_changes(ctx, v, a->name);
    }
}

static struct value *make_default(RedisModuleCtx *ctx, const struct adding *a, RedisModuleKey *key)
{
    struct creation c;
    creation_init(&c, WITH_INSERT | (a->dialect == CF ? WITH_CF : a->dialect == BF ? WITH_BF : 0));
    creation_settle(&c);
    return creation_make(ctx, &c, key, a->name);
}

/* Creates the set on top of a filter of RedisBloom if one of the items is not in the filter. Returns false
   if it has replied with an error. */
static bool top_ready(RedisModuleCtx *ctx, const struct adding *a, struct value *v)
{
    bool takes = v->foreign && !v->deletable && !v->set;
    bool needed = false, full = takes && foreign_full(ctx, v);
    for (size_t i = 0; takes && !full && i < a->n && !needed; i++) {
        size_t len;
        const char *item = rm.StringPtrLen(a->items[i], &len);
        needed = !foreign_has(v->foreign, item, len);
    }
    return !needed || top_make(ctx, v, a->name);
}

int add_items(RedisModuleCtx *ctx, struct adding *a, struct creation *c)
{
    const char *error;
    RedisModuleKey *key = rm.OpenKey(ctx, a->name, RM_READ | RM_WRITE);
    struct value *v = find_value(key, a->dialect == CF ? VALUE_DELETABLE : VALUE_ITEMS, &error);
    if (c || !v || v->publication || growth_clocked(v->growth)) /* reading the clock takes 25 ns */
        time_of_command(c ? c->at : 0);
    if (!v && (error || (c && c->nocreate)))
        rm.ReplyWithError(ctx, error ? error : NOT_FOUND);
    else if (!v)
        v = c ? creation_make(ctx, c, key, a->name) : make_default(ctx, a, key);
    if (v && top_ready(ctx, a, v))
        add_to(ctx, a, v, !c);
    rm.CloseKey(key);
    return RM_OK;
}

static int add_plainly(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, bool many,
                       enum command_dialect dialect)
{
    if (many ? argc < 3 : argc != 3)
        return rm.WrongArity(ctx);
    struct adding a = {.name = argv[1],
                       .items = argv + 2,
                       .n = (size_t)argc - 2,
                       .many = many,
                       .dialect = dialect};
    return add_items(ctx, &a, NULL);
}

COMMAND(command_add)
{
    return add_plainly(ctx, argv, argc, false, OURS);
}

COMMAND(command_madd)
{
    return add_plainly(ctx, argv, argc, true, OURS);
}

COMMAND(command_bf_add)
{
    return add_plainly(ctx, argv, argc, false, BF);
}

COMMAND(command_bf_madd)
{
    return add_plainly(ctx, argv, argc, true, BF);
}

static int insert(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, int with)
{
    WIPED_CREATION c;
    if (argc < 4)
        return rm.WrongArity(ctx);
    creation_init(&c, with);
    const char *error = creation_options(&c, argv, argc, 2);
    secret_redact_options(ctx, argv, argc);
    if (error)
        return rm.ReplyWithError(ctx, error);
    if (c.items == 0 || c.items == argc)
        return rm.WrongArity(ctx);
    struct adding a = {.name = argv[1],
                       .items = argv + c.items,
                       .n = (size_t)(argc - c.items),
                       .many = true,
                       .nx = c.nx};
    return add_items(ctx, &a, &c);
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

/* In a filter of RedisBloom, without the set on top. */
static bool in_foreign(const struct value *v, const RedisModuleString *item)
{
    size_t len;
    const char *text = rm.StringPtrLen(item, &len);
    return foreign_has(v->foreign, text, len);
}

static void reply_found(RedisModuleCtx *ctx, const struct value *v, RedisModuleString **items,
                        size_t n)
{
    tamis_digest digests[ITEMS_BATCH];
    uint8_t found[ITEMS_BATCH] = {0};
    for (size_t i = 0; i < n;) {
        size_t some = n - i < ITEMS_BATCH ? n - i : ITEMS_BATCH;
        if (v && (v->small || v->set)) {
            digest_batch(v, items + i, some, digests);
            value_have(v, digests, some, found);
        }
        for (size_t j = 0; j < some; j++)
            rm.ReplyWithBool(ctx, found[j] || (v && v->foreign && in_foreign(v, items[i + j])));
        i += some;
    }
}

/* The commands of RedisBloom treat a key of another type as empty, but not one that is still being loaded. */
static int ask_items(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, bool many, bool ours)
{
    const char *error;
    size_t len;
    if (many ? argc < 3 : argc != 3)
        return rm.WrongArity(ctx);
    RedisModuleKey *key = rm.OpenKey(ctx, argv[1], RM_READ);
    const struct value *v = find_value(key, VALUE_ITEMS, &error);
    if (error && (ours || strcmp(error, WRONG_TYPE) != 0)) {
        rm.ReplyWithError(ctx, error);
    } else if (many) {
        rm.ReplyWithArray(ctx, argc - 2);
        reply_found(ctx, v, argv + 2, (size_t)argc - 2);
    } else {
        const char *item = rm.StringPtrLen(argv[2], &len);
        bool found = v && (v->small || v->set) && value_has(v, item, len);
        rm.ReplyWithBool(ctx, found || (v && v->foreign && foreign_has(v->foreign, item, len)));
    }
    rm.CloseKey(key);
    return RM_OK;
}

COMMAND(command_exists)
{
    return ask_items(ctx, argv, argc, false, true);
}

COMMAND(command_mexists)
{
    return ask_items(ctx, argv, argc, true, true);
}

COMMAND(command_bf_exists)
{
    return ask_items(ctx, argv, argc, false, false);
}

COMMAND(command_bf_mexists)
{
    return ask_items(ctx, argv, argc, true, false);
}

/* ---- removing -------------------------------------------------------------------------------- */

const long long removal_replies[3] = {[TAMIS_REMOVED] = 1, [TAMIS_ABSENT] = 0, [TAMIS_PENDING] = 2};

/* Removes up to ITEMS_BATCH items; returns how many were processed. */
static size_t remove_batch(struct value *v, RedisModuleString **items, size_t n, uint8_t *outcomes,
                           tamis_error *e)
{
    tamis_digest digests[ITEMS_BATCH];
    size_t len, done = 0;
    if (!v->foreign) {
        n = digest_batch(v, items, n, digests);
        *e = tamis_filter_remove_many(as_filter(v->set), digests, n, outcomes, &done);
        return done;
    }
    for (; done < n && done < ITEMS_BATCH; done++) {
        const char *item = rm.StringPtrLen(items[done], &len);
        outcomes[done] = cuckoo_remove(v->foreign, item, len) ? TAMIS_REMOVED : TAMIS_ABSENT;
    }
    return done;
}

/* Removes the items and replies; stores those that changed the filter in `changed` and returns their number. */
static size_t remove_all(RedisModuleCtx *ctx, struct value *v, RedisModuleString **items, size_t n,
                         RedisModuleString **changed, long *replies, enum command_dialect dialect)
{
    uint8_t outcomes[ITEMS_BATCH];
    size_t all = 0, m = 0;
    tamis_error e = TAMIS_OK;
    while (e == TAMIS_OK && all < n) {
        size_t done = remove_batch(v, items + all, n - all, outcomes, &e);
        for (size_t i = 0; i < done; i++) {
            if (dialect == CF)
                rm.ReplyWithBool(ctx, outcomes[i] != TAMIS_ABSENT);
            else
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
    if (v->growth == TAMIS_FLEXIBLE) /* emptying the filter restarts its clock */
        rm.Replicate(ctx, "TAMIS.REMOVE", "sclcv", name, "AT", (long long)value_clock(NULL),
                     "ITEMS", items, n);
    else
        rm.Replicate(ctx, "TAMIS.MDEL", "sv", name, items, n);
}

static const char *not_removable(const struct value *v, const char *error,
                                 enum command_dialect dialect)
{
    if (dialect == CF)
        return v ? NULL : error && strcmp(error, WRONG_TYPE) != 0 ? error : "Not found";
    return !v || v->deletable ? error
           : v->foreign       ? NOT_CONVERTED
                              : "ERR the filter is not deletable: make it with DELETABLE";
}

int remove_items(RedisModuleCtx *ctx, RedisModuleString *name, RedisModuleString **items, size_t n,
                 bool many, enum command_dialect dialect)
{
    const char *error;
    RedisModuleKey *key = rm.OpenKey(ctx, name, RM_READ | RM_WRITE);
    struct value *v = find_value(key, dialect == CF ? VALUE_DELETABLE : VALUE_ITEMS, &error);
    size_t m = 0;
    error = not_removable(v, error, dialect);
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
            m = remove_all(ctx, v, items, n, changed, &replies, dialect);
        for (size_t i = 0; !v && i < n; i++)
            rm.ReplyWithLongLong(ctx, 0);
        if (many)
            rm.ReplySetArrayLength(ctx, replies);
    }
    if (m) {
        value_recount(v);
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
    return remove_items(ctx, argv[1], argv + 2, 1, false, OURS);
}

COMMAND(command_mdel)
{
    if (argc < 3)
        return rm.WrongArity(ctx);
    time_of_command(0);
    return remove_items(ctx, argv[1], argv + 2, (size_t)argc - 2, true, OURS);
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
    return remove_items(ctx, argv[1], argv + items + 1, (size_t)(argc - items) - 1, true, OURS);
}
