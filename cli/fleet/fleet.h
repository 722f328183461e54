/*
 * Find across a fleet. Each host indexes its own logs and publishes summaries of them; whoever has those
 * knows which hosts and days may have a record, and asks only these.
 *
 *     piece      a catalog of one segment (tamis/catalog.h, joinable): the distinct values of what was
 *                indexed on one day, or of a part of it, with lowest and highest time. Never changes.
 *     manifest   the pieces that are a host's now, and up to when they cover its inputs (the watermark)
 *
 * Pieces and manifest travel as snapshots of owners of a carrier: HOST is the manifest, HOST/SLOT a piece.
 * Pieces go first. A slot of the manifest that others may have is never written to, so whoever
 * reads a manifest and then its pieces has all of them or sees by their sums that the manifest is old.
 *
 * The pieces of today are as many as an update a minute makes of a binary counter: a new one takes up those
 * before it that are no larger than itself, so a day has a handful and a value is sent log2 times at most.
 * When the day is over they become one, sealed: it is sent once, and never again.
 */
#ifndef TAMIS_FLEET_H
#define TAMIS_FLEET_H

#include "carrier/carrier.h"
#include "logs/inputs.h"
#include "ui/cli.h"

#define HOST_MAX  200 /* bytes of a name */
#define PIECE_TAG 512

/* [A-Za-z0-9][A-Za-z0-9._-]*: it stands in names of files and in the command of find --fleet. */
bool host_valid(const char *name);

enum piece_kind {
    PIECE_LIVE,   /* of today: to be united with others */
    PIECE_SEALED, /* of a day that is over */
    PIECE_GAP     /* what was dropped: all that is known is from when to when it is */
};

struct piece {
    uint32_t slot;
    uint64_t serial; /* of all that the host made in this life */
    enum piece_kind kind;
    int64_t day; /* of the indexing, since 1970 */
    uint64_t bytes, records;
    uint64_t sum[2]; /* of its bytes */
    /* of the host alone */
    bool sent;
    bool gone;            /* not part of the next manifest, but still of the one that others have */
    uint64_t weight;      /* about the bytes of its digests, while they are kept */
    uint64_t first, last; /* entries of the catalog that it covers have ids between these */
};

/* How far an input is covered. */
struct covered {
    char *path;
    uint64_t bytes;
};

struct manifest {
    char host[HOST_MAX + 1];
    uint64_t epoch; /* of this life of the host: when its first summary was made, in nanoseconds */
    uint64_t
        version;     /* when this manifest was made, in nanoseconds, or after the last one: it rises
                         though clocks are set back and state comes from a backup */
    char *catalog;   /* there */
    int64_t as_of;   /* seconds: all that was written to its inputs before is covered, */
    uint64_t failed; /* but for so many of them */
    struct piece *piece;
    size_t n, room;
    struct covered *input; /* those that changed today */
    size_t n_inputs, inputs_room;
};

void manifest_free(struct manifest *m);
struct piece *manifest_add(struct manifest *m); /* NULL: no memory */
bool manifest_cover(struct manifest *m, const char *path, uint64_t bytes);
/* A secret of the hosts of a fleet, with which manifests are sealed, and by their sums the pieces. */
struct seal {
    bool given;
    uint8_t key[TAMIS_KEY_LEN];
};

/* From a file of --seal, or none if there is no path. Complains. */
bool seal_read(struct seal *seal, const char *path);
/* As text, line by line; `own`: with what the host alone needs. False: no memory. */
bool manifest_write(const struct manifest *m, bool own, const struct seal *seal, struct bytes *out);
/* From others: every line is one that a host would write, and the seal is right if one is given, or nothing is
   taken. */
bool manifest_read(struct manifest *m, const void *data, size_t len, bool own,
                   const struct seal *seal);

/* ---- small things ---- */

/* BLAKE2b, so that nobody finds other bytes with the same sum. */
void sum_of(const void *data, size_t len, uint64_t sum[2]);
int64_t day_of(int64_t seconds);
void day_write(int64_t day, char out[16]);        /* 2026-11-16 */
bool day_read(const char *text, int64_t *day);    /* false: no such day */
void moment_write(int64_t seconds, char out[24]); /* 2026-11-16T11:30:00Z */
/* The tag of a piece's segment. */
int tag_write(char out[PIECE_TAG], const char *host, uint64_t epoch, const struct piece *piece);
/* Whole files: false, with errno; after complaining. */
bool file_slurp(const char *path, struct bytes *out);
bool file_put(const char *path, const void *data, size_t len);
/* ---- publishing: fleet_publish.c, fleet_send.c, fleet_slots.c ---- */

struct fleet_publishing {
    const char *url, *host;
    const char *day;  /* the day it is counted to, if that is not today */
    uint64_t keep;    /* days; 0: as long as the catalog has inputs that were read then */
    int64_t now;      /* seconds, before the inputs are looked at */
    const char *seal; /* the file of a key, or NULL */
};

