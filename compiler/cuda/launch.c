/* launch.c -- decides which calls share a launch, and which of these calls share a loop.
 *
 * A launch takes 0.9 us even in a CUDA graph.  Two calls, one after the other, can share a launch
 * if the later call reads nothing that another thread of the earlier call has written, and writes
 * nothing that another thread accesses.  Either they have no operand in common, such as the two
 * gradients of a layer; or each thread continues with its own numbers, such as tanh after a
 * convolution, which takes over the order of the convolution (runtime/cuda/results.cuh).
 *
 * The kernel of a shared launch runs its members one after another, with as many blocks as the
 * largest member needs.  Sums in parts (parts.c) take further blocks, and run in parallel.
 * Neighbouring calls that go through the same numbers in the same order become one loop.  Other
 * loops over many numbers read and write packs of adjacent numbers (runtime/cuda/pack.cuh).
 *
 * A call of a library has its own launch, and so has a call with an address of an unknown
 * region.
 */
#include "cuda/launch.h"
#include "cuda/lower.h"
#include "cuda/recurrence.h"

/* The largest number of calls in one launch, and the largest number of parameters of all these
 * calls but the last. */
enum { MEMBERS = 32, PARAMETERS = 104 };

/* ---------------------------------------- order of the calls of a phase */

/* Whether n is an element of a sequence in a loop over time.  The call of n then moves to the first
 * reader of n, and can take over the order of a product that runs before this reader. */
static bool can_wait(const Node *n)
{
    return node_is(n, "scan_item") && n->loop && loop_outer(n->loop) == n->loop &&
           !n->loop->inside && kernel_needed(n);
}

static bool reads_value(const Node *n, const Node *x)
{
    bool any = false;
    for (int i = 0; i < n->nin && !any; i++)
        any = n->in[i] == x || node_root(n->in[i]) == node_root(x) ||
              (node_attr(n->in[i], "inline") && reads_value(n->in[i], x));
    return any;
}

void launch_node(Writer *w, const Node *n, int *line, const char *indent)
{
    CudaCalls *l = w->cuda->list;
    int left = 0;

    (void)line;
    l->indent = indent;
    if (can_wait(n)) {
        ARENA_PUSH(w->arena, l->waiting, l->nwaiting, n);
        return;
    }
    for (int i = 0; i < l->nwaiting; i++)
        if (kernel_needed(n) && reads_value(n, l->waiting[i]))
            cuda_lower_node(w, l->waiting[i]);
        else
            l->waiting[left++] = l->waiting[i];
    l->nwaiting = left;
    cuda_lower_node(w, n);
}

/* ------------------------------------------------------------------------------- launches */

typedef struct Launches {
    Writer *w;
    CudaCalls *out;
    Pending pending; /* operands of the open launch */
    int number, members, parameters;
    bool alone;
    CudaCall *metric[RT_METRICS]; /* metrics without a launch so far */
    CudaCall **waiting;           /* calls that wait for one that needs them (CudaCall.waits) */
    int nwaiting;
    Pending waited; /* operands of the waiting calls */
} Launches;

static void close_launch(Launches *s)
{
    s->number += s->members > 0;
    s->members = s->parameters = s->pending.n = 0;
    s->alone = false;
}

static int count_parameters(const CudaCall *c)
{
    int n = 0;
    for (int i = 0; i < c->narg; i++)
        n += c->arg[i].type != NULL;
    return n;
}

static void push_member(Launches *s, CudaCall *c)
{
    c->launch = s->number;
    ARENA_PUSH(s->w->arena, s->out->call, s->out->n, c);
    s->members++, s->parameters += count_parameters(c);
    pending_add(s->w, &s->pending, c);
}

static bool is_unknown(const CudaCall *c)
{
    bool any = false;
    for (int i = 0; i < c->noperand; i++)
        any |= c->operand[i].memory == MEMORY_UNKNOWN;
    return any;
}

/* Adds the pending metrics: to this launch, or to a new one if this launch computes a value
 * that they read. */
static void launch_metrics(Launches *s, const char *indent)
{
    for (int i = 0; i < RT_METRICS; i++) {
        CudaCall *c = s->metric[i];
        s->metric[i] = NULL;
        if (!c)
            continue;
        if (s->alone || pending_conflict(&s->pending, c))
            close_launch(s);
        c->indent = indent;
        push_member(s, c);
    }
}

/* Closes the launch.  The call c begins the next launch, in its own order. */
static void close_before(Launches *s, CudaCall *c)
{
    close_launch(s);
    if (c->taken_order)
        c->taken_order = NULL, cuda_give_order(s->w, c, c->natural);
}

static void launch_call(Launches *s, CudaCall *c)
{
    const bool alone = c->alone || is_unknown(c);

    pending_order(s->w, &s->pending, c);
    if (alone || s->alone || s->members == MEMBERS || s->parameters > PARAMETERS ||
        pending_conflict(&s->pending, c))
        close_before(s, c);
    if (s->members == 0 && !alone && !(c->node && c->node->loop))
        launch_metrics(s, c->indent);
    if (pending_conflict(&s->pending, c))
        close_before(s, c);
    s->alone = alone;
    push_member(s, c);
}

/* Adds the calls that wait. */
static void launch_waiting(Launches *s)
{
    const int n = s->nwaiting;

    s->nwaiting = s->waited.n = 0;
    for (int i = 0; i < n; i++)
        launch_call(s, s->waiting[i]);
}

/* Adds a kernel, or lets it wait for a call that needs its result (CudaCall.waits).  So the parts
 * of one product are added while the next product is computed: for example, the parts of dx beside
 * the gradient of the weights. */
