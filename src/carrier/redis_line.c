/* Connections to Redis: commands and redirects. See redis_line.h. */
#define _GNU_SOURCE
#include "redis_line.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define CONNECT_MS 2000
#define CALL_MS    5000
#define PAUSE_MIN  100
#define PAUSE_MAX  5000
#define HOPS_MOST  5 /* redirects per command */

/* ---- one connection -------------------------------------------------------------------------- */

static struct timeval time_of(int milliseconds)
{
    return (struct timeval){milliseconds / 1000, milliseconds % 1000 * 1000};
}

static void link_close(struct redis_link *link)
{
    tls_close(link->tls);
    if (link->context)
        redisFree(link->context);
    *link = (struct redis_link){0};
}

static bool link_open(const struct redis_line *l, struct redis_link *link, const char *host,
                      int port, char error[160])
{
    const struct redis_address *a = &l->address;
    link->context = a->path ? redisConnectUnixWithTimeout(a->path, time_of(CONNECT_MS))
                            : redisConnectWithTimeout(host, port, time_of(CONNECT_MS));
    bool good = link->context && !link->context->err;
    if (!good)
        snprintf(error, 160, "%.150s", link->context ? link->context->errstr : "out of memory");
    if (good && !a->path)
        redisEnableKeepAlive(link->context);
    if (good)
        redisSetTimeout(link->context, time_of(CALL_MS + l->patience));
    if (good && a->tls)
        good = (link->tls = tls_open(link->context->fd, a, host, error)) != NULL;
    if (!good)
        link_close(link);
    return good;
}

