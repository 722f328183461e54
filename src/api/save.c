/* Saves structures that are in memory. */
#include "api.h"

#include "base/err.h"
#include "format/format.h"
#include "os/file.h"

#define BUFFER 32768

struct save {
    struct beside file;
    int error;
    size_t used;
    uint8_t buffer[BUFFER];
};

static int write_all(struct save *s, const uint8_t *data, size_t len)
{
    s->error = file_write(s->file.fd, data, len, -1);
    return s->error ? -1 : 0;
}

static int flush(struct save *s)
{
    size_t n = s->used;
    s->used = 0;
    return write_all(s, s->buffer, n);
}

/* A tamis_write: small pieces are collected in a buffer, large ones are written directly. */
static int save_write(void *context, const void *data, size_t len)
{
    struct save *s = context;
    if (s->used + len > BUFFER && flush(s) != 0)
        return -1;
    if (len > BUFFER)
        return write_all(s, data, len);
    memcpy(s->buffer + s->used, data, len);
    s->used += len;
    return 0;
}

/* A full disk is noticed now, not after minutes. Where it cannot be predicted, writing is tried. */
static tamis_error save_size(void *context, uint64_t size)
{
    struct save *s = context;
    s->error = size > BUFFER ? file_reserve(s->file.fd, size) : 0;
    return s->error ? TAMIS_EIO : TAMIS_OK;
}

/* ---- the steps ------------------------------------------------------------------------------- */

static tamis_error fill(struct save *s, const struct saved *what, const char *path,
                        tamis_reason *reason)
{
    tamis_error e = what->encode(what->of, what->flags, save_size, save_write, s);
    if (e == TAMIS_EIO || (e == TAMIS_OK && flush(s) != 0))
        return file_fail(reason, s->error, path, "writing");
    return e == TAMIS_OK ? e
                         : fail(reason, e, "%s cannot be written: %s", path, tamis_error_text(e));
}

tamis_error file_save(const struct saved *what, const char *path, tamis_reason *reason)
{
    struct save *s = mem_new0(&mem_system, 1, sizeof *s);
    if (!s)
        return fail(reason, TAMIS_ENOMEM, "no memory to write %s", path);
    unsigned flags = family_beside(path, what->key_inside) | (what->loose ? BESIDE_LOOSE : 0);
    tamis_error e = beside_open(&s->file, path, flags, reason);
    if (e == TAMIS_OK)
        e = fill(s, what, path, reason);
    if (e == TAMIS_OK)
        e = beside_replace(&s->file, path, reason);
    beside_close(&s->file);
    mem_free_secret(&mem_system, s, 1, sizeof *s); /* the buffer contained the header */
    return e;
}

static tamis_error encode_set(const void *of, unsigned flags, size_fn size, tamis_write write,
                              void *context)
{
    return set_encode_sized(of, flags, size, write, context);
}

tamis_error set_file_save(const struct set *s, const char *path, unsigned flags,
                          tamis_reason *reason)
{
    struct saved what = {.of = s,
                         .encode = encode_set,
                         .key_inside = set_family(s)->has_key && !(flags & TAMIS_SAVE_NO_KEY),
                         .flags = flags};
    return file_save(&what, path, reason);
}

tamis_error tamis_filter_save(const tamis_filter *f, const char *path, unsigned flags,
                              tamis_reason *reason)
{
    return set_file_save(&f->set, path, flags, reason);
}

tamis_error tamis_records_save(const tamis_records *x, const char *path, unsigned flags,
                               tamis_reason *reason)
{
    return set_file_save(&x->set, path, flags, reason);
}
