/*
 * Redis Streams, on Redis 7 or Valkey without modules. For the name N (in braces, so that all keys are in one
 * slot of a Cluster):
 *
 *     N                        stream: one entry per message, fields "o" owner and "m" message
 *     {N}:owners               hash: owner -> position up to which its snapshot replaces the stream,
 *                              or "forgotten"
 *     {N}:snapshot:OWNER       list: "EPOCH", then the messages of the snapshot
 *
 * A snapshot is written under another key; one transaction renames it and sets its position. The stream is then
 * trimmed to the earliest position of all owners, except those that are an hour behind the latest: no message that
 * a live owner's snapshot needs is removed, and a dead owner keeps nothing. Followers keep their own positions.
 */
#include "redis_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define READ_MOST   64        /* messages per reply */
#define FETCH_MOST  8         /* parts of a snapshot per reply */
#define PARTS_MOST  (1 << 18) /* of a snapshot; tamis writes fewer */
#define TRIM_OWNERS 16        /* with more, only some of the calls trim the stream */
#define EXPIRE_MS   3600000   /* an owner that is this far behind the others keeps no messages */
#define FORGOTTEN   "forgotten"

struct redis {
    struct carrier carrier;
    struct redis_line line;
    const char *name;                                     /* of the stream */
    char *owners, *prefix;                                /* names of keys */
    char first[CARRIER_POSITION], last[CARRIER_POSITION]; /* sent since the snapshot; "": nothing */
};

static void redis_close(struct carrier *c)
{
    struct redis *r = (struct redis *)c;
    line_free(&r->line);
    free(r->owners);
    free(r->prefix);
    free(r);
}

/* ---- origins --------------------------------------------------------------------------------- */

static bool redis_send(struct carrier *c, const char *owner, const void *data, size_t len)
{
    struct redis *r = (struct redis *)c;
    redisReply *reply = line_command(&r->line, "XADD %s * o %s m %b", r->name, owner, data, len);
    if (reply_text(reply)) {
        snprintf(r->last, sizeof r->last, "%s", reply_text(reply));
        if (!r->first[0])
            memcpy(r->first, r->last, sizeof r->first);
    }
    return reply_done(reply);
}

/* The last entry of the stream, "0-0" if there is none. */
static bool last_position(struct redis *r, char position[CARRIER_POSITION])
{
    redisReply *reply = line_command(&r->line, "XREVRANGE %s + - COUNT 1", r->name);
    if (!reply)
        return false;
    const char *last = reply_text(reply_part(reply_part(reply, 0), 0));
    snprintf(position, CARRIER_POSITION, "%s", last ? last : "0-0");
    freeReplyObject(reply);
    return true;
}

/* Text that is not a position comes before all positions. */
static void parse_position(const char *text, uint64_t out[2])
{
    char *end = (char *)(uintptr_t)(text ? text : "");
    out[0] = strtoull(end, &end, 10);
    out[1] = *end == '-' ? strtoull(end + 1, NULL, 10) : 0;
}

static bool before(const char *x, const char *y)
{
    uint64_t a[2], b[2];
    parse_position(x, a);
    parse_position(y, b);
    return a[0] != b[0] ? a[0] < b[0] : a[1] < b[1];
}

static bool trim_now(struct redis *r)
{
    redisReply *reply = line_command(&r->line, "HVALS %s", r->owners);
    uint64_t least[2] = {UINT64_MAX, UINT64_MAX}, each[2], newest = 0;
    if (!reply)
        return false;
    for (size_t i = 0; i < reply_parts(reply); i++) {
        parse_position(reply_text(reply_part(reply, i)), each);
        newest = each[0] > newest ? each[0] : newest;
    }
    for (size_t i = 0; i < reply_parts(reply); i++) {
        parse_position(reply_text(reply_part(reply, i)), each);
        if (newest - each[0] < EXPIRE_MS &&
            (each[0] != least[0] ? each[0] < least[0] : each[1] < least[1]))
            memcpy(least, each, sizeof least);
    }
    freeReplyObject(reply);
    return least[0] == UINT64_MAX ||
           reply_done(line_command(&r->line, "XTRIM %s MINID %llu-%llu", r->name,
                                   (unsigned long long)least[0], (unsigned long long)least[1]));
}

/* Trimming reads the positions of all owners. With many owners, few calls do it: the average cost of a call stays the
   same, and the stream is trimmed as often. */
