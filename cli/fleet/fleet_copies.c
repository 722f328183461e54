/* The folder of copies: its hosts and files. See fleet.h. */
#define _GNU_SOURCE
#include "fleet.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define TITLE "tamis copies of a fleet 1\n"

bool is_address(const char *operand)
{
    struct stat st;
    return strchr(operand, ':') && stat(operand, &st) != 0;
}

/* Like mkdir -p. */
static bool make_folders(char *path)
{
    for (char *at = path + 1; *at; at++) {
        if (*at != '/')
            continue;
        *at = 0;
        bool made = mkdir(path, 0700) == 0 || errno == EEXIST;
        *at = '/';
        if (!made)
            return false;
    }
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

bool copies_folder(struct copies *c, const char *url, const char *folder)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    uint64_t sum[2];
    sum_of(url, strlen(url), sum);
    int len =
        folder ? snprintf(c->folder, sizeof c->folder, "%s", folder)
        : cache && *cache
            ? snprintf(c->folder, sizeof c->folder, "%s/tamis/fleet-%016" PRIx64, cache, sum[0])
            : snprintf(c->folder, sizeof c->folder, "%s/.cache/tamis/fleet-%016" PRIx64,
                       home ? home : "", sum[0]);
    if (len < 0 || (size_t)len >= sizeof c->folder)
        return refuse("the name of the folder is too long: %.100s: give another with -o",
                      c->folder);
    if (!make_folders(c->folder))
        return refuse("%s: %s: give a folder for the copies with -o", strerror(errno), c->folder);
    return true;
}

void copies_path(const struct copies *c, uint64_t file, char out[4096])
{
    snprintf(out, 4096, "%s/%" PRIu64 ".tamis", c->folder, file);
}

static void host_free(struct known_host *h)
{
    free(h->catalog);
    free(h->doubt);
}

void copies_free(struct copies *c)
{
    for (size_t i = 0; i < c->n; i++)
        host_free(&c->host[i]);
    free(c->host);
    free(c->file);
    c->host = NULL;
    c->file = NULL;
    c->n = c->room = c->n_files = c->files_room = 0;
}

/* Where the name is, or would be inserted. */
static size_t place_of(const struct copies *c, const char *name)
{
    return SEARCH(i, c->n, strcmp(c->host[i].name, name) < 0);
}

struct known_host *copies_host(const struct copies *c, const char *name)
{
    size_t at = place_of(c, name);
    return at < c->n && strcmp(c->host[at].name, name) == 0 ? &c->host[at] : NULL;
}

const struct known_host *copies_oldest(const struct copies *c)
{
    const struct known_host *oldest = c->n ? &c->host[0] : NULL;
    for (size_t i = 1; i < c->n; i++)
        oldest = c->host[i].as_of < oldest->as_of ? &c->host[i] : oldest;
    return oldest;
}

struct known_host *copies_add(struct copies *c, const char *name)
{
    size_t at = place_of(c, name);
    if (at < c->n && strcmp(c->host[at].name, name) == 0)
        return &c->host[at];
    if (!room_for(&c->host, c->n, &c->room, sizeof *c->host))
        return NULL;
    memmove(&c->host[at + 1], &c->host[at], (c->n++ - at) * sizeof *c->host);
    c->host[at] = (struct known_host){0};
    snprintf(c->host[at].name, sizeof c->host[at].name, "%s", name);
    return &c->host[at];
}

bool copies_add_file(struct copies *c, uint64_t number)
{
    return array_add(&c->file, &c->n_files, &c->files_room, &number, sizeof number);
}

bool tag_read(const void *tag, size_t len, char host[HOST_MAX + 1], uint64_t *epoch,
              struct piece *piece)
{
    char text[PIECE_TAG], again[PIECE_TAG], kind[8] = "";
    *piece = (struct piece){0};
    if (!tag || len >= sizeof text)
        return false;
    memcpy(text, tag, len);
    text[len] = 0;
    if (sscanf(text, "%200s %" SCNu64 " %" SCNu64 " %" SCNd64 " %7s", host, epoch, &piece->serial,
               &piece->day, kind) < 4 ||
        !host_valid(host))
        return false;
    piece->kind = strcmp(kind, "gap") == 0 ? PIECE_GAP : PIECE_CLOSED;
    return tag_write(again, host, *epoch, piece) == (int)len && memcmp(again, text, len) == 0;
}

