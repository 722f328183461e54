/* The types of values, one row each. See types.h. */
#include "types.h"

/* ---- paths ----------------------------------------------------------------------------------- */

static unsigned path_parts(tamis_key value, tamis_give give, void *context)
{
    const char *text = value.data;
    unsigned n = 0;
    for (size_t len = value.len; len > 0; len--)
        if (text[len - 1] == '/') {
            give(context, (tamis_key){text, len}, true);
            n++;
        }
    return n;
}

/* The longest prefix that all paths beginning with the text have. */
static tamis_need path_ask(tamis_key asked, tamis_give give, void *context)
{
    size_t len = asked.len;
    while (len && ((const char *)asked.data)[len - 1] != '/')
        len--;
    if (len == 0)
        return TAMIS_NEED_NONE;
    give(context, (tamis_key){asked.data, len}, true);
    return TAMIS_NEED_ANY;
}

/* ---- the table ------------------------------------------------------------------------------- */

const struct type types[TAMIS_TYPES] = {
    [TAMIS_BYTES] = {.name = "text"},
    [TAMIS_INT] = {.name = "int",
                   .trims = true,
                   .plain = plain_int,
                   .normal = normal_int,
                   .order = order_int,
                   .compare = compare_int},
    [TAMIS_DEC] = {.name = "dec",
                   .trims = true,
                   .normal = normal_dec,
                   .order = order_dec,
                   .compare = compare_dec},
    [TAMIS_TIME] = {.name = "time",
                    .trims = true,
                    .plain = plain_time,
                    .normal = normal_time,
                    .order = order_time,
                    .compare = compare_time},
    [TAMIS_IP] = {.name = "ip",
                  .trims = true,
                  .nests = true,
                  .plain = plain_ip,
                  .normal = normal_ip,
                  .parts = ip_parts,
                  .serves = TAMIS_NETWORK,
                  .ask = ip_ask},
    [TAMIS_PATH] = {.name = "path",
                    .nests = true,
                    .parts = path_parts,
                    .serves = TAMIS_PREFIX,
                    .ask = path_ask},
    [TAMIS_WORDS] = {.name = "words",
                     .splits = true,
                     .parts = words_parts,
                     .serves = TAMIS_PHRASE,
                     .ask = words_ask},
    [TAMIS_FOLD] = {.name = "fold", .normal = normal_fold},
};

const char *tamis_type_name(tamis_type type)
{
    return (unsigned)type < TAMIS_TYPES ? types[type].name : NULL;
}

bool tamis_type_named(const char *name, tamis_type *type)
{
    for (unsigned i = 0; i < TAMIS_TYPES; i++)
        if (strcmp(types[i].name, name) == 0) {
            *type = (tamis_type)i;
            return true;
        }
    return false;
}

bool tamis_type_ordered(tamis_type type)
{
    return (unsigned)type < TAMIS_TYPES && types[type].order;
}

/* ---- order ----------------------------------------------------------------------------------- */

bool tamis_value_order(tamis_type type, tamis_key value, tamis_order *order)
{
    char room[NORMAL_ROOM];
    if (!tamis_type_ordered(type))
        return false;
    struct plain plain = {0};
    if (types[type].plain && value.data && types[type].plain(value.data, value.len, &plain)) {
        *order = plain.order;
        return true;
    }
    tamis_key normal = value_normal(type, value, room);
    if (normal.data != room)
        return false;
    *order = types[type].order(room, normal.len);
    return true;
}

int tamis_order_compare(tamis_order x, tamis_order y)
{
    return ORDER(x.whole, y.whole, ORDER(x.part, y.part, 0));
}

int tamis_value_compare(tamis_type type, tamis_key x, tamis_key y, bool *comparable)
{
    char x_room[NORMAL_ROOM], y_room[NORMAL_ROOM];
    *comparable = false;
    if (!tamis_type_ordered(type))
        return 0;
    x = value_normal(type, x, x_room);
    y = value_normal(type, y, y_room);
    *comparable = x.data == x_room && y.data == y_room;
    return *comparable ? types[type].compare(x_room, x.len, y_room, y.len) : 0;
}

/* ---- keys ------------------------------------------------------------------------------------ */

void tamis_type_keys(tamis_type type, tamis_key value, tamis_give give, void *context)
{
    char normal[NORMAL_ROOM];
    const struct type *row = &types[type];
    unsigned n = row->parts && value.data ? row->parts(value, give, context) : 0;
    if (!row->splits || n == 0)
        give(context, value_normal(type, value, normal), false);
}

tamis_need tamis_type_ask(tamis_type type, tamis_op op, tamis_key asked, tamis_give give,
                          void *context)
{
    char normal[NORMAL_ROOM];
    const struct type *row = &types[type];
    if (op == TAMIS_EQUAL) {
        if (row->splits && asked.data && row->ask(asked, give, context) == TAMIS_NEED_ALL)
            return TAMIS_NEED_ALL;
        give(context, value_normal(type, asked, normal), false);
        return TAMIS_NEED_ANY;
    }
    if (!asked.data)
        return TAMIS_NEED_WRONG;
    if (row->serves == op)
        return row->ask(asked, give, context);
    return op == TAMIS_NETWORK || (op == TAMIS_PHRASE && !words_any(asked)) ? TAMIS_NEED_WRONG
                                                                            : TAMIS_NEED_NONE;
}

bool tamis_type_match(tamis_type type, tamis_op op, tamis_key value, tamis_key asked)
{
    char value_room[NORMAL_ROOM], asked_room[NORMAL_ROOM];
    if (!value.data || !asked.data)
        return op == TAMIS_EQUAL && !value.data && !asked.data;
    if (op == TAMIS_NETWORK)
        return type == TAMIS_IP && ip_match(value, asked);
    if (op == TAMIS_PHRASE)
        return words_match(value, asked);
    if (op == TAMIS_EQUAL || type == TAMIS_FOLD) {
        value = value_normal(type, value, value_room);
        asked = value_normal(type, asked, asked_room);
    }
    return (op == TAMIS_EQUAL ? value.len == asked.len : value.len >= asked.len) &&
           memcmp(value.data, asked.data, asked.len) == 0;
}
