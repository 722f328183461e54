/* The protocol of sd_notify(3), which is a datagram. See supervise.h. */
#define _GNU_SOURCE
#include "supervise.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/base.h"

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
    if (path[0] == '@') /* an abstract socket, not a file */
        to.sun_path[0] = 0;
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    if (sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&to, size) < 0)
        size = 0; /* the supervisor is gone: no reason to stop */
    close(fd);
}

void supervise_turn(void)
{
    static bool told;
    static uint64_t every, next; /* nanoseconds */
    if (!told) {
        const char *text = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
        bool ours = !pid || strtol(pid, NULL, 10) == (long)getpid();
        every = text && ours ? strtoull(text, NULL, 10) * 1000 / 3 : 0;
        supervise_tell("READY=1");
        told = true;
    }
    uint64_t now = every ? clock_steady(NULL) : 0;
    if (now >= next && every) {
        next = now + every;
        supervise_tell("WATCHDOG=1");
    }
}