/* ---- status ---------------------------------------------------------------------------------- */

bool copies_write(const struct copies *c)
{
    char path[4096];
    struct bytes text = {0};
    text_put(&text, TITLE "next %" PRIu64 "\n", c->next);
    for (size_t i = 0; i < c->n_files; i++)
        text_put(&text, "file %" PRIu64 "\n", c->file[i]);
    for (size_t i = 0; i < c->n; i++) {
        const struct known_host *h = &c->host[i];
        text_put(&text, "host %s %" PRIu64 " %" PRId64 " %" PRIu64, h->name, h->version, h->as_of,
                 h->failed);
        text_put_word(&text, h->catalog);
        text_put_word(&text, h->doubt);
        text_put(&text, "\n");
    }
    text_put(&text, "end\n");
    snprintf(path, sizeof path, "%s/status", c->folder);
    bool good =
        (!text.failed || no_memory(c->folder)) && file_put(path, text.data, text.len, PUT_PRIVATE);
    free(text.data);
    return good;
}

static bool take_line(void *context, const char *what, struct line *l)
{
    struct copies *c = context;
    if (strcmp(what, "next") == 0) {
        c->next = text_number(l, 10);
        return true;
    }
    if (strcmp(what, "file") == 0)
        return copies_add_file(c, text_number(l, 10));
    const char *name = strcmp(what, "host") == 0 ? text_word(l) : "";
    struct known_host *h = host_valid(name) ? copies_add(c, name) : NULL;
    if (!h)
        return false;
    h->version = text_number(l, 10);
    h->as_of = text_whole(l);
    h->failed = text_number(l, 10);
    h->catalog = text_quoted(l);
    h->doubt = text_quoted(l);
    return true;
}

int copies_read(struct copies *c)
{
    char path[4096];
    struct bytes text = {0};
    copies_free(c);
    snprintf(path, sizeof path, "%s/status", c->folder);
    int there = 1;
    if (!file_slurp(path, &text)) {
        there = errno == ENOENT ? 0 : -1;
        if (there < 0)
            complain("%s: %s: check the permissions of the folder", strerror(errno), path);
    }
    if (there == 1 && !text_read(&text, TITLE, "end", take_line, c)) {
        complain("not written by tamis where, or damaged: %s: remove it and ask the address again",
                 path);
        there = -1;
    }
    free(text.data);
    return there;
}

bool copies_in(const char *folder)
{
    char path[4096], line[sizeof TITLE] = "";
    snprintf(path, sizeof path, "%s/status", folder);
    FILE *file = fopen(path, "r");
    bool ours = file && fgets(line, sizeof line, file) && strcmp(line, TITLE) == 0;
    if (file)
        fclose(file);
    return ours;
}

tamis_lock *copies_lock(const struct copies *c)
{
    char path[4096];
    tamis_lock *lock = NULL;
    tamis_reason reason = {0};
    const tamis_open_options wait = {.wait = true};
    snprintf(path, sizeof path, "%s/status", c->folder);
    return succeeded(tamis_file_lock(&lock, path, &wait, &reason), &reason, path) ? lock : NULL;
}

/* The next sync leaves out their pieces. */
int copies_forget(const char *folder, char **host, size_t n)
{
    struct copies c = {0};
    int found = 0;
    snprintf(c.folder, sizeof c.folder, "%s", folder);
    tamis_lock *lock = copies_lock(&c);
    if (!lock || copies_read(&c) < 0)
        found = -1;
    for (size_t i = 0; found >= 0 && i < n; i++) {
        struct known_host *h = copies_host(&c, host[i]);
        if (!h)
            continue;
        host_free(h);
        memmove(h, h + 1, (size_t)(c.host + --c.n - h) * sizeof *h);
        found++;
    }
    if (found > 0 && !copies_write(&c))
        found = -1;
    copies_free(&c);
    tamis_file_unlock(lock);
    return found;
}
