/* Values: memory from the server's allocator, the clock of the present command, and untrusted
   bytes. */
#include "foreign.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* A value takes up to three times its encoded size in memory, and a removal pending between two
   vectors of 64 probes 115 times; no value from untrusted bytes may take more than this. */
#define EXPANDS     128
#define EXPANDS_MIN ((uint64_t)16 << 20)

/* ---- memory ---------------------------------------------------------------------------------- */

/* While untrusted bytes are decoded: what may still be allocated. A pending removal has one word
   per candidate in the encoding, and several per probe in memory. */
static _Atomic bool bounded;
static _Atomic uint64_t bound;

static _Atomic bool insisting;

void value_insist(bool on)
{
    atomic_store(&insisting, on);
}

static atomic_ullong taken; /* by sets, in bytes */

void value_took(uint64_t bytes)
{
    taken += bytes;
}

static void *server_alloc(void *context, size_t size)
{
    (void)context;
    bool insist = atomic_load(&insisting);
    if (!insist && atomic_load(&bounded)) {
        if (atomic_load(&bound) < size)
            return NULL;
        atomic_fetch_sub(&bound, size);
    }
    void *memory = insist ? rm.Alloc(size) : rm.TryAlloc(size);
    if (memory)
        taken += size;
    return memory;
}

static void server_free(void *context, void *memory, size_t size)
{
    (void)context;
    if (memory)
        taken -= size;
    if (atomic_load(&bounded) && memory)
        atomic_fetch_add(&bound, size);
    rm.Free(memory);
}

/*
 * Allocates large vectors without touching them: the server's allocators get their memory from the kernel as
 * private pages, and released pages are zero when they are next touched. So a filter of 400 MB is
 * created in microseconds instead of a third of a second. Where the kernel refuses (locked pages),
 * they are cleared one by one.
 */
void memory_clear(void *start, size_t size)
{
    const size_t page = 4096, large = (size_t)1 << 20;
    char *memory = start;
    if (size < large) {
        memset(memory, 0, size);
        return;
    }
    size_t head = (page - ((uintptr_t)memory & (page - 1))) & (page - 1);
    size_t whole = (size - head) & ~(page - 1);
    memset(memory, 0, head);
    if (madvise(memory + head, whole, MADV_DONTNEED) != 0)
        memset(memory + head, 0, whole);
    memset(memory + head + whole, 0, size - head - whole);
}

static void *server_zeroed(void *context, size_t size)
{
    void *memory = server_alloc(context, size);
    if (memory)
        memory_clear(memory, size);
    return memory;
}

const tamis_allocator value_allocator = {server_alloc, server_free, NULL, server_zeroed};

/* Wiped: encoded values contain their key. */
static void buffer_release(struct buffer *b)
{
    if (b->data)
        explicit_bzero(b->data, b->room);
    rm.Free(b->data);
}

bool buffer_add(struct buffer *b, const void *data, size_t len)
{
    if (len > SIZE_MAX / 4 - b->len)
        return false;
    if (b->len + len > b->room) {
        size_t room = b->len + len + (b->len + len) / 4 + 64;
        char *grown = atomic_load(&insisting) ? rm.Alloc(room) : rm.TryAlloc(room);
        if (!grown)
            return false;
        if (b->len)
            memcpy(grown, b->data, b->len);
        buffer_release(b);
        b->data = grown;
        b->room = room;
    }
    if (len)
        memcpy(b->data + b->len, data, len);
    b->len += len;
    return true;
}

void buffer_free(struct buffer *b)
{
    buffer_release(b);
    *b = (struct buffer){0};
}

/* ---- the clock ------------------------------------------------------------------------------- */

static uint64_t moment; /* commands run one at a time, in one thread */

void time_of_command(uint64_t at)
{
    moment = at ? at : clock_real(NULL);
}

uint64_t value_clock(void *unused)
{
    (void)unused;
    return moment;
}

/* ---- values ---------------------------------------------------------------------------------- */

