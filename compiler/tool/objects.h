/* objects.h -- a program's units through the C compiler, side by side, and linked. */
#ifndef OBJECTS_H
#define OBJECTS_H
#include "tool/build.h"
#include "tool/cache.h"

/* The C compiler and how it is called: found once a build. */
typedef struct Toolchain {
    const char *cc, *flags, *once, *libraries; /* once: besides, for the file of the step */
    const char *version;                       /* what the compiler says of itself */
} Toolchain;
bool toolchain_find(Arena *a, const BuildInput *in, Toolchain *t, Diag *d);

Key object_key(Arena *a, const BuildInput *in, const Toolchain *t, const EmitUnit *u);
Key program_key(Arena *a, const BuildInput *in, const Toolchain *t);

/* Compiles what the cache does not have and links; everything is made in `dir`.  Returns the program's path, NULL after an error
 * (the file at fault stays in `dir`) or after a signal (process_signal). */
const char *objects_program(Arena *a, const BuildInput *in, const Toolchain *t, Cache *cache,
                            const char *dir, Diag *d);
/* --comm mpi: the runtime's file that speaks to MPI is compiled with the program, by the mpicc that is there. */
bool objects_add_mpi(Arena *a, BuildInput *in, Diag *d);
/* --comm nccl: the runtime's files that add gradients between GPUs; NCCL itself is opened when a program has several ranks. */
bool objects_add_nccl(Arena *a, BuildInput *in, Diag *d);
/* The units of a program for a GPU: its one generated file, and the runtime's part that calls CUDA. */
bool objects_add_cuda(Arena *a, BuildInput *in, const char *program, Diag *d);
/* What its convolutions through cuDNN need: our library for it, and the file of plans, "" when there are none. */
bool objects_add_plans(Arena *a, BuildInput *in, const char *plans, Diag *d);
/* --keep: the C as it is read and, in DIR/NAME_units, as it is compiled.  The directory of the latter, NULL after an error. */
const char *objects_keep(Arena *a, const BuildInput *in, Diag *d);

#endif
