/*
 * Regular expressions of questions, by PCRE2. A value that would take too long is not answered: the
 * limits stop it after some tenths of a second, and find reports that the record was not searched.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "question_parts.h"

#include <stdlib.h>

#ifdef TAMIS_HAVE_PCRE2
#include <pcre2.h>

#define MATCH_LIMIT 10000000             /* steps on one value */
#define HEAP_LIMIT  ((uint32_t)64 << 10) /* in KiB */

struct matcher {
    pcre2_match_data *found;
    pcre2_match_context *limits;
};

bool regex_new(void **out, const char *pattern, size_t len, bool fold, const char *word,
               char why[QUESTION_WHY])
{
    int error;
    PCRE2_SIZE at;
    uint32_t options = PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | (fold ? PCRE2_CASELESS : 0);
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)pattern, len, options, &error, &at, NULL);
    if (!code) {
        char text[120];
        pcre2_get_error_message(error, (PCRE2_UCHAR *)text, sizeof text);
        return wrong(why, "%s at byte %zu of the regular expression: %.200s: see man pcre2pattern",
                     text, (size_t)at, word);
    }
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE); /* otherwise the interpreter is used */
    *out = code;
    return true;
}

void regex_free(void *regex)
{
    pcre2_code_free(regex);
}

struct matcher *matcher_new(void)
{
    struct matcher *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->found = pcre2_match_data_create(1, NULL);
    m->limits = pcre2_match_context_create(NULL);
    if (!m->found || !m->limits) {
        matcher_free(m);
        return NULL;
    }
    pcre2_set_match_limit(m->limits, MATCH_LIMIT);
    pcre2_set_heap_limit(m->limits, HEAP_LIMIT);
    return m;
}

void matcher_free(struct matcher *m)
{
    if (!m)
        return;
    pcre2_match_data_free(m->found);
    pcre2_match_context_free(m->limits);
    free(m);
}

bool regex_find(const void *regex, struct matcher *m, struct span text, struct span *spot,
                bool *gave_up)
{
    PCRE2_SPTR data = text.data ? text.data : (PCRE2_SPTR) "";
    int n = pcre2_match(regex, data, text.len, 0, 0, m->found, m->limits);
    const PCRE2_SIZE *at = pcre2_get_ovector_pointer(m->found);
    *gave_up = n < 0 && n != PCRE2_ERROR_NOMATCH;
    if (n >= 0)
        *spot = (struct span){data + at[0], at[1] > at[0] ? at[1] - at[0] : 0};
    return n >= 0;
}

#else /* without PCRE2 there are no expressions */

bool regex_new(void **out, const char *pattern, size_t len, bool fold, const char *word,
               char why[QUESTION_WHY])
{
    (void)out, (void)pattern, (void)len, (void)fold;
    return wrong(why, "built without PCRE2: %.200s: install it and build again, or ask for words",
                 word);
}

void regex_free(void *regex)
{
    (void)regex;
}

struct matcher *matcher_new(void)
{
    return NULL;
}

void matcher_free(struct matcher *m)
{
    (void)m;
}

bool regex_find(const void *regex, struct matcher *m, struct span text, struct span *spot,
                bool *gave_up)
{
    (void)regex, (void)m, (void)text, (void)spot;
    return *gave_up = false;
}
#endif
