/* tamis plan smooth, scalable, flexible: filters that grow. */
#include "plan_verb.h"

#include "ui/args.h"
#include "plot.h"
#include "ui/report.h"

#define LAYERS 512

/* ---- smooth ---------------------------------------------------------------------------------- */

static const struct plot smooth_plot = {
    "Smooth filters: rate and bits", "items",   "rate", .name = {"rate", "bits per item"},
    .y2 = "bits per item",           .right = 2};

static void smooth_at(const void *context, double n, double *y)
{
    const struct plan *p = context;
    tamis_plan_lines plan = tamis_plan_smooth(n < 1 ? 1 : (uint64_t)n, p->fpp);
    y[0] = plan.rate;
    y[1] = plan.bits;
}

int plan_smooth(const struct plan *p)
{
    tamis_plan_lines plan = tamis_plan_smooth(p->items, p->fpp);
    if (plan.width == 0)
        return complain(
            "out of range: --items, --fpp: give 1 to 2^40 items and a rate of 0.0001 or more");
    plan_begin(p);
    report_count("items", "items n", p->items);
    report_rate("fpp", "rate p", p->fpp);
    report_count("parts", "parts", plan.parts);
    report_count("width", "bits of a slot", plan.width);
    report_real("bits_per_item", "bits per item, on average over its growth", plan.bits);
    report_rate("rate", "rate, grown from nothing", plan.rate);
    report_end();
    return plot_draw(p->plot, &smooth_plot, (double)p->items, smooth_at, p);
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
    report_end();
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
    report_end();
}

static const struct plot stacks_plot = {
    "Scalable filters: rate and bits",
    "items",
    "rate",
    .name = {"rate, the report's", "rate, ours", "bits, the report's", "bits, ours"},
    .y2 = "bits",
    .right = 12};

/* Rate and bits of both stacks as they grow. */
static void stacks_at(const void *context, double items, double *y)
{
    static tamis_plan_layer layers[LAYERS];
    const struct plan *p = context;
    double m = (double)p->bits;
    uint64_t n = (uint64_t)items;
    uint64_t first = tamis_plan_capacity_whole(m, (double)p->hashes, p->fpp);
    tamis_plan_stack theirs =
        tamis_plan_report(m, (unsigned)p->hashes, p->fpp, n, 1, layers, LAYERS);
    tamis_plan_stack ours = tamis_plan_grow(TAMIS_SPREAD, first, 2, p->fpp, n, layers, LAYERS);
    y[0] = theirs.rate;
    y[1] = ours.rate;
    y[2] = theirs.bits;
    y[3] = ours.bits;
}

int plan_scalable(const struct plan *p)
{
    static tamis_plan_layer layers[LAYERS];
    double m = (double)p->bits, k = (double)p->hashes;
    uint64_t first = tamis_plan_capacity_whole(m, k, p->fpp);
    if (p->bits == 0 || p->items == 0 || first == 0)
        return complain("the capacity is 0: --bits, --hashes, --fpp, --items: give more "
                        "bits or a higher rate");
    tamis_plan_stack code =
        tamis_plan_report(m, (unsigned)p->hashes, p->fpp, p->items, 1, layers, LAYERS);
    if (code.layers == 0)
        return complain("too many layers: --items: give fewer, or more --bits");
    plan_begin(p);
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
    report_end();
    return plot_draw(p->plot, &stacks_plot, (double)p->items, stacks_at, p);
}

/* ---- flexible -------------------------------------------------------------------------------- */

/* A stack that follows the lambdas; the first one is the baseline's. */
struct flexible {
    const struct plan *plan;
    const unsigned *lambda;
    size_t n_lambda;
};

static tamis_plan_flex flexible_of(const struct flexible *f, uint64_t n)
{
    const struct plan *p = f->plan;
    return tamis_plan_flexible((double)p->bits, p->capacity, (double)p->hashes, n, f->lambda,
                               f->n_lambda);
}

static const struct plot flexible_plot = {
    "Flexible filter: rate and bits", "items",      "rate",
    .name = {"rate", "bits"},         .y2 = "bits", .right = 2};

static void flexible_at(const void *context, double n, double *y)
{
    tamis_plan_flex v = flexible_of(context, (uint64_t)n);
    y[0] = v.rate;
    y[1] = v.bits;
}

/* Its figures, and a plot. */
static int report_flexible(const struct flexible *f)
{
    const struct plan *p = f->plan;
    tamis_plan_flex v = flexible_of(f, p->items);
    report_count("bits", "bits m0 of the baseline", p->bits);
    report_count("capacity", "capacity n0 of the baseline", p->capacity);
    report_count("hashes", "hashes k", p->hashes);
    report_count("items", "items n", p->items);
    report_rate("rate_baseline", "rate f0 of a full vector",
                tamis_plan_rate_exp((double)p->bits, (double)p->hashes, (double)p->capacity));
    report_count("vectors", "vectors", v.vectors);
    report_rate("rate_4", "rate (3), (4)", v.rate);
    report_real("bits_5", "bits (5)", v.bits);
    report_real("load", "load factor, bits per item", v.load);
    report_real("load_min_6", "least (6)", v.load_min);
    report_real("load_max_6", "most (6)", v.load_max);
    report_real("load_tight", "most, tighter", v.load_tight);
    report_real("last_bits", "bits of the active vector", v.last_bits);
    report_real("last_load", "items in it", v.last_load);
    report_end();
    return plot_draw(p->plot, &flexible_plot, (double)p->items, flexible_at, f);
}

static bool flexible_fits(const struct plan *p)
{
    return (p->bits && p->capacity && p->items) ||
           refuse("wrong value '0': --bits, --capacity, --items: give 1 or more");
}

int plan_flexible_lambda(const struct plan *p)
{
    unsigned lambda[TAMIS_LAMBDAS_MAX];
    size_t n = parse_lambdas(p->lambda, 41, lambda);
    if (n == 0 || !flexible_fits(p))
        return TROUBLE;
    plan_begin(p);
    report_text("lambda", "lambda", p->lambda);
    return report_flexible(&(struct flexible){p, lambda, n});
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
    plan_begin(p);
    report_real("rate_predicted", "predicted arrival rate", p->rate);
    report_real("rate_base", "arrival rate of the baseline", p->base_rate);
    report_count("lambda", "lambda of the next vector", lambda[1]);
    report_count("factor", "its size, times the baseline's", UINT64_C(1) << (lambda[1] - 1));
    if (sized)
        return report_flexible(&(struct flexible){p, lambda, 2});
    report_end();
    return FOUND;
}
