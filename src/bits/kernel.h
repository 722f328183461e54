/*
 * The kernels: everything that differs between layouts and instruction sets, as one const table of
 * functions per kind, chosen when a vector is created. Nothing outside these files names a kind.
 *
 * Spread: probe j of a digest is bit mul_high(x_j, units), with x_j from the family's probe
 * function.
 *
 * Blocked: a unit is a block of 512 bits, 8 lanes of 64. Word a of the digest selects the block.
 * Word b selects the bits: field l (6 bits from bit 6 l) is the bit in lane l, the top 3 bits a
 * rotation s. A vector with k probes has rounds of 8, one bit in each lane; the last round, of r
 * probes, uses the r lanes that start at lane s. Round t uses w_t: w_0 = b, w_(t+1) = mul_fold(w_t,
 * BLOCK_MIX). So a lookup is one cache line, and with 512-bit registers one rotate, one load and
 * one test. An unrestricted choice of k of the 512 bits would save less than 1 % of space and needs
 * a gather.
 */
#ifndef TAMIS_KERNEL_H
#define TAMIS_KERNEL_H

#include "base/base.h"
#include "hash/digest.h"

#define BLOCK_MIX UINT64_C(0xD6E8FEB86659FD93)
#define BATCH     64 /* digests in flight: their lines fit into the L1 cache with room left */
#define AHEAD     64 /* keys that a stream prefetches: more than the misses a core can have open */

/* Prefetches a line into the L2 cache. L1 can wait for about 24 lines at a time, L2 for more
   than twice as many: random lines of 124 MB take 4.0 ns each instead of 7.5. */
ALWAYS_INLINE void fetch(const void *at)
{
    __builtin_prefetch(at, 0, 2);
}

struct kernel;

/* The bits of one vector as seen by the kernels. Structs that own such bits begin with them, and
   a stack, for a kernel, is an array of pointers to such structs: see bits_at(). */
struct bits {
    uint64_t *words;
    uint64_t units;
    uint32_t k;
    const struct family *family;
    const struct kernel *kernel;
};

/*
 * A filter of one vector and the functions to query and add one key: everything that a lookup
 * needs, in one cache line. The processor overlaps the misses of successive calls as far as they
 * fit into its window (on Zen 4 about 320 instructions and 88 loads), so each instruction counts:
 * with 93 per call three or four misses are open at a time, with 55 six.
 */
struct set;
typedef bool (*quick_fn)(const struct set *set, const void *key, size_t len);

struct quick {
    quick_fn has;
    union {
        uint64_t units;
        quick_fn other; /* smooth filters: for keys of other lengths than 8 */
        const struct bits
            *of; /* vectors under other hashes than xxh3, or without functions for it */
    };
    uint64_t flip; /* digest_flip() of the family */
    /* The rest is for vectors under xxh3. */
    uint64_t *words;
    uint64_t least; /* 8 minus the probes of the last round, at the position of the rotation in b */
    uint64_t mix;   /* EIGHT_B */
    uint64_t one;   /* 1: a constant in memory takes no instruction to build */
    const struct bits *bits;
    quick_fn add; /* sets the bits of the key; true if one of them was not set before */
};

/* Where it is in a set, directly behind the lines. That is all that is known of sets here: passing their address and not
   that of `quick` saves each lookup an instruction. */
#define QUICK_AT 104
ALWAYS_INLINE const struct quick *quick_in(const struct set *set)
{
    return (const struct quick *)(const void *)((const char *)set + QUICK_AT);
}

/* Fills everything except `has`, and returns the function for it. Brief: fills `of` alone, and keys are added with
   quick_add_of. */
quick_fn quick_set(struct quick *quick, const struct bits *bits, bool brief);
bool quick_add_of(const struct set *set, const void *key, size_t len);

