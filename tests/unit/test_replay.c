/* test_replay.c -- planned steps with faults: the replay finds each fault, and names the values,
 * their bytes and the phase. */
#include "build.h"
#include "front/front.h"
#include "ir/step.h"
#include "passes/pass.h"
#include <string.h>

#ifndef MODELS_DIR
#define MODELS_DIR "models"
#endif

typedef struct Planned {
    Arena *a;
    Front f;
    Options o;
} Planned;

static Planned planned(const char *model, Options o)
{
    Planned p = {.a = arena_new(), .o = o};
    Diag *d = diag_new(p.a, DIAG_NEVER);
    const FrontOptions fo = {.dtype = "f32"};
    p.o.vector = 8, p.o.cpu = "x86-64-v3", p.o.threads = 2;
    const bool ok =
        front_load(p.a, arena_printf(p.a, "%s/%s.tn", MODELS_DIR, model), &fo, d, &p.f) &&
        pass_run_all(p.f.train, &p.o, d);
    p.f.test->peer = p.f.train;
    const bool both = ok && pass_run_all(p.f.test, &p.o, d);
    diag_print(d, stderr);
    ck_assert(both);
    ck_assert_ptr_null(replay_verify(p.f.train, &p.o));
    ck_assert_ptr_null(replay_verify(p.f.test, &p.o));
    return p;
}

/* Moves all values that share the bytes of root. */
static void move(const Graph *g, const Node *root, int64_t to)
{
    for (int i = 0; i < g->nnode; i++)
        if (node_root(g->node[i]) == root && g->node[i] != root)
            g->node[i]->offset = to;
    ((Node *)root)->offset = to;
}

static Node *named(const Graph *g, const char *op, const char *name)
{
    for (int i = 0; i < g->nnode; i++)
        if (node_is(g->node[i], op) && g->node[i]->name && !strcmp(g->node[i]->name, name))
            return g->node[i];
    ck_abort_msg("there is no %s %s", op, name);
}

static void finds(const Planned *p, const Graph *g, const char *const *words)
{
    const char *wrong = replay_verify(g, &p->o);
    ck_assert_msg(wrong != NULL, "the fault is not found: %s", words[0]);
    for (; *words; words++)
        ck_contains(wrong, *words);
}
#define FINDS(p, g, ...) finds(p, g, (const char *const[]){__VA_ARGS__, NULL})

static Phase *phase_of(const Graph *g, PhaseKind kind)
{
    for (int i = 0; i < g->step->nphase; i++)
        if (g->step->phase[i].kind == kind)
            return &g->step->phase[i];
    ck_abort_msg("there is no such phase");
}

static int place_in(const Phase *p, const Node *n)
{
    for (int i = 0; i < p->nnode; i++)
        if (p->node[i] == n)
            return i;
    ck_abort_msg("the phase does not call %s", n->op->name);
}

/* ---- one fault each */

START_TEST(two_living_values_share_bytes)
{
    Planned p = planned("lenet", (Options){0});
    const Graph *g = p.f.train;
    const Node *x = named(g, "conv2d", "conv1"), *y = named(g, "conv2d", "conv2");
    move(g, y, x->offset);
    FINDS(&p, g, "(conv1), bytes ", " of a shard's region", "(slice) of training",
          "(conv2) writes bytes ");
    arena_free(p.a);
}
END_TEST

START_TEST(bytes_are_used_again_too_early)
{
    Planned p = planned("lenet", (Options){.plain = true});
    const Graph *g = p.f.train;
    Node *x = node_root(first_op(g, "max_pool"));
    const Node *next = NULL;
    for (int i = 0; i < g->nnode && !next;
         i++) /* the first gradient: the second convolution's gradient still reads x */
        if (g->node[i]->backward && g->node[i]->place == PLACE_LOCAL && g->node[i]->shape.batched &&
            node_root(g->node[i]) == g->node[i])
            next = g->node[i];
    ck_assert_ptr_nonnull(next);
    move(g, next, x->offset + 64);
    FINDS(&p, g, "max_pool", "bytes ", "but these bytes hold", next->op->name, "of phase ");
    arena_free(p.a);
}
END_TEST

START_TEST(a_value_is_read_before_it_is_written)
{
    Planned p = planned("lenet", (Options){0});
    const Graph *g = p.f.train;
    Phase *s = phase_of(g, PHASE_SLICE);
    const int i = place_in(s, named(g, "conv2d", "conv1")),
              k = place_in(s, named(g, "conv2d", "conv2"));
    Node *x = s->node[i];
    s->node[i] = s->node[k], s->node[k] = x;
    FINDS(&p, g, "(conv2) reads ", "(conv1), bytes ", "(slice) of training",
          "before it is written");
    arena_free(p.a);
}
END_TEST

