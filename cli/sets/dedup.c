/* tamis dedup: prints the lines of a stream that were not seen before. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ui/args.h"
#include "ui/cli.h"
#include "read/keys.h"
#include "new_filter.h"
#include "ui/out.h"
#include "seen_lines.h"
#include "set_file.h"

#define RATE 1e-9 /* default */

struct dedup {
    struct keys keys;
    struct sieve *sieve;
    tamis_filter *filter; /* or this one */
    tamis_error error;
    uint64_t n, fresh;
};

static bool dedup_batch(void *context, struct batch *b)
{
    struct dedup *d = context;
    uint16_t who[KEYS_BATCH];
    uint8_t fresh[KEYS_BATCH] = {0};
    uint8_t *mark = b->n_none ? fresh : b->mark;
    size_t n = b->n_none ? batch_pack(b, who) : b->n;
    d->error = d->sieve ? sieve_add(d->sieve, b->digest, n, mark)
                        : tamis_filter_add_many(d->filter, b->digest, n, mark, NULL);
    if (d->error != TAMIS_OK)
        return false;
    if (b->n_none) { /* lines without a key are printed */
        memset(b->mark, 1, b->n);
        for (size_t i = 0; i < n; i++)
            b->mark[who[i]] = fresh[i];
    }
    d->n += b->n;
    d->fresh += batch_print(b, 1, d->keys.end);
    return true;
}

/* The number of lines in a file, estimated from samples; 0 if the input is not a file. */
static uint64_t lines_to_come(char end)
{
    enum { PLACES = 64, PIECE = 16384 };
    uint64_t size = keys_input_size(), seen = 0, ends = 0;
    off_t start = lseek(STDIN_FILENO, 0, SEEK_CUR);
    char piece[PIECE];
    for (uint64_t i = 0; size && i < PLACES; i++) {
        off_t at = start + (off_t)(size / PLACES * i);
        ssize_t len = pread(STDIN_FILENO, piece, PIECE, at);
        seen += len > 0 ? (uint64_t)len : 0;
        for (ssize_t j = 0; j < len; j++)
            ends += piece[j] == end;
    }
    return ends ? (uint64_t)((double)size * ((double)ends / (double)seen)) + 1 : 0;
}

/* The rate of a filter is highest at the end (for a window it is the stated one): at most that
   share of the new lines, printed or lost, was lost. It cannot exceed the number of lines not
   printed. */
static double dedup_lost(const struct dedup *d)
{
    double most = (double)(d->n - d->fresh), lost = most;
    tamis_filter_facts info;
    if (d->sieve) {
        lost = sieve_lost(d->sieve);
    } else {
        tamis_filter_info(d->filter, &info);
        bool stated = info.growth == TAMIS_WINDOW && info.fpp_now < info.fpp;
        double rate = stated ? info.fpp : info.fpp_now;
        if (rate < 1)
            lost = (double)d->fresh * rate / (1 - rate);
    }
    return lost < most ? lost : most;
}

static void dedup_report(const struct dedup *d, bool json)
{
    double lost = dedup_lost(d);
    unsigned long long n = d->n, fresh = d->fresh;
    if (json)
        fprintf(stderr, "{\"lines\": %llu, \"new\": %llu, \"expected_lost\": %.17g}\n", n, fresh,
                lost);
    else
        remark("%llu lines, %llu new: expected to be lost: %.3g", n, fresh, lost < 1e-6 ? 0 : lost);
}

/* Were two filters created with the same parameters, as far as a used one shows? The vectors of a window come and go,
   and grow when far more keys arrive than expected, so they are not compared. */
static bool alike(const tamis_filter *a, const tamis_filter *b, bool family)
{
    tamis_filter_facts x, y;
    tamis_vector_facts u = {0}, v = {0};
    tamis_filter_brief(a, &x);
    tamis_filter_brief(b, &y);
    tamis_filter_vector(a, 0, &u);
    tamis_filter_vector(b, 0, &v);
    if (family && !tamis_filter_same_family(a, b))
        return false;
    return x.growth == y.growth && x.layout == y.layout && x.hash == y.hash &&
           x.deletable == y.deletable && x.unique == y.unique && x.fpp == y.fpp &&
           x.expansion == y.expansion && x.window == y.window &&
           (x.growth == TAMIS_WINDOW || (u.bits == v.bits && u.hashes == v.hashes));
}

