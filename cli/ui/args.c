/* Options and numbers. See args.h. */
#include "args.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "out.h"

/* ---- values ---------------------------------------------------------------------------------- */

struct unit {
    const char *name;
    double factor;
};

/* The number at the start of a text, which begins with a digit or a point: no sign, no "inf", no
   "0x". */
static bool number(const char *text, double *out, const char **rest)
{
    char *end;
    if (!(is_digit(text[0]) || text[0] == '.') || text[1] == 'x' || text[1] == 'X')
        return false;
    errno = 0;
    *out = strtod(text, &end);
    *rest = end;
    return end != text && errno == 0 && *out < 1e300; /* 1e-400 is not 0 */
}

/* A number followed by one of n units. */
static bool measure(const char *text, const struct unit *units, size_t n, double *out)
{
    const char *rest;
    if (!number(text, out, &rest))
        return false;
    size_t i = 0;
    while (i < n && strcmp(rest, units[i].name) != 0)
        i++;
    *out *= i < n ? units[i].factor : 1;
    return i < n;
}

static bool parse_real(const char *text, double *out)
{
    static const struct unit units[] = {
        {"", 1},     {"k", 1e3},     {"K", 1e3},     {"M", 1e6},     {"G", 1e9},
        {"T", 1e12}, {"Ki", 0x1p10}, {"Mi", 0x1p20}, {"Gi", 0x1p30}, {"Ti", 0x1p40},
    };
    return measure(text, units, COUNT(units), out);
}

bool parse_count(const char *text, uint64_t *out)
{
    double value;
    if (text[0] && text[strspn(text, "0123456789")] == 0) { /* exact to the last digit */
        errno = 0;
        *out = strtoull(text, NULL, 10);
        return errno == 0;
    }
    if (!parse_real(text, &value) || value >= 0x1p64)
        return false;
    *out = (uint64_t)value;
    return (double)*out == value;
}

bool parse_rate(const char *text, double *out)
{
    const char *rest;
    if (!number(text, out, &rest) || (*rest && strcmp(rest, "%") != 0))
        return false;
    *out /= *rest ? 100 : 1;
    return *out > 0 && *out < 1;
}

bool parse_time(const char *text, uint64_t *nanoseconds)
{
    static const struct unit units[] = {{"ms", 1e6},   {"s", 1e9},     {"m", 60e9},
                                        {"h", 3600e9}, {"d", 86400e9}, {"w", 7 * 86400e9}};
    double value;
    if (!measure(text, units, COUNT(units), &value) || !(value >= 1 && value < 0x1p63))
        return false;
    *nanoseconds = (uint64_t)value;
    return true;
}

size_t parse_list(const char *text, double *out, size_t room)
{
    char part[64];
    for (size_t n = 0; n < room;) {
        size_t len = strcspn(text, ",");
        if (len >= sizeof part)
            return 0;
        memcpy(part, text, len);
        part[len] = 0;
        if (!parse_real(part, &out[n++]))
            return 0;
        if (text[len] == 0)
            return n;
        text += len + 1;
    }
    return 0;
}

size_t parse_lambdas(const char *text, unsigned most, unsigned lambdas[TAMIS_LAMBDAS_MAX])
{
    double values[TAMIS_LAMBDAS_MAX];
    size_t n = parse_list(text, values, COUNT(values));
    for (size_t i = 0; i < n; i++) {
        lambdas[i] = values[i] >= 1 && values[i] <= most ? (unsigned)values[i] : 0;
        if (lambdas[i] == 0 || lambdas[i] != values[i])
            n = 0;
    }
    if (n == 0)
        refuse("wrong value '%s': --lambda: give whole numbers from 1 to %u, as 1,2,3", text, most);
    return n;
}

bool threads_settle(uint64_t *threads)
{
    if (*threads > THREADS_MAX)
        return refuse("too many threads: --threads: give at most %d", THREADS_MAX);
    *threads = *threads ? *threads : processors();
    return true;
}

static bool parse_byte(const char *text, char *out)
{
    static const char names[] = "tn0\\", bytes[] = "\t\n\0\\";
    *out = text[0];
    if (text[0] == '\\' && text[1] && !text[2]) {
        const char *at = strchr(names, text[1]);
        if (!at)
            return false;
        *out = bytes[at - names];
        return true;
    }
    return text[0] && !text[1];
}

/* Position of the value in "a|b|c", from 1; 0: not found. */
static unsigned parse_choice(const char *text, const char *choices)
{
    size_t len = strlen(text);
    for (unsigned i = 1; *choices; i++) {
        size_t here = strcspn(choices, "|");
        if (here == len && memcmp(choices, text, len) == 0)
            return i;
        choices += here + (choices[here] == '|');
    }
    return 0;
}

/* ---- options --------------------------------------------------------------------------------- */

struct reading {
    int argc;
    char **argv;
    int at; /* the next argument */
    const struct arg *args;
    size_t n;
    uint64_t seen; /* one bit per option given */
};

/* What to give instead of a wrong value. */
static const char *const expected[] = {
    [ARG_COUNT] = "a whole number such as 1000, 10k, 10M or 64Mi",
    [ARG_REAL] = "a number, 0 or more",
    [ARG_RATE] = "a rate between 0 and 1, such as 0.01, 1e-9 or 1%",
    [ARG_TIME] = "a time such as 200ms, 30s or 5m",
    [ARG_WHILE] = "a time such as 200ms, 30s or 1h, or none",
    [ARG_BYTE] = "one byte, or \\t",
};

