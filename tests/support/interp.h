/*
 * The interpreter of test programs. A program is bytes: eight choose the filter (growth, layout,
 * deletable, unique, tiny sizes, how many keys there are), the rest are steps on three filters of
 * one family. Every step goes to the library and to the model (model.h); now and then, and at the
 * end, answers, counts and every cell of every vector are compared.
 *
 * Only legal removals are made, so a member that is denied, a count that is off, a bit or counter
 * that no member explains, a failed call that changed something: each is a bug. One function serves
 * as property test, shrinker, fuzz target and runner of kept programs.
 *
 *     byte 0     growth               byte 4   keys in the universe
 *     byte 1     flags, see interp.c  byte 5   expansion, vectors, lambdas
 *     byte 2     capacity             byte 6   bits and hashes, as published
 *     byte 3     rate                 byte 7   salt of the keys
 *     then       step: low five bits what, the others which filter; then its arguments. From 192 on, for
 *                smooth filters: a step of interp_life.c
 */
#ifndef TAMIS_TESTS_INTERP_H
#define TAMIS_TESTS_INTERP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Faults planted from outside, once, to see that they are caught. */
enum interp_plant {
    PLANT_NONE,
    PLANT_ADD,     /* an add that the library does not get */
    PLANT_REMOVE,  /* a removal that it does not get */
    PLANT_TWICE,   /* a removal that it gets twice */
    PLANT_BIT,     /* a bit cleared */
    PLANT_RESIDUE, /* a bit set */
    PLANT_COUNTER, /* a counter lowered */
    PLANT_PENDING, /* a pending removal forgotten */
    PLANT_COUNT
};

/* What a program came across: a generator that never gets there tests nothing. */
enum interp_event {
    SEEN_PENDING,   /* a removal that could not be settled at once */
    SEEN_SETTLED,   /* one that was later */
    SEEN_CANCELLED, /* one that an add took back */
    SEEN_GROWN,
    SEEN_SHRUNK, /* a vector went */
    SEEN_FULL,
    SEEN_MERGED,
    SEEN_FOLDED,
    SEEN_REFUSED, /* a merge or fold */
    SEEN_EMPTIED,
    SEEN_ESCAPE, /* a counter of 15 or more */
    SEEN_LINES,  /* lines were looked at */
    SEEN_LIVES,  /* a step of interp_life.c */
    SEEN_COUNT
};

struct interp_report {
    bool failed, planted;
    uint64_t steps; /* operations, every key of a batch counted */
    uint64_t seen[SEEN_COUNT];
    size_t at; /* byte of the step that failed */
    char text[240];
};

/* True if the library did as the model. */
bool interp_run(const uint8_t *program, size_t len, enum interp_plant plant,
                struct interp_report *report);
/* A program that fails, made shorter and simpler while it fails; its new length. */
size_t interp_shrink(uint8_t *program, size_t len, enum interp_plant plant,
                     struct interp_report *report);
/* A random program, leaning to the limits; its length, at most room. */
size_t interp_random(uint64_t *rng, uint8_t *program, size_t room);
/* Makes the filter of a program a smooth one, with lines from the first key on or after a vector. */
void interp_smooth(uint8_t *program, bool deletable, bool capacity);

#endif
