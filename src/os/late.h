/*
 * Libraries that few runs of a program need, loaded when they are first used: libcurl and what it depends
 * on take 12 ms of every start if they are linked, libmicrohttpd 2 ms, and a lookup takes less than one.
 */
#ifndef TAMIS_LATE_H
#define TAMIS_LATE_H

#include <stdbool.h>
#include <stddef.h>

/* Fills the table with the functions of these names, in order; false with the system's reason. */
bool late_load(const char *library, const char *const *names, size_t n, void (**table)(void),
               char why[256]);

#endif
