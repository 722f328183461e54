/* A matching record as a line of JSON: where it is, and what it is. */
#include <stdio.h>
#include <string.h>

#include "ui/escape.h"
#include "find.h"
#include "ui/out.h"

static void put_string(struct bytes *out, const uint8_t *s, size_t len)
{
    bytes_put(out, "\"", 1);
    for (size_t i = 0; i < len;) {
        char shown[8];
        size_t n;
        i += json_char(s + i, len - i, shown, &n);
        bytes_put(out, shown, n);
    }
    bytes_put(out, "\"", 1);
}

void json_path(struct bytes *out, const char *path)
{
    put_string(out, (const uint8_t *)path, strlen(path));
    bytes_put(out, "", 1);
}

/* The reader takes more for JSON than the RFC: control characters in strings, NaN and Infinity,
   bytes that are not UTF-8. Whether the record has none of these. */
static bool strict(const uint8_t *s, size_t len)
{
    bool inside = false;
    for (size_t i = 0; i < len;) {
        size_t n = utf8_char(s + i, len - i);
        if (n == 0 || (inside && s[i] < 0x20) || (!inside && (s[i] == 'N' || s[i] == 'I')))
            return false;
        if (s[i] == '"')
            inside = !inside;
        else if (inside && s[i] == '\\')
            i++; /* an escape is there whole, and ASCII */
        i += n;
    }
    return true;
}

void json_record(struct bytes *out, const char *path_json, const struct dialect *dialect,
                 uint64_t offset, uint64_t line, const struct record *r)
{
    char numbers[96];
    int n = snprintf(numbers, sizeof numbers,
                     ", \"offset\": %llu, \"line\": %llu, \"record\": ", (unsigned long long)offset,
                     (unsigned long long)line);
    bytes_put(out, "{\"file\": ", 9);
    bytes_put(out, path_json, strlen(path_json));
    bytes_put(out, numbers, (size_t)n);
    bool json = dialect->format == READ_JSONL ||
                (dialect->format == READ_JSON && !memchr(r->data, '\n', r->len));
    if (json && !r->unfit && strict(r->data, r->len))
        bytes_put(out, r->data, r->len);
    else
        put_string(out, r->data, r->len);
    bytes_put(out, "}\n", 2);
}
