/* Bytes from anywhere as a catalog, all checksums made right: refused, or something that
   can be asked, with tags that lie within the bytes. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "catalog/catalog_bytes.h"
#include "tamis/catalog.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* The header's checksum, and a catalog's pages, where lengths allow it. */
static void repair(uint8_t *d, size_t len)
{
    if (len < 4096)
        return;
    uint64_t header = get_u64(d + 24), body = get_u64(d + 32), sections = BODY_AT + body;
    put_u64(d + 16, len);
    if (header > len || header < 300 || body > header - 300 || sections + 168 > header)
        return;
    uint64_t sums = get_u64(d + sections + 128), n = get_u64(d + sections + 136);
    uint64_t tops = get_u64(d + sections + 152), m = get_u64(d + sections + 160);
    bool fits = sums >= header && sums <= len && n <= len - sums && tops <= len && m <= len - tops;
    for (uint64_t i = 0; fits && i < n / 8 && header + CATALOG_PAGE * i < sums; i++) {
        uint64_t from = header + CATALOG_PAGE * i;
        put_u64(d + sums + 8 * i, hash_of(d + from, min_u64(CATALOG_PAGE, sums - from)));
    }
    for (uint64_t i = 0; fits && i < m / 8 && CATALOG_PAGE * i < n; i++)
        put_u64(d + tops + 8 * i,
                hash_of(d + sums + CATALOG_PAGE * i, min_u64(CATALOG_PAGE, n - CATALOG_PAGE * i)));
    if (fits)
        put_u64(d + 216, hash_of(d + tops, m));
    put_u64(d + header - 8, hash_of(d, header - 8));
}

static void try_catalog(const uint8_t *data, size_t len)
{
    tamis_catalog *c;
    tamis_open_options o = {.key = (const uint8_t *)"golden catalogs!"};
    catalog_verify((struct mapping){.data = data, .len = len}, NULL);
    if (catalog_from_mapping(&c, (struct mapping){.data = data, .len = len}, &o, NULL) != TAMIS_OK)
        return;
    uint64_t *found = calloc(tamis_catalog_segments(c) / 64 + 1, sizeof *found);
    tamis_digest digest = tamis_schema_digest(tamis_catalog_schema(c), 0, (tamis_key){"ip1", 3});
    tamis_relation_facts facts;
    const tamis_schema *schema = tamis_catalog_schema(c);
    const tamis_range range = {{10, 0}, {20, 0}};
    for (uint32_t i = 0; i < tamis_schema_attributes(schema); i++) {
        bool ordered = tamis_type_ordered(tamis_schema_type(schema, i));
        tamis_condition asked[2] = {{.attribute = i, .keys = &digest, .n = 1},
                                    {.attribute = 0, .keys = &digest, .n = 1, .parts = true}};
        if (ordered)
            asked[1] = (tamis_condition){.attribute = i, .ranges = &range, .n_ranges = 1};
        tamis_catalog_ask(c, asked, 2, found, NULL, NULL);
    }
    for (uint32_t i = 0; tamis_catalog_relation(c, i, &facts); i++)
        ;
    for (uint64_t i = 0; i < tamis_catalog_segments(c); i++) {
        size_t tag_len;
        const uint8_t *tag = tamis_catalog_tag(c, i, &tag_len);
        if (tag_len && (tag < data || tag + tag_len > data + len))
            abort();
    }
    free(found);
    tamis_catalog_close(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    uint8_t *copy = malloc(len + 64), *at = (uint8_t *)round_up((uintptr_t)copy, 64);
    memcpy(at, data, len);
    repair(at, len);
    try_catalog(at, len);
    free(copy);
    return 0;
}
