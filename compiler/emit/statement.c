/* statement.c -- writes a call of a step, and the comment above it: line of the model, shapes, and
 * what the target adds (EmitTarget).
 */
#include "emit/writer.h"
#include <string.h>

/* The first input that has real numbers for each sample and is no constant; NULL: none. */
static const Node *source_of(const Node *n)
{
    for (int i = 0; i < n->nin; i++)
        if (n->in[i]->shape.batched && n->in[i]->dtype == DT_REAL &&
            n->in[i]->op->leaf != LEAF_CONST)
            return n->in[i];
    return NULL;
}

/* Writes "(N, 1, 28, 28) -> (N, 20, 12, 12)  direct, pooled before tanh  576.0 kFLOP a sample, 58 %
 * of peak expected", on two lines if one would be too long.  The target writes the words before and
 * after the shapes. */
static void price_comment(Writer *w, Text *t, const Node *n, const char *indent)
{
    const double flops = n->op->cost ? n->op->cost(n).flops * (double)node_steps(n) : 0;
    const Node *from = source_of(n);
    const char *cost = w->target->cost(w, n, flops);

    text_add(t, w->target->title(w->arena, n));
    if (from)
        text_printf(t, "%s -> ", shape_text(w->arena, &from->shape));
    text_add(t, shape_text(w->arena, &n->shape));
    /* a line has 100 columns, of which slashes, stars and blanks take 9 */
    if (*cost && strlen(indent) + t->len + strlen(cost) > 91)
        text_printf(t, "\n%s *", indent);
    if (*cost)
        text_printf(t, "   %s", cost);
}

/* Writes the line of the model above the first call that this line causes. */
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

/* Writes s, with a line break where a line would be too long.  A line ends after a comma between
 * arguments of a call, not after a comma of an inner call.  The first `guard` characters are a test
 * such as "if (!f(a, b))", in which the arguments are one level of parentheses deeper. */
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

const char *statement_about(Writer *w, const Node *n, int *line, const char *indent)
{
    Text about = text_new(w->arena), p = text_new(w->arena);

    origin(w, &about, n, line, indent);
    price_comment(w, &p, n, indent);
    text_printf(&about, "%s/* %s */\n", indent, p.s);
    return about.s;
}
