/*
 * The kernels: what differs between layouts and instruction sets, as one const table of functions a
 * kind, chosen when a vector is made. Nothing outside these files names a kind.
 *
 * Spread: probe j of a digest is bit mul_high(x_j, units), x_j from the family's probe function.
 *
 * Blocked: a unit is a block of 512 bits, 8 lanes of 64. Word a of the digest picks the block. Word
 * b picks the bits: field l (6 bits from bit 6 l) is the bit in lane l, the top 3 bits a rotation s.
 * A vector with k probes takes rounds of 8, one bit in each lane; the last round, of r probes, takes
 * the r lanes that start at lane s. Round t uses w_t: w_0 = b, w_(t+1) = mul_fold(w_t, BLOCK_MIX).
 * So a lookup is one cache line, and with 512-bit registers one rotate, one load and one test. An
 * unrestricted choice of k of the 512 bits would save under 1 % of space and needs a gather.
 */
#ifndef TAMIS_KERNEL_H
#define TAMIS_KERNEL_H

#include "base/base.h"
#include "hash/digest.h"

#define BLOCK_MIX UINT64_C(0xD6E8FEB86659FD93)
#define BATCH     64 /* digests in flight: their lines fit the first-level cache with room left */
#define AHEAD     64 /* keys that a stream fetches ahead: more than the misses a core can have open */

/* Brings a line near. Into the second level: the first can wait for some 24 lines at a time, the
   second for twice as many and more, and random lines of 124 MB come in 4.0 ns each instead of 7.5. */
ALWAYS_INLINE void fetch(const void *at)
{
    __builtin_prefetch(at, 0, 2);
}

struct kernel;

/* The bits of one vector as the kernels see them. Structs that own such bits begin with them, and a
   stack, for a kernel, is an array of pointers to such structs: see bits_at(). */
struct bits {
    uint64_t *words;
    uint64_t units;
    uint32_t k;
    const struct family *family;
    const struct kernel *kernel;
};

/*
 * A filter of one vector and the ways to ask it for one key and to add one: all that a lookup needs, in
 * one cache line. The processor overlaps the misses of calls that follow one another as far as they fit its
 * window (on Zen 4 some 320 instructions and 88 loads), so here each instruction counts: with 93 a
 * call three or four misses are open at a time, with 55 six.
 */
struct quick;
typedef bool (*quick_fn)(const struct quick *quick, const void *key, size_t len);

struct quick {
    quick_fn has;
    uint64_t *words;
    uint64_t units;
    uint64_t flip;  /* digest_flip() of the family */
    uint64_t least; /* 8 less the probes of the last round, at the place of the rotation in b */
    uint64_t mix;   /* EIGHT_B */
    uint64_t one;   /* 1: constants in memory take no instruction to make */
    const struct bits *bits;
    quick_fn add; /* sets the key's bits: whether one was not set before */
};

/* Fills all but `has`, and returns what that should be. */
quick_fn quick_set(struct quick *quick, const struct bits *bits);

struct kernel {
    const char *name;
    tamis_layout layout;
    uint32_t unit_bits;
    bool local; /* all bits of a key lie in one unit, mul_high(digest.a, units) */
    bool (*has_one)(const struct bits *bits, tamis_digest digest);
    /* Several vectors of this kernel: one of them has all bits. */
    bool (*has_any)(const void *stack, size_t vectors, tamis_digest digest);
    quick_fn has_key[2], add_key[2]; /* under xxh3, for k up to 8 and up to 16; or NULL */
    /* Brings what a lookup touches first; at most BATCH digests. */
    void (*prefetch)(const struct bits *bits, const tamis_digest *digests, size_t n);
    /* found[i] |= all bits of digest i are set; at most BATCH digests. */
    void (*has)(const struct bits *bits, const tamis_digest *digests, size_t n, uint8_t *found);
    /* Several vectors of this kernel, any number of digests: found[i] = one of them has all bits. */
    void (*has_stack)(const void *stack, size_t vectors, const tamis_digest *digests, size_t n,
                      uint8_t *found);
    /* One vector, any number of digests, lines fetched some keys ahead: found[i] = ... */
    void (*has_stream)(const struct bits *bits, const tamis_digest *digests, size_t n,
                       uint8_t *found);
    /* Sets the bits, likewise; fresh[i] = whether one was not set before. */
    void (*add)(const struct bits *bits, const tamis_digest *digests, size_t n, uint8_t *fresh);
    /* One digest: whether a bit was not set before. */
    bool (*add_one)(const struct bits *bits, tamis_digest digest);
    /* The same as add beside other threads that add. */
    void (*add_shared)(const struct bits *bits, const tamis_digest *digests, size_t n,
                       uint8_t *fresh);
    /* Sets the bits of any number of digests in a vector that is in cache and nobody else sees. */
    void (*fill)(const struct bits *bits, const tamis_digest *digests, size_t n);
    /* The k bit positions, with repeats. */
    void (*positions)(const struct bits *bits, tamis_digest digest, uint64_t *positions);
    /* The chance that a random key not in the vector finds all its bits, from the bits as they are
       (of up to `sample` places, evenly taken). */
    double (*rate)(const struct bits *bits, uint64_t sample);
};

