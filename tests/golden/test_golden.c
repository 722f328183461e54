/* Golden files: what was written once is read for ever. In good/, NAME.tamis with NAME.txt ("maybe
 * KEY" or "no KEY", as asked when it was made), NAME.old.tamis and NAME.patch that lead to it, and
 * NAME.key where the family key was left out. In bad/, NAME.ERROR.tamis and the error to expect.
 *
 * With TAMIS_GOLDEN_WRITE=FOLDER it writes files that are not there yet, and changes none that are.
 */
#include "harness.h"
#include "histories.h"

#include "base/bytes.h"
#include "format/format.h"
#include "golden.h"

/* ---- reading --------------------------------------------------------------------------------- */

static void check_patch(const char *stem)
{
    char path[GOLDEN_PATH];
    snprintf(path, sizeof path, "%s.patch", stem);
    struct bytes patch = file_bytes(path);
    if (patch.len == 0)
        return;
    snprintf(path, sizeof path, "%s.old.tamis", stem);
    struct bytes older = file_bytes(path);
    snprintf(path, sizeof path, "%s.tamis", stem);
    struct bytes newer = file_bytes(path);
    tamis_filter *f = NULL;
    tamis_reason reason = {0};
    CHECK(tamis_filter_decode(&f, older.data, older.len, NULL, &reason) == TAMIS_OK);
    CHECK_MSG(tamis_filter_apply(f, patch.data, patch.len, &reason) == TAMIS_OK, "%s: %s", stem,
              reason.text);
    struct bytes result = bytes_of(f, 0);
    CHECK_MSG(bytes_equal(&result, &newer), "%s", stem);
    bytes_free(&result), bytes_free(&newer), bytes_free(&older), bytes_free(&patch);
    tamis_filter_free(f);
}

static bool has(const struct golden *of, char *key)
{
    return tamis_filter_has(of->filter, key, strlen(key));
}

static void check_good(const char *stem)
{
    size_t len = strlen(stem);
    if (len > 4 && strcmp(stem + len - 4, ".old") == 0)
        return;
    golden_is_read(stem, TAMIS_KIND_FILTER, has, 40);
    check_patch(stem);
}

TEST(good_files_are_read)
{
    CHECK(golden_each("good", check_good) >= 40);
}

static void check_bad(const char *stem)
{
    golden_is_refused(stem, TAMIS_KIND_FILTER);
}

