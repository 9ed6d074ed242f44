/* calls.c -- the model as written, as Graphviz text: an ellipse for each call of the model file.
 *
 * The graph is that of the front end: loops are unrolled and blocks are inlined, and no pass has
 * run.  A call can be several nodes, such as a convolution and its bias; the picture joins them.
 * Block instances are frames inside of one another.
 */
#include "base/quote.h"
#include "ops/op.h"
#include "pictures/pictures.h"
#include <string.h>

typedef struct Calls {
    const Graph *g;
    const Node **head;   /* by id: the node that stands for the call of a node; NULL: not drawn */
    const Node **call;   /* by id of a head: the lstm, gru or rnn that a loop computes, or NULL */
    const Node **shown;  /* by id of a head: the first node with an operation of the language */
    const Node **last;   /* by id of a head: the node that has the call's shape */
    int64_t *parameters; /* by id of a head: numbers in its parameters */
    Text *out;
} Calls;

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_place(const Node *a, const Node *b)
{
    return a->span.source && a->span.source == b->span.source && a->span.line == b->span.line &&
           a->span.col == b->span.col && same_text(node_block(a), node_block(b));
}

/* The first node of an lstm, gru or rnn: a product that its loop reads, or a node of the loop. */
static const Node *head_of_loop(const Calls *c, const Node *call)
{
    const Node *first = NULL;
    for (int i = 0; i < c->g->nnode; i++) {
        const Node *n = c->g->node[i];
        if (!n->loop || n->loop->call != call)
            continue;
        first = first ? first : n;
        for (int k = 0; k < n->nin; k++) {
            const Node *h = n->in[k]->loop ? NULL : c->head[n->in[k]->id];
            if (h && h->op->leaf == LEAF_NONE && same_place(h, call))
                return h;
        }
    }
    return first;
}

/* The call of a node that is no leaf.  The nodes of a call have one place in the file.  Another
 * call in an unrolled loop has this place, too, and begins with the same operation. */
static const Node *head_of(Calls *c, const Node *n)
{
    const Node *call = n->loop ? n->loop->call : NULL;
    if (call) {
        const Node *h = head_of_loop(c, call);
        c->call[h->id] = call;
        return h;
    }
    for (int k = 0; k < n->nin; k++) {
        const Node *h = c->head[n->in[k]->id];
        if (h && h->op->leaf == LEAF_NONE && same_place(h, n) && h->op != n->op)
            return h;
    }
    return n;
}

static bool is_value(const Node *n) /* neither a parameter nor a number */
{
    return !(n->param && n->nin == 0) &&
           (n->nin > 0 || n->op->leaf == LEAF_INPUT || n->op->leaf == LEAF_LABEL);
}

/* By id: whether the outputs depend on the node.  A state of a loop reads the next state, too. */
static const bool *find_used(const Calls *c)
{
    const Graph *g = c->g;
    bool *used = arena_alloc(c->out->arena, (size_t)g->next_id);
    used[g->output->id] = true;
    if (g->loss)
        used[g->loss->id] = true;
    for (int i = 0; i < g->nmetric; i++)
        used[g->metric[i].node->id] = true;
    for (int i = g->nnode - 1; i >= 0; i--) {
        const Node *n = g->node[i];
        used[n->id] |= n->loop != NULL;
        for (int k = 0; k < n->nin && used[n->id]; k++)
            used[n->in[k]->id] = true;
    }
    return used;
}

static void find_heads(Calls *c)
{
    const bool *used = find_used(c);
    for (int i = 0; i < c->g->nnode; i++) {
        const Node *n = c->g->node[i];
        if (!is_value(n) || !used[n->id])
            continue;
        const Node *head = head_of(c, n);
        c->head[n->id] = head;
        const bool hidden = n->op->flags & OP_HIDDEN; /* a part of an operation of the language */
        if (!c->shown[head->id] || !hidden)
            c->last[head->id] = n;
        if (!c->shown[head->id] && !hidden)
            c->shown[head->id] = n;
        for (int k = 0; k < n->nin; k++)
            if (n->in[k]->param && n->in[k]->nin == 0)
                c->parameters[head->id] += shape_count(&n->in[k]->shape);
    }
}

/* ---- frames */

/* Length of the first `depth` parts of a path such as "stage1.bottleneck2". */
static size_t path_length(const char *path, int depth)
{
    const char *s = path;
    for (int i = 0; i < depth; i++) {
        s += strcspn(s, ".");
        s += i + 1 < depth && *s == '.';
    }
    return (size_t)(s - path);
}

static int path_depth(const char *path)
{
    int n = path ? 1 : 0;
    for (; path && *path; path++)
        n += *path == '.';
    return n;
}

