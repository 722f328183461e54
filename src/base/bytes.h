/*
 * Bytes: little-endian numbers, cursors that cannot leave their bytes, checksums.
 *
 * Everything is little-endian on every machine. Vectors are written as the memory they are, so a
 * big-endian machine would have to turn every word: it is refused when compiling.
 */
#ifndef TAMIS_BYTES_H
#define TAMIS_BYTES_H

#include "base.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "tamis writes vectors as they lie in memory and needs a little-endian machine"
#endif

ALWAYS_INLINE uint32_t get_u32(const void *from)
{
    uint32_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

ALWAYS_INLINE uint64_t get_u64(const void *from)
{
    uint64_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

/* The same from a mapped file, which others may be changing: the asm keeps the compiler from reading
   it again after it was compared. */
ALWAYS_INLINE uint32_t fetch_u32(const void *from)
{
    uint32_t value = get_u32(from);
    __asm__ volatile("" : "+r"(value));
    return value;
}

ALWAYS_INLINE uint64_t fetch_u64(const void *from)
{
    uint64_t value = get_u64(from);
    __asm__ volatile("" : "+r"(value));
    return value;
}

ALWAYS_INLINE void put_u32(void *to, uint32_t value)
{
    memcpy(to, &value, sizeof value);
}

ALWAYS_INLINE void put_u64(void *to, uint64_t value)
{
    memcpy(to, &value, sizeof value);
}

bool bytes_are_zero(const void *data, size_t len);
/* How many bits are set. `data` need not be aligned. */
uint64_t bytes_ones(const void *data, size_t len);

/*
 * A cursor goes over a fixed layout in one direction or the other: the same list of fields writes
 * and reads, so they cannot drift apart. Going past the end, a number that is NaN or infinite, a
 * reserved field that is not zero: the cursor remembers the first such place and reads zeros from
 * then on. Callers look at `wrong` once, at the end.
 */
struct cursor {
    uint8_t *to;         /* writing */
    const uint8_t *from; /* reading */
    size_t at, len;
    const char *wrong; /* what, or NULL */
    size_t wrong_at;
};

struct cursor cursor_write(void *to, size_t len);
struct cursor cursor_read(const void *from, size_t len);
void cursor_refuse(struct cursor *c, size_t at, const char *what);
void field_u32(struct cursor *c, uint32_t *value);
void field_u64(struct cursor *c, uint64_t *value);
void field_f64(struct cursor *c, double *value, const char *name);
void field_bytes(struct cursor *c, void *bytes, size_t len);
void field_zero(struct cursor *c, size_t len); /* reserved */

/* XXH3 of 64 and 128 bits, seed 0. The 128-bit value as 16 bytes: low word, high word. */
uint64_t hash_of(const void *data, size_t len);

/* Must stay where it is while it is used: the state takes the line of 64 bytes that it needs. */
struct hash_stream {
    uint8_t room[640];
};

void hash_begin(struct hash_stream *h);
void hash_add(struct hash_stream *h, const void *data, size_t len);
uint64_t hash_end(const struct hash_stream *h);
void hash_begin_128(struct hash_stream *h);
void hash_add_128(struct hash_stream *h, const void *data, size_t len);
void hash_end_128(const struct hash_stream *h, uint8_t out[16]);

#endif
