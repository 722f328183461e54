/* Opens an input: its compression, its format, its header. */
#define _GNU_SOURCE
#include "reader_input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "reader_cut.h"
#include "reader_parse.h"
#include "reader_sniff.h"
#include "ui/growing.h"

/* ---- text ------------------------------------------------------------------------------------ */

size_t input_take(struct input_private *own, uint8_t *out, size_t room)
{
    struct pushback *back = &own->back;
    size_t kept = back->len - back->at;
    if (kept == 0)
        return source_read(own->source, out, room);
    kept = kept < room ? kept : room;
    memcpy(out, back->data + back->at, kept);
    back->at += kept;
    return kept;
}

bool input_give_back(struct input_private *own, const uint8_t *data, size_t len)
{
    struct pushback *back = &own->back;
    if (len <= back->at && back->at < back->len) { /* they all came from here */
        back->at -= len;
        return true;
    }
    if (len > back->room) {
        uint8_t *fresh = malloc(len);
        if (!fresh)
            return false;
        free(back->data);
        back->data = fresh;
        back->room = len;
    }
    if (len)
        memcpy(back->data, data, len);
    back->at = 0;
    back->len = len;
    return true;
}

bool source_drop(struct source *source, uint64_t skip)
{
    uint8_t waste[16384];
    while (skip) {
        size_t got = source_read(source, waste, skip < sizeof waste ? (size_t)skip : sizeof waste);
        if (got == 0)
            return false;
        skip -= got;
    }
    return true;
}

/* A source of the file that is not started yet. */
static tamis_error source_of(const struct input *input, struct source **out, tamis_reason *reason)
{
    bool sized = input->regular && input->size > 0;
    *out = source_new(input->path, input->own->fd, sized, input->regular ? input->size : NEVER);
    if (!*out)
        return fail(reason, TAMIS_ENOMEM, "no memory to read %.120s", input->path);
    (*out)->returns = input->dialect.returns;
    return TAMIS_OK;
}

tamis_error input_source(const struct input *input, const struct restart *from, struct source **out,
                         tamis_reason *reason)
{
    struct source *s;
    tamis_error error = source_of(input, &s, reason);
    if (error != TAMIS_OK)
        return error;
    struct restart inner;
    uint8_t between = 0; /* see source_wide() */
    if (input->wide && from && from->len) {
        between = from->blob[0];
        inner = (struct restart){from->at, from->out, from->len > 1 ? from->blob + 1 : NULL,
                                 from->len - 1};
        from = &inner;
    }
    error = source_start(s, input->kind, from, reason);
    if (error == TAMIS_OK && between > 3)
        error = fail_at(reason, TAMIS_EFORMAT, from->at, "%.120s: the restart point is damaged",
                        input->path);
    if (error != TAMIS_OK) {
        source_free(s);
        return error;
    }
    source_drop(s, between);
    *out = input->wide ? source_wide(s, input->wide, from) : s;
    return *out ? TAMIS_OK : fail(reason, TAMIS_ENOMEM, "no memory to read %.120s", input->path);
}

/* ---- formats --------------------------------------------------------------------------------- */

/* The length of a name without the suffix of log rotation: .1, -20261115, .2026-11-15_00. */
static size_t before_rotation(const char *path, size_t len)
{
    size_t at = len;
    while (at > 0 && strchr("0123456789.-_", path[at - 1]))
        at--;
    bool turned = at + 1 < len && is_digit(path[at + 1]) && !is_digit(path[at]);
    return turned ? at : len;
}

size_t read_packed_suffix(const char *path)
{
    static const char *const packed[] = {".gz",  ".zst", ".zstd", ".bgz",
                                         ".bz2", ".xz",  ".lzma", ".lz4"};
    size_t len = strlen(path);
    for (size_t i = 0; i < sizeof packed / sizeof *packed; i++) {
        size_t cut = strlen(packed[i]);
        if (len > cut && strcasecmp(path + len - cut, packed[i]) == 0)
            return cut;
    }
    return 0;
}

