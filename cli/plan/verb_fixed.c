/* tamis plan fixed: one vector. */
#include "plan_verb.h"

#include "plot.h"
#include "ui/report.h"

#define BLOCK 512

static void report_layout(const char *key, const char *title, const tamis_plan_size *size,
                          uint64_t items)
{
    report_group(key, title);
    report_count("bits", "bits", size->bits);
    report_size("bytes", "bytes", size->bits / 8);
    report_count("hashes", "hashes", size->k);
    report_rate("rate", "rate", size->rate);
    report_real("bits_per_item", "bits per item", (double)size->bits / (double)items);
    report_end();
}

static const struct plot sizes_plot = {"False positive rate of one vector", "items", "rate",
                                       .name = {"spread", "blocked"}};

static void sizes_at(const void *context, double n, double *y)
{
    const tamis_plan_size *sizes = context;
    y[0] = tamis_plan_rate(TAMIS_SPREAD, sizes[0].units, sizes[0].k, n);
    y[1] = tamis_plan_rate(TAMIS_BLOCKED, sizes[1].units, sizes[1].k, n);
}

int plan_fixed_size(const struct plan *p)
{
    if (p->items == 0)
        return complain("wrong value '0': --items: give 1 or more");
    tamis_plan_size spread = tamis_plan_vector(TAMIS_SPREAD, p->items, p->fpp);
    tamis_plan_size blocked = tamis_plan_vector(TAMIS_BLOCKED, p->items, p->fpp);
    tamis_plan_size whole = tamis_plan_bits_whole(p->items, p->fpp);
    if (spread.bits == 0 || blocked.bits == 0)
        return complain("more than 2^40 bits: --items, --fpp: give fewer items or a higher rate");
    plan_begin(p);
    report_count("items", "items n", p->items);
    report_rate("fpp", "rate p", p->fpp);
    report_layout("spread", "spread layout", &spread, p->items);
    report_layout("blocked", "blocked layout", &blocked, p->items);
    report_group("published", "as published (exp form)");
    report_real("bits_best", "bits, unrounded, k = (m/n) ln 2",
                tamis_plan_bits_best((double)p->items, p->fpp));
    report_count("bits_whole", "bits, fewest with a whole k", whole.bits);
    report_count("hashes_whole", "hashes", whole.k);
    report_rate("rate_whole", "rate", whole.rate);
    report_end();
    report_end();
    const tamis_plan_size sizes[] = {spread, blocked};
    return plot_draw(p->plot, &sizes_plot, 2 * (double)p->items, sizes_at, sizes);
}

static void vector_at(const void *context, double n, double *y)
{
    const struct plan *p = context;
    y[0] = tamis_plan_rate_exp((double)p->bits, (double)p->hashes, n);
    y[1] = tamis_plan_rate_spread(p->bits, (unsigned)p->hashes, n);
}

/* Rate against items for a given vector, up to twice n. */
static int plot_vector(const struct plan *p, double n)
{
    static const struct plot plot = {"False positive rate of one vector", "items", "rate",
                                     .name = {"exp form", "exact"}};
    return plot_draw(p->plot, &plot, 2 * n, vector_at, p);
}

int plan_fixed_rate(const struct plan *p)
{
    double m = (double)p->bits, k = (double)p->hashes, n = (double)p->items;
    if (p->bits == 0 || p->bits > UINT64_C(1) << 62)
        return complain("wrong value: --bits: give 1 to 2^62");
    uint64_t blocks = (p->bits + BLOCK - 1) / BLOCK;
    plan_begin(p);
    report_count("bits", "bits m", p->bits);
    report_count("hashes", "hashes k", p->hashes);
    report_count("items", "items n", p->items);
    report_rate("rate_exp", "rate, exp form (1-e^(-kn/m))^k", tamis_plan_rate_exp(m, k, n));
    report_rate("rate_discrete", "rate, discrete (1-(1-1/m)^(kn))^k",
                tamis_plan_rate_discrete(m, k, n));
    report_rate("rate_exact", "rate, exact occupancy",
                tamis_plan_rate_exact(p->bits, (unsigned)p->hashes, n));
    report_rate("rate_blocked", "rate, blocked layout (whole blocks of 512)",
                tamis_plan_rate_blocked(blocks, (unsigned)p->hashes, n));
    report_real("bits_per_item", "bits per item", m / n);
    report_end();
    return plot_vector(p, n);
}

int plan_fixed_capacity(const struct plan *p)
{
    double m = (double)p->bits, k = (double)p->hashes;
    if (p->bits == 0 || p->bits > UINT64_C(1) << 62)
        return complain("wrong value: --bits: give 1 to 2^62");
    double real = tamis_plan_capacity_real(m, k, p->fpp);
    plan_begin(p);
    report_count("bits", "bits m", p->bits);
    report_count("hashes", "hashes k", p->hashes);
    report_rate("fpp", "rate p", p->fpp);
    report_real("capacity_real", "capacity, real -(m/k) ln(1-p^(1/k))", real);
    report_count("capacity_whole", "capacity, whole", tamis_plan_capacity_whole(m, k, p->fpp));
    report_real("capacity_best", "capacity with the best k, real",
                tamis_plan_capacity_best(m, p->fpp));
    report_count("capacity_spread", "capacity, spread layout, corrected",
                 tamis_plan_capacity(TAMIS_SPREAD, p->bits, (unsigned)p->hashes, p->fpp));
    report_count("capacity_blocked", "capacity, blocked layout (whole blocks of 512)",
                 tamis_plan_capacity(TAMIS_BLOCKED, p->bits / BLOCK, (unsigned)p->hashes, p->fpp));
    report_end();
    return plot_vector(p, real);
}
