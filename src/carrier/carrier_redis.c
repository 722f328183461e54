/*
 * Redis Streams, with plain Redis 7 or Valkey. For the name N (in braces, so that a cluster keeps all
 * of it in one place):
 *
 *     N                        stream: an entry a message, fields "o" owner and "m" message
 *     {N}:owners               hash: owner -> position up to which its snapshot makes the stream
 *                              unnecessary; or "forgotten"
 *     {N}:snapshot:OWNER       list: "EPOCH", then the messages of the snapshot
 *
 * A snapshot is written aside and renamed, together with its position, in one transaction. The stream
 * is then cut before the earliest position of all owners that is not an hour behind the last one: what
 * the snapshot of a living owner needs is never removed, and a dead one holds nothing. Followers keep
 * their own position, so the server keeps nothing for them.
 *
 * A lost connection is made again when the next call comes, after a pause that doubles up to 5 s.
 */
#include "carrier.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CONNECT_MS 2000
#define CALL_MS    5000
#define PAUSE_MIN  100
#define PAUSE_MAX  5000
#define READ_MOST  64        /* messages in one reply */
#define FETCH_MOST 8         /* parts of a snapshot in one reply */
#define PARTS_MOST (1 << 18) /* of a snapshot: more are none of ours */
#define EXPIRE_MS  3600000   /* an owner that is so far behind the others keeps no messages */
#define FORGOTTEN  "forgotten"

struct redis {
    struct carrier carrier;
    char *user, *password, *host, *path, *name; /* path: of a socket */
    int port, db;
    char *owners, *prefix; /* names of keys */
    redisContext *context;
    uint64_t next_try, pause;
    char first[CARRIER_POSITION], last[CARRIER_POSITION]; /* sent since the snapshot; "": nothing */
};

/* ---- the address ----------------------------------------------------------------------------- */

static char *copy_text(const char *text, size_t len)
{
    char *copy = malloc(len + 1);
    if (copy) {
        memcpy(copy, text, len);
        copy[len] = 0;
    }
    return copy;
}

/* Percent signs in user, password and name stand for bytes, as in any address. */
static char *unquoted(const char *text, size_t len)
{
    char *out = malloc(len + 2);
    if (out && !carrier_unquote(text, len, out, len + 2)) {
        free(out);
        out = NULL;
    }
    return out;
}

static bool read_login(struct redis *r, const char *text, size_t len)
{
    const char *colon = memchr(text, ':', len);
    size_t user = colon ? (size_t)(colon - text) : len;
    if (user && !(r->user = unquoted(text, user)))
        return false;
    return !colon || (r->password = unquoted(colon + 1, len - user - 1));
}

static bool read_number(const char *text, size_t len, int most, int *out)
{
    char digits[8] = {0};
    if (len == 0 || len >= sizeof digits || strspn(text, "0123456789") < len)
        return false;
    memcpy(digits, text, len);
    *out = atoi(digits);
    return *out <= most;
}

/* [USER[:PASSWORD]@]HOST[:PORT]/NAME[?db=N], or /PATH?name=NAME[&db=N] for a socket. */
static bool read_query(struct redis *r, const char *query)
{
    while (*query) {
        size_t len = strcspn(query, "&");
        if (len > 3 && strncmp(query, "db=", 3) == 0) {
            if (!read_number(query + 3, len - 3, 999999, &r->db))
                return false;
        } else if (len > 5 && strncmp(query, "name=", 5) == 0 && !r->name) {
            if (!(r->name = unquoted(query + 5, len - 5)))
                return false;
        } else {
            return false;
        }
        query += len + (query[len] == '&');
    }
    return true;
}

static bool read_host(struct redis *r, const char *text, size_t len)
{
    const char *at = memchr(text, '@', len);
    if (at && !read_login(r, text, (size_t)(at - text)))
        return false;
    if (at)
        len -= (size_t)(at - text) + 1, text = at + 1;
    size_t host = len;
    if (len && text[0] == '[') { /* an IPv6 address */
        const char *close = memchr(text, ']', len);
        if (!close)
            return false;
        r->host = copy_text(text + 1, (size_t)(close - text) - 1);
        host = (size_t)(close - text) + 1;
    } else {
        const char *colon = memchr(text, ':', len);
        host = colon ? (size_t)(colon - text) : len;
        r->host = host ? copy_text(text, host) : copy_text("127.0.0.1", 9);
    }
    if (host == len)
        return r->host;
    return r->host && text[host] == ':' &&
           read_number(text + host + 1, len - host - 1, 65535, &r->port);
}

