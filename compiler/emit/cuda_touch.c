/* cuda_touch.c -- what a stage touches, read from its own text: every pointer that a kernel gets is one of FIXED, LOCAL, SAMPLES, BATCH
 * and PARTIAL with the name of a planned piece of memory, and its parameters say which of them are only read.
 */
#include "emit/cuda_touch.h"
#include <string.h>

static const Kernel *kernel_named(const Writer *w, const char *name, size_t len)
{
    for (int i = 0; i < w->nkernel; i++)
        if (!strncmp(w->kernel[i].name, name, len) && !w->kernel[i].name[len])
            return &w->kernel[i];
    return NULL;
}

static bool is_named(const char *its, const char *name, size_t len)
{
    return its && !strncmp(its, name, len) && !its[len];
}

/* The piece of memory with that constant. */
static const Node *node_named(const Writer *w, const char *name, size_t len)
{
    const Graph *g = w->g;
    for (int i = 0; i < g->nnode; i++)
        if (node_root(g->node[i]) == g->node[i] && is_named(w->of_node[writer_graph(w)][g->node[i]->id], name, len))
            return g->node[i];
    return NULL;
}

static const Param *param_named(const Writer *w, const char *name, size_t len)
{
    for (int i = 0; i < w->g->nparam; i++)
        if (is_named(name_of_param(w, w->g->param[i]), name, len))
            return w->g->param[i];
    return NULL;
}

static int64_t real_bytes(const Writer *w)
{
    return strcmp(w->in->dtype, "f64") ? 4 : 8;
}

/* All of what the name stands for; what is not found: all of that memory. */
bool touch_of(const Writer *w, const char *text, size_t len, Touch *t)
{
    static const struct {
        const char *word;
        int memory;
    } macros[] = {{"FIXED(", MEMORY_FIXED}, {"LOCAL(", MEMORY_SCRATCH}, {"SAMPLES(", MEMORY_SAMPLES}, {"BATCH(", MEMORY_SHARD}, {"PARTIAL(", MEMORY_SHARD}, {"(shard + ", MEMORY_SHARD}};
    const char *s = arena_strndup(w->arena, text, len), *at = NULL;
    size_t k = 0;

    for (; k < sizeof macros / sizeof *macros && !at; k += !at)
        at = strstr(s, macros[k].word);
    if (!at)
        return false;
    at += strlen(macros[k].word);
    if (strncmp(macros[k].word, "(shard", 6) != 0)
        at = strchr(at, ',') + 2;
    const size_t name = strcspn(at, "),");
    *t = (Touch){.memory = macros[k].memory, .to = INT64_MAX};
    const Param *p = t->memory == MEMORY_FIXED ? param_named(w, at, name) : NULL;
    const Node *n = p ? NULL : node_named(w, at, name);
    if (p)
        t->from = p->offset, t->to = p->offset + p->count_memory * real_bytes(w);
    if (n)
        t->from = n->offset, t->to = n->offset + (n->shape.batched ? w->g->step->chunk : 1) * pointer_bytes(w, n);
    return true;
}

bool touch_in_order(const Writer *w, const char *text, size_t len, Order o, Touch *t)
{
    if (!touch_of(w, text, len, t))
        return false;
    if (t->to - t->from == o.count * real_bytes(w))
        t->order = o.text, t->count = o.count;
    return true;
}

/* Arguments of a call, split at the commas outside of parentheses. */
static int split(const char *s, const char **begin, size_t *len)
{
    int n = 0, depth = 0;
    begin[0] = s;
    for (; depth >= 0 && *s && n < STAGE_ARGUMENTS - 1; s++) {
        depth += (*s == '(' || *s == '{') - (*s == ')' || *s == '}');
        if ((*s != ',' || depth > 0) && depth >= 0)
            continue;
        len[n] = (size_t)(s - begin[n]), n++;
        begin[n] = s + 1 + (s[1] == ' ');
    }
    return n;
}

int touch_split(Arena *a, const char *list, const char *part[STAGE_ARGUMENTS])
{
    size_t len[STAGE_ARGUMENTS];
    const int n = split(arena_printf(a, "%s)", list), part, len);
    for (int i = 0; i < n; i++)
        part[i] = arena_strndup(a, part[i], len[i]);
    return n;
}

int touches_of(const Writer *w, const char *s, Order o, Order other, Touch touch[STAGE_ARGUMENTS])
{
    const char *open = strchr(s, '('), *arg[STAGE_ARGUMENTS], *param[STAGE_ARGUMENTS];
    size_t arg_len[STAGE_ARGUMENTS], param_len[STAGE_ARGUMENTS];
    const Kernel *k = kernel_named(w, s, (size_t)(open - s) - strlen("_stage"));
    const int n = split(open + 1, arg, arg_len), of = k ? split(arena_printf(w->arena, "%s)", k->params), param, param_len) : 0;
    int found = 0;

    for (int i = 0; i < n; i++) {
        Touch *t = &touch[found];
        const Order its = o.which >> i & 1 ? o : other.which >> i & 1 ? other : (Order){0};
        if (!touch_in_order(w, arg[i], arg_len[i], its, t))
            continue;
        t->writes = i < of ? strncmp(param[i], "const ", 6) != 0 : true;
        found++;
    }
    return found;
}

bool touch_conflict(const Touch *a, const Touch *b)
{
    if (a->memory != b->memory || a->to <= b->from || b->to <= a->from || !(a->writes || b->writes))
        return false;
    const bool own = a->order && b->order && !strcmp(a->order, b->order) && a->count == b->count;
    return !(own && a->from == b->from && a->to == b->to);
}
