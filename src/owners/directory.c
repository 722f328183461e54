/* One table of owners: creation, putting sets, taking messages. See directory.h; queries are in directory_ask.c. */
#include "directory.h"

#include <stdlib.h>

#include "base/err.h"
#include "set/set.h"

/* ---- owners ---------------------------------------------------------------------------------- */

uint32_t tamis_directory_owners(const tamis_directory *d)
{
    return atomic_load_explicit(&d->n, memory_order_acquire);
}

static struct owner *owner_named(const tamis_directory *d, const char *name)
{
    uint64_t hash = family_digest(&d->family, name, strlen(name)).a;
    for (struct lookup_entry *at = NULL; (at = lookup_next(&d->names, hash, at));) {
        struct owner *owner = PART_OF(at, struct owner, entry);
        if (strcmp(owner->name, name) == 0)
            return owner;
    }
    return NULL;
}

/* The owner of this name, created if necessary; a new one is not live yet. */
static tamis_error owner_get(tamis_directory *d, const char *name, struct owner **out,
                             tamis_reason *reason)
{
    const tamis_allocator *a = &d->allocator;
    uint32_t n = atomic_load(&d->n);
    size_t len = name ? strlen(name) : 0;
    if (len == 0 || len > OWNER_NAME)
        return fail(reason, TAMIS_EARG, "the name of an owner has 1 to %d bytes", OWNER_NAME);
    if ((*out = owner_named(d, name)))
        return TAMIS_OK;
    if (n >= TAMIS_OWNERS_MAX)
        return fail(reason, TAMIS_ELIMIT, "a directory has at most %d owners", TAMIS_OWNERS_MAX);
    struct owner_piece *piece = piece_of(d, n);
    if (!piece) {
        if (!(piece = mem_new0(a, 1, sizeof *piece)))
            return fail_so(reason, TAMIS_ENOMEM);
        atomic_init(&piece->next_expiry, UINT64_MAX);
        atomic_init(&piece->least_beat, UINT64_MAX);
        atomic_store(&d->piece[n / OWNER_PIECE], piece);
    }
    char *copy = lookup_reserve(&d->names, a) ? mem_new(a, len + 1, 1) : NULL;
    if (!copy)
        return fail_so(reason, TAMIS_ENOMEM);
    struct owner *owner = &piece->owner[n % OWNER_PIECE];
    memcpy(copy, name, len + 1);
    owner->name = copy;
    owner->number = n;
    lookup_add(&d->names, &owner->entry, family_digest(&d->family, name, len).a);
    atomic_store_explicit(&d->n, n + 1, memory_order_release);
    *out = owner;
    return TAMIS_OK;
}

uint32_t tamis_directory_number(const tamis_directory *d, const char *name)
{
    const struct owner *owner = owner_named(d, name);
    return owner && live_owner(d, owner->number) ? owner->number : TAMIS_OWNERS_MAX;
}

const char *tamis_directory_name(const tamis_directory *d, uint32_t number)
{
    const struct owner *owner = live_owner(d, number);
    return owner ? owner->name : NULL;
}

const tamis_follower *tamis_directory_follower(const tamis_directory *d, uint32_t number)
{
    const struct owner *owner = live_owner(d, number);
    return owner ? atomic_load(&owner->follower) : NULL;
}

bool tamis_directory_copy(const tamis_directory *d, uint32_t number, tamis_follower_facts *facts)
{
    uint64_t inside = readers_enter(); /* one that is dropped meanwhile is freed after this */
    const tamis_follower *follower = tamis_directory_follower(d, number);
    if (follower)
        tamis_follower_info(follower, facts);
    readers_leave(inside);
    return follower != NULL;
}

/* ---- doubt ----------------------------------------------------------------------------------- */

/* The renewal is counted once all can see it, and before the next expiry is read: whoever checks
   the leases meanwhile sees the new lease, or that there was a renewal. 0: in doubt. */
