/*
 * A filter inside: its settings, its vectors, and for dynamic filters the matrix that holds their
 * bits. settings.c settles the options, growth.c decides the next vector, removal.c remembers what
 * cannot be settled yet, algebra.c works on whole filters.
 */
#ifndef TAMIS_FILTER_H
#define TAMIS_FILTER_H

#include <stdatomic.h>

#include "base.h"
#include "digest.h"
#include "matrix.h"
#include "mem.h"
#include "removal.h"
#include "vector.h"

#define WINDOW_VECTORS     8
#define WINDOW_VECTORS_MAX 1024
#define WINDOW_DEFAULT     (UINT64_C(86400) * 1000000000)
#define CAPACITY_DEFAULT   1024
#define LAMBDA_MAX         40         /* 2^40 times the first */
#define SLOT_NONE          UINT32_MAX /* a vector outside the budget: the stated rate was restated */
#define STACK_MAX          4096       /* vectors that are asked one by one, or layers */

/* The options as settled when the filter was made; plain data, saved with it. */
struct settings {
    tamis_growth growth;
    tamis_layout layout;
    double fpp;    /* stated for the whole; 0: as published, no bound on the total */
    double budget; /* what shares are taken from; fpp unless it was restated */
    uint64_t capacity;
    bool deletable, unique, overfill, shared_adds, add_always;
    double expansion, tolerate;
    uint32_t vectors_max; /* dynamic, window; 0: any number */
    uint64_t items_max;   /* fixed, dynamic: full at so many; 0: no bound */
    struct shape shape;   /* dynamic: of every vector. As published: of the first */
    bool published;
    uint8_t lambdas[TAMIS_LAMBDAS_MAX];
    uint32_t n_lambdas;
    uint64_t window, memory_limit;
};

/* The vectors, oldest first. Readers load the pointer, then n, then the vectors: a writer fills
   v[n] before it raises n, and replaces the stack when there is no room. */
struct stack {
    struct stack *retired; /* older ones, kept until no reader can be inside */
    uint32_t room;
    _Atomic uint32_t n;
    struct vector *v[];
};

/* Flexible: how fast keys come, by how fast vectors, or layers, filled. */
struct forecast {
    tamis_plan_holt holt;
    double base_rate; /* the first */
};

struct tamis_filter {
    struct quick quick;  /* how one key is asked for or added; first, so that it is one jump away */
    struct vector *into; /* where quick.add adds, if keys go into one vector without more ado */
    tamis_allocator allocator;
    struct family family;
    struct settings set;
    struct stack *_Atomic stack;
    struct matrix *_Atomic matrix; /* dynamic only */
    struct guard *guard;           /* where a writer may let go of what readers see */
    struct vector *gone;           /* window: vectors let go, while readers may be inside */
    struct removals removals;
    uint64_t stored; /* sum of the vectors' counts */
    uint32_t next_id;
    struct forecast forecast;
    uint32_t grown; /* vectors made so far, the first included */
    /* What a writer knows of the vectors, and forgets when there are others (filter_set_quick): */
    uint32_t open;      /* those before this one are full */
    uint64_t tidy_till; /* so many copies must go before a vector is empty or two fit into one */
    tamis_clock clock;
    void *clock_context;
    struct mapping mapping; /* the file that the vectors are views of, or none */
    bool read_only;
    bool bits_only; /* came without counters and pending removals; for good */
};

/* ---- filter.c ---- */
ALWAYS_INLINE struct stack *filter_stack(const tamis_filter *f)
{
    return atomic_load_explicit(&f->stack, memory_order_acquire);
}

ALWAYS_INLINE uint32_t stack_count(const struct stack *stack)
{
    return atomic_load_explicit(&stack->n, memory_order_acquire);
}

/* Columns are asked 64 at a time; what each add and lookup asks one by one is bounded closer. */
ALWAYS_INLINE uint32_t filter_vectors_max(tamis_growth growth)
{
    return growth == TAMIS_DYNAMIC ? MATRIX_COLUMNS_MAX : STACK_MAX;
}

/* After the vectors changed: sets `quick` and `into`, and forgets what else was known of them. */
void filter_set_quick(tamis_filter *f);
/* The clock of flexible and window filters, 0 for others. If it was set back, by less or by more, the
   vectors are dated back with it and keep their ages: time stood still for a moment and goes on. Else
   keys added now would count as older than those before, or nothing would be forgotten until the clock
   is again where it was. */
uint64_t filter_now(tamis_filter *f);
tamis_error filter_writable(const tamis_filter *f);
bool filter_is_full(const tamis_filter *f);
/* found[i] = all bits of digest i are set in some vector, whatever is pending. */
void filter_bits_have(const tamis_filter *f, const tamis_digest *digests, size_t n, uint8_t *found);
/* Its place in the stack; the number of vectors if there is none. */
uint32_t filter_place_of(const tamis_filter *f, uint32_t id);
struct vector *filter_vector_by_id(const tamis_filter *f, uint32_t id);
/* Which vectors have all bits of a digest: what a writer asks, for whom the vectors stand still. */
struct match {
    uint64_t columns[64]; /* the columns that match, if `known`; more of them go one by one */
    bool known;
    tamis_digest digest;
};
/* False: none has. */
bool filter_match(const tamis_filter *f, tamis_digest digest, struct match *match);
ALWAYS_INLINE bool match_has(const struct match *match, const struct vector *v)
{
    return match->known ? match->columns[v->column >> 6] >> (v->column & 63) & 1
                        : vector_has(v, match->digest);
}
/* Are there counters where the filter is deletable? Not in mapped files and copies of bits. */
bool filter_counted(const tamis_filter *f);
/* A filter without a vector, with a stack for `room` of them. */
tamis_error filter_make(tamis_filter **out, const tamis_allocator *a, const struct settings *set,
                        tamis_hash hash, const uint8_t *key, uint32_t room);