static atomic_ullong foreign_values;
static atomic_ullong values; /* the server frees large values in another thread */
static atomic_ullong made;

static atomic_ullong all_items, all_parts;

struct value_counts value_counts(void)
{
    return (struct value_counts){values, foreign_values, all_items, all_parts, taken};
}

void value_recount(struct value *v)
{
    uint32_t parts = 0;
    if (v->kind == VALUE_PARTIAL)
        return;
    uint64_t items = v->small ? small_items(v->small, &parts)
                     : v->set ? set_items(v->set, &parts)
                              : 0;
    if (v->foreign)
        items += v->foreign->items, parts += v->foreign->n;
    if (items != v->items)
        all_items += items - v->items;
    if (parts != v->parts)
        all_parts += (uint64_t)parts - v->parts;
    v->items = items;
    v->parts = parts;
}

static struct value *value_new(struct value like)
{
    struct value *v = rm.TryAlloc(sizeof *v);
    if (!v) {
        foreign_free(like.foreign);
        set_free(like.set);
        if (like.kind == VALUE_PARTIAL)
            pieces_in_free(like.in);
        return NULL;
    }
    *v = like;
    v->number = ++made;
    values++;
    value_recount(v);
    return v;
}

struct value *value_of(struct set *set)
{
    tamis_filter_facts facts;
    set_brief(set, &facts);
    return value_new(
        (struct value){.kind = set_kind(set) == TAMIS_KIND_FILTER ? VALUE_FILTER : VALUE_RECORDS,
                       .set = set,
                       .growth = facts.growth,
                       .deletable = facts.deletable});
}

struct set *value_set(const struct value *v)
{
    return v->small ? small_whole(v->small) : v->set;
}

void value_set_back(const struct value *v, struct set *set)
{
    if (set != v->set)
        set_free(set);
}

void value_set_keep(struct value *v, struct set *set)
{
    small_free(v->small);
    v->small = NULL;
    v->set = set;
}

bool value_settle(struct value *v, bool places)
{
    if (v->kind != VALUE_FILTER || !v->set || v->publication || v->kept)
        return true;
    bool ok = small_of(v->set, places, &v->small);
    if (v->small)
        v->set = NULL;
    return ok;
}

bool value_has(const struct value *v, const void *key, size_t len)
{
    return v->small ? small_has(v->small, small_digest(v->small, key, len))
                    : tamis_filter_has(as_filter(v->set), key, len);
}

void value_digests(const struct value *v, const tamis_key *keys, size_t n, tamis_digest *out)
{
    if (v->small)
        small_digest_many(v->small, keys, n, out);
    else
        tamis_filter_digest_many(as_filter(v->set), keys, n, out);
}

void value_have(const struct value *v, const tamis_digest *digests, size_t n, uint8_t *found)
{
    for (size_t i = 0; v->small && i < n; i++)
        found[i] = small_has(v->small, digests[i]);
    if (v->set)
        tamis_filter_has_many(as_filter(v->set), digests, n, found);
}

static __attribute__((noinline)) tamis_error add_to_small(struct value *v, tamis_digest digest,
                                                          uint8_t *fresh)
{
    enum small_added added = small_add(&v->small, digest);
    size_t done;
    *fresh = added == SMALL_NEW;
    if (added != SMALL_OUTGROWN)
        return added == SMALL_NO_MEMORY  ? TAMIS_ENOMEM
               : added == SMALL_NO_SPACE ? TAMIS_ESPACE
                                         : TAMIS_OK;
    struct set *set = value_set(v);
    tamis_error e =
        set ? tamis_filter_add_many(as_filter(set), &digest, 1, fresh, &done) : TAMIS_ENOMEM;
    if (e == TAMIS_OK)
        value_set_keep(v, set);
    else
        value_set_back(v, set);
    return e;
}

tamis_error value_add(struct value *v, const void *key, size_t len, bool *fresh)
{
    uint8_t is_fresh = false;
    if (!v->small)
        return tamis_filter_add(as_filter(v->set), key, len, fresh);
    tamis_error e = add_to_small(v, small_digest(v->small, key, len), &is_fresh);
    *fresh = is_fresh;
    return e;
}

