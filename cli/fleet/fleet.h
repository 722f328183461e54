/*
 * Find across a fleet. Each host indexes its own logs and publishes summaries of them. From the summaries,
 * any host knows which hosts and days may have a record, and queries only those.
 *
 *     piece      a catalog of one segment (tamis/catalog.h, joinable): the distinct values of the records
 *                indexed on one day, or in a part of it, and their lowest and highest time. Immutable.
 *     manifest   the current pieces of a host, and the time up to which they cover its inputs (watermark)
 *
 * Both are sent as snapshots of owners of a carrier: owner HOST has the manifest, owner HOST/SLOT a piece.
 * Pieces are sent before the manifest, and a slot that a published manifest names is never overwritten. So
 * a reader that fetches a manifest and then its pieces gets all of them, or finds by a checksum that the
 * manifest has been replaced.
 *
 * Live pieces, those of today, are merged like the digits of a binary counter: a new piece absorbs earlier
 * ones that are no larger. With one update per minute there are about ten per day, and a value is sent at
 * most log2(updates) times. When the day is over they are merged into one closed piece, which is sent once.
 */
#ifndef TAMIS_FLEET_H
#define TAMIS_FLEET_H

#include "carrier/carrier.h"
#include "logs/find_target.h"
#include "ui/cli.h"
#include "ui/text_lines.h"

#define HOST_MAX  200 /* bytes of a name */
#define PIECE_TAG 512

/* [A-Za-z0-9][A-Za-z0-9._-]*: the name is part of file names and of the command of find --fleet. */
bool host_valid(const char *name);

enum piece_kind {
    PIECE_LIVE,   /* of today: will be merged with others */
    PIECE_CLOSED, /* of a day that is over */
    PIECE_GAP     /* replaces dropped pieces: only the time range of their records is known */
};

struct piece {
    uint32_t slot;
    uint64_t serial; /* counts the pieces made in this epoch */
    enum piece_kind kind;
    int64_t day; /* of indexing, in days since 1970 */
    uint64_t bytes, records;
    uint64_t sum[2]; /* of its bytes */
    /* Not published: */
    bool sent;
    bool gone;            /* listed by the published manifest, but not by the next one */
    uint64_t weight;      /* approximate bytes of its digests, while they are kept */
    uint64_t first, last; /* lowest and highest id of the catalog entries it covers */
};

/* How far an input is covered. */
struct covered {
    char *path;
    uint64_t bytes;
};

struct manifest {
    char host[HOST_MAX + 1];
    uint64_t epoch; /* when the host first published, in nanoseconds */
    /* When this manifest was made, in nanoseconds, or the previous version plus one if that is later: it
       rises even if the clock is set back or the state is restored from a backup. */
    uint64_t version;
    char *catalog;   /* its path on the host */
    int64_t as_of;   /* watermark in seconds: everything written to the inputs before is covered */
    uint64_t failed; /* inputs that could not be read */
    struct piece *piece;
    size_t n, room;
    struct covered *input; /* those that changed today */
    size_t n_inputs, inputs_room;
};

void manifest_free(struct manifest *m);
bool manifest_add(struct manifest *m, const struct piece *piece); /* false: no memory */
bool manifest_cover(struct manifest *m, const char *path, uint64_t bytes);
/* A secret key of the fleet. The MAC of a manifest also covers its pieces, through their checksums. */
struct seal {
    bool given;
    uint8_t key[TAMIS_KEY_LEN];
};

/* From the file of --seal; without a path there is no seal. Complains. */
bool seal_read(struct seal *seal, const char *path);
/* `own`: with what is not published. False: no memory. */
bool manifest_write(const struct manifest *m, bool own, const struct seal *seal, struct bytes *out);
/* False if a line is not as manifest_write makes it, or a seal is given and does not match. */
bool manifest_read(struct manifest *m, const void *data, size_t len, bool own,
                   const struct seal *seal);

/* ---- checksums, days, tags ---- */

/* BLAKE2b: nobody can make other bytes with the same checksum. */
void sum_of(const void *data, size_t len, uint64_t sum[2]);
int64_t day_of(int64_t seconds);
void day_write(int64_t day, char out[16]);        /* 2026-11-16 */
bool day_read(const char *text, int64_t *day);    /* false: no such day */
void moment_write(int64_t seconds, char out[24]); /* 2026-11-16T11:30:00Z */
/* The tag of a piece's segment. */
int tag_write(char out[PIECE_TAG], const char *host, uint64_t epoch, const struct piece *piece);

/* ---- publishing: fleet_publish.c, fleet_send.c, fleet_slots.c ---- */

struct fleet_publishing {
    const char *url, *host;
    const char *day;  /* to count it to, or NULL: today */
    uint64_t keep;    /* days; 0: as long as inputs indexed then exist */
    int64_t now;      /* in seconds, taken before the inputs are examined */
    const char *seal; /* key file, or NULL */
};

struct publisher;

/* Loads what has been published of a catalog. *all: the catalog, which is identified by its note, has more than
   that and must be read again. NULL after complaining. */
