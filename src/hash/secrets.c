/*
 * Secrets are slots of 256 bytes in chunks of 64 KiB. With smaller chunks, after many families have
 * come and gone, a process would have more mappings than the system allows (65,530). The caller's
 * allocator is not used: its pages hold other data too, and whether they are dumped is the caller's
 * decision. MADV_WIPEONFORK is not used either: a server saves its values, keys included, in a
 * child.
 */
#include "secrets.h"

#include <pthread.h>
#include <sodium.h>

#include "base/bytes.h"
#include "digest.h"

#define CHUNK_SIZE ((size_t)1 << 16)
/* the first slot is the chunk's header */
#define CHUNK_SLOTS (CHUNK_SIZE / sizeof(struct secrets) - 1)

struct secrets_chunk {
    struct secrets_chunk *next, **back; /* list of chunks with free slots */
    struct lookup_entry *free;          /* slots that were returned */
    uint32_t made, used;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct lookup by_key;
static struct secrets_chunk *roomy;

/* ---- chunks ---------------------------------------------------------------------------------- */

static void chunk_link(struct secrets_chunk *c)
{
    c->next = roomy;
    c->back = &roomy;
    if (roomy)
        roomy->back = &c->next;
    roomy = c;
}

static void chunk_unlink(struct secrets_chunk *c)
{
    *c->back = c->next;
    if (c->next)
        c->next->back = c->back;
}

static struct secrets *slot_take(void)
{
    if (!roomy) {
        struct secrets_chunk *c = mem_undumped_new(CHUNK_SIZE);
        if (!c)
            return NULL;
        chunk_link(c);
    }
    struct secrets_chunk *c = roomy;
    struct secrets *s =
        c->free ? PART_OF(c->free, struct secrets, entry) : (struct secrets *)(void *)c + ++c->made;
    if (c->free)
        c->free = c->free->next;
    if (++c->used == CHUNK_SLOTS)
        chunk_unlink(c);
    s->chunk = c;
    return s;
}

/* One chunk is kept when all are empty, for callers that create and free one structure after
   another. */
static void slot_give(struct secrets *s)
{
    struct secrets_chunk *c = s->chunk;
    explicit_bzero(s, sizeof *s);
    s->entry.next = c->free;
    c->free = &s->entry;
    if (c->used-- == CHUNK_SLOTS)
        chunk_link(c);
    if (c->used == 0 && (roomy != c || c->next)) {
        chunk_unlink(c);
        mem_pages_free(c, CHUNK_SIZE);
    }
}

/* ---- secrets --------------------------------------------------------------------------------- */

void process_lock(void)
{
    pthread_mutex_lock(&lock);
}

void process_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

/* A child forked while another thread holds the lock, or that of sodium_init(), would wait for it forever. */
static bool forks_safely;

static __attribute__((constructor)) void ask_forks(void)
{
    forks_safely = pthread_atfork(process_lock, process_unlock, process_unlock) == 0;
}

/* With the lock. */
static bool ready(void)
{
    static bool initialised;
    initialised = initialised || (forks_safely && sodium_init() >= 0);
    return initialised;
}

void key_stream(const uint8_t key[TAMIS_KEY_LEN], uint64_t purpose, uint64_t counter,
                uint8_t out[16])
{
    uint8_t message[16];
    put_u64(message, purpose);
    put_u64(message + 8, counter);
    crypto_shorthash_siphashx24(out, message, sizeof message, key);
}

static uint64_t key_hash(const uint8_t *key)
{
    uint64_t words[2], secret = process_secret();
    memcpy(words, key, sizeof words);
    return mul_fold(words[0] ^ secret, words[1] + secret);
}

static struct secrets *find(const uint8_t *key)
{
    uint64_t hash = key_hash(key);
    for (struct lookup_entry *at = NULL; (at = lookup_next(&by_key, hash, at));) {
        struct secrets *s = PART_OF(at, struct secrets, entry);
        if (sodium_memcmp(s->key, key, TAMIS_KEY_LEN) == 0)
            return s;
    }
    return NULL;
}

static struct secrets *make(const uint8_t *key)
{
    struct secrets *s = ready() && lookup_reserve(&by_key, &mem_system) ? slot_take() : NULL;
    if (!s)
        return NULL;
    if (key)
        memcpy(s->key, key, TAMIS_KEY_LEN);
    else
        randombytes_buf(s->key, TAMIS_KEY_LEN);
    for (unsigned i = 0; i < SECRET_LEN / 16; i++)
        key_stream(s->key, PURPOSE_SECRET, i, s->xxh3 + 16 * (size_t)i);
    lookup_add(&by_key, &s->entry, key_hash(s->key));
    return s;
}

struct secrets *secrets_get(const uint8_t *key)
{
    pthread_mutex_lock(&lock);
    struct secrets *s = ready() && key ? find(key) : NULL;
    if (!s)
        s = make(key);
    if (s)
        s->holders++;
    pthread_mutex_unlock(&lock);
    return s;
}

struct secrets *secrets_share(struct secrets *s)
{
    pthread_mutex_lock(&lock);
    if (s)
        s->holders++;
    pthread_mutex_unlock(&lock);
    return s;
}

/* Leaves nothing behind when the library is unloaded. Runs after destructors without a number. */
static __attribute__((destructor(1000))) void unload(void)
{
    pthread_mutex_lock(&lock);
    if (by_key.n == 0) {
        lookup_free(&by_key, &mem_system);
        if (roomy)
            mem_pages_free(roomy, CHUNK_SIZE);
        roomy = NULL;
    }
    pthread_mutex_unlock(&lock);
}

void secrets_release(struct secrets *s)
{
    pthread_mutex_lock(&lock);
    if (s && --s->holders == 0) {
        lookup_remove(&by_key, &s->entry);
        slot_give(s);
    }
    pthread_mutex_unlock(&lock);
}
