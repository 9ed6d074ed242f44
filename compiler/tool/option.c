/* option.c -- the commands and the options, and the help that is printed from them. */
#include "tool/option.h"
#include <stdio.h>
#include <string.h>

enum {
    CHECK = 1 << COMMAND_CHECK, SHOW = 1 << COMMAND_SHOW, BUILD = 1 << COMMAND_BUILD,
    EMIT = 1 << COMMAND_EMIT, RUN = 1 << COMMAND_RUN, OPS = 1 << COMMAND_OPS, CACHE = 1 << COMMAND_CACHE,
    MAKE = BUILD | EMIT | RUN,                        /* a program is made */
    MODEL = CHECK | SHOW | MAKE,                      /* a model file is read */
    ALL = MODEL | OPS | CACHE
};

const CommandRow command_table[] = {
    {"check", COMMAND_CHECK, "tenon check FILE [options]", "parse a model; check its names and shapes"},
    {"show", COMMAND_SHOW, "tenon show FILE [options]", "layers, parameters, FLOPs, memory"},
    {"build", COMMAND_BUILD, "tenon build FILE -o PROG [options]", "compile a model to a program"},
    {"run", COMMAND_RUN, "tenon run FILE [options] [-- program options]", "build, then run at once"},
    {"emit", COMMAND_EMIT, "tenon emit FILE --to c|cuda|dot|pytorch|keras|mxnet|slurm [-o DIR] [options]", "write the generated C, a picture, the same training in PyTorch, Keras or MXNet, or a job script"},
    {"ops", COMMAND_OPS, "tenon ops [NAME] [--example]", "the operations of the language"},
    {"sweep", COMMAND_SWEEP, "tenon sweep FILE.tn ...|FILE.sweep [options]", "measure models at several settings, into a store"},
    {"results", COMMAND_RESULTS, "tenon results list|table|compare|report|...", "what a store holds, what changed, a page of it"},
    {"cache", COMMAND_CACHE, "tenon cache [--clear] [--limit SIZE]", "what is kept of earlier builds"},
    {0}};

