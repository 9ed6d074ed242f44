/* normal_like.c -- random numbers with the standard normal distribution.
 *
 *   y[i] = n[i], of mean 0 and variance 1;   no gradient
 *
 * The numbers are not stored: a counter (seed, purpose, epoch, sample, element) gives them, so they
 * do not depend on threads, ranks or a resume.  An evaluation has other numbers than training: the
 * same ones for a sample each time.
 *
 * Sources: Box and Muller 1958, "A note on the generation of random normal deviates"; Kingma and
 * Welling 2014, "Auto-encoding variational Bayes", for z = mean + deviation * normal_like(mean).
 */
#include "ops/check.h"
#include "ops/example.h"
#include "ops/price.h"
#include "ops/random.h"

static bool normal_like_shape(Node *n, Diag *d)
{
    if (!check_real(n, 0, d))
        return false;
    Shape y = n->in[0]->shape;
    y.batched = true;
    return check_result(n, y, d);
}

static Node *normal_like_build(Graph *g, Node *const *x, int nx, const Node *attrs,
                               const char *path, Diag *d)
{
    (void)path; /* normal_like has no parameters */
    Node *n = graph_add(g, op_find("normal_like"), (Node **)x, nx, attrs->span);
    random_set_purpose(g, n, n->op);
    node_set_int(g, n, "training", g->training);
    return normal_like_shape(n, d) ? n : NULL;
}

/* `r` and `first`, the batch index of the chunk's first sample, are variables of the generated
 * code. */
static void normal_like_kernel(const Node *n, Call *c)
{
    call_fn(c, call_version(c, "normal_like"));
    c->parts = true;
    call_out(c, n);
    call_given(c, CALL_RT);
    call_text(c, "%lld", (long long)node_int(n, "purpose"));
    call_given(c, CALL_FIRST);
    call_text(c, "%s", node_int(n, "training") ? "true" : "false");
    call_text(c, "%lld, %lld", (long long)c->n, (long long)shape_count(&n->shape));
}

/* Philox as for dropout, and for two numbers a logarithm, a root, a sine and a cosine. */
static void normal_like_price(const Node *n, const Market *m, Price *p)
{
    price_each(p, m, n, 35);
}

const Op op_normal_like[] =
    {{.name = "normal_like",
      .brief = "random numbers with the standard normal distribution, as many as x has",
      .shapes = "x, y (N, ..)",
      .formula = "y[i] = n[i], of mean 0 and variance 1",
      .note = "Only the shape of x counts; no gradient goes back to it. A counter of seed, epoch, "
              "sample and element gives the numbers, so they are the same for any number of "
              "threads and ranks, and after a resume. Test, predict and generate draw numbers, "
              "too: for a sample the same ones each time, whatever the seed is. Source: Kingma and "
              "Welling 2014, \"Auto-encoding variational Bayes\".",
      .arg = {{"x", ARG_TENSOR, NULL, "a tensor of any shape"}},
      .shape = normal_like_shape,
      .build = normal_like_build,
      .price = normal_like_price,
      .kernel = normal_like_kernel,
      .example = "# A code of 4 numbers with noise, whose size the network learns.\n"
                 "model example(x: f32[6]) {\n"
                 "    h = dense(x, 8) |> tanh\n"
                 "    mean = dense(h, 4)\n"
                 "    z = mean + exp(dense(h, 4)) * normal_like(mean)\n"
                 "    return dense(z, 3)\n"
                 "}\n" EXAMPLE_TRAIN},
     {0}};
