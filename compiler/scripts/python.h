/* python.h -- training scripts for Python's frameworks: what they have in common.
 *
 * network.c writes the network as classes, words.c an operation as an expression, data.c what reads
 * the data, synthetic.c what makes up synthetic data.  A framework is a Dialect and a file that
 * writes the rest of its script: pytorch_ops.c and pytorch_train.c, and so on.
 */
#ifndef PYTHON_H
#define PYTHON_H
#include "base/quote.h"
#include "scripts/scripts.h"
#include "ops/window.h"

/* A value in Python: its text, and how strongly it holds together. */
typedef struct PyValue {
    const char *s;
    enum { PY_SUM, PY_PRODUCT, PY_SIGN, PY_POWER, PY_ATOM } binds;
} PyValue;

/* An operation as text: $0, $1 stand for the operands, #key for an attribute. */
typedef struct PyWord {
    const char *op, *python;
    int binds;
} PyWord;

typedef struct Dialect {
    const char *to;            /* the word behind --to, for messages */
    const char *model, *block; /* their base classes */
    const char *call;          /* "forward(self": the method that computes, up to its arguments */
    const char *more,
        *passed; /* what stands behind a class's arguments, ", training=None", and those of its calls */
    const char *losses; /* "losses(output, label)" */
    const char *taken;  /* names that its classes have for something else, between blanks */
    const char *table;  /* what an embedding calls its weights; NULL: they are read nowhere else */
    const PyWord *word; /* ends with op NULL */
    const PyWord *unlike; /* the same for operands of different shapes; NULL: no other words */
    /* The layer that n is, "nn.Conv2d(1, 20, 5)"; with_bias: its bias node joins it.  NULL: n is an expression. */
    const char *(*layer)(Arena *a, const Node *n, bool with_bias);
    /* A call of that layer, "self.conv1". */
    const char *(*called)(Arena *a, const Node *n, const char *layer, PyValue x);
    /* x, an atom whose samples are of shape `from`, so that it broadcasts against samples of `rank` dimensions. */
    const char *(*wider)(Arena *a, const char *x, const Shape *from, int rank);
    /* Operations whose words depend on more than their operands; binds as an atom; NULL: none of them. */
    const char *(*shaped)(Arena *a, const Node *n, const PyValue *in);
} Dialect;

/* The expression of n from those of its inputs; layer: "self.conv1", or NULL.  Reports, and returns false, when the dialect has no word
 * for n here. */
bool python_value(Arena *a, const Dialect *dialect, const Node *n, const PyValue *in,
                  const char *layer, PyValue *v, Diag *d);
const char *python_inside(Arena *a, PyValue v, int binds); /* in parentheses where it binds less */
const char *python_number(Arena *a, double v); /* the shortest text that means the same number */
const char *python_class(Arena *a, const char *name); /* "resnet_block" -> "ResnetBlock" */
const char *python_pair(Arena *a,
                        const int64_t v[2]); /* "3" of two equal numbers, "(1, 7)" of others */
/* A sample's dimensions behind as many ones as the rank wants: "1, 1, 3, 4". */
const char *python_widened(Arena *a, const Shape *from, int rank);
const char *python_list(Arena *a, const int64_t *v, int n,
                        int64_t more); /* "2, 3": each plus more */

/* A result of lstm, gru or rnn: the layer that makes it, a whole loop in our graph; NULL: n is something else. */
const Node *python_recurrent(const Node *n);
/* x * mask, which is what dropout2d makes: the dropout in it, of 1 a channel; NULL: n is something else. */
const Node *python_dropout2d(const Node *n);
bool python_causal(const Node *n);   /* a softmax in whose row i only 0 to i count */
Window python_window(const Node *n); /* of a convolution or a pooling */
/* Rows and columns of padding that the windows reach behind the image, at least 0; is that more than before it? */
bool python_lopsided(const Window *v, int64_t after[2]);

/* `class Lenet(...)` and those of its blocks; `def losses(...)`. */
bool python_network(const Graph *g, const Dialect *dialect, Text *out, Diag *d);

bool python_has(const Graph *g, const char *op);
bool python_calls(const Graph *g, const char *layer); /* lstm, gru or rnn */
bool python_padded(const Graph *g);                   /* an embedding with a padding token */
bool python_reads_table(const Graph *g);              /* weights that are added (position) */
bool python_table(const Graph *g);                    /* labelled lines of text */
bool python_labels_each(const Graph *g);              /* a label a position */
int64_t python_step(const Graph *g);                  /* tokens from a window to the next */
bool python_data_supported(const Graph *g, const char *to, Diag *d);
void python_opened(Text *t); /* opened: a file's bytes, unpacked */
void python_read(Text *t);   /* opened, idx, read: files as stored */
/* loaded(place, split, limit), up to arrays x and y as stored.  fill: a last window of a text that is tested position by position
 * is filled up with positions that are not, -1. */
void python_loaded(const Graph *g, bool fill, Text *t);
void python_drawn(const Graph *g, Text *t);   /* made_up: samples of data = synthetic */
void python_made_up(const Graph *g, Text *t); /* in loaded: as many as the recipe says */
const char *python_scale(Arena *a, const DataSpec *data); /* what bytes are multiplied by */
/* x normalised by channel, where the recipe says so: mean and std made by `array`, turned by `turn` where there are several. */
/* def right: which outputs are right, a truth value or number a label; likeliest: how the class is found of several. */
void python_right(const Graph *g, const char *likeliest, Text *t);
void python_channels(const Normalize *n, const char *array, const char *turn, Text *t);
bool python_augments(const Augment *u);
/* The first lines of main: a parser of arguments `a` with --data, by default where our programs look first, in $TENON_DATA. */
void python_main(const Recipe *r, Text *t);
void python_rate(const Recipe *r, Text *t); /* rate(step, steps): the schedule */

#endif
