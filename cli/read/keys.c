/* Batches of keys: cutting, hashing, printing. key_slabs.c provides the bytes. See keys.h. */
#include "keys.h"

#include <string.h>

#include "ui/args.h"
#include "ui/out.h"
#include "key_slabs.h"

/* ---- cutting --------------------------------------------------------------------------------- */

/* Hashed like any other key, so it points to something. */
const tamis_key key_none = {"", 0};

static bool is_none(const struct batch *b, size_t i)
{
    return b->n_none && b->key[i].data == key_none.data;
}

/* Column `field` of a line; key_none if there are fewer columns. */
static tamis_key column(tamis_key line, uint64_t field, char delimiter)
{
    const char *at = line.data, *end = at + line.len;
    for (;;) {
        const char *next = memchr(at, delimiter, (size_t)(end - at));
        if (field == 1)
            return (tamis_key){at, (size_t)((next ? next : end) - at)};
        if (!next)
            return key_none;
        at = next + 1;
        field--;
    }
}

static void cut_columns(struct batch *b, const struct keys *keys)
{
    b->n_none = 0;
    for (size_t i = 0; i < b->n; i++) {
        b->key[i] = column(b->line[i], keys->field, keys->delimiter);
        b->n_none += b->key[i].data == key_none.data;
    }
}

const char *batch_cut(struct batch *b, const struct keys *keys, const char *from, const char *to)
{
    b->n = 0;
    b->joined = true;
    while (b->n < KEYS_BATCH && from < to) {
        const char *end = memchr(from, keys->end, (size_t)(to - from));
        b->line[b->n++] = (tamis_key){from, (size_t)(end - from)};
        from = end + 1;
    }
    return from;
}

void batch_ask(struct batch *b, const struct keys *keys, const struct work *work)
{
    const tamis_key *key = b->line;
    b->n_none = 0;
    if (keys->field) {
        cut_columns(b, keys);
        key = b->key;
    }
    tamis_filter_digest_many(work->filter, key, b->n, b->digest);
    if (work->ask)
        work->ask(work->context, b);
}

/* ---- using ----------------------------------------------------------------------------------- */

size_t batch_pack(struct batch *b, uint16_t *who)
{
    size_t n = 0;
    for (size_t i = 0; i < b->n; i++) {
        if (is_none(b, i))
            continue;
        b->digest[n] = b->digest[i];
        who[n++] = (uint16_t)i;
    }
    return n;
}

size_t batch_print(const struct batch *b, uint8_t mark, char end)
{
    size_t printed = 0;
    for (size_t i = 0; i < b->n; i++) {
        if (b->mark[i] != mark)
            continue;
        size_t j = i;
        while (b->joined && j + 1 < b->n && b->mark[j + 1] == mark)
            j++;
        const char *from = b->line[i].data;
        const char *to = (const char *)b->line[j].data + b->line[j].len;
        put_bytes(from, (size_t)(to - from) + b->joined);
        if (!b->joined)
            put_bytes(&end, 1);
        printed += j - i + 1;
        i = j;
    }
    return printed;
}

/* Keys given as arguments: there is nothing to read, and a key may contain a line end. */
static int words_run(struct keys *keys, const struct work *work)
{
    static struct batch b;
    for (size_t i = 0; i < keys->n_words; i += b.n) {
        size_t left = keys->n_words - i;
        b.n = left < KEYS_BATCH ? left : KEYS_BATCH;
        b.number = i + 1;
        for (size_t j = 0; j < b.n; j++)
            b.line[j] = (tamis_key){keys->word[i + j], strlen(keys->word[i + j])};
        batch_ask(&b, keys, work);
        if (!batch_judge(&b, keys))
            return TROUBLE;
        if (!work->take(work->context, &b))
            break;
    }
    return FOUND;
}

bool batch_judge(const struct batch *b, struct keys *keys)
{
    if (b->n_none == 0)
        return true;
    size_t i = 0;
    while (!is_none(b, i))
        i++;
    if (keys->none == 0)
        keys->first_none = b->number + i;
    keys->none += b->n_none;
    if (keys->strict)
        complain(
            "no field %llu: line %llu: nothing was changed; leave out --strict to %s such lines",
            (unsigned long long)keys->field, (unsigned long long)keys->first_none,
            keys->passing ? "pass" : "skip");
    return !keys->strict;
}

int keys_run(struct keys *keys, const struct work *work)
{
    int status = keys->n_words ? words_run(keys, work) : slabs_run(keys, work);
    if (status == FOUND && keys->none)
        remark("%llu lines have no field %llu: the first is line %llu: they were %s",
               (unsigned long long)keys->none, (unsigned long long)keys->field,
               (unsigned long long)keys->first_none, keys->passing ? "passed on" : "skipped");
    return status;
}

/* ---- options --------------------------------------------------------------------------------- */

bool keys_settle(struct keys *keys, char **word, size_t n_words)
{
    keys->word = word;
    keys->n_words = n_words;
    keys->end = keys->zero ? 0 : '\n';
    if (keys->by_field && keys->field == 0)
        return refuse("wrong value '0': --field: columns count from 1");
    if (keys->delimited && !keys->by_field)
        return refuse("no column is used: --delimiter: give --field too");
    if (keys->delimited && keys->delimiter == keys->end)
        return refuse("not a valid separator: --delimiter: give another byte");
    return threads_settle(&keys->threads);
}
