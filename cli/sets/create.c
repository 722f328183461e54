/* tamis create: an empty filter, or with --attrs an empty set of records, in a new file. */
#include <string.h>

#include "ui/args.h"
#include "ui/cli.h"
#include "new_filter.h"
#include "set_file.h"

int verb_create(int argc, char **argv)
{
    struct make make = {0};
    struct store_options files = {0};
    bool force = false, no_key = false, json = false;
    const struct arg args[] = {
        MAKE_ARGS(make),
        MAKE_INDEX_ARGS(make),
        STORE_KEY_ARG(files),
        STORE_WRITE_ARG(files),
        ARG("force", 'f', ARG_FLAG, &force),
        ARG("no-key", 0, ARG_FLAG, &no_key),
        ARG("json", 0, ARG_FLAG, &json),
    };
    struct words words = args_read(argc, argv, args, COUNT(args));
    if (words.n != 1)
        return complain("%s: FILE: give the name of one file to make",
                        words.n ? "too many names" : "no name");
    const char *path = words.word[0];
    if (no_key && !files.key_file && !make.like)
        return complain("nobody would know the random key: --no-key: give the key with --key-file");
    struct store store;
    struct set *made = make_any(&make, &files, path);
    if (!made || !store_lock(&store, path, &files)) {
        set_free(made);
        return TROUBLE;
    }
    store.set = made;
    int status = FOUND;
    if (!force && store_exists(path))
        status = complain("the file exists: %s: give another name, or --force", path);
    else if (!store_save(&store, no_key ? TAMIS_SAVE_NO_KEY : 0))
        status = TROUBLE;
    else if (json)
        store_report(&store, true, false);
    store_end(&store);
    return status;
}
