/* tool.h -- the commands of `tenon` as steps of the pipeline in main.c. */
#ifndef TOOL_H
#define TOOL_H
#include "emit/emit.h"
#include "front/front.h"
#include "tool/command.h"

bool tool_answer(const Command *c, Diag *d); /* help, version, ops: what needs no model */
/* Before the passes: an output that cannot be is refused, a recipe asked for, the processor looked up. */
bool tool_begin(Command *c, const Front *f, Diag *d);
/* After the passes: emit, compile, print or run, as the command says. */
bool tool_finish(const Command *c, const Front *f, Diag *d);
EmitInput tool_emit_input(const Command *c, const Front *f);
bool tool_said(Diag *d); /* what was printed has arrived: false when stdout is full or closed */

#endif
