/* Threads that share an input: together they get every segment once, and read them again as they
   were. */
#include <pthread.h>

#include "harness.h"
#include "reader_help.h"

#define THREADS  4
#define SEGMENTS 4096

struct shared {
    struct input *input;
    const struct selection *selection;
    pthread_mutex_t lock;
    struct input_segment segment[SEGMENTS];
    size_t n, taken;
    uint64_t sum, records; /* over all records: what order does not change */
};

static uint64_t sum_records(const struct shared *shared, struct parser *parser,
                            const struct input_text *text, uint64_t *records)
{
    struct record r;
    uint64_t sum = 0;
    CHECK(parser_begin(parser, shared->selection, text->data, text->len) == TAMIS_OK);
    while (parser_next(parser, &r) == PARSED_RECORD) {
        uint64_t hash = 14695981039346656037u;
        for (size_t i = 0; i < r.values[0].len; i++)
            hash = (hash ^ r.values[0].data[i]) * 1099511628211u;
        sum += hash;
        ++*records;
    }
    return sum;
}

static void *take_segments(void *context)
{
    struct shared *shared = context;
    struct parser *parser = parser_new();
    struct input_text text = {0};
    struct input_segment segment;
    tamis_reason reason;
    bool more;
    while (CHECK(input_next(shared->input, &segment, &text, &more, &reason) == TAMIS_OK) && more) {
        uint64_t records = 0, sum = sum_records(shared, parser, &text, &records);
        pthread_mutex_lock(&shared->lock);
        shared->sum += sum;
        shared->records += records;
        if (CHECK(shared->n < SEGMENTS))
            shared->segment[shared->n++] = segment;
        pthread_mutex_unlock(&shared->lock);
    }
    input_text_free(&text);
    parser_free(parser);
    return NULL;
}

static void *read_segments(void *context)
{
    struct shared *shared = context;
    struct parser *parser = parser_new();
    struct input_text text = {0};
    for (;;) {
        pthread_mutex_lock(&shared->lock);
        size_t i = shared->taken++;
        pthread_mutex_unlock(&shared->lock);
        if (i >= shared->n)
            break;
        CHECK(input_read(shared->input, &shared->segment[i], &text, NULL) == TAMIS_OK);
        uint64_t records = 0, sum = sum_records(shared, parser, &text, &records);
        pthread_mutex_lock(&shared->lock);
        shared->sum -= sum;
        shared->records -= records;
        pthread_mutex_unlock(&shared->lock);
    }
    input_text_free(&text);
    parser_free(parser);
    return NULL;
}

static void in_threads(void *(*body)(void *), struct shared *shared)
{
    pthread_t id[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&id[i], NULL, body, shared);
    for (int i = 0; i < THREADS; i++)
        pthread_join(id[i], NULL);
}

TEST(threads_share_an_input)
{
    struct buf text = {0}, packed[3] = {0};
    const uint64_t records = 30000;
    for (uint64_t i = 0; i < records; i++)
        buf_say(&text, "{\"n\":%llu,\"a\":\"value\\t%llu\"}\n", (unsigned long long)i,
                (unsigned long long)(i * i));
    buf_add(&packed[0], text.data, text.len);
    pack_gz(&packed[1], text.data, text.len, 0, 0);
    pack_zst(&packed[2], text.data, text.len, 20000);
    for (int kind = 0; kind < 3; kind++) {
        struct shared *shared = calloc(1, sizeof *shared);
        struct input_options options = {.segment = 10000};
        write_file("shared", packed[kind].data, packed[kind].len);
        pthread_mutex_init(&shared->lock, NULL);
        if (!CHECK(input_open(&shared->input, "shared", &options, NULL) == TAMIS_OK))
            return;
        struct selection *selection = select_words(&shared->input->dialect, "a", NULL, 0);
        shared->selection = selection;
        in_threads(take_segments, shared);
        CHECK(shared->records == records && shared->n > 1);
        uint64_t len = 0;
        for (size_t i = 0; i < shared->n; i++)
            len += shared->segment[i].len;
        CHECK(len == text.len);
        in_threads(read_segments, shared);
        CHECK(shared->records == 0 && shared->sum == 0);
        for (size_t i = 0; i < shared->n; i++)
            input_segment_free(&shared->segment[i]);
        selection_free(selection);
        input_close(shared->input);
        pthread_mutex_destroy(&shared->lock);
        free(shared);
        buf_free(&packed[kind]);
    }
    buf_free(&text);
}

HARNESS_MAIN
