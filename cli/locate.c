/* tamis locate: which owners may have a key, by the copies that tamis follow keeps. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "keys.h"
#include "out.h"
#include "replicas.h"
#include "store.h"

struct locating {
    struct replicas replicas;
    struct keys keys;
    bool *doubt; /* of each owner */
    bool maybe, json, owners;
    uint64_t hits, doubts;
};

/* The copy, if it is the one that the status speaks of and may be trusted. */
static bool load(const struct locating *l, struct replica *r, const uint8_t *key)
{
    char path[PATH_MAX];
    tamis_follower_options o = {.key = key};
    tamis_follower_facts facts;
    if (!replica_trusted(r))
        return false;
    replicas_path(&l->replicas, r->name, path);
    if (tamis_follower_new(&r->follower, &o) != TAMIS_OK ||
        tamis_follower_load(r->follower, path, 0, NULL) != TAMIS_OK)
        return false;
    tamis_follower_info(r->follower, &facts);
    return facts.epoch == r->epoch && facts.version == r->version;
}

static void print_names(const struct locating *l, const bool *here, bool doubt, const char *mark)
{
    for (size_t i = 0; i < l->replicas.n; i++) {
        if (!here[i] || l->doubt[i] != doubt)
            continue;
        if (l->json) {
            json_text(NULL, l->replicas.replica[i].name);
        } else {
            put_text(mark);
            put_name(l->replicas.replica[i].name);
        }
    }
}

static void print_key(const struct locating *l, tamis_key key, const bool *here)
{
    if (l->json) {
        json_open(NULL, '{');
        json_bytes("key", key.data, key.len);
        json_open("owners", '[');
        print_names(l, here, false, "");
        json_close(']');
        json_open("maybe", '[');
        print_names(l, here, true, "");
        json_close(']');
        json_close('}');
        return;
    }
    put_bytes(key.data, key.len);
    put_text("\t");
    size_t n = 0;
    for (size_t i = 0; i < l->replicas.n; i++) {
        if (!here[i])
            continue;
        put_text(n++ ? " " : "");
        put_text(l->doubt[i] ? "?" : "");
        put_name(l->replicas.replica[i].name);
    }
    put_bytes(&l->keys.end, 1);
}

static void locate(struct locating *l, tamis_key key)
{
    bool few[64], *here = l->replicas.n <= 64 ? few : malloc(l->replicas.n * sizeof *here);
    bool hit = false, doubt = false;
    for (size_t i = 0; here && i < l->replicas.n; i++) {
        here[i] =
            l->doubt[i] || tamis_follower_has(l->replicas.replica[i].follower, key.data, key.len);
        hit |= here[i] && !l->doubt[i];
        doubt |= l->doubt[i];
    }
    l->hits += hit;
    l->doubts += doubt;
    if (here && (hit || doubt || l->json))
        print_key(l, key, here);
    if (here != few)
        free(here);
}

static bool locate_batch(void *context, struct batch *b)
{
    for (size_t i = 0; i < b->n; i++)
        locate(context, b->line[i]);
    return !put_failed();
}

static void list_owners(const struct locating *l)
{
    for (size_t i = 0; i < l->replicas.n; i++) {
        const struct replica *r = &l->replicas.replica[i];
        if (l->json) {
            json_open(NULL, '{');
            json_text("owner", r->name);
            json_count("version", r->version);
            json_flag("current", !l->doubt[i]);
            json_close('}');
        } else {
            put_text(l->doubt[i] ? "?" : "");
            put_name(r->name);
            put_format("\t%llu\n", (unsigned long long)r->version);
        }
    }
}

static int locate_all(struct locating *l, const uint8_t *key, char **word, size_t n_words)
{
    tamis_filter *hasher;
    tamis_options plain = {0};
    replicas_sort(&l->replicas);
    l->doubt = calloc(l->replicas.n + 1, sizeof *l->doubt);
    if (!l->doubt)
        return complain("out of memory: %s: free some and run again", l->replicas.folder);
    for (size_t i = 0; i < l->replicas.n; i++)
        l->doubt[i] = !load(l, &l->replicas.replica[i], key);
    if (l->owners) {
        list_owners(l);
        return l->replicas.n ? FOUND : NONE;
    }
    if (tamis_filter_new(&hasher, &plain, NULL) != TAMIS_OK ||
        !keys_settle(&l->keys, word, n_words))
        return TROUBLE;
    struct work work = {.filter = hasher, .take = locate_batch, .context = l};
    int status = keys_run(&l->keys, &work);
    tamis_filter_free(hasher);
    if (status != FOUND)
        return status;
    return l->hits || (l->maybe && l->doubts) ? FOUND : NONE;
}

int verb_locate(int argc, char **argv)
{
    struct locating l = {.keys = KEYS_DEFAULT};
    const char *key_file = NULL;
    uint8_t key[TAMIS_KEY_LEN];
    const struct arg args[] = {
        ARG("maybe", 0, ARG_FLAG, &l.maybe),      ARG("owners", 0, ARG_FLAG, &l.owners),
        ARG("null", '0', ARG_FLAG, &l.keys.zero), ARG("json", 0, ARG_FLAG, &l.json),
        ARG("key-file", 0, ARG_TEXT, &key_file),
    };
    struct words words;
    enum args_outcome outcome = args_read(argc, argv, args, COUNT(args), &words);
    if (outcome != ARGS_READ)
        return outcome == ARGS_HELPED ? FOUND : TROUBLE;
    if (words.n < 1 || (l.owners && words.n > 1))
        return complain("a folder is needed: tamis locate DIRECTORY KEY...: see tamis help locate");
    if (key_file && !store_read_key(key_file, key))
        return TROUBLE;
    l.replicas.folder = words.word[0];
    if (!store_exists(l.replicas.folder))
        return complain("No such file or directory: %s: make it with tamis follow",
                        l.replicas.folder);
    int status = replicas_read(&l.replicas, false)
                     ? locate_all(&l, key_file ? key : NULL, words.word + 1, words.n - 1)
                     : TROUBLE;
    free(l.doubt);
    replicas_free(&l.replicas);
    return status;
}
