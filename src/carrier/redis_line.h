/*
 * A line is a connection to a Redis or Valkey server that is restored when it breaks: redis://, rediss:// (TLS) or a
 * unix socket. hiredis formats commands and parses replies; since Debian's version has no TLS, bytes are sent and
 * received here.
 *
 * The next command reconnects, after a pause that doubles up to 5 s. In a Cluster the node that has the name is found
 * by following redirects: MOVED permanently, ASK for a single command.
 */
#ifndef TAMIS_REDIS_LINE_H
#define TAMIS_REDIS_LINE_H

#include <hiredis/hiredis.h>
#include <sys/types.h>

#include "carrier.h"

/* ---- addresses: redis_address.c ---- */

struct redis_address {
    char *user, *password, *host, *path, *name; /* path: of a unix socket */
    char *ca, *cert, *key; /* files for TLS; NULL: the system's authorities, no certificate */
    int port, db;
    bool tls;
};

/* False with a text. The password comes from the environment. */
bool redis_address_read(struct redis_address *a, const char *url, char error[256]);
void redis_address_free(struct redis_address *a);

/* ---- TLS over a connected socket: redis_tls.c ---- */

struct tls;

/* Verifies that the server is this host. NULL with a text. Does not own the socket. */
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
    struct carrier *carrier; /* for the texts of failures */
    struct redis_address address;
    struct redis_link link;
    char *moved; /* the node of a Cluster that has the name; NULL: the one in the address */
    int moved_port;
    bool pinned; /* in a transaction, which cannot continue on another node */
    uint64_t next_try, pause;
    int patience; /* milliseconds added to the time that a reply may take */
};

/* Connects and logs in, unless it is too early to retry. */
bool line_connected(struct redis_line *l);
/* The server may take this much longer to reply, also after a redirect to another one. */
void line_patience(struct redis_line *l, int milliseconds);
/* NULL with the text in the carrier; an error reply is a failure, too. */
redisReply *line_command(struct redis_line *l, const char *format, ...);
void line_free(struct redis_line *l);

/* Replies may be of any type. Part i of an array, or NULL; the text of a string, or NULL; the number of parts of an
   array, else 0. */
const redisReply *reply_part(const redisReply *reply, size_t i);
const char *reply_text(const redisReply *reply);
size_t reply_parts(const redisReply *reply);
/* Frees a reply; false if it is NULL. */
bool reply_done(redisReply *reply);

#endif
