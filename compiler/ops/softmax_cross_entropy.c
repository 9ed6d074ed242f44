/* softmax_cross_entropy.c -- loss of classification: minus the log of the probability of the
 * true class.
 *
 *   y = log(sum over j of exp(x[j] - m)) - (x[t] - m)           m = max x
 *   dx[i] = (softmax(x)[i] - [i = t]) dy
 *
 *   smoothing s: the target of the true class is 1 - s + s / K, of the others s / K:
 *   y += s (x[t] - mean of x)      dx[i] += s ([i = t] - 1 / K) dy       Szegedy et al. 2016,
 *                                  section 7
 *
 *   x (N, K)   label t (N), 0 <= t < K   y (N)      the program's loss is the mean over the batch
 *
 * For sequences, x (N, T, K) and t (N, T): y is the sum over the positions with t >= 0, divided by
 * the mean number of such positions in a sample of the batch; a position with t = -1 does not
 * count.  The loss of the program is then the mean over all positions that count.
 *
 * For images, x (N, K, H, W) and t (N, H, W): the rule `build` turns x into the sequence of its H W
 * pixels.  The program replaces the class `ignore` by -1 when it reads the data.
 *
 * With class_weights w, y is multiplied by w[t], and the mean is divided by the sum of w[t] over
 * the batch: runtime/cpu/loss.h.
 */
#include "ops/check.h"
#include "ops/example.h"
#include "ops/loss.h"
#include <float.h>

static bool check_smoothing(const Node *n, Diag *d)
{
    const double s = node_attr(n, "smoothing") ? node_float(n, "smoothing") : 0;

    if (s >= 0 && s < 1)
        return true;
    diag_error(d, node_span(n, "smoothing"),
               "softmax_cross_entropy smoothing is %g, outside 0 <= smoothing < 1", s);
    return false;
}

/* Rejects a single class: its probability is always 1, so the loss is always 0. */
static bool check_classes(const Node *n, Diag *d)
{
    const Shape *x = &n->in[0]->shape;

    if (x->dim[x->rank - 1] > 1)
        return true;
    diag_error(d, n->span, "softmax_cross_entropy of %s, 1 class, is always 0",
               shape_text(diag_arena(d), x));
    check_note(n, 0, d);
    diag_help(d, "end the model with a number for each class: dense(10) for ten%s",
              x->rank == 1 ? "; for a yes or no keep dense(1) and use loss = sigmoid_cross_entropy"
                           : "; two for a yes or no: dense(2)");
    return false;
}

static bool check_ignored(const Node *n, Diag *d)
{
    const Node *t = n->in[1];
    if (!node_attr(n, "ignore"))
        return true;
    const int64_t ignored = node_int(n, "ignore");
    const bool outside = ignored < 0 || ignored >= INT32_MAX;
    if (t->op->leaf == LEAF_LABEL && t->shape.rank > 0 && !outside)
        return true;
    if (outside) {
        diag_error(d, node_span(n, "ignore"), "softmax_cross_entropy ignore is %lld, below 0%s",
                   (long long)ignored, ignored < 0 ? "" : " or above 2147483646");
        diag_help(d, "name the class that is not scored: ignore = 255; -1 is never scored");
        return false;
    }
    diag_error(d, node_span(n, "ignore"),
               "ignore is for a target with a class for each position or pixel, and '%s' is %s",
               t->name ? t->name : "label", shape_text(diag_arena(d), &t->shape));
    diag_help(d,
              "declare it as target = mask: class[64, 64], or leave out samples without a class");
    return false;
}

static bool check_compared(const Node *n, Diag *d)
{
    const Shape *x = &n->in[0]->shape;
    if (check_labelled(n, d))
        return true;
    if (x->rank == 3 && n->in[1]->shape.rank == 0 && n->in[1]->dtype == DT_I32)
        diag_help(d, "for a class for each pixel, declare target = mask: class[%lld, %lld]",
                  (long long)x->dim[1], (long long)x->dim[2]);
    return false;
}

