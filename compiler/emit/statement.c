/* statement.c -- a call of a step as it is printed: under the model's line that it comes from, with shapes, algorithm and price, and
 * with the clock behind it.
 */
#include "emit/writer.h"
#include "ops/step_price.h"
#include <string.h>

/* What flows in: the first input with a value a sample. */
static const Node *source_of(const Node *n)
{
    for (int i = 0; i < n->nin; i++)
        if (n->in[i]->shape.batched && n->in[i]->dtype == DT_REAL && !node_is(n->in[i], "const"))
            return n->in[i];
    return NULL;
}

/* Share of a nominal core's peak that the textbook's operations of a step are expected to run at. */
static double expected_share(Writer *w, const Price *p)
{
    const Market m = market_of(w->g, w->in->options, w->g->step->chunk);
    return p->textbook / (1e9 * core_peak_gflops(m.core, m.real) * market_seconds(&m, p->cycles));
}

/* Its own layer, or that of the value it reads first: "conv1" of a tanh behind conv1. */
static const char *layer_of(Arena *a, const Node *n)
{
    const char *layer = node_serves(a, n);
    while (!*layer && n->nin > 0)
        n = n->in[0], layer = node_serves(a, n);
    return layer;
}

/* "(N, 1, 28, 28) -> (N, 20, 12, 12)   direct, pooled before tanh   576.0 kFLOP a sample, 58 % of
 * peak expected", on two lines where one is too long; the name of the sum where samples are added
 * up.  On a GPU "conv2d conv1: (N, 1, 28, 28) -> ...": operation and layer. */
static void price_comment(Writer *w, Text *t, const Node *n, const Price *p, const char *indent)
{
    const double f = n->op->cost ? n->op->cost(n).flops * (double)node_steps(n) : 0;
    const Node *from = source_of(n);
    const char *words = step_price_words(w->arena, n, p);
    Text how = text_new(w->arena);

    const char *layer = layer_of(w->arena, n);
    if (w->in->options->cuda) /* one launch runs several calls, so each says which it is */
        text_printf(t, "%s%s%s: ", n->op->name, *layer ? " " : "", layer);
    else if (n->place == PLACE_PARTIAL && n->name)
        text_printf(t, "%s: ", n->name);
    if (from)
        text_printf(t, "%s -> ", shape_text(w->arena, &from->shape));
    text_add(t, shape_text(w->arena, &n->shape));
    if (f >= 1e3 && w->in->options->cuda)
        text_printf(&how, "%s a sample", emit_flop_text(w->arena, f));
    else if (f >= 1e3)
        text_printf(&how, "%s%s%s a sample, %.0f %% of peak expected", words, *words ? "   " : "",
                    emit_flop_text(w->arena, f), 100 * expected_share(w, p));
    else if (!w->in->options->cuda)
        text_add(&how, words);
    if (how.len && strlen(indent) + t->len + how.len > 91) /* slashes, stars and blanks: 9 */
        text_printf(t, "\n%s *", indent);
    if (how.len)
        text_printf(t, "   %s", how.s);
}

/* The model's line, once before the calls that come from it. */
static void origin(Writer *w, Text *t, const Node *n, int *line, const char *indent)
{
    if (!n->span.source || n->span.line == *line)
        return;
    const char *text = source_line(w->arena, n->span.source, n->span.line);
    while (*text == ' ' || *text == '\t')
        text++;
    *line = n->span.line;
    text_printf(t, "\n%s/* %s%s:%d  %s */\n", indent, n->backward ? "backward of " : "",
                quote_c_comment(w->arena, source_base(n->span.source)), n->span.line,
                quote_c_comment(w->arena, text));
}

/* One call, broken after its own commas where a line would pass 100 columns; "if (!CALL) CALL", too. */
void statement_wrapped(Text *t, const char *s, const char *indent)
{
    const size_t lead = strlen(indent);
    size_t column = lead;
    int depth = 0, own = strncmp(s, "if (", 4) ? 1 : 2;

    text_add(t, indent);
    for (const char *p = s; *s; p++) {
        depth += (*p == '(' || *p == '{') - (*p == ')' || *p == '}');
        own = *p == ')' && depth == 0 ? 1 : own;
        if (*p && !(*p == ',' && depth == own))
            continue;
        const size_t piece = (size_t)(p - s) + (*p != 0);
        const bool fresh = column + piece > 100 && column > lead;
        if (fresh)
            text_printf(t, "\n%s    ", indent);
        text_addn(t, s + fresh, piece - fresh);
        column = (fresh ? lead + 3 : column) + piece;
        s += piece;
        if (!*p)
            break;
    }
    text_add(t, "\n");
}

/* The clock behind a call of the training step, and its row in the table of calls. */
const char *statement_tick(Writer *w, const char *what, const char *call, Span at, double flops,
                           const char *algorithm, Price p)
{
    const Market m = market_of(w->g, w->in->options, w->g->step->chunk);
    const char *place =
        at.source ? arena_printf(w->arena, "%s:%d", source_base(at.source), at.line) : "";

    if (!w->g->training ||
        w->in->options->cuda) /* clocks of a GPU's calls would see their launches alone */
        return "";
    text_printf(&w->calls, "    {%s, \"%.*s\", %s, %.17g, \"%s\", %.4g, %.4g, %.4g},\n",
                quote_c(w->arena, what), (int)strcspn(call, "("), call,
                quote_c(w->arena, place), flops, algorithm,
                p.executed / (double)w->g->step->batch, 1e6 * market_seconds(&m, p.cycles),
                p.weights + p.values);
    return arena_printf(w->arena, " TICK(%d);", w->ncall++);
}

/* Textbook operations a sample: of convolutions and products, as in flops_per_sample. */
double statement_flops(const Node *n)
{
    return emit_counts_flops(n) ? n->op->cost(n).flops * (double)node_steps(n) : 0;
}

const char *statement_about(Writer *w, const Node *n, int *line, const char *indent)
{
    const Price cost = step_price(w->g, n, w->in->options);
    Text about = text_new(w->arena), p = text_new(w->arena);

    origin(w, &about, n, line, indent);
    price_comment(w, &p, n, &cost, indent);
    text_printf(&about, "%s/* %s */\n", indent, p.s);
    return about.s;
}

void statement_write(Writer *w, Text *t, const Node *n, int *line, const char *indent)
{
    const char *s = kernel_needed(n) ? kernel_statement(w, n) : "";

    if (!*s)
        return;
    const Price cost = step_price(w->g, n, w->in->options);
    const char *serves = node_serves(w->arena, n);
    text_add(t, statement_about(w, n, line, indent));
    statement_wrapped(t,
                      arena_printf(w->arena, "%s%s", s,
                                   statement_tick(w, *serves ? serves : n->op->name, s, n->span,
                                                  statement_flops(n),
                                                  step_price_words(w->arena, n, &cost), cost)),
                      indent);
}
