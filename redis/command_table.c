/* The table of commands: names, flags, keys, and their descriptions for COMMAND DOCS. */
#include "module.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define SINCE "0.1.0"

/* ---- arguments ------------------------------------------------------------------------------- */

typedef RedisModuleCommandArg arg;

#define ARG(what, text)                                           \
    {                                                             \
        .name = text, .type = RM_ARG_##what, .key_spec_index = -1 \
    }
#define ARG_OF_KEY(text, spec)                                   \
    {                                                            \
        .name = text, .type = RM_ARG_KEY, .key_spec_index = spec \
    }
#define ARG_SET(what, text, word)                                                 \
    {                                                                             \
        .name = text, .type = RM_ARG_##what, .key_spec_index = -1, .token = word, \
        .flags = RM_ARG_OPTIONAL                                                  \
    }
#define ARG_MANY(what, text)                                                                \
    {                                                                                       \
        .name = text, .type = RM_ARG_##what, .key_spec_index = -1, .flags = RM_ARG_MULTIPLE \
    }

#define ARG_SET_MANY(what, text, word)                                            \
    {                                                                             \
        .name = text, .type = RM_ARG_##what, .key_spec_index = -1, .token = word, \
        .flags = RM_ARG_OPTIONAL | RM_ARG_MULTIPLE                                \
    }

static arg args_key[] = {ARG_OF_KEY("key", 0), {0}};
static arg args_item[] = {ARG_OF_KEY("key", 0), ARG(STRING, "item"), {0}};
static arg args_items[] = {ARG_OF_KEY("key", 0), ARG_MANY(STRING, "item"), {0}};
static arg args_clock[] = {ARG_OF_KEY("key", 0), ARG_SET(INTEGER, "nanoseconds", "AT"), {0}};
static arg args_cursor[] = {
    ARG_OF_KEY("key", 0), ARG(INTEGER, "cursor"), ARG_SET(TOKEN, "withkey", "WITHKEY"), {0}};
static arg args_chunk[] = {ARG_OF_KEY("key", 0), ARG(INTEGER, "cursor"), ARG(STRING, "data"), {0}};
static arg args_load[] = {ARG_OF_KEY("key", 0),          ARG(INTEGER, "offset"),
                          ARG(STRING, "data"),           ARG_SET(INTEGER, "bytes", "MAXMEM"),
                          ARG_SET(STRING, "hex", "KEY"), {0}};

static arg words_of_growth[] = {
    {.name = "fixed", .type = RM_ARG_TOKEN, .token = "fixed", .key_spec_index = -1},
    {.name = "dynamic", .type = RM_ARG_TOKEN, .token = "dynamic", .key_spec_index = -1},
    {.name = "scalable", .type = RM_ARG_TOKEN, .token = "scalable", .key_spec_index = -1},
    {.name = "flexible", .type = RM_ARG_TOKEN, .token = "flexible", .key_spec_index = -1},
    {.name = "window", .type = RM_ARG_TOKEN, .token = "window", .key_spec_index = -1},
    {.name = "smooth", .type = RM_ARG_TOKEN, .token = "smooth", .key_spec_index = -1},
    {0}};

#define ARGS_OF_CREATION                                                                    \
    ARG_SET(INTEGER, "expansion", "EXPANSION"), ARG_SET(TOKEN, "nonscaling", "NONSCALING"), \
        {.name = "growth",                                                                  \
         .type = RM_ARG_ONEOF,                                                              \
         .key_spec_index = -1,                                                              \
         .token = "GROWTH",                                                                 \
         .flags = RM_ARG_OPTIONAL,                                                          \
         .subargs = words_of_growth},                                                       \
        ARG_SET(DOUBLE, "seconds", "WINDOW"), ARG_SET(TOKEN, "deletable", "DELETABLE"),     \
        ARG_SET(TOKEN, "unique", "UNIQUE"), ARG_SET(TOKEN, "compact", "COMPACT"),           \
        ARG_SET(STRING, "layout", "LAYOUT"), ARG_SET(STRING, "hash", "HASH"),               \
        ARG_SET(INTEGER, "bytes", "MAXMEM"), ARG_SET(STRING, "hex", "KEY"),                 \
        ARG_SET(INTEGER, "nanoseconds", "AT")

#define ARG_ITEMS                                                                      \
    {                                                                                  \
        .name = "item", .type = RM_ARG_STRING, .key_spec_index = -1, .token = "ITEMS", \
        .flags = RM_ARG_MULTIPLE                                                       \
    }

