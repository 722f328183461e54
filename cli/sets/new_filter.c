/* New filters. See new_filter.h. */
#include "new_filter.h"

#include <string.h>

#include "ui/args.h"

/* "scalable", or "window:24h". */
static bool read_growth(struct make *make)
{
    if (!make->growth)
        return true;
    size_t len = strcspn(make->growth, ":");
    const char *time = make->growth[len] ? make->growth + len + 1 : NULL;
    for (size_t i = 1; i < COUNT(growth_names); i++)
        if (strlen(growth_names[i]) == len && memcmp(growth_names[i], make->growth, len) == 0)
            make->options.growth = (tamis_growth)i;
    if (make->options.growth == TAMIS_GROWTH_DEFAULT ||
        (time && make->options.growth != TAMIS_WINDOW))
        return refuse(
            "wrong value '%s': --growth: give smooth, fixed, dynamic, scalable, flexible or window:24h",
            make->growth);
    if (time && !parse_time(time, &make->options.window))
        return refuse(
            "wrong duration '%s': --growth: give window:90s, window:30m, window:24h or the like",
            time);
    return true;
}

static bool read_lambdas(struct make *make, uint8_t *lambdas)
{
    unsigned given[TAMIS_LAMBDAS_MAX];
    if (!make->lambda)
        return true;
    size_t n = parse_lambdas(make->lambda, 40, given);
    if (n == 0)
        return false;
    for (size_t i = 0; i < n; i++)
        lambdas[i] = (uint8_t)given[i];
    if (make->options.growth != TAMIS_FLEXIBLE)
        return refuse("only for flexible filters: --lambda: give --growth flexible");
    make->options.lambdas = lambdas;
    make->options.n_lambdas = n;
    return true;
}

/* Options that a growth would silently ignore are mistakes. */
static bool check_growth(const struct make *make)
{
    const tamis_options *o = &make->options;
    tamis_growth growth = o->growth ? o->growth : TAMIS_SCALABLE;
    if (o->expansion != 0 && growth != TAMIS_SCALABLE)
        return refuse("only for scalable filters: --expansion: give --growth scalable");
    if (o->tolerate != 0 && growth != TAMIS_DYNAMIC)
        return refuse("only for dynamic filters: --tolerate: give --growth dynamic");
    if (o->overfill && growth != TAMIS_FIXED && growth != TAMIS_DYNAMIC && growth != TAMIS_WINDOW)
        return refuse(
            "only for fixed, dynamic and window filters: --overfill: give --growth fixed");
    if (o->add_always && (growth == TAMIS_FIXED || o->deletable))
        return refuse(
            "only for plain filters that grow: --add-always: leave it out, or give --growth");
    if (make->vectors && growth != TAMIS_DYNAMIC && growth != TAMIS_WINDOW)
        return refuse("only for dynamic and window filters: --vectors: give --growth dynamic");
    return true;
}

/* Only spread vectors of equal shape can be queried together across owners. So each origin uses as many as it
   needs of vectors that are planned for the largest one. */
static bool plan_for_publish(struct make *make)
{
    const char *other = make->attrs    ? "--attrs"
                        : make->growth ? "--growth"
                        : make->layout ? "--layout"
                                       : NULL;
    if (!make->for_publish)
        return true;
    if (other)
        return refuse("--for-publish has its own structure: %s: leave it out", other);
    if (!make->options.capacity)
        return refuse(
            "no capacity to plan for: --for-publish: give --capacity, the most keys of any "
            "origin of the family");
    make->options.growth = TAMIS_DYNAMIC;
    make->options.layout = TAMIS_SPREAD;
    return true;
}

/* The key of the family to join, from --key-file or from the file given with --like. */
static bool family_of(struct make *make, const struct store_options *files, uint8_t *key)
{
    if (files->key_file && !store_read_key(files->key_file, key))
        return false;
    if (make->like) {
        struct store model;
        if (!store_ask(&model, make->like, files))
            return false;
        tamis_filter_facts facts;
        set_brief(model.set, &facts);
        bool told = files->key_file || set_key(model.set, key);
        store_end(&model);
        if (!told)
            return succeeded(TAMIS_EKEY, NULL, make->like);
        if (make->hash && make->hash != (unsigned)facts.hash)
            return refuse("conflicting hash: --hash: %s has its own; leave it out", make->like);
        make->options.hash = facts.hash;
    }
    if (files->key_file || make->like)
        make->options.key = key;
    return true;
}

/* An emptied copy of the model. */
static struct set *make_alike(const struct make *make, tamis_kind kind,
                              const struct store_options *files)
{
    struct set *set = store_read(make->like, kind, STORE_LOAD, files);
    if (!set || succeeded(set_clear(set), NULL, make->like))
        return set;
    set_free(set);
    return NULL;
}

bool make_settle(struct make *make, const struct store_options *files, struct made *made)
{
    make->options.layout = (tamis_layout)make->layout;
    make->options.hash = (tamis_hash)make->hash;
    if (!plan_for_publish(make) || !read_growth(make) || !read_lambdas(make, made->lambdas) ||
        !check_growth(make) || !family_of(make, files, made->key))
        return false;
    bool published = make->options.bits || make->hashes;
    if (published && !make->layout) /* the bits that were given, not whole blocks of 512 */
        make->options.layout = TAMIS_SPREAD;
    if (published && make->attrs && !make->options.growth)
        make->options.growth = TAMIS_FIXED;
    if (make->vectors > UINT32_MAX || make->hashes > 64)
        return refuse("too many: %s: give fewer", make->hashes > 64 ? "--hashes" : "--vectors");
    make->options.vectors = (uint32_t)make->vectors;
    make->options.hashes = (uint32_t)make->hashes;
    return true;
}

struct set *make_any(struct make *make, const struct store_options *files, const char *path)
{
    const char *wrong = make->combos.n     ? "--combo"
                        : make->distinct.n ? "--distinct"
                        : make->verifier   ? "--verifier"
                        : make->value      ? "--value"
                                           : NULL;
    if (make->attrs)
        return make_records(make, files, path);
    if (wrong)
        return complain("only for records: %s: give --attrs too", wrong), NULL;
    return make_filter(make, TAMIS_KIND_NONE, files, path);
}

struct set *make_filter(struct make *make, tamis_kind like, const struct store_options *files,
                        const char *path)
{
    WIPED_KEY key[TAMIS_KEY_LEN];
    struct made made = {.key = key};
    tamis_reason reason = {0};
    tamis_filter *filter;
    if (make->like && !make_shaped(make) && !make->for_publish)
        return make_alike(make, like, files);
    if (!make_settle(make, files, &made))
        return NULL;
    tamis_error e = tamis_filter_new(&filter, &make->options, &reason);
    return succeeded(e, &reason, path) ? filter_set(filter) : NULL;
}
