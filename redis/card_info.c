/* CARD and INFO. */
#include "foreign.h"

/* The items of the filter, or of a filter of RedisBloom and the set on top of it. */
static uint64_t items_of(const struct value *v)
{
    return top_items(v) + (v->foreign ? v->foreign->items : 0);
}

/* The figures of BF.INFO for a filter of RedisBloom and the set on top of it. */
static void facts_of(const struct value *v, tamis_filter_facts *facts)
{
    *facts = (tamis_filter_facts){0};
    if (v->set)
        set_brief(v->set, facts);
    if (v->small) {
        facts->items = small_items(v->small, &facts->vectors);
        facts->capacity = facts->capacity > facts->items ? facts->capacity : facts->items;
    }
    struct foreign *f = v->foreign;
    if (!f)
        return;
    bool scales = foreign_scales(f);
    facts->growth = scales ? TAMIS_SCALABLE : TAMIS_FIXED;
    facts->expansion = f->growth;
    facts->items = items_of(v);
    facts->capacity = foreign_capacity(f) + (scales ? facts->capacity : 0);
    facts->vectors += f->n;
    facts->fpp += v->set ? foreign_rate_now(f) : foreign_rate(f);
}

COMMAND(command_card)
{
    RedisModuleKey *key;
    bool replied;
    if (argc != 2)
        return rm.WrongArity(ctx);
    const struct value *v = find_kind(ctx, argv[1], VALUE_ITEMS, &key, &replied);
    if (!replied)
        rm.ReplyWithLongLong(ctx, v ? (long long)items_of(v) : 0);
    rm.CloseKey(key);
    return RM_OK;
}

/* ---- BF.INFO: five figures by their names ---------------------------------------------------- */

enum { FIGURES = 5, EXPANSION = 4, ERROR_RATE = 5, TIGHTENING = 6, MOST = 7, FIGURE_WORDS = 8 };

/* The last three belong to valkey-bloom, and are only returned if requested by name: clients of
   RedisBloom know five. Since the rate is the total, the tightening ratio is 1. */
static const char *const figure_names[FIGURE_WORDS] = {
    "Capacity",       "Size",       "Number of filters", "Number of items inserted",
    "Expansion rate", "Error rate", "Tightening ratio",  "Max scaled capacity"};
static const char *const figure_words[FIGURE_WORDS] = {
    "CAPACITY",  "SIZE",  "FILTERS",    "ITEMS",
    "EXPANSION", "ERROR", "TIGHTENING", "MAXSCALEDCAPACITY"};

static void reply_figure(RedisModuleCtx *ctx, const struct value *v, const tamis_filter_facts *info,
                         int i)
{
    long long figures[FIGURES] = {(long long)info->capacity, (long long)value_bytes(v),
                                  info->vectors ? info->vectors : 1, (long long)info->items,
                                  info->expansion > 0 ? (long long)info->expansion : 2};
    if (i == EXPANSION && info->growth == TAMIS_FIXED)
        rm.ReplyWithNull(ctx);
    else if (i == ERROR_RATE || i == TIGHTENING)
        rm.ReplyWithDouble(ctx, i == ERROR_RATE ? info->fpp : 1);
    else if (i == MOST)
        rm.ReplyWithLongLong(ctx, (long long)creation_scales_to(info->fpp, info->memory_limit));
    else
        rm.ReplyWithLongLong(ctx, figures[i]);
}

static void reply_bf_info(RedisModuleCtx *ctx, struct value *v, RedisModuleString **argv, int argc)
{
    int which = 0;
    tamis_filter_facts info;
    facts_of(v, &info);
    while (argc == 3 && which < FIGURE_WORDS && !is_word(argv[2], figure_words[which]))
        which++;
    bool grows = info.growth != TAMIS_FIXED && info.memory_limit;
    if (which == FIGURE_WORDS || (which == MOST && !grows)) {
        rm.ReplyWithError(ctx, "Invalid information value");
    } else if (argc == 3) {
        if (rm.GetContextFlags(ctx) & RM_FLAG_RESP3) {
            rm.ReplyWithMap(ctx, 1);
            rm.ReplyWithSimpleString(ctx, figure_names[which]);
        } else {
            rm.ReplyWithArray(ctx, 1);
        }
        reply_figure(ctx, v, &info, which);
    } else {
        rm.ReplyWithMap(ctx, FIGURES);
        for (int i = 0; i < FIGURES; i++) {
            rm.ReplyWithSimpleString(ctx, figure_names[i]);
            reply_figure(ctx, v, &info, i);
        }
    }
}

/* The facts of a small filter are those of its set without the keys of lines, and their number. */
COMMAND(command_bf_info)
{
    RedisModuleKey *key;
    bool replied;
    if (argc != 2 && argc != 3)
        return rm.WrongArity(ctx);
    const struct value *v = find_kind(ctx, argv[1], VALUE_ITEMS, &key, &replied);
    struct value shown = v ? *v : (struct value){0};
    if (v && v->small)
        shown.set = small_start(v->small);
    if (v && v->small && !shown.set)
        reply_failure(ctx, v, TAMIS_ENOMEM, NULL);
    else if (v)
        reply_bf_info(ctx, &shown, argv, argc);
    else if (!replied)
        rm.ReplyWithError(ctx, NOT_FOUND);
    if (v && v->small)
        set_free(shown.set);
    rm.CloseKey(key);
    return RM_OK;
}

