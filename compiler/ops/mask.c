/* mask.c -- marks the padding of a text: y[t] = 0 where token t is padding, else 1.  It has no
 * gradient.
 *
 *   tokens (N, T) or (N)   y (N, T) or (N)
 *
 * Uses: lstm(h, 128, mask = m); attention(q, k, v, mask = m); sums and means over the positions
 * without padding.
 */
#include "ops/check.h"
#include "ops/example.h"

static bool mask_shape(Node *n, Diag *d)
{
    if (!check_numbers(n, 0, d) || !check_int(n, "padding", 0, d))
        return false;
    if (!node_attr(n->in[0], "vocab") || node_int(n, "padding") < node_int(n->in[0], "vocab"))
        return check_result(n, n->in[0]->shape, d);
    diag_error(d, node_span(n, "padding"),
               "mask padding is %lld, but the data's tokens are 0 to %lld",
               (long long)node_int(n, "padding"), (long long)node_int(n->in[0], "vocab") - 1);
    return false;
}

static void mask_kernel(const Node *n, Call *c)
{
    call_fn(c, "mask");
    call_out(c, n);
    call_in(c, n->in[0]);
    call_text(c, "%lld, %lld", (long long)(c->n * shape_count(&n->in[0]->shape)),
              (long long)node_int(n, "padding"));
}

const Op op_mask[] =
    {{.name = "mask",
      .brief = "0 for each token that is padding, 1 for all others",
      .shapes = "tokens (N, T) or (N)   y (N, T) or (N)",
      .formula = "y[t] = 0 if tokens[t] = padding, else 1",
      .note = "It has no gradient. It is the mask of attention, lstm, gru and rnn.",
      .arg = {{"tokens", ARG_TENSOR, NULL, "tokens (N, T)"},
              {"padding", ARG_INT, "0", "the token that is padding, at least 0"}},
      .shape = mask_shape,
      .kernel = mask_kernel,
      .example = "# The mean of the states at the tokens that are not padding.\n"
                 "model example(text: i32[5], vocab: int) {\n"
                 "    m = mask(text)\n"
                 "    h = embedding(text, vocab, 6, padding = 0) |> gru(4, all = true, mask = m)\n"
                 "    h = sum(h * reshape(m, [5, 1]), axes = [0])\n"
                 "    return dense(h / (1 + reshape(sum(m, axes = [0]), [1])), 3)\n"
                 "}\n" EXAMPLE_TOKENS},
     {0}};
