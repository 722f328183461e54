/* The inputs of a catalog as files: walks folders and pairs them with entries. See inputs.h. */
#define _GNU_SOURCE
#include "inputs.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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

/* The length of the common folders of two absolute paths; "/" has no names in it. */
static size_t shared_len(const char *a, const char *b)
{
    size_t same = 0;
    for (size_t i = 0;; i++) {
        if ((a[i] == 0 || a[i] == '/') && (b[i] == 0 || b[i] == '/'))
            same = i;
        if (a[i] != b[i] || a[i] == 0)
            return same;
    }
}

/* The folder in which the path begins: resolves leading "." and "..", on a real path, where ".."
   is the parent. Moves *path past them. */
static void go_in(char *here, const char **path)
{
    const char *at = *path;
    while (*at == '.' && (at[1] == '/' || at[1] == 0 || (at[1] == '.' && strchr("/", at[2])))) {
        bool up = at[1] == '.';
        char *last = strrchr(here, '/');
        if (up && last)
            *last = 0;
        at += up ? 2 : 1;
        at += strspn(at, "/");
    }
    *path = at;
}

char *base_call(const char *base, const char *given)
{
    char *here = realpath(".", NULL), *there = realpath(*base ? base : ".", NULL);
    char *target = NULL, *called = NULL;
    size_t ups = 0;
    if (here && there && (given[0] == '/' || strcmp(here, there) == 0)) {
        called = strdup(given);
    } else if (here && there) {
        here[here[1] ? strlen(here) : 0] = 0; /* "/" has no names in it */
        there[there[1] ? strlen(there) : 0] = 0;
        go_in(here, &given);
        if (asprintf(&target, "%s%s%s", here, *given ? "/" : "", given) < 0)
            target = NULL;
    }
    if (target) {
        size_t same = shared_len(target, there), len;
        for (size_t i = same; there[i]; i++)
            ups += there[i] == '/';
        const char *down = target + same + strspn(target + same, "/");
        len = strlen(down);
        called = calloc(1, 3 * ups + len + 2);
        for (size_t i = 0; called && i < ups; i++)
            memcpy(called + 3 * i, "../", 3);
        if (called)
            memcpy(called + 3 * ups, len || ups ? down : ".", len || ups ? len : 1);
    }
    for (size_t i = called ? strlen(called) : 0; i > 1 && called[i - 1] == '/'; i--)
        called[i - 1] = 0;
    free(here);
    free(there);
    free(target);
    return called;
}

/* A path without a leading "./". */
static const char *plain(const char *path)
{
    while (path[0] == '.' && path[1] == '/' && path[2])
        path += 1 + strspn(path + 1, "/");
    return path;
}

char *base_join(const char *base, const char *path)
{
    char *joined;
    if (path[0] == '/')
        base = "";
    if (base[0])
        path = plain(path);
    size_t len = strlen(base), more = strlen(path) + 1;
    joined = malloc(len + more);
    if (joined) {
        memcpy(joined, base, len);
        memcpy(joined + len, path, more);
    }
    return joined;
}

/* ---- walking --------------------------------------------------------------------------------- */

static void list_free(struct name_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->name[i].path);
    free(list->name);
}

void names_free(struct names *names)
{
    list_free(&names->files);
    list_free(&names->shut);
    list_free(&names->out);
    *names = (struct names){0};
}

/* Takes the path. */
static bool list_add(struct name_list *list, uint32_t root, char *path, const char *why)
{
    const struct name name = {root, path, why};
    if (path && array_add(&list->name, &list->n, &list->room, &name, sizeof name))
        return true;
    free(path);
    return no_memory("list of inputs");
}

/* By bytes; alphasort() uses the locale. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int listed(const struct dirent *d)
{
    return strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0;
}

/* DT_DIR, DT_REG, or another type. */
static unsigned char kind_of(const char *folder, const struct dirent *d)
{
    struct stat st;
    unsigned char type = d->d_type;
    if (type == DT_UNKNOWN) { /* the file system does not tell */
        char *path = NULL;
        if (asprintf(&path, "%s/%s", folder, d->d_name) > 0 && lstat(path, &st) == 0)
            type = (unsigned char)IFTODT(st.st_mode);
        free(path);
    }
    return type;
}

