/*
 * tamis: the numbers behind filters and records: sizes, rates, capacities, thresholds. Read tamis.h
 * first.
 */
#ifndef TAMIS_PLAN_PUBLIC_H
#define TAMIS_PLAN_PUBLIC_H

#include "../tamis.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The formulas behind every filter: sizes, rates, capacities, thresholds, as published and
 * corrected. The library and `tamis plan` use no others. All are pure functions and never allocate;
 * an argument outside a formula's domain returns NaN (0 for integers). Rates are probabilities,
 * sizes are bits unless a unit is given. "exp form" is (1-e^{-kn/m})^k; "exact" is the occupancy
 * law of k n independent throws into m cells. An address unit is one bit in TAMIS_SPREAD and a
 * block of 512 bits in TAMIS_BLOCKED; layout 0 means blocked. DBF, SFBF and PBF are the papers on
 * dynamic, flexible and parallel filters.
 */

/* ---- one vector: what the library sizes itself with ---- */

typedef struct tamis_plan_size {
    uint64_t units; /* bits (spread) or blocks (blocked) */
    uint64_t bits;  /* 0: not possible */
    unsigned k;
    double rate; /* after n keys; NaN: not possible */
} tamis_plan_size;

/* Smallest vector whose rate after n distinct keys is at most p. Its units are a multiple of 8
   (of 64 from 64,000 on, so that it can be folded); k is the smallest in 1..64 within 0.5 % of
   the fewest bits (1 % for blocked vectors with more than 8 probes). bits is 0 if p is not in
   (0,1) or the vector would exceed 2^40 bits; n = 0 is planned as 1. */
TAMIS_API tamis_plan_size tamis_plan_vector(tamis_layout layout, uint64_t n, double p);

/* False positive rate of a vector after n distinct keys; NaN unless k is in 1..64. */
TAMIS_API double tamis_plan_rate(tamis_layout layout, uint64_t units, unsigned k, double n);

/* A smooth filter of rate p that has grown from empty to n keys. Its parts grow at different times: `bits` is
   the average over their growth steps, and includes what a part has besides its lines. */
typedef struct tamis_plan_lines {
    unsigned width; /* bits of a slot; 0: not possible */
    unsigned parts;
    double bits; /* of memory per key */
    double rate;
} tamis_plan_lines;
TAMIS_API tamis_plan_lines tamis_plan_smooth(uint64_t n, double p);

/* Largest integer n whose rate is at most p; 0 if there is none. */
TAMIS_API uint64_t tamis_plan_capacity(tamis_layout layout, uint64_t units, unsigned k, double p);

/* ---- one vector: the published forms, spread layout ---- */

TAMIS_API double tamis_plan_rate_exp(double m, double k, double n);      /* (1-e^{-kn/m})^k */
TAMIS_API double tamis_plan_rate_discrete(double m, double k, double n); /* (1-(1-1/m)^{kn})^k */
/* Exact occupancy for k in 1..64 in about 50 steps for any m (past 2^24 bits by the expansion,
   which is accurate to ten digits there); and what tamis_plan_rate uses: exact below 2^16 bits,
   above it the exp form with its first correction in 1/m. */
TAMIS_API double tamis_plan_rate_exact(uint64_t m, unsigned k, double n);
TAMIS_API double tamis_plan_rate_spread(uint64_t m, unsigned k, double n);
/* The form for the blocked layout that tamis_plan_rate uses. */
TAMIS_API double tamis_plan_rate_blocked(uint64_t units, unsigned k, double n);
TAMIS_API double tamis_plan_capacity_real(double m, double k,
                                          double p); /* SFBF (2): -(m/k)ln(1-p^{1/k}) */
TAMIS_API uint64_t tamis_plan_capacity_whole(double m, double k, double p); /* its floor */
TAMIS_API double tamis_plan_capacity_best(double m,
                                          double p);       /* DBF sec. 4, k = (m/n)ln2, unrounded */
TAMIS_API double tamis_plan_bits_best(double n, double p); /* n ln p / ln .6185, unrounded */
/* Smallest m, to the bit, for which the exp form is <= p with some integer k. */
TAMIS_API tamis_plan_size tamis_plan_bits_whole(uint64_t n, double p);

/* ---- dynamic (DBF): rows of m bits, k probes, c items each; exp form throughout ---- */

TAMIS_API uint64_t tamis_plan_dynamic_rows(uint64_t c, uint64_t n); /* s = ceil(n/c) */
TAMIS_API double tamis_plan_dynamic_rate(double m, double k, uint64_t c, uint64_t n); /* (3) */
/* (4): both sets' rows side by side, unmerged */
TAMIS_API double tamis_plan_dynamic_union(double m, double k, uint64_t c, uint64_t na, uint64_t nb);
/* (6): rate of the OR of two single filters minus that of the two-row union; 0 for k = 1 */
TAMIS_API double tamis_plan_dynamic_union_gain(double m, double k, double na, double nb);
TAMIS_API double tamis_plan_dynamic_f1(double m, double k, uint64_t c,
                                       uint64_t n); /* (9), 0 for one row */
