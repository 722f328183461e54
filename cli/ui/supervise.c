/* The protocol of sd_notify(3), which is a datagram. See supervise.h. */
#define _GNU_SOURCE
#include "supervise.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

void supervise_tell(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t len = path ? strlen(path) : 0;
    if (len < 2 || len >= sizeof to.sun_path || (path[0] != '/' && path[0] != '@'))
        return;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    memcpy(to.sun_path, path, len);
    if (path[0] == '@') /* a name of the system, not of a file */
        to.sun_path[0] = 0;
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    if (sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&to, size) < 0)
        size = 0; /* whoever started this is gone: no reason to stop */
    close(fd);
}

void supervise_turn(void)
{
    static bool told;
    static uint64_t every, next; /* nanoseconds */
    struct timespec time;
    if (!told) {
        const char *text = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
        bool ours = !pid || strtol(pid, NULL, 10) == (long)getpid();
        every = text && ours ? strtoull(text, NULL, 10) * 1000 / 3 : 0;
        supervise_tell("READY=1");
        told = true;
    }
    if (!every || clock_gettime(CLOCK_MONOTONIC, &time) != 0)
        return;
    uint64_t now = (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
    if (now < next)
        return;
    next = now + every;
    supervise_tell("WATCHDOG=1");
}

atomic_int stop_signal;

static void note_stop(int number)
{
    stop_signal = number;
}

void stop_catch(void)
{
    const struct sigaction action = {.sa_handler = note_stop};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

void stop_obey(void)
{
    int number = stop_signal;
    if (number) {
        signal(number, SIG_DFL);
        raise(number);
    }
}
