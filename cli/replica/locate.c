/*
 * tamis locate: which owners may have a key, from the copies that tamis follow keeps. If the
 * follower serves, it is queried, which reads no copy from disk; its answers are printed unchanged.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/args.h"
#include "read/keys.h"
#include "ask.h"
#include "replica_folder.h"
#include "sets/set_file.h"

#define TOGETHER 64 /* copies put into the directory together */
/* most bytes of keys queried at once, except for a single key */
#define BODY_MOST ((size_t)1 << 19)

struct locating {
    struct replicas replicas;
    struct keys keys;
    struct answers answers;
    struct ask server; /* if it is connected, it is queried */
    struct bytes asked;
    const uint8_t *key; /* of the family, or NULL */
    bool maybe, json, owners;
    bool few;    /* keys from the command line */
    bool failed; /* and it was reported */
    bool folder; /* the copies can be used instead of the server, until it has answered */
};

/* ---- the copies ------------------------------------------------------------------------------ */

/* Is it the copy that the status describes? A later one, which replaced it since the status was
   read, has everything that this one has. */
static bool as_told(const tamis_follower *follower, const struct replica *r)
{
    tamis_follower_facts facts;
    tamis_follower_info(follower, &facts);
    return facts.epoch == r->epoch ? facts.version >= r->version : facts.epoch > r->epoch;
}

/* A copy that is queried a few times stays whole; if it cannot be read, it stays in doubt. */
static void load_whole(const struct locating *l, uint32_t number, const char *name)
{
    char path[PATH_MAX];
    tamis_directory *d = l->replicas.directory;
    replicas_path(&l->replicas, name, path);
    if (tamis_directory_load(d, name, path, 0, TAMIS_DELAY_UNKNOWN, NULL) == TAMIS_OK &&
        !as_told(tamis_directory_follower(d, number), &l->replicas.replica[number])) {
        tamis_directory_drop(d, name, NULL);
        tamis_directory_expect(d, name, NULL, NULL);
    }
}

static tamis_filter *load_copy(const struct locating *l, uint32_t number, const char *name)
{
    char path[PATH_MAX];
    tamis_follower_options o = {.key = l->key};
    tamis_follower *follower = NULL;
    tamis_filter *copy = NULL;
    replicas_path(&l->replicas, name, path);
    if (tamis_follower_new(&follower, &o, NULL) == TAMIS_OK &&
        tamis_follower_load(follower, path, 0, TAMIS_DELAY_UNKNOWN, NULL) == TAMIS_OK &&
        as_told(follower, &l->replicas.replica[number]))
        tamis_follower_filter(&copy, follower, NULL);
    tamis_follower_free(follower);
    return copy;
}

static bool sliced(const tamis_filter *copy)
{
    tamis_filter_facts facts;
    tamis_filter_brief(copy, &facts);
    return facts.growth != TAMIS_SMOOTH;
}

/* Slicing takes about as long as querying each copy for 50 keys of its 1,000. */
static bool load_all(struct locating *l)
{
    const char *names[TOGETHER], *name;
    const tamis_filter *copies[TOGETHER];
    tamis_error e = TAMIS_OK;
    size_t n = 0, left = replicas_count(&l->replicas);
    for (uint32_t i = 0; replicas_next(&l->replicas, &i, &name); i++, left--) {
        names[n] = name;
        copies[n] = NULL;
        if (!replica_trusted(&l->replicas, &l->replicas.replica[i]))
            ; /* stays in doubt */
        else if (l->few)
            load_whole(l, i, name);
        else if ((copies[n] = load_copy(l, i, name)) && !sliced(copies[n])) {
            tamis_filter_free((tamis_filter *)(uintptr_t)copies[n]);
            copies[n] = NULL;
            load_whole(l, i, name);
        }
        n += copies[n] != NULL;
        if (n < TOGETHER && left > 1)
            continue;
        if (e == TAMIS_OK)
            e = tamis_directory_put_filters(l->replicas.directory, names, copies, n, NULL);
        while (n > 0)
            tamis_filter_free((tamis_filter *)(uintptr_t)copies[--n]);
    }
    return e == TAMIS_OK;
}

static bool prepare(struct locating *l)
{
    l->answers.directory = l->replicas.directory;
    return (load_all(l) && answers_begin(&l->answers)) || no_memory(l->replicas.folder);
}

/* ---- a follower that serves ------------------------------------------------------------------ */

static bool ask_server(struct locating *l)
{
    const char *accept = l->json          ? "application/x-ndjson"
                         : l->answers.end ? "text/plain"
                                          : "application/octet-stream";
    if (!l->asked.len)
        return true;
    if (!ask_for(&l->server, "/locate", accept, &l->asked, l->few ? 0 : l->keys.end))
        return false;
    if (l->folder && ask_number(&l->server, SERVE_FOLDER) != serve_folder(l->replicas.folder))
        return ask_close(&l->server), false; /* another follower now has its address */
    put_bytes(l->server.body.data, l->server.body.len);
    l->answers.keys_hit += ask_number(&l->server, "Tamis-Hit");
    l->answers.keys_doubtful += ask_number(&l->server, "Tamis-Doubt");
    l->folder = false;
    l->asked.len = 0;
    return true;
}

