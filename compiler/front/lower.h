/* lower.h -- from tree to graph: a model runs once at compile time; its operations on tensors
 * become nodes.
 *
 * The graph has no conditions, numbers, blocks or loops other than scans.  The path of a layer
 * consists of the names of the bindings that lead to it.
 */
#ifndef LOWER_H
#define LOWER_H
#include "front/sem.h"
#include "front/value.h"

/* The value of one parameter of a call. */
typedef struct Slot {
    Value v;
    Span span;
    bool given;
} Slot;

/* A layer value: fc = dense(64).  Two calls share its parameters, because they have one path. */
struct Layer {
    Callee callee;
    const char *name; /* of the op or block */
    Slot *slot;       /* callee_count() of them; those of tensors are empty */
    const char *path;
};

typedef struct Var {
    const char *name;
    Value v;
    struct Var *outer; /* a variable of the same name, hidden while this one is in scope */
} Var;

/* A block instance (or the model): its variables, and the names of its layers. */
typedef struct Scope {
    Map vars;   /* Var * */
    Var **live; /* stack of names in scope */
    int nlive;
    /* last parts of paths in use; counters for layers without a name, by kind: int * */
    Map taken, ordinal;
    const Decl *decl;
    const char *path; /* "" for the model */
    const char *leaf; /* the binding that names the next layer, or NULL */
    bool returned;
    Value result;
    const Body *outputs; /* of a model: what it returns by name; NULL: `result` */
} Scope;

typedef struct Lower {
    Unit *u;
    Arena *arena;
    Diag *diag;
    Graph *g; /* NULL: only numbers are evaluated */
    Scope *scope;
    int depth, calls;
    int64_t steps;
    bool stop;            /* a budget is spent, and an error is reported */
    struct Scanned *scan; /* scan.c: the scan whose body runs now */
    const Stmt *loop;     /* outermost loop that runs now */
    const Decl *model;
} Lower;

/* --set model.classes=100 */
typedef struct Override {
    const char *name;
    Expr *value;
    Span span;
    bool used;
} Override;

/* factors.c: applies the recipe's factors and frozen names to the parameters. */
void factors_apply(Graph *g, Diag *d);
/* Reports a pattern that fits no parameter, and suggests a name, all names of its layer, or all
 * names of its kind.  averages: running averages count as parameters. */
void factors_report(const Graph *g, const char *pattern, Span span, bool averages, Diag *d);
/* start.c: reports patterns of the recipe's start that fit no parameter. */
void start_check(const Graph *g, Diag *d);
/* The forward graph of a model up to its output; parameters get the initialisation of the recipe.
 * NULL after errors. */
Graph *lower_model(Unit *u, const Decl *model, const Recipe *recipe, Override *set, int nset,
                   bool training);
/* Checks the recipe's normalization and augmentation for the input, and adds the mean image as a
 * parameter.  Returns false after errors. */
bool lower_samples(Lower *l);
/* Adds label, loss and metrics to g.  loss: the value of the key; measure: the expressions of
 * Recipe.measure.  Returns false after errors. */
bool lower_loss(Unit *u, Graph *g, Expr *loss, Expr *const *measure);
/* Evaluates a number, list, string or bool outside of a model. */
Value lower_const(Unit *u, Expr *e);

/* ---- outputs.c */

/* Takes the outputs that a model returned by name. */
void lower_outputs(Lower *l, const Body *outputs);
/* The outputs of a model: one without a name, or those that it returns by name. */
int lower_output_count(const Graph *g);
Node *lower_output(const Graph *g, int i);
const char *lower_output_name(const Graph *g, int i); /* in a loss; "output" without a name */

/* ---- metrics.c */

/* Says which targets are truths, and what the outputs mean; several targets: sets their classes.
 * False after reporting. */
bool lower_classes(Lower *l);
/* Adds what is reported besides the loss and its terms. */
void lower_metrics(Graph *g, Span at);

/* ---- compared.c */

/* Whether n depends on an output or a target. */
bool lower_uses_compared(const Graph *g, const Node *n);
/* Reports operations of an output and a target whose shapes differ; false after that. */
bool lower_check_fit(const Unit *u, const Graph *g);

/* ---- measures.c */

/* Adds the metrics of the recipe to the graph of evaluations.  A training graph keeps none of their
 * nodes.  False after reporting. */
bool lower_measures(Lower *l, Expr *const *measure);

/* ---- scope.c */

/* Reports an error at `at`, marks e bad, and returns poison. */
Value lower_fail(Lower *l, Expr *e, Span at, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
bool lower_step(Lower *l, Span at, int64_t steps); /* false if the budget is spent */
/* Adds a level to l->depth; reports, and returns false, if the evaluation is too deep. */
bool lower_enter(Lower *l, Span at);
/* Records the value of e.  The nodes from the id `first` on were made by e itself. */
void lower_trace(Lower *l, Expr *e, Value v, int first);
/* Whether the data set gives the parameter its value, because of its name. */
bool lower_takes_vocab(const Decl *model, const ParamDecl *p);
Scope *lower_scope(Lower *l, const Decl *decl, const char *path);
Var *lower_find(const Lower *l, const char *name);
/* a new variable, in scope until lower_leave */
void lower_declare(Lower *l, const char *name, Value v);
void lower_assign(Lower *l, const char *name, Value v); /* to the variable in scope, or a new one */
void lower_leave(Scope *s, int mark);
/* Says which tensors a layer value lacks. */
const char *lower_layer_help(Lower *l, const Layer *layer);
const char *lower_path(Lower *l, const char *kind); /* a new layer's path in the current scope */

/* ---- run.c */

void lower_run(Lower *l, const Body *body);
Value lower_argument(Lower *l, const Decl *decl, int i, const Slot *slot);
Value lower_result(Lower *l, Scope *s, Expr *call); /* what the body of s returned */
Value lower_instance(Lower *l, const Decl *decl, const Slot *slot, const char *path, Expr *call);

/* ---- scan.c */

void lower_scan(Lower *l, Stmt *t);
void lower_yield(Lower *l, Stmt *t);
void lower_yield_poison(Lower *l, const Stmt *t);     /* a yield that perhaps does not run */
Value lower_zeros(Lower *l, Expr *e, const Value *v); /* zeros(128): a tensor */

/* ---- eval.c */

Value lower_eval(Lower *l, Expr *e);
const char *const *lower_queries(int *n); /* the names after the dot of a tensor: x.channels */
int lower_condition(Lower *l, Expr *e);   /* 1, 0, or -1 for poison */

/* ---- invoke.c, number.c, node.c */

Value lower_call(Lower *l, Expr *e);
bool number_computes(const Callee *c, const Expr *e, const Value *v);
Value number_compute(Lower *l, Expr *e, Function fn, const Value *v);
Value node_make(Lower *l, const Op *op, const Slot *slot, const char *path, Expr *e);
/* y is poison if op has one operand */
Value node_elementwise(Lower *l, const char *op, Value x, Value y, Expr *e);

#endif
