/*
 * Libraries that few runs of a program need, loaded when they are first used: libcurl and what it depends
 * on take 12 ms of every start if they are linked, libmicrohttpd 2 ms, and a lookup takes less than one.
 */
#ifndef TAMIS_LATE_H
#define TAMIS_LATE_H

#include <stdbool.h>
#include <stddef.h>

/* With a list of the functions as FUNCTIONS(X), each X(name here, name in the library). */
#define LATE_NAME(here, there)   #there,
#define LATE_MEMBER(here, there) __typeof__(&(there)) here;
/* The table `lib`, with a member for each of them, and `names`. */
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

/* Fills the table with the functions of these names, in order, and calls `first`, unless NULL; once, whichever
   thread comes first. False with a reason: it may be called again. */
bool late_load(const char *library, const char *const *names, size_t n, void (**table)(void),
               bool (*first)(void), char why[256]);

#endif
