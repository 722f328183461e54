/* Memory that grows: arrays, bytes, also those of a whole file, and blocks that are freed together. */
#ifndef TAMIS_GROWING_H
#define TAMIS_GROWING_H

#include "base/base.h"
#include "cli.h"

/* Makes room for element n of an array; false: no memory. */
static inline bool room_for(void *array, size_t n, size_t *room, size_t size)
{
    return array_room(NULL, array, n, room, size);
}

/* Appends an element to an array of *n; false: no memory. Inline, so that small elements are stored directly. */
static inline bool array_add(void *array, size_t *n, size_t *room, const void *element, size_t size)
{
    char *memory;
    if (!room_for(array, *n, room, size))
        return false;
    memcpy(&memory, array, sizeof memory); /* it points to another type */
    memcpy(memory + (*n)++ * size, element, size);
    return true;
}

/* Memory that is freed together with its owner. */
struct owned {
    void **memory;
    size_t n, room;
};
bool owned_adopt(struct owned *own, void *memory); /* false: no memory, or NULL; then it is freed */
void owned_free(struct owned *own);

/* Bytes, up to `most` of them (0: no limit). What does not fit is lost, and `failed` set. */
struct bytes {
    uint8_t *data;
    size_t len, room, most;
    bool failed;
};
bool bytes_put(struct bytes *bytes, const void *data, size_t len);
void bytes_end(struct bytes *bytes);
/* Reads on to the end of the file, or until there are `most` bytes in all; false with errno. */
bool bytes_read(struct bytes *bytes, int fd, size_t most);

/* Closes a file if it is open, sets it to -1 and leaves errno as it was. */
void fd_close(int *fd);

#endif
