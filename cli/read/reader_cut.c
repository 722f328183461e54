/* Where records end, and counting lines. See reader_cut.h. */
#define _GNU_SOURCE
#include "reader_cut.h"

#include "reader_scan.h"

#if SCAN_HAS_VECTOR
#include <immintrin.h>
#endif

/* Finds the record ends in [cut->at, to), outside quotes; returns whether one is at or after `target`. */
static bool pass_lines(struct cut *cut, const uint8_t *data, size_t to, size_t target)
{
    size_t from = cut->at;
    if (to >= target && to > from) {
        size_t start = target > from + 1 ? target - 1 : from;
        const uint8_t *line = memchr(data + start, '\n', to - start);
        if (line) {
            cut->at = cut->record = cut->last = (size_t)(line - data) + 1;
            return true;
        }
    }
    const uint8_t *line = to > from ? memrchr(data + from, '\n', to - from) : NULL;
    if (line)
        cut->record = cut->last = (size_t)(line - data) + 1;
    cut->at = to;
    return false;
}

/* Does a line end inside the quotes, before `to`? */
static bool has_line(struct cut *cut, const uint8_t *data, size_t to)
{
    size_t from = cut->lined > cut->quote ? cut->lined : cut->quote;
    const uint8_t *line = to > from ? memchr(data + from, '\n', to - from) : NULL;
    cut->lined = line ? (size_t)(line - data) : to;
    return line != NULL;
}

enum quoting { QUOTE_CLOSED, QUOTE_OPEN, QUOTE_STRAY };

/* Inside quotes: moves past the closing one, or to the end of the text. */
static enum quoting quotes_end(struct cut *cut, const uint8_t *data, size_t len, bool final)
{
    const struct dialect *d = cut->dialect;
    while (cut->at < len) {
        const uint8_t *quote = memchr(data + cut->at, '"', len - cut->at);
        size_t at = quote ? (size_t)(quote - data) : len;
        cut->at = at;
        if (at - cut->record >= d->record_max)
            return QUOTE_STRAY;
        if (quote && at + 1 == len && !final)
            return QUOTE_OPEN;
        if (quote && at + 1 < len && data[at + 1] == '"') {
            cut->at = at + 2;
            continue;
        }
        bool ends = !quote || at + 1 == len || quote_ends(data[at + 1], d->delimiter);
        bool near = !d->in_lines && at - cut->quote - 1 <= d->quoted_max;
        if (!(ends && near) && has_line(cut, data, at))
            return QUOTE_STRAY;
        if (quote) {
            cut->folded |= !ends || has_line(cut, data, at);
            cut->at = at + 1;
            cut->quoted = false;
            return QUOTE_CLOSED;
        }
    }
    return QUOTE_OPEN;
}

/* Line ends that are passed before the closing quote is known count too: what follows starts behind them. */
static enum quoting pass_quotes(struct cut *cut, const uint8_t *data, size_t len, bool final)
{
    enum quoting quoting = quotes_end(cut, data, len, final);
    if (quoting == QUOTE_OPEN)
        cut->folded |= has_line(cut, data, cut->at);
    return quoting;
}

/* The quote is not closed: its record ends with the line where it opens. False: that is not
   known yet, or more text may close it. */
static bool give_up_quote(struct cut *cut, const uint8_t *data, size_t len, enum quoting quoting,
                          bool final)
{
    const uint8_t *line = NULL;
    if (final || quoting == QUOTE_STRAY)
        line = memchr(data + cut->quote, '\n', len - cut->quote);
    if (!line && !final)
        return false;
    cut->open |= quoting == QUOTE_OPEN;
    cut->folded = true;
    cut->quoted = false;
    cut->lined = 0;
    cut->at = line ? (size_t)(line - data) : len;
    return true;
}

#if SCAN_HAS_VECTOR

/* Where certain bytes are among 64. */
struct block_masks {
    uint64_t quotes, lines, delimiters, returns;
};

static uint64_t mask_of(const uint8_t *p, uint8_t byte)
{
    uint64_t mask = 0;
    for (int i = 0; i < 4; i++)
        mask |= (uint64_t)scan_mask(p + 16 * i, byte, byte, byte) << (16 * i);
    return mask;
}

