/* recurrence.c -- finds loops over time that one launch can compute (runtime/cuda/recurrence.cuh).
 *
 * A block computes all steps of the loop for a few samples.  So no call of the loop may combine
 * samples: it is an elementwise loop or a move, a product with weights that the loop does not
 * change, or an element of a sequence.  A barrier of the block stands before a call that reads what
 * another thread has written; as separate launches, a new launch would begin there.  The calls
 * between two barriers are a region.
 *
 * Values of a step lie in shared memory, weights in registers and shared memory.  A loop whose
 * weights do not fit remains a loop of launches. */
#include "cuda/recurrence.h"
#include "ir/gpu.h"
#include "ops/op.h"
#include "runtime/constants.h"
#include <string.h>

enum {
    HELD = 176,         /* registers of a thread for weights, of the 255 that it has */
    MEMORY = 160 << 10, /* bytes of shared memory of a block, at most */
    SAMPLES = 4,        /* samples of a block, at most */
    SUMS = 16,          /* sums of a thread in a product, at most */
    RUN = 4,            /* adjacent steps that a thread reads at once */
};

typedef struct Search {
    Writer *w;
    CudaCall **call, **later; /* the calls of the loop, and those after it */
    int n, nlater;
    Recurrence *r;
} Search;

int64_t recurrence_blocks(const Recurrence *r)
{
    return ceil_div(r->samples, r->each);
}

static int value_of(const Recurrence *r, const Node *n)
{
    for (int i = 0; i < r->nvalue && n; i++)
        if (r->value[i].root == node_root(n))
            return i;
    return -1;
}

int recurrence_product(const Recurrence *r, const CudaCall *c)
{
    for (int i = 0; i < r->nproduct; i++)
        if (r->product[i].call->node == c->node)
            return i;
    return -1;
}

bool recurrence_keeps(const Recurrence *r, const Operand *o)
{
    return o->memory == MEMORY_APART || value_of(r, o->node) >= 0;
}

/* ------------------------------------------------------------------------------- calls */

static bool has_form(const CudaCall *c, const char *form)
{
    return !strcmp(c->form, form);
}

static bool is_loop(const CudaCall *c)
{
    return (c->index || c->has_at) && !c->pool && c->natural && c->natural->walk == WALK_EACH;
}

static bool is_product(const CudaCall *c)
{
    return has_form(c, "dense") || has_form(c, "dense_dx") || has_form(c, "dense_parts") ||
           has_form(c, "dense_dx_parts");
}

/* Whether the operand is a whole sequence, of which the call accesses the element of the step. */
static bool is_sequence(const CudaCall *c, int operand)
{
    return (has_form(c, "scan_item") && operand == 1) || (has_form(c, "scan_put") && operand == 0);
}

/* The index of the argument for operand i; -1: arguments and operands do not correspond. */
static int argument_of(const CudaCall *c, int operand)
{
    int found = -1, pointers = 0;
    for (int i = 0; i < c->narg; i++) {
        const char *type = c->arg[i].type;
        if (!type || type[strlen(type) - 1] != '*')
            continue;
        found = pointers == operand ? i : found;
        pointers++;
    }
    return pointers == c->noperand ? found : -1;
}

/* ------------------------------------------------------------------------------- values */

/* Adds the value of the operand; false: the operand cannot be a value of the loop. */
static bool add_value(Search *s, const CudaCall *c, int operand)
{
    const Node *n = c->operand[operand].node, *root = node_root(n);
    const RecurrenceValue value = {.root = root,
                                   .pointer = pointer_to(s->w, root),
                                   .size = cuda_numbers(s->w, root) / s->r->samples};

    if (!root->shape.batched || root->dtype != DT_REAL || root->half || root->within ||
        !pointer_is_whole(s->w, n))
        return false;
    if (value_of(s->r, n) < 0)
        ARENA_PUSH(s->w->arena, s->r->value, s->r->nvalue, value);
    return true;
}

/* Whether the loop can keep the operand, or access it in memory. */
static bool take_operand(Search *s, const CudaCall *c, int operand)
{
    const Operand *o = &c->operand[operand];
    if (argument_of(c, operand) < 0 || o->memory == MEMORY_UNKNOWN)
        return false;
    if (o->memory == MEMORY_APART)
        return is_product(c) || has_form(c, "parts_join");
    if (!o->node)
        return false;
    if (is_sequence(c, operand))
        return o->node->shape.batched && o->node->dtype == DT_REAL && !o->node->half;
    return o->node->shape.batched ? add_value(s, c, operand) : !o->writes;
}

