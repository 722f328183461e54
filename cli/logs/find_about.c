/* tamis find CATALOG without a question: lists the attributes that can be queried. */
#include <stdlib.h>
#include <string.h>

#include "find_target.h"
#include "question_parts.h"
#include "ui/out.h"
#include "ui/report.h"

#define EXAMPLE_TEXT ((size_t)64 << 10) /* bytes of a file that are read for examples */
#define EXAMPLE_MOST 32                 /* files of each format that are read */
#define SHOWN        40                 /* bytes of an example */

/* A value of each field, from the first records that have one. */
struct examples {
    const struct fields *fields;
    char (*text)[SHOWN + 1];
    size_t left;
};

static bool take_example(void *context, uint64_t record, const char *name,
                         const struct read_value *v)
{
    struct examples *e = context;
    const struct field *f = field_named(e->fields, name, strlen(name));
    (void)record;
    if (!f || !v || v->state != VALUE_PRESENT)
        return true;
    char *to = e->text[f - e->fields->field];
    if (to[0])
        return true;
    size_t len = v->len < SHOWN ? v->len : SHOWN;
    for (size_t i = 0; i < len; i++)
        to[i] = v->data[i] < ' ' || v->data[i] == 0x7f ? '?' : (char)v->data[i];
    to[len] = 0;
    return --e->left > 0;
}

static void look_into(const struct target *t, const struct entry *entry, struct examples *e)
{
    struct input_options options = {
        .dialect = t->inputs.dialect, .segment = EXAMPLE_TEXT, .file = true};
    struct input *input = NULL;
    struct input_segment segment = {0};
    struct input_text text = {0};
    tamis_reason reason;
    bool more = false;
    char *path = base_join(t->base, entry->path);
    entry_restore(entry, &options.dialect);
    if (path && input_open(&input, path, &options, &reason) == TAMIS_OK &&
        input_next(input, &segment, &text, &more, &reason) == TAMIS_OK && more)
        reader_fields(input, &text, take_example, e, &reason);
    input_text_free(&text);
    input_segment_free(&segment);
    input_close(input);
    free(path);
}

/* Files by format; the first ones of each are read. */
static void find_examples(const struct target *t, struct examples *e, size_t *formats)
{
    for (size_t i = 0; i < t->inputs.n; i++) {
        const struct entry *entry = &t->inputs.entry[i];
        if (entry->passed || entry->unread)
            continue;
        if (formats[entry->format]++ < EXAMPLE_MOST && e->left)
            look_into(t, entry, e);
    }
}

static void report_fields(const struct target *t, const struct examples *e)
{
    report_list("attributes", "attributes: name, type, a value");
    for (size_t i = 0; i < t->own.n; i++) {
        const struct field *f = &t->own.field[i];
        bool indexed = f->attribute != NOT_INDEXED;
        if (report_item(f->name, "%-6s %s%s", tamis_type_name(f->type), e->text[i],
                        indexed ? "" : "  (not indexed)")) {
            json_text("name", f->name);
            json_text("type", tamis_type_name(f->type));
            json_flag("indexed", indexed);
            if (e->text[i][0])
                json_text("example", e->text[i]);
            json_close();
        }
    }
    report_end();
}

/* The first and last time of the time attributes, as far as the catalog knows. */
static void report_times(const struct target *t)
{
    tamis_range all = {{INT64_MAX, 0}, {INT64_MIN, 0}}, one;
    char text[2][TIME_NORMAL_MAX] = {"", ""};
    for (size_t i = 0; i < t->own.n; i++) {
        const struct field *f = &t->own.field[i];
        bool known = f->attribute != NOT_INDEXED && inputs_time(&t->inputs, f->name);
        for (uint64_t s = 0; known && s < tamis_catalog_segments(t->catalog); s++) {
            if (!tamis_catalog_bounds(t->catalog, s, f->attribute, &one))
                continue;
            all.low = tamis_order_compare(one.low, all.low) < 0 ? one.low : all.low;
            all.high = tamis_order_compare(one.high, all.high) > 0 ? one.high : all.high;
        }
    }
    if (all.low.whole > all.high.whole || all.low.whole == INT64_MIN)
        return;
    text[0][time_write((struct stamp){all.low.whole, 0}, text[0])] = 0;
    text[1][time_write((struct stamp){all.high.whole, 0}, text[1])] = 0;
    report_text("since", "from", text[0]);
    report_text("until", "to", text[1]);
}

static void about(const struct target *t, const struct examples *e, const size_t *formats,
                  bool json)
{
    uint64_t records = 0, text = 0;
    for (size_t i = 0; i < t->inputs.n; i++) {
        records += t->inputs.entry[i].count.records;
        text += t->inputs.entry[i].text;
    }
    report_open(json);
    report_text("catalog", "catalog", t->path);
    report_count("inputs", "files", inputs_count(&t->inputs));
    report_group("formats", "by format");
    for (int i = READ_AUTO; i < READ_FORMATS; i++)
        if (formats[i])
            report_count(read_format_name((enum read_format)i),
                         read_format_name((enum read_format)i), formats[i]);
    report_end();
    report_count("records", "records", records);
    report_size("text", "text", text);
    report_times(t);
    report_text("zone", "time zone", t->inputs.dialect.zone ? t->inputs.dialect.zone : "UTC");
    report_fields(t, e);
    report_end();
}

int targets_about(struct target *targets, size_t n, bool json)
{
    bool good = true;
    for (size_t i = 0; good && i < n; i++) {
        const struct target *t = &targets[i];
        size_t formats[READ_FORMATS] = {0};
        struct examples e = {&t->own, calloc(t->own.n + 1, SHOWN + 1), t->own.n};
        good = e.text != NULL;
        if (good) {
            find_examples(t, &e, formats);
            about(t, &e, formats, json);
        }
        free(e.text);
    }
    if (!good)
        return no_memory("examples"), TROUBLE;
    if (!json)
        put_text(
            "\nAsk: a=VALUE  a=LOW..HIGH  a=@FILE  a^=PREFIX  a~word  a~/regex/  a!=VALUE  a!  "
            "'words of the line'\n     --since 2h  --until 2024-05-31  --fields a,b  "
            "--count-by a; see tamis help find\n");
    return FOUND;
}
