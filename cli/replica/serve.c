/* The HTTP server of a follower, with libmicrohttpd. See serve.h; for the pages, answers.c and serve_pages.c. */
#define _GNU_SOURCE
#include "ask.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "carrier/carrier.h"
#include "os/late.h"
#include "read/reader_parse.h"
#include "ui/args.h"
#include "ui/out.h"

/* ---- addresses ------------------------------------------------------------------------------- */

static bool bad_address(const char *text)
{
    return refuse("not an address '%s': give unix:PATH (at most %zu bytes), PORT or HOST:PORT",
                  text, sizeof((struct sockaddr_un *)0)->sun_path - 1);
}

static bool read_unix(struct serve_address *a, const char *path)
{
    char folder[256] = "";
    if (path[0] != '/' && !getcwd(folder, sizeof folder))
        return false;
    int len = snprintf(a->path, sizeof a->path, "%s", path);
    if (strlen(folder) + strlen(path) + 1 < sizeof a->path) /* else it is not announced */
        snprintf(a->whole, sizeof a->whole, "unix:%s%s%s", folder, folder[0] ? "/" : "", path);
    return len > 0 && len < (int)sizeof a->path && !strchr(path, '\n');
}

bool serve_address_read(struct serve_address *a, const char *text)
{
    *a = (struct serve_address){0};
    if (strncmp(text, "unix:", 5) == 0)
        return read_unix(a, text + 5) || bad_address(text);
    text += strncmp(text, "http://", 7) == 0 ? 7 : 0;
    const char *colon = strrchr(text, ':');
    size_t len = colon ? (size_t)(colon - text) : 0;
    const char *host = len ? text : "127.0.0.1", *port = colon ? colon + 1 : text;
    len = len ? len : strlen(host);
    bool boxed = host[0] == '[' && host[len - 1] == ']';
    uint64_t number;
    size_t digits = strspn(port, "0123456789");
    if (len > 250 || digits == 0 || digits > 5 || (port[digits] && strcmp(port + digits, "/") != 0))
        return bad_address(text);
    snprintf(a->host, sizeof a->host, "%.*s", (int)(len - 2 * boxed), host + boxed);
    snprintf(a->port, sizeof a->port, "%.*s", (int)digits, port);
    if (!parse_count(a->port, &number) || number > 65535)
        return bad_address(text);
    snprintf(a->whole, sizeof a->whole, "http://%.*s:%s", (int)len, host, a->port);
    return true;
}

uint64_t serve_folder(const char *folder)
{
    struct stat st;
    return stat(folder, &st) == 0 ? (uint64_t)st.st_ino ^ (uint64_t)st.st_dev << 48 : 0;
}

#ifndef TAMIS_HAVE_MICROHTTPD

struct serving *serve_start(const struct serve_address *address, const tamis_directory *directory,
                            const tamis_following *following, const char *folder)
{
    (void)address, (void)directory, (void)following, (void)folder;
    complain("built without libmicrohttpd, which --serve needs: install it and build again");
    return NULL;
}

void serve_stop(struct serving *serving)
{
    (void)serving;
}

#else

#include <microhttpd.h>

/* The functions of libmicrohttpd that are used. */
#define FUNCTIONS(X)                                                \
    X(start, MHD_start_daemon)                                      \
    X(stop, MHD_stop_daemon)                                        \
    X(response, MHD_create_response_from_buffer_with_free_callback) \
    X(destroy, MHD_destroy_response)                                \
    X(header, MHD_add_response_header)                              \
    X(queue, MHD_queue_response)                                    \
    X(value, MHD_lookup_connection_value)                           \
    X(values, MHD_get_connection_values_n)
LATE_TABLE(FUNCTIONS);

#define CONNECTIONS  256
#define TIMEOUT_S    30                /* without a byte in either direction */
#define THREADS_MOST 4                 /* a query takes microseconds */
#define BODY_MOST    ((size_t)1 << 20) /* bytes of keys, */
#define PASSED_MOST \
    (4 * BODY_MOST)        /* bytes that are read of one that is too long: a client that
                                           is still sending does not read the error */