TAMIS_API double tamis_plan_dynamic_f2(double m, double k, uint64_t c, uint64_t n); /* (10) */
/* Items that match several rows: expected number c(s-1)f1 + n_l f2, and the bound n f2. */
TAMIS_API double tamis_plan_dynamic_multi(double m, double k, uint64_t c, uint64_t n);
TAMIS_API double tamis_plan_dynamic_multi_bound(double m, double k, uint64_t c, uint64_t n);
/* Items that already tested positive when they were inserted: sum of (3) over 0..n-1. */
TAMIS_API double tamis_plan_dynamic_present(double m, double k, uint64_t c, uint64_t n);
TAMIS_API double tamis_plan_dynamic_insert_ratio(double f,
                                                 double s); /* sec. 3.5.1: s(1-(1-f)^{s-1}) */
TAMIS_API double tamis_plan_dynamic_bound(double m, double k, uint64_t c, uint64_t n); /* (12) */
/* (13): bits of a single filter of equal rate relative to the s rows, with the k of the rows and
   with the best k for the single filter. */
TAMIS_API double tamis_plan_dynamic_size_ratio(double m, double k, double c, double s);
TAMIS_API double tamis_plan_dynamic_size_ratio_best(double m, double k, double c, double s);
TAMIS_API double tamis_plan_dynamic_one_rate(double m, double k, uint64_t c, uint64_t n); /* (14) */

/* Sec. 4.2: writes the probabilities of the set sizes 1..N to p[0..N-1]; they sum to 1. False
   for bad arguments. zipf: the most frequent size is the smallest (min) or the largest
   (max), or the ranks are shuffled by `seed` (random). */
TAMIS_API bool tamis_plan_sizes_uniform(double *p, size_t N);
TAMIS_API bool tamis_plan_sizes_normal(double *p, size_t N, double mean, double sd);
TAMIS_API bool tamis_plan_sizes_zipf_min(double *p, size_t N, double theta);
TAMIS_API bool tamis_plan_sizes_zipf_max(double *p, size_t N, double theta);
TAMIS_API bool tamis_plan_sizes_zipf_random(double *p, size_t N, double theta, uint64_t seed);
/* Turns weights (any non-negative histogram) into cumulative probabilities, in place. */
TAMIS_API bool tamis_plan_sizes_cumulate(double *p, size_t N);

typedef struct tamis_plan_rows {
    uint64_t s;       /* number of vectors with the fewest expected bits; 0: bad arguments */
    uint64_t c;       /* capacity of each, ceil(N/s) */
    double delta;     /* rate allowed for each, 1-(1-alpha)^{1/s} */
    uint64_t m;       /* bits of each by the formula, ceil(c ln delta / ln .6185) */
    uint64_t m_whole; /* bits of each that keep delta with an integer k */
    unsigned k;       /* that k */
    double used;      /* expected number of vectors in use, sum of r_i */
    double bits;      /* expected bits, m * used */
    double one;       /* bits of a single filter for N */
    double ratio;     /* bits / one */
} tamis_plan_rows;

/* Best s in 1..min(N, 1000) for the *cumulative* distribution cum[0..N-1]. */
TAMIS_API tamis_plan_rows tamis_plan_dynamic_best(const double *cum, size_t N, double alpha);
/* The same figures for a given s. */
TAMIS_API tamis_plan_rows tamis_plan_dynamic_at(const double *cum, size_t N, double alpha,
                                                uint64_t s);

typedef struct tamis_plan_limits {
    double one;         /* items a single filter takes from rate beta to rate gamma, real */
    uint64_t one_whole; /* floor */
    double rows;        /* full rows of a dynamic filter, floor(ln(1-gamma)/ln(1-beta)) */
    double partial;     /* items in the partial row that follows, real */
    double dynamic;     /* n0 rows + partial */
    uint64_t dynamic_whole;
} tamis_plan_limits;

/* Sec. 4.3: number of items that filters sized for n0 items at rate beta hold until the rate exceeds gamma. */
TAMIS_API tamis_plan_limits tamis_plan_dynamic_limits(double k, double n0, double beta,
                                                      double gamma);

/* ---- growing stacks: scalable and flexible ---- */

typedef struct tamis_plan_layer {
    uint64_t capacity, load, bits;
    unsigned k;
    double share; /* rate for which it is sized */
    double rate;  /* rate at its load */
} tamis_plan_layer;

typedef struct tamis_plan_stack {
    size_t layers; /* 0: bad arguments, or more layers than `room` */
    double bits, items;
    double rate;     /* of the whole stack */
    double per_item; /* bits / items */
} tamis_plan_stack;

/* The stack of this library for n keys: capacity of the first vector, expansion as in the
   options, total rate p. Writes the layers to out[0..room-1]. */