/* A root that is a folder, by device and inode. */
struct root_identity {
    dev_t device;
    ino_t inode;
    uint32_t root;
};

struct walk {
    struct names *names;
    const struct inputs *in;
    const char *base;
    uint32_t root;
    struct root_identity *place; /* sorted; none if there is a single root */
    size_t n;
    bool *done; /* roots inside an earlier one */
};

static int by_place(const void *a, const void *b)
{
    const struct root_identity *x = a, *y = b;
    return ORDER(x->device, y->device, ORDER(x->inode, y->inode, 0));
}

/* Is it a root that is walked separately before this one? A later root need not be walked again. */
static bool walked_before(struct walk *w, const char *opened)
{
    struct stat st;
    if (w->n == 0 || stat(opened, &st) != 0)
        return false;
    const struct root_identity here = {.device = st.st_dev, .inode = st.st_ino};
    struct root_identity *p = bsearch(&here, w->place, w->n, sizeof here, by_place);
    if (p && p->root > w->root)
        w->done[p->root] = true;
    return p && p->root < w->root;
}

static bool walk_folder(struct walk *w, const char *path);

/* Why something in a folder does not count; NULL: it does. */
static const char *out_of_scope(const struct walk *w, const char *path, const char *name,
                                unsigned char kind)
{
    if (name[0] == '.')
        return "hidden";
    if (inputs_rule(w->in, RULE_EXCLUDE, path, false))
        return "excluded";
    if (kind == DT_DIR)
        return NULL;
    if (kind != DT_REG)
        return kind == DT_LNK ? "a link" : "not a regular file";
    return inputs_rule(w->in, RULE_INCLUDE, path, true) ? NULL : "not included";
}

static bool walk_child(struct walk *w, const char *path, const char *name, unsigned char kind)
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
    const char *why = child ? out_of_scope(w, child, name, kind) : NULL;
    if (why || kind == DT_REG || !child)
        return list_add(why ? &w->names->out : &w->names->files, w->root, child, why);
    bool good = walk_folder(w, child);
    free(child);
    return good;
}

/* `path` as it is stored; the folder is opened through the base. If a folder has just disappeared, so have its files;
   if a root has, that was probably not intended. */
static bool walk_folder(struct walk *w, const char *path)
{
    struct dirent **list;
    char *opened = base_join(w->base, path);
    if (opened && walked_before(w, opened)) {
        free(opened);
        return true;
    }
    int n = opened ? scandir(opened, &list, listed, by_name) : -1;
    bool shut = n < 0 && (!opened || errno != ENOENT || path == w->in->root[w->root].path);
    bool good =
        !shut || list_add(&w->names->shut, w->root, opened ? strdup(path) : NULL, strerror(errno));
    for (int i = 0; i < n; i++) {
        good = good && walk_child(w, path, list[i]->d_name, kind_of(opened, list[i]));
        free(list[i]);
    }
    if (n >= 0)
        free(list);
    free(opened);
    return good;
}

/* The identities of the roots that are folders, so that one inside another is walked once. */
static bool find_places(struct walk *w, const struct inputs *inputs)
{
    struct stat st;
    w->place = calloc(inputs->n_roots, sizeof *w->place);
    w->done = calloc(inputs->n_roots, sizeof *w->done);
    for (uint32_t i = 0; w->place && w->done && i < inputs->n_roots; i++) {
        char *opened = inputs->root[i].folder ? base_join(w->base, inputs->root[i].path) : NULL;
        if (opened && stat(opened, &st) == 0)
            w->place[w->n++] = (struct root_identity){st.st_dev, st.st_ino, i};
        free(opened);
    }
    if (w->n)
        qsort(w->place, w->n, sizeof *w->place, by_place);
    if (!w->place || !w->done)
        no_memory("list of inputs");
    return w->place && w->done;
}

static bool walk_root(struct walk *w, const struct root *r)
{
    if (w->done && w->done[w->root])
        return true;
    return r->folder ? walk_folder(w, r->path)
                     : list_add(&w->names->files, w->root, strdup(r->path), NULL);
}

