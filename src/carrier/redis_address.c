/* Addresses and passwords of Redis servers. See redis_line.h. */
#include "redis_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORMS                                                                                      \
    "not an address of Redis: give redis://[USER@]HOST[:PORT]/NAME[?db=N], rediss:// for TLS, or " \
    "redis+unix:///SOCKET?name=NAME"

/* %XX is a byte. */
static char *unquoted(const char *text, size_t len)
{
    char *out = malloc(len + 2);
    if (out && !carrier_unquote(text, len, out, len + 2)) {
        free(out);
        out = NULL;
    }
    return out;
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

/* db=N, and for a socket name=NAME, for TLS ca=, cert= and key=FILE. */
static bool read_query(struct redis_address *a, const char *query)
{
    const struct {
        const char *name;
        char **to;
    } texts[] = {{"name=", a->path ? &a->name : NULL},
                 {"ca=", a->tls ? &a->ca : NULL},
                 {"cert=", a->tls ? &a->cert : NULL},
                 {"key=", a->tls ? &a->key : NULL}};
    while (*query) {
        size_t len = strcspn(query, "&");
        bool good = len > 3 && strncmp(query, "db=", 3) == 0 &&
                    read_number(query + 3, len - 3, 999999, &a->db);
        for (size_t i = 0; !good && i < sizeof texts / sizeof *texts; i++) {
            size_t name = strlen(texts[i].name);
            if (len > name && strncmp(query, texts[i].name, name) == 0 && texts[i].to &&
                !*texts[i].to)
                good = (*texts[i].to = unquoted(query + name, len - name)) != NULL;
        }
        if (!good)
            return false;
        query += len + (query[len] == '&');
    }
    return !a->cert == !a->key;
}

/* HOST[:PORT], an IPv6 address in brackets. */
static bool read_host(struct redis_address *a, const char *text, size_t len)
{
    size_t host = len;
    if (len && text[0] == '[') {
        const char *close = memchr(text, ']', len);
        if (!close)
            return false;
        a->host = strndup(text + 1, (size_t)(close - text) - 1);
        host = (size_t)(close - text) + 1;
    } else {
        const char *colon = memchr(text, ':', len);
        host = colon ? (size_t)(colon - text) : len;
        a->host = host ? strndup(text, host) : strdup("127.0.0.1");
    }
    if (host == len)
        return a->host;
    return a->host && text[host] == ':' &&
           read_number(text + host + 1, len - host - 1, 65535, &a->port);
}

static bool read_url(struct redis_address *a, const char *url, char error[256])
{
    size_t len;
    a->port = 6379;
    snprintf(error, 256, FORMS);
    if (strncmp(url, "redis+unix://", 13) == 0) {
        len = strcspn(url += 13, "?");
        a->path = strndup(url, len);
        return len && a->path && url[len] && read_query(a, url + len + 1) && a->name;
    }
    a->tls = strncmp(url, "rediss://", 9) == 0;
    len = strcspn(url += a->tls ? 9 : 8, "/");
    const char *end = url + len, *at = memchr(url, '@', len);
    if (at && memchr(url, ':', (size_t)(at - url))) {
        snprintf(
            error, 256,
            "anyone on this machine can read a password in an address: set TAMIS_REDIS_PASSWORD, "
            "or TAMIS_REDIS_PASSWORD_FILE to the name of a file with it");
        return false;
    }
    if (at && !(a->user = unquoted(url, (size_t)(at - url))))
        return false;
    url = at ? at + 1 : url;
    if (!read_host(a, url, (size_t)(end - url)) || *end != '/')
        return false;
    url = end + 1;
    len = strcspn(url, "?");
    a->name = len ? unquoted(url, len) : NULL;
    return a->name && (!url[len] || read_query(a, url + len + 1));
}

/* From the environment, or a file that it names. */
static bool find_password(struct redis_address *a, char error[256])
{
    const char *given = getenv("TAMIS_REDIS_PASSWORD");
    const char *path = getenv("TAMIS_REDIS_PASSWORD_FILE");
    char line[1024] = "";
    if (!given && !path)
        return true;
    FILE *file = given ? NULL : fopen(path, "r");
    bool found = given || (file && fgets(line, sizeof line, file));
    if (file)
        fclose(file);
    if (!found)
        return snprintf(error, 256, "%.200s: no password in it", path), false;
    given = given ? given : line;
    a->password = strndup(given, strcspn(given, "\r\n"));
    explicit_bzero(line, sizeof line);
    snprintf(error, 256, "out of memory");
    return a->password != NULL;
}

bool redis_address_read(struct redis_address *a, const char *url, char error[256])
{
    if (read_url(a, url, error) && find_password(a, error))
        return true;
    redis_address_free(a);
    return false;
}

void redis_address_free(struct redis_address *a)
{
    char *const texts[] = {a->user, a->password, a->host, a->path, a->name, a->ca, a->cert, a->key};
    if (a->password)
        explicit_bzero(a->password, strlen(a->password));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free(texts[i]);
    *a = (struct redis_address){0};
}