struct publisher *publisher_open(const struct fleet_publishing *how, const char *catalog,
                                 const void *note, size_t note_len, bool *all);
/* The key of hosts that already publish there, for a new catalog: catalogs with the same key and attributes are
   queried as one. False: there are none, or they cannot be reached. */
bool publisher_key(const struct publisher *p, uint8_t key[TAMIS_KEY_LEN], tamis_hash *hash);
/* Call before publisher_take, with the schema of the new catalog. `anew`: all inputs are read again. */
bool publisher_start(struct publisher *p, const tamis_schema *schema, const struct inputs *inputs,
                     bool anew);
/* Adds the values of a segment, before it is put. Thread-safe. */
tamis_error publisher_take(struct publisher *p, tamis_gather *gather, tamis_reason *reason);
/* A catalog entry that is read in this run. */
void publisher_covers(struct publisher *p, uint64_t id);
/* Saves the new piece; call before the catalog is committed with this note. Complains. */
bool publisher_save(struct publisher *p, const void *note, size_t len);
/* Sends what has not been sent; `failed` inputs could not be read. Complains. */
bool publisher_send(struct publisher *p, const tamis_schema *schema, const struct inputs *inputs,
                    uint64_t failed);
void publisher_close(struct publisher *p);

/* Fetches a whole snapshot: 1, 0 if there is none, -1 on failure. */
int fleet_fetch(struct carrier *c, const char *owner, struct bytes *out);
/* Retires the slots of the host that the manifest does not name. */
bool slots_forget(struct carrier *c, const struct manifest *m);
/* Retires the pieces of an owner, if it is a host. False: see c->error. */
bool fleet_forget(struct carrier *c, const char *owner);

/* ---- copies: fleet_copies.c, fleet_sync.c ---- */

struct known_host {
    char name[HOST_MAX + 1];
    char *catalog;
    uint64_t version; /* highest seen */
    int64_t as_of;
    uint64_t failed;
    char *doubt; /* the reason why it may have any record, or NULL */
    bool hit;    /* it is a candidate for the current question */
    bool listed; /* during a sync: still listed, or forgotten */
};

/*
 * A folder of copies:
 *
 *     status        the hosts, and which of the following files are in use
 *     N.tamis       catalogs whose segments are the pieces of all hosts with the same schema and time zone
 *
 * Files are never changed and numbers never reused: a new status names new files. So a reader that finds all
 * files of a status has a consistent state.
 */
struct copies {
    char folder[4096 - 64];
    uint64_t next; /* number of the next file */
    uint64_t *file;
    size_t n_files, files_room;
    struct known_host *host; /* by name */
    size_t n, room;
    struct seal seal; /* that manifests must have */
};

bool is_address(const char *operand); /* rather than a folder */
/* Sets the folder, by default one in the cache for this address. Complains. */
bool copies_folder(struct copies *c, const char *url, const char *folder);
/* 1, 0: there are none; -1 after complaining. */
int copies_read(struct copies *c);
tamis_lock *
copies_lock(const struct copies *c);       /* held while it is changed; NULL after complaining */
bool copies_write(const struct copies *c); /* complains */
void copies_path(const struct copies *c, uint64_t file, char out[4096]);
struct known_host *copies_host(const struct copies *c, const char *name); /* NULL: none */
const struct known_host *copies_oldest(const struct copies *c); /* by watermark; NULL: no hosts */
struct known_host *copies_add(struct copies *c, const char *name); /* NULL: no memory */
bool copies_add_file(struct copies *c, uint64_t number);           /* false: no memory */
void copies_free(struct copies *c);
/* Parses the tag of a segment; false: it is not the tag of a piece. */
bool tag_read(const void *tag, size_t len, char host[HOST_MAX + 1], uint64_t *epoch,
              struct piece *piece);
/* Updates the folder and reads it. Complains. */
bool copies_sync(struct copies *c, const char *url);
bool copies_in(const char *folder); /* is it a folder of copies? */
/* Removes these hosts: how many there were, -1 after complaining. */
int copies_forget(const char *folder, char **host, size_t n);

/* ---- asking: fleet_ask.c ---- */

struct fleet_question {
    struct target_question asked;
    bool fresh; /* records after the watermarks count: all hosts are in doubt */
    bool rates; /* compute them too, which counts all bits */
};

/* A host and a day that may have such a record. */
struct candidate {
    const struct known_host *host;
    int64_t day;
};

struct answer {
    struct candidate *candidate; /* by host and day */
    size_t n, room;
    size_t in_doubt;          /* hosts */
    uint64_t pieces;          /* asked */
    struct note_field *known; /* fields that some host has */
    size_t n_known;
    char *unseen; /* a field in the question that no host is known to have, or NULL */
    double host_day,
        fleet; /* rates of false candidates: per value and host-day, per combination and fleet */
};

/* Also sets `hit` and `doubt` of the hosts. Complains. */
bool fleet_ask(struct copies *c, const struct fleet_question *q, struct answer *a);
void answer_free(struct answer *a);
/* Opens an address, which updates its copies, or a folder of copies. Complains. */
bool fleet_open(struct copies *c, const char *operand, const char *folder, const char *seal);

#endif
