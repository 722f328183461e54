/* Curves drawn by gnuplot to an SVG file. */
#ifndef TAMIS_PLOT_H
#define TAMIS_PLOT_H

#include "ui/cli.h"

#define PLOT_POINTS 400 /* of a curve */
#define PLOT_CURVES 6   /* most of one plot */

struct plot {
    const char *title, *x, *y;
    const char *name[PLOT_CURVES + 1]; /* of the curves; the last one is NULL */
    const char *y2;                    /* label of a right axis; NULL: there is none */
    unsigned right;                    /* bit i: curve i is on that axis */
    bool log_y;
};

/* May a plot be written there? Not to a device, pipe or folder, which the file would replace.
   Complains. */
bool plot_may(const char *path);
/* Draws the curves, whose values at x `at` computes, up to `to`; values that are not finite are left out. Without a
   path it does nothing. Returns the exit status. */
int plot_draw(const char *path, const struct plot *plot, double to,
              void (*at)(const void *context, double x, double *y), const void *context);

#endif
