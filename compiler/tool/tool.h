/* tool.h -- the commands of `tenon` as steps of the pipeline in main.c. */
#ifndef TOOL_H
#define TOOL_H
#include "emit/emit.h"
#include "front/front.h"
#include "tool/command.h"

bool tool_answer(const Command *c, Diag *d); /* help, version, ops: needs no model */
/* Before the passes: reports an impossible output or a missing recipe, and finds the processor. */
bool tool_begin(Command *c, const Front *f, Diag *d);
/* After the passes: emits, compiles, prints or runs, as the command says. */
bool tool_finish(const Command *c, const Front *f, Diag *d);
bool tool_makes_program(const Command *c); /* build, run, and emit of C or CUDA */
EmitInput tool_emit_input(const Command *c, const Front *f);
bool tool_flush(Diag *d); /* flushes stdout; false, with an error, if stdout is full or closed */

#endif
