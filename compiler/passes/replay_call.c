/* replay_call.c -- replays a call: checks that each byte that it reads holds the expected value,
 * and that its writes overwrite no value that is still needed.
 *
 * A value can lie in another one: a view in its input, parts of a concat in the concat, steps of a
 * sequence in the sequence.  The holder is the value that owns the bytes.  A value that overwrites
 * its input in place becomes the holder at its call.
 */
#include "ir/target.h"
#include "ops/move.h"
#include "ops/scan.h"
#include "ops/step_price.h"
#include "passes/replay.h"
#include <string.h>

/* ---- where values lie */

/* The value that owns the bytes of n. */
static const Node *holder(const Node *n)
{
    for (;;)
        if (n->within)
            n = n->within;
        else if (n->op->flags & OP_VIEW || scan_in_place(n))
            n = n->in[0];
        else
            return n->place == PLACE_PARTIAL ? node_root(n) : n;
}

Extent replay_extent(const Replay *v, const Node *n)
{
    const Step *s = v->graph->step;
    const Node *root = node_root(n);
    const int64_t each = node_reals(root) * node_number_bytes(root, v->real), at = root->offset;

    if (root->param && root->op->leaf == LEAF_PARAM)
        return (Extent){REGION_FIXED, root->param->offset,
                        root->param->offset + root->param->count_memory * v->real, 0};
    if (root->place == PLACE_BATCH)
        return (Extent){REGION_SHARD, at, at + each * s->shard, each};
    if (root->place == PLACE_PARTIAL) {
        const int64_t row = v->track->row[root->id], own = v->track->count[root->id] * v->real;
        return (Extent){REGION_SHARD, at, at + (s->slices - 1) * row + own, row};
    }
    if (root->place == PLACE_LOCAL)
        return (Extent){REGION_THREAD, at, at + each * (root->shape.batched ? s->chunk : 1), 0};
    return (Extent){REGION_FIXED, at, at + each * (root->op->flags & OP_KNOWN ? s->shards : 1), 0};
}

void replay_inside(Replay *v, const Node *x, Extent e)
{
    if (e.from < 0 || e.to > v->memory[e.region].bytes)
        replay_fail(v, "%s, %s, does not lie in these %lld bytes", replay_value(v, x),
                    replay_bytes(v, e), (long long)v->memory[e.region].bytes);
}

/* ---- other units of the phase */

void replay_barrier(Replay *v)
{
    v->phase = v->chunk = ++v->now;
    for (int i = 0; i < REGIONS; i++)
        held_clear(&v->touched[i]);
}

/* Whether this access can conflict with the earlier access h of another unit.  Each unit touches
 * its own rows of a value.  If the rows of two values differ in place or size, or if a value has no
 * rows, two units can touch the same bytes. */
static bool units_conflict(const Held *h, Extent e, bool writes)
{
    return (h->written || writes) && !(h->row > 0 && h->row == e.row && h->from == e.from);
}

bool replay_touch(Replay *v, const Node *by, Extent e, bool writes)
{
    Region *r = &v->touched[e.region];
    int64_t row = e.row;

    if (e.region == REGION_THREAD)
        return true;
    for (int i = held_find(r, e.from); i < r->n && r->held[i].from < e.to; i++) {
        const Held *h = &r->held[i];
        if (units_conflict(h, e, writes)) {
            replay_fail(v, "%s %s %s in %s, while another unit of the phase %s %s",
                        replay_value(v, by), writes ? "writes" : "reads", replay_bytes(v, e),
                        replay_here(v), h->written ? "writes" : "reads",
                        replay_held(v, e.region, h));
            return false;
        }
        row = h->row == row && h->from == e.from ? row : 0;
        writes |= h->written;
    }
    held_put(r, (Held){e.from, e.to, by, v->graph, v->at, v->now, row, writes});
    return true;
}

/* ---- reading */

static bool is_value(const Node *a, const Node *b)
{
    return a == b || (a->param && b->param && a->op->leaf == LEAF_PARAM &&
                      b->op->leaf == LEAF_PARAM && !strcmp(a->param->name, b->param->name));
}

bool replay_holds(Replay *v, const Node *by, const Node *x, Extent e)
{
    const Region *r = &v->memory[e.region];
    int64_t at = e.from;

    for (int i = held_find(r, at); at < e.to; i++) {
        const Held *h = i < r->n ? &r->held[i] : NULL;
        if (!h || h->from > at) {
            replay_fail(v, "%s reads %s, %s, in %s, before it is written", replay_value(v, by),
                        replay_value(v, x), replay_bytes(v, e), replay_here(v));
            return false;
        }
        if (!is_value(h->by, x)) {
            replay_fail(v, "%s reads %s, %s, in %s, but these bytes hold %s", replay_value(v, by),
                        replay_value(v, x), replay_bytes(v, e), replay_here(v),
                        replay_held(v, e.region, h));
            return false;
        }
        at = h->to;
    }
    return true;
}

