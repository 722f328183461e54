/*
 * The copies of a fleet: this many hosts and days of summaries in one folder, as `tamis where` keeps them, made
 * from synthetic records. Part of fleet.py, which gives a real piece to be like.
 *
 *     bench_fleet PIECE FOLDER HOSTS DAYS RECORDS      RECORDS of each host and day
 *
 * Records are of sessions: a user, often one of few, from one of his three addresses or (one in five) from
 * any of a million; a session has three records on average. Prints the figures of what it wrote.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "bench.h"
#include "tamis/catalog.h"

#define USERS 50000.0

static void give_up(const char *what, const tamis_reason *reason)
{
    fprintf(stderr, "bench_fleet: %s: %s\n", what, reason->text);
    exit(2);
}

static double uniform(uint64_t *rng)
{
    *rng = bench_mix(*rng + 1);
    return (double)(*rng >> 11) / 9007199254740992.0;
}

static uint64_t address_of(uint64_t user, uint64_t which)
{
    return bench_mix(3 * user + which + 77) & 0xffffff;
}

/* One host and day; attributes as the piece has them: ip, user, and the time by its bounds alone. */
static void gather_day(tamis_gather *g, uint64_t seed, int64_t day, uint64_t records)
{
    uint64_t rng = seed, user = 0, ip = 0;
    char text[3][40];
    tamis_key keys[3];
    for (uint64_t i = 0; i < records; i++) {
        if (i == 0 || uniform(&rng) < 1.0 / 3) {
            user = (uint64_t)exp(uniform(&rng) * log(USERS));
            ip = uniform(&rng) < 0.8 ? address_of(user, (uint64_t)(3 * uniform(&rng)))
                                     : 0x1000000 + (uint64_t)(1e6 * uniform(&rng));
        }
        snprintf(text[0], 40, "%u.%u.%u.%u", 10 + (unsigned)(ip >> 24), (unsigned)(ip >> 16 & 255),
                 (unsigned)(ip >> 8 & 255), (unsigned)(ip & 255));
        snprintf(text[1], 40, "user%u", (unsigned)user);
        snprintf(text[2], 40, "%lld", (long long)(day * 86400 + (int64_t)(i % 86400)));
        for (unsigned a = 0; a < 3; a++)
            keys[a] = (tamis_key){text[a], strlen(text[a])};
        if (tamis_gather_add(g, keys) != TAMIS_OK)
            exit(2);
    }
    tamis_gather_text(g, 70 * records);
}

static void write_status(const char *folder, unsigned hosts)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/status", folder);
    FILE *f = fopen(path, "w");
    if (!f)
        exit(2);
    fprintf(f, "tamis copies of a fleet 1\nnext 1\nfile 0\n");
    for (unsigned i = 0; i < hosts; i++)
        fprintf(f, "host web%04u 1793000000 0 %%2Fvar%%2Flog%%2Etamis -\n", i);
    fprintf(f, "end\n");
    fclose(f);
}

#define QUESTIONS 200

/* A user and an address of another user: both are nearly everywhere, and never in one record. */
static unsigned ask_pair(const tamis_catalog *c, uint64_t *bits, unsigned i)
{
    const tamis_schema *s = tamis_catalog_schema(c);
    char ip[40], user[40];
    uint64_t address = address_of(1 + i % 50, i % 3);
    tamis_catalog_answer answer;
    snprintf(ip, sizeof ip, "10.%u.%u.%u", (unsigned)(address >> 16 & 255),
             (unsigned)(address >> 8 & 255), (unsigned)(address & 255));
    snprintf(user, sizeof user, "user%u", 60 + i / 50);
    tamis_digest d[2] = {tamis_schema_digest(s, 0, (tamis_key){ip, strlen(ip)}),
                         tamis_schema_digest(s, 1, (tamis_key){user, strlen(user)})};
    const tamis_condition asked[2] = {{.attribute = 0, .keys = &d[0], .n = 1},
                                      {.attribute = 1, .keys = &d[1], .n = 1}};
    memset(bits, 0, (tamis_catalog_segments(c) / 64 + 1) * sizeof *bits);
    if (tamis_catalog_ask(c, asked, 2, bits, &answer, NULL) != TAMIS_OK)
        exit(2);
    return answer.candidates > 0;
}

