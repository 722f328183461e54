/*
 * Options: a table of names, kinds and variables. A long option has its value in the next argument
 * or after "="; short ones can be combined (-vc, -j4). Options and operands come in any order; "--"
 * precedes operands that begin with a dash. Every verb has --help.
 */
#ifndef TAMIS_ARGS_H
#define TAMIS_ARGS_H

#include "cli.h"
#include "os/threads.h"

enum arg_kind {
    ARG_FLAG,   /* bool: no value */
    ARG_TEXT,   /* const char *: as given */
    ARG_COUNT,  /* uint64_t: 10000, 10k, 10M, 10G, 64Ki, 64Mi, 64Gi, 1e6 */
    ARG_REAL,   /* double: a number >= 0, with the same suffixes */
    ARG_RATE,   /* double in (0, 1): 0.01, 1e-9, 1% */
    ARG_TIME,   /* uint64_t, nanoseconds: 90s, 30m, 24h, 7d, 250ms */
    ARG_WHILE,  /* the same, or "none": ARG_NONE */
    ARG_CHOICE, /* unsigned: position of the value in `choices`, from 1 */
    ARG_BYTE,   /* char: one byte, or \t \n \0 \\ */
    ARG_TEXTS,  /* struct texts: may be repeated */
    ARG_SPLIT   /* size_t: number of operands before "--"; options may still follow */
};

#define ARG_NONE  UINT64_MAX
#define TEXTS_MAX 64
struct texts {
    const char *text[TEXTS_MAX];
    size_t n;
};

struct arg {
    const char *name; /* without dashes; NULL: only a letter */
    char letter;      /* 0: only a name */
    enum arg_kind kind;
    void *to;
    bool *given;         /* set if the option was given; may be NULL */
    const char *choices; /* "spread|blocked" */
};

#define ARG(name, letter, kind, to)        \
    {                                      \
        name, letter, kind, to, NULL, NULL \
    }
#define ARG_GIVEN(name, kind, to, given) \
    {                                    \
        name, 0, kind, to, given, NULL   \
    }
#define ARG_ONE_OF(name, to, choices)          \
    {                                          \
        name, 0, ARG_CHOICE, to, NULL, choices \
    }

/* The operands, in order; n words followed by NULL. */
struct words {
    char **word;
    size_t n;
};

/* Reads argv[1..] and moves the operands to the front of argv+1. --help, and a mistake, which it
   complains about, end the program: verbs read their options before they do anything. */
struct words args_read(int argc, char **argv, const struct arg *args, size_t n);
/* For verbs that take a number of files, which `usage` describes. */
struct words args_read_files(int argc, char **argv, const struct arg *args, size_t n, size_t least,
                             size_t most, const char *usage);

/* Parse one value; false if the text is not valid. */
bool parse_count(const char *text, uint64_t *out);
bool parse_rate(const char *text, double *out);
bool parse_time(const char *text, uint64_t *nanoseconds); /* 90s, 30m, 24h, 7d, 250ms */
/* The value of --threads: 0 stands for all processors. False after complaining of too many. */
bool threads_settle(uint64_t *threads);
/* Parses "a,b,c" into at most `room` values; returns their number, 0 if invalid or too many. */
size_t parse_list(const char *text, double *out, size_t room);
/* Expansion speeds, whole numbers from 1 to `most`; complains and returns 0 otherwise. */
size_t parse_lambdas(const char *text, unsigned most, unsigned lambdas[TAMIS_LAMBDAS_MAX]);

#endif