/* The time after which x must have been computed: the beginning of its chunk, of its step of a
 * loop, or of the phase. */
static int64_t since(const Replay *v, const Node *x)
{
    const Loop *l = node_loop((Node *)x);
    const int64_t loop = l ? v->track->iteration[l->id] : 0;
    if (x->op->flags & OP_TOTAL)
        return v->phase;
    return loop > v->chunk ? loop : v->chunk;
}

/* Checks that x was computed in this step.  If it was computed in this phase, this unit must have
 * computed the part that it reads. */
static bool made(Replay *v, const Node *by, const Node *x)
{
    const Place place = node_root(x)->place;
    const int64_t wrote =
        v->track->wrote[holder(x)->place == PLACE_PARTIAL ? holder(x)->id : x->id];
    const bool local = place == PLACE_LOCAL, now = wrote >= v->phase;
    const bool own = v->in_slice && place == PLACE_BATCH;

    if (wrote < (local ? since(v, x) : v->step) || (own && now && wrote < since(v, x))) {
        replay_fail(v, "%s reads %s, %s, in %s, before it is written", replay_value(v, by),
                    replay_value(v, x), replay_bytes(v, replay_extent(v, x)), replay_here(v));
        return false;
    }
    if (now && !local && !own) {
        replay_fail(v, "%s reads %s, %s, in %s, which writes it: there is no barrier between",
                    replay_value(v, by), replay_value(v, x), replay_bytes(v, replay_extent(v, x)),
                    replay_here(v));
        return false;
    }
    return true;
}

static void read_param(Replay *v, const Node *by, const Node *x)
{
    const Extent e = replay_extent(v, x);
    const int64_t stale = v->graph->training ? v->track->stale[x->id] : 0;
    if (replay_touch(v, by, e, false) && replay_holds(v, by, x, e) && stale && stale < v->step)
        replay_fail(v, "%s reads %s, %s, in %s, before the update of the previous step",
                    replay_value(v, by), replay_value(v, x), replay_bytes(v, e), replay_here(v));
}

/* Whether the total x has the bytes of the sum of the slice, so that no call computes x. */
static bool is_its_sum(const Replay *v, const Node *x)
{
    return op_is_sum(x) && target_of(v->options).whole_shards;
}

void replay_read(Replay *v, const Node *by, const Node *x)
{
    if (v->wrong || x->op->leaf == LEAF_CONST)
        return;
    if (x->op->leaf == LEAF_PARAM) {
        read_param(v, by, x);
    } else if (is_its_sum(v, x)) {
        replay_read(v, by, x->in[0]);
        /* x is inlined, or a part of another value */
    } else if (!kernel_needed(x) && !(x->op->flags & OP_SIDE)) {
        for (int i = 0; i < x->nin; i++)
            replay_read(v, by, x->in[i]);
    } else if (made(v, by, x)) {
        Extent e = replay_extent(v, x);
        replay_holds(v, by, holder(x), e);
        e.row = v->in_slice && !(e.region == REGION_SHARD && node_root(x)->place == PLACE_PARTIAL)
                    ? e.row
                    : 0;
        replay_touch(v, by, e, false);
    }
}

/* ---- writing */

static bool overlap(Extent a, Extent b)
{
    return a.region == b.region && a.from < b.to && b.from < a.to;
}

static bool in_frame(const Node *x)
{
    while (!x->within && x->op->flags & OP_VIEW)
        x = x->in[0];
    return x->within || scan_in_place(x);
}

/* Whether the numbers of n lie in the order of its shape. */
static bool in_rows(const Node *n)
{
    const int64_t *dim = n->shape.rank == 1 ? n->flat : n->shape.dim;
    if (n->layout == LAYOUT_TIME)
        return n->shape.dim[0] == 1;
    return n->layout == LAYOUT_ROW || dim[0] == 1 || dim[1] * dim[2] == 1;
}

static bool same_order(const Node *a, const Node *b)
{
    const bool same =
        a->layout == b->layout && (a->shape.rank != 1 || !memcmp(a->flat, b->flat, sizeof a->flat));
    return same || (in_rows(a) && in_rows(b));
}

/* Whether the call of n can overwrite x: it reads a number of x only before it writes the number of
 * its result at the same index. */
static bool number_by_number(const Node *n, const Node *x, bool first)
{
    return n->op->flags & OP_INPLACE && (n->op->flags & OP_ELEMENTWISE || first) && !in_frame(x) &&
           shape_same(&x->shape, &n->shape) && same_order(x, n) && x->dtype == n->dtype &&
           x->half == n->half;
}