static bool take_call(Search *s, CudaCall *c)
{
    const bool join = has_form(c, "parts_join"), product = is_product(c);

    if (!join && !product && !is_loop(c))
        return false;
    if (!product && c->natural->count % s->r->samples != 0)
        return false;
    for (int i = 0; i < c->noperand; i++)
        if (!take_operand(s, c, i))
            return false;
    c->role = product                    ? RECURRENCE_PRODUCT
              : join                     ? RECURRENCE_JOIN
              : has_form(c, "scan_item") ? RECURRENCE_ITEM
                                         : RECURRENCE_EACH;
    return true;
}

/* Whether the loop accesses elements of a sequence that is also one of its values.  Elements are
 * copied from memory, and to memory, so such a sequence cannot lie in shared memory. */
static bool keeps_sequence(const Search *s)
{
    bool keeps = false;
    for (int i = 0; i < s->n; i++)
        for (int k = 0; k < s->call[i]->noperand; k++)
            keeps |= is_sequence(s->call[i], k) && value_of(s->r, s->call[i]->operand[k].node) >= 0;
    return keeps;
}

/* ------------------------------------------------------------------------------- products */

/* x and the weights are operands 1 and 2 of a dense layer, and 2 and 1 of its dx. */
static bool take_product(Search *s, const CudaCall *c)
{
    const Sizes *z = cuda_sizes(c);
    const bool dx = c->node->op->role == ROLE_DX;
    const int64_t k = sizes_get(z, dx ? "o" : "k"), outputs = sizes_get(z, dx ? "k" : "o"),
                  parts = c->split.parts ? c->split.parts : 1, samples = sizes_get(z, "n");
    const int x = value_of(s->r, c->operand[dx ? 2 : 1].node), y = value_of(s->r, c->node);
    const int tile = c->split.parts ? c->split.tile : rt_tile(0, samples, outputs);

    if (samples != s->r->samples || x < 0 || s->r->value[x].size != k || parts > RT_THREADS)
        return false;
    if (c->operand[dx ? 1 : 2].node->shape.batched || c->narg != (c->split.parts ? 5 : 4))
        return false;
    if (parts == 1 && (y < 0 || s->r->value[y].size != outputs || x == y))
        return false;
    const int64_t columns = RT_THREADS / parts, depth = RT_TILE_DEPTH(tile);
    RecurrenceProduct p = {.call = c,
                           .outputs = outputs,
                           .k = k,
                           .parts = parts,
                           .chains = ceil_div(outputs, columns),
                           .adjacent = !dx,
                           .pads = ceil_div(k, parts) % depth != 0};
    ARENA_PUSH(s->w->arena, s->r->product, s->r->nproduct, p);
    return p.chains <= SUMS;
}

static int64_t length_of(const RecurrenceProduct *p)
{
    return ceil_div(p->k, p->parts);
}

static int64_t memory_of_block(const Search *s)
{
    const int64_t most = gpu_of(s->w->in->options->arch)->shared_of_block;
    return most < MEMORY ? most : MEMORY;
}

/* Divides the registers among the products, in order. */
static void hold_weights(Search *s)
{
    int64_t left = HELD * 4 / cuda_real_bytes(s->w);
    for (int i = 0; i < s->r->nproduct; i++) {
        RecurrenceProduct *p = &s->r->product[i];
        const int64_t length = length_of(p), most = left / p->chains;
        p->held = most < length ? most / RUN * RUN : length;
        left -= p->held * p->chains;
    }
}

static int64_t take_numbers(Recurrence *r, int64_t n)
{
    const int64_t at = r->numbers;
    r->numbers += round_up(n, RUN);
    return at;
}

/* Assigns shared memory, for `each` samples of a block; false: it does not suffice. */
static bool place(Search *s, int64_t each)
{
    Recurrence *r = s->r;
    r->each = each, r->numbers = 0;
    for (int i = 0; i < r->nvalue; i++)
        r->value[i].at = take_numbers(r, each * r->value[i].size);
    for (int i = 0; i < r->nproduct; i++) {
        RecurrenceProduct *p = &r->product[i];
        p->at = take_numbers(r, (length_of(p) - p->held) * p->chains * RT_THREADS);
        p->parts_at = p->parts > 1 ? take_numbers(r, each * p->parts * p->outputs) : -1;
        if (each * p->chains > SUMS)
            return false;
    }
    return r->numbers * cuda_real_bytes(s->w) <= memory_of_block(s);
}

