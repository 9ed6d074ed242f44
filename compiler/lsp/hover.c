/* hover.c -- what stands under the cursor: shapes, parameters, FLOPs, memory, time, and the
 * manual. */
#include "base/text.h"
#include "lsp/prices.h"
#include "lsp/words.h"
#include "tool/manual.h"
#include <string.h>

typedef struct Hover {
    Arena *arena;
    const Document *d;
    const Analysis *a; /* that has the values: d->now or d->good */
    Text t;
} Hover;

/* ---- figures */

typedef struct Sums {
    int times; /* evaluations */
    double flops;
    int64_t parameters;
} Sums;

enum { COVERED = 1, COUNTED = 2 };

/* Adds a node of the call, and the parameters that it reads first. */
static void add_node(Sums *sum, const Node *n, char *state)
{
    if (n->op->cost)
        sum->flops += n->op->cost(n).flops * (double)node_steps(n);
    for (int i = 0; i < n->nin; i++) {
        const Node *p = n->in[i];
        if (p->op->leaf != LEAF_PARAM || state[p->id] & COUNTED)
            continue;
        state[p->id] |= COUNTED;
        sum->parameters += p->param->average ? 0 : shape_count(&p->param->file);
    }
}

/* The sums over all evaluations of a call in the graph of its last evaluation. */
static Sums sums_of(Arena *arena, const Analysis *a, const Expr *e)
{
    Sums sum = {0};
    const Traced *last = traced_of(a, e);
    const Graph *g = last->graph;
    char *state = arena_alloc(arena, (size_t)g->next_id + 1);
    for (const Traced *t = last; t; t = traced_before(a, t)) {
        if (t->graph != g)
            continue;
        sum.times++;
        for (int id = t->first; id < t->end; id++)
            state[id] |= COVERED;
    }
    for (int i = 0; i < g->nnode; i++)
        if (state[g->node[i]->id] & COVERED)
            add_node(&sum, g->node[i], state);
    return sum;
}

static const char *duration(Arena *a, double seconds)
{
    return seconds >= 1      ? arena_printf(a, "%.3g s", seconds)
           : seconds >= 1e-3 ? arena_printf(a, "%.3g ms", 1e3 * seconds)
                             : arena_printf(a, "%.3g us", 1e6 * seconds);
}

static void add_prices(Hover *h, const Expr *e)
{
    const PriceRow *row = price_row(h->d, e);
    if (!row)
        return;
    const PriceTotal *all = &h->d->prices->total;
    if (row->fixed || row->values) {
        text_add(&h->t, "- planned memory: ");
        if (row->fixed)
            text_printf(&h->t, "%s for parameters and their states%s",
                        text_bytes(h->arena, row->fixed), row->values ? ", " : "\n");
        if (row->values)
            text_printf(&h->t, "%s for other values\n", text_bytes(h->arena, row->values));
    }
    if (row->seconds > 0)
        text_printf(&h->t,
                    "- predicted time: %s, %.1f %% of a training step of %lld samples on one core "
                    "(%s)\n",
                    duration(h->arena, row->seconds), 100 * row->seconds / all->seconds,
                    (long long)all->batch, all->cpu);
    else
        text_add(&h->t, "- predicted time: none of its own; a neighbouring call computes it\n");
}

/* Adds "(N, 1, 28, 28) -> (N, 20, 24, 24)", and the sums. */
static void add_call(Hover *h, const Expr *e)
{
    const Traced *t = e && e->kind == EX_CALL ? traced_of(h->a, e) : NULL;
    const char *out = t ? value_text(h->arena, t->v) : NULL;
    Text in = text_new(h->arena);
    if (!t)
        return;
    for (int i = 0; i < e->args.n; i++) {
        const Traced *x = traced_of(h->a, e->args.v[i].value);
        if (x && value_tensors(x->v))
            text_printf(&in, "%s%s", in.len ? ", " : "", value_text(h->arena, x->v));
    }
    if (out)
        text_printf(&h->t, "%s%s**%s**\n\n", in.s, in.len ? " → " : "", out);
    else if (t->v.kind == V_LAYER)
        text_add(&h->t, "a layer, which has no shape before it is called\n\n");
    const Sums sum = sums_of(h->arena, h->a, e);
    if (sum.times > 1)
        text_printf(&h->t,
                    "- evaluated %d times; the shape is that of the last time, the figures are "
                    "sums\n",
                    sum.times);
    if (sum.parameters)
        text_printf(&h->t, "- parameters: %s\n", text_commas(h->arena, sum.parameters));
    if (sum.flops > 0)
        text_printf(&h->t, "- FLOPs: %s for each sample, forward\n",
                    text_commas(h->arena, (int64_t)sum.flops));
    add_prices(h, e);
    text_add(&h->t, "\n");
}

