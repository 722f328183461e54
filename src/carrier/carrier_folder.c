/*
 * A folder that origins and followers can access, on one machine or a network file system, or that a web server
 * serves (carrier_http.c). The objects of objects.h are files; a message is written before the index that names
 * it.
 *
 * Numbers rise; a snapshot removes the messages up to its number. A position is one number per owner, kept in
 * memory: a new follower starts with all messages that are there, which are few. Messages are not synced: if a
 * power failure loses some, the origin notices with its next check.
 */
#include "objects.h"
#include "os/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOOK_MS   50                   /* between checks for new messages */
#define LOOK_PART 20                   /* checks take at most 1/20 of the time */
#define RACY_NS   UINT64_C(2000000000) /* a file may change again without a change of its times */

struct folder {
    struct objects objects;
    char path[PATH_MAX - 1100];
    uint64_t first, last;    /* sent since the snapshot; 0: nothing */
    struct object_mark list; /* the list of owners when `listed` was last found in it */
    char listed[780];
};

static void folder_close(struct carrier *c)
{
    objects_free((struct objects *)c);
    free(c);
}

/* PATH/OWNER/FILE, without those that are "". */
static void name_of(const struct folder *f, const char *owner, const char *file, char out[PATH_MAX])
{
    char path[1024];
    object_path(owner, file, path);
    snprintf(out, PATH_MAX, "%s/%s", f->path, path);
}

static bool fail_system(struct folder *f, const char *path)
{
    return carrier_fail(&f->objects.carrier, "%.180s: %s", path, strerror(errno));
}

