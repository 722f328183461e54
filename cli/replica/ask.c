/* Queries a follower that serves. Its answers always state their length. See ask.h. */
#define _GNU_SOURCE
#include "ask.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "os/file.h"

#define WAIT_S    5 /* for a follower that does not answer */
#define HEAD_MOST ((size_t)64 << 10)
#define BODY_MOST ((size_t)1 << 30)

static bool failed(struct ask *a, const char *why)
{
    snprintf(a->why, sizeof a->why, "%.255s", why);
    fd_close(&a->fd);
    return false;
}

static bool system_failed(struct ask *a)
{
    return failed(a, errno == EAGAIN || errno == EWOULDBLOCK ? "no answer" : strerror(errno));
}

int unix_connect(const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memcpy(name.sun_path, path, strlen(path));
    if (fd >= 0 && connect(fd, (struct sockaddr *)&name, sizeof name) != 0)
        fd_close(&fd);
    return fd;
}

static int connect_host(const struct serve_address *at, const struct timeval *wait)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    int fd = -1, error = EHOSTUNREACH;
    if (getaddrinfo(at->host, at->port, &hints, &found) != 0)
        found = NULL;
    for (const struct addrinfo *i = found; i && fd < 0; i = i->ai_next) {
        fd = socket(i->ai_family, i->ai_socktype | SOCK_CLOEXEC, i->ai_protocol);
        if (fd < 0)
            continue;
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, wait, sizeof *wait);
        if (connect(fd, i->ai_addr, i->ai_addrlen) == 0)
            continue;
        error = errno;
        fd_close(&fd);
    }
    if (found)
        freeaddrinfo(found);
    errno = error;
    return fd;
}

bool ask_connect(struct ask *a, const struct serve_address *at)
{
    struct timeval wait = {WAIT_S, 0};
    a->head.most = HEAD_MOST;
    a->body.most = BODY_MOST;
    a->fd = at->path[0] ? unix_connect(at->path) : connect_host(at, &wait);
    if (a->fd < 0)
        return system_failed(a);
    setsockopt(a->fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    setsockopt(a->fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
    return true;
}

/* The next bytes; also false at the end. */
static bool receive(struct ask *a, char *piece, size_t room, size_t *len)
{
    ssize_t n;
    do
        n = recv(a->fd, piece, room, 0);
    while (n < 0 && errno == EINTR);
    *len = n > 0 ? (size_t)n : 0;
    return n > 0 || (n < 0 ? system_failed(a) : failed(a, "the answer ends too soon"));
}

uint64_t ask_number(const struct ask *a, const char *header)
{
    size_t len = strlen(header);
    const char *line = (const char *)a->head.data;
    while ((line = strstr(line, "\r\n"))) {
        line += 2;
        if (strncasecmp(line, header, len) == 0 && line[len] == ':')
            return strtoull(line + len + 1, NULL, 10);
    }
    return 0;
}

static bool read_answer(struct ask *a)
{
    char piece[1 << 14];
    size_t len, behind = 0;
    const char *end = NULL;
    a->head.len = a->body.len = 0;
    while (!end) {
        if (!receive(a, piece, sizeof piece, &len))
            return false;
        if (!bytes_put(&a->head, piece, len) || !bytes_put(&a->head, "", 1))
            return failed(a, "not an answer of tamis follow");
        a->head.len--;
        end = strstr((const char *)a->head.data, "\r\n\r\n");
    }
    behind = (size_t)(end + 4 - (const char *)a->head.data);
    len = a->head.len - behind;
    if (!bytes_put(&a->body, a->head.data + behind, len))
        return failed(a, "out of memory");
    a->head.data[behind] = 0;
    if (sscanf((const char *)a->head.data, "HTTP/1.%*1[01] %3u", &a->status) != 1)
        return failed(a, "not an answer of tamis follow");
    uint64_t whole = ask_number(a, "Content-Length");
    while (a->body.len < whole)
        if (!receive(a, piece, sizeof piece, &len))
            return false;
        else if (!bytes_put(&a->body, piece, len))
            return failed(a, "out of memory");
    return a->body.len == whole || failed(a, "not an answer of tamis follow");
}

bool ask_for(struct ask *a, const char *path, const char *accept, const struct bytes *keys,
             char end)
{
    char head[512];
    int len = snprintf(head, sizeof head, "%s %s HTTP/1.1\r\nHost: tamis\r\nAccept: %s\r\n",
                       keys ? "POST" : "GET", path, accept);
    if (keys)
        len += snprintf(head + len, sizeof head - (size_t)len,
                        "Content-Type: %s\r\nContent-Length: %zu\r\n",
                        end == '\n' ? "text/plain"
                        : end       ? "application/json"
                                    : "application/octet-stream",
                        keys->len);
    len += snprintf(head + len, sizeof head - (size_t)len, "\r\n");
    if (file_write(a->fd, head, (size_t)len, -1) != 0 ||
        (keys && file_write(a->fd, keys->data, keys->len, -1) != 0))
        return system_failed(a);
    if (!read_answer(a))
        return false;
    return a->status == 200 || failed(a, "the follower rejected the question");
}

void ask_close(struct ask *a)
{
    fd_close(&a->fd);
    bytes_end(&a->head);
    bytes_end(&a->body);
}
