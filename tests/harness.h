/*
 * A small test harness. A test program is one C file:
 *
 *     #include "harness.h"
 *
 *     TEST(added_keys_are_found)
 *     {
 *         uint64_t rng = harness_seed();
 *         CHECK(rng_next(&rng) != 0);
 *         CHECK_MSG(1 + 1 == 2, "sum is %d", 1 + 1);
 *     }
 *
 *     HARNESS_MAIN
 *
 * Tests run in the order written. A failed check prints where and why, and the test goes on; CHECK
 * is an expression, so "if (!CHECK(p)) return;" leaves a test that cannot. Checks may be made from
 * any number of threads; a test ends after the threads it started.
 *
 * Arguments: parts of names of the tests to run (none: all); --long, which harness_long() reports to
 * tests that have a longer form; --size=N for COST tests. Environment: TAMIS_SEED for harness_seed(),
 * TEST_VERBOSE=1 to print every test with its time. The last line is "test_x: N passed, N failed";
 * the exit status is 0 when none failed and at least one ran.
 */
#ifndef TAMIS_TESTS_HARNESS_H
#define TAMIS_TESTS_HARNESS_H

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define HARNESS_DEFAULT_SEED UINT64_C(0x74616d6973) /* "tamis" */
#define HARNESS_MAX_PRINTED  20                     /* failed checks printed for one test */
#define HARNESS_SLOW         1.0                    /* seconds from which a test is named */

struct harness_test {
    const char *name;
    void (*run)(void);
    struct harness_test *next;
};

struct harness {
    struct harness_test *first;
    struct harness_test **tail; /* NULL until the first test registers */
    const char *program;
    const char *running;        /* name of the test running, for the crash message */
    atomic_ulong failed_checks; /* of the test running */
    atomic_bool seed_used;
    bool long_run;
    size_t size; /* of COST tests; 0: their own */
};

/* Defined by HARNESS_MAIN; helpers in other files of the same program share it. */
extern struct harness harness;

