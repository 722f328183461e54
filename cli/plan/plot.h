/* Curves drawn by gnuplot to an SVG file. */
#ifndef TAMIS_PLOT_H
#define TAMIS_PLOT_H

#include "ui/cli.h"

#define PLOT_POINTS 400 /* of a smooth curve */

enum plot_flags { PLOT_LOG_Y = 1, PLOT_LOG_X = 2 };

/* May a plot be written there? Not to a device, pipe or folder, which the file would replace.
   Complains. */
bool plot_may(const char *path);

/* All functions accept a NULL plot and then do nothing. NULL path: no plot. */
struct plot;
struct plot *plot_new(const char *path, const char *title, const char *x, const char *y,
                      unsigned flags);
void plot_second_axis(struct plot *plot, const char *label);
/* A curve; `second`: on the right axis. */
void plot_curve(struct plot *plot, const char *name, bool second);
void plot_point(struct plot *plot, double x, double y);
/* The i-th of PLOT_POINTS+1 positions from 0 to `to`. */
double plot_place(int i, double to);
/* Draws and frees; returns the exit status. */
int plot_draw(struct plot *plot);

#endif
