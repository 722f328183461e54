/* What commands share: finding the value of a key, and error replies. */
#include "foreign.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

const char no_memory[] = "OOM the server has no memory for this value";

/* Is it the expected kind of value? Returns NULL, or what to reply. */
static const char *not_wanted(const struct value *v, enum value_kind kind)
{
    if (v->kind == VALUE_FILTER && (kind == VALUE_ITEMS || kind == VALUE_FILTER))
        return NULL; /* the usual case */
    if (kind == VALUE_PARTIAL)
        return v->kind == kind ? NULL : WRONG_TYPE;
    if (v->kind == VALUE_PARTIAL || (v->foreign && v->foreign->missing))
        return "ERR this value is still being loaded: continue with TAMIS.LOAD, or DEL it";
    if (v->kind == VALUE_FOREIGN && kind != VALUE_ITEMS && kind != VALUE_DELETABLE)
        return v->deletable
                   ? "ERR this is a cuckoo filter of RedisBloom, for adding, asking and removing"
                   : NOT_CONVERTED;
    bool filter = v->kind == VALUE_FILTER || v->foreign;
    bool good = v->kind == kind || kind == VALUE_ANY || (kind == VALUE_ITEMS && filter) ||
                (kind == VALUE_DELETABLE && filter && v->deletable);
    return good ? NULL : WRONG_TYPE;
}

struct value *find_value(RedisModuleKey *key, enum value_kind kind, const char **error)
{
    const RedisModuleType *of =
        rm.ModuleTypeGetType(key); /* NULL: no key, or a type of the server */
    if (!of || (of != type && of != foreign_type && of != cuckoo_type)) {
        *error = rm.KeyType(key) == RM_KEY_EMPTY ? NULL : WRONG_TYPE;
        return NULL;
    }
    struct value *v = rm.ModuleTypeGetValue(key);
    copy_wait(v, true);
    *error = not_wanted(v, kind);
    return *error ? NULL : v;
}

struct value *find_kind(RedisModuleCtx *ctx, RedisModuleString *name, enum value_kind kind,
                        RedisModuleKey **key, bool *replied)
{
    const char *error;
    *key = rm.OpenKey(ctx, name, RM_READ);
    struct value *v = find_value(*key, kind, &error);
    *replied = error != NULL;
    if (error)
        rm.ReplyWithError(ctx, error);
    return v;
}

/* Reports on a small filter: `run` gets the set that it represents. */
static void with_small(RedisModuleCtx *ctx, const struct value *v, RedisModuleString **argv,
                       int argc, value_fn run)
{
    struct value shown = *v;
    shown.set = small_whole(v->small);
    if (shown.set)
        run(ctx, &shown, argv, argc);
    else
        rm.ReplyWithError(ctx, no_memory);
    set_free(shown.set);
}

int with_value(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, enum value_kind kind,
               int mode, value_fn run)
{
    const char *error;
    RedisModuleKey *key = rm.OpenKey(ctx, argv[1], mode);
    struct value *v = find_value(key, kind, &error);
    if (v && v->small)
        with_small(ctx, v, argv, argc, run);
    else if (v)
        run(ctx, v, argv, argc);
    else
        rm.ReplyWithError(ctx, error ? error : NOT_FOUND);
    rm.CloseKey(key);
    return RM_OK;
}

bool follows(RedisModuleCtx *ctx)
{
    return rm.GetContextFlags(ctx) & (RM_FLAG_REPLICATED | RM_FLAG_LOADING);
}

int reply_printf(RedisModuleCtx *ctx, const char *format, ...)
{
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (char *p = text; *p; p++)
        if (*p == '\r' || *p == '\n')
            *p = ' ';
    return rm.ReplyWithError(ctx, text);
}

static int reply_full(RedisModuleCtx *ctx, const struct value *v)
{
    unsigned long long held = 0;
    bool records = v && v->kind == VALUE_RECORDS;
    /* the wording that clients of BF.* know */
    if (v && (v->growth == TAMIS_FIXED || v->foreign) && !records)
        return rm.ReplyWithError(ctx, "ERR non scaling filter is full");
    if (v && v->set) {
        tamis_filter_facts facts;
        set_brief(v->set, &facts);
        held = facts.capacity;
    }
    return reply_printf(ctx,
                        "ERR the %s is full: it holds the %llu %s it was made for; make a larger "
                        "one",
                        records ? "set of records" : "filter", held, records ? "records" : "keys");
}

static int reply_space(RedisModuleCtx *ctx, const struct value *v)
{
    struct set *set = v ? value_set(v) : NULL;
    uint64_t limit = set ? set_memory_limit(set) : 0;
    if (v)
        value_set_back(v, set);
    return reply_printf(
        ctx,
        "ERR the value may not grow past its limit of %llu bytes: spread the keys over several, or "
        "make one with a larger MAXMEM (tamis.value-limit bounds it)",
        (unsigned long long)limit);
}

int reply_failure(RedisModuleCtx *ctx, const struct value *v, tamis_error e,
                  const tamis_reason *reason)
{
    switch (e) {
    case TAMIS_EFULL:
        return reply_full(ctx, v);
    case TAMIS_ESPACE:
        return reply_space(ctx, v);
    case TAMIS_ENOMEM:
        return rm.ReplyWithError(ctx, no_memory);
    case TAMIS_EFAMILY:
        return rm.ReplyWithError(ctx, "ERR the values belong to different families: make one LIKE "
                                      "the other, or share tamis.family-key");
    case TAMIS_ERATE:
        return rm.ReplyWithError(
            ctx, "ERR the result would break the stated rate: add RESTATE to state the new one");
    case TAMIS_EREADONLY:
        return rm.ReplyWithError(ctx, "ERR the value is read-only: it was saved as bits only");
    default:
        break;
    }
    const char *text = reason && reason->text[0] ? reason->text : tamis_error_text(e);
    return reply_printf(ctx, "ERR %s", text);
}

bool is_word(const RedisModuleString *s, const char *word)
{
    size_t len;
    const char *text = rm.StringPtrLen(s, &len);
    return len == strlen(word) && strncasecmp(text, word, len) == 0;
}

bool too_much(RedisModuleCtx *ctx, uint64_t bytes, const char *advice)
{
    if (bytes <= (uint64_t)server.work_limit || follows(ctx))
        return false;
    reply_printf(ctx,
                 "ERR %llu bytes at once would block the server; tamis.work-limit allows %lld. %s",
                 (unsigned long long)bytes, server.work_limit, advice);
    return true;
}

void put_value(RedisModuleKey *key, struct value *v)
{
    void *old = NULL;
    value_recount(v);
    if (rm.KeyType(key) == RM_KEY_EMPTY) {
        rm.ModuleTypeSetValue(key, type, v);
        value_settle(v, false);
    } else {
        rm.ModuleTypeReplaceValue(key, type, v, &old);
        struct value *was = old;
        if (was->publication &&
            v->kind == VALUE_FILTER) { /* publishing continues, with a snapshot of the new filter */
            tamis_origin_free(was->publication->origin);
            was->publication->origin = NULL;
            v->publication = was->publication;
            was->publication = NULL;
        }
        value_free(was);
        value_settle(v, false);
    }
}
