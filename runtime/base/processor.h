/* processor.h -- whether this processor has the instructions that a program was compiled for. */
#ifndef PROCESSOR_H
#define PROCESSOR_H
#include "rt.h"

/* Predicted time of a step in bf16 over that in f32, by AVX-512 or AVX2; 0: not known, as with
 * tiles of AMX and VDPBF16PS. */
double processor_half_ratio(const RtProgram *p);
void processor_check(const RtProgram *p); /* dies if an instruction set of p->isa is missing */

#endif
