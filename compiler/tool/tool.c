/* tool.c -- the commands of `tenon` as steps of the pipeline in main.c. */
#include "tool/tool.h"
#include "base/environment.h"
#include "cpu/cpu.h"
#include "cuda/cuda.h"
#include "front/share.h"
#include "front/train.h"
#include "ops/step_price.h"
#include "pictures/pictures.h"
#include "runtime/constants.h"
#include "scripts/scripts.h"
#include "tool/bench.h"
#include "tool/build.h"
#include "tool/cache.h"
#include "tool/completion.h"
#include "tool/editor.h"
#include "tool/file.h"
#include "tool/fmt.h"
#include "tool/manual.h"
#include "tool/new.h"
#include "tool/objects.h"
#include "tool/plans.h"
#include "tool/process.h"
#include "tool/show.h"
#include "tool/show_gpu.h"
#include "tool/tune.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

static const Span nowhere;

static bool cache_command(const Command *c, Diag *d)
{
    Arena *a = diag_arena(d);
    return (!c->limit || cache_limit(a, c->limit, d)) && (!c->clear || cache_clear(a, d)) &&
           cache_report(a, d);
}

bool tool_answer(const Command *c, Diag *d)
{
    if (c->kind == COMMAND_OPS)
        return manual_print(c, d);
    if (c->kind == COMMAND_CACHE)
        return cache_command(c, d);
    if (c->kind == COMMAND_FMT)
        return fmt_files(c, d);
    if (c->kind == COMMAND_NEW)
        return new_model(c, d);
    if (c->kind == COMMAND_COMPLETION)
        return completion_print(c, d);
    if (c->kind == COMMAND_WATCH)
        return bench_watch(c, d);
    if (c->kind == COMMAND_SWEEP || c->kind == COMMAND_RESULTS)
        return bench_start(c, d);
    if (c->kind == COMMAND_LSP)
        return editor_start(c, d);
    if (c->kind == COMMAND_VERSION)
        puts(TENON_NAME);
    else
        command_help(c->topic);
    return true;
}

/* ---- before the passes */

static bool dumps_calls(const Command *c)
{
    return c->options.dump && strcmp(c->options.dump, "calls") == 0;
}

const char **tool_dump_names(Arena *a, int *n)
{
    const char **name = NULL;
    *n = 0;
    ARENA_PUSH(a, name, *n, "all");
    ARENA_PUSH(a, name, *n, "calls");
    for (const Pass *p = pass_table; p->name; p++)
        if (!p->cleans)
            ARENA_PUSH(a, name, *n, p->name);
    return name;
}

static bool dump_known(Arena *a, const char *name, Diag *d)
{
    int n;
    const char **known = tool_dump_names(a, &n);
    for (int i = 0; i < n; i++)
        if (strcmp(name, known[i]) == 0)
            return true;
    diag_error(d, nowhere, "--dump: there is no pass '%s'", name);
    diag_suggest(d, name, known, n);
    return false;
}

static bool choose_machine(Command *c, const Front *f, Diag *d)
{
    const Machine *m = machine_find(c->options.cpu);
    const bool compiles = c->kind == COMMAND_BUILD || c->kind == COMMAND_RUN || c->tune;
    const char *cc = environment(ENV_CC);
    if (!m) { /* command_parse has checked --cpu, so the variable is wrong */
        diag_error(d, nowhere, "TENON_CPU=%s: there is no such processor", c->options.cpu);
        diag_help(d, "set it to a value of --cpu (tenon build --help lists them), or unset it for "
                     "this machine's processor");
        return false;
    }
    if (compiles && !machine_fits_host(m) && !cc) {
        diag_error(d, nowhere, "--cpu %s is of another family of processors than this machine",
                   m->name);
        diag_help(d, "set CC to a C compiler for that family, or use tenon emit");
        return false;
    }
    const int real = dtype_bytes(f->recipe.dtype);
    c->options.cpu = m->name;
    c->options.vector = machine_lanes(m, real);
    if (c->options.half) /* the kernels of each processor have the order of this one */
        c->options.vector = machine_lanes(machine_find(target_core(&c->options)), real);
    if (c->tune && f->train)
        c->options.tuner = tune_new(diag_arena(d), c, f->recipe.dtype, d);
    return !c->tune || !f->train || c->options.tuner;
}

