/* Attributes and combinations. See attrs.h. */
#include "attrs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The type that follows the last colon. */
static bool take_type(char *name, tamis_type *type, bool *typed)
{
    char *colon = strrchr(name, ':');
    *type = TAMIS_BYTES;
    if (!colon)
        return true;
    if (tamis_type_named(colon + 1, type)) {
        *typed = true;
        *colon = 0;
        return true;
    }
    return refuse(
        "unknown type '%s': --attrs: give text (which a name with a colon needs too), int, dec, "
        "time, ip, path, words or fold",
        colon + 1);
}

static size_t number_of(const struct attrs *a, const char *name, size_t len)
{
    size_t i = 0;
    while (i < a->n && (strlen(a->names[i]) != len || memcmp(a->names[i], name, len) != 0))
        i++;
    return i;
}

static bool read_list(struct attrs *a, const char *list)
{
    a->text = strdup(list);
    if (!a->text)
        return no_memory("--attrs");
    for (char *at = a->text, *next; at; at = next) {
        next = strchr(at, ',');
        if (next)
            *next++ = 0;
        if (a->n == TAMIS_ATTRIBUTES_MAX)
            return refuse("too many attributes: --attrs: give at most %d attributes",
                          TAMIS_ATTRIBUTES_MAX);
        tamis_attribute *one = &a->list[a->n];
        if (!take_type(at, &one->type, &a->typed[a->n]))
            return false;
        if (!*at || strlen(at) > 255)
            return refuse("no name: --attrs '%s': give names of 1 to 255 bytes, with commas "
                          "between them",
                          list);
        size_t known = number_of(a, at, strlen(at));
        if (known < a->n_known)
            continue;
        if (known < a->n)
            return refuse("given twice: --attrs, '%s': name each attribute once", at);
        one->name = a->names[a->n] = at;
        a->n++;
    }
    return true;
}

static bool read_combo(struct attrs *a, const char *text)
{
    uint64_t mask = 0;
    for (const char *at = text; at;) {
        size_t len = strcspn(at, "+"), i = number_of(a, at, len);
        if (i == a->n)
            return refuse("unknown attribute '%.*s': --combo %s: name attributes of --attrs, "
                          "with + between them",
                          (int)len, at, text);
        mask |= UINT64_C(1) << i;
        at = at[len] ? at + len + 1 : NULL;
    }
    if ((mask & (mask - 1)) == 0)
        return refuse("not a combination: --combo %s: name two attributes or more", text);
    if (a->n_combos == TAMIS_COMBOS_MAX)
        return refuse("too many combinations: --combo: give at most %d", TAMIS_COMBOS_MAX);
    for (size_t i = 0; i < a->n_combos; i++)
        if (a->combos[i] == mask)
            return true;
    a->combos[a->n_combos++] = mask;
    return true;
}

void combo_text(uint64_t mask, attribute_name *name, const void *of, char *out, size_t room)
{
    size_t len = 0;
    *out = 0;
    for (; mask && len + 1 < room; mask &= mask - 1) {
        int n = snprintf(out + len, room - len, "%s%s", len ? "+" : "",
                         name(of, (uint32_t)__builtin_ctzll(mask)));
        len += n > 0 ? (size_t)n : 0;
    }
}

static const char *schema_name(const void *schema, uint32_t attribute)
{
    return tamis_schema_name(schema, attribute);
}

void schema_names(const tamis_schema *schema, uint64_t mask, char *out, size_t room)
{
    combo_text(mask, schema_name, schema, out, room);
}

void attrs_known(struct attrs *a, const tamis_schema *schema)
{
    *a = (struct attrs){.n_known = tamis_schema_attributes(schema)};
    for (; a->n < a->n_known; a->n++) {
        a->names[a->n] = tamis_schema_name(schema, (uint32_t)a->n);
        a->list[a->n] =
            (tamis_attribute){.name = a->names[a->n],
                              .type = tamis_schema_type(schema, (uint32_t)a->n),
                              .bounds_only = tamis_schema_bounds_only(schema, (uint32_t)a->n)};
        a->typed[a->n] = true;
    }
}

bool attrs_read(struct attrs *a, const char *list, const struct texts *combos)
{
    bool good = !list || read_list(a, list);
    if (good && combos->n == 1 && strcmp(combos->text[0], "none") == 0)
        a->no_combos = true;
    else
        for (size_t i = 0; good && i < combos->n; i++)
            good = read_combo(a, combos->text[i]);
    if (!good)
        attrs_free(a);
    return good;
}

void attrs_free(struct attrs *a)
{
    free(a->text);
    *a = (struct attrs){0};
}
