/* The status of a folder of replicas: read and written. See replica_folder.h. */
#include "replica_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sets/set_file.h"
#include "ui/growing.h"

static const char title[] = "tamis replicas 3\n";

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

static bool read_line(struct replicas *r, const char *line)
{
    char quoted[3 * TAMIS_OWNER_MAX + 8], name[TAMIS_OWNER_MAX + 1], here[64], text[64];
    unsigned long long epoch, version, heard, lease, beat;
    long long delay;
    if (sscanf(line, "position %63s", text) == 1) {
        memcpy(r->position, text, sizeof text);
        return true;
    }
    if (sscanf(line, "boot %63s", text) == 1) {
        boot_id(here);
        if (strcmp(text, here) == 0)
            memcpy(r->boot, here, sizeof here);
        return true;
    }
    if (strncmp(line, "serve ", 6) == 0 && strlen(line) < sizeof r->serve) {
        memcpy(r->serve, line + 6, strcspn(line + 6, "\n"));
        return true;
    }
    if (sscanf(line, "reached %llu %llu", &heard, &lease) == 2) {
        r->reached = heard;
        r->every = lease;
        return true;
    }
    if (sscanf(line, "owner %772s %llu %llu %llu %llu %llu %lld", quoted, &epoch, &version, &heard,
               &lease, &beat, &delay) != 7 ||
        !carrier_unquote(quoted, strlen(quoted), name, sizeof name))
        return false;
    struct replica *replica = replicas_get(r, name);
    if (replica) {
        replica->epoch = epoch;
        replica->version = version;
        replica->heard = heard;
        replica->lease = lease;
        replica->beat = beat;
        replica->delay = delay;
    }
    return replica;
}

bool replicas_read(struct replicas *r, const uint8_t *key, bool whole, bool fresh)
{
    char path[PATH_MAX], line[2048];
    tamis_directory_options options = {
        .key = key, .whole = whole, .lease = fresh ? 0 : UINT32_MAX, .lease_most = r->lease_most};
    if (tamis_directory_new(&r->directory, &options, NULL) != TAMIS_OK)
        return no_memory(r->folder);
    snprintf(path, sizeof path, "%s/status", r->folder);
    FILE *file = fopen(path, "r");
    if (!file && errno == ENOENT && fresh)
        return true;
    if (!file && errno == ENOENT)
        return refuse("no copies in it: %s: make it with tamis follow", r->folder);
    if (!file && errno == ENOTDIR)
        return refuse("Not a directory: %s: give the folder of tamis follow", r->folder);
    if (!file)
        return refuse("%s: %s: check the permissions of the folder", strerror(errno), path);
    bool good = fgets(line, sizeof line, file) && strcmp(line, title) == 0;
    while (good && fgets(line, sizeof line, file))
        good = read_line(r, line);
    good = good && !ferror(file);
    fclose(file);
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

static bool unwritable(const struct replicas *r)
{
    return refuse("%s: %s/status: make room, or check the permissions", strerror(errno), r->folder);
}

bool replicas_write(const struct replicas *r)
{
    char path[PATH_MAX], aside[PATH_MAX], quoted[3 * TAMIS_OWNER_MAX + 8], boot[64];
    snprintf(path, sizeof path, "%s/status", r->folder);
    snprintf(aside, sizeof aside, "%s/.status.new", r->folder);
    FILE *file = fopen(aside, "w");
    if (!file)
        return unwritable(r);
    boot_id(boot);
    fputs(title, file);
    if (boot[0])
        fprintf(file, "boot %s\nreached %llu %llu\n", boot, (unsigned long long)r->reached,
                (unsigned long long)r->every);
    if (r->position[0])
        fprintf(file, "position %s\n", r->position);
    if (r->serve[0])
        fprintf(file, "serve %s\n", r->serve);
    for (size_t i = 0; i < r->room; i++) {
        const struct replica *replica = &r->replica[i];
        if (!replica->name)
            continue;
        carrier_quote(replica->name, quoted, sizeof quoted);
        fprintf(file, "owner %s %llu %llu %llu %llu %llu %lld\n", quoted,
                (unsigned long long)replica->epoch, (unsigned long long)replica->version,
                (unsigned long long)replica->heard, (unsigned long long)replica->lease,
                (unsigned long long)replica->beat, (long long)replica->delay);
    }
    bool good = fflush(file) == 0 && !ferror(file);
    int error = errno;
    bool closed = fclose(file) == 0;
    if (!good)
        errno = error; /* not that of fclose */
    return (good && closed && rename(aside, path) == 0) || unwritable(r);
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
