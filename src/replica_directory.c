/*
 * Many followers side by side. Their copies are columns (columns.h), one set of matrices for each
 * family; which owners are in doubt is one bit each, 64 owners a chunk, so that a question looks at a
 * word for 64 owners and at no follower. A lease runs out without anyone's doing: `next_expiry` is a
 * time before which none does; the first question after it looks at all leases.
 */
#include "replica.h"

#include "columns.h"
#include "err.h"

#define CHUNKS_MAX (TAMIS_OWNERS_MAX / 64)

struct owner {
    char *name; /* NULL: nobody's */
    tamis_follower *follower;
    struct kindred *kindred; /* where its columns are, or NULL */
    bool behind;             /* the columns are not just those of the copy: there was no memory */
};

struct chunk {
    _Atomic uint64_t used, doubt; /* owners, by bit */
    _Atomic uint64_t expires[64];
    struct owner owner[64]; /* of the thread that takes */
};

/* Copies of one family. */
struct kindred {
    struct family family;
    struct columns columns;
    struct kindred *_Atomic next;
};

struct tamis_replicas {
    tamis_allocator a;
    tamis_follower_options options;
    uint8_t key[TAMIS_KEY_LEN];
    struct kindred *_Atomic kindred;
    _Atomic uint64_t next_expiry, renewals;
    _Atomic uint64_t moves; /* columns that went from one family to another */
    _Atomic uint32_t owners;
    struct chunk *_Atomic chunk[CHUNKS_MAX];
};

/* ---- making ---------------------------------------------------------------------------------- */

tamis_error tamis_replicas_new(tamis_replicas **out, const tamis_follower_options *options)
{
    const tamis_allocator *a = options && options->allocator ? options->allocator : &mem_system;
    tamis_replicas *r = mem_new0(a, 1, sizeof *r);
    if (!r)
        return TAMIS_ENOMEM;
    r->a = *a;
    if (options)
        r->options = *options;
    r->options.allocator = &r->a;
    if (r->options.key) {
        memcpy(r->key, r->options.key, sizeof r->key);
        r->options.key = r->key;
    }
    if (!r->options.clock)
        r->options.clock = monotonic_clock;
    atomic_store(&r->next_expiry, UINT64_MAX);
    *out = r;
    return TAMIS_OK;
}

static struct owner *owner_at(const tamis_replicas *r, uint32_t number)
{
    struct chunk *chunk =
        number < atomic_load(&r->owners) ? atomic_load(&r->chunk[number / 64]) : NULL;
    return chunk ? &chunk->owner[number % 64] : NULL;
}

void tamis_replicas_free(tamis_replicas *r)
{
    if (!r)
        return;
    for (uint32_t i = 0; i < atomic_load(&r->owners); i++) {
        struct owner *owner = owner_at(r, i);
        if (owner->name)
            mem_free(&r->a, owner->name, 1, strlen(owner->name) + 1);
        tamis_follower_free(owner->follower);
    }
    for (uint32_t i = 0; i < CHUNKS_MAX; i++)
        mem_free(&r->a, atomic_load(&r->chunk[i]), 1, sizeof(struct chunk));
    for (struct kindred *k = atomic_load(&r->kindred); k;) {
        struct kindred *next = atomic_load(&k->next);
        columns_free(&k->columns);
        family_free(&k->family, &r->a);
        mem_free(&r->a, k, 1, sizeof *k);
        k = next;
    }
    tamis_allocator a = r->a;
    mem_free_secret(&a, r, 1, sizeof *r);
}

/* ---- owners ---------------------------------------------------------------------------------- */

uint32_t tamis_replicas_owners(const tamis_replicas *r)
{
    return atomic_load(&r->owners);
}

const char *tamis_replicas_name(const tamis_replicas *r, uint32_t number)
{
    const struct owner *owner = owner_at(r, number);
    return owner ? owner->name : NULL;
}

const tamis_follower *tamis_replicas_follower(const tamis_replicas *r, uint32_t number)
{
    const struct owner *owner = owner_at(r, number);
    return owner ? owner->follower : NULL;
}

