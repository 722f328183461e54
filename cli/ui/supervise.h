/*
 * Tells systemd, if it supervises a long-running process, that the process is ready, still runs, or ends:
 * datagrams to the socket that NOTIFY_SOCKET names (sd_notify(3)), without systemd's library.
 */
#ifndef TAMIS_SUPERVISE_H
#define TAMIS_SUPERVISE_H

/* Sends lines such as "READY=1" (sd_notify(3)), if a supervisor listens. */
void supervise_tell(const char *state);
/* Call it in every turn of the main loop: the first time it reports that the process is ready, then that
   it runs, three times per WATCHDOG_USEC. */
void supervise_turn(void);

#endif
