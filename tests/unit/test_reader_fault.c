/* The reader where memory runs out: every allocation of opening, reading, parsing and reading again made to
 * fail once. It says so, leaks nothing, and never gives other records than those that are there.
 *
 * The reader and the libraries of compression take their memory from malloc, so it is replaced here;
 * sanitizers replace it themselves, and there none is made to fail.
 */
#include "harness.h"
#include "reader_help.h"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__GLIBC__)
#define REPLACES 1
#else
#define REPLACES 0
#endif

static long live;            /* pieces of memory that are out */
static unsigned long left;   /* allocations until one fails; 0: none does */
static bool onwards, failed; /* all after it fail too; one did */

#if REPLACES

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *memory);

/* The shared libraries are to find these too. */
#define REPLACED __attribute__((visibility("default")))

static bool fails(void)
{
    if (left == 0 || (left > 1 && left--))
        return false;
    left = onwards ? 1 : 0;
    failed = true;
    return true;
}

static void *out(void *memory)
{
    live += memory != NULL;
    return memory;
}

REPLACED void *malloc(size_t size)
{
    return fails() ? NULL : out(__libc_malloc(size));
}

REPLACED void *calloc(size_t n, size_t size)
{
    return fails() ? NULL : out(__libc_calloc(n, size));
}

REPLACED void *realloc(void *memory, size_t size)
{
    if (fails())
        return NULL;
    void *moved = __libc_realloc(memory, size);
    live += !memory && moved;
    return moved;
}

REPLACED void *aligned_alloc(size_t alignment, size_t size)
{
    return fails() ? NULL : out(__libc_memalign(alignment, size));
}

REPLACED int posix_memalign(void **memory, size_t alignment, size_t size)
{
    *memory = aligned_alloc(alignment, size);
    return *memory ? 0 : 12; /* ENOMEM */
}

REPLACED void free(void *memory)
{
    live -= memory != NULL;
    __libc_free(memory);
}

#endif

/* ---- one pass -------------------------------------------------------------------------------- */

struct sum {
    uint64_t records, bad, bytes; /* and a sum over the values */
    uint64_t values;
};

static tamis_error add_records(struct sum *sum, struct parser *parser,
                               const struct selection *selection, const struct input_text *text)
{
    struct record r;
    enum parsed kind = PARSED_END;
    tamis_error e = parser_begin(parser, selection, text->data, text->len);
    while (e == TAMIS_OK && (kind = parser_next(parser, &r)) != PARSED_END) {
        if (kind == PARSED_NOMEM)
            return TAMIS_ENOMEM;
        sum->bytes += r.len;
        sum->records += kind == PARSED_RECORD;
        sum->bad += kind == PARSED_BAD;
        for (size_t i = 0; kind == PARSED_RECORD && i < 2; i++)
            for (size_t j = 0; j < r.values[i].len; j++)
                sum->values = sum->values * 31 + r.values[i].data[j] + 7 * i;
    }
    return e;
}

static tamis_error read_all(struct input *input, struct parser *parser,
                            const struct selection *selection, struct sum *sum)
{
    struct input_text text = {0};
    tamis_error e = TAMIS_OK;
    for (bool more = true; e == TAMIS_OK && more;) {
        struct input_segment segment = {0};
        struct sum twice = {0};
        e = input_next(input, &segment, &text, &more, NULL);
        if (e == TAMIS_OK && more)
            e = add_records(sum, parser, selection, &text);
        if (e == TAMIS_OK && more)
            e = input_read(input, &segment, &text, NULL);
        if (e == TAMIS_OK && more)
            e = add_records(&twice, parser, selection, &text);
        input_segment_free(&segment);
    }
    input_text_free(&text);
    return e;
}