static void ask_pairs(const tamis_catalog *c)
{
    uint64_t *bits = malloc((tamis_catalog_segments(c) / 64 + 1) * sizeof *bits);
    unsigned wrong = 0;
    double first = bench_used();
    for (unsigned i = 0; bits && i < QUESTIONS; i++)
        wrong += ask_pair(c, bits, i);
    double again = bench_used();
    for (unsigned i = 0; bits && i < QUESTIONS; i++)
        ask_pair(c, bits, i);
    printf(
        "absent pairs, by the library: %.2f ms each, %.2f when asked again; %u of %d named a host-day\n",
        (again - first) / QUESTIONS * 1e3, (bench_used() - again) / QUESTIONS * 1e3, wrong,
        QUESTIONS);
    free(bits);
}

int main(int argc, char **argv)
{
    tamis_catalog *piece, *all;
    tamis_catalog_writer *w;
    tamis_gather *g;
    tamis_reason reason = {0};
    tamis_relation_facts r;
    char path[4096], tag[64];
    size_t len;
    if (argc != 6 || tamis_catalog_open(&piece, argv[1], NULL, &reason) != TAMIS_OK)
        give_up("PIECE FOLDER HOSTS DAYS RECORDS", &reason);
    unsigned hosts = (unsigned)atoi(argv[3]), days = (unsigned)atoi(argv[4]);
    uint64_t records = (uint64_t)atoll(argv[5]);
    const void *note = tamis_catalog_note(piece, &len);
    const tamis_catalog_options o = {.like = tamis_catalog_schema(piece), .joinable = true};
    mkdir(argv[2], 0700);
    snprintf(path, sizeof path, "%s/0.tamis", argv[2]);
    double start = bench_now();
    if (tamis_catalog_create(&w, path, &o, &reason) != TAMIS_OK ||
        tamis_gather_new(&g, tamis_catalog_writer_schema(w)) != TAMIS_OK)
        give_up(path, &reason);
    for (unsigned d = 0; d < days; d++)
        for (unsigned h = 0; h < hosts; h++) {
            gather_day(g, 1000003ull * d + h, 20700 + d, records);
            int n = snprintf(tag, sizeof tag, "web%04u 1 %u %u", h, d + 1, 20700 + d);
            if (tamis_catalog_put(w, g, tag, (size_t)n, &reason) != TAMIS_OK)
                give_up(path, &reason);
        }
    if (tamis_catalog_commit(w, note, len, &reason) != TAMIS_OK)
        give_up(path, &reason);
    tamis_catalog_abandon(w);
    write_status(argv[2], hosts);
    if (tamis_catalog_open(&all, path, NULL, &reason) != TAMIS_OK)
        give_up(path, &reason);
    tamis_catalog_facts facts;
    tamis_catalog_info(all, &facts);
    uint64_t distinct = 0;
    for (uint32_t i = 0; tamis_catalog_relation(all, i, &r); i++)
        distinct += r.distinct;
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    printf("%llu records, %llu host-days, %.2f distinct values and pairs a record\n",
           (unsigned long long)facts.records, (unsigned long long)facts.segments,
           (double)distinct / (double)facts.records);
    printf(
        "copies: %.1f MB, %.2f bytes per record, %u strips; made in %.0f s with %.0f MB of memory\n",
        (double)facts.bytes / 1e6, (double)facts.bytes / (double)facts.records, facts.strips,
        bench_now() - start, (double)used.ru_maxrss / 1e3);
    for (uint32_t i = 0; tamis_catalog_relation(all, i, &r); i++)
        if (r.mask & (r.mask - 1))
            printf("pairs that never occur together: %.2g of the questions name a host-day\n",
                   r.fpp_now);
    ask_pairs(all);
    tamis_catalog_close(all);
    tamis_catalog_close(piece);
    tamis_gather_free(g);
    return 0;
}