/* The server refuses a key that is too long. */
static bool ask_batch(struct locating *l, const struct batch *b)
{
    const char *end = l->few ? "" : &l->keys.end; /* no key contains it */
    l->asked.len = 0;
    for (size_t i = 0; i < b->n; i++) {
        if (l->asked.len && l->asked.len + b->line[i].len > BODY_MOST && !ask_server(l))
            return false;
        if (!bytes_put(&l->asked, b->line[i].data, b->line[i].len) || !bytes_put(&l->asked, end, 1))
            return snprintf(l->server.why, sizeof l->server.why, "out of memory"), false;
    }
    return ask_server(l);
}

/* True if it answers. */
static bool find_server(struct locating *l, const char *address)
{
    struct serve_address at;
    return serve_address_read(&at, address) && ask_connect(&l->server, &at);
}

/* ---- keys and owners ------------------------------------------------------------------------- */

static bool locate_batch(void *context, struct batch *b)
{
    struct locating *l = context;
    if (l->server.fd >= 0 && ask_batch(l, b))
        return !put_failed();
    if (!l->folder && !l->answers.names) {
        complain("%s: tamis follow --serve: ask again", l->server.why);
        l->failed = true;
        return false;
    }
    ask_close(&l->server);
    l->failed = !l->answers.names && !prepare(l);
    if (!l->failed)
        answers_print(&l->answers, b->line, b->n);
    return !l->failed && !put_failed();
}

static int list_owners(struct locating *l)
{
    const char *name, *accept = l->json ? "application/x-ndjson" : "text/plain";
    size_t n = 0;
    if (!l->folder) {
        if (!ask_for(&l->server, "/owners", accept, NULL, 0))
            return complain("%s: tamis follow --serve: ask again", l->server.why);
        put_bytes(l->server.body.data, l->server.body.len);
        return l->server.body.len ? FOUND : NONE;
    }
    if (!prepare(l))
        return TROUBLE;
    for (uint32_t i = 0; replicas_next(&l->replicas, &i, &name); i++)
        l->answers.names[n++] = (struct answers_name){name, l->answers.doubt[i / 64] >> i % 64 & 1,
                                                      l->replicas.replica[i].version};
    struct answers_name *names = l->answers.names;
    qsort(names, n, sizeof *names, answers_by_name);
    for (size_t i = 0; i < n; i++)
        answers_owner(l->answers.form, names[i].name, names[i].doubt, names[i].version);
    return n ? FOUND : NONE;
}

static int locate_all(struct locating *l, char **word, size_t n_words)
{
    tamis_filter *hasher;
    tamis_options plain = {0};
    if (!keys_settle(&l->keys, word, n_words))
        return TROUBLE;
    l->answers.end = l->keys.end;
    l->answers.form = l->json ? ANSWERS_LINES : ANSWERS_TEXT;
    if (l->owners)
        return list_owners(l);
    if (tamis_filter_new(&hasher, &plain, NULL) != TAMIS_OK)
        return TROUBLE;
    struct work work = {.filter = hasher, .take = locate_batch, .context = l};
    int status = keys_run(&l->keys, &work);
    tamis_filter_free(hasher);
    if (status != FOUND || l->failed)
        return TROUBLE;
    return l->answers.keys_hit || (l->maybe && l->answers.keys_doubtful) ? FOUND : NONE;
}

/* The follower at an address; or a folder, and the follower that keeps it, if it serves. */
static bool find_copies(struct locating *l, const char *where)
{
    bool address = strncmp(where, "unix:", 5) == 0 || strncmp(where, "http://", 7) == 0;
    if (address)
        return find_server(l, where) ||
               refuse("%s: %s: is tamis follow --serve running?", l->server.why, where);
    l->folder = true;
    l->replicas.folder = where;
    if (!store_exists(where))
        return refuse("No such file or directory: %s: make it with tamis follow", where);
    if (!replicas_read(&l->replicas, l->key, l->few, false))
        return false;
    if (l->replicas.boot[0] && l->replicas.serve[0] && !l->owners)
        find_server(l, l->replicas.serve);
    return true;
}

int verb_locate(int argc, char **argv)
{
    struct locating l = {.keys = KEYS_DEFAULT, .server.fd = -1};
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
    l.key = key_file ? key : NULL;
    l.few = words.n > 1 || l.owners;
    int status =
        find_copies(&l, words.word[0]) ? locate_all(&l, words.word + 1, words.n - 1) : TROUBLE;
    answers_end(&l.answers);
    ask_close(&l.server);
    bytes_end(&l.asked);
    replicas_free(&l.replicas);
    return status;
}
