/*
 * Pieces after they were made: those of past days are merged and closed, those without inputs or older than
 * --keep are dropped, and the rest is sent, the manifest last. See fleet_publish.c.
 */
#define _GNU_SOURCE
#include "fleet_publisher.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

#define PART_BYTES ((size_t)8 << 20) /* of a piece, per message */

/* ---- days that are over ---------------------------------------------------------------------- */

static bool is_live(const struct piece *piece, int64_t day)
{
    return !piece->gone && piece->kind == PIECE_LIVE && piece->day == day;
}

/* Merges the live pieces of a day, if their digests exist and fit in memory. */
static bool close_day(struct publisher *p, const tamis_schema *schema, int64_t day)
{
    struct making m = {0};
    uint64_t weight = 0;
    size_t n = 0, known = p->m.n;
    for (size_t i = 0; i < known; i++) {
        bool live = is_live(&p->m.piece[i], day);
        weight += live ? p->m.piece[i].weight : 0;
        n += live;
    }
    bool unite = n > 1 && weight <= DIGESTS_MOST;
    bool good = !unite || making_begin(p, &m, schema, PIECE_CLOSED, day);
    for (size_t i = 0; good && unite && i < known; i++) {
        const struct piece *piece = &p->m.piece[i];
        if (!is_live(piece, day))
            continue;
        unite = piece_take_up(p, piece, m.gather);
        piece_cover(&m.piece, piece->first, piece->last);
    }
    good = good && (!unite || making_end(p, &m));
    making_free(&m);
    for (size_t i = 0; good && i < known; i++) {
        struct piece *piece = &p->m.piece[i];
        if (is_live(piece, day)) {
            piece->gone = unite;
            piece->kind = unite ? piece->kind : PIECE_CLOSED;
        }
    }
    return good;
}

static bool close_days(struct publisher *p, const tamis_schema *schema)
{
    for (size_t i = 0; i < p->m.n; i++) {
        const struct piece *piece = &p->m.piece[i];
        if (!piece->gone && piece->kind == PIECE_LIVE && piece->day < p->today &&
            !close_day(p, schema, piece->day))
            return false;
    }
    return true;
}

/* ---- pieces that are dropped ----------------------------------------------------------------- */

static bool still_there(const struct inputs *inputs, const struct piece *piece)
{
    for (size_t i = 0; i < inputs->n; i++)
        if (inputs->entry[i].id >= piece->first && inputs->entry[i].id <= piece->last)
            return true;
    return false;
}

/* Takes the time range of a piece. False: another schema. */
static bool take_bounds(const struct publisher *p, const struct piece *piece, struct making *m)
{
    char path[4096];
    tamis_catalog *catalog = NULL;
    piece_path(p, piece->slot, "tamis", path);
    bool good = tamis_catalog_open(&catalog, path, NULL, NULL) == TAMIS_OK &&
                tamis_gather_bounds(m->gather, catalog, 0, NULL) == TAMIS_OK;
    tamis_catalog_close(catalog);
    if (good)
        piece_cover(&m->piece, piece->first, piece->last);
    return good;
}

static bool is_old(const struct publisher *p, const struct piece *piece)
{
    return !piece->gone && piece->kind == PIECE_CLOSED && p->how.keep &&
           piece->day <= p->today - (int64_t)p->how.keep;
}

/* Drops pieces whose inputs no longer exist. Those older than --keep become one gap, because the catalog still
   has their records: in that time range the host is in doubt. */
static bool retain(struct publisher *p, const struct inputs *inputs, const tamis_schema *schema)
{
    struct making m = {0};
    bool due = false, good = true;
    size_t known = p->m.n;
    for (size_t i = 0; i < known; i++) {
        struct piece *piece = &p->m.piece[i];
        piece->gone |= !still_there(inputs, piece);
        due |= is_old(p, piece);
    }
    if (!due)
        return true;
    good = making_begin(p, &m, schema, PIECE_GAP, p->today);
    for (size_t i = 0; good && i < known; i++) {
        struct piece *piece = &p->m.piece[i];
        if (!is_old(p, piece) && (piece->gone || piece->kind != PIECE_GAP))
            continue;
        piece->gone = take_bounds(p, piece, &m); /* one of another schema stays */
    }
    if (good && m.piece.first != UINT64_MAX)
        good = making_end(p, &m);
    making_free(&m);
    return good;
}

/* ---- sending --------------------------------------------------------------------------------- */

