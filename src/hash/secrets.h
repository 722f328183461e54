/*
 * Family keys in memory, and what is derived from them. Structures point to them and share those of
 * one key: a server with a million small filters of one family has one. They are in separate pages
 * that are left out of core dumps, and are wiped when the last structure releases them.
 */
#ifndef TAMIS_SECRETS_H
#define TAMIS_SECRETS_H

#include "base/lookup.h"

#define SECRET_LEN 192

struct secrets {
    _Alignas(64) uint8_t key[TAMIS_KEY_LEN];
    uint8_t xxh3[SECRET_LEN]; /* XXH3's secret */
    struct lookup_entry entry;
    struct secrets_chunk *chunk;
    uint64_t holders;
};

/* The secrets of a key (NULL: of a random one); NULL if there is no memory. Any thread may call
   it. */
struct secrets *secrets_get(const uint8_t *key);
struct secrets *secrets_share(struct secrets *secrets); /* NULL is allowed */
void secrets_release(struct secrets *secrets);          /* NULL is allowed */

/* One lock of the process for what its structures share. Forks wait until it is free, so that no child finds it
   taken. */
void process_lock(void);
void process_unlock(void);

/* Block `counter` of the stream from which everything secret is drawn: SipHash-2-4-128 under the
   family key of the purpose and the counter. Frozen: files depend on it. */
enum { PURPOSE_SECRET = 1, PURPOSE_H3 = 2, PURPOSE_CHECK = 3 };
void key_stream(const uint8_t key[TAMIS_KEY_LEN], uint64_t purpose, uint64_t counter,
                uint8_t out[16]);

#endif
