/* Random programs against the model (tests/support/interp.h): every kind of filter, millions of
 * steps; kept programs that once failed; and faults planted from outside, which must be caught.
 */
#include "harness.h"
#include "interp.h"

#include <dirent.h>

enum { ROOM = 400 };

static void print_program(const uint8_t *program, size_t len)
{
    for (size_t i = 0; i < len; i++)
        printf("%02x", program[i]);
    printf("\n");
}

/* Runs one; a program that fails is shrunk and printed, to be kept in tests/golden/programs. */
static bool good_program(uint8_t *program, size_t len, struct interp_report *report)
{
    if (interp_run(program, len, PLANT_NONE, report))
        return true;
    struct interp_report least;
    printf("byte %zu: %s\nshrinking\n", report->at, report->text);
    len = interp_shrink(program, len, PLANT_NONE, &least);
    print_program(program, len);
    return CHECK_MSG(false, "byte %zu of the program above: %s", least.at, least.text);
}

TEST(library_does_as_the_model)
{
    static const char *const names[SEEN_COUNT] = {
        "pending", "settled", "cancelled", "grown",  "shrunk", "full", "merged",
        "folded",  "refused", "emptied",   "escape", "lines",  "lives"};
    uint64_t rng = harness_seed(), steps = 0, seen[SEEN_COUNT] = {0};
    unsigned programs = HARNESS_TIMES(8000, 80000), failed = 0;
    double start = harness_now();
    for (unsigned i = 0; i < programs && failed < 3; i++) {
        uint8_t program[ROOM];
        struct interp_report report;
        size_t len = interp_random(&rng, program, ROOM);
        failed += !good_program(program, len, &report);
        steps += report.steps;
        for (unsigned j = 0; j < SEEN_COUNT; j++)
            seen[j] += report.seen[j];
    }
    for (unsigned j = 0; j < SEEN_COUNT; j++)
        CHECK_MSG(seen[j] > programs / 10, "%s: seen %" PRIu64 " times only", names[j], seen[j]);
    if (getenv("TEST_VERBOSE")) {
        printf("%u programs, %" PRIu64 " steps, %.0f a second\n", programs, steps,
               (double)steps / (harness_now() - start));
        for (unsigned j = 0; j < SEEN_COUNT; j++)
            printf("  %s %" PRIu64 "\n", names[j], seen[j]);
    }
}

/* The default filters alone, 10^7 steps of each kind in a long run. */
TEST(smooth_filters_do_as_the_model)
{
    static const char *const names[] = {"plain", "past a capacity", "deletable"};
    uint64_t rng = harness_seed(), most = HARNESS_TIMES(100000, 10000000);
    for (unsigned kind = 0; kind < 3; kind++) {
        uint64_t steps = 0, programs = 0;
        for (bool good = true; good && steps < most; programs++) {
            uint8_t program[ROOM];
            struct interp_report report;
            size_t len = interp_random(&rng, program, ROOM);
            interp_smooth(program, kind == 2, kind == 1);
            good = good_program(program, len, &report);
            steps += report.steps;
        }
        if (getenv("TEST_VERBOSE"))
            printf("%s: %" PRIu64 " programs, %" PRIu64 " steps\n", names[kind], programs, steps);
        CHECK_MSG(steps >= most, "%s", names[kind]);
    }
}

/* Programs of some kind with a fault planted in each: every one is reported. */
static void check_planted(enum interp_plant plant, void (*shape)(uint8_t *program))
{
    uint64_t rng = harness_seed();
    unsigned planted = 0, caught = 0, tried = 0;
    for (; planted < 50 && tried < 5000; tried++) {
        uint8_t program[ROOM];
        struct interp_report report;
        size_t len = interp_random(&rng, program, ROOM);
        if (shape)
            shape(program);
        bool good = interp_run(program, len, plant, &report);
        planted += report.planted;
        caught += report.planted && !good;
        if (report.planted && good)
            print_program(program, len);
    }
    CHECK_MSG(planted == 50, "fault %d: planted %u times in %u", (int)plant, planted, tried);
    CHECK_MSG(caught == planted, "fault %d: caught %u of %u", (int)plant, caught, planted);
}

TEST(planted_faults_are_caught)
{
    for (enum interp_plant plant = PLANT_ADD; plant < PLANT_COUNT; plant++)
        check_planted(plant, NULL);
}

static void smooth_plain(uint8_t *program)
{
    interp_smooth(program, false, false);
}

static void smooth_past_capacity(uint8_t *program)
{
    interp_smooth(program, false, true);
}

static void smooth_deletable(uint8_t *program)
{
    interp_smooth(program, true, false);
}

TEST(faults_planted_in_smooth_filters_are_caught)
{
    check_planted(PLANT_ADD, smooth_plain);
    check_planted(PLANT_ADD, smooth_past_capacity);
    check_planted(PLANT_ADD, smooth_deletable);
    check_planted(PLANT_REMOVE, smooth_deletable);
    check_planted(PLANT_TWICE, smooth_deletable);
}

TEST(failing_programs_are_shrunk)
{
    uint64_t rng = harness_seed();
    for (unsigned found = 0, tried = 0; found < 3 && CHECK(tried < 1000); tried++) {
        uint8_t program[ROOM];
        struct interp_report report;
        size_t len = interp_random(&rng, program, ROOM);
        if (len < 60 || interp_run(program, len, PLANT_ADD, &report))
            continue;
        found++;
        size_t least = interp_shrink(program, len, PLANT_ADD, &report);
        CHECK(report.failed && report.planted);
        CHECK_MSG(least < 40, "%zu bytes became %zu", len, least);
    }
}

static size_t read_hex(const char *path, uint8_t *program, size_t room)
{
    FILE *file = fopen(path, "r");
    size_t len = 0;
    unsigned byte;
    while (file && len < room && fscanf(file, "%2x", &byte) == 1)
        program[len++] = (uint8_t)byte;
    if (file)
        fclose(file);
    return len;
}

TEST(kept_programs_pass)
{
    char folder[600], path[1000];
    snprintf(folder, sizeof folder, "%s/tests/golden/programs", harness_root());
    DIR *files = opendir(folder);
    unsigned ran = 0;
    for (struct dirent *entry; files && (entry = readdir(files));) {
        uint8_t program[4096];
        struct interp_report report;
        if (!strstr(entry->d_name, ".hex"))
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        size_t len = read_hex(path, program, sizeof program);
        CHECK_MSG(len >= 8, "%s", path);
        CHECK_MSG(interp_run(program, len, PLANT_NONE, &report), "%s, byte %zu: %s", entry->d_name,
                  report.at, report.text);
        ran++;
    }
    if (files)
        closedir(files);
    CHECK_MSG(ran > 0, "no programs in %s", folder);
}

HARNESS_MAIN
