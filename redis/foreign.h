/* Filters of RedisBloom (foreign.c), with the tamis set for what is added to them (on_top.c); and cuckoo
   filters (foreign_cuckoo.c). */
#ifndef TAMIS_REDIS_FOREIGN_H
#define TAMIS_REDIS_FOREIGN_H

#include "module.h"

struct foreign_part {
    uint64_t bits, capacity, items;
    uint64_t buckets; /* of a cuckoo filter, which uses no other field except the capacity */
    double rate, bits_each;
    uint32_t hashes, log2; /* log2 of the bits, if that is an integer and was stated; otherwise 0 */
    size_t bytes;
    unsigned char *data;
};

struct foreign {
    uint64_t items, options;
    uint64_t missing;            /* bytes that chunks have not delivered yet */
    double rate_now;             /* see foreign_rate_now(); negative: not computed yet */
    uint64_t removals;           /* of a cuckoo filter, like the next two */
    uint32_t bucket, iterations; /* slots per bucket, 0 in a Bloom filter; fingerprints moved */
    uint32_t growth, n;
    struct foreign_part part[];
};

bool foreign_has(const struct foreign *f, const void *key, size_t len);
bool foreign_scales(const struct foreign *f);
double foreign_rate(const struct foreign *f); /* as stated when it was created */
/* Estimated from its bits, of a large one from a part of them. */
double foreign_rate_now(struct foreign *f);
uint64_t foreign_capacity(const struct foreign *f);

size_t foreign_bytes(const struct foreign *f);
void foreign_free(struct foreign *f);
struct foreign *foreign_copy(const struct foreign *f); /* NULL if there is no memory */
void foreign_move(struct foreign **f, void *(*move)(void *context, void *memory), void *context);

/* Loads a filter from a file, with parts of up to `most` bytes together; NULL and why. `top`: a tamis set follows. */
struct foreign *foreign_load(RedisModuleIO *io, int encoding, uint64_t most, bool *top,
                             const char **why);
void foreign_save(RedisModuleIO *io, const struct foreign *f, bool top);

/* Loads a filter from chunks: foreign_head tests for the first chunk of a Bloom filter (BF), a cuckoo
   filter (CF) or either (OURS); then a filter of up to that many bytes is created with all bytes missing,
   or NULL and why; then chunks are added in order. */
bool foreign_head(const void *data, size_t len, enum command_dialect dialect);
struct foreign *foreign_begin(const void *data, size_t len, uint64_t most, const char **why);
bool foreign_add_chunk(struct foreign *f, uint64_t cursor, const void *chunk, size_t len);
/* The first chunk, and the chunk at a cursor, which starts at 1; 0: there is no chunk. */
bool foreign_head_bytes(const struct foreign *f, struct buffer *out);
size_t foreign_chunk(const struct foreign *f, uint64_t cursor, const void **chunk, size_t most);

/* Shared by the two files: an empty filter of 1 to `most` parts (NULL: not possible, or no memory), and
   functions for loading and hashing. */
struct foreign *foreign_new(uint64_t n, uint64_t most);
bool foreign_load_missing(RedisModuleIO *io, struct foreign *f, const char **why);
uint64_t foreign_hash(const void *key, size_t len, uint64_t seed); /* MurmurHash64A */

/* ---- foreign_cuckoo.c ---- */
bool cuckoo_has(const struct foreign *f, const void *key, size_t len);
uint64_t cuckoo_count(const struct foreign *f, const void *key, size_t len);
/* May add a part, if the filter then has at most this many bytes; unless that is UINT64_MAX, as what a master accepted
   must fit, it has at most 1024 parts, since copies of one item fill a part. */
tamis_error cuckoo_add(struct foreign **f, const void *key, size_t len, uint64_t most);
bool cuckoo_remove(struct foreign *f, const void *key, size_t len); /* false: not there */
double cuckoo_rate_of_parts(const struct foreign *f);
struct foreign *cuckoo_load(RedisModuleIO *io, int encoding, uint64_t most, const char **why);
void cuckoo_save(RedisModuleIO *io, const struct foreign *f);
bool cuckoo_head(size_t len);
struct foreign *cuckoo_begin(const void *data, const char **why); /* its parts have no memory yet */
bool cuckoo_head_bytes(const struct foreign *f, struct buffer *out);

/* ---- on_top.c ---- */
/* Creates the set on top, here and on replicas; false if it has replied. */
bool top_make(RedisModuleCtx *ctx, struct value *v, RedisModuleString *name);
/* Can such a set be on top? It must neither remove items nor forget them, and its adds are replicated without a time. */
bool top_stays(bool deletable, tamis_growth growth);
uint64_t top_items(const struct value *v);
/* Does it refuse more items? What a master accepted is not refused: RedisBloom omits items that are false
   positives of its own bits, so it may count fewer than the set on top. */
bool foreign_full(RedisModuleCtx *ctx, const struct value *v);
/* LOADCHUNK and SCANDUMP. False: the bytes are not RedisBloom's, and it has not replied. */
bool foreign_loads_chunk(RedisModuleCtx *ctx, RedisModuleString **argv, long long cursor,
                         enum command_dialect dialect);
void foreign_dumps_chunk(RedisModuleCtx *ctx, const struct value *v, long long cursor);
/* Writes it as commands of an append-only file. */
void foreign_emit(RedisModuleIO *io, RedisModuleString *key, const struct value *v);

#endif
