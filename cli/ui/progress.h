/*
 * The progress bar on standard error: only on a terminal, and only for work that takes over a
 * second. It shows the bytes done and, if the size of the input is known, the share and the time
 * left.
 */
#ifndef TAMIS_PROGRESS_H
#define TAMIS_PROGRESS_H

#include "cli.h"

/* Is standard error a terminal that can erase a line? */
bool progress_may(void);

/* total: bytes expected, 0 if unknown. */
void progress_start(uint64_t total);
void progress_step(uint64_t bytes); /* this many more bytes */
/* Removes the bar from the screen, before anything else is written there. */
void progress_hide(void);
void progress_end(void);

double seconds(void);                               /* since some moment; never set back */
const char *size_text(double bytes, char room[32]); /* 1234567: "1.2 MiB" */

#endif