tamis_error value_add_many(struct value *v, const tamis_digest *digests, size_t n, uint8_t *fresh,
                           size_t *done)
{
    tamis_error e = TAMIS_OK;
    size_t more = 0;
    for (*done = 0; v->small && *done < n && e == TAMIS_OK; *done += e == TAMIS_OK)
        e = add_to_small(v, digests[*done], fresh + *done);
    if (e == TAMIS_OK && *done < n)
        e = tamis_filter_add_many(as_filter(v->set), digests + *done, n - *done, fresh + *done,
                                  &more);
    *done += more;
    return e;
}

void value_top(struct value *v, struct set *top)
{
    tamis_filter_facts facts;
    set_brief(top, &facts);
    v->set = top;
    v->growth = facts.growth;
    value_recount(v);
}

struct value *value_lift(struct value *v)
{
    struct value *own = value_new((struct value){.kind = VALUE_FILTER});
    if (own) {
        value_top(own, v->set);
        v->set = NULL;
        value_recount(v);
    }
    return own;
}

struct value *value_foreign(struct foreign *f, struct set *top)
{
    struct value *v = value_new((struct value){.kind = VALUE_FOREIGN, .foreign = f});
    if (!v) {
        set_free(top);
        return NULL;
    }
    if (top)
        value_top(v, top);
    v->deletable = f->bucket > 0;
    foreign_values++;
    taken += foreign_bytes(f);
    return v;
}

struct value *value_partial(uint64_t total, bool trusted, const uint8_t *key)
{
    tamis_open_options options = {.key = key, .clock = value_clock, .allocator = &value_allocator};
    uint64_t limit = (uint64_t)server.work_limit;
    uint64_t aside = limit > PIECES_ASIDE ? limit : PIECES_ASIDE;
    struct pieces_in *in = pieces_in_begin(total, trusted ? UINT64_MAX : aside, &options);
    if (!in)
        return NULL;
    pieces_in_adopt(in);
    return value_new((struct value){.kind = VALUE_PARTIAL, .in = in});
}

uint64_t partial_have(const struct value *v)
{
    return pieces_in_have(v->in);
}

/* The memory is allocated when the header is known, but not touched before the bytes arrive. */
tamis_error partial_add(struct value *v, const void *data, size_t len, bool trusted,
                        tamis_reason *reason)
{
    uint64_t limit = value_limit();
    tamis_error e = pieces_in_add(v->in, data, len, reason);
    if (e != TAMIS_OK || trusted || pieces_in_makes(v->in) <= limit)
        return e;
    snprintf(reason->text, sizeof reason->text,
             "it would take more memory than tamis.value-limit, %llu bytes",
             (unsigned long long)limit);
    return TAMIS_ELIMIT;
}

static tamis_error decode_partial(struct value *v, struct value **out, tamis_reason *reason)
{
    struct set *set;
    tamis_error e = pieces_in_end(v->in, &set, reason);
    *out = e == TAMIS_OK ? value_of(set) : NULL;
    return e == TAMIS_OK && !*out ? TAMIS_ENOMEM : e;
}

tamis_error partial_end(struct value *v, struct value **out, bool trusted, tamis_reason *reason)
{
    uint64_t most = EXPANDS * pieces_in_total(v->in) + EXPANDS_MIN, limit = value_limit();
    if (trusted)
        return decode_partial(v, out, reason);
    atomic_store(&bound, most < limit ? most : limit);
    atomic_store(&bounded, true);
    tamis_error e = decode_partial(v, out, reason);
    atomic_store(&bounded, false);
    if (e == TAMIS_ENOMEM) {
        e = TAMIS_ELIMIT;
        snprintf(reason->text, sizeof reason->text,
                 "it would take %d times the memory of its bytes, or there is none", EXPANDS);
    }
    return e;
}

