/*
 * A filter B of m bits and k hashes on some host, and the copy B^ of it that other hosts hold, which
 * does not know what was added and deleted since. Objects are numbers; the host keeps a list of its own.
 */
#ifndef TAMIS_LAB_REPLICA_H
#define TAMIS_LAB_REPLICA_H

#include "common.h"

struct host {
    tamis_filter *filter, *copy;
    uint64_t *objects; /* those on the host, in no order */
    uint8_t *fresh;    /* whether the copy was made without it */
    size_t n, room;
    uint64_t m, next, state;
    unsigned k;
};

/* A host with n objects and a true copy. */
void host_new(struct host *h, uint64_t m, unsigned k, size_t n, uint64_t stream);
void host_free(struct host *h);
void host_add(struct host *h, size_t n);
void host_delete(struct host *h, size_t n);     /* any, at random */
void host_delete_old(struct host *h, size_t n); /* of those that the copy knows */
/* The copy becomes true again; returns the bytes sent: the coded difference. */
uint64_t host_publish(struct host *h);
/* Another size: filter and copy are built anew; returns the bytes of the whole. */
uint64_t host_resize(struct host *h, uint64_t m);
/* Shares of all bits: ones that the copy has as zero, zeros that it has as one. */
void host_changed(const struct host *h, double *delta1, double *delta0);
/* Share of the objects on the host that the copy denies. */
double host_missed(const struct host *h);

/* What random objects meet, of `asked`. */
struct met {
    double positive; /* the copy says yes */
    double disagree; /* the filter says yes and the copy no */
};
struct met host_ask(const struct host *h, uint64_t stream, uint64_t asked);

#endif
