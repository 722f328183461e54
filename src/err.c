/* The texts of the errors, and the reasons that callers own. */
#include "err.h"

#include <stdarg.h>
#include <stdio.h>

static const struct {
    const char *name, *text;
} errors[] = {
#define X(name, text) {"TAMIS_" #name, text},
    TAMIS_ERRORS(X)
#undef X
};

const char *tamis_error_text(tamis_error error)
{
    return (unsigned)error < TAMIS_ERROR_COUNT ? errors[error].text : "an unknown error";
}

const char *tamis_error_name(tamis_error error)
{
    return (unsigned)error < TAMIS_ERROR_COUNT ? errors[error].name : "TAMIS_UNKNOWN";
}

static void set_reason(tamis_reason *reason, uint64_t offset, const char *format, va_list args)
{
    if (!reason)
        return;
    reason->offset = offset;
    reason->system_error = 0;
    vsnprintf(reason->text, sizeof reason->text, format, args);
}

tamis_error fail(tamis_reason *reason, tamis_error error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    set_reason(reason, 0, format, args);
    va_end(args);
    return error;
}

tamis_error fail_at(tamis_reason *reason, tamis_error error, uint64_t offset, const char *format,
                    ...)
{
    va_list args;
    va_start(args, format);
    set_reason(reason, offset, format, args);
    va_end(args);
    return error;
}
