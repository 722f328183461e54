/*
 * Chooses what to index if the user does not name attributes. A sample of the inputs shows which fields there
 * are, what their values look like, and how many distinct ones a segment would have; that number
 * times the bits per key is the cost of an attribute. The attributes that distinguish records best are chosen, as
 * many as fit into the budget.
 *
 *     cost of an attribute   distinct values in a segment, and of addresses and paths the networks and prefixes
 *                            that are keys too, * 12 bits (0.3 %)
 *     cost of a pair         distinct pairs in a segment * 22 bits (0.3 % over a hundred segments)
 *     budget                 3 % of the text, 5 % with words, minus 0.5 % for the fronts; but the best
 *                            attribute is taken whatever it costs, unless lines have their words: where
 *                            records have 30 bytes nothing else fits, and find would read everything
 *     worth                  share of records that have it * log2(distinct values) * how often people
 *                            search for it: addresses and names more than numbers, sentences least
 *
 * The number of distinct values in a segment is extrapolated from its growth in the sample (distinct_growth.h).
 */
#define _GNU_SOURCE
#include "index_choose.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "distinct_growth.h"

#define SAMPLE_FILES  256
#define SAMPLE_TEXT   ((size_t)4 << 20)
#define SAMPLE_LEAST  ((size_t)16 << 10) /* bytes per file */
#define SAMPLE_MOST   ((size_t)4 << 20)
#define SAMPLE_FIELDS 512
#define TIMES_LEN     256  /* bytes of the names of attributes that have the time in some input */
#define SAMPLE_LOOKS  1024 /* values of a field that are all examined; of later ones, one in 16 */
#define WORDS_PIECE   ((size_t)16 << 10)
#define WITHOUT       0.025 /* budgets */
#define WITH_WORDS    0.045
#define SMALL         65536.0
#define KEY_BYTES     (12 / 8.0)
#define PAIR_BYTES    (22 / 8.0)
#define SURE          0.95 /* share of the values that must look like a type */

struct sampled {
    const char *name;
    struct distinct_growth values;
    struct distinct_growth keys; /* of distinct addresses and paths: they have several each */
    uint64_t records, there;     /* records that have it; with a value that is not empty */
    uint64_t before;             /* records that had it before the current file */
    uint64_t zeros;              /* numbers with leading zeros */
    uint64_t looked, spaces;     /* values that were examined; their spaces */
    uint64_t looks[TAMIS_TYPES]; /* what they look like */
    const char *documented;      /* type */
    double cost, worth;
    tamis_type type;
    bool taken, bounds; /* only lowest and highest are kept */
};

struct sampled_cell {
    uint64_t record, hash;
    size_t field;
};

struct sample {
    struct inputs *inputs;
    struct sampled *field;
    size_t n, room;
    struct sampled_cell *cell;
    size_t n_cells, cells_room;
    struct distinct_growth words; /* of whole lines */
    struct time_context time;
    const struct input *input;
    uint64_t records, first; /* first: number of the first record of the current file */
    uint64_t text, worded;   /* bytes; of these, those whose words were counted */
    double total;            /* text of all inputs */
    uint64_t (*most)[SAMPLE_FIELDS /
                     64]; /* per file whose format defines no time: fields of most records */
    size_t n_files;
    size_t last;        /* the last field found */
    bool prose, failed; /* there is text that people would search by words */
};

/* ---- looking at values ----------------------------------------------------------------------- */