/* Sets c->written to a text that is made before the passes change the graph: a picture of blocks,
 * for a graph that is too large to read, or a script for another framework.  Else c->written stays
 * NULL. */
static bool write_forward(Command *c, const Front *f, Diag *d)
{
    enum { READABLE = 100 };
    Graph *g = f->train ? f->train : f->test;
    Text out = text_new(diag_arena(d));
    if (script_known(c->to) && c->options.half && !c->options.cuda) {
        diag_error(d, nowhere, "--to %s writes a script in f32 or f64, and the type is bf16",
                   c->to);
        diag_help(d, "add --dtype f32");
        return false;
    }
    if (script_known(c->to)) {
        if (g == f->train)
            front_pack_outputs(g);
        if (!script_python(g, c->to, f->source->name, &out, d))
            return false;
        c->written = out.s;
    } else if (c->as_written) {
        picture_calls(g, &out);
        c->written = out.s;
    } else if (strcmp(c->to, "dot") == 0 && g->nnode > READABLE) {
        picture_blocks(g, &out);
        c->written = out.s;
    }
    return true;
}

bool tool_take_recipe(Command *c, Front *f, Diag *d)
{
    if (!command_take_recipe(c, &f->recipe.dtype, d))
        return false;
    if (f->train)
        f->train->recipe.dtype = f->recipe.dtype;
    if (f->test)
        f->test->recipe.dtype = f->recipe.dtype;
    return true;
}

static void set_hashes(Command *c, const Front *f, Arena *a)
{
    Recipe *r = &f->train->recipe;
    Watch *const watch[] = {&r->keep, &r->stop, &r->schedule.watch};
    for (size_t i = 0; i < sizeof watch / sizeof *watch; i++) {
        const Measure *m = watch[i]->result ? measure_of(r, watch[i]->result) : NULL;
        watch[i]->meaning = m ? emit_meaning(a, f->test, m) : NULL;
    }
    c->hash = emit_hash(a, f->train, f->recipe.dtype);
}

/* Reports what is made of a training step only. */
static bool report_untrained(const Front *f, const char *what, Diag *d)
{
    diag_error(d, f->train->input->span, "%s, and model '%s' has no train block", what,
               f->train->name);
    diag_help(d, "leave out --model: then it is that of '%s'", f->trained->name);
    return false;
}

/* Checks a program that predicts with the weights of another model. */
static bool check_shared(const Command *c, const Front *f, Diag *d)
{
    if (c->kind == COMMAND_EMIT && script_known(c->to))
        return report_untrained(f, "the script of another framework trains", d);
    if (c->kind == COMMAND_EMIT && strcmp(c->to, "slurm") == 0)
        return report_untrained(f, "the job for Slurm trains", d);
    return share_check(f->train, f->trained, d);
}

