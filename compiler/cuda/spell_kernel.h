/* spell_kernel.h -- a kernel of several calls, while spell.c or spell_recurrence.c writes it. */
#ifndef CUDA_SPELL_KERNEL_H
#define CUDA_SPELL_KERNEL_H
#include "cuda/spell.h"

typedef struct GroupKernel {
    Writer *w;
    Text body;
    Argument *parameter; /* the arguments of its calls, without duplicates */
    Argument *local;     /* name and value of what the body declares: no parameters */
    int nparameter, nlocal;
} GroupKernel;

/* The kernel of one call: its index in Writer.kernel. */
int spell_kernel_of(Writer *w, const CudaCall *c);
/* The name of an argument in the body: of a local variable with its value, else of a parameter,
 * which is added if it is missing. */
const char *spell_argument(GroupKernel *k, const Argument *g);
/* The same, but always a parameter. */
const char *spell_parameter(GroupKernel *k, const Argument *g);
/* Writes the call of the function of a member: "tanh_1_body(a, b);".  function: "tanh_1_body(", or
 * "tanh_1_at(at, ". */
void spell_member(GroupKernel *k, const char *function, const CudaCall *c);
/* Defines the kernel, and returns its launch.  numbers: how many numbers its shared memory
 * holds, if the kernel computes a loop; else 0. */
const char *spell_group(GroupKernel *k, const char *base, Blocks *blocks, int64_t numbers);

/* spell_recurrence.c: the launch for these calls of a loop over time. */
const char *spell_recurrence(Writer *w, CudaCall *const *call, int n);

#endif
