/*
 * The inside of the module: values, the settings of the server, and helpers of the commands.
 *
 * Replicas and append-only files must end with the same bytes as the master. So everything that is random or read
 * from a clock is decided where the command first runs, and is part of what is replicated: a creation as
 * TAMIS.RESERVE with every parameter and the family key, an add to a filter with a clock as TAMIS.INSERT ... AT
 * nanoseconds. The clock of all values is the time of the present command.
 */
#ifndef TAMIS_REDIS_MODULE_H
#define TAMIS_REDIS_MODULE_H

#include "server_api.h"
#include "format/pieces.h"
#include "hash/secrets.h"
#include "tamis/records.h"
#include "tamis/replica.h"

#include <stdatomic.h>

#define WRONG_TYPE    "WRONGTYPE Operation against a key holding the wrong kind of value"
#define NOT_FOUND     "ERR not found"
#define EXISTS        "ERR item exists"
#define NOT_CONVERTED "ERR this filter is one of RedisBloom: TAMIS.CONVERT makes it one of tamis"

/* Bytes that grow as they arrive; nothing is allocated because a length field says so. */
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
    VALUE_FOREIGN = 4,   /* a filter of RedisBloom, with what was added to it */
    VALUE_DELETABLE = 5, /* in searches: a deletable filter, foreign or not */
    VALUE_ITEMS = 6      /* in searches: a filter, foreign or not */
};

/* Where copies of a filter are sent, and how wrong they may be. */
struct publication {
    struct buffer stream;
    char owner[TAMIS_OWNER_MAX + 1];
    tamis_targets targets;
    uint64_t beat;
    bool with_key; /* in the snapshots */
    /* Only on the master, not saved: */
    tamis_origin *origin;
    uint64_t last, since;       /* bytes of the last snapshot, and of messages since then */
    char first[48], latest[48]; /* ids of those messages in the stream */
    uint64_t next_beat, retry;
};

struct value {
    enum value_kind kind : 8;
    tamis_growth growth : 8; /* of the set, like the next field */
    bool deletable;
    bool kept;           /* adds are recorded for a dump */
    uint32_t parts;      /* as last counted for INFO, like `items` */
    struct set *set;     /* NULL if partial or small; foreign: the set on top, or NULL */
    struct small *small; /* a filter of few keys, in place of its set: see value_set() */
    union {
        uint64_t number; /* unique while the server runs */
        struct value *next_freed;
    };
    union {
        uint64_t items;
        struct pieces_in *in; /* partial: the bytes so far */
    };
    struct publication *publication;
    struct foreign *foreign;
};

struct settings_of_server {
    double error_rate;
    long long capacity, expansion, work_limit;
    long long value_limit;            /* 0: see value_limit() */
    long long cf_capacity, cf_bucket; /* of filters created by CF.* */
    struct secrets *secrets;          /* of the family of values created here */
    bool key_given;                   /* configured, not random */
    bool key_adopted;                 /* from values that were loaded or replicated */
    bool bf;                          /* BF.* and CF.* are registered */
    unsigned long long refused;       /* adds refused since the start */
};

extern struct settings_of_server server;

/* ---- value.c ---- */
extern const tamis_allocator value_allocator;
/* These take ownership of their arguments, even if they fail for lack of memory (NULL). */
struct value *value_of(struct set *set);
/* Trusted: no limit on what is buffered. The key is for bytes without theirs; may be NULL. */
struct value *value_partial(uint64_t total, bool trusted, const uint8_t *key);
struct value *value_foreign(struct foreign *f, struct set *top); /* top may be NULL */
void value_top(struct value *v, struct set *top); /* sets the set on top of a foreign value */
/* Turns the set on top of a foreign value into a separate value; NULL if there is no memory, and then nothing has
   changed. */
struct value *value_lift(struct value *v);
/*
 * A small filter has no set. These return one, which is the value's own or a copy: NULL if there is no memory. The set is
 * either given back, or becomes the value's own. The latter must happen on replicas too, hence only in commands that
 * succeed and are replicated: a set of lines has false positives where the small filter had none, and an item that
 * the master does not add because of them must not be missed on a replica.
 */
struct set *value_set(const struct value *v);
void value_set_back(const struct value *v, struct set *set);
void value_set_keep(struct value *v, struct set *set);
/* Makes a filter small, if it has a small form: `places` if it may be places, which must be so on replicas too. False
   if there is no memory. */
bool value_settle(struct value *v, bool places);
tamis_error value_add(struct value *v, const void *key, size_t len, bool *fresh);
bool value_has(const struct value *v, const void *key, size_t len);
/* The same for many, by their digests. *done is the number of keys added, also after an error. */
void value_digests(const struct value *v, const tamis_key *keys, size_t n, tamis_digest *out);
void value_have(const struct value *v, const tamis_digest *digests, size_t n, uint8_t *found);
tamis_error value_add_many(struct value *v, const tamis_digest *digests, size_t n, uint8_t *fresh,
                           size_t *done);
