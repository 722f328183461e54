/*
 * What is kept as text: the status of folders of copies, the state of a publisher, manifests. A title, then lines of
 * words, each of which begins with what it is about. Every word is checked when it is read, since anyone may have
 * written or cut the text.
 */
#ifndef TAMIS_TEXT_LINES_H
#define TAMIS_TEXT_LINES_H

#include "growing.h"

void text_put(struct bytes *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A space and the text as one word, quoted as names of owners are; "-" for none. */
void text_put_word(struct bytes *out, const char *text);

/* A line that is being read. `bad`: a word is missing or is not what it should be. */
struct line {
    char *at; /* NULL: no more words */
    bool bad;
};
char *text_word(struct line *l);
uint64_t text_number(struct line *l, int base);
int64_t text_whole(struct line *l);                     /* it may be negative */
char *text_quoted(struct line *l);                      /* as text_put_word wrote it, to be freed */
void text_copy(struct line *l, char *out, size_t room); /* a word of less than `room` bytes */

/* Takes a line that begins with the word `what`. */
typedef bool (*line_fn)(void *context, const char *what, struct line *rest);
/* Reads the title and the lines after it, up to the line `end`, or all if that is NULL. False: they are not like that,
   `take` refused one, or one has words that `take` left. */
bool text_read(const struct bytes *text, const char *title, const char *end, line_fn take,
               void *context);

enum put_flags {
    PUT_PRIVATE = 1, /* readable by its owner only */
    PUT_LOOSE = 2    /* not synced: it will soon be written again, or removed */
};

/* Whole files. file_slurp fails with errno, file_put after complaining. */
bool file_slurp(const char *path, struct bytes *out);
bool file_put(const char *path, const void *data, size_t len, unsigned flags);

#endif
