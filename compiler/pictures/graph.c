/* graph.c -- the graph as Graphviz text: forward in white, backward in grey, parameters as boxes.
 *
 * A deep network is drawn as the model file has it: a box for each block instance.
 */
#include "base/quote.h"
#include "ops/op.h"
#include "pictures/pictures.h"
#include <string.h>

void picture_graph(const Graph *g, Text *out)
{
    text_printf(out,
                "digraph \"%s\" {\n    node [shape=ellipse, style=filled, fillcolor=white, "
                "fontname=\"Helvetica\"];\n",
                quote_dot(out->arena, g->name));
    for (int i = 0; i < g->nnode; i++) {
        const Node *n = g->node[i];
        const char *look = n->param && n->nin == 0 ? ", shape=box, fillcolor=\"#e8f0ff\""
                           : n->backward           ? ", fillcolor=\"#e4e4e4\""
                                                   : "";
        text_printf(out, "    n%d [label=\"%s%s%s\\n%s\"%s];\n", n->id, n->op->name,
                    n->name ? " " : "", quote_dot(out->arena, n->name),
                    shape_text(out->arena, &n->shape), look);
        for (int k = 0; k < n->nin; k++)
            text_printf(out, "    n%d -> n%d;\n", n->in[k]->id, n->id);
    }
    text_add(out, "}\n");
}

/* The block instance that the picture shows in place of the node.  Instances inside of instances
 * are shown to a depth of two. */
static const char *instance(const Graph *g, const Node *n)
{
    const char *block = node_block(n), *dot = block ? strchr(block, '.') : NULL,
               *end = dot ? strchr(dot + 1, '.') : NULL;
    return end ? arena_strndup(g->arena, block, (size_t)(end - block)) : block;
}

static bool drawn(const Node *n)
{
    return n->op->leaf == LEAF_INPUT || (!n->param && !(n->op->flags & OP_HIDDEN));
}

/* By id: the first node in the box of each node.  The nodes of an instance stand next to each other
 * in graph->node. */
static const Node **node_boxes(const Graph *g)
{
    const Node **box = arena_alloc(g->arena, sizeof *box * (size_t)g->next_id), *first = NULL;
    for (int i = 0; i < g->nnode; i++) {
        const Node *n = g->node[i];
        if (!drawn(n))
            continue;
        const char *here = instance(g, n), *before = first ? instance(g, first) : NULL;
        if (!here || !before || strcmp(here, before) != 0)
            first = n;
        box[n->id] = first;
    }
    return box;
}

void picture_blocks(const Graph *g, Text *out)
{
    const Node **box = node_boxes(g),
               **last = arena_alloc(g->arena, sizeof *last * (size_t)g->next_id);
    text_printf(out,
                "strict digraph \"%s\" {\n    node [shape=box, style=filled, fillcolor=white, "
                "fontname=\"Helvetica\"];\n",
                quote_dot(out->arena, g->name));
    for (int i = 0; i < g->nnode; i++)
        if (box[g->node[i]->id])
            last[box[g->node[i]->id]->id] = g->node[i];
    for (int i = 0; i < g->nnode; i++) {
        const Node *n = g->node[i], *b = box[n->id];
        if (b == n) { /* the box has the shape of its last node */
            const char *block = instance(g, n), *name = block ? block : n->name;
            text_printf(out, "    n%d [label=\"%s%s%s\\n%s\"%s];\n", n->id,
                        block ? "" : n->op->name, !block && name ? " " : "",
                        quote_dot(out->arena, name), shape_text(out->arena, &last[n->id]->shape),
                        block ? ", fillcolor=\"#e8f0ff\"" : "");
        }
        for (int k = 0; b && k < n->nin; k++)
            if (box[n->in[k]->id] && box[n->in[k]->id] != b)
                text_printf(out, "    n%d -> n%d;\n", box[n->in[k]->id]->id, b->id);
    }
    text_add(out, "}\n");
}