struct value *value_copy(const struct value *v);
struct value *value_copy_beside(const struct value *v); /* see copy_beside() */
void value_free(struct value *v);
size_t value_bytes(const struct value *v);
uint64_t value_encoded_size(const struct value *v);
/* Flags: TAMIS_SAVE_NO_KEY or none; none for a partial value. */
tamis_error value_encode(const struct value *v, unsigned flags, tamis_write write, void *context);
/* The key of its family, or the one given for the bytes of a partial value; false if it has none. */
bool value_key(const struct value *v, uint8_t key[TAMIS_KEY_LEN]);
/* After a change: updates its items and parts in the sums over all values. */
void value_recount(struct value *v);
/* All values, those of RedisBloom among them, their items and parts, and the bytes allocated by sets. */
struct value_counts {
    unsigned long long values, foreign, items, parts, bytes;
};
struct value_counts value_counts(void);
void value_took(uint64_t bytes); /* a foreign value allocated this many bytes */
/* The bytes of a partial value, which are untrusted: how many there are; adding more, after an error of which the
   value is useless; and the result, when all have arrived. The reason says what is wrong. Trusted: the bytes come
   from this server and may take any memory. */
uint64_t partial_have(const struct value *v);
tamis_error partial_add(struct value *v, const void *data, size_t len, bool trusted,
                        tamis_reason *reason);
tamis_error partial_end(struct value *v, struct value **out, bool trusted, tamis_reason *reason);
/* While a value is saved, which cannot fail: if there is no memory the server exits, as it does for its own
   allocations, and the previous file stays. */
void value_insist(bool on);
void memory_clear(void *memory, size_t size); /* without touching whole pages */
void time_of_command(uint64_t at);            /* nanoseconds since 1970; 0: now */
uint64_t value_clock(void *unused);

/* ---- release.c ---- */
void release_start(void);
void release_value(struct value *v); /* large values in the background */
unsigned long long release_count(void);
/* Copies the bytes, in the background if they are many; and waits for them, before the copy is read, or either value
   is changed, moved or freed. */
void copy_beside(const struct value *from, const struct value *to, struct mem_later *bytes);
void copy_finish(const struct value *v, bool reads);
extern atomic_uint copies_under_way;
static inline void copy_wait(const struct value *v, bool reads)
{
    if (UNLIKELY(atomic_load_explicit(&copies_under_way, memory_order_acquire)))
        copy_finish(v, reads);
}
unsigned long long copy_count(void);

/* ---- type.c ---- */
extern RedisModuleType *type;
extern RedisModuleType *foreign_type, *cuckoo_type; /* NULL with RedisBloom or bf=no */
bool type_register(RedisModuleCtx *ctx, bool foreign);

/* ---- key_value.c: keys and errors ---- */

/* The value under an open key, which may be small. NULL with *error NULL: there is none; otherwise *error is the reply.
   VALUE_ANY excludes partial values. */
struct value *find_value(RedisModuleKey *key, enum value_kind kind, const char **error);
/* The value for a query, which may be small. NULL: if *replied it has replied, otherwise there is none. */
struct value *find_kind(RedisModuleCtx *ctx, RedisModuleString *name, enum value_kind kind,
                        RedisModuleKey **key, bool *replied);
/* Runs the function on the value under argv[1] if there is one of this kind; otherwise replies with an error. */
typedef void (*value_fn)(RedisModuleCtx *ctx, struct value *v, RedisModuleString **argv, int argc);
int with_value(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, enum value_kind kind,
               int mode, value_fn run);
bool follows(RedisModuleCtx *ctx); /* replaying the stream of a master or an append-only file */
int reply_failure(RedisModuleCtx *ctx, const struct value *v, tamis_error e,
                  const tamis_reason *reason);
