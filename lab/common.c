/* See common.h. */
#include "common.h"

#include <math.h>
#include <time.h>

#include "set/set.h"

#define CHUNK 4096

bool lab_is(const char *size)
{
    const char *set = getenv("LAB");
    return set && strcmp(set, size) == 0;
}

uint64_t lab_size(uint64_t small, uint64_t normal, uint64_t full)
{
    return lab_is("small") ? small : lab_is("full") ? full : normal;
}

void lab_must(tamis_error error, const char *call, const char *file, int line)
{
    if (error == TAMIS_OK)
        return;
    fprintf(stderr, "%s:%d: %s: %s\n", file, line, call, tamis_error_text(error));
    exit(1);
}

void *lab_alloc(size_t n, size_t size)
{
    void *memory = calloc(n ? n : 1, size);
    if (!memory)
        lab_must(TAMIS_ENOMEM, "calloc", __FILE__, __LINE__);
    return memory;
}

/* ---- numbers --------------------------------------------------------------------------------- */

uint64_t lab_seed(void)
{
    const char *set = getenv("LAB_SEED");
    return set ? strtoull(set, NULL, 10) : 1;
}

/* SplitMix64: a bijection of a counter, so distinct states give distinct numbers. */
uint64_t rng_next(uint64_t *state)
{
    return mix64(*state += GOLDEN);
}

uint64_t rng_below(uint64_t *state, uint64_t n)
{
    return (uint64_t)(((unsigned __int128)rng_next(state) * n) >> 64);
}

void rng_shuffle(uint64_t *state, uint64_t *values, size_t n)
{
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)rng_below(state, i);
        uint64_t swap = values[i - 1];
        values[i - 1] = values[j];
        values[j] = swap;
    }
}

/* Streams are 2^32 counters apart, and none asks for this many keys. */
void lab_keys(uint64_t stream, uint64_t *keys, size_t n)
{
    uint64_t base = mix64(lab_seed()) + (stream << 32);
    for (size_t i = 0; i < n; i++)
        keys[i] = mix64(base + i);
}

void lab_family(uint64_t stream, uint8_t key[TAMIS_KEY_LEN])
{
    uint64_t words[2], state = mix64(lab_seed() * 3 + 1) ^ stream;
    words[0] = rng_next(&state);
    words[1] = rng_next(&state);
    memcpy(key, words, TAMIS_KEY_LEN);
}

double lab_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void mean_add(struct mean *s, double value)
{
    s->n++;
    s->sum += value;
    s->squares += value * value;
}

double mean_of(const struct mean *s)
{
    return s->n ? s->sum / (double)s->n : NAN;
}

double mean_error(const struct mean *s)
{
    if (s->n < 2)
        return 0;
    double mean = mean_of(s), n = (double)s->n;
    return sqrt(fmax(0, s->squares / n - mean * mean) / (n - 1));
}

/* ---- lines ----------------------------------------------------------------------------------- */

void lab_head(void)
{
    puts("figure,series,kind,x,y,error,spread,runs,asked");
}

void lab_formula(const char *figure, const char *series, double x, double y)
{
    printf("%s,%s,formula,%.12g,%.9g,,,,\n", figure, series, x, y);
}

static void line(const char *figure, const char *series, double x, double y, double error,
                 uint64_t runs, uint64_t asked)
{
    printf("%s,%s,measured,%.12g,%.9g,%.6g,%.6g,%" PRIu64 ",%" PRIu64 "\n", figure, series, x, y,
           error, error * sqrt((double)runs), runs, asked);
}

void lab_exact(const char *figure, const char *series, double x, double y)
{
    line(figure, series, x, y, 0, 0, 0);
}

void lab_value(const char *figure, const char *series, double x, double y, double error,
               uint64_t runs)
{
    line(figure, series, x, y, error, runs, 0);
}

void lab_measured(const char *figure, const char *series, double x, const struct mean *s)
{
    line(figure, series, x, mean_of(s), mean_error(s), s->n, 0);
}

