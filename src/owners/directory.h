/*
 * The inside of a directory: one table of owners, by name and by number, and their sets as columns.
 *
 *   put as keys        columns of a few shapes, planned from the sizes of all owners and planned again
 *                      when an owner fits no shape; the keys are not kept
 *   put as filters     columns with the vectors of the filters
 *   kept by messages   a follower keeps the copy; the columns are its vectors
 *
 * Threads read columns, names, leases and the live bits while one thread writes: owners are in pieces
 * of 64 that never move, and numbers and names are permanent. Doubt is one bit, so a query reads a word
 * per 64 owners and no follower. Leases expire by themselves: each piece has the time when the next one
 * expires, and the first query after that checks its 64 leases.
 */
#ifndef TAMIS_DIRECTORY_H
#define TAMIS_DIRECTORY_H

#include "columns.h"
#include "plan/plan.h"
#include "replica/replica.h"

#define OWNER_PIECE   64
#define OWNER_PIECES  (TAMIS_OWNERS_MAX / OWNER_PIECE)
#define OWNER_NAME    65535 /* longest name in bytes; TAMIS_OWNER_MAX for origins of messages */
#define DIRECTORY_MAX (UINT64_C(1) << 32)

/* Fields that readers use are atomic; the rest belongs to the writer. */
struct owner {
    struct lookup_entry entry;
    char *name;
    tamis_follower *_Atomic follower; /* NULL: its set was put */
    _Atomic uint64_t items;
    struct columns_held held;
    uint32_t number;
    uint32_t plan; /* of columns planned for keys */
    bool keys;     /* its set was put as keys */
    bool behind;   /* its columns do not match its copy */
};

struct owner_piece {
    _Atomic uint64_t live, doubt; /* one bit per owner */
    _Atomic uint64_t lines;       /* owners whose copy has lines and is queried itself */
    _Atomic uint64_t next_expiry, renewals;
    _Atomic uint64_t expires[OWNER_PIECE];
    _Atomic uint64_t beat[OWNER_PIECE], least_beat; /* how long after a contact each is trusted */
    struct owner owner[OWNER_PIECE];
};

struct tamis_directory {
    tamis_allocator allocator;
    tamis_follower_options follower; /* options for new followers */
    struct family family;            /* of sets that are put as keys */
    double fpp;
    bool whole;
    struct columns columns;
    struct column_plan *plans;
    size_t n_plans, plans_room;
    struct lookup names;
    struct owner *taking;     /* whose message is being taken, or was last */
    _Atomic uint64_t contact; /* when the carrier was last reached (clock); 0: unknown */
    _Atomic uint32_t n;
    struct owner_piece *_Atomic piece[OWNER_PIECES];
};

static inline struct owner_piece *piece_of(const tamis_directory *d, uint32_t number)
{
    return atomic_load_explicit(&d->piece[number / OWNER_PIECE], memory_order_acquire);
}

static inline uint64_t bit_of(uint32_t number)
{
    return UINT64_C(1) << number % OWNER_PIECE;
}

/* follower_expect for the owner whose file was taken last. */
void directory_expect(tamis_directory *d, int64_t delay);

/* NULL if there is no such owner, or it was dropped. */
static inline struct owner *live_owner(const tamis_directory *d, uint32_t number)
{
    struct owner_piece *piece = number < tamis_directory_owners(d) ? piece_of(d, number) : NULL;
    return piece && (atomic_load(&piece->live) & bit_of(number))
               ? &piece->owner[number % OWNER_PIECE]
               : NULL;
}

#endif