static void look_at(struct sample *s, struct sampled *f, const struct read_value *v)
{
    char room[300];
    struct stamp stamp;
    bool short_one = v->len <= 64, zero = short_one && v->len > 1 && v->data[0] == '0';
    bool all = f->there++ < SAMPLE_LOOKS || f->there % 16 == 0;
    bool whole = (all || zero) && short_one &&
                 tamis_value_normal(TAMIS_INT, v->data, v->len, room, sizeof room) > 0;
    f->zeros += whole && zero;
    if (!all)
        return;
    f->looked++;
    for (size_t i = 0; i < v->len; i++)
        f->spaces += v->data[i] == ' ';
    f->looks[TAMIS_PATH] += v->data[0] == '/';
    if (!short_one)
        return;
    f->looks[TAMIS_INT] += whole && v->len <= 18;
    f->looks[TAMIS_DEC] += tamis_value_normal(TAMIS_DEC, v->data, v->len, room, sizeof room) > 0;
    f->looks[TAMIS_IP] += tamis_value_normal(TAMIS_IP, v->data, v->len, room, sizeof room) > 0;
    f->looks[TAMIS_TIME] += time_read(&s->time, v->data, v->len, &stamp) && (!whole || v->len > 9);
}

/* Usual names of times: a number by itself does not show that it is one. */
static bool named_time(const char *name)
{
    static const char *const parts[] = {"time", "date", "epoch", "created", "updated"};
    const char *last = strrchr(name, '.');
    last = last ? last + 1 : name;
    for (size_t i = 0; i < COUNT(parts); i++)
        if (strcasestr(last, parts[i]))
            return true;
    return strcasecmp(last, "ts") == 0;
}

static tamis_type guess(const struct sampled *f)
{
    double sure = SURE * (double)f->looked;
    tamis_type type;
    if (f->documented && tamis_type_named(f->documented, &type))
        return type;
    if (f->there == 0)
        return TAMIS_BYTES;
    bool numbers = (double)f->looks[TAMIS_DEC] >= sure;
    if ((double)f->looks[TAMIS_TIME] >= sure && (!numbers || named_time(f->name)))
        return TAMIS_TIME;
    if ((double)f->looks[TAMIS_IP] >= sure)
        return TAMIS_IP;
    if ((double)f->looks[TAMIS_INT] >= sure)
        return f->zeros ? TAMIS_BYTES : TAMIS_INT;
    if (numbers && !f->zeros)
        return TAMIS_DEC;
    if ((double)f->looks[TAMIS_PATH] >= sure)
        return TAMIS_PATH;
    return f->spaces >= 3 * f->looked ? TAMIS_WORDS : TAMIS_BYTES;
}

/* Sentences that mostly differ: people search them, and the lines around them. Of texts that repeat,
   like the agents of web servers, the words of the field suffice. */
static bool is_prose(const struct sampled *f)
{
    return f->type == TAMIS_WORDS && !f->documented && f->values.n > f->there / 4;
}

/* ---- sampling -------------------------------------------------------------------------------- */

static const char *documented_type(enum read_format format, const char *name)
{
    size_t n;
    const struct read_field *f = read_fields(format, &n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(f[i].name, name) == 0)
            return f[i].type;
    return NULL;
}

/* The field of this name; fields have about the same order in every record. */
static struct sampled *field_of(struct sample *s, const char *name)
{
    for (size_t k = 0; k < s->n; k++) {
        size_t i = (s->last + 1 + k) % s->n;
        if (strcmp(s->field[i].name, name) == 0) {
            s->last = i;
            return &s->field[i];
        }
    }
    if (s->n == SAMPLE_FIELDS)
        return NULL;
    const struct sampled field = {.name = inputs_keep(s->inputs, name),
                                  .documented = documented_type(s->input->dialect.format, name)};
    s->failed |= !field.name || !array_add(&s->field, &s->n, &s->room, &field, sizeof field);
    s->last = s->n - 1;
    return s->failed ? NULL : &s->field[s->last];
}

struct keys_of {
    struct sample *sample;
    struct sampled *field;
};

static void give_key(void *context, tamis_key key, bool part)
{
    struct keys_of *of = context;
    of->sample->failed |= !growth_put(&of->field->keys, hash_of(key.data, key.len) + part);
}

/* Counts the keys of a new address or path. */
static void count_keys(struct sample *s, struct sampled *f, const struct read_value *v)
{
    tamis_type type = guess(f);
    struct keys_of of = {s, f};
    if (type == TAMIS_IP || type == TAMIS_PATH)
        tamis_type_keys(type, (tamis_key){v->data, v->len}, give_key, &of);
}

