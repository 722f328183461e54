/*
 * A line is a connection to a Redis or Valkey server that is restored when it breaks: redis://, rediss:// (TLS) or a
 * unix socket. hiredis formats commands and parses replies; since Debian's version has no TLS, bytes are sent and
 * received here.
 *
 * A broken connection is made again by the next command, after a pause that doubles up to 5 s. In a Cluster the node
 * that has the name is found by following redirects: MOVED permanently, ASK for a single command.
 */
#ifndef TAMIS_REDIS_LINE_H
#define TAMIS_REDIS_LINE_H

#include <hiredis/hiredis.h>
#include <sys/types.h>

#include "carrier.h"

/* ---- addresses: redis_address.c ---- */

struct redis_address {
    char *user, *password, *host, *path, *name; /* path: of a socket */
    char *ca, *cert, *key; /* files for TLS, or NULL: the system's authorities, none */
    int port, db;
    bool tls;
};

/* False with a text. The password is from the environment. */
bool redis_address_read(struct redis_address *a, const char *url, char error[256]);
void redis_address_free(struct redis_address *a);

/* ---- TLS over a connected socket: redis_tls.c ---- */

struct tls;

/* Verifies that the other side is this host. NULL with a text. The socket stays the caller's. */
struct tls *tls_open(int fd, const struct redis_address *a, const char *host, char error[160]);
/* As recv and send. */
ssize_t tls_receive(struct tls *t, void *to, size_t room);
ssize_t tls_send(struct tls *t, const void *data, size_t len);
void tls_close(struct tls *t);

/* ---- lines: redis_line.c ---- */

struct redis_link {
    redisContext *context; /* for its socket and its reader; NULL: not connected */
    struct tls *tls;       /* or NULL */
};

struct redis_line {
    struct carrier *carrier; /* gets the texts of failures */
    struct redis_address address;
    struct redis_link link;
    char *moved; /* the node of a Cluster that has the name, or NULL: the one in the address */
    int moved_port;
    bool pinned; /* a transaction is going on: it cannot go on elsewhere */
    uint64_t next_try, pause;
    int patience; /* milliseconds that a reply may take beyond those of every command */
};

/* Connects and signs in, if it is time to. */
bool line_connected(struct redis_line *l);
/* The server may wait so long before it replies; it may be another one after a redirect. */
void line_patience(struct redis_line *l, int milliseconds);
/* NULL: the carrier's text says why. An error of the server is a failure too. */
redisReply *line_command(struct redis_line *l, const char *format, ...);
void line_free(struct redis_line *l);

/* A server may send anything: part i of an array, NULL if there is none; the text of a string, or NULL; how many
   parts an array has, 0 if it is none. */
const redisReply *reply_part(const redisReply *reply, size_t i);
const char *reply_text(const redisReply *reply);
size_t reply_parts(const redisReply *reply);
/* Frees it; whether there was one. */
bool reply_done(redisReply *reply);

#endif
