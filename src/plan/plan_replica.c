/* Stale copies. B has n items now and its copy B^ is older; since then the share delta1 of the
   bits has become one and delta0 zero. Equation numbers refer to Zhu and Jiang, "False Rate
   Analysis of Bloom Filter Replicas in Distributed Systems". */
#include "plan.h"

#include <math.h>

static const tamis_plan_replica replica_none = {NAN, NAN, NAN, NAN, NAN, NAN,
                                                NAN, NAN, NAN, NAN, NAN, NAN};

double plan_member_miss(double added, double n, double copy_rate)
{
    if (!(added >= 0 && n >= 0 && copy_rate >= 0 && copy_rate <= 1))
        return NAN;
    if (n == 0)
        return 0;
    return (added < n ? added / n : 1) * (1 - copy_rate);
}

/* (14), (15): a host queries its own filter and hosts-1 copies. (16) combines them as if they
   were independent; the two errors of one copy exclude each other, which gives up to 0.6
   percentage points more. */
static void replica_host(tamis_plan_replica *v, double hosts)
{
    double copies = hosts - 1;
    v->host_positive = 1 - (1 - v->own) * pow(1 - v->positive, copies);
    v->host_disagree = 1 - pow(1 - v->disagree, copies);
    v->host = v->host_positive + v->host_disagree - v->host_positive * v->host_disagree;
    double right = 1 - v->positive - v->disagree;
    v->host_exclusive = 1 - (1 - v->own) * pow(right > 0 ? right : 0, copies);
}

tamis_plan_replica tamis_plan_replica_of(double m, double k, double n, double delta1, double delta0,
                                         double hosts, double w_pos, double w_neg)
{
    tamis_plan_replica v = replica_none;
    if (!(m > 0 && k > 0 && n >= 0 && delta1 >= 0 && delta0 >= 0 && hosts >= 1) || isinf(n))
        return v;
    double p0 = exp(-k * n / m), p1 = -expm1(-k * n / m);
    /* The shares are counted, P1 is a model: an actual fill is within 6 standard deviations of
       it, at most 6/(2 sqrt m), and within this slack a share is limited to what the model
       allows. */
    double slack = 3 / sqrt(m);
    if (delta1 > p1 + slack || delta0 > p0 + slack)
        return v;
    double kept = fmax(p1 - delta1, 0);                       /* ones in both */
    double copy1 = fmin(kept + delta0, 1), copy0 = 1 - copy1; /* (9) */
    v.items = copy0 > 0 ? -m / k * log1p(-copy1) : INFINITY;
    v.own = pow(p1, k);
    v.disagree = v.own - pow(kept, k);
    v.positive = pow(copy1, k);
    v.overall = v.positive + v.disagree;
    v.weighted = w_pos * v.positive + w_neg * v.disagree;
    replica_host(&v, hosts);
    /* The a members added since then set a zero of the copy with probability 1-e^{-ka/m}: delta1
       = P0(n^) (1-e^{-ka/m}). What users notice is the share of members that the copy denies. */
    double lost = copy0 > 0 ? delta1 / copy0 : 0;
    v.added = lost < 1 ? -m / k * log1p(-lost) : n;
    v.added = v.added < n ? v.added : n;
    v.member_miss = plan_member_miss(v.added, n, v.positive);
    return v;
}

/* A non-member is denied by all vectors of the origin, of the copy, or of both; the vectors
   share its digest and are treated as independent, as elsewhere. Denied by one vector of both:
   the probabilities of "maybe" of either, minus that of both at once, which is that of the ones
   they share. */
tamis_plan_replica plan_replica_stack(const struct plan_copy *vectors, size_t n, double hosts,
                                      double w_pos, double w_neg)
{
    tamis_plan_replica v = replica_none;
    double no = 1, copy_no = 1, both_no = 1;
    if (!(hosts >= 1))
        return v;
    for (size_t i = 0; i < n; i++) {
        const struct plan_copy *c = &vectors[i];
        double m = (double)c->units * (c->layout == TAMIS_SPREAD ? 1 : BLOCK_BITS);
        double own =
            c->units ? plan_fill_rate(c->layout, c->units, c->k, (double)c->ones / m) : c->rates[0];
        double copy = c->units ? own : c->rates[1], both = c->units ? own : c->rates[2];
        if (c->copy_ones != c->ones || c->both != c->ones) {
            copy = plan_fill_rate(c->layout, c->units, c->k, (double)c->copy_ones / m);
            both = c->both == c->copy_ones
                       ? copy
                       : plan_fill_rate(c->layout, c->units, c->k, (double)c->both / m);
        }
        no *= 1 - own;
        copy_no *= 1 - copy;
        both_no *= 1 - fmin(own + copy - both, 1);
    }
    v.own = 1 - no;
    v.positive = 1 - copy_no;
    v.disagree = fmax(copy_no - both_no, 0);
    v.overall = v.positive + v.disagree;
    v.weighted = w_pos * v.positive + w_neg * v.disagree;
    replica_host(&v, hosts);
    return v;
}

/* ---- size of a change ---- */

double tamis_plan_entropy(double m, double changed)
{
    if (!(m > 0 && changed >= 0 && changed <= m))
        return NAN;
    double d = changed / m; /* the probability that a bit changed */
    return d > 0 && d < 1 ? -m * (d * log(d) + (1 - d) * log1p(-d)) / LN2 : 0;
}
