/*
 * A filter that is kept in a file between the runs of a program, of which several may run at a time; and
 * a copy of it elsewhere, which receives only what changed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tamis.h>

#define FILTER "example-filter.tamis"
#define COPY   "example-copy.tamis"

static int failed(tamis_error e, const tamis_reason *reason)
{
    if (e != TAMIS_OK)
        fprintf(stderr, "%s: %s\n", tamis_error_text(e), reason->text);
    return e != TAMIS_OK;
}

/* One run: lock, load or make, add, save, unlock. At any moment the file is the old one or the new. */
static int run(int first, int n)
{
    tamis_open_options wait;
    tamis_lock *lock = NULL;
    tamis_filter *seen = NULL;
    tamis_reason reason;
    memset(&wait, 0, sizeof wait);
    wait.wait = true; /* for other runs of this program */
    if (failed(tamis_file_lock(&lock, FILTER, &wait, &reason), &reason))
        return 1;
    tamis_error e = tamis_filter_load(&seen, FILTER, NULL, &reason);
    if (e == TAMIS_EIO && reason.system_error == ENOENT) /* the first run */
        e = tamis_filter_new(&seen, NULL, &reason);
    int bad = failed(e, &reason);
    for (int i = first; i < first + n && !bad; i++)
        bad = tamis_filter_add(seen, &i, sizeof i, NULL) != TAMIS_OK;
    bad = bad || failed(tamis_filter_save(seen, FILTER, 0, &reason), &reason);
    tamis_filter_free(seen);
    tamis_file_unlock(lock);
    return bad;
}

struct bytes {
    unsigned char *data;
    size_t len;
};

/* A tamis_write: what it takes may go into a file, a message or a database. */
static int append(void *context, const void *data, size_t len)
{
    struct bytes *bytes = (struct bytes *)context;
    unsigned char *more = (unsigned char *)realloc(bytes->data, bytes->len + len);
    if (!more)
        return 1;
    bytes->data = more;
    memcpy(bytes->data + bytes->len, data, len);
    bytes->len += len;
    return 0;
}

/* The copy takes a patch from its version to that of the filter. */
static int bring_up_to_date(void)
{
    tamis_filter *now = NULL, *copy = NULL;
    struct bytes patch = {NULL, 0};
    tamis_reason reason;
    int bad = failed(tamis_filter_open(&now, FILTER, NULL, &reason), &reason) ||
              failed(tamis_filter_load(&copy, COPY, NULL, &reason), &reason) ||
              failed(tamis_filter_diff(copy, now, 0, append, &patch, &reason), &reason);
    if (!bad) {
        printf("%u bytes instead of %u\n", (unsigned)patch.len,
               (unsigned)tamis_filter_encoded_size(now, 0));
        bad = failed(tamis_filter_apply(copy, patch.data, patch.len, &reason), &reason) ||
              !tamis_filter_equal(copy, now);
    }
    free(patch.data);
    tamis_filter_free(copy);
    tamis_filter_free(now);
    return bad;
}

/* The same bytes anywhere else: here in memory. */
static int copy_whole(void)
{
    tamis_filter *from = NULL, *to = NULL;
    struct bytes bytes = {NULL, 0};
    tamis_reason reason;
    int bad = failed(tamis_filter_open(&from, FILTER, NULL, &reason), &reason) ||
              tamis_filter_encode(from, 0, append, &bytes) != TAMIS_OK ||
              failed(tamis_filter_decode(&to, bytes.data, bytes.len, NULL, &reason), &reason) ||
              failed(tamis_filter_save(to, COPY, 0, &reason), &reason);
    free(bytes.data);
    tamis_filter_free(to);
    tamis_filter_free(from);
    return bad;
}

int main(void)
{
    int bad = run(0, 100000) || copy_whole() || run(100000, 100) || bring_up_to_date();
    if (!bad)
        puts("the copy has what the filter has");
    remove(FILTER);
    remove(COPY);
    return bad;
}