struct publisher;

/* What was published of a catalog so far. *all: nothing, or not all that it has, which its note tells: it
   has to be read anew. NULL after complaining. */
struct publisher *publisher_open(const struct fleet_publishing *how, const char *catalog,
                                 const void *note, size_t note_len, bool *all);
/* The key of hosts that publish there already, for a catalog that is read anew: catalogs with one key and the
   same attributes are asked as one. False: there are none, or they cannot be reached. */
bool publisher_key(const struct publisher *p, uint8_t key[TAMIS_KEY_LEN], tamis_hash *hash);
/* Before segments are taken: the schema of the catalog as it will be. `anew`: all of it is read. */
bool publisher_start(struct publisher *p, const tamis_schema *schema, const struct inputs *inputs,
                     bool anew);
/* What a segment has, before it is put. Threads may call it together. */
tamis_error publisher_take(struct publisher *p, tamis_gather *gather, tamis_reason *reason);
/* An entry of the catalog that is read in this run. */
void publisher_covers(struct publisher *p, uint64_t id);
/* What was taken is safe on the disk, before the catalog is committed with this note. Complains. */
bool publisher_save(struct publisher *p, const void *note, size_t len);
/* All that others do not have yet; `failed` inputs could not be read. Complains. */
bool publisher_send(struct publisher *p, const tamis_schema *schema, const struct inputs *inputs,
                    uint64_t failed);
void publisher_close(struct publisher *p);

/* Whole snapshots: 1, 0 if there is none, -1. */
int fleet_fetch(struct carrier *c, const char *owner, struct bytes *out);
/* Slots of the host that the manifest does not name go. */
bool slots_forget(struct carrier *c, const struct manifest *m);
/* The pieces of a host go, if the owner is one. False: c->error. */
bool fleet_forget(struct carrier *c, const char *owner);

/* ---- copies: fleet_copies.c, fleet_sync.c ---- */

struct known_host {
    char name[HOST_MAX + 1];
    char *catalog;
    uint64_t version; /* of the latest manifest that was seen */
    int64_t as_of;
    uint64_t failed;
    char *doubt; /* why it may have anything, or NULL */
    bool hit;    /* by the question at hand */
    bool listed; /* while copies are fetched: it is still there, or was forgotten */
};

/*
 * A folder of copies, as it was at one moment:
 *
 *     status        the hosts, and the names of
 *     N.tamis       catalogs whose segments are pieces of all hosts with one schema and time zone; numbers
 *                   are never used again
 *
 * Files are never changed: a new status names new ones. So a reader that finds none of its files removed
 * under its hands has seen one state.
 */
struct copies {
    char folder[4096 - 64];
    uint64_t next; /* number of the next file */
    uint64_t *file;
    size_t n_files, files_room;
    struct known_host *host; /* by name */
    size_t n, room;
    struct seal seal; /* that manifests must have to be taken */
};

bool is_address(const char *operand); /* and no folder */
/* The folder for the copies of an address, unless one is given. Complains. */
bool copies_folder(struct copies *c, const char *url, const char *folder);
/* 1, 0: there are none; -1 after complaining. */
int copies_read(struct copies *c);
tamis_lock *copies_lock(const struct copies *c); /* of who changes it; NULL after complaining */
bool copies_write(const struct copies *c);       /* complains */
void copies_path(const struct copies *c, uint64_t file, char out[4096]);
struct known_host *copies_host(const struct copies *c, const char *name); /* NULL: none */
struct known_host *copies_add(struct copies *c, const char *name);        /* NULL: no memory */
void copies_free(struct copies *c);
/* What the tag of a segment says; false: it is none of a piece. */
bool tag_read(const void *tag, size_t len, char host[HOST_MAX + 1], uint64_t *epoch,
              struct piece *piece);
/* Brings the folder up to date, and reads it. Complains. */
bool copies_sync(struct copies *c, const char *url);
bool copies_in(const char *folder); /* is it a folder of copies? */
/* Hosts that will not come back: how many there were; -1 after complaining. */
int copies_forget(const char *folder, char **host, size_t n);

/* ---- asking: fleet_ask.c ---- */

struct fleet_question {
    char **words;
    size_t n;
    const char *since, *until;
    const char *fields; /* to be printed: they must be known */
    bool fresh;         /* what came after the watermarks counts too: every host is in doubt */
    bool rates;         /* are to be known too, for which all bits are counted */
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
    char *unseen;           /* one that was asked for and that no host is known to have, or NULL */
    double host_day, fleet; /* rates: of a value for one host-day, of a combination for all */
};

/* Asks; hosts are marked. Complains. */
bool fleet_ask(struct copies *c, const struct fleet_question *q, struct answer *a);
void answer_free(struct answer *a);
/* The address or folder that a verb was given, read, and up to date if it is an address. Complains. */
bool fleet_open(struct copies *c, const char *operand, const char *folder, const char *seal);

#endif
