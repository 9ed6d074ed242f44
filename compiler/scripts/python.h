/* python.h -- training scripts in Python: the interface between the common parts and a framework.
 *
 * network.c writes the network as classes, and loss.c the loss; words.c writes a node as a layer or
 * an expression; recipe.c gives the templates data and recipe; script.c writes the whole script.  A
 * framework is a Dialect with tables of templates of operations, the words (pytorch.c, keras.c,
 * mxnet.c), and a template of its script (pytorch.py.in, keras.py.in, mxnet.py.in); common.py.in
 * has the common parts.
 */
#ifndef PYTHON_H
#define PYTHON_H
#include "base/diag.h"
#include "ir/graph.h"
#include "scripts/template.h"

/* Precedence of the weakest operator of a Python expression; smaller binds more strongly. */
typedef enum { PY_ATOM, PY_POWER, PY_SIGN, PY_PRODUCT, PY_SUM } PyBinds;

/* A value in Python.  network.c adds the names of the variables in s. */
typedef struct PyValue {
    const char *s;
    PyBinds binds;
    int nvar;
    const char **var;
} PyValue;

/* The template of an operation, with the places of words.c.  op is the name of the operation,
 * perhaps with a condition (template.h): "softmax if causal".  The first row whose condition is
 * true counts. */
typedef struct PyWord {
    const char *op, *python;
} PyWord;

/* The words of comparisons; compared(">") is a template whose result has ones and zeros. */
/* clang-format off */
#define PY_COMPARISONS(compared)                                                                   \
    {"gt", compared(">")}, {"ge", compared(">=")}, {"lt", compared("<")}, {"le", compared("<=")},  \
    {"eq", compared("==")}, {"ne", compared("!=")}
/* clang-format on */

typedef struct Dialect {
    const char *to;     /* the word after --to */
    const char *script; /* template of the script */
    /* further places of the framework in the common parts; ends with a NULL name */
    const PlaceText *place;
    const char *model, *block; /* base classes of the model and of a block */
    const char *call;          /* "forward(self": the beginning of the method that computes */
    const char *more;          /* after the arguments of this method: ", training=None" */
    const char *passed;        /* after the arguments of its calls: ", training=training" */
    const char *math;          /* module of exp, tanh and others: "torch" */
    const char *losses;        /* "losses(output, label)" */
    const char *taken;         /* names that classes of the framework use, separated by blanks */
    const char *table;  /* attribute of an embedding with its weights; NULL: none can read them */
    const char *wider;  /* @x with @widened as its shape, for broadcasting */
    const char *lowest; /* minus infinity */
    bool channels_last; /* a sample of three dimensions is H, W, C; in Tenon it is C, H, W */
    bool pads_same;     /* the only paddings of windows are "same" and none */
    bool pads_half;     /* the padding of a pooling is at most half of its window */
    /* Tables of words; each ends with op NULL. */
    const PyWord *layer;  /* constructors of layers: nodes with weights or with draws */
    const PyWord *called; /* calls of layers; a layer without a row is called as @layer(@x) */
    const PyWord *word;   /* expressions, before those of words.c, which all frameworks share */
    const PyWord
        *unlike; /* expressions of operands with different shapes, before word; may be NULL */
    /* Expressions that need code; returns NULL if there is none for n.  The pointer may be NULL. */
    const char *(*special)(Arena *a, const Node *n, const PyValue *in);
} Dialect;

extern const Dialect pytorch, keras, mxnet;

/* ---- words.c */

/* The constructor of the layer n, "nn.Conv2d(1, 20, 5)"; biased: with the bias of the next node.
 * NULL: n is an expression. */
const char *python_layer(Arena *a, const Dialect *dialect, const Node *n, bool biased);
/* Makes the expression of n from the expressions of its inputs; layer: "self.conv1", or NULL.
 * Reports an error and returns false if the dialect cannot express n. */
bool python_value(Arena *a, const Dialect *dialect, const Node *n, const PyValue *in,
                  const char *layer, PyValue *v, Diag *d);
const char *python_inside(Arena *a, PyValue v, PyBinds binds); /* in parentheses if it binds less */
const char *python_number(Arena *a, double v); /* the shortest text with the same value */
/* "2, 3": the numbers, each plus `more`. */
const char *python_list(Arena *a, const int64_t *v, int n, int64_t more);

/* The lstm, gru or rnn with the result n, or NULL.  In the graph, it is a loop. */
const Node *python_recurrent(const Node *n);
/* The mask (N, T) of an lstm, gru or rnn; NULL: it has none. */
const Node *python_mask(const Node *layer);
/* The dropout of the mask in x * mask, if n is a dropout2d, which becomes such a product; else
 * NULL. */
const Node *python_dropout2d(const Node *n);
/* The weights of a prelu with the result n, or NULL. */
const Node *python_prelu(const Node *n);
bool python_causal(const Node *n); /* a softmax whose row i uses only columns 0 to i */

/* ---- network.c */

/* Writes `class Lenet(...)`, the classes of its blocks, and `def losses(...)`. */
bool python_network(const Graph *g, const Dialect *dialect, Text *out, Diag *d);

/* ---- names.c */

const char *python_class(Arena *a, const char *name); /* "resnet_block" -> "ResnetBlock" */
bool python_keyword(const char *s);                   /* cannot be a name of anything */
bool python_reserved(const char *s);                  /* cannot be the name of a variable */
/* Whether `words`, which blanks separate, has this word. */
bool python_has_word(const char *words, const char *word);

#endif