#define TEST(name)                                                         \
    static void test_##name(void);                                         \
    __attribute__((constructor)) static void harness_register_##name(void) \
    {                                                                      \
        static struct harness_test self = {#name, test_##name, NULL};      \
        harness_register(&self);                                           \
    }                                                                      \
    static void test_##name(void)

/* A test of n things, `most` of them unless --size=N says otherwise, whose work may grow with n but not
   with its square: tests/python/test_costs.py counts its instructions for `most` and for fewer. */
#define COST(name, most)                                   \
    static void cost_##name(size_t n);                     \
    TEST(name)                                             \
    {                                                      \
        cost_##name(harness.size ? harness.size : (most)); \
    }                                                      \
    static void cost_##name(size_t n)

#define CHECK(cond) harness_check((cond) ? true : false, __FILE__, __LINE__, #cond, NULL)

#define CHECK_MSG(cond, ...) \
    harness_check((cond) ? true : false, __FILE__, __LINE__, #cond, __VA_ARGS__)

#define HARNESS_MAIN                     \
    struct harness harness;              \
    int main(int argc, char **argv)      \
    {                                    \
        return harness_main(argc, argv); \
    }

static inline void harness_register(struct harness_test *test)
{
    if (!harness.tail)
        harness.tail = &harness.first;
    *harness.tail = test;
    harness.tail = &test->next;
}

/* Counts and prints a failed check; says whether it held. */
static inline bool harness_check(bool held, const char *file, int line, const char *expression,
                                 const char *format, ...) __attribute__((format(printf, 5, 6)));

static inline bool harness_check(bool held, const char *file, int line, const char *expression,
                                 const char *format, ...)
{
    if (__builtin_expect(held, 1))
        return true;
    unsigned long nth = atomic_fetch_add(&harness.failed_checks, 1) + 1;
    if (nth > HARNESS_MAX_PRINTED)
        return false;
    char message[1024] = "";
    if (format) {
        va_list args;
        va_start(args, format);
        vsnprintf(message, sizeof message, format, args);
        va_end(args);
    }
    printf("%s:%d: %s: CHECK(%s) failed%s%s\n", file, line, harness.running, expression,
           format ? ": " : "", message);
    return false;
}

/* The seed of all randomness in tests: TAMIS_SEED, or always the same one. Printed on failure. */
static inline uint64_t harness_seed(void)
{
    const char *text = getenv("TAMIS_SEED");
    atomic_store(&harness.seed_used, true);
    return text && *text ? strtoull(text, NULL, 0) : HARNESS_DEFAULT_SEED;
}

/* The top folder of the sources, for golden files: a test starts in an empty folder of its own. */
static inline const char *harness_root(void)
{
    const char *root = getenv("TAMIS_ROOT");
    return root && *root ? root : ".";
}

/* True when the program was given --long: minutes are allowed, not seconds. */
static inline bool harness_long(void)
{
    return harness.long_run;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HARNESS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HARNESS_SANITIZED 1
#endif
#endif

/*
 * True where a step costs several times as much: under sanitizers, and without vector instructions. Tests that
 * only repeat a step many times, for statistics or over every bit, do fewer of them there, since the
 * release build does them all; a long run does them all without vector instructions, too.
 */
static inline bool harness_slow(void)
{
#ifdef HARNESS_SANITIZED
    return true;
#else
    const char *isa = getenv("TAMIS_ISA");
    return isa && !strcmp(isa, "scalar") && !harness.long_run;
#endif
}

/* How many times a step is repeated with new random input: `few`, but a quarter of that in slow variants, since
   release runs them all; in a long run `many`, in every variant. */
#define HARNESS_TIMES(few, many) \
    (harness_long() ? (many) : harness_slow() ? ((few) + 3) / 4 : (few))

/* splitmix64: every state is fine, so any seed is. */
static inline uint64_t rng_next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* A clock for options: the time at `context`. */
static inline uint64_t harness_clock(void *context)
{
    return *(const uint64_t *)context;
}

static inline double harness_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Names the test that crashed, then lets the signal take its course. */
static inline void harness_crashed(int sig)
{
    static const char text[] = " crashed\n";
    const char *name = harness.running ? harness.running : "(no test)";
    if (write(STDOUT_FILENO, name, strlen(name)) < 0 ||
        write(STDOUT_FILENO, text, sizeof text - 1) < 0)
        _exit(3);
    raise(sig); /* the handler was reset on entry */
}

/* Sanitizers report the other signals themselves, and say more. */
static inline void harness_catch_crashes(void)
{
    static const int signals[] = {
        SIGABRT,
#ifndef HARNESS_SANITIZED
        SIGSEGV, SIGBUS, SIGFPE, SIGILL,
#endif
    };
    struct sigaction action = {.sa_handler = harness_crashed, .sa_flags = (int)SA_RESETHAND};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &action, NULL);
}

static inline bool harness_selected(const char *name, int argc, char **argv)
{
    bool filtered = false;
    for (int i = 1; i < argc; i++) {
        if (!strncmp(argv[i], "--", 2))
            continue;
        filtered = true;
        if (strstr(name, argv[i]))
            return true;
    }
    return !filtered;
}

/* Runs one test; says whether it passed. */
static inline bool harness_run(const struct harness_test *test)
{
    atomic_store(&harness.failed_checks, 0);
    harness.running = test->name;
    double start = harness_now();
    test->run();
    double seconds = harness_now() - start;
    harness.running = NULL;
    unsigned long failed = atomic_load(&harness.failed_checks);
    const char *verbose = getenv("TEST_VERBOSE");
    if (failed)
        printf("FAILED %s: %lu checks, %.2f s\n", test->name, failed, seconds);
    else if (seconds > HARNESS_SLOW || (verbose && *verbose && *verbose != '0'))
        printf("passed %s: %.2f s\n", test->name, seconds);
    return failed == 0;
}

static inline int harness_main(int argc, char **argv)
{
    unsigned passed = 0, failed = 0;
    const char *slash = strrchr(argv[0], '/');
    harness.program = slash ? slash + 1 : argv[0];
    for (int i = 1; i < argc; i++) {
        harness.long_run |= !strcmp(argv[i], "--long");
        if (!strncmp(argv[i], "--size=", 7))
            harness.size = strtoull(argv[i] + 7, NULL, 10);
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    harness_catch_crashes();
    for (const struct harness_test *test = harness.first; test; test = test->next) {
        if (!harness_selected(test->name, argc, argv))
            continue;
        if (harness_run(test))
            passed++;
        else
            failed++;
    }
    if (failed && atomic_load(&harness.seed_used))
        printf("seed: TAMIS_SEED=%" PRIu64 "\n", harness_seed());
    printf("%s: %u passed, %u failed\n", harness.program, passed, failed);
    return failed == 0 && passed > 0 ? 0 : 1;
}

#endif
