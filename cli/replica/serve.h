/*
 * tamis follow --serve: answers queries over HTTP/1.1 from the directory in memory. Its threads take no lock that
 * the thread that takes messages needs. A slow or hostile client costs one of a limited number of connections,
 * for a limited time, and a limited amount of memory.
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

/* unix:PATH, [HOST:]PORT or [IPv6]:PORT; `whole` can be used from any folder of this machine. */
struct serve_address {
    char path[108]; /* of a socket; "": host and port */
    char host[256], port[16];
    char whole[512];
};
/* False after complaining. */
bool serve_address_read(struct serve_address *a, const char *text);

struct serving;
/* NULL after complaining. Directory and following must outlive it. Every answer has serve_folder(folder) in its
   header, because another follower may have taken the address. */
struct serving *serve_start(const struct serve_address *address, const tamis_directory *directory,
                            const tamis_following *following, const char *folder);
#define SERVE_FOLDER "Tamis-Folder"
uint64_t serve_folder(const char *folder); /* identifies a folder on this machine */
void serve_stop(struct serving *serving);

extern const char *const serve_state[]; /* the name of a tamis_freshness */

/* serve_pages.c: the pages, written to out.h. */
enum { SERVE_BUCKETS = 12 }; /* of the histogram; the last one is unbounded */
extern const double serve_bucket[SERVE_BUCKETS - 1];
struct serve_counts {
    _Atomic uint64_t requests[4]; /* by status: 2xx, 4xx, 5xx, others */
    _Atomic uint64_t keys, nanoseconds, bucket[SERVE_BUCKETS];
    _Atomic uint64_t connections;
};
bool serve_owners(const tamis_directory *directory, enum answers_form form); /* false: no memory */
/* The HTTP status. */
unsigned serve_health(const tamis_directory *directory, const tamis_following *following);
void serve_metrics(const tamis_directory *directory, const tamis_following *following,
                   const struct serve_counts *serve);

#endif
