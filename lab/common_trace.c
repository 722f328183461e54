/* See common_trace.h. */
#define _XOPEN_SOURCE 700
#include "common_trace.h"

#include <ctype.h>
#include <ftw.h>
#include <math.h>
#include <sys/stat.h>

/* ---- files ----------------------------------------------------------------------------------- */

/* nftw gives its function no context. */
static struct {
    uint64_t *items;
    struct lab_file *files;
    size_t n, most;
} walk;

static void walk_over(const char *folder, __nftw_func_t visit)
{
    walk.n = 0;
    nftw(folder, visit, 32, FTW_PHYS);
}

static int visit_file(const char *path, const struct stat *st, int type, struct FTW *at)
{
    if (type != FTW_F)
        return 0;
    struct lab_file *file = &walk.files[walk.n++];
    snprintf(file->name, sizeof file->name, "%s", path + at->base);
    file->device = (uint64_t)st->st_dev;
    file->changed = (uint64_t)st->st_mtime;
    return walk.n == walk.most;
}

struct lab_file *lab_files(size_t most, size_t *n)
{
    walk.files = lab_alloc(most, sizeof *walk.files);
    walk.most = most;
    walk_over("/usr", visit_file);
    *n = walk.n;
    return walk.files;
}

static int visit_words(const char *path, const struct stat *st, int type, struct FTW *at)
{
    char word[64];
    size_t len = 0;
    int c;
    FILE *f;
    (void)st;
    if (type != FTW_F || strcmp(path + at->base, "copyright") != 0 || !(f = fopen(path, "r")))
        return 0;
    do {
        c = fgetc(f);
        if (c != EOF && isgraph(c) && len < sizeof word)
            word[len++] = (char)c;
        else if (len > 0) {
            walk.items[walk.n++] = XXH3_64bits(word, len);
            len = 0;
        }
    } while (c != EOF && walk.n < walk.most);
    fclose(f);
    return walk.n == walk.most;
}

/* At most 64 KiB of a file, so that many have a part in the trace. */
static int visit_integers(const char *path, const struct stat *st, int type, struct FTW *at)
{
    enum { FOUR = 16, SOME = 4096 };
    char four[FOUR];
    FILE *f;
    (void)st;
    (void)at;
    if (type != FTW_F || !(f = fopen(path, "r")))
        return 0;
    for (unsigned i = 0; i < SOME && walk.n < walk.most && fread(four, FOUR, 1, f) == 1; i++)
        walk.items[walk.n++] = XXH3_64bits(four, FOUR);
    fclose(f);
    return walk.n == walk.most;
}

static uint64_t *items_of(const char *folder, __nftw_func_t visit, size_t most, size_t *n)
{
    walk.items = lab_alloc(most, sizeof *walk.items);
    walk.most = most;
    walk_over(folder, visit);
    *n = walk.n;
    return walk.items;
}

uint64_t *trace_words(size_t most, size_t *n)
{
    return items_of("/usr/share/doc", visit_words, most, n);
}

uint64_t *trace_integers(size_t most, size_t *n)
{
    return items_of("/usr/lib", visit_integers, most, n);
}

/* ---- addresses ------------------------------------------------------------------------------- */

/* Different ones among n arrivals, where address i of `all` has the probability 1 / (i H). */
static double distinct_among(double n, size_t all)
{
    double harmonic = 0, distinct = 0;
    for (size_t i = 1; i <= all; i++)
        harmonic += 1 / (double)i;
    for (size_t i = 1; i <= all; i++)
        distinct -= expm1(-n / ((double)i * harmonic));
    return distinct;
}

uint64_t *trace_addresses(size_t n, size_t more, double distinct, uint64_t stream)
{
    size_t low = 1 + SEARCH(i, n - 1, distinct_among((double)n, i + 1) < distinct);
    double *cumulated = lab_alloc(low, sizeof *cumulated), sum = 0;
    for (size_t i = 0; i < low; i++)
        cumulated[i] = sum += 1 / (double)(i + 1);
    uint64_t *arrivals = lab_alloc(n + more, sizeof *arrivals),
             *names = lab_alloc(low, sizeof *names), state = stream;
    lab_keys(stream, names, low);
    for (size_t i = 0; i < n + more; i++) {
        double at = (double)(rng_next(&state) >> 11) * 0x1p-53 * sum;
        arrivals[i] = names[SEARCH(j, low - 1, cumulated[j] <= at)];
    }
    free(cumulated);
    free(names);
    return arrivals;
}

/* ---- traces ---------------------------------------------------------------------------------- */

void trace_synthetic(struct trace *t, size_t n, uint64_t stream)
{
    *t = (struct trace){lab_alloc(n, sizeof *t->keys), n, n, {0}};
    lab_keys(stream, t->keys, n);
    for (unsigned p = 0; p < TRACE_PLACES; p++)
        t->upto[p] = (p + 1) * (n / TRACE_PLACES);
}

void trace_of(struct trace *t, uint64_t *arrivals, size_t n)
{
    size_t mask = 1;
    while (mask < 2 * n)
        mask *= 2;
    uint64_t *seen = lab_alloc(mask--, sizeof *seen); /* 0: free; a key 0 is counted anew */
    *t = (struct trace){arrivals, n, 0, {0}};
    for (unsigned p = 0; p < TRACE_PLACES; p++) {
        for (size_t i = p * (n / TRACE_PLACES); i < (p + 1) * (n / TRACE_PLACES); i++) {
            uint64_t key = arrivals[i];
            size_t at = key & mask;
            while (seen[at] && seen[at] != key)
                at = (at + 1) & mask;
            if (seen[at] == 0)
                t->keys[t->distinct++] = seen[at] = key;
        }
        t->upto[p] = t->distinct;
    }
    free(seen);
}

void trace_free(struct trace *t)
{
    free(t->keys);
}