/* Whether a weight is negative or not finite, or all are 0. */
static bool bad_weights(const Attr *w)
{
    bool bad = false, any = false;
    for (int i = 0; i < w->nlist; i++) {
        bad |= !(w->reals[i] >= 0 && w->reals[i] <= FLT_MAX);
        any |= w->reals[i] > 0;
    }
    return bad || !any;
}

static bool check_weights(const Node *n, Diag *d)
{
    const Shape *x = &n->in[0]->shape;
    if (!node_attr(n, "class_weights"))
        return true;
    const Attr *w = node_list(n, "class_weights");
    const int64_t classes = x->dim[x->rank - 1];
    if (w->nlist != classes) {
        diag_error(d, node_span(n, "class_weights"),
                   "softmax_cross_entropy has %d class_weights for %lld classes", w->nlist,
                   (long long)classes);
        check_note(n, 0, d);
        diag_help(d, "give a weight for each class, in the order of the classes");
        return false;
    }
    if (bad_weights(w)) {
        diag_error(d, node_span(n, "class_weights"),
                   "class_weights are numbers of at least 0, and one is above 0");
        diag_help(d, "a class with weight 2 counts twice, and one with weight 0 does not");
        return false;
    }
    if (!node_attr(n, "smoothing") || node_float(n, "smoothing") == 0)
        return true;
    diag_error(d, node_span(n, "class_weights"),
               "softmax_cross_entropy has smoothing or class_weights, not both");
    diag_help(d, "leave out one of them");
    return false;
}

static bool softmax_cross_entropy_shape(Node *n, Diag *d)
{
    return check_compared(n, d) && check_ignored(n, d) && check_classes(n, d) &&
           check_smoothing(n, d) && check_weights(n, d) && loss_result(n, d);
}

/* The pixels of images x (N, K, H, W) as a sequence (N, H W, K); x itself if t are no classes of
 * its pixels. */
static Node *pixels_of(Graph *g, Node *x, const Node *t, Node *attrs)
{
    const Shape *s = &x->shape;
    const int64_t axes[] = {1, 2, 0}, flat[] = {s->dim[1] * s->dim[2], s->dim[0]};
    Node turn = {.op = op_find("transpose"), .span = attrs->span},
         row = {.op = op_find("reshape"), .span = attrs->span};
    if (s->rank != 3 || t->shape.rank != 2 || x->dtype != DT_REAL || s->dim[1] != t->shape.dim[0] ||
        s->dim[2] != t->shape.dim[1])
        return x;
    node_set_ints(g, &turn, "axes", axes, 3);
    node_set_ints(g, &row, "shape", flat, 2);
    node_set_int(g, attrs, "pixels", flat[0]);
    return op_make_like(g, "reshape", &row, 1, op_make_like(g, "transpose", &turn, 1, x));
}

static Node *softmax_cross_entropy_build(Graph *g, Node *const *x, int nx, const Node *attrs,
                                         const char *path, Diag *d)
{
    Node like = {.op = attrs->op, .span = attrs->span};
    (void)path; /* it has no parameters */
    node_copy_attrs(g, &like, attrs);
    Node *in[2] = {pixels_of(g, x[0], x[1], &like), x[1]};
    Node *n = graph_add(g, attrs->op, in, nx, attrs->span);
    node_copy_attrs(g, n, &like);
    return softmax_cross_entropy_shape(n, d) ? n : NULL;
}

static void softmax_cross_entropy_gradient(Grad *gr, Node *n, Node *dy)
{
    grad_add(gr, n->in[0],
             op_make_like(grad_graph(gr), "softmax_cross_entropy_dx", n, 3, n->in[0], n->in[1],
                          dy));
}

