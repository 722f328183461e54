/* Memory that grows, and whole files. See growing.h. */
#include "growing.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

bool owned_adopt(struct owned *own, void *memory)
{
    if (memory && array_add(&own->memory, &own->n, &own->room, &memory, sizeof memory))
        return true;
    free(memory);
    return false;
}

void owned_free(struct owned *own)
{
    for (size_t i = 0; i < own->n; i++)
        free(own->memory[i]);
    free(own->memory);
    *own = (struct owned){0};
}

bool bytes_put(struct bytes *b, const void *data, size_t len)
{
    if (b->failed || (b->most && len > b->most - b->len) ||
        (len > b->room - b->len && !room_for(&b->data, b->len + len - 1, &b->room, 1)))
        return !(b->failed = true);
    if (len)
        memcpy(b->data + b->len, data, len);
    b->len += len;
    return true;
}

void bytes_end(struct bytes *b)
{
    free(b->data);
    *b = (struct bytes){0};
}

bool bytes_read(struct bytes *b, int fd, size_t most)
{
    char some[65536];
    while (b->len < most) {
        ssize_t n = read(fd, some, most - b->len < sizeof some ? most - b->len : sizeof some);
        if (n == 0)
            break;
        if (n < 0 && errno != EINTR)
            return false;
        if (n > 0 && !bytes_put(b, some, (size_t)n)) {
            errno = ENOMEM;
            return false;
        }
    }
    return true;
}

void fd_close(int *fd)
{
    int error = errno;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    errno = error;
}
