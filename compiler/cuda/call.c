/* call.c -- makes the calls of a GPU program, and finds conflicts between calls from their
 * operands. */
#include "cuda/call.h"
#include "runtime/constants.h"
#include <string.h>

/* ------------------------------------------------------------------------------- making calls */

void cuda_list(Writer *w, int phase, int64_t times)
{
    w->cuda->list = arena_alloc(w->arena, sizeof *w->cuda->list);
    *w->cuda->list = (CudaCalls){.indent = "    ", .phase = phase, .times = times};
}

static CudaCall *push_call(Writer *w, CudaCall call)
{
    CudaCalls *l = w->cuda->list;
    CudaCall *c = arena_alloc(w->arena, sizeof *c);
    *c = call;
    c->indent = l->indent, c->phase = l->phase, c->metric = c->owned = -1;
    if (c->kind == KIND_KERNEL || c->kind == KIND_LIBRARY)
        c->needs_barrier = l->needs_barrier, l->needs_barrier = false;
    ARENA_PUSH(w->arena, l->call, l->n, c);
    return c;
}

CudaCall *cuda_add(Writer *w, const char *form, const Node *n)
{
    const bool once = !n || node_is(n, "scan_state"); /* a state is set before its loop */
    const int64_t times = w->cuda->list->times * (once ? 1 : node_steps(n));
    return push_call(w, (CudaCall){.form = form, .node = n, .times = times});
}

const Sizes *cuda_sizes(const CudaCall *c)
{
    for (int i = 0; i < c->narg; i++)
        if (c->arg[i].sizes)
            return c->arg[i].sizes;
    return NULL;
}

int64_t call_launches(const CudaCall *c)
{
    return c->recurrence ? c->times / node_steps(c->node) : c->times;
}

void cuda_line(Writer *w, const char *text)
{
    push_call(w, (CudaCall){.kind = KIND_LINE, .form = text, .times = w->cuda->list->times});
}

void cuda_metrics_here(Writer *w)
{
    push_call(w, (CudaCall){.kind = KIND_METRICS});
}

int cuda_real_bytes(const Writer *w)
{
    return dtype_bytes(w->in->dtype);
}

void cuda_keep_apart(Writer *w, int64_t bytes)
{
    w->cuda->apart_bytes = bytes > w->cuda->apart_bytes ? bytes : w->cuda->apart_bytes;
}

int64_t cuda_numbers(const Writer *w, const Node *n)
{
    return shape_count(&n->shape) * (n->shape.batched ? w->g->step->chunk : 1);
}

int64_t cuda_bytes(const Writer *w, const Node *n)
{
    return (n->shape.batched ? w->g->step->chunk : 1) * pointer_bytes(w, n);
}

static Memory memory_of(const Writer *w, const Node *root)
{
    if (root == w->samples)
        return MEMORY_SAMPLES;
    switch (root->place) {
    case PLACE_FIXED:
        return MEMORY_FIXED;
    case PLACE_LOCAL:
        return MEMORY_SCRATCH;
    case PLACE_BATCH:
    case PLACE_PARTIAL:
        return MEMORY_SHARD;
    default:
        return MEMORY_UNKNOWN;
    }
}

/* An operand with all bytes of the buffer in which n lies. */
static Operand operand_of(const Writer *w, const Node *n, bool writes)
{
    const Node *b = node_root(pointer_is_sum(w, n) ? n->in[0] : n);
    const Param *p = node_is(b, "param") ? b->param : NULL;
    const int64_t from = p ? p->offset : b->offset,
                  bytes = p ? p->count_memory * cuda_real_bytes(w) : cuda_bytes(w, b);
    return (Operand){n, p, memory_of(w, b), from, from + bytes, writes, false, NULL};
}

static const char *number_text(const Writer *w, int64_t n)
{
    return arena_printf(w->arena, "%lld", (long long)n);
}

/* A pointer to the value of n: as a parameter, or as a literal. */
static Argument given_pointer(Writer *w, const Given *g, const Node *n)
{
    if (!n)
        return (Argument){.inner = "nullptr"};
    const char *at = g->arg.value ? g->arg.value : pointer_to(w, n);
    if (g->kind == GIVEN_DIRECT)
        return (Argument){.inner = at};
    return (Argument){.type = arena_printf(w->arena, "%s *", pointer_type(n)),
                      .name = g->arg.name,
                      .constant = !g->operand.writes,
                      .value = at};
}

static Blocks given_blocks(const Writer *w, const Given *g)
{
    const char *n = number_text(w, g->number);
    if (!g->form)
        return (Blocks){.number = n, .count = g->number};
    Argument *a = arena_alloc(w->arena, sizeof *a);
    a->inner = n;
    const int64_t of_block = !strcmp(g->form, "sum")           ? 1
                             : !strcmp(g->form, "column_join") ? RT_THREADS / RT_WARP
                             : !strcmp(g->form, "pack")        ? RT_THREADS * RT_PACK
                                                               : RT_THREADS,
                  count = ceil_div(g->number, of_block);
    return (Blocks){.form = g->form, .count = count, .arg = a, .narg = 1};
}

static void give(Writer *w, CudaCall *c, const Given *g)
{
    const Node *n = g->operand.node;
    Argument arg = g->arg;

    if (g->kind == GIVEN_BLOCKS) {
        c->blocks = given_blocks(w, g);
        return;
    }
    if (g->kind == GIVEN_NUMBER)
        arg.inner = number_text(w, g->number);
    if (g->kind == GIVEN_POINTER || g->kind == GIVEN_DIRECT)
        arg = given_pointer(w, g, n);
    if (g->kind != GIVEN_ACCESS)
        ARENA_PUSH(w->arena, c->arg, c->narg, arg);
    if (n || g->kind == GIVEN_ADDRESS || g->kind == GIVEN_ACCESS)
        ARENA_PUSH(w->arena, c->operand, c->noperand,
                   n ? operand_of(w, n, g->operand.writes) : g->operand);
}

