/* machine.h -- the processor a program is for: its name, its C flags, the width of its vectors. */
#ifndef MACHINE_H
#define MACHINE_H
#include "base/diag.h"

typedef struct Machine {
    const char *name; /* "x86-64-v4" */
    const char *cflags;
    int vector_bytes; /* 0: no vectors, one number at a time */
    bool x86;         /* which family: a C compiler makes code for one of them */
    bool any;         /* runs on every processor the C compiler knows */
} Machine;

/* `cpu` as on the command line; "native" is looked up on the machine that compiles. */
const Machine *machine_find(const char *cpu);
bool machine_fits_host(const Machine *m); /* the host's own C compiler can make code for it */
int machine_threads(void);                /* processors that this process may use */

#endif