START_TEST(the_second_chunk_finds_what_the_first_has_left)
{
    Planned p = planned("lenet", (Options){0});
    const Graph *g = p.f.train;
    Phase *s = phase_of(g, PHASE_SLICE);
    Node *last = s->node[0];
    ck_assert(g->step->slice > 0);
    memmove(s->node, s->node + 1, (size_t)(s->nnode - 1) * sizeof *s->node);
    s->node[s->nnode - 1] = last;
    FINDS(&p, g, "before it is written");
    arena_free(p.a);
}
END_TEST

START_TEST(units_of_a_phase_meet)
{
    Planned p = planned("resnet20_cifar10", (Options){0});
    const Graph *g = p.f.train;
    const Step *s = g->step;
    const Node *first = NULL, *second = NULL;
    for (int i = 0; i < s->nbuffer && !second;
         i++) /* one value is read for the last time where the other one is made */
        for (int k = 0; k < s->nbuffer && !second; k++)
            if (s->buffer[i].place == PLACE_BATCH && s->buffer[k].place == PLACE_BATCH &&
                s->buffer[i].last == s->buffer[k].first &&
                s->buffer[i].first < s->buffer[k].first && s->buffer[i].bytes != s->buffer[k].bytes)
                first = s->buffer[i].node, second = s->buffer[k].node;
    ck_assert_ptr_nonnull(second);
    move(g, second, first->offset);
    FINDS(&p, g, "of a shard's region");
    arena_free(p.a);
}
END_TEST

START_TEST(an_operation_overwrites_its_input_in_another_order)
{
    Planned p = planned("lenet", (Options){0});
    const Graph *g = p.f.train;
    Node *x = node_root(named(g, "conv2d", "conv1")), *y = named(g, "conv2d", "conv2");
    y->alias = x;
    move(g, x, x->offset);
    FINDS(&p, g, "(conv2) writes bytes ", "while it reads ", "(conv1), bytes ", "in another order");
    arena_free(p.a);
}
END_TEST

START_TEST(a_wide_layer_is_not_written_in_place)
{
    Planned p = planned("mlp_wide", (Options){0});
    const Graph *g = p.f.train;
    const Node *wide = phase_of(g, PHASE_WIDE)->node[0];
    const Node *x = node_root(wide->in[0]);
    move(g, x, node_root(wide)->offset);
    FINDS(&p, g, wide->op->name, "of a shard's region", "(wide) of training", "while it reads",
          x->name);
    arena_free(p.a);
}
END_TEST

START_TEST(packed_weights_lie_on_a_parameter)
{
    Planned p = planned("lenet", (Options){0});
    const Graph *g = p.f.train;
    Node *packed = phase_of(g, PHASE_PREPARE)->node[0];
    packed->offset = g->param[0]->offset;
    FINDS(&p, g, g->param[0]->name, "of the fixed region", packed->op->name);
    arena_free(p.a);
}
END_TEST

START_TEST(two_parameters_share_bytes)
{
    Planned p = planned("lenet", (Options){0});
    const Graph *g = p.f.train;
    g->param[1]->offset = g->param[0]->offset + 64;
    FINDS(&p, g, g->param[0]->name, g->param[1]->name, "share bytes ");
    arena_free(p.a);
}
END_TEST

START_TEST(evaluation_overwrites_a_parameter)
{
    Planned p = planned("lenet", (Options){0});
    const Graph *g = p.f.test;
    Node *packed = phase_of(g, PHASE_PREPARE)->node[0];
    packed->offset = p.f.train->param[0]->offset;
    FINDS(&p, g, p.f.train->param[0]->name, packed->op->name, "of evaluation");
    arena_free(p.a);
}
END_TEST

START_TEST(evaluation_needs_more_than_the_arena_has)
{
    Planned p = planned("lenet", (Options){0});
    const Graph *g = p.f.test;
    Node *x = node_root(named(g, "conv2d", "conv1"));
    move(g, x, p.f.train->step->thread_bytes);
    FINDS(&p, g, "(conv1), bytes ", "does not lie in these");
    arena_free(p.a);
}
END_TEST

START_TEST(two_sums_share_bytes_of_the_gradient_buffer)
{
    Planned p = planned("lenet", (Options){0});
    const Step *s = p.f.train->step;
    s->sum[1].offset = s->sum[0].offset;
    FINDS(&p, p.f.train, "of the gradient buffer", "(gradient) of training");
    arena_free(p.a);
}
END_TEST

START_TEST(the_sums_of_two_layers_share_a_slice)
{
    Planned p = planned("resnet20_cifar10", (Options){0});
    const Graph *g = p.f.train;
    const Step *s = g->step;
    const Node *sum[2] = {NULL};
    for (int i = 0; i < s->ngradient; i++) /* the last two */
        if (!s->sum[i].panels)
            sum[0] = sum[1], sum[1] = s->sum[i].root;
    ck_assert_ptr_nonnull(sum[0]);
    move(g, sum[1], sum[0]->offset);
    FINDS(&p, g, "of a shard's region", sum[1]->op->name, "while another unit of the phase");
    arena_free(p.a);
}
END_TEST

