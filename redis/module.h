/*
 * The module inside: values, the settings of the server, and helpers of the commands.
 *
 * Replicas and append-only files must end with the same bytes as the master. So whatever is random
 * or read from a clock is decided where the command first runs and travels in what is replicated: a
 * creation as TAMIS.RESERVE with every parameter and the family key, an add to a filter with a clock
 * as TAMIS.INSERT ... AT nanoseconds. The clock of all values is the time of the present command.
 */
#ifndef TAMIS_REDIS_MODULE_H
#define TAMIS_REDIS_MODULE_H

#include "api.h"
#include "format/pieces.h"
#include "hash/secrets.h"
#include "tamis/records.h"
#include "tamis/replica.h"

#define WRONG_TYPE    "WRONGTYPE Operation against a key holding the wrong kind of value"
#define NOT_FOUND     "ERR not found"
#define EXISTS        "ERR item exists"
#define NOT_CONVERTED "ERR this filter is one of RedisBloom: TAMIS.CONVERT makes it one of tamis"

/* Bytes that grow as they come; nothing is taken on the word of a length field. */
struct buffer {
    char *data;
    size_t len, room;
};

bool buffer_add(struct buffer *b, const void *data, size_t len);
void buffer_free(struct buffer *b);

/* A key of the server holds a filter, records, or the first bytes of one that is being loaded. */
enum value_kind {
    VALUE_ANY = 0,
    VALUE_FILTER = 1,
    VALUE_RECORDS = 2,
    VALUE_PARTIAL = 3,
    VALUE_FOREIGN = 4,   /* one of RedisBloom, with what was added to it */
    VALUE_DELETABLE = 5, /* to look for: a filter that is, foreign or not; */
    VALUE_ITEMS = 6      /* a filter, foreign or not */
};

/* Where copies of a filter go, and how wrong they may be. */
struct publication {
    struct buffer stream;
    char owner[TAMIS_OWNER_MAX + 1];
    tamis_targets targets;
    uint64_t beat;
    bool with_key; /* in the snapshots */
    /* of the master, not saved: */
    tamis_origin *origin;
    uint64_t last, since;       /* bytes of the last snapshot, and of messages since, */
    char first[48], latest[48]; /* and the ids of those in the stream */
    uint64_t next_beat, retry;
};

struct value {
    enum value_kind kind : 8;
    tamis_growth growth : 8; /* of the set, like the next */
    bool deletable;
    bool kept;       /* it remembers what is added, for a dump */
    uint32_t parts;  /* as last counted for INFO, like its items */
    struct set *set; /* NULL in a partial one; on top of a foreign one, or NULL */
    union {
        uint64_t number; /* its own, never used again while the server runs */
        struct value *next_freed;
    };
    union {
        uint64_t items;
        struct pieces_in *in; /* partial: what has come */
    };
    struct publication *publication;
    struct foreign *foreign;
};

struct settings_of_server {
    double error_rate;
    long long capacity, expansion, work_limit;
    long long value_limit;            /* 0: see value_limit() */
    long long cf_capacity, cf_bucket; /* of filters made by CF.* */
    struct secrets *secrets;          /* of the family that values made here belong to */
    bool key_given;                   /* by configuration, not by chance */
    bool key_adopted;                 /* from values that were loaded or replicated */
    bool bf;                          /* BF.* and CF.* are registered */
    unsigned long long refused;       /* adds, since the start */
};

extern struct settings_of_server server;

/* ---- value.c ---- */
extern const tamis_allocator value_allocator;
/* These take what they are given, even where they fail for lack of memory (NULL). */
struct value *value_of(struct set *set);
/* Trusted: what some values keep aside is no limit. The key is for bytes without theirs, or NULL. */
struct value *value_partial(uint64_t total, bool trusted, const uint8_t *key);
struct value *value_foreign(struct foreign *f, struct set *top); /* which may be NULL */
void value_top(struct value *v, struct set *top);                /* on a foreign one */
/* The set on top of a foreign value as a value of its own; NULL if there is no memory, and then
   nothing has changed. */
