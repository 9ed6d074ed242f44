/* spell.c -- writes calls of a GPU program as C++: kernels with literal sizes, launches, functions
 * of phases.  spell_recurrence.c writes the kernels of loops over time.
 *
 * A __global__ function with literal sizes calls the device function, so that nvcc specialises it.
 * The constant `NAME_blocks` is the number of blocks.  Equal kernels are written once. */
#include "cuda/launch.h"
#include "cuda/lower.h"
#include "cuda/spell_kernel.h"
#include <string.h>

/* ---------------------------------------- the body of a kernel */

typedef struct Body {
    Text text;
    const Sizes *sizes; /* the first struct of literals in the text */
    const char *named;  /* what the text has in place of this struct; NULL: the struct */
} Body;

static void body_sizes(Body *b, const Sizes *s)
{
    const bool named = b->named && !b->sizes;
    text_add(&b->text, named ? b->named : sizes_text(b->text.arena, s, true));
    b->sizes = b->sizes ? b->sizes : s;
}

static void separate(Text *t, const char *next)
{
    text_add(t, *next == '\n' ? "," : ", ");
}

/* Writes "  conv2d(y, a, b, Conv{ ... });": calls the device function of c, with `suffix` after its
 * name and `before` before its arguments.  If the call takes over the order of another call, the
 * results of that call are the last argument. */
static void spell_device(Body *b, const CudaCall *c, const char *suffix, const char *before)
{
    Arena *a = b->text.arena;
    text_printf(&b->text, "    %s%s(%s", c->device ? c->device : c->form, suffix, before);
    for (int i = 0; i < c->narg; i++) {
        const Argument *g = &c->arg[i];
        const char *inner = g->inner ? g->inner : g->name;
        if (i > 0)
            separate(&b->text, inner ? inner : "");
        if (g->sizes)
            body_sizes(b, g->sizes);
        else
            text_add(&b->text, inner);
    }
    if (c->taken_order)
        text_printf(&b->text, ", [=](auto f) { %s, f); }", cuda_order_text(a, c->taken_order));
    text_add(&b->text, ");\n");
}

/* Writes a loop over packs.  The code stands in a function whose parameters are the numbers of the
 * packs, under the names of their operands. */
static void spell_packs(Text *t, const CudaCall *c)
{
    text_printf(t, "    each_pack(%lld, [=](unsigned %s", (long long)c->order->count, c->index);
    for (int i = 0; i < c->noperand; i++)
        if (c->operand[i].order)
            text_printf(t, ", auto %s", c->arg[i].name);
    text_printf(t, ") {\n%s    }", c->code);
    for (int i = 0; i < c->noperand; i++)
        if (c->operand[i].order)
            text_printf(t, ", %s", c->arg[i].name);
    text_add(t, ");\n");
}

/* Writes a loop over numbers, in any order or in the order of another call. */
static void spell_loop(Body *b, const CudaCall *c)
{
    Text *t = &b->text;
    /* with the index `at`, the code begins with the indices of dimensions (nest_indices) */
    const bool braces = strcmp(c->index, "at") == 0;
    const Order *o = c->taken_order;

    if (c->order->walk == WALK_PACKS) {
        spell_packs(t, c);
        return;
    }
    if (!o) {
        text_printf(t, "    FOR_EACH(%s, %lld)%s\n%s%s", c->index, (long long)c->natural->count,
                    braces ? " {" : "", c->code, braces ? "    }\n" : "");
        return;
    }
    if (o->sizes) { /* the sizes of the order are those of the kernel */
        text_printf(t, "    %s_results(", o->walk == WALK_POOL ? "pool" : o->form);
        body_sizes(b, o->sizes);
        if (o->walk == WALK_POOL)
            text_printf(t, ", [=](auto f) { %s, f); }", cuda_order_text(t->arena, o->through));
    } else {
        text_printf(t, "    %s", cuda_order_text(t->arena, o));
    }
    text_printf(t, ", [=](unsigned %s, int) {\n%s    });\n", c->index, c->code);
}

static Body body_of(Arena *a, const CudaCall *c, const char *named)
{
    Body b = {.text = text_new(a), .named = named};
    if (c->index)
        spell_loop(&b, c);
    else if (c->code)
        text_add(&b.text, c->code);
    else
        spell_device(&b, c, c->taken_order ? "_in_order" : "", "");
    return b;
}