START_TEST(a_value_reaches_into_the_scratch_of_kernels)
{
    Planned p = planned("gpt_char", (Options){0});
    const Graph *g = p.f.train;
    ck_assert_int_gt(g->step->scratch_at, 64);
    g->step->scratch_at = 64;
    FINDS(&p, g, "reaches into the scratch of kernels at byte 64");
    arena_free(p.a);
}
END_TEST

START_TEST(a_state_of_a_loop_is_overwritten)
{
    Planned p = planned("lstm_synthetic", (Options){.plain = true});
    const Graph *g = p.f.train;
    const Loop *l = g->loop[0];
    const Node *x = NULL;
    for (int i = 0; i < g->nnode && !x; i++)
        if (g->node[i]->loop == l && node_is(g->node[i], "dense") &&
            node_root(g->node[i]) == g->node[i])
            x = g->node[i];
    ck_assert_ptr_nonnull(x);
    move(g, x, l->carry[0].state->offset);
    FINDS(&p, g, "scan_state", "dense", "of a thread's region");
    arena_free(p.a);
}
END_TEST

START_TEST(a_bucket_is_updated_too_late)
{
    Planned p = planned("lenet", (Options){.overlap = true, .bucket = 1 << 16});
    const Step *s = p.f.train->step;
    ck_assert_int_gt(s->nbucket, 1);
    ck_assert(s->late);
    s->bucket[s->nbucket - 1].due++;
    FINDS(&p, p.f.train, "reads ", "conv1.weight", "before the update of the previous step");
    arena_free(p.a);
}
END_TEST

START_TEST(a_bucket_is_added_up_too_early)
{
    Planned p = planned("lenet", (Options){.overlap = true, .bucket = 1 << 16});
    const Step *s = p.f.train->step;
    s->bucket[s->nbucket - 1].ready = 0;
    FINDS(&p, p.f.train, "before it is written");
    arena_free(p.a);
}
END_TEST

/* ---- many faults: of each pair of values that live at the same time, one is moved onto the
 * other */

static bool both_alive(const Buffer *a, const Buffer *b)
{
    const bool region = (a->place == PLACE_LOCAL) == (b->place == PLACE_LOCAL);
    return region && a->first < b->last && b->first < a->last && a->first != b->first;
}

static int moved_onto(const Planned *p, const Graph *g, int *found)
{
    const Step *s = g->step;
    int planted = 0;
    for (int i = 0; i < s->nbuffer; i++)
        for (int k = 0; k < s->nbuffer; k++) {
            const Node *a = s->buffer[i].node, *b = s->buffer[k].node;
            const int64_t was = a->offset;
            if (i == k || !both_alive(&s->buffer[i], &s->buffer[k]))
                continue;
            move(g, a, b->offset);
            *found += replay_verify(g, &p->o) != NULL;
            planted++;
            move(g, a, was);
        }
    ck_assert_ptr_null(replay_verify(g, &p->o));
    return planted;
}

/* spared: number of faults without effect, because pass plan keeps values longer than they are read: an output to the end of its
 * phase, a value that a loop reads to the end of the loop, and on a GPU for some more calls. */
static void sweep(const char *model, Options o, int spared)
{
    Planned p = planned(model, o);
    int found = 0;
    const int planted = moved_onto(&p, p.f.train, &found) + moved_onto(&p, p.f.test, &found);
    ck_assert_int_gt(planted, 20);
    ck_assert_int_ge(found, planted - spared);
    arena_free(p.a);
}

START_TEST(every_pair_of_lenet)
{
    sweep("lenet", (Options){0}, 10);
}
END_TEST
START_TEST(every_pair_of_lenet_on_a_gpu)
{
    sweep("lenet", (Options){.cuda = true}, 10);
}
END_TEST
START_TEST(every_pair_of_lenet_plain)
{
    sweep("lenet", (Options){.plain = true}, 2);
}
END_TEST
START_TEST(every_pair_of_an_lstm)
{
    sweep("lstm_synthetic", (Options){0}, 18);
}
END_TEST

TEST_MAIN("replay", two_living_values_share_bytes, bytes_are_used_again_too_early,
          a_value_is_read_before_it_is_written, the_second_chunk_finds_what_the_first_has_left,
          units_of_a_phase_meet, an_operation_overwrites_its_input_in_another_order,
          a_wide_layer_is_not_written_in_place, packed_weights_lie_on_a_parameter,
          two_parameters_share_bytes, evaluation_overwrites_a_parameter,
          evaluation_needs_more_than_the_arena_has, two_sums_share_bytes_of_the_gradient_buffer,
          the_sums_of_two_layers_share_a_slice, a_value_reaches_into_the_scratch_of_kernels,
          a_state_of_a_loop_is_overwritten, a_bucket_is_updated_too_late,
          a_bucket_is_added_up_too_early, every_pair_of_lenet, every_pair_of_lenet_on_a_gpu,
          every_pair_of_lenet_plain, every_pair_of_an_lstm)