void value_free(struct value *v)
{
    if (!v)
        return;
    copy_wait(v, false);
    all_items -= v->kind == VALUE_PARTIAL ? 0 : v->items;
    all_parts -= v->parts;
    publication_free(v->publication); /* it uses the filter */
    set_free(v->set);
    small_free(v->small);
    if (v->kind == VALUE_PARTIAL)
        pieces_in_free(v->in);
    if (v->foreign) {
        foreign_values--;
        taken -= foreign_bytes(v->foreign);
        foreign_free(v->foreign);
    }
    rm.Free(v);
    values--;
}

static int copy_bytes(void *context, const void *data, size_t len)
{
    tamis_reason reason;
    return partial_add(context, data, len, true, &reason) != TAMIS_OK;
}

static struct value *copy_sets(const struct value *v, bool beside)
{
    struct mem_later bytes = {0};
    struct set *set = NULL;
    struct value *copy = NULL;
    mem_copy_later(&bytes);
    struct foreign *f = v->foreign ? foreign_copy(v->foreign) : NULL;
    bool good = (f || !v->foreign) && (!v->set || set_clone(&set, v->set, false) == TAMIS_OK);
    mem_copy_later(NULL);
    if (good && !beside)
        mem_copy_now(&bytes);
    if (good)
        copy = f ? value_foreign(f, set) : value_of(set);
    else
        foreign_free(f);
    if (copy)
        copy_beside(v, copy, &bytes);
    mem_later_free(&bytes);
    return copy;
}

static struct value *copy_value(const struct value *v, bool beside)
{
    copy_wait(v, true);
    if (v->small) {
        struct value *now = value_new(
            (struct value){.kind = v->kind, .growth = v->growth, .small = small_copy(v->small)});
        if (now && !now->small) {
            value_free(now);
            now = NULL;
        }
        return now;
    }
    if (v->kind != VALUE_PARTIAL)
        return copy_sets(v, beside);
    struct value *partial = value_partial(pieces_in_total(v->in), true, pieces_in_key(v->in));
    if (partial && value_encode(v, 0, copy_bytes, partial) != TAMIS_OK) {
        value_free(partial);
        return NULL;
    }
    return partial;
}

struct value *value_copy(const struct value *v)
{
    return copy_value(v, false);
}

struct value *value_copy_beside(const struct value *v)
{
    return copy_value(v, true);
}

size_t value_bytes(const struct value *v)
{
    size_t bytes = sizeof *v;
    if (v->kind == VALUE_PARTIAL)
        bytes += pieces_in_bytes(v->in);
    if (v->foreign)
        bytes += foreign_bytes(v->foreign);
    if (v->publication)
        bytes += sizeof *v->publication + v->publication->stream.room;
    if (v->small) {
        bytes += (size_t)small_bytes(v->small);
    } else if (v->set) {
        tamis_filter_facts facts;
        set_brief(v->set, &facts);
        bytes += (size_t)facts.bytes;
    }
    return bytes;
}

uint64_t value_encoded_size(const struct value *v)
{
    struct set *set = value_set(v);
    uint64_t size = set ? set_encoded_size(set, 0) : v->small ? 0 : pieces_in_total(v->in);
    value_set_back(v, set);
    return size;
}

tamis_error value_encode(const struct value *v, unsigned flags, tamis_write write, void *context)
{
    copy_wait(v, true);
    struct set *set = value_set(v);
    tamis_error e = set        ? set_encode(set, flags, write, context)
                    : v->small ? TAMIS_ENOMEM
                               : pieces_in_encode(v->in, write, context);
    value_set_back(v, set);
    return e;
}

bool value_key(const struct value *v, uint8_t key[TAMIS_KEY_LEN])
{
    if (v->small)
        return small_key(v->small, key);
    if (v->set)
        return set_key(v->set, key);
    if (v->foreign)
        return false;
    const uint8_t *given = pieces_in_key(v->in);
    if (given)
        memcpy(key, given, TAMIS_KEY_LEN);
    return given != NULL;
}
