/*
 * What a program runs on: three filters, each beside its model, and the notes taken after each step.
 * Private to the interpreter.
 */
#ifndef TAMIS_TESTS_INTERP_MACHINE_H
#define TAMIS_TESTS_INTERP_MACHINE_H

#include "set/set.h"
#include "interp.h"
#include "model.h"

#define SLOTS      3
#define KEY_LEN    3
#define WINDOW     UINT64_C(1000000) /* nanoseconds; an add takes 1000 */
#define INDEX_ROOM 2048

struct slot {
    tamis_filter *filter;
    struct model model;
};

struct machine {
    const uint8_t *start, *at, *end;
    size_t step_at;
    struct interp_report *report;
    enum interp_plant plant;
    uint64_t clock;
    tamis_options options;
    uint32_t keys;
    uint8_t bytes[MODEL_KEYS][KEY_LEN];
    tamis_digest digests[MODEL_KEYS];
    uint16_t index[INDEX_ROOM]; /* keys by digest, plus 1 */
    struct slot slot[SLOTS];
    uint32_t *cells; /* scratch */
    uint64_t cells_room;
};

/* Notes the first failure; false. */
bool interp_fail(struct machine *m, const char *format, ...) __attribute__((format(printf, 2, 3)));

void machine_index_keys(struct machine *m);
bool machine_member(const struct machine *m, const struct slot *s, uint32_t key);
/* Pending, and must answer "no". */
bool machine_hidden(const struct slot *s, tamis_digest digest);

/* What a step did: each looks at the filter, tells the model, and fails if that is impossible. */
bool machine_note_add(struct machine *m, struct slot *s, uint32_t key, bool fresh);
bool machine_note_removal(struct machine *m, struct slot *s, uint32_t key, tamis_removed outcome);
bool machine_note_merge(struct machine *m, struct slot *s, const struct slot *other,
                        const tamis_filter *before, unsigned flags);
bool machine_sync(struct machine *m, struct slot *s); /* pending removals and vectors that went */
bool machine_note_full(struct machine *m, struct slot *s);

/* Saves, loads, and goes on with what was loaded. */
bool machine_reload(struct machine *m, struct slot *s);
/* Everything: answers, counts, cells. */
bool interp_check(struct machine *m, struct slot *s);

/* The planted fault: is it time for this one; and those that need no step. */
bool machine_plants(const struct machine *m, enum interp_plant plant);
void machine_plant(struct machine *m, struct slot *s);

#endif