/* Takes the smallest number of samples of a block with which each block has a multiprocessor of its
 * own; fewer if the shared memory does not suffice.  At most SAMPLES. */
static bool place_all(Search *s)
{
    const int64_t processors = gpu_of(s->w->in->options->arch)->processors,
                  even = ceil_div(s->r->samples, processors);
    hold_weights(s);
    for (int64_t each = even < SAMPLES ? even : SAMPLES; each > 0; each--)
        if (place(s, each))
            return true;
    return false;
}

/* ------------------------------------------------------------------------------- regions */

static bool accesses(const CudaCall *c, const Node *root, bool writes)
{
    bool any = false;
    for (int i = 0; i < c->noperand; i++)
        any |= c->operand[i].node && node_root(c->operand[i].node) == root &&
               c->operand[i].writes == writes && !is_sequence(c, i);
    return any;
}

static bool touches(const CudaCall *c, const Node *root)
{
    return accesses(c, root, false) || accesses(c, root, true);
}

/* Whether the element can be copied ahead: no other call accesses its value earlier in a step, and
 * no call writes the sequence. */
static bool is_ahead(const Search *s, int item)
{
    const CudaCall *c = s->call[item];
    const Node *root = node_root(c->node), *sequence = node_root(c->operand[1].node);
    bool ahead = true;
    for (int i = 0; i < s->n; i++) {
        const CudaCall *other = s->call[i];
        for (int k = 0; k < other->noperand; k++)
            ahead &= !(other->operand[k].writes && other->operand[k].node &&
                       node_root(other->operand[k].node) == sequence);
        if (i != item && (i < item || other->role == RECURRENCE_ITEM))
            ahead &= !touches(other, root);
    }
    return ahead;
}

/* The order in which the threads of a block have the numbers of a value (FOR_SAMPLES). */
static const Order *value_order(const Search *s, int64_t numbers)
{
    return cuda_order(s->w->arena, (Order){.walk = WALK_EACH, .count = numbers});
}

/* Gives the product an order: a thread has the sums of outputs t, t + THREADS ... of each sample.
 * If that is also the order of an elementwise loop, the loop needs no barrier after the product. */
static void order_product(const Search *s, CudaCall *c)
{
    const RecurrenceProduct *p = &s->r->product[recurrence_product(s->r, c)];
    const bool each = p->parts == 1 && (s->r->each == 1 || p->outputs % RT_THREADS == 0);
    c->operand[0].order = each ? value_order(s, s->r->samples * p->outputs) : NULL;
}

/* Numbers the regions. */
static void divide(Search *s)
{
    Pending open = {0};
    int region = 0;
    for (int i = 0; i < s->n; i++) {
        CudaCall *c = s->call[i];
        if (c->role == RECURRENCE_ITEM)
            continue;
        if (c->role == RECURRENCE_PRODUCT)
            order_product(s, c);
        if (pending_conflict(&open, c))
            region++, open.n = 0;
        c->region = region;
        pending_add(s->w, &open, c);
    }
    s->r->regions = region + 1;
}

/* The first call that accesses the value of an element, and the last region; NULL: none. */
static const CudaCall *first_access(const Search *s, const CudaCall *item, int *last)
{
    const Node *root = node_root(item->node);
    const CudaCall *first = NULL;
    for (int i = 0; i < s->n; i++) {
        const CudaCall *c = s->call[i];
        if (c == item || !touches(c, root))
            continue;
        first = first ? first : c, *last = c->region;
    }
    return first;
}

/* Whether the threads that copy the element also have its numbers in all calls of the region: no
 * barrier stands between these calls. */
static bool has_own_copies(const Search *s, int region, const CudaCall *item)
{
    bool own = true;
    for (int i = 0; i < s->n; i++) {
        const CudaCall *c = s->call[i];
        for (int k = 0; k < c->noperand && c != item && c->region == region; k++)
            if (c->operand[k].node && node_root(c->operand[k].node) == node_root(item->node) &&
                !is_sequence(c, k))
                own &= c->operand[k].order && cuda_same_order(c->operand[k].order, item->natural);
    }
    return own;
}

/* Adds a region without calls before all others, in which copies of elements can start. */
static void begin_with_copies(Search *s)
{
    for (int i = 0; i < s->n; i++)
        s->call[i]->region++;
    for (int i = 0; i < s->r->nitem; i++) {
        RecurrenceItem *item = &s->r->item[i];
        item->region += item->region > 0 || item->ahead, item->ready += item->ready >= 0;
    }
    s->r->regions++;
}

