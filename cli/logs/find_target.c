/* Catalogs, and the question as each of them interprets it. See find_target.h. */
#include "find_target.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "question_parts.h"

uint64_t target_words(const struct target *t)
{
    return (tamis_catalog_segments(t->catalog) + 63) / 64;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Adds a field unless there is one of its name; false: no memory. */
static bool fields_add(struct fields *all, struct field f)
{
    return field_named(all, f.name, strlen(f.name)) ||
           array_add(&all->field, &all->n, &all->room, &f, sizeof f);
}

static bool fields_note(struct fields *all, const struct note_field *fields, size_t n)
{
    bool good = true;
    for (size_t i = 0; good && i < n; i++)
        good = fields_add(all, (struct field){fields[i].name, fields[i].type, NOT_INDEXED, false});
    return good;
}

/* The attributes of the catalog, and the other fields of its inputs. */
static bool find_fields(struct target *t)
{
    const tamis_schema *schema = tamis_catalog_schema(t->catalog);
    bool good = true;
    for (uint32_t i = 0; good && i < tamis_schema_attributes(schema); i++)
        good = fields_add(&t->own, (struct field){tamis_schema_name(schema, i),
                                                  tamis_schema_type(schema, i), i, false});
    for (size_t i = 0; i < t->inputs.n && !t->own.open; i++)
        t->own.open = !t->inputs.entry[i].passed && read_names_fields(t->inputs.entry[i].format);
    return good && fields_note(&t->own, t->inputs.field, t->inputs.n_fields);
}

bool target_take(struct target *t, tamis_catalog *catalog)
{
    tamis_reason reason = {0};
    size_t len;
    t->catalog = catalog;
    const void *note = tamis_catalog_note(catalog, &len);
    if (!succeeded(inputs_decode(&t->inputs, note, len, &reason), &reason, t->path) ||
        !inputs_zone(&t->inputs, t->path))
        return false;
    t->bits = calloc(target_words(t) + 1, sizeof *t->bits);
    t->hit = calloc(target_words(t) + 1, sizeof *t->hit);
    t->time = (struct time_context){.zone = t->inputs.dialect.zone, .reference = time(NULL)};
    return (t->bits && t->hit && find_fields(t) && base_of(t->path, &t->base)) ||
           no_memory(t->path);
}

tamis_catalog *catalog_open(const char *operand, const struct store_options *options, char **path)
{
    tamis_reason reason = {0};
    tamis_catalog *catalog = NULL;
    WIPED_KEY key[TAMIS_KEY_LEN];
    tamis_open_options o;
    *path = catalog_meant(operand);
    if (!*path || !store_open(options, *path, key, &o))
        return NULL;
    tamis_error error = tamis_catalog_open(&catalog, *path, &o, &reason);
    return succeeded(error, &reason, *path) ? catalog : NULL;
}

bool target_open(struct target *t, const char *operand, const struct store_options *options)
{
    tamis_catalog *catalog = catalog_open(operand, options, &t->path);
    return catalog && target_take(t, catalog);
}

bool target_look(struct target *t, bool trust, unsigned threads)
{
    bool good = trust ? sight_trust(&t->sight, &t->inputs)
                      : sight_take(&t->sight, &t->inputs, t->base, threads);
    for (size_t i = 0; good && i < t->sight.n && !t->own.open; i++)
        t->own.open = t->sight.seen[i].look == LOOK_NEW || t->sight.seen[i].look == LOOK_CHANGED;
    return good;
}

void target_free(struct target *t)
{
    question_free(&t->question);
    inputs_free(&t->inputs);
    tamis_catalog_close(t->catalog);
    sight_free(&t->sight);
    free(t->own.field);
    free(t->fields.field);
    free(t->missed.path);
    free(t->places.place);
    free(t->prunes);
    free(t->name);
    free(t->column);
    free(t->bits);
    free(t->hit);
    free(t->base);
    free(t->path);
}

void targets_free(struct target *targets, size_t n)
{
    for (size_t i = 0; i < n; i++)
        target_free(&targets[i]);
    free(targets);
}

bool target_ask(struct target *t)
{
    tamis_reason reason = {0};
    t->prunes = calloc(t->question.n + 1, sizeof *t->prunes);
    tamis_error error =
        t->prunes ? question_ask(&t->question, t->catalog, t->bits, t->prunes, &t->answer, &reason)
                  : TAMIS_ENOMEM;
    return succeeded(error, &reason, t->path);
}

bool targets_join(struct target *targets, size_t n)
{
    bool good = true;
    for (size_t i = 0; good && i < n; i++) {
        struct fields *all = &targets[i].fields;
        for (size_t j = 0; good && j < targets[i].own.n; j++)
            good = fields_add(all, targets[i].own.field[j]);
        for (size_t j = 0; j < n; j++) {
            all->open |= targets[j].own.open;
            for (size_t k = 0; good && k < targets[j].own.n; k++) {
                struct field f = targets[j].own.field[k];
                f.attribute = NOT_INDEXED;
                good = fields_add(all, f);
            }
        }
    }
    return good || no_memory(targets->path);
}

bool targets_know(struct target *targets, size_t n, const struct note_field *known, size_t n_known)
{
    bool good = true;
    for (size_t i = 0; good && i < n; i++)
        good = fields_note(&targets[i].fields, known, n_known);
    return good || no_memory(targets->path);
}

/* ---- times ----------------------------------------------------------------------------------- */

size_t question_period_of(const struct question *q, const struct dialect *dialect)
{
    const char *name = dialect->time ? dialect->time : READ_TIME;
    if (!dialect->time && !read_timed(dialect->format) && dialect->format != READ_PATTERN)
        return NO_COLUMN; /* no record has a time */
    for (size_t i = 0; i < q->n_periods; i++)
        if (strcmp(q->name[q->period[i]], name) == 0)
            return q->period[i];
    return NO_COLUMN;
}

/* Adds the field as one that has times. */
static bool add_period(struct target *t, const char *name)
{
    const struct field *known = field_named(&t->own, name, strlen(name));
    struct field f = {name, TAMIS_TIME, NOT_INDEXED, false};
    if (known && known->type == TAMIS_TIME)
        f = *known;
    return question_period_field(&t->question, &f) || no_memory(t->path);
}

/* The fields with the time, depending on the input: first those of inputs in the catalog, which rule out segments;
   then those that a new file may have. (The note of a fleet has no inputs, but all fields.) */
static bool find_periods(struct target *t)
{
    const struct inputs *in = &t->inputs;
    const char *last = NULL, *given = in->dialect.time;
    bool good = true;
    for (size_t i = 0; good && i < in->n; i++) {
        const struct entry *e = &in->entry[i];
        bool timed = e->time || read_timed(e->format) || e->format == READ_PATTERN;
        const char *name = e->time ? e->time : READ_TIME;
        if (!timed || (last && strcmp(last, name) == 0))
            continue;
        good = add_period(t, name);
        last = name;
    }
    t->question.n_pruning = t->question.n_periods;
    for (size_t i = 0; good && i < t->own.n; i++)
        if (inputs_time(in, t->own.field[i].name))
            good = add_period(t, t->own.field[i].name);
    good =
        good && add_period(t, READ_TIME) && (!given || strchr(given, '\n') || add_period(t, given));
    if (!in->n)
        t->question.n_pruning = t->question.n_periods;
    return good;
}

/* ---- the question ---------------------------------------------------------------------------- */

static bool add_output(struct target *t, const struct field *field)
{
    size_t column = question_column(&t->question, field);
    if (column == NO_COLUMN)
        return no_memory(t->path);
    t->name[t->n_fields] = field->name;
    t->column[t->n_fields++] = column;
    return true;
}

/* --fields a,b or --count-by a. */
static bool choose_fields(struct target *t, const char *list)
{
    bool good = true;
    for (const char *at = list; good && at;) {
        size_t len = strcspn(at, ",");
        const struct field *f = field_asked(&t->fields, at, len);
        if (!f && t->fields.open && len && !(f = unseen_field(&t->question, at, len)))
            return no_memory(t->path);
        if (!f && !unknown_field(&t->question, at, len, list, &t->fields))
            return refuse("%s", t->question.why);
        good = add_output(t, f);
        at = at[len] ? at + len + 1 : NULL;
    }
    return good;
}

/* The set with the most alternatives determines the tag of a record. */
static void choose_tag(struct question *q)
{
    struct clause *best = q->clause;
    size_t most = 0;
    for (size_t i = 0; i < q->n; i++) {
        struct clause *c = &q->clause[i];
        size_t ways = c->n_values + c->n_networks + c->n_prefixes + c->n_ranges;
        if (!c->negative && ways > most) {
            most = ways;
            best = c;
        }
    }
    best->tagged = true;
}

static bool read_one(struct target *t, const struct target_question *asked)
{
    static const struct field whole = {READ_WHOLE, TAMIS_BYTES, NOT_INDEXED, false};
    struct question *q = &t->question;
    size_t room = t->fields.n + 2;
    for (const char *at = asked->fields; at; at = strchr(at, ','), at += at != NULL)
        room++;
    bool timed = asked->since || asked->until;
    if (!question_read(q, asked->words, asked->n, &t->fields, &t->time) ||
        (timed && !question_period(q, asked->since, asked->until)))
        return refuse("%s", q->why);
    if (timed && !find_periods(t))
        return false;
    if (!q->n_columns && question_column(q, &whole) == NO_COLUMN)
        return no_memory(t->path);
    t->name = calloc(room, sizeof *t->name);
    t->column = calloc(room, sizeof *t->column);
    if (!t->name || !t->column)
        return no_memory(t->path);
    if (asked->tag && !q->n)
        return refuse("nothing to tag: --tag: ask for what is found, or leave it out");
    if (asked->tag)
        choose_tag(q);
    if (asked->fields)
        return choose_fields(t, asked->fields);
    for (size_t i = 0; asked->all_fields && i < t->own.n; i++)
        if (strcmp(t->own.field[i].name, READ_LINE) != 0 && !add_output(t, &t->own.field[i]))
            return false;
    return true;
}

bool targets_read(struct target *targets, size_t n, const struct target_question *asked)
{
    if (asked->one && strchr(asked->fields, ','))
        return refuse("two attributes: --count-by %s: give one", asked->fields);
    for (size_t i = 0; i < n; i++)
        if (!read_one(&targets[i], asked))
            return false;
    return true;
}

/* Some record had the attribute. Its column depends on the fields with the time. */
static bool target_saw(const struct target *t, const char *name)
{
    for (size_t c = 0; c < t->question.n_columns && c < 64; c++)
        if (t->seen >> c & 1 && strcmp(t->question.column[c].name, name) == 0)
            return true;
    return false;
}

bool targets_unseen(struct target *targets, size_t n, bool stopped)
{
    bool whole = !stopped;
    for (size_t i = 0; i < n; i++)
        whole = whole && targets[i].answer.segments == tamis_catalog_segments(targets[i].catalog) &&
                targets[i].answer.by_attributes + targets[i].answer.by_verifier == 0;
    for (size_t c = 0; n && c < targets->question.n_columns && c < 64; c++) {
        const struct field *f = &targets->question.column[c];
        bool seen = !f->unseen;
        for (size_t i = 0; i < n; i++)
            seen = seen || target_saw(&targets[i], f->name);
        if (seen)
            continue;
        if (whole) {
            const char *word = f->name;
            for (size_t i = 0; i < targets->question.n; i++)
                if (targets->question.clause[i].column == c)
                    word = targets->question.clause[i].word;
            unknown_field(&targets->question, f->name, strlen(f->name), word, &targets->fields);
            return refuse("%s", targets->question.why);
        }
        remark(
            "no record that was read has an attribute '%s'; if there is one, index it with --attrs, "
            "so that find need not read everything",
            f->name);
    }
    return true;
}
