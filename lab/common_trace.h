/*
 * Traces in place of those of the flexible filters' paper, which cannot be had; and files as records.
 *
 *   synthetic  random numbers, as published
 *   sources    for MAWI: arrivals of addresses whose popularity falls as 1/rank; how many there are is
 *              set so that as many different ones arrive as the caller says
 *   words      for UMass, where popular requests come again and again: the words of the copyright files
 *              under /usr/share/doc, which every Debian machine has
 *   integers   for TKN, where every four integers of a file are an item: the same of files in /usr/lib
 *
 * An item is the 64-bit hash of its text (the paper takes 32 bits).
 */
#ifndef TAMIS_LAB_TRACE_H
#define TAMIS_LAB_TRACE_H

#include "common.h"

#define TRACE_PLACES 5

/* Only the first arrival of an item is kept. A filter that is asked first inserts no other: a member is
   never denied. */
struct trace {
    uint64_t *keys;
    size_t arrivals, distinct;
    size_t upto[TRACE_PLACES]; /* distinct ones among the first fifth of all, two fifths, ... */
};

void trace_synthetic(struct trace *t, size_t n, uint64_t stream);
/* Addresses, of which the first n arrivals have this many different ones; `more` follow. The caller frees
   them. */
uint64_t *trace_addresses(size_t n, size_t more, double distinct, uint64_t stream);
/* Likewise. */
uint64_t *trace_words(size_t most, size_t *n);
uint64_t *trace_integers(size_t most, size_t *n);
/* Takes the arrivals, and frees them. */
void trace_of(struct trace *t, uint64_t *arrivals, size_t n);
void trace_free(struct trace *t);

/* A file's three attributes in the experiment on records: name, device, time of last change. */
struct lab_file {
    char name[256];
    uint64_t device, changed;
};
struct lab_file *lab_files(size_t most, size_t *n);

#endif
