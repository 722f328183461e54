/* The form of records: attributes, with their names, and verifiers; how the options are stored,
   and which are impossible. */
#include "set.h"

#include "base/err.h"

/* ---- options --------------------------------------------------------------------------------- */

tamis_error attribute_add(const tamis_attribute *at, char names[NAMES_MAX], uint32_t *names_len,
                          uint32_t n, tamis_reason *reason)
{
    size_t len = at->name ? strlen(at->name) : 0;
    uint32_t same;
    if (len < 1 || len > ATTRIBUTE_LEN)
        return fail(reason, TAMIS_EARG, "the name of attribute %u has %zu bytes, not 1 to %d",
                    n + 1, len, ATTRIBUTE_LEN);
    if (n && attribute_find(names, n, at->name, &same, NULL) == TAMIS_OK)
        return fail(reason, TAMIS_EARG, "two attributes are named \"%.100s\"", at->name);
    if ((unsigned)at->type >= TAMIS_TYPES)
        return fail(reason, TAMIS_EARG, "attribute \"%.100s\" has an unknown type", at->name);
    memcpy(names + *names_len, at->name, len + 1);
    *names_len += (uint32_t)len + 1;
    return TAMIS_OK;
}

static tamis_error take_attributes(struct record_form *form, char names[NAMES_MAX],
                                   const tamis_records_options *o, tamis_reason *reason)
{
    if (o->n_attributes < 1 || o->n_attributes > TAMIS_ATTRIBUTES_MAX || !o->attributes)
        return fail(reason, TAMIS_EARG, "records have 1 to %d attributes", TAMIS_ATTRIBUTES_MAX);
    for (uint32_t i = 0; i < o->n_attributes; i++) {
        const tamis_attribute *at = &o->attributes[i];
        tamis_error e = attribute_add(at, names, &form->names_len, i, reason);
        if (e != TAMIS_OK)
            return e;
        if (at->distinct > BITS_MAX)
            return fail(reason, TAMIS_EARG, "attribute \"%.100s\" can have 2^40 values at most",
                        at->name);
        form->types[i] = at->type;
        form->distinct[i] = at->distinct;
    }
    return TAMIS_OK;
}

bool mask_listed(const uint64_t *masks, uint32_t n, uint64_t mask)
{
    for (uint32_t i = 0; i < n; i++)
        if (masks[i] == mask)
            return true;
    return false;
}

bool combo_wrong(const uint64_t *masks, uint32_t i, uint64_t all)
{
    return mask_listed(masks, i, masks[i]) || masks[i] & ~all || (masks[i] & (masks[i] - 1)) == 0;
}

static void add_mask(struct record_form *form, uint64_t mask)
{
    if (!mask_listed(form->masks, form->verifiers, mask))
        form->masks[form->verifiers++] = mask;
}

/* A single attribute needs no filter as a verifier; a table still makes it exact. */
static tamis_error settle_combos(struct record_form *form, const tamis_records_options *o,
                                 tamis_reason *reason)
{
    uint32_t p = form->attributes;
    uint64_t all = form_mask_all(form);
    bool verifies = form->verifier != TAMIS_VERIFIER_NONE;
    if (o->n_combos > TAMIS_COMBOS_MAX || (o->n_combos && !o->combos))
        return fail(reason, TAMIS_EARG, "records have at most %d combinations", TAMIS_COMBOS_MAX);
    if (o->n_combos && (o->no_combos || !verifies))
        return fail(reason, TAMIS_EARG, "combinations of attributes need a verifier");
    if (verifies && (p > 1 || form->verifier == TAMIS_VERIFIER_TABLE))
        add_mask(form, all);
    for (size_t i = 0; i < o->n_combos; i++) {
        uint64_t mask = o->combos[i];
        if (mask & ~all || (mask & (mask - 1)) == 0)
            return fail(reason, TAMIS_EARG, "a combination needs two or more of the attributes");
        add_mask(form, mask);
    }
    for (uint32_t i = 0; verifies && p == 3 && i < p && !o->n_combos && !o->no_combos; i++)
        add_mask(form, all & ~(UINT64_C(1) << (p - 1 - i)));
    return TAMIS_OK;
}

tamis_error record_form_from(struct record_form *form, char names[NAMES_MAX],
                             const tamis_records_options *o, tamis_reason *reason)
{
    const tamis_options *set = &o->set;
    *form = (struct record_form){
        .attributes = (uint32_t)o->n_attributes,
        .verifier = o->verifier ? o->verifier : TAMIS_VERIFIER_FILTER,
        .value = o->value ? o->value : TAMIS_VERIFY_MIXED,
        .names = names,
    };
    tamis_error e = take_attributes(form, names, o, reason);
    if (e != TAMIS_OK)
        return e;
    if ((unsigned)o->verifier > TAMIS_VERIFIER_FILTER ||
        (unsigned)o->value > TAMIS_VERIFY_ATTENUATED)
        return fail(reason, TAMIS_EARG, "an unknown verifier or verification value");
    if (set->growth == TAMIS_WINDOW)
        return fail(reason, TAMIS_EARG, "records do not expire: window is for filters");
    if (set->unique || set->shared_adds || set->add_always || set->tolerate != 0)
        return fail(reason, TAMIS_EARG,
                    "only filters have unique, shared_adds, add_always and tolerate");
    if ((set->bits || set->hashes) && set->growth != TAMIS_FIXED)
        return fail(reason, TAMIS_EARG,
                    "records of given bits and hashes do not grow: growth fixed");
    return settle_combos(form, o, reason);
}

