/* New filters. See make.h. */
#include "make.h"

#include <string.h>

#include "args.h"

/* "scalable", or "window:24h". */
static bool read_growth(struct make *make)
{
    static const char *const names[] = {"fixed", "dynamic", "scalable", "flexible", "window"};
    if (!make->growth)
        return true;
    size_t len = strcspn(make->growth, ":");
    const char *time = make->growth[len] ? make->growth + len + 1 : NULL;
    for (size_t i = 0; i < COUNT(names); i++)
        if (strlen(names[i]) == len && memcmp(names[i], make->growth, len) == 0)
            make->options.growth = (tamis_growth)(i + 1);
    if (make->options.growth == TAMIS_GROWTH_DEFAULT ||
        (time && make->options.growth != TAMIS_WINDOW)) {
        complain(
            "wrong value '%s': --growth: give fixed, dynamic, scalable, flexible or window:24h",
            make->growth);
        return false;
    }
    if (time && !parse_time(time, &make->options.window)) {
        complain("wrong duration '%s': --growth: give one such as window:90s, 30m, 24h or 7d",
                 time);
        return false;
    }
    return true;
}

static bool read_lambdas(struct make *make, uint8_t *lambdas)
{
    double values[TAMIS_LAMBDAS_MAX];
    if (!make->lambda)
        return true;
    size_t n = parse_list(make->lambda, values, COUNT(values));
    for (size_t i = 0; i < n; i++) {
        lambdas[i] = values[i] >= 1 && values[i] <= 40 ? (uint8_t)values[i] : 0;
        if (lambdas[i] == 0 || lambdas[i] != values[i])
            n = 0;
    }
    if (n == 0)
        return complain("wrong value '%s': --lambda: give whole numbers from 1 to 40, as 1,2,3",
                        make->lambda),
               false;
    if (make->options.growth != TAMIS_FLEXIBLE)
        return complain("only flexible filters have one: --lambda: give --growth flexible"), false;
    make->options.lambdas = lambdas;
    make->options.n_lambdas = n;
    return true;
}

/* Options that a growth would silently leave aside are mistakes. */
static bool check_growth(const struct make *make)
{
    const tamis_options *o = &make->options;
    tamis_growth growth = o->growth ? o->growth : TAMIS_SCALABLE;
    if (o->expansion != 0 && growth != TAMIS_SCALABLE)
        return complain("only scalable filters have one: --expansion: give --growth scalable"),
               false;
    if (o->tolerate != 0 && growth != TAMIS_DYNAMIC)
        return complain("only dynamic filters have one: --tolerate: give --growth dynamic"), false;
    if (make->vectors && growth != TAMIS_DYNAMIC && growth != TAMIS_WINDOW)
        return complain(
                   "only dynamic and window filters have it: --vectors: give --growth dynamic"),
               false;
    return true;
}

/* The key of the family to join, from --key-file or from the file to be like. */
static bool family_of(struct make *make, const struct store_options *files, uint8_t *key)
{
    if (files->key_file && !store_read_key(files->key_file, key))
        return false;
    if (make->like) {
        tamis_filter *model = store_open(make->like, files);
        if (!model)
            return false;
        tamis_info info;
        tamis_filter_info(model, &info);
        bool told = files->key_file || tamis_filter_key(model, key);
        tamis_filter_free(model);
        if (!told)
            return complain_of(TAMIS_EKEY, NULL, make->like), false;
        if (make->hash && make->hash != (unsigned)info.hash)
            return complain("another hash: --hash: %s has its own; leave it out", make->like),
                   false;
        make->options.hash = info.hash;
    }
    if (files->key_file || make->like)
        make->options.key = key;
    return true;
}

/* Alike in all: the model, emptied. */
static tamis_filter *make_alike(const struct make *make, const struct store_options *files)
{
    tamis_filter *filter = store_load(make->like, files);
    tamis_error e = filter ? tamis_filter_clear(filter) : TAMIS_OK;
    if (e == TAMIS_OK)
        return filter;
    complain_of(e, NULL, make->like);
    tamis_filter_free(filter);
    return NULL;
}

tamis_filter *make_filter(struct make *make, const struct store_options *files, const char *path)
{
    uint8_t key[TAMIS_KEY_LEN], lambdas[TAMIS_LAMBDAS_MAX];
    tamis_reason reason = {0};
    tamis_filter *filter;
    if (make->like && !make->shaped)
        return make_alike(make, files);
    make->options.layout = (tamis_layout)make->layout;
    make->options.hash = (tamis_hash)make->hash;
    if (!read_growth(make) || !read_lambdas(make, lambdas) || !check_growth(make) ||
        !family_of(make, files, key))
        return NULL;
    if (make->vectors > UINT32_MAX || make->hashes > 64)
        return complain("too many: %s: give fewer", make->hashes > 64 ? "--hashes" : "--vectors"),
               NULL;
    make->options.vectors = (uint32_t)make->vectors;
    make->options.hashes = (uint32_t)make->hashes;
    make->options.clock = store_clock;
    tamis_error e = tamis_filter_new(&filter, &make->options, &reason);
    if (e == TAMIS_OK)
        return filter;
    complain_of(e, &reason, path);
    return NULL;
}
