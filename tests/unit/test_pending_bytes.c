/* What pending removals that come as bytes take in memory: nothing to watch in a mapped file, whose
 * counters do not fall; and of a patch no more than its size can mean.
 */
#include "harness.h"
#include "histories.h"

#include <unistd.h>

#include "fault.h"
#include "set/set.h"
#include "tamis/records.h"

enum { KEYS = 3000 };

/* Two filters with the same keys side by side: each removal could belong to either. */
static tamis_filter *doubled(void)
{
    tamis_filter *f, *same;
    CHECK(tamis_filter_new(&f, &(tamis_options){.deletable = true, .fpp = 1e-9}, NULL) == TAMIS_OK);
    for (uint64_t i = 0; i < KEYS; i++)
        CHECK(tamis_filter_add(f, &i, sizeof i, NULL) == TAMIS_OK);
    CHECK(tamis_filter_clone(&same, f) == TAMIS_OK);
    CHECK(tamis_filter_merge(f, same, TAMIS_MERGE_CONCAT | TAMIS_MERGE_RESTATE, NULL) == TAMIS_OK);
    tamis_filter_free(same);
    for (uint64_t i = 0; i < KEYS; i++)
        CHECK(tamis_filter_remove(f, &i, sizeof i, NULL) == TAMIS_OK);
    return f;
}

TEST(an_opened_filter_watches_nothing)
{
    const char *path = "pending.tamis";
    struct fault fault;
    tamis_filter *f = doubled(), *opened;
    tamis_filter_facts before, after;
    tamis_filter_brief(f, &before);
    CHECK(before.pending == KEYS);
    CHECK(tamis_filter_save(f, path, 0, NULL) == TAMIS_OK);
    fault_init(&fault);
    tamis_open_options options = {.allocator = &fault.allocator};
    CHECK(tamis_filter_open(&opened, path, &options, NULL) == TAMIS_OK);
    tamis_filter_brief(opened, &after);
    CHECK(after.pending == KEYS);
    CHECK_MSG(fault.bytes < 300 * KEYS, "%zu bytes for %d removals", fault.bytes, KEYS);
    tamis_filter_free(opened);
    CHECK(fault_clean(&fault));
    tamis_filter_free(f);
    unlink(path);
}

TEST(an_opened_index_watches_nothing)
{
    static const tamis_attribute attributes[] = {{.name = "a"}, {.name = "b"}, {.name = "c"}};
    const char *path = "pending.tamis";
    struct fault fault;
    tamis_records *x, *same;
    tamis_records_facts info;
    for (tamis_verifier v = TAMIS_VERIFIER_TABLE; v <= TAMIS_VERIFIER_FILTER; v++) {
        tamis_records_options o = {
            .attributes = attributes, .n_attributes = 3, .set.deletable = true, .verifier = v};
        CHECK(tamis_records_new(&x, &o, NULL) == TAMIS_OK);
        uint64_t i[3] = {0};
        tamis_key record[3] = {{&i[0], 8}, {&i[1], 8}, {&i[2], 8}};
        for (i[0] = 0; i[0] < KEYS; i[0]++)
            CHECK(tamis_records_add(x, record, NULL) == TAMIS_OK);
        CHECK(tamis_records_clone(&same, x) == TAMIS_OK);
        CHECK(tamis_records_merge(x, same, TAMIS_MERGE_CONCAT | TAMIS_MERGE_RESTATE, NULL) ==
              TAMIS_OK);
        tamis_records_free(same);
        for (i[0] = 0; i[0] < KEYS; i[0]++)
            CHECK(tamis_records_remove(x, record, NULL) == TAMIS_OK);
        CHECK(tamis_records_save(x, path, 0, NULL) == TAMIS_OK);
        tamis_records_free(x);
        fault_init(&fault);
        tamis_open_options options = {.allocator = &fault.allocator};
        CHECK(tamis_records_open(&x, path, &options, NULL) == TAMIS_OK);
        tamis_records_brief(x, &info);
        CHECK(info.set.pending == KEYS);
        CHECK_MSG(fault.bytes < 400 * KEYS, "%zu bytes for %d removals", fault.bytes, KEYS);
        tamis_records_free(x);
        CHECK(fault_clean(&fault));
    }
    unlink(path);
}

/* Twenty removals with two thousand candidates of 64 probes each: some hundred bytes, coded. */
TEST(a_patch_cannot_bring_more_to_watch_than_it_means)
{
    enum { VECTORS = 2000, ENTRIES = 20 };
    static uint32_t ids[VECTORS];
    tamis_options o = {
        .growth = TAMIS_DYNAMIC, .bits = 64, .hashes = 64, .capacity = 1, .deletable = true};
    tamis_filter *older, *newer;
    struct bytes patch = {0}, before, after;
    tamis_reason reason = {0};
    uint64_t rng = harness_seed();
    CHECK(tamis_filter_new(&older, &o, NULL) == TAMIS_OK);
    for (uint64_t i = 0; layers_count(set_layers(&older->set)) < VECTORS; i++)
        CHECK(tamis_filter_add(older, &i, sizeof i, NULL) == TAMIS_OK);
    CHECK(tamis_filter_clone(&newer, older) == TAMIS_OK);
    for (unsigned i = 0; i < VECTORS; i++)
        ids[i] = set_layers(&newer->set)->l[i]->id;
    for (unsigned i = 0; i < ENTRIES; i++) {
        tamis_digest d = {rng_next(&rng), rng_next(&rng)};
        CHECK(pending_remember(&newer->set, &d, 1, ids, VECTORS, false) == TAMIS_OK);
    }
    CHECK(tamis_filter_diff(older, newer, 0, bytes_write, &patch, &reason) == TAMIS_OK);
    CHECK_MSG(patch.len < 4096, "%zu", patch.len);
    before = bytes_of(older, 0);
    CHECK(tamis_filter_apply(older, patch.data, patch.len, &reason) == TAMIS_ELIMIT);
    after = bytes_of(older, 0);
    CHECK(bytes_equal(&before, &after));
    bytes_free(&patch), bytes_free(&before), bytes_free(&after);
    tamis_filter_free(older);
    tamis_filter_free(newer);
}

HARNESS_MAIN
