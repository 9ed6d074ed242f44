/* main.c -- rt_main: reads the command line, checks the machine, joins the other ranks, and runs
 * the command. */
#include "base/error.h"
#include "base/hash.h"
#include "base/mapped.h"
#include "base/output.h"
#include "base/processor.h"
#include "base/threads.h"
#include "commands/commands.h"
#include "options/options.h"
#include "options/place.h"
#include "options/program_table.h"
#include "train/train.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Dies if the ranks have different commands or options: they would misread each other's messages,
 * or wait for messages that never come.  The contents of files (data, weights) are compared where
 * they are read. */
static void compare_requests(const Options *o, Comm *c)
{
    const double option[] = {(double)o->epochs,
                             (double)o->limit,
                             o->shuffle,
                             o->stop_at,
                             o->log_steps > 0,
                             o->checkpoint != NULL,
                             (double)o->every_steps,
                             (double)o->launch_steps,
                             o->resume,
                             o->loss_scale,
                             (double)o->loss_scale_steps,
                             (double)o->steps,
                             o->seconds,
                             o->layers,
                             o->trace != NULL,
                             o->report != NULL,
                             o->link,
                             o->scale};
    Hash h = hash_new();
    hash_add(&h, &o->seed, sizeof o->seed); /* all 64 bits: a double has 53 */
    hash_add(&h, option, sizeof option);
    comm_same(c, (uint64_t)o->command, "another command");
    comm_same(c, hash_end(&h), "other options");
}

/* Silences a rank other than 0: only rank 0 prints and writes files.  The others write errors to
 * stderr, and logs if each rank has a log of its own. */
static void be_silent(Options *o)
{
    if (!freopen("/dev/null", "w", stdout))
        rt_die("/dev/null cannot be opened");
    o->save = o->output = NULL;
    if (!o->log_ranks)
        o->log = NULL;
}

/* Replaces %r by the rank: "run-%r.jsonl" -> "run-3.jsonl". */
static void name_log(Options *o, int rank)
{
    for (const char *at; o->log && (at = strstr(o->log, "%r"));) {
        o->log = rt_format("%.*s%d%s", (int)(at - o->log), o->log, rank, at + 2);
        o->log_ranks = true;
    }
}

static void join_run(Options *o, Comm *c, const RtProgram *p)
{
    static const bool shared[COMMANDS] = {[TRAIN] = true, [TEST] = true, [BENCH] = true};
    comm_open(c, p, o->timeout, o->timeout_start);
    if (c->size > 1 && !shared[o->command])
        rt_die("only train, test and bench can run as several ranks: start one rank of %s",
               program_commands[o->command].name);
    compare_requests(o, c);
    c->bf16 = strcmp(o->wire, "bf16") == 0;
    comm_same(c, c->bf16, "another --wire");
    if (c->bf16 && p->real_bytes != (int)sizeof(float))
        rt_die("--wire bf16 is for programs in f32");
    comm_same(c, rt_tiles_form() == RT_TILES_CHAINS, "products by other instructions (--isa)");
    c->any_order = strcmp(o->reduce, "nccl") == 0;
    comm_same(c, c->any_order, "another --reduce");
    name_log(o, c->rank);
    if (c->rank > 0)
        be_silent(o);
    if (c->any_order && c->size > 1)
        rt_print("--reduce nccl: NCCL chooses the order of sums, so their bits can differ from "
                 "those of one GPU\n");
}

/* Says that the step is predicted to be slower than that of the same program in f32. */
static void compare_half(const RtProgram *p)
{
    const double ratio = processor_half_ratio(p);
    if (ratio >= RT_HALF_SLOWER)
        rt_note("in bf16, a step is predicted to take %.1f times as long as in f32 with %s; a "
                "program built with --dtype f32 reads the same files",
                ratio, p->isa == RT_ISA_X86_V3 ? "AVX2" : "AVX-512");
}

/* train, test and bench take long, and their output is not their only result.  So they continue
 * after the reader of their output, such as a pager, has gone.  SIGPIPE ends the other commands, as
 * usual. */
static void choose_signals(Command command)
{
    signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit of file sizes fails with EFBIG */
    if (command == TRAIN || command == TEST || command == BENCH)
        signal(SIGPIPE, SIG_IGN);
}

typedef struct Start {
    const RtProgram *p;
    int argc;
    char **argv;
} Start;

static int start(void *arg)
{
    const RtProgram *p = ((Start *)arg)->p;
    static char buffer[1 << 14];
    static Options o;
    static Comm comm = {.size = 1, .local_size = 1};
    static int (*const run[COMMANDS])(const RtProgram *, const Options *) =
        {[TRAIN] = train_run,         [TEST] = test_run,   [PREDICT] = predict_run,
         [GENERATE] = generate_run,   [BENCH] = bench_run, [INFO] = info_run,
         [GRADCHECK] = gradcheck_run, [GRADS] = grads_run};
    output_begin();
    setvbuf(stdout, buffer, _IOLBF, sizeof buffer);
    options_parse(&o, p, ((Start *)arg)->argc, ((Start *)arg)->argv);
    choose_signals(o.command);
    o.comm = &comm;
    if (!program_lacks(p, NEED_TILES))
        rt_tiles_choose(o.isa, p->fast_half);
    if (o.command != INFO) {
        processor_check(p);
        join_run(&o, &comm, p);
    }
    if ((o.command == TRAIN || o.command == BENCH) && comm.rank == 0)
        compare_half(p);
    place_threads(&o, p, &comm);
    const int code = run[o.command](p, &o);
    mapped_check();
    rt_said();
    fflush(stderr);
    comm_close(&comm);
    _exit(code); /* does not wait for the other threads */
}

int rt_main(const RtProgram *p, int argc, char **argv)
{
    threads_stack(RT_STACK + p->more_stack);
    return threads_run(start, &(Start){p, argc, argv});
}