static bool read_url(struct redis *r, const char *url)
{
    size_t len;
    r->port = 6379;
    if (strncmp(url, "redis+unix://", 13) == 0) {
        len = strcspn(url += 13, "?");
        r->path = copy_text(url, len);
        return len && r->path && url[len] && read_query(r, url + len + 1) && r->name;
    }
    len = strcspn(url += 8, "/");
    if (!read_host(r, url, len) || url[len] != '/')
        return false;
    url += len + 1;
    len = strcspn(url, "?");
    r->name = len ? unquoted(url, len) : NULL;
    return r->name && (!url[len] || read_query(r, url + len + 1));
}

/* From the environment, or a file that it names: arguments can be read by everybody on the machine. */
static bool find_password(struct redis *r, char error[256])
{
    const char *given = getenv("TAMIS_REDIS_PASSWORD");
    const char *path = getenv("TAMIS_REDIS_PASSWORD_FILE");
    char line[1024] = "";
    if (r->password || (!given && !path))
        return true;
    FILE *file = given ? NULL : fopen(path, "r");
    if (!given && (!file || !fgets(line, sizeof line, file))) {
        snprintf(error, 256, "%.200s: no password in it", path);
        if (file)
            fclose(file);
        return false;
    }
    if (file)
        fclose(file);
    given = given ? given : line;
    r->password = copy_text(given, strcspn(given, "\r\n"));
    memset(line, 0, sizeof line);
    return r->password != NULL;
}

static void redis_close(struct carrier *c)
{
    struct redis *r = (struct redis *)c;
    char *const texts[] = {r->user, r->password, r->host, r->path, r->name, r->owners, r->prefix};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free(texts[i]);
    if (r->context)
        redisFree(r->context);
    free(r);
}

/* ---- the connection -------------------------------------------------------------------------- */

static void disconnect(struct redis *r)
{
    if (r->context)
        redisFree(r->context);
    r->context = NULL;
    r->pause = r->pause ? (2 * r->pause < PAUSE_MAX ? 2 * r->pause : PAUSE_MAX) : PAUSE_MIN;
    r->next_try = carrier_now() + r->pause;
}

static const char *where(const struct redis *r, char room[128])
{
    if (r->path)
        snprintf(room, 128, "%.100s", r->path);
    else
        snprintf(room, 128, "%.100s:%d", r->host, r->port);
    return room;
}

/* NULL: the text says why. An error of the server is a failure too. */
static redisReply *checked(struct redis *r, redisReply *reply)
{
    char room[128];
    if (!reply) {
        carrier_fail(&r->carrier, "%s: %s", where(r, room),
                     r->context->errstr[0] ? r->context->errstr : "the connection was lost");
        disconnect(r);
        return NULL;
    }
    if (reply->type != REDIS_REPLY_ERROR)
        return reply;
    static const char *const for_ever[] = {"NOAUTH",
                                           "WRONGPASS",
                                           "WRONGTYPE",
                                           "NOPERM",
                                           "ERR DB index",
                                           "ERR invalid DB",
                                           "ERR AUTH",
                                           "ERR Client sent AUTH",
                                           "ERR unknown command"};
    for (size_t i = 0; i < sizeof for_ever / sizeof *for_ever; i++)
        r->carrier.hopeless |= strncmp(reply->str, for_ever[i], strlen(for_ever[i])) == 0;
    carrier_fail(&r->carrier, "%s: %.180s", where(r, room), reply->str);
    freeReplyObject(reply);
    disconnect(r); /* loading, a replica, out of memory: later again */
    return NULL;
}

/* A server may send anything: part i of an array, NULL if there is none; the text of a string, or
   NULL. */
static const redisReply *part(const redisReply *reply, size_t i)
{
    bool has = reply && reply->type == REDIS_REPLY_ARRAY && i < reply->elements;
    return has ? reply->element[i] : NULL;
}

static const char *text(const redisReply *reply)
{
    return reply && reply->type == REDIS_REPLY_STRING ? reply->str : NULL;
}

static size_t parts_of(const redisReply *reply)
{
    return reply && reply->type == REDIS_REPLY_ARRAY ? reply->elements : 0;
}

static bool done(redisReply *reply)
{
    if (reply)
        freeReplyObject(reply);
    return reply != NULL;
}

#define COMMAND(r, ...) checked(r, redisCommand((r)->context, __VA_ARGS__))

static bool sign_in(struct redis *r)
{
    if (r->user && r->password && !done(COMMAND(r, "AUTH %s %s", r->user, r->password)))
        return false;
    if (!r->user && r->password && !done(COMMAND(r, "AUTH %s", r->password)))
        return false;
    return !r->db || done(COMMAND(r, "SELECT %d", r->db));
}

