/* See damage.h. */
#include "damage.h"

#include "base/bytes.h"
#include "fault.h"
#include "forge.h"
#include "format/pieces.h"
#include "harness.h"

static tamis_error decode(struct set **out, const uint8_t *data, size_t len, enum kind kind,
                          const tamis_open_options *o, tamis_reason *reason)
{
    tamis_filter *f = NULL;
    tamis_records *x = NULL;
    tamis_error e = kind == KIND_FILTER ? tamis_filter_decode(&f, data, len, o, reason)
                                        : tamis_records_decode(&x, data, len, o, reason);
    *out = f ? filter_set(f) : records_set(x);
    return e;
}

static struct capped capped;

/* With memory for no more than such bytes may need. */
static tamis_error try_decode(struct set **out, const uint8_t *data, size_t len, enum kind kind,
                              const tamis_open_options *o, tamis_reason *reason)
{
    tamis_open_options with = *o;
    capped_init(&capped, len);
    with.allocator = &capped.allocator;
    *reason = (tamis_reason){.offset = UINT64_MAX};
    uint8_t *copy = malloc(len + 1); /* of this very size: a read too far is seen by sanitizers */
    memcpy(copy, data, len);
    tamis_error e = decode(out, copy, len, kind, &with, reason);
    free(copy);
    CHECK_MSG(capped.refused == 0, "asked for more than %zu bytes", capped.cap);
    if (e != TAMIS_OK)
        CHECK(capped.live == 0 && *out == NULL);
    return e;
}

void damage_cut(const struct bytes *bytes, enum kind kind, const tamis_open_options *o)
{
    struct bytes longer = {0};
    struct set *out;
    tamis_reason reason;
    for (size_t len = 0; len < bytes->len; len += len < 1024 || harness_long() ? 1 : 37) {
        tamis_error e = try_decode(&out, bytes->data, len, kind, o, &reason);
        CHECK_MSG(e == TAMIS_EFORMAT, "%zu of %zu: %s", len, bytes->len, tamis_error_name(e));
        CHECK(reason.text[0] && reason.offset <= bytes->len);
    }
    CHECK(bytes_write(&longer, bytes->data, bytes->len) == 0 && bytes_write(&longer, "", 1) == 0);
    CHECK(try_decode(&out, longer.data, longer.len, kind, o, &reason) == TAMIS_EFORMAT);
    bytes_free(&longer);
}

