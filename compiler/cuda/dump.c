/* dump.c -- prints the calls of a GPU program as text: --dump=calls.
 *
 *  4  launch 3  dense Dense{ ... }  as dense  w scratch[0,256) %5 as dense, r fixed[0,8) %5 a.tn:9
 *  5  launch 4  loop 1  tanh  as each  ...
 *
 * Index, launch or barrier, loop that calls share, region of a step of a loop in one launch (ahead:
 * an element that is copied ahead), form and sizes, order of the results, operands with their
 * bytes, node and line of the model. */
#include "cuda/spell.h"

static const char *order_name(const Order *o)
{
    static const char *const walk[] = {"each", "packs", NULL, "sums", "channels", "pool"};
    return o->walk == WALK_RESULTS ? o->form : walk[o->walk];
}

static void dump_order(Text *t, const Order *o)
{
    for (; o; o = o->through)
        text_printf(t, " as %s", order_name(o));
}

static void dump_operand(Text *t, const Operand *o)
{
    static const char *const memory[] = {"unknown", "host",     "fixed", "scratch",
                                         "shard",   "gradient", "apart", "metric",
                                         "output",  "samples",  "next"};
    text_printf(t, "%s %s[%lld,", o->writes ? "w" : "r", memory[o->memory], (long long)o->from);
    if (o->to == INT64_MAX)
        text_add(t, "end)");
    else
        text_printf(t, "%lld)", (long long)o->to);
    if (o->param)
        text_printf(t, " %s", o->param->name);
    else if (o->node)
        text_printf(t, " %%%d", o->node->id);
    dump_order(t, o->order);
}

static void dump_form(Text *t, const CudaCall *c)
{
    text_printf(t, "%s%s", c->form, c->taken_order && !c->index ? "_in_order" : "");
    for (int i = 0; i < c->narg; i++)
        if (c->arg[i].sizes)
            text_printf(t, " %s", sizes_text(t->arena, c->arg[i].sizes, true));
        else if (c->arg[i].counts)
            text_printf(t, " %s", c->arg[i].inner);
}

/* Prints how a call starts: its launch, or the barrier before it. */
static void dump_start(Text *t, const CudaCalls *l, const CudaCall *c)
{
    if (!l->persistent)
        text_printf(t, "launch %-3d", c->launch);
    else
        text_printf(t, "%-10s", c->barrier || c->inner_barrier ? "barrier" : "");
}

static void dump_call(Text *t, const CudaCalls *l, const CudaCall *c, int index)
{
    text_printf(t, "%5d  ", index);
    dump_start(t, l, c);
    if (c->loop)
        text_printf(t, "  loop %d", c->loop);
    if (c->recurrence && c->role == RECURRENCE_ITEM)
        text_add(t, "  ahead");
    else if (c->recurrence)
        text_printf(t, "  region %d", c->region);
    text_add(t, "  ");
    dump_form(t, c);
    if (c->order)
        text_add(t, " "), dump_order(t, c->order);
    for (int i = 0; i < c->noperand; i++) {
        text_add(t, i ? ", " : "  ");
        dump_operand(t, &c->operand[i]);
    }
    if (c->node)
        text_printf(t, "  %%%d %s", c->node->id, c->node->name ? c->node->name : c->node->op->name);
    if (c->node && c->node->span.source)
        text_printf(t, " %s:%d", source_base(c->node->span.source), c->node->span.line);
    if (c->comment)
        text_printf(t, "  %s", c->comment);
    text_add(t, "\n");
}

/* Prints code between calls. */
static void dump_line(Text *t, const char *code)
{
    bool begins = true;
    for (; *code; code++) {
        if (begins && (*code == ' ' || *code == '\n'))
            continue;
        text_printf(t, "%s%c", begins ? "                   " : "", *code);
        begins = *code == '\n';
    }
}

void calls_dump(const Graph *g, const CudaCalls *l, Text *t)
{
    int index = 0, phase = -1;

    for (int i = 0; i < l->n; i++) {
        const CudaCall *c = l->call[i];
        if (c->phase != phase)
            text_printf(t, "# %s, phase %d: %s%s\n", g->training ? "train" : "test", c->phase,
                        phase_kinds[g->step->phase[c->phase].kind],
                        l->persistent ? ", as stages of one kernel" : "");
        phase = c->phase;
        if (c->kind == KIND_LINE)
            dump_line(t, c->form);
        else
            dump_call(t, l, c, index++);
    }
}