/* Puts back a vector that was saved, with its id; the stack has room. Columns are still to be
   placed. */
void filter_put_back(tamis_filter *f, struct vector *v);
/* The filter becomes what `made` is, and `made` is gone. */
void filter_become(tamis_filter *f, tamis_filter *made);
struct stack *stack_new(const tamis_allocator *a, uint32_t room);
/* Appends a vector (whose column, if there is a matrix, is still to be placed). */
tamis_error filter_append(tamis_filter *f, struct vector *v);
/* Takes vector i out and frees it; needs the filter to itself. */
void filter_drop(tamis_filter *f, uint32_t i);
/* Takes so many of the oldest vectors out beside readers; false without memory. */
bool filter_let_go(tamis_filter *f, uint32_t old);
/* Frees what readers may have held: all of it when the caller is alone, else when none is inside. */
void filter_reclaim(tamis_filter *f, bool alone);
/* Columns for n vectors; the first time of this shape. */
bool filter_reserve_columns(tamis_filter *f, uint32_t n, const struct bits *shape);
/* No more columns than there are vectors, as far as widths go; without memory the wide one serves on.
   Needs the filter to itself. */
void filter_narrow(tamis_filter *f);
/* Points every column at the matrix. */
void filter_place_columns(tamis_filter *f);
void filter_empty(tamis_filter *f);   /* to the first day; cannot fail */
void filter_dispose(tamis_filter *f); /* frees what the filter holds, not the filter */

/* ---- add.c ---- */
/* Bit by bit: columns, and vectors whose changes are watched or whose bits are kept. */
void vector_add_bits(struct vector *v, const tamis_digest *digests, size_t n, uint8_t *fresh);
/* Brings near what adding or removing keys of a deletable filter touches; at most BATCH digests. */
void filter_fetch(const tamis_filter *f, const tamis_digest *digests, size_t n);

/* ---- settings.c ---- */
tamis_error settings_from(struct settings *set, const tamis_options *o, tamis_reason *reason);
/* For settings from elsewhere: NULL, or which of them no filter can have. */
const char *settings_wrong(const struct settings *set, const struct family *family);
/* The shape that holds n keys at rate p. */
tamis_error shape_for(tamis_layout layout, uint64_t n, double p, struct shape *out);
tamis_error shape_from_plan(tamis_layout layout, tamis_plan_size size, struct shape *out);

/* ---- growth.c ---- */
/* Flexible: the last vector, or layer, began at `born` and is full with so many now; all hold `total`
   (as published: 0). Returns lambda: the next one gets 2^(lambda-1) times the base. */
struct filling {
    uint64_t load, born, total;
};
unsigned forecast_next(struct forecast *f, const struct filling *last, uint64_t base, uint64_t now);
/* What a vector takes with its first key: its bits, unless they are a column, and counters with their
   first escapes. */
uint64_t vector_cost(const struct shape *shape, bool deletable, bool own_bits);
/* The next vector, sized and given its share; NULL with the error. */
tamis_error growth_next(tamis_filter *f, struct vector **out);
/* A vector with room for a new key, made if need be. */
tamis_error growth_active(tamis_filter *f, struct vector **out);
/* Most vectors of a dynamic or window filter; of a window with so many that turn by time. */
uint32_t growth_places(const struct settings *set);
uint32_t window_places(uint32_t vectors);
/* Window filters: lets old vectors go, starts a new one when its time has come. */
tamis_error growth_turn(tamis_filter *f, uint64_t now);
/* Who has slots: n vectors or layers. */
struct slot_owner {
    uint32_t (*slot)(const void *of, uint32_t i);
    const void *of;
    uint32_t n;
    double budget;
};
/* The first free slot from `from` on whose share is at least fpp; or SLOT_NONE. */
uint32_t slot_search(const struct slot_owner *owner, uint32_t from, double fpp);
uint32_t growth_slot(const tamis_filter *f, uint32_t from, double fpp);
/* The smallest whole number whose square is m or more: two deviations of the ones of m bits. */
uint64_t growth_root(uint64_t m);
/* Capacity and rate of a vector, and the ones at which it counts as full: alone, in a filter. */
void vector_set_limits(struct vector *v, uint64_t capacity, double fpp);
void filter_set_limits(const struct settings *set, struct vector *v, uint64_t capacity, double fpp);

/* ---- algebra.c ---- */
/* Dynamic: unites pairs of vectors that fit into one, looking at so many pairs at most. `merged`: there
   were some, and there may be more. */
tamis_error filter_merge_pairs(tamis_filter *f, uint64_t looks, bool *merged);
/* So many copies must be removed before two vectors can fit into one; 0: perhaps they do now. */
uint64_t filter_pair_distance(const tamis_filter *f);

#endif
