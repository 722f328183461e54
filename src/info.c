/* What a filter says of itself. */
#include "filter.h"

static uint64_t filter_bytes(const tamis_filter *f)
{
    const struct stack *stack = filter_stack(f);
    const struct matrix *matrix = atomic_load(&f->matrix);
    uint64_t bytes = sizeof *f + sizeof *stack + stack->room * sizeof(struct vector *);
    for (uint32_t i = 0; i < stack_count(stack); i++)
        bytes += vector_bytes(stack->v[i]);
    for (const struct matrix *m = matrix; m; m = m->retired)
        bytes += sizeof *m + m->memory.size;
    if (f->family.h3)
        bytes += K_MAX * sizeof *f->family.h3;
    if (f->guard)
        bytes += sizeof *f->guard;
    return bytes + removals_bytes(&f->removals);
}

void tamis_filter_brief(const tamis_filter *f, tamis_info *info)
{
    const struct stack *stack = filter_stack(f);
    *info = (tamis_info){
        .growth = f->set.growth,
        .layout = f->set.layout,
        .hash = f->family.hash,
        .deletable = f->set.deletable,
        .unique = f->set.unique,
        .read_only = f->read_only,
        .bits_only = f->bits_only,
        .has_key = f->family.has_key,
        .vectors = stack_count(stack),
        .pending = atomic_load(&f->removals.total),
        .fpp = f->set.tolerate != 0 && f->set.fpp > 0 ? f->set.tolerate : f->set.fpp,
        .bytes = f->mapping.data ? f->mapping.len : filter_bytes(f),
        .expansion = f->set.expansion,
        .window = f->set.growth == TAMIS_WINDOW ? f->set.window : 0,
        .memory_limit = f->set.memory_limit,
    };
    info->items = f->stored - info->pending;
    for (uint32_t i = 0; i < info->vectors; i++) {
        const struct vector *v = stack->v[i];
        info->capacity += v->capacity;
        info->bits += vector_positions_total(v);
        info->hashes = v->bits.k > info->hashes ? v->bits.k : info->hashes;
    }
    if (f->set.items_max && f->set.items_max < info->capacity)
        info->capacity = f->set.items_max;
}

void tamis_filter_info(const tamis_filter *f, tamis_info *info)
{
    const struct stack *stack = filter_stack(f);
    double pass = 1;
    uint64_t ones = 0;
    tamis_filter_brief(f, info);
    for (uint32_t i = 0; i < info->vectors; i++) {
        const struct vector *v = stack->v[i];
        uint64_t here = vector_count_ones(v);
        info->distinct += tamis_plan_items((int)f->set.layout, v->bits.units, v->bits.k, here);
        ones += here;
        pass *= 1 - vector_rate_now(v);
    }
    info->fpp_now = 1 - pass;
    info->fill = (double)ones / (double)info->bits;
}

bool tamis_filter_vector(const tamis_filter *f, uint32_t i, tamis_vector_info *info)
{
    const struct stack *stack = filter_stack(f);
    if (i >= stack_count(stack))
        return false;
    const struct vector *v = stack->v[i];
    *info = (tamis_vector_info){
        .bits = vector_positions_total(v),
        .capacity = v->capacity,
        .items = v->count,
        .ones = vector_count_ones(v),
        .hashes = v->bits.k,
        .fpp = v->fpp,
    };
    return true;
}

tamis_error tamis_filter_limit(tamis_filter *f, uint64_t memory_limit)
{
    tamis_error e = filter_writable(f);
    if (e == TAMIS_OK)
        f->set.memory_limit = memory_limit;
    return e;
}
