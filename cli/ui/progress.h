/*
 * The bar on standard error: only on a terminal, only for work that lasts over a second. Bytes
 * done, and where the size of the input is known the share and the time left.
 */
#ifndef TAMIS_PROGRESS_H
#define TAMIS_PROGRESS_H

#include "cli.h"

/* Whether standard error is a terminal that can erase a line. */
bool progress_may(void);

/* total: bytes that will come, 0 if that is not known. */
void progress_start(uint64_t total);
void progress_step(uint64_t bytes); /* so many more */
/* Takes the bar off the screen, before anything else is written there. */
void progress_hide(void);
void progress_end(void);

double seconds(void); /* since some moment, never set back */

#endif