/* The owner's number; with none, the first that is nobody's. */
static uint32_t find_owner(const tamis_replicas *r, const char *name, bool *found)
{
    uint32_t n = atomic_load(&r->owners), unused = n;
    *found = false;
    for (uint32_t i = n; i-- > 0;) {
        const struct owner *owner = owner_at(r, i);
        if (!owner->name)
            unused = i;
        else if (strcmp(owner->name, name) == 0) {
            *found = true;
            return i;
        }
    }
    return unused;
}

static tamis_error new_owner(tamis_replicas *r, const char *name, uint32_t number)
{
    size_t len = strlen(name);
    if (len == 0 || len > TAMIS_OWNER_MAX)
        return TAMIS_EARG;
    if (number / 64 >= CHUNKS_MAX)
        return TAMIS_ELIMIT;
    struct chunk *chunk = atomic_load(&r->chunk[number / 64]);
    if (!chunk && !(chunk = mem_new0(&r->a, 1, sizeof *chunk)))
        return TAMIS_ENOMEM;
    atomic_store(&r->chunk[number / 64], chunk);
    struct owner *owner = &chunk->owner[number % 64];
    char *copy = mem_new(&r->a, 1, len + 1);
    tamis_error e = copy ? tamis_follower_new(&owner->follower, &r->options) : TAMIS_ENOMEM;
    if (e != TAMIS_OK) {
        mem_free(&r->a, copy, 1, len + 1);
        return e;
    }
    memcpy(copy, name, len + 1);
    owner->name = copy;
    atomic_fetch_or(&chunk->doubt, UINT64_C(1) << number % 64);
    atomic_fetch_or(&chunk->used, UINT64_C(1) << number % 64);
    if (number == atomic_load(&r->owners))
        atomic_store(&r->owners, number + 1);
    return TAMIS_OK;
}

tamis_error tamis_replicas_expect(tamis_replicas *r, const char *name)
{
    bool found;
    uint32_t number = find_owner(r, name, &found);
    return found ? TAMIS_OK : new_owner(r, name, number);
}

/* Its columns go, but for those that it is to keep. One that is behind may have them anywhere. */
static tamis_error drop_columns(tamis_replicas *r, const struct owner *owner, uint32_t number,
                                const struct kindred *keep)
{
    tamis_error e = TAMIS_OK;
    for (struct kindred *k = atomic_load(&r->kindred); k && e == TAMIS_OK;
         k = atomic_load(&k->next))
        if (k != keep && (k == owner->kindred || owner->behind))
            e = columns_drop(&k->columns, number);
    return e;
}

tamis_error tamis_replicas_forget(tamis_replicas *r, const char *name)
{
    bool found;
    uint32_t number = find_owner(r, name, &found);
    if (!found)
        return TAMIS_EARG;
    struct owner *owner = owner_at(r, number);
    struct chunk *chunk = atomic_load(&r->chunk[number / 64]);
    tamis_error e = drop_columns(r, owner, number, NULL);
    if (e != TAMIS_OK)
        return e;
    atomic_fetch_and(&chunk->used, ~(UINT64_C(1) << number % 64));
    tamis_follower_free(owner->follower);
    mem_free(&r->a, owner->name, 1, strlen(owner->name) + 1);
    *owner = (struct owner){0};
    return TAMIS_OK;
}

/* ---- taking ---------------------------------------------------------------------------------- */

static struct kindred *kindred_of(tamis_replicas *r, const struct family *family)
{
    for (struct kindred *k = atomic_load(&r->kindred); k; k = atomic_load(&k->next))
        if (family_equal(&k->family, family))
            return k;
    struct kindred *k = mem_new0(&r->a, 1, sizeof *k);
    if (!k)
        return NULL;
    if (family_copy(&k->family, family, &r->a) != TAMIS_OK) {
        mem_free(&r->a, k, 1, sizeof *k);
        return NULL;
    }
    if (columns_init(&k->columns, &r->a) != TAMIS_OK) {
        family_free(&k->family, &r->a);
        mem_free(&r->a, k, 1, sizeof *k);
        return NULL;
    }
    atomic_store(&k->next, atomic_load(&r->kindred));
    atomic_store(&r->kindred, k);
    return k;
}