/* Closes the frames of the last node that do not contain the next one, and opens those that do. */
static void move_frame(Calls *c, const char *from, const char *to)
{
    const int have = path_depth(from), want = path_depth(to);
    int common = 0;
    while (common < have && common < want) {
        const size_t a = path_length(from, common + 1), b = path_length(to, common + 1);
        if (a != b || strncmp(from, to, a) != 0)
            break;
        common++;
    }
    for (int i = have; i > common; i--)
        text_printf(c->out, "%*s}\n", 4 * i, "");
    for (int i = common; i < want; i++) {
        const char *path = arena_strndup(c->out->arena, to, path_length(to, i + 1)),
                   *name = path + (i ? path_length(path, i) + 1 : 0);
        path = quote_dot(c->out->arena, path);
        text_printf(c->out, "%*ssubgraph \"cluster_%s\" {\n%*slabel=\"%s\";\n", 4 * (i + 1), "",
                    path, 4 * (i + 2), "", quote_dot(c->out->arena, name));
    }
}

/* ---- nodes */

static void add_value(Text *t, const Attr *a)
{
    switch (a->kind) {
    case ATTR_INT:
        text_printf(t, "%lld", (long long)a->i);
        break;
    case ATTR_FLOAT:
        text_printf(t, "%g", a->f);
        break;
    case ATTR_BOOL:
        text_add(t, a->i ? "true" : "false");
        break;
    case ATTR_STRING:
    case ATTR_REALS:
        text_add(t, a->s);
        break;
    case ATTR_INTS:
        for (int i = 0; i < a->nlist; i++)
            text_printf(t, "%s%lld", i ? " x " : "", (long long)a->list[i]);
        break;
    }
}

/* The arguments that the model file gives: "filters 20, kernel 5 x 5". */
static const char *arguments(Arena *a, const Node *n)
{
    Text t = text_new(a);
    for (int i = 0; i < n->nattr; i++)
        if (n->attr[i].span.source) {
            text_printf(&t, "%s%s ", t.len ? ", " : "\n", n->attr[i].key);
            add_value(&t, &n->attr[i]);
        }
    return t.s;
}

static void add_call(Calls *c, const Node *head)
{
    Arena *a = c->out->arena;
    const Node *call = c->call[head->id]     ? c->call[head->id]
                       : op_transposed(head) ? head /* not its bias */
                       : c->shown[head->id]  ? c->shown[head->id]
                                             : head;
    const bool leaf = head->op->leaf == LEAF_INPUT || head->op->leaf == LEAF_LABEL;
    /* a conv_transpose2d or causal_attention makes a product with a name of its own */
    const bool made = call->op->flags & OP_HIDDEN && call->op->product != PRODUCT_NONE;
    Text label = text_new(a);
    text_printf(&label, "%s%s%s%s\n%s", made ? op_in_language(call) : call->op->name,
                call->name ? " " : "", call->name ? call->name : "", arguments(a, call),
                shape_text(a, &c->last[head->id]->shape));
    if (c->parameters[head->id])
        text_printf(&label, "\n%s parameters", text_commas(a, c->parameters[head->id]));
    Text quoted = text_new(a);
    for (const char *s = label.s; *s; s += strcspn(s, "\n"), s += *s == '\n')
        text_printf(&quoted, "%s%s", quoted.len ? "\\n" : "",
                    quote_dot(a, arena_strndup(a, s, strcspn(s, "\n"))));
    text_printf(c->out, "%*sn%d [label=\"%s\"%s];\n", 4 * (path_depth(node_block(head)) + 1), "",
                head->id, quoted.s, leaf ? ", shape=box, fillcolor=\"#e8f0ff\"" : "");
}

void picture_calls(const Graph *g, Text *out)
{
    const size_t n = (size_t)g->next_id;
    Calls c = {.g = g,
               .head = arena_alloc(out->arena, n * sizeof *c.head),
               .call = arena_alloc(out->arena, n * sizeof *c.call),
               .shown = arena_alloc(out->arena, n * sizeof *c.shown),
               .last = arena_alloc(out->arena, n * sizeof *c.last),
               .parameters = arena_alloc(out->arena, n * sizeof *c.parameters),
               .out = out};
    const char *frame = NULL;
    find_heads(&c);
    text_printf(out,
                "strict digraph \"%s\" {\n    node [shape=ellipse, style=filled, fillcolor=white, "
                "fontname=\"Helvetica\"];\n    graph [style=rounded, fontname=\"Helvetica\"];\n",
                quote_dot(out->arena, g->name));
    for (int i = 0; i < g->nnode; i++) {
        const Node *node = g->node[i];
        if (c.head[node->id] != node)
            continue;
        move_frame(&c, frame, node_block(node));
        frame = node_block(node);
        add_call(&c, node);
    }
    move_frame(&c, frame, NULL);
    for (int i = 0; i < g->nnode; i++) {
        const Node *node = g->node[i], *to = c.head[node->id];
        for (int k = 0; to && k < node->nin; k++) {
            const Node *from = c.head[node->in[k]->id];
            if (from && from != to)
                text_printf(out, "    n%d -> n%d;\n", from->id, to->id);
        }
    }
    text_add(out, "}\n");
}
