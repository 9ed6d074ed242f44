/* tabular.h -- a table while it is read: its rows, what its columns are, and where they lie in a
 * sample.  Only tabular.c, places.c and cells.c use it.
 */
#ifndef TABULAR_H
#define TABULAR_H
#include "data/columns.h"
#include "data/data.h"
#include "data/sheet.h"

/* Where a column of an input lies. */
typedef struct Place {
    int input;
    int64_t at, count; /* its numbers there */
    int64_t first;     /* tokens: the token of its first category */
} Place;

/* Values that the recipe replaces: how many, and the line of the first one. */
typedef struct Replaced {
    int64_t n, line;
} Replaced;

typedef struct Tabular {
    const RtProgram *p;
    const RtTable *recipe;
    Data *d;
    Sheet sheet;
    Columns columns;
    Place *place;              /* [columns.ninput] */
    bool targets;              /* the sheet has the columns of the targets, too */
    bool trained;              /* weights determine columns of the training split, too */
    Replaced missing, unknown; /* values and categories of inputs */
} Tabular;

/* ---- the inputs and targets of the program */

static inline int number_of_inputs(const RtProgram *p)
{
    return p->ninput > 0 ? p->ninput : 1;
}

static inline int64_t numbers_of_input(const RtProgram *p, int i)
{
    return p->ninput > 0 ? data_count(&p->input[i]) : data_features(p);
}

static inline bool input_is_tokens(const RtProgram *p, int i)
{
    return p->ninput > 0 ? p->input[i].tokens : p->vocab > 0;
}

/* The columns of target k: one for a class, and one for each number. */
static inline int64_t columns_of_target(const RtProgram *p, int k)
{
    const int kind = p->ntarget > 0 ? p->targets[k].kind : p->target_kind;
    return kind == RT_TARGET_CLASS   ? 1
           : kind == RT_TARGET_INPUT ? 0
           : p->ntarget > 0          ? target_count(&p->targets[k])
                                     : data_targets(p);
}

static inline int number_of_targets(const RtProgram *p)
{
    return p->ntarget > 0 ? p->ntarget : 1;
}

static inline bool target_is_class(const RtProgram *p, int k)
{
    return (p->ntarget > 0 ? p->targets[k].kind : p->target_kind) == RT_TARGET_CLASS;
}

/* places.c.  places_find: finds the places of the columns, which fill the inputs in order; dies if
 * the columns do not fit.  places_check_targets: dies if the classes of a column do not fit its
 * target. */
void places_find(Tabular *t);
void places_check_targets(const Tabular *t);
/* "benign, malignant, ...": the first categories of a column. */
const char *places_values_text(const Column *c);

/* cells.c: stores a row as the inputs and targets of a sample; dies if a value is missing, or is no
 * number or category of its column. */
void cells_put_inputs(Tabular *t, int64_t row);
void cells_put_targets(Tabular *t, int64_t row);

#endif
