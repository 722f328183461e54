/* See common_trace.h. */
#define _XOPEN_SOURCE 700
#include "common_trace.h"

#include <ftw.h>
#include <sys/stat.h>

/* nftw gives its function no context. */
static struct {
    uint64_t *items;
    struct lab_file *files;
    size_t n, most;
} walk;

static int visit(const char *path, const struct stat *st, int type, struct FTW *at)
{
    if (type != FTW_F)
        return 0;
    if (walk.items) {
        char text[4200];
        int len = snprintf(text, sizeof text, "%s %lld", path, (long long)st->st_size);
        walk.items[walk.n++] = XXH3_64bits(text, (size_t)len);
    } else {
        struct lab_file *file = &walk.files[walk.n++];
        snprintf(file->name, sizeof file->name, "%s", path + at->base);
        file->device = (uint64_t)st->st_dev;
        file->changed = (uint64_t)st->st_mtime;
    }
    return walk.n == walk.most;
}

struct lab_file *lab_files(size_t most, size_t *n)
{
    walk.items = NULL;
    walk.files = lab_alloc(most, sizeof *walk.files);
    walk.n = 0;
    walk.most = most;
    nftw("/usr", visit, 32, FTW_PHYS);
    *n = walk.n;
    return walk.files;
}

/* "Depends: libc6 (>= 2.34), zlib1g | other" is three mentions. */
static size_t mentions(char *line, uint64_t *items, size_t most)
{
    size_t n = 0;
    char *rest = strchr(line, ':') + 1;
    for (char *one = strtok(rest, ",|\n"); one && n < most; one = strtok(NULL, ",|\n")) {
        one += strspn(one, " ");
        if (*one)
            items[n++] = XXH3_64bits(one, strcspn(one, "\n"));
    }
    return n;
}

static size_t packages(uint64_t *items, size_t most)
{
    static const char *const fields[] = {
        "Package:", "Depends:",  "Pre-Depends:", "Recommends:", "Suggests:",
        "Breaks:",  "Replaces:", "Provides:",    "Conflicts:"};
    FILE *f = fopen("/var/lib/dpkg/status", "r");
    char *line = NULL;
    size_t room = 0, n = 0;
    if (!f)
        return 0;
    while (n < most && getline(&line, &room, f) > 0)
        for (unsigned i = 0; i < sizeof fields / sizeof *fields; i++)
            if (strncmp(line, fields[i], strlen(fields[i])) == 0) {
                n += mentions(line, items + n, most - n);
                break;
            }
    free(line);
    fclose(f);
    return n;
}

uint64_t *lab_trace(enum trace trace, size_t most, size_t *n)
{
    uint64_t *items = lab_alloc(most, sizeof *items);
    if (trace == TRACE_PACKAGES) {
        *n = packages(items, most);
        return items;
    }
    walk.items = items;
    walk.n = 0;
    walk.most = most;
    nftw("/usr", visit, 32, FTW_PHYS);
    *n = walk.n;
    return items;
}
