/* The kinds of sections of a set: how long they are, where their bytes are, who writes and
   checks them. A new kind of part is a row here. */
#include "sections.h"

static uint64_t positions_of(const struct head *head, uint32_t owner)
{
    struct part_record r = head_record(head, owner);
    return record_positions(head, &r);
}

static bool bits_length(const struct head *head, uint32_t owner, uint64_t *len)
{
    *len = positions_of(head, owner) / 8;
    return *len && head->width == 0;
}

static bool matrix_length(const struct head *head, uint32_t owner, uint64_t *len)
{
    *len = head->set.shape.units * head->width / 8;
    return owner == 0 && head->width;
}

static bool counters_length(const struct head *head, uint32_t owner, uint64_t *len)
{
    *len = positions_of(head, owner) / 2;
    return *len && head->counted;
}

static bool escapes_length(const struct head *head, uint32_t owner, uint64_t *len)
{
    *len = 16 * head_record(head, owner).escapes;
    return *len;
}

static bool pending_length(const struct head *head, uint32_t owner, uint64_t *len)
{
    *len = PENDING_LEN(head->digests) * head->pending;
    return owner == 0 && *len;
}

static bool candidates_length(const struct head *head, uint32_t owner, uint64_t *len)
{
    *len = sizeof(uint32_t) * head->candidates;
    return owner == 0 && *len;
}

static bool table_length(const struct head *head, uint32_t owner, uint64_t *len)
{
    struct part_record r = head_record(head, owner);
    *len = TABLE_PAIR * r.load;
    return r.units == 0 && r.load;
}

static bool ones_length(const struct head *head, uint32_t owner, uint64_t *len)
{
    *len = sizeof(uint64_t) * (uint64_t)head->n * head->parts;
    return owner == 0;
}

static bool lines_length(const struct head *head, uint32_t owner, uint64_t *len)
{
    struct part_facts p = head_part(head, owner / PART_PIECES);
    *len = part_len(&p, owner % PART_PIECES);
    return *len;
}

static uint8_t *bits_data(const struct set *s, uint32_t owner)
{
    return (uint8_t *)set_part(s, owner)->vector->bits.words;
}

static uint8_t *matrix_data(const struct set *s, uint32_t owner)
{
    (void)owner;
    return (uint8_t *)atomic_load(&s->stack->more->matrix)->bits.words;
}

static uint8_t *counters_data(const struct set *s, uint32_t owner)
{
    return set_part(s, owner)->vector->counters.nibbles.data;
}

static uint8_t *lines_data(const struct set *s, uint32_t owner)
{
    return part_data(lines_part(set_lines(s), owner / PART_PIECES), owner % PART_PIECES);
}

const struct section_kind section_kinds[SECTION_END] = {
    [SECTION_BITS] = {bits_length, bits_data, bits_make, bits_look},
    [SECTION_MATRIX] = {matrix_length, matrix_data, matrix_make, matrix_look},
    [SECTION_COUNTERS] = {counters_length, counters_data, NULL, counters_look},
    [SECTION_ESCAPES] = {escapes_length, NULL, escapes_make, escapes_look},
    [SECTION_PENDING] = {pending_length, NULL, NULL, NULL},
    [SECTION_CANDIDATES] = {candidates_length, NULL, NULL, NULL},
    [SECTION_TABLE] = {table_length, NULL, table_make, table_look},
    [SECTION_LINES] = {lines_length, lines_data, NULL, lines_look},
    [SECTION_ONES] = {ones_length, NULL, NULL, ones_look},
};
