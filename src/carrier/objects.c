/* Followers of objects. See objects.h. */
#include "objects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INDEX_MOST  4096              /* bytes */
#define OWNERS_MOST ((size_t)1 << 28) /* bytes of the list of owners */
#define TAKE_MOST   1000              /* messages of one owner per check */
#define MISSES_MOST 3                 /* checks for a message that is missing */

struct owner_messages {
    struct lookup_entry entry;
    char *owner;
    bool listed, forgotten;
    bool looked;          /* its index was read */
    uint64_t first, last; /* messages that exist, by the index */
    uint64_t seen;        /* the last one taken */
    uint64_t known;       /* the last one ever taken: those up to it may be old */
    unsigned misses;      /* checks that did not find the next one */
    struct object_mark index;
};

void object_number(uint64_t number, char out[24])
{
    snprintf(out, 24, "%020llu", (unsigned long long)number);
}

void object_path(const char *owner, const char *name, char out[1024])
{
    char quoted[780];
    carrier_quote(owner, quoted, sizeof quoted);
    snprintf(out, 1024, "%s%s%s", quoted, *owner && *name ? "/" : "", name);
}

/* Not keyed: origins that choose colliding names could do worse. */
static uint64_t hash_name(const char *name)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    for (; *name; name++)
        hash = (hash ^ (uint8_t)*name) * UINT64_C(0x100000001B3);
    return hash ^ hash >> 32;
}

static struct owner_messages *sender_of(struct objects *o, const char *owner)
{
    uint64_t hash = hash_name(owner);
    for (struct lookup_entry *at = NULL; (at = lookup_next(&o->by_name, hash, at));)
        if (strcmp(PART_OF(at, struct owner_messages, entry)->owner, owner) == 0)
            return PART_OF(at, struct owner_messages, entry);
    struct owner_messages *sender = calloc(1, sizeof *sender);
    char *name = strdup(owner);
    if (!sender || !name || !lookup_reserve(&o->by_name, &mem_system) ||
        !array_room(NULL, &o->sender, o->n_senders, &o->senders_room, sizeof *o->sender)) {
        free(sender);
        free(name);
        carrier_fail(&o->carrier, "out of memory");
        return NULL;
    }
    sender->owner = name;
    lookup_add(&o->by_name, &sender->entry, hash);
    return o->sender[o->n_senders++] = sender;
}

void objects_free(struct objects *o)
{
    for (size_t i = 0; i < o->n_senders; i++) {
        free(o->sender[i]->owner);
        free(o->sender[i]);
    }
    free(o->sender);
    lookup_free(&o->by_name, &mem_system);
}

/* ---- checks ---------------------------------------------------------------------------------- */

static bool look_for_owners(struct objects *o)
{
    struct object list;
    char owner[256];
    enum object_result r = o->get(o, "owners", OWNERS_MOST, &o->owners, &list);
    if (r == OBJECT_FAILED || r == OBJECT_SAME)
        return r == OBJECT_SAME;
    for (size_t i = 0; i < o->n_senders; i++)
        o->sender[i]->listed = false;
    bool good = true;
    for (size_t at = 0; r == OBJECT_READ && good && at < list.len;) {
        const uint8_t *end = memchr(list.data + at, '\n', list.len - at);
        size_t len = (end ? (size_t)(end - list.data) : list.len) - at;
        if (end && carrier_unquote((const char *)list.data + at, len, owner, sizeof owner)) {
            struct owner_messages *sender = sender_of(o, owner);
            good = sender != NULL;
            if (sender)
                sender->listed = true;
        }
        at += len + 1;
    }
    if (r == OBJECT_READ)
        free(list.data);
    if (!good)
        o->owners.text[0] = 0; /* read the list again */
    return good;
}

static bool look_at_index(struct objects *o, struct owner_messages *sender)
{
    struct object file;
    char path[1024], text[INDEX_MOST + 1];
    unsigned long long epoch, first = 0, last = 0;
    object_path(sender->owner, "index", path);
    enum object_result r = o->get(o, path, INDEX_MOST, &sender->index, &file);
    sender->looked |= r != OBJECT_FAILED;
    if (r != OBJECT_READ)
        return r != OBJECT_FAILED;
    memcpy(text, file.data, file.len);
    text[file.len] = 0;
    free(file.data);
    if (sscanf(text, "tamis objects 1\nepoch %llu\nmessages %llu %llu\n", &epoch, &first, &last) ==
        3) {
        sender->first = first;
        sender->last = last;
        sender->forgotten = strstr(text, "\nforgotten\n") != NULL;
    }
    return true;
}