static bool trim(struct redis *r)
{
    redisReply *reply = line_command(&r->line, "HLEN %s", r->owners);
    uint64_t owners = reply && reply->type == REDIS_REPLY_INTEGER && reply->integer > 0
                          ? (uint64_t)reply->integer
                          : 1;
    return reply_done(reply) && (carrier_clock() / 64 % owners >= TRIM_OWNERS || trim_now(r));
}

static bool exchange(struct redis *r, const char *owner, const char *position)
{
    redisReply *reply;
    if (!reply_done(line_command(&r->line, "MULTI")) ||
        !reply_done(
            line_command(&r->line, "RENAME %s%s:new %s%s", r->prefix, owner, r->prefix, owner)) ||
        !reply_done(line_command(&r->line, "HSET %s %s %s", r->owners, owner, position)) ||
        !(reply = line_command(&r->line, "EXEC")))
        return false;
    bool good = reply_parts(reply) == 2 && reply_part(reply, 0) &&
                reply_part(reply, 0)->type != REDIS_REPLY_ERROR;
    if (!good)
        carrier_fail(&r->carrier, "the snapshot of %.100s was not replaced", owner);
    freeReplyObject(reply);
    return good;
}

/* If another origin of this name does the same, only one of the transactions succeeds. */
static bool replace_watched(struct carrier *c, const char *owner, uint64_t epoch,
                            const struct carrier_part *parts, size_t n)
{
    struct redis *r = (struct redis *)c;
    char position[CARRIER_POSITION];
    struct carrier_state state;
    if (!reply_done(line_command(&r->line, "WATCH %s%s", r->prefix, owner)) ||
        !carrier_state(c, owner, &state) || !carrier_yields(c, owner, &state, epoch) ||
        !last_position(r, position) ||
        !reply_done(line_command(&r->line, "DEL %s%s:new", r->prefix, owner)) ||
        !reply_done(line_command(&r->line, "RPUSH %s%s:new %llu", r->prefix, owner,
                                 (unsigned long long)epoch)))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!reply_done(line_command(&r->line, "RPUSH %s%s:new %b", r->prefix, owner, parts[i].data,
                                     parts[i].len)))
            return false;
    if (!exchange(r, owner, position))
        return false;
    r->first[0] = r->last[0] = 0;
    return trim(r);
}

static bool redis_replace(struct carrier *c, const char *owner, uint64_t epoch,
                          const struct carrier_part *parts, size_t n)
{
    struct redis *r = (struct redis *)c;
    r->line.pinned = true; /* WATCH is per connection */
    bool good = replace_watched(c, owner, epoch, parts, n);
    r->line.pinned = false;
    return good;
}

static bool entry_there(struct redis *r, const char *id, bool *there)
{
    redisReply *reply = line_command(&r->line, "XRANGE %s %s %s", r->name, id, id);
    *there &= reply_parts(reply) == 1;
    return reply_done(reply);
}

/* A trimmed stream has lost its first entries; a server restored from older data, the last ones. Both are nearly
   always heartbeats, so this reads few bytes. */
static bool redis_state(struct carrier *c, const char *owner, struct carrier_state *state)
{
    struct redis *r = (struct redis *)c;
    redisReply *reply = line_command(&r->line, "LINDEX %s%s 0", r->prefix, owner);
    if (!reply)
        return false;
    state->there = state->whole = reply_text(reply) != NULL;
    if (reply_text(reply))
        state->epoch = strtoull(reply_text(reply), NULL, 10);
    freeReplyObject(reply);
    return !r->first[0] ||
           (entry_there(r, r->first, &state->whole) && entry_there(r, r->last, &state->whole));
}

static bool redis_advance(struct carrier *c, const char *owner)
{
    struct redis *r = (struct redis *)c;
    if (!r->last[0])
        return true;
    if (!reply_done(line_command(&r->line, "HSET %s %s %s", r->owners, owner, r->last)))
        return false;
    memcpy(r->first, r->last, sizeof r->first); /* it is not trimmed */
    return trim(r);
}

static bool redis_retire(struct carrier *c, const char *owner, bool forget)
{
    struct redis *r = (struct redis *)c;
    return reply_done(forget ? line_command(&r->line, "HSET %s %s " FORGOTTEN, r->owners, owner)
                             : line_command(&r->line, "HDEL %s %s", r->owners, owner)) &&
           reply_done(line_command(&r->line, "DEL %s%s", r->prefix, owner)) && trim(r);
}

