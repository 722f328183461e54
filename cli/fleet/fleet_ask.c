/*
 * Which hosts and days may have a record: the copies are catalogs, and are queried as find queries its own.
 * Conditions for which summaries have no keys (words, regular expressions, fields that are not indexed) rule
 * nothing out: then all hosts in the time range are candidates.
 */
#define _GNU_SOURCE
#include "fleet.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* If files are removed after the status was read, there is a new status. */
#define TRIES 16

/* Opens all files of the status. NULL: *again, or it has complained. */
static struct target *targets_open(struct copies *c, bool *again)
{
    struct target *targets = calloc(c->n_files + 1, sizeof *targets);
    bool good = targets;
    *again = false;
    for (size_t i = 0; good && i < c->n_files; i++) {
        char path[4096];
        tamis_reason reason = {0};
        tamis_catalog *catalog;
        copies_path(c, c->file[i], path);
        tamis_error e = tamis_catalog_open(&catalog, path, NULL, &reason);
        *again = e == TAMIS_EIO && reason.system_error == ENOENT;
        if (e != TAMIS_OK && !*again)
            complain_of(e, &reason, path);
        targets[i].path = e == TAMIS_OK ? strdup(path) : NULL;
        good = e == TAMIS_OK && targets[i].path && target_take(&targets[i], catalog);
        if (good)
            targets[i].own.open = read_names_fields(targets[i].inputs.dialect.format);
    }
    if (!targets)
        no_memory(c->folder);
    if (!good && targets)
        targets_free(targets, c->n_files);
    return good ? targets : NULL;
}

static struct target *open_state(struct copies *c)
{
    bool again = true;
    struct target *targets = NULL;
    for (int i = 0; again && i < TRIES; i++) {
        if (i && copies_read(c) < 0)
            return NULL;
        targets = targets_open(c, &again);
    }
    if (again)
        complain("files are missing: %s: ask the address again", c->folder);
    return targets;
}

/* ---- candidates ------------------------------------------------------------------------------ */

static int compare_candidates(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    return ORDER(x->host, y->host, ORDER(x->day, y->day, 0));
}

static bool name_candidate(struct copies *c, struct answer *a, const struct target *t, uint64_t at)
{
    char host[HOST_MAX + 1];
    uint64_t epoch;
    struct piece piece;
    size_t len;
    const void *tag = tamis_catalog_tag(t->catalog, at, &len);
    struct known_host *h = tag_read(tag, len, host, &epoch, &piece) ? copies_host(c, host) : NULL;
    if (!h)
        return true;
    if (piece.kind == PIECE_GAP) {
        if (!h->doubt)
            h->doubt = strdup("summaries older than --keep were dropped");
        return h->doubt;
    }
    const struct candidate candidate = {h, piece.day};
    h->hit = true;
    return array_add(&a->candidate, &a->n, &a->room, &candidate, sizeof candidate);
}

static void count_rates(struct answer *a, const tamis_catalog *catalog)
{
    tamis_relation_facts facts;
    for (uint32_t i = 0; tamis_catalog_relation(catalog, i, &facts); i++) {
        bool single = (facts.mask & (facts.mask - 1)) == 0;
        double *rate = single ? &a->host_day : &a->fleet;
        double here = single ? facts.fpp_now : a->fleet + facts.fpp_now;
        *rate = here > *rate ? here : *rate;
    }
}

static bool ask_target(struct copies *c, struct answer *a, struct target *t, bool rates)
{
    if (!target_ask(t))
        return false;
    a->pieces += tamis_catalog_segments(t->catalog);
    if (rates)
        count_rates(a, t->catalog);
    for (uint64_t i = 0; i < target_words(t); i++)
        for (uint64_t left = t->bits[i]; left; left &= left - 1)
            if (!name_candidate(c, a, t, 64 * i + (unsigned)__builtin_ctzll(left)))
                return no_memory(t->path);
    return true;
}

/* Several pieces of one day are one candidate. */
static void settle(struct answer *a)
{
    size_t n = 0;
    if (a->n)
        qsort(a->candidate, a->n, sizeof *a->candidate, compare_candidates);
    for (size_t i = 0; i < a->n; i++)
        if (n == 0 || compare_candidates(&a->candidate[n - 1], &a->candidate[i]) != 0)
            a->candidate[n++] = a->candidate[i];
    a->n = n;
}

static bool doubt_hosts(struct copies *c, const struct fleet_question *q, struct answer *a)
{
    char why[120];
    bool good = true;
    for (size_t i = 0; i < c->n; i++) {
        struct known_host *h = &c->host[i];
        snprintf(why, sizeof why, "%llu of its inputs could not be read",
                 (unsigned long long)h->failed);
        if (!h->doubt && (h->failed || q->fresh))
            good &= (h->doubt = strdup(h->failed ? why : "it may have newer records")) != NULL;
        a->in_doubt += h->doubt != NULL && !h->hit;
    }
    return good;
}

/* The fields that any host has, which each target knows since targets_join. */
static bool note_known(struct answer *a, const struct target *targets, size_t n)
{
    const struct fields *all = n ? &targets[0].fields : NULL;
    a->known = calloc(n ? all->n + 1 : 1, sizeof *a->known);
    for (size_t i = 0; n && i < targets[0].question.n_columns && !a->unseen; i++)
        if (targets[0].question.column[i].unseen &&
            !(a->unseen = strdup(targets[0].question.column[i].name)))
            return false;
    for (size_t i = 0; a->known && n && i < all->n; i++) {
        const char *name = strdup(all->field[i].name);
        if (!name)
            return false;
        a->known[a->n_known++] = (struct note_field){name, all->field[i].type};
    }
    return a->known;
}

bool fleet_ask(struct copies *c, const struct fleet_question *q, struct answer *a)
{
    struct target *targets = open_state(c);
    *a = (struct answer){0};
    bool good = targets && targets_join(targets, c->n_files) &&
                targets_read(targets, c->n_files, &q->asked);
    good = good && note_known(a, targets, c->n_files);
    for (size_t i = 0; good && i < c->n_files; i++)
        good = ask_target(c, a, &targets[i], q->rates);
    if (good)
        settle(a);
    good = good && doubt_hosts(c, q, a);
    if (targets)
        targets_free(targets, c->n_files);
    return good;
}

void answer_free(struct answer *a)
{
    for (size_t i = 0; i < a->n_known; i++)
        free((void *)(uintptr_t)a->known[i].name);
    free(a->known);
    free(a->unseen);
    free(a->candidate);
    *a = (struct answer){0};
}

bool fleet_open(struct copies *c, const char *operand, const char *folder, const char *seal)
{
    if (!seal_read(&c->seal, seal))
        return false;
    if (is_address(operand))
        return copies_folder(c, operand, folder) && copies_sync(c, operand);
    if (folder)
        return refuse("no address to copy from: -o %s: give redis://HOST:PORT/NAME or file:FOLDER",
                      folder);
    if (strlen(operand) >= sizeof c->folder)
        return refuse("the name is too long: %.100s", operand);
    memcpy(c->folder, operand, strlen(operand) + 1);
    int there = copies_read(c);
    if (there == 0)
        complain(
            "no copies in it: %s: ask file:%s if hosts publish to it, or their address with -o %s",
            operand, operand, operand);
    return there > 0;
}
