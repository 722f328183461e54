/* See directory.h. */
#include "directory.h"

#include <stdlib.h>

#include "bytes.h"
#include "err.h"

/* ---- owners ---------------------------------------------------------------------------------- */

struct named *directory_owner(const tamis_directory *d, uint32_t number)
{
    struct named *piece =
        atomic_load_explicit(&d->piece[number / OWNER_PIECE], memory_order_acquire);
    return &piece[number % OWNER_PIECE];
}

static size_t table_slot(const tamis_directory *d, const char *name)
{
    size_t i = hash_of(name, strlen(name)) & (d->table_size - 1);
    while (d->table[i] && strcmp(directory_owner(d, d->table[i] - 1)->name, name) != 0)
        i = (i + 1) & (d->table_size - 1);
    return i;
}

static bool table_room(tamis_directory *d)
{
    uint32_t n = atomic_load(&d->n), *before = d->table;
    size_t size = d->table_size;
    if (2 * (size_t)n + 2 <= size)
        return true;
    size_t larger = size ? 2 * size : 64;
    uint32_t *table = mem_new0(&d->allocator, larger, sizeof *table);
    if (!table)
        return false;
    d->table = table;
    d->table_size = larger;
    for (uint32_t i = 0; i < n; i++)
        table[table_slot(d, directory_owner(d, i)->name)] = i + 1;
    mem_free(&d->allocator, before, size, sizeof *before);
    return true;
}

static bool piece_room(tamis_directory *d, uint32_t number)
{
    uint32_t at = number / OWNER_PIECE;
    if (atomic_load(&d->piece[at]))
        return true;
    struct named *piece = mem_new0(&d->allocator, OWNER_PIECE, sizeof *piece);
    atomic_store(&d->piece[at], piece);
    return piece != NULL;
}

uint32_t directory_number(tamis_directory *d, const char *name, bool make)
{
    uint32_t n = atomic_load(&d->n);
    size_t len = strlen(name);
    if (d->table_size) {
        uint32_t found = d->table[table_slot(d, name)];
        if (found)
            return found - 1;
    }
    if (!make || n >= TAMIS_OWNERS_MAX || !table_room(d) || !piece_room(d, n))
        return TAMIS_OWNERS_MAX;
    char *copy = mem_new(&d->allocator, len + 1, 1);
    if (!copy)
        return TAMIS_OWNERS_MAX;
    memcpy(copy, name, len + 1);
    size_t slot = table_slot(d, name);
    directory_owner(d, n)->name = copy;
    d->table[slot] = n + 1;
    atomic_store_explicit(&d->n, n + 1, memory_order_release);
    return n;
}

uint32_t tamis_directory_owners(const tamis_directory *d)
{
    return atomic_load_explicit(&d->n, memory_order_acquire);
}

const char *tamis_directory_name(const tamis_directory *d, uint32_t number)
{
    if (number >= tamis_directory_owners(d))
        return NULL;
    const struct named *owner = directory_owner(d, number);
    return atomic_load(&owner->live) ? owner->name : NULL;
}

uint64_t tamis_directory_items(const tamis_directory *d, uint32_t number)
{
    return number < tamis_directory_owners(d) ? atomic_load(&directory_owner(d, number)->items) : 0;
}

/* ---- making ---------------------------------------------------------------------------------- */

tamis_error directory_make(tamis_directory **out, const tamis_allocator *a, double fpp)
{
    tamis_directory *d = mem_new0(a, 1, sizeof *d);
    if (!d)
        return TAMIS_ENOMEM;
    d->allocator = *a;
    d->fpp = fpp;
    if (columns_init(&d->columns, a) != TAMIS_OK) {
        mem_free(a, d, 1, sizeof *d);
        return TAMIS_ENOMEM;
    }
    *out = d;
    return TAMIS_OK;
}

tamis_error tamis_directory_new(tamis_directory **out, const tamis_directory_options *o,
                                tamis_reason *reason)
{
    static const tamis_directory_options none;
    o = o ? o : &none;
    double fpp = o->fpp == 0 ? 0.01 : o->fpp;
    if (!(fpp > 0 && fpp < 1))
        return fail(reason, TAMIS_EARG, "the rate is between 0 and 1");
    if ((unsigned)o->hash > TAMIS_H3)
        return fail(reason, TAMIS_EARG, "an unknown hash");
    tamis_directory *d = NULL;
    const tamis_allocator *a = o->allocator ? o->allocator : &mem_system;
    tamis_error e = directory_make(&d, a, fpp);
    if (e == TAMIS_OK)
        e = family_init(&d->family, a, o->hash ? o->hash : TAMIS_XXH3, o->key);
    if (e != TAMIS_OK) {
        tamis_directory_free(d);
        return fail(reason, e, "no memory for a directory");
    }
    *out = d;
    return TAMIS_OK;
}