/* ---- the manual */

static void add_code(Hover *h, const char *language, const char *code)
{
    const size_t n = strlen(code);
    text_printf(&h->t, "```%s\n%s%s```\n\n", language, code, n && code[n - 1] == '\n' ? "" : "\n");
}

static void add_part(Hover *h, const char *heading, const char *lines)
{
    if (!lines || !*lines)
        return;
    text_printf(&h->t, "%s\n\n", heading);
    add_code(h, "text", lines);
}

static void add_op(Hover *h, const Op *op, const Expr *call)
{
    add_code(h, "tenon", manual_signature(h->arena, op, 80));
    add_call(h, call);
    text_printf(&h->t, "%s\n\n", op->brief ? op->brief : "");
    for (const OpArg *g = op->arg; g < op->arg + OP_ARGS && g->name; g++)
        if (g->about)
            text_printf(&h->t, "- `%s` (%s): %s\n", g->name, manual_type(g->type), g->about);
    text_add(&h->t, "\n");
    add_part(h, "Shapes", op->shapes);
    add_part(h, "Formula", op->formula);
    add_part(h, "Gradient", manual_derivative(h->arena, op));
    if (op->note)
        text_printf(&h->t, "%s\n", op->note);
}

/* "(N, 10)"; several outputs: "logits (N, 10), size (N, 1)" */
static const char *outputs_text(Arena *a, const Graph *g)
{
    const char *all = "";
    for (int i = 0; i < g->noutput; i++)
        all = arena_printf(a, "%s%s%s %s", all, i ? ", " : "", g->outputs[i].name,
                           shape_text(a, &g->outputs[i].shape));
    return g->noutput ? all : shape_text(a, &g->output->shape);
}

static void add_model(Hover *h, const Decl *decl)
{
    const Graph *g = h->d->good ? h->d->good->front.layers : NULL;
    int64_t parameters = 0;
    double flops = 0;
    if (!g || strcmp(g->name, decl->name) != 0)
        return;
    for (int i = 0; i < g->nparam; i++)
        parameters += g->param[i]->average ? 0 : shape_count(&g->param[i]->file);
    for (int i = 0; i < g->nnode; i++)
        if (g->node[i]->op->cost)
            flops += g->node[i]->op->cost(g->node[i]).flops * (double)node_steps(g->node[i]);
    text_printf(&h->t, "- output: %s\n- parameters: %s\n- FLOPs: %s for each sample, forward\n",
                outputs_text(h->arena, g), text_commas(h->arena, parameters),
                text_commas(h->arena, (int64_t)flops));
    if (h->d->prices) {
        const PriceTotal *p = &h->d->prices->total;
        text_printf(&h->t,
                    "- planned memory: %s with %d thread%s, without the data set\n"
                    "- predicted time: %s for a training step of %lld samples on one core (%s)\n",
                    text_bytes(h->arena, p->planned), p->threads, p->threads == 1 ? "" : "s",
                    duration(h->arena, p->seconds), (long long)p->batch, p->cpu);
    }
    text_add(&h->t, "\n");
}

static void add_function(Hover *h, const Symbol *y)
{
    add_code(h, "tenon", words_declaration(h->arena, y->decl));
    if (y->decl->kind == DECL_MODEL)
        add_model(h, y->decl);
    add_call(h, y->e);
    const char *comment = words_comment(h->arena, y->decl);
    if (*comment)
        text_printf(&h->t, "%s\n", comment);
}

static void add_local(Hover *h, const Symbol *y)
{
    const Traced *t = traced_of(h->a, y->e);
    const char *value = !t || (y->param && y->defines) ? NULL
                        : value_tensors(t->v)          ? shapes_text(h->arena, h->a, y->e)
                                                       : value_text(h->arena, t->v);
    const char *head = y->param ? words_param(h->arena, y->param) : y->name;
    add_code(h, "tenon", head);
    if (value)
        text_printf(&h->t, "**%s**\n\n", value);
    text_printf(&h->t, "%s of %s `%s`\n", y->param ? "parameter" : "variable",
                decl_word(y->decl->kind), y->decl->name);
    if (t && t->v.kind == V_LAYER)
        text_printf(&h->t, "\na layer: `%s`\n", t->v.layer->name);
}

