/* The inputs of a catalog as files: walking folders, and what became of them. See inputs.h. */
#define _GNU_SOURCE
#define XXH_INLINE_ALL
#include "inputs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

/* ---- paths ----------------------------------------------------------------------------------- */

bool base_of(const char *catalog, char **base)
{
    struct stat st;
    char *real = NULL;
    if (lstat(catalog, &st) == 0 && S_ISLNK(st.st_mode))
        catalog = real = realpath(catalog, NULL);
    const char *slash = catalog ? strrchr(catalog, '/') : NULL;
    *base = catalog ? strndup(catalog, slash ? (size_t)(slash - catalog) + 1 : 0) : NULL;
    free(real);
    return *base != NULL;
}

bool base_back(const char *base, char **prefix)
{
    char *here = realpath(".", NULL), *there = realpath(*base ? base : ".", NULL);
    size_t same = 0, ups = 0; /* same: up to the end of the last folder that both are in */
    *prefix = NULL;
    if (here && there) {
        here[here[1] ? strlen(here) : 0] = 0; /* "/" has no names in it */
        there[there[1] ? strlen(there) : 0] = 0;
        for (size_t i = 0;; i++) {
            if ((here[i] == 0 || here[i] == '/') && (there[i] == 0 || there[i] == '/'))
                same = i;
            if (here[i] != there[i] || here[i] == 0)
                break;
        }
        for (size_t i = same; there[i]; i++)
            ups += there[i] == '/';
        const char *down = here + same + (here[same] == '/');
        size_t len = strlen(down);
        *prefix = calloc(1, 3 * ups + len + 2);
        for (size_t i = 0; *prefix && i < ups; i++)
            memcpy(*prefix + 3 * i, "../", 3);
        if (*prefix && len) {
            memcpy(*prefix + 3 * ups, down, len);
            (*prefix)[3 * ups + len] = '/';
        }
    }
    free(here);
    free(there);
    return *prefix != NULL;
}

char *base_join(const char *base, const char *path)
{
    char *joined;
    if (path[0] == '/')
        base = "";
    size_t len = strlen(base), more = strlen(path) + 1;
    joined = malloc(len + more);
    if (joined) {
        memcpy(joined, base, len);
        memcpy(joined + len, path, more);
    }
    return joined;
}

/* ---- walking --------------------------------------------------------------------------------- */

void names_free(struct names *names)
{
    for (size_t i = 0; i < names->n; i++)
        free(names->name[i].path);
    free(names->name);
    *names = (struct names){0};
}

/* Takes the path. */
static bool names_add(struct names *names, uint32_t root, char *path)
{
    if (path && names->n == names->room) {
        size_t room = names->room ? 2 * names->room : 64;
        struct name *fresh = realloc(names->name, room * sizeof *fresh);
        if (!fresh) {
            free(path);
            path = NULL;
        } else {
            names->name = fresh;
            names->room = room;
        }
    }
    if (!path) {
        complain("out of memory: list of inputs: free some memory and run again");
        return false;
    }
    names->name[names->n++] = (struct name){root, path};
    return true;
}

/* By bytes; alphasort() asks the locale. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int visible(const struct dirent *d)
{
    return d->d_name[0] != '.';
}

/* What an entry of a folder is: a folder, a file that counts, or neither (0). */
static int kind_of(const char *folder, const struct dirent *d)
{
    struct stat st;
    unsigned char type = d->d_type;
    if (type == DT_UNKNOWN) { /* a file system that does not say */
        char *path = NULL;
        if (asprintf(&path, "%s/%s", folder, d->d_name) > 0 && lstat(path, &st) == 0)
            type = S_ISDIR(st.st_mode) ? DT_DIR : S_ISREG(st.st_mode) ? DT_REG : DT_UNKNOWN;
        free(path);
    }
    if (type == DT_DIR)
        return DT_DIR;
    return type == DT_REG && read_format_named(d->d_name) ? DT_REG : 0;
}

static bool walk_folder(struct names *names, uint32_t root, const char *base, const char *path);

static bool walk_child(struct names *names, uint32_t root, const char *base, const char *path,
                       const char *name, int kind)
{
    char *child;
    size_t len = strlen(path);
    bool slash = len && path[len - 1] == '/';
    size_t more = strlen(name) + 1;
    child = malloc(len + 1 + more);
    if (child) {
        memcpy(child, path, len);
        child[len] = '/';
        memcpy(child + len + !slash, name, more);
    }
    if (kind == DT_REG || !child)
        return names_add(names, root, child);
    bool good = walk_folder(names, root, base, child);
    free(child);
    return good;
}

