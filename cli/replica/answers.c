/* Queries a directory for runs of keys and prints the answers. See answers.h. */
#include "answers.h"

#include <stdlib.h>
#include <string.h>

#include "ui/out.h"

static void look_at_doubt(struct answers *a)
{
    for (size_t i = 0; i < a->words; i++)
        a->doubtful[i] |= a->doubt[i];
}

bool answers_begin(struct answers *a)
{
    size_t owners = tamis_directory_owners(a->directory);
    a->words = (owners + 63) / 64;
    a->hits = calloc(ANSWERS_RUN * a->words + 1, sizeof *a->hits);
    a->doubt = calloc(a->words + 1, sizeof *a->doubt);
    a->doubtful = calloc(a->words + 1, sizeof *a->doubtful);
    a->names = malloc((64 * a->words + 1) * sizeof *a->names);
    if (!a->hits || !a->doubt || !a->doubtful || !a->names)
        return false;
    tamis_directory_locate_many(a->directory, NULL, 0, a->hits, a->doubt, a->words);
    look_at_doubt(a);
    if (a->form == ANSWERS_OBJECT) {
        json_open(NULL, '{');
        json_open("answers", '[');
    }
    return true;
}

int answers_by_name(const void *x, const void *y)
{
    const char *const *a = x, *const *b = y;
    return strcmp(*a, *b);
}

/* The names of these owners, in order; bits may be NULL. An owner dropped meanwhile has no name. */
static size_t names_of(const struct answers *a, const uint64_t *hits, const uint64_t *doubt)
{
    size_t n = 0;
    for (size_t i = 0; i < a->words; i++) {
        uint64_t unsure = doubt ? doubt[i] : 0;
        for (uint64_t left = unsure | (hits ? hits[i] : 0); left; left &= left - 1) {
            unsigned bit = (unsigned)__builtin_ctzll(left);
            const char *name = tamis_directory_name(a->directory, (uint32_t)(64 * i + bit));
            if (name)
                a->names[n++] = (struct answers_name){name, unsure >> bit & 1, 0};
        }
    }
    qsort(a->names, n, sizeof *a->names, answers_by_name);
    return n;
}

static void print_list(const struct answers *a, const char *title, const uint64_t *bits)
{
    size_t n = names_of(a, bits, NULL);
    json_open(title, '[');
    for (size_t i = 0; i < n; i++)
        json_text(NULL, a->names[i].name);
    json_close();
}

static void print_text(const struct answers *a, tamis_key key, const uint64_t *hits)
{
    put_bytes(key.data, key.len);
    put_text("\t");
    size_t n = names_of(a, hits, a->doubt);
    for (size_t i = 0; i < n; i++) {
        put_text(i ? " " : "");
        put_text(a->names[i].doubt ? "?" : "");
        put_name(a->names[i].name);
    }
    put_bytes(&a->end, 1);
}

static void print_key(const struct answers *a, tamis_key key, const uint64_t *hits)
{
    json_open(NULL, '{');
    json_bytes("key", key.data, key.len);
    print_list(a, "owners", hits);
    if (a->form == ANSWERS_LINES)
        print_list(a, "maybe", a->doubt);
    json_close();
}

static bool any(const uint64_t *bits, size_t words)
{
    uint64_t all = 0;
    for (size_t i = 0; i < words; i++)
        all |= bits[i];
    return all;
}

void answers_print(struct answers *a, const tamis_key *keys, size_t n)
{
    for (size_t first = 0; first < n; first += ANSWERS_RUN) {
        size_t some = n - first < ANSWERS_RUN ? n - first : ANSWERS_RUN;
        tamis_directory_locate_many(a->directory, keys + first, some, a->hits, a->doubt, a->words);
        look_at_doubt(a);
        bool doubt = any(a->doubt, a->words);
        for (size_t i = 0; i < some; i++) {
            const uint64_t *hits = a->hits + i * a->words;
            bool hit = any(hits, a->words);
            a->keys_hit += hit;
            a->keys_doubtful += doubt;
            if (a->form != ANSWERS_TEXT)
                print_key(a, keys[first + i], hits);
            else if (hit || doubt)
                print_text(a, keys[first + i], hits);
        }
        a->keys += some;
    }
}

void answers_end(struct answers *a)
{
    if (a->form == ANSWERS_OBJECT && a->names) {
        json_close();
        print_list(a, "maybe", a->doubtful);
        json_close();
    }
    free(a->hits);
    free(a->doubt);
    free(a->doubtful);
    free(a->names);
    a->hits = a->doubt = a->doubtful = NULL;
    a->names = NULL;
}

void answers_owner(enum answers_form form, const char *name, bool doubt, uint64_t version)
{
    if (form != ANSWERS_TEXT) {
        json_open(NULL, '{');
        json_text("owner", name);
        json_count("version", version);
        json_flag("current", !doubt);
        json_close();
    } else {
        put_text(doubt ? "?" : "");
        put_name(name);
        put_format("\t%llu\n", (unsigned long long)version);
    }
}
