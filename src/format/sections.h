/* What the kinds of sections do where they are written and read; see section_kinds in sections.c. */
#ifndef TAMIS_FORMAT_SECTIONS_H
#define TAMIS_FORMAT_SECTIONS_H

#include "format.h"

/* ---- writing: pieces_out.c ---- */
size_t bits_make(struct pieces_out *o, const struct set *s, uint8_t *to, size_t room,
                 uint64_t *work);
size_t matrix_make(struct pieces_out *o, const struct set *s, uint8_t *to, size_t room,
                   uint64_t *work);
size_t escapes_make(struct pieces_out *o, const struct set *s, uint8_t *to, size_t room,
                    uint64_t *work);
size_t table_make(struct pieces_out *o, const struct set *s, uint8_t *to, size_t room,
                  uint64_t *work);

/* ---- reading: pieces_look.c ---- */

/* Bytes kept as they came. */
struct kept {
    uint8_t *data;
    uint64_t len, room;
};

struct pieces_in {
    tamis_allocator allocator;
    tamis_open_options options;
    struct secrets *given; /* of the key in the options */
    enum kind kind;
    bool keyless;        /* the bytes came without theirs, */
    bool adopts;         /* and what is made of them has it all the same */
    bool verify;         /* nothing is made of them: the key may be missing */
    bool skim;           /* only what is read at once is looked at */
    const uint8_t *view; /* all of them, where they stay; what is made has views of them */
    uint64_t total, have, most_aside;
    struct kept header, aside; /* aside: the payload from `late` to `tables`, which is neither */
    uint64_t header_len, late, tables;
    struct container c;
    struct head head;
    struct set *set; /* none until the header is here */
    struct section_walk walk;
    struct section s;
    bool open;
    uint64_t done;    /* bytes of the section, its zeros included, */
    uint64_t checked; /* and those that were looked at */
    uint64_t *ones;   /* of vectors, or columns */
    uint64_t n_ones;
    uint64_t large; /* counters of 15 in this section */
    uint64_t last;  /* position of the last large counter, plus 1 */
    struct table_check {
        uint64_t most; /* that `far` may be */
        unsigned shift;
        uint64_t n, hash, value, copies;
        uint64_t far,
            next; /* how far they will lie from their homes; the first slot after the last */
    } pairs;
    struct part_check lines; /* of the part of lines that it is in */
    size_t next;             /* slot of a table that the next value may have */
    struct kept held;  /* what came of tables and after them, and is in none: see take_pairs */
    uint8_t *sums;     /* of all pages */
    tamis_error wrong; /* found, if the checksums are right */
    tamis_reason reason;
    struct page_sums pages; /* last: its page is not cleared */
};

void bits_look(struct pieces_in *in);
void matrix_look(struct pieces_in *in);
void counters_look(struct pieces_in *in);
void escapes_look(struct pieces_in *in);
void table_look(struct pieces_in *in);
void lines_look(struct pieces_in *in);
void ones_look(struct pieces_in *in);
/* A table without values has no section. */
tamis_error check_empty_tables(const struct pieces_in *in, tamis_reason *reason);

#endif
