/*
 * PUBLISH: copies of a filter elsewhere, kept within a stated error. The messages go to a stream of this server, in
 * the keys and fields that `tamis follow` reads:
 *
 *     NAME                     stream: fields "o" owner, "m" message
 *     {NAME}:owners            hash: owner -> position up to which its snapshot makes the stream unnecessary
 *     {NAME}:snapshot:OWNER    list: epoch, then the messages of the snapshot
 *
 * (without braces if NAME contains some). Every heartbeat checks whether all of this still exists, and writes it again
 * if not; if two servers publish as one owner, the later one continues. The publication is part of the value: it is
 * saved, replicated and migrated with it. Only the master publishes, after a change and twice a second, and what it
 * writes is replicated like any XADD. A new master, or a restarted server, begins a new epoch with a snapshot.
 */
#include "module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND       UINT64_C(1000000000)
#define SNAPSHOT_MIN ((uint64_t)4 << 20) /* bytes of messages before a new snapshot replaces them */
#define RETRY        (10 * SECOND)
#define TICK         500     /* milliseconds */
#define EXPIRE       3600000 /* messages are not kept for an owner that is this far behind the others */

/* ---- which keys are published ------------------------------------------------------------------ */

struct published_key {
    int db;
    struct buffer name;
};

static struct published_key *published;
static size_t n_published, room_published;

static int renamed(RedisModuleCtx *ctx, int events, const char *event, RedisModuleString *name);

/* Events are asked for when there is something to publish: each costs every DEL and EXPIRE a call, and Valkey 8.1 leaves
   a client in the database of the last event, so after COPY ... DB or MOVE in another one than before. */
bool publish_register(RedisModuleCtx *ctx, int db, const RedisModuleString *name)
{
    static bool listens;
    size_t len;
    const char *text = rm.StringPtrLen(name, &len);
    listens = listens || rm.SubscribeToKeyspaceEvents(ctx, RM_NOTIFY_GENERIC, renamed) == RM_OK;
    for (size_t i = 0; i < n_published; i++)
        if (published[i].db == db && published[i].name.len == len &&
            (len == 0 || memcmp(published[i].name.data, text, len) == 0))
            return true;
    if (n_published == room_published) {
        size_t room = room_published ? 2 * room_published : 8;
        struct published_key *grown = rm.TryAlloc(room * sizeof *grown);
        if (!grown)
            return false;
        if (n_published)
            memcpy(grown, published, n_published * sizeof *grown);
        rm.Free(published);
        published = grown;
        room_published = room;
    }
    struct published_key *p = &published[n_published];
    *p = (struct published_key){.db = db};
    bool known = buffer_add(&p->name, text, len);
    n_published += known;
    return known;
}

size_t publish_count(void)
{
    return n_published;
}

static void published_forget(size_t i)
{
    buffer_free(&published[i].name);
    published[i] = published[--n_published];
}

/* ---- writing to the stream ------------------------------------------------------------------- */

struct sending {
    RedisModuleCtx *ctx;
    struct publication *p;
    RedisModuleString *stream, *owners, *snapshot;
    uint64_t snapshot_bytes; /* of the snapshot being written */
};

static bool good(RedisModuleCallReply *reply)
{
    bool ok = reply && rm.CallReplyType(reply) != RM_REPLY_ERROR;
    if (reply)
        rm.FreeCallReply(reply);
    return ok;
}

static void sending_begin(struct sending *s, RedisModuleCtx *ctx, struct publication *p)
{
    bool tagged = memchr(p->stream.data, '{', p->stream.len) != NULL;
    const char *open = tagged ? "" : "{", *close = tagged ? "" : "}";
    int len = (int)p->stream.len;
    *s = (struct sending){.ctx = ctx, .p = p};
    s->stream = rm.CreateString(NULL, p->stream.data, p->stream.len);
    s->owners = rm.CreateStringPrintf(NULL, "%s%.*s%s:owners", open, len, p->stream.data, close);
    s->snapshot = rm.CreateStringPrintf(NULL, "%s%.*s%s:snapshot:%s", open, len, p->stream.data,
                                        close, p->owner);
}

