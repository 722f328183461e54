/* The selected attributes, compiled: columns of a header, or a tree of JSON paths. */
#define _GNU_SOURCE /* qsort_r */
#include <stdlib.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/base.h"
#include "base/err.h"
#include "reader_parse.h"
#include "regex.h"

/* "12" is 12; NO_NODE for anything but a number in this form. */
static uint32_t number_of(const char *text, size_t len)
{
    uint32_t x = 0;
    if (len == 0 || len > 9 || (len > 1 && text[0] == '0'))
        return NO_NODE;
    for (size_t i = 0; i < len; i++) {
        if (!is_digit(text[i]))
            return NO_NODE;
        x = 10 * x + (uint32_t)(text[i] - '0');
    }
    return x;
}

/* ---- columns --------------------------------------------------------------------------------- */

/* The names of the attributes, sorted: a table and a selection can have thousands. */
struct sorted_names {
    const char *const *names;
    uint32_t *order;
    size_t n;
};

static int by_name(const void *a, const void *b, void *names)
{
    const char *const *name = names;
    return strcmp(name[*(const uint32_t *)a], name[*(const uint32_t *)b]);
}

/* Order of a name and a text without zero bytes. */
static int compare_name(const char *name, const void *text, size_t len)
{
    int order = strncmp(name, text, len);
    return order ? order : name[len] != 0;
}

/* The attribute of this name is in column c. */
static void found_column(const struct sorted_names *w, const void *text, size_t len, uint32_t c,
                         uint32_t *column)
{
    if (memchr(text, 0, len))
        return;
    size_t at = SEARCH(i, w->n, compare_name(w->names[w->order[i]], text, len) < 0);
    if (at < w->n && compare_name(w->names[w->order[at]], text, len) == 0)
        column[w->order[at]] = c;
}

/* The columns named in # lines. False: no memory. */
static bool find_named(struct selection *s, const struct sorted_names *wanted,
                       const uint8_t *header, size_t len, uint32_t *column)
{
    const char *const *names = wanted->names;
    struct log_columns *c = &s->columns;
    const char *when = format_of(s->dialect.format)->time;
    uint32_t says_when = NO_SLOT;
    const uint8_t *text, *at;
    size_t n;
    columns_read(c, s->dialect.format, header, len);
    for (at = c->names; columns_next(c, &at, c->names_end, &text, &n); c->n++) {
        found_column(wanted, text, n, (uint32_t)c->n, column);
        bool w3c = s->dialect.format == READ_W3C;
        if (w3c && n == 4 && memcmp(text, "date", 4) == 0)
            c->date = (uint32_t)c->n;
        if (w3c && n == 4 && memcmp(text, "time", 4) == 0)
            c->clock = (uint32_t)c->n;
        if (strlen(when) == n && memcmp(when, text, n) == 0)
            says_when = (uint32_t)c->n;
    }
    for (size_t i = 0; i < s->n; i++) /* `time`, if another column has the time */
        if (column[i] == NO_SLOT && strcmp(names[i], READ_TIME) == 0)
            column[i] = says_when;
    c->listed = calloc(c->n + 1, sizeof *c->listed);
    at = c->types;
    for (size_t i = 0; c->listed && i < c->n; i++)
        if (columns_next(c, &at, c->types_end, &text, &n))
            c->listed[i] = (n > 4 && memcmp(text, "set[", 4) == 0) ||
                           (n > 7 && memcmp(text, "vector[", 7) == 0);
    return c->listed;
}

/* The columns named in the header of a table. False: no memory. */
static bool find_headed(struct selection *s, const struct sorted_names *wanted,
                        const uint8_t *header, size_t len, uint32_t *column)
{
    uint8_t *name = malloc(len + 1);
    const uint8_t *at = header, *end = header + len;
    for (uint32_t c = 0; at && name; c++) {
        size_t name_len = csv_header_field(&s->dialect, &at, end, name);
        found_column(wanted, name, name_len, c, column);
        s->n_headed++;
    }
    bool ok = name;
    free(name);
    return ok;
}

