/*
 * A folder that origins and followers see, on one machine or a network file system. For each owner a
 * folder of its (quoted) name:
 *
 *     OWNER/00000000000000000007   the message with this number: written aside, renamed
 *     OWNER/snapshot               u64 epoch, u64 number of the last message before it, and for each
 *                                  of its messages u64 length and the message
 *     OWNER/forgotten              it is no owner any more
 *
 * Numbers rise; after a snapshot the messages up to its number are removed. A position is a number for
 * each owner, kept in memory: a follower that starts anew begins with all messages that are there,
 * which are few.
 */
#include "carrier.h"
#include "os/file.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOOK_MS 50 /* between looks for new messages */

struct owner_messages {
    char *owner;
    uint64_t seen;  /* the last message taken */
    uint64_t known; /* the last one that was ever seen: those up to it may be old */
};

struct folder {
    struct carrier carrier;
    char path[PATH_MAX - 600];
    struct owner_messages *places;
    size_t n_places;
    uint64_t first, last; /* sent since the snapshot; 0: nothing */
};

static void folder_close(struct carrier *c)
{
    struct folder *f = (struct folder *)c;
    for (size_t i = 0; i < f->n_places; i++)
        free(f->places[i].owner);
    free(f->places);
    free(f);
}

/* PATH/OWNER/FILE, or without a file. */
static void name_of(const struct folder *f, const char *owner, const char *file, char out[PATH_MAX])
{
    char quoted[520];
    carrier_quote(owner, quoted, sizeof quoted);
    snprintf(out, PATH_MAX, "%s/%s%s%s", f->path, quoted, *file ? "/" : "", file);
}

static bool fail_system(struct folder *f, const char *path)
{
    return carrier_fail(&f->carrier, "%.180s: %s", path, strerror(errno));
}

static bool make_folder(struct folder *f, const char *path)
{
    struct stat st;
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return fail_system(f, path);
    if (lstat(path, &st) == 0 && (S_ISDIR(st.st_mode) || strcmp(path, f->path) == 0))
        return true;
    errno = ENOTDIR; /* a link that someone planted is not the owner's folder */
    return fail_system(f, path);
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* The number that a file name is, or 0. */
static uint64_t number_of(const char *name)
{
    return strlen(name) == 20 && strspn(name, "0123456789") == 20 ? strtoull(name, NULL, 10) : 0;
}

struct numbers {
    uint64_t *number;
    size_t n;
};

static int compare(const void *x, const void *y)
{
    uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return a < b ? -1 : a > b;
}

/* The messages of an owner, rising. */
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
    if (!out->number)
        return carrier_fail(&f->carrier, "out of memory");
    qsort(out->number, out->n, sizeof *out->number, compare);
    return true;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* A file of its own, whatever others put into the folder: aside, synced, renamed. */
static bool put_file(struct folder *f, const char *owner, const char *name,
                     const struct carrier_part *parts, size_t n)
{
    char path[PATH_MAX];
    struct beside file;
    tamis_reason reason = {0};
    name_of(f, owner, "", path);
    if (!make_folder(f, f->path) || !make_folder(f, path))
        return false;
    name_of(f, owner, name, path);
    tamis_error e = beside_open(&file, path, BESIDE_PRIVATE | BESIDE_STRANGE, &reason);
    for (size_t i = 0; e == TAMIS_OK && i < n; i++) {
        int error = file_write(file.fd, parts[i].data, parts[i].len, -1);
        if (error)
            e = file_fail(&reason, error, path, "writing");
    }
    if (e == TAMIS_OK)
        e = beside_replace(&file, path, &reason);
    beside_close(&file);
    return e == TAMIS_OK || carrier_fail(&f->carrier, "%s", reason.text);
}

struct message {
    uint8_t *data;
    size_t len;
    uint64_t age; /* nanoseconds since it was written, if its time says so */
};

/* A copy of its first bytes: others may change the file. 1, 0 if it is not there, -1. */
static int read_file(struct folder *f, const char *owner, const char *name, size_t most,
                     struct message *out)
{
    char path[PATH_MAX], why[80];
    struct stat st;
    struct timespec now;
    name_of(f, owner, name, path);
    struct spill file = {.fd = file_open(path, false, &st)};
    int error = file.fd < 0 ? errno : 0;
    *out = (struct message){.len = error                         ? 0
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
        if (error && error != ENOENT)
            carrier_fail(&f->carrier, "%.160s: %s", path, why);
        return error && error != ENOENT ? -1 : 0;
    }
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t age =
        (now.tv_sec - st.st_mtim.tv_sec) * INT64_C(1000000000) + now.tv_nsec - st.st_mtim.tv_nsec;
    out->age = age >= 0 ? (uint64_t)age : AGE_UNKNOWN;
    return 1;
}

/* ---- origins --------------------------------------------------------------------------------- */

/* The numbers in front of a snapshot: epoch, and the last message before it. */
static int read_front(struct folder *f, const char *owner, uint64_t front[2])
{
    struct message file;
    int there = read_file(f, owner, "snapshot", 16, &file);
    front[0] = front[1] = 0;
    if (there <= 0)
        return there;
    if (file.len >= 16)
        memcpy(front, file.data, 16);
    free(file.data);
    return file.len >= 16;
}

/* The last number that was used. */
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

static bool folder_send(struct carrier *c, const char *owner, const void *data, size_t len)
{
    struct folder *f = (struct folder *)c;
    struct carrier_part part = {data, len};
    char name[32];
    uint64_t last;
    if (!last_number(f, owner, &last))
        return false;
    snprintf(name, sizeof name, "%020llu", (unsigned long long)last + 1);
    if (!put_file(f, owner, name, &part, 1))
        return false;
    f->last = last + 1;
    f->first = f->first ? f->first : f->last;
    return true;
}

/* Messages up to this number are not needed any more. */
static bool remove_up_to(struct folder *f, const char *owner, uint64_t number)
{
    struct numbers numbers;
    char name[32], path[PATH_MAX];
    if (!list_numbers(f, owner, &numbers))
        return false;
    for (size_t i = 0; i < numbers.n && numbers.number[i] <= number; i++) {
        snprintf(name, sizeof name, "%020llu", (unsigned long long)numbers.number[i]);
        name_of(f, owner, name, path);
        unlink(path);
    }
    free(numbers.number);
    return true;
}

static bool folder_replace(struct carrier *c, const char *owner, uint64_t epoch,
                           const struct carrier_part *parts, size_t n)
{
    struct folder *f = (struct folder *)c;
    uint64_t front[2] = {epoch, 0};
    struct carrier_state state;
    char path[PATH_MAX];
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
        good = put_file(f, owner, "snapshot", all, 2 * n + 1);
    }
    free(lens);
    free(all);
    if (!good)
        return false;
    f->first = f->last = 0;
    name_of(f, owner, "forgotten", path);
    unlink(path);
    return remove_up_to(f, owner, front[1]);
}

