/*
 * tamis follow --serve: questions about the copies over HTTP/1.1, answered from the directory in memory by
 * threads of their own. They read beside the thread that takes messages, hold no lock that it wants, and
 * a client that is slow, stops reading or sends rubbish costs a
 * connection of a limited number, for a limited time, and limited memory.
 *
 *   GET /locate?key=K   POST /locate   which owners may have the keys
 *   GET /owners         what is known of each copy
 *   GET /healthz        200 while a copy can be trusted, else 503
 *   GET /metrics        Prometheus text
 */
#ifndef TAMIS_SERVE_H
#define TAMIS_SERVE_H

#include <stdatomic.h>

#include "answers.h"
#include "tamis/carrier.h"

/* The address as given, unix:PATH, [HOST:]PORT or [IPv6]:PORT; with `whole`, in a form that
   others on this machine can use from any folder. */
struct serve_address {
    char path[108]; /* of a socket; "": host and port */
    char host[256], port[16];
    char whole[512];
};
/* False after complaining. */
bool serve_address_read(struct serve_address *a, const char *text);

struct serving;
/* NULL after complaining. Directory and following must outlive it. Clients can ask for `folder`, in
   the form of serve_folder: another follower may have taken the address since. */
struct serving *serve_start(const struct serve_address *address, const tamis_directory *directory,
                            const tamis_following *following, const char *folder);
#define SERVE_FOLDER "Tamis-Folder"
uint64_t serve_folder(const char *folder); /* a number for the folder on this machine */
void serve_stop(struct serving *serving);

/* serve_pages.c: the pages, written to out.h. */
enum { SERVE_BUCKETS = 12 }; /* of the histogram; the last one is unbounded */
extern const double serve_bucket[SERVE_BUCKETS - 1];
struct serve_counts {
    _Atomic uint64_t requests[4]; /* by the first digit of their status: 2xx, 4xx, 5xx, others */
    _Atomic uint64_t keys, nanoseconds, bucket[SERVE_BUCKETS];
    _Atomic uint64_t connections;
};
bool serve_owners(const tamis_directory *directory, enum answers_form form); /* false: no memory */
/* The HTTP status. */
unsigned serve_health(const tamis_directory *directory, const tamis_following *following);
void serve_metrics(const tamis_directory *directory, const tamis_following *following,
                   const struct serve_counts *serve);

#endif
