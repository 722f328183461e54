/* SIGINT and SIGTERM, for verbs that end in order: what they write stays whole. */
#ifndef TAMIS_STOP_H
#define TAMIS_STOP_H

#include <stdatomic.h>

/* The signal that came since stop_catch(), or 0. Threads check it. */
extern atomic_int stop_signal;
void stop_catch(void);
/* Ends the program as the signal would have, if one came, so that the shell learns of it. */
void stop_obey(void);

#endif
