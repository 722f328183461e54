/*
 * The part of the server's module API that the module uses, declared from its documentation, since
 * there is no packaged header. Works with Redis 7.0 and later and with Valkey. Functions that a
 * server does not have are NULL in `rm`: everything under "optional" is tested before use.
 */
#ifndef TAMIS_REDIS_API_H
#define TAMIS_REDIS_API_H

#include <stddef.h>
#include <stdint.h>

typedef struct RedisModuleCtx RedisModuleCtx;
typedef struct RedisModuleString RedisModuleString;
typedef struct RedisModuleKey RedisModuleKey;
typedef struct RedisModuleType RedisModuleType;
typedef struct RedisModuleIO RedisModuleIO;
typedef struct RedisModuleDigest RedisModuleDigest;
typedef struct RedisModuleDefragCtx RedisModuleDefragCtx;
typedef struct RedisModuleKeyOptCtx RedisModuleKeyOptCtx;
typedef struct RedisModuleCommand RedisModuleCommand;
typedef struct RedisModuleCallReply RedisModuleCallReply;
typedef struct RedisModuleInfoCtx RedisModuleInfoCtx;
typedef struct RedisModuleUser RedisModuleUser;

enum { RM_OK = 0, RM_ERR = 1 };
enum { RM_READ = 1, RM_WRITE = 2 };
enum { RM_KEY_EMPTY = 0, RM_KEY_MODULE = 6 };
enum { RM_REPLY_ERROR = 1, RM_REPLY_ARRAY = 3 };
enum { RM_POSTPONED = -1 };

enum { /* of the module */
       RM_HANDLE_IO_ERRORS = 1 << 0,
       RM_HANDLE_REPL_ASYNC_LOAD = 1 << 2
};

enum { /* GetContextFlags */
       RM_FLAG_MASTER = 1 << 2,
       RM_FLAG_SLAVE = 1 << 3,
       RM_FLAG_REPLICATED = 1 << 12,
       RM_FLAG_LOADING = 1 << 13,
       RM_FLAG_RESP3 = 1 << 22,
       RM_FLAG_ASYNC_LOADING = 1 << 23
};

enum { RM_NOTIFY_GENERIC = 1 << 2, RM_NOTIFY_LOADED = 1 << 12, RM_NOTIFY_MODULE = 1 << 13 };

enum { /* configuration */
       RM_CONFIG_IMMUTABLE = 1,
       RM_CONFIG_SENSITIVE = 2,
       RM_CONFIG_MEMORY = 128,
       RM_CONFIG_UNPREFIXED = 512 /* Redis 8 */
};

/* ---- data types ---- */

typedef struct RedisModuleTypeMethods {
    uint64_t version;
    void *(*rdb_load)(RedisModuleIO *, int encver);
    void (*rdb_save)(RedisModuleIO *, void *);
    void (*aof_rewrite)(RedisModuleIO *, RedisModuleString *key, void *);
    size_t (*mem_usage)(const void *);
    void (*digest)(RedisModuleDigest *, void *);
    void (*free)(void *);
    int (*aux_load)(RedisModuleIO *, int encver, int when);
    void (*aux_save)(RedisModuleIO *, int when);
    int aux_save_triggers;
    size_t (*free_effort)(RedisModuleString *key, const void *);
    void (*unlink)(RedisModuleString *key, const void *);
    void *(*copy)(RedisModuleString *from, RedisModuleString *to, const void *);
    int (*defrag)(RedisModuleDefragCtx *, RedisModuleString *key, void **);
    size_t (*mem_usage2)(RedisModuleKeyOptCtx *, const void *, size_t sample);
    size_t (*free_effort2)(RedisModuleKeyOptCtx *, const void *);
    void (*unlink2)(RedisModuleKeyOptCtx *, const void *);
    void *(*copy2)(RedisModuleKeyOptCtx *, const void *);
} RedisModuleTypeMethods;

#define RM_TYPE_METHODS_VERSION 4

/* ---- commands ---- */

typedef int (*RedisModuleCmdFunc)(RedisModuleCtx *, RedisModuleString **argv, int argc);

typedef struct RedisModuleCommandArg {
    const char *name;
    int type;
    int key_spec_index;
    const char *token, *summary, *since;
    int flags;
    const char *deprecated_since;
    struct RedisModuleCommandArg *subargs;
    const char *display_text; /* read only by 7.2 and later, which know the size */
} RedisModuleCommandArg;

