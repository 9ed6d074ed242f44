/* tool.h -- the commands of `tenon` as steps of the pipeline in main.c. */
#ifndef TOOL_H
#define TOOL_H
#include "emit/emit.h"
#include "front/front.h"
#include "tool/command.h"

const char **tool_dump_names(Arena *a, int *n); /* values of --dump */
bool tool_answer(const Command *c, Diag *d);    /* help, version, ops: needs no model */
/* Takes the recipe's type of numbers.  False after an error. */
bool tool_take_recipe(Command *c, Front *f, Diag *d);
/* To be called before the passes.  Reports an impossible output or a missing recipe, and finds the
 * processor. */
bool tool_begin(Command *c, const Front *f, Diag *d);
/* Runs the passes over each graph. */
bool tool_plan(Front *f, const Options *o, Diag *d);
/* To be called after the passes.  Reports what the target cannot do; prints --dump=calls. */
bool tool_targets(const Command *c, const Front *f, Diag *d);
bool tool_show(const Command *c, const Front *f, Diag *d);  /* tables of the planned step */
bool tool_emit(const Command *c, const Front *f, Diag *d);  /* text to a file or to stdout */
bool tool_build(const Command *c, const Front *f, Diag *d); /* text to a program; `run` starts it */

bool tool_flush(Diag *d); /* flushes stdout; false, with an error, if stdout is full or closed */

#endif
