/* Family keys in memory: what is given back to the allocator has neither the key nor the secret made
 * from it, whatever was done with the structure; nor has any page that a core dump takes, stacks
 * included; and when all structures of a key are gone, so is the key.
 */
#define _GNU_SOURCE /* memmem */

#include <sys/resource.h>
#include <sys/wait.h>

#include "hash/digest.h"
#include "os/file.h"
#include "format/pieces.h"
#include "harness.h"
#include "histories.h"
#include "tamis/catalog.h"
#include "tamis/replica.h"

static const uint8_t key[TAMIS_KEY_LEN] = "0123456789abcdef";
static uint8_t secret[TAMIS_KEY_LEN]; /* its first bytes */
static unsigned told;                 /* frees of memory that had one of them */

static bool has(const uint8_t *memory, size_t len, const uint8_t *what)
{
    return len >= TAMIS_KEY_LEN && memmem(memory, len, what, TAMIS_KEY_LEN) != NULL;
}

static void *watched_alloc(void *context, size_t size)
{
    (void)context;
    return malloc(size);
}

static void watched_free(void *context, void *memory, size_t size)
{
    (void)context;
    if (has(memory, size, key) || has(memory, size, secret)) {
        told++;
        printf("freed %zu bytes with the %s\n", size, has(memory, size, key) ? "key" : "secret");
    }
    free(memory);
}

static const tamis_allocator watched = {watched_alloc, watched_free, NULL, NULL};

static void begin(void)
{
    struct family family;
    CHECK(family_init(&family, &watched, TAMIS_XXH3, key) == TAMIS_OK);
    memcpy(secret, family.secrets->xxh3, sizeof secret);
    family_free(&family, &watched);
    CHECK(!has((uint8_t *)&family, sizeof family, key));
    CHECK(!has((uint8_t *)&family, sizeof family, secret));
    told = 0;
}

TEST(filters)
{
    begin();
    for (tamis_hash hash = TAMIS_XXH3; hash <= TAMIS_H3; hash++) {
        tamis_options o = {.capacity = 100, .hash = hash, .key = key, .allocator = &watched};
        tamis_open_options opening = {.key = key, .allocator = &watched};
        tamis_filter *f = NULL, *other;
        CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK);
        CHECK(tamis_filter_clone(&other, f) == TAMIS_OK);
        CHECK(tamis_filter_merge(other, f, 0, NULL) == TAMIS_OK);
        tamis_filter_free(other);
        struct bytes bytes = bytes_of(f, 0);
        CHECK(tamis_filter_decode(&other, bytes.data, bytes.len, &opening, NULL) == TAMIS_OK);
        tamis_filter_free(other);
        CHECK(tamis_filter_save(f, "f", 0, NULL) == TAMIS_OK);
        CHECK(tamis_filter_load(&other, "f", &opening, NULL) == TAMIS_OK);
        tamis_filter_free(other);
        CHECK(tamis_filter_open(&other, "f", &opening, NULL) == TAMIS_OK);
        tamis_filter_encode(other, TAMIS_SAVE_NO_KEY, bytes_write, &bytes);
        tamis_filter_free(other);
        bytes_free(&bytes);
        tamis_filter_free(f);
        CHECK_MSG(told == 0, "hash %d", (int)hash);
    }
    unlink("f");
}

