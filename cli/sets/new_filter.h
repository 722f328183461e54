/* A new filter or set of records as options describe it, for create and dedup. */
#ifndef TAMIS_MAKE_H
#define TAMIS_MAKE_H

#include "ui/args.h"
#include "set_file.h"

struct make {
    tamis_options options;
    const char *growth, *like, *lambda;
    unsigned layout, hash; /* as tamis_layout and tamis_hash number them */
    uint64_t vectors, hashes;
    bool sized;        /* --capacity or --fpp was given */
    bool formed;       /* another option about its structure was given */
    bool for_publish;  /* vectors of one planned size, which directories slice */
    const char *attrs; /* for records: their attributes */
    struct texts combos, distinct;
    unsigned verifier, value; /* as tamis_verifier and tamis_verify number them */
};

/* Options that shape the filter, then those that assign it to a family. */
#define MAKE_SHAPE(name, kind, to, m) ARG_GIVEN(name, kind, &(m).to, &(m).formed)
#define MAKE_ARGS(m)                                                                           \
    ARG_GIVEN("capacity", ARG_COUNT, &(m).options.capacity, &(m).sized),                       \
        ARG_GIVEN("fpp", ARG_RATE, &(m).options.fpp, &(m).sized),                              \
        MAKE_SHAPE("growth", ARG_TEXT, growth, m),                                             \
        MAKE_SHAPE("deletable", ARG_FLAG, options.deletable, m),                               \
        MAKE_SHAPE("unique", ARG_FLAG, options.unique, m),                                     \
        MAKE_SHAPE("overfill", ARG_FLAG, options.overfill, m),                                 \
        MAKE_SHAPE("add-always", ARG_FLAG, options.add_always, m),                             \
        MAKE_SHAPE("expansion", ARG_REAL, options.expansion, m),                               \
        MAKE_SHAPE("tolerate", ARG_RATE, options.tolerate, m),                                 \
        MAKE_SHAPE("vectors", ARG_COUNT, vectors, m),                                          \
        MAKE_SHAPE("bits", ARG_COUNT, options.bits, m),                                        \
        MAKE_SHAPE("hashes", ARG_COUNT, hashes, m), MAKE_SHAPE("lambda", ARG_TEXT, lambda, m), \
        {"layout", 0, ARG_CHOICE, &(m).layout, &(m).formed, "spread|blocked"},                 \
        {"hash", 0, ARG_CHOICE, &(m).hash, &(m).formed, "xxh3|sip|h3"},                        \
        ARG("like", 0, ARG_TEXT, &(m).like)

#define MAKE_RECORDS_ARGS(m)                                                        \
    ARG("attrs", 0, ARG_TEXT, &(m).attrs), ARG("combo", 0, ARG_TEXTS, &(m).combos), \
        ARG("distinct", 0, ARG_TEXTS, &(m).distinct),                               \
        ARG("for-publish", 0, ARG_FLAG, &(m).for_publish),                          \
        ARG_ONE_OF("verifier", &(m).verifier, "none|table|filter"),                 \
        ARG_ONE_OF("value", &(m).value, "mixed|basic|attenuated")

/* Do options describe its structure? */
static inline bool make_shaped(const struct make *make)
{
    return make->sized || make->formed;
}

/* NULL after complaining; `path` is named in complaints. A filter; or, if only --like is given,
   an emptied copy of that file, which must be of the kind `like`, or any kind. */
struct set *make_filter(struct make *make, tamis_kind like, const struct store_options *files,
                        const char *path);
/* As the options say: records if there are attributes, otherwise the same. */
struct set *make_any(struct make *make, const struct store_options *files, const char *path);

/* ---- new_filter.c for new_records.c ---- */

struct made {
    uint8_t *key, lambdas[TAMIS_LAMBDAS_MAX];
};

/* Completes make->options; complains. */
bool make_settle(struct make *make, const struct store_options *files, struct made *made);
struct set *make_records(struct make *make, const struct store_options *files, const char *path);

#endif
