/*
 * Lines matched by a regular expression with named groups, for logs that fit no other
 * format: a group is a field, and a group that took no part in the match is missing. The expression
 * may match anywhere in a line; one that starts with ^ is tested only there. Lines that do not
 * match, or not within the limits, do not fit.
 */
#include "reader_parse.h"

#include <string.h>

#include "base/err.h"
#include "regex.h"

#define MATCH_LIMIT 1000000 /* backtracking steps per line; the default of libpcre2 is 10 million */

/* Part of a selection; each parser has its own memory for matches. */
tamis_error pattern_compile(struct selection *s, tamis_reason *reason)
{
    size_t at;
    char why[REGEX_WHY];
    const char *name;
    uint32_t group;
    if (!s->dialect.pattern)
        return fail(reason, TAMIS_EARG, "no pattern: give --pattern REGEX");
    s->pattern = regex_new(s->dialect.pattern, strlen(s->dialect.pattern), 0, why, &at);
    if (s->pattern && !regex_group(s->pattern, 0, &name, &group))
        return fail(reason, TAMIS_EARG, "--pattern: no named group, such as (?<user>[a-z]+)");
    if (s->pattern)
        return TAMIS_OK;
    return why[0] ? fail(reason, TAMIS_EARG, "--pattern: %s, at character %zu", why, at + 1)
                  : fail(reason, TAMIS_EKIND, "--pattern: this tamis was built without libpcre2");
}

bool pattern_begin(struct parser *ps)
{
    const void *pattern = ps->selection->pattern;
    if (!ps->matcher || ps->matcher->regex != pattern) {
        matcher_free(ps->matcher);
        ps->matcher = matcher_new(pattern, MATCH_LIMIT);
    }
    return ps->matcher != NULL;
}

bool pattern_fit(struct parser *ps, const uint8_t *line, const uint8_t *end)
{
    const struct selection *s = ps->selection;
    const size_t *at;
    int n = regex_match(s->pattern, ps->matcher, line, (size_t)(end - line), &at);
    if (n == REGEX_NO_MEMORY)
        ps->full = true;
    for (size_t g = 1; g < s->n_columns && (int)g < n; g++)
        if (s->slot[g] != NO_SLOT && at[2 * g] != SIZE_MAX && at[2 * g] <= at[2 * g + 1])
            value_set(&ps->value[s->slot[g]], line + at[2 * g], at[2 * g + 1] - at[2 * g]);
    return n > 0;
}
