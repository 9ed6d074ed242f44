/* names.c -- constants of the generated file: one a value, readable, unique. */
#include "emit/writer.h"
#include <ctype.h>
#include <string.h>

const char *name_upper(Arena *a, const char *s)
{
    char *t = arena_strdup(a, s);

    for (char *p = t; *p; p++)
        *p = isalnum((unsigned char)*p) ? (char)toupper((unsigned char)*p) : '_';
    return t;
}

const char *name_c_string(Arena *a, const char *s)
{
    Text t = text_new(a);

    text_add(&t, "\"");
    for (; *s; s++)
        if (*s == '"' || *s == '\\')
            text_printf(&t, "\\%c", *s);
        else if ((unsigned char)*s < 32)
            text_printf(&t, "\\%03o", (unsigned char)*s);
        else
            text_addn(&t, s, 1);
    text_add(&t, "\"");
    return t.s;
}

/* The place of a name in the table, or the empty one where it belongs. */
static Name *find(const Writer *w, const char *text)
{
    uint64_t at = text_hash(text, strlen(text), 0);

    while (w->name[at &= w->room - 1].text && strcmp(w->name[at].text, text) != 0)
        at++;
    return &w->name[at];
}

static void widen(Writer *w)
{
    const Name *old = w->name;
    const uint64_t room = w->room;

    w->room = room ? 2 * room : 64;
    w->name = arena_alloc(w->arena, w->room * sizeof *w->name);
    for (uint64_t i = 0; i < room; i++)
        if (old[i].text)
            *find(w, old[i].text) = old[i];
}

/* False when it is taken already. */
static bool take(Writer *w, const char *text)
{
    if (2 * w->nname >= w->room)
        widen(w);
    Name *n = find(w, text);
    if (n->text)
        return false;
    *n = (Name){text, 2};
    w->nname++;
    return true;
}

void name_reserve(Writer *w, const char *name)
{
    take(w, name);
}

static const char *unique(Writer *w, const char *base)
{
    const char *name = base;

    while (!take(w, name))
        name = arena_printf(w->arena, "%s_%d", base, find(w, base)->next++);
    return name;
}

const char *name_of(Writer *w, const Node *n)
{
    const char **slot = &w->of_node[w->g->training ? 0 : 1][n->id];
    const char *stem = n->name ? n->name : n->op->name;

    if (*slot)
        return *slot;
    if (node_is(n, "param")) /* one copy serves both graphs */
        return *slot = name_upper(w->arena, n->param->name);
    if (node_is(n, "side"))
        stem = arena_printf(w->arena, "%s_index", n->in[0]->name ? n->in[0]->name : "pool");
    else if (node_is(n, "conv2d_pack"))
        stem = arena_printf(w->arena, "%s_%s", n->in[0]->name,
                            node_int(n, "dx") ? "packed_dx" : "packed");
    else if (node_is(n, "dense_turn"))
        stem = arena_printf(w->arena, "%s_turned", n->in[0]->name);
    else if (n->backward && !n->name)
        stem = arena_printf(w->arena, "d_%s", stem);
    return *slot = unique(w, arena_printf(w->arena, "%s%s", w->prefix, name_upper(w->arena, stem)));
}