static bool visit(void *context, uint64_t record, const char *name, const struct read_value *v)
{
    struct sample *s = context;
    struct sampled *f = field_of(s, name);
    if (s->first + record >= s->records)
        s->records = s->first + record + 1;
    if (!f || !v || v->state == VALUE_MISSING)
        return !s->failed;
    f->records++;
    for (; v; v = v->next) {
        uint64_t hash = hash_of(v->data, v->len);
        size_t known = f->values.n;
        s->failed |= !growth_put(&f->values, hash) ||
                     !room_for(&s->cell, s->n_cells, &s->cells_room, sizeof *s->cell);
        if (s->failed)
            return false;
        s->cell[s->n_cells++] =
            (struct sampled_cell){s->first + record, hash, (size_t)(f - s->field)};
        if (v->len) {
            look_at(s, f, v);
            if (f->values.n > known)
                count_keys(s, f, v);
        }
    }
    return !s->failed;
}

static void give_word(void *context, tamis_key key, bool part)
{
    struct sample *s = context;
    (void)part;
    s->failed |= !growth_put(&s->words, hash_of(key.data, key.len));
}

/* Words of the first quarter of a text: their number grows evenly, and each costs as much as a value. */
static void sample_words(struct sample *s, const struct input_text *text)
{
    size_t len = text->len / 4 < WORDS_PIECE ? text->len : text->len / 4;
    for (size_t at = 0, n; at < len; at += n) { /* short pieces are split faster */
        n = len - at < WORDS_PIECE ? len - at : WORDS_PIECE;
        tamis_type_keys(TAMIS_WORDS, (tamis_key){text->data + at, n}, give_word, s);
    }
    s->worded += len;
}

/* Which fields do most records of this file have? One of them may be their time. */
static void note_most(struct sample *s)
{
    uint64_t *most = s->most[s->n_files], records = s->records - s->first;
    bool timed = read_timed(s->input->dialect.format);
    for (size_t i = 0; i < s->n; i++) {
        struct sampled *f = &s->field[i];
        if (!timed && 2 * (f->records - f->before) > records)
            most[i / 64] |= UINT64_C(1) << i % 64;
        f->before = f->records;
    }
    s->n_files++;
}

static bool sample_file(struct sample *s, const char *path, size_t most)
{
    const struct input_options options = {
        .dialect = s->inputs->dialect, .segment = most, .file = true};
    struct input *input = NULL;
    struct input_segment segment = {0};
    struct input_text text = {0};
    tamis_reason reason = {0};
    bool more = false;
    tamis_error error = input_open(&input, path, &options, &reason);
    if (error == TAMIS_OK)
        error = input_next(input, &segment, &text, &more, &reason);
    if (error == TAMIS_OK && more) {
        s->input = input;
        s->first = s->records;
        s->time.reference = text.of.reference;
        s->text += text.len;
        s->prose |= input->dialect.format == READ_TEXT || input->dialect.format == READ_SYSLOG;
        error = reader_fields(input, &text, visit, s, &reason);
        sample_words(s, &text);
        note_most(s);
    }
    input_text_free(&text);
    input_segment_free(&segment);
    input_close(input);
    return error != TAMIS_ENOMEM && !s->failed; /* other errors are reported when it is read */
}

/* ---- choosing -------------------------------------------------------------------------------- */

/* Bytes of text in a segment. */
static double segment_of(const struct sample *s)
{
    double segment = (double)s->inputs->segment;
    return segment < s->total ? segment : s->total;
}

/* In a segment, as a share of its text; they occurred in this much text of the sample. */
static double share_of(const struct sample *s, const struct distinct_growth *g, uint64_t text,
                       double bytes)
{
    double segment = segment_of(s);
    return text ? growth_at(g, segment / (double)text) * bytes / segment : 0;
}

