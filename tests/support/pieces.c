/* See pieces.h. */
#include "pieces.h"

#include "forge.h"
#include "harness.h"

uint64_t pieces_draw(uint64_t *rng, uint64_t n)
{
    *rng = *rng * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*rng >> 33) % n;
}

tamis_error pieces_pull(struct set *set, struct bytes *out, size_t room, uint64_t *rng,
                        void (*during)(struct set *))
{
    struct pieces_out *o;
    uint8_t *piece = malloc(room);
    tamis_error e = pieces_out_begin(&o, set, 0);
    if (e != TAMIS_OK || !piece) {
        free(piece);
        return e;
    }
    uint64_t total = pieces_out_size(o);
    while (e == TAMIS_OK && out->len < total) {
        size_t len, again;
        if (during)
            during(set);
        e = pieces_out_read(o, set, out->len, piece, room, &len);
        if (e == TAMIS_OK && len && pieces_draw(rng, 3) == 0) {
            uint8_t *second = malloc(room);
            CHECK(pieces_out_read(o, set, out->len, second, room, &again) == TAMIS_OK);
            CHECK(again >= len && memcmp(piece, second, len) == 0);
            free(second);
        }
        if (e == TAMIS_OK)
            CHECK(bytes_write(out, piece, len) == 0);
    }
    if (e == TAMIS_OK) {
        size_t len;
        CHECK(pieces_out_read(o, set, total, piece, room, &len) == TAMIS_OK && len == 0);
        CHECK(pieces_out_read(o, set, total + 1, piece, room, &len) == TAMIS_EARG);
    }
    pieces_out_end(o);
    free(piece);
    return e;
}

tamis_error pieces_push(struct set **out, const struct bytes *bytes, size_t most, uint64_t *rng,
                        const tamis_open_options *options, tamis_reason *reason)
{
    struct pieces_in *in = pieces_in_begin(bytes->len, bytes->len, options);
    tamis_error e = in ? TAMIS_OK : TAMIS_ENOMEM;
    size_t at = 0;
    *out = NULL;
    while (e == TAMIS_OK && at < bytes->len) {
        size_t some = 1 + (size_t)pieces_draw(rng, most);
        some = some < bytes->len - at ? some : bytes->len - at;
        e = pieces_in_add(in, bytes->data + at, some, reason);
        at += some;
        if (e == TAMIS_OK)
            CHECK(pieces_in_have(in) == at);
        if (e == TAMIS_OK && pieces_draw(rng, 40) == 0) {
            struct bytes again = {0}, first = {bytes->data, at, at};
            CHECK(pieces_in_encode(in, bytes_write, &again) == TAMIS_OK);
            CHECK(bytes_equal(&again, &first));
            bytes_free(&again);
        }
    }
    if (e == TAMIS_OK)
        e = pieces_in_end(in, out, reason);
    pieces_in_free(in);
    return e;
}

static struct bytes bytes_of_set(const struct set *set, unsigned flags)
{
    struct bytes bytes = {0};
    CHECK(set_encode(set, flags, bytes_write, &bytes) == TAMIS_OK);
    return bytes;
}

struct set *pieces_round(struct set *set, const struct bytes *bytes, bool small,
                         const tamis_open_options *options, uint64_t *rng)
{
    struct bytes pieces = {0};
    struct set *made;
    tamis_reason reason = {0};
    CHECK(pieces_pull(set, &pieces, small ? 512 : 1 << 16, rng, NULL) == TAMIS_OK);
    CHECK(bytes_equal(bytes, &pieces));
    tamis_error e = pieces_push(&made, bytes, small ? 50 : 5000, rng, options, &reason);
    if (CHECK_MSG(e == TAMIS_OK && made, "%s", reason.text)) {
        struct bytes again = bytes_of_set(made, 0);
        CHECK(set_kind(made) == set_kind(set) && bytes_equal(bytes, &again));
        bytes_free(&again);
    }
    bytes_free(&pieces);
    return made;
}

void pieces_keyless(struct set *set, const tamis_open_options *options, uint64_t *rng)
{
    struct bytes bytes = bytes_of_set(set, TAMIS_SAVE_NO_KEY);
    struct set *made;
    CHECK(pieces_push(&made, &bytes, 200, rng, NULL, NULL) == TAMIS_EKEY && !made);
    CHECK(pieces_push(&made, &bytes, 200, rng, options, NULL) == TAMIS_OK);
    CHECK(made && set_equal(made, set));
    set_free(made);
    bytes_free(&bytes);
}

bool pieces_as_decoder(const struct bytes *bytes, enum kind kind, const tamis_open_options *options,
                       uint64_t *rng)
{
    struct set *whole = NULL, *made;
    tamis_reason reason = {0};
    tamis_error want = set_read(&whole, kind, bytes->data, bytes->len, 0, options, NULL);
    tamis_error e = pieces_push(&made, bytes, 3000, rng, options, &reason);
    CHECK_MSG((e == TAMIS_OK) == (want == TAMIS_OK), "%s, not %s: %s", tamis_error_name(e),
              tamis_error_name(want), reason.text);
    CHECK(e == TAMIS_OK || reason.text[0] != 0);
    bool in = e == TAMIS_OK && want == TAMIS_OK;
    if (in)
        CHECK(set_equal(whole, made));
    set_free(want == TAMIS_OK ? whole : NULL);
    set_free(made);
    return in;
}

