/*
 * Standard output, in large writes. The first error is kept: from then on nothing is written, the
 * verbs see it with put_failed() and stop, and put_end() reports it. On a terminal control
 * characters are escaped (escape.h), but for line ends and tabs; files and pipes get all bytes as
 * they are.
 */
#ifndef TAMIS_OUT_H
#define TAMIS_OUT_H

#include "cli.h"

void put_bytes(const void *data, size_t len);
/* What may be sent to a terminal as it is: it has colours, and the rest was escaped. */
void put_raw(const void *data, size_t len);
void put_text(const char *text);
/* A name or path that strangers gave: on a terminal it is shown on one line, see escape.h. */
void put_name(const char *name);
void put_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Writes what is held back. False after an error. */
bool put_flush(void);
bool put_failed(void);
/* Flushes at the end of the program; the exit status: `status`, or TROUBLE if output was lost. */
int put_end(int status);

/* JSON on one line. `key` is NULL inside an array; a number that is none becomes null, a byte that
   is not UTF-8 becomes U+FFFD. */
void json_open(const char *key, char bracket); /* '{' or '[' */
void json_close(char bracket);                 /* '}' or ']'; the outermost ends the line */
void json_text(const char *key, const char *text);
void json_bytes(const char *key, const void *data, size_t len);
void json_count(const char *key, uint64_t value);
void json_real(const char *key, double value); /* all its digits */
void json_flag(const char *key, bool value);

/* The character at s as it stands in a string of JSON: as escape_char() does. */
size_t json_char(const uint8_t *s, size_t len, char to[8], size_t *n);

#endif
