/* Lines seen before. See seen_lines.h. */
#include "seen_lines.h"
#include "base/base.h"

#include <stdlib.h>
#include <string.h>

#define LEVELS_MAX 64
#define FIRST_KEYS ((uint64_t)1 << 18) /* keys of the first level: 0.8 MiB per filter */
#define PAIR_BELOW 1e-5                /* rate below which two filters take fewer bits than one */
#define RECENT     64                  /* batches over which the share of new keys is measured */

struct level {
    tamis_filter *filter[2];
    uint64_t capacity, load;
    uint64_t units;
    unsigned k;
};

struct sieve {
    double fpp;
    unsigned pair; /* filters per level: 1 or 2 */
    bool told;     /* the capacity was given */
    bool foreseen; /* the number of keys to come was known at least once */
    struct level level[LEVELS_MAX];
    unsigned n;
    uint64_t total;   /* capacity of all levels */
    uint64_t to_come; /* keys still to come, new or not; 0: unknown */
    uint64_t recent[RECENT], recent_new[RECENT];
    size_t turn;
};

/* ---- levels ---------------------------------------------------------------------------------- */

/* Newton's square root, for a rate. */
static double root(double p)
{
    double x = 1;
    for (int i = 0; i < 100; i++)
        x = (x + p / x) / 2;
    return x;
}

/* The share of the rate for the next level. A level sized for everything to come gets nine
   tenths, and later ones halve the rest. Without foresight six levels, which reach a hundred
   million keys, get a seventh each. The small first one gets little, which costs little. */
static double level_rate(const struct sieve *s)
{
    bool sized = s->told || s->foreseen;
    unsigned first = s->told ? 0 : 1, even = sized ? 1 : 6;
    double part = sized ? 0.9 : 1.0 / 7;
    if (s->n < first)
        return s->fpp / 64;
    for (unsigned i = first + even; i <= s->n; i++)
        part = i == first + even ? (sized ? 0.04 : 0.06) : part / 2;
    return s->fpp * part;
}

static tamis_error level_add(struct sieve *s, uint64_t capacity)
{
    struct level *level = &s->level[s->n];
    double rate = level_rate(s);
    tamis_error e = s->n < LEVELS_MAX ? TAMIS_OK : TAMIS_ELIMIT;
    tamis_options o = {.fpp = s->pair == 2 ? root(rate) : rate,
                       .capacity = capacity,
                       .growth = TAMIS_FIXED,
                       .layout = TAMIS_BLOCKED,
                       .overfill = true};
    *level = (struct level){.capacity = capacity};
    for (unsigned i = 0; i < s->pair && e == TAMIS_OK; i++)
        e = tamis_filter_new(&level->filter[i], &o, NULL);
    if (e != TAMIS_OK) {
        tamis_filter_free(level->filter[0]);
        return e;
    }
    tamis_plan_size size = tamis_plan_vector(TAMIS_BLOCKED, capacity, o.fpp);
    level->units = size.units;
    level->k = size.k;
    s->total += capacity;
    s->n++;
    return TAMIS_OK;
}

/* Capacity of the next level: what is still to come if the recent share of new keys continues;
   otherwise 32 times, 4 times, then half the total. A forecast is trusted only up to a limit. */
static uint64_t next_capacity(const struct sieve *s)
{
    uint64_t keys = 0, fresh = 0, most = 16 * s->total;
    for (size_t i = 0; i < RECENT; i++) {
        keys += s->recent[i];
        fresh += s->recent_new[i];
    }
    if (s->to_come && keys) {
        uint64_t next = (uint64_t)((double)s->to_come * ((double)fresh / (double)keys) * 1.005) +
                        2 * SIEVE_BATCH;
        most = most < 256 * FIRST_KEYS ? 256 * FIRST_KEYS : most;
        return next > most ? most : next < FIRST_KEYS ? FIRST_KEYS : next;
    }
    return s->n == 1 ? 32 * FIRST_KEYS : s->n == 2 ? 128 * FIRST_KEYS : s->total / 2;
}

struct sieve *sieve_new(double fpp, uint64_t capacity)
{
    struct sieve *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->fpp = fpp;
    s->pair = fpp < PAIR_BELOW ? 2 : 1;
    s->told = capacity != 0;
    if (level_add(s, capacity ? capacity : FIRST_KEYS) == TAMIS_OK)
        return s;
    free(s);
    return NULL;
}

void sieve_free(struct sieve *s)
{
    for (unsigned i = 0; s && i < s->n; i++) {
        tamis_filter_free(s->level[i].filter[0]);
        tamis_filter_free(s->level[i].filter[1]);
    }
    free(s);
}

