/*
 * index --publish: the values read by an update become a piece, and pieces that have not been sent are sent.
 * The folder CATALOG.fleet beside the catalog contains
 *
 *     state          the manifest, and which pieces were sent to which address
 *     SLOT.tamis     the pieces
 *     SLOT.digests   the digests of live pieces, for merging
 *
 * A piece is saved before the catalog is committed, and the manifest is sent after that. So summaries cover at
 * least what the catalog has, whenever the process is killed: what was saved and not committed is read again,
 * and what was committed and not sent is sent by the next update. `state` identifies the catalog by the
 * checksum of its note, before and after the update. If neither matches, the catalog was updated without
 * --publish, and everything is read again.
 */
#define _GNU_SOURCE
#include "fleet_publisher.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

/* False candidates: per host-day, one in a thousand for a value; for a combination of values that occur, but never
   together, 1 % over 75,000 host-days. */
#define SUMMARY_FPP      0.001
#define SUMMARY_SEGMENTS 6554 /* 0.875 * 0.001 / 6554 for each: see catalog_share */

void piece_path(const struct publisher *p, uint32_t slot, const char *what, char out[4096])
{
    snprintf(out, 4096, "%s/%" PRIu32 ".%s", p->folder, slot, what);
}

static uint64_t sum_text(const void *data, size_t len)
{
    uint64_t sum[2];
    sum_of(data, len, sum);
    return sum[0];
}

/* ---- state ----------------------------------------------------------------------------------- */

bool publisher_state(const struct publisher *p)
{
    struct bytes text = {0}, all = {0};
    char path[4096], head[128];
    int len = snprintf(head, sizeof head, "state %" PRIx64 " %" PRIx64 " %" PRIu64 " %" PRIx64 "\n",
                       p->stamp[0], p->stamp[1], p->serial, p->url);
    bool good = manifest_write(&p->m, true, NULL, &text);
    bytes_put(&all, head, (size_t)len);
    bytes_put(&all, text.data, text.len);
    snprintf(path, sizeof path, "%s/state", p->folder);
    good = (good && !all.failed) || no_memory(p->folder);
    good = good && file_put(path, all.data, all.len, PUT_PRIVATE);
    free(text.data);
    free(all.data);
    return good;
}

/* 1, 0 if there is none or it is damaged, -1 after complaining. */
static int state_read(struct publisher *p)
{
    char path[4096], first[160] = {0};
    struct bytes text = {0};
    snprintf(path, sizeof path, "%s/state", p->folder);
    if (!file_slurp(path, &text)) {
        int error = errno;
        free(text.data);
        if (error == ENOENT)
            return 0;
        return complain("%s: %s: check its permissions", strerror(error), path), -1;
    }
    const uint8_t *end = text.len ? memchr(text.data, '\n', text.len) : NULL;
    size_t len = end ? (size_t)(end + 1 - text.data) : 0;
    memcpy(first, text.data ? text.data : (const uint8_t *)"", len < sizeof first ? len : 0);
    bool good = sscanf(first, "state %" SCNx64 " %" SCNx64 " %" SCNu64 " %" SCNx64, &p->stamp[0],
                       &p->stamp[1], &p->serial, &p->url) == 4 &&
                manifest_read(&p->m, text.data + len, text.len - len, true, NULL);
    free(text.data);
    if (!good)
        remark("damaged: %s: reading and publishing everything again", path);
    return good;
}

/* A new epoch: any other host that publishes under this name will stop. */
static bool begin_anew(struct publisher *p, const char *catalog)
{
    char *full = realpath(catalog, NULL); /* fails if it does not exist yet */
    if (!full && catalog[0] != '/') {
        char here[4096];
        if (!getcwd(here, sizeof here) || asprintf(&full, "%s/%s", here, catalog) < 0)
            full = NULL;
    } else if (!full) {
        full = strdup(catalog);
    }
    manifest_free(&p->m);
    p->m.epoch = clock_real(NULL);
    p->m.catalog = full;
    p->serial = 1;
    p->url = 0;
    snprintf(p->m.host, sizeof p->m.host, "%s", p->how.host);
    return full || no_memory(p->folder);
}

struct publisher *publisher_open(const struct fleet_publishing *how, const char *catalog,
                                 const void *note, size_t note_len, bool *all)
{
    struct publisher *p = calloc(1, sizeof *p);
    if (!p)
        return no_memory(catalog), NULL;
    p->how = *how;
    p->now = how->now;
    p->today = day_of(p->now);
    pthread_mutex_init(&p->lock, NULL);
    uint64_t stamp = sum_text(note, note_len);
    int there = -1;
    if (strlen(catalog) + 64 >= sizeof p->folder)
        complain("the name is too long: %s: give a shorter one", catalog);
    else if (!seal_read(&p->seal, how->seal))
        ; /* complained */
    else if (how->day && !day_read(how->day, &p->today))
        complain("not a day: --day %s: write 2026-11-16", how->day);
    else {
        snprintf(p->folder, sizeof p->folder, "%s.fleet", catalog);
        if (mkdir(p->folder, 0700) != 0 && errno != EEXIST)
            complain("%s: %s: check the permissions of its folder", strerror(errno), p->folder);
        else
            there = state_read(p);
    }
    bool ours = there > 0 && strcmp(p->m.host, how->host) == 0;
    *all = !ours || !note || (stamp != p->stamp[0] && stamp != p->stamp[1]);
    if (there < 0 || (!ours && !begin_anew(p, catalog))) {
        publisher_close(p);
        return NULL;
    }
    uint64_t url = sum_text(how->url, strlen(how->url));
    for (size_t i = 0; i < p->m.n; i++)
        p->m.piece[i].sent &= url == p->url;
    p->url = url;
    p->stamp[0] = p->stamp[1] = stamp;
    return p;
}