static int by_path(const void *a, const void *b)
{
    const struct name *x = a, *y = b;
    int order = strcmp(plain(x->path), plain(y->path));
    return order ? order : ORDER(x->root, y->root, 0);
}

static int by_root(const void *a, const void *b)
{
    const struct name *x = a, *y = b;
    return ORDER(x->root, y->root, strcmp(x->path, y->path));
}

/* A file that several roots name belongs to the first of them. */
static void drop_twins(struct name_list *files)
{
    size_t kept = 0;
    qsort(files->name, files->n, sizeof *files->name, by_path);
    for (size_t i = 0; i < files->n; i++) {
        if (kept && strcmp(plain(files->name[kept - 1].path), plain(files->name[i].path)) == 0)
            free(files->name[i].path);
        else
            files->name[kept++] = files->name[i];
    }
    files->n = kept;
}

/* Sorts in the order of entries; usually they are sorted, and checking takes a tenth of the
   time. */
static void sort_names(struct name_list *files)
{
    for (size_t i = 1; i < files->n; i++)
        if (by_root(&files->name[i - 1], &files->name[i]) > 0) {
            qsort(files->name, files->n, sizeof *files->name, by_root);
            return;
        }
}

/* ---- inputs in folders that cannot be read --------------------------------------------------- */

/* Folders that had inputs and now have no file: a file system may not be mounted. */
static bool find_empty(struct names *names, const struct inputs *in)
{
    bool *had = calloc(in->n_roots + 1, sizeof *had), good = true;
    if (!had)
        return list_add(&names->shut, 0, NULL, NULL);
    for (size_t i = 0; i < in->n; i++)
        had[in->entry[i].root] |= !in->entry[i].passed;
    for (size_t i = 0; i < names->files.n; i++)
        had[names->files.name[i].root] = false;
    for (size_t i = 0; i < names->shut.n; i++)
        had[names->shut.name[i].root] = false;
    for (uint32_t i = 0; good && i < in->n_roots; i++)
        if (had[i] && in->root[i].folder)
            good = list_add(&names->shut, i, strdup(in->root[i].path), "no file is left in it");
    free(had);
    return good;
}

/* A folder above an entry, and one that cannot be read. */
static int by_folder(const void *a, const void *b)
{
    const struct name *entry = a, *shut = b;
    size_t len = strlen(shut->path), above = (size_t)(entry->why - entry->path);
    len -= len && shut->path[len - 1] == '/';
    if (entry->root != shut->root)
        return entry->root < shut->root ? -1 : 1;
    int order = memcmp(entry->path, shut->path, above < len ? above : len);
    return order ? order : ORDER(above, len, 0);
}

static bool hidden(const struct names *names, const struct entry *e)
{
    for (const char *at = e->path; (at = strchr(at, '/')) != NULL; at++) {
        const struct name above = {e->root, (char *)e->path, at};
        if (bsearch(&above, names->shut.name, names->shut.n, sizeof above, by_folder))
            return true;
    }
    return false;
}

/* Entries whose folders cannot be read are examined one by one. */
static bool add_hidden(struct names *names, const struct inputs *in)
{
    bool good = true;
    if (names->shut.n)
        qsort(names->shut.name, names->shut.n, sizeof *names->shut.name, by_root);
    for (size_t i = 0; good && names->shut.n && i < in->n; i++)
        if (in->root[in->entry[i].root].folder && hidden(names, &in->entry[i]))
            good = list_add(&names->files, in->entry[i].root, strdup(in->entry[i].path),
                            "its folder cannot be read");
    return good;
}

bool names_walk(struct names *names, const struct inputs *in, const char *base)
{
    struct walk w = {.names = names, .in = in, .base = base};
    bool good = in->n_roots < 2 || find_places(&w, in);
    for (; good && w.root < in->n_roots; w.root++)
        good = walk_root(&w, &in->root[w.root]);
    good = good && find_empty(names, in) && add_hidden(names, in);
    free(w.place);
    free(w.done);
    if (good && names->files.n) {
        if (in->n_roots > 1)
            drop_twins(&names->files);
        sort_names(&names->files);
    }
    return good;
}
