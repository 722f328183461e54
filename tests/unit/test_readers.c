/* When what was replaced may be freed: readers inside, nested, in other threads, ended. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "os/readers.h"
#include "harness.h"

struct thing {
    struct retired retired;
    uint64_t value; /* 1; 0 once it was disposed of */
    unsigned *disposed;
};

static void dispose(struct retired *retired, const tamis_allocator *a)
{
    struct thing *t = (struct thing *)(void *)retired;
    (void)a;
    t->value = 0;
    ++*t->disposed;
}

TEST(nothing_goes_while_a_reader_is_inside)
{
    unsigned disposed = 0;
    struct thing old = {.value = 1, .disposed = &disposed};
    struct retired *list = NULL;
    uint64_t outer = readers_enter(), inner = readers_enter();
    retire(&list, &old.retired, dispose);
    retired_free(&list, false, NULL);
    CHECK(list == &old.retired && disposed == 0);
    readers_leave(inner);
    retired_free(&list, false, NULL);
    CHECK(disposed == 0); /* the outer one is still inside */
    readers_leave(outer);
    retired_free(&list, false, NULL);
    CHECK(!list && disposed == 1);
}

TEST(a_reader_that_came_later_holds_nothing_up)
{
    unsigned disposed = 0;
    struct thing older = {.value = 1, .disposed = &disposed};
    struct thing newer = {.value = 1, .disposed = &disposed};
    struct retired *list = NULL;
    retire(&list, &older.retired, dispose);
    uint64_t inside = readers_enter();
    retire(&list, &newer.retired, dispose);
    retired_free(&list, false, NULL);
    CHECK(disposed == 1 && older.value == 0 && newer.value == 1);
    retired_free(&list, true, NULL);
    CHECK(disposed == 2);
    readers_leave(inside);
}

struct stay {
    atomic_int step;
};

static void *go_in(void *context)
{
    struct stay *stay = context;
    uint64_t inside = readers_enter();
    atomic_store(&stay->step, 1);
    while (atomic_load(&stay->step) < 2)
        sched_yield();
    readers_leave(inside);
    atomic_store(&stay->step, 3);
    while (atomic_load(&stay->step) < 4)
        sched_yield();
    readers_enter(); /* and ends without coming out: with its thread a reader is gone */
    return NULL;
}

static void until(struct stay *stay, int step)
{
    while (atomic_load(&stay->step) < step)
        sched_yield();
}

TEST(readers_of_other_threads_count_until_they_end)
{
    unsigned disposed = 0;
    struct thing first = {.value = 1, .disposed = &disposed};
    struct thing last = {.value = 1, .disposed = &disposed};
    struct retired *list = NULL;
    struct stay stay = {0};
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, go_in, &stay) == 0);
    until(&stay, 1);
    retire(&list, &first.retired, dispose);
    retired_free(&list, false, NULL);
    CHECK(disposed == 0);
    atomic_store(&stay.step, 2);
    until(&stay, 3);
    retired_free(&list, false, NULL);
    CHECK(disposed == 1);
    atomic_store(&stay.step, 4);
    pthread_join(thread, NULL);
    retire(&list, &last.retired, dispose);
    retired_free(&list, false, NULL);
    CHECK(disposed == 2);
}

/* ---- many at once ---------------------------------------------------------------------------- */

#define READERS 3
#define SWAPS   2000
#define THINGS  64

struct crowd {
    struct thing *_Atomic now;
    atomic_bool stop;
    _Atomic uint64_t wrong, reads;
};

static void *read_on(void *context)
{
    struct crowd *c = context;
    while (!atomic_load(&c->stop)) {
        uint64_t inside = readers_enter();
        const volatile struct thing *t = atomic_load(&c->now);
        for (int i = 0; i < 4; i++)
            if (t->value != 1)
                atomic_fetch_add(&c->wrong, 1);
        readers_leave(inside);
        atomic_fetch_add(&c->reads, 1);
    }
    return NULL;
}

static void swap_beside_readers(void)
{
    static struct thing thing[THINGS];
    unsigned disposed = 0, made = 0;
    struct crowd c = {.now = &thing[0]};
    struct retired *list = NULL;
    pthread_t thread[READERS];
    memset(thing, 0, sizeof thing);
    thing[0] = (struct thing){.value = 1, .disposed = &disposed};
    for (int i = 0; i < READERS; i++)
        CHECK(pthread_create(&thread[i], NULL, read_on, &c) == 0);
    while (atomic_load(&c.reads) < READERS)
        sched_yield();
    while (made < SWAPS) {
        struct thing *next = &thing[(made + 1) % THINGS], *old = atomic_load(&c.now);
        retired_free(&list, false, NULL);
        if (next->value) { /* a reader that waits for its turn may hold them all */
            sched_yield();
            continue;
        }
        *next = (struct thing){.value = 1, .disposed = &disposed};
        atomic_store(&c.now, next);
        retire(&list, &old->retired, dispose);
        made++;
    }
    atomic_store(&c.stop, true);
    for (int i = 0; i < READERS; i++)
        pthread_join(thread[i], NULL);
    retired_free(&list, false, NULL);
    CHECK(!list);
    CHECK(disposed == made);
    CHECK(atomic_load(&c.wrong) == 0);
}

TEST(no_reader_sees_what_is_gone)
{
    swap_beside_readers();
}

/* A system without membarrier. */
TEST(nor_where_readers_fence)
{
    bool before = readers_fence;
    readers_fence = true;
    swap_beside_readers();
    readers_fence = before;
}

HARNESS_MAIN