/* ---- the key of the fleet -------------------------------------------------------------------- */

#define HOSTS_TRIED 8

struct neighbours {
    char name[HOSTS_TRIED][HOST_MAX + 1];
    size_t n;
};

static void note_neighbour(void *context, const char *owner, bool forgotten)
{
    struct neighbours *found = context;
    if (!forgotten && host_valid(owner) && found->n < HOSTS_TRIED)
        memcpy(found->name[found->n++], owner, strlen(owner) + 1);
}

/* The key of the first piece of a host. */
static bool key_of(const struct publisher *p, struct carrier *c, const char *host,
                   uint8_t key[TAMIS_KEY_LEN], tamis_hash *hash)
{
    char owner[HOST_MAX + 32], path[4096];
    struct bytes bytes = {0};
    struct manifest m = {0};
    tamis_catalog *catalog = NULL;
    tamis_catalog_facts facts;
    bool good = fleet_fetch(c, host, &bytes) == 1 &&
                manifest_read(&m, bytes.data, bytes.len, false, &p->seal) && m.n;
    snprintf(owner, sizeof owner, "%s/%" PRIu32, host, m.n ? m.piece[0].slot : 0);
    snprintf(path, sizeof path, "%s/neighbour.tamis", p->folder);
    good = good && fleet_fetch(c, owner, &bytes) == 1 &&
           file_put(path, bytes.data, bytes.len, PUT_PRIVATE) &&
           tamis_catalog_open(&catalog, path, NULL, NULL) == TAMIS_OK &&
           tamis_catalog_key(catalog, key);
    if (good) {
        tamis_catalog_info(catalog, &facts);
        *hash = facts.hash;
    }
    tamis_catalog_close(catalog);
    unlink(path);
    manifest_free(&m);
    free(bytes.data);
    return good;
}

