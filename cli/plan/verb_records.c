/* tamis plan records, replica: records with attributes, and stale copies. */
#include "plan_verb.h"

#include "ui/args.h"
#include "plot.h"
#include "ui/report.h"

/* ---- records --------------------------------------------------------------------------------- */

static void report_class(const char *key, const char *title, const tamis_plan_records_rates *r)
{
    report_group(key, title);
    report_rate("pbf", "PBF (5.2)", r->pbf);
    report_rate("ht_basic", "PBF-HT, basic values, bound (5.3, 5.5)", r->ht_basic);
    report_rate("ht_basic_mean", "PBF-HT, basic values, mean", r->ht_basic_mean);
    report_rate("ht_attenuated", "PBF-HT, attenuated values, bound (5.4, 5.5)", r->ht_attenuated);
    report_rate("ht_attenuated_mean", "PBF-HT, attenuated values, mean", r->ht_attenuated_mean);
    report_rate("ht_mixed", "PBF-HT, mixed values", r->ht_mixed);
    report_rate("bf", "PBF-BF, attenuated values, bound (5.6)", r->bf);
    report_rate("bf_mean", "PBF-BF, attenuated values, mean", r->bf_mean);
    report_rate("bf_mixed", "PBF-BF, mixed values", r->bf_mixed);
    report_end();
}

static tamis_plan_records records_at(const struct plan *p, double n)
{
    return tamis_plan_records_of((unsigned)p->attributes, (unsigned)p->hashes, (double)p->cells, n,
                                 (double)p->range);
}

static const struct plot records_plot = {
    "Records with attributes", "records", "rate",
    .name = {"one attribute", "PBF, fresh", "PBF-HT (attenuated), fresh",
             "PBF-BF (attenuated), fresh", "PBF-HT, recombined", "PBF-BF, recombined"},
    .log_y = true};

static void rates_at(const void *context, double n, double *y)
{
    tamis_plan_records v = records_at(context, n);
    const double rates[] = {
        v.attribute,    v.fresh.pbf, v.fresh.ht_attenuated, v.fresh.bf, v.recombined.ht_attenuated,
        v.recombined.bf};
    for (size_t i = 0; i < COUNT(rates); i++)
        y[i] = rates[i] > 1e-20 ? rates[i] : __builtin_nan(""); /* smaller ones cannot be seen */
}

int plan_records(const struct plan *p)
{
    if (p->attributes == 0 || p->attributes > 64)
        return complain("wrong value: --attributes: give 1 to 64");
    if (p->cells == 0 || p->items == 0)
        return complain("wrong value '0': --cells, --items: give 1 or more");
    tamis_plan_records v = records_at(p, (double)p->items);
    plan_begin(p);
    report_count("attributes", "attributes p", p->attributes);
    report_count("hashes", "hashes q", p->hashes);
    report_count("cells", "cells m of an array", p->cells);
    report_count("items", "records n", p->items);
    report_count("range", "values of an attribute (0: no bound)", p->range);
    report_count("bits", "bits of all attributes, p q m", p->attributes * p->hashes * p->cells);
    report_rate("attribute", "rate of one attribute (5.1)", v.attribute);
    report_rate("stored", "probability that a value of the range is stored", v.stored);
    report_group("verify", "probability that a verification value not stored meets a stored one");
    report_rate("basic", "basic, bound (5.3)", v.verify.basic);
    report_rate("basic_mean", "basic, mean", v.verify.basic_mean);
    report_rate("attenuated", "attenuated, bound (5.4)", v.verify.attenuated);
    report_rate("attenuated_mean", "attenuated, mean", v.verify.attenuated_mean);
    report_rate("mixed", "mixed (ours)", v.verify.mixed);
    report_end();
    report_class("fresh", "queries none of whose values is stored", &v.fresh);
    report_class("in_range", "queries with values of the same range", &v.in_range);
    report_class("recombined", "queries with stored values, never in one record", &v.recombined);
    report_end();
    return plot_draw(p->plot, &records_plot, 2 * (double)p->items, rates_at, p);
}

