/*
 * Whoever supervises a process that stays: systemd is told when it is ready, that it still runs and that
 * it ends, by datagrams to the socket that NOTIFY_SOCKET names (sd_notify(3)), without its library.
 */
#ifndef TAMIS_SUPERVISE_H
#define TAMIS_SUPERVISE_H

#include <stdatomic.h>

/* Lines as sd_notify(3) has them, such as "READY=1"; nothing if nobody listens. */
void supervise_tell(const char *state);
/* To be called at every turn: tells that it is ready the first time, and then, as often as WATCHDOG_USEC
   asks for, that it runs. */
void supervise_turn(void);

/* SIGINT and SIGTERM, once they are caught: the one that came, or 0. Threads check it. */
extern atomic_int stop_signal;
void stop_catch(void);
/* Ends the program as the signal would have, if one came, so that the shell learns of it. */
void stop_obey(void);

#endif