bool publisher_key(const struct publisher *p, uint8_t key[TAMIS_KEY_LEN], tamis_hash *hash)
{
    char error[256];
    struct neighbours found = {0};
    struct carrier *c = carrier_open(p->how.url, error);
    bool good = false;
    if (c && carrier_owners(c, note_neighbour, &found))
        for (size_t i = 0; i < found.n && !good; i++)
            good = key_of(p, c, found.name[i], key, hash);
    carrier_close(c);
    return good;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/* The lowest slot that neither this nor the published manifest uses. */
static uint32_t free_slot(const struct publisher *p)
{
    for (uint32_t slot = 1;; slot++) {
        bool used = slot == p->fresh.piece.slot;
        for (size_t i = 0; i < p->m.n && !used; i++)
            used = p->m.piece[i].slot == slot;
        if (!used)
            return slot;
    }
}

bool making_begin(struct publisher *p, struct making *m, const tamis_schema *schema,
                  enum piece_kind kind, int64_t day)
{
    char path[4096];
    tamis_reason reason = {0};
    const tamis_catalog_options options = {
        .like = schema, .joinable = true, .fpp = SUMMARY_FPP, .segments = SUMMARY_SEGMENTS};
    *m = (struct making){.piece = {.slot = free_slot(p),
                                   .serial = p->serial++,
                                   .kind = kind,
                                   .day = day,
                                   .first = UINT64_MAX}};
    piece_path(p, m->piece.slot, "tamis", path);
    tamis_error e = tamis_catalog_create(&m->writer, path, &options, &reason);
    if (e == TAMIS_OK)
        e = tamis_gather_new(&m->gather, tamis_catalog_writer_schema(m->writer));
    return succeeded(e, &reason, path);
}

void making_free(struct making *m)
{
    tamis_gather_free(m->gather);
    tamis_catalog_abandon(m->writer);
    *m = (struct making){0};
}

static int write_digests(void *path, const void *data, size_t len)
{
    return file_put(path, data, len, PUT_PRIVATE) ? 0 : -1;
}

bool making_end(struct publisher *p, struct making *m)
{
    char path[4096], digests[4096], tag[PIECE_TAG];
    struct bytes bytes = {0};
    tamis_reason reason = {0};
    struct piece *piece = &m->piece;
    piece->records = tamis_gather_records(m->gather);
    piece->weight = tamis_gather_bytes(m->gather);
    piece_path(p, piece->slot, "tamis", path);
    piece_path(p, piece->slot, "digests", digests);
    tamis_error e = piece->kind == PIECE_LIVE
                        ? tamis_gather_encode(m->gather, write_digests, digests)
                        : TAMIS_OK;
    if (e == TAMIS_EIO)
        return false; /* already reported */
    int len = tag_write(tag, p->m.host, p->m.epoch, piece);
    if (e == TAMIS_OK)
        e = tamis_catalog_put(m->writer, m->gather, tag, (size_t)len, &reason);
    if (e == TAMIS_OK)
        e = tamis_catalog_commit(m->writer, p->note.data, p->note.len, &reason);
    if (!succeeded(e, &reason, path))
        return false;
    bool good = file_slurp(path, &bytes) || refuse("%s: %s: try again", strerror(errno), path);
    piece->bytes = bytes.len;
    sum_of(bytes.data, bytes.len, piece->sum);
    free(bytes.data);
    return good && (manifest_add(&p->m, piece) || no_memory(p->folder));
}

bool piece_take_up(const struct publisher *p, const struct piece *piece, tamis_gather *gather)
{
    char path[4096];
    struct bytes bytes = {0};
    piece_path(p, piece->slot, "digests", path);
    bool good = file_slurp(path, &bytes) &&
                tamis_gather_decode(gather, bytes.data, bytes.len, NULL) == TAMIS_OK;
    free(bytes.data);
    return good;
}

void piece_cover(struct piece *piece, uint64_t first, uint64_t last)
{
    piece->first = first < piece->first ? first : piece->first;
    piece->last = last > piece->last ? last : piece->last;
}

bool publisher_note(struct publisher *p, const struct inputs *inputs)
{
    enum read_format format = inputs->dialect.format;
    for (size_t i = 0; i < inputs->n; i++)
        if (!inputs->entry[i].passed && read_names_fields(inputs->entry[i].format))
            format = inputs->entry[i]
                         .format; /* records may have fields that the index run did not see */
    const struct inputs slim = {
        .dialect = {.format = format, .time = inputs->dialect.time, .zone = inputs->dialect.zone},
        .segment = 1,
        .field = inputs->field,
        .n_fields = inputs->n_fields};
    return inputs_encode(&slim, &p->note) || no_memory(p->folder);
}

/* Merges earlier live pieces that are no larger into it, newest first. */
static void absorb(struct publisher *p, struct making *m)
{
    for (size_t i = p->m.n; i-- > 0;) {
        struct piece *old = &p->m.piece[i];
        uint64_t here = tamis_gather_bytes(m->gather);
        if (old->gone || old->kind != PIECE_LIVE || old->day != m->piece.day)
            continue;
        if (old->weight > here || old->weight + here > DIGESTS_MOST ||
            !piece_take_up(p, old, m->gather))
            return;
        piece_cover(&m->piece, old->first, old->last);
        old->gone = true;
    }
}

bool publisher_start(struct publisher *p, const tamis_schema *schema, const struct inputs *inputs,
                     bool anew)
{
    for (uint32_t i = 0; i < tamis_schema_attributes(schema); i++)
        p->without |= (uint64_t)(tamis_schema_type(schema, i) == TAMIS_WORDS) << i;
    for (size_t i = 0; anew && i < p->m.n; i++)
        p->m.piece[i].gone = true;
    p->schema = schema;
    return publisher_note(p, inputs) && making_begin(p, &p->fresh, schema, PIECE_LIVE, p->today);
}

void publisher_covers(struct publisher *p, uint64_t id)
{
    piece_cover(&p->fresh.piece, id, id);
}

/* A piece that is too large to merge is closed at once. */
static tamis_error fresh_full(struct publisher *p)
{
    struct making full = p->fresh;
    uint64_t first = full.piece.first, last = full.piece.last;
    full.piece.kind = PIECE_CLOSED;
    bool good = making_end(p, &full);
    making_free(&full);
    p->fresh = (struct making){0};
    good = good && making_begin(p, &p->fresh, p->schema, PIECE_LIVE, p->today);
    if (good)
        piece_cover(&p->fresh.piece, first, last);
    return good ? TAMIS_OK : TAMIS_EIO;
}

tamis_error publisher_take(struct publisher *p, tamis_gather *gather, tamis_reason *reason)
{
    pthread_mutex_lock(&p->lock);
    tamis_error e = tamis_gather_merge(p->fresh.gather, gather, p->without, reason);
    if (e == TAMIS_OK && tamis_gather_bytes(p->fresh.gather) > DIGESTS_MOST)
        e = fresh_full(p);
    pthread_mutex_unlock(&p->lock);
    return e;
}

bool publisher_save(struct publisher *p, const void *note, size_t len)
{
    bool good = true;
    if (tamis_gather_records(p->fresh.gather)) {
        absorb(p, &p->fresh);
        good = making_end(p, &p->fresh);
    }
    making_free(&p->fresh);
    p->stamp[1] = sum_text(note, len);
    return good && publisher_state(p);
}

void publisher_close(struct publisher *p)
{
    if (!p)
        return;
    making_free(&p->fresh);
    manifest_free(&p->m);
    free(p->note.data);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
