/* Curves. gnuplot gets commands and points on its standard input; it draws to a temporary file
   that is renamed, so that a failed plot leaves no partial file. See plot.h. */
#define _GNU_SOURCE /* open_memstream */
#include "plot.h"

#include "ui/growing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CURVES 16

struct plot {
    const char *path;
    char *aside;
    char *head_text, *data_text;
    size_t head_len, data_len;
    FILE *head, *data; /* commands; points */
    const char *name[CURVES];
    bool second[CURVES];
    int n;
};

/* Writes a text as gnuplot quotes it. */
static void quote(FILE *to, const char *text)
{
    fputc('\'', to);
    for (; *text; text++) {
        if (*text == '\'')
            fputc('\'', to);
        fputc(*text == '\n' ? ' ' : *text, to);
    }
    fputc('\'', to);
}

static void order(FILE *to, const char *what, const char *text)
{
    fprintf(to, "set %s ", what);
    quote(to, text);
    fputc('\n', to);
}

static void plot_free(struct plot *p)
{
    if (p->head)
        fclose(p->head);
    if (p->data)
        fclose(p->data);
    free(p->head_text);
    free(p->data_text);
    free(p->aside);
    free(p);
}

bool plot_may(const char *path)
{
    struct stat st;
    if (!path[0])
        return refuse("no name: --plot: give the name of a file");
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return refuse("not a regular file: %s: give the name of a file", path);
    return true;
}

struct plot *plot_new(const char *path, const char *title, const char *x, const char *y,
                      unsigned flags)
{
    struct plot *p = path ? calloc(1, sizeof *p) : NULL;
    if (!p)
        return NULL;
    p->path = path;
    p->head = open_memstream(&p->head_text, &p->head_len);
    p->data = open_memstream(&p->data_text, &p->data_len);
    if (!p->head || !p->data || asprintf(&p->aside, "%s.%ld.tmp", path, (long)getpid()) < 0) {
        plot_free(p);
        return NULL;
    }
    fputs("set terminal svg size 800,500 dynamic background 'white' noenhanced\n"
          "set key outside top left horizontal\nset grid\nset datafile missing '?'\n",
          p->head);
    order(p->head, "output", p->aside);
    order(p->head, "title", title);
    order(p->head, "xlabel", x);
    order(p->head, "ylabel", y);
    if (flags & PLOT_LOG_Y)
        fputs("set logscale y\nset format y '%.0e'\n", p->head);
    if (flags & PLOT_LOG_X)
        fputs("set logscale x\n", p->head);
    return p;
}

void plot_second_axis(struct plot *p, const char *label)
{
    if (!p)
        return;
    fputs("set ytics nomirror\nset y2tics\n", p->head);
    order(p->head, "y2label", label);
}

void plot_curve(struct plot *p, const char *name, bool second)
{
    if (!p || p->n == CURVES)
        return;
    p->name[p->n] = name;
    p->second[p->n++] = second;
    fprintf(p->data, "%s$curve%d << end_of_curve\n", p->n > 1 ? "end_of_curve\n" : "", p->n - 1);
}

void plot_point(struct plot *p, double x, double y)
{
    if (p && y - y == 0)
        fprintf(p->data, "%.9g %.9g\n", x, y);
}

double plot_place(int i, double to)
{
    return to * i / PLOT_POINTS;
}

/* Runs gnuplot on the text; returns its exit status, 127 if it is not installed, -1 if it could
   not be run. */
static int run_gnuplot(const char *text, size_t len)
{
    int pipe_ends[2], status;
    if (pipe2(pipe_ends, O_CLOEXEC) != 0)
        return -1;
    pid_t child = fork();
    if (child == 0) {
        dup2(pipe_ends[0], STDIN_FILENO);
        int nowhere = open("/dev/null", O_WRONLY);
        dup2(nowhere, STDOUT_FILENO);
        dup2(nowhere, STDERR_FILENO);
        execlp("gnuplot", "gnuplot", "-", (char *)NULL);
        _exit(127);
    }
    close(pipe_ends[0]);
    if (child > 0)
        (void)write_fully(pipe_ends[1], text, len);
    close(pipe_ends[1]);
    if (child < 0 || waitpid(child, &status, 0) != child)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Commands, points, and the command to draw them. */
static char *script(struct plot *p, size_t *len)
{
    char *text = NULL;
    FILE *all = open_memstream(&text, len);
    if (!all)
        return NULL;
    fflush(p->head);
    fflush(p->data);
    fwrite(p->head_text, 1, p->head_len, all);
    fwrite(p->data_text, 1, p->data_len, all);
    fputs("end_of_curve\nplot ", all);
    for (int i = 0; i < p->n; i++) {
        fprintf(all, "%s$curve%d %s title ", i ? ", " : "", i,
                p->second[i] ? "axes x1y2 with lines lw 2 dt 2" : "with lines lw 2");
        quote(all, p->name[i]);
    }
    fputc('\n', all);
    return fclose(all) == 0 ? text : NULL;
}

/* gnuplot does not report a full disk: the end of the file tells whether everything was written. */
static bool whole(const char *path)
{
    char end[16] = "";
    FILE *drawn = fopen(path, "re");
    if (drawn && fseek(drawn, -(long)(sizeof end - 1), SEEK_END) == 0)
        end[fread(end, 1, sizeof end - 1, drawn)] = 0;
    if (drawn)
        fclose(drawn);
    return strstr(end, "</svg>");
}

int plot_draw(struct plot *p)
{
    if (!p)
        return FOUND;
    size_t len;
    char *text = script(p, &len);
    int status = FOUND;
    FILE *probe = fopen(p->aside, "we"); /* gnuplot would not say why it cannot write there */
    if (!text) {
        status = complain("out of memory: --plot: leave it out");
    } else if (!probe) {
        status = complain("%s: %s: give the name of a writable file", strerror(errno), p->path);
    } else {
        int outcome = run_gnuplot(text, len);
        if (outcome == 127)
            status = complain("gnuplot is not installed: --plot: install it (gnuplot-nox), or use "
                              "--json");
        else if (outcome != 0)
            status = complain("gnuplot failed: %s: try it by hand, or use --json", p->path);
        else if (!whole(p->aside))
            status = complain("the plot is incomplete: %s: make room and run again", p->path);
        else if (rename(p->aside, p->path) != 0)
            status = complain("%s: %s: give the name of a file", strerror(errno), p->path);
    }
    if (probe)
        fclose(probe);
    if (status != FOUND)
        unlink(p->aside);
    free(text);
    plot_free(p);
    return status;
}
