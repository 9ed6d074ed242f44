/* chart.h -- a chart as a few lines of SVG: axes, lines with spread, dots.
 *
 * Colours are classes (c0 .. c7), which the style of the page defines for light, dark and paper.  The drawing is 400 units
 * wide and scales with the page; below it are the names of the series, as text that wraps.
 */
#ifndef SWEEP_CHART_H
#define SWEEP_CHART_H
#include "base/text.h"

typedef struct Point {
    double x, y;
    double low, high; /* ends of the whisker; equal: no whisker */
    const char *tip;  /* shown under the pointer, or NULL */
} Point;

typedef struct Series {
    const char *name; /* NULL: no name below the drawing */
    Point *point;
    int n;
    bool line, dots, dashed;
    int colour; /* 0 .. 7 */
} Series;

enum { CHART_COLOURS = 8 };

typedef struct Chart {
    const char *title, *x, *y; /* the axes' names */
    bool log_x, log_y;
    bool whole_x;   /* ticks at whole numbers only */
    bool from_zero; /* the y axis begins at 0, unless it is logarithmic */
    double base_x;  /* of ticks on a logarithmic x axis: 2 or 10 */
    double most_y;  /* the y axis ends there; 0 = at the largest point */
    Series *series;
    int n;
} Chart;

void chart_draw(Text *t, const Chart *c);
void html_add(Text *t, const char *s); /* with <, >, & and quotes escaped */

#endif