TAMIS_API tamis_plan_stack tamis_plan_grow(tamis_layout layout, uint64_t first, double expansion,
                                           double p, uint64_t n, tamis_plan_layer *out,
                                           size_t room);

/* The stack of the course report: layer i has 2^i m bits, the same k and the same p. `round` tells how
   the capacity N_i = -(2^i m/k) ln(1-p^{1/k}) is rounded: +1 up (as in its code), -1 down (keeps p). */
TAMIS_API double tamis_plan_report_capacity(double m, double k, double p, unsigned i);
TAMIS_API tamis_plan_stack tamis_plan_report(double m, unsigned k, double p, uint64_t n, int round,
                                             tamis_plan_layer *out, size_t room);
/* Its closed form, with real capacities: expansions i = ceil(log2(n/n0+1))-1. */
TAMIS_API double tamis_plan_report_expansions(double m, double k, double p, double n);

typedef struct tamis_plan_flex {
    size_t vectors;              /* 0: bad arguments */
    double bits;                 /* (5), the baseline included */
    double rate;                 /* (3),(4): product over the vectors */
    double load;                 /* "load factor": bits per item */
    double load_min, load_max;   /* (6) */
    double load_tight;           /* m0/n0 + m_i/n, the tighter upper bound */
    double last_bits, last_load; /* of the active vector */
} tamis_plan_flex;

/* An SFBF of n items: vectors of 2^(lambda-1) m0 bits and 2^(lambda-1) n0 items. lambda[0] is
   the baseline; past the end the last lambda repeats. */
TAMIS_API tamis_plan_flex tamis_plan_flexible(double m0, uint64_t n0, double k, uint64_t n,
                                              const unsigned *lambda, size_t n_lambda);
/* clamp(ceil(log2(predicted/base))+1, 1, max) */
TAMIS_API unsigned tamis_plan_lambda(double predicted, double base, unsigned max);

/* ---- records (PBF): p attributes, q arrays of m cells each, n records ---- */

/* Probability that a value not stored equals a stored one, in a table of n records. */
typedef struct tamis_plan_verify {
    double basic, basic_mean;           /* Thm 5.3: bound, mean over random records */
    double attenuated, attenuated_mean; /* Thm 5.4 */
    double mixed;                       /* ours: 64 mixed bits */
} tamis_plan_verify;

typedef struct tamis_plan_records_rates { /* for one class of queries */
    double pbf;                           /* Thm 5.2 */
    double ht_basic, ht_basic_mean;       /* Thm 5.5 */
    double ht_attenuated, ht_attenuated_mean;
    double ht_mixed;
    double bf, bf_mean, bf_mixed; /* Thm 5.6, values attenuated (bound, mean) or mixed */
} tamis_plan_records_rates;

typedef struct tamis_plan_records {
    double attribute; /* rate of one attribute for a value not stored, Thm 5.1 */
    double stored;    /* rho: probability that a value drawn from the range is stored */
    tamis_plan_verify verify;
    tamis_plan_records_rates fresh;      /* no value of the query is stored */
    tamis_plan_records_rates in_range;   /* values drawn from the same range as the records */
    tamis_plan_records_rates recombined; /* all values are stored, but not in one record */
} tamis_plan_records;

/* range: number of possible values of an attribute, 0 if unbounded (then rho = 0, and the n
   values of an attribute are all distinct). */
TAMIS_API tamis_plan_records tamis_plan_records_of(unsigned p, unsigned q, double m, double n,
                                                   double range);

/* ---- replicas: the origin has n items; since the copy was made, the share delta1 of its bits
 * became one and delta0 zero ---- */

typedef struct tamis_plan_replica {
    double items;         /* (6): items in the copy */
    double own;           /* P1(n)^k, the origin's own rate */
    double disagree;      /* (10): the origin says yes and the copy no, for a random key */
    double positive;      /* (12): false positives of the copy */
    double overall;       /* (13) */
    double host_positive; /* (14), (15), (16): for a host that holds `hosts`-1 such copies */
    double host_disagree;
    double host;
    double host_exclusive; /* (16) with the two events of one copy mutually exclusive */
    double weighted;       /* (17) */
    double added;          /* members added since the copy was made, from delta1 */
    double member_miss;    /* share of true members that the copy denies */
} tamis_plan_replica;

/* NaN in every field if the shares are impossible: delta1 <= P1(n) and delta0 <= P0(n) must hold
   up to the six standard deviations by which an actual vector may differ. */
TAMIS_API tamis_plan_replica tamis_plan_replica_of(double m, double k, double n, double delta1,
                                                   double delta0, double hosts, double w_pos,
                                                   double w_neg);

/* Entropy of a change of `changed` out of m bits, in bits. */
TAMIS_API double tamis_plan_entropy(double m, double changed);

#ifdef __cplusplus
}
#endif
#endif
