/*
 * Foreign text on a terminal. Names of attributes and owners, paths, and the records themselves are
 * written by strangers, and a terminal takes orders in control characters: moving the cursor over
 * what was printed, setting the title, in some even typing. So these are shown, never sent.
 */
#ifndef TAMIS_ESCAPE_H
#define TAMIS_ESCAPE_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of the UTF-8 character that starts here, of `len` at most; 0 if it is none. */
size_t utf8_char(const uint8_t *s, size_t len);

/*
 * The character at s as it may be shown: itself, or \n \r \t \u001b (C0, DEL, C1, and what turns the
 * direction of a line), or \x9b for a byte that is not UTF-8. Its length goes to *n; returns the
 * bytes of s that it stands for. What it escapes is JSON, but for \x9b.
 */
size_t escape_char(const uint8_t *s, size_t len, char out[8], size_t *n);

/* A text as it may be shown, cut short to the room; its length. */
size_t escape_text(char *out, size_t room, const char *text);

#endif
