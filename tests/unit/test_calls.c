/* test_calls.c -- calls of a GPU program: which accesses conflict, which calls share a launch. */
#include "build.h"
#include "cuda/launch.h"

static Operand operand(Memory m, int64_t from, int64_t to, bool writes, const Order *o)
{
    return (Operand){.memory = m, .from = from, .to = to, .writes = writes, .order = o};
}

START_TEST(accesses_conflict)
{
    const Order each = {.walk = WALK_EACH, .count = 16};
    const Operand write = operand(MEMORY_SCRATCH, 0, 64, true, NULL);
    const Operand read = operand(MEMORY_SCRATCH, 32, 96, false, NULL);
    const Operand behind = operand(MEMORY_SCRATCH, 64, 96, true, NULL);
    const Operand fixed = operand(MEMORY_FIXED, 0, 64, true, NULL);
    const Operand mine = operand(MEMORY_SCRATCH, 0, 64, true, &each);
    const Operand yours = operand(MEMORY_SCRATCH, 0, 64, false, &each);
    const Operand part = operand(MEMORY_SCRATCH, 0, 32, false, &each);

    ck_assert(cuda_conflict(&write, &read));
    ck_assert(!cuda_conflict(&read, &read));     /* two reads */
    ck_assert(!cuda_conflict(&write, &behind));  /* adjacent bytes */
    ck_assert(!cuda_conflict(&write, &fixed));   /* another region */
    ck_assert(!cuda_conflict(&mine, &yours));    /* each thread reads its own numbers */
    ck_assert(cuda_conflict(&mine, &read));      /* one has no order */
    ck_assert(cuda_conflict(&mine, &part));      /* one has other bytes */
}
END_TEST

/* An access to an address that is not in the plan conflicts with all earlier accesses. */
START_TEST(unknown_addresses_conflict_with_everything)
{
    const Operand unknown = operand(MEMORY_UNKNOWN, 0, INT64_MAX, false, NULL);
    for (int m = MEMORY_UNKNOWN; m <= MEMORY_NEXT; m++) {
        const Operand other = operand((Memory)m, 8, 16, false, NULL);
        ck_assert(cuda_conflict(&unknown, &other));
        ck_assert(cuda_conflict(&other, &unknown));
    }
}
END_TEST

START_TEST(orders_are_equal_by_value)
{
    Arena *a = arena_new();
    Sizes *s = sizes_new(a, "Dense"), *t = sizes_new(a, "Dense");
    sizes_int(s, "n", 8);
    sizes_int(t, "n", 8);
    const Order x = {WALK_RESULTS, 64, "dense", s, NULL}, y = {WALK_RESULTS, 64, "dense", t, NULL};
    const Order dx = {WALK_RESULTS, 64, "dense_dx", t, NULL}, pool = {WALK_POOL, 64, NULL, s, &x};
    const Order other = {WALK_POOL, 64, NULL, s, &dx};

    ck_assert(cuda_same_order(&x, &y));
    ck_assert(!cuda_same_order(&x, &dx));
    ck_assert(!cuda_same_order(&pool, &other));
    ck_assert(cuda_is_product(&pool));
    sizes_int(t, "o", 8);
    ck_assert(!cuda_same_order(&x, &y));
    ck_assert_str_eq(cuda_order_text(a, &pool),
                     "pool_results(Dense{ .n = 8 }, [=](auto f) { dense_results(Dense{ .n = 8 }, f); }");
    arena_free(a);
}
END_TEST

/* A call of a kernel with one operand. */
static CudaCall *add(Writer *w, Memory m, int64_t from, int64_t to, bool writes)
{
    CudaCall *c = cuda_add(w, "kernel", NULL);
    cuda_give(w, c, ACCESS(m, from, to, writes));
    return c;
}

START_TEST(calls_share_launches)
{
    EmitInput in = {.dtype = "f32"};
    CudaState state = {0};
    Writer w = {.arena = arena_new(), .in = &in, .cuda = &state};
    cuda_list(&w, 0, 3);
    CudaCall *x = add(&w, MEMORY_SCRATCH, 0, 64, true), *y = add(&w, MEMORY_SHARD, 0, 64, true);
    CudaCall *reads = add(&w, MEMORY_SCRATCH, 0, 64, false);
    CudaCall *unknown = add(&w, MEMORY_UNKNOWN, 0, INT64_MAX, false);
    CudaCall *last = cuda_add(&w, "kernel", NULL); /* touches nothing */

    const CudaCalls *l = launch_share(&w);
    ck_assert_int_eq(l->n, 5);
    ck_assert_int_eq(x->launch, y->launch);
    ck_assert_int_lt(y->launch, reads->launch);
    ck_assert_int_lt(reads->launch, unknown->launch);
    ck_assert_int_lt(unknown->launch, last->launch);
    ck_assert_int_eq(launch_count(l), 4 * 3); /* each three times a step */
    arena_free(w.arena);
}
END_TEST

