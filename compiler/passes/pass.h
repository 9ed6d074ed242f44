/* pass.h -- the pass table: what runs between the front end and the emitter, in order, and why. */
#ifndef PASS_H
#define PASS_H
#include "base/text.h"
#include "ir/graph.h"
#include "ir/options.h"

typedef struct Pass {
    const char *name;                                 /* as in --dump=NAME, the file's name and the golden */
    void      (*run)(Graph *g, const Options *o, Diag *d);
    unsigned    targets;                              /* TargetKind: those for which it runs */
    bool        optional;                             /* left out by --plain */
    bool        training;                             /* only for the training graph */
    bool        dce;                                  /* leaves values that nobody reads: pass dce runs behind it */
    const char *why;
    const char *repeats;                              /* it runs the rows from this one to its own again; NULL: none */
} Pass;

extern const Pass pass_table[];                       /* ended by a row without a name */

/* Why one pass stands before another one. */
typedef struct PassOrder { const char *first, *second, *why; } PassOrder;
extern const PassOrder pass_order[];                  /* ended by a row without a name */
/* NULL, or which two passes of a table stand in a wrong order, and the reason. */
const char *pass_misplaced(Arena *a, const Pass *table);
bool pass_run_all(Graph *g, const Options *o, Diag *d);               /* false after an error */
/* Runs the rows again that the row `name` repeats. */
void pass_repeat(const char *name, Graph *g, const Options *o, Diag *d);

#define PASS(name) void pass_##name(Graph *g, const Options *o, Diag *d)
PASS(infer); PASS(hoist); PASS(gradient); PASS(simplify); PASS(store); PASS(cse); PASS(dce); PASS(stretch); PASS(fuse); PASS(epilogue); PASS(narrow); PASS(chains); PASS(choose); PASS(wide); PASS(layout); PASS(lanes); PASS(steps); PASS(slices); PASS(schedule); PASS(plan); PASS(recompute);
#undef PASS

/* What pass schedule would refuse, asked of the graph as the front end made it; false after an error.  cut.c */
bool pass_check(const Graph *g, Diag *d);

/* The evaluation graph `from`, not yet through the passes, for a token at a time; NULL when there is none.  token.c */
Graph *pass_token(const Graph *from);

/* Proves the plan of g, and of the training graph whose memory it shares: NULL, or what is wrong.  replay.c */
const char *replay_verify(const Graph *g, const Options *o);

struct Step;
void schedule_cut(const Graph *g, struct Step *s);    /* batch, shards, slices and chunks alone, for prices before pass schedule */

#endif
