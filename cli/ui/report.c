/* Reports. See report.h. */
#include "report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "escape.h"
#include "out.h"
#include "progress.h"

#define LINES 64 /* values of one group */
#define ROWS  128

static struct {
    bool json;
    bool started; /* something was printed: a blank line separates what follows */
    const char *title;
    size_t n;
    char label[LINES][256], value[LINES][512];
    const struct report_column *columns;
    size_t n_columns, n_rows;
    bool headed; /* the table's head is printed */
    double rows[ROWS][REPORT_COLUMNS];
} report;

/* Names of attributes and owners are untrusted text: one line each, in a pipe too. */
static void put_escaped(const char *text)
{
    char shown[1024];
    put_bytes(shown, escape_text(shown, sizeof shown, text));
}

static void put_title(const char *title)
{
    put_text(report.started ? "\n" : "");
    put_escaped(title);
    put_text("\n");
    report.started = true;
}

/* Prints the lines of the group, with their values aligned. */
static void flush(void)
{
    size_t width = 0;
    if (report.n && report.title)
        put_title(report.title);
    for (size_t i = 0; i < report.n; i++)
        width = strlen(report.label[i]) > width ? strlen(report.label[i]) : width;
    for (size_t i = 0; i < report.n; i++) {
        put_format("%s%-*s  ", report.title ? "  " : "", (int)width, report.label[i]);
        put_escaped(report.value[i]);
        put_text("\n");
        report.started = true;
    }
    report.n = 0;
    report.title = NULL;
}

/* Room for the text of one more value. */
static char *line(const char *label)
{
    if (report.n == LINES)
        flush();
    escape_text(report.label[report.n], sizeof report.label[0], label);
    return report.value[report.n++];
}

void report_open(bool json)
{
    memset(&report, 0, sizeof report);
    report.json = json;
    if (json)
        json_open(NULL, '{');
}

void report_text(const char *key, const char *label, const char *text)
{
    if (report.json)
        json_text(key, text);
    else
        snprintf(line(label), sizeof report.value[0], "%s", text);
}

void report_count(const char *key, const char *label, uint64_t value)
{
    if (report.json)
        json_count(key, value);
    else
        snprintf(line(label), sizeof report.value[0], "%llu", (unsigned long long)value);
}

/* NaN: outside the domain of the formula. */
static void real_text(char *to, size_t room, double value)
{
    if (value != value)
        snprintf(to, room, "-");
    else if (value < 1e15 && value > -1e15 && (double)(int64_t)value == value)
        snprintf(to, room, "%lld", (long long)value);
    else
        snprintf(to, room, value >= 1e6 && value < 1e15 ? "%.1f" : "%.6g", value);
}

void report_real(const char *key, const char *label, double value)
{
    if (report.json)
        json_real(key, value);
    else
        real_text(line(label), sizeof report.value[0], value);
}

void report_rate(const char *key, const char *label, double value)
{
    if (report.json)
        json_real(key, value);
    else
        snprintf(line(label), sizeof report.value[0], value != value ? "-" : "%.6g", value);
}

void report_none(const char *key, const char *label, const char *text)
{
    if (report.json)
        json_real(key, __builtin_nan(""));
    else
        snprintf(line(label), sizeof report.value[0], "%s", text);
}

void report_flag(const char *key, const char *label, bool value)
{
    if (report.json)
        json_flag(key, value);
    else
        snprintf(line(label), sizeof report.value[0], "%s", value ? "yes" : "no");
}

void report_size(const char *key, const char *label, uint64_t bytes)
{
    char size[32];
    if (report.json || bytes < 10000)
        report_count(key, label, bytes);
    else
        snprintf(line(label), sizeof report.value[0], "%llu (%s)", (unsigned long long)bytes,
                 size_text((double)bytes, size));
}

static void begin(const char *key, const char *title, char bracket)
{
    if (report.json) {
        json_open(key, bracket);
    } else {
        flush();
        report.title = title;
    }
}

void report_group(const char *key, const char *title)
{
    begin(key, title, '{');
}

void report_list(const char *key, const char *title)
{
    begin(key, title, '[');
}

bool report_item(const char *label, const char *format, ...)
{
    if (report.json) {
        json_open(NULL, '{');
        return true;
    }
    va_list args;
    va_start(args, format);
    vsnprintf(line(label), sizeof report.value[0], format, args);
    va_end(args);
    return false;
}

/* ---- tables ---------------------------------------------------------------------------------- */

void report_table(const char *key, const char *title, const struct report_column *columns, size_t n)
{
    report.columns = columns;
    report.n_columns = n;
    report.n_rows = 0;
    report.headed = false;
    if (report.json) {
        json_open(key, '[');
        return;
    }
    flush();
    put_title(title);
}

/* Prints the collected rows, each column as wide as its widest cell. */
static void flush_rows(void)
{
    char cell[64];
    size_t width[REPORT_COLUMNS];
    for (size_t j = 0; j < report.n_columns; j++) {
        width[j] = strlen(report.columns[j].label);
        for (size_t i = 0; i < report.n_rows; i++) {
            real_text(cell, sizeof cell, report.rows[i][j]);
            width[j] = strlen(cell) > width[j] ? strlen(cell) : width[j];
        }
    }
    for (size_t j = 0; !report.headed && j < report.n_columns; j++)
        put_format("  %*s", (int)width[j], report.columns[j].label);
    put_text(report.headed ? "" : "\n");
    report.headed = true;
    for (size_t i = 0; i < report.n_rows; i++) {
        for (size_t j = 0; j < report.n_columns; j++) {
            real_text(cell, sizeof cell, report.rows[i][j]);
            put_format("  %*s", (int)width[j], cell);
        }
        put_text("\n");
    }
    report.n_rows = 0;
}

void report_row(const double *values)
{
    if (report.json) {
        json_open(NULL, '{');
        for (size_t j = 0; j < report.n_columns; j++)
            json_real(report.columns[j].key, values[j]);
        json_close();
        return;
    }
    if (report.n_rows == ROWS)
        flush_rows();
    memcpy(report.rows[report.n_rows++], values, report.n_columns * sizeof *values);
}

void report_end(void)
{
    if (report.json)
        json_close();
    else if (report.columns)
        flush_rows();
    else
        flush();
    report.columns = NULL;
}
