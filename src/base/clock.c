/* The two system clocks as a tamis_clock, in nanoseconds. */
#include "base.h"

#include <time.h>

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t clock_real(void *unused)
{
    (void)unused;
    return read_clock(CLOCK_REALTIME);
}

uint64_t clock_steady(void *unused)
{
    (void)unused;
    return read_clock(CLOCK_BOOTTIME);
}