/* ---- followers ------------------------------------------------------------------------------- */

static bool server_time(struct redis *r, uint64_t *milliseconds)
{
    redisReply *reply = line_command(&r->line, "TIME");
    if (!reply)
        return false;
    const char *seconds = reply_text(reply_part(reply, 0)),
               *micro = reply_text(reply_part(reply, 1));
    *milliseconds = seconds && micro
                        ? strtoull(seconds, NULL, 10) * 1000 + strtoull(micro, NULL, 10) / 1000
                        : 0;
    freeReplyObject(reply);
    return true;
}

/* What to do with the entries of a reply. */
struct taking {
    const char *only; /* this owner; NULL: all */
    /* Of all entries. AGE_UNKNOWN: it follows from their ids, which start with the server's time. */
    uint64_t age;
    uint64_t clock; /* the server's time now, in milliseconds */
    uint64_t since; /* carrier_clock when either was known */
    carrier_take take;
    void *context;
};

/* An entry is its id, and fields with values. */
static bool take_entry(const redisReply *entry, const struct taking *t)
{
    const redisReply *fields = reply_part(entry, 1), *message = NULL;
    const char *owner = NULL, *id = reply_text(reply_part(entry, 0));
    uint64_t age = t->age;
    for (size_t i = 0; i + 1 < reply_parts(fields); i += 2) {
        const char *name = reply_text(reply_part(fields, i));
        if (name && strcmp(name, "o") == 0)
            owner = reply_text(reply_part(fields, i + 1));
        else if (name && strcmp(name, "m") == 0)
            message = reply_part(fields, i + 1);
    }
    if (!id || !owner || !reply_text(message))
        return false; /* not written by tamis */
    if (t->only && strcmp(t->only, owner) != 0)
        return false;
    if (age == AGE_UNKNOWN &&
        (age = carrier_since(strtoull(id, NULL, 10), t->clock)) != AGE_UNKNOWN)
        age = age < UINT64_MAX / 1000000 ? age * 1000000 : AGE_UNKNOWN;
    if (age != AGE_UNKNOWN)
        age += carrier_clock() - t->since; /* taking the entries before it */
    carrier_deliver(t->take, t->context, owner, message->str, message->len, age);
    return true;
}

/* Returns their number, or -1; sets the position to that of the last one. */
static int take_entries(struct redis *r, const redisReply *entries, char position[CARRIER_POSITION],
                        struct taking *t)
{
    size_t n = reply_parts(entries);
    t->since = carrier_clock();
    if (n && t->age == AGE_UNKNOWN && !server_time(r, &t->clock))
        return -1;
    for (size_t i = 0; i < n; i++) {
        const char *id = reply_text(reply_part(reply_part(entries, i), 0));
        take_entry(reply_part(entries, i), t);
        if (id)
            snprintf(position, CARRIER_POSITION, "%s", id);
    }
    return (int)n;
}

/* A stream that ends before our position is a new one: the server lost its data. */
static bool check_position(struct redis *r, char position[CARRIER_POSITION])
{
    char last[CARRIER_POSITION];
    if (!position[0])
        snprintf(position, CARRIER_POSITION, "0-0");
    if (!last_position(r, last))
        return false;
    if (before(last, position)) {
        snprintf(position, CARRIER_POSITION, "0-0");
        r->carrier.reached = 0;
    }
    return true;
}

static int redis_receive(struct carrier *c, char position[CARRIER_POSITION], int milliseconds,
                         carrier_take take, void *context)
{
    struct redis *r = (struct redis *)c;
    bool fresh = !r->line.link.context || !position[0];
    if (!line_connected(&r->line)) {
        uint64_t now = carrier_now(), next = r->line.next_try, wait = next > now ? next - now : 0;
        carrier_sleep(wait < (uint64_t)milliseconds ? wait : (uint64_t)milliseconds);
        return -1;
    }
    if (fresh && !check_position(r, position))
        return -1;
    line_patience(&r->line, milliseconds);
    uint64_t began = carrier_clock();
    redisReply *reply = line_command(&r->line, "XREAD COUNT %d BLOCK %d STREAMS %s %s", READ_MOST,
                                     milliseconds > 0 ? milliseconds : 1, r->name, position);
    line_patience(&r->line, 0);
    if (!reply)
        return -1;
    struct taking t = {NULL, carrier_since(c->reached, carrier_clock()), 0, 0, take, context};
    int n = take_entries(r, reply_part(reply_part(reply, 0), 1), position, &t);
    freeReplyObject(reply);
    char asked[CARRIER_POSITION];
    memcpy(asked, position, sizeof asked);
    /* After a deletion, on a server whose clock was set back, the stream starts again before our position. */
    if (n == 0 && !check_position(r, position))
        return -1;
    if (n >= 0 && n < READ_MOST && strcmp(asked, position) == 0)
        c->reached = began;
    return n;
}

