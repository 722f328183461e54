/*
 * Recombination, on a catalog: many segments of records with two attributes. Each value occurs in
 * every segment, but only half of all pairs ever occur. Asked for pairs that never do, a catalog that
 * knows the attributes alone names every segment; one that verifies pairs names none, but for its
 * stated rate, which is over all segments together.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "common.h"
#include "tamis/catalog.h"

#define VALUES 64

static bool stored[VALUES][VALUES];

static const tamis_attribute attributes[] = {{.name = "ip"}, {.name = "user"}};

/* Records of a segment: every value at least once, and pairs whose sum is even. */
static void gather(tamis_gather *g, uint64_t records, uint64_t *state)
{
    for (uint64_t i = 0; i < records; i++) {
        uint64_t ip = i < VALUES ? i : rng_below(state, VALUES);
        uint64_t user = (ip + 2 * rng_below(state, VALUES / 2)) % VALUES;
        tamis_key record[] = {{&ip, 8}, {&user, 8}};
        stored[ip][user] = true;
        MUST(tamis_gather_add(g, record));
    }
}

static tamis_catalog *make(const char *path, bool pairs, uint64_t segments, uint64_t records,
                           double fpp)
{
    uint8_t family[TAMIS_KEY_LEN];
    tamis_catalog_writer *w;
    tamis_gather *g;
    tamis_catalog *c;
    uint64_t state = 6000;
    lab_family(6000, family);
    tamis_catalog_options o = {.attributes = attributes,
                               .n_attributes = 2,
                               .no_combos = !pairs,
                               .fpp = fpp,
                               .segments = segments,
                               .key = family};
    MUST(tamis_catalog_create(&w, path, &o, NULL));
    MUST(tamis_gather_new(&g, tamis_catalog_writer_schema(w)));
    for (uint64_t i = 0; i < segments; i++) {
        gather(g, records, &state);
        MUST(tamis_catalog_put(w, g, &i, sizeof i, NULL));
    }
    MUST(tamis_catalog_commit(w, NULL, 0, NULL));
    tamis_gather_free(g);
    tamis_catalog_abandon(w);
    MUST(tamis_catalog_open(&c, path, NULL, NULL));
    return c;
}

static uint64_t candidates(const tamis_catalog *c, uint64_t ip, uint64_t user)
{
    uint64_t *bits = lab_alloc(tamis_catalog_segments(c) / 64 + 1, 8);
    const tamis_schema *s = tamis_catalog_schema(c);
    tamis_digest a = tamis_schema_digest(s, 0, (tamis_key){&ip, 8}),
                 b = tamis_schema_digest(s, 1, (tamis_key){&user, 8});
    tamis_condition choices[] = {{.attribute = 0, .keys = &a, .n = 1},
                                 {.attribute = 1, .keys = &b, .n = 1}};
    tamis_catalog_answer answer;
    MUST(tamis_catalog_ask(c, choices, 2, bits, &answer, NULL));
    free(bits);
    return answer.candidates;
}

static void experiment(const char *path, bool pairs, uint64_t segments, double fpp)
{
    memset(stored, 0, sizeof stored);
    tamis_catalog *c = make(path, pairs, segments, lab_size(200, 500, 1000), fpp);
    struct mean named = {0}, any = {0};
    uint64_t real = 0, denied = 0, asked = VALUES * VALUES / 2;
    char series[32];
    for (uint64_t ip = 0; ip < VALUES; ip++)
        for (uint64_t user = (ip + 1) % 2; user < VALUES; user += 2) { /* odd sum: never together */
            uint64_t n = candidates(c, ip, user);
            mean_add(&named, (double)n / (double)segments);
            mean_add(&any, n > 0);
        }
    for (uint64_t ip = 0; ip < VALUES; ip++)
        for (uint64_t user = 0; user < VALUES; user++)
            if (stored[ip][user]) {
                real++;
                denied += candidates(c, ip, user) == 0;
            }
    tamis_catalog_facts facts;
    tamis_catalog_info(c, &facts);
    snprintf(series, sizeof series, "%s", pairs ? "pairs verified" : "attributes alone");
    struct mean share = {0};
    mean_add(&share, mean_of(&any));
    lab_measured("segments named", series, (double)segments, &named);
    lab_rate("questions answered", series, (double)segments, &share, asked);
    lab_exact("bytes", series, (double)segments, (double)facts.bytes / (double)facts.records);
    lab_exact("real pairs", series, (double)segments, (double)real);
    lab_exact("real pairs denied", series, (double)segments, (double)denied);
    tamis_catalog_close(c);
    unlink(path);
}

int main(void)
{
    char folder[] = "/tmp/tamis-lab-XXXXXX", path[64];
    if (!mkdtemp(folder))
        MUST(TAMIS_EIO);
    snprintf(path, sizeof path, "%s/catalog.tamis", folder);
    lab_head();
    for (uint64_t segments = 10; segments <= lab_size(100, 1000, 1000); segments *= 10)
        for (unsigned pairs = 0; pairs < 2; pairs++)
            experiment(path, pairs, segments, 0.01);
    rmdir(folder);
    return 0;
}
