/* sem.h -- collects what a file declares, and checks that every name is defined.
 *
 * Runs before anything is computed, over all code, so that it finds a mistake in a block that
 * nothing calls.  An expression with an error is marked bad.  Everything computed from it is poison
 * (value.h), which causes no further message.
 */
#ifndef SEM_H
#define SEM_H
#include "front/ast.h"
#include "ops/op.h"

typedef struct Import {
    const Decl *decl;
    const Source *to; /* NULL: it cannot be read */
} Import;

typedef struct Unit { /* a model file and everything it imports */
    Arena *arena;
    Diag *diag;
    const Source *source; /* the file named on the command line */
    Decls decls;          /* all of them, imports first */
    Decls imported;       /* train blocks of imported files */
    Map functions;        /* models, blocks and ops by name: Decl * */
    Map trains;           /* train blocks by the name of their model: Decl * */
    const Source **file;  /* the file and its imports, in the order of Source.order */
    int nfile;
    Import *import; /* every import of every file */
    int nimport;
    struct Trace *trace;         /* NULL: values are not recorded */
    const struct Recipe *recipe; /* the one that train_read reads now; else NULL */
} Unit;

/* Functions of numbers that the compiler computes. */
typedef enum {
    FN_NONE,
    FN_LEN,
    FN_INT,
    FN_FLOAT,
    FN_MIN,
    FN_MAX,
    FN_ABS,
    FN_SQRT,
    FN_EXP,
    FN_LOG,
    FN_ZEROS
} Function;
Function function_find(const char *name);
const char *const *function_names(void); /* ended by NULL */

/* What a name calls: a declared block or op, an operation of ops/, or a function of numbers. */
typedef struct Callee {
    Decl *decl;
    const Op *op;
    Function fn;
} Callee;
bool callee_find(const Unit *u, const char *name, Callee *out);
bool callee_layers(const Callee *c); /* it makes parameters, so it needs a path */

/* The number of its arguments: tensors first for operations, in the declared order for blocks. */
int callee_count(const Callee *c);
const char *callee_arg(const Callee *c, int i);
bool callee_tensor(const Callee *c, int i);
bool callee_gathers(const Callee *c, int i); /* takes all positional arguments: ARG_TENSORS */

/* Suggests the name of `list` that is nearest to `word`.  If none is near and the list is short,
 * prints the whole list. */
void suggest(Diag *d, const char *word, const char *const *list, int n, const char *all);
/* Adds the help for an unknown name that means a loss of losses.tn.  False if it means none. */
bool suggest_loss(Unit *u, const char *word);

void sem_check(Unit *u);
/* The outputs that a model returns by name, each a BIND. n is 0 if the model returns one tensor, or
 * if it is NULL. */
Body sem_outputs(const Decl *model);
/* Checks an expression outside of a declaration (a loss, a number of a recipe); it may use
 * `names`. */
void sem_expr(Unit *u, Expr *e, const char *const *names, int n);

#endif
