/* tamis plan smooth, scalable, flexible: filters that grow. */
#include "plan_verb.h"

#include "ui/args.h"
#include "plot.h"
#include "ui/report.h"

#define LAYERS 512

/* ---- smooth ---------------------------------------------------------------------------------- */

int plan_smooth(const struct plan *p)
{
    tamis_plan_lines plan = tamis_plan_smooth(p->items, p->fpp);
    if (plan.width == 0)
        return complain(
            "out of range: --items, --fpp: give 1 to 2^40 items and a rate of 0.0001 or more");
    report_open(p->json);
    report_text("form", "form", "smooth");
    report_count("items", "items n", p->items);
    report_rate("fpp", "rate p", p->fpp);
    report_count("parts", "parts", plan.parts);
    report_count("width", "bits of a slot", plan.width);
    report_real("bits_per_item", "bits per item, on average over its growth", plan.bits);
    report_rate("rate", "rate, grown from nothing", plan.rate);
    report_close();
    struct plot *plot = plot_new(p->plot, "Smooth filters: rate and bits", "items", "rate", 0);
    plot_second_axis(plot, "bits per item");
    for (int curve = 0; curve < 2; curve++) {
        plot_curve(plot, curve ? "bits per item" : "rate", curve);
        for (int i = 1; plot && i <= PLOT_POINTS; i++) {
            double n = plot_place(i, (double)p->items);
            plan = tamis_plan_smooth(n < 1 ? 1 : (uint64_t)n, p->fpp);
            plot_point(plot, n, curve ? plan.bits : plan.rate);
        }
    }
    return plot_draw(plot);
}

/* ---- scalable -------------------------------------------------------------------------------- */

static void report_layers(const tamis_plan_layer *layers, size_t n)
{
    static const struct report_column columns[] = {
        {"capacity", "capacity"}, {"load", "load"},   {"bits", "bits"},
        {"hashes", "hashes"},     {"share", "share"}, {"rate", "rate"},
    };
    report_table("layers", "layers", columns, COUNT(columns));
    for (size_t i = 0; i < n; i++) {
        const tamis_plan_layer *l = &layers[i];
        const double row[] = {(double)l->capacity, (double)l->load, (double)l->bits,
                              (double)l->k,        l->share,        l->rate};
        report_row(row);
    }
    report_table_end();
}

static void report_stack(const char *key, const char *title, const tamis_plan_stack *v,
                         const tamis_plan_layer *layers)
{
    report_group(key, title);
    report_count("n_layers", "layers", v->layers);
    report_real("bits", "bits", v->bits);
    report_rate("rate", "rate", v->rate);
    report_real("bits_per_item", "bits per item", v->per_item);
    report_layers(layers, v->layers);
    report_group_end();
}

/* Rate and bits of both stacks as they grow. */
static int plot_stacks(const struct plan *p, uint64_t first)
{
    static tamis_plan_layer layers[LAYERS];
    struct plot *plot = plot_new(p->plot, "Scalable filters: rate and bits", "items", "rate", 0);
    plot_second_axis(plot, "bits");
    for (int curve = 0; curve < 4; curve++) {
        static const char *const names[] = {"rate, the report's", "rate, ours",
                                            "bits, the report's", "bits, ours"};
        plot_curve(plot, names[curve], curve >= 2);
        for (int i = 1; plot && i <= PLOT_POINTS; i++) {
            uint64_t n = (uint64_t)plot_place(i, (double)p->items);
            tamis_plan_stack v =
                curve % 2 ? tamis_plan_grow(TAMIS_SPREAD, first, 2, p->fpp, n, layers, LAYERS)
                          : tamis_plan_report((double)p->bits, (unsigned)p->hashes, p->fpp, n, 1,
                                              layers, LAYERS);
            plot_point(plot, (double)n, curve < 2 ? v.rate : v.bits);
        }
    }
    return plot_draw(plot);
}

int plan_scalable(const struct plan *p)
{
    static tamis_plan_layer layers[LAYERS];
    double m = (double)p->bits, k = (double)p->hashes;
    if (!plan_hashes_fit(p))
        return TROUBLE;
    uint64_t first = tamis_plan_capacity_whole(m, k, p->fpp);
    if (p->bits == 0 || p->items == 0 || first == 0)
        return complain("the capacity is 0: --bits, --hashes, --fpp, --items: give more "
                        "bits or a higher rate");
    tamis_plan_stack code =
        tamis_plan_report(m, (unsigned)p->hashes, p->fpp, p->items, 1, layers, LAYERS);
    if (code.layers == 0)
        return complain("too many layers: --items: give fewer, or more --bits");
    report_open(p->json);
    report_text("form", "form", "scalable");
    report_count("bits", "bits m of the first layer", p->bits);
    report_count("hashes", "hashes k", p->hashes);
    report_rate("fpp", "rate p", p->fpp);
    report_count("items", "items n", p->items);
    report_real("capacity_real", "capacity of the first layer, real",
                tamis_plan_report_capacity(m, k, p->fpp, 0));
    report_real("expansions", "expansions, closed form",
                tamis_plan_report_expansions(m, k, p->fpp, (double)p->items));
    report_stack("report", "as the report has it (a layer holds the next whole number)", &code,
                 layers);
    tamis_plan_stack v =
        tamis_plan_report(m, (unsigned)p->hashes, p->fpp, p->items, -1, layers, LAYERS);
    report_stack("report_floor", "the same, a layer never beyond its rate", &v, layers);
    v = tamis_plan_grow(TAMIS_SPREAD, first, 2, p->fpp, p->items, layers, LAYERS);
    report_stack("ours_doubling", "ours, the rate shared: spread layout, doubling like the report",
                 &v, layers);
    v = tamis_plan_grow(TAMIS_SPREAD, first, 0, p->fpp, p->items, layers, LAYERS);
    report_stack("ours_spread", "ours, the rate shared: spread layout", &v, layers);
    v = tamis_plan_grow(TAMIS_BLOCKED, first, 0, p->fpp, p->items, layers, LAYERS);
    report_stack("ours_blocked", "ours, the rate shared: blocked layout", &v, layers);
    report_close();
    return plot_stacks(p, first);
}

