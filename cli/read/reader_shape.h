/*
 * The outer shape of the first value of a JSON text: enough to distinguish JSON lines from an array
 * of records and from an object that wraps one, by the first bytes of a file.
 */
#ifndef TAMIS_READER_SHAPE_H
#define TAMIS_READER_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first value of a text: brackets, strings, commas. Numbers and words are not checked. */
struct json_shape {
    bool broken;           /* not JSON */
    bool lines;            /* a line ends inside it */
    bool nested;           /* an array whose first element is an object or an array */
    size_t keys;           /* of an object */
    size_t listed;         /* of an object: bytes of its longest array of objects */
    size_t name, name_len; /* position of its key */
    size_t end;            /* position after it; 0: it is not closed */
};

struct json_shape json_shape_of(const uint8_t *text, size_t len);

#endif
