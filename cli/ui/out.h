/*
 * Standard output, in large writes. The first error is remembered: nothing is written after it, the
 * verbs see it with put_failed() and stop, and put_end() reports it. On a terminal control
 * characters are escaped (escape.h), except line ends and tabs; files and pipes get all bytes
 * unchanged.
 */
#ifndef TAMIS_OUT_H
#define TAMIS_OUT_H

#include "growing.h"

/* Redirects everything that this thread puts, including JSON; NULL: back to standard output. */
void put_into(struct bytes *to);

void put_bytes(const void *data, size_t len);
/* Text that may be sent to a terminal unchanged: it has colours, and the rest is escaped already. */
void put_raw(const void *data, size_t len);
/* Untrusted bytes as a terminal shows them, wherever they go. */
void put_shown(const void *data, size_t len);
void put_text(const char *text);
/* A name or path from untrusted bytes: on a terminal it is shown on one line, see escape.h. */
void put_name(const char *name);
void put_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Writes the buffer. False after an error. */
bool put_flush(void);
bool put_failed(void);
/* Flushes at the end of the program; returns the exit status: `status`, or TROUBLE if output was lost. */
int put_end(int status);

/* JSON on one line. `key` is NULL inside an array; NaN and infinity become null, bytes that are
   not UTF-8 become U+FFFD. */
void json_open(const char *key, char bracket); /* '{' or '[' */
void json_close(void);                         /* the innermost; the outermost ends the line */
void json_text(const char *key, const char *text);
void json_bytes(const char *key, const void *data, size_t len);
void json_raw(const char *key, const void *json, size_t len); /* JSON as it is */
void json_count(const char *key, uint64_t value);
void json_real(const char *key, double value); /* with all digits */
void json_flag(const char *key, bool value);

#endif
