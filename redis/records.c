/*
 * Records: XRESERVE, XADD, XDEL, XQUERY, XINFO. A record is given as attribute=value pairs, in any
 * order; an attribute that is not given is missing, which is a value of its own (attribute! in a
 * query). Only growths without a clock are offered, so that a record is replicated as it was given.
 */
#include "module.h"

#include <string.h>
#include <strings.h>

/* ---- making ---------------------------------------------------------------------------------- */

struct reservation {
    struct creation c;
    tamis_attribute attributes[TAMIS_ATTRIBUTES_MAX];
    char names[TAMIS_ATTRIBUTES_MAX][256];
    size_t n;
    uint64_t combos[TAMIS_COMBOS_MAX];
    size_t n_combos;
    bool no_combos;
    tamis_verifier verifier;
    RedisModuleString **argv; /* of the command */
    int argc;
};

/* After a colon: a type, or the expected number of distinct values. */
static bool read_suffix(tamis_attribute *a, const char *text, size_t len)
{
    for (int i = 0; i < TAMIS_TYPES; i++) {
        const char *name = tamis_type_name((tamis_type)i);
        if (strlen(name) == len && strncasecmp(text, name, len) == 0) {
            a->type = (tamis_type)i;
            return true;
        }
    }
    uint64_t n = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9' || n > UINT64_MAX / 16)
            return false;
        n = 10 * n + (uint64_t)(text[i] - '0');
    }
    a->distinct = n;
    return len > 0 && n > 0;
}

/* name[:type][:distinct] */
static const char *read_attribute(struct reservation *p, const RedisModuleString *s)
{
    size_t len;
    const char *text = rm.StringPtrLen(s, &len), *end = text + len;
    const char *colon = memchr(text, ':', len);
    size_t name = colon ? (size_t)(colon - text) : len;
    tamis_attribute *a = &p->attributes[p->n];
    if (name == 0 || name > 255 || memchr(text, 0, name) || memchr(text, '=', name) ||
        memchr(text, '+', name) || memchr(text, '!', name))
        return "ERR an attribute has a name of 1 to 255 bytes without = + ! and NUL";
    memcpy(p->names[p->n], text, name);
    p->names[p->n][name] = 0;
    *a = (tamis_attribute){.name = p->names[p->n]};
    while (colon) {
        const char *from = colon + 1;
        colon = memchr(from, ':', (size_t)(end - from));
        if (!read_suffix(a, from, (size_t)((colon ? colon : end) - from)))
            return "ERR after the name of an attribute come a type, as in :int, and :distinct "
                   "values";
    }
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->names[i], p->names[p->n]) == 0)
            return "ERR two attributes have the same name";
    p->n++;
    return NULL;
}

/* a+b: a set of attributes */
static const char *read_combo(struct reservation *p, const RedisModuleString *s)
{
    size_t len;
    const char *text = rm.StringPtrLen(s, &len), *end = text + len;
    uint64_t mask = 0;
    if (p->n_combos == TAMIS_COMBOS_MAX)
        return "ERR at most 63 combinations";
    for (const char *from = text; from <= end;) {
        const char *plus = memchr(from, '+', (size_t)(end - from));
        size_t part = (size_t)((plus ? plus : end) - from), i = 0;
        while (i < p->n && (strlen(p->names[i]) != part || memcmp(p->names[i], from, part) != 0))
            i++;
        if (i == p->n)
            return "ERR COMBO is names of attributes with + between them";
        mask |= UINT64_C(1) << i;
        from += part + 1;
    }
    p->combos[p->n_combos++] = mask;
    return NULL;
}