static tamis_error pass(const char *path, struct sum *sum)
{
    static const char *const names[] = {"a", "b"};
    struct input_options options = {.segment = 5000};
    struct input *input = NULL;
    struct selection *selection = NULL;
    struct parser *parser = NULL;
    *sum = (struct sum){0};
    tamis_error e = input_open(&input, path, &options, NULL);
    if (e == TAMIS_OK)
        e = selection_new(&selection, &input->dialect, names, 2, input->header, input->header_len,
                          NULL);
    if (e == TAMIS_OK && !(parser = parser_new()))
        e = TAMIS_ENOMEM;
    if (e == TAMIS_OK)
        e = read_all(input, parser, selection, sum);
    parser_free(parser);
    selection_free(selection);
    input_close(input);
    return e;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void fail_each(const char *path)
{
    struct sum want, got;
    CHECK_MSG(pass(path, &want) == TAMIS_OK && want.records > 100, "%s", path);
    for (int stays = 0; stays < 2; stays++) {
        unsigned long n = 1;
        for (bool reached = true; reached && n < 100000; n += 1 + n / 50) {
            long before = live;
            left = n, onwards = stays, failed = false;
            tamis_error e = pass(path, &got);
            reached = failed;
            left = 0;
            CHECK_MSG(live == before, "%s, allocation %lu: %ld left behind", path, n,
                      live - before);
            CHECK_MSG(e == TAMIS_ENOMEM || e == TAMIS_OK, "%s, allocation %lu: %s", path, n,
                      tamis_error_name(e));
            CHECK_MSG(!reached ? e == TAMIS_OK : true, "%s, allocation %lu", path, n);
            CHECK_MSG(e != TAMIS_OK || memcmp(&want, &got, sizeof want) == 0,
                      "%s, allocation %lu: other records", path, n);
        }
        CHECK(n > (REPLACES ? 5 : 1));
    }
}

TEST(every_allocation_may_fail)
{
    struct buf csv = {0}, json = {0}, packed = {0}, log = {0}, array = {0}, pairs = {0};
    buf_say(&csv, "a,b,c\n");
    buf_say(&array, "[");
    for (int i = 0; i < 1500; i++) {
        buf_say(&csv, "%d,\"x \"\"%d\"\"\ny\",%d\n", i, i * 7919 % 1000, i);
        buf_say(&json, "{\"a\": %d, \"b\": \"\\u00e9 \\\"%d\\\"\", \"c\": [%d]}\n", i,
                i * 7919 % 1000, i);
        buf_say(&log, "10.0.0.%d - - [10/Oct/2000:13:55:36 -0700] \"GET /%d HTTP/1.0\" 200 %d\n%s",
                i % 256, i, i, i % 9 ? "" : "  at Main\n");
        buf_say(&array, "%s{\"a\": [%d, \"\\u00e9\", \"x\"],\n\"b\": \"{\\\"c\\\": 1}\"}",
                i ? "," : "", i);
        buf_say(&pairs, "a=%d b=\"x \\\"%d\\\"\" c=1\n", i, i);
    }
    buf_say(&array, "]");
    write_file("r.csv", csv.data, csv.len);
    write_file("r.jsonl", json.data, json.len);
    pack_gz(&packed, csv.data, csv.len, 0, 4000);
    write_file("r.csv.gz", packed.data, packed.len);
    packed.len = 0;
    pack_zst(&packed, json.data, json.len, 20000);
    write_file("r.jsonl.zst", packed.data, packed.len);
    packed.len = 0;
    pack_frames(&packed, PACK_XZ, log.data, log.len, 0);
    write_file("r.xz", packed.data, packed.len);
    write_file("r.log", log.data, log.len);
    write_file("r.array", array.data, array.len);
    write_file("r.pairs", pairs.data, pairs.len);
    fail_each("r.log");
    fail_each("r.xz");
    fail_each("r.array");
    fail_each("r.pairs");
    fail_each("r.csv");
    fail_each("r.jsonl");
    fail_each("r.csv.gz");
    fail_each("r.jsonl.zst");
    buf_free(&csv), buf_free(&json), buf_free(&packed);
    buf_free(&log), buf_free(&array), buf_free(&pairs);
}

HARNESS_MAIN
