/* What a small filter keeps beside the bytes of its set: places and pages as they are, since lines may know fewer bits. */
#include "base/bytes.h"
#include "small_form.h"

bool small_keeps(const struct small *m)
{
    return m->form != FORM_BITS || rest_of(m);
}

size_t small_kept(const struct small *m)
{
    const struct packed *rest = rest_of(m);
    if (m->form == FORM_PLACES)
        return 8 * (size_t)m->n;
    return rest ? 1 + packed_len(rest)
                : 5 + 8 * (size_t)words_of_page(first_page(&m->terms->opt), m->n);
}

/* places: as they are | FORM_PACKED, the set of pages | FORM_PAGE, the number of entries, the page */
void small_keep(const struct small *m, uint8_t *out)
{
    const struct packed *rest = rest_of(m);
    if (rest) {
        *out = FORM_PACKED;
        packed_put(rest, out + 1);
        return;
    }
    size_t words = m->n;
    if (m->form != FORM_PLACES) {
        *out = FORM_PAGE;
        put_u32(out + 1, m->n);
        out += 5;
        words = words_of_page(first_page(&m->terms->opt), m->n);
    }
    for (size_t i = 0; i < words; i++)
        put_u64(out + 8 * i, m->form == FORM_PACKED ? 0 : m->word[i]);
}

static bool places_back(struct small **m, const uint8_t *bytes, size_t len)
{
    bool ok = len % 8 == 0 && len <= 8 * PLACES;
    for (size_t i = 0; ok && i < len; i += 8)
        ok = small_add_place(m, get_u64(bytes + i)) == SMALL_NEW;
    return ok;
}

/* An empty page, whose words follow. */
static bool page_back(struct small **at, const uint8_t *bytes, size_t len)
{
    struct small like = **at;
    struct page_form form = first_page(&like.terms->opt);
    const tamis_allocator *a = &like.terms->allocator;
    like.n = len < 4 ? UINT32_MAX : get_u32(bytes);
    if (like.n > like.terms->opt.capacity || len != 4 + 8 * (size_t)words_of_page(form, like.n))
        return false;
    like.units = words_of_page(form, like.n) & (UNITS_MAX - 1);
    struct small *made = mem_new0(a, 1, small_size(&like));
    if (!made)
        return false;
    *made = like;
    for (size_t i = 0; i < (len - 4) / 8; i++)
        made->word[i] = get_u64(bytes + 4 + 8 * i);
    mem_free(a, *at, 1, small_size(*at));
    *at = made;
    return page_valid(made->word, made->n, form);
}

static bool packed_back(struct small **at, const uint8_t *bytes, size_t len)
{
    struct small like = **at;
    const tamis_allocator *a = &like.terms->allocator;
    struct packed *p = packed_get(a, bytes, len);
    if (!p)
        return false;
    if (like.form == FORM_PAGE) {
        like.form = FORM_PACKED;
        like.units = 0;
        struct small *made = mem_new0(a, 1, small_size(&like));
        if (!made) {
            packed_free(p, a);
            return false;
        }
        *made = like;
        mem_free(a, *at, 1, small_size(*at));
        *at = made;
    }
    rest_put(*at, p);
    uint64_t before = (*at)->n;
    return p->n > 0 && before + p->n > like.terms->opt.capacity &&
           small_known(&like.terms->opt, before + p->n - 1, &p->most) == p->known &&
           p->n <= p->most;
}

bool small_put_back(struct small **m, const uint8_t *bytes, size_t len)
{
    enum small_form form = (*m)->form;
    if (form == FORM_PLACES)
        return places_back(m, bytes, len);
    if (len == 0 || small_keeps(*m) != (form == FORM_PAGE) ||
        (*m)->terms->opt.growth != TAMIS_SMOOTH)
        return false;
    return bytes[0] == FORM_PACKED
               ? packed_back(m, bytes + 1, len - 1)
               : form == FORM_PAGE && bytes[0] == FORM_PAGE && page_back(m, bytes + 1, len - 1);
}
