/* The bar. See progress.h. */
#include "progress.h"

#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHOWN_AFTER 1.0 /* seconds until it appears */
#define EVERY       0.2
#define WIDTH       24

static struct {
    bool on, shown;
    uint64_t total, done;
    double start, last;
} bar;

double seconds(void)
{
    return 1e-9 * (double)clock_steady(NULL);
}

const char *size_text(double bytes, char room[32])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    size_t i = 0;
    for (; bytes >= 1000 && i + 1 < COUNT(units); i++)
        bytes /= 1024;
    snprintf(room, 32, i ? "%.1f %s" : "%.0f %s", bytes, units[i]);
    return room;
}

static const char *time_text(double left, char room[32])
{
    unsigned s = left < 1e6 ? (unsigned)(left + 0.5) : 1000000;
    if (s < 60)
        snprintf(room, 32, "%us", s);
    else if (s < 3600)
        snprintf(room, 32, "%um%02us", s / 60, s % 60);
    else
        snprintf(room, 32, "%uh%02um", s / 3600, s / 60 % 60);
    return room;
}

static void draw(double elapsed)
{
    char done[32], total[32], rate[32], left[32], line[256], blocks[WIDTH + 1];
    double speed = (double)bar.done / elapsed;
    size_text((double)bar.done, done);
    size_text(speed, rate);
    if (bar.total && bar.done <= bar.total) {
        double share = (double)bar.done / (double)bar.total;
        int full = (int)(share * WIDTH);
        memset(blocks, ' ', WIDTH);
        memset(blocks, '#', (size_t)full);
        blocks[WIDTH] = 0;
        snprintf(line, sizeof line, "\r[%s] %3.0f%%  %s of %s  %s/s  %s left\033[K", blocks,
                 100 * share, done, size_text((double)bar.total, total), rate,
                 time_text((double)(bar.total - bar.done) / speed, left));
    } else {
        snprintf(line, sizeof line, "\r%s  %s/s  %s\033[K", done, rate, time_text(elapsed, left));
    }
    bar.shown = write(STDERR_FILENO, line, strlen(line)) > 0;
}

bool progress_may(void)
{
    const char *term = getenv("TERM");
    return isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
}

void progress_start(uint64_t total)
{
    bar.on = progress_may();
    bar.total = total;
    bar.done = 0;
    bar.start = bar.last = bar.on ? seconds() : 0;
}

void progress_step(uint64_t bytes)
{
    bar.done += bytes;
    if (!bar.on)
        return;
    double now = seconds();
    if (now - bar.start < SHOWN_AFTER || now - bar.last < EVERY)
        return;
    bar.last = now;
    draw(now - bar.start);
}

void progress_hide(void)
{
    static const char erase[] = "\r\033[K";
    if (bar.shown && write(STDERR_FILENO, erase, sizeof erase - 1) > 0)
        bar.shown = false;
}

void progress_end(void)
{
    progress_hide();
    bar.on = false;
}