/* ------------------------------------------------------------------------------- kernels */

/* The number of blocks of a call.  A call that takes over the order of another call has the blocks
 * of that call. */
static Blocks *blocks_of(Arena *a, const CudaCall *c)
{
    Blocks *b = arena_alloc(a, sizeof *b);
    const Order *o = c->taken_order;
    Argument *size = arena_alloc(a, sizeof *size * (size_t)(c->narg + 1));

    *b = c->blocks;
    while (o && o->through)
        o = o->through;
    if (o) {
        *size =
            (Argument){.sizes = o->sizes, .inner = arena_printf(a, "%lld", (long long)o->count)};
        *b = (Blocks){.form = o->walk == WALK_SUMS ? "sum" : o->form, .arg = size, .narg = 1};
    } else if (!b->form && !b->number) {
        b->form = c->form, b->arg = size;
        for (int i = 0; i < c->narg; i++)
            if (c->arg[i].counts)
                size[b->narg++] = c->arg[i];
    }
    return b;
}

/* Returns the index of the kernel in Writer.kernel. */
static int kernel_add(Writer *w, const char *base, const Signature *s, const Body *body,
                      Blocks *blocks, const CudaCall *call)
{
    const int before = w->nkernel;
    const char *name = kernel_define(w, base, s->params.s, body->text.s);
    int i = 0;

    while (w->kernel[i].name != name)
        i++;
    if (i == before) {
        CudaKernel *k = w->kernel[i].cuda = arena_alloc(w->arena, sizeof *k);
        k->blocks = blocks, k->names = s->names.s;
        k->sizes = body->sizes, k->call = call;
    }
    return i;
}

static CudaCall *call_copy(Arena *a, const CudaCall *c)
{
    CudaCall *copy = arena_alloc(a, sizeof *copy);
    *copy = *c;
    return copy;
}

int spell_kernel_of(Writer *w, const CudaCall *c)
{
    const Body b = body_of(w->arena, c, NULL);
    const bool in_order = c->taken_order && !c->index;
    const char *base = in_order ? arena_printf(w->arena, "%s_in_order", c->form) : c->form;
    const Signature s = kernel_signature(w->arena, c->arg, c->narg, false);
    return kernel_add(w, base, &s, &b, blocks_of(w->arena, c), call_copy(w->arena, c));
}

void spell_define(Writer *w, CudaCall *const *call, int n)
{
    for (int i = 0; i < n; i++)
        if (call[i]->kind == KIND_KERNEL)
            spell_kernel_of(w, call[i]);
}

/* ------------------------------------------------------------------------------- a call */

const char *spell_stage(Writer *w, const CudaCall *c)
{
    const int i = spell_kernel_of(w, c);
    Kernel *k = &w->kernel[i];
    k->cuda->staged = true;
    return arena_printf(w->arena, "%s_stage(%s);", k->name,
                        kernel_signature(w->arena, c->arg, c->narg, true).values.s);
}

const char *spell_sizes(Writer *w, const CudaCall *c)
{
    const int i = spell_kernel_of(w, c);
    return arena_printf(w->arena, "%s_size()", w->kernel[i].name);
}

const char *spell_library(Writer *w, const CudaCall *c)
{
    Text t = text_new(w->arena);
    text_printf(&t, "%s(", c->form);
    for (int i = 0; i < c->narg; i++)
        text_printf(&t, "%s%s", i ? ", " : "", c->arg[i].inner);
    text_add(&t, ")");
    return t.s;
}

static const char *launch_alone(Writer *w, const CudaCall *c)
{
    const int i = spell_kernel_of(w, c);
    Kernel *k = &w->kernel[i];
    k->cuda->launched = true;
    return arena_printf(w->arena, "LAUNCH(%s, %s);", k->name,
                        kernel_signature(w->arena, c->arg, c->narg, false).values.s);
}

/* ---------------------------------------- a launch of several calls */

/* A name that no parameter has: `wish`, if this name is unused and not a single letter, else the
 * next letter. */
static const char *fresh_name(const GroupKernel *k, const char *wish)
{
    static const char letters[] = "abcdefghijklmnopqsuvwx";
    bool used = !wish[1];
    for (int i = 0; i < k->nparameter; i++)
        used |= !strcmp(k->parameter[i].name, wish);
    if (!used)
        return wish;
    const int n = k->nparameter, all = (int)strlen(letters);
    return n < all ? arena_printf(k->w->arena, "%c", letters[n])
                   : arena_printf(k->w->arena, "%c%d", letters[n % all], n / all);
}

