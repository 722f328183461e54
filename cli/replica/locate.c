/* tamis locate: which owners may have a key, by the copies that tamis follow keeps. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/args.h"
#include "read/keys.h"
#include "ui/out.h"
#include "replica_folder.h"
#include "sets/set_file.h"

#define TOGETHER 64 /* copies that are put into the directory, and keys that are asked */

struct locating {
    struct replicas replicas;
    struct keys keys;
    uint32_t *order; /* owners, by name */
    size_t n;
    size_t words;           /* for a bit an owner */
    uint64_t *hits, *doubt; /* of TOGETHER keys; of all */
    bool maybe, json, owners;
    bool few; /* keys, of the command line */
    uint64_t keys_hit, keys_doubtful;
};

/* ---- the copies ------------------------------------------------------------------------------ */

/* Is it the copy that the status speaks of? A later one, which took its place since the status was
   read, has all that this one has. */
static bool as_told(const tamis_follower *follower, const struct replica *r)
{
    tamis_follower_facts facts;
    tamis_follower_info(follower, &facts);
    return facts.epoch == r->epoch ? facts.version >= r->version : facts.epoch > r->epoch;
}

/* A copy that is asked a few times stays as it is; if it cannot be had, it stays in doubt. */
static void load_whole(const struct locating *l, uint32_t number, const char *name)
{
    char path[PATH_MAX];
    tamis_directory *d = l->replicas.directory;
    replicas_path(&l->replicas, name, path);
    if (tamis_directory_load(d, name, path, 0, NULL) == TAMIS_OK &&
        !as_told(tamis_directory_follower(d, number), &l->replicas.replica[number])) {
        tamis_directory_drop(d, name);
        tamis_directory_expect(d, name, NULL, NULL);
    }
}

static tamis_filter *load_copy(const struct locating *l, uint32_t number, const char *name,
                               const uint8_t *key)
{
    char path[PATH_MAX];
    tamis_follower_options o = {.key = key};
    tamis_follower *follower = NULL;
    tamis_filter *copy = NULL;
    replicas_path(&l->replicas, name, path);
    if (tamis_follower_new(&follower, &o) == TAMIS_OK &&
        tamis_follower_load(follower, path, 0, NULL) == TAMIS_OK &&
        as_told(follower, &l->replicas.replica[number]))
        tamis_follower_filter(follower, &copy);
    tamis_follower_free(follower);
    return copy;
}

/* Slicing takes about as long as asking each copy for 50 keys of its 1,000. */
static bool load_all(struct locating *l, const uint8_t *key)
{
    const char *names[TOGETHER];
    const tamis_filter *copies[TOGETHER];
    tamis_error e = TAMIS_OK;
    for (size_t i = 0, n = 0; i < l->n; i++) {
        uint32_t number = l->order[i];
        names[n] = tamis_directory_name(l->replicas.directory, number);
        if (!replica_trusted(&l->replicas, &l->replicas.replica[number]))
            copies[n] = NULL;
        else if (l->few)
            load_whole(l, number, names[n]), copies[n] = NULL;
        else
            copies[n] = load_copy(l, number, names[n], key);
        n += copies[n] != NULL;
        if (n < TOGETHER && i + 1 < l->n)
            continue;
        if (e == TAMIS_OK)
            e = tamis_directory_put_filters(l->replicas.directory, names, copies, n, NULL);
        while (n > 0)
            tamis_filter_free((tamis_filter *)(uintptr_t)copies[--n]);
    }
    return e == TAMIS_OK;
}

static const tamis_directory *sorted; /* by its names */

static int by_name(const void *x, const void *y)
{
    return strcmp(tamis_directory_name(sorted, *(const uint32_t *)x),
                  tamis_directory_name(sorted, *(const uint32_t *)y));
}

static bool prepare(struct locating *l, const uint8_t *key)
{
    sorted = l->replicas.directory;
    l->n = tamis_directory_owners(sorted);
    l->words = (l->n + 63) / 64;
    l->order = malloc((l->n + 1) * sizeof *l->order);
    l->doubt = calloc(l->words + 1, sizeof *l->doubt);
    l->hits = calloc(TOGETHER * l->words + 1, sizeof *l->hits);
    if (!l->order || !l->doubt || !l->hits)
        return false;
    for (size_t i = 0; i < l->n; i++)
        l->order[i] = (uint32_t)i;
    qsort(l->order, l->n, sizeof *l->order, by_name);
    if (!load_all(l, key))
        return false;
    tamis_directory_locate_many(sorted, NULL, 0, l->hits, l->doubt, l->words);
    return true;
}

/* ---- what is printed ------------------------------------------------------------------------- */

static bool has(const uint64_t *bits, uint32_t number)
{
    return bits[number / 64] >> number % 64 & 1;
}

