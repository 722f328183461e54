/* Error texts, and filling the reasons that callers pass. */
#include "err.h"

#include "bytes.h"

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

/* Makes one line of UTF-8 without terminal escapes, whatever names from untrusted bytes contain: no control
   characters (C0, DEL or C1). */
static void make_plain(char *text)
{
    for (uint8_t *at = (uint8_t *)text; *at;) {
        uint32_t c;
        size_t n = utf8_decode(at, strnlen((char *)at, 4), &c);
        if (n == 0 || c < 0x20 || (c >= 0x7F && c < 0xA0))
            *at = '?', n = 1;
        at += n;
    }
}

static void set_reason(tamis_reason *reason, uint64_t offset, const char *format, va_list args)
{
    if (!reason)
        return;
    reason->offset = offset;
    reason->system_error = 0;
    vsnprintf(reason->text, sizeof reason->text, format, args);
    make_plain(reason->text);
}

tamis_error fail(tamis_reason *reason, tamis_error error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    set_reason(reason, 0, format, args);
    va_end(args);
    return error;
}

tamis_error fail_so(tamis_reason *reason, tamis_error error)
{
    return error == TAMIS_OK ? error : fail(reason, error, "%s", tamis_error_text(error));
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
