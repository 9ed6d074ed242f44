/* pass.h -- the pass table: what runs between the front end and the emitter, in order, and why. */
#ifndef PASS_H
#define PASS_H
#include "base/text.h"
#include "ir/graph.h"

typedef struct Options {                              /* what the command line says of the middle and the back */
    bool        plain;                                /* leave optional passes out, use reference kernels */
    bool        fast;                                 /* allow F(4x4) Winograd; --exact is the default */
    const char *dump;                                 /* pass name whose result goes to stderr, "all", or NULL */
    const char *cpu;                                  /* "native", "x86-64-v3", ... */
    int         vector;                               /* reals in a vector of the target and dtype: 16, 8, 4, 2, 1 */
    bool        verify;                               /* graph_verify after every pass (on in debug builds and tests) */
} Options;

typedef struct Pass {
    const char *name;                                 /* as in --dump=NAME, the file's name and the golden */
    void      (*run)(Graph *g, const Options *o, Diag *d);
    bool        optional;                             /* left out by --plain */
    bool        training;                             /* only for the training graph */
    const char *why;
} Pass;

extern const Pass pass_table[];                       /* ended by a row without a name */
bool pass_run_all(Graph *g, const Options *o, Diag *d);               /* false after an error */

#define PASS(name) void pass_##name(Graph *g, const Options *o, Diag *d)
PASS(infer); PASS(gradient); PASS(simplify); PASS(cse); PASS(dce); PASS(fuse); PASS(layout); PASS(schedule); PASS(plan);
#undef PASS

#endif