const char *record_form_wrong(const struct record_form *form, const struct settings *set)
{
    uint32_t p = form->attributes;
    if (p < 1 || p > TAMIS_ATTRIBUTES_MAX)
        return "the number of attributes is out of range";
    if (form->verifier < TAMIS_VERIFIER_NONE || form->verifier > TAMIS_VERIFIER_FILTER ||
        form->value < TAMIS_VERIFY_MIXED || form->value > TAMIS_VERIFY_ATTENUATED)
        return "the verifier";
    uint64_t all = form_mask_all(form);
    bool whole =
        form->verifier != TAMIS_VERIFIER_NONE && (p > 1 || form->verifier == TAMIS_VERIFIER_TABLE);
    if (form->verifiers > VERIFIERS_MAX || (form->verifiers > 0) != whole ||
        (whole && form->masks[0] != all))
        return "the verifiers";
    for (uint32_t i = 1; i < form->verifiers; i++)
        if (combo_wrong(form->masks, i, all))
            return "a combination";
    for (uint32_t i = 0; i < p; i++)
        if ((unsigned)form->types[i] >= TAMIS_TYPES || form->distinct[i] > BITS_MAX)
            return "an attribute";
    if (set->growth == TAMIS_WINDOW || set->unique ||
        (set->published && set->growth != TAMIS_FIXED))
        return "the growth";
    return set->vectors_max > STACK_MAX ? "the most layers" : NULL;
}

bool record_form_equal(const struct record_form *x, const struct record_form *y)
{
    if (!x || !y)
        return x == y;
    return x->attributes == y->attributes && x->verifiers == y->verifiers &&
           x->verifier == y->verifier && x->value == y->value && x->names_len == y->names_len &&
           memcmp(x->names, y->names, x->names_len) == 0 &&
           memcmp(x->masks, y->masks, x->verifiers * sizeof *x->masks) == 0 &&
           memcmp(x->types, y->types, x->attributes * sizeof *x->types) == 0;
}

/* ---- names ----------------------------------------------------------------------------------- */

const char *names_wrong(const char *names, size_t len, uint32_t n,
                        uint16_t at[TAMIS_ATTRIBUTES_MAX])
{
    size_t next = 0;
    for (uint32_t i = 0; i < n; i++) {
        size_t name_len = strnlen(names + next, len - next);
        at[i] = (uint16_t)next;
        next += name_len + 1;
        if (name_len < 1 || name_len > ATTRIBUTE_LEN || next > len)
            return "the name of an attribute";
        for (uint32_t j = 0; j < i; j++)
            if (strcmp(names + at[i], names + at[j]) == 0)
                return "two attributes with the same name";
    }
    return next == len ? NULL : "the names of the attributes";
}

const char *form_name(const struct record_form *form, uint32_t attribute)
{
    const char *name = form->names;
    for (uint32_t i = 0; i < attribute; i++)
        name += strlen(name) + 1;
    return name;
}

/* "a, b, c", as far as there is room, followed by "...". */
static void list_names(const char *names, uint32_t n, char *out, size_t room)
{
    size_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        size_t len = strlen(names), need = len + (i ? 2 : 0);
        if (at + need + sizeof ", ..." > room) {
            memcpy(out + at, i ? ", ..." : "...", i ? 6 : 4);
            return;
        }
        memcpy(out + at, ", ", i ? 2 : 0);
        memcpy(out + at + need - len, names, len + 1);
        at += need;
        names += len + 1;
    }
}

tamis_error attribute_find(const char *names, uint32_t n, const char *name, uint32_t *number,
                           tamis_reason *reason)
{
    char known[130];
    const char *here = names;
    for (uint32_t i = 0; name && i < n; i++, here += strlen(here) + 1)
        if (strcmp(here, name) == 0) {
            *number = i;
            return TAMIS_OK;
        }
    list_names(names, n, known, sizeof known);
    return fail(reason, TAMIS_EARG, "no attribute \"%.40s\"; there are: %s", name ? name : "",
                known);
}

tamis_error tamis_records_attribute(const tamis_records *x, const char *name, uint32_t *number,
                                    tamis_reason *reason)
{
    return attribute_find(x->set.stack->form->names, x->set.stack->form->attributes, name, number,
                          reason);
}

const char *tamis_records_name(const tamis_records *x, uint32_t i)
{
    return i < x->set.stack->form->attributes ? form_name(x->set.stack->form, i) : NULL;
}

uint64_t tamis_records_combo(const tamis_records *x, uint32_t i)
{
    const struct record_form *form = x->set.stack->form;
    return form->verifiers && i < form->verifiers - 1 ? form->masks[i + 1] : 0;
}
