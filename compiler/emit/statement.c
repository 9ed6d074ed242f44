/* statement.c -- writes a call of a step: the comment above it (line of the model, shapes,
 * algorithm, price), and the clock after it.
 */
#include "emit/writer.h"
#include "ops/step_price.h"
#include <string.h>

/* The first batched input. */
static const Node *source_of(const Node *n)
{
    for (int i = 0; i < n->nin; i++)
        if (n->in[i]->shape.batched && n->in[i]->dtype == DT_REAL &&
            n->in[i]->op->leaf != LEAF_CONST)
            return n->in[i];
    return NULL;
}

/* Predicted rate of the textbook FLOPs, as a share of the peak of a nominal core. */
static double expected_share(Writer *w, const Price *p)
{
    const Market m = market_of(w->g, w->in->options, w->g->step->chunk);
    return p->textbook / (1e9 * core_peak_gflops(m.core, m.real) * market_seconds(&m, p->cycles));
}

/* The layer of n, or of its first input: "conv1" for a tanh after conv1. */
static const char *layer_of(Arena *a, const Node *n)
{
    const char *layer = node_serves(a, n);
    while (!*layer && n->nin > 0)
        n = n->in[0], layer = node_serves(a, n);
    return layer;
}

/* "(N, 1, 28, 28) -> (N, 20, 12, 12)   direct, pooled before tanh   576.0 kFLOP a sample, 58 % of
 * peak expected", on two lines if one would be too long; a sum over samples begins with its name.
 * On a GPU the text begins with operation and layer: "conv2d conv1: (N, 1, 28, 28) -> ...". */
static void price_comment(Writer *w, Text *t, const Node *n, const Price *p, const char *indent)
{
    const double f = n->op->cost ? n->op->cost(n).flops * (double)node_steps(n) : 0;
    const Node *from = source_of(n);
    const char *words = step_price_words(w->arena, n, p);
    Text how = text_new(w->arena);

    const char *layer = layer_of(w->arena, n);
    if (w->in->options->cuda) /* one launch runs several calls, so each is named */
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
    /* a line has 100 columns, of which slashes, stars and blanks take 9 */
    if (how.len && strlen(indent) + t->len + how.len > 91)
        text_printf(t, "\n%s *", indent);
    if (how.len)
        text_printf(t, "   %s", how.s);
}

/* Adds the line of the model before the first of its calls. */
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

/* A line ends after a comma between arguments of a call, not after a comma of an inner call.  The
 * first `guard` characters have a call in parentheses: the commas of this call are one level
 * deeper. */
static void wrap(Text *t, const char *s, size_t guard, const char *indent)
{
    const size_t lead = strlen(indent);
    const char *const end = s + guard;
    size_t column = lead;
    int depth = 0;

    text_add(t, indent);
    for (const char *p = s; *s; p++) {
        depth += (*p == '(' || *p == '{') - (*p == ')' || *p == '}');
        if (*p && !(*p == ',' && depth == (p < end ? 2 : 1)))
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

void statement_wrapped(Text *t, const char *s, const char *indent)
{
    wrap(t, s, 0, indent);
}

void statement_guarded(Text *t, const char *test, const char *s, const char *indent)
{
    const char *guard = arena_printf(t->arena, "if (!%s)", test);
    wrap(t, arena_printf(t->arena, "%s %s", guard, s), strlen(guard), indent);
}

const char *statement_tick(Writer *w, const char *what, const char *fn, Span at, double flops,
                           const char *algorithm, Price p)
{
    const Market m = market_of(w->g, w->in->options, w->g->step->chunk);
    const char *place =
        at.source ? arena_printf(w->arena, "%s:%d", source_base(at.source), at.line) : "";

    if (!w->g->training || w->in->options->cuda) /* on a GPU, clocks would measure launches only */
        return "";
    text_printf(&w->calls, "    {%s, \"%s\", %s, %.17g, \"%s\", %.4g, %.4g, %.4g},\n",
                quote_c(w->arena, what), fn, quote_c(w->arena, place), flops, algorithm,
                p.executed / (double)w->g->step->batch, 1e6 * market_seconds(&m, p.cycles),
                p.weights + p.values);
    return arena_printf(w->arena, " TICK(%d);", w->ncall++);
}

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