static arg args_reserve[] = {ARG_OF_KEY("key", 0),
                             ARG(DOUBLE, "error_rate"),
                             ARG(INTEGER, "capacity"),
                             ARGS_OF_CREATION,
                             {.name = "model",
                              .type = RM_ARG_KEY,
                              .key_spec_index = 1,
                              .token = "LIKE",
                              .flags = RM_ARG_OPTIONAL},
                             {0}};
static arg args_insert[] = {ARG_OF_KEY("key", 0),
                            ARG_SET(INTEGER, "capacity", "CAPACITY"),
                            ARG_SET(DOUBLE, "error_rate", "ERROR"),
                            ARG_SET(TOKEN, "nocreate", "NOCREATE"),
                            ARG_SET(TOKEN, "nx", "NX"),
                            ARGS_OF_CREATION,
                            ARG_ITEMS,
                            {0}};
static arg args_remove[] = {
    ARG_OF_KEY("key", 0), ARG_SET(INTEGER, "nanoseconds", "AT"), ARG_ITEMS, {0}};
static arg args_pairs[] = {ARG_OF_KEY("key", 0), ARG_MANY(STRING, "attribute=value"), {0}};
static arg args_xreserve[] = {
    ARG_OF_KEY("key", 0),
    ARG(DOUBLE, "error_rate"),
    ARG(INTEGER, "capacity"),
    {.name = "n", .type = RM_ARG_INTEGER, .key_spec_index = -1, .token = "ATTRIBUTES"},
    ARG_MANY(STRING, "attribute"),
    ARG_SET_MANY(STRING, "combination", "COMBO"),
    ARG_SET(TOKEN, "nocombos", "NOCOMBOS"),
    ARG_SET(STRING, "verifier", "VERIFIER"),
    ARGS_OF_CREATION,
    {0}};
static arg args_publish[] = {ARG_OF_KEY("key", 0),
                             ARG_OF_KEY("stream", 1),
                             ARG(STRING, "owner"),
                             ARG_SET(DOUBLE, "miss", "MISS"),
                             ARG_SET(DOUBLE, "false_rate", "FALSERATE"),
                             ARG_SET(DOUBLE, "weights", "WEIGHTS"),
                             ARG_SET(DOUBLE, "dirty", "DIRTY"),
                             ARG_SET(DOUBLE, "max_age", "MAXAGE"),
                             ARG_SET(DOUBLE, "beat", "BEAT"),
                             ARG_SET(TOKEN, "withkey", "WITHKEY"),
                             {0}};
static arg args_bf_reserve[] = {ARG_OF_KEY("key", 0),
                                ARG(DOUBLE, "error_rate"),
                                ARG(INTEGER, "capacity"),
                                ARG_SET(INTEGER, "expansion", "EXPANSION"),
                                ARG_SET(TOKEN, "nonscaling", "NONSCALING"),
                                {0}};
static arg args_bf_insert[] = {ARG_OF_KEY("key", 0),
                               ARG_SET(INTEGER, "capacity", "CAPACITY"),
                               ARG_SET(DOUBLE, "error_rate", "ERROR"),
                               ARG_SET(INTEGER, "expansion", "EXPANSION"),
                               ARG_SET(TOKEN, "nocreate", "NOCREATE"),
                               ARG_SET(DOUBLE, "ratio", "TIGHTENING"),
                               ARG_SET(STRING, "bytes", "SEED"),
                               ARG_SET(INTEGER, "n", "VALIDATESCALETO"),
                               ARG_SET(TOKEN, "nonscaling", "NONSCALING"),
                               ARG_ITEMS,
                               {0}};
static arg args_bf_info[] = {
    ARG_OF_KEY("key", 0),
    {.name = "field", .type = RM_ARG_STRING, .key_spec_index = -1, .flags = RM_ARG_OPTIONAL},
    {0}};
static arg args_convert[] = {ARG_OF_KEY("key", 0),
                             ARG_SET_MANY(STRING, "item", "ITEMS"),
                             ARG_SET(TOKEN, "force", "FORCE"),
                             {0}};
static arg args_bf_load[] = {ARG_OF_KEY("key", 0), ARG(STRING, "data"), {0}};
static arg args_ontop[] = {
    ARG_OF_KEY("key", 0),
    {.name = "data", .type = RM_ARG_STRING, .key_spec_index = -1, .flags = RM_ARG_OPTIONAL},
    {.name = "option",
     .type = RM_ARG_STRING,
     .key_spec_index = -1,
     .token = "RESERVE",
     .flags = RM_ARG_OPTIONAL | RM_ARG_MULTIPLE},
    ARG_SET(INTEGER, "bytes", "MAXMEM"),
    {0}};
