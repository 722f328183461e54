/* tamis info, verify, fold, clear, merge, intersect: operations on whole files. */
#include <string.h>
#include <sys/stat.h>

#include "ui/args.h"
#include "ui/cli.h"
#include "ui/out.h"
#include "set_file.h"

int verb_info(int argc, char **argv)
{
    struct store_options files = {0};
    bool json = false, verbose = false, inputs = false;
    const struct arg args[] = {
        STORE_KEY_ARG(files),
        STORE_READ_ARG(files),
        ARG("json", 0, ARG_FLAG, &json),
        ARG("verbose", 'v', ARG_FLAG, &verbose),
        ARG("inputs", 0, ARG_FLAG, &inputs),
    };
    struct words words = args_read_files(argc, argv, args, COUNT(args), 1, 1, "FILE");
    const char *path = words.word[0];
    struct store store;
    struct stat st;
    tamis_kind kind;
    bool known = tamis_file_kind(path, &kind, NULL) == TAMIS_OK && kind != TAMIS_KIND_NONE;
    if (inputs && known && kind != TAMIS_KIND_CATALOG)
        return complain("not a catalog: %s: only catalogs have inputs", path);
    if (inputs)
        return catalog_inputs(path, &files, json);
    if ((known && kind == TAMIS_KIND_CATALOG) || (stat(path, &st) == 0 && S_ISDIR(st.st_mode)))
        return catalog_report(path, &files, json);
    if (!store_ask(&store, path, &files))
        return TROUBLE;
    store_report(&store, json, verbose);
    store_end(&store);
    return FOUND;
}

static bool verify_one(const char *path, bool json)
{
    tamis_reason reason = {0};
    tamis_error e = tamis_file_verify(path, &reason);
    struct stat st;
    unsigned long long bytes = stat(path, &st) == 0 ? (unsigned long long)st.st_size : 0;
    if (json) {
        json_open(NULL, '{');
        json_text("file", path);
        json_flag("ok", e == TAMIS_OK);
        json_count("bytes", bytes);
        if (e != TAMIS_OK) {
            json_text("error", tamis_error_name(e));
            json_text("reason", reason.text[0] ? reason.text : tamis_error_text(e));
            json_count("offset", reason.offset);
        }
        json_close();
    } else if (e == TAMIS_OK) {
        put_name(path);
        put_format(": OK, %llu bytes\n", bytes);
    }
    return succeeded(e, &reason, path);
}

int verb_verify(int argc, char **argv)
{
    bool json = false;
    const struct arg args[] = {ARG("json", 0, ARG_FLAG, &json)};
    struct words words = args_read_files(argc, argv, args, COUNT(args), 1, SIZE_MAX, "FILE...");
    int status = FOUND;
    for (size_t i = 0; i < words.n; i++)
        if (!verify_one(words.word[i], json))
            status = TROUBLE;
    return status;
}

/* ---- in place -------------------------------------------------------------------------------- */

/* fold, clear: locks, loads, changes, saves. */
int verb_change_file(int argc, char **argv)
{
    bool fold = strcmp(argv[0], "fold") == 0;
    struct store_options files = {0};
    bool json = false, restate = false;
    const struct arg args[] = {
        STORE_KEY_ARG(files),
        STORE_WRITE_ARG(files),
        ARG("json", 0, ARG_FLAG, &json),
        ARG("restate", 0, ARG_FLAG, &restate),
    };
    struct words words = args_read_files(argc, argv, args, COUNT(args) - !fold, 1, 1, "FILE");
    struct store store;
    tamis_kind kind = fold ? TAMIS_KIND_FILTER : TAMIS_KIND_NONE;
    if (!store_change(&store, words.word[0], kind, &files))
        return TROUBLE;
    tamis_reason reason = {0};
    unsigned flags = restate ? TAMIS_MERGE_RESTATE : 0;
    tamis_error e =
        fold ? tamis_filter_fold(as_filter(store.set), flags, &reason) : set_clear(store.set);
    int status = succeeded(e, &reason, store.path) ? store_finish(&store, 0, json) : TROUBLE;
    store_end(&store);
    return status;
}

/* ---- several files to one -------------------------------------------------------------------- */

struct combine {
    struct store_options files;
    const char *output;
    bool force, no_key, json;
    bool restate, concat, disjoint;
};

/* Merges the file at path into `all`. */
static bool merge_one(const struct combine *c, struct store *all, const char *path)
{
    tamis_reason reason = {0};
    struct set *other = store_read(path, set_kind(all->set), STORE_WHOLE, &c->files);
    if (!other)
        return false;
    unsigned flags = (c->restate ? TAMIS_MERGE_RESTATE : 0) | (c->concat ? TAMIS_MERGE_CONCAT : 0) |
                     (c->disjoint ? TAMIS_MERGE_DISJOINT : 0);
    tamis_error e = set_unite(all->set, other, flags, &reason);
    set_free(other);
    return succeeded(e, &reason, path);
}

static bool intersect_one(const struct combine *c, struct store *all, const char *path)
{
    tamis_reason reason = {0};
    tamis_filter *both;
    if (store_has_records(all))
        return refuse("records cannot be intersected: %s: give filters", all->path);
    struct set *other = store_read(path, TAMIS_KIND_FILTER, STORE_ASK, &c->files);
    if (!other)
        return false;
    tamis_error e = tamis_filter_intersect(&both, as_filter(all->set), as_filter(other), &reason);
    set_free(other);
    if (e == TAMIS_OK) {
        set_free(all->set);
        all->set = filter_set(both);
    }
    return succeeded(e, &reason, path);
}

/* Combines the files into c->output, which may be one of them. */
static int combine(struct combine *c, const struct words *words,
                   bool (*one)(const struct combine *, struct store *, const char *))
{
    struct store store;
    bool force = c->force; /* it may be one of the inputs */
    for (size_t i = 0; i < words->n; i++)
        force |= strcmp(words->word[i], c->output) == 0;
    if (!store_lock(&store, c->output, &c->files))
        return TROUBLE;
    if (store_may_make(c->output, force))
        store.set = store_read(words->word[0], TAMIS_KIND_NONE, STORE_LOAD, &c->files);
    bool good = store.set != NULL;
    for (size_t i = 1; good && i < words->n; i++)
        good = one(c, &store, words->word[i]);
    int status = good ? store_finish(&store, c->no_key ? TAMIS_SAVE_NO_KEY : 0, c->json) : TROUBLE;
    store_end(&store);
    return status;
}

int verb_combine(int argc, char **argv)
{
    bool merge = strcmp(argv[0], "merge") == 0;
    struct combine c = {0};
    const struct arg args[] = {
        STORE_KEY_ARG(c.files),
        STORE_WRITE_ARG(c.files),
        ARG("output", 'o', ARG_TEXT, &c.output),
        ARG("force", 'f', ARG_FLAG, &c.force),
        ARG("no-key", 0, ARG_FLAG, &c.no_key),
        ARG("json", 0, ARG_FLAG, &c.json),
        ARG("restate", 0, ARG_FLAG, &c.restate),
        ARG("concat", 0, ARG_FLAG, &c.concat),
        ARG("disjoint", 0, ARG_FLAG, &c.disjoint),
    };
    struct words words = args_read_files(argc, argv, args, COUNT(args) - (merge ? 0 : 3), 2,
                                         SIZE_MAX, "-o OUT A B...");
    if (!c.output)
        return complain("no output file: -o OUT: give a name for the result");
    return combine(&c, &words, merge ? merge_one : intersect_one);
}
