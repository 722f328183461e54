/* A host that publishes, inside: fleet_publish.c makes pieces, fleet_send.c seals, drops and sends them. */
#ifndef TAMIS_FLEET_PUBLISHER_H
#define TAMIS_FLEET_PUBLISHER_H

#include <pthread.h>

#include "fleet.h"

#define DIGESTS_MOST ((uint64_t)192 << 20) /* bytes of a piece under way, in memory */

/* A piece under way. */
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
    uint64_t stamp[2], serial, url; /* of the note, of what is next, of where `sent` holds */
    const tamis_schema *schema;
    uint64_t without; /* attributes of words */
    struct making fresh;
    struct bytes note; /* of pieces */
    pthread_mutex_t lock;
};

/* The file of a slot; room for PATH_MAX bytes. */
void piece_path(const struct publisher *p, uint32_t slot, const char *what, char out[4096]);
/* The piece covers entries with these ids too. */
void piece_cover(struct piece *piece, uint64_t first, uint64_t last);
/* Adds the digests of a piece; false: they are not there, or of another schema. */
bool piece_take_up(const struct publisher *p, const struct piece *piece, tamis_gather *gather);
/* A piece is begun, and becomes a file and part of the manifest. Both complain. */
bool making_begin(struct publisher *p, struct making *m, const tamis_schema *schema,
                  enum piece_kind kind, int64_t day);
bool making_end(struct publisher *p, struct making *m);
void making_free(struct making *m);
/* What a question is read with: fields, and where times are and mean. Complains. */
bool publisher_note(struct publisher *p, const struct inputs *inputs);
/* Writes the state. Complains. */
bool publisher_state(const struct publisher *p);

#endif
