/* Regular expressions. See regex.h. */
#include "regex.h"

#include <stdlib.h>

#ifdef TAMIS_HAVE_PCRE2

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#define HEAP_LIMIT ((uint32_t)64 << 10) /* in KiB */

void *regex_new(const char *pattern, size_t len, unsigned flags, char why[REGEX_WHY], size_t *at)
{
    int error;
    uint32_t options = PCRE2_NEVER_BACKSLASH_C | (flags & REGEX_FOLD ? PCRE2_CASELESS : 0) |
                       (flags & REGEX_UTF ? PCRE2_UTF | PCRE2_MATCH_INVALID_UTF : 0);
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)pattern, len, options, &error, at, NULL);
    if (code)
        pcre2_jit_compile(code, PCRE2_JIT_COMPLETE); /* otherwise the interpreter is used */
    else
        pcre2_get_error_message(error, (PCRE2_UCHAR *)why, REGEX_WHY);
    return code;
}

void regex_free(void *regex)
{
    pcre2_code_free(regex);
}

bool regex_group(const void *regex, size_t i, const char **name, uint32_t *group)
{
    uint32_t n, size;
    PCRE2_SPTR table;
    pcre2_pattern_info(regex, PCRE2_INFO_NAMECOUNT, &n);
    pcre2_pattern_info(regex, PCRE2_INFO_NAMEENTRYSIZE, &size);
    pcre2_pattern_info(regex, PCRE2_INFO_NAMETABLE, &table);
    if (i >= n)
        return false;
    const uint8_t *entry = table + i * size;
    *group = (uint32_t)entry[0] << 8 | entry[1];
    *name = (const char *)entry + 2;
    return true;
}

struct matcher *matcher_new(const void *regex, uint32_t steps)
{
    struct matcher *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->regex = regex;
    m->found = regex ? pcre2_match_data_create_from_pattern(regex, NULL)
                     : pcre2_match_data_create(1, NULL);
    m->limits = pcre2_match_context_create(NULL);
    if (!m->found || !m->limits) {
        matcher_free(m);
        return NULL;
    }
    pcre2_set_match_limit(m->limits, steps);
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

int regex_match(const void *regex, struct matcher *m, const uint8_t *text, size_t len,
                const size_t **at)
{
    PCRE2_SPTR data = text ? text : (PCRE2_SPTR) "";
    int n = pcre2_match(regex, data, len, 0, 0, m->found, m->limits);
    if (n == PCRE2_ERROR_JIT_STACKLIMIT)
        n = pcre2_match(regex, data, len, 0, PCRE2_NO_JIT, m->found, m->limits);
    *at = pcre2_get_ovector_pointer(m->found);
    return n > 0                       ? n
           : n == 0                    ? 1 /* more groups than asked for */
           : n == PCRE2_ERROR_NOMATCH  ? 0
           : n == PCRE2_ERROR_NOMEMORY ? REGEX_NO_MEMORY
                                       : REGEX_GAVE_UP;
}

#else

void *regex_new(const char *pattern, size_t len, unsigned flags, char why[REGEX_WHY], size_t *at)
{
    (void)pattern, (void)len, (void)flags;
    why[0] = 0;
    *at = 0;
    return NULL;
}

void regex_free(void *regex)
{
    (void)regex;
}

bool regex_group(const void *regex, size_t i, const char **name, uint32_t *group)
{
    (void)regex, (void)i, (void)name, (void)group;
    return false;
}

struct matcher *matcher_new(const void *regex, uint32_t steps)
{
    (void)regex, (void)steps;
    return NULL;
}

void matcher_free(struct matcher *m)
{
    (void)m;
}

int regex_match(const void *regex, struct matcher *m, const uint8_t *text, size_t len,
                const size_t **at)
{
    (void)regex, (void)m, (void)text, (void)len, (void)at;
    return REGEX_GAVE_UP;
}

#endif