#define KEYS_MOST    10000 /* and their number */
#define ANSWER_MOST  ((size_t)64 << 20)  /* bytes of an answer, */
#define WAITING_MOST ((size_t)256 << 20) /* and of all that clients have not read yet */

struct serving {
    struct MHD_Daemon *daemon;
    const tamis_directory *directory;
    const tamis_following *following;
    struct serve_counts counts;
    _Atomic uint64_t waiting;
    char path[108], folder[32];
};

/* From the first line of a request until its answer has been read. */
struct request {
    struct bytes body;
    size_t passed;  /* bytes of a body that is too long */
    size_t waiting; /* of the answer */
};

struct reply {
    unsigned status;
    const char *type;
    char why[256]; /* of an error */
    struct bytes text;
    uint64_t hit, doubtful; /* keys, for the headers of /locate */
    bool counts;
};

static const char type_json[] = "application/json";
static const char type_lines[] = "application/x-ndjson";
static const char type_text[] = "text/plain; charset=utf-8";
static const char type_bytes[] = "application/octet-stream";
static const char type_metrics[] = "text/plain; version=0.0.4; charset=utf-8";

static void reply_error(struct reply *r, unsigned status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void reply_error(struct reply *r, unsigned status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(r->why, sizeof r->why, format, args);
    va_end(args);
    r->status = status;
}

/* ---- the keys of a request ------------------------------------------------------------------- */

struct wanted_keys {
    tamis_key *keys;
    size_t n, room;
    struct reply *reply;
};

static bool want(struct wanted_keys *w, const void *data, size_t len)
{
    if (w->n == KEYS_MOST)
        return reply_error(w->reply, 413, "more than %d keys: ask for fewer at a time", KEYS_MOST),
               false;
    const tamis_key key = {data, len};
    return array_add(&w->keys, &w->n, &w->room, &key, sizeof key) ||
           (reply_error(w->reply, 503, "out of memory"), false);
}

/* Unescapes a JSON string at p in place and makes it a key; returns what follows it, or NULL. */
static uint8_t *want_string(struct wanted_keys *w, uint8_t *p, const uint8_t *end)
{
    const uint8_t *bad = NULL,
                  *quote = p < end && *p == '"' ? json_string_end(p + 1, end, &bad) : NULL;
    if (!quote || !want(w, p + 1, json_unescape(p + 1, quote, p + 1)))
        return NULL;
    return (uint8_t *)(uintptr_t)quote + 1;
}

static uint8_t *skip(uint8_t *p, const uint8_t *end, const char *text)
{
    size_t len = strlen(text);
    p = p ? (uint8_t *)(uintptr_t)json_blanks(p, end) : NULL;
    return p && (size_t)(end - p) >= len && memcmp(p, text, len) == 0 ? p + len : NULL;
}

/* ["a", "b"] or {"keys": ["a", "b"]} */
static void want_json(struct wanted_keys *w, struct bytes *body)
{
    uint8_t *p = (uint8_t *)body->data, *end = p ? p + body->len : p, *next;
    uint8_t *object = skip(p, end, "{");
    if (object)
        p = skip(skip(object, end, "\"keys\""), end, ":");
    p = skip(p, end, "[");
    if (p && (next = skip(p, end, "]"))) {
        p = next;
    } else {
        while (p && (p = want_string(w, (uint8_t *)(uintptr_t)json_blanks(p, end), end)) &&
               (next = skip(p, end, ",")))
            p = next;
        p = skip(p, end, "]");
    }
    if (p && object)
        p = skip(p, end, "}");
    if ((!p || json_blanks(p, end) != end) && !w->reply->status)
        reply_error(w->reply, 400, "not a list of keys: send {\"keys\": [\"KEY\", ...]}");
}

static void want_lines(struct wanted_keys *w, const struct bytes *body, char end)
{
    for (size_t at = 0; at < body->len;) {
        const uint8_t *line = body->data + at, *stop = memchr(line, end, body->len - at);
        size_t len = stop ? (size_t)(stop - line) : body->len - at;
        if (!want(w, line, len))
            return;
        at += len + 1;
    }
}

static enum MHD_Result want_argument(void *context, enum MHD_ValueKind kind, const char *name,
                                     size_t name_len, const char *value, size_t len)
{
    struct wanted_keys *w = context;
    (void)kind;
    if (name_len == 3 && memcmp(name, "key", 3) == 0 && value)
        return want(w, value, len) ? MHD_YES : MHD_NO;
    reply_error(w->reply, 400, "an unknown parameter '%.40s': give /locate?key=KEY", name);
    return MHD_NO;
}

/* ---- pages ----------------------------------------------------------------------------------- */

static bool has_type(struct MHD_Connection *c, const char *header, const char *type)
{
    const char *value = lib.value(c, MHD_HEADER_KIND, header);
    return value && strncasecmp(value, type, strcspn(type, ";")) == 0;
}

static void note_time(struct serve_counts *s, uint64_t nanoseconds)
{
    size_t i = 0;
    while (i + 1 < SERVE_BUCKETS && (double)nanoseconds / 1e9 > serve_bucket[i])
        i++;
    atomic_fetch_add(&s->bucket[i], 1);
    atomic_fetch_add(&s->nanoseconds, nanoseconds);
}

/* A request for a page: its connection, its body if it has one, and the answer to it. */
struct asked_page {
    struct MHD_Connection *c;
    struct request *q;
    bool posted;
    struct reply *r;
};

static void page_locate(struct serving *s, struct asked_page *v)
{
    struct MHD_Connection *c = v->c;
    struct bytes *body = &v->q->body;
    struct reply *r = v->r;
    bool posted = v->posted;
    struct wanted_keys w = {.reply = r};
    struct answers a = {.directory = s->directory, .form = ANSWERS_OBJECT, .end = '\n'};
    lib.values(c, MHD_GET_ARGUMENT_KIND, want_argument, &w);
    if (posted && w.n)
        reply_error(r, 400, "keys in the address and in the body: give them in one place");
    else if (posted && has_type(c, "Content-Type", type_text))
        want_lines(&w, body, '\n');
    else if (posted && has_type(c, "Content-Type", type_bytes))
        want_lines(&w, body, 0);
    else if (posted)
        want_json(&w, body);
    else if (!w.n && !r->status)
        reply_error(r, 400, "no key: give /locate?key=KEY, or POST {\"keys\": [...]}");
    r->type = type_json;
    if (!posted && w.n == 1)
        a.form = ANSWERS_LINES;
    if (has_type(c, "Accept", type_lines))
        a.form = ANSWERS_LINES, r->type = type_lines;
    else if (has_type(c, "Accept", type_text))
        a.form = ANSWERS_TEXT, r->type = type_text;
    else if (has_type(c, "Accept", type_bytes))
        a.form = ANSWERS_TEXT, r->type = type_bytes, a.end = 0;
    if (!r->status && !answers_begin(&a))
        reply_error(r, 503, "out of memory");
    if (!r->status)
        answers_print(&a, w.keys, w.n);
    answers_end(&a);
    free(w.keys);
    r->counts = true;
    r->hit = a.keys_hit;
    r->doubtful = a.keys_doubtful;
    atomic_fetch_add(&s->counts.keys, a.keys);
}

static void page_owners(struct serving *s, struct asked_page *v)
{
    bool text = has_type(v->c, "Accept", type_text), lines = has_type(v->c, "Accept", type_lines);
    v->r->type = text ? type_text : lines ? type_lines : type_json;
    if (!serve_owners(s->directory, text ? ANSWERS_TEXT : lines ? ANSWERS_LINES : ANSWERS_OBJECT))
        reply_error(v->r, 503, "out of memory");
}

static void page_health(struct serving *s, struct asked_page *v)
{
    v->r->type = type_json;
    v->r->status = serve_health(s->directory, s->following);
}

static void page_metrics(struct serving *s, struct asked_page *v)
{
    v->r->type = type_metrics;
    serve_metrics(s->directory, s->following, &s->counts);
}

static const struct route {
    const char *path;
    bool posts;
    void (*page)(struct serving *s, struct asked_page *v);
} routes[] = {{"/locate", true, page_locate},
              {"/owners", false, page_owners},
              {"/healthz", false, page_health},
              {"/metrics", false, page_metrics}};

/* ---- requests -------------------------------------------------------------------------------- */

static enum MHD_Result send_reply(struct serving *s, struct MHD_Connection *c, struct request *q,
                                  struct reply *r, const char *allow)
{
    char number[32];
    struct MHD_Response *response = lib.response(r->text.len, r->text.data, free);
    if (!response) {
        bytes_end(&r->text);
        return MHD_NO;
    }
    q->waiting = r->text.len;
    atomic_fetch_add(&s->waiting, q->waiting);
    lib.header(response, "Content-Type", r->type);
    lib.header(response, "Cache-Control", "no-store");
    lib.header(response, SERVE_FOLDER, s->folder);
    if (allow)
        lib.header(response, "Allow", allow);
    if (r->counts) {
        snprintf(number, sizeof number, "%llu", (unsigned long long)r->hit);
        lib.header(response, "Tamis-Hit", number);
        snprintf(number, sizeof number, "%llu", (unsigned long long)r->doubtful);
        lib.header(response, "Tamis-Doubt", number);
    }
    static const uint8_t kind[] = {3, 3, 0, 3, 1, 2}; /* by hundreds */
    atomic_fetch_add(&s->counts.requests[kind[r->status / 100]], 1);
    enum MHD_Result done = lib.queue(c, r->status, response);
    lib.destroy(response);
    return done;
}

/* Sends the page, or an error. */
static enum MHD_Result reply(struct serving *s, struct MHD_Connection *c, struct request *q,
                             const struct route *route, const char *method, struct reply *r)
{
    bool posted = strcmp(method, "POST") == 0;
    bool reads = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    const char *allow = NULL;
    uint64_t began = carrier_clock();
    if (!route) {
        reply_error(r, 404, "no such page: there are /locate, /owners, /healthz and /metrics");
    } else if (!reads && !(posted && route->posts)) {
        allow = route->posts ? "GET, HEAD, POST" : "GET, HEAD";
        reply_error(r, 405, "%.20s: not here: use %s", method, allow);
    } else if (!r->status && atomic_load(&s->waiting) > WAITING_MOST) {
        reply_error(r, 503, "too many answers are waiting to be read: try again later");
    } else if (!r->status) {
        r->text.most = ANSWER_MOST;
        put_into(&r->text);
        route->page(s, &(struct asked_page){c, q, posted, r});
        put_into(NULL);
        if (r->text.failed)
            reply_error(r, 413, "the answer is too long: ask for fewer keys at a time");
    }
    if (r->why[0]) {
        bytes_end(&r->text);
        put_into(&r->text);
        json_open(NULL, '{');
        json_text("error", r->why);
        json_close();
        put_into(NULL);
        r->type = type_json;
    }
    r->status = r->status ? r->status : 200;
    if (route && route->posts)
        note_time(&s->counts, carrier_clock() - began);
    return send_reply(s, c, q, r, allow);
}

/* Called with the head of a request, with each piece of its body, and at its end. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *c, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *len, void **of)
{
    struct serving *s = context;
    struct request *q = *of;
    struct reply r = {0};
    const struct route *route = NULL;
    (void)version;
    for (size_t i = 0; i < COUNT(routes); i++)
        if (strcmp(url, routes[i].path) == 0)
            route = &routes[i];
    if (!q) {
        const char *size = lib.value(c, MHD_HEADER_KIND, "Content-Length");
        *of = q = calloc(1, sizeof *q);
        if (!q)
            return MHD_NO;
        q->body.most = BODY_MOST;
        if (!size || strtoull(size, NULL, 10) < PASSED_MOST)
            return MHD_YES;
        reply_error(&r, 413, "a body of more than %zu bytes: ask for fewer keys at a time",
                    BODY_MOST);
        return reply(s, c, q, route, method, &r);
    }
    if (*len) {
        if (!bytes_put(&q->body, data, *len))
            q->passed += *len;
        *len = 0;
        return q->passed < PASSED_MOST ? MHD_YES : MHD_NO;
    }
    if (q->body.failed)
        reply_error(&r, 413, "a body of more than %zu bytes: ask for fewer keys at a time",
                    BODY_MOST);
    return reply(s, c, q, route, method, &r);
}

static void on_end(void *context, struct MHD_Connection *c, void **of,
                   enum MHD_RequestTerminationCode code)
{
    struct serving *s = context;
    struct request *q = *of;
    (void)c, (void)code;
    if (!q)
        return;
    atomic_fetch_sub(&s->waiting, q->waiting);
    bytes_end(&q->body);
    free(q);
    *of = NULL;
}

static void on_connection(void *context, struct MHD_Connection *c, void **of,
                          enum MHD_ConnectionNotificationCode code)
{
    struct serving *s = context;
    (void)c, (void)of;
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        atomic_fetch_add(&s->counts.connections, 1);
    else
        atomic_fetch_sub(&s->counts.connections, 1);
}

/* ---- listening ------------------------------------------------------------------------------- */

/* A socket without a listener was left by a process that was killed. */
static bool left_behind(const char *path)
{
    struct stat st;
    int fd = unix_connect(path);
    if (fd >= 0)
        close(fd);
    return fd < 0 && errno == ECONNREFUSED && lstat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

static int listen_unix(const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memcpy(name.sun_path, path, strlen(path));
    bool good = fd >= 0 && bind(fd, (struct sockaddr *)&name, sizeof name) == 0;
    if (fd >= 0 && !good && errno == EADDRINUSE) {
        if (left_behind(path))
            good = unlink(path) == 0 && bind(fd, (struct sockaddr *)&name, sizeof name) == 0;
        else
            errno = EADDRINUSE;
    }
    if (good && listen(fd, CONNECTIONS) == 0)
        return fd;
    complain("%s: unix:%s: give an unused path in a writable folder", strerror(errno), path);
    fd_close(&fd);
    return -1;
}

static int listen_host(const struct serve_address *a)
{
    struct addrinfo hints = {.ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM}, *found = NULL;
    int error = getaddrinfo(a->host, a->port, &hints, &found), fd = -1, on = 1;
    if (error)
        return complain("%s: %s: give a host and a port of this machine", gai_strerror(error),
                        a->whole),
               -1;
    for (const struct addrinfo *at = found; at && fd < 0; at = at->ai_next) {
        fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
        if (fd < 0)
            continue;
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (bind(fd, at->ai_addr, at->ai_addrlen) != 0 || listen(fd, CONNECTIONS) != 0) {
            error = errno;
            fd_close(&fd);
        }
    }
    freeaddrinfo(found);
    if (fd < 0)
        complain("%s: %s: give a host and a port of this machine that are free", strerror(error),
                 a->whole);
    return fd;
}

struct serving *serve_start(const struct serve_address *address, const tamis_directory *directory,
                            const tamis_following *following, const char *folder)
{
    char why[256];
    if (!LATE_LOAD("libmicrohttpd.so.12", NULL, why))
        return complain("%s: --serve: install libmicrohttpd12", why), NULL;
    int fd = address->path[0] ? listen_unix(address->path) : listen_host(address);
    struct serving *s = fd >= 0 ? calloc(1, sizeof *s) : NULL;
    if (!s) {
        fd_close(&fd);
        return NULL;
    }
    s->directory = directory;
    s->following = following;
    snprintf(s->folder, sizeof s->folder, "%llu", (unsigned long long)serve_folder(folder));
    unsigned threads = processors() < THREADS_MOST ? processors() : THREADS_MOST;
    s->daemon =
        lib.start(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ITC, 0, NULL, NULL, on_request, s,
                  MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_NOTIFY_COMPLETED, on_end, s,
                  MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_CONNECTION_LIMIT,
                  (unsigned)CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)TIMEOUT_S,
                  MHD_OPTION_THREAD_POOL_SIZE, threads > 1 ? threads : 0, MHD_OPTION_END);
    if (!s->daemon) {
        complain("the server cannot be started: %s: check the limits of the process",
                 address->whole);
        close(fd);
        if (address->path[0])
            unlink(address->path);
        free(s);
        return NULL;
    }
    memcpy(s->path, address->path, sizeof s->path);
    return s;
}

void serve_stop(struct serving *s)
{
    if (!s)
        return;
    lib.stop(s->daemon); /* closes its socket */
    if (s->path[0])
        unlink(s->path);
    free(s);
}

#endif