static struct timeval time_of(int milliseconds)
{
    return (struct timeval){milliseconds / 1000, milliseconds % 1000 * 1000};
}

static bool connected(struct redis *r)
{
    char room[128];
    if (r->context && !r->context->err)
        return true;
    if (carrier_now() < r->next_try)
        return false; /* the last text stands */
    if (r->context)
        redisFree(r->context);
    r->context = r->path ? redisConnectUnixWithTimeout(r->path, time_of(CONNECT_MS))
                         : redisConnectWithTimeout(r->host, r->port, time_of(CONNECT_MS));
    if (!r->context || r->context->err) {
        carrier_fail(&r->carrier, "%s: %s", where(r, room),
                     r->context ? r->context->errstr : "out of memory");
        disconnect(r);
        return false;
    }
    if (!r->path)
        redisEnableKeepAlive(r->context);
    redisSetTimeout(r->context, time_of(CALL_MS));
    if (!sign_in(r))
        return false;
    r->pause = 0;
    return true;
}

/* ---- origins --------------------------------------------------------------------------------- */

static bool redis_send(struct carrier *c, const char *owner, const void *data, size_t len)
{
    struct redis *r = (struct redis *)c;
    redisReply *reply =
        connected(r) ? COMMAND(r, "XADD %s * o %s m %b", r->name, owner, data, len) : NULL;
    if (text(reply)) {
        snprintf(r->last, sizeof r->last, "%s", text(reply));
        if (!r->first[0])
            memcpy(r->first, r->last, sizeof r->first);
    }
    return done(reply);
}

/* The last entry of the stream, "0-0" if there is none. */
static bool last_position(struct redis *r, char position[CARRIER_POSITION])
{
    redisReply *reply = COMMAND(r, "XREVRANGE %s + - COUNT 1", r->name);
    if (!reply)
        return false;
    const char *last = text(part(part(reply, 0), 0));
    snprintf(position, CARRIER_POSITION, "%s", last ? last : "0-0");
    freeReplyObject(reply);
    return true;
}

/* What is none is before all others. */
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

static bool trim(struct redis *r)
{
    redisReply *reply = COMMAND(r, "HVALS %s", r->owners);
    uint64_t least[2] = {UINT64_MAX, UINT64_MAX}, each[2], newest = 0;
    if (!reply)
        return false;
    for (size_t i = 0; i < parts_of(reply); i++) {
        parse_position(text(part(reply, i)), each);
        newest = each[0] > newest ? each[0] : newest;
    }
    for (size_t i = 0; i < parts_of(reply); i++) {
        parse_position(text(part(reply, i)), each);
        if (newest - each[0] < EXPIRE_MS &&
            (each[0] != least[0] ? each[0] < least[0] : each[1] < least[1]))
            memcpy(least, each, sizeof least);
    }
    freeReplyObject(reply);
    return least[0] == UINT64_MAX ||
           done(COMMAND(r, "XTRIM %s MINID %llu-%llu", r->name, (unsigned long long)least[0],
                        (unsigned long long)least[1]));
}

static bool exchange(struct redis *r, const char *owner, const char *position)
{
    redisReply *reply;
    if (!done(COMMAND(r, "MULTI")) ||
        !done(COMMAND(r, "RENAME %s%s:new %s%s", r->prefix, owner, r->prefix, owner)) ||
        !done(COMMAND(r, "HSET %s %s %s", r->owners, owner, position)) ||
        !(reply = COMMAND(r, "EXEC")))
        return false;
    bool good = parts_of(reply) == 2 && part(reply, 0) && part(reply, 0)->type != REDIS_REPLY_ERROR;
    if (!good)
        carrier_fail(&r->carrier, "the snapshot of %.100s was not exchanged", owner);
    freeReplyObject(reply);
    return good;
}

/* Another origin of this name may do the same: only one of both transactions is carried out. */
static bool redis_replace(struct carrier *c, const char *owner, uint64_t epoch,
                          const struct carrier_part *parts, size_t n)
{
    struct redis *r = (struct redis *)c;
    char position[CARRIER_POSITION];
    struct carrier_state state;
    if (!connected(r) || !done(COMMAND(r, "WATCH %s%s", r->prefix, owner)) ||
        !carrier_state(c, owner, &state) || !carrier_yields(c, owner, &state, epoch) ||
        !last_position(r, position) || !done(COMMAND(r, "DEL %s%s:new", r->prefix, owner)) ||
        !done(COMMAND(r, "RPUSH %s%s:new %llu", r->prefix, owner, (unsigned long long)epoch)))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!done(COMMAND(r, "RPUSH %s%s:new %b", r->prefix, owner, parts[i].data, parts[i].len)))
            return false;
    if (!exchange(r, owner, position))
        return false;
    r->first[0] = r->last[0] = 0;
    return trim(r);
}

