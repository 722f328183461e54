/* tamis: the command line. A table of verbs; each verb is a function in a file of its group. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "ui/cli.h"
#include "ui/out.h"

static const struct {
    const char *name;
    verb_fn *run;
} verbs[] = {{"index", verb_index},       {"find", verb_find},          {"create", verb_create},
             {"add", verb_change_keys},   {"remove", verb_change_keys}, {"check", verb_check},
             {"dedup", verb_dedup},       {"info", verb_info},          {"verify", verb_verify},
             {"fold", verb_change_file},  {"clear", verb_change_file},  {"merge", verb_combine},
             {"intersect", verb_combine}, {"diff", verb_diff},          {"apply", verb_apply},
             {"plan", verb_plan},         {"bench", verb_bench},        {"publish", verb_publish},
             {"follow", verb_follow},     {"locate", verb_locate},      {"forget", verb_forget},
             {"where", verb_where}};

static int run(int argc, char **argv)
{
    if (argc < 2) {
        put_text(help_first);
        return FOUND;
    }
    const char *name = argv[1];
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return help_print(argc > 2 ? argv[2] : NULL)
                   ? FOUND
                   : complain("unknown command: %s: see tamis help", argv[2]);
    if (strcmp(name, "version") == 0 || strcmp(name, "--version") == 0) {
        put_text("tamis " TAMIS_VERSION "\n");
        return FOUND;
    }
    for (size_t i = 0; i < COUNT(verbs); i++)
        if (strcmp(name, verbs[i].name) == 0) {
            verb_name = verbs[i].name;
            return verbs[i].run(argc - 1, argv + 1);
        }
    return complain("unknown command: %s: see tamis help", name);
}

/* The first file that a program opens gets the lowest free number: if a standard one was closed,
   keys would be read from a lock file, and lines written into a filter. So each closed one gets
   a file opened in the wrong direction, on which reads and writes fail. */
static void hold_standard_files(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        int held = fd;
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            /* the lowest free number is fd itself */
            held = open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
        if (held > fd)
            close(held);
    }
}

/* Keeps family keys out of core dumps, by leaving out all memory. */
static void keep_out_of_dumps(void)
{
    int fd = open("/proc/self/coredump_filter", O_WRONLY | O_CLOEXEC);
    if (fd >= 0 && write(fd, "0", 1) < 0)
        errno = 0; /* a kernel without core dumps */
    fd_close(&fd);
}

int main(int argc, char **argv)
{
    hold_standard_files();
    keep_out_of_dumps();
    signal(SIGPIPE, SIG_IGN); /* the write then returns an error for a closed pipe, */
    signal(SIGXFSZ, SIG_IGN); /* and for a limit on the size of files */
    signal(SIGBUS, complain_of_mapped);
    return put_end(run(argc, argv));
}