/* Keys per distinct value. They become fewer the more values there are, since networks and prefixes are shared. */
static double keys_each(const struct sample *s, const struct sampled *f)
{
    if (f->type == TAMIS_WORDS)
        return f->looked ? 1 + (double)f->spaces / (double)f->looked : 1;
    double values = share_of(s, &f->values, s->text, segment_of(s));
    bool parted = (f->type == TAMIS_IP || f->type == TAMIS_PATH) && f->keys.n && values > 0;
    return parted ? growth_at(&f->keys, values / (double)f->values.n) / values : 1;
}

static double interest(const struct sampled *f)
{
    if (2 * f->spaces > f->looked)
        return 0.3;
    return f->type == TAMIS_IP ? 2 : f->type == TAMIS_INT ? 0.5 : 1;
}

static void weigh(struct sample *s)
{
    const char *time = s->inputs->dialect.time;
    for (size_t i = 0; i < s->n; i++) {
        struct sampled *f = &s->field[i];
        f->type = time && strcmp(f->name, time) == 0 ? TAMIS_TIME : guess(f);
        f->cost = share_of(s, &f->values, s->text, keys_each(s, f) * KEY_BYTES);
        f->worth = s->records ? (double)f->records / (double)s->records *
                                    __builtin_log2(1 + (double)f->values.n) * interest(f)
                              : 0;
        f->bounds = f->type == TAMIS_DEC || f->type == TAMIS_TIME;
        s->prose |= is_prose(f);
    }
}

/* The most useful field that is left; ties go to the earlier one. The last places are for times of records. */
static struct sampled *best_left(struct sample *s, size_t places)
{
    struct sampled *best = NULL, *time = NULL;
    size_t times = 0;
    for (size_t i = 0; i < s->n; i++) {
        struct sampled *f = &s->field[i];
        bool timed = f->type == TAMIS_TIME && inputs_time(s->inputs, f->name);
        if (f->taken)
            continue;
        if (!best || f->worth > best->worth)
            best = f;
        if (timed && (!times++ || f->worth > time->worth))
            time = f;
    }
    return times >= places ? time : best;
}

static void take(struct attrs *a, const char *name, tamis_type type, bool bounds)
{
    a->names[a->n] = name;
    a->list[a->n++] = (tamis_attribute){.name = name, .type = type, .bounds_only = bounds};
}

/* Distinct pairs of values of two fields, in the records of the sample. */
static double pair_cost(struct sample *s, size_t one, size_t two)
{
    struct distinct_growth pairs = {0};
    uint64_t record = UINT64_MAX, hash[2] = {0};
    unsigned have = 0;
    for (size_t i = 0; i < s->n_cells; i++) {
        const struct sampled_cell *c = &s->cell[i];
        if (c->field != one && c->field != two)
            continue;
        if (c->record != record)
            have = 0;
        record = c->record;
        hash[c->field == two] = c->hash;
        have |= c->field == two ? 2 : 1;
        if (have == 3)
            s->failed |= !growth_put(&pairs, hash[0] * 31 + hash[1]);
    }
    double cost = share_of(s, &pairs, s->text, PAIR_BYTES);
    free(pairs.slot);
    return cost;
}

static void say_field(const struct sampled *f, const struct sample *s, const char *what)
{
    remark("%s %s:%s: %llu values in %llu of %llu records sampled, %.2f %% of the text", what,
           f->name, tamis_type_name(f->type), (unsigned long long)f->values.n,
           (unsigned long long)f->records, (unsigned long long)s->records,
           f->bounds ? 0.0 : 100 * f->cost);
}

/* The state of the choice. */
struct choice {
    struct sample *sample;
    struct attrs *attrs;
    double spent, budget;
    size_t best[3][2],
        n_best;           /* the first attributes that can be paired: their numbers, and fields */
    bool say, best_taken; /* best_taken: the best field is indexed, or nothing is lost without it */
};

struct field_pair {
    size_t one, two; /* among the best */
    double cost;
};

/* Pairs of the three most selective attributes, the cheapest first, as long as they fit: of an address,
   a user and a path that is mostly the address with the user. */