const tamis_filter *sieve_family(const struct sieve *s)
{
    return s->level[0].filter[0];
}

void sieve_foresee(struct sieve *s, uint64_t keys)
{
    s->to_come = keys;
    s->foreseen = keys != 0;
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* Digests for the second filter: each word is mixed from the other one. */
static void second(const tamis_digest *from, size_t n, tamis_digest *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (tamis_digest){
            mul_fold(from[i].b ^ GOLDEN, UINT64_C(0xD6E8FEB86659FD93)),
            mul_fold(from[i].a ^ UINT64_C(0xC2B2AE3D27D4EB4F), UINT64_C(0xA0761D6478BD642F))};
}

/* Keys still to be decided, and where each came from. */
struct undecided {
    tamis_digest digest[SIEVE_BATCH];
    uint16_t who[SIEVE_BATCH];
    size_t n;
};

/* Removes keys from the rest that the level has. */
static void level_ask(const struct sieve *s, const struct level *level, struct undecided *rest)
{
    tamis_digest some[SIEVE_BATCH], other[SIEVE_BATCH];
    uint8_t found[SIEVE_BATCH], both[SIEVE_BATCH];
    size_t n = 0, kept = 0;
    tamis_filter_has_many(level->filter[0], rest->digest, rest->n, found);
    if (s->pair == 2) {
        for (size_t i = 0; i < rest->n; i++) {
            some[n] = rest->digest[i];
            n += found[i];
        }
        second(some, n, other);
        tamis_filter_has_many(level->filter[1], other, n, both);
        n = 0;
        for (size_t i = 0; i < rest->n; i++)
            found[i] = found[i] && both[n++];
    }
    for (size_t i = 0; i < rest->n; i++) {
        rest->digest[kept] = rest->digest[i];
        rest->who[kept] = rest->who[i];
        kept += !found[i];
    }
    rest->n = kept;
}

static tamis_error level_put(const struct sieve *s, struct level *level,
                             const struct undecided *rest, uint8_t *fresh)
{
    tamis_digest other[SIEVE_BATCH];
    uint8_t here[SIEVE_BATCH], there[SIEVE_BATCH] = {0};
    tamis_error e = tamis_filter_add_many(level->filter[0], rest->digest, rest->n, here, NULL);
    if (e == TAMIS_OK && s->pair == 2) {
        second(rest->digest, rest->n, other);
        e = tamis_filter_add_many(level->filter[1], other, rest->n, there, NULL);
    }
    for (size_t i = 0; e == TAMIS_OK && i < rest->n; i++) {
        fresh[rest->who[i]] = here[i] | there[i];
        level->load += here[i] | there[i];
    }
    return e;
}

tamis_error sieve_add(struct sieve *s, const tamis_digest *digests, size_t n, uint8_t *fresh)
{
    struct level *last = &s->level[s->n - 1];
    struct undecided rest;
    if (last->load + n > last->capacity) {
        tamis_error e = level_add(s, next_capacity(s));
        if (e != TAMIS_OK)
            return e;
        last = &s->level[s->n - 1];
    }
    memset(fresh, 0, n);
    memcpy(rest.digest, digests, n * sizeof *digests);
    for (size_t i = 0; i < n; i++)
        rest.who[i] = (uint16_t)i;
    rest.n = n;
    for (unsigned i = 0; i + 1 < s->n; i++)
        level_ask(s, &s->level[i], &rest);
    uint64_t before = last->load;
    tamis_error e = level_put(s, last, &rest, fresh);
    s->recent[s->turn] = n;
    s->recent_new[s->turn] = last->load - before;
    s->turn = (s->turn + 1) % RECENT;
    s->to_come -= s->to_come > n ? n : s->to_come;
    return e;
}

/* A key that enters a level meets that level in its present state, and the earlier ones full. */
double sieve_lost(const struct sieve *s)
{
    const int steps = 64;
    double before = 0, lost = 0;
    for (unsigned i = 0; i < s->n; i++) {
        const struct level *level = &s->level[i];
        double load = (double)level->load, rate = 0, sum = 0;
        for (int j = 0; j <= steps; j++) {
            rate = tamis_plan_rate(TAMIS_BLOCKED, level->units, level->k, load * j / steps);
            rate *= s->pair == 2 ? rate : 1;
            sum += j == 0 || j == steps ? rate / 2 : rate;
        }
        lost += load * (sum / steps + before);
        before += rate;
    }
    return lost;
}
