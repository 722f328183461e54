/* What tamis index reports at the end: figures, files that were skipped, attributes that no
   record has. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "index_verb.h"
#include "ui/report.h"

/* The format of each file that was read, since nothing else shows a wrong guess. */
static void tell_formats(const struct index_run *run)
{
    for (size_t i = 0; i < run->n_tasks; i++) {
        const struct entry *e = &run->inputs->entry[run->task[i].entry];
        char *path = base_join(run->base, e->path), table[64] = "";
        const char quoted[] = {'\'', (char)e->delimiter, '\'', 0};
        if (e->format == READ_CSV || e->format == READ_TSV)
            snprintf(table, sizeof table, ", separated by %s, %s a header",
                     e->delimiter == '\t' ? "tabs" : quoted, e->headless ? "without" : "with");
        if (!e->unread && !e->passed)
            remark("%s: %s%s, %llu records", path ? path : e->path, read_format_name(e->format),
                   table, (unsigned long long)e->count.records);
        free(path);
    }
}

void index_report(const struct index_run *run, const struct update *u, bool json, bool verbose,
                  double time)
{
    const struct index_tally *t = &run->tally;
    struct stat st;
    uint64_t bytes = stat(run->path, &st) == 0 ? (uint64_t)st.st_size : 0;
    if (json) {
        report_open(true);
        report_count("inputs", "", inputs_count(run->inputs));
        report_count("read", "", t->inputs);
        if (u) {
            report_count("new", "", u->fresh);
            report_count("changed", "", u->changed);
            report_count("grown", "", u->grown);
            report_count("renamed", "", u->renamed);
            report_count("removed", "", u->gone);
        }
        report_count("failed", "", t->failed);
        report_count("records_read", "", t->count.records);
        report_count("unfit_lines", "", t->count.unfit);
        report_count("bad_records", "", t->count.bad);
        report_count("header_rows", "", t->headers);
        report_count("bytes_read", "", t->bytes);
        report_count("segments_added", "", t->segments);
        report_count("catalog_bytes", "", bytes);
        report_real("seconds", "", time);
        report_end();
    } else if (verbose) {
        tell_formats(run);
        if (u)
            remark("%zu new, %zu changed, %zu grown, %zu renamed, %zu removed, %zu as before",
                   u->fresh, u->changed, u->grown, u->renamed, u->gone, u->same);
        remark(
            "%llu records in %llu segments read from %llu inputs, %llu lines that do not fit, %llu "
            "bad: %.1f MB of text in "
            "%.2f s, catalog %.1f MB",
            (unsigned long long)t->count.records, (unsigned long long)t->segments,
            (unsigned long long)t->inputs, (unsigned long long)t->count.unfit,
            (unsigned long long)t->count.bad, 1e-6 * (double)t->bytes, time, 1e-6 * (double)bytes);
        if (t->headers)
            remark("header rows after the first, not counted as records: %llu",
                   (unsigned long long)t->headers);
    }
}

/* Shows how the first readable input begins, so that names can be compared. */
static void tell_start(const struct index_run *run)
{
    enum { MOST = 100 };
    const struct input_options options = {.dialect = run->inputs->dialect, .segment = 4096};
    for (size_t i = 0; i < run->inputs->n; i++) {
        struct input *input = NULL;
        struct input_segment segment = {0};
        struct input_text text = {0};
        tamis_reason reason;
        bool more = false;
        char *path = base_join(run->base, run->inputs->entry[i].path);
        if (path && input_open(&input, path, &options, &reason) == TAMIS_OK && !input->header)
            input_next(input, &segment, &text, &more, &reason);
        const uint8_t *start = input && input->header ? input->header : text.data;
        size_t len = input && input->header ? input->header_len : more ? text.len : 0;
        const uint8_t *end = len ? memchr(start, '\n', len) : NULL;
        len = end ? (size_t)(end - start) : len;
        if (len)
            remark("%s begins: %.*s%s", path, len > MOST ? MOST : (int)len, (const char *)start,
                   len > MOST ? "..." : "");
        input_text_free(&text);
        input_segment_free(&segment);
        input_close(input);
        free(path);
        if (len)
            break;
    }
}

/* Files that may have records and were not read; find will report them too. */
void index_tell_passed(const struct index_run *run, const struct update *u)
{
    if (!u->passed)
        return;
    const struct entry *e = &run->inputs->entry[u->first_passed];
    char *path = base_join(run->base, e->path);
    remark(
        "not read: %s: it is %s; %zu such in all, which tamis info --inputs lists: give --exclude "
        "or --skip-unknown",
        path ? path : e->path, e->passed, u->passed);
    free(path);
}

/* Was --format, --pattern or --time mistyped? No record fits it, but all can be found as text. */
static bool tell_misfits(const struct index_run *run)
{
    const struct inputs *in = run->inputs;
    const struct counts *count = &run->tally.count;
    const char *time = in->dialect.time;
    bool timed = !time || strchr(time, '\n') || !count->records; /* chosen, not given */
    for (uint32_t i = 0; !timed && i < tamis_schema_attributes(run->schema); i++)
        timed = run->tally.present >> i & 1 && strcmp(tamis_schema_name(run->schema, i), time) == 0;
    for (size_t i = 0; !timed && i < in->n_fields; i++)
        timed = strcmp(in->field[i].name, time) == 0;
    if (!timed)
        remark("no record of the sample has the time: --time %s: check the name; --since and "
               "--until leave out records without it",
               time);
    if (in->dialect.format == READ_AUTO || !count->records || count->unfit < count->records)
        return !timed;
    bool pattern = in->dialect.format == READ_PATTERN;
    remark("no line fits: %s %s: check it; %llu lines are found only as text",
           pattern ? "--pattern" : "--format",
           pattern ? in->dialect.pattern : read_format_name(in->dialect.format),
           (unsigned long long)count->records);
    return true;
}

/* A catalog without records proves nothing, and one in which no record has any of the attributes
   nothing useful: the text has another format, or a name is misspelt. */
bool index_worth_keeping(const struct index_run *run)
{
    uint32_t n = tamis_schema_attributes(run->schema), absent = 0;
    for (uint32_t i = 0; run->tally.count.records && i < n; i++)
        if (!(run->tally.present >> i & 1)) {
            absent++;
            remark("no record has the attribute: %s: check the names in --attrs, and --delimiter",
                   tamis_schema_name(run->schema, i));
        }
    if (tell_misfits(run) || absent)
        tell_start(run);
    if (run->tally.count.records == 0 && run->tally.failed == 0)
        complain(
            "no record: %s: %s", run->inputs->root[0].path,
            run->inputs->dialect.records
                ? "check the path in --records"
                : "give CSV or TSV with a header, or one JSON object per line; see --format and "
                  "--delimiter");
    return run->tally.count.records && absent < n;
}