static void sending_end(struct sending *s)
{
    rm.FreeString(NULL, s->stream);
    rm.FreeString(NULL, s->owners);
    rm.FreeString(NULL, s->snapshot);
}

static void copy_text(RedisModuleCallReply *reply, char *out, size_t room)
{
    size_t len = 0;
    const char *text = reply ? rm.CallReplyStringPtr(reply, &len) : NULL;
    snprintf(out, room, "%.*s", (int)(text ? len : 0), text ? text : "");
}

/* The epoch of the existing snapshot; 0: there is none. */
static uint64_t epoch_there(const struct sending *s)
{
    char text[32];
    RedisModuleCallReply *reply = rm.Call(s->ctx, "LINDEX", "sl", s->snapshot, 0LL);
    copy_text(reply, text, sizeof text);
    good(reply);
    return strtoull(text, NULL, 10);
}

static bool entry_there(const struct sending *s, const char *id)
{
    RedisModuleCallReply *reply = rm.Call(s->ctx, "XRANGE", "scc", s->stream, id, id);
    bool there = !id[0] || (reply && rm.CallReplyType(reply) == RM_REPLY_ARRAY &&
                            rm.CallReplyLength(reply) == 1);
    good(reply);
    return there;
}

/* A message of the origin: snapshots are collected, the others are appended to the stream. */
static int send_message(void *context, const void *data, size_t len)
{
    struct sending *s = context;
    tamis_message m;
    if (tamis_message_read(&m, data, len, NULL) != TAMIS_OK)
        return 1;
    if (m.type != TAMIS_SNAPSHOT) {
        struct publication *p = s->p;
        RedisModuleCallReply *reply = rm.Call(s->ctx, "XADD", "!sccccb", s->stream, "*", "o",
                                              p->owner, "m", (const char *)data, len);
        p->since += len;
        copy_text(reply, p->latest, sizeof p->latest);
        if (!p->first[0])
            memcpy(p->first, p->latest, sizeof p->first);
        return !good(reply);
    }
    if (m.part == 0) {
        s->snapshot_bytes = 0;
        if (!good(rm.Call(s->ctx, "DEL", "!s", s->snapshot)) ||
            !good(rm.Call(s->ctx, "RPUSH", "!sl", s->snapshot, (long long)m.epoch)))
            return 1;
    }
    s->snapshot_bytes += len;
    return !good(rm.Call(s->ctx, "RPUSH", "!sb", s->snapshot, (const char *)data, len));
}

/* Trims the stream to what the snapshots of all owners need, except those that are an hour behind; this owner's
   snapshot is as of the last entry. */
static bool trim(const struct sending *s, const char *position)
{
    unsigned long long newest = strtoull(position, NULL, 10), least[2] = {newest, UINT64_MAX};
    char each[64], id[64];
    RedisModuleCallReply *all = rm.Call(s->ctx, "HVALS", "s", s->owners);
    for (size_t i = 0; all && i < rm.CallReplyLength(all); i++) {
        unsigned long long at[2] = {0};
        copy_text(rm.CallReplyArrayElement(all, i), each, sizeof each);
        sscanf(each, "%llu-%llu", &at[0], &at[1]);
        if (at[0] + EXPIRE > newest && (at[0] != least[0] ? at[0] < least[0] : at[1] < least[1]))
            memcpy(least, at, sizeof least);
    }
    snprintf(id, sizeof id, "%llu-%llu", least[0], least[1]);
    return good(all) && good(rm.Call(s->ctx, "XTRIM", "!scc", s->stream, "MINID", id));
}

/* The snapshot is as of the last entry. */
static bool snapshot_done(struct sending *s)
{
    char position[64] = "0-0";
    RedisModuleCallReply *last =
        rm.Call(s->ctx, "XREVRANGE", "scccl", s->stream, "+", "-", "COUNT", 1LL);
    if (last && rm.CallReplyType(last) == RM_REPLY_ARRAY && rm.CallReplyLength(last) == 1)
        copy_text(rm.CallReplyArrayElement(rm.CallReplyArrayElement(last, 0), 0), position,
                  sizeof position);
    if (!good(last) || !good(rm.Call(s->ctx, "HSET", "!scc", s->owners, s->p->owner, position)))
        return false;
    s->p->last = s->snapshot_bytes;
    s->p->since = 0;
    s->p->first[0] = s->p->latest[0] = 0;
    return trim(s, position);
}