static bool entry_there(struct redis *r, const char *id, bool *there)
{
    redisReply *reply = COMMAND(r, "XRANGE %s %s %s", r->name, id, id);
    *there &= parts_of(reply) == 1;
    return done(reply);
}

/* A stream that was cut short has lost its first entries, and one of a server that went back in time
   the last ones. The first that is sent on a snapshot is a heartbeat, and so is the last nearly always,
   so this looks at few bytes. */
static bool redis_state(struct carrier *c, const char *owner, struct carrier_state *state)
{
    struct redis *r = (struct redis *)c;
    redisReply *reply = connected(r) ? COMMAND(r, "LINDEX %s%s 0", r->prefix, owner) : NULL;
    if (!reply)
        return false;
    state->there = state->whole = text(reply) != NULL;
    if (text(reply))
        state->epoch = strtoull(text(reply), NULL, 10);
    freeReplyObject(reply);
    return !r->first[0] ||
           (entry_there(r, r->first, &state->whole) && entry_there(r, r->last, &state->whole));
}

static bool redis_advance(struct carrier *c, const char *owner)
{
    struct redis *r = (struct redis *)c;
    if (!r->last[0])
        return true;
    if (!connected(r) || !done(COMMAND(r, "HSET %s %s %s", r->owners, owner, r->last)))
        return false;
    memcpy(r->first, r->last, sizeof r->first); /* stays: the cut is before it */
    return trim(r);
}

static bool redis_retire(struct carrier *c, const char *owner, bool forget)
{
    struct redis *r = (struct redis *)c;
    return connected(r) &&
           done(forget ? COMMAND(r, "HSET %s %s " FORGOTTEN, r->owners, owner)
                       : COMMAND(r, "HDEL %s %s", r->owners, owner)) &&
           done(COMMAND(r, "DEL %s%s", r->prefix, owner)) && trim(r);
}

/* ---- followers ------------------------------------------------------------------------------- */

static bool server_time(struct redis *r, uint64_t *milliseconds)
{
    redisReply *reply = COMMAND(r, "TIME");
    if (!reply)
        return false;
    const char *seconds = text(part(reply, 0)), *micro = text(part(reply, 1));
    *milliseconds = seconds && micro
                        ? strtoull(seconds, NULL, 10) * 1000 + strtoull(micro, NULL, 10) / 1000
                        : 0;
    freeReplyObject(reply);
    return true;
}

/* Where the entries of a reply go; of one owner only, unless NULL. */
struct taking {
    const char *only;
    uint64_t age;   /* of all, or AGE_UNKNOWN: by their ids, which begin with the time, */
    uint64_t clock; /* and this is the server's, in milliseconds */
    carrier_take take;
    void *context;
};

/* An entry: its id, and fields with values. */
static bool take_entry(const redisReply *entry, const struct taking *t)
{
    const redisReply *fields = part(entry, 1), *message = NULL;
    const char *owner = NULL, *id = text(part(entry, 0));
    uint64_t age = t->age;
    for (size_t i = 0; i + 1 < parts_of(fields); i += 2) {
        const char *name = text(part(fields, i));
        if (name && strcmp(name, "o") == 0)
            owner = text(part(fields, i + 1));
        else if (name && strcmp(name, "m") == 0)
            message = part(fields, i + 1);
    }
    if (!id || !owner || !text(message))
        return false; /* somebody else's: passed over */
    if (t->only && strcmp(t->only, owner) != 0)
        return false;
    if (age == AGE_UNKNOWN &&
        (age = carrier_since(strtoull(id, NULL, 10), t->clock)) != AGE_UNKNOWN)
        age = age < UINT64_MAX / 1000000 ? age * 1000000 : AGE_UNKNOWN;
    carrier_deliver(t->take, t->context, owner, message->str, message->len, age);
    return true;
}

/* How many there were, or -1; the position is the last one's. */
static int take_entries(struct redis *r, const redisReply *entries, char position[CARRIER_POSITION],
                        struct taking *t)
{
    size_t n = parts_of(entries);
    if (n && t->age == AGE_UNKNOWN && !server_time(r, &t->clock))
        return -1;
    for (size_t i = 0; i < n; i++) {
        const char *id = text(part(part(entries, i), 0));
        take_entry(part(entries, i), t);
        if (id)
            snprintf(position, CARRIER_POSITION, "%s", id);
    }
    return (int)n;
}