TEST(bad_files_are_refused)
{
    CHECK(golden_each("bad", check_bad) >= 20);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void write_answer(struct bytes *text, const tamis_filter *f, unsigned i, bool hidden)
{
    char key[24], line[64];
    size_t len = history_key(i, key);
    tamis_digest digest = tamis_filter_digest(f, key, len);
    uint8_t bits;
    bool has = tamis_filter_has(f, key, len);
    filter_bits_have(&f->set, &digest, 1, &bits);
    if (hidden && !(bits && !has))
        return;
    int n = snprintf(line, sizeof line, "%s %.*s\n", has ? "maybe" : "no", (int)len, key);
    bytes_write(text, line, (size_t)n);
}

/* Some keys, some strangers, and all that the bits have and a pending removal hides. */
static void write_answers(const char *name, const tamis_filter *f)
{
    struct bytes text = {0};
    for (unsigned i = 0; i < 60; i++)
        write_answer(&text, f, i < 40 ? i * 17 % HISTORY_KEYS : HISTORY_KEYS + i, false);
    for (unsigned i = 0; i < HISTORY_KEYS; i++)
        write_answer(&text, f, i, true);
    golden_write(name, ".txt", text.data, text.len);
    bytes_free(&text);
}

static void write_filter(const char *name, const tamis_filter *f, unsigned flags)
{
    struct bytes bytes = bytes_of(f, flags);
    golden_write(name, ".tamis", bytes.data, bytes.len);
    bytes_free(&bytes);
}

/* A history worth keeping: small, neither empty nor full, and with removals pending if it can. */
static uint64_t find_seed(unsigned kind)
{
    uint64_t best = 1;
    double score = -1;
    for (uint64_t seed = 1; seed < 300; seed++) {
        struct history h;
        tamis_filter_facts info;
        tamis_filter *f = history_new(&h, kind, seed);
        history_steps(&h, f, 38);
        tamis_filter_info(f, &info);
        uint64_t size = tamis_filter_encoded_size(f, 0);
        double here = info.fill > 0.2 && info.fill < 0.8 ? 1 : 0;
        here += (info.pending > 4 ? 4 : (double)info.pending) + (info.vectors > 1 ? 1 : 0);
        if (size < 9000 && info.items > 20 && here > score) {
            score = here;
            best = seed;
        }
        tamis_filter_free(f);
    }
    return best;
}

static void write_kind(unsigned kind)
{
    struct history h;
    char name[64], part[80];
    snprintf(name, sizeof name, "good/%s", history_kind(kind));
    for (char *p = name; *p; p++)
        *p = *p == ' ' ? '-' : *p;
    tamis_filter *f = history_new(&h, kind, find_seed(kind)), *older;
    history_steps(&h, f, 32);
    CHECK(tamis_filter_clone(&older, f) == TAMIS_OK);
    history_steps(&h, f, 6);
    write_filter(name, f, 0);
    write_answers(name, f);
    if (kind % 2) {
        struct bytes patch = {0};
        CHECK(tamis_filter_diff(older, f, 0, bytes_write, &patch, NULL) == TAMIS_OK);
        snprintf(part, sizeof part, "%s.old", name);
        write_filter(part, older, 0);
        golden_write(name, ".patch", patch.data, patch.len);
        bytes_free(&patch);
    }
    if (kind % 9 == 1) {
        snprintf(part, sizeof part, "%s-no-key", name);
        write_filter(part, f, TAMIS_SAVE_NO_KEY);
        write_answers(part, f);
        golden_write(part, ".key", h.key, TAMIS_KEY_LEN);
    }
    if (kind % 6 == 5) {
        tamis_filter *copy;
        struct bytes bytes = bytes_of(f, TAMIS_SAVE_BITS_ONLY);
        snprintf(part, sizeof part, "%s-bits-only", name);
        write_filter(part, f, TAMIS_SAVE_BITS_ONLY);
        CHECK(tamis_filter_decode(&copy, bytes.data, bytes.len, NULL, NULL) == TAMIS_OK);
        write_answers(part, copy);
        tamis_filter_free(copy);
        bytes_free(&bytes);
    }
    tamis_filter_free(older);
    tamis_filter_free(f);
}

/* A unique filter with pending removals and large counters, if one is found. */
static struct bytes rich_filter(void)
{
    for (uint64_t seed = 1;; seed++) {
        struct history h;
        tamis_filter *f = history_new(&h, 17, seed);
        history_steps(&h, f, 40);
        struct bytes bytes = bytes_of(f, 0);
        tamis_filter_free(f);
        if (get_u64(bytes.data + 352) >= 2 && get_u64(bytes.data + 384 + 80) >= 2)
            return bytes;
        bytes_free(&bytes);
    }
}

static void write_all_bad(void)
{
    struct bytes good = rich_filter();
    uint64_t header = get_u64(good.data + 24), table = BODY_AT + get_u64(good.data + 32);
    golden_write("bad/empty.EFORMAT", ".tamis", "", 0);
    golden_write("bad/text.EFORMAT", ".tamis", "no filter\n", 10);
    golden_write("bad/cut-in-magic.EFORMAT", ".tamis", good.data, 6);
    golden_write("bad/cut-in-header.EFORMAT", ".tamis", good.data, 300);
    golden_write("bad/cut-in-payload.EFORMAT", ".tamis", good.data, good.len - 64);
    golden_write_bad(&good, "bad", "flipped-header.ECHECKSUM", 200, 1, false);
    golden_write_bad(&good, "bad", "flipped-payload.ECHECKSUM", header + 1, 1, false);
    golden_write_bad(&good, "bad", "flipped-checksum.ECHECKSUM", header - 1, 1, false);
    golden_write_bad(&good, "bad", "flipped-page-checksum.ECHECKSUM", good.len - 64, 1, false);
    golden_write_bad(&good, "bad", "version-3.EVERSION", 8, 1, true);
    golden_write_bad(&good, "bad", "version-1.EVERSION", 8, 255, true);
    golden_write_bad(&good, "bad", "version-0.EFORMAT", 8, 254, true);
    golden_write_bad(&good, "bad", "index.EKIND", 12, 1, true);
    golden_write_bad(&good, "bad", "unknown-kind.EFORMAT", 12, 90, true);
    golden_write_bad(&good, "bad", "flags.EFORMAT", 44, 2, true);
    golden_write_bad(&good, "bad", "reserved.EFORMAT", 55, 1, true);
    golden_write_bad(&good, "bad", "hash.EFORMAT", 64, 7, true);
    golden_write_bad(&good, "bad", "other-key.EFORMAT", 75, 1, true);
    golden_write_bad(&good, "bad", "growth.EFORMAT", 128, 9, true);
    golden_write_bad(&good, "bad", "deletable-window.EFORMAT", 128, 2, true);
    golden_write_bad(&good, "bad", "stored.EFORMAT", 296, 1, true);
    golden_write_bad(&good, "bad", "huge-vectors.EFORMAT", 334, 8, true);
    golden_write_bad(&good, "bad", "many-pending.EFORMAT", 352 + 3, 8, true);
    golden_write_bad(&good, "bad", "huge-units.EFORMAT", 384 + 8 + 4, 100, true);
    golden_write_bad(&good, "bad", "probes.EFORMAT", 384 + 16, 100, true);
    golden_write_bad(&good, "bad", "ones.EFORMAT", golden_section(&good, SECTION_ONES), 1, true);
    golden_write_bad(&good, "bad", "ids.EFORMAT", 384 + 3, 1, true);
    golden_write_bad(&good, "bad", "section-offset.EFORMAT", table + 8, 64, true);
    golden_write_bad(&good, "bad", "section-length.EFORMAT", table + 16, 1, true);
    golden_write_bad(&good, "bad", "counters.EFORMAT", golden_section(&good, SECTION_COUNTERS), 16,
                     true);
    golden_write_bad(&good, "bad", "large-counters.EFORMAT", golden_section(&good, SECTION_ESCAPES),
                     1, true);
    uint64_t first = golden_section(&good, SECTION_PENDING) + 7; /* the top byte of its digest */
    golden_write_bad(&good, "bad", "removals-order.EFORMAT", first,
                     (uint8_t)(255 - good.data[first]), true);
    golden_write_bad(&good, "bad", "removals-hide.EFORMAT",
                     golden_section(&good, SECTION_PENDING) + 24, 1, true);
    golden_write_bad(&good, "bad", "candidates.EFORMAT",
                     golden_section(&good, SECTION_CANDIDATES) + 1, 1, true);
    golden_write_bad(&good, "bad", "gap.EFORMAT", golden_section(&good, SECTION_ONES) - 1, 1, true);
    golden_write_bad(&good, "bad", "gap-of-checksums.EFORMAT", good.len - 1, 1, true);
    uint8_t nan[8] = {0, 0, 0, 0, 0, 0, 0xf8, 0x7f};
    struct bytes bad = {0};
    bytes_write(&bad, good.data, good.len);
    memcpy(bad.data + 144, nan, sizeof nan);
    bytes_repair(&bad);
    golden_write("bad/nan.EFORMAT", ".tamis", bad.data, bad.len);
    bytes_free(&bad), bytes_free(&good);
}

static void write_more_bad(void)
{
    struct history h;
    tamis_filter *f = history_new(&h, 1, 7);
    history_steps(&h, f, 10);
    write_filter("bad/no-key.EKEY", f, TAMIS_SAVE_NO_KEY);
    struct bytes patch = {0};
    CHECK(tamis_filter_diff(f, f, 0, bytes_write, &patch, NULL) == TAMIS_OK);
    golden_write("bad/patch.EKIND", ".tamis", patch.data, patch.len);
    bytes_free(&patch);
    tamis_filter_free(f);
}

TEST(new_files_are_written_when_asked_for)
{
    if (!golden_folder())
        return;
    for (unsigned kind = 0; kind < HISTORY_KINDS; kind++)
        write_kind(kind);
    write_all_bad();
    write_more_bad();
}

HARNESS_MAIN
