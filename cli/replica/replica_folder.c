/* The status of a folder of replicas: read and written. See replica_folder.h. */
#include "replica_folder.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ui/text_lines.h"

#define TITLE "tamis replicas 3\n"

bool replicas_reserve(struct replicas *r, size_t owners)
{
    size_t had = r->room;
    if (owners && !room_for(&r->replica, owners - 1, &r->room, sizeof *r->replica))
        return no_memory(r->folder);
    if (r->room > had)
        memset(r->replica + had, 0, (r->room - had) * sizeof *r->replica);
    return true;
}

/* Finds the owner or adds it, in doubt; NULL after complaining of memory. */
static struct replica *replicas_get(struct replicas *r, const char *name)
{
    uint32_t number;
    tamis_reason reason = {0};
    tamis_error e = tamis_directory_expect(r->directory, name, &number, &reason);
    if (!succeeded(e, &reason, name) || !replicas_reserve(r, (size_t)number + 1))
        return NULL;
    r->replica[number].name = tamis_directory_name(r->directory, number);
    return &r->replica[number];
}

bool replicas_next(const struct replicas *r, uint32_t *number, const char **name)
{
    uint32_t n = r->directory ? tamis_directory_owners(r->directory) : 0;
    while (*number < n && !(*name = tamis_directory_name(r->directory, *number)))
        ++*number;
    return *number < n;
}

size_t replicas_count(const struct replicas *r)
{
    const char *name;
    size_t n = 0;
    for (uint32_t i = 0; replicas_next(r, &i, &name); i++)
        n++;
    return n;
}

void replicas_path(const struct replicas *r, const char *name, char *out)
{
    char quoted[3 * TAMIS_OWNER_MAX + 8];
    carrier_quote(name, quoted, sizeof quoted);
    snprintf(out, PATH_MAX, "%s/%s.replica", r->folder, quoted);
}

/* Identifies the machine and its current boot; "" if unknown, and then nothing is trusted. */
static void boot_id(char out[64])
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (!file || fscanf(file, "%63s", out) != 1)
        out[0] = 0;
    if (file)
        fclose(file);
}

static bool take_owner(struct replicas *r, struct line *l)
{
    char name[TAMIS_OWNER_MAX + 1];
    const char *quoted = text_word(l);
    struct replica *replica =
        carrier_unquote(quoted, strlen(quoted), name, sizeof name) ? replicas_get(r, name) : NULL;
    if (!replica)
        return false;
    replica->epoch = text_number(l, 10);
    replica->version = text_number(l, 10);
    replica->heard = text_number(l, 10);
    replica->lease = text_number(l, 10);
    replica->beat = text_number(l, 10);
    replica->delay = text_whole(l);
    return true;
}

static bool take_line(void *context, const char *what, struct line *l)
{
    struct replicas *r = context;
    char here[sizeof r->boot];
    if (strcmp(what, "boot") == 0) {
        boot_id(here);
        text_copy(l, r->boot, sizeof r->boot);
        if (strcmp(r->boot, here) != 0)
            r->boot[0] = 0;
    } else if (strcmp(what, "reached") == 0) {
        r->reached = text_number(l, 10);
        r->every = text_number(l, 10);
    } else if (strcmp(what, "position") == 0) {
        text_copy(l, r->position, sizeof r->position);
    } else if (strcmp(what, "serve") == 0 && l->at && strlen(l->at) < sizeof r->serve) {
        memcpy(r->serve, l->at, strlen(l->at) + 1); /* it may have spaces */
        l->at = NULL;
    } else {
        return strcmp(what, "owner") == 0 && take_owner(r, l);
    }
    return true;
}

bool replicas_read(struct replicas *r, const uint8_t *key, bool whole, bool fresh)
{
    char path[PATH_MAX];
    struct bytes text = {0};
    tamis_directory_options options = {
        .key = key, .whole = whole, .lease = fresh ? 0 : UINT32_MAX, .lease_most = r->lease_most};
    if (tamis_directory_new(&r->directory, &options, NULL) != TAMIS_OK)
        return no_memory(r->folder);
    snprintf(path, sizeof path, "%s/status", r->folder);
    int error = file_slurp(path, &text) ? 0 : errno;
    bool good = !error && text_read(&text, TITLE, NULL, take_line, r);
    bytes_end(&text);
    if (error == ENOENT && fresh)
        return true;
    if (error == ENOENT)
        return refuse("no copies in it: %s: make it with tamis follow", r->folder);
    if (error == ENOTDIR)
        return refuse("Not a directory: %s: give the folder of tamis follow", r->folder);
    if (error)
        return refuse("%s: %s: check the permissions of the folder", strerror(error), path);
    if (!good)
        complain("not written by tamis follow, or damaged: %s: remove it and follow again", path);
    return good;
}

bool replicas_lock(struct replicas *r)
{
    char path[PATH_MAX];
    tamis_reason reason = {0};
    snprintf(path, sizeof path, "%s/status", r->folder);
    tamis_error e = tamis_file_lock(&r->lock, path, NULL, &reason);
    if (e == TAMIS_EBUSY)
        return refuse(
            "another tamis follow is writing to it: %s: give this one a folder of its own",
            r->folder);
    return succeeded(e, &reason, path);
}

bool replicas_write(const struct replicas *r)
{
    char path[PATH_MAX], quoted[3 * TAMIS_OWNER_MAX + 8], boot[64];
    struct bytes text = {0};
    boot_id(boot);
    text_put(&text, TITLE);
    if (boot[0])
        text_put(&text, "boot %s\nreached %" PRIu64 " %" PRIu64 "\n", boot, r->reached, r->every);
    if (r->position[0])
        text_put(&text, "position %s\n", r->position);
    if (r->serve[0])
        text_put(&text, "serve %s\n", r->serve);
    for (size_t i = 0; i < r->room; i++) {
        const struct replica *replica = &r->replica[i];
        if (!replica->name)
            continue;
        carrier_quote(replica->name, quoted, sizeof quoted);
        text_put(&text,
                 "owner %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRId64
                 "\n",
                 quoted, replica->epoch, replica->version, replica->heard, replica->lease,
                 replica->beat, replica->delay);
    }
    snprintf(path, sizeof path, "%s/status", r->folder);
    bool good =
        (!text.failed || no_memory(r->folder)) && file_put(path, text.data, text.len, PUT_LOOSE);
    bytes_end(&text);
    return good;
}

void replicas_remove(struct replicas *r, uint32_t number)
{
    char path[PATH_MAX];
    replicas_path(r, r->replica[number].name, path);
    unlink(path);
    r->replica[number] = (struct replica){0};
}

bool replica_trusted(const struct replicas *all, const struct replica *r)
{
    uint64_t now = carrier_clock();
    return all->boot[0] && r->version && carrier_since(r->heard, now) < r->lease &&
           carrier_since(all->reached, now) < r->beat + all->every;
}

void replicas_free(struct replicas *r)
{
    tamis_directory_free(r->directory);
    tamis_file_unlock(r->lock);
    free(r->replica);
    *r = (struct replicas){0};
}
