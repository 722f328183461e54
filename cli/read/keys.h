/*
 * Keys from arguments or standard input, in batches.
 *
 * The workload: hundreds of millions of short lines through a pipe. Input is read in large pieces
 * (slabs) that end with a whole line; lines are used in place and never copied; a batch of them is
 * cut, hashed and queried at once. A line may be as long as memory allows. With several threads
 * each takes a slab, and the results are taken in the order of the input.
 */
#ifndef TAMIS_KEYS_H
#define TAMIS_KEYS_H

#include "ui/cli.h"

#define KEYS_BATCH 1024

/* Lines in the order of the input. */
struct batch {
    size_t n;
    bool joined;                /* lines and their ends are contiguous */
    size_t n_none;              /* lines without the field */
    uint64_t number;            /* of the first line, from 1 */
    tamis_key line[KEYS_BATCH]; /* without their line ends */
    tamis_key key[KEYS_BATCH];  /* with --field: the key, or key_none */
    tamis_digest digest[KEYS_BATCH];
    uint8_t mark[KEYS_BATCH]; /* for the verb */
};

extern const tamis_key key_none; /* of a line without the field */

struct keys {
    char **word; /* keys given as arguments; none: standard input */
    size_t n_words;
    bool zero;
    char end;       /* '\n', or 0 */
    uint64_t field; /* column of the key, from 1; 0: the line is the key */
    bool by_field, delimited;
    char delimiter; /* separator of columns */
    uint64_t threads;
    bool strict;               /* a line without the field is an error */
    bool passing;              /* the verb prints such lines */
    uint64_t none, first_none; /* result: lines without the field, and the first */
};

struct work {
    const tamis_filter *filter; /* whose family hashes the keys */
    /* Called for each batch on any thread, after hashing; may be NULL. */
    void (*ask)(void *context, struct batch *batch);
    /* Called for each batch on the calling thread, in order; false stops. */
    bool (*take)(void *context, struct batch *batch);
    void *context;
};

/* FOUND when the input ended or `take` stopped, TROUBLE after complaining. */
int keys_run(struct keys *keys, const struct work *work);

/* Moves the digests of lines that have a key to the front; returns their number. who[i]: the
   line. */
size_t batch_pack(struct batch *batch, uint16_t *who);
/* Prints the lines whose mark is `mark`, long runs in one piece. Returns their number. */
size_t batch_print(const struct batch *batch, uint8_t mark, char end);

/* The number of bytes left in standard input, 0 if it is not a regular file. */
uint64_t keys_input_size(void);

/* The options of every verb that takes keys, and their defaults. */
#define KEYS_DEFAULT                                 \
    {                                                \
        .end = '\n', .delimiter = '\t', .threads = 1 \
    }
#define KEYS_ARGS(keys)                                                                   \
    ARG("null", '0', ARG_FLAG, &(keys).zero), ARG("strict", 0, ARG_FLAG, &(keys).strict), \
        ARG("threads", 'j', ARG_COUNT, &(keys).threads),                                  \
        ARG_GIVEN("field", ARG_COUNT, &(keys).field, &(keys).by_field),                   \
        ARG_GIVEN("delimiter", ARG_BYTE, &(keys).delimiter, &(keys).delimited)
/* After the options were read: do they fit together? Complains. */
bool keys_settle(struct keys *keys, char **word, size_t n_words);

#endif