static void set_lease(tamis_directory *d, const struct owner *owner, uint64_t expires,
                      uint64_t beat)
{
    struct owner_piece *piece = piece_of(d, owner->number);
    if (expires == 0) {
        atomic_fetch_or(&piece->doubt, bit_of(owner->number));
        return;
    }
    atomic_store(&piece->expires[owner->number % OWNER_PIECE], expires);
    atomic_store(&piece->beat[owner->number % OWNER_PIECE], beat);
    if (beat < atomic_load(&piece->least_beat))
        atomic_store(&piece->least_beat, beat);
    atomic_fetch_and(&piece->doubt, ~bit_of(owner->number));
    atomic_fetch_add(&piece->renewals, 1);
    uint64_t next = atomic_load(&piece->next_expiry);
    while (expires < next && !atomic_compare_exchange_weak(&piece->next_expiry, &next, expires))
        ;
}

/* ---- making ---------------------------------------------------------------------------------- */

tamis_error tamis_directory_new(tamis_directory **out, const tamis_directory_options *o,
                                tamis_reason *reason)
{
    static const tamis_directory_options none;
    o = o ? o : &none;
    const tamis_allocator *a = o->allocator ? o->allocator : &mem_system;
    double fpp = o->fpp == 0 ? 0.01 : o->fpp;
    if (!(fpp > 0 && fpp < 1))
        return fail(reason, TAMIS_EARG, "the rate must be between 0 and 1");
    if ((unsigned)o->hash > TAMIS_H3)
        return fail(reason, TAMIS_EARG, "an unknown hash");
    tamis_directory *d = mem_new0(a, 1, sizeof *d);
    if (!d || family_init(&d->family, a, o->hash ? o->hash : TAMIS_XXH3, o->key) != TAMIS_OK) {
        mem_free(a, d, 1, sizeof *d);
        return fail(reason, TAMIS_ENOMEM, "no memory for a directory");
    }
    d->allocator = *a;
    d->fpp = fpp;
    d->whole = o->whole;
    d->follower = (tamis_follower_options){.lease = o->lease,
                                           .lease_most = o->lease_most,
                                           .clock = o->clock ? o->clock : clock_steady,
                                           .clock_context = o->clock_context,
                                           .allocator = &d->allocator};
    if (o->key)
        d->follower.key = d->family.secrets->key;
    columns_init(&d->columns, a);
    *out = d;
    return TAMIS_OK;
}

void tamis_directory_free(tamis_directory *d)
{
    if (!d)
        return;
    tamis_allocator a = d->allocator;
    for (uint32_t i = 0; i < tamis_directory_owners(d); i++) {
        struct owner *owner = &piece_of(d, i)->owner[i % OWNER_PIECE];
        tamis_follower_free(atomic_load(&owner->follower));
        columns_forget(&d->columns, &owner->held);
        mem_free(&a, owner->name, strlen(owner->name) + 1, 1);
    }
    for (uint32_t i = 0; i < OWNER_PIECES; i++)
        mem_free(&a, atomic_load(&d->piece[i]), 1, sizeof(struct owner_piece));
    lookup_free(&d->names, &a);
    mem_free(&a, d->plans, d->plans_room, sizeof *d->plans);
    columns_free(&d->columns);
    family_free(&d->family, &a);
    mem_free(&a, d, 1, sizeof *d);
}

tamis_digest tamis_directory_digest(const tamis_directory *d, const void *key, size_t len)
{
    return family_digest(&d->family, key, len);
}

/* The vectors that become its columns, and the number of keys. */
static struct columns_put put_of(struct owner *owner, const tamis_filter *filter)
{
    const struct layers *layers = set_layers(&filter->set);
    return (struct columns_put){owner->number, &owner->held, layers->v, layers_count(layers)};
}

/* Lines have no columns: a copy with lines is queried itself. Must be called before its columns are trusted. */
static void note_lines(tamis_directory *d, const struct owner *owner, const tamis_filter *copy)
{
    struct owner_piece *piece = piece_of(d, owner->number);
    if (set_lines(&copy->set))
        atomic_fetch_or(&piece->lines, bit_of(owner->number));
    else
        atomic_fetch_and(&piece->lines, ~bit_of(owner->number));
}

