/* Small arithmetic and constants for every file of the library; no state. */
#ifndef TAMIS_BASE_H
#define TAMIS_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tamis.h"

#define BITS_MAX   (UINT64_C(1) << 40) /* largest vector */
#define K_MAX      64                  /* most probes of a vector */
#define UNIT_STEP  8                   /* planned sizes are multiples, in address units */
#define BLOCK_BITS 512                 /* a block is one cache line: 8 lanes of 64 bits */

#define HUGE_PAGE ((size_t)1 << 21)
#define GOLDEN \
    UINT64_C(0x9E3779B97F4A7C15) /* 2^64 over the golden ratio: spreads what is multiplied by it */

/* Instruction sets that functions in several files are compiled for. */
#define AVX2   __attribute__((target("avx2,bmi2")))
#define AVX512 __attribute__((target("avx512f,avx512vl,avx512dq,avx2,bmi2")))

#define LIKELY(x)     __builtin_expect(!!(x), 1)
#define UNLIKELY(x)   __builtin_expect(!!(x), 0)
#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* The instruction set that kernels may use; TAMIS_ISA=scalar|avx2|avx512 in the environment limits it. */
enum isa { ISA_SCALAR, ISA_AVX2, ISA_AVX512 };
enum isa cpu_isa(void);

/* Nanoseconds since 1970, for data that outlives processes and reboots; and nanoseconds of a clock
   that is never set and counts while the machine sleeps. */
uint64_t clock_real(void *unused);
uint64_t clock_steady(void *unused);

ALWAYS_INLINE uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

ALWAYS_INLINE int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

ALWAYS_INLINE uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* High word of the product: maps x, a fraction of 2^64, to 0..n-1. Only the leading bits of x
   decide, so the address for n/2 is half the address for n. */
ALWAYS_INLINE uint64_t mul_high(uint64_t x, uint64_t n)
{
    return (uint64_t)(((unsigned __int128)x * n) >> 64);
}

/* Both words of the product folded together: a cheap mix in which every bit counts. */
ALWAYS_INLINE uint64_t mul_fold(uint64_t x, uint64_t y)
{
    unsigned __int128 p = (unsigned __int128)x * y;
    return (uint64_t)p ^ (uint64_t)(p >> 64);
}

/* A bijective mix (the finalizer of splitmix64). */
ALWAYS_INLINE uint64_t mix64(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

/* The first i of 0..n-1 for which `before`, an expression of i, does not hold, or n; it holds for all
   before that one. */
#define SEARCH(i, n, before)                                   \
    ({                                                         \
        __typeof__((n) + 0) low_ = 0, high_ = (n);             \
        while (low_ < high_) {                                 \
            __typeof__((n) + 0) i = low_ + (high_ - low_) / 2; \
            if (before)                                        \
                low_ = i + 1;                                  \
            else                                               \
                high_ = i;                                     \
        }                                                      \
        low_;                                                  \
    })

/* What a comparison returns: by x and y, and if these are equal, `then`. */
#define ORDER(x, y, then) ((x) < (y) ? -1 : (x) > (y) ? 1 : (then))

/* Makes room for element n of an array (a pointer to its pointer), first of 16 elements, then of twice
   as many, but always of n + 1; false if there is no memory. NULL: the array is freed with free(). */
bool array_room(const tamis_allocator *a, void *array, size_t n, size_t *room, size_t size);

/* False if a * b overflows. */
ALWAYS_INLINE bool mul_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

ALWAYS_INLINE uint64_t round_up(uint64_t x, uint64_t step)
{
    return (x + step - 1) / step * step;
}

ALWAYS_INLINE double to_power(double x, unsigned n)
{
    double result = 1;
    for (; n; n >>= 1, x *= x)
        if (n & 1)
            result *= x;
    return result;
}

ALWAYS_INLINE bool is_digit(char c)
{
    return (uint8_t)(c - '0') < 10;
}

/* A hexadecimal digit, or -1. */
ALWAYS_INLINE int hex_digit(uint8_t c)
{
    if (is_digit((char)c))
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* n bytes from 2n hexadecimal digits; false if there is another character. */
static inline bool hex_bytes(uint8_t *out, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int high = hex_digit((uint8_t)text[2 * i]), low = hex_digit((uint8_t)text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out[i] = (uint8_t)(high * 16 + low);
    }
    return true;
}

/* Days since 1970-01-01 of a date in the Gregorian calendar, and the date of a day. 400 years have
   146,097 days, and a year that starts in March has its leap day last. */
static inline int64_t days_of(int64_t year, int64_t month, int64_t day)
{
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400, of_era = year - era * 400;
    int64_t of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static inline void date_of(int64_t days, int64_t *year, int64_t *month, int64_t *day)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097, of_era = days - era * 146097;
    int64_t years = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * years + years / 4 - years / 100);
    int64_t shifted = (5 * of_year + 2) / 153;
    *day = of_year - (153 * shifted + 2) / 5 + 1;
    *month = shifted < 10 ? shifted + 3 : shifted - 9;
    *year = years + era * 400 + (*month <= 2);
}

/* A family key on the stack, wiped when the variable goes out of scope. */
#define WIPED_KEY __attribute__((cleanup(key_wipe))) uint8_t

static inline void key_wipe(uint8_t (*key)[TAMIS_KEY_LEN])
{
    memset(key, 0, sizeof *key);
    __asm__ volatile("" : : "r"(key) : "memory"); /* or it would be a dead store */
}

/* Words that a writer changes while others read: plain moves on every supported machine, made
   explicit for the compiler. */
ALWAYS_INLINE uint64_t word_load(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

ALWAYS_INLINE void word_store(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELAXED);
}

#endif
