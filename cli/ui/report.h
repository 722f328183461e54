/*
 * A report, for people or for programs: every value has a key for JSON and a label for the aligned
 * text. Groups become objects, tables become arrays of objects.
 */
#ifndef TAMIS_REPORT_H
#define TAMIS_REPORT_H

#include "cli.h"

void report_open(bool json);
/* Ends what was opened last: the report, a group, a list or a table. */
void report_end(void);

void report_text(const char *key, const char *label, const char *text);
void report_count(const char *key, const char *label, uint64_t value);
void report_real(const char *key, const char *label, double value);
void report_rate(const char *key, const char *label, double value);     /* text: six digits */
void report_none(const char *key, const char *label, const char *text); /* JSON: null */
void report_flag(const char *key, const char *label, bool value);
void report_size(const char *key, const char *label, uint64_t bytes); /* text: also as 1.2 MiB */

/* Everything until its end belongs together under a title. */
void report_group(const char *key, const char *title);

/* A list: in JSON an array of objects, as text a group of lines. report_item() prints the line and returns
   false, or opens the object and returns true: then the caller writes its members (out.h) and '}'. */
void report_list(const char *key, const char *title);
bool report_item(const char *label, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Rows of numbers, at most REPORT_COLUMNS columns. Integers are shown as such. */
#define REPORT_COLUMNS 10
struct report_column {
    const char *key, *label;
};
void report_table(const char *key, const char *title, const struct report_column *columns,
                  size_t n);
void report_row(const double *values);

#endif
