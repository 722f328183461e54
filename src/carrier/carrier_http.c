/*
 * Follows a folder of tamis publish through any web server or object store: https://HOST/PATH. The objects of
 * objects.h are fetched with libcurl; the list of owners and each index with a conditional request, which takes a
 * few hundred bytes if nothing has changed. Origins publish to the folder itself.
 *
 * Servers identify versions by ETag or Last-Modified, which may be in whole seconds: an object that changed just
 * before it was fetched is fetched again without a condition. What a cache has kept is as old as its Age says.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <curl/curl.h>

#include "objects.h"
#include "os/late.h"

#define LOOK_MS    1000 /* between checks for new messages */
#define LOOK_PART  4    /* checks take at most a fifth of the time */
#define CONNECT_MS 5000
#define SLOW_S     30         /* a transfer is abandoned after this many seconds below */
#define SLOW_BYTES 100        /* this many bytes per second, or */
#define WHOLE_S    3600       /* after this many in all */
#define KEPT_MOST  1000000000 /* seconds: 31 years */
#define RACY_S     2          /* within which a second change may not be visible */
#define BODY_MOST  ((size_t)1 << 30)
#define SECOND     UINT64_C(1000000000)

/* The functions of libcurl that are used. */
#define FUNCTIONS(X)                  \
    X(global_init, curl_global_init)  \
    X(init, curl_easy_init)           \
    X(setopt, curl_easy_setopt)       \
    X(perform, curl_easy_perform)     \
    X(getinfo, curl_easy_getinfo)     \
    X(cleanup, curl_easy_cleanup)     \
    X(strerror, curl_easy_strerror)   \
    X(list, curl_slist_append)        \
    X(list_free, curl_slist_free_all) \
    X(date, curl_getdate)
LATE_TABLE(FUNCTIONS);

struct http {
    struct objects objects;
    CURL *curl;
    char *base; /* without a slash at its end */
    /* The object being fetched: */
    struct object object;
    size_t room, most;
    char etag[128], modified[64];
    time_t date, changed; /* stated by the server; -1: not stated */
    uint64_t kept;        /* nanoseconds in a cache */
    uint64_t kept_most;   /* the longest of this check */
};

static void http_close(struct carrier *c)
{
    struct http *h = (struct http *)c;
    if (h->curl)
        lib.cleanup(h->curl);
    objects_free(&h->objects);
    free(h->base);
    free(h);
}

/* ---- one object ------------------------------------------------------------------------------ */

static size_t on_body(char *data, size_t one, size_t len, void *context)
{
    struct http *h = context;
    struct object *o = &h->object;
    size_t fits = h->most - o->len < len ? h->most - o->len : len;
    (void)one;
    if (o->len + len > BODY_MOST ||
        (fits && !array_room(NULL, &o->data, o->len + fits - 1, &h->room, 1)))
        return 0;
    if (fits)
        memcpy(o->data + o->len, data, fits);
    o->len += fits;
    return len;
}

/* Copies the value of this header, or "" if it is too long; false if it is another one. */
static bool header(const char *line, size_t len, const char *name, char *out, size_t room)
{
    size_t n = strlen(name);
    if (len <= n || strncasecmp(line, name, n) != 0 || line[n] != ':')
        return false;
    for (line += n + 1, len -= n + 1; len && (*line == ' ' || *line == '\t'); line++, len--)
        ;
    while (len && (line[len - 1] == '\r' || line[len - 1] == '\n' || line[len - 1] == ' '))
        len--;
    snprintf(out, room, "%.*s", len < room ? (int)len : 0, line);
    return true;
}

static size_t on_header(char *line, size_t one, size_t len, void *context)
{
    struct http *h = context;
    char text[64];
    (void)one;
    if (len > 5 && strncmp(line, "HTTP/", 5) == 0) { /* another answer, after a redirect */
        h->etag[0] = h->modified[0] = 0;
        h->date = h->changed = -1;
        h->kept = 0;
    }
    header(line, len, "ETag", h->etag, sizeof h->etag);
    if (header(line, len, "Last-Modified", h->modified, sizeof h->modified))
        h->changed = lib.date(h->modified, NULL);
    if (header(line, len, "Date", text, sizeof text))
        h->date = lib.date(text, NULL);
    if (header(line, len, "Age", text, sizeof text)) {
        uint64_t seconds = strtoull(text, NULL, 10);
        h->kept = (seconds < KEPT_MOST ? seconds : KEPT_MOST) * SECOND;
    }
    h->kept_most = h->kept > h->kept_most ? h->kept : h->kept_most;
    return len;
}

static bool http_fail(struct http *h, const char *name, const char *why)
{
    return carrier_fail(&h->objects.carrier, "%.120s/%.60s: %s", h->base, name, why);
}

/* The condition for the next request. */
static void note_mark(const struct http *h, struct object_mark *mark)
{
    bool settled = h->changed < 0 || h->date < 0 || h->date - h->changed > RACY_S;
    mark->text[0] = 0;
    if (settled && h->etag[0])
        snprintf(mark->text, sizeof mark->text, "If-None-Match: %s", h->etag);
    else if (settled && h->changed >= 0)
        snprintf(mark->text, sizeof mark->text, "If-Modified-Since: %s", h->modified);
}

