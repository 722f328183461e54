/*
 * find --fleet: runs find on the hosts that may have a record, a limited number at a time, with a command that
 * the user gives (ssh {host}). Output is printed host by host: the first host with output has its turn until
 * it ends, and what the others print is held back.
 *
 * A host has answered if its answer has its first and its last line. In all other cases (unknown name, lost
 * connection, no tamis on the host) it was not reached: this is reported, and the status is 2.
 */
#define _GNU_SOURCE
#include "fleet_question.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "logs/find.h"
#include "os/file.h"
#include "read/reader_parse.h"
#include "ui/out.h"
#include "ui/stop.h"

#define PARALLEL  8
#define HELD_MOST ((size_t)8 << 20) /* bytes held back per host; then it is not read from */
#define TIMEOUT   (UINT64_C(120) * 1000000000)

struct running {
    const struct known_host *host;
    pid_t pid;
    int out, err;
    struct bytes held, errors; /* not printed yet */
    size_t unended;            /* bytes of `held` already searched for a line end */
    bool began;                /* its first line has arrived */
    bool headed;               /* with --fields: its header was seen */
    bool quoted;               /* within quotes of CSV */
    uint64_t heard;            /* carrier_clock of the last byte */
    bool late;                 /* nothing came for too long */
    bool foreign;              /* the output is not an answer */
    int status;                /* in its last line; -1: none yet */
};

struct asking {
    const struct fleet_find *f;
    struct travelling *q;
    struct bytes rest; /* of the question, the same for all hosts */
    struct copies copies;
    struct answer answer;
    const struct known_host **todo;
    size_t n_todo, next;
    struct running *running;
    size_t n_running;
    struct running *turn;
    uint64_t timeout, printed, count;
    struct tally tally;
    bool header_done, found, trouble, enough;
};

/* ---- starting -------------------------------------------------------------------------------- */

/* The command for a host. */
static char *command_of(const struct asking *a, const char *host)
{
    struct bytes text = {0};
    const char *at = a->f->via, *mark;
    while ((mark = strstr(at, "{host}")) != NULL) {
        bytes_put(&text, at, (size_t)(mark - at));
        bytes_put(&text, host, strlen(host));
        at = mark + strlen("{host}");
    }
    bytes_put(&text, at, strlen(at));
    bytes_put(&text, " tamis find --question -", sizeof " tamis find --question -");
    return text.failed ? free(text.data), NULL : (char *)text.data;
}

/* A file with the question for a host, at its start. -1 after complaining. */
static int question_file(const struct asking *a, const struct known_host *host)
{
    struct bytes text = {0};
    bool good = travelling_begin(host->catalog, &text);
    bytes_put(&text, a->rest.data + 1, a->rest.len - 1);
    good = good && (!text.failed || no_memory(host->name));
    int fd = good ? memfd_create("tamis-question", MFD_CLOEXEC) : -1;
    bool made =
        fd >= 0 && file_write(fd, text.data, text.len, -1) == 0 && lseek(fd, 0, SEEK_SET) == 0;
    if (!made && (fd >= 0 || good))
        complain("%s: %s: give a smaller --parallel", strerror(errno), host->name);
    if (!made && fd >= 0)
        close(fd);
    free(text.data);
    return made ? fd : -1;
}