static enum read_format format_by_name(const char *path)
{
    static const struct {
        const char *suffix;
        enum read_format format;
    } known[] = {{".csv", READ_CSV},     {".tsv", READ_TSV},      {".tab", READ_TSV},
                 {".jsonl", READ_JSONL}, {".ndjson", READ_JSONL}, {".json", READ_JSONL}};
    size_t len = before_rotation(path, strlen(path) - read_packed_suffix(path));
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t cut = strlen(known[i].suffix);
        if (len > cut && strncasecmp(path + len - cut, known[i].suffix, cut) == 0)
            return known[i].format;
    }
    return READ_AUTO;
}

bool read_format_named(const char *path)
{
    return format_by_name(path) != READ_AUTO;
}

/* ---- the head -------------------------------------------------------------------------------- */

/* The start of the text, as far as needed. */
struct text_head {
    uint8_t *data;
    size_t len, room;
    bool final;
};

#define HEAD_STEP ((size_t)4 << 10)

/* Reads more of the text; false: no memory. */
static bool head_more(struct input_private *own, struct text_head *head)
{
    if (head->len == head->room &&
        !array_room(NULL, &head->data, head->room + HEAD_STEP - 1, &head->room, 1))
        return false;
    size_t got = input_take(own, head->data + head->len, head->room - head->len);
    head->len += got;
    head->final |= got == 0;
    return true;
}

/* Reads enough to detect the format: the first line that is not blank, and `least` bytes; or SNIFF_LEN. */
static bool head_line(struct input_private *own, struct text_head *head, size_t least)
{
    size_t from = 0; /* blanks, or already searched */
    bool started = false, line = false;
    while (!head->final && head->len < SNIFF_LEN && !(line && head->len >= least)) {
        if (!head_more(own, head))
            return false;
        while (!started && from < head->len && !(started = head->data[from] > ' '))
            from++;
        line = line || (started && memchr(head->data + from, '\n', head->len - from));
        from = head->len;
    }
    return true;
}

static bool blank(const uint8_t *data, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (data[i] != '\n' && data[i] != '\r')
            return false;
    return true;
}

/* Reads more of a header that begins at `start`. */
static tamis_error header_more(struct input *input, struct text_head *head, size_t start,
                               tamis_reason *reason)
{
    if (head->len - start > input->dialect.record_max)
        return fail(reason, TAMIS_ELIMIT, "%.120s: the header is too long", input->path);
    if (!head_more(input->own, head))
        return fail(reason, TAMIS_ENOMEM, "no memory for the header of %.120s", input->path);
    return TAMIS_OK;
}

static tamis_error header_keep(struct input *input, const uint8_t *data, size_t len,
                               tamis_reason *reason)
{
    uint8_t *header = input->own->header = malloc(len + 1);
    if (!header)
        return fail(reason, TAMIS_ENOMEM, "no memory for the header of %.120s", input->path);
    memcpy(header, data, len);
    input->header = header;
    input->header_len = len;
    return TAMIS_OK;
}

/* The header: the first record that is not empty. It starts at *from, which is then moved past it. */
static tamis_error head_header(struct input *input, struct text_head *head, size_t *from,
                               tamis_reason *reason)
{
    size_t start = *from, end = 0;
    struct cut cut = {.dialect = &input->dialect};
    tamis_error error = TAMIS_OK;
    while (error == TAMIS_OK) {
        while (start + 1 < head->len &&
               (head->data[start] == '\n' ||
                (head->data[start] == '\r' && head->data[start + 1] == '\n')))
            start++; /* searching from each blank line would take quadratic time */
        end = cut_search(&cut, head->data + start, head->len - start, 1, head->final);
        if (end && blank(head->data + start, end) && start + end < head->len) {
            start += end;
            cut = (struct cut){.dialect = &input->dialect};
        } else if (end || head->final) {
            break;
        } else {
            error = header_more(input, head, start, reason);
        }
    }
    *from = start + end;
    while (end && (head->data[start + end - 1] == '\n' || head->data[start + end - 1] == '\r'))
        end--;
    return error == TAMIS_OK ? header_keep(input, head->data + start, end, reason) : error;
}

