/* Keys that are numbers, one at a time and in ranges, and what a filter says of itself. */
#ifndef TAMIS_TESTS_KEYS_H
#define TAMIS_TESTS_KEYS_H

#include "harness.h"
#include "tamis.h"

#ifndef KEY_TYPE
#define KEY_TYPE uint64_t /* whose bytes are the key */
#endif

static inline tamis_error add(tamis_filter *f, KEY_TYPE key)
{
    return tamis_filter_add(f, &key, sizeof key, NULL);
}

static inline bool put(tamis_filter *f, KEY_TYPE key)
{
    return CHECK(add(f, key) == TAMIS_OK);
}

static inline bool has(const tamis_filter *f, KEY_TYPE key)
{
    return tamis_filter_has(f, &key, sizeof key);
}

static inline tamis_removed take(tamis_filter *f, KEY_TYPE key)
{
    tamis_removed outcome = TAMIS_ABSENT;
    CHECK(tamis_filter_remove(f, &key, sizeof key, &outcome) == TAMIS_OK);
    return outcome;
}

/* Those of a range end before `to`. */
static inline void add_all(tamis_filter *f, KEY_TYPE from, KEY_TYPE to)
{
    for (KEY_TYPE key = from; key < to; key++)
        put(f, key);
}

static inline void take_all(tamis_filter *f, KEY_TYPE from, KEY_TYPE to)
{
    for (KEY_TYPE key = from; key < to; key++)
        take(f, key);
}

static inline bool has_all(const tamis_filter *f, KEY_TYPE from, KEY_TYPE to)
{
    while (from < to && has(f, from))
        from++;
    return from >= to;
}

static inline tamis_filter_facts info_of(const tamis_filter *f)
{
    tamis_filter_facts info;
    tamis_filter_info(f, &info);
    return info;
}

#endif