/* column[i] = the column of attribute i, NO_SLOT if there is none. False: no memory. */
static bool find_columns(struct selection *s, const struct sorted_names *wanted,
                         const uint8_t *header, size_t len, uint32_t *column)
{
    const struct format *format = format_of(s->dialect.format);
    for (size_t i = 0; i < s->n; i++)
        column[i] = NO_SLOT;
    for (uint32_t c = 0; c < format->n_fields; c++)
        found_column(wanted, format->field[c].name, strlen(format->field[c].name), c, column);
    const char *name_of;
    uint32_t group;
    for (size_t g = 0; s->pattern && regex_group(s->pattern, g, &name_of, &group); g++)
        found_column(wanted, name_of, strlen(name_of), group, column);
    if (s->dialect.format == READ_ZEEK || s->dialect.format == READ_W3C)
        return find_named(s, wanted, header, len, column);
    return !header || format->fit || find_headed(s, wanted, header, len, column);
}

#define COLUMNS_MAX 1000000

/* Attributes without a name among the columns may be the number of one. Sets the number of columns. */
static void number_columns(struct selection *s, const char *const *names, uint32_t *column)
{
    bool table = s->dialect.format == READ_CSV || s->dialect.format == READ_TSV;
    s->n_columns = 1 + format_of(s->dialect.format)->n_fields;
    for (size_t i = 0; i < s->n; i++) {
        uint32_t number = table ? number_of(names[i], strlen(names[i])) : NO_NODE;
        if (column[i] == NO_SLOT && number > 0 && number <= COLUMNS_MAX)
            column[i] = number - 1; /* a larger one is a key of JSON in another input */
        s->absent[i] = column[i] == NO_SLOT;
        if (!s->absent[i] && column[i] >= s->n_columns)
            s->n_columns = column[i] + (size_t)1;
    }
}

/* Attributes get the slots of their columns; the later ones of a column copy the first. */
static void fill_slots(struct selection *s, const uint32_t *column)
{
    for (size_t c = 0; c < s->n_columns; c++)
        s->slot[c] = NO_SLOT;
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t *slot = s->absent[i] ? NULL : &s->slot[column[i]];
        if (slot && *slot == NO_SLOT)
            *slot = i;
        if (slot && column[i] < 32)
            s->fields |= UINT32_C(1) << column[i];
        s->copy[i] = slot ? *slot : i;
        s->copies |= s->copy[i] != i;
    }
}

static tamis_error select_columns(struct selection *s, const struct sorted_names *wanted,
                                  const uint8_t *header, size_t len, tamis_reason *reason)
{
    uint32_t *column = malloc(s->n * sizeof *column);
    s->copy = calloc(s->n, sizeof *s->copy);
    s->absent = calloc(s->n, sizeof *s->absent);
    bool ok = column && s->copy && s->absent && find_columns(s, wanted, header, len, column);
    if (ok)
        number_columns(s, wanted->names, column);
    if (ok && s->n_columns > COLUMNS_MAX) {
        free(column);
        return fail(reason, TAMIS_EARG, "column %zu: there are at most %d", s->n_columns,
                    COLUMNS_MAX);
    }
    s->slot = ok ? malloc(s->n_columns * sizeof *s->slot) : NULL;
    if (s->slot)
        fill_slots(s, column);
    free(column);
    return s->slot ? TAMIS_OK : fail(reason, TAMIS_ENOMEM, "no memory for the columns");
}

/* ---- paths ----------------------------------------------------------------------------------- */

