/* Work shared by several threads. */
#ifndef TAMIS_THREADS_H
#define TAMIS_THREADS_H

#include <stddef.h>

#define THREADS_MAX 256

/* Number of processors, from 1 to THREADS_MAX. */
unsigned processors(void);
/* Calls work(element) once for each of n elements of `size` bytes, at most THREADS_MAX of them, and returns
   when all calls have returned. Each has its own thread, as far as threads can be created; otherwise they
   are called here, one after the other. */
void threads_run(void *(*work)(void *element), void *elements, size_t size, size_t n);

#endif
