/* table.c -- finds operations, and checks inputs and attributes of nodes. */
#include "ir/vocabulary.h"
#include "ops/elementwise.h"
#include <string.h>

#define OP(name) extern const Op op_##name[];
#include "ops/ops.def"
#undef OP

static const Op *const table[] = {
#define OP(name) op_##name,
#include "ops/ops.def"
#undef OP
};
enum { FILES = sizeof table / sizeof *table };

const Op *op_find(const char *name)
{
    for (int i = 0; i < FILES; i++)
        for (const Op *op = table[i]; op->name; op++)
            if (!strcmp(op->name, name))
                return op;
    return NULL;
}

const char *op_written(Arena *a, const Node *n)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    if (!n->span.source)
        return n->op->name;
    const char *line = source_line(a, n->span.source, n->span.line);
    const size_t from = (size_t)n->span.col - 1;
    if (from >= strlen(line))
        return n->op->name;
    const char *word = arena_strndup(a, line + from, strspn(line + from, letters));
    return op_find(word) || strcmp(word, "zeros") == 0 ? word : n->op->name;
}

const char *op_derivative(Arena *a, const Op *op)
{
    return op->derivative ? op->derivative : elementwise_derivative(a, op);
}

bool op_computes(const Node *n, ProductKind product, Role role)
{
    return n->op->product == product && n->op->role == role;
}

int op_weights(const Node *n)
{
    static const int input[] = {[ROLE_Y] = 1, [ROLE_DX] = 0, [ROLE_DW] = -1};
    const ProductKind p = n->op->product;
    return p == PRODUCT_NONE || p == PRODUCT_MATMUL ? -1 : input[n->op->role];
}

int op_count(void)
{
    int count = 0;
    for (int i = 0; i < FILES; i++)
        for (const Op *op = table[i]; op->name; op++)
            count++;
    return count;
}

const Op *op_at(int wanted)
{
    for (int i = 0; i < FILES; i++)
        for (const Op *op = table[i]; op->name; op++)
            if (wanted-- == 0)
                return op;
    return NULL;
}

const char *op_name(const Op *op)
{
    return op->name;
}

bool op_leaves(const Op *op)
{
    return op->flags & OP_LEAVES;
}

bool op_stays(const Op *op)
{
    return op->flags & OP_ROOT;
}

bool op_infer(Node *n, Diag *d)
{
    return !n->op->shape || n->op->shape(n, d);
}

static bool kind_fits(ArgType type, AttrKind kind)
{
    switch (type) {
    case ARG_INT:
        return kind == ATTR_INT;
    case ARG_FLOAT:
        return kind == ATTR_FLOAT || kind == ATTR_INT;
    case ARG_BOOL:
        return kind == ATTR_BOOL;
    case ARG_STRING:
        return kind == ATTR_STRING;
    case ARG_PAIR:
    case ARG_INTS:
    case ARG_PLACES:
        return kind == ATTR_INTS;
    case ARG_PAD:
        return kind == ATTR_INTS || kind == ATTR_STRING;
    case ARG_TENSOR:
    case ARG_TENSORS:
        break;
    }
    return false;
}

/* Ops with a rule `build`, such as layers, have inputs that the language does not show; their
 * shape rule counts these inputs. */
const char *op_complaint(const Node *n, Arena *a)
{
    int least = 0, most = 0;
    for (const OpArg *arg = n->op->arg; arg->name; arg++) {
        const Attr *v = node_attr(n, arg->name);
        const bool must = !arg->fallback || strcmp(arg->fallback, "none");
        if (arg->type == ARG_TENSOR)
            least += must, most++;
        else if (arg->type == ARG_TENSORS)
            least++, most = n->nin > most ? n->nin : most + 1;
        else if ((!v && must) || (v && !kind_fits(arg->type, v->kind)))
            return arena_printf(a, "attribute %s is missing or of the wrong kind", arg->name);
    }
    if (n->nin < least || (n->nin > most && !n->op->build))
        return arena_printf(a, "%d inputs, wants %d", n->nin, least);
    return NULL;
}