struct object_taking {
    carrier_take take;
    void *context;
    int n;
    bool left; /* messages for the next check */
};

static bool take_messages(struct objects *o, struct owner_messages *sender, struct object_taking *t)
{
    bool anew = sender->last < sender->seen; /* numbers start again: the folder was emptied */
    if (anew)
        sender->seen = sender->known = 0;
    if (sender->first > sender->seen + 1)
        sender->seen = sender->first - 1; /* the follower notices the gap */
    for (int i = 0; i < TAKE_MOST && sender->seen < sender->last; i++) {
        struct object file;
        uint64_t number = sender->seen + 1;
        char path[1024], name[24];
        object_number(number, name);
        object_path(sender->owner, name, path);
        enum object_result r = o->get(o, path, SIZE_MAX, NULL, &file);
        if (r == OBJECT_FAILED)
            return false;
        if (r == OBJECT_NONE && ++sender->misses < MISSES_MOST)
            return true; /* removed meanwhile, or not visible yet */
        sender->misses = 0;
        sender->seen = number;
        if (r == OBJECT_NONE)
            continue;
        uint64_t since = anew ? AGE_UNKNOWN : carrier_since(o->carrier.reached, carrier_clock());
        bool came = since != AGE_UNKNOWN && number > sender->known;
        sender->known = number > sender->known ? number : sender->known;
        carrier_deliver(t->take, t->context, sender->owner, file.data, file.len,
                        came ? since : file.age);
        free(file.data);
        t->n++;
    }
    t->left |= sender->seen < sender->last;
    return true;
}

static bool look(struct objects *o, struct object_taking *t)
{
    if (!look_for_owners(o))
        return false;
    for (size_t i = 0; i < o->n_senders; i++)
        if (o->sender[i]->listed &&
            (!look_at_index(o, o->sender[i]) || !take_messages(o, o->sender[i], t)))
            return false;
    return true;
}

int objects_receive(struct carrier *c, char position[CARRIER_POSITION], int milliseconds,
                    carrier_take take, void *context)
{
    struct objects *o = (struct objects *)c;
    struct object_taking t = {take, context, 0, false};
    uint64_t until = carrier_now() + (uint64_t)milliseconds;
    snprintf(position, CARRIER_POSITION, "-");
    for (;;) {
        uint64_t now = carrier_now();
        if (now < o->next_look && now < until) {
            carrier_sleep((o->next_look < until ? o->next_look : until) - now);
            now = carrier_now();
        }
        if (now < o->next_look)
            return o->failed ? -1 : 0;
        uint64_t began = carrier_clock();
        bool good = look(o, &t);
        o->failed = !good;
        uint64_t took = carrier_now() - now;
        o->next_look = now + took + (took * o->share > o->look_ms ? took * o->share : o->look_ms);
        if (!good)
            return -1;
        if (!t.left)
            c->reached = began;
        else
            o->next_look = 0;
        if (t.n || carrier_now() >= until)
            return t.n;
    }
}

bool objects_owners(struct carrier *c, carrier_each each, void *context)
{
    struct objects *o = (struct objects *)c;
    if (!look_for_owners(o))
        return false;
    for (size_t i = 0; i < o->n_senders; i++) {
        struct owner_messages *sender = o->sender[i];
        if (sender->listed && !sender->looked && !look_at_index(o, sender))
            return false;
        if (sender->listed)
            each(context, sender->owner, sender->forgotten);
    }
    return true;
}

int objects_fetch(struct carrier *c, const char *owner, char position[CARRIER_POSITION],
                  carrier_take take, void *context)
{
    struct objects *o = (struct objects *)c;
    struct owner_messages *sender = sender_of(o, owner);
    struct object file;
    char path[1024];
    (void)position; /* later messages are delivered again */
    if (!sender)
        return -1;
    object_path(owner, "snapshot", path);
    enum object_result r = o->get(o, path, SIZE_MAX, NULL, &file);
    if (r != OBJECT_READ)
        return r == OBJECT_NONE ? 0 : -1;
    if (file.len >= 16) {
        memcpy(&sender->seen, file.data + 8, sizeof sender->seen);
        o->next_look = 0;
    }
    for (size_t at = 16; at + 8 <= file.len;) {
        uint64_t len;
        memcpy(&len, file.data + at, sizeof len);
        at += sizeof len;
        if (len > file.len - at)
            break;
        carrier_deliver(take, context, owner, file.data + at, (size_t)len, AGE_UNKNOWN);
        at += len;
    }
    free(file.data);
    return 1;
}
