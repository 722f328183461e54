/* See fault.h. */
#include "fault.h"

#include <stdlib.h>
#include <string.h>

#define MAGIC UINT64_C(0x7461756c742d6f6b)

/* 16 bytes, so that what follows is aligned as malloc's. */
struct front {
    uint64_t magic;
    uint64_t size;
};

static void *fault_alloc(void *context, size_t size)
{
    struct fault *fault = context;
    fault->calls++;
    bool fails = fault->fail_at && (fault->and_after ? fault->calls >= fault->fail_at
                                                     : fault->calls == fault->fail_at);
    struct front *front = fails ? NULL : malloc(sizeof *front + size);
    if (!front) {
        fault->failed++;
        return NULL;
    }
    *front = (struct front){MAGIC, size};
    memset(front + 1, 0xA5, size); /* nobody may count on zeroes */
    fault->blocks++;
    fault->bytes += size;
    return front + 1;
}

static void fault_free(void *context, void *memory, size_t size)
{
    struct fault *fault = context;
    struct front *front = (struct front *)memory - 1;
    if (front->magic != MAGIC || front->size != size) {
        fault->wrong++;
        return;
    }
    for (size_t i = 0; fault->secret && i + 16 <= size; i++)
        if (memcmp((uint8_t *)memory + i, fault->secret, 16) == 0) {
            fault->left++;
            break;
        }
    front->magic = 0;
    fault->blocks--;
    fault->bytes -= size;
    free(front);
}

void fault_init(struct fault *fault)
{
    *fault =
        (struct fault){.allocator = {.alloc = fault_alloc, .free = fault_free, .context = fault}};
}

void fault_arm(struct fault *fault, uint64_t n, bool and_after)
{
    fault->fail_at = n ? fault->calls + n : 0;
    fault->and_after = and_after;
}

bool fault_clean(const struct fault *fault)
{
    return fault->blocks == 0 && fault->bytes == 0 && fault->wrong == 0;
}