/* ---- putting and dropping -------------------------------------------------------------------- */

static void stop_following(tamis_directory *d, struct owner *owner)
{
    tamis_follower *follower = atomic_load(&owner->follower);
    atomic_store(&owner->follower, NULL);
    if (follower)
        follower_retire(follower, &d->columns.retired);
}

/* From now on its columns represent its set. */
static void was_put(tamis_directory *d, struct owner *owner, uint64_t items)
{
    stop_following(d, owner);
    owner->keys = false;
    atomic_store(&owner->items, items);
    set_lease(d, owner, UINT64_MAX, UINT64_MAX);
    atomic_fetch_or(&piece_of(d, owner->number)->live, bit_of(owner->number));
}

/* The plan with the fewest bits among those that waste little; the more plans there are, the
   more waste is accepted. */
static bool plan_find(const struct column_plan *plans, size_t n, uint64_t items, double rate,
                      size_t *found)
{
    struct column_choice choice = {items, rate, n < 16 ? 1.15 : n < 64 ? 1.35 : 4, 0, 0};
    for (size_t i = 0; i < n; i++)
        column_choice_offer(&choice, &plans[i], i);
    *found = choice.best;
    return choice.bits != 0;
}

/* Plans from the sizes of all owners, including this one. */
static tamis_error plan_again(tamis_directory *d, uint64_t items, size_t *found)
{
    uint32_t n = tamis_directory_owners(d);
    struct column_plan plans[PLANS_MAX], one;
    size_t live = 0, made = 0, at;
    uint64_t *sizes = mem_new(&d->allocator, (size_t)n + 1, sizeof *sizes);
    if (!sizes)
        return TAMIS_ENOMEM;
    for (uint32_t i = 0; i < n; i++) {
        const struct owner *owner = live_owner(d, i);
        uint64_t here = owner && owner->keys ? atomic_load(&owner->items) : 0;
        if (here)
            sizes[live++] = here;
    }
    sizes[live++] = items;
    made = column_plans(plans, sizes, live, d->fpp, true);
    mem_free(&d->allocator, sizes, (size_t)n + 1, sizeof *sizes);
    if (plan_find(plans, made, items, d->fpp, &at))
        one = plans[at];
    else if (!column_plan_one(&one, items, d->fpp))
        return TAMIS_ELIMIT;
    if (!array_room(&d->allocator, &d->plans, d->n_plans, &d->plans_room, sizeof *d->plans))
        return TAMIS_ENOMEM;
    *found = d->n_plans;
    d->plans[d->n_plans++] = one;
    return TAMIS_OK;
}

/* Vectors of the plan, filled with the keys, become the columns of the owner. */
static tamis_error put_keys(tamis_directory *d, struct owner *owner, const struct column_plan *plan,
                            const tamis_digest *digests, size_t n)
{
    const tamis_allocator *a = &d->allocator;
    uint32_t columns = column_plan_columns(plan, n);
    struct shape shape = {TAMIS_SPREAD, plan->units, plan->k};
    struct vector **v = mem_new(a, columns, sizeof(struct vector *));
    uint32_t made = 0;
    if (!v)
        return TAMIS_ENOMEM;
    for (; made < columns; made++) {
        if (!(v[made] = vector_new(a, &d->family, shape, false, true)))
            break;
        column_fill(&v[made]->bits, digests, n, made, columns);
    }
    struct columns_put put = {owner->number, &owner->held, v, columns};
    tamis_error e = made == columns ? columns_put(&d->columns, &put, 1) : TAMIS_ENOMEM;
    while (made > 0)
        vector_free(v[--made], a);
    mem_free(a, v, columns, sizeof(struct vector *));
    return e;
}

