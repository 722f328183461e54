/* What format_out.c and format_in.c share. To them a filter is an index of layers with one part each:
   the owner of a section is the number of a part. */
#include "format_pieces.h"

#include "format.h"

tamis_error whole_head(struct index_head *head, enum kind kind, const uint8_t *body, uint64_t len,
                       bool bits_only, tamis_hash hash, tamis_reason *reason)
{
    if (kind == KIND_INDEX)
        return index_head_parse(head, body, len, bits_only, hash, reason);
    *head = (struct index_head){.parts = 1};
    tamis_error e = head_parse(&head->head, body, len, bits_only, hash, reason);
    head->records = head->head.records;
    return e;
}

struct section_walk whole_sections(const struct index_head *head, enum kind kind)
{
    return kind == KIND_INDEX ? index_sections(head) : filter_sections(&head->head);
}

struct vector *whole_vector(const struct whole *whole, uint32_t owner)
{
    return whole->filter ? filter_stack(whole->filter)->v[owner]
                         : index_part(whole->index, owner)->vector;
}

bool whole_is_full(const struct whole *whole)
{
    return whole->filter ? growth_ends(whole->filter) : index_is_full(whole->index);
}

uint64_t pieces_total(const void *data, size_t len)
{
    uint64_t total, header;
    return prefix_lengths(data, len, &total, &header) && total >= len ? total : 0;
}
