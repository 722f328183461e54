/*
 * A directory inside: one table of owners, by name and by number, and their sets as columns.
 *
 *   put as keys       columns of a few shapes that are planned from the sizes of all owners, and again
 *                     when an owner comes that no shape suits; the keys are not kept
 *   put as filters    columns as the filters' vectors are
 *   told by messages  a follower keeps the copy; the columns are its vectors
 *
 * Readers look at columns, names, leases and what is live beside the writer: owners are in pieces of 64
 * that never move, and numbers and names are for life. Doubt is a bit, so a question looks at a word
 * for 64 owners and at no follower. A lease runs out without anyone's doing: of each piece it is known
 * when the next one does, and the first question after that looks at its 64 leases.
 */
#ifndef TAMIS_DIRECTORY_H
#define TAMIS_DIRECTORY_H

#include "columns.h"
#include "plan/plan.h"
#include "replica/replica.h"
#include "tamis/replica.h"

#define OWNER_PIECE   64
#define OWNER_PIECES  (TAMIS_OWNERS_MAX / OWNER_PIECE)
#define OWNER_NAME    65535 /* longest name, in bytes; of one told by messages TAMIS_OWNER_MAX */
#define DIRECTORY_MAX (UINT64_C(1) << 32)

/* What readers look at is atomic; the rest is the writer's. */
struct owner {
    struct lookup_entry entry;
    char *name;
    tamis_follower *_Atomic follower; /* NULL: its set was put */
    _Atomic uint64_t items;
    struct columns_held held;
    uint32_t number;
    uint32_t plan; /* of columns planned for keys */
    bool keys;     /* they are */
    bool behind;   /* its columns are not those of its copy */
};

struct piece {
    _Atomic uint64_t live, doubt; /* owners, by bit */
    _Atomic uint64_t next_expiry, renewals;
    _Atomic uint64_t expires[OWNER_PIECE];
    struct owner owner[OWNER_PIECE];
};

struct tamis_directory {
    tamis_allocator allocator;
    tamis_follower_options follower; /* what they are made with */
    struct family family;            /* of sets that are put as keys */
    double fpp;
    bool whole;
    struct columns columns;
    struct column_plan *plans;
    size_t n_plans, plans_room;
    struct lookup names;
    struct owner *taking; /* a message at the moment */
    uint64_t flipped;     /* bits of columns that deltas changed so far */
    _Atomic uint32_t n;
    struct piece *_Atomic piece[OWNER_PIECES];
};

#endif