/* A stream that ends before our position is another one: the server lost its data. */
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
    bool fresh = !r->context || !position[0];
    if (!connected(r)) {
        uint64_t now = carrier_now(), wait = r->next_try > now ? r->next_try - now : 0;
        carrier_sleep(wait < (uint64_t)milliseconds ? wait : (uint64_t)milliseconds);
        return -1;
    }
    if (fresh && !check_position(r, position))
        return -1;
    redisSetTimeout(r->context, time_of(CALL_MS + milliseconds));
    uint64_t began = carrier_clock();
    redisReply *reply = COMMAND(r, "XREAD COUNT %d BLOCK %d STREAMS %s %s", READ_MOST,
                                milliseconds > 0 ? milliseconds : 1, r->name, position);
    if (!reply)
        return -1;
    redisSetTimeout(r->context, time_of(CALL_MS));
    struct taking t = {NULL, carrier_since(c->reached, carrier_clock()), 0, take, context};
    int n = take_entries(r, part(part(reply, 0), 1), position, &t);
    freeReplyObject(reply);
    if (n >= 0 && n < READ_MOST)
        c->reached = began;
    return n;
}

/* What the owner sent after `from`, up to the position. */
static bool take_again(struct redis *r, const char *owner, char from[CARRIER_POSITION],
                       const char *position, carrier_take take, void *context)
{
    struct taking t = {owner, AGE_UNKNOWN, 0, take, context};
    for (int n = READ_MOST; n == READ_MOST && before(from, position);) {
        redisReply *reply = connected(r) ? COMMAND(r, "XRANGE %s (%s %s COUNT %d", r->name, from,
                                                   position, READ_MOST)
                                         : NULL;
        n = reply ? take_entries(r, reply, from, &t) : -1;
        done(reply);
        if (n < 0)
            return false;
    }
    return true;
}

/* How old a snapshot is, only later messages tell. In pieces; if it is exchanged meanwhile, its parts
   do not fit together, the follower says so, and the next fetch is whole. */
static int redis_fetch(struct carrier *c, const char *owner, char position[CARRIER_POSITION],
                       carrier_take take, void *context)
{
    struct redis *r = (struct redis *)c;
    char begin[CARRIER_POSITION];
    redisReply *at = connected(r) ? COMMAND(r, "HGET %s %s", r->owners, owner) : NULL;
    snprintf(begin, sizeof begin, "%s", text(at) ? text(at) : "");
    if (!done(at))
        return -1;
    for (int from = 1; from < PARTS_MOST; from += FETCH_MOST) {
        redisReply *reply = connected(r) ? COMMAND(r, "LRANGE %s%s %d %d", r->prefix, owner, from,
                                                   from + FETCH_MOST - 1)
                                         : NULL;
        if (!reply)
            return -1;
        size_t n = parts_of(reply);
        for (size_t i = 0; i < n; i++)
            if (text(part(reply, i)))
                carrier_deliver(take, context, owner, part(reply, i)->str, part(reply, i)->len,
                                AGE_UNKNOWN);
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
    redisReply *reply = connected(r) ? COMMAND(r, "HGETALL %s", r->owners) : NULL;
    for (size_t i = 0; i + 1 < parts_of(reply); i += 2) {
        const char *owner = text(part(reply, i)), *position = text(part(reply, i + 1));
        if (owner && position)
            each(context, owner, strcmp(position, FORGOTTEN) == 0);
    }
    return done(reply);
}

static const struct carrier_kind redis_kind = {redis_send,   redis_replace, redis_fetch,
                                               redis_state,  redis_advance, redis_receive,
                                               redis_owners, redis_retire,  redis_close};

struct carrier *carrier_redis_open(const char *url, char error[256])
{
    struct redis *r = calloc(1, sizeof *r);
    if (!r) {
        snprintf(error, 256, "out of memory");
        return NULL;
    }
    r->carrier.kind = &redis_kind;
    if (!read_url(r, url)) {
        snprintf(error, 256,
                 "not an address of Redis: give redis://[USER:PASSWORD@]HOST[:PORT]/NAME[?db=N] or "
                 "redis+unix:///SOCKET?name=NAME");
        redis_close(&r->carrier);
        return NULL;
    }
    snprintf(error, 256, "out of memory");
    if (!find_password(r, error)) {
        redis_close(&r->carrier);
        return NULL;
    }
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