/* ---- publishing ------------------------------------------------------------------------------ */

/* Its epoch is above that of the existing snapshot, whatever the clock says. */
static tamis_error make_origin(RedisModuleCtx *ctx, struct publication *p, tamis_filter *filter,
                               tamis_reason *reason)
{
    struct sending s;
    tamis_origin_options o = {.owner = p->owner,
                              .targets = p->targets,
                              .beat = p->beat,
                              .epoch = value_clock(NULL),
                              .no_key = !p->with_key};
    if (p->origin)
        return TAMIS_OK;
    sending_begin(&s, ctx, p);
    uint64_t there = epoch_there(&s);
    sending_end(&s);
    o.epoch = there >= o.epoch ? there + 1 : o.epoch;
    return tamis_origin_new(&p->origin, filter, &o, reason);
}

/* Makes the origin before anything is published. If there is no memory, this is tried again later, and nothing is
   lost. An impossible publication, which forged bytes may state, is removed, here and on replicas. */
static bool origin_ready(RedisModuleCtx *ctx, struct value *v, RedisModuleString *name)
{
    struct publication *p = v->publication;
    tamis_reason reason = {0};
    tamis_error e = make_origin(ctx, p, as_filter(v->set), &reason);
    if (e == TAMIS_OK)
        return true;
    rm.Log(ctx, "warning", "tamis: %s cannot be published: %s", p->owner, reason.text);
    p->retry = value_clock(NULL) + RETRY;
    if (e != TAMIS_ENOMEM) {
        publication_free(p);
        v->publication = NULL;
        rm.Replicate(ctx, "TAMIS.UNPUBLISH", "s", name);
    }
    return false;
}

/* Is part of what was written gone, or replaced by another origin's snapshot? */
static bool lost(const struct sending *s, bool *other)
{
    tamis_origin_facts facts;
    uint64_t there = epoch_there(s);
    tamis_origin_info(s->p->origin, &facts);
    *other = facts.version && there > facts.epoch;
    return facts.version &&
           (there != facts.epoch || !entry_there(s, s->p->first) || !entry_there(s, s->p->latest));
}

/* Writes the change if a target is exceeded, a snapshot if one is due, and a heartbeat. */
static bool publish_now(struct sending *s, bool beat)
{
    struct publication *p = s->p;
    tamis_error e = TAMIS_OK;
    uint64_t most = p->last > SNAPSHOT_MIN ? p->last : SNAPSHOT_MIN;
    bool other = false, renew = (p->last && p->since > most) || (beat && lost(s, &other));
    if (other) {
        rm.Log(s->ctx, "warning",
               "tamis: another server now publishes as %s: unpublish one of them", p->owner);
        return false;
    }
    if (tamis_origin_due(p->origin) != TAMIS_DUE_NOT || renew)
        e = tamis_origin_publish(p->origin, send_message, s, NULL);
    if (e == TAMIS_OK && renew && !s->snapshot_bytes)
        e = tamis_origin_snapshot(p->origin, send_message, s, NULL);
    if (e == TAMIS_OK && s->snapshot_bytes && !snapshot_done(s))
        e = TAMIS_EIO;
    if (e == TAMIS_OK && (beat || s->snapshot_bytes)) {
        e = tamis_origin_beat(p->origin, send_message, s);
        p->next_beat = value_clock(NULL) + p->beat;
    }
    return e == TAMIS_OK;
}

static bool leads(RedisModuleCtx *ctx)
{
    int flags = rm.GetContextFlags(ctx);
    return flags & RM_FLAG_MASTER && !(flags & (RM_FLAG_REPLICATED | RM_FLAG_LOADING));
}

