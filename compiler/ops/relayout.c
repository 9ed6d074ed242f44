/* relayout.c -- copies a value into another layout.  Pass layout makes it with attribute to =
 * "row", which stores images as (C, H, W), or "last", which stores them as (H, W, C).  Pass steps
 * makes it with to = "time", which stores sequences step by step.
 */
#include "ops/check.h"
#include "ops/scan.h"
#include <string.h>

static bool relayout_shape(Node *n, Diag *d)
{
    const DType dtype = n->in[0]->dtype;
    const bool fits = check_result(n, n->in[0]->shape, d);
    n->dtype = dtype;
    return fits;
}

/* A flattened image keeps its C, H, W in flat[]. */
static void relayout_kernel(const Node *n, Call *c)
{
    const Shape *x = &n->in[0]->shape;
    if (n->layout == LAYOUT_TIME) {
        call_fn(c, n->half ? "time_from_row_bf16" : "time_from_row");
        call_in_parts(c, n);
        call_sizes(c, scan_sizes(c->arena, c->n, x->dim[0], x->dim[1]));
        return;
    }
    const bool row = !strcmp(node_string(n, "to"), "row");
    const int64_t *flat = row ? n->in[0]->flat : n->flat;
    const int64_t *chw = x->rank == 3 ? x->dim : flat;
    call_fn(c, row ? "chw_from_hwc" : "hwc_from_chw");
    if (c->target.few_half && n->half)
        call_fn(c, row ? "chw_from_hwc_bf16" : "hwc_from_chw_bf16");
    call_in_parts(c, n);
    call_text(c, "%lld, %lld, %lld", (long long)c->n, (long long)chw[0],
              (long long)(chw[1] * chw[2]));
}

const Op op_relayout[] = {{.name = "relayout",
                           .brief = "a copy in another order in memory",
                           .arg = {{"x", ARG_TENSOR, NULL, "images, or sequences"},
                                   {"to", ARG_STRING, NULL, "\"row\", \"last\" or \"time\""}},
                           .flags = OP_HIDDEN,
                           .shape = relayout_shape,
                           .kernel = relayout_kernel},
                          {0}};
