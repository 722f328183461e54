/* See pieces.h. */
#include "pieces.h"

#include "api/api.h"
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
    if (CHECK(bytes_to_file(bytes, "forged.tamis"))) {
        tamis_kind file = kind == KIND_FILTER ? TAMIS_KIND_FILTER : TAMIS_KIND_RECORDS;
        refused(set_file_open(&set, file, "forged.tamis", NULL, &reason), &reason, text, "mapped");
        refused(set_file_load(&set, file, "forged.tamis", NULL, &reason), &reason, text, "loaded");
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