void publish_changes(RedisModuleCtx *ctx, struct value *v, RedisModuleString *name)
{
    struct publication *p = v->publication;
    uint64_t now = value_clock(NULL);
    if (!p || !leads(ctx) || now < p->retry || !origin_ready(ctx, v, name))
        return;
    publish_register(ctx, rm.GetSelectedDb(ctx), name);
    bool beat = now >= p->next_beat;
    if (!beat && tamis_origin_due(p->origin) == TAMIS_DUE_NOT)
        return;
    struct sending s;
    sending_begin(&s, ctx, p);
    if (!publish_now(&s, beat)) {
        p->retry = now + RETRY;
        rm.Log(ctx, "warning", "tamis: %s could not be published; trying again", p->owner);
    }
    sending_end(&s);
}

static void tick(RedisModuleCtx *ctx, void *unused)
{
    (void)unused;
    rm.CreateTimer(ctx, TICK, tick, NULL);
    /* While writes are paused (CLIENT PAUSE, a failover, a shutdown that waits for replicas) the server aborts on a
       change that must be replicated. */
    if (!n_published || !leads(ctx) || rm.AvoidReplicaTraffic())
        return;
    int db = rm.GetSelectedDb(ctx);
    time_of_command(0);
    for (size_t i = n_published; i-- > 0;) {
        const char *error;
        rm.SelectDb(ctx, published[i].db);
        RedisModuleString *name =
            rm.CreateString(NULL, published[i].name.data, published[i].name.len);
        RedisModuleKey *key = rm.OpenKey(ctx, name, RM_READ);
        struct value *v = find_value(key, VALUE_FILTER, &error);
        if (v && v->publication)
            publish_changes(ctx, v, name);
        else
            published_forget(i);
        rm.CloseKey(key);
        rm.FreeString(NULL, name);
    }
    rm.SelectDb(ctx, db);
}

/* A published value was renamed, or moved to another database. */
static int renamed(RedisModuleCtx *ctx, int events, const char *event, RedisModuleString *name)
{
    const char *error;
    (void)events;
    if (strcmp(event, "rename_to") != 0 && strcmp(event, "move_to") != 0)
        return RM_OK;
    RedisModuleKey *key = rm.OpenKey(ctx, name, RM_READ);
    const struct value *v = find_value(key, VALUE_FILTER, &error);
    if (v && v->publication)
        publish_register(ctx, rm.GetSelectedDb(ctx), name);
    rm.CloseKey(key);
    return RM_OK;
}

static void swapped(RedisModuleCtx *ctx, RedisModuleEvent event, uint64_t sub, void *data)
{
    const RedisModuleSwapDbInfo *swap = data;
    (void)ctx, (void)event, (void)sub;
    for (size_t i = 0; i < n_published; i++)
        if (published[i].db == swap->first)
            published[i].db = swap->second;
        else if (published[i].db == swap->second)
            published[i].db = swap->first;
}

void publish_start(RedisModuleCtx *ctx)
{
    rm.CreateTimer(ctx, TICK, tick, NULL);
    rm.SubscribeToServerEvent(ctx, (RedisModuleEvent){RM_EVENT_SWAPDB, 1}, swapped);
}

/* ---- commands -------------------------------------------------------------------------------- */

static void replicate_publish(RedisModuleCtx *ctx, RedisModuleString *name,
                              const struct publication *p)
{
    RedisModuleString *words[PUBLICATION_WORDS];
    size_t n = publication_words(p, words);
    rm.Replicate(ctx, "TAMIS.PUBLISH", "sv", name, words, n);
    for (size_t i = 0; i < n; i++)
        rm.FreeString(NULL, words[i]);
}

