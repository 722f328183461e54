/*
 * Queries of a directory, by many threads beside the one that writes. A query reads a word of doubt per 64 owners
 * and the rows of the columns; copies are queried only while their columns change, or if they have none.
 */
#include "directory.h"

/* ---- doubt ----------------------------------------------------------------------------------- */

/* Marks leases that have expired, and computes when the next one expires. */
static void expire(struct owner_piece *piece, uint64_t now, uint64_t seen)
{
    uint64_t renewals = atomic_load(&piece->renewals), next = UINT64_MAX;
    uint64_t left = atomic_load(&piece->live) & ~atomic_load(&piece->doubt);
    for (; left; left &= left - 1) {
        unsigned bit = (unsigned)__builtin_ctzll(left);
        uint64_t expires = atomic_load(&piece->expires[bit]);
        if (expires <= now)
            atomic_fetch_or(&piece->doubt, UINT64_C(1) << bit);
        else
            next = min_u64(next, expires);
    }
    atomic_compare_exchange_strong(&piece->next_expiry, &seen, next);
    if (atomic_load(&piece->renewals) != renewals) /* one may have been missed: check again */
        atomic_store(&piece->next_expiry, 0);
}

/* Owners of the piece that are in doubt because the carrier was last reached `since` nanoseconds ago. */
static uint64_t out_of_contact(const struct owner_piece *piece, uint64_t since)
{
    uint64_t doubt = 0;
    if (LIKELY(since < atomic_load(&piece->least_beat)))
        return 0;
    for (unsigned i = 0; i < OWNER_PIECE; i++)
        doubt |= (uint64_t)(since >= atomic_load(&piece->beat[i])) << i;
    return doubt;
}

/* ---- owners of keys -------------------------------------------------------------------------- */

/* The answers of the owner's copy for at most COLUMNS_RUN keys, while its columns are changing or missing. Without
   a copy the columns are correct: its set was put. */
static void ask_copy(const tamis_directory *d, uint32_t number, const tamis_key *keys, size_t n,
                     uint64_t *hits, size_t words)
{
    uint8_t found[COLUMNS_RUN];
    const tamis_follower *f =
        atomic_load(&piece_of(d, number)->owner[number % OWNER_PIECE].follower);
    if (!f)
        return;
    tamis_follower_has_many(f, keys, n, found);
    for (size_t i = 0; i < n; i++) {
        uint64_t *word = &hits[i * words + number / 64];
        *word = (*word & ~bit_of(number)) | (uint64_t)found[i] << number % 64;
    }
}

void tamis_directory_locate_many(const tamis_directory *directory, const tamis_key *keys, size_t n,
                                 uint64_t *hits, uint64_t *doubt, size_t words)
{
    tamis_directory *d = (tamis_directory *)(uintptr_t)directory;
    size_t known = min_u64(words, ((size_t)tamis_directory_owners(d) + 63) / 64);
    uint64_t now = d->follower.clock(d->follower.clock_context);
    uint64_t contact = atomic_load(&d->contact);
    uint64_t since = contact && now > contact ? now - contact : 0;
    uint64_t inside = readers_enter();
    for (size_t i = 0; i < known; i++) { /* first: an owner is in doubt until it has columns */
        struct owner_piece *piece = atomic_load_explicit(&d->piece[i], memory_order_acquire);
        uint64_t next = atomic_load(&piece->next_expiry);
        if (UNLIKELY(now >= next))
            expire(piece, now, next);
        doubt[i] = atomic_load(&piece->doubt) | out_of_contact(piece, since);
    }
    for (size_t i = 0; i < n; i += COLUMNS_RUN) {
        size_t some = min_u64(COLUMNS_RUN, n - i);
        uint32_t changing = columns_locate(&d->columns, keys + i, some, hits + i * words, words);
        for (uint32_t j = 0; d->whole && j < 64 * known; j++)
            if (live_owner(d, j) && !(doubt[j / 64] & bit_of(j)))
                ask_copy(d, j, keys + i, some, hits + i * words, words);
        for (uint32_t j = 0; !d->whole && j < 64 * known; j += 64)
            for (uint64_t left = atomic_load(&d->piece[j / 64]->lines); left; left &= left - 1)
                ask_copy(d, j + (uint32_t)__builtin_ctzll(left), keys + i, some, hits + i * words,
                         words);
        if (changing / 64 < known)
            ask_copy(d, changing, keys + i, some, hits + i * words, words);
    }
    for (size_t i = 0; i < known; i++) {
        uint64_t live = atomic_load(&d->piece[i]->live), sure = live & ~doubt[i];
        doubt[i] &= live;
        for (size_t j = i; j < n * words; j += words)
            hits[j] &= sure;
    }
    for (size_t i = known; i < words; i++) /* owners added meanwhile: no hits */
        doubt[i] = 0;
    readers_leave(inside);
}

size_t tamis_directory_locate(const tamis_directory *d, const void *key, size_t len,
                              tamis_place *places, size_t room)
{
    uint64_t hits[OWNER_PIECES], doubt[OWNER_PIECES];
    size_t words = ((size_t)tamis_directory_owners(d) + 63) / 64, n = 0;
    tamis_key asked = {key, len};
    tamis_directory_locate_many(d, &asked, 1, hits, doubt, words);
    for (size_t i = 0; i < words; i++)
        for (uint64_t left = hits[i] | doubt[i]; left; left &= left - 1, n++) {
            unsigned bit = (unsigned)__builtin_ctzll(left);
            if (n < room)
                places[n] = (tamis_place){(uint32_t)(64 * i + bit), doubt[i] >> bit & 1};
        }
    return n;
}