void damage_flip(struct bytes *bytes, enum kind kind, const tamis_open_options *o)
{
    struct set *out;
    tamis_reason reason;
    size_t step = harness_long() ? 1 : 1 + bytes->len * 8 / (harness_slow() ? 1500 : 12000);
    for (size_t bit = 0; bit < 8 * bytes->len;
         bit += bit < (harness_slow() ? 1024 : 4096) ? 1 : step) {
        bytes->data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        tamis_error e = try_decode(&out, bytes->data, bytes->len, kind, o, &reason);
        CHECK_MSG(e == TAMIS_EFORMAT || e == TAMIS_ECHECKSUM || e == TAMIS_EVERSION, "bit %zu: %s",
                  bit, tamis_error_name(e));
        CHECK_MSG(reason.text[0] && reason.offset <= bytes->len, "bit %zu: %s", bit, reason.text);
        bytes->data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    CHECK(try_decode(&out, bytes->data, bytes->len, kind, o, &reason) == TAMIS_OK);
    set_free(out);
}

struct set *damage_forged(const struct bytes *forged, enum kind kind, const tamis_open_options *o)
{
    struct set *out;
    tamis_reason reason;
    tamis_error e = try_decode(&out, forged->data, forged->len, kind, o, &reason);
    if (e != TAMIS_OK) {
        CHECK_MSG(e >= TAMIS_EFORMAT || e == TAMIS_EKIND, "%s: %s", tamis_error_name(e),
                  reason.text);
        CHECK(reason.offset <= forged->len);
        return NULL;
    }
    struct bytes again = {0};
    size_t at = 0;
    CHECK(set_encode(out, 0, bytes_write, &again) == TAMIS_OK);
    while (at < again.len && at < forged->len && forged->data[at] == again.data[at])
        at++;
    CHECK_MSG(bytes_equal(forged, &again), "saved otherwise from byte %zu on", at);
    bytes_free(&again);
    return out;
}

struct set *damage_keyless(struct set *set, const tamis_open_options *o)
{
    struct bytes bytes = {0}, again = {0};
    enum kind kind = set_kind(set) == TAMIS_KIND_FILTER ? KIND_FILTER : KIND_INDEX;
    uint8_t wrong[TAMIS_KEY_LEN] = {1}, got[TAMIS_KEY_LEN];
    tamis_open_options other = *o;
    tamis_reason reason = {0};
    struct set *loaded, *none;
    other.key = wrong;
    CHECK(set_encode(set, TAMIS_SAVE_NO_KEY, bytes_write, &bytes) == TAMIS_OK);
    for (size_t i = 0; i + TAMIS_KEY_LEN <= bytes.len; i++)
        if (memcmp(bytes.data + i, o->key, TAMIS_KEY_LEN) == 0)
            CHECK_MSG(false, "the key is in the bytes, at %zu", i);
    CHECK(decode(&none, bytes.data, bytes.len, kind, NULL, &reason) == TAMIS_EKEY);
    CHECK(strstr(reason.text, "without its family key") != NULL);
    CHECK(decode(&none, bytes.data, bytes.len, kind, &other, &reason) == TAMIS_EKEY);
    CHECK(strstr(reason.text, "not the key of this") != NULL);
    if (CHECK(decode(&loaded, bytes.data, bytes.len, kind, o, NULL) == TAMIS_OK)) {
        CHECK(set_encode(loaded, 0, bytes_write, &again) == TAMIS_OK); /* and stays without */
        CHECK(bytes_equal(&bytes, &again));
        CHECK(set_equal(set, loaded));
        CHECK(set_key(set, got) && !set_key(loaded, got));
    }
    bytes.len = 0;
    CHECK(set_encode(set, 0, bytes_write, &bytes) == TAMIS_OK);
    CHECK(decode(&none, bytes.data, bytes.len, kind, &other, NULL) == TAMIS_EKEY);
    bytes_free(&again);
    bytes_free(&bytes);
    return loaded;
}

void damage_writes(const struct set *set)
{
    struct failing all = {0};
    CHECK(set_encode(set, 0, failing_write, &all) == TAMIS_OK);
    for (unsigned i = 1; i <= all.calls; i++) {
        struct failing w = {0, i};
        CHECK(set_encode(set, 0, failing_write, &w) == TAMIS_EIO);
        CHECK(w.calls == i);
    }
    CHECK(set_encode(set, 64, failing_write, &all) == TAMIS_EARG);
}

void damage_memory(const struct bytes *bytes, enum kind kind, const tamis_open_options *o)
{
    tamis_open_options with = *o;
    struct set *set = NULL;
    struct fault fault;
    tamis_error e = TAMIS_ENOMEM;
    fault_init(&fault);
    with.allocator = &fault.allocator;
    for (uint64_t n = 1; e == TAMIS_ENOMEM && n < 5000; n++) {
        fault_arm(&fault, n, false);
        e = decode(&set, bytes->data, bytes->len, kind, &with, NULL);
        if (e != TAMIS_OK)
            CHECK(e == TAMIS_ENOMEM && fault_clean(&fault));
    }
    if (!CHECK(e == TAMIS_OK))
        return;
    bool reached = true;
    for (uint64_t n = 1; reached && n < 100; n++) {
        struct bytes again = {0};
        uint64_t failed = fault.failed;
        fault_arm(&fault, n, true);
        e = set_encode(set, 0, bytes_write, &again);
        reached = fault.failed != failed;
        CHECK(reached ? e == TAMIS_ENOMEM : bytes_equal(bytes, &again));
        bytes_free(&again);
    }
    fault_arm(&fault, 0, false);
    set_free(set);
    CHECK(fault_clean(&fault));
}
