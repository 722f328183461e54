/* The interpreter saves and loads: whatever state a program reached, bytes keep it. The program goes
   on with what was loaded, so what they lost would show. */
#include "interp_machine.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "format/format.h"
#include "histories.h"

static tamis_open_options opening(struct machine *m)
{
    return (tamis_open_options){.clock = m->options.clock,
                                .clock_context = m->options.clock_context};
}

/* A view of the bytes, as of a mapped file, answers as the filter. */
static bool mapped_alike(struct machine *m, const struct slot *s, const struct bytes *bytes)
{
    void *pages =
        mmap(NULL, bytes->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    tamis_open_options o = opening(m);
    tamis_reason reason = {0};
    struct set *opened;
    bool alike = true;
    if (pages == MAP_FAILED)
        return true;
    memcpy(pages, bytes->data, bytes->len);
    struct mapping mapping = {.data = pages, .len = bytes->len};
    if (set_from_mapping(&opened, KIND_FILTER, mapping, &o, &reason) != TAMIS_OK) {
        munmap(pages, bytes->len);
        return interp_fail(m, "mapped: %s", reason.text);
    }
    tamis_filter *view = as_filter(opened);
    for (uint32_t i = 0; i < m->keys; i++)
        alike &= tamis_filter_has(view, m->bytes[i], KEY_LEN) ==
                 tamis_filter_has(s->filter, m->bytes[i], KEY_LEN);
    tamis_filter_free(view);
    return alike || interp_fail(m, "a mapped filter answers otherwise");
}

bool machine_reload(struct machine *m, struct slot *s)
{
    struct bytes bytes = bytes_of(s->filter, 0), again = {0};
    tamis_open_options o = opening(m);
    tamis_reason reason = {0};
    tamis_filter *loaded = NULL;
    bool good = false;
    m->report->steps++;
    if (bytes.len == 0)
        interp_fail(m, "cannot be saved");
    else if (tamis_filter_decode(&loaded, bytes.data, bytes.len, &o, &reason) != TAMIS_OK)
        interp_fail(m, "cannot be loaded: %s", reason.text);
    else if (!mapped_alike(m, s, &bytes))
        tamis_filter_free(loaded);
    else
        good = true;
    if (good) {
        again = bytes_of(loaded, 0);
        uint8_t kept[16],
            fresh[16]; /* its checksums were kept up to date since it was last loaded */
        good = bytes_equal(&bytes, &again) && tamis_filter_equal(s->filter, loaded);
        if (!good)
            interp_fail(m, "what was loaded differs");
        else if (set_fingerprint(&s->filter->set, false, kept) != TAMIS_OK ||
                 set_fingerprint(&loaded->set, false, fresh) != TAMIS_OK ||
                 memcmp(kept, fresh, sizeof kept) != 0)
            good = interp_fail(m, "its fingerprint is not that of its bytes");
        tamis_filter_free(s->filter);
        s->filter = loaded;
    }
    bytes_free(&bytes);
    bytes_free(&again);
    return good;
}
