/* tamis in a page: a set that grows, one that forgets, and the union of two. */
#include <stdio.h>
#include <string.h>

#include "tamis.h"

static const char *const fruits[] = {"apple", "banana", "cherry", "date", "elderberry"};
enum { FRUITS = 5 };

/* Adds all fruits. An add that fails changes nothing. */
static tamis_error add_fruits(tamis_filter *filter)
{
    for (int i = 0; i < FRUITS; i++) {
        tamis_error e = tamis_filter_add(filter, fruits[i], strlen(fruits[i]), NULL);
        if (e != TAMIS_OK)
            return e;
    }
    return TAMIS_OK;
}

static void ask(const tamis_filter *filter, const char *key)
{
    printf("%s: %s\n", key, tamis_filter_has(filter, key, strlen(key)) ? "maybe" : "no");
}

/* The shortest way: all defaults. A filter that grows without bound, wrong for 1 key in 100. */
static tamis_error shortest(void)
{
    tamis_filter *seen;
    tamis_error e = tamis_filter_new(&seen, NULL, NULL);
    if (e != TAMIS_OK)
        return e;
    e = tamis_filter_add(seen, "apple", 5, NULL);
    if (e == TAMIS_OK && tamis_filter_has(seen, "apple", 5))
        puts("apple may be there");
    tamis_filter_free(seen);
    return e;
}

/* A deletable filter counts: what was added may be removed. */
static tamis_error forgetting(void)
{
    tamis_options options;
    memset(&options, 0, sizeof options); /* zero means the default in every field */
    options.fpp = 1e-6;                  /* one wrong "maybe" in a million, for the whole filter */
    options.deletable = true;
    tamis_filter *stock;
    tamis_removed outcome = TAMIS_ABSENT;
    tamis_reason reason;
    tamis_error e = tamis_filter_new(&stock, &options, &reason);
    if (e != TAMIS_OK) {
        fprintf(stderr, "%s\n", reason.text);
        return e;
    }
    e = add_fruits(stock);
    if (e == TAMIS_OK)
        e = tamis_filter_remove(stock, "cherry", 6, &outcome); /* members only: see the header */
    if (e == TAMIS_OK && outcome == TAMIS_REMOVED) {
        ask(stock, "banana");
        ask(stock, "cherry");
    }
    tamis_filter_free(stock);
    return e;
}

/* Filters with one key are one family: they can be merged and compared. */
static tamis_error uniting(void)
{
    uint8_t key[TAMIS_KEY_LEN];
    tamis_options options;
    tamis_filter *here, *there;
    tamis_filter_facts info;
    memset(&options, 0, sizeof options);
    tamis_error e = tamis_filter_new(&here, &options, NULL);
    if (e != TAMIS_OK)
        return e;
    tamis_filter_key(here, key); /* random, until it is given to another */
    options.key = key;
    e = tamis_filter_new(&there, &options, NULL);
    if (e != TAMIS_OK) {
        tamis_filter_free(here);
        return e;
    }
    e = add_fruits(there);
    if (e == TAMIS_OK)
        e = tamis_filter_add(here, "fig", 3, NULL);
    if (e == TAMIS_OK)
        e = tamis_filter_merge(here, there, 0, NULL);
    if (e == TAMIS_OK) {
        ask(here, "fig");
        ask(here, "date");
        tamis_filter_info(here, &info);
        printf("about %.0f keys, %s, stated rate %g\n", info.distinct,
               info.fpp_now <= info.fpp ? "within the rate" : "over the rate", info.fpp);
    }
    tamis_filter_free(there);
    tamis_filter_free(here);
    return e;
}

int main(void)
{
    tamis_error e = shortest();
    if (e == TAMIS_OK)
        e = forgetting();
    if (e == TAMIS_OK)
        e = uniting();
    if (e != TAMIS_OK)
        fprintf(stderr, "%s\n", tamis_error_text(e));
    return e == TAMIS_OK ? 0 : 1;
}