/* A metric is one call, in the first launch after its value. */
START_TEST(metrics_are_written_once)
{
    EmitInput in = {.dtype = "f32"};
    CudaState state = {0};
    Writer w = {.arena = arena_new(), .in = &in, .cuda = &state};
    cuda_list(&w, 0, 1);
    CudaCall *value = add(&w, MEMORY_SCRATCH, 0, 64, true);
    CudaCall *metric = add(&w, MEMORY_SCRATCH, 0, 64, false);
    cuda_give(&w, metric, ACCESS(MEMORY_METRIC, 0, 1, true));
    metric->metric = 0;
    CudaCall *beside = add(&w, MEMORY_SHARD, 0, 64, true), *behind = add(&w, MEMORY_SHARD, 0, 64, true);
    cuda_metrics_here(&w);

    const CudaCalls *l = launch_share(&w);
    ck_assert_int_eq(l->n, 4);
    ck_assert_int_eq(beside->launch, value->launch);
    ck_assert_int_eq(metric->launch, behind->launch);
    ck_assert_int_lt(value->launch, metric->launch);
    arena_free(w.arena);
}
END_TEST

/* A call that waits runs behind calls that do not need it, and before calls that do, and lines of the
 * host. */
START_TEST(calls_wait_for_readers_and_lines)
{
    EmitInput in = {.dtype = "f32"};
    CudaState state = {0};
    Writer w = {.arena = arena_new(), .in = &in, .cuda = &state};
    cuda_list(&w, 0, 1);
    for (int reader = 0; reader < 2; reader++) {
        CudaCall *first = add(&w, MEMORY_APART, 0, 64, true);
        CudaCall *join = add(&w, MEMORY_APART, 0, 64, false);
        cuda_give(&w, join, ACCESS(MEMORY_SHARD, 0, 64, true));
        join->waits = true;
        CudaCall *beside = add(&w, MEMORY_APART, 64, 128, true), *behind;
        if (reader)
            behind = add(&w, MEMORY_SHARD, 0, 64, false);
        else
            cuda_line(&w, "}"), behind = add(&w, MEMORY_SCRATCH, 0, 64, true);

        const CudaCalls *l = launch_share(&w);
        ck_assert_int_eq(first->launch, beside->launch);
        ck_assert_int_lt(first->launch, join->launch);
        ck_assert_int_lt(join->launch, behind->launch);
        ck_assert_ptr_eq(l->call[2], join);
        cuda_list(&w, 0, 1);
    }
    arena_free(w.arena);
}
END_TEST

/* For prices: as the functions NAME_blocks of runtime/cuda. */
START_TEST(blocks_are_counted)
{
    EmitInput in = {.dtype = "f32"};
    CudaState state = {0};
    Writer w = {.arena = arena_new(), .in = &in, .cuda = &state};
    cuda_list(&w, 0, 1);
    ck_assert_int_eq(cuda_call(&w, "kernel", NULL, BLOCKS(7))->blocks.count, 7);
    ck_assert_int_eq(cuda_call(&w, "kernel", NULL, EACH(RT_THREADS + 1))->blocks.count, 2);
    ck_assert_int_eq(cuda_call(&w, "kernel", NULL, BLOCKS_OF("sum", 7))->blocks.count, 7);
    ck_assert_int_eq(cuda_call(&w, "kernel", NULL, BLOCKS_OF("column_join", 65))->blocks.count, 9);
    arena_free(w.arena);
}
END_TEST

/* A loop over the numbers of x that writes y. */
static CudaCall *add_loop(Writer *w, Node *y, Node *x, int64_t count)
{
    CudaCall *c = cuda_call(w, "loop", y, POINTER("y", y, "y", true), POINTER("a", x, "a", false),
                            EACH(count));
    c->code = "        y[i] = a[i];\n", c->index = "i";
    c->operand[0].walked = c->operand[1].walked = true;
    c->natural = cuda_order(w->arena, (Order){.walk = WALK_EACH, .count = count});
    cuda_give_order(w, c, c->natural);
    return c;
}

/* A graph with three values of `count` numbers in the memory of a shard, one after another. */
typedef struct Loops {
    Bench b;
    EmitInput in;
    CudaState state;
    Step step;
    Writer w;
    Node *x, *y, *z;
} Loops;