static const char *read_plan(struct reservation *p, RedisModuleString **argv, int argc)
{
    long long n;
    const char *error = creation_rate(&p->c, argv[2]);
    if (!error)
        error = creation_capacity(&p->c, argv[3]);
    if (error)
        return error;
    if (!is_word(argv[4], "ATTRIBUTES") || rm.StringToLongLong(argv[5], &n) != RM_OK || n < 1 ||
        n > TAMIS_ATTRIBUTES_MAX || n > argc - 6)
        return "ERR after the capacity come ATTRIBUTES, their number (1 to 64) and their names";
    for (int i = 0; i < n && !error; i++)
        error = read_attribute(p, argv[6 + i]);
    for (int i = (int)n + 6; i < argc && !error;) {
        bool last = i + 1 == argc;
        if (is_word(argv[i], "COMBO") && !last) {
            error = read_combo(p, argv[i + 1]);
            i += 2;
        } else if (is_word(argv[i], "NOCOMBOS")) {
            p->no_combos = true;
            i++;
        } else if (is_word(argv[i], "VERIFIER") && !last) {
            p->verifier = (tamis_verifier)word_of(argv[i + 1], verifier_names, 4);
            if (!p->verifier)
                error = "ERR VERIFIER is none, table or filter";
            i += 2;
        } else {
            error = creation_one(&p->c, argv, argc, &i);
        }
    }
    if (!error)
        error = creation_settle(&p->c);
    if (!error && p->c.o.growth > TAMIS_SCALABLE)
        error = "ERR records grow fixed, dynamic or scalable";
    return error;
}

/* As given, plus what the server added: rate and capacity are always included. */
void records_replicate(RedisModuleCtx *ctx, const struct reservation *p)
{
    RedisModuleString **argv = p->argv + 1;
    size_t n = (size_t)p->argc - 1;
    WIPED_HEX key[KEY_HEX];
    const tamis_options *o = &p->c.o;
    const char *word = creation_key_word(ctx, &p->c);
    key_to_hex(o->key, key);
    if (follows(ctx)) /* the command is complete already */
        rm.Replicate(ctx, "TAMIS.XRESERVE", "v", argv, n);
    else if (o->expansion > 0)
        rm.Replicate(ctx, "TAMIS.XRESERVE", "vccclclcl", argv, n, word, key, "MAXMEM",
                     (long long)o->memory_limit, "EXPANSION", (long long)o->expansion, "AT",
                     (long long)value_clock(NULL));
    else
        rm.Replicate(ctx, "TAMIS.XRESERVE", "vccclcl", argv, n, word, key, "MAXMEM",
                     (long long)o->memory_limit, "AT", (long long)value_clock(NULL));
}

tamis_error records_make(const struct reservation *p, struct set **out, tamis_reason *reason)
{
    const tamis_records_options x = {
        .attributes = p->attributes,
        .n_attributes = p->n,
        .combos = p->combos,
        .n_combos = p->n_combos,
        .no_combos = p->no_combos,
        .verifier = p->verifier,
        .set = p->c.o,
    };
    tamis_records *records = NULL;
    tamis_error e = tamis_records_new(&records, &x, reason);
    *out = records_set(records);
    return e;
}

COMMAND(command_xreserve)
{
    if (argc < 7)
        return rm.WrongArity(ctx);
    struct reservation *p = rm.TryAlloc(sizeof *p); /* names take 18 KB */
    if (!p)
        return reply_failure(ctx, NULL, TAMIS_ENOMEM, NULL);
    memset(p, 0, sizeof *p);
    creation_init(&p->c, WITH_RECORDS);
    p->c.records = p;
    p->argv = argv;
    p->argc = argc;
    const char *error = read_plan(p, argv, argc);
    if (error) {
        rm.ReplyWithError(ctx, error);
    } else {
        time_of_command(p->c.at);
        creation_reserve(ctx, &p->c, argv[1], VALUE_ANY);
    }
    secret_redact_options(ctx, argv, argc); /* once argv was replicated */
    creation_wipe(&p->c);
    rm.Free(p);
    return RM_OK;
}

/* ---- pairs ----------------------------------------------------------------------------------- */

/* attribute=value or attribute! ; false if it has replied. */
static bool read_pair(RedisModuleCtx *ctx, const tamis_records *records, const RedisModuleString *s,
                      uint32_t *attribute, tamis_key *value)
{
    char name[256];
    tamis_reason reason = {0};
    size_t len;
    const char *text = rm.StringPtrLen(s, &len), *sign = memchr(text, '=', len);
    size_t n = sign ? (size_t)(sign - text) : len - 1;
    if (len == 0 || (!sign && text[len - 1] != '!') || n > 255) {
        rm.ReplyWithError(ctx, "ERR a pair is attribute=value, or attribute! where it is missing");
        return false;
    }
    memcpy(name, text, n);
    name[n] = 0;
    if (strlen(name) != n ||
        tamis_records_attribute(records, name, attribute, &reason) != TAMIS_OK) {
        reply_printf(ctx, "ERR %s", reason.text[0] ? reason.text : "no such attribute");
        return false;
    }
    *value = sign ? (tamis_key){sign + 1, len - n - 1} : (tamis_key){NULL, 0};
    return true;
}