TEST(indexes_directories_catalogs)
{
    static const tamis_attribute attributes[] = {{.name = "a"}, {.name = "b"}};
    tamis_records_options xo = {
        .attributes = attributes, .n_attributes = 2, .set.key = key, .set.allocator = &watched};
    tamis_directory_options d_o = {.key = key, .allocator = &watched};
    tamis_catalog_options co = {
        .attributes = attributes, .n_attributes = 2, .key = key, .allocator = &watched};
    tamis_open_options opening = {.key = key, .allocator = &watched};
    tamis_records *x = NULL, *other;
    tamis_directory *d = NULL;
    tamis_catalog_writer *w = NULL;
    tamis_catalog *c;
    begin();
    CHECK(tamis_records_new(&x, &xo, NULL) == TAMIS_OK);
    CHECK(tamis_records_clone(&other, x) == TAMIS_OK);
    tamis_records_free(other);
    CHECK(tamis_records_save(x, "f", 0, NULL) == TAMIS_OK);
    CHECK(tamis_records_load(&other, "f", &opening, NULL) == TAMIS_OK);
    tamis_records_free(other);
    tamis_records_free(x);
    CHECK_MSG(told == 0, "indexes");
    CHECK(tamis_directory_new(&d, &d_o, NULL) == TAMIS_OK);
    CHECK(tamis_directory_put(d, "me", &(tamis_digest){1, 2}, 1, NULL) == TAMIS_OK);
    CHECK(tamis_directory_expect(d, "you", NULL, NULL) == TAMIS_OK);
    CHECK(tamis_directory_drop(d, "me", NULL) == TAMIS_OK);
    CHECK(tamis_directory_put(d, "me", &(tamis_digest){1, 2}, 1, NULL) == TAMIS_OK);
    tamis_directory_free(d);
    CHECK_MSG(told == 0, "directories");
    CHECK(tamis_catalog_create(&w, "f", &co, NULL) == TAMIS_OK);
    CHECK(tamis_catalog_commit(w, "", 0, NULL) == TAMIS_OK);
    tamis_catalog_abandon(w);
    CHECK(tamis_catalog_update(&w, "f", &opening, NULL, NULL) == TAMIS_OK);
    CHECK(tamis_catalog_commit(w, "", 0, NULL) == TAMIS_OK);
    tamis_catalog_abandon(w);
    CHECK(tamis_catalog_open(&c, "f", &opening, NULL) == TAMIS_OK);
    tamis_catalog_close(c);
    CHECK_MSG(told == 0, "catalogs");
    unlink("f");
}

/* ---- what a core dump would have ------------------------------------------------------------- */

#ifndef HARNESS_SANITIZED /* their shadow memory is too large to be read, and they keep copies */

/* The test's own copies are in a page that dumps leave out, as those of the library. */
struct own {
    uint8_t key[TAMIS_KEY_LEN], secret[TAMIS_KEY_LEN];
};
static struct own *own;

static void own_begin(void)
{
    struct family family;
    own = own ? own : mem_undumped_new(4096);
    CHECK(family_init(&family, &watched, TAMIS_XXH3, NULL) == TAMIS_OK);
    memcpy(own->key, family.secrets->key, sizeof own->key);
    memcpy(own->secret, family.secrets->xxh3, sizeof own->secret);
    family_free(&family, &watched);
}

static char found[600]; /* the last one */

static unsigned search(const uint8_t *from, const uint8_t *to, const char *where)
{
    unsigned n = 0;
    for (const uint8_t *at = from; at + TAMIS_KEY_LEN <= to; at++) {
        bool is_key = *at == own->key[0] && memcmp(at, own->key, TAMIS_KEY_LEN) == 0;
        bool is_secret = *at == own->secret[0] && memcmp(at, own->secret, TAMIS_KEY_LEN) == 0;
        if (!(is_key || is_secret) || at == own->key || at == own->secret)
            continue;
        snprintf(found, sizeof found, "the %s at %p in %s", is_key ? "key" : "secret",
                 (const void *)at, where);
        n++;
    }
    return n;
}

/* Copies in memory that has pages of the process's own: in what dumps have of it, or in all. */
static unsigned copies(bool dumped)
{
    char line[512], name[512] = "";
    uint8_t *from = NULL, *to = NULL;
    unsigned n = 0, searched = 0;
    FILE *maps = fopen("/proc/self/smaps", "r");
    CHECK(maps);
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long start, end;
        char access[5];
        if (sscanf(line, "%lx-%lx %4s", &start, &end, access) == 3) {
            from = access[0] == 'r' ? (uint8_t *)start : NULL;
            to = (uint8_t *)end;
            memcpy(name, line, sizeof name);
        } else if (sscanf(line, "Anonymous: %lu", &start) == 1 && start == 0) {
            from = NULL;
        } else if (strncmp(line, "VmFlags:", 8) == 0 && from && !(dumped && strstr(line, " dd"))) {
            n += search(from, to, name);
            searched++;
        }
    }
    CHECK_MSG(searched >= 3, "the heap, the stack and what is static");
    if (maps)
        fclose(maps);
    return n;
}

