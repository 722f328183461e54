/* A client of tamis follow --serve: one connection, one request after the other, no libraries. */
#ifndef TAMIS_ASK_H
#define TAMIS_ASK_H

#include "serve.h"
#include "ui/out.h"

struct ask {
    int fd;            /* -1: not connected */
    struct bytes head; /* of the last answer */
    struct bytes body; /* its content */
    unsigned status;
    char why[256];
};

int unix_connect(const char *path); /* at most 107 bytes; -1 with errno */
bool ask_connect(struct ask *ask, const struct serve_address *address);
/* A GET; or a POST with keys, each followed by its end, '\n' or NUL, or (']') a list in JSON.
   False with the reason, also for an error of the server. */
bool ask_for(struct ask *ask, const char *path, const char *accept, const struct bytes *keys,
             char end);
/* A number in the header of the answer; 0 if it is not there. */
uint64_t ask_number(const struct ask *ask, const char *header);
void ask_close(struct ask *ask);

#endif
