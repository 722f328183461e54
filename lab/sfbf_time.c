/*
 * Flexible filters, time of a query: figures 9 and 10, section 8.2.3. The addresses are the paper's: k
 * matrices over GF(2) of 32 rows and columns. "Direct" multiplies for every vector anew; "shifting"
 * multiplies once and takes for each vector the first bits of the address (Theorem 4). Beside them DBF,
 * whose vectors share one address, row by row and as this library keeps it (bit-sliced), and the
 * library's own hash. Queried are items of the trace, those inserted and half as many that come after
 * them, newest vector first (Algorithm 3).
 *
 * Times are processor time. A repetition takes some hundred queries of every kind, one kind after the
 * other, so that a quotient of times is of the same moment; a hundred of them in full, as published.
 */
#include <math.h>

#include "common_flexible.h"
#include "common_trace.h"
#include "set/set.h"

#define ROWS 32

struct h3 {
    uint32_t row[FLEX_K][ROWS];
    uint32_t address[FLEX_K]; /* shifting: of the item that is asked for */
};

static uint32_t h3_rows(const struct h3 *h, unsigned j, uint32_t key, unsigned rows)
{
    uint32_t address = 0;
    for (unsigned i = 0; i < rows; i++)
        address = address << 1 | (uint32_t)__builtin_parity(h->row[j][i] & key);
    return address;
}

static void probe_direct(const struct family *family, tamis_digest digest, uint64_t units,
                         unsigned k, uint64_t *positions)
{
    unsigned rows = (unsigned)__builtin_ctzll(units);
    for (unsigned j = 0; j < k; j++)
        positions[j] = h3_rows(family->probe_context, j, (uint32_t)digest.a, rows);
}

static void probe_shift(const struct family *family, tamis_digest digest, uint64_t units,
                        unsigned k, uint64_t *positions)
{
    const struct h3 *h = family->probe_context;
    unsigned shift = ROWS - (unsigned)__builtin_ctzll(units);
    (void)digest;
    for (unsigned j = 0; j < k; j++)
        positions[j] = h->address[j] >> shift;
}

static void h3_fill(struct h3 *h, uint64_t stream)
{
    uint64_t state = stream;
    for (unsigned j = 0; j < FLEX_K; j++)
        for (unsigned i = 0; i < ROWS; i++)
            h->row[j][i] = (uint32_t)rng_next(&state);
}

static void h3_take(struct h3 *h, uint32_t key)
{
    for (unsigned j = 0; j < FLEX_K; j++)
        h->address[j] = h3_rows(h, j, key, ROWS);
}

/* ---- one kind of query ------------------------------------------------------------------------ */

enum way { DIRECT, SHIFT, OURS, SLICED };

struct kind {
    struct flexible x;
    struct h3 h;
    enum way way;
    char name[32];
    struct mean time[TRACE_PLACES]; /* nanoseconds of a query */
    double now;                     /* of the present repetition */
    uint64_t hits;
};

static void kind_new(struct kind *k, enum speed speed, enum way way, const char *name)
{
    *k = (struct kind){.way = way};
    snprintf(k->name, sizeof k->name, "%s %s", speed_names[speed], name);
    h3_fill(&k->h, 9);
    if (way == SLICED)
        flexible_new(&k->x, speed, TAMIS_XXH3, true, 500);
    else
        flexible_rows(&k->x, speed, 500);
    if (way == DIRECT || way == SHIFT)
        lab_own_probes(k->x.filter[0], way == DIRECT ? probe_direct : probe_shift, &k->h);
}

