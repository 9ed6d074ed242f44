/* build.h -- makes a program from generated C, with the C compiler, the runtime library and the
 * cache. */
#ifndef BUILD_H
#define BUILD_H
#include "emit/emit.h"
#include "tool/command.h"
#include "tool/machine.h"
#include "tool/paths.h"

typedef struct BuildInput {
    const char *name; /* of the model; names the C file */
    const char *text; /* the generated C in one file, for --keep; else NULL */
    EmitUnit *unit;   /* the generated C in files that are compiled in parallel */
    int nunit;
    bool cudnn;        /* linked with libtenoncudnn.a */
    bool mpi;          /* the C compiler is called through mpicc */
    bool xz;           /* the data may be compressed with xz */
    bool images;       /* the data are folders of images */
    const char *dtype; /* "f32", "f64" */
    const Command *command;
    const Machine *machine;
    const Paths *paths;
} BuildInput;

/* Compiles the program, or finds it in the cache, and writes it to command->output, completely or
 * not at all. */
bool build_program(Arena *a, const BuildInput *in, Diag *d);
/* Compiles into the cache, and replaces this process by the program: returns only after an
 * error. */
bool build_and_run(Arena *a, const BuildInput *in, Diag *d);
/* Prints the key of the program (tool/cache.h) and builds nothing.  Equal keys mean equal
 * programs. */
bool build_key(Arena *a, const BuildInput *in, Diag *d);
/* Reports an output that is a directory, a device or a model file, before any work is done. */
bool build_output_ok(const Command *c, Diag *d);

#endif
