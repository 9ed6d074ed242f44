/* lower.h -- from tree to graph: a model is run once at compile time, and what it does to tensors becomes nodes.
 *
 * Loops, conditions, numbers and blocks are gone afterwards.  Every layer has the path of the bindings that lead to it.
 */
#ifndef LOWER_H
#define LOWER_H
#include "front/sem.h"
#include "front/value.h"

enum {
    NODES_MAX  = 20000,                               /* of an expanded model */
    STEPS_MAX  = 4000000,                             /* expressions evaluated on the way */
    DEPTH_EVAL = 2000                                 /* of the compiler's own recursion */
};

/* One argument of a call, bound to its place. */
typedef struct Slot { Value v; Span span; bool given; } Slot;

/* A layer value: fc = dense(64).  Calling it twice shares its parameters, because the path is the same. */
struct Layer {
    Callee      callee;
    const char *name;                                 /* of the op or block */
    Slot       *slot;                                 /* callee_count() of them; the tensors are missing */
    const char *path;
};

/* One block instance (or the model): its variables, and the names that its layers have taken. */
typedef struct Var { const char *name; Value v; struct Var *outer; } Var;    /* outer: hidden until this one ends */
typedef struct Scope {
    Map         vars;                                 /* Var * */
    Var       **live;                                 /* stack of names in scope */
    int         nlive;
    Map         taken, ordinal;                       /* leaves in use; counters by kind: int * */
    const Decl *decl;
    const char *path;                                 /* "" for the model */
    const char *leaf;                                 /* the binding that the next layer is named after, or NULL */
    bool        returned;
    Value       result;
} Scope;

typedef struct Lower {
    Unit       *u;
    Arena      *arena;
    Diag       *diag;
    Graph      *g;                                    /* NULL: numbers only */
    Scope      *scope;
    int         depth, calls;
    int64_t     steps;
    bool        stop;                                 /* the budget is spent, and that has been said */
    const Stmt *loop;                                 /* outermost loop that runs now */
    const Decl *model;
} Lower;

typedef struct Override { const char *name; Expr *value; Span span; bool used; } Override;            /* --set model.classes=100 */

/* The forward graph of a model up to its output; parameters take the recipe's initialisation.  NULL after errors. */
Graph *lower_model(Unit *u, const Decl *model, const Recipe *recipe, Override *set, int nset, bool training);
/* Label, loss and metrics at the end of g; loss is the value of the key.  false after errors. */
bool   lower_loss(Unit *u, Graph *g, Expr *loss);
/* A number, list, string or bool without a model around. */
Value  lower_const(Unit *u, Expr *e);

/* ---- between lower.c and invoke.c */
Value  lower_eval(Lower *l, Expr *e);
Value  lower_call(Lower *l, Expr *e);
Value  lower_elementwise(Lower *l, const char *op, Value x, Value y, Expr *e);   /* y poison-kind unused when unary */
Value  lower_instance(Lower *l, const Decl *decl, const Slot *slot, const char *path, Expr *call);
Value  lower_fail(Lower *l, Expr *e, Span at, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
const char *lower_path(Lower *l, const char *kind);   /* a new layer's path in the current scope */
bool   lower_step(Lower *l, Span at, int64_t steps);  /* false when the budget is spent */

#endif
