/* See damage.h. */
#include "damage.h"

#include "base/bytes.h"
#include "fault.h"
#include "forge.h"
#include "format/pieces.h"
#include "harness.h"

static struct capped capped;

/* With memory for no more than such bytes may need. */
static tamis_error try_decode(struct set **out, const struct subject *s, const uint8_t *data,
                              size_t len, tamis_reason *reason)
{
    static unsigned turn;
    tamis_open_options with = s->opening;
    capped_init(&capped, len);
    with.key = turn++ % 2 ? with.key : NULL; /* it is in the bytes too */
    with.allocator = &capped.allocator;
    *reason = (tamis_reason){.offset = UINT64_MAX};
    uint8_t *copy = malloc(len + 1); /* of this very size: a read too far is seen by sanitizers */
    memcpy(copy, data, len);
    tamis_error e = set_decode(out, s->kind, &(struct bytes){copy, len, len}, &with, reason);
    free(copy);
    CHECK_MSG(capped.refused == 0, "asked for more than %zu bytes", capped.cap);
    if (e != TAMIS_OK)
        CHECK(capped.live == 0 && *out == NULL);
    return e;
}

void damage_cut(struct subject *s)
{
    const struct bytes *bytes = &s->bytes;
    struct bytes longer = {0};
    struct set *out;
    tamis_reason reason;
    for (size_t len = 0; len < bytes->len; len += len < 1024 || harness_long() ? 1 : 37) {
        tamis_error e = try_decode(&out, s, bytes->data, len, &reason);
        CHECK_MSG(e == TAMIS_EFORMAT, "%zu of %zu: %s", len, bytes->len, tamis_error_name(e));
        CHECK(reason.text[0] && reason.offset <= bytes->len);
    }
    CHECK(bytes_write(&longer, bytes->data, bytes->len) == 0 && bytes_write(&longer, "", 1) == 0);
    CHECK(try_decode(&out, s, longer.data, longer.len, &reason) == TAMIS_EFORMAT);
    bytes_free(&longer);
}

void damage_flip(struct subject *s)
{
    struct bytes *bytes = &s->bytes;
    struct set *out;
    tamis_reason reason;
    size_t step = harness_long() ? 1 : 1 + bytes->len * 8 / (harness_slow() ? 1500 : 12000);
    for (size_t bit = 0; bit < 8 * bytes->len;
         bit += bit < (harness_slow() ? 1024 : 4096) ? 1 : step) {
        bytes->data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        tamis_error e = try_decode(&out, s, bytes->data, bytes->len, &reason);
        CHECK_MSG(e == TAMIS_EFORMAT || e == TAMIS_ECHECKSUM || e == TAMIS_EVERSION, "bit %zu: %s",
                  bit, tamis_error_name(e));
        CHECK_MSG(reason.text[0] && reason.offset <= bytes->len, "bit %zu: %s", bit, reason.text);
        bytes->data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    CHECK(try_decode(&out, s, bytes->data, bytes->len, &reason) == TAMIS_OK);
    set_free(out);
}

struct set *damage_forged(const struct subject *s, const struct bytes *forged)
{
    struct set *out;
    tamis_reason reason;
    tamis_error e = try_decode(&out, s, forged->data, forged->len, &reason);
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

void damage_keyless(struct subject *s)
{
    struct bytes bytes = bytes_of_set(s->set, TAMIS_SAVE_NO_KEY);
    uint8_t wrong[TAMIS_KEY_LEN] = {1}, got[TAMIS_KEY_LEN];
    tamis_open_options other = s->opening;
    tamis_reason reason = {0};
    struct set *loaded, *none;
    other.key = wrong;
    CHECK(bytes.len == set_encoded_size(s->set, TAMIS_SAVE_NO_KEY));
    for (size_t i = 0; i + TAMIS_KEY_LEN <= bytes.len; i++)
        if (memcmp(bytes.data + i, s->opening.key, TAMIS_KEY_LEN) == 0)
            CHECK_MSG(false, "the key is in the bytes, at %zu", i);
    CHECK(set_decode(&none, s->kind, &bytes, NULL, &reason) == TAMIS_EKEY);
    CHECK(strstr(reason.text, "without its family key") != NULL);
    CHECK(set_decode(&none, s->kind, &bytes, &other, &reason) == TAMIS_EKEY);
    CHECK(strstr(reason.text, "not the key of this") != NULL);
    if (CHECK(set_decode(&loaded, s->kind, &bytes, &s->opening, NULL) == TAMIS_OK)) {
        struct bytes again = bytes_of_set(loaded, 0); /* and stays without */
        CHECK(bytes_equal(&bytes, &again));
        CHECK(set_equal(s->set, loaded) && subject_compare(s, s->set, loaded) == 0);
        CHECK(set_key(s->set, got) && !set_key(loaded, got));
        bytes_free(&again);
        set_free(loaded);
    }
    CHECK(set_decode(&none, s->kind, &s->bytes, &other, NULL) == TAMIS_EKEY);
    bytes_free(&bytes);
}

void damage_writes(struct subject *s)
{
    struct failing all = {0};
    CHECK(set_encode(s->set, 0, failing_write, &all) == TAMIS_OK);
    for (unsigned i = 1; i <= all.calls; i++) {
        struct failing w = {0, i};
        CHECK(set_encode(s->set, 0, failing_write, &w) == TAMIS_EIO);
        CHECK(w.calls == i);
    }
    CHECK(set_encode(s->set, 64, failing_write, &all) == TAMIS_EARG);
}

void damage_memory(struct subject *s)
{
    tamis_open_options with = s->opening;
    struct set *set = NULL;
    struct fault fault;
    tamis_error e = TAMIS_ENOMEM;
    fault_init(&fault);
    with.allocator = &fault.allocator;
    for (uint64_t n = 1; e == TAMIS_ENOMEM && n < 5000; n++) {
        fault_arm(&fault, n, false);
        e = set_decode(&set, s->kind, &s->bytes, &with, NULL);
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
        CHECK(reached ? e == TAMIS_ENOMEM : bytes_equal(&s->bytes, &again));
        bytes_free(&again);
    }
    fault_arm(&fault, 0, false);
    set_free(set);
    CHECK(fault_clean(&fault));
}
