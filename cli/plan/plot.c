/* Curves. gnuplot gets commands and points on its standard input; it draws to a temporary file
   that is renamed, so that a failed plot leaves no partial file. See plot.h. */
#define _GNU_SOURCE /* asprintf */
#include "plot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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

bool plot_may(const char *path)
{
    struct stat st;
    if (!path[0])
        return refuse("no name: --plot: give the name of a file");
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return refuse("not a regular file: %s: give the name of a file", path);
    return true;
}

/* Commands, points, and the command to draw them. */
static void write_script(FILE *to, const struct plot *p, const char *aside)
{
    fputs("set terminal svg size 800,500 dynamic background 'white' noenhanced\n"
          "set key outside top left horizontal\nset grid\nset datafile missing '?'\n",
          to);
    order(to, "output", aside);
    order(to, "title", p->title);
    order(to, "xlabel", p->x);
    order(to, "ylabel", p->y);
    if (p->log_y)
        fputs("set logscale y\nset format y '%.0e'\n", to);
    if (p->y2) {
        fputs("set ytics nomirror\nset y2tics\n", to);
        order(to, "y2label", p->y2);
    }
}

static void write_curves(FILE *to, const struct plot *p, double end,
                         void (*at)(const void *context, double x, double *y), const void *context)
{
    fputs("$points << end_of_points\n", to);
    for (int i = 1; i <= PLOT_POINTS; i++) {
        double x = end * i / PLOT_POINTS, y[PLOT_CURVES];
        at(context, x, y);
        fprintf(to, "%.9g", x);
        for (size_t j = 0; p->name[j]; j++)
            fprintf(to, y[j] - y[j] == 0 ? " %.9g" : " ?", y[j]);
        fputc('\n', to);
    }
    fputs("end_of_points\n", to);
    for (size_t j = 0; p->name[j]; j++) {
        fprintf(to, "%s $points using 1:%zu %s title ", j ? "," : "plot", j + 2,
                p->right >> j & 1 ? "axes x1y2 with lines lw 2 dt 2" : "with lines lw 2");
        quote(to, p->name[j]);
    }
    fputc('\n', to);
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

/* Lets gnuplot draw to the file aside, which then replaces the other. */
static int draw(const char *path, const char *aside, const struct plot *plot, double to,
                void (*at)(const void *context, double x, double *y), const void *context)
{
    FILE *probe = fopen(aside, "we"); /* gnuplot would not say why it cannot write there */
    if (!probe)
        return complain("%s: %s: give the name of a writable file", strerror(errno), path);
    FILE *script = popen("exec gnuplot - >/dev/null 2>&1", "we");
    int outcome = -1, status = FOUND;
    if (script) {
        write_script(script, plot, aside);
        write_curves(script, plot, to, at, context);
        outcome = pclose(script);
    }
    if (WIFEXITED(outcome) && WEXITSTATUS(outcome) == 127)
        status = complain("gnuplot is not installed: --plot: install it (gnuplot-nox), or use "
                          "--json");
    else if (outcome != 0)
        status = complain("gnuplot failed: %s: try it by hand, or use --json", path);
    else if (!whole(aside))
        status = complain("the plot is incomplete: %s: make room and run again", path);
    else if (rename(aside, path) != 0)
        status = complain("%s: %s: give the name of a file", strerror(errno), path);
    fclose(probe);
    if (status != FOUND)
        unlink(aside);
    return status;
}

int plot_draw(const char *path, const struct plot *plot, double to,
              void (*at)(const void *context, double x, double *y), const void *context)
{
    char *aside;
    if (!path)
        return FOUND;
    if (asprintf(&aside, "%s.%ld.tmp", path, (long)getpid()) < 0)
        return complain("out of memory: --plot: leave it out");
    int status = draw(path, aside, plot, to, at, context);
    free(aside);
    return status;
}
