/* tamis diff, apply: the change between two versions of a filter, as bytes. */
#include <errno.h>
#include <fcntl.h>
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

/* Reads a whole patch, or only the start of a file that is not one and may be endless. Complains. */
static bool read_patch(const char *path, struct bytes *patch)
{
    const size_t start = 1 << 16;
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
    if (fd < 0)
        return refuse("%s: %s: give a patch made by tamis diff", strerror(errno), path);
    bool good = bytes_read(patch, fd, start) &&
                (tamis_kind_of(patch->data, patch->len) != TAMIS_KIND_PATCH ||
                 bytes_read(patch, fd, SIZE_MAX));
    if (!good)
        complain("%s: %s: nothing was changed", patch->failed ? "out of memory" : strerror(errno),
                 path ? path : "standard input");
    if (path)
        close(fd);
    return good;
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
    struct bytes patch = {0};
    int status = TROUBLE;
    tamis_reason reason = {0};
    if (read_patch(path, &patch) &&
        store_change(&store, words.word[0], TAMIS_KIND_FILTER, &files)) {
        tamis_error e = tamis_filter_apply(as_filter(store.set), patch.data, patch.len, &reason);
        const char *of = e == TAMIS_EBASE ? store.path : path ? path : "standard input";
        if (succeeded(e, &reason, of))
            status = store_finish(&store, 0, json);
        store_end(&store);
    }
    bytes_end(&patch);
    return status;
}