/* The bits of each vector, in one piece: columns of a matrix are gathered into `words`. */
static tamis_error list_bits(const tamis_filter *copy, const struct family *family,
                             struct bits *out, uint64_t *words)
{
    const struct layers *layers = set_layers(&copy->set);
    for (uint32_t i = 0; i < layers_count(layers); i++) {
        const struct vector *v = layers->v[i];
        out[i] = v->bits;
        out[i].family = family;
        if (v->stride == 1)
            continue;
        uint64_t n = (vector_positions_total(v) + 63) / 64;
        for (uint64_t j = 0; j < n; j++)
            words[j] = vector_word(v, j);
        out[i].words = words;
        words += n;
    }
    return TAMIS_OK;
}

static tamis_error put_columns(struct kindred *k, uint32_t number, const tamis_filter *copy,
                               const tamis_allocator *a)
{
    const struct layers *layers = set_layers(&copy->set);
    uint32_t n = layers_count(layers);
    uint64_t room = 0;
    for (uint32_t i = 0; i < n; i++)
        if (layers->v[i]->stride != 1)
            room += (vector_positions_total(layers->v[i]) + 63) / 64;
    struct bits *bits = mem_new(a, n, sizeof *bits);
    uint64_t *words = mem_new(a, (size_t)room, sizeof *words);
    tamis_error e = bits && words ? list_bits(copy, &k->family, bits, words) : TAMIS_ENOMEM;
    if (e == TAMIS_OK)
        e = columns_put(&k->columns, number, bits, n);
    mem_free(a, bits, n, sizeof *bits);
    mem_free(a, words, (size_t)room, sizeof *words);
    return e;
}

/* The copy has changed: so do its columns. In another family they are put before they go from the one
   before, and readers who looked at that one too late look again. */
static tamis_error follow_copy(tamis_replicas *r, struct owner *owner, uint32_t number)
{
    const tamis_filter *copy = follower_copy(owner->follower);
    struct kindred *k = kindred_of(r, &copy->set.family);
    tamis_error e = k ? put_columns(k, number, copy, &r->a) : TAMIS_ENOMEM;
    if (e == TAMIS_OK) {
        atomic_fetch_add(&r->moves, owner->kindred && owner->kindred != k);
        e = drop_columns(r, owner, number, k);
        owner->kindred = k;
    }
    owner->behind = e != TAMIS_OK;
    return e;
}

/* The renewal is counted when all can see it, and before the next expiry is looked at: whoever goes
   through the leases meanwhile sees the new one, or that there was one. */
static void set_lease(tamis_replicas *r, uint32_t number, uint64_t expires)
{
    struct chunk *chunk = atomic_load(&r->chunk[number / 64]);
    uint64_t bit = UINT64_C(1) << number % 64;
    if (expires == 0) {
        atomic_fetch_or(&chunk->doubt, bit);
        return;
    }
    atomic_store(&chunk->expires[number % 64], expires);
    atomic_fetch_and(&chunk->doubt, ~bit);
    atomic_fetch_add(&r->renewals, 1);
    uint64_t next = atomic_load(&r->next_expiry);
    while (expires < next && !atomic_compare_exchange_weak(&r->next_expiry, &next, expires))
        ;
}