/* Adds the argument as a parameter, without const if one of the calls writes to it. */
const char *spell_parameter(GroupKernel *k, const Argument *g)
{
    for (int i = 0; i < k->nparameter; i++) {
        Argument *its = &k->parameter[i];
        if (strcmp(its->value, g->value) != 0 || strcmp(its->type, g->type) != 0)
            continue;
        its->constant &= g->constant;
        return its->name;
    }
    Argument copy = *g;
    copy.name = fresh_name(k, g->name);
    ARENA_PUSH(k->w->arena, k->parameter, k->nparameter, copy);
    return copy.name;
}

const char *spell_argument(GroupKernel *k, const Argument *g)
{
    for (int i = 0; i < k->nlocal; i++)
        if (!strcmp(k->local[i].value, g->value))
            return k->local[i].name;
    return spell_parameter(k, g);
}

/* "conv2d_tanh": the bases of the members, without equal neighbours, up to a maximal length. */
static const char *group_name(Writer *w, const int *member, int n)
{
    enum { LONG = 40 };
    Text t = text_new(w->arena);
    const char *last = "";
    for (int i = 0; i < n; i++) {
        const char *base = w->kernel[member[i]].base;
        if (!strcmp(base, last))
            continue;
        if (t.len + strlen(base) > LONG) {
            text_add(&t, "_more");
            break;
        }
        text_printf(&t, "%s%s", t.len ? "_" : "", base);
        last = base;
    }
    return t.s;
}

/* "most(a_blocks, b_blocks)" of the members that take the first blocks, or the last blocks. */
static const char *most_blocks(Writer *w, CudaCall *const *call, const int *member, int n,
                               bool last)
{
    Text t = text_new(w->arena);
    int names = 0;
    for (int i = 0; i < n; i++) {
        bool counted = call[i]->last != last;
        for (int m = 0; m < i; m++)
            counted |= member[m] == member[i];
        if (!counted)
            text_printf(&t, "%s%s_blocks", names++ ? ", " : "", w->kernel[member[i]].name);
    }
    return names > 1 ? arena_printf(w->arena, "most(%s)", t.s) : names ? t.s : NULL;
}

/* Returns as many blocks as the largest member needs.  Members that take the last blocks of the
 * launch run at the same time as the others, so their blocks are added. */
static Blocks *group_blocks(Writer *w, CudaCall *const *call, const int *member, int n)
{
    Blocks *b = arena_alloc(w->arena, sizeof *b);
    const char *first = most_blocks(w, call, member, n, false),
               *last = most_blocks(w, call, member, n, true);
    b->number = first && last ? arena_printf(w->arena, "%s + %s", first, last)
                : last        ? last
                              : first;
    return b;
}

void spell_member(GroupKernel *k, const char *function, const CudaCall *c)
{
    const char *comma = "";
    text_add(&k->body, function);
    for (int i = 0; i < c->narg; i++) {
        if (!c->arg[i].type)
            continue;
        text_printf(&k->body, "%s%s", comma, spell_argument(k, &c->arg[i]));
        comma = ", ";
    }
    text_add(&k->body, ");\n");
}

const char *spell_group(GroupKernel *k, const char *base, Blocks *blocks, int64_t numbers)
{
    const Signature s = kernel_signature(k->w->arena, k->parameter, k->nparameter, false);
    const Body body = {.text = k->body};
    const int i = kernel_add(k->w, base, &s, &body, blocks, NULL);
    const Kernel *all = &k->w->kernel[i];
    all->cuda->launched = true, all->cuda->numbers = numbers;
    return arena_printf(k->w->arena, "%s(%s, %s);", numbers ? "LAUNCH_RECURRENCE" : "LAUNCH",
                        all->name, s.values.s);
}

/* The number of calls, from the first on, that share one loop over numbers; 0: it has no loop. */
static int loop_length(CudaCall *const *call, int n)
{
    int k = 0;
    while (k < n && call[k]->loop && call[k]->loop == call[0]->loop)
        k++;
    return k;
}

