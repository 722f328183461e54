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
    report_group_end();
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
    report_open(p->json);
    report_text("form", "form", "fixed");
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
    report_group_end();
    report_close();
    struct plot *plot = plot_new(p->plot, "False positive rate of one vector", "items", "rate", 0);
    const tamis_plan_size *sizes[] = {&spread, &blocked};
    for (int layout = TAMIS_SPREAD; layout <= TAMIS_BLOCKED; layout++) {
        const tamis_plan_size *s = sizes[layout - TAMIS_SPREAD];
        plot_curve(plot, layout == TAMIS_SPREAD ? "spread" : "blocked", false);
        for (int i = 0; plot && i <= PLOT_POINTS; i++) {
            double n = plot_place(i, 2 * (double)p->items);
            plot_point(plot, n, tamis_plan_rate(layout, s->units, s->k, n));
        }
    }
    return plot_draw(plot);
}

/* Rate against items for a given vector, up to twice n. */
static int plot_vector(const struct plan *p, double n)
{
    double m = (double)p->bits, k = (double)p->hashes;
    struct plot *plot = plot_new(p->plot, "False positive rate of one vector", "items", "rate", 0);
    plot_curve(plot, "exp form", false);
    for (int i = 0; plot && i <= PLOT_POINTS; i++)
        plot_point(plot, plot_place(i, 2 * n), tamis_plan_rate_exp(m, k, plot_place(i, 2 * n)));
    plot_curve(plot, "exact", false);
    for (int i = 0; plot && i <= PLOT_POINTS; i++)
        plot_point(plot, plot_place(i, 2 * n),
                   tamis_plan_rate_spread(p->bits, (unsigned)p->hashes, plot_place(i, 2 * n)));
    return plot_draw(plot);
}

int plan_fixed_rate(const struct plan *p)
{
    double m = (double)p->bits, k = (double)p->hashes, n = (double)p->items;
    if (!plan_hashes_fit(p))
        return TROUBLE;
    if (p->bits == 0 || p->bits > UINT64_C(1) << 62)
        return complain("wrong value: --bits: give 1 to 2^62");
    uint64_t blocks = (p->bits + BLOCK - 1) / BLOCK;
    report_open(p->json);
    report_text("form", "form", "fixed");
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
    report_close();
    return plot_vector(p, n);
}

int plan_fixed_capacity(const struct plan *p)
{
    double m = (double)p->bits, k = (double)p->hashes;
    if (!plan_hashes_fit(p))
        return TROUBLE;
    if (p->bits == 0 || p->bits > UINT64_C(1) << 62)
        return complain("wrong value: --bits: give 1 to 2^62");
    double real = tamis_plan_capacity_real(m, k, p->fpp);
    report_open(p->json);
    report_text("form", "form", "fixed");
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
    report_close();
    return plot_vector(p, real);
}
