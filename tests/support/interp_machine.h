/*
 * What a program runs on: three filters, each beside its model, and the notes taken after each step.
 * Private to the interpreter.
 */
#ifndef TAMIS_TESTS_INTERP_MACHINE_H
#define TAMIS_TESTS_INTERP_MACHINE_H

#include "set/set.h"
#include "fault.h"
#include "interp.h"
#include "model.h"

#define SLOTS      3
#define KEY_LEN    3
#define WINDOW     UINT64_C(1000000) /* nanoseconds; an add takes 1000 */
#define INDEX_ROOM 2048
#define CROWDS     12

/* Keys beside the universe, each added once: see interp_life.c. */
struct crowd {
    uint64_t from, n;
};

struct slot {
    tamis_filter *filter;
    struct model model;
    struct crowd crowd[CROWDS];
    uint32_t crowds;
    uint64_t crowd_keys; /* in all of them */
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
    uint64_t next_crowd; /* the first key that was in no crowd */
    struct fault fault;  /* the allocator of some programs */
};

/* Notes the first failure; false. */
bool interp_fail(struct machine *m, const char *format, ...) __attribute__((format(printf, 2, 3)));

uint32_t machine_take(struct machine *m); /* the next byte of the program */
void machine_index_keys(struct machine *m);
bool machine_member(const struct machine *m, const struct slot *s, uint32_t key);
/* Pending, and must answer "no". */
bool machine_hidden(const struct slot *s, tamis_digest digest);

/* What a step did: each looks at the filter, tells the model, and fails if that is impossible. */
bool machine_note_add(struct machine *m, struct slot *s, uint32_t key, bool fresh);
bool machine_note_copy(struct machine *m, struct slot *s, uint32_t key, bool fresh);
bool machine_note_removal(struct machine *m, struct slot *s, uint32_t key, tamis_removed outcome);
bool machine_note_merge(struct machine *m, struct slot *s, const struct slot *other,
                        const tamis_filter *before, unsigned flags);
bool machine_sync(struct machine *m, struct slot *s); /* pending removals and vectors that went */
bool machine_note_full(struct machine *m, struct slot *s);

/* Saves, loads, and goes on with what was loaded. */
bool machine_reload(struct machine *m, struct slot *s);
/* Everything: answers, counts, cells. */
bool interp_check(struct machine *m, struct slot *s);

/* ---- interp_life.c ---- */
bool life_step(struct machine *m, uint32_t what, struct slot *s);
bool life_check(struct machine *m, struct slot *s);
bool life_all_go(struct machine *m, struct slot *s); /* removes all crowds, if this is possible */
void life_copy(struct slot *to, const struct slot *from);
bool life_may_merge(const struct slot *s, const struct slot *other);
bool life_disjoint(const struct slot *s, const struct slot *other);
void life_merge(struct slot *s, const struct slot *other);

/* The planted fault: is it time for this one; and those that need no step. */
bool machine_plants(const struct machine *m, enum interp_plant plant);
void machine_plant(struct machine *m, struct slot *s);

#endif
