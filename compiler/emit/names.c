/* names.c -- constants of the generated file: a readable and unique name for each value. */
#include "emit/writer.h"
#include "runtime/constants.h"
#include <ctype.h>
#include <string.h>

static const char *upper(Arena *a, const char *s)
{
    char *t = arena_strdup(a, s);

    for (char *p = t; *p; p++)
        *p = isalnum((unsigned char)*p) ? (char)toupper((unsigned char)*p) : '_';
    return t;
}

/* The entry of a name in the table, or the empty entry for it. */
static Name *find_name(const Writer *w, const char *text)
{
    uint64_t at = text_hash(text, strlen(text), 0);

    while (w->name[at &= w->size - 1].text && strcmp(w->name[at].text, text) != 0)
        at++;
    return &w->name[at];
}

static void widen_table(Writer *w)
{
    const Name *old = w->name;
    const uint64_t size = w->size;

    w->size = size ? 2 * size : 64;
    w->name = arena_alloc(w->arena, w->size * sizeof *w->name);
    for (uint64_t i = 0; i < size; i++)
        if (old[i].text)
            *find_name(w, old[i].text) = old[i];
}

/* Returns false if the name is in use. */
static bool take_name(Writer *w, const char *text)
{
    if (2 * w->nname >= w->size)
        widen_table(w);
    Name *n = find_name(w, text);
    if (n->text)
        return false;
    *n = (Name){.text = text, .next = 2};
    w->nname++;
    return true;
}

static bool is_word(const char *s, size_t n)
{
    for (const char *p = RT_RESERVED_WORDS; (p = strchr(p, ' ')) && p[1]; p++)
        if (strncmp(p + 1, s, n) == 0 && p[1 + n] == ' ')
            return true;
    return false;
}

static bool reserved(const char *name)
{
    const char *end = strchr(name, '_');

    return is_word(name, strlen(name)) || (end && is_word(name, (size_t)(end + 1 - name)));
}

static const char *unique(Writer *w, const char *base)
{
    const char *name = base;

    if (reserved(base))
        take_name(w, base); /* the base itself is now in use, so the result has a number */
    while (!take_name(w, name) || (name != base && is_word(name, strlen(name))))
        name = arena_printf(w->arena, "%s_%d", base, find_name(w, base)->next++);
    return name;
}

static const char *state_name(const Writer *w, const char *param, int k)
{
    return arena_printf(w->arena, "%s_STATE%d", param, k);
}

/* Makes the constants of parameters. "a.b.weight", "a_b.weight" and "A_b.weight" get different
 * constants, and so do their states.  The table also has an entry with the name of the parameter.
 * This name contains a dot, so it differs from all constants. */
void name_params(Writer *w, const Graph *g)
{
    for (int i = 0; i < g->nparam; i++) {
        const char *base = upper(w->arena, g->param[i]->name), *name = unique(w, base);

        while (!take_name(w, state_name(w, name, 0)) || !take_name(w, state_name(w, name, 1)))
            name = unique(w, base);
        take_name(w, g->param[i]->name);
        find_name(w, g->param[i]->name)->param = name;
    }
}

const char *name_of_param(const Writer *w, const Param *p)
{
    return find_name(w, p->name)->param;
}

const char *name_of_state(const Writer *w, const Param *p, int k)
{
    return state_name(w, name_of_param(w, p), k);
}

const char *name_of(Writer *w, const Node *n)
{
    const char **slot = &w->of_node[writer_graph(w)][n->id];
    const char *stem = n->name ? n->name : n->op->name;

    if (*slot)
        return *slot;
    if (n->op->leaf == LEAF_PARAM) /* all graphs share the parameter */
        return *slot = name_of_param(w, n->param);
    if (n->op->flags & OP_SIDE)
        stem =
            arena_printf(w->arena, n->in[0]->op->product == PRODUCT_DENSE ? "%s_open" : "%s_index",
                         n->in[0]->name ? n->in[0]->name : "pool");
    else if (n->op->copy)
        stem = arena_printf(w->arena, "%s_%s%s", n->in[0]->name, n->op->copy,
                            node_attr(n, "dx") && node_int(n, "dx") ? "_dx" : "");
    else if (n->backward && !n->name)
        stem = arena_printf(w->arena, "d_%s", stem);
    return *slot = unique(w, arena_printf(w->arena, "%s%s", w->prefix, upper(w->arena, stem)));
}

const char *sum_name(const Sum *s)
{
    return s->param ? s->param->name : s->update ? s->update->in[0]->name : s->root->op->name;
}
