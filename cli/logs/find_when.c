/* Conditions. See find.h. */
#include <stdlib.h>
#include <string.h>

#include "read/attrs.h"
#include "find.h"

#define NORMAL_MAX 4096 /* longer values stand for themselves */

void when_free(struct when *when)
{
    for (size_t i = 0; i < when->n; i++) {
        free(when->clause[i].value);
        free(when->clause[i].digest);
    }
    free(when->clause);
    free(when->name);
    free(when->memory);
    *when = (struct when){0};
}

static bool no_memory(void)
{
    complain("out of memory: conditions: free some memory and run again");
    return false;
}

/* ---- reading them ---------------------------------------------------------------------------- */

/* A word cut in two. */
struct word {
    uint32_t attribute;
    const char *value; /* NULL: missing */
};

static tamis_error find_attribute(const void *schema, const char *name, uint32_t *number,
                                  tamis_reason *reason)
{
    return tamis_schema_attribute(schema, name, number, reason);
}

static bool cut_word(struct word *w, char *text, const tamis_schema *schema)
{
    tamis_reason first;
    if (attribute_cut(text, find_attribute, schema, &w->attribute, &w->value, &first))
        return true;
    if (first.text[0])
        complain("%s: %s: see tamis help find", first.text, text);
    else
        complain("no condition: %s: give attr=value, attr= (empty) or attr! (missing)", text);
    return false;
}

static struct clause *clause_of(struct when *when, uint32_t attribute, const tamis_schema *schema)
{
    struct clause *c = when->clause;
    for (size_t i = 0; i < when->n; i++, c++)
        if (c->attribute == attribute)
            return c;
    *c = (struct clause){.attribute = attribute, .type = tamis_schema_type(schema, attribute)};
    when->name[when->n++] = tamis_schema_name(schema, attribute);
    return c;
}

/* The normal form, at *memory, or the value itself where it has none. */
static void set_value(struct wanted *v, tamis_type type, const char *text, uint8_t **memory)
{
    size_t len = text ? strlen(text) : 0;
    *v = (struct wanted){(const uint8_t *)text, len, text == NULL};
    if (!text || type == TAMIS_BYTES)
        return;
    size_t normal = tamis_value_normal(type, text, len, *memory, len + 32);
    if (normal == 0)
        return;
    v->data = *memory;
    v->len = normal;
    *memory += normal;
}

static bool add_value(struct clause *c, const char *text, const tamis_schema *schema,
                      uint8_t **memory)
{
    const tamis_key key = {text, text ? strlen(text) : 0};
    struct wanted *values = realloc(c->value, (c->n + 1) * sizeof *values);
    if (values)
        c->value = values;
    tamis_digest *digests = values ? realloc(c->digest, (c->n + 1) * sizeof *digests) : NULL;
    if (!digests)
        return no_memory();
    c->digest = digests;
    set_value(&values[c->n], c->type, text, memory);
    digests[c->n++] = tamis_schema_digest(schema, c->attribute, key);
    return true;
}

/* Shorter ones first; the missing one last. */
static int by_value(const void *a, const void *b)
{
    const struct wanted *x = a, *y = b;
    if (x->missing || y->missing)
        return x->missing - y->missing;
    if (x->len != y->len)
        return x->len < y->len ? -1 : 1;
    return x->len ? memcmp(x->data, y->data, x->len) : 0;
}

bool when_read(struct when *when, char **words, size_t n, const tamis_schema *schema)
{
    size_t room = 1;
    for (size_t i = 0; i < n; i++)
        room += strlen(words[i]) + 32;
    *when = (struct when){0};
    when->clause = calloc(n, sizeof *when->clause);
    when->name = calloc(n, sizeof *when->name);
    when->memory = malloc(room);
    bool good = (when->clause && when->name && when->memory) || no_memory();
    uint8_t *memory = when->memory;
    for (size_t i = 0; good && i < n; i++) {
        struct word w;
        good = cut_word(&w, words[i], schema) &&
               add_value(clause_of(when, w.attribute, schema), w.value, schema, &memory);
    }
    for (size_t i = 0; good && i < when->n; i++)
        qsort(when->clause[i].value, when->clause[i].n, sizeof(struct wanted), by_value);
    if (!good)
        when_free(when);
    return good;
}

/* ---- asking a record ------------------------------------------------------------------------- */

static bool clause_holds(const struct clause *c, const struct value *value)
{
    uint8_t normal[NORMAL_MAX + 32];
    struct wanted here = {value->data, value->len, value->state == VALUE_MISSING};
    if (c->type != TAMIS_BYTES && !here.missing && here.len <= NORMAL_MAX) {
        size_t n = tamis_value_normal(c->type, here.data, here.len, normal, sizeof normal);
        if (n) {
            here.data = normal;
            here.len = n;
        }
    }
    if (c->n == 1)
        return by_value(&here, c->value) == 0;
    return bsearch(&here, c->value, c->n, sizeof here, by_value);
}

bool when_holds(const struct when *when, const struct value *values)
{
    for (size_t i = 0; i < when->n; i++)
        if (!clause_holds(&when->clause[i], &values[i]))
            return false;
    return true;
}