/* One value per attribute; false if it has replied. */
static bool read_record(RedisModuleCtx *ctx, const tamis_records *records,
                        RedisModuleString **pairs, int n, tamis_key record[TAMIS_ATTRIBUTES_MAX])
{
    uint64_t seen = 0;
    memset(record, 0, TAMIS_ATTRIBUTES_MAX * sizeof *record);
    for (int i = 0; i < n; i++) {
        uint32_t a;
        tamis_key value;
        if (!read_pair(ctx, records, pairs[i], &a, &value))
            return false;
        if (seen >> a & 1) {
            rm.ReplyWithError(ctx, "ERR a record has one value for an attribute");
            return false;
        }
        seen |= UINT64_C(1) << a;
        record[a] = value;
    }
    return true;
}

/* ---- adding and removing --------------------------------------------------------------------- */

/* Adds or removes the record, replies and replicates it. */
static void change_record(RedisModuleCtx *ctx, struct value *v, RedisModuleString **argv, int argc,
                          bool adds)
{
    tamis_key record[TAMIS_ATTRIBUTES_MAX];
    tamis_removed outcome = TAMIS_ABSENT;
    uint64_t limit = set_memory_limit(v->set);
    bool fresh = false, free_hand = adds && limit && follows(ctx);
    if (!read_record(ctx, as_records(v->set), argv + 2, argc - 2, record))
        return;
    if (!adds && !v->deletable) {
        rm.ReplyWithError(ctx, "ERR the records are not deletable: make them with DELETABLE");
        return;
    }
    if (free_hand)
        set_limit(v->set, 0);
    value_changes(v, adds);
    tamis_error e = adds ? tamis_records_add(as_records(v->set), record, &fresh)
                         : tamis_records_remove(as_records(v->set), record, &outcome);
    value_recount(v);
    if (free_hand)
        set_limit(v->set, limit);
    if (e != TAMIS_OK) {
        server.refused += adds;
        reply_failure(ctx, v, e, NULL);
        return;
    }
    if (adds)
        rm.ReplyWithBool(ctx, fresh);
    else
        rm.ReplyWithLongLong(ctx, removal_replies[outcome]);
    if (adds ? fresh || v->deletable : outcome != TAMIS_ABSENT) {
        rm.Replicate(ctx, adds ? "TAMIS.XADD" : "TAMIS.XDEL", "v", argv + 1, (size_t)argc - 1);
        notify(ctx, adds ? "tamis.add" : "tamis.del", argv[1]);
    }
}

static void add_record(RedisModuleCtx *ctx, struct value *v, RedisModuleString **argv, int argc)
{
    change_record(ctx, v, argv, argc, true);
}

static void remove_record(RedisModuleCtx *ctx, struct value *v, RedisModuleString **argv, int argc)
{
    change_record(ctx, v, argv, argc, false);
}

static int change(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, value_fn run)
{
    time_of_command(0);
    return argc < 3 ? rm.WrongArity(ctx)
                    : with_value(ctx, argv, argc, VALUE_RECORDS, RM_READ | RM_WRITE, run);
}

COMMAND(command_xadd)
{
    return change(ctx, argv, argc, add_record);
}

COMMAND(command_xdel)
{
    return change(ctx, argv, argc, remove_record);
}

/* ---- asking ---------------------------------------------------------------------------------- */

struct record_question {
    uint32_t attribute[TAMIS_ATTRIBUTES_MAX]; /* of each choice */
    tamis_choice choices[TAMIS_ATTRIBUTES_MAX];
    size_t n;
    struct record_pair {
        uint32_t attribute;
        tamis_digest digest;
    } * pairs;
    tamis_digest *values; /* the digests, grouped by choice */
};

static bool read_question(RedisModuleCtx *ctx, const tamis_records *records,
                          RedisModuleString **pairs, size_t n, struct record_question *q)
{
    size_t counts[TAMIS_ATTRIBUTES_MAX] = {0}, at = 0;
    for (size_t i = 0; i < n; i++) {
        tamis_key value;
        if (!read_pair(ctx, records, pairs[i], &q->pairs[i].attribute, &value))
            return false;
        q->pairs[i].digest = tamis_records_digest(records, q->pairs[i].attribute, value);
        counts[q->pairs[i].attribute]++;
    }
    for (uint32_t a = 0; a < TAMIS_ATTRIBUTES_MAX; a++) {
        if (!counts[a])
            continue;
        q->choices[q->n++] = (tamis_choice){a, q->values + at, counts[a]};
        for (size_t i = 0; i < n; i++)
            if (q->pairs[i].attribute == a)
                q->values[at++] = q->pairs[i].digest;
    }
    return true;
}

