/* The publication of a value, which is part of it: where copies are sent and how wrong they may
   be. Its arguments, its encoding in files, its command in append-only files. Publishing itself
   is in publish_command.c. */
#include "module.h"

#include <string.h>

#define BEAT UINT64_C(10000000000) /* 10 seconds */

/* ---- words ----------------------------------------------------------------------------------- */

static const char *read_number(RedisModuleString **argv, int argc, int i, double least, double most,
                               double *out)
{
    if (i >= argc || rm.StringToDouble(argv[i], out) != RM_OK || !(*out >= least && *out <= most))
        return "ERR a target is missing or out of range";
    return NULL;
}

const char *publication_targets(struct publication *p, RedisModuleString **argv, int argc)
{
    tamis_targets *t = &p->targets;
    const char *error = NULL;
    double seconds;
    for (int i = 4; i < argc && !error; i += 2) {
        if (is_word(argv[i], "MISS")) {
            error = read_number(argv, argc, i + 1, -1, 1, &t->member_miss);
        } else if (is_word(argv[i], "FALSERATE")) {
            error = read_number(argv, argc, i + 1, -1, 1, &t->false_rate);
        } else if (is_word(argv[i], "DIRTY")) {
            error = read_number(argv, argc, i + 1, -1, 1, &t->dirty);
        } else if (is_word(argv[i], "WEIGHTS")) {
            error = read_number(argv, argc, i + 1, 0, 1e6, &t->w_positive);
            if (!error)
                error = read_number(argv, argc, i + 2, 0, 1e6, &t->w_disagree);
            i++;
        } else if (is_word(argv[i], "MAXAGE")) {
            error = read_number(argv, argc, i + 1, 0, 1e9, &seconds);
            t->max_age = error ? 0 : (uint64_t)(seconds * 1e3 + 0.5) * 1000000;
        } else if (is_word(argv[i], "BEAT")) {
            error = read_number(argv, argc, i + 1, 1, 86400, &seconds);
            p->beat = error ? 0 : (uint64_t)(seconds * 1e3 + 0.5) * 1000000;
        } else if (is_word(argv[i], "WITHKEY")) {
            p->with_key = true;
            i--;
        } else {
            error =
                "ERR the targets are MISS, FALSERATE, WEIGHTS, DIRTY, MAXAGE and BEAT, and beside "
                "them WITHKEY";
        }
    }
    return error;
}

/* ---- values and bytes ------------------------------------------------------------------------ */

void publication_free(struct publication *p)
{
    if (!p)
        return;
    tamis_origin_free(p->origin);
    buffer_free(&p->stream);
    rm.Free(p);
}

bool publication_names_good(size_t stream_len, const char *owner, size_t owner_len)
{
    return stream_len && owner_len && owner_len <= TAMIS_OWNER_MAX && !memchr(owner, 0, owner_len);
}

struct publication *publication_new(const char *stream, size_t stream_len, const char *owner,
                                    size_t owner_len)
{
    if (!publication_names_good(stream_len, owner, owner_len))
        return NULL;
    struct publication *p = rm.TryAlloc(sizeof *p);
    if (!p)
        return NULL;
    *p = (struct publication){.beat = BEAT};
    memcpy(p->owner, owner, owner_len);
    if (!buffer_add(&p->stream, stream, stream_len)) {
        publication_free(p);
        return NULL;
    }
    return p;
}

void publication_save(RedisModuleIO *io, const struct publication *p)
{
    const tamis_targets *t = &p->targets;
    rm.SaveStringBuffer(io, p->stream.data, p->stream.len);
    rm.SaveStringBuffer(io, p->owner, strlen(p->owner));
    const double rates[] = {t->member_miss, t->false_rate, t->w_positive, t->w_disagree, t->dirty};
    for (int i = 0; i < 5; i++)
        rm.SaveDouble(io, rates[i]);
    rm.SaveUnsigned(io, t->max_age);
    rm.SaveUnsigned(io, p->beat);
}

struct publication *publication_load(RedisModuleIO *io)
{
    size_t stream_len = 0, owner_len = 0;
    double rates[5] = {0};
    uint64_t age = 0, beat = 0;
    char *owner = NULL, *stream = rm.LoadStringBuffer(io, &stream_len);
    if (!rm.IsIOError(io))
        owner = rm.LoadStringBuffer(io, &owner_len);
    for (int i = 0; i < 5 && !rm.IsIOError(io); i++)
        rates[i] = rm.LoadDouble(io);
    if (!rm.IsIOError(io))
        age = rm.LoadUnsigned(io), beat = rm.LoadUnsigned(io);
    struct publication *p = NULL;
    if (!rm.IsIOError(io) && owner)
        p = publication_new(stream, stream_len, owner, owner_len);
    if (p) {
        p->targets = (tamis_targets){rates[0], rates[1], rates[2], rates[3], rates[4], age};
        p->beat = beat;
    }
    rm.Free(stream);
    rm.Free(owner);
    return p;
}

size_t publication_words(const struct publication *p, RedisModuleString *words[PUBLICATION_WORDS])
{
    RedisModuleCtx *ctx = NULL; /* the words belong to the caller */
    const tamis_targets *t = &p->targets;
    size_t n = 0;
    words[n++] = rm.CreateString(ctx, p->stream.data, p->stream.len);
    words[n++] = rm.CreateString(ctx, p->owner, strlen(p->owner));
    SAY("MISS"), SAY("%.17g", t->member_miss);
    SAY("FALSERATE"), SAY("%.17g", t->false_rate);
    SAY("WEIGHTS"), SAY("%.17g", t->w_positive), SAY("%.17g", t->w_disagree);
    SAY("DIRTY"), SAY("%.17g", t->dirty);
    SAY("MAXAGE"), SAY("%.17g", (double)(t->max_age / 1000000) / 1e3);
    SAY("BEAT"), SAY("%.17g", (double)(p->beat / 1000000) / 1e3);
    if (p->with_key)
        SAY("WITHKEY");
    return n;
}

void publication_emit(RedisModuleIO *io, RedisModuleString *key, const struct publication *p)
{
    RedisModuleString *words[PUBLICATION_WORDS];
    size_t n = publication_words(p, words);
    rm.EmitAOF(io, "TAMIS.PUBLISH", "sv", key, words, n);
    for (size_t i = 0; i < n; i++)
        rm.FreeString(NULL, words[i]);
}