static void take_pairs(struct choice *c)
{
    struct attrs *a = c->attrs;
    struct field_pair pair[3];
    size_t n = 0;
    for (size_t i = 0; i < c->n_best; i++)
        for (size_t j = i + 1; j < c->n_best; j++) {
            struct field_pair p = {i, j, pair_cost(c->sample, c->best[i][1], c->best[j][1])};
            size_t at = n++;
            for (; at > 0 && pair[at - 1].cost > p.cost; at--)
                pair[at] = pair[at - 1];
            pair[at] = p;
        }
    for (size_t i = 0; i < n; i++) {
        size_t one = c->best[pair[i].one][0], two = c->best[pair[i].two][0];
        bool fits = c->spent + pair[i].cost <= c->budget;
        if (c->say)
            remark("%s %s+%s together: %.2f %% of the text",
                   fits ? "indexed:" : "too much:", a->names[one], a->names[two],
                   100 * pair[i].cost);
        if (!fits)
            continue;
        c->spent += pair[i].cost;
        a->combos[a->n_combos++] = UINT64_C(1) << one | UINT64_C(1) << two;
    }
    a->no_combos = a->n_combos == 0;
    c->n_best = 0;
}

static void take_field(struct choice *c, struct sampled *f)
{
    bool within = f->cost + c->spent <= c->budget;
    bool must = !f->bounds && f->values.n > 1 && !c->best_taken; /* the first that has keys */
    c->best_taken |= must;
    if (must && !within)
        remark(
            "indexed: %s:%s: %.1f %% of the text, since records are short; --attrs chooses others",
            f->name, tamis_type_name(f->type), 100 * f->cost);
    f->bounds |= tamis_type_ordered(f->type) && !within && !must;
    bool fits = f->bounds || within || must;
    if (c->say && (within || !must))
        say_field(f, c->sample,
                  !fits       ? "too much:"
                  : f->bounds ? "lowest and highest:"
                              : "indexed:");
    if (!fits)
        return;
    if (!f->bounds && f->type != TAMIS_WORDS && f->values.n > 1 && c->n_best < 3 &&
        !c->attrs->n_combos && !c->attrs->no_combos) {
        c->best[c->n_best][0] = c->attrs->n;
        c->best[c->n_best++][1] = (size_t)(f - c->sample->field);
    }
    c->spent += within && !f->bounds ? f->cost : 0;
    take(c->attrs, f->name, f->type, f->bounds);
    if (c->n_best == 3 && !c->attrs->n_known)
        take_pairs(c);
}

static void choose(struct sample *s, struct attrs *a, bool say)
{
    double words = s->prose ? share_of(s, &s->words, s->worded, KEY_BYTES) : 0;
    struct choice c = {.sample = s,
                       .attrs = a,
                       .spent = words,
                       .budget = s->prose ? WITH_WORDS : WITHOUT,
                       .say = say,
                       .best_taken = s->prose || a->n_known};
    struct sampled *f;
    if (c.budget * s->total < SMALL) /* limiting a small catalog would save nothing */
        c.budget = SMALL / s->total;
    while (a->n < TAMIS_ATTRIBUTES_MAX - 1 &&
           (f = best_left(s, TAMIS_ATTRIBUTES_MAX - 1 - a->n)) != NULL) {
        f->taken = true;
        if (!s->prose || f->type != TAMIS_WORDS) /* otherwise the line contains them */
            take_field(&c, f);
    }
    if (c.n_best && !a->n_known)
        take_pairs(&c);
    bool lines = false;
    for (size_t i = 0; i < a->n; i++)
        lines |= strcmp(a->names[i], READ_LINE) == 0;
    if (!lines && (s->prose || a->n == 0)) {
        take(a, READ_LINE, TAMIS_WORDS, false);
        if (say)
            remark("indexed: the words of lines: %.2f %% of the text", 100 * words);
    }
}

