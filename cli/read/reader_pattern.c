/*
 * Lines matched by a regular expression with named groups (PCRE2), for logs that fit no other
 * format: a group is a field, and a group that took no part in the match is missing. The expression
 * may match anywhere in a line; one that starts with ^ is tested only there. Lines that do not
 * match, or not within the limits, do not fit.
 */
#include "reader_parse.h"

#include <stdlib.h>

#include "base/err.h"

#ifdef TAMIS_HAVE_PCRE2

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#define MATCH_LIMIT 1000000 /* backtracking steps per line; the default of libpcre2 is 10 million */

/* Part of a selection; each parser has its own memory for matches. */
tamis_error pattern_compile(struct selection *s, tamis_reason *reason)
{
    int error;
    PCRE2_SIZE at;
    PCRE2_UCHAR8 text[128];
    if (!s->dialect.pattern)
        return fail(reason, TAMIS_EARG, "no pattern: give --pattern REGEX");
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)s->dialect.pattern, PCRE2_ZERO_TERMINATED,
                                     PCRE2_NEVER_BACKSLASH_C, &error, &at, NULL);
    if (!code) {
        pcre2_get_error_message(error, text, sizeof text);
        return fail(reason, TAMIS_EARG, "--pattern: %s, at character %zu", (const char *)text,
                    (size_t)at + 1);
    }
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
    s->pattern = code;
    return TAMIS_OK;
}

void pattern_free(struct selection *s)
{
    pcre2_code_free(s->pattern);
}

bool pattern_group(const struct selection *s, size_t i, const char **name, uint32_t *group)
{
    uint32_t n, size;
    PCRE2_SPTR table;
    pcre2_pattern_info(s->pattern, PCRE2_INFO_NAMECOUNT, &n);
    pcre2_pattern_info(s->pattern, PCRE2_INFO_NAMEENTRYSIZE, &size);
    pcre2_pattern_info(s->pattern, PCRE2_INFO_NAMETABLE, &table);
    if (i >= n)
        return false;
    const uint8_t *entry = table + i * size;
    *group = (uint32_t)entry[0] << 8 | entry[1];
    *name = (const char *)entry + 2;
    return true;
}

struct pattern_matcher {
    const void *code; /* for which it was made */
    pcre2_match_data *data;
    pcre2_match_context *limits;
};

bool pattern_begin(struct parser *ps)
{
    struct pattern_matcher *m = ps->matcher;
    if (m && m->code == ps->selection->pattern)
        return true;
    pattern_end(ps);
    m = ps->matcher = calloc(1, sizeof *m);
    if (!m)
        return false;
    m->code = ps->selection->pattern;
    m->data = pcre2_match_data_create_from_pattern(ps->selection->pattern, NULL);
    m->limits = pcre2_match_context_create(NULL);
    if (m->limits)
        pcre2_set_match_limit(m->limits, MATCH_LIMIT);
    return m->data && m->limits;
}

void pattern_end(struct parser *ps)
{
    struct pattern_matcher *m = ps->matcher;
    if (!m)
        return;
    pcre2_match_data_free(m->data);
    pcre2_match_context_free(m->limits);
    free(m);
    ps->matcher = NULL;
}

bool pattern_fit(struct parser *ps, const uint8_t *line, const uint8_t *end)
{
    const struct selection *s = ps->selection;
    struct pattern_matcher *m = ps->matcher;
    size_t len = (size_t)(end - line);
    int n = pcre2_match(s->pattern, line, len, 0, 0, m->data, m->limits);
    if (n == PCRE2_ERROR_JIT_STACKLIMIT)
        n = pcre2_match(s->pattern, line, len, 0, PCRE2_NO_JIT, m->data, m->limits);
    if (n == PCRE2_ERROR_NOMEMORY)
        ps->full = true;
    const PCRE2_SIZE *at = pcre2_get_ovector_pointer(m->data);
    for (size_t g = 1; g < s->n_columns && (int)g < n; g++)
        if (s->slot[g] != NO_SLOT && at[2 * g] != PCRE2_UNSET && at[2 * g] <= at[2 * g + 1])
            value_set(&ps->value[s->slot[g]], line + at[2 * g], at[2 * g + 1] - at[2 * g]);
    return n > 0;
}

#else

tamis_error pattern_compile(struct selection *s, tamis_reason *reason)
{
    (void)s;
    return fail(reason, TAMIS_EKIND, "--pattern: this tamis was built without libpcre2");
}

void pattern_free(struct selection *s)
{
    (void)s;
}

bool pattern_group(const struct selection *s, size_t i, const char **name, uint32_t *group)
{
    (void)s, (void)i, (void)name, (void)group;
    return false;
}

bool pattern_begin(struct parser *ps)
{
    (void)ps;
    return true;
}

void pattern_end(struct parser *ps)
{
    (void)ps;
}

bool pattern_fit(struct parser *ps, const uint8_t *line, const uint8_t *end)
{
    (void)ps, (void)line, (void)end;
    return false;
}

#endif
