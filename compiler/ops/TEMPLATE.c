/* TEMPLATE.c -- a new operation: copy this file to NAME.c, add OP(NAME) to ops.def, and change
 * the rest.
 *
 *   y[i] = x[i] |x[i]|^(p - 1)                        first the equation, letters from the paper
 *   dx[i] = p |x[i]|^(p - 1) dy[i]                    and its gradient
 *
 *   x (N, ...)   y (N, ...)                           then the shapes
 *
 * Then what the operation is not, if that helps, and the source.  This example, a signed power,
 * is compiled with the other operations so that it stays correct, but it is not in the table.
 * An operation that is one C expression needs no file: it is a row of elementwise.def.
 */
#include "ops/check.h"
#include "ops/example.h"

/* Sets the shape from inputs and attributes.  Runs in the front end, in pass infer and in
 * verify: it must always give the same result and change only n.  An error stands at the
 * argument, and has both numbers, a note about the input and a way out. */
static bool signed_pow_shape(Node *n, Diag *d)
{
    const double p = node_float(n, "p");
    if (!check_real(n, 0, d))
        return false;
    if (p >= 1)
        return check_result(n, n->in[0]->shape, d);
    diag_error(d, node_span(n, "p"), "signed_pow p is %g, below 1", p);
    check_note(n, 0, d);
    diag_help(d, "below 1 the slope at 0 is infinite: use p >= 1");
    return false;
}

/* Adds to the gradient of each input.  dy has the shape of n.  The gradient consists of existing
 * ops, or of a hidden op of this file with its own kernel, as here; op_make_like copies the
 * attributes.  Call grad_wanted before expensive work. */
static void signed_pow_gradient(Grad *gr, Node *n, Node *dy)
{
    grad_add(gr, n->in[0], op_make_like(grad_graph(gr), "signed_pow_dx", n, 2, n->in[0], dy));
}

/* Cost of one sample: FLOPs by the textbook, two for a multiply-add, and 4 bytes for a number.
 * Omit this rule when the op multiplies nothing. */
static Cost signed_pow_cost(const Node *n)
{
    return (Cost){.bytes = 8 * (double)shape_count(&n->shape)};
}

/* An op whose kernel computes more than it moves has a rule `price` (ops/price.h), as in
 * dense.c.
 *
 * Describes the C call.  runtime/cpu has signed_pow_plain, which is simple, and signed_pow, which
 * is fast; compiler/cpu/unit.c has the row of their header.  The target selects one of them.
 * c->n is the number of samples, a literal like all other arguments. */
static void signed_pow_kernel(const Node *n, Call *c)
{
    call_kernel(c, "signed_pow");
    call_out(c, n);
    call_in(c, n->in[0]);
    call_text(c, "(real)%.17g", node_float(n, "p"));
    call_text(c, "%lld", (long long)(c->n * shape_count(&n->shape)));
}

static void signed_pow_kernel_dx(const Node *n, Call *c)
{
    call_kernel(c, "signed_pow_dx");
    call_out(c, n);
    call_in(c, n->in[0]);
    call_in(c, n->in[1]);
    call_text(c, "(real)%.17g", node_float(n, "p"));
    call_text(c, "%lld", (long long)(c->n * shape_count(&n->shape)));
}

/* A layer owns parameters; it also has a name `layer` and a function `build`: see dense.c.  Passes
 * ask for the properties of op.h, such as `takes` or OP_POSITION; 0 is right for each of them, but
 * can be slower.  The example is the entry in the manual and a check of the gradient;
 * tests/passes/emitted.sums has checksums of its programs.  It is small and complete, has a
 * parameter before the op, and uses arguments that differ from their defaults. */
const Op op_TEMPLATE[] = {{.name = "signed_pow",
                           .brief = "a power that keeps the sign",
                           .shapes = "x, y (N, ..)",
                           .formula = "y = x |x|^(p - 1)",
                           .derivative = "dx = p |x|^(p - 1) dy",
                           .note = "The slope at 0 is infinite for p below 1.",
                           .arg = {{"x", ARG_TENSOR, NULL, "a tensor of any shape"},
                                   {"p", ARG_FLOAT, "2", "the exponent, at least 1"}},
                           .shape = signed_pow_shape,
                           .gradient = signed_pow_gradient,
                           .cost = signed_pow_cost,
                           .kernel = signed_pow_kernel,
                           .example = "model example(x: f32[6]) {\n"
                                      "    h = dense(x, 5) |> signed_pow(1.5)\n"
                                      "    return dense(h, 3)\n"
                                      "}\n" EXAMPLE_TRAIN},
                          {.name = "signed_pow_dx",
                           .brief = "gradient of signed_pow",
                           .arg = {{"x", ARG_TENSOR, NULL, "a tensor"},
                                   {"dy", ARG_TENSOR, NULL, "gradient of the result"}},
                           .flags = OP_HIDDEN,
                           .shape = signed_pow_shape,
                           .cost = signed_pow_cost,
                           .kernel = signed_pow_kernel_dx},
                          {0}};