static void launch_kernel(Launches *s, CudaCall *c)
{
    if (pending_conflict(&s->waited, c))
        launch_waiting(s);
    if (!c->waits) {
        launch_call(s, c);
        return;
    }
    ARENA_PUSH(s->w->arena, s->waiting, s->nwaiting, c);
    pending_add(s->w, &s->waited, c);
    for (int i = 0; i < s->waited.n; i++)
        s->waited.operand[i].order = NULL; /* later calls overtake c, also in the same thread */
}

/* Adds a call of the host between two launches. */
static void launch_host(Launches *s, CudaCall *c)
{
    launch_waiting(s);
    if (!c->fallback)
        close_launch(s);
    c->launch = s->number - c->fallback;
    ARENA_PUSH(s->w->arena, s->out->call, s->out->n, c);
    s->number += c->kind == KIND_LIBRARY;
}

/* Adds the calls of a loop as one launch; returns the index of the line after them. */
static int launch_recurrence(Launches *s, const CudaCalls *l, int i)
{
    const Recurrence *r = l->call[i]->recurrence;

    launch_waiting(s);
    close_launch(s);
    for (; i + 1 < l->n && l->call[i + 1]->recurrence == r; i++)
        if (l->call[i]->kind == KIND_KERNEL) {
            l->call[i]->indent = "    ";
            push_member(s, l->call[i]);
        }
    close_launch(s);
    return i;
}

/* Whether a thread computes numbers i, i plus the number of threads ... one after another, by a
 * loop or by a function NAME_at(i, ...). */
static bool is_each(const CudaCall *c)
{
    return (c->index || c->has_at) && c->kind == KIND_KERNEL && !c->taken_order && c->natural &&
           c->natural->walk == WALK_EACH;
}

static bool can_share_loop(const CudaCall *a, const CudaCall *b)
{
    return a->launch == b->launch && !a->recurrence && is_each(a) && is_each(b) &&
           a->natural->count == b->natural->count;
}

/* Numbers the loops that neighbouring calls of a launch share. */
static void share_loops(CudaCalls *l)
{
    for (int i = 0, end, loops = 0; i < l->n; i = end) {
        for (end = i + 1; end < l->n && can_share_loop(l->call[i], l->call[end]); end++)
            ;
        loops += end - i > 1;
        for (int k = i; k < end && end - i > 1; k++)
            l->call[k]->loop = loops;
    }
}

/* ------------------------------------------------------------------------------- packs */

/* Whether a thread can read and write packs of the operand: the call covers its numbers in order,
 * and the first one is aligned as a pack. */
static bool has_packs(const Writer *w, const Operand *o)
{
    const int64_t bytes = o->walked ? node_number_bytes(o->node, cuda_real_bytes(w)) : 0;
    return bytes && pointer_align(w, o->node) % (RT_PACK * bytes) == 0;
}

static bool can_pack(const Writer *w, const CudaCall *c)
{
    return is_each(c) && c->index && !c->loop && !c->recurrence &&
           rt_fills_packs(c->natural->count) && has_packs(w, &c->operand[0]);
}

/* Whether another call of the launch relies on the order of c: a thread continues with its own
 * numbers. */
static bool is_followed(const CudaCalls *l, const CudaCall *c)
{
    for (int i = 0; i < l->n; i++) {
        const CudaCall *other = l->call[i];
        const Pending p = {other->operand, other->noperand};
        for (int k = 0; other != c && other->launch == c->launch && k < c->noperand; k++) {
            Operand o = c->operand[k];
            o.order = NULL;
            if (pending_conflict_one(&p, &o))
                return true;
        }
    }
    return false;
}

void launch_pack(Writer *w, CudaCalls *l)
{
    for (int i = 0; i < l->n; i++) {
        CudaCall *c = l->call[i];
        if (!can_pack(w, c) || is_followed(l, c))
            continue;
        c->order = cuda_order(w->arena, (Order){.walk = WALK_PACKS, .count = c->natural->count});
        for (int k = 0; k < c->noperand; k++)
            c->operand[k].order = has_packs(w, &c->operand[k]) ? c->order : NULL;
        cuda_give(w, c, PACKS(c->natural->count));
    }
}

CudaCalls *launch_share(Writer *w)
{
    const CudaCalls *l = w->cuda->list;
    Launches s = {.w = w, .out = arena_alloc(w->arena, sizeof *s.out), .number = 1};

    recurrence_find(w);
    for (int i = 0; i < l->n; i++) {
        CudaCall *c = l->call[i];
        if (c->recurrence) {
            i = launch_recurrence(&s, l, i);
            continue;
        }
        if (c->kind == KIND_METRICS || c->metric >= 0)
            launch_waiting(&s);
        if (c->kind == KIND_METRICS)
            launch_metrics(&s, "    ");
        else if (c->metric >= 0)
            s.metric[c->metric] = c;
        else if (c->kind != KIND_KERNEL || c->fallback)
            launch_host(&s, c);
        else
            launch_kernel(&s, c);
    }
    launch_waiting(&s);
    share_loops(s.out);
    launch_pack(w, s.out);
    return s.out;
}

int64_t launch_count(const CudaCalls *l)
{
    int64_t n = 0;
    for (int i = 0; i < l->n; i++)
        if (l->call[i]->kind != KIND_LINE &&
            (i + 1 == l->n || l->call[i + 1]->launch != l->call[i]->launch))
            n += call_launches(l->call[i]);
    return n;
}