enum {
    RM_ARG_STRING,
    RM_ARG_INTEGER,
    RM_ARG_DOUBLE,
    RM_ARG_KEY,
    RM_ARG_PATTERN,
    RM_ARG_UNIX_TIME,
    RM_ARG_TOKEN,
    RM_ARG_ONEOF,
    RM_ARG_BLOCK
};
enum { RM_ARG_OPTIONAL = 1, RM_ARG_MULTIPLE = 2 };

typedef struct RedisModuleCommandKeySpec {
    const char *notes;
    uint64_t flags;
    int begin_type; /* RM_BEGIN_ */
    union {
        struct {
            int pos;
        } index;
        struct {
            const char *keyword;
            int startfrom;
        } keyword;
    } bs;
    int find_type; /* RM_FIND_ */
    union {
        struct {
            int lastkey, keystep, limit;
        } range;
        struct {
            int keynumidx, firstkey, keystep;
        } keynum;
    } fk;
} RedisModuleCommandKeySpec;

enum { RM_BEGIN_INDEX = 2, RM_BEGIN_KEYWORD = 3 };
enum { RM_FIND_RANGE = 2, RM_FIND_KEYNUM = 3 };
enum { /* what a command does with a key: one of the first four, and what happens to its data */
       RM_KEYS_RO = 1 << 0,
       RM_KEYS_RW = 1 << 1,
       RM_KEYS_OW = 1 << 2,
       RM_KEYS_ACCESS = 1 << 4,
       RM_KEYS_UPDATE = 1 << 5,
       RM_KEYS_INSERT = 1 << 6,
       RM_KEYS_DELETE = 1 << 7
};

typedef struct RedisModuleCommandHistoryEntry {
    const char *since, *changes;
} RedisModuleCommandHistoryEntry;

typedef struct RedisModuleCommandInfoVersion {
    int version;
    size_t sizeof_historyentry, sizeof_keyspec, sizeof_arg;
} RedisModuleCommandInfoVersion;

typedef struct RedisModuleCommandInfo {
    const RedisModuleCommandInfoVersion *version;
    const char *summary, *complexity, *since;
    RedisModuleCommandHistoryEntry *history;
    const char *tips;
    int arity;
    RedisModuleCommandKeySpec *key_specs;
    RedisModuleCommandArg *args;
} RedisModuleCommandInfo;

/* ---- configuration ---- */

typedef RedisModuleString *(*RedisModuleConfigGetString)(const char *name, void *);
typedef int (*RedisModuleConfigSetString)(const char *name, RedisModuleString *, void *,
                                          RedisModuleString **error);
typedef long long (*RedisModuleConfigGetNumber)(const char *name, void *);
typedef int (*RedisModuleConfigSetNumber)(const char *name, long long, void *,
                                          RedisModuleString **error);
typedef int (*RedisModuleConfigApply)(RedisModuleCtx *, void *, RedisModuleString **error);
typedef void (*RedisModuleTimerFunc)(RedisModuleCtx *, void *);
typedef void (*RedisModuleInfoFunc)(RedisModuleInfoCtx *, int for_crash_report);

/* ---- events ---- */

typedef struct RedisModuleEvent {
    uint64_t id, data_version;
} RedisModuleEvent;

enum { RM_EVENT_LOADING = 3, RM_EVENT_SWAPDB = 11, RM_EVENT_CONFIG = 16 };

typedef struct RedisModuleSwapDbInfo { /* version 1 */
    uint64_t version;
    int32_t first, second;
} RedisModuleSwapDbInfo;

typedef int (*RedisModuleNotificationFunc)(RedisModuleCtx *, int type, const char *event,
                                           RedisModuleString *key);
typedef void (*RedisModuleEventFunc)(RedisModuleCtx *, RedisModuleEvent, uint64_t subevent,
                                     void *data);

/* ---- filters of commands ---- */

typedef struct RedisModuleCommandFilter RedisModuleCommandFilter;
typedef struct RedisModuleCommandFilterCtx RedisModuleCommandFilterCtx;
typedef void (*RedisModuleCommandFilterFunc)(RedisModuleCommandFilterCtx *);

enum { RM_FILTER_NOSELF = 1 };

/* ---- functions: result, name, arguments ---- */

