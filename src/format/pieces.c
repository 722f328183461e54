/* What pieces_out.c and pieces_in.c share. */
#include "pieces.h"

#include "format.h"

uint64_t pieces_total(const void *data, size_t len)
{
    uint64_t total, header;
    return prefix_lengths(data, len, &total, &header) && total >= len ? total : 0;
}