/* Where the node with this parent and name is in the table, or belongs. */
static uint32_t *place_of(const struct selection *s, uint32_t parent, const void *name, size_t len)
{
    const struct path_node *node = s->node;
    for (uint64_t hash = XXH3_64bits_withSeed(name, len, parent);; hash++) {
        uint32_t *place = &s->place[hash & (s->places - 1)], i = *place;
        if (i == NO_NODE || (node[i].parent == parent && node[i].len == len &&
                             memcmp(node[i].name, name, len) == 0))
            return place;
    }
}

uint32_t selection_child(const struct selection *s, uint32_t parent, const void *name, size_t len)
{
    bool some = s->node[parent].lens >> (len < 63 ? len : 63) & 1;
    return some ? *place_of(s, parent, name, len) : NO_NODE;
}

/* Makes the table of all nodes, with places for s->room of them. */
static bool place_nodes(struct selection *s)
{
    uint32_t *place = malloc(2 * (size_t)s->room * sizeof *place);
    if (!place)
        return false;
    free(s->place);
    s->place = place;
    s->places = 2 * s->room;
    memset(place, 0xFF, s->places * sizeof *place);
    for (uint32_t i = 1; i < s->n_nodes; i++)
        *place_of(s, s->node[i].parent, s->node[i].name, s->node[i].len) = i;
    return true;
}

/* The child of `parent` with this name, created if necessary; NO_NODE: no memory. */
static uint32_t grow_child(struct selection *s, uint32_t parent, const char *name, size_t len)
{
    uint32_t i = selection_child(s, parent, name, len);
    if (i != NO_NODE)
        return i;
    if (s->n_nodes == s->room) {
        struct path_node *node = realloc(s->node, 2 * (size_t)s->room * sizeof *node);
        if (!node)
            return NO_NODE;
        s->node = node;
        s->room *= 2;
        if (!place_nodes(s))
            return NO_NODE;
    }
    i = s->n_nodes++;
    s->node[i] = (struct path_node){.name = name,
                                    .len = len,
                                    .position = number_of(name, len),
                                    .slot = NO_SLOT,
                                    .parent = parent,
                                    .child = NO_NODE,
                                    .end = s->node[parent].child};
    s->node[parent].child = i;
    s->node[parent].keys |= s->node[i].position == NO_NODE;
    s->node[parent].positions |= s->node[i].position != NO_NODE;
    s->node[parent].lens |= UINT64_C(1) << (len < 63 ? len : 63);
    *place_of(s, parent, name, len) = i;
    return i;
}

/* The value at `node` is one way to attribute i; the first way has its own slot. */
static bool add_way(struct selection *s, uint32_t node, uint32_t i, bool first)
{
    uint32_t slot = i;
    if (!first) {
        uint32_t *next = realloc(s->next, (s->n_slots + 1) * sizeof *next);
        if (!next)
            return false;
        s->next = next;
        while (next[slot] != NO_SLOT)
            slot = next[slot];
        next[slot] = (uint32_t)s->n_slots;
        slot = (uint32_t)s->n_slots++;
        next[slot] = NO_SLOT;
        s->choices = true;
    }
    s->node[node].slot = slot;
    return true;
}

/* All ways to split `path` at its dots, the longest first key first. */
static bool add_ways(struct selection *s, uint32_t parent, const char *path, uint32_t i,
                     bool *first)
{
    for (size_t len = strlen(path);; len--) {
        if (path[len] == '\0' || path[len] == '.') {
            uint32_t node = grow_child(s, parent, path, len);
            if (node == NO_NODE)
                return false;
            if (path[len] == '.' && !add_ways(s, node, path + len + 1, i, first))
                return false;
            if (path[len] == '\0') {
                if (!add_way(s, node, i, *first))
                    return false;
                *first = false;
            }
        }
        if (len == 0)
            return true;
    }
}

/* Copies the subtree at `from` behind the nodes at `to`, so that it is contiguous. In `from` the end of a
   node is still its sibling. */