static const char *launch_group(Writer *w, CudaCall *const *call, int n)
{
    Arena *a = w->arena;
    GroupKernel all = {.w = w, .body = text_new(a)};
    int *member = arena_alloc(a, sizeof *member * (size_t)n);

    for (int i = 0; i < n; i++)
        member[i] = spell_kernel_of(w, call[i]);
    for (int i = 0; i < n;) {
        const int length = loop_length(call + i, n - i);
        if (!length) {
            Kernel *k = &w->kernel[member[i]];
            k->cuda->member = true;
            spell_member(&all, arena_printf(a, "    %s_body(", k->name), call[i++]);
            continue;
        }
        text_printf(&all.body, "    FOR_EACH(at, %lld) {\n", (long long)call[i]->natural->count);
        for (const int end = i + length; i < end; i++) {
            Kernel *k = &w->kernel[member[i]];
            k->cuda->looped = true;
            spell_member(&all, arena_printf(a, "        %s_at(at, ", k->name), call[i]);
        }
        text_add(&all.body, "    }\n");
    }
    return spell_group(&all, group_name(w, member, n), group_blocks(w, call, member, n), 0);
}

/* "LAUNCH(conv2d_1, y, a, b);": several calls have one kernel, which calls them all. */
static const char *spell_launch(Writer *w, CudaCall *const *call, int n)
{
    if (call[0]->recurrence)
        return spell_recurrence(w, call, n);
    return n == 1 ? launch_alone(w, call[0]) : launch_group(w, call, n);
}

/* ------------------------------------------------------------------------------- a function */

/* The call at index i, which shares no launch.  If it is a call of a library that may have no
 * algorithm for it, *test is this call, and *statement is the launch that runs if the call fails;
 * else *test is NULL.  Returns the number of calls: 2 with such a launch, else 1. */
static int call_statement(Writer *w, const CudaCalls *l, int i, const char **test,
                          const char **statement)
{
    const bool fallback = i + 1 < l->n && l->call[i + 1]->fallback;

    if (l->call[i]->kind == KIND_KERNEL)
        *statement = launch_alone(w, l->call[i]);
    else if (!fallback)
        *statement = arena_printf(w->arena, "%s;", spell_library(w, l->call[i]));
    else
        *test = spell_library(w, l->call[i]), *statement = launch_alone(w, l->call[i + 1]);
    return 1 + fallback;
}

static void add_statement(Text *t, const char *test, const char *statement, const char *indent)
{
    if (test)
        statement_guarded(t, test, statement, indent);
    else
        statement_wrapped(t, statement, indent);
}

static void spell_comment(Writer *w, const CudaCall *c, int *line)
{
    if (c->first)
        text_add(&w->body, statement_about(w, c->node, line, c->indent));
    if (c->comment)
        text_printf(&w->body, "%s/* %s */\n", c->indent, c->comment);
}

/* Writes the launch that begins with call i; returns the index after its last call. */
static int launch_statement(Writer *w, const CudaCalls *l, int i, int *line)
{
    const CudaCall *c = l->call[i];
    const char *test = NULL, *statement = NULL;
    int end = i + 1;

    if (c->kind == KIND_LIBRARY) {
        end = i + call_statement(w, l, i, &test, &statement);
    } else {
        while (end < l->n && l->call[end]->launch == c->launch)
            end++;
        spell_define(w, l->call + i, end - i);
        statement = spell_launch(w, l->call + i, end - i);
    }
    for (int k = i; k < end; k++)
        spell_comment(w, l->call[k], line);
    statement = arena_printf(w->arena, "%s%s%s", c->before ? c->before : "", statement,
                             c->after ? c->after : "");
    add_statement(&w->body, test, statement, l->call[end - 1]->indent);
    return end;
}

void spell_function(Writer *w, CudaCalls *l)
{
    int line = 0;
    l->graph = w->g;
    ARENA_PUSH(w->arena, w->cuda->function, w->cuda->nfunction, l);
    for (int i = 0; i < l->n;)
        if (l->call[i]->kind == KIND_LINE)
            text_add(&w->body, l->call[i++]->form);
        else
            i = launch_statement(w, l, i, &line);
}

