/* SIGINT and SIGTERM, for verbs that end in an orderly way: what they write stays whole. */
#ifndef TAMIS_STOP_H
#define TAMIS_STOP_H

#include <stdatomic.h>

/* The signal received since stop_catch(), or 0. Threads check it. */
extern atomic_int stop_signal;
void stop_catch(void);
/* If a signal was received, ends the program as the signal would have, so that the shell sees it. */
void stop_obey(void);

#endif
