/*
 * Bytes: little-endian numbers, cursors that cannot leave their bytes, checksums.
 *
 * All numbers are little-endian. Vectors are written exactly as they are in memory, so a big-endian
 * machine would have to swap every word; it is rejected at compile time.
 */
#ifndef TAMIS_BYTES_H
#define TAMIS_BYTES_H

#include "base.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "tamis writes vectors as they are in memory and needs a little-endian machine"
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

/* For a mapped file that others may change: the asm keeps the compiler from reading the value
   again after it was compared. */
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
/* Number of bits set. `data` need not be aligned. */
uint64_t bytes_ones(const void *data, size_t len);

/*
 * A cursor runs over a fixed layout in either direction: the same list of fields writes and reads,
 * so the two cannot drift apart. On an access past the end, a NaN or infinite number, or a reserved
 * field that is not zero, the cursor remembers the first such position and reads zeros from then
 * on. Callers check `wrong` once, at the end.
 */
struct cursor {
    uint8_t *to;         /* writing */
    const uint8_t *from; /* reading */
    size_t at, len;
    const char *wrong; /* what is wrong, or NULL */
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

/* The character of UTF-8 that starts here, in *c; returns its length, 0 if there is none in `len` bytes. */
size_t utf8_decode(const uint8_t *s, size_t len, uint32_t *c);

/* XXH3 with 64 and 128 bits, seed 0. The 128-bit hash is 16 bytes: low word, high word. */
uint64_t hash_of(const void *data, size_t len);

/* Must not be moved while in use: the state inside is aligned to 64 bytes. */
struct hash_stream {
    uint8_t room[640];
};

void hash_begin(struct hash_stream *h);
void hash_add(struct hash_stream *h, const void *data, size_t len);
uint64_t hash_end(const struct hash_stream *h);
void hash_end_128(const struct hash_stream *h, uint8_t out[16]);

#endif
