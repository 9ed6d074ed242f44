/* processor.h -- whether this processor has the instructions that a program was compiled for. */
#ifndef PROCESSOR_H
#define PROCESSOR_H
#include "rt.h"

void processor_check(const RtProgram *p); /* dies if an instruction set of p->isa is missing */

#endif
