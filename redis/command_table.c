/* The table of commands: names, flags, keys, and their descriptions for COMMAND DOCS. */
#include "module.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define SINCE "0.1.0"

/* ---- arguments ------------------------------------------------------------------------------- */

/*
 * The arguments of a command, written as its page writes them: words of the command in capitals, [optional] ones in
 * brackets, names of values in small letters, with ... after one that may be repeated. A colon comes before the type of a
 * value, which otherwise is a string: integer, double, one of several words, or the number of the key spec of a key.
 */
#define ITEM        "key:0 item"
#define ITEMS       "key:0 item..."
#define CURSOR      "key:0 cursor:integer [WITHKEY]"
#define CLOCK       "key:0 [AT nanoseconds:integer]"
#define RECORD_ARGS "key:0 attribute=value..."
#define CREATION                                                                                   \
    " [EXPANSION expansion:integer] [NONSCALING]"                                                  \
    " [GROWTH growth:fixed|dynamic|scalable|flexible|window|smooth] [WINDOW seconds:double]"       \
    " [DELETABLE] [UNIQUE] [COMPACT] [LAYOUT layout] [HASH hash] [MAXMEM bytes:integer] [KEY hex]" \
    " [AT nanoseconds:integer]"
#define CF_INSERT "key:0 [CAPACITY capacity:integer] [NOCREATE] ITEMS item..."

#define ARGS_MAX  24
#define WORDS_MAX 8 /* to choose from */

typedef RedisModuleCommandArg arg;

/* What the server is given; it copies it. */
struct arguments {
    arg arg[ARGS_MAX + 1], word[WORDS_MAX + 1];
    char text[1024], name[ARGS_MAX][32]; /* name: of words, in small letters */
};

static void lower(char *to, size_t room, const char *text)
{
    snprintf(to, room, "%s", text);
    for (char *p = to; *p; p++)
        *p = (char)tolower((unsigned char)*p);
}

/* Reads the type of a value. */
static void take_type(struct arguments *all, arg *a, char *what)
{
    char *rest;
    if (isdigit((unsigned char)*what)) {
        a->type = RM_ARG_KEY;
        a->key_spec_index = *what - '0';
    } else if (strchr(what, '|')) {
        a->type = RM_ARG_ONEOF;
        a->subargs = all->word;
        for (arg *w = all->word; (what = strtok_r(what, "|", &rest)); what = NULL)
            *w++ = (arg){.name = what, .type = RM_ARG_TOKEN, .token = what, .key_spec_index = -1};
    } else {
        a->type = strcmp(what, "integer") == 0 ? RM_ARG_INTEGER : RM_ARG_DOUBLE;
    }
}

