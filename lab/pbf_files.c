/*
 * Parallel filters on file metadata: figures 20 and 21. The paper takes a trace of a file server; here
 * it is the files of this machine under /usr, with the same three attributes: name, device, time of
 * last change. Structures are the library's own, for a stated rate of 5 %: one filter on the
 * concatenated record (SBF), records without verifier (PBF), with a table (PBF-HT), with a filter
 * (PBF-BF). Asked: files that are not there at all, and recombinations of name and time that are.
 */
#include "common_trace.h"
#include "tamis/records.h"

#define FPP 0.05

enum structure { SBF, PBF, HT, BF, STRUCTURES };
static const char *const names[STRUCTURES] = {"SBF", "PBF", "PBF-HT", "PBF-BF"};

struct structures {
    tamis_filter *sbf;
    tamis_records *set[STRUCTURES];
};

/* The record as three keys; `name` of one file and `changed` of another. */
static void record_of(const struct lab_file *name, const struct lab_file *changed, tamis_key *out)
{
    out[0] = (tamis_key){name->name, strlen(name->name)};
    out[1] = (tamis_key){&name->device, sizeof name->device};
    out[2] = (tamis_key){&changed->changed, sizeof changed->changed};
}

static size_t concatenate(const tamis_key *record, char *out)
{
    size_t len = 0;
    for (unsigned i = 0; i < 3; i++) {
        memcpy(out + len, record[i].data, record[i].len);
        len += record[i].len;
        out[len++] = 0;
    }
    return len;
}

static void build(struct structures *s, const struct lab_file *files, size_t n, uint64_t stream)
{
    const tamis_attribute attributes[] = {
        {.name = "name"}, {.name = "device", .distinct = 8}, {.name = "changed"}};
    uint8_t family[TAMIS_KEY_LEN];
    lab_family(stream, family);
    tamis_options o = {.growth = TAMIS_FIXED, .fpp = FPP, .capacity = n, .key = family};
    s->sbf = lab_filter(&o);
    for (enum structure i = PBF; i < STRUCTURES; i++) {
        tamis_records_options x = {.attributes = attributes,
                                   .n_attributes = 3,
                                   .no_combos = true,
                                   .verifier = (tamis_verifier)(TAMIS_VERIFIER_NONE + i - PBF),
                                   .set.fpp = FPP,
                                   .set.capacity = n,
                                   .set.growth = TAMIS_FIXED,
                                   .set.key = family};
        MUST(tamis_records_new(&s->set[i], &x, NULL));
    }
    for (size_t i = 0; i < n; i++) {
        tamis_key record[3];
        char text[600];
        record_of(&files[i], &files[i], record);
        MUST(tamis_filter_add(s->sbf, text, concatenate(record, text), NULL));
        for (enum structure j = PBF; j < STRUCTURES; j++)
            MUST(tamis_records_add(s->set[j], record, NULL));
    }
}

static bool has(const struct structures *s, enum structure which, const tamis_key *record)
{
    char text[600];
    if (which == SBF)
        return tamis_filter_has(s->sbf, text, concatenate(record, text));
    return tamis_records_has(s->set[which], record, 0).maybe;
}

/* Question i: 0 a stored file, 1 a file that is not there, 2 a name and a time that are, of two files
   whose times differ. */
static void question(const struct lab_file *files, size_t n, unsigned class, uint64_t *state,
                     struct lab_file *made, tamis_key *record)
{
    const struct lab_file *a = &files[rng_below(state, n)], *b = a;
    if (class == 1) {
        snprintf(made->name, sizeof made->name, "no-such-file-%" PRIx64, rng_next(state));
        made->device = a->device;
        made->changed = rng_next(state);
        a = b = made;
    }
    while (class == 2 && b->changed == a->changed)
        b = &files[rng_below(state, n)];
    record_of(a, b, record);
}

/* ---- figure 20 ------------------------------------------------------------------------------- */

/* A name may be there several times, with several times of change: then a pair may be real. Pairs are
   known by their hashes, sorted. */