CudaCall *cuda_give_list(Writer *w, CudaCall *c, const Given *g)
{
    for (; g->kind != GIVEN_END; g++)
        give(w, c, g);
    return c;
}

/* ------------------------------------------------------------------------------- orders */

const Order *cuda_order(Arena *a, Order o)
{
    Order *copy = arena_alloc(a, sizeof *copy);
    *copy = o;
    return copy;
}

bool cuda_same_order(const Order *a, const Order *b)
{
    if (!a || !b || a == b)
        return a == b;
    return a->walk == b->walk && a->count == b->count && !a->form == !b->form &&
           (!a->form || !strcmp(a->form, b->form)) && sizes_same(a->sizes, b->sizes) &&
           cuda_same_order(a->through, b->through);
}

bool cuda_is_product(const Order *o)
{
    return o && o->walk != WALK_EACH && o->walk != WALK_PACKS && o->walk != WALK_CHANNELS;
}

/* The order in which the call processes operand o; NULL for a part of a value, and for a value of
 * two-byte numbers. */
static const Order *order_of(const Writer *w, const Operand *o, const Order *order)
{
    return order && o->to - o->from == order->count * cuda_real_bytes(w) ? order : NULL;
}

void cuda_give_order(const Writer *w, CudaCall *c, const Order *o)
{
    c->order = o;
    for (int i = 0; i < c->noperand; i++)
        c->operand[i].order = c->operand[i].walked ? order_of(w, &c->operand[i], o) : NULL;
}

void cuda_give_natural(const Writer *w, CudaCall *c, Order o)
{
    c->natural = cuda_order(w->arena, o);
    cuda_give_order(w, c, c->natural);
}

const char *cuda_order_text(Arena *a, const Order *o)
{
    if (o->walk == WALK_SUMS)
        return arena_printf(a, "sum_results(%lld", (long long)o->count);
    const char *sizes = sizes_text(a, o->sizes, true);
    if (o->walk == WALK_POOL)
        return arena_printf(a, "pool_results(%s, [=](auto f) { %s, f); }", sizes,
                            cuda_order_text(a, o->through));
    return arena_printf(a, "%s_results(%s", o->form, sizes);
}

/* ------------------------------------------------------------------------------- conflicts */

bool cuda_conflict(const Operand *a, const Operand *b)
{
    if (a->memory == MEMORY_UNKNOWN || b->memory == MEMORY_UNKNOWN)
        return true;
    if (a->memory != b->memory || a->to <= b->from || b->to <= a->from || !(a->writes || b->writes))
        return false;
    const bool same_thread = a->order && cuda_same_order(a->order, b->order);
    return !(same_thread && a->from == b->from && a->to == b->to);
}

bool pending_conflict_one(const Pending *p, const Operand *o)
{
    for (int i = 0; i < p->n; i++)
        if (cuda_conflict(o, &p->operand[i]))
            return true;
    return false;
}

bool pending_conflict(const Pending *p, const CudaCall *c)
{
    for (int i = 0; i < c->noperand; i++)
        if (pending_conflict_one(p, &c->operand[i]))
            return true;
    return false;
}

void pending_add_one(Writer *w, Pending *p, const Operand *o)
{
    ARENA_PUSH(w->arena, p->operand, p->n, *o);
}

void pending_add(Writer *w, Pending *p, const CudaCall *c)
{
    for (int i = 0; i < c->noperand; i++)
        pending_add_one(w, p, &c->operand[i]);
}

/* Gives c the order o.  Returns true if c then conflicts with no pending operand, so that no
 * barrier is needed before c. */
static bool can_follow(Writer *w, const Pending *p, CudaCall *c, const Order *o)
{
    cuda_give_order(w, c, o);
    return !pending_conflict(p, c);
}

static bool follow_product(Writer *w, const Pending *p, CudaCall *c)
{
    const Order *own = c->order;
    for (int k = 0; k < p->n; k++) {
        const Order *o = p->operand[k].order;
        if (!cuda_is_product(o) || o->count != own->count || !can_follow(w, p, c, o))
            continue;
        c->taken_order = o;
        return true;
    }
    cuda_give_order(w, c, own);
    return false;
}

/* Gives each window of a pooling gradient to the thread that has computed its number of dy, if the
 * order of dy allows it. */
static void follow_pool(Writer *w, const Pending *p, CudaCall *c)
{
    Operand *dy = &c->operand[c->noperand - 1];
    const int64_t count = cuda_numbers(w, dy->node);

    for (int k = 0; k < p->n; k++) {
        const Order *o = p->operand[k].order;
        if (!cuda_is_product(o) || o->count != count)
            continue;
        dy->order = order_of(w, dy, o);
        if (pending_conflict_one(p, dy))
            continue;
        const Order pool = {WALK_POOL, c->order->count, NULL, c->pool, o};
        cuda_give_order(w, c, cuda_order(w->arena, pool));
        dy->order = order_of(w, dy, o);
        c->taken_order = o;
        return;
    }
    dy->order = NULL;
}

void pending_order(Writer *w, const Pending *p, CudaCall *c)
{
    if (c->pool)
        follow_pool(w, p, c);
    if (!c->follows)
        return;
    /* an element takes the order of a product even if no conflict demands this, because its readers
     * can take this order only if the element has it */
    const bool item = node_is(c->node, "scan_item");
    if (!(item && follow_product(w, p, c)) && !can_follow(w, p, c, c->order))
        follow_product(w, p, c);
}