void lab_rate(const char *figure, const char *series, double x, const struct mean *s,
              uint64_t asked)
{
    line(figure, series, x, mean_of(s), mean_error(s), s->n, asked * s->n);
}

/* ---- filters --------------------------------------------------------------------------------- */

tamis_filter *lab_filter(const tamis_options *options)
{
    tamis_filter *f;
    tamis_reason reason = {0};
    tamis_error e = tamis_filter_new(&f, options, &reason);
    if (e != TAMIS_OK)
        fprintf(stderr, "%s\n", reason.text);
    MUST(e);
    return f;
}

tamis_filter *lab_published(tamis_growth growth, uint64_t bits, unsigned hashes, uint64_t capacity,
                            uint64_t stream)
{
    uint8_t family[TAMIS_KEY_LEN];
    lab_family(stream, family);
    tamis_options o = {.growth = growth,
                       .layout = TAMIS_SPREAD,
                       .bits = bits,
                       .hashes = hashes,
                       .capacity = capacity,
                       .key = family,
                       .add_always = growth != TAMIS_FIXED,
                       .overfill = true};
    return lab_filter(&o);
}

void lab_own_probes(tamis_filter *f, probe_fn probe, void *context)
{
    struct layers *stack = set_layers(&f->set);
    MUST(terms_own(&f->set));
    struct terms *terms = set_terms(&f->set);
    terms->family.probe = probe;
    terms->family.probe_context = context;
    for (uint32_t i = 0; i < layers_count(stack); i++)
        stack->v[i]->bits.kernel = kernel_choose(terms->opt.layout, &terms->family);
    set_quick(&f->set);
}

tamis_filter *lab_filter_own(const tamis_options *options, probe_fn probe, void *context)
{
    tamis_filter *f = lab_filter(options);
    lab_own_probes(f, probe, context);
    return f;
}

void lab_probe_11(const struct family *family, tamis_digest digest, uint64_t units, unsigned k,
                  uint64_t *positions)
{
    uint64_t g1 = 1 + mul_high(digest.a, units), g2 = 1 + mul_high(digest.b, units);
    (void)family;
    for (unsigned i = 0; i < k; i++)
        positions[i] = (g1 + i * g2) % units;
}

int lab_count_bytes(void *context, const void *data, size_t len)
{
    (void)data;
    *(uint64_t *)context += len;
    return 0;
}

void lab_add(tamis_filter *filter, const uint64_t *keys, size_t n)
{
    tamis_digest digests[CHUNK];
    for (size_t i = 0; i < n; i += CHUNK) {
        size_t some = n - i < CHUNK ? n - i : CHUNK;
        tamis_filter_digest_fixed(filter, keys + i, 8, some, digests);
        MUST(tamis_filter_add_many(filter, digests, some, NULL, NULL));
    }
}

size_t lab_count(const tamis_filter *filter, const uint64_t *keys, size_t n)
{
    tamis_digest digests[CHUNK];
    uint8_t found[CHUNK];
    size_t hits = 0;
    for (size_t i = 0; i < n; i += CHUNK) {
        size_t some = n - i < CHUNK ? n - i : CHUNK;
        tamis_filter_digest_fixed(filter, keys + i, 8, some, digests);
        tamis_filter_has_many(filter, digests, some, found);
        for (size_t j = 0; j < some; j++)
            hits += found[j];
    }
    return hits;
}

double lab_false_rate(const tamis_filter *filter, uint64_t stream, uint64_t asked)
{
    uint64_t keys[CHUNK], hits = 0;
    uint64_t base = mix64(lab_seed()) + ((stream + (UINT64_C(1) << 30)) << 32);
    for (uint64_t i = 0; i < asked; i += CHUNK) {
        size_t some = asked - i < CHUNK ? (size_t)(asked - i) : CHUNK;
        for (size_t j = 0; j < some; j++)
            keys[j] = mix64(base + i + j);
        hits += lab_count(filter, keys, some);
    }
    return (double)hits / (double)asked;
}

uint64_t lab_bits(const tamis_filter *filter)
{
    tamis_filter_facts info;
    tamis_filter_info(filter, &info);
    return info.bits;
}