/* Whether n and x lie in one frame, in different channels. */
bool replay_beside(const Node *n, const Node *x)
{
    int64_t a, b;
    return node_frame(n, &a) == node_frame(x, &b) && (n->within || x->within) &&
           (a + n->shape.dim[0] <= b || b + x->shape.dim[0] <= a);
}

/* Whether x lies in the concat n, and the call of n copies no other input into the channels of
 * x. */
static bool copied_beside(const Replay *v, const Node *n, const Node *x)
{
    int64_t begin, at;
    if (!v->track->parts[n->id] || !n->op->move || node_frame(n, &begin) != node_frame(x, &at))
        return false;
    for (int i = 0; i < n->nin; i++) {
        Move m = {0};
        n->op->move(n, i, &m);
        const int64_t to = begin + m.start[0];
        if (n->in[i]->within != n && to < at + x->shape.dim[0] && at < to + n->in[i]->shape.dim[0])
            return false;
    }
    return true;
}

/* Checks that x, which the call of n reads, does not overlap the result e, unless the call works in
 * place, number by number. first: x is the first input of n, or inlined into it. */
static void check_in_place(Replay *v, const Node *n, const Node *x, Extent e, bool first)
{
    if (v->wrong || x->op->leaf == LEAF_CONST || x->within == n)
        return;
    if (node_attr(x, "inline")) {
        for (int i = 0; i < x->nin; i++)
            check_in_place(v, n, x->in[i], e, first);
        return;
    }
    const Extent its = replay_extent(v, x);
    if (overlap(e, its) && !replay_beside(n, x) && !copied_beside(v, n, x) &&
        !(its.from == e.from && its.to == e.to && its.row == e.row &&
          number_by_number(n, x, first)))
        replay_fail(v, "%s writes %s in %s while it reads %s, %s, in another order",
                    replay_value(v, n), replay_bytes(v, e), replay_here(v), replay_value(v, x),
                    replay_bytes(v, its));
}

void replay_put(Replay *v, const Node *x, Extent e)
{
    held_put(&v->memory[e.region], (Held){e.from, e.to, x, v->graph, v->at, v->now, e.row, true});
}

/* Records a part of a value that several calls compute, and checks that the parts of earlier calls
 * are still in memory. */
static void put_part(Replay *v, const Node *n, const Node *whole, Extent e)
{
    const int64_t claimed = v->track->claimed[whole->id];
    const bool before = e.region == REGION_SHARD && claimed >= v->begun && claimed < v->phase;
    if (before || claimed >= since(v, whole)) {
        replay_holds(v, n, whole, e);
        return;
    }
    v->track->claimed[whole->id] = v->now;
    replay_put(v, whole, e);
}

static void replay_write(Replay *v, const Node *n)
{
    const Node *whole = holder(n);
    const Extent e = replay_extent(v, n);

    v->now++;
    replay_inside(v, n, e);
    for (int i = 0; i < n->nin && !v->wrong; i++)
        check_in_place(v, n, n->in[i], e, i == 0);
    if (v->wrong ||
        !replay_touch(v, n, (Extent){e.region, e.from, e.to, v->in_slice ? e.row : 0}, true))
        return;
    if (whole != n || n->op->flags & OP_LEAVES || v->track->parts[n->id])
        put_part(v, n, whole, e);
    else
        replay_put(v, n, e);
    v->track->wrote[n->id] = v->now;
}

/* Records an addition to the sum of a slice.  The sum begins with zeros, or with the result of the
 * call if the slice has only one call. */
static void add_to_sum(Replay *v, const Node *n)
{
    const Node *root = node_root(n);
    const Extent e = replay_extent(v, n);
    const bool writes = step_writes_sum(v->graph, n, v->options);

    v->now++;
    if (!replay_touch(v, n, e, true))
        return;
    if (!writes && v->track->wrote[root->id] >= v->step) {
        replay_holds(v, n, root, e);
        return;
    }
    replay_inside(v, n, e);
    if (!writes)
        replay_fail(v, "%s adds to %s, %s, in %s, before it is set to zero", replay_value(v, n),
                    replay_value(v, root), replay_bytes(v, e), replay_here(v));
    else if (v->track->wrote[root->id] >= v->phase)
        replay_fail(v, "%s writes the sum of a slice, %s, more than once in %s", replay_value(v, n),
                    replay_bytes(v, e), replay_here(v));
    replay_put(v, root, e);
    v->track->wrote[root->id] = v->now;
}

void replay_call(Replay *v, const Node *n)
{
    const Node *side = v->track->side[n->id];

    if (v->wrong || !kernel_needed(n) || is_its_sum(v, n))
        return;
    for (int i = 0; i < n->nin; i++)
        replay_read(v, n, n->in[i]);
    if (v->wrong)
        return;
    if (node_root(n)->place == PLACE_PARTIAL)
        add_to_sum(v, n);
    else
        replay_write(v, n);
    if (side && !v->wrong)
        replay_write(v, side);
}