COMMAND(command_xquery)
{
    RedisModuleKey *key;
    bool replied;
    tamis_answer answer = {.verified = true};
    tamis_error e = TAMIS_OK;
    struct record_question q = {0};
    if (argc < 3)
        return rm.WrongArity(ctx);
    size_t n = (size_t)argc - 2;
    const struct value *v = find_kind(ctx, argv[1], VALUE_RECORDS, &key, &replied);
    if (v) {
        q.pairs = rm.TryAlloc(n * sizeof *q.pairs);
        q.values = rm.TryAlloc(n * sizeof *q.values);
        if (!q.pairs || !q.values)
            e = TAMIS_ENOMEM;
        else if (read_question(ctx, as_records(v->set), argv + 2, n, &q))
            e = tamis_records_ask(as_records(v->set), q.choices, q.n, &answer, NULL);
        else
            replied = true;
    }
    if (e != TAMIS_OK) {
        reply_failure(ctx, v, e, NULL);
    } else if (!replied) {
        rm.ReplyWithArray(ctx, 2);
        rm.ReplyWithBool(ctx, answer.maybe);
        rm.ReplyWithBool(ctx, answer.verified);
    }
    rm.Free(q.pairs);
    rm.Free(q.values);
    rm.CloseKey(key);
    return RM_OK;
}

/* ---- XINFO ----------------------------------------------------------------------------------- */

static void reply_name(RedisModuleCtx *ctx, const tamis_records *records, uint32_t i)
{
    const char *name = tamis_records_name(records, i);
    rm.ReplyWithStringBuffer(ctx, name, strlen(name));
}

static void say_attributes(RedisModuleCtx *ctx, const tamis_records *records, bool read)
{
    tamis_attribute_facts a;
    tamis_records_facts info;
    tamis_records_brief(records, &info);
    rm.ReplyWithSimpleString(ctx, "attributes");
    rm.ReplyWithArray(ctx, (long)info.attributes);
    for (uint32_t i = 0; i < info.attributes; i++) {
        bool known = read && tamis_records_attribute_info(records, i, &a);
        rm.ReplyWithArray(ctx, known ? 3 : 1);
        reply_name(ctx, records, i);
        if (known) {
            rm.ReplyWithSimpleString(ctx, tamis_type_name(a.type));
            rm.ReplyWithDouble(ctx, a.fpp);
        }
    }
    rm.ReplyWithSimpleString(ctx, "combos");
    rm.ReplyWithArray(ctx, (long)info.combos);
    for (uint32_t i = 0; i < info.combos; i++) {
        uint64_t mask = tamis_records_combo(records, i);
        rm.ReplyWithArray(ctx, __builtin_popcountll(mask));
        for (uint32_t j = 0; j < info.attributes; j++)
            if (mask >> j & 1)
                reply_name(ctx, records, j);
    }
}

static void reply_xinfo(RedisModuleCtx *ctx, struct value *v, RedisModuleString **argv, int argc)
{
    (void)argv, (void)argc;
    const tamis_records *records = as_records(v->set);
    tamis_records_facts i;
    tamis_records_brief(records, &i);
    bool read = i.set.bytes <= (uint64_t)server.work_limit;
    if (read)
        tamis_records_info(records, &i);
    rm.ReplyWithMap(ctx, SAY_SET + 7);
    say_set(ctx, v, &i.set);
    say_text(ctx, "verifier", verifier_names[i.verifier]);
    say_count(ctx, "layers", i.layers);
    say_real(ctx, "fpp_attribute", read, i.fpp_attribute);
    say_real(ctx, "fpp_fresh", read, i.fpp_fresh);
    say_real(ctx, "fpp_record", read, i.fpp_record);
    say_attributes(ctx, records, read);
}

COMMAND(command_xinfo)
{
    return argc != 2 ? rm.WrongArity(ctx)
                     : with_value(ctx, argv, argc, VALUE_RECORDS, RM_READ, reply_xinfo);
}