int reply_printf(RedisModuleCtx *ctx, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
extern const char no_memory[];                                          /* the reply */
bool is_word(const RedisModuleString *s, const char *word);             /* in upper or lower case */
bool too_much(RedisModuleCtx *ctx, uint64_t bytes, const char *advice); /* true if it has replied */
/* Only if the server's configuration requests it: a call without subscribers takes 120 instructions. */
static inline void notify(RedisModuleCtx *ctx, const char *event, RedisModuleString *key)
{
    if (UNLIKELY(rm.GetNotifyKeyspaceEvents() & RM_NOTIFY_MODULE))
        rm.NotifyKeyspaceEvent(ctx, RM_NOTIFY_MODULE, event, key);
}

/* Stores the value under the key, replacing what was there; the time to live stays. */
void put_value(RedisModuleKey *key, struct value *v);

/* ---- reserve.c ---- */
struct creation {
    tamis_options o;
    uint8_t key[TAMIS_KEY_LEN]; /* if one was given: see WIPED_CREATION */
    RedisModuleString *like;    /* name of the model */
    uint64_t at, scale_to;
    const struct reservation *records; /* NULL: a filter */
    bool bf, nocreate, nonscaling, expands, doubles, compact;
    bool chosen; /* the growth was chosen by default */
    bool nx;     /* add only what seems to be absent */
    bool own;    /* it is the key of the server that sent it */
    int with;    /* whose options, WITH_ */
    int items;   /* index of the first item in argv, 0 if there is none */
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
/* Reads options from argv[i] on, up to ITEMS; returns NULL or the error. */
const char *creation_options(struct creation *c, RedisModuleString **argv, int argc, int i);
const char *creation_one(struct creation *c, RedisModuleString **argv, int argc, int *i);
const char *creation_settle(struct creation *c); /* after the options: checks their combination */
int word_of(const RedisModuleString *s, const char *const *words, int n); /* 0: none of them */
const char *creation_rate(struct creation *c, const RedisModuleString *s);
const char *creation_capacity(struct creation *c, const RedisModuleString *s);
/* How many keys a filter of this rate can hold that grows up to this limit. */
uint64_t creation_scales_to(double fpp, uint64_t limit);
/* Sets the limit that was not given. A limit above tamis.value-limit is refused: false, and it has replied. */
bool creation_limit(RedisModuleCtx *ctx, struct creation *c);
/* A filter that may not grow, in the stream of RedisBloom: there it does not count the items that are false positives of
   its bits, and so takes more than its capacity. All of them must fit here, where others are false positives: as many
   more as if the rate were reached from the start, and six standard deviations. */
void creation_leave_room(RedisModuleCtx *ctx, struct creation *c);
/* Creates the set. What a master accepted fits here, whatever the limit; from then on the set has it. */
tamis_error creation_set(RedisModuleCtx *ctx, struct creation *c, struct set **out,
                         tamis_reason *reason);
int creation_failed(RedisModuleCtx *ctx, const struct creation *c, tamis_error e,
                    const tamis_reason *reason); /* replies */
/* The next of the words of a command, of which there are n. */
#define SAY(...) words[n++] = rm.CreateStringPrintf(ctx, __VA_ARGS__)
/* Rate, capacity and every option, from which TAMIS.RESERVE creates the same; returns how many. */
#define CREATION_WORDS 24
size_t creation_words(RedisModuleCtx *ctx, const struct creation *c,
                      RedisModuleString *words[CREATION_WORDS]);
/* Creates the value, sets the key and replicates it; NULL if it has replied with an error. */
struct value *creation_make(RedisModuleCtx *ctx, struct creation *c, RedisModuleKey *key,
                            RedisModuleString *name);
/* The same under a key that must not exist, with the replies of RESERVE; the error names the kind of an existing
   filter. */
int creation_reserve(RedisModuleCtx *ctx, struct creation *c, RedisModuleString *name,
                     enum value_kind kind);
/* The word before its key, for replicas. */
const char *creation_key_word(RedisModuleCtx *ctx, const struct creation *c);

/* ---- records.c, for creation_make() ---- */
tamis_error records_make(const struct reservation *p, struct set **out, tamis_reason *reason);
void records_replicate(RedisModuleCtx *ctx, const struct reservation *p);

/* ---- card_info.c: names and figures of a map ---- */
void say_text(RedisModuleCtx *ctx, const char *name, const char *text);
void say_count(RedisModuleCtx *ctx, const char *name, uint64_t n);
void say_real(RedisModuleCtx *ctx, const char *name, bool known, double x); /* null unless known */
#define SAY_SET 11                                                          /* of these: */
void say_set(RedisModuleCtx *ctx, const struct value *v, const tamis_filter_facts *i);

/* ---- items.c ---- */
extern const long long removal_replies[3]; /* for each tamis_removed */

/* The three families of commands, whose replies differ slightly. */
enum command_dialect { OURS, BF, CF };

struct adding {
    RedisModuleString *name, **items;
    size_t n;
    bool many; /* reply with an array */
    bool nx;   /* add only what seems to be absent */
    enum command_dialect dialect;
    size_t added; /* items processed */
    bool changed;
};
/* c: the options for a value that does not exist yet; NULL if the command has none. */
int add_items(RedisModuleCtx *ctx, struct adding *a, struct creation *c);
int remove_items(RedisModuleCtx *ctx, RedisModuleString *name, RedisModuleString **items, size_t n,
                 bool many, enum command_dialect dialect);

/* ---- foreign_cuckoo.c ---- */
/* The probability of a false positive with this many slots per bucket, of which this share is taken. */
double cuckoo_rate(uint64_t slots, double taken);

/* ---- secret.c ---- */
#define KEY_HEX   (2 * TAMIS_KEY_LEN + 1)
#define WIPED_HEX __attribute__((cleanup(key_wipe_hex))) char
void key_wipe_hex(char (*hex)[KEY_HEX]);
bool key_from_hex(const RedisModuleString *s, uint8_t key[TAMIS_KEY_LEN]);
void key_to_hex(const uint8_t key[TAMIS_KEY_LEN], char hex[KEY_HEX]);
bool secret_set(const uint8_t *key); /* NULL: a random one. False: no memory */
bool secret_is(const uint8_t key[TAMIS_KEY_LEN]);
/* The values of a file or of a master were created under this key: the server adopts it, unless one was configured.
   An offered key comes from bytes that may not be the server's own; it is adopted only if the server confirms them
   next. */
void secret_adopt(const uint8_t key[TAMIS_KEY_LEN]);
void secret_offer(const uint8_t *key); /* NULL: none */
void secret_start(RedisModuleCtx *ctx);
bool secret_told(RedisModuleCtx *ctx); /* may the client read the key? false if it has replied */
/* Hides an argument from MONITOR and SLOWLOG; or those after KEY and FAMILY. Read them before: Valkey 8.1 replaces
   them in argv, earlier servers in a copy of it. */
void secret_redact(RedisModuleCtx *ctx, int position);
void secret_redact_options(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);

/* ---- server_settings.c ---- */
/* The most memory that a value may take: as configured, or half of what the server may take (maxmemory), or half of
   what the machine has. */
uint64_t value_limit(void);
uint64_t value_limit_encoded(void); /* the most bytes in which a value within the limit is saved */
/* An argument of loadmodule that RedisBloom or valkey-bloom has. False if it was refused, with a line in the log. */
bool settings_argument(RedisModuleCtx *ctx, const RedisModuleString *name,
                       const RedisModuleString *value);
bool settings_register(RedisModuleCtx *ctx);
/* loadmodule tamis.so settings=bf: accepts RedisBloom's and valkey-bloom's names in the configuration file, as
   settings of a module called bf. */
int settings_load_bf(RedisModuleCtx *ctx);
bool settings_named_bf(void);
void settings_start(RedisModuleCtx *ctx);
bool settings_evicts(void); /* does the server make room by evicting keys? */
void settings_info(RedisModuleInfoCtx *info, int for_crash_report);

#define PIECE ((size_t)1 << 20) /* the most bytes of a value that are written at a time */

/* ---- dump.c ---- */
#define POSITION_BITS 40    /* of a cursor */
unsigned dump_count(void);  /* dumps that exist */
extern int dumps_in_pieces; /* those read in pieces */
void dump_changes(struct value *v, bool adds);
/* Must be called before a value is changed, by adding or otherwise. */
static inline void value_changes(struct value *v, bool adds)
{
    copy_wait(v, false);
    if (dumps_in_pieces || v->kept)
        dump_changes(v, adds);
}

/* ---- publication.c ---- */
#define PUBLICATION_WORDS 16
bool publication_names_good(size_t stream_len, const char *owner, size_t owner_len);
/* Reads the targets from argv[4] on; returns NULL or the error. */
const char *publication_targets(struct publication *p, RedisModuleString **argv, int argc);
/* The words after the key of TAMIS.PUBLISH; returns how many. */
size_t publication_words(const struct publication *p, RedisModuleString *words[PUBLICATION_WORDS]);
struct publication *publication_new(const char *stream, size_t stream_len, const char *owner,
                                    size_t owner_len); /* NULL: bad names, or no memory */
void publication_free(struct publication *p);
void publication_save(RedisModuleIO *io, const struct publication *p);
struct publication *publication_load(RedisModuleIO *io); /* NULL: not possible */
void publication_emit(RedisModuleIO *io, RedisModuleString *key, const struct publication *p);

/* ---- publish_command.c ---- */
/* Schedules the checks of a published value. False if there is no memory; then the next change of the value calls it
   again. */
bool publish_register(RedisModuleCtx *ctx, int db, const RedisModuleString *name);
void publish_changes(RedisModuleCtx *ctx, struct value *v, RedisModuleString *name);
void publish_start(RedisModuleCtx *ctx);
size_t publish_count(void);

/* ---- command_table.c ---- */
bool table_register(RedisModuleCtx *ctx, bool bf);
bool table_bf_free(RedisModuleCtx *ctx); /* no other module has commands called BF.* */

/* ---- commands ---- */
#define COMMAND(name) int name(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
COMMAND(command_reserve);
COMMAND(command_bf_reserve);
COMMAND(command_add);
COMMAND(command_madd);
COMMAND(command_bf_add);
COMMAND(command_bf_madd);
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