static arg args_cf_reserve[] = {ARG_OF_KEY("key", 0),
                                ARG(INTEGER, "capacity"),
                                ARG_SET(INTEGER, "bucketsize", "BUCKETSIZE"),
                                ARG_SET(INTEGER, "maxiterations", "MAXITERATIONS"),
                                ARG_SET(INTEGER, "expansion", "EXPANSION"),
                                {0}};
static arg args_cf_insert[] = {ARG_OF_KEY("key", 0),
                               ARG_SET(INTEGER, "capacity", "CAPACITY"),
                               ARG_SET(TOKEN, "nocreate", "NOCREATE"),
                               ARG_ITEMS,
                               {0}};
static arg args_fold[] = {ARG_OF_KEY("key", 0), ARG_SET(TOKEN, "restate", "RESTATE"), {0}};
static arg args_merge[] = {
    ARG_OF_KEY("destination", 0),
    ARG(INTEGER, "numkeys"),
    {.name = "source", .type = RM_ARG_KEY, .key_spec_index = 1, .flags = RM_ARG_MULTIPLE},
    ARG_SET(TOKEN, "restate", "RESTATE"),
    ARG_SET(TOKEN, "concat", "CONCAT"),
    ARG_SET(TOKEN, "disjoint", "DISJOINT"),
    {0}};
static arg args_intersect[] = {
    ARG_OF_KEY("destination", 0), ARG_OF_KEY("a", 1), ARG_OF_KEY("b", 1), {0}};

/* ---- keys: which arguments are keys, and what is done with them -------------------------------- */

typedef RedisModuleCommandKeySpec spec;

/* The argument `at`, and `more` arguments after it. */
#define KEYS(how, at, more)                                             \
    {                                                                   \
        .flags = (how), .begin_type = RM_BEGIN_INDEX, .bs.index = {at}, \
        .find_type = RM_FIND_RANGE, .fk.range = {                       \
            more,                                                       \
            1,                                                          \
            0                                                           \
        }                                                               \
    }
#define FIRST_KEY(how) KEYS(how, 1, 0)

static spec keys_read[] = {FIRST_KEY(RM_KEYS_RO | RM_KEYS_ACCESS), {0}};
static spec keys_write[] = {FIRST_KEY(RM_KEYS_RW | RM_KEYS_INSERT), {0}};
static spec keys_add[] = {FIRST_KEY(RM_KEYS_RW | RM_KEYS_ACCESS | RM_KEYS_INSERT), {0}};
static spec keys_remove[] = {FIRST_KEY(RM_KEYS_RW | RM_KEYS_ACCESS | RM_KEYS_DELETE), {0}};
static spec keys_clear[] = {FIRST_KEY(RM_KEYS_RW | RM_KEYS_DELETE), {0}};
static spec keys_update[] = {FIRST_KEY(RM_KEYS_RW | RM_KEYS_UPDATE), {0}};
static spec keys_reserve[] = {FIRST_KEY(RM_KEYS_RW | RM_KEYS_INSERT),
                              {.flags = RM_KEYS_RO | RM_KEYS_ACCESS,
                               .begin_type = RM_BEGIN_KEYWORD,
                               .bs.keyword = {"LIKE", 2},
                               .find_type = RM_FIND_RANGE,
                               .fk.range = {0, 1, 0}},
                              {0}};
static spec keys_merge[] = {FIRST_KEY(RM_KEYS_RW | RM_KEYS_ACCESS | RM_KEYS_UPDATE),
                            {.flags = RM_KEYS_RO | RM_KEYS_ACCESS,
                             .begin_type = RM_BEGIN_INDEX,
                             .bs.index = {2},
                             .find_type = RM_FIND_KEYNUM,
                             .fk.keynum = {0, 1, 1}},
                            {0}};
static spec keys_publish[] = {FIRST_KEY(RM_KEYS_RW | RM_KEYS_ACCESS | RM_KEYS_UPDATE),
                              KEYS(RM_KEYS_RW | RM_KEYS_INSERT, 2, 0),
                              {0}};
static spec keys_intersect[] = {
    FIRST_KEY(RM_KEYS_RW | RM_KEYS_INSERT), KEYS(RM_KEYS_RO | RM_KEYS_ACCESS, 2, 1), {0}};

