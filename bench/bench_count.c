/* One operation, n times, for counting instructions: bench/counts.py runs it under cachegrind. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "tamis/replica.h"

#define KEYS  4096
#define CHUNK 1024

#define REMOVABLE 32768 /* keys, of which n are removed: counts.py takes fewer */

static uint64_t keys[KEYS];
static tamis_digest digests[CHUNK];
static uint8_t found[CHUNK];

static tamis_filter *make(const char *what)
{
    static const uint8_t key[TAMIS_KEY_LEN] = "tamis benchmark";
    tamis_options o = {.growth = TAMIS_FIXED, .capacity = 1 << 20, .key = key};
    if (strstr(what, "spread"))
        o.layout = TAMIS_SPREAD;
    if (strstr(what, "scalable"))
        o.growth = TAMIS_SCALABLE, o.capacity = 16;
    if (strstr(what, "smooth"))
        o.growth = TAMIS_SMOOTH, o.capacity = 0;
    if (strstr(what, "dynamic"))
        o.growth = TAMIS_DYNAMIC, o.capacity = 65536, o.vectors = 512;
    if (strstr(what, "deletable"))
        o.deletable = true;
    tamis_filter *f;
    if (tamis_filter_new(&f, &o, NULL) != TAMIS_OK)
        exit(2);
    return f;
}

static int to_directory(void *directory, const void *data, size_t len)
{
    return tamis_directory_take(directory, NULL, data, len, 0, NULL, NULL) != TAMIS_OK;
}

/* Many owners come into one directory: what each costs must not grow with their number. */
static int owners(bool messages, size_t n)
{
    static const uint8_t key[TAMIS_KEY_LEN] = "tamis benchmark";
    tamis_directory *d = NULL;
    tamis_filter *f = NULL;
    tamis_options small = {.growth = TAMIS_FIXED, .capacity = 64, .key = key};
    /* With the key it would take sealed messages only. */
    tamis_directory_options whole = {.key = messages ? NULL : key};
    int failed = tamis_directory_new(&d, &whole, NULL) != TAMIS_OK ||
                 tamis_filter_new(&f, &small, NULL) != TAMIS_OK;
    for (size_t i = 0; i < n / 16 && !failed; i++) {
        char name[32];
        tamis_origin *origin = NULL;
        tamis_origin_options o = {.owner = name, .epoch = 1};
        snprintf(name, sizeof name, "owner-%zu", i);
        if (!messages) {
            failed = tamis_directory_put(d, name, digests, 16, NULL) != TAMIS_OK;
            continue;
        }
        failed = tamis_origin_new(&origin, f, &o, NULL) != TAMIS_OK ||
                 tamis_origin_publish(origin, to_directory, d, NULL) != TAMIS_OK ||
                 tamis_origin_beat(origin, to_directory, d) != TAMIS_OK;
        tamis_origin_free(origin);
    }
    tamis_filter_free(f);
    tamis_directory_free(d);
    return failed;
}

/* One key after the other is asked of 200 owners. */
static int owners_locate(size_t n)
{
    static const uint8_t key[TAMIS_KEY_LEN] = "tamis benchmark";
    tamis_directory *d = NULL;
    tamis_place places[8];
    uint64_t next[CHUNK];
    int failed = tamis_directory_new(&d, &(tamis_directory_options){.key = key}, NULL) != TAMIS_OK;
    for (size_t i = 0; i < 200 && !failed; i++) {
        char name[32];
        snprintf(name, sizeof name, "owner-%zu", i);
        bench_keys(next, CHUNK, i);
        for (size_t j = 0; j < CHUNK; j++)
            digests[j] = tamis_directory_digest(d, &next[j], 8);
        failed = tamis_directory_put(d, name, digests, CHUNK, NULL) != TAMIS_OK;
    }
    bench_keys(next, CHUNK, 1000);
    for (size_t i = 0; i < n && !failed; i++)
        failed = tamis_directory_locate(d, &next[i % CHUNK], 8, places, 8) > 200;
    tamis_directory_free(d);
    return failed;
}

/* Keys that were added go again. */
static int removes(const char *what, size_t n)
{
    tamis_filter *f = make(what);
    uint64_t next[CHUNK];
    bool many = strstr(what, "many") != NULL;
    int failed = 0;
    for (size_t i = 0; i < REMOVABLE; i += CHUNK) {
        bench_keys(next, CHUNK, 2 + i);
        for (size_t j = 0; j < CHUNK; j++)
            tamis_filter_add(f, &next[j], 8, NULL);
    }
    for (size_t i = 0; i < n && i < REMOVABLE && !failed; i += CHUNK) {
        bench_keys(next, CHUNK, 2 + i);
        tamis_filter_digest_fixed(f, next, 8, many ? CHUNK : 0, digests);
        if (many)
            failed |= tamis_filter_remove_many(f, digests, CHUNK, NULL, NULL) != TAMIS_OK;
        for (size_t j = 0; j < CHUNK && !many; j++)
            failed |= tamis_filter_remove(f, &next[j], 8, NULL) != TAMIS_OK;
    }
    tamis_filter_free(f);
    return failed;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        printf("has has_scalable has_smooth has_many has_many_spread has_many_scalable "
               "has_many_smooth has_many_dynamic add add_scalable add_dynamic add_many "
               "add_many_spread add_many_scalable add_many_smooth add_deletable remove_deletable "
               "remove_many_smooth_deletable owners_put owners_take owners_locate\n");
        return 0;
    }
    const char *what = argv[1];
    size_t n = (size_t)atol(argv[2]);
    if (strcmp(what, "owners_locate") == 0)
        return owners_locate(n);
    if (strncmp(what, "remove", 6) == 0)
        return removes(what, n);
    if (strncmp(what, "owners", 6) == 0)
        return owners(strcmp(what, "owners_take") == 0, n);
    tamis_filter *f = make(what);
    bench_keys(keys, KEYS, 1);
    for (size_t i = 0; i < KEYS; i++)
        tamis_filter_add(f, &keys[i], 8, NULL);
    uint64_t sum = 0, next[CHUNK];
    bool many = strstr(what, "many") != NULL, add = strncmp(what, "add", 3) == 0;
    for (size_t i = 0; i < n; i += CHUNK) {
        bench_keys(next, CHUNK, 2 + i);
        if (many) {
            tamis_filter_digest_fixed(f, next, 8, CHUNK, digests);
            if (add)
                tamis_filter_add_many(f, digests, CHUNK, found, NULL);
            else
                tamis_filter_has_many(f, digests, CHUNK, found);
            sum += found[0];
        } else {
            for (size_t j = 0; j < CHUNK; j++) {
                bool fresh = true;
                if (add)
                    tamis_filter_add(f, &next[j], 8, &fresh);
                else
                    fresh = tamis_filter_has(f, &next[j], 8);
                sum += fresh;
            }
        }
    }
    tamis_filter_free(f);
    return sum == n + 1;
}
