/* The inside of a publisher: fleet_publish.c makes pieces, fleet_send.c closes, drops and sends them. */
#ifndef TAMIS_FLEET_PUBLISHER_H
#define TAMIS_FLEET_PUBLISHER_H

#include <pthread.h>

#include "fleet.h"

#define DIGESTS_MOST ((uint64_t)192 << 20) /* most bytes of digests of one piece, in memory */

/* A piece being made. */
struct making {
    tamis_catalog_writer *writer;
    tamis_gather *gather;
    struct piece piece;
};

struct publisher {
    struct fleet_publishing how;
    int64_t now, today;
    char folder[4096 - 64];
    struct manifest m;
    struct seal seal;
    uint64_t stamp[2], serial,
        url; /* of the note; the next one; of the address that `sent` refers to */
    const tamis_schema *schema;
    uint64_t without; /* the attributes of type words, as bits */
    struct making fresh;
    struct bytes note; /* of pieces */
    pthread_mutex_t lock;
};

/* The file of a slot; room for PATH_MAX bytes. */
void piece_path(const struct publisher *p, uint32_t slot, const char *what, char out[4096]);
/* The piece covers entries with these ids too. */
void piece_cover(struct piece *piece, uint64_t first, uint64_t last);
/* Adds the digests of a piece; false: they are missing, or of another schema. */
bool piece_take_up(const struct publisher *p, const struct piece *piece, tamis_gather *gather);
/* Starts a piece; saves it and adds it to the manifest. Both complain. */
bool making_begin(struct publisher *p, struct making *m, const tamis_schema *schema,
                  enum piece_kind kind, int64_t day);
bool making_end(struct publisher *p, struct making *m);
void making_free(struct making *m);
/* Sets the note of pieces: fields, time attribute and zone, which questions are read with. Complains. */
bool publisher_note(struct publisher *p, const struct inputs *inputs);
/* Writes the state. Complains. */
bool publisher_state(const struct publisher *p);

#endif