/* The best row for this machine; TAMIS_ISA=scalar|avx2|avx512 in the environment limits it. */
const struct kernel *kernel_choose(tamis_layout layout, const struct family *family);
/* Bits of a unit, where there is no kernel yet. */
ALWAYS_INLINE uint64_t layout_unit_bits(tamis_layout layout)
{
    return layout == TAMIS_BLOCKED ? BLOCK_BITS : 1;
}

/* has_any by way of prefetch and has_one; has_stack by way of prefetch and has: the lines of the next
   keys are on their way in one vector while these are looked at, vector by vector. */
bool any_in_turn(const void *stack, size_t vectors, tamis_digest digest);
void stack_by_groups(const void *stack, size_t vectors, const tamis_digest *digests, size_t n,
                     uint8_t *found);
#define STACK_SMALL (UINT64_C(1) << 17) /* bytes of a vector that stays in cache unasked */

ALWAYS_INLINE const struct bits *bits_at(const void *stack, size_t i)
{
    const struct bits *bits;
    memcpy(&bits, (const char *)stack + i * sizeof bits, sizeof bits);
    return bits;
}

ALWAYS_INLINE bool bits_small(const struct bits *bits)
{
    return bits->units * bits->kernel->unit_bits / 8 <= STACK_SMALL;
}

/* The rows, by file. */
extern const struct kernel kernel_spread, kernel_spread_probe, kernel_blocked;
#if defined(__x86_64__) && !defined(TAMIS_SCALAR_ONLY)
#define TAMIS_X86 1
extern const struct kernel kernel_avx2, kernel_avx512;
#endif
/* NULL where the compiler or the build has none. */
const struct kernel *kernel_x86_blocked(bool avx512);

/* and of rows: acc[i] &= word i of each of the k rows, i below n; returns whether any bit is left.
   Rows are `stride` words apart. */
typedef bool (*rows_fn)(const uint64_t *words, uint64_t stride, uint64_t n, const uint64_t *rows,
                        unsigned k, uint64_t *acc);
rows_fn kernel_rows(void);
bool rows_scalar(const uint64_t *words, uint64_t stride, uint64_t n, const uint64_t *rows,
                 unsigned k, uint64_t *acc);
bool rows_avx2(const uint64_t *words, uint64_t stride, uint64_t n, const uint64_t *rows, unsigned k,
               uint64_t *acc);
bool rows_avx512(const uint64_t *words, uint64_t stride, uint64_t n, const uint64_t *rows,
                 unsigned k, uint64_t *acc);
rows_fn rows_x86(bool avx512); /* likewise */

/* Any key, any hash, any k. */
bool quick_add_other(const struct quick *quick, const void *key, size_t len);
bool quick_other(const struct quick *quick, const void *key, size_t len);

/* What all blocked rows share. */
void blocked_prefetch(const struct bits *bits, const tamis_digest *digests, size_t n);
void blocked_add_shared(const struct bits *bits, const tamis_digest *digests, size_t n,
                        uint8_t *fresh);
void blocked_fill(const struct bits *bits, const tamis_digest *digests, size_t n);
void blocked_positions(const struct bits *bits, tamis_digest digest, uint64_t *positions);
double blocked_rate(const struct bits *bits, uint64_t sample);

#endif
