/* A library to preload into a process whose clocks a test sets. The file named by TAMIS_CLOCKS contains two
   64-bit numbers: by how many nanoseconds the real-time clock and the clocks since boot are ahead of those of
   the machine. Writing to the file changes the clocks of the running process. With TAMIS_SLOW_DISK=SECONDS replacing
   a file takes that long, by the clocks since boot. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *ahead; /* real time, since boot */
static int64_t slow;            /* nanoseconds of a renameat */
static int (*real)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("TAMIS_CLOCKS");
    int fd = path ? open(path, O_RDWR) : -1;
    void *map = mmap(NULL, 16, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    real = (int (*)(clockid_t, struct timespec *))(uintptr_t)dlsym(RTLD_NEXT, "clock_gettime");
    ahead = map != MAP_FAILED ? map : NULL;
    const char *seconds = getenv("TAMIS_SLOW_DISK");
    slow = seconds ? atoll(seconds) * 1000000000 : 0;
    if (!real || !ahead)
        abort();
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
    int status = real ? real(clock, out) : -1;
    if (status == 0 && ahead && (clock == CLOCK_REALTIME || clock == CLOCK_BOOTTIME)) {
        int64_t at =
            out->tv_sec * INT64_C(1000000000) + out->tv_nsec + ahead[clock != CLOCK_REALTIME];
        out->tv_sec = at / 1000000000;
        out->tv_nsec = at % 1000000000;
    }
    return status;
}

int renameat(int from, const char *old, int to, const char *new)
{
    if (ahead)
        ahead[1] += slow;
    return (int)syscall(SYS_renameat2, from, old, to, new, 0);
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    *out = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}
