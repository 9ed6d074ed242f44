/* dump.c -- prints the graph, one line per node, always in the same form, for --dump and goldens.
 *
 *   graph lenet, training
 *   %12 = conv2d(%3, %10) {stride=[1,1] pad=[0,0]} (N, 20, 24, 24)  conv1  lenet.tn:3
 *   output %31, loss %33, accuracy %34
 */
#include "ir/step.h"
#include "ir/vocabulary.h"

const char *const phase_kinds[] = {"prepare", "slice", "gradient", "update", "wide"};

static void dump_attr(const Attr *a, FILE *f)
{
    fprintf(f, "%s=", a->key);
    switch (a->kind) {
    case ATTR_INT:
        fprintf(f, "%lld", (long long)a->i);
        break;
    case ATTR_FLOAT:
        fprintf(f, "%.9g", a->f);
        break;
    case ATTR_BOOL:
        fputs(a->i ? "true" : "false", f);
        break;
    case ATTR_STRING:
        fprintf(f, "\"%s\"", a->s);
        break;
    case ATTR_REALS:
        fprintf(f, "[%s]", a->s);
        break;
    case ATTR_INTS:
        for (int i = 0; i < a->nlist; i++)
            fprintf(f, "%s%lld", i ? "," : "[", (long long)a->list[i]);
        fputs(a->nlist ? "]" : "[]", f);
        break;
    }
}

static void dump_value(const Node *n, Arena *a, FILE *f)
{
    static const char *const dtype[] = {[DT_REAL] = "", [DT_U8] = " u8", [DT_I32] = " i32"};
    static const char *const half[] = {[HALF_BF16] = " bf16", [HALF_F16] = " f16"};
    fprintf(f, " %s%s", shape_text(a, &n->shape), n->half ? half[n->half] : dtype[n->dtype]);
    if (n->layout == LAYOUT_LAST)
        fputs(" last", f);
    if (n->layout == LAYOUT_TIME)
        fputs(" time", f);
}

static void dump_place(const Node *n, FILE *f)
{
    static const char *const place[] = {"", "fixed", "batch", "partial", "local", "view"};
    if (n->within)
        fprintf(f, "  within %%%d+%lld", n->within->id, (long long)n->start);
    if (n->place != PLACE_NONE)
        fprintf(f, "  %s@%lld", place[n->place], (long long)n->offset);
    if (n->phase >= 0)
        fprintf(f, " phase %d", n->phase);
}

/* Prints the file name without directories: a dump must not depend on the working directory. */
static void dump_span(const Span *s, FILE *f)
{
    if (!s->source)
        return;
    fprintf(f, "  %s:%d", source_base(s->source), s->line);
}

static void dump_node(const Node *n, Arena *a, FILE *f)
{
    fprintf(f, "%%%d = %s(", n->id, op_name(n->op));
    for (int i = 0; i < n->nin; i++)
        fprintf(f, "%s%%%d", i ? ", " : "", n->in[i]->id);
    fputs(")", f);
    for (int i = 0; i < n->nattr; i++) {
        fputs(i ? " " : " {", f);
        dump_attr(&n->attr[i], f);
    }
    fputs(n->nattr ? "}" : "", f);
    dump_value(n, a, f);
    if (n->name)
        fprintf(f, "  %s", n->name);
    else if (n->param)
        fprintf(f, "  %s", n->param->name);
    if (n->loop)
        fprintf(f, "  loop %d x %lld%s", n->loop->id, (long long)n->loop->steps,
                n->loop->reversed ? " reversed" : "");
    if (n->loop && n->loop->every)
        fprintf(f, " every %lld", (long long)n->loop->every);
    if (n->loop && n->loop->inside)
        fprintf(f, " in loop %d", n->loop->inside->id);
    dump_place(n, f);
    dump_span(&n->span, f);
    fputs("\n", f);
}

void graph_dump(const Graph *g, FILE *f)
{
    fprintf(f, "graph %s, %s\n", g->name, g->training ? "training" : "evaluation");
    for (int i = 0; i < g->nnode; i++)
        dump_node(g->node[i], g->arena, f);
    if (g->output)
        fprintf(f, "output %%%d", g->output->id);
    for (int i = 0; i < g->nmetric; i++)
        fprintf(f, "%s%s %%%d", g->output || i ? ", " : "", g->metric[i].name,
                g->metric[i].node->id);
    fputs("\n", f);
}