/* ---- the table ------------------------------------------------------------------------------- */

#define READS   "readonly fast"
#define SCANS   "readonly"
#define ADDS    "write deny-oom"
#define REMOVES "write"
/* The position of some keys depends on a word or a number, which key specs cannot express: the server asks the
   command. */
#define KEYED " getkeys-api"

static const struct command {
    const char *name;
    RedisModuleCmdFunc run;
    const char *flags;
    int arity;
    spec *keys;
    arg *args;
    const char *summary, *complexity;
    RedisModuleCmdFunc bf; /* the handler of BF.name, or NULL */
    arg *bf_args;
} commands[] = {
    {"RESERVE", command_reserve, ADDS KEYED, -4, keys_reserve, args_reserve,
     "Creates an empty filter with a total error rate and a capacity", "O(1)", command_bf_reserve,
     args_bf_reserve},
    {"ADD", command_add, ADDS " fast", 3, keys_add, args_item,
     "Adds an item, creating the filter if needed; false if it may have been there already",
     "O(k) for k hashes", command_bf_add, args_item},
    {"MADD", command_madd, ADDS, -3, keys_add, args_items,
     "Adds items, creating the filter if needed", "O(k n) for n items", command_bf_madd,
     args_items},
    {"INSERT", command_insert, ADDS, -4, keys_add, args_insert,
     "Adds items, creating the filter with these parameters if needed", "O(k n) for n items",
     command_bf_insert, args_bf_insert},
    {"EXISTS", command_exists, READS, 3, keys_read, args_item,
     "Returns whether an item may be there; 0 is certain", "O(k) for k hashes", command_bf_exists,
     args_item},
    {"MEXISTS", command_mexists, SCANS, -3, keys_read, args_items,
     "Returns for each item whether it may be there; 0 is certain", "O(k n) for n items",
     command_bf_mexists, args_items},
    {"DEL", command_del, REMOVES " fast", 3, keys_remove, args_item,
     "Removes an item that was added: 1 removed, 0 not there, 2 pending", "O(k) for k hashes", NULL,
     NULL},
    {"MDEL", command_mdel, REMOVES, -3, keys_remove, args_items, "Removes items that were added",
     "O(k n) for n items", NULL, NULL},
    {"REMOVE", command_remove, REMOVES, -4, keys_remove, args_remove,
     "Removes items that were added, with the time of the removal", "O(k n) for n items", NULL,
     NULL},
    {"CARD", command_card, READS, 2, keys_read, args_key,
     "Returns the number of items added and not removed", "O(1)", command_card, args_key},
    {"INFO", command_info, SCANS, -2, keys_read, args_key,
     "Returns parameters, size, fill and the present estimate of the error rate",
     "O(bytes), less for large filters; BF.INFO: O(1)", command_bf_info, args_bf_info},
    {"CLEAR", command_clear, REMOVES, -2, keys_clear, args_clock,
     "Empties a filter and keeps its parameters", "O(1)", NULL, NULL},
    {"FORGET", command_forget, REMOVES, -2, keys_clear, args_clock,
     "Drops items older than the window, as adds do", "O(1)", NULL, NULL},
    {"MERGE", command_merge, ADDS KEYED, -4, keys_merge, args_merge,
     "Merges filters into a destination, creating it if needed", "O(bytes)", NULL, NULL},
    {"INTERSECT", command_intersect, ADDS, 4, keys_intersect, args_intersect,
     "Creates a filter of the bits that two filters have in common", "O(bytes)", NULL, NULL},
    {"FOLD", command_fold, REMOVES, -2, keys_update, args_fold,
     "Halves the memory of a filter that is at most half full", "O(bytes)", NULL, NULL},
    {"XRESERVE", command_xreserve, ADDS, -7, keys_write, args_xreserve,
     "Creates an empty set of records with named attributes", "O(1)", NULL, NULL},
    {"XADD", command_xadd, ADDS " fast", -3, keys_add, args_pairs, "Adds a record",
     "O(k a) for a attributes", NULL, NULL},
    {"XDEL", command_xdel, REMOVES " fast", -3, keys_remove, args_pairs,
     "Removes a record that was added: 1 removed, 0 not there, 2 pending",
     "O(k a) for a attributes", NULL, NULL},
    {"XQUERY", command_xquery, SCANS, -3, keys_read, args_pairs,
     "Returns whether a record with these values may be there, and whether they were verified together",
     "O(k n) for n values", NULL, NULL},
    {"XINFO", command_xinfo, SCANS, 2, keys_read, args_key,
     "Returns attributes, combinations, size and rates of a set of records",
     "O(bytes), less for large ones", NULL, NULL},
    {"PUBLISH", command_publish, ADDS, -4, keys_publish, args_publish,
     "Keeps copies of a filter within a stated error by messages in a stream",
     "O(bytes) once, then O(changes)", NULL, NULL},
    {"UNPUBLISH", command_unpublish, REMOVES, 2, keys_update, args_key, "Stops publishing a filter",
     "O(1)", NULL, NULL},
    {"DUMP", command_dump, SCANS, -3, keys_read, args_cursor,
     "Returns the value as bytes of a .tamis file, in pieces, as of one moment",
     "O(bytes of the piece)", NULL, NULL},
    {"LOAD", command_load, ADDS, -4, keys_write, args_load,
     "Creates a value from the bytes of a .tamis file, in pieces", "O(bytes of the piece)", NULL,
     NULL},
    {"CONVERT", command_convert, ADDS, -2, keys_update, args_convert,
     "Converts a filter of RedisBloom, once its items have been given again", "O(k n) for n items",
     NULL, NULL},
    {"ONTOP", command_ontop, ADDS, -3, keys_update, args_ontop,
     "Replicates what was added to a filter of RedisBloom", "O(bytes)", NULL, NULL},
    {"SCANDUMP", command_scandump, SCANS, -3, keys_read, args_cursor,
     "Returns a filter in pieces for LOADCHUNK", "O(bytes of the piece)", command_scandump,
     args_cursor},
    {"LOADCHUNK", command_loadchunk, ADDS, 4, keys_write, args_chunk,
     "Creates a filter from the pieces of SCANDUMP", "O(bytes of the piece)", command_bf_loadchunk,
     args_chunk},
};

