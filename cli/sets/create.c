/* tamis create: an empty filter, or with --attrs an empty set of records, in a new file. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "ui/args.h"
#include "ui/cli.h"
#include "os/file.h"
#include "new_filter.h"
#include "set_file.h"

/* Creates a random key for a family whose key file does not exist yet. The file appears whole or not at all. */
static bool family_begin(const char *path)
{
    uint8_t key[TAMIS_KEY_LEN];
    char aside[PATH_MAX], line[2 * TAMIS_KEY_LEN + 2];
    if (store_exists(path))
        return true;
    int len = snprintf(aside, sizeof aside, "%s.XXXXXX", path);
    int fd = len < (int)sizeof aside ? mkstemp(aside) : -1;
    bool good = fd >= 0 && getrandom(key, sizeof key, 0) == sizeof key;
    for (size_t i = 0; good && i < sizeof key; i++)
        snprintf(line + 2 * i, 3, "%02x", key[i]);
    line[2 * TAMIS_KEY_LEN] = '\n';
    good = good && file_write(fd, line, 2 * TAMIS_KEY_LEN + 1, -1) == 0 && fsync(fd) == 0 &&
           (link(aside, path) == 0 || errno == EEXIST);
    if (!good)
        complain("%s: %s: give a key file, or a name for one that can be created", strerror(errno),
                 path);
    if (fd >= 0) {
        close(fd);
        unlink(aside);
    }
    explicit_bzero(key, sizeof key);
    explicit_bzero(line, sizeof line);
    return good;
}

int verb_create(int argc, char **argv)
{
    struct make make = {0};
    struct store_options files = {0};
    const char *family = NULL;
    bool force = false, no_key = false, json = false;
    const struct arg args[] = {
        MAKE_ARGS(make),
        MAKE_RECORDS_ARGS(make),
        STORE_KEY_ARG(files),
        STORE_WRITE_ARG(files),
        ARG("family", 0, ARG_TEXT, &family),
        ARG("force", 'f', ARG_FLAG, &force),
        ARG("no-key", 0, ARG_FLAG, &no_key),
        ARG("json", 0, ARG_FLAG, &json),
    };
    struct words words = args_read(argc, argv, args, COUNT(args));
    if (words.n != 1)
        return complain("%s: FILE: give the name of one file to make",
                        words.n ? "too many names" : "no name");
    const char *path = words.word[0];
    if (family && (files.key_file || make.like))
        return complain("--family has its own key: %s: leave it out",
                        make.like ? "--like" : "--key-file");
    if (family && !family_begin(family))
        return TROUBLE;
    files.key_file = family ? family : files.key_file;
    if (no_key && !files.key_file && !make.like)
        return complain("the random key would be lost: --no-key: give the key with --family");
    struct store store;
    struct set *made = make_any(&make, &files, path);
    if (!made || !store_lock(&store, path, &files)) {
        set_free(made);
        return TROUBLE;
    }
    store.set = made;
    int status = store_may_make(path, force)
                     ? store_finish(&store, no_key ? TAMIS_SAVE_NO_KEY : 0, json)
                     : TROUBLE;
    store_end(&store);
    return status;
}