bool tool_begin(Command *c, const Front *f, Diag *d)
{
    const bool makes = c->kind == COMMAND_BUILD || c->kind == COMMAND_RUN ||
                       (c->kind == COMMAND_EMIT && strcmp(c->to, "dot") != 0);
    if (!f->test) {
        diag_error(d, nowhere, "%s defines no model, only parts that other files import", c->file);
        diag_help(d, "name a file with a model; tenon check also takes a file without one");
        return false;
    }
    if (makes && !f->train) {
        diag_error(d, nowhere, "%s has no train block, and a program needs one", c->file);
        diag_help(d, "add: train NAME { data = ...; loss = ...; optimizer = ...; batch = ... }; "
                     "tenon check and tenon show need none");
        return false;
    }
    if (makes && front_predicts(f) && !check_shared(c, f, d))
        return false;
    if (makes && f->train->nparam == 0) {
        diag_error(d, nowhere, "model '%s' has no parameters: there is nothing to %s",
                   f->train->name, front_predicts(f) ? "read from a file of weights" : "train");
        diag_help(d, "give it a layer with weights, such as dense; tenon check and tenon show need "
                     "none");
        return false;
    }
    if (c->options.persistent && f->train && f->train->recipe.average.kind == AVERAGE_EMA) {
        diag_error(d, f->train->recipe.average.span,
                   "--kernels=persistent has no ema: weights can stay on the chip between two "
                   "steps");
        diag_help(d, "leave out --kernels=persistent, or write average = swa(from = %lld)",
                  (long long)(f->train->recipe.epochs - f->train->recipe.epochs / 4));
        return false;
    }
    if (c->memory && !f->train) {
        diag_error(d, nowhere, "%s has no train block, and a memory plan needs one", c->file);
        return false;
    }
    if (c->kind == COMMAND_BUILD && !c->key && !build_output_ok(c, d))
        return false;
    if (c->options.dump && !dump_known(diag_arena(d), c->options.dump, d))
        return false;
    if (dumps_calls(c) && !(c->options.cuda && f->train)) {
        diag_error(d, nowhere,
                   "--dump=calls prints the calls of a GPU program, and this program is for the "
                   "processor");
        diag_help(d, "add --target cuda; the model needs a train block");
        return false;
    }
    if (c->kind == COMMAND_SHOW)
        show_layers(diag_arena(d), f->layers, c->all, c->cost);
    if (c->kind == COMMAND_EMIT && !write_forward(c, f, d))
        return false;
    if (f->train) /* before the passes change the graph */
        set_hashes(c, f, diag_arena(d));
    return choose_machine(c, f, d);
}

/* ---- the passes */

/* The graph of evaluation and the graph of one token at a time read the parameters at the offsets
 * that the training graph has planned. */
bool tool_plan(Front *f, const Options *o, Diag *d)
{
    if (!f->train)
        return true;
    if (!pass_run_all(f->train, o, d))
        return false;
    if (front_predicts(f)) /* there is one graph */
        return true;
    f->token = target_of(o).generates ? pass_token(f->test) : NULL;
    f->test->peer = f->train;
    if (f->token)
        f->token->peer = f->train;
    return pass_run_all(f->test, o, d) && (!f->token || pass_run_all(f->token, o, d));
}

/* ---- after the passes */

/* build, run, and emit of C or CUDA */
static bool tool_makes_program(const Command *c)
{
    return c->kind == COMMAND_BUILD || c->kind == COMMAND_RUN ||
           (c->kind == COMMAND_EMIT && (!strcmp(c->to, "c") || !strcmp(c->to, "cuda")));
}

/* Predicts a step of the planned program in bf16, and of the same program in f32.  The latter is
 * read from the model file again and planned. */
static void predict_half(const Command *c, const Front *f, EmitInput *in)
{
    Arena *a = f->train->arena;
    Diag *quiet = diag_new(a, DIAG_NEVER);
    Options o = c->options;
    Front other;
    o.half = HALF_NONE, o.dump = NULL;
    o.vector = machine_lanes(machine_find(o.cpu), dtype_bytes(f->recipe.dtype));
    if (!front_load(a, c->file, &c->front, quiet, &other) || !other.train)
        return;
    other.train->recipe.dtype = f->recipe.dtype;
    if (!pass_run_all(other.train, &o, quiet))
        return;
    in->us_f32 = step_price_all(other.train, &o);
    in->us_half = step_price_all(f->train, &c->options);
}

/* Warns if bf16 is predicted to be slower than f32 on the processors of --cpu.  A program for
 * x86-64-v4 can also use AMX or, with --fast, VDPBF16PS. */
static void compare_half(const Command *c, const EmitInput *in, Diag *d)
{
    const bool v4 = strcmp(in->cpu, "x86-64-v4") == 0, v3 = strcmp(in->cpu, "x86-64-v3") == 0;
    const double ratio = rt_half_ratio(v3, in->us_f32, in->us_half);
    if ((!v3 && !v4) || options_half_chains(&c->options) || ratio < RT_HALF_SLOWER)
        return;
    diag_warn(d, nowhere,
              "in bf16, a step is predicted to take %.1f times as long as in f32 on processors "
              "with %s",
              ratio, v3 ? "AVX2" : "AVX-512 and without AMX");
    diag_help(d, "build with --dtype f32%s",
              v3 ? "; values in bf16 only save memory"
                 : ", unless the processor has AMX or memory is short");
}