/* Sets types that --attrs did not give. What it gives as a time is one, whatever its values look like. */
static void fill_types(struct sample *s, struct attrs *a)
{
    for (size_t i = 0; i < a->n; i++)
        for (size_t j = 0; j < s->n; j++) {
            bool same = strcmp(a->names[i], s->field[j].name) == 0;
            if (same && !a->typed[i])
                a->list[i].type = s->field[j].type;
            if (same && a->list[i].type == TAMIS_TIME)
                s->field[j].type = TAMIS_TIME;
        }
}

/* Of each file whose format does not define it: the first field of times that most of its records have; and `time`. A
   list as in struct dialect. */
static const char *find_times(struct sample *s, const char *known)
{
    char list[TIMES_LEN] = "";
    size_t len = known ? strlen(known) : 0;
    if (len >= sizeof list || (len && known[len - 1] != '\n'))
        return known; /* given by --time */
    memcpy(list, known ? known : "", len);
    for (size_t k = 0, i = 0; k <= s->n_files; k++, i = 0) {
        while (k < s->n_files && i < s->n &&
               !(s->field[i].type == TAMIS_TIME && s->most[k][i / 64] >> i % 64 & 1))
            i++;
        const char *name = k == s->n_files ? READ_TIME : i < s->n ? s->field[i].name : "\n";
        bool fits = len + strlen(name) + 10 < sizeof list && !strchr(name, '\n');
        if (fits && !names_have(list, name))
            len += (size_t)sprintf(list + len, "%s\n", name);
    }
    return inputs_keep(s->inputs, list);
}

static bool is_noted(const struct inputs *in, size_t n, const char *name)
{
    size_t i = 0;
    while (i < n && strcmp(in->field[i].name, name) != 0)
        i++;
    return i < n;
}

bool choose_attributes(struct inputs *in, const char *base, const size_t *entries, size_t n,
                       uint64_t text, struct attrs *attrs, bool say)
{
    struct sample s = {.inputs = in, .time = {.zone = in->dialect.zone}, .total = 1 + (double)text};
    size_t files = n < SAMPLE_FILES ? n : SAMPLE_FILES, most = files ? SAMPLE_TEXT / files : 0;
    size_t noted = in->n_fields;
    s.most = calloc(SAMPLE_FILES, sizeof *s.most);
    bool good = s.most != NULL;
    most = most < SAMPLE_LEAST ? SAMPLE_LEAST : most > SAMPLE_MOST ? SAMPLE_MOST : most;
    for (size_t i = 0; good && i < files; i++) {
        char *path = base_join(base, in->entry[entries[i * n / files]].path);
        good = path && sample_file(&s, path, most);
        free(path);
    }
    weigh(&s);
    if (!in->chosen)
        fill_types(&s, attrs);
    for (size_t i = 0; good && i < s.n; i++) {
        /* fields of earlier runs keep the earlier choice */
        s.field[i].taken = is_noted(in, noted, s.field[i].name);
        good = s.field[i].taken || inputs_add_field(in, s.field[i].name, s.field[i].type);
    }
    in->dialect.time = good ? find_times(&s, in->dialect.time) : NULL;
    good = good && in->dialect.time;
    if (good && in->chosen)
        choose(&s, attrs, say);
    good = good && !s.failed;
    for (size_t i = 0; i < s.n; i++)
        free(s.field[i].values.slot), free(s.field[i].keys.slot);
    free(s.field);
    free(s.most);
    free(s.cell);
    free(s.words.slot);
    if (!good)
        no_memory("inputs");
    return good;
}

void choose_times(const struct inputs *in, struct attrs *a)
{
    for (size_t i = 0; i < in->n_fields && a->n < TAMIS_ATTRIBUTES_MAX; i++) {
        const struct note_field *f = &in->field[i];
        bool wanted = f->type == TAMIS_TIME && inputs_time(in, f->name);
        for (size_t j = 0; j < a->n; j++)
            wanted &= strcmp(a->names[j], f->name) != 0;
        if (!wanted)
            continue;
        take(a, f->name, TAMIS_TIME, true);
        a->typed[a->n - 1] = true;
    }
}
