/*
 * JSON whose records are not lines: arrays, sequences of pretty-printed objects, and objects that wrap an
 * array of records. dialect.records tells where the records are:
 *
 *     "."        the values of the text themselves
 *     ""         the elements of its arrays
 *     "a.b"      the elements of the arrays at this path: {"a": {"b": [ record, … ], …}}
 *
 * A text always starts where a record may start, inside an array if the records are in one; so do
 * segments, which end after a record. Everything outside the arrays is skipped; another array of records
 * may follow it. Damaged parts are treated as lines, up to where the grammar breaks: to the end of that
 * line, or to its start if it breaks there, since then a record was cut off and the next one begins.
 * Nothing is read twice, however it is damaged.
 */
#include "reader_parse.h"

#include "reader_cut.h"

/* ---- outside --------------------------------------------------------------------------------- */

/* Part k of the path, from 0; false: it has fewer parts. */
static bool part_of(const char *path, size_t k, const char **part, size_t *len)
{
    for (; k; k--) {
        path = strchr(path, '.');
        if (!path)
            return false;
        path++;
    }
    *part = path;
    *len = strcspn(path, ".");
    return true;
}

static size_t parts_of(const char *path)
{
    size_t n = *path != 0;
    for (const char *p = path; (p = strchr(p, '.')); p++)
        n++;
    return n;
}

/*
 * Moves to the next array of records, from inside the object that part k - 1 led to; k = 0: outside
 * of all. Returns the position after its bracket, or the end of the text if there is none; NULL on
 * an error.
 */
static const uint8_t *find_array(struct parser *ps, const uint8_t *p, const uint8_t *end, size_t k,
                                 struct fault *fault)
{
    const char *path = ps->selection->dialect.records, *part;
    const size_t n = parts_of(path);
    for (;;) {
        const uint8_t *key;
        size_t key_len, len;
        while ((p = json_blanks(p, end)) < end && *p == ',')
            p++;
        if (p == end)
            return end;
        if (k == 0) {
            bool fits = *p == (n ? '{' : '[');
            if (fits && n == 0)
                return p + 1;
            if (!fits && !(p = json_value(ps, p, end, false, fault)))
                return NULL;
            k += fits;
            p += fits;
        } else if (*p == '}') {
            k--;
            p++;
        } else {
            p = json_key(p, end, &key, &key_len, fault);
            if (!p)
                return NULL;
            bool here = part_of(path, k - 1, &part, &len) && len == key_len &&
                        memcmp(part, key, len) == 0 && p < end;
            if (here && k == n && *p == '[')
                return p + 1;
            bool down = here && k < n && *p == '{';
            if (!down && !(p = json_value(ps, p, end, false, fault)))
                return NULL;
            k += down;
            p += down;
        }
    }
}

#define TORN 16 /* a word or escape cut off by the end of a text is shorter */

size_t array_start(struct parser *ps, const uint8_t *data, size_t len, bool final)
{
    const uint8_t *const end = data + len;
    struct fault fault = {0};
    if (strcmp(ps->selection->dialect.records, ".") == 0)
        return 0;
    const uint8_t *p = find_array(ps, data, end, 0, &fault);
    bool open = p ? p == end && (len == 0 || p[-1] != '[') : end - fault.at < TORN;
    if (open && !final)
        return SIZE_MAX;
    return p ? (size_t)(p - data) : 0;
}

/* ---- records --------------------------------------------------------------------------------- */

/* What is at p, between records: a record, the end, or neither. */
struct array_step {
    const uint8_t *start, *end; /* of a record */
    const uint8_t *resume;      /* after damage: the end of its lines */
    struct fault fault;
};

/* The start of the line of p, not before `from`. */
static const uint8_t *line_start(const uint8_t *p, const uint8_t *from)
{
    while (p > from && p[-1] != '\n')
        p--;
    return p;
}

/* Lines from s on, up to where the grammar broke. */
static void give_up(struct array_step *step, const uint8_t *end)
{
    const uint8_t *at = step->fault.at < end ? step->fault.at : end;
    const uint8_t *line = line_start(at, step->start);
    if (line > step->start && json_blanks(line, end) == at && at < end) {
        step->resume = line;
        return;
    }
    const uint8_t *stop = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
    step->resume = stop ? stop + 1 : end;
}

/* The next record from p on. False: the text ends. */
static bool take_step(struct parser *ps, const uint8_t *p, const uint8_t *end, bool wanted,
                      struct array_step *step)
{
    const char *path = ps->selection->dialect.records;
    const bool whole = strcmp(path, ".") == 0;
    *step = (struct array_step){0};
    for (;;) {
        while ((p = json_blanks(p, end)) < end && *p == ',')
            p++;
        step->start = p;
        if (p == end)
            return false;
        if (whole || *p != ']')
            break;
        p = find_array(ps, p + 1, end, parts_of(path), &step->fault);
        if (!p) {
            give_up(step, end);
            return true;
        }
    }
    step->fault = (struct fault){p, "not an object"};
    if (*p == '{' || *p == '[')
        step->end = json_value(ps, p, end, wanted, &step->fault);
    if (!step->end)
        give_up(step, end);
    return true;
}

/* The line at p, up to the end of the damage, as a record. */
static void take_line(struct parser *ps, const uint8_t *p, struct record *record)
{
    const uint8_t *stop = memchr(p, '\n', (size_t)(ps->end - p)), *next = stop ? stop + 1 : ps->end;
    stop = stop ? stop : ps->end;
    stop -= stop > p && stop[-1] == '\r';
    parser_clear(ps);
    ps->record = record->data = p;
    record->len = (size_t)(stop - p);
    record->end_len = (size_t)(next - stop);
    record->unfit = true;
    ps->at = next;
}

enum parsed array_next(struct parser *ps, struct record *record)
{
    struct array_step step;
    record->values = ps->value;
    while (ps->at < ps->damage) {
        take_line(ps, ps->at, record);
        record->complaint = "it does not fit the format";
        if (record->len)
            return PARSED_RECORD;
    }
    json_turn(ps);
    if (!take_step(ps, ps->at, ps->end, true, &step)) {
        ps->at = ps->end;
        return PARSED_END;
    }
    if (!step.end) {
        ps->damage = step.resume;
        take_line(ps, step.start, record);
        record->complaint = step.fault.why;
        return step.fault.why ? PARSED_BAD : PARSED_NOMEM;
    }
    json_choose(ps);
    ps->record = record->data = step.start;
    record->len = (size_t)(step.end - step.start);
    record->end_len = 0;
    ps->at = step.end;
    return PARSED_RECORD;
}

/* ---- cutting --------------------------------------------------------------------------------- */

size_t array_cut(struct cut *cut, const uint8_t *data, size_t len, size_t target, bool final)
{
    const uint8_t *const end = data + len;
    struct array_step step;
    while (take_step(cut->walker, data + cut->at, end, false, &step)) {
        const uint8_t *stop = step.end;
        if (!stop && !final && end - step.fault.at < TORN)
            return 0;
        if (!stop && final && end - step.fault.at < TORN)
            cut->open = true; /* it may become complete when the file grows */
        if (!stop)
            stop = step.resume;
        if (stop == end && !final && !step.end)
            return 0;
        cut->at = cut->record = (size_t)(stop - data);
        if (step.end)
            cut->last = cut->at;
        if (step.end && cut->at >= target)
            return cut->at;
    }
    return 0;
}
