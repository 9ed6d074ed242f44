/* spell_recurrence.c -- writes the kernel of a loop over time that one launch computes
 * (recurrence.c, runtime/cuda/recurrence.cuh).
 *
 *     const Samples<128, 1> samples;                  the block's samples, and their values
 *     real *const value0 = samples.value(0, 512);
 *     Weights<512, 128, 1, 80, false> weights0;       weights in registers and shared memory
 *     recurrence_item<...>(..., 0);                   elements of sequences, copied ahead
 *     for (int step = 0; step < 40; step++) {
 *         weights0.product(samples, value0, value1);  a region
 *         block_sync();
 *         ...
 *     } */
#include "cuda/recurrence.h"
#include "cuda/spell_kernel.h"
#include "ops/op.h"

enum { BEFORE = -1 }; /* in place of a region: before the first step */

/* The kernel of a loop, while it is written. */
typedef struct LoopKernel {
    Arena *a;
    GroupKernel kernel;
    const Recurrence *r;
    CudaCall *const *call;
    int n, *member; /* kernels of the elementwise calls */
    bool copying;   /* copies of elements can be on their way */
} LoopKernel;

static const char *loop_indent(int region)
{
    return region == BEFORE ? "    " : "        ";
}

static const char *loop_argument(LoopKernel *k, const CudaCall *c, int i)
{
    return spell_argument(&k->kernel, &c->arg[i]);
}

/* Declares the variables of the body: the number of the step, and the values. */
static void loop_locals(LoopKernel *k)
{
    const Argument step = {.name = "step", .value = "step"};
    ARENA_PUSH(k->a, k->kernel.local, k->kernel.nlocal, step);
    for (int i = 0; i < k->r->nvalue; i++) {
        const Argument value = {.name = arena_printf(k->a, "value%d", i),
                                .value = k->r->value[i].pointer};
        ARENA_PUSH(k->a, k->kernel.local, k->kernel.nlocal, value);
    }
}

/* Writes the values, and loads the weights. */
static void loop_begin(LoopKernel *k)
{
    const Recurrence *r = k->r;
    Text *t = &k->kernel.body;

    text_printf(t, "    const Samples<%lld, %lld> samples;\n", (long long)r->samples,
                (long long)r->each);
    for (int i = 0; i < r->nvalue; i++)
        text_printf(t, "    real *const value%d = samples.value(%lld, %lld);\n", i,
                    (long long)r->value[i].at, (long long)r->value[i].size);
    for (int i = 0; i < r->nproduct; i++) {
        const RecurrenceProduct *p = &r->product[i];
        const int weights = p->adjacent ? 2 : 1;
        if (p->parts > 1)
            text_printf(t, "    real *const parts%d = samples.value(%lld, %lld);\n", i,
                        (long long)p->parts_at, (long long)(p->parts * p->outputs));
        text_printf(t, "    Weights<%lld, %lld, %lld, %lld, %s> weights%d;\n",
                    (long long)p->outputs, (long long)p->k, (long long)p->parts, (long long)p->held,
                    p->pads ? "true" : "false", i);
        text_printf(t, "    weights%d.begin<%s>(recurrence_memory() + %lld, %s);\n", i,
                    p->adjacent ? "STEPS_ADJACENT" : "OUTPUTS_ADJACENT", (long long)p->at,
                    loop_argument(k, p->call, weights));
    }
}

/* Writes the copies of values from memory, or to memory. */
static void loop_copies(LoopKernel *k, bool fetch)
{
    for (int i = 0; i < k->r->nvalue; i++) {
        const RecurrenceValue *v = &k->r->value[i];
        if (!(fetch ? v->fetched : v->stored))
            continue;
        const Argument g = {.type = "real *", .name = "a", .constant = fetch, .value = v->pointer};
        const char *here = arena_printf(k->a, "value%d", i),
                   *there = spell_parameter(&k->kernel, &g);
        text_printf(&k->kernel.body, "    recurrence_copy<%lld>(samples, %s, %s);\n",
                    (long long)v->size, fetch ? here : there, fetch ? there : here);
    }
}

/* The step whose element is copied. */
static const char *loop_item_step(const LoopKernel *k, const RecurrenceItem *item, int region)
{
    const Loop *l = k->r->loop;
    if (region == BEFORE)
        return arena_printf(k->a, "%lld", l->reversed ? (long long)l->steps - 1 : 0);
    return !item->ahead ? "step" : l->reversed ? "step - 1" : "step + 1";
}

/* Writes the copies of elements that start in a region. */
static void loop_items(LoopKernel *k, int region)
{
    const char *indent = loop_indent(region);
    bool any = false;

    for (int i = 0; i < k->r->nitem; i++) {
        const RecurrenceItem *item = &k->r->item[i];
        if (region == BEFORE ? !item->ahead : item->region != region)
            continue;
        text_printf(&k->kernel.body, "%srecurrence_item<%lld, %lld>(samples, %s, %s, %s);\n",
                    indent, (long long)item->size, (long long)item->steps,
                    loop_argument(k, item->call, 0), loop_argument(k, item->call, 1),
                    loop_item_step(k, item, region));
        any = true;
    }
    if (any)
        text_printf(&k->kernel.body, "%scopy_group();\n", indent);
    k->copying |= any;
}

static void loop_wait(LoopKernel *k, int region)
{
    if (k->copying)
        text_printf(&k->kernel.body, "%scopy_wait<0>();\n", loop_indent(region));
    k->copying = false;
}

