/* objects.h -- compiles the units of a program in parallel, and links them. */
#ifndef OBJECTS_H
#define OBJECTS_H
#include "tool/build.h"
#include "tool/cache.h"

/* The C compiler and its command line: found once per build. */
typedef struct Toolchain {
    const char *cc, *flags, *once, *libraries; /* once: more flags, for the file of the step */
    const char *version;                       /* what the compiler prints about itself */
    const char *mpicc, *mpi; /* --comm mpi: the wrapper of cc, and its options; else NULL */
} Toolchain;
bool toolchain_find(Arena *a, const BuildInput *in, Toolchain *t, Diag *d);

/* Adds headers of the runtime, and those that they include. */
void key_headers(Arena *a, const Paths *p, const EmitHeaders *h, Key *k);
Key program_key(Arena *a, const BuildInput *in, const Toolchain *t);

/* Compiles the units that are not in the cache, and links; all files are in `dir`.  Returns the
 * path of the program.  NULL after an error, when the file with the error stays in `dir`, or after
 * a signal (process_signal). */
const char *objects_program(Arena *a, const BuildInput *in, const Toolchain *t, Cache *cache,
                            const char *dir, Diag *d);
/* --comm mpi: mpicc compiles the runtime's file for MPI with the program. */
bool objects_add_mpi(Arena *a, BuildInput *in, Diag *d);
/* --comm nccl: adds the runtime's files that add gradients between GPUs.  A program with several
 * ranks opens NCCL itself. */
bool objects_add_nccl(Arena *a, BuildInput *in, Diag *d);
/* Adds the units of a program for a GPU: its generated file, and the part of the runtime that calls
 * CUDA. */
bool objects_add_cuda(Arena *a, BuildInput *in, EmitUnit program, Diag *d);
/* Adds what convolutions through cuDNN need: Tenon's library for cuDNN, and a file with the text
 * `plans`; "": no file. */
bool objects_add_plans(Arena *a, BuildInput *in, const char *plans, Diag *d);
/* --keep: writes one C file for readers, and the files that are compiled to DIR/NAME_units.
 * Returns DIR/NAME_units; NULL after an error. */
const char *objects_keep(Arena *a, const BuildInput *in, Diag *d);

#endif