/* The input of the emitter.  The text of `emit` contains no path of this machine; a program of
 * `build` contains the directory of data. */
static EmitInput tool_emit_input(const Command *c, const Front *f)
{
    EmitInput in = {.train = f->train,
                    .test = f->test,
                    .token = f->token,
                    .options = &c->options,
                    .source_name = f->source->name,
                    .compiler_version = TENON_NAME,
                    .hash = c->hash,
                    .flags = c->flags,
                    .dtype = f->recipe.dtype,
                    .cpu = c->options.cpu,
                    .mpi = c->comm && strcmp(c->comm, "mpi") == 0,
                    .nccl = c->comm && strcmp(c->comm, "nccl") == 0};
    if (f->train && c->options.half && !c->options.cuda)
        predict_half(c, f, &in);
    return in;
}

static const EmitTarget *target(const Options *o)
{
    return o->cuda ? &cuda_target : &cpu_target;
}

static bool write_emitted(Arena *a, const Command *c, const char *name, const char *text, Diag *d)
{
    if (!c->output) {
        fputs(text, stdout);
        return true;
    }
    int error = dir_make(a, c->output);
    const char *path = path_join(a, c->output, name);
    if (!error)
        error = file_write(a, path, text, strlen(text), 0666);
    if (error)
        diag_error(d, nowhere, "cannot write %s: %s", path, strerror(error));
    return !error;
}

bool tool_emit(const Command *c, const Front *f, Diag *d)
{
    Arena *a = diag_arena(d);
    const Graph *g = f->train ? f->train : f->test;
    const EmitInput in = tool_emit_input(c, f);
    if (strcmp(c->to, "c") == 0 || strcmp(c->to, "cuda") == 0)
        return write_emitted(a, c, arena_printf(a, "%s.%s", g->name, target(&c->options)->suffix),
                             target(&c->options)->whole(&in, a).text, d);
    Text out = text_new(a);
    if (strcmp(c->to, "slurm") == 0) {
        script_slurm(g, f->source->name, c->options.cuda, &out);
        return write_emitted(a, c, arena_printf(a, "%s.sbatch", g->name), out.s, d);
    }
    if (c->written)
        text_add(&out, c->written);
    else
        picture_graph(g, &out);
    const char *end = script_known(c->to) ? "py" : "dot";
    return write_emitted(a, c, arena_printf(a, "%s.%s", g->name, end), out.s, d);
}

/* --kernels=cudnn: plans the graphs of the convolutions if this machine has cuDNN.  False after an
 * error. */
static bool plan_graphs(Arena *a, const Command *c, EmitInput *emit, EmitPlan **plan, int *n,
                        Diag *d)
{
    const PlanWish wish = {.arch = c->options.arch,
                           .driver = c->driver ? c->driver : "13.0",
                           .exact = !c->options.tf32 && !c->options.half,
                           .jobs = process_cores(),
                           .no_cache = c->no_cache};
    *n = c->options.libraries ? emit_plans(a, emit, plan) : 0;
    return *n == 0 || plans_embed(a, &wish, emit, *plan, *n, d);
}

/* Adds the plans, and the library that runs them. */
static bool add_plans(Arena *a, const Command *c, EmitInput *emit, BuildInput *in, Diag *d)
{
    EmitPlan *plan;
    int n;
    Text t = text_new(a);
    if (!plan_graphs(a, c, emit, &plan, &n, d))
        return false;
    if (n == 0)
        return true;
    if (emit->nplan)
        emit_plans_text(emit->plan, emit->nplan, &t);
    return objects_add_plans(a, in, t.s, d);
}

/* The options of the program, and the flags for the C compiler from the environment: both can
 * change bits of results. */
static const char *built_with(Arena *a, const Command *c)
{
    static const EnvironmentKey key[] = {ENV_TENON_CFLAGS, ENV_TENON_STEP_CFLAGS};
    const char *all = c->flags;
    for (size_t i = 0; i < sizeof key / sizeof *key; i++) {
        const char *more = environment(key[i]);
        more = more ? more + strspn(more, " \t\n") : "";
        if (*more)
            all = arena_printf(a, "%s%s%s=%s", all, *all ? " " : "", environment_table[key[i]].name,
                               more);
    }
    return all;
}