static uint64_t pair_of(const tamis_key *record)
{
    uint64_t changed;
    memcpy(&changed, record[2].data, sizeof changed);
    return XXH3_64bits_withSeed(record[0].data, record[0].len, changed);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static uint64_t *pairs_of(const struct lab_file *files, size_t n)
{
    uint64_t *pairs = lab_alloc(n, sizeof *pairs);
    for (size_t i = 0; i < n; i++) {
        tamis_key record[3];
        record_of(&files[i], &files[i], record);
        pairs[i] = pair_of(record);
    }
    qsort(pairs, n, sizeof *pairs, by_value);
    return pairs;
}

static const char *const figures[] = {"members", "f20", "f20 recombined"};

struct shares {
    struct mean of[3][STRUCTURES];
    uint64_t asked[3];
};

static void ask(struct shares *shares, const struct structures *s, const struct lab_file *files,
                size_t n, const uint64_t *pairs, uint64_t *state)
{
    uint64_t asked = lab_size(2000, 10000, 50000);
    for (unsigned class = 0; class < 3; class ++) {
        uint64_t hits[STRUCTURES] = {0}, real = 0;
        for (uint64_t i = 0; i < asked; i++) {
            struct lab_file made;
            tamis_key record[3];
            question(files, n, class, state, &made, record);
            uint64_t pair = pair_of(record);
            if (class == 2 && bsearch(&pair, pairs, n, sizeof pair, by_value)) {
                real++;
                continue;
            }
            for (enum structure j = SBF; j < STRUCTURES; j++)
                hits[j] += has(s, j, record);
        }
        for (enum structure j = SBF; j < STRUCTURES; j++)
            mean_add(&shares->of[class][j], (double)hits[j] / (double)(asked - real));
        shares->asked[class] += asked - real;
    }
}

static void bytes_of(const struct structures *s, double x)
{
    tamis_filter_facts sbf;
    tamis_filter_info(s->sbf, &sbf);
    lab_exact("f20 bytes", "SBF", x, (double)sbf.bytes / x);
    for (enum structure j = PBF; j < STRUCTURES; j++) {
        tamis_records_facts info;
        tamis_records_info(s->set[j], &info);
        lab_exact("f20 bytes", names[j], x, (double)info.set.bytes / x);
    }
}

static void structures_free(struct structures *s)
{
    for (enum structure j = PBF; j < STRUCTURES; j++)
        tamis_records_free(s->set[j]);
    tamis_filter_free(s->sbf);
}

/* Ten repetitions in full, as published, each with hashes and questions of its own. */
static void rates(const struct lab_file *files, size_t n)
{
    struct shares shares = {0};
    uint64_t state = 77, *pairs = pairs_of(files, n), rounds = lab_size(2, 3, 10);
    double x = (double)n;
    for (uint64_t i = 0; i < rounds; i++) {
        struct structures s;
        build(&s, files, n, 1000 + i);
        ask(&shares, &s, files, n, pairs, &state);
        if (i == 0)
            bytes_of(&s, x);
        structures_free(&s);
    }
    for (unsigned class = 0; class < 3; class ++)
        for (enum structure j = SBF; j < STRUCTURES; j++)
            lab_rate(figures[class], names[j], x, &shares.of[class][j],
                     shares.asked[class] / rounds);
    free(pairs);
}

/* ---- figure 21 ------------------------------------------------------------------------------- */

/* Nanoseconds of a query, a third of each class. A repetition asks the same questions of all
   structures, one after the other. */
static void latency(const struct lab_file *files, size_t n)
{
    enum { SOME = 999 };
    struct structures s;
    struct mean time[STRUCTURES] = {0};
    struct lab_file *made = lab_alloc(SOME, sizeof *made);
    tamis_key(*records)[3] = lab_alloc(SOME, sizeof *records);
    uint64_t state = 78, hits = 0;
    build(&s, files, n, 1000);
    for (uint64_t run = 0; run < lab_size(10, 50, 300); run++) {
        for (unsigned i = 0; i < SOME; i++)
            question(files, n, i % 3, &state, &made[i], records[i]);
        for (enum structure j = SBF; j < STRUCTURES; j++) {
            double start = lab_seconds();
            for (unsigned i = 0; i < SOME; i++)
                hits += has(&s, j, records[i]);
            mean_add(&time[j], (lab_seconds() - start) * 1e9 / SOME);
        }
    }
    for (enum structure j = SBF; j < STRUCTURES; j++)
        lab_measured("f21", "nanoseconds", j + 1, &time[j]);
    lab_exact("f21", "answers", 0, (double)hits); /* so that no query is skipped */
    structures_free(&s);
    free(made);
    free(records);
}

int main(void)
{
    size_t n;
    struct lab_file *files = lab_files(lab_size(4000, 40000, 400000), &n);
    lab_head();
    for (unsigned i = 1; i <= 4; i++)
        rates(files, n * i / 4);
    latency(files, n);
    free(files);
    return 0;
}
