/*
 * Who has this key? A directory of 10,000 owners of 1,000 keys each, against asking 10,000 filters one
 * by one (the same rate, the layout that answers fastest, digest made once).
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "tamis/replica.h"

enum { OWNERS = 10000, KEYS = 1000, QUESTIONS = 2000 };

static const uint8_t family[TAMIS_KEY_LEN] = "tamis benchmark";

struct scene {
    tamis_directory *directory;
    tamis_filter *filters[OWNERS];
    tamis_digest asked[QUESTIONS];
    uint64_t key[QUESTIONS];
    uint64_t found;
};

static void build(struct scene *s)
{
    static uint64_t keys[KEYS];
    static tamis_digest digests[KEYS];
    tamis_directory_options o = {.key = family};
    tamis_options one = {.growth = TAMIS_FIXED, .capacity = KEYS, .key = family};
    if (tamis_directory_new(&s->directory, &o, NULL) != TAMIS_OK)
        exit(2);
    for (unsigned i = 0; i < OWNERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "host%u", i);
        bench_keys(keys, KEYS, i + 1);
        for (unsigned j = 0; j < KEYS; j++)
            digests[j] = tamis_directory_digest(s->directory, &keys[j], 8);
        if (tamis_directory_put(s->directory, name, digests, KEYS, NULL) != TAMIS_OK ||
            tamis_filter_new(&s->filters[i], &one, NULL) != TAMIS_OK ||
            tamis_filter_add_many(s->filters[i], digests, KEYS, NULL, NULL) != TAMIS_OK)
            exit(2);
    }
    for (unsigned i = 0; i < QUESTIONS; i++) { /* keys that one owner has */
        bench_keys(keys, KEYS, bench_mix(i) % OWNERS + 1);
        s->key[i] = keys[i % KEYS];
        s->asked[i] = tamis_directory_digest(s->directory, &s->key[i], 8);
    }
}

static void ask_directory(void *context)
{
    struct scene *s = context;
    static tamis_place owners[OWNERS];
    for (unsigned i = 0; i < QUESTIONS; i++)
        s->found += tamis_directory_locate(s->directory, &s->key[i], 8, owners, OWNERS);
}

static void ask_filters(void *context)
{
    struct scene *s = context;
    for (unsigned i = 0; i < QUESTIONS / 20; i++)
        for (unsigned j = 0; j < OWNERS; j++) {
            uint8_t has = 0;
            tamis_filter_has_many(s->filters[j], &s->asked[i], 1, &has);
            s->found += has;
        }
}

int main(void)
{
    struct scene *s = calloc(1, sizeof *s);
    tamis_directory_facts facts;
    bench_pin();
    double start = bench_now();
    build(s);
    tamis_directory_info(s->directory, &facts);
    printf("%d owners of %d keys in %.1f s: %u shapes, %.2f bits per key\n", OWNERS, KEYS,
           bench_now() - start, facts.shapes, (double)facts.bits / (double)facts.items);
    double directory = bench_median(ask_directory, s, QUESTIONS);
    double filters = bench_median(ask_filters, s, QUESTIONS / 20);
    printf("directory %.2f us per question, filters one by one %.1f us: 1/%.0f\n", directory / 1e3,
           filters / 1e3, filters / directory);
    return s->found && filters / directory >= 20 ? 0 : 1;
}