/* The option as the user wrote it: "--fpp" or "-j". */
static const char *as_written(const struct arg *arg, bool by_letter, char room[48])
{
    if (by_letter)
        snprintf(room, 48, "-%c", arg->letter);
    else
        snprintf(room, 48, "--%s", arg->name);
    return room;
}

static bool take_value(const struct arg *arg, const char *text, const char *written)
{
    bool good = true;
    switch (arg->kind) {
    case ARG_FLAG:
        *(bool *)arg->to = true;
        return true;
    case ARG_TEXT:
        *(const char **)arg->to = text;
        return true;
    case ARG_TEXTS: {
        struct texts *texts = arg->to;
        if (texts->n == TEXTS_MAX)
            return refuse("too many values: %s: give at most %d", written, TEXTS_MAX);
        texts->text[texts->n++] = text;
        return true;
    }
    case ARG_SPLIT: /* has no name */
        break;
    case ARG_COUNT:
        good = parse_count(text, arg->to);
        break;
    case ARG_REAL:
        good = parse_real(text, arg->to);
        break;
    case ARG_RATE:
        good = parse_rate(text, arg->to);
        break;
    case ARG_WHILE:
        if (strcmp(text, "none") == 0) {
            *(uint64_t *)arg->to = ARG_NONE;
            return true;
        } /* fall through */
    case ARG_TIME:
        good = parse_time(text, arg->to);
        break;
    case ARG_BYTE:
        good = parse_byte(text, arg->to);
        break;
    case ARG_CHOICE:
        *(unsigned *)arg->to = parse_choice(text, arg->choices);
        good = *(unsigned *)arg->to != 0;
        break;
    }
    return good || refuse("wrong value '%s': %s: give %s", text, written,
                          arg->choices ? arg->choices : expected[arg->kind]);
}

/* `value`: what follows "=" or the letter; NULL if nothing does. */
static bool take_option(struct reading *r, size_t i, const char *value, bool by_letter)
{
    const struct arg *arg = &r->args[i];
    char room[48];
    const char *written = as_written(arg, by_letter, room);
    bool repeated = r->seen >> i & 1;
    r->seen |= UINT64_C(1) << i;
    if (arg->given)
        *arg->given = true;
    if (arg->kind == ARG_FLAG && value)
        return refuse("unexpected value '%s': %s: the option takes no value", value, written);
    if (arg->kind != ARG_FLAG && arg->kind != ARG_TEXTS && repeated)
        return refuse("option given twice: %s: give it once", written);
    if (arg->kind != ARG_FLAG && !value && r->at < r->argc) {
        value = r->argv[r->at++];
        if (value[0] == '-' && value[1] && !strchr("0123456789.", value[1]))
            return refuse("missing value: %s: %s is an option; if it is the value, give %s%s%s",
                          written, value, written, by_letter ? "" : "=", value);
    }
    if (arg->kind != ARG_FLAG && !value)
        return refuse("missing value: %s: see tamis help %s", written, verb_name);
    return take_value(arg, value, written);
}

static bool take_long(struct reading *r, const char *text)
{
    size_t len = strcspn(text, "=");
    for (size_t i = 0; i < r->n; i++) {
        const char *name = r->args[i].name;
        if (name && strlen(name) == len && memcmp(name, text, len) == 0)
            return take_option(r, i, text[len] ? text + len + 1 : NULL, false);
    }
    return refuse("unknown option: --%.*s: see tamis help %s", (int)len, text, verb_name);
}

static bool take_letters(struct reading *r, const char *text)
{
    for (; *text; text++) {
        size_t i = 0;
        while (i < r->n && r->args[i].letter != *text)
            i++;
        if (i == r->n) {
            return refuse("unknown option: -%c: see tamis help %s", *text, verb_name);
        }
        bool flag = r->args[i].kind == ARG_FLAG;
        if (!take_option(r, i, flag || !text[1] ? NULL : text + 1, true))
            return false;
        if (!flag)
            break;
    }
    return true;
}

/* For a verb whose operands come in two parts. */
static bool take_split(struct reading *r, size_t words)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->args[i].kind == ARG_SPLIT && !*r->args[i].given) {
            *(size_t *)r->args[i].to = words;
            return *r->args[i].given = true;
        }
    return false;
}

struct words args_read(int argc, char **argv, const struct arg *args, size_t n)
{
    struct reading r = {argc, argv, 1, args, n, 0};
    struct words words = {argv + 1, 0};
    bool only_words = false;
    while (r.at < argc) {
        char *text = argv[r.at++];
        if (only_words || text[0] != '-' || text[1] == 0) {
            words.word[words.n++] = text;
        } else if (strcmp(text, "--") == 0) {
            only_words = !take_split(&r, words.n);
        } else if (strcmp(text, "--help") == 0 || strcmp(text, "-h") == 0) {
            help_print(verb_name);
            exit(put_end(FOUND));
        } else if (!(text[1] == '-' ? take_long(&r, text + 2) : take_letters(&r, text + 1))) {
            exit(put_end(TROUBLE));
        }
    }
    words.word[words.n] = NULL;
    return words;
}

struct words args_read_files(int argc, char **argv, const struct arg *args, size_t n, size_t least,
                             size_t most, const char *usage)
{
    struct words words = args_read(argc, argv, args, n);
    if (words.n < least || words.n > most)
        exit(put_end(complain("%s: tamis %s %s: see tamis help %s",
                              words.n < least ? "a file is missing" : "too many files", verb_name,
                              usage, verb_name)));
    return words;
}
