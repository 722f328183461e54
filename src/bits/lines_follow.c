/*
 * An origin's copy of the lines it last published, from which the next delta is computed. An update costs what
 * changed: parts of another size are copied, and of the others only the pages with new checksums, which the
 * fingerprint of the new version has just computed (page_sums.h). Everything that can fail comes first and leaves the
 * old version intact.
 */
#include "lines_follow.h"

#include "lines_stash.h"

static struct body *part_from(const struct lines *l, uint32_t position, unsigned depth)
{
    const struct lines_root *root = l ? lines_root_of(l) : NULL;
    if (!root || (root->lines ? depth > 0 : depth == 0))
        return NULL;
    struct body *b = body_at(root, root->lines ? 0 : position);
    return b->depth == depth ? b : NULL;
}

/* Can one become the other by copying bytes? */
static bool same_size(const struct body *x, const struct body *y)
{
    struct part_facts a = part_facts(x), b = part_facts(y);
    const struct stash *mine = atomic_load(&x->stash), *other = atomic_load(&y->stash);
    return a.lines == b.lines && a.width == b.width && a.coarse == b.coarse &&
           a.excess == b.excess && (mine ? mine->room : 0) == (other ? other->room : 0);
}

tamis_error lines_follow_begin(struct lines_follow *f, struct lines *copy, const struct lines *l,
                               const tamis_allocator *a)
{
    const struct lines_root *root = lines_root_of(l);
    *f = (struct lines_follow){.copy = copy, .first = !copy, .allocator = a};
    if (!copy && !(f->copy = mem_new0(a, 1, sizeof *copy)))
        return TAMIS_ENOMEM;
    f->copy->allocator = a;
    const struct shelf *shelf = root->lines ? NULL : shelf_of(root);
    if (shelf && !(f->shelf = shelf_new(a, 64u - shelf->top)))
        return TAMIS_ENOMEM;
    for (uint32_t i = 0; i < root_positions(root);) {
        const struct body *b = body_at(root, i), *old = part_from(copy, i, b->depth);
        if (!(old && same_size(old, b)) && !(f->made[i] = body_copy(f->copy, b)))
            return TAMIS_ENOMEM;
        i += body_positions(root, b);
    }
    memory_count(f->copy);
    return TAMIS_OK;
}

void lines_follow_drop(struct lines_follow *f)
{
    for (uint32_t i = 0; f->copy && i < SHELF_LEN; i++)
        body_free(f->made[i], f->allocator);
    shelf_free(f->shelf, f->allocator);
    if (f->copy && f->first)
        lines_copy_free(f->copy, f->allocator);
    f->copy = NULL;
}

void lines_copy_free(struct lines *copy, const tamis_allocator *a)
{
    if (copy)
        lines_free(copy);
    mem_free(a, copy, 1, sizeof *copy);
}

/* Copies the pages that differ, of a piece of the same length. */
static void piece_follow(struct body *copy, const struct body *b, enum part_bytes what,
                         uint64_t len)
{
    struct kept_sums *old = part_sums_kept(copy, what);
    const struct kept_sums *now = part_sums_kept(b, what);
    uint8_t *to = len ? part_data(copy, what) : NULL;
    const uint8_t *from = len ? part_data(b, what) : NULL;
    for (uint64_t page = 0; page < pages_of(len); page++) {
        if (!kept_sums_differ(old, now, page))
            continue;
        memcpy(to + PAGE * page, from + PAGE * page, (size_t)min_u64(PAGE, len - PAGE * page));
        if (old) {
            old->stale[page] = !now || now->stale[page];
            old->sum[page] = now ? now->sum[page] : 0;
        }
    }
}

/* If there is no memory for checksums, the next version is compared as a whole. */
static void sums_follow(struct body *copy, const struct body *b, const tamis_allocator *a)
{
    const struct kept_sums *lines = part_sums_kept(b, PART_LINES);
    const struct kept_sums *stash = part_sums_kept(b, PART_STASH);
    struct rare *rare = lines || stash ? rare_of(copy, a) : NULL;
    if (rare && !rare->line_sums)
        rare->line_sums = kept_sums_copy(a, lines);
    if (rare && !rare->stash_sums)
        rare->stash_sums = kept_sums_copy(a, stash);
}

static void part_follow(struct body *copy, const struct body *b)
{
    struct part_facts facts = part_facts(b);
    struct stash *mine = atomic_load(&copy->stash);
    const struct stash *other = atomic_load(&b->stash);
    facts.stash = other ? other->room : 0; /* also of an empty one */
    for (unsigned what = 0; what < PART_PIECES; what++)
        piece_follow(copy, b, what, part_len(&facts, what));
    copy->used = b->used, copy->keys = b->keys, copy->mass = b->mass;
    if (mine)
        mine->used = other->used;
}

static void old_parts_free(struct lines_follow *f)
{
    struct lines_root *old = lines_root_of(f->copy);
    uint32_t all = old ? root_positions(old) : 0;
    for (uint32_t i = 0; i < all;) {
        struct body *b = body_at(old, i);
        bool kept = f->kept[i];
        i += body_positions(old, b);
        if (!kept)
            body_free(b, f->allocator);
    }
    if (all > 1) /* otherwise the body was the root */
        shelf_free((struct shelf *)(void *)old, f->allocator);
}

struct lines *lines_follow_end(struct lines_follow *f, const struct lines *l)
{
    const struct lines_root *root = lines_root_of(l);
    struct lines *copy = f->copy;
    struct body *one = NULL;
    for (uint32_t i = 0; i < root_positions(root);) {
        const struct body *b = body_at(root, i);
        one = f->made[i];
        if (!one) {
            one = part_from(copy, i, b->depth);
            f->kept[i] = true;
            part_follow(one, b);
        }
        sums_follow(one, b, f->allocator);
        f->made[i] = NULL;
        if (f->shelf)
            shelf_put(f->shelf, i, one);
        i += body_positions(root, b);
    }
    old_parts_free(f);
    atomic_store(&copy->root, (struct lines_root *)(f->shelf ? (void *)f->shelf : (void *)one));
    if (f->shelf)
        shelf_settle(f->shelf);
    memory_count(copy);
    copy->fpp = l->fpp, copy->width = l->width;
    copy->keys = l->keys, copy->removed = l->removed;
    *f = (struct lines_follow){.copy = NULL};
    return copy;
}
