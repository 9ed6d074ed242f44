/* machine.h -- the processor of a program: its name, its C flags, the width of its vectors. */
#ifndef MACHINE_H
#define MACHINE_H
#include "base/diag.h"

typedef struct Machine {
    const char *name; /* "x86-64-v4" */
    const char *cflags;
    int vector_bytes; /* 0: no vectors, one number at a time */
    bool x86;         /* true: x86; false: ARM.  A C compiler makes code for one of them */
    bool any;         /* for every processor of the C compiler's target */
} Machine;

/* `cpu` as on the command line; "native" is the machine that compiles. */
const Machine *machine_find(const char *cpu);
/* Numbers of `bytes` bytes in a vector; 1: no vectors. */
int machine_lanes(const Machine *m, int bytes);
bool machine_fits_host(const Machine *m); /* whether the host's C compiler can make code for it */
int machine_threads(void);                /* number of processors that this process may use */

#endif
