/* See pieces.h. */
#include "pieces.h"

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
