/* tamis forget: removes owners that will not come back, from a carrier or from a folder of copies. */
#include <string.h>

#include "fleet/fleet.h"
#include "replica_folder.h"
#include "sets/set_file.h"
#include "ui/args.h"

static int forget_carried(const char *url, char **owner, size_t n)
{
    char error[256];
    struct carrier_state state;
    size_t found = 0;
    struct carrier *c = carrier_open(url, error);
    if (!c)
        return complain("%s", error);
    int status = FOUND;
    for (size_t i = 0; i < n && status == FOUND; i++) {
        if (!carrier_state(c, owner[i], &state) || !fleet_forget(c, owner[i]) ||
            (state.there && !carrier_retire(c, owner[i], true)))
            status = complain("%s: %s is not forgotten: check the address", c->error, owner[i]);
        found += state.there;
    }
    carrier_close(c);
    return status != FOUND ? status : found ? FOUND : NONE;
}

static int forget_copies(const char *folder, char **owner, size_t n)
{
    struct replicas replicas = {.folder = folder};
    size_t found = 0;
    bool good = replicas_lock(&replicas) && replicas_read(&replicas, NULL, true, false);
    const char *name;
    for (uint32_t i = 0; good && replicas_next(&replicas, &i, &name); i++)
        for (size_t j = 0; j < n; j++)
            if (strcmp(name, owner[j]) == 0) {
                replicas_remove(&replicas, i);
                found++;
                break;
            }
    good = good && (!found || replicas_write(&replicas));
    replicas_free(&replicas);
    return !good ? TROUBLE : found ? FOUND : NONE;
}

int verb_forget(int argc, char **argv)
{
    struct words words = args_read(argc, argv, NULL, 0);
    if (words.n < 2)
        return complain("an address or folder and an owner are needed: tamis forget "
                        "redis://HOST:PORT/NAME OWNER: see tamis help forget");
    if (copies_in(words.word[0])) {
        int found = copies_forget(words.word[0], words.word + 1, words.n - 1);
        return found < 0 ? TROUBLE : found ? FOUND : NONE;
    }
    bool carried = strchr(words.word[0], ':') && !store_exists(words.word[0]);
    return (carried ? forget_carried : forget_copies)(words.word[0], words.word + 1, words.n - 1);
}