/* Calls fn; with smoothing, calls fn_smooth, whose last argument is the smoothing. */
static void softmax_cross_entropy_call(const Node *n, Call *c, const char *fn)
{
    const bool smooth = node_attr(n, "smoothing") && node_float(n, "smoothing") > 0;

    if (node_attr(n, "class_weights")) {
        loss_call_weighted(n, c, arena_printf(c->arena, "%s_weighted", fn),
                           node_list(n, "class_weights")->s);
        return;
    }
    loss_call_labelled(n, c, smooth ? arena_printf(c->arena, "%s_smooth", fn) : fn);
    if (smooth)
        call_text(c, "%.17g", node_float(n, "smoothing"));
}

static void softmax_cross_entropy_kernel(const Node *n, Call *c)
{
    softmax_cross_entropy_call(n, c, "softmax_cross_entropy");
}

static void softmax_cross_entropy_kernel_dx(const Node *n, Call *c)
{
    softmax_cross_entropy_call(n, c, "softmax_cross_entropy_dx");
}

const Op op_softmax_cross_entropy[] = {
    {.name = "softmax_cross_entropy",
     .brief = "the loss of classification: minus the logarithm of the true class's softmax",
     .shapes = "x (N, K)   label t (N), 0 <= t < K   y (N)\n"
               "x (N, T, K)   label t (N, T), -1 <= t < K   y (N)\n"
               "x (N, K, H, W)   label t (N, H, W), -1 <= t < K   y (N)",
     .formula = "y = log(sum over j of exp(x[j] - m)) - (x[t] - m)   m = max x\n"
                "smoothing s: y += s (x[t] - mean of x)\n"
                "sequence: y = sum over the positions with t >= 0, divided by their mean number in "
                "a sample "
                "of the batch; image: the same over its pixels",
     .derivative = "dx[i] = (softmax(x)[i] - [i = t]) dy\n"
                   "smoothing s: dx[i] += s ([i = t] - 1 / K) dy",
     .note =
         "The program's loss is the mean over the batch. The label -1 marks a position that is not "
         "counted: the loss of sequences is the mean over all positions that are. K is at least 2. "
         "An image has a class for each pixel if the recipe declares it: target = mask: class[64, "
         "64] ([masks](../how-to/masks.md)). class_weights w: y is multiplied by w[t], and the "
         "program's "
         "loss is the sum over the batch, divided by the sum of w[t]. "
         "Smoothing: Szegedy et al. 2016, \"Rethinking the inception architecture for computer "
         "vision\", section 7.",
     .arg = {{"x", ARG_TENSOR, NULL,
              "a number for each class: (N, K), (N, T, K) of sequences, or (N, K, H, W) of images"},
             {"label", ARG_TENSOR, NULL,
              "the class of each sample (N), position (N, T) or pixel (N, H, W); -1: not counted"},
             {"smoothing", ARG_FLOAT, "none",
              "share of the true class that is spread over all classes, at least 0 and below 1; "
              "default: 0"},
             {"ignore", ARG_INT, "none",
              "a class of positions or pixels that are not counted, such as 255"},
             {"class_weights", ARG_REALS, "none",
              "a factor for each class, at most 64; the loss is then a weighted mean"}},
     .outputs = OUTPUTS_CLASSES,
     .shape = softmax_cross_entropy_shape,
     .build = softmax_cross_entropy_build,
     .gradient = softmax_cross_entropy_gradient,
     .price = loss_price,
     .kernel = softmax_cross_entropy_kernel,
     .example = "# As a loss it may stand alone, as here, or in a sum: "
                "softmax_cross_entropy(output, label) + ...\n"
                "model example(x: f32[6]) {\n"
                "    return dense(x, 4)\n"
                "}\n" EXAMPLE_TRAIN},
    {.name = "softmax_cross_entropy_dx",
     .brief = "gradient of softmax_cross_entropy",
     .arg = {{"x", ARG_TENSOR, NULL, "vectors"},
             {"label", ARG_TENSOR, NULL, "classes"},
             {"dy", ARG_TENSOR, NULL, "gradient of each sample's loss"},
             {"smoothing", ARG_FLOAT, "none", "as above"}},
     .flags = OP_HIDDEN,
     .shape = check_like_first,
     .price = loss_price,
     .kernel = softmax_cross_entropy_kernel_dx},
    {0}};