static void add_arg(Hover *h, const Symbol *y)
{
    for (const OpArg *g = y->op->arg; g < y->op->arg + OP_ARGS && g->name; g++)
        if (strcmp(g->name, y->name) == 0) {
            add_code(h, "tenon", words_argument(h->arena, g));
            text_printf(&h->t, "%s: %s\n\nargument of `%s`\n", manual_type(g->type),
                        g->about ? g->about : "", y->op->name);
        }
}

static void add_key(Hover *h, const TrainKey *k)
{
    text_printf(&h->t, "`%s`\n\n%s\n\n", k->name, words_plain(h->arena, k->about));
    if (k->field.want == WANT_INT && k->field.name)
        text_printf(&h->t, "%s\n\n", form_values(h->arena, &k->field, ""));
    if (k->fallback)
        text_printf(&h->t, "default: %s\n", k->fallback);
    else if (!k->example && k->field.name)
        text_printf(&h->t, "default: %.10g\n", k->field.fallback);
    if (k->forms)
        text_add(&h->t, "\nforms: ");
    for (const Form *f = k->forms; f && f->name; f++)
        text_printf(&h->t, "%s`%s`", f == k->forms ? "" : ", ", f->name);
}

static void add_form(Hover *h, const Form *f)
{
    add_code(h, "tenon", form_signature(h->arena, f, 1000));
    text_printf(&h->t, "%s\n\n", f->about ? f->about : "");
    for (const Field *x = f->field; x < f->field + FORM_FIELDS && x->name; x++)
        text_printf(&h->t, "- `%s`: %s (%s)\n", x->name, x->about ? x->about : "",
                    form_values(h->arena, x, ""));
    text_add(&h->t, "\n");
    add_part(h, "Formula", f->formula);
}

static void add_symbol(Hover *h, const Symbol *y)
{
    switch (y->kind) {
    case SYMBOL_FUNCTION:
        add_function(h, y);
        break;
    case SYMBOL_LOCAL:
        add_local(h, y);
        break;
    case SYMBOL_OP:
        add_op(h, y->op, y->e);
        break;
    case SYMBOL_NUMBER:
        text_printf(&h->t, "`%s`: a function that the compiler computes\n\n", y->name);
        add_call(h, y->e);
        break;
    case SYMBOL_ARG:
        add_arg(h, y);
        break;
    case SYMBOL_KEY:
        add_key(h, y->key);
        break;
    case SYMBOL_FORM:
        add_form(h, y->form);
        break;
    case SYMBOL_FIELD:
        text_printf(&h->t, "`%s`\n\n%s\n\n%s\n", words_field(h->arena, y->field),
                    y->field->about ? y->field->about : "", form_values(h->arena, y->field, ""));
        break;
    case SYMBOL_IMPORT:
        text_printf(&h->t, "%s\n", y->file ? y->file->name : "this file cannot be read");
        break;
    }
}

/* The same symbol in the last analysis without errors, which has values for it. */
static const Symbol *good_symbol(const Document *d, const Symbol *y)
{
    if (!d->good || d->good == d->now || traced_of(d->now, y->e))
        return NULL;
    const int line = document_good_line(d, y->at.line);
    const Symbol *old = line ? symbol_at(d->good, line, y->at.col) : NULL;
    return old && old->kind == y->kind ? old : NULL;
}

cJSON *answer_hover(Server *s, const cJSON *params)
{
    Analysis *a;
    int line, col;
    const Document *d = document_place(s, params, &a, &line, &col);
    const Symbol *y = d ? symbol_at(a, line, col) : NULL;
    if (!y)
        return NULL;
    const Symbol *good = good_symbol(d, y);
    Hover h = {s->arena, d, good ? d->good : a, text_new(s->arena)};
    add_symbol(&h, good ? good : y);
    cJSON *hover = cJSON_CreateObject(), *contents = cJSON_AddObjectToObject(hover, "contents");
    cJSON_AddStringToObject(contents, "kind", s->plain ? "plaintext" : "markdown");
    json_add_text(s->arena, contents, "value", h.t.s);
    cJSON_AddItemToObject(hover, "range", range_json(&a->lines, y->at));
    return hover;
}
