/* The shape of JSON, found by a walk that skips its contents. See reader_shape.h. */
#include "reader_shape.h"

#include <string.h>

#define SHAPE_LEVELS 64

struct json_walk {
    const uint8_t *text;
    size_t len, at;
    uint8_t level[SHAPE_LEVELS];
    size_t depth;
    size_t key, key_len; /* the last key at the first level */
    size_t list;         /* start of an array of objects at the first level, 0: not in one */
    char want; /* 'v' a value, 'f' the first value or the end, 'k' a key, 'o' the first key or the
                    end, ':', ',' a comma or the end */
};

/* Skips a string, from its opening quote; false: it does not end in the text, or not in its
   line. */
static bool walk_string(struct json_walk *w, bool *broken)
{
    for (w->at++; w->at < w->len; w->at++) {
        uint8_t c = w->text[w->at];
        if (c == '\n')
            return *broken = true, false;
        if (c == '\\')
            w->at++;
        else if (c == '"')
            return w->at++, true;
    }
    return false;
}

static bool walk_open(struct json_walk *w, struct json_shape *shape, uint8_t c)
{
    if ((w->want != 'v' && w->want != 'f') || w->depth == SHAPE_LEVELS)
        return false;
    if (w->depth == 1 && w->level[0] == '[' && w->want == 'f')
        shape->nested = true;
    if (w->depth == 2 && w->level[1] == '[' && w->level[0] == '{' && c == '{' && !w->list)
        w->list = w->at;
    w->level[w->depth++] = c;
    w->want = c == '{' ? 'o' : 'f';
    w->at++;
    return true;
}

/* An array of objects ends here, or the text ends in it. */
static void end_list(struct json_walk *w, struct json_shape *shape)
{
    if (w->at - w->list > shape->listed) {
        shape->listed = w->at - w->list;
        shape->name = w->key;
        shape->name_len = w->key_len;
    }
    w->list = 0;
}

static bool walk_close(struct json_walk *w, struct json_shape *shape, uint8_t c)
{
    bool ends = w->want == ',' || w->want == (c == '}' ? 'o' : 'f');
    if (!ends || !w->depth || w->level[w->depth - 1] != (c == '}' ? '{' : '['))
        return false;
    w->depth--;
    w->at++;
    w->want = ',';
    if (w->depth == 1 && w->list)
        end_list(w, shape);
    return true;
}

/* One token that is not a bracket; false: not valid here, or the text ends in it. */
static bool walk_token(struct json_walk *w, struct json_shape *shape, uint8_t c)
{
    bool value = w->want == 'v' || w->want == 'f', key = w->want == 'k' || w->want == 'o';
    shape->broken = true;
    if (c == '"') {
        if (!value && !key)
            return false;
        shape->broken = false;
        shape->keys += key && w->depth == 1;
        w->want = key ? ':' : ',';
        size_t start = w->at + 1;
        bool closed = walk_string(w, &shape->broken);
        if (closed && key && w->depth == 1) {
            w->key = start;
            w->key_len = w->at - 1 - start;
        }
        return closed;
    }
    if (c == ':' || c == ',') {
        if (w->want != (char)c)
            return false;
        w->want = c == ':' || w->level[w->depth - 1] == '[' ? 'v' : 'k';
        w->at++;
    } else {
        size_t start = w->at;
        while (w->at < w->len && (w->text[w->at] > ' ') && !strchr(",:]}[{\"", w->text[w->at]))
            w->at++;
        if (!value || w->at == start || !strchr("-0123456789tfnNI", c))
            return false;
        w->want = ',';
    }
    shape->broken = false;
    return true;
}

struct json_shape json_shape_of(const uint8_t *text, size_t len)
{
    struct json_shape shape = {0};
    struct json_walk w = {.text = text, .len = len, .want = 'v'};
    bool good = true;
    while (good && w.at < len && shape.end == 0) {
        uint8_t c = text[w.at];
        if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
            shape.lines |= c == '\n' && w.depth > 0;
            w.at++;
        } else if (c == '{' || c == '[') {
            good = walk_open(&w, &shape, c);
            shape.broken = !good;
        } else if (c == '}' || c == ']') {
            good = walk_close(&w, &shape, c);
            shape.broken = !good;
            shape.end = good && w.depth == 0 ? w.at : 0;
        } else {
            good = walk_token(&w, &shape, c);
        }
    }
    if (w.list)
        end_list(&w, &shape);
    return shape;
}
