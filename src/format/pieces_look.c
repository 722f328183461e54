/* What must hold in each kind of section, checked as its bytes arrive: see pieces_in.c. Errors
   are recorded, and reported when the checksums are known. */
#include "base/err.h"
#include "sections.h"

/* ---- vectors --------------------------------------------------------------------------------- */

static void note_wrong(struct pieces_in *in, const char *what)
{
    if (in->wrong == TAMIS_OK)
        in->wrong =
            fail_at(&in->reason, TAMIS_EFORMAT, in->s.offset, "vector %u: %s", in->s.owner, what);
}

/* The bytes of the section. */
static const uint8_t *here(const struct pieces_in *in)
{
    uint8_t *(*data)(const struct set *, uint32_t) = section_kinds[in->s.type].data;
    return in->view                    ? in->view + in->s.offset
           : data                      ? data(in->set, in->s.owner)
           : in->s.offset < in->tables ? in->aside.data + (in->s.offset - in->late)
                                       : in->held.data;
}

void bits_look(struct pieces_in *in)
{
    in->ones[in->s.owner] += bytes_ones(here(in) + in->checked, (size_t)(in->done - in->checked));
    in->checked = in->done;
}

/* By groups of rows that are whole words. */
void matrix_look(struct pieces_in *in)
{
    uint64_t width = in->head.width, step = width < 64 ? 8 * width : width / 8;
    bool all = in->done == in->s.len;
    uint64_t to = all ? in->done : in->done / step * step;
    matrix_count_ones(here(in) + in->checked, 8 * (to - in->checked) / width, width, in->ones);
    in->checked = to;
    for (uint64_t i = in->head.n; all && i < width; i++)
        if (in->ones[i])
            note_wrong(in, "bits are set in a column without a vector");
}

/* A bit is set if its counter is not 0; counters of 15 are counted, for the next section. */
void counters_look(struct pieces_in *in)
{
    const struct vector *v = set_part(in->set, in->s.owner)->vector;
    const uint8_t *nibbles = here(in);
    bool all = in->done == in->s.len;
    uint64_t to = all ? in->done : in->done / 32 * 32;
    for (; in->checked < to; in->checked += 32) {
        uint64_t set, large, n = min_u64(32, to - in->checked);
        counters_masks(nibbles + in->checked, (size_t)n, &set, &large);
        if (set != vector_word(v, in->checked / 32))
            note_wrong(in, "bits and counters do not agree");
        in->large += (uint64_t)__builtin_popcountll(large);
    }
    if (all && in->large != head_record(&in->head, in->s.owner).escapes)
        note_wrong(in, "the large counters are not in their table");
}

/* There must be as many as there are counters of 15, in ascending order, each at one of these: so all of them. */
void escapes_look(struct pieces_in *in)
{
    struct vector *v = set_part(in->set, in->s.owner)->vector;
    const uint8_t *entries = here(in);
    uint64_t len, positions = vector_positions_total(v);
    const uint8_t *nibbles = in->view ? container_find(&in->c, SECTION_COUNTERS, in->s.owner, &len)
                                      : v->counters.nibbles.data;
    for (; in->checked + 16 <= in->done; in->checked += 16) {
        uint64_t at = fetch_u64(entries + in->checked), value = get_u64(entries + in->checked + 8);
        if (in->wrong != TAMIS_OK)
            continue;
        if (at < in->last || at >= positions || value < COUNTER_ESCAPE ||
            (nibbles[at / 2] >> (4 * (at & 1)) & 15) != COUNTER_ESCAPE)
            note_wrong(in, "the large counters are not in their table");
        else if (!in->view)
            counters_escape(&v->counters, at, value);
        in->last = at + 1;
    }
}

/* Checks a part of lines, piece by piece. Where lines and stash are not checked, the lists still
   are: they are small and in memory. */
void lines_look(struct pieces_in *in)
{
    struct part_check *c = &in->lines;
    uint32_t number = in->s.owner / PART_PIECES;
    enum part_bytes what = in->s.owner % PART_PIECES;
    const struct body *b = lines_part(set_lines(in->set), number);
    struct part_facts facts = head_part(&in->head, number);
    const char *wrong = NULL;
    if (in->checked == 0 && (what == PART_LINES || in->skim)) {
        part_check_begin(c, &facts);
        c->skim = in->skim;
    }
    bool all = in->done == in->s.len;
    in->checked = in->done;
    if (what == PART_LINES)
        wrong = part_check_lines(c, part_data(b, PART_LINES), in->done / LINE_BYTES);
    else if (all && what == PART_STASH)
        wrong = part_check_stash(c, part_data(b, PART_LINES), part_data(b, PART_STASH));
    else if (all)
        wrong = part_check_list(c, what, (const void *)part_data(b, what));
    bool last = all && !in->skim;
    for (unsigned later = what + 1; later < PART_PIECES; later++)
        last &= part_len(&facts, later) == 0;
    if (!wrong && last && in->wrong == TAMIS_OK)
        wrong = part_check_end(c);
    if (wrong && in->wrong == TAMIS_OK)
        in->wrong = fail_at(&in->reason, TAMIS_EFORMAT, in->s.offset, "part %u of the lines: %s",
                            number, wrong);
}

