/* Messages on standard error: one line, "tamis VERB: what: where: what to do". */
#include "cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "escape.h"
#include "os/file.h"
#include "progress.h"

const char *verb_name, *mapped_name;

/* The prefix of a line for the journal (sd-daemon(3)): systemd says which file is the journal, and it
   must be standard error. */
static const char *level_text(bool error)
{
    const char *journal = getenv("JOURNAL_STREAM");
    unsigned long long device, inode;
    struct stat st;
    if (!journal || sscanf(journal, "%llu:%llu", &device, &inode) != 2 ||
        fstat(STDERR_FILENO, &st) != 0 || st.st_dev != device || st.st_ino != inode)
        return "";
    return error ? "<3>" : "<5>";
}

static void say(bool error, const char *format, va_list args)
{
    char text[8192], shown[2 * sizeof text];
    int len = verb_name ? snprintf(text, sizeof text, "tamis %s: ", verb_name)
                        : snprintf(text, sizeof text, "tamis: ");
    vsnprintf(text + len, sizeof text - (size_t)len - 1, format, args);
    /* one line, whatever a name contains */
    size_t left = (size_t)snprintf(shown, sizeof shown, "%s", level_text(error));
    left += escape_text(shown + left, sizeof shown - left - 1, text);
    shown[left++] = '\n';
    progress_hide();
    (void)file_write(STDERR_FILENO, shown, left, -1);
}

int complain(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(true, format, args);
    va_end(args);
    return TROUBLE;
}

bool refuse(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(true, format, args);
    va_end(args);
    return false;
}

void remark(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(false, format, args);
    va_end(args);
}

/* A signal handler: only write() is safe. Buffered output is lost. */
void complain_of_mapped(int signal_number)
{
    char name[4096];
    escape_text(name, sizeof name, mapped_name ? mapped_name : "a file");
    const char *const parts[] = {"tamis ", verb_name ? verb_name : "",
                                 ": cut short while it was read: ", name,
                                 ": run again; replace files by renaming, not in place\n"};
    (void)signal_number;
    for (size_t i = 0; i < COUNT(parts); i++)
        if (write(STDERR_FILENO, parts[i], strlen(parts[i])) < 0)
            break;
    _exit(TROUBLE);
}

static bool verb_is(const char *name)
{
    return strcmp(verb_name, name) == 0;
}

bool no_memory(const char *what)
{
    return refuse("out of memory: %s: free some memory and run again", what);
}

/* What to do about a file that the system could not open, read or write. */
static const char *system_advice(int error)
{
    switch (error) {
    case ENOENT:
        if (verb_is("create"))
            return "check the name and its folder";
        if (verb_is("find") || verb_is("index"))
            return "check the name, or make it with tamis index -o";
        return "check the name, or make it with tamis create";
    case EACCES:
    case EPERM:
    case EROFS:
        return "check the permissions of the file and its folder";
    case ENOSPC:
    case EDQUOT:
        return "make room and run again; nothing was changed";
    case EFBIG:
        return "raise the limit on the size of files; nothing was changed";
    case EISDIR:
    case ENOTDIR:
        return "give the name of a file";
    default:
        return "nothing was changed";
    }
}

static const char *advice(tamis_error error)
{
    static const char *const texts[TAMIS_ERROR_COUNT] = {
        [TAMIS_ENOMEM] = "free some memory and run again",
        [TAMIS_EFULL] =
            "make a larger one (--capacity), one that grows (--growth), or allow --overfill",
        [TAMIS_ESPACE] = "make one with a larger memory limit",
        [TAMIS_EFAMILY] = "make filters that belong together with create --like or --key-file",
        [TAMIS_ESHAPE] = "make them alike with create --like",
        [TAMIS_ERATE] = "allow a new rate with --restate",
        [TAMIS_EREADONLY] = "it has only bits; change the filter it was made from",
        [TAMIS_EFORMAT] = "give a file written by tamis, or restore it from a copy",
        [TAMIS_EVERSION] = "get a newer tamis",
        [TAMIS_ECHECKSUM] = "restore it from a copy",
        [TAMIS_EBASE] = "apply patches in order, each to the version it was made from",
        [TAMIS_EKEY] = "give --key-file",
        [TAMIS_EBUSY] = "run again later, or without --no-wait",
    };
    static char see[64];
    if (error == TAMIS_ESHAPE && verb_is("fold"))
        return "make one of 2^n bits with create --bits";
    if (error == TAMIS_EKIND &&
        (verb_is("find") || verb_is("check") || verb_is("add") || verb_is("remove")))
        return "catalogs are for tamis find, filters and records for tamis check";
    if (error == TAMIS_EKIND && (verb_is("merge") || verb_is("intersect")))
        error = TAMIS_ESHAPE;
    snprintf(see, sizeof see, "see tamis help %s", verb_name);
    return (size_t)error < COUNT(texts) && texts[error] ? texts[error] : see;
}

/* The text of the reason, without the file name it may begin with. */
static const char *text_of(tamis_error error, const tamis_reason *reason, const char *where)
{
    const char *text = reason && reason->text[0] ? reason->text : tamis_error_text(error);
    size_t len = 0; /* the library replaces control characters by ? */
    while (where[len] && (text[len] == where[len] || text[len] == '?'))
        len++;
    return !where[len] && strncmp(text + len, ": ", 2) == 0 ? text + len + 2 : text;
}

const char *input_trouble(tamis_error error, const tamis_reason *reason, const char *path)
{
    return reason && reason->system_error ? strerror(reason->system_error)
                                          : text_of(error, reason, path);
}

int complain_input(tamis_error error, const tamis_reason *reason, const char *path,
                   const char *done)
{
    return complain("%s: %s: %s", input_trouble(error, reason, path), path, done);
}

int complain_of(tamis_error error, const tamis_reason *reason, const char *path)
{
    const char *where = path ? path : "library";
    const char *text = text_of(error, reason, where);
    bool system = reason && reason->system_error;
    if (error == TAMIS_EBUSY && reason)
        return complain("%s", text); /* it is complete: who, where, what to do */
    if (system)
        return complain("%s: %s: %s", strerror(reason->system_error), where,
                        error == TAMIS_ESYNC
                            ? "the file was changed, but a power failure may undo this"
                            : system_advice(reason->system_error));
    if (reason && reason->offset)
        return complain("%s: %s, byte %llu: %s", text, where, (unsigned long long)reason->offset,
                        advice(error));
    return complain("%s: %s: %s", text, where, advice(error));
}

bool succeeded(tamis_error error, const tamis_reason *reason, const char *path)
{
    return error == TAMIS_OK || complain_of(error, reason, path) == FOUND;
}