/* The filter in the file. A script may repeat the options with which it was created. */
static struct set *load_as_told(struct make *make, const struct store_options *files,
                                const char *path)
{
    bool told = make_shaped(make) || make->like;
    struct set *model = told ? make_filter(make, TAMIS_KIND_FILTER, files, path) : NULL;
    struct set *set =
        told && !model ? NULL : store_read(path, TAMIS_KIND_FILTER, STORE_LOAD, files);
    if (set && model &&
        (make->options.overfill || make->options.add_always || make->lambda ||
         !alike(as_filter(set), as_filter(model), make->like))) {
        complain("the file exists: %s: it was created with other options; leave them out", path);
        set_free(set);
        set = NULL;
    }
    set_free(model);
    return set;
}

/* Reads the lines; the file, if there is one, is saved after they were written: only then may it say that they
   were seen. */
static int dedup_run(struct dedup *d, const struct store *store, const char *path, bool json)
{
    const struct work work = {d->sieve ? sieve_family(d->sieve) : d->filter, NULL, dedup_batch, d};
    int status = keys_run(&d->keys, &work);
    if (d->error == TAMIS_EFULL)
        return complain(
            "the filter is full: %s: nothing was saved; make a larger one (--capacity) or "
            "one that grows (--growth)",
            path);
    if (d->error != TAMIS_OK)
        return complain_of(d->error, NULL, path);
    if (status == FOUND && !put_flush())
        return TROUBLE; /* reported at the end of the program */
    if (status == FOUND && store && !store_save(store, 0))
        return TROUBLE;
    if (status == FOUND)
        dedup_report(d, json);
    return status;
}

static int dedup_memory(struct dedup *d, struct make *make, const struct store_options *files,
                        bool json)
{
    if (!make->formed && !make->like && !files->key_file) {
        d->sieve = sieve_new(make->options.fpp, make->options.capacity);
        if (!d->sieve)
            return complain("out of memory: --capacity: give a smaller one");
        sieve_foresee(d->sieve, lines_to_come(d->keys.end));
    } else {
        d->filter = as_filter(make_filter(make, TAMIS_KIND_FILTER, files, "filter in memory"));
        if (!d->filter)
            return TROUBLE;
    }
    int status = dedup_run(d, NULL, "filter in memory", json);
    sieve_free(d->sieve);
    tamis_filter_free(d->filter);
    return status;
}

static int dedup_file(struct dedup *d, struct make *make, const struct store_options *files,
                      const char *path, bool json)
{
    struct store store;
    if (!store_lock(&store, path, files))
        return TROUBLE;
    store.set = store_exists(path) ? load_as_told(make, files, path)
                                   : make_filter(make, TAMIS_KIND_FILTER, files, path);
    d->filter = as_filter(store.set);
    int status = store.set ? dedup_run(d, &store, path, json) : TROUBLE;
    store_end(&store);
    return status;
}

int verb_dedup(int argc, char **argv)
{
    struct dedup d = {.keys = KEYS_DEFAULT};
    d.keys.passing = true;
    struct make make = {0};
    struct store_options files = {0};
    bool json = false;
    const struct arg args[] = {
        KEYS_ARGS(d.keys),
        MAKE_ARGS(make),
        STORE_KEY_ARG(files),
        STORE_WRITE_ARG(files),
        ARG("json", 0, ARG_FLAG, &json),
    };
    struct words words = args_read(argc, argv, args, COUNT(args));
    if (words.n > 1)
        return complain("too many files: tamis dedup [FILE]: lines come from standard input");
    if (!keys_settle(&d.keys, NULL, 0))
        return TROUBLE;
    make.options.fpp = make.options.fpp != 0 ? make.options.fpp : RATE;
    return words.n ? dedup_file(&d, &make, &files, words.word[0], json)
                   : dedup_memory(&d, &make, &files, json);
}