static void child(const char *command, int question, int out, int err)
{
    setpgid(0, 0);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    if (dup2(question, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0 &&
        dup2(err, STDERR_FILENO) >= 0)
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

static bool start(struct asking *a, const struct known_host *host)
{
    int pipes[2][2] = {{-1, -1}, {-1, -1}}; /* of its output and its errors */
    char *command = command_of(a, host->name);
    int question = command ? question_file(a, host) : -1;
    bool good = question >= 0 && pipe2(pipes[0], O_CLOEXEC) == 0 && pipe2(pipes[1], O_CLOEXEC) == 0;
    pid_t pid = good ? fork() : -1;
    if (pid == 0)
        child(command, question, pipes[0][1], pipes[1][1]);
    if (question >= 0 && pid < 0)
        complain("%s: %s: give a smaller --parallel", strerror(errno), host->name);
    for (size_t i = 0; i < 2; i++) {
        fd_close(&pipes[i][1]);
        if (pid < 0)
            fd_close(&pipes[i][0]);
    }
    fd_close(&question);
    free(command);
    if (pid < 0)
        return false;
    setpgid(pid, pid); /* here and in the child: either may run first */
    a->running[a->n_running++] = (struct running){.host = host,
                                                  .pid = pid,
                                                  .out = pipes[0][0],
                                                  .err = pipes[1][0],
                                                  .heard = carrier_clock(),
                                                  .status = -1};
    return true;
}

/* ---- printing -------------------------------------------------------------------------------- */

/* A JSON line of --count-by: a count and a value. */
static bool tally_line(struct asking *a, const uint8_t *line, size_t len)
{
    static const char *const names[] = {"count", "value"};
    const struct dialect dialect = {.format = READ_JSONL};
    struct parsing p = {0};
    struct record r;
    bool good = parsing_begin(&p, &dialect, names, 2, NULL, 0, line, len, NULL) == TAMIS_OK &&
                parser_next(p.parser, &r) == PARSED_RECORD && r.values[0].state == VALUE_PRESENT;
    if (good)
        good = tally_put(&a->tally, r.values[1].data, r.values[1].len,
                         r.values[1].state == VALUE_MISSING,
                         strtoull((const char *)r.values[0].data, NULL, 10));
    parsing_end(&p);
    return good;
}

/* Prints a line after the name of its host, or adds it to the counts. */
static void print_line(struct asking *a, struct running *r, const uint8_t *line, size_t len)
{
    bool row = !r->quoted; /* else the line continues a cell */
    for (size_t i = 0; a->q->fields && !a->q->json && i < len; i++)
        r->quoted ^= line[i] == '"';
    if (a->q->count) {
        a->count += strtoull((const char *)line, NULL, 10);
    } else if (a->q->count_by) {
        a->trouble |= !tally_line(a, line, len);
    } else if (a->q->fields && !a->q->json && !r->headed) {
        r->headed = !r->quoted;
        if (!a->header_done) {
            put_text(row ? "host," : "");
            put_bytes(line, len);
            a->header_done = r->headed;
        }
    } else if (!a->enough) {
        if (a->q->json && len > 1 && line[0] == '{') {
            put_format("{\"host\": \"%s\", ", r->host->name);
            put_bytes(line + 1, len - 1);
        } else {
            if (row)
                put_format("%s%s", r->host->name, a->q->fields ? "," : ":");
            put_bytes(line, len);
        }
        a->printed += !r->quoted;
        a->enough |= a->q->limited && a->printed >= a->q->limit;
    }
}

static void bytes_cut(struct bytes *b, size_t n)
{
    b->len -= n;
    if (n && b->len)
        memmove(b->data, b->data + n, b->len);
}

/* Is this the first line of an answer? If not, the program is killed: its output may be endless. */
static bool begin(struct running *r, const uint8_t *line, size_t len)
{
    r->began = len == strlen(ANSWER_FIRST) && memcmp(line, ANSWER_FIRST, len) == 0;
    if (!r->began) {
        r->foreign = true;
        r->held.len = 0;
        kill(-r->pid, SIGKILL);
        fd_close(&r->out);
    }
    return r->began;
}

/* Prints whole lines except the last one, which may be the end of the answer; `all`: the last one too,
   because no more will come. A line that was cut off is not printed. */
static void print_held(struct asking *a, struct running *r, bool all)
{
    size_t at = 0, first = strlen(ANSWER_FIRST), last = strlen(ANSWER_LAST);
    while (at < r->held.len) {
        const uint8_t *line = r->held.data + at;
        size_t left = r->held.len - at, skip = at ? 0 : r->unended;
        const uint8_t *end = memchr(line + skip, '\n', left - skip);
        size_t len = end ? (size_t)(end + 1 - line) : left;
        r->unended = end ? 0 : len;
        if (!r->began && (end || len >= first)) {
            if (!begin(r, line, len))
                return;
        } else if (!end || (len == left && !all)) {
            break;
        } else if (len == left && len == last + 2 && memcmp(line, ANSWER_LAST, last) == 0) {
            r->status = line[last] - '0';
        } else {
            print_line(a, r, line, len);
        }
        at += len;
    }
    bytes_cut(&r->held, at);
}

static void print_errors(struct running *r, bool all)
{
    size_t at = 0;
    while (at < r->errors.len) {
        const uint8_t *line = r->errors.data + at;
        const uint8_t *end = memchr(line, '\n', r->errors.len - at);
        size_t len = end ? (size_t)(end - line) : r->errors.len - at;
        if (!end && !all && len < 4096)
            break;
        remark("%s: %.*s", r->host->name, (int)(len < 400 ? len : 400), (const char *)line);
        at += len + (end != NULL);
    }
    bytes_cut(&r->errors, at);
}

/* ---- ending ---------------------------------------------------------------------------------- */

/* Why a host has not answered. */
static const char *why_not(const struct running *r)
{
    return r->began     ? "its answer was cut short"
           : r->foreign ? "its command printed something other than an answer"
           : r->late    ? "no answer in time"
                        : "no answer from the command";
}

/* Ends a host whose pipes are closed. */
static void finish(struct asking *a, struct running *r)
{
    if (a->turn == NULL || a->turn == r) {
        print_held(a, r, true);
        a->turn = NULL;
    }
    print_errors(r, true);
    kill(-r->pid, SIGKILL); /* processes it left behind */
    while (waitpid(r->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    if (r->status < 0 && !a->enough && !stop_signal) {
        remark("not reached: %s: %s: its records were not searched", r->host->name, why_not(r));
        a->trouble = true;
    }
    a->found |= r->status == FOUND;
    a->trouble |= r->status > NONE;
    free(r->held.data);
    free(r->errors.data);
}

static void take(int *fd, struct bytes *to, struct running *r)
{
    char some[65536];
    ssize_t n = read(*fd, some, sizeof some);
    if (n > 0) {
        bytes_put(to, some, (size_t)n);
        r->heard = carrier_clock();
    } else if (n == 0 || errno != EINTR) {
        fd_close(fd);
    }
}

/* Ends the command of a host. A process that has left its group may keep the pipes open, so they are not
   read to their end. */
static void stop(struct running *r)
{
    kill(-r->pid, SIGKILL);
    fd_close(&r->out);
    fd_close(&r->err);
}

/* Prints what can be printed, and removes hosts that have ended and have nothing left to print. */
static void settle(struct asking *a)
{
    for (size_t i = 0; i < a->n_running;) {
        struct running *r = &a->running[i];
        if (a->turn == NULL && r->held.len)
            a->turn = r;
        if (a->turn == r)
            print_held(a, r, false);
        print_errors(r, false);
        bool waits = a->turn && a->turn != r && r->held.len;
        if (r->out >= 0 || r->err >= 0 || waits) {
            i++;
            continue;
        }
        size_t turn = a->turn ? (size_t)(a->turn - a->running) : SIZE_MAX;
        finish(a, r);
        *r = a->running[--a->n_running];
        a->turn = turn == SIZE_MAX || turn == i ? NULL
                  : turn == a->n_running        ? &a->running[i]
                                                : &a->running[turn];
        i = 0; /* another one may have the turn now */
    }
}

static void wait_some(struct asking *a)
{
    struct pollfd *fds = calloc(2 * a->n_running + 1, sizeof *fds);
    if (!fds)
        return;
    for (size_t i = 0; i < a->n_running; i++) {
        struct running *r = &a->running[i];
        bool full = r->held.len > HELD_MOST && a->turn != r;
        fds[2 * i] = (struct pollfd){.fd = full ? -1 : r->out, .events = POLLIN};
        fds[2 * i + 1] = (struct pollfd){.fd = r->err, .events = POLLIN};
    }
    uint64_t now = carrier_clock(); /* output that arrived by then is read before a host is late */
    poll(fds, 2 * a->n_running, 200);
    for (size_t i = 0; i < a->n_running; i++) {
        struct running *r = &a->running[i];
        if (fds[2 * i].fd >= 0 && fds[2 * i].revents)
            take(&r->out, &r->held, r);
        if (fds[2 * i + 1].fd >= 0 && fds[2 * i + 1].revents)
            take(&r->err, &r->errors, r);
        if (r->held.len > HELD_MOST && a->turn != r)
            r->heard = now; /* it is not read from */
        bool open = r->out >= 0 || r->err >= 0;
        r->late |= open && now > r->heard && now - r->heard > a->timeout;
        if (a->enough || stop_signal || r->late)
            stop(r);
    }
    free(fds);
}

/* ---- the verb -------------------------------------------------------------------------------- */

static bool run(struct asking *a)
{
    size_t most = a->f->parallel ? (size_t)a->f->parallel : PARALLEL;
    stop_catch();
    a->running = calloc(most, sizeof *a->running);
    bool good = a->running;
    while (a->running && (a->n_running || (good && a->next < a->n_todo))) {
        while (good && !a->enough && !stop_signal && a->n_running < most && a->next < a->n_todo)
            good = start(a, a->todo[a->next++]);
        if (a->enough || stop_signal)
            a->next = a->n_todo;
        wait_some(a);
        settle(a);
        if (put_failed())
            a->enough = true;
    }
    free(a->running);
    return good;
}

static bool choose_hosts(struct asking *a)
{
    struct copies *c = &a->copies;
    a->todo = calloc(c->n + 1, sizeof *a->todo);
    for (size_t i = 0; a->todo && i < c->n; i++) {
        const struct known_host *h = &c->host[i];
        if (!h->hit && !h->doubt)
            continue;
        if (h->catalog) {
            a->todo[a->n_todo++] = h;
            continue;
        }
        remark("not reached: %s: the path of its catalog is not known", h->name);
        a->trouble = true;
    }
    return a->todo;
}

/* Hosts print counts in a form that can be added up. */
static int ask_hosts(struct asking *a)
{
    struct travelling *q = a->q;
    bool json = q->json, limited = q->limited;
    char moment[24];
    if (!choose_hosts(a))
        return no_memory(a->f->address), TROUBLE;
    q->json = q->count_by ? true : q->count ? false : json;
    q->limited = limited && !q->count_by;
    bool good = travelling_write(q, &a->rest) && run(a);
    q->json = json;
    q->limited = limited;
    stop_obey();
    if (!good)
        return TROUBLE;
    travelling_counts(q, &a->tally, a->count);
    if (a->f->verbose)
        remark("%zu of %zu hosts asked", a->n_todo, a->copies.n);
    int status = a->trouble ? TROUBLE : a->found ? FOUND : NONE;
    if (status == NONE && a->answer.unseen)
        return complain(
            "no input has an attribute '%s': --fleet %s: check the name, or put text in "
            "double quotes",
            a->answer.unseen, a->f->address);
    const struct known_host *oldest = copies_oldest(&a->copies);
    moment_write(oldest ? oldest->as_of : 0, moment);
    if (status == NONE)
        remark("none as of %s", moment);
    return status;
}

int fleet_find(const struct fleet_find *f, struct travelling *q)
{
    struct asking a = {.f = f, .q = q, .timeout = f->timeout ? f->timeout : TIMEOUT};
    const struct fleet_question asked = {.asked = travelling_asks(q), .fresh = f->fresh};
    if (!f->via || !strstr(f->via, "{host}"))
        return complain("no command: --via: give one with {host} in it, such as 'ssh {host}'");
    if (f->parallel > 1000)
        return complain("too many: --parallel: give at most 1000");
    int status = TROUBLE;
    if (fleet_open(&a.copies, f->address, f->folder, f->seal) &&
        fleet_ask(&a.copies, &asked, &a.answer)) {
        q->known = a.answer.known;
        q->n_known = a.answer.n_known;
        status = ask_hosts(&a);
    }
    tally_free(&a.tally);
    free(a.rest.data);
    free(a.todo);
    answer_free(&a.answer);
    copies_free(&a.copies);
    return status;
}
