/* The handler of SIGINT and SIGTERM. See stop.h. */
#include "stop.h"

#include <signal.h>
#include <stddef.h>

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