tamis_error tamis_replicas_take(tamis_replicas *r, const void *message, size_t len, uint64_t age,
                                tamis_taken *taken, tamis_reason *reason)
{
    tamis_message m;
    tamis_taken outcome = TAMIS_REFUSED;
    bool found = false;
    tamis_error e = tamis_message_read(&m, message, len, reason);
    uint32_t number = e == TAMIS_OK ? find_owner(r, m.owner, &found) : 0;
    if (e == TAMIS_OK && !found && (e = new_owner(r, m.owner, number)) != TAMIS_OK)
        fail(reason, e, "%.100s: %s", m.owner, tamis_error_text(e));
    if (e != TAMIS_OK) {
        if (taken)
            *taken = outcome;
        return e;
    }
    struct owner *owner = owner_at(r, number);
    e = tamis_follower_take(owner->follower, message, len, age, &outcome, reason);
    if (outcome == TAMIS_APPLIED || owner->behind) {
        tamis_error put = follow_copy(r, owner, number);
        if (put != TAMIS_OK) {
            set_lease(r, number, 0);
            if (taken)
                *taken = TAMIS_REFUSED;
            return fail(reason, put, "%.100s: no memory for its columns", m.owner);
        }
    }
    if (owner->kindred)
        set_lease(r, number, follower_expires(owner->follower));
    if (taken)
        *taken = outcome;
    return e;
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* Leases that have run out by now; and when the next one does. */
static void expire(tamis_replicas *r, uint64_t now, uint64_t seen)
{
    uint64_t renewals = atomic_load(&r->renewals), next = UINT64_MAX;
    uint32_t n = atomic_load(&r->owners);
    for (uint32_t i = 0; i < n; i += 64) {
        struct chunk *chunk = atomic_load(&r->chunk[i / 64]);
        uint64_t live = atomic_load(&chunk->used) & ~atomic_load(&chunk->doubt);
        for (; live; live &= live - 1) {
            unsigned bit = (unsigned)__builtin_ctzll(live);
            uint64_t expires = atomic_load(&chunk->expires[bit]);
            if (expires <= now)
                atomic_fetch_or(&chunk->doubt, UINT64_C(1) << bit);
            else
                next = min_u64(next, expires);
        }
    }
    atomic_compare_exchange_strong(&r->next_expiry, &seen, next);
    if (atomic_load(&r->renewals) != renewals) /* one of them may have been missed: look again */
        atomic_store(&r->next_expiry, 0);
}

/* The owners whose columns have the key, in any family; `some` is room of the same size. */
static void find_hits(const tamis_replicas *r, const void *key, size_t len, uint64_t *hits,
                      uint64_t *some, uint32_t words)
{
    uint64_t moves;
    memset(hits, 0, words * sizeof *hits);
    do {
        moves = atomic_load(&r->moves);
        for (struct kindred *k = atomic_load(&r->kindred); k; k = atomic_load(&k->next)) {
            columns_locate(&k->columns, family_digest(&k->family, key, len), some, words);
            for (uint32_t i = 0; i < words; i++)
                hits[i] |= some[i];
        }
    } while (atomic_load(&r->moves) != moves);
}

size_t tamis_replicas_locate(const tamis_replicas *replicas, const void *key, size_t len,
                             tamis_place *places, size_t room)
{
    enum { RUN = 64 }; /* words that need no memory: 4096 owners */
    tamis_replicas *r = (tamis_replicas *)(uintptr_t)replicas;
    uint64_t now = r->options.clock(r->options.clock_context), seen = atomic_load(&r->next_expiry);
    uint64_t few[3 * RUN], *doubt = few;
    size_t n = 0;
    if (UNLIKELY(now >= seen))
        expire(r, now, seen);
    uint32_t words = (atomic_load(&r->owners) + 63) / 64;
    if (words > RUN)
        doubt = mem_new(&r->a, words, 3 * sizeof *doubt);
    uint64_t *hits = doubt ? doubt + words : NULL;
    for (uint32_t i = 0; doubt && i < words;
         i++) /* first: an owner is in doubt until it has columns */
        doubt[i] = atomic_load(&atomic_load(&r->chunk[i])->doubt);
    if (doubt)
        find_hits(r, key, len, hits, hits + words, words);
    for (uint32_t i = 0; i < words; i++) {
        uint64_t maybe = doubt ? doubt[i] : UINT64_MAX; /* without memory: all */
        uint64_t left =
            atomic_load(&atomic_load(&r->chunk[i])->used) & (maybe | (hits ? hits[i] : 0));
        for (; left; left &= left - 1, n++) {
            unsigned bit = (unsigned)__builtin_ctzll(left);
            if (n < room)
                places[n] = (tamis_place){64 * i + bit, maybe >> bit & 1};
        }
    }
    if (doubt != few)
        mem_free(&r->a, doubt, words, 3 * sizeof *doubt);
    return n;
}