/* `path` as it is kept; the folder is opened through `base`. */
static bool walk_folder(struct names *names, uint32_t root, const char *base, const char *path)
{
    struct dirent **list;
    char *opened = base_join(base, path);
    int n = opened ? scandir(opened, &list, visible, by_name) : -1;
    bool good = opened != NULL;
    if (opened && n < 0)
        remark("%s: %s: its files are not found", strerror(errno), opened);
    for (int i = 0; i < n; i++) {
        int kind = good ? kind_of(opened, list[i]) : 0;
        if (kind)
            good = walk_child(names, root, base, path, list[i]->d_name, kind);
        free(list[i]);
    }
    if (n >= 0)
        free(list);
    free(opened);
    return good;
}

static int by_path(const void *a, const void *b)
{
    const struct name *x = a, *y = b;
    int order = strcmp(x->path, y->path);
    return order ? order : (x->root > y->root) - (x->root < y->root);
}

static int by_root(const void *a, const void *b)
{
    const struct name *x = a, *y = b;
    if (x->root != y->root)
        return x->root < y->root ? -1 : 1;
    return strcmp(x->path, y->path);
}

/* A file that several roots name belongs to the first of them. */
static void drop_twins(struct names *names)
{
    size_t kept = 0;
    qsort(names->name, names->n, sizeof *names->name, by_path);
    for (size_t i = 0; i < names->n; i++) {
        if (kept && strcmp(names->name[kept - 1].path, names->name[i].path) == 0)
            free(names->name[i].path);
        else
            names->name[kept++] = names->name[i];
    }
    names->n = kept;
}

/* In the order of entries; mostly they are already, and to see that is a tenth of sorting them. */
static void sort_names(struct names *names)
{
    for (size_t i = 1; i < names->n; i++)
        if (by_root(&names->name[i - 1], &names->name[i]) > 0) {
            qsort(names->name, names->n, sizeof *names->name, by_root);
            return;
        }
}

bool names_walk(struct names *names, const struct inputs *inputs, const char *base)
{
    bool good = true;
    for (uint32_t i = 0; i < inputs->n_roots && good; i++) {
        const struct root *r = &inputs->root[i];
        good =
            r->folder ? walk_folder(names, i, base, r->path) : names_add(names, i, strdup(r->path));
    }
    if (good && names->n) {
        if (inputs->n_roots > 1)
            drop_twins(names);
        sort_names(names);
    }
    return good;
}

/* ---- looking --------------------------------------------------------------------------------- */

#define MARK_LEN 4096

bool mark_of(const char *path, uint64_t size, uint64_t *mark)
{
    uint8_t ends[2 * MARK_LEN];
    size_t len = size < MARK_LEN ? (size_t)size : MARK_LEN;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool good = fd >= 0 && pread(fd, ends, len, 0) == (ssize_t)len &&
                pread(fd, ends + len, len, (off_t)(size - len)) == (ssize_t)len;
    if (fd >= 0)
        close(fd);
    if (good)
        *mark = XXH3_64bits(ends, 2 * len);
    return good;
}

enum look look_at(const char *base, const struct entry *e, bool deep, uint64_t *size)
{
    struct stat st;
    uint64_t mark;
    bool joined = base[0] && e->path[0] != '/';
    char *own = joined ? base_join(base, e->path) : NULL;
    const char *path = joined ? own : e->path;
    enum look look = LOOK_CHANGED;
    *size = 0;
    if (!path)
        return look;
    if (stat(path, &st) != 0) {
        look = errno == ENOENT || errno == ENOTDIR ? LOOK_GONE : LOOK_CHANGED;
    } else if (S_ISREG(st.st_mode) && !e->unread) {
        int64_t mtime = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
        *size = (uint64_t)st.st_size;
        bool same = *size == e->size && mtime == e->mtime;
        bool kept = (same && !deep) ||
                    (*size >= e->size && mark_of(path, e->size, &mark) && mark == e->mark);
        if (same && kept)
            look = LOOK_SAME;
        else if (*size > e->size && kept && e->resumable)
            look = LOOK_GROWN;
    }
    free(own);
    return look;
}
