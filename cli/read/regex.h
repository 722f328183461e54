/*
 * Regular expressions, by PCRE2: patterns of lines, and those of questions. Limits stop an expression
 * that takes too long on a text. A build without PCRE2 has none.
 */
#ifndef TAMIS_REGEX_H
#define TAMIS_REGEX_H

#include "ui/cli.h"

enum regex_flags {
    REGEX_FOLD = 1, /* ignore case */
    REGEX_UTF = 2   /* characters are UTF-8; bytes that are not match nothing */
};

#define REGEX_WHY 128
/* NULL: what is wrong, and at which byte; an empty text: built without PCRE2. */
void *regex_new(const char *pattern, size_t len, unsigned flags, char why[REGEX_WHY], size_t *at);
void regex_free(void *regex);
/* Its named groups, by name; false: there are no more. */
bool regex_group(const void *regex, size_t i, const char **name, uint32_t *group);

/* What a thread needs to match; NULL: no memory. */
struct matcher {
    const void *regex; /* whose groups are found; NULL: any expression, without groups */
    void *found, *limits;
};
struct matcher *matcher_new(const void *regex, uint32_t steps);
void matcher_free(struct matcher *matcher);

/* The number of groups in *at, first and end of each (SIZE_MAX: not part of the match), and group 0 is
   the match; 0: no match. */
enum { REGEX_GAVE_UP = -1, REGEX_NO_MEMORY = -2 };
int regex_match(const void *regex, struct matcher *matcher, const uint8_t *text, size_t len,
                const size_t **at);

#endif
