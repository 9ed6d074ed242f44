/* network.h -- what the files that write a network share: the state of the script, and that of a
 * block. */
#ifndef NETWORK_H
#define NETWORK_H
#include "ops/op.h"
#include "scripts/python.h"

typedef struct Class {
    const char *name, *text; /* the class is `class NAME` + text */
} Class;

typedef struct Py {
    Arena *a;
    const Dialect *dialect;
    const Graph *g;
    Diag *d;
    Text *out; /* classes, inner ones first */
    int nclass;
    Class *class;
    int ninstance;
    struct Instance {
        const char *path, *class;
    } * instance; /* block instances that are written */
    int *uses;    /* by node id: number of readers among the nodes that are written */
    bool *wanted;
} Py;

/* What is being written: a block instance, the model, or the loss. */
typedef struct Scope {
    const char *path;      /* "stage1.basic2"; "" of the model */
    const BlockCall *call; /* of the instance; NULL of the model */
    bool shared;           /* the instance is called several times */
    Text init, body;
    PyValue *value; /* by node id */
    int *left;      /* by node id: number of uses that are not written yet */
    int nlayer;
    const char **layer; /* attributes that __init__ sets */
    int nameless;       /* number of layers without parameters */
    int nvar;
    struct Var {
        const char *name;
        const Node *holds;
    } * var;
    int nargument;
    const Node **argument;
    const char *rows; /* several inputs: the model's argument; or NULL */
} Scope;

/* ---- nodes.c */

/* Whether n is a layer with weights: by the op, or a conv_transpose2d. */
bool network_is_layer(const Node *n);
/* Whether n is a normalisation, which can have weights. */
bool network_is_norm(const Node *n);
/* Whether n's name is the name of a layer, not of a value. */
bool network_names_layer(const Node *n);
/* Whether n is a product with the weights of another layer: matmul(h, tokens.weight, transpose_b =
 * true). */
bool network_is_tied(const Node *n);
/* The node that is written for n: the recurrent layer, if n belongs to its loop. */
const Node *network_meant(const Node *n);
/* The number of inputs of n that are values; the others are parameters of the layer. */
int network_inputs(const Node *n);
/* Input i of these inputs. */
Node *network_input(const Node *n, int i);
/* Counts a reader of n, and marks n and all nodes that n needs as wanted. */
void network_want(Py *p, const Node *n);
/* Whether n is written by an expression of its own. */
bool network_writes(const Py *p, const Node *n);
/* The instance below `path` to which n belongs, "basic2" or "stage1.basic2"; NULL: n belongs to
 * `path` itself. */
const char *network_child(Py *p, const char *path, const Node *n);
/* Whether n belongs to `path` or to an instance below it. */
bool network_below(const char *path, const Node *n);
/* The call of the instance `path` that contains n; NULL: no call does. */
const BlockCall *network_call(const char *path, const Node *n);

/* ---- network.c */

Scope network_scope(Py *p, const char *path);
/* A value that is the variable `name`. */
PyValue network_variable(Py *p, const char *name);
/* Writes n in a scope; result: its reader is the return statement.  False after reporting. */
bool network_node(Py *p, Scope *s, const Node *n, bool result);

/* ---- loss.c */

/* Writes the function of the loss; false after reporting. */
bool network_loss(Py *p);

#endif