/* Chooses the region in which the copy of an element starts: after the last access of a step.
 * Other threads read the copy after a barrier. */
static void place_item(Search *s, CudaCall *c)
{
    int last = 0;
    const CudaCall *first = first_access(s, c, &last);
    if (!first)
        return;
    const bool own = has_own_copies(s, first->region, c);
    if (!own && first->region == 0 && last == s->r->regions - 1)
        begin_with_copies(s), last++;
    const bool ahead = last < s->r->regions - 1;
    const Sizes *z = cuda_sizes(c);
    RecurrenceItem item = {.call = c,
                           .size = sizes_get(z, "size"),
                           .steps = sizes_get(z, "steps"),
                           .ahead = ahead,
                           .region = ahead ? last + 1 : 0,
                           .ready = (first->region > 0 ? first->region : s->r->regions) - 1};
    if (own)
        item.reader = first, item.ready = -1;
    ARENA_PUSH(s->w->arena, s->r->item, s->r->nitem, item);
}

/* ------------------------------------------------------------------------------- memory */

/* Whether the first access in a step reads the value: then it comes from before the loop, or from
 * the step before. */
static bool begins_with_read(const Search *s, const Node *root)
{
    for (int i = 0; i < s->n; i++) {
        if (touches(s->call[i], root))
            return accesses(s->call[i], root, false);
    }
    return false;
}

static bool overlap(const Operand *a, const Operand *b)
{
    return a->memory == b->memory && a->from < b->to && b->from < a->to;
}

/* The operand for the bytes of a value. */
static Operand value_bytes(const Search *s, const RecurrenceValue *v)
{
    for (int i = 0; i < s->n; i++)
        for (int k = 0; k < s->call[i]->noperand; k++) {
            const Operand *o = &s->call[i]->operand[k];
            if (o->node && node_root(o->node) == v->root)
                return *o;
        }
    return (Operand){0};
}

/* Whether a call after the loop reads the value.  Other values can lie in the same bytes later, so
 * calls with a node are compared by node, not by bytes.  o: the bytes of the value. */
static bool is_read_later(const Search *s, const Node *root, const Operand *o)
{
    bool read = o->memory != MEMORY_SCRATCH; /* a later phase can read it */
    for (int i = 0; i < s->nlater; i++)
        for (int k = 0; k < s->later[i]->noperand; k++) {
            const Operand *later = &s->later[i]->operand[k];
            const bool same = later->node ? node_root(later->node) == root
                                          : later->memory == MEMORY_UNKNOWN || overlap(o, later);
            read |= !later->writes && same;
        }
    return read;
}

static void set_copies(const Search *s)
{
    for (int i = 0; i < s->r->nvalue; i++) {
        RecurrenceValue *v = &s->r->value[i];
        const Operand o = value_bytes(s, v);
        bool written = false;
        for (int k = 0; k < s->n; k++)
            written |= accesses(s->call[k], v->root, true);
        v->fetched = begins_with_read(s, v->root);
        v->stored = written && is_read_later(s, v->root, &o);
    }
}

/* Blocks do not wait for each other, so no two values in memory may share bytes if one of them is
 * written. */
static bool values_are_apart(const Search *s)
{
    Pending all = {0};
    for (int i = 0; i < s->n; i++) {
        const CudaCall *c = s->call[i];
        for (int k = 0; k < c->noperand; k++) {
            Operand o = c->operand[k];
            const int v = is_sequence(c, k) ? -1 : value_of(s->r, o.node);
            if (o.memory == MEMORY_APART ||
                (v >= 0 && !s->r->value[v].fetched && !s->r->value[v].stored))
                continue;
            o.writes = v >= 0 ? s->r->value[v].stored : o.writes;
            for (int m = 0; m < all.n; m++)
                if (overlap(&o, &all.operand[m]) && (o.writes || all.operand[m].writes) &&
                    node_root(o.node) != node_root(all.operand[m].node))
                    return false;
            pending_add_one(s->w, &all, &o);
        }
    }
    return true;
}

/* ------------------------------------------------------------------------------- barriers */