/* Replaces an earlier publication, which stays if this fails. Only the master has an origin. */
static void publish(RedisModuleCtx *ctx, struct value *v, RedisModuleString *name,
                    struct publication *p)
{
    tamis_reason reason = {0};
    struct set *set = value_set(v);
    tamis_error e = !set         ? TAMIS_ENOMEM
                    : leads(ctx) ? make_origin(ctx, p, as_filter(set), &reason)
                                 : TAMIS_OK;
    if (e == TAMIS_OK && !publish_register(ctx, rm.GetSelectedDb(ctx), name))
        e = TAMIS_ENOMEM;
    if (e != TAMIS_OK) {
        publication_free(p);
        value_set_back(v, set);
        reply_failure(ctx, v, e, &reason);
        return;
    }
    value_set_keep(v, set);
    publication_free(v->publication);
    v->publication = p;
    replicate_publish(ctx, name, p);
    publish_changes(ctx, v, name);
    notify(ctx, "tamis.publish", name);
    rm.ReplyWithSimpleString(ctx, "OK");
}

/* PUBLISH key stream owner [MISS r] [FALSERATE r] [WEIGHTS w w] [DIRTY r] [MAXAGE s] [BEAT s] [WITHKEY] */
COMMAND(command_publish)
{
    const char *error;
    size_t stream_len, owner_len;
    if (argc < 4)
        return rm.WrongArity(ctx);
    const char *stream = rm.StringPtrLen(argv[2], &stream_len);
    const char *owner = rm.StringPtrLen(argv[3], &owner_len);
    if (!publication_names_good(stream_len, owner, owner_len))
        return rm.ReplyWithError(
            ctx, "ERR a stream needs a name, and an owner a name of 1 to 255 bytes");
    struct publication *p = publication_new(stream, stream_len, owner, owner_len);
    if (!p)
        return reply_failure(ctx, NULL, TAMIS_ENOMEM, NULL);
    time_of_command(0);
    error = publication_targets(p, argv, argc);
    if (!error && p->with_key && !follows(ctx) && !secret_told(ctx)) {
        publication_free(p);
        return RM_OK;
    }
    RedisModuleKey *key = rm.OpenKey(ctx, argv[1], RM_READ | RM_WRITE);
    struct value *v = error ? NULL : find_value(key, VALUE_FILTER, &error);
    if (!v) {
        rm.ReplyWithError(ctx, error ? error : NOT_FOUND);
        publication_free(p);
    } else if (too_much(ctx, value_bytes(v), "Publish it with the command line.")) {
        publication_free(p);
    } else {
        publish(ctx, v, argv[1], p);
    }
    rm.CloseKey(key);
    return RM_OK;
}

/* The owner says farewell, and nothing is kept for it. False if there is no memory; an impossible origin sends
   nothing. */
static bool say_farewell(RedisModuleCtx *ctx, struct value *v)
{
    struct sending s;
    struct publication *p = v->publication;
    if (!leads(ctx))
        return true;
    tamis_error e = make_origin(ctx, p, as_filter(v->set), NULL);
    if (e != TAMIS_OK)
        return e != TAMIS_ENOMEM;
    sending_begin(&s, ctx, p);
    tamis_origin_farewell(p->origin, send_message, &s);
    good(rm.Call(ctx, "HDEL", "!sc", s.owners, p->owner));
    good(rm.Call(ctx, "DEL", "!s", s.snapshot));
    sending_end(&s);
    return true;
}

COMMAND(command_unpublish)
{
    const char *error;
    if (argc != 2)
        return rm.WrongArity(ctx);
    time_of_command(0);
    RedisModuleKey *key = rm.OpenKey(ctx, argv[1], RM_READ | RM_WRITE);
    struct value *v = find_value(key, VALUE_FILTER, &error);
    if (error) {
        rm.ReplyWithError(ctx, error);
    } else {
        bool was = v && v->publication;
        if (was && !say_farewell(ctx, v)) {
            reply_failure(ctx, NULL, TAMIS_ENOMEM, NULL);
            rm.CloseKey(key);
            return RM_OK;
        }
        if (was) {
            publication_free(v->publication);
            v->publication = NULL;
            rm.Replicate(ctx, "TAMIS.UNPUBLISH", "s", argv[1]);
            notify(ctx, "tamis.unpublish", argv[1]);
        }
        rm.ReplyWithBool(ctx, was);
    }
    rm.CloseKey(key);
    return RM_OK;
}
