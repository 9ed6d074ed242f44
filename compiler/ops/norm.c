/* norm.c -- see norm.h. */
#include "ops/norm.h"

Node *norm_vector(Graph *g, Diag *d, const char *path, const char *name, const char *axis,
                  int64_t count, double v, bool learned, Span at)
{
    const Shape s = shape_make(false, axis, &count, 1);
    const Init init = {.kind = INIT_CONSTANT, .a = v};
    return learned ? graph_param(g, d, arena_printf(g->arena, "%s.%s", path, name), s, &init, at)
                   : graph_const(g, v, s, at);
}
