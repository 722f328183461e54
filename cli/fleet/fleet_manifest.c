/*
 * Manifests: what a host has published, as text.
 *
 *     tamis fleet 1
 *     host NAME EPOCH VERSION AS-OF FAILED
 *     catalog PATH
 *     piece SLOT SERIAL KIND DAY BYTES RECORDS SUM SUM
 *     input BYTES PATH
 *     end SUM SUM
 *     seal MAC
 *
 * Paths are quoted like names of owners. The sums in the `end` line are those of all lines before it.
 * Manifests may be forged by anyone who can write to the carrier, so every number is checked; the seal is
 * for fleets that have a secret key.
 */
#define _GNU_SOURCE
#include "fleet.h"

#include "base/base.h"

#include <ctype.h>
#include <endian.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sets/set_file.h"

#define TITLE     "tamis fleet 1\n"
#define PIECE_MAX 8192 /* per host: 22 years of days */

bool host_valid(const char *name)
{
    size_t len = strlen(name);
    if (len < 1 || len > HOST_MAX || !isalnum((unsigned char)name[0]))
        return false;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)name[i] >= 0x80 ||
            (!isalnum((unsigned char)name[i]) && !strchr("._-", name[i])))
            return false;
    return true;
}

void sum_of(const void *data, size_t len, uint64_t sum[2])
{
    crypto_generichash((uint8_t *)sum, 2 * sizeof *sum, data, len, NULL, 0);
    sum[0] = le64toh(sum[0]);
    sum[1] = le64toh(sum[1]);
}

/* ---- seals ----------------------------------------------------------------------------------- */

#define MAC_LEN  16
#define SEAL_LEN (sizeof "seal \n" - 1 + 2 * MAC_LEN)

bool seal_read(struct seal *seal, const char *path)
{
    seal->given = path != NULL;
    return !path || store_read_key(path, seal->key);
}

/* The seal of a text. The MAC key is derived, because the fleet's key may have other uses. */
static void seal_line(const struct seal *seal, const void *text, size_t len, char out[SEAL_LEN + 1])
{
    static const char purpose[] = "tamis fleet";
    uint8_t made[crypto_generichash_KEYBYTES], mac[MAC_LEN];
    char hex[2 * MAC_LEN + 1];
    crypto_generichash(made, sizeof made, (const uint8_t *)purpose, sizeof purpose, seal->key,
                       sizeof seal->key);
    crypto_generichash(mac, sizeof mac, text, len, made, sizeof made);
    sodium_memzero(made, sizeof made);
    snprintf(out, SEAL_LEN + 1, "seal %s\n", sodium_bin2hex(hex, sizeof hex, mac, sizeof mac));
}

/* Takes the seal off a text; false: a seal is required and does not match. */
static bool unseal(const struct seal *seal, const char *text, size_t *len)
{
    char line[SEAL_LEN + 1];
    bool sealed = *len > SEAL_LEN && text[*len - SEAL_LEN - 1] == '\n' &&
                  memcmp(text + *len - SEAL_LEN, "seal ", 5) == 0;
    *len -= sealed ? SEAL_LEN : 0;
    if (!seal || !seal->given)
        return true;
    seal_line(seal, text, *len, line);
    return sealed && sodium_memcmp(line, text + *len, SEAL_LEN) == 0;
}

/* ---- days and moments ------------------------------------------------------------------------ */

int64_t day_of(int64_t seconds)
{
    return (seconds >= 0 ? seconds : seconds - 86399) / 86400;
}

void day_write(int64_t day, char out[16])
{
    int64_t year, month, date;
    date_of(day, &year, &month, &date);
    snprintf(out, 16, "%04d-%02d-%02d", (int)(year % 10000), (int)month, (int)date);
}

bool day_read(const char *text, int64_t *day)
{
    int year, month, date;
    char again[16];
    if (sscanf(text, "%4d-%2d-%2d", &year, &month, &date) != 3)
        return false;
    *day = days_of(year, month, date);
    day_write(*day, again);
    return strcmp(again, text) == 0 && *day >= 0;
}

void moment_write(int64_t seconds, char out[24])
{
    time_t at = (time_t)seconds;
    struct tm tm = {0};
    if (!gmtime_r(&at, &tm) || !strftime(out, 24, "%Y-%m-%dT%H:%M:%SZ", &tm))
        snprintf(out, 24, "-");
}

int tag_write(char out[PIECE_TAG], const char *host, uint64_t epoch, const struct piece *piece)
{
    return snprintf(out, PIECE_TAG, "%s %" PRIu64 " %" PRIu64 " %" PRId64 "%s", host, epoch,
                    piece->serial, piece->day, piece->kind == PIECE_GAP ? " gap" : "");
}

/* ---- writing --------------------------------------------------------------------------------- */

void manifest_free(struct manifest *m)
{
    for (size_t i = 0; i < m->n_inputs; i++)
        free(m->input[i].path);
    free(m->input);
    free(m->piece);
    free(m->catalog);
    *m = (struct manifest){0};
}

bool manifest_add(struct manifest *m, const struct piece *piece)
{
    return array_add(&m->piece, &m->n, &m->room, piece, sizeof *piece);
}

