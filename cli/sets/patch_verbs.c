/* tamis diff, apply: the change between two versions of a filter, as bytes. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ui/args.h"
#include "ui/cli.h"
#include "ui/out.h"
#include "set_file.h"

static int write_out(void *context, const void *data, size_t len)
{
    (void)context;
    put_bytes(data, len);
    return put_failed();
}

int verb_diff(int argc, char **argv)
{
    struct store_options files = {0};
    bool bits_only = false;
    const struct arg args[] = {
        STORE_KEY_ARG(files),
        ARG("bits-only", 0, ARG_FLAG, &bits_only),
    };
    struct words words = args_read_files(argc, argv, args, COUNT(args), 2, 2, "OLD NEW");
    if (isatty(STDOUT_FILENO))
        return complain("a patch is binary: standard output: write it to a file with > PATCH");
    int status = TROUBLE;
    tamis_reason reason = {0};
    enum store_how how = bits_only ? STORE_ASK : STORE_WHOLE;
    struct set *older = store_read(words.word[0], TAMIS_KIND_FILTER, how, &files);
    struct set *newer = older ? store_read(words.word[1], TAMIS_KIND_FILTER, how, &files) : NULL;
    if (newer) {
        tamis_error e =
            tamis_filter_diff(as_filter(older), as_filter(newer),
                              bits_only ? TAMIS_SAVE_BITS_ONLY : 0, write_out, NULL, &reason);
        if (e == TAMIS_OK || put_failed())
            status = FOUND; /* lost output is reported at the end */
        else
            complain_of(e, &reason, words.word[1]);
    }
    set_free(newer);
    set_free(older);
    return status;
}

/* Reads a whole file, or only the start of one that is not a patch and may be endless; NULL
   after complaining. */
static char *read_all(int fd, const char *name, size_t *len)
{
    const size_t start = 1 << 16;
    size_t room = start;
    char *data = malloc(room);
    *len = 0;
    while (data) {
        if (*len == start && tamis_kind_of(data, *len) != TAMIS_KIND_PATCH)
            return data;
        if (*len == room) {
            char *more = realloc(data, room *= 2);
            if (!more)
                break;
            data = more;
        }
        ssize_t n = read(fd, data + *len, room - *len);
        if (n == 0)
            return data;
        if (n > 0)
            *len += (size_t)n;
        else if (errno != EINTR) {
            complain("%s: %s: nothing was changed", strerror(errno), name);
            free(data);
            return NULL;
        }
    }
    free(data);
    complain("out of memory: %s: nothing was changed", name);
    return NULL;
}

static char *read_patch(const char *path, size_t *len)
{
    if (!path)
        return read_all(STDIN_FILENO, "standard input", len);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        complain("%s: %s: give a patch made by tamis diff", strerror(errno), path);
        return NULL;
    }
    char *data = read_all(fd, path, len);
    close(fd);
    return data;
}

int verb_apply(int argc, char **argv)
{
    struct store_options files = {0};
    const char *path = NULL;
    bool json = false;
    const struct arg args[] = {
        STORE_KEY_ARG(files),
        STORE_WRITE_ARG(files),
        ARG("patch", 'p', ARG_TEXT, &path),
        ARG("json", 0, ARG_FLAG, &json),
    };
    struct words words = args_read_files(argc, argv, args, COUNT(args), 1, 1, "FILE < PATCH");
    struct store store;
    size_t len;
    char *patch = read_patch(path, &len);
    if (!patch)
        return TROUBLE;
    int status = TROUBLE;
    tamis_reason reason = {0};
    if (store_change(&store, words.word[0], TAMIS_KIND_FILTER, &files)) {
        tamis_error e = tamis_filter_apply(as_filter(store.set), patch, len, &reason);
        if (e != TAMIS_OK)
            complain_of(e, &reason, e == TAMIS_EBASE ? store.path : path ? path : "standard input");
        else if (store_save(&store, 0))
            status = FOUND;
        if (status == FOUND && json)
            store_report(&store, true, false);
        store_end(&store);
    }
    free(patch);
    return status;
}