/* The numbers must be those counted; or possible ones, if none were counted. */
void ones_look(struct pieces_in *in)
{
    const uint8_t *numbers = here(in);
    for (; in->checked + 8 <= in->done && in->wrong == TAMIS_OK; in->checked += 8) {
        uint32_t i = (uint32_t)(in->checked / 8);
        struct vector *v = set_part(in->set, i)->vector;
        uint64_t said = fetch_u64(numbers + in->checked), m = v ? vector_positions_total(v) : 0;
        if (in->skim ? said > m : said != in->ones[i])
            in->wrong = fail_at(&in->reason, TAMIS_EFORMAT, in->s.offset + in->checked,
                                in->skim ? "vector %u has more bits set than there are"
                                         : "vector %u has %llu bits set, not %llu",
                                i, (unsigned long long)in->ones[i], (unsigned long long)said);
        else if (v)
            v->ones = said;
    }
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* Hashes are evenly spread, which makes lookups short: on average a value is 2 slots from its home.
   Values chosen by an attacker may all be in one run, and building a table of them would take hours. */
#define FAR_MEAN  64
#define FAR_SMALL 65536 /* in total, for tables so small that it does not matter */

/* Values must be in order, each once, with copies. */
static const char *pair_wrong(struct table_check *t, const uint8_t pair[TABLE_PAIR])
{
    uint64_t value = fetch_u64(pair), copies = get_u64(pair + 8), hash = table_hash(value);
    uint64_t home = hash >> t->shift;
    if (t->n && (hash < t->hash || (hash == t->hash && value <= t->value)))
        return "its values are not in order";
    if (copies == 0 || __builtin_add_overflow(t->copies, copies, &t->copies))
        return "copies of a value";
    t->next = max_u64(t->next, home) + 1;
    t->far += t->next - 1 - home;
    if (t->far > t->most)
        return "its values are too close to one another";
    t->n++, t->hash = hash, t->value = value;
    return NULL;
}

/* Deletable records have as many copies as the layer has records. */
static const char *copies_wrong(const struct pieces_in *in, uint64_t copies, uint32_t owner)
{
    if (in->head.counted && copies != head_layer(&in->head, owner / in->head.parts).count)
        return "its copies are not the records of the layer";
    return NULL;
}

/* Complete pairs go to the table; after an error none does, and everything that arrives is held
   until the load ends. */
void table_look(struct pieces_in *in)
{
    struct table *table = &set_part(in->set, in->s.owner)->table;
    const uint8_t *from = in->view ? here(in) + in->checked : in->held.data;
    uint64_t have = in->view ? in->done - in->checked : in->held.len, at = 0;
    if (in->checked == 0) {
        uint64_t values = head_record(&in->head, in->s.owner).load;
        in->pairs = (struct table_check){.most = FAR_MEAN * values + FAR_SMALL,
                                         .shift = table_shift((size_t)values)};
    }
    for (; in->wrong == TAMIS_OK && at + TABLE_PAIR <= have; at += TABLE_PAIR) {
        const char *wrong = pair_wrong(&in->pairs, from + at);
        if (!wrong && in->checked + TABLE_PAIR == in->s.len)
            wrong = copies_wrong(in, in->pairs.copies, in->s.owner);
        if (wrong) {
            in->wrong = fail_at(&in->reason, TAMIS_EFORMAT, in->s.offset,
                                "the table of part %u: %s", in->s.owner, wrong);
            break;
        }
        if (!in->view)
            table_append(table, &in->next, in->pairs.value, get_u64(from + at + 8));
        in->checked += TABLE_PAIR;
    }
    if (in->view || !at)
        return;
    in->held.len -= at;
    memmove(in->held.data, in->held.data + at, (size_t)in->held.len);
}

tamis_error check_empty_tables(const struct pieces_in *in, tamis_reason *reason)
{
    for (uint32_t i = 0; i < in->walk.owners && in->kind == KIND_RECORDS; i++) {
        struct part_record r = head_record(&in->head, i);
        const char *wrong = r.units || r.load ? NULL : copies_wrong(in, 0, i);
        if (wrong)
            return fail_at(reason, TAMIS_EFORMAT, in->header_len, "the table of part %u: %s", i,
                           wrong);
    }
    return TAMIS_OK;
}
