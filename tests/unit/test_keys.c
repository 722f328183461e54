/* Family keys in memory: what is given back to the allocator has neither the key nor the secret made
 * from it, whatever was done with the structure.
 */
#define _GNU_SOURCE /* memmem */

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
    memcpy(secret, family.secret, sizeof secret);
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
        CHECK(tamis_filter_merge(other, f, 0) == TAMIS_OK);
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
    CHECK(tamis_directory_put(d, "me", &(tamis_digest){1, 2}, 1) == TAMIS_OK);
    CHECK(tamis_directory_expect(d, "you", NULL) == TAMIS_OK);
    CHECK(tamis_directory_drop(d, "me") == TAMIS_OK);
    CHECK(tamis_directory_put(d, "me", &(tamis_digest){1, 2}, 1) == TAMIS_OK);
    tamis_directory_free(d);
    CHECK_MSG(told == 0, "directories");
    CHECK(tamis_catalog_create(&w, "f", &co, NULL) == TAMIS_OK);
    CHECK(tamis_catalog_commit(w, "", 0, NULL) == TAMIS_OK);
    tamis_catalog_abandon(w);
    CHECK(tamis_catalog_update(&w, "f", &opening, NULL) == TAMIS_OK);
    CHECK(tamis_catalog_commit(w, "", 0, NULL) == TAMIS_OK);
    tamis_catalog_abandon(w);
    CHECK(tamis_catalog_open(&c, "f", &opening, NULL) == TAMIS_OK);
    tamis_catalog_close(c);
    CHECK_MSG(told == 0, "catalogs");
    unlink("f");
}

HARNESS_MAIN