/* Whether a thread waits for its copies before the call. */
static bool loop_waits(const LoopKernel *k, const CudaCall *c)
{
    bool waits = false;
    for (int i = 0; i < k->r->nitem; i++)
        waits |= k->copying && k->r->item[i].reader == c;
    return waits;
}

/* Whether the elementwise call i of a region can share the loop of the one before it. */
static bool loop_continues(const LoopKernel *k, int i, int before)
{
    const CudaCall *c = k->call[i], *other = before < 0 ? NULL : k->call[before];
    return other && !loop_waits(k, c) && other->role == RECURRENCE_EACH &&
           other->region == c->region && other->natural->count == c->natural->count;
}

static void loop_product(LoopKernel *k, const CudaCall *c)
{
    const int i = recurrence_product(k->r, c);
    const bool dx = c->node->op->role == ROLE_DX;
    text_printf(&k->kernel.body, "        weights%d.product(samples, ", i);
    if (k->r->product[i].parts > 1)
        text_printf(&k->kernel.body, "parts%d", i);
    else
        text_add(&k->kernel.body, loop_argument(k, c, 0));
    text_printf(&k->kernel.body, ", %s);\n", loop_argument(k, c, dx ? 2 : 1));
}

static void loop_join(LoopKernel *k, const CudaCall *c)
{
    const int i = recurrence_product(k->r, c);
    text_printf(&k->kernel.body, "        recurrence_join<%lld, %lld>(samples, %s, parts%d);\n",
                (long long)k->r->product[i].outputs, (long long)k->r->product[i].parts,
                loop_argument(k, c, 0), i);
}

/* Writes the calls of a region. */
static void loop_region(LoopKernel *k, int region)
{
    int before = -1;
    loop_items(k, region);
    for (int i = 0; i < k->n; i++) {
        const CudaCall *c = k->call[i];
        if (c->region != region || c->role == RECURRENCE_ITEM)
            continue;
        const bool each = c->role == RECURRENCE_EACH,
                   continues = each && loop_continues(k, i, before);
        if (before >= 0 && k->call[before]->role == RECURRENCE_EACH && !continues)
            text_add(&k->kernel.body, "        }\n");
        if (loop_waits(k, c))
            loop_wait(k, region);
        if (each && !continues)
            text_printf(&k->kernel.body, "        FOR_SAMPLES(at, samples, %lld) {\n",
                        (long long)(c->natural->count / k->r->samples));
        if (each)
            spell_member(&k->kernel,
                         arena_printf(k->a, "            %s_at(at, ",
                                      k->kernel.w->kernel[k->member[i]].name),
                         c);
        else if (c->role == RECURRENCE_JOIN)
            loop_join(k, c);
        else
            loop_product(k, c);
        before = i;
    }
    if (before >= 0 && k->call[before]->role == RECURRENCE_EACH)
        text_add(&k->kernel.body, "        }\n");
}

/* Writes the end of a region: the wait for copies that other threads read, and the barrier. */
static void loop_barrier(LoopKernel *k, int region)
{
    const Recurrence *r = k->r;
    const bool barrier = region == BEFORE           ? r->barrier_before
                         : region + 1 == r->regions ? r->barrier_after
                                                    : true;
    bool ready = false;
    for (int i = 0; i < r->nitem; i++)
        ready |=
            region == BEFORE ? r->item[i].ahead && !r->item[i].reader : r->item[i].ready == region;
    if (ready)
        loop_wait(k, region);
    if (barrier)
        text_printf(&k->kernel.body, "%sblock_sync();\n", loop_indent(region));
}

static void loop_kernel_text(LoopKernel *k)
{
    const Recurrence *r = k->r;
    const Loop *l = r->loop;

    loop_begin(k);
    loop_copies(k, true);
    loop_items(k, BEFORE);
    loop_barrier(k, BEFORE);
    text_printf(&k->kernel.body,
                l->reversed ? "    for (int step = %lld; step >= 0; step--) {\n"
                            : "    for (int step = 0; step < %lld; step++) {\n",
                (long long)(l->reversed ? l->steps - 1 : l->steps));
    k->copying = r->nitem > 0; /* those of the step before */
    for (int region = 0; region < r->regions; region++) {
        loop_region(k, region);
        loop_barrier(k, region);
    }
    text_add(&k->kernel.body, "    }\n");
    loop_copies(k, false);
}

const char *spell_recurrence(Writer *w, CudaCall *const *call, int n)
{
    const Recurrence *r = call[0]->recurrence;
    LoopKernel k = {.a = w->arena,
                    .kernel = {.w = w, .body = text_new(w->arena)},
                    .r = r,
                    .call = call,
                    .n = n,
                    .member = arena_alloc(w->arena, sizeof *k.member * (size_t)n)};
    Blocks *b = arena_alloc(w->arena, sizeof *b);

    for (int i = 0; i < n; i++) {
        k.member[i] = spell_kernel_of(w, call[i]);
        w->kernel[k.member[i]].cuda->stepped |= call[i]->role == RECURRENCE_EACH;
    }
    loop_locals(&k);
    loop_kernel_text(&k);
    b->number = arena_printf(w->arena, "%lld", (long long)recurrence_blocks(r));
    return spell_group(&k.kernel, "recurrence", b, r->numbers);
}