static void filters_live(tamis_hash hash)
{
    tamis_options o = {.capacity = 100, .hash = hash, .key = own->key, .deletable = true};
    tamis_open_options opening = {.key = own->key}, reading = {.read = true};
    tamis_filter *f[6] = {NULL};
    struct bytes none = {0};
    CHECK(tamis_filter_new(&f[0], &o, NULL) == TAMIS_OK);
    for (uint32_t i = 0; i < 1000; i++)
        CHECK(tamis_filter_add(f[0], &i, sizeof i, NULL) == TAMIS_OK);
    CHECK(tamis_filter_clone(&f[1], f[0]) == TAMIS_OK);
    CHECK(tamis_filter_save(f[0], "f", 0, NULL) == TAMIS_OK);
    CHECK(tamis_filter_load(&f[2], "f", NULL, NULL) == TAMIS_OK);
    CHECK(tamis_filter_open(&f[3], "f", NULL, NULL) == TAMIS_OK);
    CHECK(tamis_filter_open(&f[4], "f", &reading, NULL) == TAMIS_OK);
    tamis_filter_encode(f[0], TAMIS_SAVE_NO_KEY, bytes_write, &none);
    CHECK(tamis_filter_decode(&f[5], none.data, none.len, &opening, NULL) == TAMIS_OK);
    CHECK_MSG(copies(true) == 0, "hash %d: %s", (int)hash, found);
    CHECK(copies(false) > 0);
    bytes_free(&none);
    for (int i = 0; i < 6; i++)
        tamis_filter_free(f[i]);
    CHECK_MSG(copies(false) == 0, "hash %d: %s", (int)hash, found);
}

TEST(dumps_of_filters)
{
    own_begin();
    for (tamis_hash hash = TAMIS_XXH3; hash <= TAMIS_H3; hash++)
        filters_live(hash);
    unlink("f");
}

TEST(dumps_of_the_rest)
{
    static const tamis_attribute attributes[] = {{.name = "a"}, {.name = "b"}};
    own_begin();
    tamis_records_options xo = {.attributes = attributes, .n_attributes = 2, .set.key = own->key};
    tamis_directory_options d_o = {.key = own->key};
    tamis_follower_options fo = {.key = own->key};
    tamis_catalog_options co = {.attributes = attributes, .n_attributes = 2, .key = own->key};
    tamis_records *x = NULL, *mapped = NULL;
    tamis_directory *d = NULL;
    tamis_follower *follower = NULL;
    tamis_catalog_writer *w = NULL;
    tamis_catalog *c = NULL;
    CHECK(tamis_records_new(&x, &xo, NULL) == TAMIS_OK);
    CHECK(tamis_records_save(x, "x", 0, NULL) == TAMIS_OK);
    CHECK(tamis_records_open(&mapped, "x", NULL, NULL) == TAMIS_OK);
    CHECK(tamis_directory_new(&d, &d_o, NULL) == TAMIS_OK);
    CHECK(tamis_directory_put(d, "me", &(tamis_digest){1, 2}, 1, NULL) == TAMIS_OK);
    CHECK(tamis_directory_expect(d, "you", NULL, NULL) == TAMIS_OK);
    CHECK(tamis_follower_new(&follower, &fo, NULL) == TAMIS_OK);
    CHECK(tamis_catalog_create(&w, "c", &co, NULL) == TAMIS_OK);
    CHECK(tamis_catalog_commit(w, "", 0, NULL) == TAMIS_OK);
    tamis_catalog_abandon(w);
    CHECK(tamis_catalog_open(&c, "c", NULL, NULL) == TAMIS_OK);
    CHECK(tamis_catalog_update(&w, "c", NULL, NULL, NULL) == TAMIS_OK);
    CHECK_MSG(copies(true) == 0, "%s", found);
    tamis_catalog_abandon(w);
    tamis_catalog_close(c);
    tamis_follower_free(follower);
    tamis_directory_free(d);
    tamis_records_free(mapped);
    tamis_records_free(x);
    CHECK_MSG(copies(false) == 0, "%s", found);
    unlink("x");
    unlink("c");
}