static void kind_add(struct kind *k, const uint64_t *keys, size_t n)
{
    if (k->way == OURS || k->way == SLICED) {
        flexible_add(&k->x, keys, n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        tamis_digest d = {(uint32_t)keys[i], 0};
        h3_take(&k->h, (uint32_t)keys[i]);
        flexible_add_digest(&k->x, d);
    }
}

/* Algorithm 3 over the vectors of one filter. */
static bool query(const struct layers *layers, tamis_digest digest)
{
    for (uint32_t i = layers_count(layers); i-- > 0;)
        if (layers->v[i]->bits.kernel->has_one(&layers->v[i]->bits, digest))
            return true;
    return false;
}

/* Hits are added up, so that no query is skipped; both ways of the paper must have the same. */
static void kind_time(struct kind *k, const uint64_t *keys, size_t n, unsigned place)
{
    const tamis_filter *f = k->x.filter[0];
    struct layers *layers = set_layers(&f->set);
    double start = lab_seconds();
    for (size_t i = 0; i < n; i++) {
        tamis_digest d = {(uint32_t)keys[i], 0};
        uint8_t found = 0;
        if (k->way == SHIFT)
            h3_take(&k->h, (uint32_t)keys[i]);
        if (k->way == OURS || k->way == SLICED)
            d = tamis_filter_digest(f, &keys[i], 8);
        if (k->way == SLICED)
            tamis_filter_has_many(f, &d, 1, &found);
        else
            found = query(layers, d);
        k->hits += found;
    }
    k->now = (lab_seconds() - start) * 1e9 / (double)n;
    mean_add(&k->time[place], k->now);
}

/* ---- all kinds on one trace ------------------------------------------------------------------- */

enum { PER_SPEED = 3, DBF_AT = PER_SPEED * (LAMBDA5 + 1), SLICED_AT, KINDS };

static void kinds_new(struct kind *kinds)
{
    static const char *const names[] = {"direct", "shifting", "ours"};
    for (enum speed speed = LAMBDA1; speed <= LAMBDA5; speed++)
        for (enum way way = DIRECT; way <= OURS; way++)
            kind_new(&kinds[PER_SPEED * speed + way], speed, way, names[way]);
    kind_new(&kinds[DBF_AT], DBF, SHIFT, "rows");
    kind_new(&kinds[SLICED_AT], DBF, SLICED, "bit-sliced");
}

struct quotients {
    struct mean direct, dbf, ours;
};

static void print(const struct kind *kinds, const struct quotients *q, const char *suffix,
                  size_t arrivals)
{
    char figure[16];
    for (unsigned i = 0; i < KINDS; i++) {
        snprintf(figure, sizeof figure, "f%s%s", kinds[i].way == DIRECT ? "10" : "9", suffix);
        for (unsigned p = 0; p < TRACE_PLACES; p++)
            lab_measured(figure, kinds[i].name, (double)((p + 1) * (arrivals / TRACE_PLACES)),
                         &kinds[i].time[p]);
    }
    if (!q)
        return;
    for (enum speed speed = LAMBDA1; speed <= LAMBDA5; speed++) {
        const struct kind *k = &kinds[PER_SPEED * speed];
        double x = speed + 1;
        lab_exact("ratio", "answers that differ", x,
                  fabs((double)k[DIRECT].hits - (double)k[SHIFT].hits));
        lab_exact("ratio", "vectors", x, flexible_rounds(&k[DIRECT].x) + 1);
        lab_exact("ratio", "one over vectors", x, 1 / (double)(flexible_rounds(&k[DIRECT].x) + 1));
        lab_measured("ratio", "shifting over direct", x, &q[speed].direct);
        lab_measured("ratio", "shifting over DBF", x, &q[speed].dbf);
        lab_measured("ratio", "ours over DBF", x, &q[speed].ours);
    }
    lab_exact("ratio", "vectors", DBF + 1, flexible_rounds(&kinds[DBF_AT].x) + 1);
}

static void one_trace(const char *suffix, const uint64_t *arrivals, size_t n, bool quotients)
{
    struct kind *kinds = lab_alloc(KINDS, sizeof *kinds);
    struct quotients q[LAMBDA5 + 1] = {0};
    struct trace t;
    uint64_t *copy = lab_alloc(n, sizeof *copy), *asked = lab_alloc(1000, sizeof *asked),
             state = 501;
    size_t some = lab_size(50, 100, 200);
    memcpy(copy, arrivals, n * sizeof *copy);
    trace_of(&t, copy, n);
    kinds_new(kinds);
    for (unsigned p = 0; p < TRACE_PLACES; p++) {
        size_t end = (p + 1) * (n / TRACE_PLACES), from = p ? t.upto[p - 1] : 0;
        for (unsigned i = 0; i < KINDS; i++)
            kind_add(&kinds[i], t.keys + from, t.upto[p] - from);
        for (uint64_t r = 0; r < lab_size(8, 20, 100); r++) {
            for (size_t i = 0; i < some; i++) /* n / 2 arrivals follow */
                asked[i] = arrivals[rng_below(&state, end + n / 2)];
            for (unsigned i = 0; i < KINDS; i++)
                kind_time(&kinds[i], asked, some, p);
            for (enum speed speed = LAMBDA1; speed <= LAMBDA5 && p + 1 == TRACE_PLACES; speed++) {
                const struct kind *k = &kinds[PER_SPEED * speed];
                mean_add(&q[speed].direct, k[SHIFT].now / k[DIRECT].now);
                mean_add(&q[speed].dbf, k[SHIFT].now / kinds[DBF_AT].now);
                mean_add(&q[speed].ours, k[OURS].now / kinds[DBF_AT].now);
            }
        }
    }
    print(kinds, quotients ? q : NULL, suffix, n);
    for (unsigned i = 0; i < KINDS; i++)
        flexible_free(&kinds[i].x);
    trace_free(&t);
    free(kinds);
    free(asked);
}

int main(void)
{
    size_t n = lab_size(20000, 200000, 1000000);
    double share = (double)flexible_mawi(299) / 1e6; /* smaller runs have it too */
    uint64_t *arrivals = lab_alloc(n + n / 2, sizeof *arrivals);
    lab_head();
    lab_keys(500, arrivals, n + n / 2);
    one_trace("", arrivals, n, false);
    free(arrivals);
    arrivals = trace_addresses(n, n / 2, share * (double)n, 299);
    one_trace("m", arrivals, n, true);
    free(arrivals);
    return 0;
}