unsigned pieces_forged(const struct bytes *good, enum kind kind, const tamis_open_options *options,
                       uint64_t *rng, unsigned n)
{
    struct bytes forged = {0};
    unsigned let_in = 0;
    for (unsigned i = 0; i < n; i++) {
        bytes_forge(&forged, good, rng);
        if (i % 4 == 0 && forged.len)
            forged.data[pieces_draw(rng, forged.len)] ^= (uint8_t)(1u << pieces_draw(rng, 8));
        let_in += pieces_as_decoder(&forged, kind, options, rng);
    }
    bytes_free(&forged);
    return let_in;
}

struct set *pieces_failing(const struct bytes *bytes, struct fault *fault,
                           const tamis_open_options *options, uint64_t *rng)
{
    tamis_open_options o = *options;
    struct set *made = NULL;
    tamis_error e = TAMIS_ENOMEM;
    o.allocator = &fault->allocator;
    for (uint64_t n = 1; e == TAMIS_ENOMEM && n < 5000; n++) {
        fault_arm(fault, n, n % 2);
        e = pieces_push(&made, bytes, 1000, rng, &o, NULL);
        if (e != TAMIS_OK)
            CHECK(e == TAMIS_ENOMEM && fault_clean(fault));
    }
    CHECK(e == TAMIS_OK);
    size_t blocks = fault->blocks;
    e = TAMIS_ENOMEM;
    for (uint64_t n = 1; made && e == TAMIS_ENOMEM && n < 100; n++) {
        struct bytes again = {0};
        fault_arm(fault, n, n % 2);
        e = pieces_pull(made, &again, 1 << 16, rng, NULL);
        CHECK(e == TAMIS_OK ? bytes_equal(bytes, &again) : e == TAMIS_ENOMEM);
        CHECK(fault->blocks == blocks);
        bytes_free(&again);
    }
    CHECK(e == TAMIS_OK);
    fault_arm(fault, 0, false);
    return made;
}

void pieces_moment(struct set *set, void (*add)(struct set *), uint64_t *rng)
{
    struct bytes before = bytes_of_set(set, 0), pieces = {0}, again = {0};
    CHECK(pieces_keep(set));
    CHECK(pieces_pull(set, &pieces, 2000, rng, add) == TAMIS_OK);
    CHECK(bytes_equal(&before, &pieces));
    struct bytes whole = bytes_of_set(set, 0); /* not of the moment: the bytes of now */
    pieces_keep_end(set);
    struct bytes now = bytes_of_set(set, 0);
    CHECK(bytes_equal(&whole, &now) && !bytes_equal(&before, &now));
    CHECK(pieces_pull(set, &again, 2000, rng, NULL) == TAMIS_OK && bytes_equal(&now, &again));
    bytes_free(&before);
    bytes_free(&pieces);
    bytes_free(&whole);
    bytes_free(&now);
    bytes_free(&again);
}

static void refused(tamis_error e, const tamis_reason *reason, const char *text, const char *how)
{
    CHECK_MSG(e == TAMIS_EFORMAT && strstr(reason->text, text), "%s, %s: %s: %s", text, how,
              tamis_error_name(e), reason->text);
}

void refused_everywhere(const struct bytes *bytes, enum kind kind, const char *text)
{
    uint64_t rng = harness_seed();
    tamis_reason reason = {0};
    struct set *set;
    refused(set_verify(kind, bytes->data, bytes->len, &reason), &reason, text, "verified");
    refused(set_read(NULL, kind, bytes->data, bytes->len, 0, NULL, &reason), &reason, text, "read");
    refused(pieces_push(&set, bytes, 700, &rng, NULL, &reason), &reason, text, "in pieces");
    if (kind == KIND_FILTER && CHECK(bytes_to_file(bytes, "forged.tamis"))) {
        tamis_filter *f;
        refused(tamis_filter_open(&f, "forged.tamis", NULL, &reason), &reason, text, "mapped");
        refused(tamis_filter_load(&f, "forged.tamis", NULL, &reason), &reason, text, "loaded");
        remove("forged.tamis");
    }
}

void refused_with(const struct bytes *good, enum kind kind, struct section s, uint64_t at,
                  uint64_t value, size_t len, const char *text)
{
    struct bytes bad = {0};
    bytes_write(&bad, good->data, good->len);
    if (CHECK_MSG(at + len <= s.len, "%s: no such place", text))
        memcpy(bad.data + s.offset + at, &value, len);
    bytes_repair(&bad);
    refused_everywhere(&bad, kind, text);
    bytes_free(&bad);
}