static enum object_result judge(struct http *h, const char *name, long status,
                                struct object_mark *mark, struct object *out)
{
    char why[64];
    bool gone = status == 404 || status == 410;
    h->objects.carrier.hopeless = status == 401 || status == 403;
    if (status == 304 && mark)
        return OBJECT_SAME;
    if (gone && strcmp(name, "owners") != 0)
        return OBJECT_NONE;
    if (status != 200) {
        snprintf(why, sizeof why,
                 gone ? "not found (tamis publish --to file:FOLDER writes it)"
                      : "the server answered %ld",
                 status);
        http_fail(h, name, why);
        return OBJECT_FAILED;
    }
    if (mark)
        note_mark(h, mark);
    if (!h->object.len)
        return OBJECT_NONE;
    *out = h->object;
    h->object.data = NULL;
    bool dated = h->changed >= 0 && h->date >= h->changed;
    out->age = dated ? (uint64_t)(h->date - h->changed + 1) * SECOND + h->kept : AGE_UNKNOWN;
    return OBJECT_READ;
}

static enum object_result get(struct objects *o, const char *name, size_t most,
                              struct object_mark *mark, struct object *out)
{
    struct http *h = (struct http *)o;
    char url[2048];
    long status = 0;
    /* A % of a quoted name is part of the file name, and must be quoted again. */
    size_t len = (size_t)snprintf(url, sizeof url - 4, "%s/", h->base);
    for (const char *p = name; *p && len < sizeof url - 4; p++)
        len += (size_t)snprintf(url + len, 4, *p == '%' ? "%%25" : "%c", *p);
    struct curl_slist *headers = lib.list(NULL, "Cache-Control: no-cache");
    struct curl_slist *more = mark && mark->text[0] ? lib.list(headers, mark->text) : headers;
    if (len >= sizeof url - 4 || !headers || !more) {
        lib.list_free(headers);
        return http_fail(h, name, "out of memory, or too long"), OBJECT_FAILED;
    }
    h->object = (struct object){0};
    h->room = 0;
    h->most = most;
    lib.setopt(h->curl, CURLOPT_URL, url);
    lib.setopt(h->curl, CURLOPT_HTTPHEADER, more);
    CURLcode code = lib.perform(h->curl);
    lib.getinfo(h->curl, CURLINFO_RESPONSE_CODE, &status);
    lib.list_free(more);
    enum object_result result = OBJECT_FAILED;
    if (code == CURLE_OK)
        result = judge(h, name, status, mark, out);
    else
        http_fail(h, name, lib.strerror(code));
    free(h->object.data);
    h->object.data = NULL;
    if (result == OBJECT_FAILED && mark)
        mark->text[0] = 0;
    return result;
}

/* A check is as old as the oldest object that came from a cache. */
static int http_receive(struct carrier *c, char position[CARRIER_POSITION], int milliseconds,
                        carrier_take take, void *context)
{
    struct http *h = (struct http *)c;
    uint64_t before = c->reached;
    h->kept_most = 0;
    int n = objects_receive(c, position, milliseconds, take, context);
    if (c->reached != before)
        c->reached = c->reached > h->kept_most ? c->reached - h->kept_most : 1;
    return n;
}

static const struct carrier_kind http_kind = {
    .fetch = objects_fetch, .receive = http_receive, .owners = objects_owners, .close = http_close};

/* Logins come from ~/.netrc: other users of the machine could read them in an address. */
static bool prepare(struct http *h)
{
    const struct {
        CURLoption option;
        long value;
    } numbers[] = {{CURLOPT_NOSIGNAL, 1},
                   {CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS},
                   {CURLOPT_LOW_SPEED_LIMIT, SLOW_BYTES},
                   {CURLOPT_LOW_SPEED_TIME, SLOW_S},
                   {CURLOPT_TIMEOUT, WHOLE_S},
                   {CURLOPT_FOLLOWLOCATION, 1},
                   {CURLOPT_MAXREDIRS, 3},
                   {CURLOPT_NETRC, CURL_NETRC_OPTIONAL}};
    bool good = true;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        good &= lib.setopt(h->curl, numbers[i].option, numbers[i].value) == CURLE_OK;
    return good && lib.setopt(h->curl, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           lib.setopt(h->curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           lib.setopt(h->curl, CURLOPT_USERAGENT, "tamis/" TAMIS_VERSION) == CURLE_OK &&
           lib.setopt(h->curl, CURLOPT_WRITEFUNCTION, on_body) == CURLE_OK &&
           lib.setopt(h->curl, CURLOPT_WRITEDATA, h) == CURLE_OK &&
           lib.setopt(h->curl, CURLOPT_HEADERFUNCTION, on_header) == CURLE_OK &&
           lib.setopt(h->curl, CURLOPT_HEADERDATA, h) == CURLE_OK;
}

static bool init(void)
{
    return lib.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}

struct carrier *carrier_http_open(const char *url, char error[256])
{
    size_t len = strlen(url);
    if (!LATE_LOAD("libcurl.so.4", init, error))
        return NULL;
    struct http *h = calloc(1, sizeof *h);
    if (!h || !(h->base = strdup(url)) || !(h->curl = lib.init()) || !prepare(h) || len > 1000) {
        snprintf(error, 256, len > 1000 ? "the address is too long" : "out of memory");
        if (h)
            http_close(&h->objects.carrier);
        return NULL;
    }
    while (len && h->base[len - 1] == '/')
        h->base[--len] = 0;
    h->objects.carrier.kind = &http_kind;
    h->objects.get = get;
    h->objects.look_ms = LOOK_MS;
    h->objects.share = LOOK_PART;
    return &h->objects.carrier;
}