static arg *arguments_read(struct arguments *all, const char *text)
{
    arg *a = all->arg;
    const char *token = NULL;
    bool optional = false;
    char *rest;
    memset(all, 0, sizeof *all);
    snprintf(all->text, sizeof all->text, "%s", text);
    for (char *word = all->text; (word = strtok_r(word, " ", &rest)); word = NULL) {
        optional |= *word == '[';
        word += *word == '[';
        size_t len = strlen(word);
        bool closes = word[len - 1] == ']', ends = closes || !optional;
        word[len - closes] = 0;
        if (isupper((unsigned char)*word)) {
            token = word;
            if (!closes)
                continue;
        }
        char *many = strstr(word, "..."), *what = strchr(word, ':');
        *a = (arg){.name = word, .token = token, .key_spec_index = -1};
        a->flags = (optional ? RM_ARG_OPTIONAL : 0) | (many ? RM_ARG_MULTIPLE : 0);
        if (many)
            *many = 0;
        if (what) {
            *what = 0;
            take_type(all, a, what + 1);
        } else if (word == token) {
            a->type = RM_ARG_TOKEN;
            a->name = all->name[a - all->arg];
            lower(all->name[a - all->arg], sizeof *all->name, word);
        }
        a++;
        optional &= !ends;
        token = ends ? NULL : token;
    }
    return all->arg;
}

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
    const char *args;
    const char *summary, *complexity;
    RedisModuleCmdFunc bf; /* the handler of BF.name, or NULL */
    const char *bf_args;
} commands[] = {
    {"RESERVE", command_reserve, ADDS KEYED, -4, keys_reserve,
     "key:0 error_rate:double capacity:integer" CREATION " [LIKE model:1]",
     "Creates an empty filter with a total error rate and a capacity", "O(1)", command_bf_reserve,
     "key:0 error_rate:double capacity:integer [EXPANSION expansion:integer] [NONSCALING]"},
    {"ADD", command_add, ADDS " fast", 3, keys_add, ITEM,
     "Adds an item, creating the filter if needed; false if it may have been there already",
     "O(k) for k hashes", command_bf_add, ITEM},
    {"MADD", command_madd, ADDS, -3, keys_add, ITEMS, "Adds items, creating the filter if needed",
     "O(k n) for n items", command_bf_madd, ITEMS},
    {"INSERT", command_insert, ADDS, -4, keys_add,
     "key:0 [CAPACITY capacity:integer] [ERROR error_rate:double] [NOCREATE] [NX]" CREATION
     " ITEMS item...",
     "Adds items, creating the filter with these parameters if needed", "O(k n) for n items",
     command_bf_insert,
     "key:0 [CAPACITY capacity:integer] [ERROR error_rate:double] [EXPANSION expansion:integer] [NOCREATE] [TIGHTENING ratio:double] [SEED bytes] [VALIDATESCALETO n:integer] [NONSCALING] ITEMS item..."},
    {"EXISTS", command_exists, READS, 3, keys_read, ITEM,
     "Returns whether an item may be there; 0 is certain", "O(k) for k hashes", command_bf_exists,
     ITEM},
    {"MEXISTS", command_mexists, SCANS, -3, keys_read, ITEMS,
     "Returns for each item whether it may be there; 0 is certain", "O(k n) for n items",
     command_bf_mexists, ITEMS},
    {"DEL", command_del, REMOVES " fast", 3, keys_remove, ITEM,
     "Removes an item that was added: 1 removed, 0 not there, 2 pending", "O(k) for k hashes", NULL,
     NULL},
    {"MDEL", command_mdel, REMOVES, -3, keys_remove, ITEMS, "Removes items that were added",
     "O(k n) for n items", NULL, NULL},
    {"REMOVE", command_remove, REMOVES, -4, keys_remove, CLOCK " ITEMS item...",
     "Removes items that were added, with the time of the removal", "O(k n) for n items", NULL,
     NULL},
    {"CARD", command_card, READS, 2, keys_read, "key:0",
     "Returns the number of items added and not removed", "O(1)", command_card, "key:0"},
    {"INFO", command_info, SCANS, -2, keys_read, "key:0",
     "Returns parameters, size, fill and the present estimate of the error rate",
     "O(bytes), less for large filters; BF.INFO: O(1)", command_bf_info, "key:0 [field]"},
    {"CLEAR", command_clear, REMOVES, -2, keys_clear, CLOCK,
     "Empties a filter and keeps its parameters", "O(1)", NULL, NULL},
    {"FORGET", command_forget, REMOVES, -2, keys_clear, CLOCK,
     "Drops items older than the window, as adds do", "O(1)", NULL, NULL},
    {"MERGE", command_merge, ADDS KEYED, -4, keys_merge,
     "destination:0 numkeys:integer source:1... [RESTATE] [CONCAT] [DISJOINT]",
     "Merges filters into a destination, creating it if needed", "O(bytes)", NULL, NULL},
    {"INTERSECT", command_intersect, ADDS, 4, keys_intersect, "destination:0 a:1 b:1",
     "Creates a filter of the bits that two filters have in common", "O(bytes)", NULL, NULL},
    {"FOLD", command_fold, REMOVES, -2, keys_update, "key:0 [RESTATE]",
     "Halves the memory of a filter that is at most half full", "O(bytes)", NULL, NULL},
    {"XRESERVE", command_xreserve, ADDS, -7, keys_write,
     "key:0 error_rate:double capacity:integer ATTRIBUTES n:integer attribute... [COMBO combination...] [NOCOMBOS] [VERIFIER verifier]" CREATION,
     "Creates an empty set of records with named attributes", "O(1)", NULL, NULL},
    {"XADD", command_xadd, ADDS " fast", -3, keys_add, RECORD_ARGS, "Adds a record",
     "O(k a) for a attributes", NULL, NULL},
    {"XDEL", command_xdel, REMOVES " fast", -3, keys_remove, RECORD_ARGS,
     "Removes a record that was added: 1 removed, 0 not there, 2 pending",
     "O(k a) for a attributes", NULL, NULL},
    {"XQUERY", command_xquery, SCANS, -3, keys_read, RECORD_ARGS,
     "Returns whether a record with these values may be there, and whether they were verified together",
     "O(k n) for n values", NULL, NULL},
    {"XINFO", command_xinfo, SCANS, 2, keys_read, "key:0",
     "Returns attributes, combinations, size and rates of a set of records",
     "O(bytes), less for large ones", NULL, NULL},
    {"PUBLISH", command_publish, ADDS, -4, keys_publish,
     "key:0 stream:1 owner [MISS miss:double] [FALSERATE false_rate:double] [WEIGHTS weights:double] [DIRTY dirty:double] [MAXAGE max_age:double] [BEAT beat:double] [WITHKEY]",
     "Keeps copies of a filter within a stated error by messages in a stream",
     "O(bytes) once, then O(changes)", NULL, NULL},
    {"UNPUBLISH", command_unpublish, REMOVES, 2, keys_update, "key:0", "Stops publishing a filter",
     "O(1)", NULL, NULL},
    {"DUMP", command_dump, SCANS, -3, keys_read, CURSOR,
     "Returns the value as bytes of a .tamis file, in pieces, as of one moment",
     "O(bytes of the piece)", NULL, NULL},
    {"LOAD", command_load, ADDS, -4, keys_write,
     "key:0 offset:integer data [MAXMEM bytes:integer] [KEY hex]",
     "Creates a value from the bytes of a .tamis file, in pieces", "O(bytes of the piece)", NULL,
     NULL},
    {"CONVERT", command_convert, ADDS, -2, keys_update, "key:0 [ITEMS item...] [FORCE]",
     "Converts a filter of RedisBloom, once its items have been given again", "O(k n) for n items",
     NULL, NULL},
    {"ONTOP", command_ontop, ADDS, -3, keys_update,
     "key:0 [data] [RESERVE option...] [MAXMEM bytes:integer]",
     "Replicates what was added to a filter of RedisBloom", "O(bytes)", NULL, NULL},
    {"SCANDUMP", command_scandump, SCANS, -3, keys_read, CURSOR,
     "Returns a filter in pieces for LOADCHUNK", "O(bytes of the piece)", command_scandump, CURSOR},
    {"LOADCHUNK", command_loadchunk, ADDS, 4, keys_write, "key:0 cursor:integer data",
     "Creates a filter from the pieces of SCANDUMP", "O(bytes of the piece)", command_bf_loadchunk,
     "key:0 cursor:integer data"},
};