#define AT(field) offsetof(Command, field)
const OptionRow option_table[] = {
    {"-o", "PATH", OPTION_TEXT, AT(output), BUILD | EMIT, false, "where the result goes (build: a program; emit: a directory, else stdout)"},
    {"--to", "c|dot|pytorch|keras|mxnet|slurm|cuda", OPTION_WORD, AT(to), EMIT, false, "what to write: C, the graph for Graphviz, a script for PyTorch, Keras or MXNet, a job for Slurm (with --target cuda of GPUs), CUDA (default: what --target is for)"},
    {"--model", "NAME", OPTION_TEXT, AT(front.model), MODEL, true, "which model of the file (default: the one that is trained, else the last)"},
    {"--batch", "N", OPTION_COUNT, AT(front.batch), MODEL, true, "samples a step, in place of the recipe's"},
    {"--shards", "G", OPTION_COUNT, AT(front.shards), MODEL, true, "equal parts of the batch, the unit that is shared out"},
    {"--set", "KEY=VALUE", OPTION_SETTING, 0, MODEL, true, "override a key of the recipe or a parameter of the model: --set optimizer.lr=0.1"},
    {"--dtype", "f32|f64|tf32|bf16|f16", OPTION_WORD, AT(front.dtype), MODEL, true, "the numbers it computes with (default: the recipe's): f32, f64, and with --target cuda tf32, bf16 and f16, by NVIDIA's libraries"},
    {"--cpu", "native|x86-64-v3|x86-64-v4|armv8-a|generic", OPTION_WORD, AT(options.cpu), SHOW | MAKE, true, "the processor (default $TENON_CPU, else native)"},
    {"--plain", NULL, OPTION_TRUE, AT(options.plain), SHOW | MAKE, true, "no optional pass, reference kernels: slow, and easy to follow"},
    {"--exact", NULL, OPTION_FALSE, AT(options.fast), SHOW | MAKE, true, "only algorithms as exact as the textbook's (the default)"},
    {"--fast", NULL, OPTION_TRUE, AT(options.fast), SHOW | MAKE, true, "also algorithms that round a little more"},
    {"--kernels", "own|blas|cudnn|persistent", OPTION_WORD, AT(kernels), SHOW | MAKE, true, "whose kernels (default own; with --target cuda by what is expected to be the fastest of them, and cudnn for tf32, bf16 and f16): blas is OpenBLAS on the processor; for a GPU own is launches of our own, persistent many steps in one launch, cudnn cuDNN for convolutions and cuBLASLt for products"},
    {"--target", "cpu|cuda", OPTION_WORD, AT(target), SHOW | MAKE, true, "what it runs on (default cpu)"},
    {"--arch", "sm_80|sm_90|sm_100", OPTION_WORD, AT(options.arch), SHOW | MAKE, true, "the GPU: sm_80 is an A100, sm_90 an H100 or H200 (default), sm_100 a B200"},
    {"--comm", "none|mpi|nccl", OPTION_WORD, AT(comm), SHOW | MAKE, false, "how several processes talk (default none; mpi: on processors, needs mpicc; nccl: with --target cuda, a process a GPU)"},
    {"--bucket", "SIZE", OPTION_SIZE, AT(options.bucket), SHOW | MAKE, true, "bytes of gradients that ranks add as one (500k, 4M), while the backward pass goes on (default: by a model of the network; one bucket without --comm)"},
    {"--tune", NULL, OPTION_TRUE, AT(tune), SHOW | MAKE, false, "measure here which algorithm is the fastest where prices lie close, and keep it"},
    {"--memory-limit", "SIZE", OPTION_SIZE, AT(options.memory_limit), SHOW | MAKE, true, "plan for no more (500M, 2G; with this machine's threads): make values again instead of keeping them"},
    {"--keep-all", NULL, OPTION_TRUE, AT(options.keep_all), SHOW | MAKE, true, "keep what the backward pass reads, even where making it again is cheap and saves much memory"},
    {"--ranks", "N", OPTION_COUNT, AT(ranks), SHOW, false, "memory of one of N processes"},
    {"--cost", NULL, OPTION_TRUE, AT(cost), SHOW, false, "bytes of each layer, and the price of every call of a training step: algorithm, FLOPs, time"},
    {"--all", NULL, OPTION_TRUE, AT(all), SHOW, false, "every layer a row: blocks unfolded, what they need behind the scenes too"},
    {"--memory", "FILE.svg", OPTION_TEXT, AT(memory), SHOW, false, "the memory plan as a picture: what lives when, and where"},
    {"--keep", "DIR", OPTION_TEXT, AT(keep), BUILD | RUN, false, "leave the generated C in DIR"},
    {"--no-cache", NULL, OPTION_TRUE, AT(no_cache), SHOW | BUILD | RUN, false, "compile, and plan, even if nothing changed"},
    {"--key", NULL, OPTION_TRUE, AT(key), BUILD | RUN, false, "build nothing; print a hash of all that the program would be made from"},
    {"--verbose", NULL, OPTION_TRUE, AT(verbose), BUILD | RUN, false, "print the C compiler's command"},
    {"--dump", "PASS", OPTION_TEXT, AT(options.dump), SHOW | MAKE, false, "print the graph after a pass, or after all, to stderr"},
    {"--verify", NULL, OPTION_TRUE, AT(options.verify), SHOW | MAKE, false, "check the graph after every pass"},
    {"--driver", "VERSION", OPTION_TEXT, AT(driver), SHOW | BUILD | RUN, true, "with --target cuda: the CUDA version of the driver that plans are for (default 13.0)"},
    {"--example", NULL, OPTION_TRUE, AT(example), OPS, false, "only the operation's example, a whole model file"},
    {"--clear", NULL, OPTION_TRUE, AT(clear), CACHE, false, "remove everything that is kept"},
    {"--limit", "SIZE", OPTION_TEXT, AT(limit), CACHE, false, "from now on keep no more than that: 500M, 2G (default 1G); oldest use goes first"},
    {"--color", "auto|always|never", OPTION_WORD, 0, ALL, false, "colours in messages (default auto)"},
    {"--help", NULL, OPTION_HELP, 0, ALL, false, "this text"},
    {0}};
#undef AT

const CommandRow *command_row(CommandKind kind)
{
    for (const CommandRow *c = command_table; c->name; c++)
        if (c->kind == kind)
            return c;
    return NULL;
}

void help_row(const char *name, int column, const char *text)
{
    const int width = printf("  %s", name);
    printf("%s%*s %s\n", width > column ? "\n" : "", width > column ? column : column - width, "", text);
}

static void overview(void)
{
    puts(TENON_NAME ", a compiler from neural-network models to programs that train them\n");
    for (const CommandRow *c = command_table; c->name; c++)
        help_row(c->usage, 52, c->brief);
    puts("  tenon --help, tenon COMMAND --help, tenon --version\n\n"
         "  tenon build models/lenet.tn -o lenet && ./lenet --epochs 2\n\n"
         "Environment: CC (the C compiler, default cc), TENON_CFLAGS (more flags for it), TENON_DATA (data sets),\n"
         "TENON_CPU (what --cpu is unless it is given), TENON_CACHE (compiled kernels and programs; default\n"
         "$XDG_CACHE_HOME/tenon or ~/.cache/tenon).  Exit code: 0 done, 1 error.");
}

void command_help(CommandKind topic)
{
    enum { COLUMN = 30 };                             /* where the explanations start */
    const CommandRow *c = command_row(topic);
    if (!c) {
        overview();
        return;
    }
    printf("%s\n%s\n\n", c->usage, c->brief);
    for (const OptionRow *o = option_table; o->name; o++) {
        if (!(o->commands & 1u << topic))
            continue;
        char name[120];
        snprintf(name, sizeof name, "%s %s", o->name, o->value ? o->value : "");
        help_row(name, COLUMN, o->help);
    }
}