static bool link_send(struct redis_link *link, const char *data, size_t len)
{
    while (len) {
        ssize_t n = link->tls ? tls_send(link->tls, data, len)
                              : send(link->context->fd, data, len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        data += n;
        len -= (size_t)n;
    }
    return true;
}

/* The next reply, or NULL with a text. */
static redisReply *link_receive(struct redis_link *link, char error[160])
{
    char piece[16384]; /* a record of TLS */
    redisReader *reader = link->context->reader;
    void *reply = NULL;
    while (redisReaderGetReply(reader, &reply) == REDIS_OK && !reply) {
        ssize_t n = link->tls ? tls_receive(link->tls, piece, sizeof piece)
                              : recv(link->context->fd, piece, sizeof piece, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            snprintf(error, 160, "%s",
                     n == 0            ? "the server closed the connection"
                     : errno == EAGAIN ? "no answer in time"
                                       : strerror(errno));
            return NULL;
        }
        redisReaderFeed(reader, piece, (size_t)n);
    }
    if (!reply)
        snprintf(error, 160, "%.150s", reader->errstr);
    return reply;
}

static redisReply *link_ask(struct redis_link *link, const char *data, size_t len, char error[160])
{
    if (link_send(link, data, len))
        return link_receive(link, error);
    snprintf(error, 160, "%s", errno == EAGAIN ? "no answer in time" : strerror(errno));
    return NULL;
}

/* ---- replies --------------------------------------------------------------------------------- */

const redisReply *reply_part(const redisReply *reply, size_t i)
{
    return i < reply_parts(reply) ? reply->element[i] : NULL;
}

const char *reply_text(const redisReply *reply)
{
    return reply && reply->type == REDIS_REPLY_STRING ? reply->str : NULL;
}

size_t reply_parts(const redisReply *reply)
{
    return reply && reply->type == REDIS_REPLY_ARRAY ? reply->elements : 0;
}

bool reply_done(redisReply *reply)
{
    if (reply)
        freeReplyObject(reply);
    return reply != NULL;
}

/* ---- the line -------------------------------------------------------------------------------- */

static void disconnect(struct redis_line *l)
{
    link_close(&l->link);
    l->pause = l->pause ? (2 * l->pause < PAUSE_MAX ? 2 * l->pause : PAUSE_MAX) : PAUSE_MIN;
    l->next_try = carrier_now() + l->pause;
}

static const char *host_of(const struct redis_line *l)
{
    return l->moved ? l->moved : l->address.host;
}

static int port_of(const struct redis_line *l)
{
    return l->moved ? l->moved_port : l->address.port;
}

/* Closes the connection. A node of a Cluster that does not answer may have left it: the next connection is to the
   node in the address. */
static void line_fail(struct redis_line *l, const char *why)
{
    if (l->address.path)
        carrier_fail(l->carrier, "%.100s: %s", l->address.path, why);
    else
        carrier_fail(l->carrier, "%.100s:%d: %s", host_of(l), port_of(l), why);
    free(l->moved);
    l->moved = NULL;
    disconnect(l);
}

/* NULL after line_fail if it is an error. */
static redisReply *checked(struct redis_line *l, redisReply *reply)
{
    static const char *const for_ever[] = {"NOAUTH",
                                           "WRONGPASS",
                                           "WRONGTYPE",
                                           "NOPERM",
                                           "ERR DB index",
                                           "CROSSSLOT",
                                           "ERR invalid DB",
                                           "ERR AUTH",
                                           "ERR SELECT is",
                                           "DENIED",
                                           "ERR Client sent AUTH",
                                           "ERR unknown command"};
    char why[192];
    if (!reply || reply->type != REDIS_REPLY_ERROR)
        return reply;
    for (size_t i = 0; i < sizeof for_ever / sizeof *for_ever; i++)
        l->carrier->hopeless |= strncmp(reply->str, for_ever[i], strlen(for_ever[i])) == 0;
    snprintf(why, sizeof why, "%.180s", reply->str);
    freeReplyObject(reply);
    line_fail(l, why); /* loading, a replica, out of memory: to be retried */
    return NULL;
}

/* AUTH and SELECT, or PING, on a new connection. Returns the last reply, possibly an error; NULL with a text. */
static redisReply *sign_in(struct redis_line *l, struct redis_link *link, char error[160])
{
    const struct redis_address *a = &l->address;
    char *command[2] = {NULL}, db[16];
    int len[2] = {0};
    redisReply *reply = NULL;
    snprintf(db, sizeof db, "%d", a->db);
    if (a->password && a->user)
        len[0] = redisFormatCommand(&command[0], "AUTH %s %s", a->user, a->password);
    else if (a->password)
        len[0] = redisFormatCommand(&command[0], "AUTH %s", a->password);
    len[1] = redisFormatCommand(&command[1], a->db ? "SELECT %s" : "PING", db);
    bool good = (!a->password || len[0] > 0) && len[1] > 0;
    if (!good)
        snprintf(error, 160, "out of memory");
    for (int i = 0; good && i < 2; i++) {
        if (len[i] <= 0 || (reply && reply->type == REDIS_REPLY_ERROR))
            continue;
        reply_done(reply);
        reply = link_ask(link, command[i], (size_t)len[i], error);
        if (!reply)
            break;
    }
    for (int i = 0; i < 2; i++)
        if (command[i])
            redisFreeCommand(command[i]);
    return reply;
}

bool line_connected(struct redis_line *l)
{
    char error[160] = "";
    if (l->link.context)
        return true;
    if (carrier_now() < l->next_try)
        return false; /* with the last text */
    if (!link_open(l, &l->link, host_of(l), port_of(l), error))
        return line_fail(l, error), false;
    redisReply *reply = sign_in(l, &l->link, error);
    if (!reply)
        return line_fail(l, error), false;
    if (!reply_done(checked(l, reply)))
        return false;
    l->pause = 0;
    return true;
}

void line_patience(struct redis_line *l, int milliseconds)
{
    l->patience = milliseconds;
    if (l->link.context)
        redisSetTimeout(l->link.context, time_of(CALL_MS + milliseconds));
}

/* "MOVED 3999 127.0.0.1:6381"; without a host, it is the same one. */
static bool read_redirect(const struct redis_line *l, const redisReply *reply, char host[256],
                          int *port)
{
    const char *at = reply->str, *colon = strrchr(at, ':');
    at = (at = strchr(at, ' ')) ? strchr(at + 1, ' ') : NULL;
    if (!at || !colon || colon <= at || colon - at - 1 >= 256)
        return false;
    unsigned long number = strtoul(colon + 1, NULL, 10);
    *port = number < 65536 ? (int)number : 0;
    snprintf(host, 256, "%.*s", (int)(colon - at - 1), at + 1);
    if (!host[0] || strcmp(host, "?") == 0)
        snprintf(host, 256, "%.255s", host_of(l));
    return *port > 0;
}

/* Connects to this node from now on. */
static bool move(struct redis_line *l, const char *host, int port)
{
    char *copy = strdup(host);
    if (!copy)
        return false;
    link_close(&l->link);
    free(l->moved);
    l->moved = copy;
    l->moved_port = port;
    return line_connected(l);
}

/* Sends one command to the node to which the slot is being moved. */
static redisReply *ask_elsewhere(struct redis_line *l, const char *host, int port, const char *data,
                                 size_t len, char error[160])
{
    static const char asking[] = "*1\r\n$6\r\nASKING\r\n";
    struct redis_link link = {0};
    redisReply *reply = NULL;
    if (link_open(l, &link, host, port, error) && reply_done(sign_in(l, &link, error)) &&
        reply_done(link_ask(&link, asking, sizeof asking - 1, error)))
        reply = link_ask(&link, data, len, error);
    link_close(&link);
    return reply;
}

/* Sends a command, following redirects. NULL after line_fail. */
static redisReply *follow(struct redis_line *l, const char *data, size_t len)
{
    char error[160] = "", host[256];
    int port;
    redisReply *reply = link_ask(&l->link, data, len, error);
    for (int hops = 0; reply && reply->type == REDIS_REPLY_ERROR && hops < HOPS_MOST; hops++) {
        bool moved = strncmp(reply->str, "MOVED ", 6) == 0;
        if ((!moved && strncmp(reply->str, "ASK ", 4) != 0) || (l->pinned && !moved) ||
            l->address.path || !read_redirect(l, reply, host, &port))
            break;
        reply_done(reply);
        if (moved && !move(l, host, port))
            return NULL;
        if (moved && l->pinned) { /* the transaction is lost; the next attempt starts here */
            carrier_fail(l->carrier, "%.100s:%d: the Cluster has moved its slot", host, port);
            return NULL;
        }
        reply = moved ? link_ask(&l->link, data, len, error)
                      : ask_elsewhere(l, host, port, data, len, error);
    }
    if (!reply)
        line_fail(l, error);
    return reply;
}

redisReply *line_command(struct redis_line *l, const char *format, ...)
{
    char *data = NULL;
    va_list args;
    if (!line_connected(l))
        return NULL;
    va_start(args, format);
    int len = redisvFormatCommand(&data, format, args);
    va_end(args);
    if (len <= 0) { /* fails the line: a transaction must not continue */
        line_fail(l, "out of memory");
        return NULL;
    }
    redisReply *reply = checked(l, follow(l, data, (size_t)len));
    redisFreeCommand(data);
    return reply;
}

void line_free(struct redis_line *l)
{
    link_close(&l->link);
    redis_address_free(&l->address);
    free(l->moved);
}