static void lay_out(const struct path_node *from, uint32_t at, struct path_node *to, uint32_t *n)
{
    uint32_t here = (*n)++;
    to[here] = from[at];
    to[here].child = from[at].child == NO_NODE ? NO_NODE : *n;
    for (uint32_t i = from[at].child; i != NO_NODE; i = from[i].end) {
        uint32_t child = *n;
        lay_out(from, i, to, n);
        to[child].parent = here;
    }
    to[here].end = *n;
}

static bool grow_tree(struct selection *s)
{
    s->room = 16;
    s->node = malloc(s->room * sizeof *s->node);
    s->next = malloc((s->n + 1) * sizeof *s->next);
    if (!s->node || !s->next)
        return false;
    s->n_nodes = 1;
    s->node[0] = (struct path_node){
        .position = NO_NODE, .slot = NO_SLOT, .parent = NO_NODE, .child = NO_NODE, .end = NO_NODE};
    if (!place_nodes(s))
        return false;
    for (size_t i = 0; i < s->n; i++)
        s->next[i] = NO_SLOT;
    const char *name = s->names;
    for (size_t i = 0; i < s->n; i++, name += strlen(name) + 1) {
        bool first = true;
        uint32_t node = s->dialect.format == READ_LOGFMT
                            ? grow_child(s, 0, name, strlen(name)) /* without parts */
                            : 0;
        if (node == NO_NODE || (node && !add_way(s, node, (uint32_t)i, true)) ||
            (!node && i != s->whole && !add_ways(s, 0, name, (uint32_t)i, &first)))
            return false;
    }
    struct path_node *laid = malloc(s->n_nodes * sizeof *laid);
    if (!laid)
        return false;
    uint32_t n = 0;
    lay_out(s->node, 0, laid, &n);
    free(s->node);
    s->node = laid;
    return place_nodes(s);
}

/* ---- both ------------------------------------------------------------------------------------ */

/* Checks the names and sorts them. */
static tamis_error check_names(const struct dialect *dialect, struct sorted_names *wanted,
                               tamis_reason *reason)
{
    const char *const *names = wanted->names;
    size_t n = wanted->n;
    if (n == 0 || n > 4096)
        return fail(reason, TAMIS_EARG, "%zu attributes: from 1 to 4096 can be read", n);
    for (size_t i = 0; i < n; i++) {
        size_t dots = 0;
        if (!names[i][0])
            return fail(reason, TAMIS_EARG, "an attribute without a name");
        for (const char *p = names[i]; (p = strchr(p, '.')); p++)
            dots++;
        if ((dialect->format == READ_JSONL || dialect->format == READ_JSON) && dots >= PATH_PARTS)
            return fail(reason, TAMIS_EARG, "attribute %.100s: a path has at most %d dots",
                        names[i], PATH_PARTS - 1);
    }
    wanted->order = malloc(n * sizeof *wanted->order);
    if (!wanted->order)
        return fail(reason, TAMIS_ENOMEM, "no memory for the attributes");
    for (uint32_t i = 0; i < n; i++)
        wanted->order[i] = i;
    qsort_r(wanted->order, n, sizeof *wanted->order, by_name, (void *)(uintptr_t)names);
    for (size_t i = 1; i < n; i++)
        if (by_name(&wanted->order[i - 1], &wanted->order[i], (void *)(uintptr_t)names) == 0)
            return fail(reason, TAMIS_EARG, "attribute %.100s is given twice",
                        names[wanted->order[i]]);
    return TAMIS_OK;
}

static bool keep_names(struct selection *s, const char *const *names)
{
    size_t len = 1;
    for (size_t i = 0; i < s->n; i++)
        len += strlen(names[i]) + 1;
    char *at = s->names = malloc(len);
    for (size_t i = 0; at && i < s->n; i++)
        at = stpcpy(at, names[i]) + 1;
    return at != NULL;
}

