/* pass.h -- the pass table: the passes between the front end and the emitter, in order, with
 * reasons. */
#ifndef PASS_H
#define PASS_H
#include "base/text.h"
#include "ir/graph.h"
#include "ir/options.h"

typedef struct Pass {
    const char *name; /* as in --dump=NAME, the name of the file and the name of the golden */
    void (*run)(Graph *g, const Options *o, Diag *d);
    unsigned targets; /* TargetKind: the targets for which it runs */
    bool optional;    /* it does not run under --plain */
    bool training;    /* it runs only over the training graph */
    /* it drops the nodes that the pass in the previous row has left without readers; --dump and
     * --verify treat both rows as one pass */
    bool cleans;
    const char *why;
    /* it repeats the rows from the one with this name up to its own row; NULL: none */
    const char *repeats;
} Pass;

extern const Pass pass_table[]; /* ended by a row without a name */

/* The reason why one pass runs before another one. */
typedef struct PassOrder {
    const char *first, *second, *why;
} PassOrder;
extern const PassOrder pass_order[]; /* ended by a row without a name */
/* A text about the first two passes of `table` in a wrong order, with the reason; NULL: the order
 * is right. */
const char *pass_misplaced(Arena *a, const Pass *table);
/* Runs the passes of the target over g; false after an error, which is reported. */
bool pass_run_all(Graph *g, const Options *o, Diag *d);
/* Repeats the rows that the row `name` names in `repeats`. */
void pass_repeat(const char *name, Graph *g, const Options *o, Diag *d);

/* clang-format off */
#define PASS(name) void pass_##name(Graph *g, const Options *o, Diag *d)
PASS(infer); PASS(hoist); PASS(gradient); PASS(simplify); PASS(store); PASS(cse); PASS(dce);
PASS(stretch); PASS(fuse); PASS(epilogue); PASS(narrow); PASS(chains); PASS(choose); PASS(wide);
PASS(layout); PASS(lanes); PASS(steps); PASS(slices); PASS(schedule); PASS(plan); PASS(recompute);
#undef PASS
/* clang-format on */

/* Reports errors that pass schedule would report, from the graph of the front end; false after an
 * error.  cut.c */
bool pass_check(const Graph *g, Diag *d);

/* Derives a graph that processes one token at a time from the evaluation graph `from`, before the
 * passes; NULL: there is no such graph.  token.c */
Graph *pass_token(const Graph *from);

/* Proves the plan of g, and of the training graph if g shares its memory.  Returns NULL, or a
 * text about the first fault.  replay.c */
const char *replay_verify(const Graph *g, const Options *o);

/* Cuts the batch into shards, slices and chunks: for prices before pass schedule.  cut.c */
struct Step;
void schedule_cut(const Graph *g, struct Step *s);

#endif