/* The header of a log that names its columns: the lines at its start that begin with #. */
static tamis_error head_hashes(struct input *input, struct text_head *head, size_t *from,
                               tamis_reason *reason)
{
    size_t start = *from, end = start;
    tamis_error error = TAMIS_OK;
    while (error == TAMIS_OK) {
        const uint8_t *line = NULL;
        while (end < head->len &&
               (head->data[end] == '#' || head->data[end] == '\n' || head->data[end] == '\r') &&
               (line = memchr(head->data + end, '\n', head->len - end)))
            end = (size_t)(line - head->data) + 1;
        if (head->final || (end < head->len && head->data[end] != '#'))
            break;
        error = header_more(input, head, start, reason);
    }
    *from = end;
    return error == TAMIS_OK ? header_keep(input, head->data + start, end - start, reason) : error;
}

/* JSON whose records are not lines: finds the first one. */
static tamis_error head_array(struct input *input, struct text_head *head, size_t *from,
                              tamis_reason *reason)
{
    struct input_private *own = input->own;
    const char *line = READ_LINE;
    size_t start;
    tamis_error error =
        parsing_begin(&own->walker, &input->dialect, &line, 1, NULL, 0, "", 0, reason);
    while (error == TAMIS_OK && (start = array_start(own->walker.parser, head->data + *from,
                                                     head->len - *from, head->final)) == SIZE_MAX) {
        if (head->len - *from > input->dialect.record_max)
            return fail(reason, TAMIS_ELIMIT, "%.120s: no records before byte %zu", input->path,
                        head->len);
        if (!head_more(own, head))
            error = TAMIS_ENOMEM;
    }
    if (error == TAMIS_ENOMEM)
        return fail(reason, TAMIS_ENOMEM, "no memory to read %.120s", input->path);
    *from += start;
    return error;
}

/* Determines what the text is from everything known about it, and completes the dialect unless it is refused. */
static struct sniff settle_dialect(struct input *input, const uint8_t *text, size_t len, bool whole)
{
    struct dialect *d = &input->dialect;
    bool given = d->format != READ_AUTO;
    if (!given)
        d->format = format_by_name(input->path);
    if (!given)
        d->in_lines = d->format == READ_AUTO && !d->delimiter && !d->tables;
    struct sniff sniff = sniff_text(d, !given, text, len, whole);
    d->format = sniff.format;
    d->in_lines &= d->format == READ_CSV;
    if (!d->delimiter)
        d->delimiter = sniff.delimiter;
    d->headless |= sniff.headless;
    if (d->format == READ_JSON && !d->records)
        d->records = input->own->records = strdup(sniff.records);
    if (!d->delimiter)
        d->delimiter = d->format == READ_TSV ? '\t' : ',';
    if (!d->record_max)
        d->record_max = READ_RECORD_MAX;
    if (!d->quoted_max)
        d->quoted_max = READ_QUOTED_MAX;
    if (read_timed(d->format))
        d->time = NULL;
    return sniff;
}