bool tool_build(const Command *c, const Front *f, Diag *d)
{
    Arena *a = diag_arena(d);
    Paths paths;
    if (!paths_find(a, &paths, d))
        return false;
    EmitInput emit = tool_emit_input(c, f);
    emit.flags = built_with(a, c);
    emit.data_dirs = &paths.data;
    emit.ndata_dirs = paths.data ? 1 : 0;
    BuildInput in = {.name = f->train->name,
                     .xz = f->recipe.data.xz,
                     .images = f->recipe.data.images,
                     .dtype = f->recipe.dtype,
                     .command = c,
                     .machine = machine_find(c->options.cpu),
                     .paths = &paths};
    if (!add_plans(a, c, &emit, &in, d))
        return false;
    in.text = c->keep ? target(&c->options)->whole(&emit, a).text : NULL;
    if (!c->options.cuda)
        in.nunit = emit_units(&emit, a, &in.unit);
    else if (!objects_add_cuda(a, &in, target(&c->options)->whole(&emit, a), d))
        return false;
    if (emit.mpi && !objects_add_mpi(a, &in, d))
        return false;
    if (emit.nccl && !objects_add_nccl(a, &in, d))
        return false;
    if (c->key)
        return build_key(a, &in, d);
    if (emit.us_f32 > 0)
        compare_half(c, &emit, d);
    return c->kind == COMMAND_RUN ? build_and_run(a, &in, d) : build_program(a, &in, d);
}

static bool draw_memory(Arena *a, const char *path, const Graph *g, Diag *d)
{
    Text out = text_new(a);
    picture_memory(g, &out);
    const int error = file_write(a, path, out.s, strlen(out.s), 0666);
    if (error)
        diag_error(d, nowhere, "cannot write %s: %s", path, strerror(error));
    return !error;
}

/* Prints the step of the program that `build` makes with the same options. */
static bool show_cuda(Arena *a, const Command *c, const Front *f, Diag *d)
{
    EmitInput emit = tool_emit_input(c, f);
    EmitPlan *plan;
    int n;
    return plan_graphs(a, c, &emit, &plan, &n, d) && show_gpu(a, &emit, d);
}

bool tool_show(const Command *c, const Front *f, Diag *d)
{
    Arena *a = diag_arena(d);
    Graph *g = f->train;
    if (!g)
        return true;
    if (front_predicts(f) && (c->options.cuda || c->threads || c->ranks > 1)) {
        diag_warn(d, g->input->span,
                  "--threads, --ranks and --target cuda print a training step, and '%s' has no "
                  "train block",
                  g->name);
        return true;
    }
    if (c->options.cuda)
        return show_cuda(a, c, f, d);
    if (c->memory && !draw_memory(a, c->memory, g, d))
        return false;
    if (c->cost)
        show_price(a, g, &c->options);
    const EmitInput in = tool_emit_input(c, f);
    int n = 0, nslice = 0;
    const EmitPhase *phase = c->threads ? target(&c->options)->phases(&in, a, &n) : NULL;
    const RtTeamCost *slice = show_team_costs(a, phase, n, &nslice);
    if (!show_plan(a, g, c->ranks, c->options.threads, slice, nslice, d))
        return false;
    if (c->threads)
        show_threads(a, g, &in, phase, n, c->options.threads);
    return true;
}

bool tool_targets(const Command *c, const Front *f, Diag *d)
{
    const EmitTarget *t = target(&c->options);
    const EmitInput in = tool_emit_input(c, f);
    const bool shows = c->kind == COMMAND_SHOW && f->train;

    if ((tool_makes_program(c) || shows || dumps_calls(c)) && t->able && !t->able(&in, d))
        return false;
    if (dumps_calls(c)) {
        Text calls = text_new(diag_arena(d));
        t->calls(&in, &calls);
        fputs(calls.s, stderr);
    }
    return true;
}

bool tool_flush(Diag *d)
{
    const bool flushed = fflush(stdout) == 0;
    if (flushed && !ferror(stdout))
        return true;
    diag_error(d, nowhere, "the output could not be written%s%s", flushed ? "" : ": ",
               flushed ? "" : strerror(errno));
    return false;
}