/* ---- replica --------------------------------------------------------------------------------- */

/* A copy, and the weights of its errors. */
struct copy {
    const struct plan *plan;
    double positive, negative;
};

static tamis_plan_replica replica_at(const struct copy *c, double delta1)
{
    const struct plan *p = c->plan;
    double hosts = p->given[PLAN_hosts] ? (double)p->hosts : 2;
    return tamis_plan_replica_of((double)p->bits, (double)p->hashes, (double)p->items, delta1,
                                 p->delta0, hosts, c->positive, c->negative);
}

static const struct plot replica_plot = {
    "A stale copy", "share of bits that became one", "rate",
    .name = {"false positives of the copy (12)", "disagreement (10)", "both (13)", "member miss"}};

static void errors_at(const void *context, double delta1, double *y)
{
    tamis_plan_replica v = replica_at(context, delta1);
    y[0] = v.positive;
    y[1] = v.disagree;
    y[2] = v.overall;
    y[3] = v.member_miss;
}

/* Up to the largest possible share. */
static int plot_replica(const struct copy *c)
{
    double most = c->plan->delta1;
    for (int i = 0; c->plan->plot && i <= PLOT_POINTS; i++) {
        tamis_plan_replica v = replica_at(c, (double)i / PLOT_POINTS);
        most = v.own == v.own ? (double)i / PLOT_POINTS : most;
    }
    return plot_draw(c->plan->plot, &replica_plot, most, errors_at, c);
}

static void report_replica(const struct plan *p, const tamis_plan_replica *v)
{
    double m = (double)p->bits, changed = (p->delta1 + p->delta0) * m;
    report_real("items_copy_6", "items in the copy (6)", v->items);
    report_rate("own", "rate of the origin itself", v->own);
    report_rate("disagree_10", "origin says yes, copy no, any object (10)", v->disagree);
    report_rate("positive_12", "false positives of the copy (12)", v->positive);
    report_rate("overall_13", "both (13)", v->overall);
    report_rate("host_positive_14", "a host's false positives (14)", v->host_positive);
    report_rate("host_disagree_15", "a host's disagreements (15)", v->host_disagree);
    report_rate("host_16", "a host's errors, as if independent (16)", v->host);
    report_rate("host_exclusive", "a host's errors, exclusive as they are", v->host_exclusive);
    report_rate("weighted_17", "weighted (17)", v->weighted);
    report_real("added", "members added since", v->added);
    report_rate("member_miss", "members that the copy denies", v->member_miss);
    report_real("update_bits", "bits of an update, by entropy", tamis_plan_entropy(m, changed));
}

int plan_replica(const struct plan *p)
{
    double values[2] = {1, 1};
    if (p->weights && parse_list(p->weights, values, 2) != 2)
        return complain("wrong value '%s': --weights: give W+,W-, as 1,0.5", p->weights);
    if (p->bits == 0)
        return complain("wrong value '0': --bits: give 1 or more");
    if (p->given[PLAN_hosts] && p->hosts == 0)
        return complain("wrong value '0': --hosts: give 1 or more");
    const struct copy copy = {p, values[0], values[1]};
    tamis_plan_replica v = replica_at(&copy, p->delta1);
    if (v.own != v.own)
        return complain(
            "impossible shares: --delta1, --delta0: they are shares of the bits, at most "
            "those that are one and those that are zero");
    plan_begin(p);
    report_count("bits", "bits m", p->bits);
    report_count("hashes", "hashes k", p->hashes);
    report_count("items", "items n of the origin", p->items);
    report_real("delta1", "share of bits that became one", p->delta1);
    report_real("delta0", "share of bits that became zero", p->delta0);
    report_count("hosts", "hosts", p->given[PLAN_hosts] ? p->hosts : 2);
    report_real("weight_positive", "weight of false positives", copy.positive);
    report_real("weight_negative", "weight of disagreements", copy.negative);
    report_replica(p, &v);
    report_end();
    return plot_replica(&copy);
}