static void loops_new(Loops *l, int64_t count)
{
    static const Options options = {.cuda = true};
    *l = (Loops){.b = bench_new(), .in = {.dtype = "f32", .options = &options}, .step = {.chunk = 1}};
    l->w = (Writer){.arena = l->b.a, .g = l->b.g, .in = &l->in, .cuda = &l->state};
    l->b.g->step = &l->step;
    l->x = input(&l->b, BATCHED(count));
    l->y = input(&l->b, BATCHED(count));
    l->z = input(&l->b, BATCHED(count));
    Node *all[] = {l->x, l->y, l->z};
    for (int i = 0; i < 3; i++)
        all[i]->place = PLACE_BATCH, all[i]->offset = i * count * 4;
    cuda_list(&l->w, 0, 1);
}

static Walk walk_of(const CudaCall *c)
{
    return c->order->walk;
}

enum { MANY = RT_FULL * RT_THREADS * RT_PACK };

START_TEST(loops_over_many_numbers_take_packs)
{
    Loops l;
    loops_new(&l, MANY);
    const CudaCall *c = add_loop(&l.w, l.y, l.x, MANY);
    launch_share(&l.w);
    ck_assert_int_eq(walk_of(c), WALK_PACKS);
    ck_assert_int_eq(c->blocks.count, RT_FULL);
    ck_assert_ptr_eq(c->operand[0].order, c->order);
    ck_assert_ptr_eq(c->operand[1].order, c->order);
    arena_free(l.b.a);

    loops_new(&l, MANY - 1);
    c = add_loop(&l.w, l.y, l.x, MANY - 1);
    launch_share(&l.w);
    ck_assert_int_eq(walk_of(c), WALK_EACH);
    ck_assert_int_eq(c->blocks.count, RT_FULL * RT_PACK);
    arena_free(l.b.a);
}
END_TEST

/* The first number of a part of another value can lie inside of a pack. */
START_TEST(packs_are_aligned)
{
    Loops l;
    loops_new(&l, MANY);
    l.x->within = l.z, l.x->start = 2;
    const CudaCall *reads = add_loop(&l.w, l.y, l.x, MANY);
    launch_share(&l.w);
    ck_assert_int_eq(walk_of(reads), WALK_PACKS);
    ck_assert_ptr_null(reads->operand[1].order);
    arena_free(l.b.a);

    loops_new(&l, MANY);
    l.y->within = l.z, l.y->start = 2;
    const CudaCall *writes = add_loop(&l.w, l.y, l.x, MANY);
    launch_share(&l.w);
    ck_assert_int_eq(walk_of(writes), WALK_EACH);
    arena_free(l.b.a);
}
END_TEST

/* Calls that share a launch because a thread continues with its own numbers keep these numbers. */
START_TEST(packs_keep_the_numbers_of_threads)
{
    Loops l;
    loops_new(&l, MANY);
    const CudaCall *first = add_loop(&l.w, l.y, l.x, MANY);
    CudaCall *beside = add(&l.w, MEMORY_FIXED, 0, 64, true);
    const CudaCall *second = add_loop(&l.w, l.z, l.y, MANY);
    launch_share(&l.w);
    ck_assert_int_eq(first->launch, second->launch);
    ck_assert_int_eq(first->loop, 0);
    ck_assert_int_eq(walk_of(first), WALK_EACH);
    ck_assert_int_eq(walk_of(second), WALK_EACH);
    arena_free(l.b.a);

    loops_new(&l, MANY);
    first = add_loop(&l.w, l.y, l.x, MANY);
    beside = add(&l.w, MEMORY_FIXED, 0, 64, true);
    launch_share(&l.w);
    ck_assert_int_eq(first->launch, beside->launch);
    ck_assert_int_eq(walk_of(first), WALK_PACKS);
    arena_free(l.b.a);
}
END_TEST

/* Neighbouring calls share a loop instead. */
START_TEST(a_shared_loop_has_no_packs)
{
    Loops l;
    loops_new(&l, MANY);
    const CudaCall *first = add_loop(&l.w, l.y, l.x, MANY), *second = add_loop(&l.w, l.z, l.y, MANY);
    launch_share(&l.w);
    ck_assert_int_ne(first->loop, 0);
    ck_assert_int_eq(first->loop, second->loop);
    ck_assert_int_eq(walk_of(first), WALK_EACH);
    ck_assert_int_eq(walk_of(second), WALK_EACH);
    arena_free(l.b.a);
}
END_TEST

TEST_MAIN("calls", accesses_conflict, unknown_addresses_conflict_with_everything,
          orders_are_equal_by_value, calls_share_launches, metrics_are_written_once,
          calls_wait_for_readers_and_lines, blocks_are_counted,
          loops_over_many_numbers_take_packs, packs_are_aligned,
          packs_keep_the_numbers_of_threads, a_shared_loop_has_no_packs)