static bool file_there(const struct folder *f, const char *owner, const char *name)
{
    char path[PATH_MAX];
    struct stat st;
    name_of(f, owner, name, path);
    return lstat(path, &st) == 0;
}

static bool number_there(const struct folder *f, const char *owner, uint64_t number)
{
    char name[32];
    snprintf(name, sizeof name, "%020llu", (unsigned long long)number);
    return !number || file_there(f, owner, name);
}

static bool folder_state(struct carrier *c, const char *owner, struct carrier_state *state)
{
    struct folder *f = (struct folder *)c;
    uint64_t front[2];
    int there = read_front(f, owner, front);
    *state = (struct carrier_state){there > 0, front[0], false};
    state->whole = there > 0 && number_there(f, owner, f->first) && number_there(f, owner, f->last);
    return there >= 0;
}

/* The last heartbeat stays, so that numbers go on, and whoever comes hears of it. */
static bool folder_advance(struct carrier *c, const char *owner)
{
    struct folder *f = (struct folder *)c;
    if (f->last)
        f->first = f->last;
    return !f->last || remove_up_to(f, owner, f->last - 1);
}

/* A farewell stays, so that followers hear it. */
static bool folder_retire(struct carrier *c, const char *owner, bool forget)
{
    struct folder *f = (struct folder *)c;
    char path[PATH_MAX];
    uint64_t last;
    if (!last_number(f, owner, &last) || !put_file(f, owner, "forgotten", NULL, 0) ||
        !remove_up_to(f, owner, forget || !last ? last : last - 1))
        return false;
    name_of(f, owner, "snapshot", path);
    return unlink(path) == 0 || errno == ENOENT || fail_system(f, path);
}

/* ---- followers ------------------------------------------------------------------------------- */

static struct owner_messages *place_of(struct folder *f, const char *owner)
{
    for (size_t i = 0; i < f->n_places; i++)
        if (strcmp(f->places[i].owner, owner) == 0)
            return &f->places[i];
    struct owner_messages *grown = realloc(f->places, (f->n_places + 1) * sizeof *grown);
    char *name = strdup(owner);
    if (grown)
        f->places = grown;
    if (!grown || !name) {
        free(name);
        carrier_fail(&f->carrier, "out of memory");
        return NULL;
    }
    f->places[f->n_places] = (struct owner_messages){name, 0, 0};
    return &f->places[f->n_places++];
}

