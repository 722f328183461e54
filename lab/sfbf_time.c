/*
 * Flexible filters, time of a query: figures 9 and 10. The addresses are the paper's: k matrices over
 * GF(2) of 32 rows and columns. "Direct" multiplies for every vector anew; "shifting" multiplies once
 * and takes for each vector the first bits of the address (Theorem 4). Beside them DBF, whose vectors
 * share one address, row by row and as this library keeps it (bit-sliced), and the library's own
 * flexible filter. Asked is for items that were never inserted: all vectors are looked at.
 */
#include <math.h>

#include "common_flexible.h"

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

enum way { DIRECT, SHIFT, OURS };

/* Nanoseconds of one question, the least of three runs; hits are added up so that none is skipped. */
static double time_of(const struct flexible *x, struct h3 *h, enum way way, const uint64_t *keys,
                      size_t n, uint64_t *hits)
{
    double least = INFINITY;
    for (unsigned run = 0; run < 3; run++) {
        double start = lab_seconds();
        for (size_t i = 0; i < n; i++) {
            tamis_digest d = {(uint32_t)keys[i], 0};
            uint8_t found;
            if (way == SHIFT)
                h3_take(h, (uint32_t)keys[i]);
            if (way == OURS)
                d = tamis_filter_digest(x->filter, &keys[i], 8);
            tamis_filter_has_many(x->filter, &d, 1, &found);
            *hits += found;
        }
        least = fmin(least, (lab_seconds() - start) * 1e9 / (double)n);
    }
    return least;
}

static void fill(struct flexible *x, struct h3 *h, enum way way, const uint64_t *keys, size_t n)
{
    if (way == OURS) {
        flexible_add(x, keys, n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        tamis_digest d = {(uint32_t)keys[i], 0};
        h3_take(h, (uint32_t)keys[i]);
        MUST(tamis_filter_add_many(x->filter, &d, 1, NULL, NULL));
        if (i % 32 == 31)
            flexible_draw(x);
    }
}

/* After n items, at a few sizes; the two ways must give the same answers. */
static void one_speed(enum speed speed, const uint64_t *keys, uint64_t n, double *last)
{
    static const char *const ways[] = {"direct", "shifting", "ours"};
    size_t asked = lab_size(500, 2000, 5000);
    uint64_t hits[3] = {0};
    for (enum way way = DIRECT; way <= OURS; way++) {
        struct flexible x;
        struct h3 h;
        char name[48];
        h3_fill(&h, 9);
        flexible_new(&x, speed, TAMIS_XXH3, false, 500);
        if (way != OURS)
            lab_own_probes(x.filter, way == DIRECT ? probe_direct : probe_shift, &h);
        snprintf(name, sizeof name, "%s %s", speed_names[speed], ways[way]);
        for (unsigned place = 1; place <= 5; place++) {
            fill(&x, &h, way, keys + (place - 1) * n / 5, n / 5);
            last[way] = time_of(&x, &h, way, keys + n, asked, &hits[way]);
            lab_exact(way == DIRECT ? "f10" : "f9", name, (double)(place * n / 5), last[way]);
        }
        tamis_filter_free(x.filter);
    }
    lab_exact("ratio", "answers that differ", speed + 1, fabs((double)hits[0] - (double)hits[1]));
    lab_exact("ratio", "shifting over direct", speed + 1, last[SHIFT] / last[DIRECT]);
}

/* DBF, row by row with one address for all, and bit-sliced. */
static double dbf(const uint64_t *keys, uint64_t n)
{
    size_t asked = lab_size(500, 2000, 5000);
    uint64_t hits = 0;
    double last = 0;
    for (unsigned sliced = 0; sliced < 2; sliced++) {
        struct flexible x;
        struct h3 h;
        h3_fill(&h, 9);
        flexible_new(&x, sliced ? DBF : DBF_ROWS, TAMIS_XXH3, false, 500);
        if (!sliced)
            lab_own_probes(x.filter, probe_shift, &h);
        for (unsigned place = 1; place <= 5; place++) {
            fill(&x, &h, sliced ? OURS : SHIFT, keys + (place - 1) * n / 5, n / 5);
            double t = time_of(&x, &h, sliced ? OURS : SHIFT, keys + n, asked, &hits);
            lab_exact("f9", sliced ? "DBF bit-sliced" : "DBF rows", (double)(place * n / 5), t);
            if (!sliced)
                last = t;
        }
        tamis_filter_free(x.filter);
    }
    return last;
}

int main(void)
{
    uint64_t n = lab_size(10000, 100000, 1000000), *keys = lab_alloc(n + 5000, sizeof *keys);
    double last[3];
    lab_keys(500, keys, n + 5000);
    lab_head();
    double rows = dbf(keys, n);
    for (enum speed speed = LAMBDA1; speed <= LAMBDA5; speed++) {
        one_speed(speed, keys, n, last);
        lab_exact("ratio", "shifting over DBF", speed + 1, last[SHIFT] / rows);
        lab_exact("ratio", "ours over DBF", speed + 1, last[OURS] / rows);
    }
    free(keys);
    return 0;
}
