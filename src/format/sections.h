/* What the kinds of sections do when they are written and read; see section_kinds in sections.c. */
#ifndef TAMIS_FORMAT_SECTIONS_H
#define TAMIS_FORMAT_SECTIONS_H

#include "format.h"

/* ---- writing: pieces_out.c ---- */
extern make_fn bits_make, matrix_make, escapes_make, table_make;

/* ---- reading: pieces_look.c ---- */

struct pieces_in {
    tamis_allocator allocator;
    tamis_open_options options;
    struct secrets *given; /* of the key in the options */
    enum kind kind;
    bool keyless;        /* the bytes came without their key */
    bool adopts;         /* but the result has it */
    bool verify;         /* nothing is made of them: the key may be missing */
    bool skim;           /* only what is read immediately is checked */
    const uint8_t *view; /* all bytes, which stay in place; the result has views of them */
    uint64_t total, have, most_aside;
    struct sink header, aside; /* as they arrived; aside: the payload from `late` to `tables` */
    uint64_t header_len, late, tables;
    struct container c;
    struct head head;
    struct set *set; /* NULL until the header has arrived */
    struct section_walk walk;
    struct section s;
    bool open;
    uint64_t done;    /* bytes of the section, including padding */
    uint64_t checked; /* and those that were checked */
    uint64_t *ones;   /* of vectors, or columns */
    uint64_t n_ones;
    uint64_t large; /* counters of 15 in this section */
    uint64_t last;  /* position of the last large counter, plus 1 */
    struct table_check {
        uint64_t most; /* limit of `far` */
        unsigned shift;
        uint64_t n, hash, value, copies;
        uint64_t far, next; /* total distance from their homes; the first slot after the last */
    } pairs;
    struct part_check lines; /* of the current part of lines */
    size_t next;             /* slot of a table that the next value may have */
    struct sink held;        /* arrived, not stored yet: see table_look */
    uint8_t *sums;           /* of all pages */
    tamis_error wrong;       /* found, if the checksums are right */
    tamis_reason reason;
    struct page_sums pages; /* last member: its page is not cleared */
};

extern look_fn bits_look, matrix_look, counters_look, escapes_look, table_look, lines_look,
    ones_look;
/* A table without values has no section. */
tamis_error check_empty_tables(const struct pieces_in *in, tamis_reason *reason);

#endif