void tamis_directory_free(tamis_directory *d)
{
    if (!d)
        return;
    tamis_allocator a = d->allocator;
    for (uint32_t i = 0; i < tamis_directory_owners(d); i++) {
        char *name = directory_owner(d, i)->name;
        mem_free(&a, name, strlen(name) + 1, 1);
    }
    for (uint32_t i = 0; i < OWNER_PIECES; i++)
        mem_free(&a, atomic_load(&d->piece[i]), OWNER_PIECE, sizeof(struct named));
    mem_free(&a, d->table, d->table_size, sizeof *d->table);
    mem_free(&a, d->plans, d->plans_room, sizeof *d->plans);
    columns_free(&d->columns);
    family_free(&d->family, &a);
    mem_free(&a, d, 1, sizeof *d);
}

tamis_digest tamis_directory_digest(const tamis_directory *d, const void *key, size_t len)
{
    return family_digest(&d->family, key, len);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

bool directory_plan_add(tamis_directory *d, const struct column_plan *plan)
{
    if (d->n_plans == d->plans_room) {
        size_t room = d->plans_room ? 2 * d->plans_room : 8;
        struct column_plan *grown =
            mem_grow(&d->allocator, d->plans, d->plans_room, room, sizeof *grown);
        if (!grown)
            return false;
        d->plans = grown;
        d->plans_room = room;
    }
    d->plans[d->n_plans++] = *plan;
    return true;
}

struct bits directory_bits(const tamis_directory *d, const struct column_plan *plan)
{
    return (struct bits){.units = plan->units,
                         .k = plan->k,
                         .family = &d->family,
                         .kernel = kernel_choose(TAMIS_SPREAD, &d->family)};
}

/* The plan with the fewest bits, of those that waste little; the more there are, the less is asked of
   them. */
static bool plan_find(const struct column_plan *plans, size_t n, uint64_t items, double rate,
                      size_t *found)
{
    double waste = n < 16 ? 1.15 : n < 64 ? 1.35 : 4;
    uint64_t best = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t cost = column_plan_cost(&plans[i], items, rate, waste);
        if (cost && (!best || cost < best)) {
            best = cost;
            *found = i;
        }
    }
    return best != 0;
}

/* From the sizes of all owners, this one included. */
static tamis_error plan_again(tamis_directory *d, uint64_t items, size_t *found)
{
    uint32_t n = tamis_directory_owners(d);
    struct column_plan plans[PLANS_MAX], one;
    size_t live = 0, made = 0, at;
    uint64_t *sizes = mem_new(&d->allocator, (size_t)n + 1, sizeof *sizes);
    if (!sizes)
        return TAMIS_ENOMEM;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t here = tamis_directory_items(d, i);
        if (here && atomic_load(&directory_owner(d, i)->live))
            sizes[live++] = here;
    }
    sizes[live++] = items;
    made = column_plans(plans, sizes, live, d->fpp, true);
    mem_free(&d->allocator, sizes, (size_t)n + 1, sizeof *sizes);
    if (plan_find(plans, made, items, d->fpp, &at))
        one = plans[at];
    else if (!column_plan_one(&one, items, d->fpp))
        return TAMIS_ELIMIT;
    *found = d->n_plans;
    return directory_plan_add(d, &one) ? TAMIS_OK : TAMIS_ENOMEM;
}

/* ---- putting and dropping -------------------------------------------------------------------- */

static tamis_error put_columns(tamis_directory *d, uint32_t number, const struct column_plan *plan,
                               const tamis_digest *digests, size_t n, uint32_t columns)
{
    uint64_t words = round_up(plan->units, 64) / 64;
    struct block memory;
    struct bits *vectors = mem_new(&d->allocator, columns, sizeof *vectors);
    if (!vectors)
        return TAMIS_ENOMEM;
    tamis_error e = TAMIS_ENOMEM;
    if (block_new(&d->allocator, 8 * words * columns, &memory)) {
        for (uint32_t i = 0; i < columns; i++) {
            size_t from = n * (size_t)i / columns, to = n * ((size_t)i + 1) / columns;
            vectors[i] = directory_bits(d, plan);
            vectors[i].words = (uint64_t *)memory.data + words * i;
            vectors[i].kernel->fill(&vectors[i], digests + from, to - from);
        }
        e = columns_put(&d->columns, number, vectors, columns);
        block_free(&d->allocator, &memory);
    }
    mem_free(&d->allocator, vectors, columns, sizeof *vectors);
    return e;
}

