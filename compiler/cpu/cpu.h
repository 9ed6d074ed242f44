/* cpu.h -- programs for processors. */
#ifndef CPU_H
#define CPU_H
#include "emit/emit.h"

extern const EmitTarget cpu_target;

/* Stores the files of the program in *unit and returns their number; files with the longest
 * compile times come first. */
int emit_units(const EmitInput *in, Arena *a, EmitUnit **unit);

#endif
