/* dot.c -- the graph as Graphviz text: forward in white, backward in grey, parameters as boxes. */
#include "emit/emit.h"
#include "ops/op.h"

void emit_dot(const Graph *g, Text *out)
{
    text_printf(out,
                "digraph \"%s\" {\n    node [shape=ellipse, style=filled, fillcolor=white, "
                "fontname=\"Helvetica\"];\n",
                g->name);
    for (int i = 0; i < g->nnode; i++) {
        const Node *n = g->node[i];
        const char *look = n->param && n->nin == 0 ? ", shape=box, fillcolor=\"#e8f0ff\""
                           : n->backward           ? ", fillcolor=\"#e4e4e4\""
                                                   : "";
        text_printf(out, "    n%d [label=\"%s%s%s\\n%s\"%s];\n", n->id, n->op->name,
                    n->name ? " " : "", n->name ? n->name : "", shape_text(out->arena, &n->shape),
                    look);
        for (int k = 0; k < n->nin; k++)
            text_printf(out, "    n%d -> n%d;\n", n->in[k]->id, n->id);
    }
    text_add(out, "}\n");
}