#define RM_FUNCTIONS(X)                                                                          \
    X(void, SetModuleAttribs, (RedisModuleCtx *, const char *name, int version, int api))        \
    X(int, IsModuleNameBusy, (const char *name))                                                 \
    X(void, SetModuleOptions, (RedisModuleCtx *, int options))                                   \
    X(int, GetContextFlags, (RedisModuleCtx *))                                                  \
    X(int, GetServerVersion, (void))                                                             \
    X(void, Log, (RedisModuleCtx *, const char *level, const char *format, ...))                 \
    X(void *, TryAlloc, (size_t))                                                                \
    X(void *, Alloc, (size_t))                                                                   \
    X(void, Free, (void *))                                                                      \
    X(RedisModuleType *, CreateDataType,                                                         \
      (RedisModuleCtx *, const char *name, int encver, RedisModuleTypeMethods *))                \
    X(RedisModuleKey *, OpenKey, (RedisModuleCtx *, RedisModuleString *, int mode))              \
    X(void, CloseKey, (RedisModuleKey *))                                                        \
    X(int, KeyType, (RedisModuleKey *))                                                          \
    X(int, DeleteKey, (RedisModuleKey *))                                                        \
    X(long long, GetAbsExpire, (RedisModuleKey *))                                               \
    X(int, SetAbsExpire, (RedisModuleKey *, long long milliseconds))                             \
    X(RedisModuleType *, ModuleTypeGetType, (RedisModuleKey *))                                  \
    X(void *, ModuleTypeGetValue, (RedisModuleKey *))                                            \
    X(int, ModuleTypeSetValue, (RedisModuleKey *, RedisModuleType *, void *))                    \
    X(int, ModuleTypeReplaceValue, (RedisModuleKey *, RedisModuleType *, void *, void **old))    \
    X(void, SaveUnsigned, (RedisModuleIO *, uint64_t))                                           \
    X(uint64_t, LoadUnsigned, (RedisModuleIO *))                                                 \
    X(void, SaveDouble, (RedisModuleIO *, double))                                               \
    X(double, LoadDouble, (RedisModuleIO *))                                                     \
    X(void, SaveStringBuffer, (RedisModuleIO *, const char *, size_t))                           \
    X(char *, LoadStringBuffer, (RedisModuleIO *, size_t *))                                     \
    X(int, IsIOError, (RedisModuleIO *))                                                         \
    X(void, EmitAOF, (RedisModuleIO *, const char *command, const char *format, ...))            \
    X(void, LogIOError, (RedisModuleIO *, const char *level, const char *format, ...))           \
    X(RedisModuleCtx *, GetContextFromIO, (RedisModuleIO *))                                     \
    X(void, DigestAddStringBuffer, (RedisModuleDigest *, const char *, size_t))                  \
    X(void, DigestEndSequence, (RedisModuleDigest *))                                            \
    X(void *, DefragAlloc, (RedisModuleDefragCtx *, void *))                                     \
    X(int, DefragShouldStop, (RedisModuleDefragCtx *))                                           \
    X(int, DefragCursorSet, (RedisModuleDefragCtx *, unsigned long))                             \
    X(int, DefragCursorGet, (RedisModuleDefragCtx *, unsigned long *))                           \
    X(int, CreateCommand,                                                                        \
      (RedisModuleCtx *, const char *name, RedisModuleCmdFunc, const char *flags, int first,     \
       int last, int step))                                                                      \
    X(RedisModuleCommand *, GetCommand, (RedisModuleCtx *, const char *name))                    \
    X(int, SetCommandInfo, (RedisModuleCommand *, const RedisModuleCommandInfo *))               \
    X(int, IsKeysPositionRequest, (RedisModuleCtx *))                                            \
    X(void, KeyAtPos, (RedisModuleCtx *, int position))                                          \
    X(int, SubscribeToKeyspaceEvents, (RedisModuleCtx *, int, RedisModuleNotificationFunc))      \
    X(int, SubscribeToServerEvent, (RedisModuleCtx *, RedisModuleEvent, RedisModuleEventFunc))   \
    X(int, WrongArity, (RedisModuleCtx *))                                                       \
    X(int, ReplyWithLongLong, (RedisModuleCtx *, long long))                                     \
    X(int, ReplyWithBool, (RedisModuleCtx *, int))                                               \
    X(int, ReplyWithDouble, (RedisModuleCtx *, double))                                          \
    X(int, ReplyWithError, (RedisModuleCtx *, const char *))                                     \
    X(int, ReplyWithSimpleString, (RedisModuleCtx *, const char *))                              \
    X(int, ReplyWithStringBuffer, (RedisModuleCtx *, const char *, size_t))                      \
    X(int, ReplyWithArray, (RedisModuleCtx *, long))                                             \
    X(int, ReplyWithMap, (RedisModuleCtx *, long))                                               \
    X(int, ReplyWithNull, (RedisModuleCtx *))                                                    \
    X(void, ReplySetArrayLength, (RedisModuleCtx *, long))                                       \
    X(RedisModuleString *, CreateString, (RedisModuleCtx *, const char *, size_t))               \
    X(RedisModuleString *, CreateStringPrintf, (RedisModuleCtx *, const char *format, ...))      \
    X(void, FreeString, (RedisModuleCtx *, RedisModuleString *))                                 \
    X(const char *, StringPtrLen, (const RedisModuleString *, size_t *))                         \
    X(int, StringToLongLong, (const RedisModuleString *, long long *))                           \
    X(int, StringToDouble, (const RedisModuleString *, double *))                                \
    X(RedisModuleCallReply *, Call, (RedisModuleCtx *, const char *, const char *format, ...))   \
    X(void, FreeCallReply, (RedisModuleCallReply *))                                             \
    X(int, CallReplyType, (RedisModuleCallReply *))                                              \
    X(RedisModuleCallReply *, CallReplyArrayElement, (RedisModuleCallReply *, size_t))           \
    X(int, Replicate, (RedisModuleCtx *, const char *command, const char *format, ...))          \
    X(int, ReplicateVerbatim, (RedisModuleCtx *))                                                \
    X(int, NotifyKeyspaceEvent, (RedisModuleCtx *, int, const char *event, RedisModuleString *)) \
    X(int, GetNotifyKeyspaceEvents, (void))                                                      \
    X(RedisModuleCommandFilter *, RegisterCommandFilter,                                         \
      (RedisModuleCtx *, RedisModuleCommandFilterFunc, int flags))                               \
    X(const RedisModuleString *, CommandFilterArgGet, (RedisModuleCommandFilterCtx *, int at))   \
    X(int, CommandFilterArgReplace, (RedisModuleCommandFilterCtx *, int, RedisModuleString *))   \
    X(int, SelectDb, (RedisModuleCtx *, int db))                                                 \
    X(const RedisModuleString *, GetKeyNameFromIO, (RedisModuleIO *))                            \
    X(int, GetDbIdFromIO, (RedisModuleIO *))                                                     \
    X(const char *, CallReplyStringPtr, (RedisModuleCallReply *, size_t *))                      \
    X(size_t, CallReplyLength, (RedisModuleCallReply *))                                         \
    X(int, GetSelectedDb, (RedisModuleCtx *))                                                    \
    X(unsigned long long, GetClientId, (RedisModuleCtx *))                                       \
    X(RedisModuleString *, GetClientUserNameById, (RedisModuleCtx *, uint64_t))                  \
    X(RedisModuleUser *, GetModuleUserFromUserName, (RedisModuleString *))                       \
    X(int, FreeModuleUser, (RedisModuleUser *))                                                  \
    X(int, ACLCheckCommandPermissions, (RedisModuleUser *, RedisModuleString **, int argc))      \
    X(int, RedactClientCommandArgument, (RedisModuleCtx *, int position))                        \
    X(int, AvoidReplicaTraffic, (void))                                                          \
    X(uint64_t, CreateTimer,                                                                     \
      (RedisModuleCtx *, long long milliseconds, RedisModuleTimerFunc, void *))                  \
    X(int, RegisterInfoFunc, (RedisModuleCtx *, RedisModuleInfoFunc))                            \
    X(int, InfoAddSection, (RedisModuleInfoCtx *, const char *))                                 \
    X(int, InfoAddFieldCString, (RedisModuleInfoCtx *, const char *, const char *))              \
    X(int, InfoAddFieldULongLong, (RedisModuleInfoCtx *, const char *, unsigned long long))      \
    X(int, RegisterStringConfig,                                                                 \
      (RedisModuleCtx *, const char *name, const char *preset, unsigned flags,                   \
       RedisModuleConfigGetString, RedisModuleConfigSetString, RedisModuleConfigApply, void *))  \
    X(int, RegisterNumericConfig,                                                                \
      (RedisModuleCtx *, const char *name, long long preset, unsigned flags, long long least,    \
       long long most, RedisModuleConfigGetNumber, RedisModuleConfigSetNumber,                   \
       RedisModuleConfigApply, void *))                                                          \
    X(int, LoadConfigs, (RedisModuleCtx *))

#define RM_OPTIONAL(X)                                                              \
    X(int, SetCommandACLCategories, (RedisModuleCommand *, const char *categories)) \
    X(int, AddACLCategory, (RedisModuleCtx *, const char *category))

struct api {
#define X(result, name, arguments) result(*name) arguments;
    RM_FUNCTIONS(X)
    RM_OPTIONAL(X)
#undef X
    int is_valkey;
};

extern struct api rm;

/* Fills `rm`. Returns NULL, or the name of a function that this server lacks. */
const char *api_load(RedisModuleCtx *ctx);

#endif
