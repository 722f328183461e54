/* The formats, one row each: their names, and the documented names of their fields. */
#include "reader_parse.h"

/* Apache's mod_log_config, "Access Log"; `path` is its %U and `query` its %q without the
   question mark, so that /login?next=/ is found as /login. `vhost` occurs in vhost_combined. */
static const struct read_field access_fields[] = {
    {"host", "ip", false},      {"ident", "text", false},   {"user", "text", false},
    {"time", "time", false},    {"request", "text", false}, {"method", "text", false},
    {"path", "path", false},    {"query", "text", false},   {"protocol", "text", false},
    {"status", "int", false},   {"bytes", "int", false},    {"vhost", "text", false},
    {"referer", "text", false}, {"agent", "words", false},
};

/* RFC 5424, section 6, except for the time, which has the same name as in other logs. */
static const struct read_field syslog_fields[] = {
    {"pri", "int", false},       {"facility", "int", true},
    {"severity", "int", true},   {"version", "int", false},
    {"time", "time", false},     {"hostname", "text", false},
    {"app-name", "text", false}, {"procid", "text", false},
    {"msgid", "text", false},    {"structured-data", "words", false},
    {"msg", "words", false},
};

static const struct read_field text_fields[] = {{"time", "time", false}};

#define FIELDS(fields, less) (fields), sizeof(fields) / sizeof *(fields) - (less)

static const struct format formats[READ_FORMATS] = {
    [READ_AUTO] = {"auto", NULL, NULL, NULL, NULL, 0},
    [READ_CSV] = {"csv", NULL, NULL, NULL, NULL, 0},
    [READ_TSV] = {"tsv", NULL, NULL, NULL, NULL, 0},
    [READ_JSONL] = {"jsonl", NULL, NULL, NULL, NULL, 0},
    [READ_JSON] = {"json", NULL, NULL, NULL, NULL, 0},
    [READ_COMBINED] = {"combined", access_fit, combined_sniff, "time", FIELDS(access_fields, 0)},
    [READ_COMMON] = {"common", access_fit, access_fit, "time", FIELDS(access_fields, 2)},
    [READ_SYSLOG] = {"syslog", syslog_fit, syslog_sniff, "time", FIELDS(syslog_fields, 0)},
    [READ_LOGFMT] = {"logfmt", logfmt_fit, logfmt_sniff, NULL, NULL, 0},
    [READ_ZEEK] = {"zeek", zeek_fit, NULL, "ts", NULL, 0},
    [READ_W3C] = {"w3c", w3c_fit, NULL, "time", NULL, 0},
    [READ_PATTERN] = {"pattern", pattern_fit, NULL, "time", NULL, 0},
    [READ_TEXT] = {"text", text_fit, NULL, "time", FIELDS(text_fields, 0)},
};

const struct format *format_of(enum read_format format)
{
    return &formats[format];
}

const struct read_field *read_fields(enum read_format format, size_t *n)
{
    *n = formats[format].n_fields;
    return formats[format].field;
}

bool read_names_fields(enum read_format format)
{
    return !formats[format].field && format != READ_PATTERN;
}

bool read_timed(enum read_format format)
{
    return formats[format].time && format != READ_PATTERN;
}

const char *read_format_name(enum read_format format)
{
    return formats[format].name;
}
