/* New sets of records. See new_filter.h. */
#include <string.h>

#include "read/attrs.h"
#include "new_filter.h"

/* Options for filters that records would silently ignore are mistakes. */
static bool check_options(const struct make *make)
{
    const tamis_options *o = &make->options;
    const char *wrong = o->unique                              ? "--unique"
                        : o->add_always                        ? "--add-always"
                        : o->tolerate != 0                     ? "--tolerate"
                        : make->options.growth == TAMIS_WINDOW ? "--growth window"
                                                               : NULL;
    if (wrong)
        complain("only for filters: %s: leave it out, or leave out --attrs", wrong);
    return !wrong;
}

/* status=10: the number of distinct values expected. */
static bool read_distinct(struct attrs *attrs, const char *text)
{
    const char *equals = strrchr(text, '=');
    size_t len = equals ? (size_t)(equals - text) : 0;
    uint64_t n = 0;
    if (!equals || !parse_count(equals + 1, &n) || n == 0)
        return refuse("wrong value '%s': --distinct: give an attribute and a number, as "
                      "status=10",
                      text);
    for (size_t i = 0; i < attrs->n; i++)
        if (strlen(attrs->names[i]) == len && memcmp(attrs->names[i], text, len) == 0) {
            attrs->list[i].distinct = n;
            return true;
        }
    return refuse("unknown attribute '%.*s': --distinct: name one of --attrs", (int)len, text);
}

static bool read_attrs(const struct make *make, struct attrs *attrs)
{
    *attrs = (struct attrs){0};
    bool good = attrs_read(attrs, make->attrs, &make->combos);
    for (size_t i = 0; good && i < make->distinct.n; i++)
        good = read_distinct(attrs, make->distinct.text[i]);
    if (good && make->verifier == TAMIS_VERIFIER_NONE && attrs->n_combos)
        good = refuse("no verifier: --combo: leave out --verifier none");
    if (good && make->verifier == TAMIS_VERIFIER_NONE && make->value)
        good = refuse("no verifier: --value: leave out --verifier none");
    return good;
}

struct set *make_records(struct make *make, const struct store_options *files, const char *path)
{
    struct attrs attrs = {0};
    WIPED_KEY key[TAMIS_KEY_LEN];
    struct made made = {.key = key};
    tamis_reason reason = {0};
    tamis_records *set = NULL;
    if (!make_settle(make, files, &made) || !check_options(make))
        return NULL;
    if (read_attrs(make, &attrs)) {
        tamis_records_options options = {.attributes = attrs.list,
                                         .n_attributes = attrs.n,
                                         .combos = attrs.combos,
                                         .n_combos = attrs.n_combos,
                                         .no_combos = attrs.no_combos,
                                         .verifier = (tamis_verifier)make->verifier,
                                         .value = (tamis_verify)make->value,
                                         .set = make->options};
        (void)succeeded(tamis_records_new(&set, &options, &reason), &reason, path);
    }
    attrs_free(&attrs);
    return records_set(set);
}