static bool make_folder(struct folder *f, const char *path)
{
    return mkdir(path, f->objects.carrier.open_to_all ? 0755 : 0700) == 0 || errno == EEXIST ||
           fail_system(f, path);
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* The number of a message, by its file name, or 0. */
static uint64_t number_of(const char *name)
{
    return strlen(name) == 20 && strspn(name, "0123456789") == 20 ? strtoull(name, NULL, 10) : 0;
}

struct numbers {
    uint64_t *number;
    size_t n;
};

/* The messages of an owner, rising: as their names are, which all have as many digits. */
static bool list_numbers(struct folder *f, const char *owner, struct numbers *out)
{
    char path[PATH_MAX];
    struct dirent **names;
    name_of(f, owner, "", path);
    *out = (struct numbers){0};
    int n = scandir(path, &names, NULL, alphasort);
    if (n < 0)
        return errno == ENOENT || fail_system(f, path);
    out->number = malloc((size_t)n * sizeof *out->number);
    for (int i = 0; i < n; i++) {
        uint64_t number = number_of(names[i]->d_name);
        if (out->number && number)
            out->number[out->n++] = number;
        free(names[i]);
    }
    free(names);
    return out->number || carrier_fail(&f->objects.carrier, "out of memory");
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Written to a new file and renamed, so that links planted in the folder are not followed. */
static bool put_file(struct folder *f, const char *owner, const char *name, bool synced,
                     const struct carrier_part *parts, size_t n)
{
    char path[PATH_MAX];
    struct beside file;
    tamis_reason reason = {0};
    unsigned flags = BESIDE_STRANGE | (*owner ? BESIDE_INNER : 0) | (synced ? 0 : BESIDE_LOOSE) |
                     (f->objects.carrier.open_to_all ? 0 : BESIDE_PRIVATE);
    name_of(f, owner, "", path);
    if (!make_folder(f, f->path) || (*owner && !make_folder(f, path)))
        return false;
    name_of(f, owner, name, path);
    tamis_error e = beside_open(&file, path, flags, &reason);
    for (size_t i = 0; e == TAMIS_OK && i < n; i++) {
        int error = file_write(file.fd, parts[i].data, parts[i].len, -1);
        if (error)
            e = file_fail(&reason, error, path, "writing");
    }
    if (e == TAMIS_OK)
        e = beside_replace(&file, path, &reason);
    beside_close(&file);
    return e == TAMIS_OK || carrier_fail(&f->objects.carrier, "%s", reason.text);
}

/* Is the file as it was when its mark was made? Inodes are reused, so a file first seen a moment ago is read
   again. */
static bool unchanged(const struct stat *st, struct object_mark *mark)
{
    char text[sizeof mark->text];
    uint64_t now = carrier_clock();
    snprintf(text, sizeof text, "%llu %lld %lld.%09ld", (unsigned long long)st->st_ino,
             (long long)st->st_size, (long long)st->st_mtim.tv_sec, (long)st->st_mtim.tv_nsec);
    if (strcmp(text, mark->text) == 0)
        return now - mark->since > RACY_NS;
    memcpy(mark->text, text, sizeof text);
    mark->since = now;
    return false;
}

static uint64_t age_of(const struct stat *st)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t age =
        (now.tv_sec - st->st_mtim.tv_sec) * INT64_C(1000000000) + now.tv_nsec - st->st_mtim.tv_nsec;
    return age >= 0 ? (uint64_t)age : AGE_UNKNOWN;
}

/* Copies the first bytes: others may change the file. */
static enum object_result get_file(struct objects *o, const char *name, size_t most,
                                   struct object_mark *mark, struct object *out)
{
    struct folder *f = (struct folder *)o;
    char path[PATH_MAX], why[80];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", f->path, name);
    if (mark && mark->text[0] && lstat(path, &st) == 0 && unchanged(&st, mark))
        return OBJECT_SAME;
    struct spill file = {.fd = file_open(path, false, &st)};
    int error = file.fd < 0 ? errno : 0;
    if (!error && mark)
        unchanged(&st, mark);
    *out = (struct object){.len = error                         ? 0
                                  : (uint64_t)st.st_size < most ? (size_t)st.st_size
                                                                : most};
    if (out->len && !(out->data = malloc(out->len)))
        error = ENOMEM;
    if (out->len && !error)
        error = spill_read(&file, out->data, out->len, 0);
    spill_close(&file);
    if (error || !out->len) {
        free(out->data);
        file_why(error, why);
        if (mark)
            mark->text[0] = 0;
        if (error && error != ENOENT)
            carrier_fail(&o->carrier, "%.160s: %s", path, why);
        return error && error != ENOENT ? OBJECT_FAILED : OBJECT_NONE;
    }
    out->age = age_of(&st);
    return OBJECT_READ;
}

/* ---- origins --------------------------------------------------------------------------------- */

/* The head of a snapshot: its epoch, and the number of the last message before it. */
static int read_front(struct folder *f, const char *owner, uint64_t front[2])
{
    struct object file;
    char path[1024];
    object_path(owner, "snapshot", path);
    int there = get_file(&f->objects, path, 16, NULL, &file);
    front[0] = front[1] = 0;
    if (there <= 0)
        return there;
    if (file.len >= 16)
        memcpy(front, file.data, 16);
    free(file.data);
    return file.len >= 16;
}

/* The highest number in use. */
static bool last_number(struct folder *f, const char *owner, uint64_t *last)
{
    struct numbers numbers;
    uint64_t front[2];
    if (read_front(f, owner, front) < 0 || !list_numbers(f, owner, &numbers))
        return false;
    *last = numbers.n && numbers.number[numbers.n - 1] > front[1] ? numbers.number[numbers.n - 1]
                                                                  : front[1];
    free(numbers.number);
    return true;
}

static bool file_there(const struct folder *f, const char *owner, const char *name)
{
    char path[PATH_MAX];
    struct stat st;
    name_of(f, owner, name, path);
    return lstat(path, &st) == 0;
}

/* Tells followers which messages there are. */
static bool put_index(struct folder *f, const char *owner, bool forgotten)
{
    struct numbers numbers;
    uint64_t front[2];
    char text[160];
    if (read_front(f, owner, front) < 0 || !list_numbers(f, owner, &numbers))
        return false;
    struct carrier_part part = {text, 0};
    part.len = (size_t)snprintf(
        text, sizeof text, "tamis objects 1\nepoch %llu\nmessages %llu %llu\n%s",
        (unsigned long long)front[0], (unsigned long long)(numbers.n ? numbers.number[0] : 0),
        (unsigned long long)(numbers.n ? numbers.number[numbers.n - 1] : 0),
        forgotten ? "forgotten\n" : "");
    free(numbers.number);
    return put_file(f, owner, "index", false, &part, 1);
}

/* Writes the list of owners from the names of folders. */
static bool put_owners(struct folder *f)
{
    struct dirent **names;
    int n = scandir(f->path, &names, NULL, alphasort);
    if (n < 0)
        return fail_system(f, f->path);
    struct carrier_part *parts = malloc(((size_t)n * 2 + 1) * sizeof *parts);
    size_t made = 0;
    for (int i = 0; parts && i < n; i++) {
        const char *name = names[i]->d_name;
        char owner[256], path[PATH_MAX];
        struct stat st;
        snprintf(path, sizeof path, "%s/%s", f->path, name);
        if (name[0] == '.' || !carrier_unquote(name, strlen(name), owner, sizeof owner) ||
            lstat(path, &st) != 0 || !S_ISDIR(st.st_mode))
            continue;
        parts[made++] = (struct carrier_part){name, strlen(name)};
        parts[made++] = (struct carrier_part){"\n", 1};
    }
    bool good = parts ? put_file(f, "", "owners", false, parts, made)
                      : carrier_fail(&f->objects.carrier, "out of memory");
    free(parts);
    for (int i = 0; i < n; i++)
        free(names[i]);
    free(names);
    return good;
}

/* Appends a line in one write, whose cost does not depend on the number of owners. An incomplete line, left by a
   power failure, is ended first. */
static bool append_owner(struct folder *f, const char *quoted)
{
    char path[PATH_MAX], line[783], last = '\n';
    struct stat st;
    name_of(f, "", "owners", path);
    int fd = open(path, O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0 && pread(fd, &last, 1, st.st_size - 1) < 0)
        last = 0;
    int len = snprintf(line, sizeof line, "%s%s\n", last == '\n' ? "" : "\n", quoted);
    bool good = fd >= 0 && write(fd, line, (size_t)len) == len;
    if (!good)
        fail_system(f, path);
    if (fd >= 0)
        close(fd);
    return good;
}

/* Adds the owner to the list, if it is missing. `fresh`: its folder is new, so it cannot be in the list. Of two
   processes that write the list at once, one may lose its line, and adds it again with its next check. */
static bool be_listed(struct folder *f, const char *owner, bool fresh)
{
    struct object list;
    char quoted[780];
    carrier_quote(owner, quoted, sizeof quoted);
    size_t len = strlen(quoted);
    bool there = false, known = strcmp(quoted, f->listed) == 0;
    if (fresh && append_owner(f, quoted))
        return true;
    enum object_result r =
        get_file(&f->objects, "owners", SIZE_MAX, known ? &f->list : NULL, &list);
    if (r == OBJECT_SAME || r == OBJECT_FAILED)
        return r == OBJECT_SAME;
    for (size_t at = 0; r == OBJECT_READ && !there && at + len < list.len;) {
        const uint8_t *end = memchr(list.data + at, '\n', list.len - at);
        size_t here = (end ? (size_t)(end - list.data) : list.len) - at;
        there = end && here == len && memcmp(list.data + at, quoted, len) == 0;
        at += here + 1;
    }
    if (r == OBJECT_READ)
        free(list.data);
    if (!known || !there)
        f->list.text[0] = 0;
    snprintf(f->listed, sizeof f->listed, "%s", there ? quoted : "");
    return there || (r == OBJECT_READ ? append_owner(f, quoted) : put_owners(f));
}

static bool folder_send(struct carrier *c, const char *owner, const void *data, size_t len)
{
    struct folder *f = (struct folder *)c;
    struct carrier_part part = {data, len};
    char name[24];
    uint64_t last;
    if (!last_number(f, owner, &last))
        return false;
    object_number(last + 1, name);
    if (!put_file(f, owner, name, false, &part, 1) || !put_index(f, owner, false))
        return false;
    f->last = last + 1;
    f->first = f->first ? f->first : f->last;
    return true;
}

/* Messages up to this number are no longer needed, nor is the snapshot if the flag says so. What a
   link in the place of the owner's folder leads to is left alone. */
static bool remove_up_to(struct folder *f, const char *owner, uint64_t number, bool snapshot)
{
    struct numbers numbers;
    char name[24], path[PATH_MAX];
    if (!list_numbers(f, owner, &numbers))
        return false;
    name_of(f, owner, "", path);
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool good = folder >= 0 || errno == ENOENT;
    for (size_t i = 0; folder >= 0 && i < numbers.n && numbers.number[i] <= number; i++) {
        object_number(numbers.number[i], name);
        unlinkat(folder, name, 0);
    }
    if (folder >= 0 && snapshot)
        good = unlinkat(folder, "snapshot", 0) == 0 || errno == ENOENT;
    if (!good)
        fail_system(f, path);
    if (folder >= 0)
        close(folder);
    free(numbers.number);
    return good;
}

static bool folder_replace(struct carrier *c, const char *owner, uint64_t epoch,
                           const struct carrier_part *parts, size_t n)
{
    struct folder *f = (struct folder *)c;
    uint64_t front[2] = {epoch, 0};
    struct carrier_state state;
    bool fresh = !file_there(f, owner, "");
    if (!carrier_state(c, owner, &state) || !carrier_yields(c, owner, &state, epoch) ||
        !last_number(f, owner, &front[1]))
        return false;
    uint64_t *lens = malloc(n * sizeof *lens);
    struct carrier_part *all = malloc((2 * n + 1) * sizeof *all);
    bool good = (lens && all) || carrier_fail(c, "out of memory");
    if (good) {
        all[0] = (struct carrier_part){front, sizeof front};
        for (size_t i = 0; i < n; i++) {
            lens[i] = parts[i].len;
            all[2 * i + 1] = (struct carrier_part){&lens[i], sizeof lens[i]};
            all[2 * i + 2] = parts[i];
        }
        good = put_file(f, owner, "snapshot", true, all, 2 * n + 1);
    }
    free(lens);
    free(all);
    if (!good)
        return false;
    f->first = f->last = 0;
    return remove_up_to(f, owner, front[1], false) && put_index(f, owner, false) &&
           be_listed(f, owner, fresh);
}

static bool number_there(const struct folder *f, const char *owner, uint64_t number)
{
    char name[24];
    object_number(number, name);
    return !number || file_there(f, owner, name);
}

static bool folder_state(struct carrier *c, const char *owner, struct carrier_state *state)
{
    struct folder *f = (struct folder *)c;
    uint64_t front[2];
    int there = read_front(f, owner, front);
    *state = (struct carrier_state){there > 0, front[0], false};
    state->whole = there > 0 && number_there(f, owner, f->first) && number_there(f, owner, f->last);
    return there >= 0 && (!there || be_listed(f, owner, false));
}

/* The last heartbeat stays, for new followers and because it has the highest number. */
static bool folder_advance(struct carrier *c, const char *owner)
{
    struct folder *f = (struct folder *)c;
    if (f->last)
        f->first = f->last;
    return !f->last || (remove_up_to(f, owner, f->last - 1, false) && put_index(f, owner, false));
}

/* A farewell stays, for followers. */
static bool folder_retire(struct carrier *c, const char *owner, bool forget)
{
    struct folder *f = (struct folder *)c;
    uint64_t last;
    return last_number(f, owner, &last) &&
           remove_up_to(f, owner, forget || !last ? last : last - 1, true) &&
           put_index(f, owner, true);
}

static const struct carrier_kind folder_kind = {folder_send,    folder_replace, objects_fetch,
                                                folder_state,   folder_advance, objects_receive,
                                                objects_owners, folder_retire,  folder_close};

struct carrier *carrier_folder_open(const char *path, char error[256])
{
    struct folder *f = calloc(1, sizeof *f);
    if (!f || strlen(path) >= sizeof f->path) {
        snprintf(error, 256, f ? "the name of the folder is too long" : "out of memory");
        free(f);
        return NULL;
    }
    struct objects *o = &f->objects;
    o->carrier.kind = &folder_kind;
    o->get = get_file;
    o->look_ms = LOOK_MS;
    o->share = LOOK_PART;
    memcpy(f->path, path, strlen(path) + 1);
    return &o->carrier;
}