bool spell_alone(Writer *w, const Node *n, int *line, const char *indent)
{
    Text all = text_new(w->arena);
    const char *first_test = NULL;

    cuda_list(w, n->phase, 0);
    cuda_lower(w, n);
    const CudaCalls *l = w->cuda->list;
    launch_pack(w, w->cuda->list);
    w->cuda->list = NULL;
    for (int i = 0; i < l->n;) {
        const char *test = NULL, *statement;
        const bool first = i == 0;
        i += call_statement(w, l, i, &test, &statement);
        if (first)
            first_test = test;
        else
            text_add(&all, test ? arena_printf(w->arena, " if (!%s) ", test) : " ");
        text_add(&all, statement);
    }
    if (l->n > 0) {
        text_add(&w->body, statement_about(w, n, line, indent));
        add_statement(&w->body, first_test, all.s, indent);
    }
    return l->n > 0;
}

/* ------------------------------------------------------------------------------- the kernels */

static const char *blocks_text(Arena *a, const Kernel *k)
{
    const Blocks *b = k->cuda->blocks;
    Text t = text_new(a);
    bool named = false;

    if (!b->form)
        return b->number;
    text_printf(&t, "%s_blocks(", b->form);
    for (int i = 0; i < b->narg; i++) {
        const Sizes *s = b->arg[i].sizes;
        const bool same = s && !named && k->cuda->sizes && sizes_same(s, k->cuda->sizes);
        named |= same;
        text_printf(&t, "%s%s", i ? ", " : "",
                    !s     ? b->arg[i].inner
                    : same ? arena_printf(a, "%s_size()", k->name)
                           : sizes_text(a, s, true));
    }
    text_add(&t, ")");
    return t.s;
}

/* Writes the function of one number of a loop: the statements of the loop, or "max_pool_dx_at(at,
 * ...".  sizes: the name of the sizes, or NULL. */
static void spell_number(Text *t, const Kernel *k, const char *sizes)
{
    const CudaCall *c = k->cuda->call;
    Body b = {.text = text_new(t->arena), .named = sizes};

    text_printf(t, "DEVICE void %s_at(unsigned %s, %s)\n{\n", k->name, c->index ? c->index : "at",
                k->params);
    if (c->code)
        text_shifted(&b.text, c->code, -4);
    else
        spell_device(&b, c, "_at", "at, ");
    text_printf(t, "%s}\n", b.text.s);
}

/* Writes the function of the literal sizes, the number of blocks, and the kernel.  The sizes and
 * the body are written once. */
static void spell_kernel(const Writer *w, Text *t, const Kernel *k)
{
    Arena *a = w->arena;
    const char *body = k->body, *sizes = NULL;

    if (k->cuda->sizes) {
        text_printf(t, "SIZE %s %s_size()\n{\n", k->cuda->sizes->type, k->name);
        statement_wrapped(t, arena_printf(a, "return %s;", sizes_text(a, k->cuda->sizes, true)),
                          "    ");
        text_add(t, "}\n");
        sizes = arena_printf(a, "%s_size()", k->name);
        body = body_of(a, k->cuda->call, sizes).text.s;
    }
    if (k->cuda->launched || k->cuda->member || k->cuda->looped)
        text_printf(t, "constexpr int %s_blocks = %s;\n", k->name, blocks_text(a, k));
    if (k->cuda->looped || k->cuda->stepped)
        spell_number(t, k, sizes);
    if (k->cuda->member || (k->cuda->staged && k->cuda->launched)) {
        text_printf(t, "DEVICE void %s_body(%s)\n{\n%s}\n", k->name, k->params, body);
        body = arena_printf(a, "    %s_body(%s);\n", k->name, k->cuda->names);
    }
    if (k->cuda->staged)
        text_printf(t, "STAGE %s_stage(%s)\n{\n%s}\n", k->name, k->params, body);
    if (k->cuda->numbers)
        text_printf(t, "constexpr int %s_numbers = %lld;\n", k->name, (long long)k->cuda->numbers);
    if (k->cuda->launched)
        text_printf(t, "%s %s(%s)\n{\n%s}\n", k->cuda->numbers ? "RECURRENCE" : "KERNEL", k->name,
                    k->params, body);
    text_add(t, "\n");
}

void spell_kernels(const Writer *w, Text *t)
{
    for (int i = 0; i < w->nkernel; i++)
        if (w->kernel[i].cuda->launched || w->kernel[i].cuda->staged || w->kernel[i].cuda->member ||
            w->kernel[i].cuda->looped || w->kernel[i].cuda->stepped)
            spell_kernel(w, t, &w->kernel[i]);
}