struct looking {
    struct folder *f;
    carrier_take take;
    void *context;
    int n;
    bool failed;
};

static void look_at(void *context, const char *owner, bool forgotten)
{
    struct looking *l = context;
    uint64_t since = carrier_since(l->f->carrier.reached, carrier_clock());
    (void)forgotten; /* the farewell is to be heard */
    struct owner_messages *place = place_of(l->f, owner);
    struct numbers numbers;
    if (!place || !list_numbers(l->f, owner, &numbers)) {
        l->failed = true;
        return;
    }
    /* Numbers that begin again: the folder was emptied. */
    if (numbers.n && numbers.number[numbers.n - 1] < place->seen)
        place->seen = place->known = 0, since = AGE_UNKNOWN;
    for (size_t i = 0; i < numbers.n; i++) {
        struct message file;
        char name[32];
        if (numbers.number[i] <= place->seen)
            continue;
        snprintf(name, sizeof name, "%020llu", (unsigned long long)numbers.number[i]);
        if (read_file(l->f, owner, name, SIZE_MAX, &file) <= 0)
            continue; /* removed since: the follower will see that something is missing */
        bool came = since != AGE_UNKNOWN && numbers.number[i] > place->known;
        carrier_deliver(l->take, l->context, owner, file.data, file.len, came ? since : file.age);
        free(file.data);
        place->seen = numbers.number[i];
        place->known = place->seen > place->known ? place->seen : place->known;
        l->n++;
    }
    free(numbers.number);
}

static bool folder_owners(struct carrier *c, carrier_each each, void *context)
{
    struct folder *f = (struct folder *)c;
    struct dirent **names;
    int n = scandir(f->path, &names, NULL, alphasort);
    if (n < 0)
        return errno == ENOENT || fail_system(f, f->path);
    for (int i = 0; i < n; i++) {
        const char *name = names[i]->d_name;
        char owner[256];
        if (name[0] != '.' && carrier_unquote(name, strlen(name), owner, sizeof owner))
            each(context, owner, file_there(f, owner, "forgotten"));
        free(names[i]);
    }
    free(names);
    return true;
}

static int folder_receive(struct carrier *c, char position[CARRIER_POSITION], int milliseconds,
                          carrier_take take, void *context)
{
    struct looking l = {(struct folder *)c, take, context, 0, false};
    uint64_t until = carrier_now() + (uint64_t)milliseconds;
    snprintf(position, CARRIER_POSITION, "-");
    for (;;) {
        uint64_t began = carrier_clock();
        if (!folder_owners(c, look_at, &l) || l.failed) {
            carrier_sleep(LOOK_MS);
            return -1;
        }
        c->reached = began;
        uint64_t now = carrier_now();
        if (l.n || now >= until)
            return l.n;
        carrier_sleep(until - now < LOOK_MS ? until - now : LOOK_MS);
    }
}

static int folder_fetch(struct carrier *c, const char *owner, char position[CARRIER_POSITION],
                        carrier_take take, void *context)
{
    struct owner_messages *place = place_of((struct folder *)c, owner);
    struct message file;
    int there = read_file((struct folder *)c, owner, "snapshot", SIZE_MAX, &file);
    (void)position; /* what follows on it comes again */
    if (there <= 0 || !place)
        return place ? there : -1;
    if (file.len >= 16)
        memcpy(&place->seen, file.data + 8, sizeof place->seen);
    for (size_t at = 16; at + 8 <= file.len;) {
        uint64_t len;
        memcpy(&len, file.data + at, sizeof len);
        at += sizeof len;
        if (len > file.len - at)
            break;
        carrier_deliver(take, context, owner, file.data + at, (size_t)len, AGE_UNKNOWN);
        at += len;
    }
    free(file.data);
    return 1;
}

static const struct carrier_kind folder_kind = {folder_send,   folder_replace, folder_fetch,
                                                folder_state,  folder_advance, folder_receive,
                                                folder_owners, folder_retire,  folder_close};

struct carrier *carrier_folder_open(const char *path, char error[256])
{
    struct folder *f = calloc(1, sizeof *f);
    if (!f || strlen(path) >= sizeof f->path) {
        snprintf(error, 256, f ? "the name of the folder is too long" : "out of memory");
        free(f);
        return NULL;
    }
    f->carrier.kind = &folder_kind;
    memcpy(f->path, path, strlen(path) + 1);
    return &f->carrier;
}
