/* axis.h -- the setting `set`: values of the model and the recipe, KEY=VALUE,VALUE. */
#ifndef SWEEP_AXIS_H
#define SWEEP_AXIS_H
#include "sweep/plan.h"

/* Whether a text can be a further axis; reports what is wrong with it. */
bool axis_allowed(Arena *a, const Words *before, const char *axis, Span at, Diag *d);
/* Reports a key whose values another setting of the sweep replaces. */
bool axes_free(const Matrix *m, Diag *d);
/* The options of all builds: each of m->build with each value of m->set; their number. */
Words axis_builds(Arena *a, const Matrix *m);
double axis_count(Arena *a, const Matrix *m);

#endif