bool manifest_cover(struct manifest *m, const char *path, uint64_t bytes)
{
    const struct covered input = {strdup(path), bytes};
    if (input.path && array_add(&m->input, &m->n_inputs, &m->inputs_room, &input, sizeof input))
        return true;
    free(input.path);
    return false;
}

bool manifest_write(const struct manifest *m, bool own, const struct seal *seal, struct bytes *out)
{
    char line[SEAL_LEN + 1];
    uint64_t sum[2];
    out->len = 0;
    text_put(out, TITLE "host %s %" PRIu64 " %" PRIu64 " %" PRId64 " %" PRIu64 "\ncatalog", m->host,
             m->epoch, m->version, m->as_of, m->failed);
    text_put_word(out, m->catalog);
    text_put(out, "\n");
    for (size_t i = 0; i < m->n; i++) {
        const struct piece *p = &m->piece[i];
        if (p->gone && !own)
            continue;
        text_put(out,
                 "piece %" PRIu32 " %" PRIu64 " %d %" PRId64 " %" PRIu64 " %" PRIu64 " %" PRIx64
                 " %" PRIx64,
                 p->slot, p->serial, (int)p->kind, p->day, p->bytes, p->records, p->sum[0],
                 p->sum[1]);
        if (own)
            text_put(out, " %d %d %" PRIu64 " %" PRIu64 " %" PRIu64, p->sent, p->gone, p->weight,
                     p->first, p->last);
        text_put(out, "\n");
    }
    for (size_t i = 0; i < m->n_inputs; i++) {
        text_put(out, "input %" PRIu64, m->input[i].bytes);
        text_put_word(out, m->input[i].path);
        text_put(out, "\n");
    }
    sum_of(out->data, out->len, sum);
    text_put(out, "end %" PRIx64 " %" PRIx64 "\n", sum[0], sum[1]);
    if (seal && seal->given && !out->failed) {
        seal_line(seal, out->data, out->len, line);
        bytes_put(out, line, SEAL_LEN);
    }
    return !out->failed;
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool read_piece(struct manifest *m, struct line *l, bool own)
{
    struct piece p = {0};
    p.slot = (uint32_t)text_number(l, 10);
    p.serial = text_number(l, 10);
    uint64_t kind = text_number(l, 10);
    p.kind = (enum piece_kind)kind;
    p.day = text_whole(l);
    p.bytes = text_number(l, 10);
    p.records = text_number(l, 10);
    p.sum[0] = text_number(l, 16);
    p.sum[1] = text_number(l, 16);
    if (own) {
        p.sent = text_number(l, 10) == 1;
        p.gone = text_number(l, 10) == 1;
        p.weight = text_number(l, 10);
        p.first = text_number(l, 10);
        p.last = text_number(l, 10);
    }
    bool good =
        !l->bad && !l->at && kind <= PIECE_GAP && m->n < PIECE_MAX && p.day >= 0 && p.day < 4000000;
    for (size_t i = 0; good && i < m->n; i++)
        good = m->piece[i].serial != p.serial && m->piece[i].slot != p.slot;
    return good && manifest_add(m, &p);
}

struct manifest_lines {
    struct manifest *m;
    bool own;
};

static bool take_line(void *context, const char *what, struct line *l)
{
    const struct manifest_lines *r = context;
    struct manifest *m = r->m;
    if (strcmp(what, "host") == 0 && !m->host[0]) {
        text_copy(l, m->host, sizeof m->host);
        m->epoch = text_number(l, 10);
        m->version = text_number(l, 10);
        m->as_of = text_whole(l);
        m->failed = text_number(l, 10);
        return host_valid(m->host);
    }
    if (strcmp(what, "catalog") == 0 && !m->catalog) {
        m->catalog = text_quoted(l);
        return true;
    }
    if (strcmp(what, "piece") == 0)
        return read_piece(m, l, r->own);
    if (strcmp(what, "input") != 0)
        return false;
    uint64_t bytes = text_number(l, 10);
    char *name = text_quoted(l);
    bool kept = !l->bad && name && manifest_cover(m, name, bytes);
    free(name);
    return kept;
}

/* The length of all lines before a correct `end`, or 0. */
static size_t end_of(const char *text, size_t len)
{
    uint64_t sum[2];
    char end[64];
    const char *last = len > 1 ? memrchr(text, '\n', len - 1) : NULL;
    size_t before = last ? (size_t)(last + 1 - text) : 0;
    sum_of(text, before, sum);
    int n = snprintf(end, sizeof end, "end %" PRIx64 " %" PRIx64 "\n", sum[0], sum[1]);
    return before && len - before == (size_t)n && memcmp(text + before, end, (size_t)n) == 0
               ? before
               : 0;
}

bool manifest_read(struct manifest *m, const void *data, size_t len, bool own,
                   const struct seal *seal)
{
    struct manifest_lines lines = {m, own};
    bool whole = len < ((size_t)64 << 20) && unseal(seal, data, &len);
    *m = (struct manifest){0};
    struct bytes text = {.data = (uint8_t *)(uintptr_t)data, .len = whole ? end_of(data, len) : 0};
    bool good = text_read(&text, TITLE, NULL, take_line, &lines);
    if (!good || !m->host[0] || !m->catalog) {
        manifest_free(m);
        return false;
    }
    return true;
}
