/*
 * Libraries that few runs of a program need, loaded when first used: linked, libcurl and its dependencies
 * would take 12 ms of every start and libmicrohttpd 2 ms, while a lookup takes less than 1 ms.
 */
#ifndef TAMIS_LATE_H
#define TAMIS_LATE_H

#include <stdbool.h>
#include <stddef.h>

/* Usage: a list of the functions as FUNCTIONS(X), each X(name here, name in the library). */
#define LATE_NAME(here, there)   #there,
#define LATE_MEMBER(here, there) __typeof__(&(there)) here;
/* Declares the table `lib`, with a member for each function, and `names`. */
#define LATE_TABLE(FUNCTIONS)                                  \
    static const char *const names[] = {FUNCTIONS(LATE_NAME)}; \
    static union {                                             \
        void (*table[sizeof names / sizeof *names])(void);     \
        struct {                                               \
            FUNCTIONS(LATE_MEMBER)                             \
        };                                                     \
    } lib
#define LATE_LOAD(library, first, why) \
    late_load(library, names, sizeof names / sizeof *names, lib.table, first, why)

/* Fills the table with the functions of these names, in order, then calls `first` unless it is NULL; only
   once, in the first thread that calls. False with a reason: it may be called again. */
bool late_load(const char *library, const char *const *names, size_t n, void (**table)(void),
               bool (*first)(void), char why[256]);

#endif
