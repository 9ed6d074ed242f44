/* token.c -- operations of a network that processes one token of a text at a time;
 * passes/token.c makes them.
 *
 *   token_state(first)      the state after the token before; at the first token: first, a number
 *   token_next(v)           stores v as the state for the next token; a root of the graph
 *   token_row(w)            the row of w (T, ...) for this token's position
 *   token_rotary(x), token_sinusoidal(x)      rotary and sinusoidal at this token's position
 *   token_attention(x)      causal attention of this token to the tokens before, whose keys and
 *                           values are stored
 *
 * runtime/cpu/token.h describes the memory.  The attribute `at` is an offset in this memory, in
 * reals.
 */
#include "ops/check.h"

static bool token_shape_same_as(Node *n, Diag *d)
{
    Shape s = n->in[0]->shape;
    s.batched = true;
    return check_result(n, s, d);
}

static bool token_shape_row(Node *n, Diag *d)
{
    const Shape *w = &n->in[0]->shape;
    return check_result(n, shape_make(true, w->rank == 2 ? "F" : NULL, w->dim + 1, w->rank - 1), d);
}

static bool token_shape_attention(Node *n, Diag *d)
{
    Shape s = n->in[0]->shape;
    s.dim[0] /= 3;
    return check_result(n, s, d);
}

static void open(const Node *n, Call *c, const char *fn)
{
    call_fn(c, n->half ? arena_printf(c->arena, "%s_bf16", fn) : fn);
    call_out(c, n);
    if (n->in[0]->op->leaf != LEAF_CONST)
        call_in(c, n->in[0]);
    call_given(c, CALL_RT);
}

static long long count(const Node *n)
{
    return (long long)shape_count(&n->shape);
}

static void token_kernel_state(const Node *n, Call *c)
{
    open(n, c, "token_state");
    call_offset(c, node_int(n, "at"));
    call_text(c, "%lld, %.17g", count(n), node_float(n->in[0], "value"));
}

static void token_kernel_next(const Node *n, Call *c)
{
    open(n, c, "token_next");
    call_offset(c, node_int(n, "at"));
    call_text(c, "%lld", count(n));
}

static void token_kernel_row(const Node *n, Call *c)
{
    open(n, c, "token_row");
    call_text(c, "%lld", count(n));
}

static void token_kernel_rotary(const Node *n, Call *c)
{
    const long long heads = (long long)node_int(n, "heads");
    open(n, c, "token_rotary");
    call_text(c, "%lld, %lld, %.17g", heads, count(n) / heads, node_float(n, "base"));
}

static void token_kernel_wave(const Node *n, Call *c)
{
    open(n, c, "token_sinusoidal");
    call_text(c, "%lld, %.17g", count(n), node_float(n, "base"));
}

static void token_kernel_attention(const Node *n, Call *c)
{
    const long long heads = (long long)node_int(n, "heads");
    if (c->target.few_half && op_reads_half(n))
        call_fn(c, n->half ? "bf16_token_attention" : "bf16_token_attention_f32");
    else
        call_kernel(c, "token_attention");
    call_out(c, n);
    call_in(c, n->in[0]);
    call_given(c, CALL_RT);
    call_offset(c, node_int(n, "at"));
    Sizes *s = sizes_new(c->arena, "TokenAttention");
    sizes_int(s, "t", node_int(n, "time"));
    sizes_int(s, "heads", heads);
    sizes_int(s, "d", count(n) / heads);
    sizes_real(s, "scale", node_float(n, "scale"));
    call_sizes(c, s);
}

#define AT                                                                                         \
    {                                                                                              \
        "at", ARG_INT, NULL, "offset in the memory of states"                                      \
    }
#define HEADS                                                                                      \
    {                                                                                              \
        "heads", ARG_INT, NULL, "as in the op of the language"                                     \
    }

const Op op_token[] = {{.name = "token_state",
                        .brief = "the state after the previous token",
                        .arg = {{"first", ARG_TENSOR, NULL, "before the first token"}, AT},
                        .flags = OP_HIDDEN | OP_LITERAL,
                        .shape = token_shape_same_as,
                        .kernel = token_kernel_state},
                       {.name = "token_next",
                        .brief = "a state for the next token",
                        .arg = {{"x", ARG_TENSOR, NULL, "the state"}, AT},
                        .flags = OP_HIDDEN | OP_ROOT,
                        .shape = token_shape_same_as,
                        .kernel = token_kernel_next},
                       {.name = "token_row",
                        .brief = "the row of a table for this token's position",
                        .arg = {{"w", ARG_TENSOR, NULL, "a row a position"}},
                        .flags = OP_HIDDEN,
                        .shape = token_shape_row,
                        .kernel = token_kernel_row},
                       {.name = "token_rotary",
                        .brief = "rotary at this token's position",
                        .arg = {{"x", ARG_TENSOR, NULL, "queries or keys"},
                                HEADS,
                                {"base", ARG_FLOAT, NULL, "of the wave lengths"}},
                        .flags = OP_HIDDEN,
                        .shape = token_shape_same_as,
                        .kernel = token_kernel_rotary},
                       {.name = "token_sinusoidal",
                        .brief = "sinusoidal at this token's position",
                        .arg = {{"x", ARG_TENSOR, NULL, "features"},
                                {"base", ARG_FLOAT, NULL, "of the wave lengths"}},
                        .flags = OP_HIDDEN,
                        .shape = token_shape_same_as,
                        .kernel = token_kernel_wave},
                       {.name = "token_attention",
                        .brief = "causal attention of this token to those before",
                        .arg = {{"x", ARG_TENSOR, NULL, "q, k and v side by side"},
                                HEADS,
                                {"scale", ARG_FLOAT, NULL, "of the scores"},
                                {"time", ARG_INT, NULL, "largest number of tokens in memory"},
                                AT},
                        .flags = OP_HIDDEN,
                        .product = PRODUCT_ATTENTION,
                        .shape = token_shape_attention,
                        .kernel = token_kernel_attention},
                       {0}};