struct value *value_lift(struct value *v);
struct value *value_copy(const struct value *v);
struct value *value_copy_beside(const struct value *v); /* see copy_beside() */
void value_free(struct value *v);
size_t value_bytes(const struct value *v);
uint64_t value_encoded_size(const struct value *v);
/* Flags are TAMIS_SAVE_NO_KEY or none, and none for a partial one. */
tamis_error value_encode(const struct value *v, unsigned flags, tamis_write write, void *context);
/* Its family's, or what it was given for the bytes of a partial one; false: it has none. */
bool value_key(const struct value *v, uint8_t key[TAMIS_KEY_LEN]);
unsigned long long value_count(void);
unsigned long long value_count_foreign(void);
unsigned long long value_memory(void); /* bytes that sets have taken */
/* After a change: counts its items and parts, for the sums over all values. */
void value_recount(struct value *v);
unsigned long long value_count_items(void);
unsigned long long value_count_parts(void);
void value_took(uint64_t bytes); /* a foreign value, so many more */
/* The bytes of a partial value, which may be anything: how many there are; more of them, after an error
   of which it is of no use; and when all are there, what they make. The reason says what is wrong with
   them. Trusted: not from elsewhere, it may take any memory. */
uint64_t partial_have(const struct value *v);
tamis_error partial_add(struct value *v, const void *data, size_t len, bool trusted,
                        tamis_reason *reason);
tamis_error partial_end(struct value *v, struct value **out, bool trusted, tamis_reason *reason);
/* While a value is saved, which cannot fail: without memory the server ends, as it does for its own, and
   the file that was there before stays. */
void value_insist(bool on);
void memory_clear(void *memory, size_t size); /* without touching whole pages */
void time_of_command(uint64_t at);            /* nanoseconds since 1970; 0: now */
uint64_t value_clock(void *unused);

/* ---- release.c ---- */
void release_start(void);
void release_value(struct value *v); /* a large one in the background */
unsigned long long release_count(void);
/* The bytes of a copy, in the background if they are many; and before its reader, or whoever changes, moves or frees
   either value, goes on. */
void copy_beside(const struct value *from, const struct value *to, struct mem_later *bytes);
void copy_wait(const struct value *v, bool reads);
unsigned long long copy_count(void);

/* ---- type.c ---- */
extern RedisModuleType *type;
extern RedisModuleType *foreign_type, *cuckoo_type; /* NULL: RedisBloom is there, or bf=no */
bool type_register(RedisModuleCtx *ctx, bool foreign);

/* ---- find.c: keys and errors ---- */

/* The value under an open key. NULL with *error NULL: there is none; else what to reply. Any kind is
   any but a partial one. */
struct value *find_value(RedisModuleKey *key, enum value_kind kind, const char **error);
/* The value for a question. NULL: replied if `*replied`, else there is none. */
struct value *find_kind(RedisModuleCtx *ctx, RedisModuleString *name, enum value_kind kind,
                        RedisModuleKey **key, bool *replied);
/* Runs it on the value under argv[1], which is there and of the kind, or replies that it is not. */
typedef void (*value_fn)(RedisModuleCtx *ctx, struct value *v, RedisModuleString **argv, int argc);
int with_value(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, enum value_kind kind,
               int mode, value_fn run);
bool follows(RedisModuleCtx *ctx); /* a master's stream or an append-only file is replayed */
int reply_failure(RedisModuleCtx *ctx, const struct value *v, tamis_error e,
                  const tamis_reason *reason);