tamis_error tamis_directory_put(tamis_directory *d, const char *name, const tamis_digest *digests,
                                size_t n, tamis_reason *reason)
{
    if (n > DIRECTORY_MAX)
        return fail(reason, TAMIS_ELIMIT, "more keys than an owner can have");
    struct owner *owner = NULL;
    size_t plan = 0;
    tamis_error e = TAMIS_OK;
    if (n && !plan_find(d->plans, d->n_plans, n, d->fpp, &plan))
        e = plan_again(d, n, &plan);
    if (e != TAMIS_OK)
        return fail_so(reason, e);
    e = owner_get(d, name, &owner, reason);
    if (e == TAMIS_OK && n) {
        e = fail_so(reason, put_keys(d, owner, &d->plans[plan], digests, n));
    } else if (e == TAMIS_OK) {
        columns_drop(&d->columns, &owner->held);
    }
    if (e != TAMIS_OK)
        return e;
    was_put(d, owner, n);
    owner->keys = true;
    owner->plan = (uint32_t)plan;
    return TAMIS_OK;
}

tamis_error tamis_directory_put_filters(tamis_directory *d, const char *const *names,
                                        const tamis_filter *const *filters, size_t n,
                                        tamis_reason *reason)
{
    const tamis_allocator *a = &d->allocator;
    struct owner **owners = mem_new(a, n, sizeof(struct owner *));
    struct columns_put *puts = mem_new(a, n, sizeof *puts);
    tamis_error e = fail_so(reason, owners && puts ? TAMIS_OK : TAMIS_ENOMEM);
    for (size_t i = 0; i < n && e == TAMIS_OK; i++) {
        if (set_lines(&filters[i]->set))
            e = fail(reason, TAMIS_EKIND,
                     "%.100s: a smooth filter has no columns: put its keys, or follow its copy",
                     names[i]);
        else
            e = owner_get(d, names[i], &owners[i], reason);
        if (e == TAMIS_OK)
            puts[i] = put_of(owners[i], filters[i]);
    }
    if (e == TAMIS_OK)
        e = fail_so(reason, columns_put(&d->columns, puts, n));
    for (size_t i = 0; i < n && e == TAMIS_OK; i++)
        was_put(d, owners[i], set_stored(&filters[i]->set));
    mem_free(a, owners, n, sizeof(struct owner *));
    mem_free(a, puts, n, sizeof *puts);
    return e;
}

tamis_error tamis_directory_drop(tamis_directory *d, const char *name, tamis_reason *reason)
{
    struct owner *owner = name ? owner_named(d, name) : NULL;
    if (!owner || !live_owner(d, owner->number))
        return fail(reason, TAMIS_EARG, "no owner is called %.100s", name ? name : "");
    atomic_fetch_and(&piece_of(d, owner->number)->live, ~bit_of(owner->number));
    stop_following(d, owner);
    columns_drop(&d->columns, &owner->held);
    atomic_store(&owner->items, 0);
    return TAMIS_OK;
}

/* ---- messages -------------------------------------------------------------------------------- */

/* The owner's copy is being replaced: if only bits differ, the columns are changed at once. */
static void copy_swapped(void *directory, const tamis_filter *before, const tamis_filter *after)
{
    tamis_directory *d = directory;
    struct owner *owner = d->taking;
    atomic_store(&owner->items, set_stored(&after->set));
    if (set_lines(&after->set))
        note_lines(d, owner, after);
    if (owner->behind)
        return;
    struct columns_put old = put_of(owner, before), made = put_of(owner, after);
    owner->behind = old.n != made.n || !columns_change(&d->columns, &made, old.vectors);
}

/* The owner, with a follower; in doubt until the follower has a copy. */
static tamis_error owner_follow(tamis_directory *d, const char *name, struct owner **out,
                                tamis_reason *reason)
{
    tamis_follower *follower;
    tamis_error e = owner_get(d, name, out, reason);
    struct owner *owner = *out;
    if (e != TAMIS_OK || live_owner(d, owner->number))
        return e;
    if ((e = tamis_follower_new(&follower, &d->follower, reason)) != TAMIS_OK)
        return e;
    follower_join(follower, copy_swapped, d, &d->contact);
    owner->behind = true;
    owner->keys = false;
    atomic_store(&owner->follower, follower);
    set_lease(d, owner, 0, 0);
    atomic_fetch_or(&piece_of(d, owner->number)->live, bit_of(owner->number));
    return TAMIS_OK;
}

