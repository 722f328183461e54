/* The reader of all formats, plain and compressed: whatever the bytes are, the records are the
 * same however the text is cut into segments and packed, and each segment can be read again alone.
 *
 * The first three bytes say how: format, header and delimiter; packing; size of a segment. Packing 3
 * takes the rest as a file as it is, so that damaged compression comes up too.
 */
#include "../unit/reader_help.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const char attributes[] =
    "a b 2 a.b c.0.d 10 line time host agent msg procid facility path tags";
static const char columns[] = "1 2 3 10 line";

static void need(bool holds, const char *what)
{
    if (!holds)
        die(what);
}

static void pack(struct buf *out, unsigned how, const uint8_t *data, size_t len)
{
    if (how == 1)
        pack_gz(out, data, len, len / 3, 1 + len / 7);
    else if (how == 2)
        pack_zst(out, data, len, 1 + len / 3);
    else if (how > 3 && how < 7)
        pack_frames(out,
                    how == 4   ? PACK_BZIP2
                    : how == 5 ? PACK_XZ
                               : PACK_LZ4,
                    data, len, 1 + len / 2);
    else
        buf_add(out, data, len);
}

/* Text that looks compressed is taken for it when it is plain. */
static bool is_packed(const uint8_t *data, size_t len)
{
    return len >= 2 &&
           ((data[0] == 0x1f && data[1] == 0x8b) || (data[0] == 0x28 && data[1] == 0xb5) ||
            (data[0] >> 4 == 5 && data[1] == 0x2a) || (data[0] == 'B' && data[1] == 'Z') ||
            (data[0] == 0xfd && data[1] == '7') || (data[0] == 4 && data[1] == 0x22) ||
            (data[0] | data[1]) == 0xff);
}

/* All segments once more, in another order, by a reader that has not seen what is between. */
static void read_again(const char *path, const struct input_options *options, const struct buf *all)
{
    struct input_segment segment[64];
    struct input *input;
    struct input_text text = {0};
    size_t n = 0;
    bool more;
    need(input_open(&input, path, options, NULL) == TAMIS_OK, "open");
    while (n < 64 && input_next(input, &segment[n], &text, &more, NULL) == TAMIS_OK && more)
        n++;
    for (size_t j = 0; j < n && all->len; j++) {
        const struct input_segment *s = &segment[(n - 1 - j) ^ (n > 2 ? j & 1 : 0)];
        if (s >= segment + n)
            continue;
        tamis_error e = input_read(input, s, &text, NULL);
        need(e == TAMIS_OK && text.len == s->len, "read again");
        need(memcmp(text.data, all->data + (s->offset - segment[0].offset), s->len) == 0,
             "another text");
    }
    for (size_t j = 0; j < n; j++)
        input_segment_free(&segment[j]);
    input_text_free(&text);
    input_close(input);
}

struct shown {
    struct buf records, texts;
    tamis_error error;
};

static struct shown show(const char *path, const struct input_options *options)
{
    struct shown s = {0};
    const char *names = options->dialect.headless ? columns : attributes;
    tamis_reason reason = {0};
    s.error = show_input(&s.records, &s.texts, path, options, names,
                         SHOW_RAW | SHOW_PLACE | SHOW_ALL, NULL, &reason);
    need(s.error == TAMIS_OK || reason.text[0], "an error without a reason");
    buf_add(&s.records, "", 0);
    buf_add(&s.texts, "", 0);
    return s;
}

static void shown_free(struct shown *s)
{
    buf_free(&s->records);
    buf_free(&s->texts);
}

static void same(const struct shown *x, const struct shown *y)
{
    need(x->error == y->error, "another end");
    need(x->texts.len == y->texts.len && memcmp(x->texts.data, y->texts.data, x->texts.len) == 0,
         "other texts");
    need(strcmp(x->records.data, y->records.data) == 0, "other records");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (len < 3)
        return 0;
    unsigned how = data[1] % 8;
    struct input_options whole = {
        .dialect = {.format = (enum read_format)((data[0] & 15) % READ_FORMATS),
                    .headless = data[0] & 16,
                    .delimiter = data[0] & 32 ? ';' : 0},
        .segment = 1 << 20};
    whole.dialect.pattern =
        whole.dialect.format == READ_PATTERN ? "(?<time>\\S+) (?<a>[^=]*)=(?<b>.*)" : NULL;
    whole.dialect.time = whole.dialect.format < READ_COMBINED ? "b" : NULL;
    struct input_options cut = whole;
    struct buf packed = {0};
    cut.segment = 1 + data[2];
    data += 3, len -= 3;
    pack(&packed, how, data, len);
    write_file("packed", packed.data, packed.len);
    struct shown one = show("packed", &whole), many = show("packed", &cut);
    same(&one, &many);
    if (one.error == TAMIS_OK)
        read_again("packed", &cut, &many.texts);
    if (how && how != 3 && how != 7 && !is_packed(data, len)) {
        write_file("plain", data, len);
        struct shown plain = show("plain", &cut);
        if (plain.error == TAMIS_OK) /* of other packings it says that it cannot read them */
            same(&plain, &many);
        shown_free(&plain);
    }
    shown_free(&one), shown_free(&many);
    buf_free(&packed);
    return 0;
}