static bool send_piece(struct publisher *p, struct carrier *c, struct piece *piece)
{
    char path[4096], owner[HOST_MAX + 32];
    struct bytes bytes = {0};
    struct carrier_part *parts = NULL;
    size_t n = 0;
    piece_path(p, piece->slot, "tamis", path);
    snprintf(owner, sizeof owner, "%s/%" PRIu32, p->m.host, piece->slot);
    bool good = file_slurp(path, &bytes) ||
                refuse("%s: %s: run again with --reread", strerror(errno), path);
    parts = good ? calloc(bytes.len / PART_BYTES + 1, sizeof *parts) : NULL;
    good = good && (parts || no_memory(p->folder));
    for (size_t at = 0; good && at < bytes.len; at += PART_BYTES)
        parts[n++] = (struct carrier_part){
            bytes.data + at, bytes.len - at < PART_BYTES ? bytes.len - at : PART_BYTES};
    if (good && !carrier_replace(c, owner, p->m.epoch, parts, n))
        good = refuse("%s: %s: not published; run again", c->error, p->how.url);
    piece->sent = good;
    free(parts);
    free(bytes.data);
    return good;
}

static bool send_manifest(struct publisher *p, struct carrier *c)
{
    struct bytes text = {0};
    bool good = manifest_write(&p->m, false, &p->seal, &text) || no_memory(p->folder);
    const struct carrier_part part = {text.data, text.len};
    if (good && !carrier_replace(c, p->m.host, p->m.epoch, &part, 1))
        good = refuse("%s: %s: not published; run again", c->error, p->how.url);
    free(text.data);
    return good;
}

/* The new manifest is published: removes what only the old one named. */
static void clear_up(struct publisher *p, struct carrier *c)
{
    char path[4096];
    size_t kept = 0;
    slots_forget(c, &p->m); /* if this fails, next time */
    for (size_t i = 0; i < p->m.n; i++) {
        const struct piece *piece = &p->m.piece[i];
        piece_path(p, piece->slot, "digests", path);
        if (piece->gone || piece->kind != PIECE_LIVE)
            unlink(path);
        piece_path(p, piece->slot, "tamis", path);
        if (piece->gone)
            unlink(path);
        else
            p->m.piece[kept++] = *piece;
    }
    p->m.n = kept;
}

static bool send_all(struct publisher *p)
{
    char error[256];
    struct carrier_state state;
    struct carrier *c = carrier_open(p->how.url, error);
    if (!c)
        return refuse("%s: %s", error, p->how.url);
    bool good = carrier_state(c, p->m.host, &state) ||
                refuse("%s: %s: not published; run again", c->error, p->how.url);
    if (good && state.there && state.epoch > p->m.epoch)
        good = refuse("another host now publishes as %s: give this one a name of its own, or "
                      "remove %s to take its place",
                      p->m.host, p->folder);
    bool lost = good && (!state.there || state.epoch != p->m.epoch);
    for (size_t i = 0; good && i < p->m.n; i++) {
        struct piece *piece = &p->m.piece[i];
        if (!piece->gone && (lost || !piece->sent))
            good = send_piece(p, c, piece);
    }
    good = good && send_manifest(p, c);
    if (good)
        clear_up(p, c);
    carrier_close(c);
    return good;
}

/* Lists the inputs that changed today, and how many bytes of them are covered. */
static bool cover_inputs(struct publisher *p, const struct inputs *inputs)
{
    for (size_t i = 0; i < p->m.n_inputs; i++)
        free(p->m.input[i].path);
    p->m.n_inputs = 0;
    for (size_t i = 0; i < inputs->n; i++) {
        const struct entry *e = &inputs->entry[i];
        if (!e->passed && !e->unread && e->file.mtime / 1000000000 >= day_of(p->now) * 86400 &&
            !manifest_cover(&p->m, e->path, e->file.size))
            return no_memory(p->folder);
    }
    return true;
}

bool publisher_send(struct publisher *p, const tamis_schema *schema, const struct inputs *inputs,
                    uint64_t failed)
{
    uint64_t now = clock_real(NULL);
    p->m.version = now > p->m.version ? now : p->m.version + 1;
    p->m.as_of = p->now;
    p->m.failed = failed;
    bool good = publisher_note(p, inputs) && close_days(p, schema) && retain(p, inputs, schema) &&
                cover_inputs(p, inputs) && publisher_state(p);
    bool sent = good && send_all(p);
    return good && publisher_state(p) && sent;
}
