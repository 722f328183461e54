/*
 * Untrusted text on a terminal. Names of attributes and owners, paths and records are written by
 * others, and a terminal obeys control characters: they can overwrite what was printed, set the
 * title, and on some terminals even enter input. So they are shown, never sent.
 */
#ifndef TAMIS_ESCAPE_H
#define TAMIS_ESCAPE_H

#include <stddef.h>
#include <stdint.h>

/*
 * The character at s as it may be shown: itself, or \n \r \t \u001b (C0, DEL, C1, and marks that
 * change the direction of a line), or \x9b for a byte that is not UTF-8. Stores its length in *n
 * and returns the number of bytes of s that it stands for. The escapes are those of JSON, except
 * \x9b.
 */
size_t escape_char(const uint8_t *s, size_t len, char out[8], size_t *n);

/* A text as it may be shown, truncated to fit; returns its length. */
size_t escape_text(char *out, size_t room, const char *text);

#endif
