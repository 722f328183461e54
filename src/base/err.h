/* Filling a caller's reason. */
#ifndef TAMIS_ERR_H
#define TAMIS_ERR_H

#include "base.h"

/* Sets the reason (if not NULL) and returns the error, so that callers can write `return
   fail(...)`. */
tamis_error fail(tamis_reason *reason, tamis_error error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Uses the text of the error itself; does nothing for TAMIS_OK. */
tamis_error fail_so(tamis_reason *reason, tamis_error error);
tamis_error fail_at(tamis_reason *reason, tamis_error error, uint64_t offset, const char *format,
                    ...) __attribute__((format(printf, 4, 5)));

#endif