enum { COMMANDS = sizeof commands / sizeof *commands };

static const struct command cuckoo_commands[] = {
    {"RESERVE", command_cf_reserve, ADDS, -3, keys_write, args_cf_reserve,
     "Creates an empty deletable filter", "O(1)", NULL, NULL},
    {"ADD", command_cf_add, ADDS " fast", 3, keys_add, args_item,
     "Adds an item, even if it is there already", "O(k) for k hashes", NULL, NULL},
    {"ADDNX", command_cf_addnx, ADDS " fast", 3, keys_add, args_item,
     "Adds an item unless it may be there already", "O(k) for k hashes", NULL, NULL},
    {"INSERT", command_cf_insert, ADDS, -4, keys_add, args_cf_insert,
     "Adds items, creating the filter with this capacity if needed", "O(k n) for n items", NULL,
     NULL},
    {"INSERTNX", command_cf_insertnx, ADDS, -4, keys_add, args_cf_insert,
     "Adds the items that are not there yet", "O(k n) for n items", NULL, NULL},
    {"EXISTS", command_bf_exists, READS, 3, keys_read, args_item,
     "Returns whether an item may be there; 0 is certain", "O(k) for k hashes", NULL, NULL},
    {"MEXISTS", command_bf_mexists, SCANS, -3, keys_read, args_items,
     "Returns for each item whether it may be there; 0 is certain", "O(k n) for n items", NULL,
     NULL},
    {"COUNT", command_cf_count, READS, 3, keys_read, args_item,
     "Returns how often an item may be there; never too low", "O(k) for k hashes", NULL, NULL},
    {"DEL", command_cf_del, REMOVES " fast", 3, keys_remove, args_item,
     "Removes one occurrence of an item that was added", "O(k) for k hashes", NULL, NULL},
    {"INFO", command_cf_info, READS, 2, keys_read, args_key, "Returns size, items and parameters",
     "O(1)", NULL, NULL},
    {"COMPACT", command_cf_compact, READS, 2, keys_read, args_key,
     "Does nothing: removals take effect at once", "O(1)", NULL, NULL},
    {"SCANDUMP", command_cf_scandump, SCANS, -3, keys_read, args_cursor,
     "Returns a filter in pieces for LOADCHUNK", "O(bytes of the piece)", NULL, NULL},
    {"LOADCHUNK", command_cf_loadchunk, ADDS, 4, keys_write, args_chunk,
     "Creates a filter from the pieces of SCANDUMP", "O(bytes of the piece)", NULL, NULL},
};

/* A command of valkey-bloom; here it takes the bytes of a whole value. */
static const struct command bf_load = {"LOAD",
                                       command_bf_load,
                                       ADDS,
                                       3,
                                       keys_write,
                                       args_bf_load,
                                       "Creates a value from the bytes of a .tamis file",
                                       "O(bytes)",
                                       NULL,
                                       NULL};

