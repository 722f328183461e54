/* Followers in files: one snapshot message of any size. */
#include "api.h"
#include "base/err.h"
#include "os/file.h"
#include "owners/directory.h"

static tamis_error encode(const void *of, unsigned flags, size_fn size, tamis_write write,
                          void *context)
{
    (void)flags, (void)size;
    return tamis_follower_encode(of, write, context);
}

tamis_error tamis_follower_save(const tamis_follower *f, const char *path, tamis_reason *reason)
{
    struct saved what = {.of = f, .encode = encode, .key_inside = true};
    if (!follower_copy(f))
        return fail(reason, TAMIS_EKIND, "%s: there is no copy to save yet", path);
    return file_save(&what, path, reason);
}

struct numbered {
    const tamis_directory *directory;
    uint32_t number;
};

static tamis_error encode_numbered(const void *of, unsigned flags, size_fn size, tamis_write write,
                                   void *context)
{
    const struct numbered *n = of;
    uint64_t inside = readers_enter(); /* the copy may be dropped meanwhile */
    const tamis_follower *f = tamis_directory_follower(n->directory, n->number);
    (void)flags, (void)size;
    tamis_error e = f ? tamis_follower_encode(f, write, context) : TAMIS_EKIND;
    readers_leave(inside);
    return e;
}

tamis_error tamis_directory_save(const tamis_directory *d, uint32_t number, const char *path,
                                 tamis_reason *reason)
{
    struct numbered of = {d, number};
    struct saved what = {.of = &of, .encode = encode_numbered, .key_inside = true, .loose = true};
    return file_save(&what, path, reason);
}

/* A message for the follower, or for that of the owner in the directory. */
static tamis_error load(tamis_follower *f, tamis_directory *d, const char *owner, const char *path,
                        uint64_t age, int64_t delay, tamis_reason *reason)
{
    struct mapping mapping;
    tamis_error e = file_map(&mapping, path, NULL, true, reason);
    if (e != TAMIS_OK)
        return e;
    e = f ? tamis_follower_take(f, mapping.data, mapping.len, age, NULL, reason)
          : tamis_directory_take(d, owner, mapping.data, mapping.len, age, NULL, reason);
    if (e == TAMIS_OK)
        f ? follower_expect(f, delay) : directory_expect(d, delay);
    mapping_free(&mapping);
    return file_named(reason, e, path);
}

tamis_error tamis_follower_load(tamis_follower *f, const char *path, uint64_t age, int64_t delay,
                                tamis_reason *reason)
{
    return load(f, NULL, NULL, path, age, delay, reason);
}

tamis_error tamis_directory_load(tamis_directory *d, const char *owner, const char *path,
                                 uint64_t age, int64_t delay, tamis_reason *reason)
{
    return load(NULL, d, owner, path, age, delay, reason);
}