struct kernel {
    const char *name;
    tamis_layout layout;
    uint32_t unit_bits;
    bool local; /* all bits of a key are in one unit, mul_high(digest.a, units) */
    bool (*has_one)(const struct bits *bits, tamis_digest digest);
    /* For several vectors of this kernel: does one of them have all bits? */
    bool (*has_any)(const void *stack, size_t vectors, tamis_digest digest);
    quick_fn has_key[2], add_key[2]; /* under xxh3, for k up to 8 and up to 16; or NULL */
    /* Prefetches what a lookup touches first; at most BATCH digests. */
    void (*prefetch)(const struct bits *bits, const tamis_digest *digests, size_t n);
    /* found[i] |= all bits of digest i are set; at most BATCH digests. */
    void (*has)(const struct bits *bits, const tamis_digest *digests, size_t n, uint8_t *found);
    /* For several vectors of this kernel and any number of digests: found[i] = one of them has
       all bits. */
    void (*has_stack)(const void *stack, size_t vectors, const tamis_digest *digests, size_t n,
                      uint8_t *found);
    /* For one vector and any number of digests, with lines prefetched several keys ahead:
       found[i] = ... */
    void (*has_stream)(const struct bits *bits, const tamis_digest *digests, size_t n,
                       uint8_t *found);
    /* Sets the bits in the same way; fresh[i] = one of them was not set before. */
    void (*add)(const struct bits *bits, const tamis_digest *digests, size_t n, uint8_t *fresh);
    /* One digest; true if one of its bits was not set before. */
    bool (*add_one)(const struct bits *bits, tamis_digest digest);
    /* Like add, while other threads add too. */
    void (*add_shared)(const struct bits *bits, const tamis_digest *digests, size_t n,
                       uint8_t *fresh);
    /* Sets the bits of any number of digests in a vector that is in cache and private to the
       caller. */
    void (*fill)(const struct bits *bits, const tamis_digest *digests, size_t n);
    /* The k bit positions, including repeated ones. */
    void (*positions)(const struct bits *bits, tamis_digest digest, uint64_t *positions);
    /* The probability that a random key not in the vector finds all its bits set, computed from
       the actual bits (of up to `sample` evenly spaced words or blocks). */
    double (*rate)(const struct bits *bits, uint64_t sample);
};

/* Fills column i of the `columns` that share the n digests of a set. */
ALWAYS_INLINE void column_fill(const struct bits *column, const tamis_digest *digests, uint64_t n,
                               uint32_t i, uint32_t columns)
{
    uint64_t from = n * i / columns, to = n * (i + 1) / columns;
    column->kernel->fill(column, digests + from, (size_t)(to - from));
}

/* The best row for this machine; TAMIS_ISA=scalar|avx2|avx512 in the environment limits it. */
const struct kernel *kernel_choose(tamis_layout layout, const struct family *family);
/* Bits per unit, for callers without a kernel. */
ALWAYS_INLINE uint64_t layout_unit_bits(tamis_layout layout)
{
    return layout == TAMIS_BLOCKED ? BLOCK_BITS : 1;
}

/* has_any by means of prefetch and has_one; has_stack by means of prefetch and has: vector by
   vector, the lines of the next keys are prefetched while the present ones are tested. */
bool any_in_turn(const void *stack, size_t vectors, tamis_digest digest);
void stack_by_groups(const void *stack, size_t vectors, const tamis_digest *digests, size_t n,
                     uint8_t *found);
/* bytes of a vector that stays in cache without prefetching */
#define STACK_SMALL (UINT64_C(1) << 17)

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

/* The rows, by file; those of x86 if the compiler and the build have them. */
extern const struct kernel kernel_spread, kernel_spread_probe, kernel_blocked;
#if defined(__x86_64__) && !defined(TAMIS_SCALAR_ONLY)
#define TAMIS_X86 1
extern const struct kernel kernel_avx2, kernel_avx512;
#endif

/* ANDs rows: left[i] = the AND of word i of the k rows (at least one), for i below n; returns whether any
   bit is left. Rows are `stride` words apart. */
typedef bool (*rows_fn)(const uint64_t *words, uint64_t stride, uint64_t n, const uint64_t *rows,
                        unsigned k, uint64_t *left);
rows_fn kernel_rows(void);
bool rows_scalar(const uint64_t *words, uint64_t stride, uint64_t n, const uint64_t *rows,
                 unsigned k, uint64_t *left);
bool rows_avx2(const uint64_t *words, uint64_t stride, uint64_t n, const uint64_t *rows, unsigned k,
               uint64_t *left);
bool rows_avx512(const uint64_t *words, uint64_t stride, uint64_t n, const uint64_t *rows,
                 unsigned k, uint64_t *left);

/* For any key, hash and k. */
bool quick_add_other(const struct set *set, const void *key, size_t len);
bool quick_other(const struct set *set, const void *key, size_t len);

/* The `fill` of any probe function: sets bits by position. */
void fill_positions(const struct bits *bits, const tamis_digest *digests, size_t n);

/* Shared by all blocked rows. */
void blocked_prefetch(const struct bits *bits, const tamis_digest *digests, size_t n);
void blocked_add_shared(const struct bits *bits, const tamis_digest *digests, size_t n,
                        uint8_t *fresh);
void blocked_positions(const struct bits *bits, tamis_digest digest, uint64_t *positions);
double blocked_rate(const struct bits *bits, uint64_t sample);

#endif
