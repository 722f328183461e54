/* Error texts, and filling the reasons that callers pass. */
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

/* Length of the character at s if it is UTF-8 and not a control character (C0, DEL or C1), else
   0. */
static int plain_char(const unsigned char *s)
{
    int more = s[0] >= 0xF0 ? 3 : s[0] >= 0xE0 ? 2 : s[0] >= 0xC0 ? 1 : 0;
    bool control = s[0] < 0x20 || (s[0] >= 0x7F && s[0] < 0xC0) || s[0] > 0xF4 ||
                   (s[0] == 0xC2 && s[1] < 0xA0);
    for (int i = 1; i <= more; i++)
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    return control ? 0 : 1 + more;
}

/* Makes one line without terminal escapes, whatever names from untrusted bytes contain. */
static void make_plain(char *text)
{
    for (char *at = text; *at;) {
        int n = plain_char((const unsigned char *)at);
        if (n == 0)
            *at = '?';
        at += n ? n : 1;
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