enum { CUCKOO_COMMANDS = sizeof cuckoo_commands / sizeof *cuckoo_commands };

/* In lower case, as the server names its own commands in messages. */
static void command_name(char name[40], const char *prefix, const struct command *c)
{
    snprintf(name, 40, "%s.%s", prefix, c->name);
    for (char *p = name; *p; p++)
        *p = (char)tolower((unsigned char)*p);
}

/* Redis 7.2 has categories for commands of modules, Redis 7.4 also categories made by modules. */
static void set_categories(RedisModuleCommand *command, const char *flags, const char *ours)
{
    char all[40], known[24];
    bool writes = strncmp(flags, "write", 5) == 0, fast = strstr(flags, "fast") != NULL;
    snprintf(known, sizeof known, "%s %s", writes ? "write" : "read", fast ? "fast" : "slow");
    snprintf(all, sizeof all, "%s %s", known, ours);
    if (rm.SetCommandACLCategories && rm.SetCommandACLCategories(command, all) != RM_OK)
        rm.SetCommandACLCategories(command, known);
}

static bool add_command(RedisModuleCtx *ctx, const char *prefix, const struct command *c,
                        RedisModuleCmdFunc run, arg *args)
{
    static const RedisModuleCommandInfoVersion version = {1, sizeof(RedisModuleCommandHistoryEntry),
                                                          sizeof(RedisModuleCommandKeySpec),
                                                          sizeof(RedisModuleCommandArg)};
    char name[40];
    command_name(name, prefix, c);
    spec *keys = strcmp(prefix, "BF") == 0 && c->keys == keys_reserve ? keys_write : c->keys;
    RedisModuleCommandInfo info = {.version = &version,
                                   .summary = c->summary,
                                   .complexity = c->complexity,
                                   .since = SINCE,
                                   .arity = c->arity,
                                   .key_specs = keys,
                                   .args = args};
    if (rm.CreateCommand(ctx, name, run, c->flags, 1, 1, 1) != RM_OK)
        return false;
    RedisModuleCommand *command = rm.GetCommand(ctx, name);
    if (!command || rm.SetCommandInfo(command, &info) != RM_OK)
        return false;
    set_categories(command, c->flags, strcmp(prefix, "CF") == 0 ? "cuckoo" : "bloom");
    return true;
}

/* Does another module have a command of this name? */
static bool taken(RedisModuleCtx *ctx, const char *prefix, const struct command *c)
{
    char name[40];
    command_name(name, prefix, c);
    RedisModuleCallReply *reply = rm.Call(ctx, "COMMAND", "cc", "INFO", name);
    bool known = reply && rm.CallReplyType(reply) == RM_REPLY_ARRAY &&
                 rm.CallReplyType(rm.CallReplyArrayElement(reply, 0)) == RM_REPLY_ARRAY;
    if (reply)
        rm.FreeCallReply(reply);
    return known;
}

bool table_bf_free(RedisModuleCtx *ctx)
{
    bool others = rm.IsModuleNameBusy("bf") && !settings_named_bf();
    bool free = !others && !taken(ctx, "BF", &bf_load);
    for (int i = 0; i < COMMANDS && free; i++)
        free = !commands[i].bf || !taken(ctx, "BF", &commands[i]);
    for (int i = 0; i < CUCKOO_COMMANDS && free; i++)
        free = !taken(ctx, "CF", &cuckoo_commands[i]);
    return free;
}

bool table_register(RedisModuleCtx *ctx, bool bf)
{
    if (rm.AddACLCategory) { /* fails if they exist already, which is fine */
        rm.AddACLCategory(ctx, "bloom");
        rm.AddACLCategory(ctx, "cuckoo");
    }
    for (int i = 0; i < COMMANDS; i++) {
        const struct command *c = &commands[i];
        if (!add_command(ctx, "TAMIS", c, c->run, c->args))
            return false;
        if (bf && c->bf && !add_command(ctx, "BF", c, c->bf, c->bf_args))
            return false;
    }
    if (bf && !add_command(ctx, "BF", &bf_load, bf_load.run, bf_load.args))
        return false;
    for (int i = 0; bf && i < CUCKOO_COMMANDS; i++) {
        const struct command *c = &cuckoo_commands[i];
        if (!add_command(ctx, "CF", c, c->run, c->args))
            return false;
    }
    return true;
}