/* Reads the start of the text and detects what it is. *from: where it starts, after a byte order mark. */
static tamis_error sniff_head(struct input *input, struct text_head *head, size_t *from,
                              struct sniff *sniff, tamis_reason *reason)
{
    struct input_private *own = input->own;
    bool all = input->regular && (input->dialect.format == READ_AUTO ||
                                  (input->dialect.time && strchr(input->dialect.time, '\n')));
    if (!head_line(own, head, all ? SNIFF_LEN : 0))
        return fail(reason, TAMIS_ENOMEM, "no memory to read %.120s", input->path);
    if (head->len == 0 && own->source->error != TAMIS_OK)
        return source_failed(own->source, reason);
    struct dialect *d = &input->dialect;
    if (!d->returns && sniff_returns(head->data, head->len, d->format != READ_AUTO)) {
        d->returns = own->source->returns = true;
        text_returns(head->data, head->len);
    }
    *from = head->len >= 3 && memcmp(head->data, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    *sniff = settle_dialect(input, head->data + *from, head->len - *from, head->final);
    if (sniff->full || (input->dialect.format == READ_JSON && !input->dialect.records))
        return fail(reason, TAMIS_ENOMEM, "no memory to read %.120s", input->path);
    return TAMIS_OK;
}

/* Reads everything at the start of the text; the source then continues after the header. */
static tamis_error read_head(struct input *input, struct text_head *head, tamis_reason *reason)
{
    size_t from;
    struct sniff sniff;
    tamis_error error = sniff_head(input, head, &from, &sniff, reason);
    if (error != TAMIS_OK)
        return error;
    if (sniff.class != SNIFF_READABLE)
        return fail(reason, TAMIS_EKIND, "%.120s: %s is not read; %s", input->path, sniff.what,
                    sniff.advice);
    bool table = input->dialect.format == READ_CSV || input->dialect.format == READ_TSV;
    if (table && !input->dialect.headless)
        error = head_header(input, head, &from, reason);
    else if (input->dialect.format == READ_ZEEK || input->dialect.format == READ_W3C)
        error = head_hashes(input, head, &from, reason);
    else if (input->dialect.format == READ_JSON)
        error = head_array(input, head, &from, reason);
    if (error != TAMIS_OK)
        return error;
    input->own->next.offset = from;
    return TAMIS_OK;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Opens a file that must be regular, as those named by a catalog or a folder must. */
static tamis_error open_regular(struct input *input, const char *path, bool follow,
                                tamis_reason *reason)
{
    const char *why = NULL;
    input->own->fd = raw_open(path, follow, &input->id, &why);
    if (input->own->fd < 0) {
        int error = errno;
        fail(reason, TAMIS_EIO, "%.120s: %s", path, why);
        if (reason)
            reason->system_error = strcmp(why, strerror(error)) == 0 ? error : 0;
        return TAMIS_EIO;
    }
    input->regular = true;
    input->size = input->id.size;
    input->own->next.reference = input->id.mtime / 1000000000;
    return TAMIS_OK;
}

static tamis_error open_file(struct input *input, const char *path,
                             const struct input_options *options, tamis_reason *reason)
{
    struct stat st;
    struct input_private *own = input->own;
    bool standard = strcmp(path, "-") == 0;
    own->path = strdup(standard ? "standard input" : path);
    if (!own->path)
        return fail(reason, TAMIS_ENOMEM, "no memory to open %.120s", path);
    input->path = own->path;
    if (options->file)
        return open_regular(input, path, !options->no_link, reason);
    own->fd = standard ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : open(path, O_RDONLY | O_CLOEXEC);
    if (own->fd < 0 || fstat(own->fd, &st) != 0 || (S_ISDIR(st.st_mode) && (errno = EISDIR))) {
        int error = errno;
        fail(reason, TAMIS_EIO, "opening %.120s: %s", input->path, strerror(error));
        if (reason)
            reason->system_error = error;
        return TAMIS_EIO;
    }
    /* Standard input may be in the middle of a file: reading continues from there. */
    input->regular = S_ISREG(st.st_mode) && !standard;
    input->size = input->regular ? (uint64_t)st.st_size : 0;
    own->next.reference = input->regular ? (int64_t)st.st_mtime : (int64_t)time(NULL);
    return TAMIS_OK;
}

/* Decompressed text may be UTF-16: its first bytes tell. */
static tamis_error open_wide(struct input *input, tamis_reason *reason)
{
    struct input_private *own = input->own;
    uint8_t mark[2];
    size_t len = 0, got;
    while (len < sizeof mark && (got = source_read(own->source, mark + len, sizeof mark - len)) > 0)
        len += got;
    bool little = len == 2 && mark[0] == 0xFF && mark[1] == 0xFE;
    bool big = len == 2 && mark[0] == 0xFE && mark[1] == 0xFF, good = true;
    input->wide = little ? PACK_UTF16LE : big ? PACK_UTF16BE : PACK_NONE;
    if (input->wide) {
        own->source = source_wide(own->source, input->wide, NULL);
        good = own->source != NULL;
        if (good)
            own->source->at = sizeof mark; /* after the mark: another one is text */
    } else {
        good = input_give_back(own, mark, len);
    }
    return good ? TAMIS_OK : fail(reason, TAMIS_ENOMEM, "no memory to read %.120s", input->path);
}

/* Opens the source at the start, and detects its kind by its first bytes. */
static tamis_error open_source(struct input *input, struct raw_sums *sums, tamis_reason *reason)
{
    struct input_private *own = input->own;
    tamis_error error = source_of(input, &own->source, reason);
    if (error != TAMIS_OK)
        return error;
    own->source->sums = sums;
    error = source_kind(own->source, &input->kind, reason);
    if (error == TAMIS_OK)
        error = source_start(own->source, input->kind, NULL, reason);
    if (error == TAMIS_OK && input->kind >= PACK_GZIP && input->kind <= PACK_LZ4)
        error = open_wide(input, reason);
    return error;
}

/* Starts after the header, or at a segment of an earlier run. */
static tamis_error start(struct input *input, const struct input_options *options,
                         tamis_reason *reason)
{
    struct input_private *own = input->own;
    struct text_head head = {0};
    tamis_error error = read_head(input, &head, reason);
    if (error == TAMIS_OK)
        error = input_time_name(input, head.data + own->next.offset, head.len - own->next.offset,
                                reason);
    if (error == TAMIS_OK) {
        own->next.line = 1 + count_lines(head.data, own->next.offset);
        if (!input_give_back(own, head.data + own->next.offset, head.len - own->next.offset))
            error = fail(reason, TAMIS_ENOMEM, "no memory to read %.120s", input->path);
    }
    free(head.data);
    if (error == TAMIS_OK && input->header &&
        !header_set(&own->head, &input->dialect, input->header, input->header_len))
        error = fail(reason, TAMIS_ENOMEM, "no memory to read %.120s", input->path);
    if (error == TAMIS_OK)
        error = input_clock(input, reason);
    if (error == TAMIS_OK && options->from)
        error = input_go(input, options->from, options->sums, reason);
    return error;
}

static tamis_error input_new(struct input **out, const char *path,
                             const struct input_options *options, tamis_reason *reason)
{
    static atomic_uint_fast64_t ids;
    struct input *input = calloc(1, sizeof *input);
    struct input_private *own = calloc(1, sizeof *own);
    if (!input || !own) {
        free(input);
        free(own);
        return fail(reason, TAMIS_ENOMEM, "no memory to open %.120s", path);
    }
    pthread_mutex_init(&own->lock, NULL);
    own->fd = -1;
    own->id = atomic_fetch_add(&ids, 1) + 1;
    input->own = own;
    own->segment = options->segment ? options->segment : SEGMENT_DEFAULT;
    input->dialect = options->dialect;
    *out = input;
    tamis_error error = open_file(input, path, options, reason);
    struct raw_sums *sums = options->from ? NULL : options->sums;
    return error == TAMIS_OK ? open_source(input, sums, reason) : error;
}

tamis_error input_open(struct input **out, const char *path, const struct input_options *options,
                       tamis_reason *reason)
{
    struct input *input = NULL;
    uint8_t delimiter = options->dialect.delimiter;
    if (delimiter == '"' || delimiter == '\n' || delimiter == '\r')
        return fail(reason, TAMIS_EARG, "quotes and line ends cannot separate columns");
    tamis_error error = input_new(&input, path, options, reason);
    if (error == TAMIS_OK)
        error = start(input, options, reason);
    if (error != TAMIS_OK)
        input_close(input);
    else
        *out = input;
    return error;
}

tamis_error sniff_file(const char *path, const struct dialect *dialect, struct sniff *out,
                       tamis_reason *reason)
{
    size_t from;
    struct text_head head = {0};
    struct input *input = NULL;
    const struct input_options options = {.dialect = *dialect, .file = true};
    tamis_error error = input_new(&input, path, &options, reason);
    if (error == TAMIS_OK)
        error = sniff_head(input, &head, &from, out, reason);
    free(head.data);
    input_close(input);
    return error;
}

uint8_t *input_sums(const struct input *input, struct raw_sums *sums)
{
    return raw_sums_end(sums, input->own->fd, input->size);
}

void input_close(struct input *input)
{
    if (!input)
        return;
    struct input_private *own = input->own;
    source_free(own->source);
    fd_close(&own->fd);
    free(own->path);
    free(own->header);
    free(own->back.data);
    free(own->restart.blob);
    free(own->records);
    free(own->times);
    parsing_end(&own->walker);
    parsing_end(&own->clock);
    parsing_end(&own->turner);
    header_free(&own->head);
    pthread_mutex_destroy(&own->lock);
    free(own);
    free(input);
}