/* ---- flexible -------------------------------------------------------------------------------- */

static int plot_flexible(const struct plan *p, const unsigned *lambda, size_t n_lambda)
{
    double k = (double)p->hashes, m0 = (double)p->bits;
    struct plot *plot = plot_new(p->plot, "Flexible filter: rate and bits", "items", "rate", 0);
    plot_second_axis(plot, "bits");
    for (int curve = 0; curve < 2; curve++) {
        plot_curve(plot, curve ? "bits" : "rate", curve);
        for (int i = 1; plot && i <= PLOT_POINTS; i++) {
            uint64_t n = (uint64_t)plot_place(i, (double)p->items);
            tamis_plan_flex v = tamis_plan_flexible(m0, p->capacity, k, n, lambda, n_lambda);
            plot_point(plot, (double)n, curve ? v.bits : v.rate);
        }
    }
    return plot_draw(plot);
}

/* The figures of a stack that follows the lambdas; the first one is the baseline's. */
static void report_flexible(const struct plan *p, const unsigned *lambda, size_t n_lambda)
{
    double k = (double)p->hashes, m0 = (double)p->bits;
    tamis_plan_flex v = tamis_plan_flexible(m0, p->capacity, k, p->items, lambda, n_lambda);
    report_count("bits", "bits m0 of the baseline", p->bits);
    report_count("capacity", "capacity n0 of the baseline", p->capacity);
    report_count("hashes", "hashes k", p->hashes);
    report_count("items", "items n", p->items);
    report_rate("rate_baseline", "rate f0 of a full vector",
                tamis_plan_rate_exp(m0, k, (double)p->capacity));
    report_count("vectors", "vectors", v.vectors);
    report_rate("rate_4", "rate (3), (4)", v.rate);
    report_real("bits_5", "bits (5)", v.bits);
    report_real("load", "load factor, bits per item", v.load);
    report_real("load_min_6", "least (6)", v.load_min);
    report_real("load_max_6", "most (6)", v.load_max);
    report_real("load_tight", "most, tighter", v.load_tight);
    report_real("last_bits", "bits of the active vector", v.last_bits);
    report_real("last_load", "items in it", v.last_load);
}

static bool flexible_fits(const struct plan *p)
{
    if (p->bits && p->capacity && p->items)
        return plan_hashes_fit(p);
    return refuse("wrong value '0': --bits, --capacity, --items: give 1 or more");
}

int plan_flexible_lambda(const struct plan *p)
{
    double values[TAMIS_LAMBDAS_MAX];
    unsigned lambda[TAMIS_LAMBDAS_MAX];
    size_t n = parse_list(p->lambda, values, COUNT(values));
    for (size_t i = 0; i < n; i++) {
        lambda[i] = values[i] >= 1 && values[i] <= 41 ? (unsigned)values[i] : 0;
        if (lambda[i] == 0 || lambda[i] != values[i])
            n = 0;
    }
    if (n == 0)
        return complain("wrong value '%s': --lambda: give whole numbers from 1 to 41, as 1,2,3",
                        p->lambda);
    if (!flexible_fits(p))
        return TROUBLE;
    report_open(p->json);
    report_text("form", "form", "flexible");
    report_text("lambda", "lambda", p->lambda);
    report_flexible(p, lambda, n);
    report_close();
    return plot_flexible(p, lambda, n);
}

int plan_flexible_rate(const struct plan *p)
{
    if (!(p->rate > 0 && p->base_rate > 0))
        return complain("wrong value '0': --rate, --base-rate: give more");
    unsigned lambda[2] = {1, tamis_plan_lambda(p->rate, p->base_rate, 41)};
    bool sized = p->given[PLAN_bits] && p->given[PLAN_capacity] && p->given[PLAN_hashes] &&
                 p->given[PLAN_items];
    bool part = p->given[PLAN_bits] || p->given[PLAN_capacity] || p->given[PLAN_hashes] ||
                p->given[PLAN_items];
    if (part && !sized)
        return complain("an option is missing: plan flexible: --bits, --capacity, --hashes and "
                        "--items go together");
    if (p->plot && !sized)
        return complain("nothing to draw: --plot: give --bits, --capacity, --hashes and --items");
    if (sized && !flexible_fits(p))
        return TROUBLE;
    report_open(p->json);
    report_text("form", "form", "flexible");
    report_real("rate_predicted", "predicted arrival rate", p->rate);
    report_real("rate_base", "arrival rate of the baseline", p->base_rate);
    report_count("lambda", "lambda of the next vector", lambda[1]);
    report_count("factor", "its size, times the baseline's", UINT64_C(1) << (lambda[1] - 1));
    if (sized)
        report_flexible(p, lambda, 2);
    report_close();
    return sized ? plot_flexible(p, lambda, 2) : FOUND;
}
