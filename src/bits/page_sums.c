/* Checksums of pages: of a stream of bytes, and of bits and counters that change, for which only
   marked pages are summed again. */
#include "page_sums.h"

void page_sums_end(struct page_sums *sums)
{
    if (!sums->used)
        return;
    put_u64(sums->next, hash_of(sums->page, (size_t)sums->used));
    sums->next += sizeof(uint64_t);
    sums->used = 0;
}

void page_sums_add(struct page_sums *sums, const void *data, uint64_t len)
{
    const uint8_t *from = data;
    for (uint64_t some; len; from += some, len -= some) {
        some = min_u64(len, PAGE - sums->used);
        if (some == PAGE) { /* summed in place */
            put_u64(sums->next, hash_of(from, PAGE));
            sums->next += sizeof(uint64_t);
            continue;
        }
        memcpy(sums->page + sums->used, from, (size_t)some);
        sums->used += some;
        if (sums->used == PAGE)
            page_sums_end(sums);
    }
}

void tops_add(struct hash_stream *hash, const void *sums, uint64_t n)
{
    const uint8_t *from = sums;
    for (uint64_t some; n; n -= some, from += some * sizeof(uint64_t)) {
        uint8_t top[sizeof(uint64_t)];
        some = min_u64(n, PAGES_TOP);
        put_u64(top, hash_of(from, (size_t)some * sizeof(uint64_t)));
        hash_add(hash, top, sizeof top);
    }
}

static uint64_t tops_of(const struct kept_sums *k)
{
    return (k->pages + PAGES_TOP - 1) / PAGES_TOP;
}

/* One block holds the checksums, the tops and the marks, the latter up to a whole word. */
static size_t kept_len(const struct kept_sums *k)
{
    return (size_t)(sizeof(uint64_t) * (k->pages + tops_of(k)) + round_up(k->pages, 8));
}

static void kept_sums_place(struct kept_sums *k)
{
    k->top = k->sum + k->pages;
    k->stale = (uint8_t *)(k->top + tops_of(k));
}

struct kept_sums *kept_sums_new(const tamis_allocator *a, uint64_t len)
{
    struct kept_sums *k = mem_new0(a, 1, sizeof *k);
    if (!k)
        return NULL;
    k->len = len;
    k->pages = pages_of(len);
    k->sum = mem_new(a, 1, kept_len(k));
    if (!k->sum) {
        mem_free(a, k, 1, sizeof *k);
        return NULL;
    }
    kept_sums_place(k);
    memset(k->stale, 0, (size_t)round_up(k->pages, 8));
    memset(k->stale, 1, (size_t)k->pages);
    return k;
}

struct kept_sums *kept_sums_at(struct kept_sums **place, const tamis_allocator *a, uint64_t len)
{
    struct kept_sums *kept = __atomic_load_n(place, __ATOMIC_ACQUIRE), *other = NULL;
    if (kept)
        return kept;
    kept = kept_sums_new(a, len);
    if (kept && !__atomic_compare_exchange_n(place, &other, kept, false, __ATOMIC_ACQ_REL,
                                             __ATOMIC_ACQUIRE)) {
        kept_sums_free(kept, a);
        kept = other;
    }
    return kept;
}

struct kept_sums *kept_sums_copy(const tamis_allocator *a, const struct kept_sums *from)
{
    struct kept_sums *k = from ? kept_sums_new(a, from->len) : NULL;
    if (k)
        kept_sums_adopt(k, from);
    return k;
}

void kept_sums_adopt(struct kept_sums *k, const struct kept_sums *from)
{
    memcpy(k->sum, from->sum, kept_len(k));
}

void kept_sums_move(struct kept_sums **k, void *(*move)(void *context, void *memory), void *context)
{
    struct kept_sums *there = *k ? move(context, *k) : NULL;
    uint64_t *sum;
    if (there)
        *k = there;
    if (!*k || !(sum = move(context, (*k)->sum)))
        return;
    (*k)->sum = sum;
    kept_sums_place(*k);
}

void kept_sums_free(struct kept_sums *k, const tamis_allocator *a)
{
    if (!k)
        return;
    mem_free(a, k->sum, 1, kept_len(k));
    mem_free(a, k, 1, sizeof *k);
}

void kept_sums_spoil(struct kept_sums *k)
{
    if (k)
        memset(k->stale, 1, (size_t)k->pages);
}

/* The marks of eight pages are tested as one word. */
static bool refresh_pages(struct kept_sums *k, const uint8_t *data, uint64_t first, uint64_t end)
{
    bool any = false;
    for (uint64_t eight = first; eight < end; eight += 8) {
        if (get_u64(k->stale + eight) == 0)
            continue;
        for (uint64_t i = eight; i < min_u64(eight + 8, end); i++)
            if (__atomic_exchange_n(&k->stale[i], 0, __ATOMIC_ACQ_REL)) {
                k->sum[i] = hash_of(data + i * PAGE, (size_t)min_u64(PAGE, k->len - i * PAGE));
                any = true;
            }
    }
    return any;
}

void kept_sums_refresh(struct kept_sums *k, const void *data)
{
    while (atomic_flag_test_and_set_explicit(&k->busy, memory_order_acquire))
        continue; /* another reader is summing, which takes a few ms per 10 MB */
    for (uint64_t first = 0; first < k->pages; first += PAGES_TOP) {
        uint64_t end = min_u64(first + PAGES_TOP, k->pages);
        if (refresh_pages(k, data, first, end))
            k->top[first / PAGES_TOP] =
                hash_of(k->sum + first, (size_t)(end - first) * sizeof *k->sum);
    }
    atomic_flag_clear_explicit(&k->busy, memory_order_release);
}