/* Delivers what the owner sent after `from`, up to the position. */
static bool take_again(struct redis *r, const char *owner, char from[CARRIER_POSITION],
                       const char *position, carrier_take take, void *context)
{
    struct taking t = {owner, AGE_UNKNOWN, 0, 0, take, context};
    for (int n = READ_MOST; n == READ_MOST && before(from, position);) {
        redisReply *reply =
            line_command(&r->line, "XRANGE %s (%s %s COUNT %d", r->name, from, position, READ_MOST);
        n = reply ? take_entries(r, reply, from, &t) : -1;
        reply_done(reply);
        if (n < 0)
            return false;
    }
    return true;
}

/* The age of a snapshot is known only from later messages. If it is replaced while its parts are fetched, they do not
   fit together: the follower refuses them and fetches again. */
static int redis_fetch(struct carrier *c, const char *owner, char position[CARRIER_POSITION],
                       carrier_take take, void *context)
{
    struct redis *r = (struct redis *)c;
    char begin[CARRIER_POSITION];
    redisReply *at = line_command(&r->line, "HGET %s %s", r->owners, owner);
    snprintf(begin, sizeof begin, "%s", reply_text(at) ? reply_text(at) : "");
    if (!reply_done(at))
        return -1;
    for (int from = 1; from < PARTS_MOST; from += FETCH_MOST) {
        redisReply *reply = line_command(&r->line, "LRANGE %s%s %d %d", r->prefix, owner, from,
                                         from + FETCH_MOST - 1);
        if (!reply)
            return -1;
        size_t n = reply_parts(reply);
        for (size_t i = 0; i < n; i++)
            if (reply_text(reply_part(reply, i)))
                carrier_deliver(take, context, owner, reply_part(reply, i)->str,
                                reply_part(reply, i)->len, AGE_UNKNOWN);
        freeReplyObject(reply);
        if (n < FETCH_MOST && from == 1 && n == 0)
            return 0;
        if (n < FETCH_MOST)
            return take_again(r, owner, begin, position, take, context) ? 1 : -1;
    }
    carrier_fail(c, "the snapshot of %.100s has no end", owner);
    return -1;
}

static bool redis_owners(struct carrier *c, carrier_each each, void *context)
{
    struct redis *r = (struct redis *)c;
    redisReply *reply = line_command(&r->line, "HGETALL %s", r->owners);
    for (size_t i = 0; i + 1 < reply_parts(reply); i += 2) {
        const char *owner = reply_text(reply_part(reply, i)),
                   *position = reply_text(reply_part(reply, i + 1));
        if (owner && position)
            each(context, owner, strcmp(position, FORGOTTEN) == 0);
    }
    return reply_done(reply);
}

static const struct carrier_kind redis_kind = {redis_send,   redis_replace, redis_fetch,
                                               redis_state,  redis_advance, redis_receive,
                                               redis_owners, redis_retire,  redis_close};

struct carrier *carrier_redis_open(const char *url, char error[256])
{
    struct redis *r = calloc(1, sizeof *r);
    snprintf(error, 256, "out of memory");
    if (!r)
        return NULL;
    r->carrier.kind = &redis_kind;
    r->line.carrier = &r->carrier;
    if (!redis_address_read(&r->line.address, url, error)) {
        redis_close(&r->carrier);
        return NULL;
    }
    r->name = r->line.address.name;
    size_t len = strlen(r->name) + 32;
    bool tagged = strchr(r->name, '{') != NULL;
    r->owners = malloc(len);
    r->prefix = malloc(len);
    if (!r->owners || !r->prefix) {
        snprintf(error, 256, "out of memory");
        redis_close(&r->carrier);
        return NULL;
    }
    snprintf(r->owners, len, tagged ? "%s:owners" : "{%s}:owners", r->name);
    snprintf(r->prefix, len, tagged ? "%s:snapshot:" : "{%s}:snapshot:", r->name);
    return &r->carrier;
}