tamis_error tamis_directory_put(tamis_directory *d, const char *name, const tamis_digest *digests,
                                size_t n)
{
    if (!name || !*name || strlen(name) > OWNER_NAME)
        return TAMIS_EARG;
    if (n > DIRECTORY_MAX)
        return TAMIS_ELIMIT;
    size_t plan = 0;
    tamis_error e = TAMIS_OK;
    if (n && !plan_find(d->plans, d->n_plans, n, d->fpp, &plan))
        e = plan_again(d, n, &plan);
    uint32_t number = e == TAMIS_OK ? directory_number(d, name, true) : 0;
    if (e == TAMIS_OK && number == TAMIS_OWNERS_MAX)
        e = tamis_directory_owners(d) == TAMIS_OWNERS_MAX ? TAMIS_ELIMIT : TAMIS_ENOMEM;
    if (e != TAMIS_OK)
        return e;
    struct named *owner = directory_owner(d, number);
    bool before = atomic_load(&owner->live);
    uint32_t columns = n ? column_plan_columns(&d->plans[plan], n) : 0;
    atomic_store(&owner->live, true); /* before a reader may find it */
    e = n ? put_columns(d, number, &d->plans[plan], digests, n, columns)
          : columns_drop(&d->columns, number);
    if (e != TAMIS_OK) {
        atomic_store(&owner->live, before);
        return e;
    }
    owner->plan = (uint32_t)plan;
    owner->columns = columns;
    atomic_store(&owner->items, n);
    return TAMIS_OK;
}

tamis_error tamis_directory_drop(tamis_directory *d, const char *name)
{
    uint32_t number = name ? directory_number(d, name, false) : TAMIS_OWNERS_MAX;
    if (number == TAMIS_OWNERS_MAX || !atomic_load(&directory_owner(d, number)->live))
        return TAMIS_EARG;
    tamis_error e = columns_drop(&d->columns, number);
    if (e != TAMIS_OK)
        return e;
    atomic_store(&directory_owner(d, number)->live, false);
    atomic_store(&directory_owner(d, number)->items, 0);
    return TAMIS_OK;
}

/* ---- asking ---------------------------------------------------------------------------------- */

size_t tamis_directory_locate(const tamis_directory *d, tamis_digest digest, uint32_t *owners,
                              size_t room)
{
    uint64_t found[TAMIS_OWNERS_MAX / 64];
    size_t words = ((size_t)tamis_directory_owners(d) + 63) / 64, n = 0;
    columns_locate((struct columns *)(uintptr_t)&d->columns, digest, found, words);
    for (size_t i = 0; i < words; i++)
        for (uint64_t bits = found[i]; bits; bits &= bits - 1, n++)
            if (n < room)
                owners[n] = (uint32_t)(64 * i + (unsigned)__builtin_ctzll(bits));
    return n;
}

void tamis_directory_info(const tamis_directory *d, tamis_directory_facts *facts)
{
    const struct columns_state *s = columns_now(&d->columns);
    *facts = (tamis_directory_facts){
        .shapes = s->n, .fpp = d->fpp, .hash = d->family.hash, .has_key = d->family.has_key};
    facts->bytes = sizeof *d + columns_bytes(&d->columns);
    for (uint32_t i = 0; i < s->n; i++) {
        facts->columns += s->group[i]->used;
        facts->bits += s->group[i]->used * s->group[i]->rows;
    }
    for (uint32_t i = 0; i < tamis_directory_owners(d); i++) {
        const struct named *owner = directory_owner(d, i);
        uint64_t items = tamis_directory_items(d, i);
        facts->owners += atomic_load(&owner->live);
        facts->items += items;
        if (items == 0)
            continue;
        const struct column_plan *plan = &d->plans[owner->plan];
        double each = (double)((items + owner->columns - 1) / owner->columns);
        double rate = owner->columns * tamis_plan_rate(TAMIS_SPREAD, plan->units, plan->k, each);
        facts->fpp_now = rate > facts->fpp_now ? rate : facts->fpp_now;
    }
}