int reply_printf(RedisModuleCtx *ctx, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
bool is_word(const RedisModuleString *s, const char *word);             /* whatever the case */
bool too_much(RedisModuleCtx *ctx, uint64_t bytes, const char *advice); /* then it has replied */
void notify(RedisModuleCtx *ctx, const char *event, RedisModuleString *key);

/* Puts the value under the key, in the place of what was there; the time to live stays. */
void put_value(RedisModuleKey *key, struct value *v);

/* ---- create.c ---- */
struct creation {
    tamis_options o;
    uint8_t key[TAMIS_KEY_LEN]; /* one that was given: see WIPED_CREATION */
    RedisModuleString *like;    /* a key to be like */
    uint64_t at, scale_to;
    bool bf, nocreate, nonscaling, expands, doubles;
    bool chosen; /* the growth is ours */
    bool nx;     /* adds only what seems not to be there */
    bool own;    /* the key is that of the server it comes from */
    int with;    /* whose options, WITH_ */
    int items;   /* place of the first item in argv, 0 if there is none */
    char error[200];
};

enum {
    WITH_RESERVE = 1,
    WITH_INSERT = 2,
    WITH_RECORDS = 4,
    WITH_BF = 8,
    WITH_VALUE = 16,
    WITH_CF = 32
};

#define WIPED_CREATION __attribute__((cleanup(creation_wipe))) struct creation
void creation_wipe(struct creation *c);
void creation_init(struct creation *c, int with);
/* Reads options from argv[i] on, up to ITEMS; NULL or what to reply. */
const char *creation_options(struct creation *c, RedisModuleString **argv, int argc, int i);
const char *creation_one(struct creation *c, RedisModuleString **argv, int argc, int *i);
const char *creation_settle(struct creation *c); /* once all is read: what goes together */
bool creation_limit(RedisModuleCtx *ctx, struct creation *c); /* false when it has replied */
int creation_failed(RedisModuleCtx *ctx, const struct creation *c, tamis_error e,
                    const tamis_reason *reason);
extern const char *const growth_words[7], *const layout_words[3], *const hash_words[4];
int word_of(const RedisModuleString *s, const char *const *words, int n); /* 0: none of them */
const char *creation_rate(struct creation *c, const RedisModuleString *s);
const char *creation_capacity(struct creation *c, const RedisModuleString *s);
/* Makes the value, sets the key and replicates it; NULL when it has replied with an error. */
struct value *creation_make(RedisModuleCtx *ctx, struct creation *c, RedisModuleKey *key,
                            RedisModuleString *name);
/* The same under a key that has nothing yet, with the replies of RESERVE; of what kind a filter there is
   said to exist. */
int creation_reserve(RedisModuleCtx *ctx, struct creation *c, RedisModuleString *name,
                     enum value_kind kind);
/* The word before its key, for those who follow. */
const char *creation_key_word(RedisModuleCtx *ctx, const struct creation *c);

/* ---- report.c: names and figures of a map ---- */
void say_text(RedisModuleCtx *ctx, const char *name, const char *text);
void say_count(RedisModuleCtx *ctx, const char *name, uint64_t n);
void say_real(RedisModuleCtx *ctx, const char *name, bool known, double x); /* else null */
#define SAY_SET 11                                                          /* of these: */
void say_set(RedisModuleCtx *ctx, const struct value *v, const tamis_filter_facts *i);

/* ---- keys.c ---- */
extern const long long removal_replies[3]; /* for each tamis_removed */

/* Whose replies: the three families of commands differ in a few words. */
enum dialect { OURS, BF, CF };

struct adding {
    RedisModuleString *name, **items;
    size_t n;
    bool many; /* reply with an array */
    bool nx;   /* only what seems not to be there */
    enum dialect dialect;
    size_t added; /* items done */
    bool changed;
};
/* The options for a value that is not there yet: NULL if the command has none. */
int add_items(RedisModuleCtx *ctx, struct adding *a, struct creation *c);
int remove_items(RedisModuleCtx *ctx, RedisModuleString *name, RedisModuleString **items, size_t n,
                 bool many, enum dialect dialect);

/* ---- cuckoo.c ---- */
double cuckoo_rate(long long bucket); /* of a cuckoo filter with so many slots a bucket */

/* ---- secret.c ---- */
#define KEY_HEX   (2 * TAMIS_KEY_LEN + 1)
#define WIPED_HEX __attribute__((cleanup(key_wipe_hex))) char
void key_wipe_hex(char (*hex)[KEY_HEX]);
bool key_from_hex(const RedisModuleString *s, uint8_t key[TAMIS_KEY_LEN]);
void key_to_hex(const uint8_t key[TAMIS_KEY_LEN], char hex[KEY_HEX]);
bool secret_set(const uint8_t *key); /* the server's; NULL: a random one. false: no memory */
bool secret_is(const uint8_t key[TAMIS_KEY_LEN]);
/* Values of a file, or of a master, were made under this key: the server goes on with it, unless it was
   given one. Offered: by bytes that are the server's own only if it says so next. */
void secret_adopt(const uint8_t key[TAMIS_KEY_LEN]);
void secret_offer(const uint8_t *key); /* NULL: none */
void secret_start(RedisModuleCtx *ctx);
bool secret_told(RedisModuleCtx *ctx); /* may the client have it? false when it has replied */
/* Keeps an argument out of MONITOR and SLOWLOG; or those after KEY and FAMILY. Read them before: Valkey 8.1
   replaces them in argv, and earlier servers in a copy of it. */
void secret_redact(RedisModuleCtx *ctx, int position);
void secret_redact_options(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);

/* ---- settings.c ---- */
/* The most that a value may take: as configured, or half of what the server may take (maxmemory), or half
   of what the machine has. */
uint64_t value_limit(void);
uint64_t value_limit_encoded(void); /* the most bytes that a value within the limit is saved in */
/* An argument of loadmodule that RedisBloom or valkey-bloom has. False when it has said why not. */
bool settings_argument(RedisModuleCtx *ctx, const RedisModuleString *name,
                       const RedisModuleString *value);
bool settings_register(RedisModuleCtx *ctx);
/* loadmodule tamis.so settings=bf: makes RedisBloom's and valkey-bloom's names in the configuration file
   known, as settings of a module called bf. */
int settings_load_bf(RedisModuleCtx *ctx);
bool settings_named_bf(void);
void settings_start(RedisModuleCtx *ctx);
bool settings_evicts(void); /* does the server make room by evicting keys? */
void settings_info(RedisModuleInfoCtx *info, int for_crash_report);

#define PIECE ((size_t)1 << 20) /* bytes of a value that are written at a time, at most */

/* ---- dump.c ---- */
#define POSITION_BITS 40    /* of a cursor */
unsigned dump_count(void);  /* dumps under way */
extern int dumps_in_pieces; /* some of them, or none */
void dump_changes(struct value *v, bool adds);
/* To be called before a value is changed, by adding or otherwise. */
static inline void value_changes(struct value *v, bool adds)
{
    copy_wait(v, false);
    if (dumps_in_pieces || v->kept)
        dump_changes(v, adds);
}

/* ---- publication.c ---- */
#define PUBLICATION_WORDS 16
bool publication_names_good(size_t stream_len, const char *owner, size_t owner_len);
/* The targets from argv[4] on; NULL or what to reply. */
const char *publication_targets(struct publication *p, RedisModuleString **argv, int argc);
/* The words after the key of TAMIS.PUBLISH; returns how many. */
size_t publication_words(const struct publication *p, RedisModuleString *words[PUBLICATION_WORDS]);
struct publication *publication_new(const char *stream, size_t stream_len, const char *owner,
                                    size_t owner_len); /* NULL: bad names, or no memory */
void publication_free(struct publication *p);
void publication_save(RedisModuleIO *io, const struct publication *p);
struct publication *publication_load(RedisModuleIO *io); /* NULL: cannot be */
void publication_emit(RedisModuleIO *io, RedisModuleString *key, const struct publication *p);

/* ---- publish.c ---- */
/* Has a look now and then. False if there is no memory; then the next change of the value comes here again. */
bool publish_register(int db, const RedisModuleString *name);
void publish_changes(RedisModuleCtx *ctx, struct value *v, RedisModuleString *name);
void publish_start(RedisModuleCtx *ctx);
size_t publish_count(void);

/* ---- table.c ---- */
bool table_register(RedisModuleCtx *ctx, bool bf);
bool table_bf_free(RedisModuleCtx *ctx); /* nobody has commands called BF.* */

/* ---- commands ---- */
#define COMMAND(name) int name(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
COMMAND(command_reserve);
COMMAND(command_bf_reserve);
COMMAND(command_add);
COMMAND(command_madd);
COMMAND(command_insert);
COMMAND(command_bf_insert);
COMMAND(command_exists);
COMMAND(command_mexists);
COMMAND(command_bf_exists);
COMMAND(command_bf_mexists);
COMMAND(command_del);
COMMAND(command_mdel);
COMMAND(command_remove);
COMMAND(command_card);
COMMAND(command_info);
COMMAND(command_bf_info);
COMMAND(command_clear);
COMMAND(command_forget);
COMMAND(command_merge);
COMMAND(command_intersect);
COMMAND(command_fold);
COMMAND(command_xreserve);
COMMAND(command_xadd);
COMMAND(command_xdel);
COMMAND(command_xquery);
COMMAND(command_xinfo);
COMMAND(command_publish);
COMMAND(command_unpublish);
COMMAND(command_dump);
COMMAND(command_load);
COMMAND(command_scandump);
COMMAND(command_loadchunk);
COMMAND(command_bf_loadchunk);
COMMAND(command_bf_load);
COMMAND(command_ontop);
COMMAND(command_convert);
COMMAND(command_cf_reserve);
COMMAND(command_cf_add);
COMMAND(command_cf_addnx);
COMMAND(command_cf_insert);
COMMAND(command_cf_insertnx);
COMMAND(command_cf_count);
COMMAND(command_cf_del);
COMMAND(command_cf_info);
COMMAND(command_cf_compact);
COMMAND(command_cf_scandump);
COMMAND(command_cf_loadchunk);

#endif