enum { COMMANDS = sizeof commands / sizeof *commands };

static const struct command cuckoo_commands[] = {
    {"RESERVE", command_cf_reserve, ADDS, -3, keys_write,
     "key:0 capacity:integer [BUCKETSIZE bucketsize:integer] [MAXITERATIONS maxiterations:integer] [EXPANSION expansion:integer]",
     "Creates an empty deletable filter", "O(1)", NULL, NULL},
    {"ADD", command_cf_add, ADDS " fast", 3, keys_add, ITEM,
     "Adds an item, even if it is there already", "O(k) for k hashes", NULL, NULL},
    {"ADDNX", command_cf_addnx, ADDS " fast", 3, keys_add, ITEM,
     "Adds an item unless it may be there already", "O(k) for k hashes", NULL, NULL},
    {"INSERT", command_cf_insert, ADDS, -4, keys_add, CF_INSERT,
     "Adds items, creating the filter with this capacity if needed", "O(k n) for n items", NULL,
     NULL},
    {"INSERTNX", command_cf_insertnx, ADDS, -4, keys_add, CF_INSERT,
     "Adds the items that are not there yet", "O(k n) for n items", NULL, NULL},
    {"EXISTS", command_bf_exists, READS, 3, keys_read, ITEM,
     "Returns whether an item may be there; 0 is certain", "O(k) for k hashes", NULL, NULL},
    {"MEXISTS", command_bf_mexists, SCANS, -3, keys_read, ITEMS,
     "Returns for each item whether it may be there; 0 is certain", "O(k n) for n items", NULL,
     NULL},
    {"COUNT", command_cf_count, READS, 3, keys_read, ITEM,
     "Returns how often an item may be there; never too low", "O(k) for k hashes", NULL, NULL},
    {"DEL", command_cf_del, REMOVES " fast", 3, keys_remove, ITEM,
     "Removes one occurrence of an item that was added", "O(k) for k hashes", NULL, NULL},
    {"INFO", command_cf_info, READS, 2, keys_read, "key:0", "Returns size, items and parameters",
     "O(1)", NULL, NULL},
    {"COMPACT", command_cf_compact, READS, 2, keys_read, "key:0",
     "Does nothing: removals take effect at once", "O(1)", NULL, NULL},
    {"SCANDUMP", command_cf_scandump, SCANS, -3, keys_read, CURSOR,
     "Returns a filter in pieces for LOADCHUNK", "O(bytes of the piece)", NULL, NULL},
    {"LOADCHUNK", command_cf_loadchunk, ADDS, 4, keys_write, "key:0 cursor:integer data",
     "Creates a filter from the pieces of SCANDUMP", "O(bytes of the piece)", NULL, NULL},
};

/* A command of valkey-bloom; here it takes the bytes of a whole value. */
static const struct command bf_load = {"LOAD",
                                       command_bf_load,
                                       ADDS,
                                       3,
                                       keys_write,
                                       "key:0 data",
                                       "Creates a value from the bytes of a .tamis file",
                                       "O(bytes)",
                                       NULL,
                                       NULL};

enum { CUCKOO_COMMANDS = sizeof cuckoo_commands / sizeof *cuckoo_commands };

/* In lower case, as the server names its own commands in messages. */
static void command_name(char name[40], const char *prefix, const struct command *c)
{
    char text[40];
    snprintf(text, sizeof text, "%s.%s", prefix, c->name);
    lower(name, 40, text);
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
                        RedisModuleCmdFunc run, const char *args)
{
    static const RedisModuleCommandInfoVersion version = {1, sizeof(RedisModuleCommandHistoryEntry),
                                                          sizeof(RedisModuleCommandKeySpec),
                                                          sizeof(RedisModuleCommandArg)};
    struct arguments arguments;
    char name[40];
    command_name(name, prefix, c);
    spec *keys = strcmp(prefix, "BF") == 0 && c->keys == keys_reserve ? keys_write : c->keys;
    RedisModuleCommandInfo info = {.version = &version,
                                   .summary = c->summary,
                                   .complexity = c->complexity,
                                   .since = SINCE,
                                   .arity = c->arity,
                                   .key_specs = keys,
                                   .args = arguments_read(&arguments, args)};
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
