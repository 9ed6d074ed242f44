/* pytorch.h -- the parts of a PyTorch script: the network (pytorch.c), each operation (pytorch_ops.c), recipe and data
 * (pytorch_train.c). */
#ifndef PYTORCH_H
#define PYTORCH_H
#include "emit/emit.h"

/* A value in Python: its text, and how strongly it holds together. */
typedef struct PyValue {
    const char *s;
    enum { PY_SUM, PY_PRODUCT, PY_SIGN, PY_POWER, PY_ATOM } binds;
} PyValue;

/* The layer that keeps the weights of n, "nn.Conv2d(1, 20, 5)"; with_bias: its bias node joins it.  NULL: n has no weights. */
const char *pytorch_layer(Arena *a, const Node *n, bool with_bias);
/* The expression of n from those of its inputs; layer: "self.conv1", or NULL.  Reports, and returns false, when PyTorch has no
 * word for n here. */
bool pytorch_value(Arena *a, const Node *n, const PyValue *in, const char *layer, PyValue *v,
                   Diag *d);
const char *pytorch_number(Arena *a, double v); /* the shortest text that means the same number */

/* `class Lenet(nn.Module)` and those of its blocks; `def losses(output, label)`. */
bool pytorch_network(const Graph *g, Text *out, Diag *d);
const char *pytorch_class(Arena *a, const char *name); /* "resnet_block" -> "ResnetBlock" */
/* What surrounds them: imports, data, optimizer, schedule, the loop. */
bool pytorch_head(const Graph *g, const char *source, Text *out, Diag *d);
void pytorch_train(const Graph *g, Text *out);

#endif