/* Attributes that are more than fields. */
static void find_special(struct selection *s, const char *const *names)
{
    const char *time = s->dialect.time ? s->dialect.time : format_of(s->dialect.format)->time;
    bool zeek = s->dialect.format == READ_ZEEK && !s->dialect.time;
    s->line = s->whole = s->time = NO_SLOT;
    for (uint32_t i = 0; i < s->n; i++) {
        if (strcmp(names[i], READ_LINE) == 0)
            s->line = i;
        if (strcmp(names[i], READ_WHOLE) == 0)
            s->whole = i;
        if (time && (strcmp(names[i], time) == 0 || (zeek && strcmp(names[i], READ_TIME) == 0)))
            s->time = i;
    }
}

static tamis_error selection_make(struct selection **out, const struct dialect *dialect,
                                  const struct sorted_names *wanted, const void *header,
                                  size_t header_len, tamis_reason *reason)
{
    const char *const *names = wanted->names;
    tamis_error error = TAMIS_OK;
    struct selection *s = calloc(1, sizeof *s);
    if (!s)
        return fail(reason, TAMIS_ENOMEM, "no memory for the attributes");
    s->dialect = *dialect;
    if (!s->dialect.delimiter)
        s->dialect.delimiter = dialect->format == READ_TSV ? '\t' : ',';
    if (!s->dialect.record_max)
        s->dialect.record_max = READ_RECORD_MAX;
    if (!s->dialect.quoted_max)
        s->dialect.quoted_max = READ_QUOTED_MAX;
    s->n = s->n_slots = wanted->n;
    s->header = header;
    s->header_len = header_len;
    find_special(s, names);
    if (!keep_names(s, names))
        error = fail(reason, TAMIS_ENOMEM, "no memory for the attributes");
    else if (dialect->format == READ_PATTERN)
        error = pattern_compile(s, reason);
    if (error != TAMIS_OK)
        ;
    else if (!selection_by_path(s) && dialect->format != READ_LOGFMT)
        error = select_columns(s, wanted, header, header_len, reason);
    else if (!grow_tree(s))
        error = fail(reason, TAMIS_ENOMEM, "no memory for the attributes");
    if (error != TAMIS_OK) {
        selection_free(s);
        return error;
    }
    if (s->absent && s->line != NO_SLOT && !s->absent[s->line])
        s->line = NO_SLOT; /* there is a column of that name */
    if (s->copy && s->time != NO_SLOT)
        s->time = s->copy[s->time];
    s->completes = s->line != NO_SLOT || s->whole != NO_SLOT || s->time != NO_SLOT;
    *out = s;
    return TAMIS_OK;
}

tamis_error selection_new(struct selection **out, const struct dialect *dialect,
                          const char *const *names, size_t n, const void *header, size_t header_len,
                          tamis_reason *reason)
{
    struct sorted_names wanted = {names, NULL, n};
    if (dialect->format == READ_AUTO)
        return fail(reason, TAMIS_EARG, "the format is not known");
    tamis_error error = check_names(dialect, &wanted, reason);
    if (error == TAMIS_OK)
        error = selection_make(out, dialect, &wanted, header, header_len, reason);
    free(wanted.order);
    return error;
}

size_t selection_absent(const struct selection *s, size_t from)
{
    while (from < s->n && (!(s->absent && s->absent[from]) || from == s->line || from == s->whole))
        from++;
    return from;
}

bool selection_plain(const struct selection *s, size_t attribute)
{
    size_t of = s->copy ? s->copy[attribute] : attribute;
    const struct format *format = format_of(s->dialect.format);
    for (size_t c = 0; c < format->n_fields; c++)
        if (format->field[c].made && s->slot[c] == of)
            return false;
    return of != s->time;
}

void selection_free(struct selection *s)
{
    if (!s)
        return;
    free(s->names);
    free(s->slot);
    free(s->copy);
    free(s->absent);
    free(s->columns.listed);
    regex_free(s->pattern);
    free(s->node);
    free(s->place);
    free(s->next);
    free(s);
}
