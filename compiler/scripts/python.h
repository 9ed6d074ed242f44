/* python.h -- training scripts in Python: what all frameworks share, and what a framework gives.
 *
 * network.c writes the network as classes, words.c a node as a layer or an expression, recipe.c
 * what the templates say about data and recipe, script.c the whole script.  A framework is a
 * Dialect, a table of words (pytorch.c, keras.c, mxnet.c), and the template of its script
 * (pytorch.py.in, keras.py.in, mxnet.py.in); common.py.in has the parts that are equal.
 */
#ifndef PYTHON_H
#define PYTHON_H
#include "base/diag.h"
#include "ir/graph.h"
#include "scripts/template.h"

/* How strongly a text of Python holds together; the smaller, the stronger. */
typedef enum { PY_ATOM, PY_POWER, PY_SIGN, PY_PRODUCT, PY_SUM } PyBinds;

/* A value in Python. */
typedef struct PyValue {
    const char *s;
    PyBinds binds;
} PyValue;

/* What a framework writes for an operation: a template with the places of words.c.  op is the
 * operation's name, or "softmax if causal", with a condition (template.h); the first row counts
 * whose condition holds. */
typedef struct PyWord {
    const char *op, *python;
} PyWord;

typedef struct Dialect {
    const char *to;            /* the word after --to */
    const char *script;        /* template of the script */
    const PlaceText *place;    /* places of its own for the common parts; ends with a NULL name */
    const char *model, *block; /* base classes of the model and of a block */
    const char *call;          /* "forward(self": the method that computes, up to its arguments */
    const char *more;          /* after the arguments of this method: ", training=None" */
    const char *passed;        /* after the arguments of its calls: ", training=training" */
    const char *math;          /* where exp, tanh and others are: "torch" */
    const char *losses;        /* "losses(output, label)" */
    const char *taken;         /* names that its classes use themselves, separated by blanks */
    const char *table;  /* attribute of an embedding with its weights; NULL: none can read them */
    const char *wider;  /* @x with @widened as its shape, for broadcasting */
    const char *lowest; /* minus infinity */
    bool channels_last; /* a sample of three dimensions is H, W, C; Tenon's is C, H, W */
    bool pads_same;     /* windows have padding "same" or none */
    bool pads_half;     /* a pooling's padding is at most half of its window */
    /* Tables of words; each ends with op NULL. */
    const PyWord *layer;  /* constructors of layers: nodes with weights or with draws */
    const PyWord *called; /* calls of layers; without a row: @layer(@x) */
    const PyWord *word;   /* expressions, before those of words.c, which all frameworks share */
    const PyWord
        *unlike; /* expressions of operands with different shapes, before word; may be NULL */
    /* Expressions that are no words; NULL: there is no form for n.  May be NULL itself. */
    const char *(*special)(Arena *a, const Node *n, const PyValue *in);
} Dialect;

extern const Dialect pytorch, keras, mxnet;

/* ---- words.c */

/* The constructor of the layer that n is, "nn.Conv2d(1, 20, 5)"; biased: its bias node joins it.
 * NULL: n is an expression. */
const char *python_layer(Arena *a, const Dialect *dialect, const Node *n, bool biased);
/* The expression of n from those of its inputs; layer: "self.conv1", or NULL.  Reports, and returns
 * false, if the dialect has no form for n. */
bool python_value(Arena *a, const Dialect *dialect, const Node *n, const PyValue *in,
                  const char *layer, PyValue *v, Diag *d);
const char *python_inside(Arena *a, PyValue v, PyBinds binds); /* in parentheses if it binds less */
const char *python_number(Arena *a, double v); /* the shortest text that means the same number */
/* "2, 3": the numbers, each plus `more`. */
const char *python_list(Arena *a, const int64_t *v, int n, int64_t more);

/* The call of lstm, gru or rnn that has the result n, or NULL; in Tenon's graph, it is a loop. */
const Node *python_recurrent(const Node *n);
/* The dropout of a channel's mask in x * mask, which is what dropout2d makes; or NULL. */
const Node *python_dropout2d(const Node *n);
bool python_causal(const Node *n); /* a softmax in whose row i only columns 0 to i count */

/* ---- network.c */

/* `class Lenet(...)` and those of its blocks; `def losses(...)`. */
bool python_network(const Graph *g, const Dialect *dialect, Text *out, Diag *d);
const char *python_class(Arena *a, const char *name); /* "resnet_block" -> "ResnetBlock" */

#endif