static void masks_sse2(struct block_masks *m, const uint8_t *p, uint8_t delimiter)
{
    *m = (struct block_masks){mask_of(p, '"'), mask_of(p, '\n'), mask_of(p, delimiter),
                              mask_of(p, '\r')};
}

AVX2 ALWAYS_INLINE uint64_t mask_wide(__m256i a, __m256i b, uint8_t byte)
{
    __m256i all = _mm256_set1_epi8((char)byte);
    uint32_t low = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(a, all));
    return low | (uint64_t)(uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(b, all)) << 32;
}

/* Reduces the instructions for cutting a table with quotes to 0.8 times, which is most of a search in one. */
AVX2 static void masks_avx2(struct block_masks *m, const uint8_t *p, uint8_t delimiter)
{
    __m256i a = _mm256_loadu_si256((const __m256i *)p);
    __m256i b = _mm256_loadu_si256((const __m256i *)(p + 32));
    *m = (struct block_masks){mask_wide(a, b, '"'), mask_wide(a, b, '\n'),
                              mask_wide(a, b, delimiter), mask_wide(a, b, '\r')};
}

/* Bit i: the parity of the bits up to i. */
ALWAYS_INLINE uint64_t parity_of(uint64_t x)
{
    for (int i = 1; i < 64; i *= 2)
        x ^= x << i;
    return x;
}

/* `lines` are the record ends in the 64 bytes at cut->at; returns whether one is at or after `target`. */
ALWAYS_INLINE bool pass_ends(struct cut *cut, uint64_t lines, size_t target)
{
    size_t at = cut->at, before = target > at ? target - at - 1 : 0;
    uint64_t ends = before < 64 ? lines & ~UINT64_C(0) << before : 0;
    cut->at = at + 64;
    if (ends)
        cut->at = cut->record = cut->last = at + (size_t)__builtin_ctzll(ends) + 1;
    else if (lines)
        cut->record = cut->last = at + 64 - (size_t)__builtin_clzll(lines);
    return ends != 0;
}

/*
 * 64 bytes at once, as long as they are regular: then a byte is inside quotes if the number of
 * quotes up to it is odd. They are regular if every opening quote follows a delimiter, a line end,
 * or the quote that closed just before it (a doubled one), and every closing one precedes the end
 * of a field. False: they are not regular, fewer than 64, or near a limit; nothing is done. *found:
 * at a record end, as cut_search() needs it.
 */
static bool pass_block(struct cut *cut, const uint8_t *data, size_t len, size_t target, bool *found)
{
    struct block_masks m;
    const uint8_t *p = data + cut->at, delimiter = cut->dialect->delimiter;
    if (len - cut->at < 64 || p[63] == '"' ||
        cut->at + 64 - cut->record >= cut->dialect->record_max ||
        (cut->quoted ? cut->at + 64 - cut->quote : 64) > cut->dialect->quoted_max)
        return false;
    if (cpu_isa() >= ISA_AVX2)
        masks_avx2(&m, p, delimiter);
    else
        masks_sse2(&m, p, delimiter);
    uint64_t quotes = m.quotes, lines = m.lines, inside = 0;
    if (quotes || cut->quoted) {
        bool start = cut->at == cut->record || p[-1] == delimiter;
        uint64_t ends = lines | m.delimiters, field = ends << 1 | start;
        inside = parity_of(quotes) ^ (cut->quoted ? ~UINT64_C(0) : 0);
        uint64_t opening = quotes & inside, closing = quotes & ~inside;
        uint64_t goes_on = closing & ~((ends | quotes) >> 1);
        if (opening & ~(field | closing << 1) || goes_on & ~(m.returns >> 1))
            return false;
        if (cut->dialect->in_lines && lines & inside)
            return false;
        if (opening & field)
            cut->quote = cut->at + 63 - (size_t)__builtin_clzll(opening & field);
        cut->quoted = inside >> 63;
    }
    uint64_t folded = lines & inside;
    size_t from = cut->at;
    *found = pass_ends(cut, lines & ~inside, target);
    if (*found) {
        cut->quoted = false;
        folded &= ~UINT64_C(0) >> (64 - (cut->at - from)); /* what follows is not part of it */
    }
    cut->folded |= folded != 0;
    return true;
}