tamis_error tamis_directory_expect(tamis_directory *d, const char *name, uint32_t *number,
                                   tamis_reason *reason)
{
    struct owner *owner = NULL;
    tamis_error e = owner_follow(d, name, &owner, reason);
    if (e == TAMIS_OK && number)
        *number = owner->number;
    return e;
}

/* After a message: the columns become those of the copy, for as long as it may be trusted. */
static tamis_error follow_copy(tamis_directory *d, struct owner *owner)
{
    const tamis_follower *follower = atomic_load(&owner->follower);
    const tamis_filter *copy = follower_copy(follower);
    if (!copy)
        return TAMIS_OK;
    if (owner->behind && !d->whole) {
        struct columns_put put = put_of(owner, copy);
        tamis_error e = columns_put(&d->columns, &put, 1);
        if (e != TAMIS_OK) {
            set_lease(d, owner, 0, 0);
            return e;
        }
        owner->behind = false;
    }
    note_lines(d, owner, copy);
    set_lease(d, owner, follower_lease(follower), follower_beat(follower));
    return TAMIS_OK;
}

tamis_error tamis_directory_take(tamis_directory *d, const char *name, const void *message,
                                 size_t len, uint64_t age, tamis_taken *taken, tamis_reason *reason)
{
    struct envelope envelope;
    struct owner *owner = NULL;
    tamis_taken outcome = TAMIS_REFUSED;
    uint64_t arrived = d->follower.clock(d->follower.clock_context);
    tamis_error e = envelope_open(&envelope, message, len, reason);
    if (e == TAMIS_OK && name && strcmp(name, envelope.m.owner) != 0)
        e = fail(reason, TAMIS_EFAMILY, "the message is from %.60s, not from %.60s",
                 envelope.m.owner, name);
    if (e == TAMIS_OK)
        e = owner_follow(d, envelope.m.owner, &owner, reason);
    if (e == TAMIS_OK && !atomic_load(&owner->follower))
        e = fail(reason, TAMIS_EKIND,
                 "%.100s: its set was put and takes no messages: drop it first", owner->name);
    if (e == TAMIS_OK) {
        d->taking = owner;
        e = follower_take(atomic_load(&owner->follower), &envelope, len, arrived, age, &outcome,
                          reason);
        tamis_error put = follow_copy(d, owner);
        if (put != TAMIS_OK) {
            outcome = TAMIS_REFUSED;
            e = fail(reason, put, "%.100s: no memory for its columns", owner->name);
        }
    }
    if (taken)
        *taken = outcome;
    return e;
}

void directory_expect(tamis_directory *d, int64_t delay)
{
    follower_expect(atomic_load(&d->taking->follower), delay);
}

void tamis_directory_contact(tamis_directory *d, uint64_t age)
{
    uint64_t now = d->follower.clock(d->follower.clock_context);
    atomic_store(&d->contact, now > age ? now - age : 1);
}

/* ---- facts ----------------------------------------------------------------------------------- */

void tamis_directory_info(const tamis_directory *d, tamis_directory_facts *facts)
{
    *facts = (tamis_directory_facts){.fpp = d->fpp, .bytes = sizeof *d};
    for (struct columns_family *f = atomic_load(&d->columns.families); f; f = atomic_load(&f->next))
        for (struct columns_group *g = atomic_load(&f->groups); g; g = atomic_load(&g->next)) {
            const struct columns_matrix *m = atomic_load(&g->matrix);
            facts->shapes++;
            facts->columns += g->used;
            facts->bits += g->used * g->rows;
            facts->bytes += m->bits->memory.size + m->bits->width * 2 * sizeof(uint32_t);
        }
    for (uint32_t i = 0; i < tamis_directory_owners(d); i++) {
        const struct owner *owner = live_owner(d, i);
        uint64_t items = owner ? atomic_load(&owner->items) : 0;
        facts->owners += owner != NULL;
        facts->items += items;
        if (items && owner->keys) {
            double rate = column_plan_rate(&d->plans[owner->plan], items);
            facts->fpp_now = rate > facts->fpp_now ? rate : facts->fpp_now;
        }
    }
}