/* Adds what threads access in a region; also values that a copy of an element writes then. */
static void add_region(const Search *s, Pending *p, int region)
{
    for (int i = 0; i < s->n; i++) {
        const CudaCall *c = s->call[i];
        if (c->region == region && c->role != RECURRENCE_ITEM)
            pending_add(s->w, p, c);
    }
    for (int i = 0; i < s->r->nitem; i++)
        if (s->r->item[i].region == region || s->r->item[i].ready == region)
            pending_add_one(s->w, p, &s->r->item[i].call->operand[0]);
}

static bool conflict(const Pending *a, const Pending *b)
{
    bool any = false;
    for (int i = 0; i < b->n; i++)
        any |= pending_conflict_one(a, &b->operand[i]);
    return any;
}

/* Whether a barrier stands before the first step, and after each step.  Other threads read in the
 * first region what the copies before the loop, or the last region, have written; and the copies
 * after the loop read what the last region has written. */
static void set_barriers(Search *s)
{
    Pending first = {0}, last = {0}, copies = {0}, stores = {0};

    add_region(s, &first, 0);
    add_region(s, &last, s->r->regions - 1);
    for (int i = 0; i < s->r->nvalue; i++) {
        const RecurrenceValue *v = &s->r->value[i];
        Operand o = value_bytes(s, v);
        o.order = value_order(s, s->r->samples * v->size);
        o.writes = true;
        if (v->fetched)
            pending_add_one(s->w, &copies, &o);
        o.writes = false;
        if (v->stored)
            pending_add_one(s->w, &stores, &o);
    }
    for (int i = 0; i < s->r->nitem; i++)
        if (s->r->item[i].ahead)
            pending_add_one(s->w, &copies, &s->r->item[i].call->operand[0]);
    s->r->barrier_before = conflict(&copies, &first);
    s->r->barrier_after = conflict(&last, &first) || conflict(&last, &stores);
}

/* ------------------------------------------------------------------------------- the loop */

static bool take(Search *s)
{
    bool fits = true;
    for (int i = 0; i < s->n && fits; i++)
        fits = take_call(s, s->call[i]);
    fits = fits && !keeps_sequence(s);
    for (int i = 0; i < s->n && fits; i++) {
        CudaCall *c = s->call[i];
        if (c->role == RECURRENCE_ITEM && !is_ahead(s, i))
            c->role = RECURRENCE_EACH;
        fits = c->role != RECURRENCE_PRODUCT || take_product(s, c);
    }
    if (!fits || s->r->nproduct == 0 || !place_all(s))
        return false;
    divide(s);
    for (int i = 0; i < s->n; i++)
        if (s->call[i]->role == RECURRENCE_ITEM)
            place_item(s, s->call[i]);
    set_copies(s);
    set_barriers(s);
    return values_are_apart(s);
}

/* Whether the steps of another loop run this loop, or it runs another loop. */
static bool is_nested(const Graph *g, const Loop *l)
{
    bool nested = l->inside != NULL;
    for (int i = 0; i < g->nloop; i++)
        nested |= g->loop[i]->inside == l;
    return nested;
}

/* If the calls of one loop begin at index i, between the lines that open and close the loop,
 * returns the index after these calls; else 0. */
static int loop_of_launches(const CudaCalls *l, int i)
{
    const Loop *loop = i > 0 && l->call[i - 1]->kind == KIND_LINE && l->call[i]->node
                           ? l->call[i]->node->loop
                           : NULL;
    int end = i;
    while (loop && end < l->n && l->call[end]->kind == KIND_KERNEL && l->call[end]->node &&
           l->call[end]->node->loop == loop && l->call[end]->metric < 0)
        end++;
    return end > i && end < l->n && l->call[end]->kind == KIND_LINE ? end : 0;
}

void recurrence_find(Writer *w)
{
    CudaCalls *l = w->cuda->list;

    for (int i = 0; i < l->n; i++) {
        const int end = loop_of_launches(l, i);
        if (!end || is_nested(w->g, l->call[i]->node->loop))
            continue;
        Search s = {.w = w,
                    .call = l->call + i,
                    .later = l->call + end,
                    .n = end - i,
                    .nlater = l->n - end,
                    .r = arena_alloc(w->arena, sizeof *s.r)};
        s.r->loop = l->call[i]->node->loop, s.r->samples = w->g->step->chunk;
        const bool taken = take(&s);
        for (int k = i - 1; k <= end && taken; k++)
            l->call[k]->recurrence = s.r;
        for (int k = i; k < end && !taken; k++) /* order_product has changed it */
            cuda_give_order(w, l->call[k], l->call[k]->natural);
        i = end;
    }
}