#else

static bool pass_block(struct cut *cut, const uint8_t *data, size_t len, size_t target, bool *found)
{
    (void)cut, (void)data, (void)len, (void)target, (void)found;
    return false;
}

#endif

static size_t cut_quoted(struct cut *cut, const uint8_t *data, size_t len, size_t target,
                         bool final)
{
    scan_how vector = scan_choose();
    while (cut->at < len || (cut->quoted && final)) {
        bool found = false;
        while (vector && !found && pass_block(cut, data, len, target, &found))
            ;
        if (found)
            return cut->at;
        enum quoting quoting = cut->quoted ? pass_quotes(cut, data, len, final) : QUOTE_CLOSED;
        if (quoting != QUOTE_CLOSED && !give_up_quote(cut, data, len, quoting, final))
            return 0;
        const uint8_t *quote = memchr(data + cut->at, '"', len - cut->at);
        size_t at = quote ? (size_t)(quote - data) : len;
        if (pass_lines(cut, data, at, target))
            return cut->at;
        if (!quote)
            return 0;
        cut->quoted = at == cut->record || data[at - 1] == cut->dialect->delimiter;
        cut->quote = at;
        cut->at = at + 1;
    }
    return 0;
}

size_t cut_search(struct cut *cut, const uint8_t *data, size_t len, size_t target, bool final)
{
    size_t end = cut->last >= target ? cut->last : 0; /* the target may have moved past it */
    if (end)
        return end;
    bool quotes = cut->dialect->format == READ_CSV && !cut->lines && len > cut->at &&
                  (cut->quoted || memchr(data + cut->at, '"', len - cut->at));
    if (quotes || (cut->quoted && final))
        end = cut_quoted(cut, data, len, target, final);
    else if (cut->dialect->format == READ_JSON)
        end = array_cut(cut, data, len, target, final);
    else if (pass_lines(cut, data, len, target))
        end = cut->at;
    return end ? end : final ? len : 0;
}

/* ---- lines ----------------------------------------------------------------------------------- */

#if SCAN_HAS_VECTOR
/* Matches are -1 in their byte: summed in bytes for up to 255 steps, then across. */
static uint64_t count_vector(const uint8_t *p, size_t blocks)
{
    const __m128i line = _mm_set1_epi8('\n'), zero = _mm_setzero_si128();
    __m128i total = zero;
    while (blocks) {
        size_t some = blocks < 63 ? blocks : 63;
        __m128i a = zero, b = zero;
        blocks -= some;
        for (; some; some--, p += 64) {
            const __m128i *x = (const __m128i *)p;
            a = _mm_sub_epi8(a, _mm_cmpeq_epi8(_mm_loadu_si128(x), line));
            b = _mm_sub_epi8(b, _mm_cmpeq_epi8(_mm_loadu_si128(x + 1), line));
            a = _mm_sub_epi8(a, _mm_cmpeq_epi8(_mm_loadu_si128(x + 2), line));
            b = _mm_sub_epi8(b, _mm_cmpeq_epi8(_mm_loadu_si128(x + 3), line));
        }
        total = _mm_add_epi64(total, _mm_add_epi64(_mm_sad_epu8(a, zero), _mm_sad_epu8(b, zero)));
    }
    return (uint64_t)_mm_cvtsi128_si64(total) +
           (uint64_t)_mm_cvtsi128_si64(_mm_unpackhi_epi64(total, total));
}
#endif

uint64_t count_lines(const uint8_t *data, size_t len)
{
    uint64_t n = 0;
    size_t i = 0;
#if SCAN_HAS_VECTOR
    if (scan_choose()) {
        i = len & ~(size_t)63;
        n = count_vector(data, len / 64);
    }
#endif
    for (; i < len; i++)
        n += data[i] == '\n';
    return n;
}