/* Bytes with the key, in pages of the test's own that dumps leave out. */
#define ASIDE ((size_t)1 << 20)
struct aside {
    uint8_t *data;
    size_t len;
};

static int aside_write(void *context, const void *data, size_t len)
{
    struct aside *aside = context;
    CHECK(aside->len + len <= ASIDE);
    memcpy(aside->data + aside->len, data, len);
    aside->len += len;
    return 0;
}

/* A load in pieces waits for its clients with the header, and can be saved meanwhile. */
TEST(dumps_of_a_load_in_pieces)
{
    own_begin();
    tamis_options o = {.capacity = 10000, .key = own->key};
    struct aside whole = {mem_undumped_new(ASIDE), 0}, half = {mem_undumped_new(ASIDE), 0};
    tamis_filter *f = NULL;
    CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK);
    CHECK(tamis_filter_encode(f, 0, aside_write, &whole) == TAMIS_OK);
    tamis_filter_free(f);
    struct pieces_in *in = pieces_in_begin(whole.len, UINT64_MAX, NULL);
    CHECK(in && pieces_in_add(in, whole.data, whole.len / 2, NULL) == TAMIS_OK);
    CHECK(pieces_in_encode(in, aside_write, &half) == TAMIS_OK);
    CHECK(half.len == whole.len / 2 && memcmp(half.data, whole.data, half.len) == 0);
    mem_pages_free(whole.data, ASIDE);
    mem_pages_free(half.data, ASIDE);
    CHECK_MSG(copies(true) == 0, "%s", found);
    pieces_in_free(in);
    CHECK_MSG(copies(false) == 0, "%s", found);
}

#endif

/* ---- slots ----------------------------------------------------------------------------------- */

/* Equal keys share, others do not; what is free is taken again, and chunks are given back. */
TEST(slots)
{
    enum { MANY = 3000 };
    static struct secrets *slot[MANY];
    for (int round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < MANY; i++) {
            uint8_t some[TAMIS_KEY_LEN] = {0};
            memcpy(some, &i, sizeof i);
            slot[i] = secrets_get(some);
            CHECK(slot[i] && memcmp(slot[i]->key, some, sizeof some) == 0);
            CHECK(secrets_get(some) == slot[i] && slot[i]->holders == 2);
            CHECK(i == 0 || slot[i] != slot[i - 1]);
            secrets_release(slot[i]);
        }
        for (uint32_t i = 0, at = 0; i < MANY; i++, at = (at + 1001) % MANY)
            secrets_release(slot[at]);
    }
    struct secrets *one = secrets_get(NULL), *other = secrets_get(NULL);
    CHECK(one && other && memcmp(one->key, other->key, TAMIS_KEY_LEN) != 0);
    CHECK(secrets_share(one) == one && one->holders == 2);
    secrets_release(one);
    secrets_release(one);
    secrets_release(other);
    CHECK(secrets_share(NULL) == NULL);
    secrets_release(NULL);
}

#ifndef HARNESS_SANITIZED
/* Without memory for another chunk, or for the table: no family, and those that are there stay. */
static int families_without_memory(void)
{
    struct rlimit none = {0, 0};
    struct secrets *first = secrets_get(key);
    if (!first || setrlimit(RLIMIT_AS, &none) != 0)
        return 1;
    for (int i = 0; i < 1000; i++)
        if (!secrets_get(NULL)) {
            tamis_options o = {.capacity = 1};
            tamis_filter *f;
            bool refused = tamis_filter_new(&f, &o, NULL) == TAMIS_ENOMEM;
            return refused && secrets_get(key) == first ? 0 : 2;
        }
    return 3;
}

TEST(no_memory)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0)
        _exit(families_without_memory());
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK_MSG(status == 0, "%d", status);
}
#endif

HARNESS_MAIN