/* ---- TAMIS.INFO: the names that `tamis info --json` uses -------------------------------------- */

void say_text(RedisModuleCtx *ctx, const char *name, const char *text)
{
    rm.ReplyWithSimpleString(ctx, name);
    rm.ReplyWithSimpleString(ctx, text);
}

void say_count(RedisModuleCtx *ctx, const char *name, uint64_t n)
{
    rm.ReplyWithSimpleString(ctx, name);
    rm.ReplyWithLongLong(ctx, (long long)n);
}

static void say_flag(RedisModuleCtx *ctx, const char *name, bool flag)
{
    rm.ReplyWithSimpleString(ctx, name);
    rm.ReplyWithBool(ctx, flag);
}

void say_real(RedisModuleCtx *ctx, const char *name, bool known, double x)
{
    rm.ReplyWithSimpleString(ctx, name);
    if (known)
        rm.ReplyWithDouble(ctx, x);
    else
        rm.ReplyWithNull(ctx);
}

/* Replies with the stream and with the version that this server published last; null if there is none. */
static void say_publication(RedisModuleCtx *ctx, const struct publication *p)
{
    tamis_origin_facts facts = {0};
    if (p && p->origin)
        tamis_origin_info(p->origin, &facts);
    rm.ReplyWithSimpleString(ctx, "published");
    if (p)
        rm.ReplyWithStringBuffer(ctx, p->stream.data, p->stream.len);
    else
        rm.ReplyWithNull(ctx);
    rm.ReplyWithSimpleString(ctx, "version");
    if (p && p->origin)
        rm.ReplyWithLongLong(ctx, (long long)facts.version);
    else
        rm.ReplyWithNull(ctx);
}

void say_set(RedisModuleCtx *ctx, const struct value *v, const tamis_filter_facts *i)
{
    bool records = v->kind == VALUE_RECORDS;
    say_text(ctx, "kind", records ? "records" : "filter");
    say_text(ctx, "growth", growth_names[i->growth]);
    say_text(ctx, "layout", layout_names[i->layout]);
    say_text(ctx, "hash", hash_names[i->hash]);
    say_flag(ctx, "deletable", i->deletable);
    say_count(ctx, records ? "records" : "items", i->items);
    say_count(ctx, "capacity", i->capacity);
    say_count(ctx, "bytes", value_bytes(v));
    say_count(ctx, "memory_limit", i->memory_limit);
    say_count(ctx, "pending", i->pending);
    say_real(ctx, "fpp", i->fpp > 0, i->fpp);
}

/* The facts of the set. Estimates read every bit of the vectors of a plain filter, at best 10 GB per second: if the
   filter is too large, it returns false without them. Deletable vectors have counts, and lines are sampled. */
static bool estimate(const struct value *v, tamis_filter_facts *i)
{
    const tamis_filter *filter = as_filter(v->set);
    tamis_filter_brief(filter, i);
    bool read = i->deletable || i->bytes <= 4 * (uint64_t)server.work_limit;
    if (read)
        tamis_filter_info(filter, i);
    return read;
}

static void reply_foreign(RedisModuleCtx *ctx, const struct value *v)
{
    tamis_filter_facts facts, top = {0};
    facts_of(v, &facts);
    bool read = !v->set || estimate(v, &top);
    rm.ReplyWithMap(ctx, 9);
    say_text(ctx, "kind", v->deletable ? "redisbloom cuckoo" : "redisbloom");
    say_text(ctx, "growth", growth_names[facts.growth]);
    say_count(ctx, "items", facts.items);
    say_count(ctx, "on_top", top.items);
    say_count(ctx, "capacity", facts.capacity);
    say_count(ctx, "vectors", facts.vectors);
    say_count(ctx, "bytes", value_bytes(v));
    say_real(ctx, "fpp", true, facts.fpp);
    say_real(ctx, "fpp_now", read, read ? foreign_rate_now(v->foreign) + top.fpp_now : 0);
}

static void reply_info(RedisModuleCtx *ctx, struct value *v, RedisModuleString **argv, int argc)
{
    (void)argv, (void)argc;
    if (v->foreign) {
        reply_foreign(ctx, v);
        return;
    }
    tamis_filter_facts i;
    bool read = estimate(v, &i);
    rm.ReplyWithMap(ctx, SAY_SET + 11);
    say_set(ctx, v, &i);
    say_flag(ctx, "unique", i.unique);
    say_flag(ctx, "read_only", i.read_only);
    say_count(ctx, "bits", i.bits);
    say_count(ctx, "vectors", i.vectors);
    say_count(ctx, "hashes", i.hashes);
    say_real(ctx, "window", i.window > 0, (double)i.window / 1e9);
    say_real(ctx, "distinct", read, i.distinct);
    say_real(ctx, "fpp_now", read, i.fpp_now);
    say_real(ctx, "fill", read, i.fill);
    say_publication(ctx, v->publication);
}

COMMAND(command_info)
{
    return argc != 2 ? rm.WrongArity(ctx)
                     : with_value(ctx, argv, argc, VALUE_ITEMS, RM_READ, reply_info);
}