static const char *name_of(const struct locating *l, size_t i)
{
    return tamis_directory_name(l->replicas.directory, l->order[i]);
}

static void print_list(const struct locating *l, const char *title, const uint64_t *bits)
{
    json_open(title, '[');
    for (size_t i = 0; i < l->n; i++)
        if (has(bits, l->order[i]))
            json_text(NULL, name_of(l, i));
    json_close(']');
}

static void print_key(const struct locating *l, tamis_key key, const uint64_t *hits)
{
    if (l->json) {
        json_open(NULL, '{');
        json_bytes("key", key.data, key.len);
        print_list(l, "owners", hits);
        print_list(l, "maybe", l->doubt);
        json_close('}');
        return;
    }
    put_bytes(key.data, key.len);
    put_text("\t");
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++) {
        bool doubt = has(l->doubt, l->order[i]);
        if (!doubt && !has(hits, l->order[i]))
            continue;
        put_text(n++ ? " " : "");
        put_text(doubt ? "?" : "");
        put_name(name_of(l, i));
    }
    put_bytes(&l->keys.end, 1);
}

static bool any(const uint64_t *bits, size_t words)
{
    uint64_t all = 0;
    for (size_t i = 0; i < words; i++)
        all |= bits[i];
    return all;
}

static bool locate_batch(void *context, struct batch *b)
{
    struct locating *l = context;
    for (size_t first = 0; first < b->n; first += TOGETHER) {
        size_t n = b->n - first < TOGETHER ? b->n - first : TOGETHER;
        tamis_directory_locate_many(l->replicas.directory, b->line + first, n, l->hits, l->doubt,
                                    l->words);
        for (size_t i = 0; i < n; i++) {
            const uint64_t *hits = l->hits + i * l->words;
            bool hit = any(hits, l->words), doubt = any(l->doubt, l->words);
            l->keys_hit += hit;
            l->keys_doubtful += doubt;
            if (hit || doubt || l->json)
                print_key(l, b->line[first + i], hits);
        }
    }
    return !put_failed();
}

static void list_owners(const struct locating *l)
{
    for (size_t i = 0; i < l->n; i++) {
        const struct replica *r = &l->replicas.replica[l->order[i]];
        bool doubt = has(l->doubt, l->order[i]);
        if (l->json) {
            json_open(NULL, '{');
            json_text("owner", name_of(l, i));
            json_count("version", r->version);
            json_flag("current", !doubt);
            json_close('}');
        } else {
            put_text(doubt ? "?" : "");
            put_name(name_of(l, i));
            put_format("\t%llu\n", (unsigned long long)r->version);
        }
    }
}

static int locate_all(struct locating *l, const uint8_t *key, char **word, size_t n_words)
{
    tamis_filter *hasher;
    tamis_options plain = {0};
    if (!prepare(l, key))
        return complain("out of memory: %s: free some and run again", l->replicas.folder);
    if (l->owners) {
        list_owners(l);
        return l->n ? FOUND : NONE;
    }
    if (tamis_filter_new(&hasher, &plain, NULL) != TAMIS_OK ||
        !keys_settle(&l->keys, word, n_words))
        return TROUBLE;
    struct work work = {.filter = hasher, .take = locate_batch, .context = l};
    int status = keys_run(&l->keys, &work);
    tamis_filter_free(hasher);
    if (status != FOUND)
        return status;
    return l->keys_hit || (l->maybe && l->keys_doubtful) ? FOUND : NONE;
}

int verb_locate(int argc, char **argv)
{
    struct locating l = {.keys = KEYS_DEFAULT};
    const char *key_file = NULL;
    WIPED_KEY key[TAMIS_KEY_LEN];
    const struct arg args[] = {
        ARG("maybe", 0, ARG_FLAG, &l.maybe),      ARG("owners", 0, ARG_FLAG, &l.owners),
        ARG("null", '0', ARG_FLAG, &l.keys.zero), ARG("json", 0, ARG_FLAG, &l.json),
        ARG("key-file", 0, ARG_TEXT, &key_file),
    };
    struct words words = args_read(argc, argv, args, COUNT(args));
    if (words.n < 1 || (l.owners && words.n > 1))
        return complain("a folder is needed: tamis locate DIRECTORY KEY...: see tamis help locate");
    if (key_file && !store_read_key(key_file, key))
        return TROUBLE;
    l.replicas.folder = words.word[0];
    if (!store_exists(l.replicas.folder))
        return complain("No such file or directory: %s: make it with tamis follow",
                        l.replicas.folder);
    l.few = words.n > 1 || l.owners;
    int status = replicas_read(&l.replicas, key_file ? key : NULL, l.few, false)
                     ? locate_all(&l, key_file ? key : NULL, words.word + 1, words.n - 1)
                     : TROUBLE;
    free(l.order);
    free(l.doubt);
    free(l.hits);
    replicas_free(&l.replicas);
    return status;
}
