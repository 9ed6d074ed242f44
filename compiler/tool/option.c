/* option.c -- the commands and the options, and the help that is printed from them. */
#include "tool/option.h"
#include "base/environment.h"
#include "front/train.h"
#include "runtime/constants.h"
#include <stdio.h>
#include <string.h>

enum {
    CHECK = 1 << COMMAND_CHECK,
    SHOW = 1 << COMMAND_SHOW,
    BUILD = 1 << COMMAND_BUILD,
    EMIT = 1 << COMMAND_EMIT,
    RUN = 1 << COMMAND_RUN,
    OPS = 1 << COMMAND_OPS,
    CACHE = 1 << COMMAND_CACHE,
    FMT = 1 << COMMAND_FMT,
    NEW = 1 << COMMAND_NEW,
    COMPLETION = 1 << COMMAND_COMPLETION,
    WATCH = 1 << COMMAND_WATCH,
    LSP = 1 << COMMAND_LSP,
    MAKE = BUILD | EMIT | RUN,   /* commands that make a program */
    MODEL = CHECK | SHOW | MAKE, /* commands that read a model file */
    ALL = MODEL | OPS | CACHE | FMT | NEW | COMPLETION | WATCH
};

/* clang-format off */
const CommandRow command_table[] = {
    {"check", COMMAND_CHECK, "tenon check FILE [options]",
     "parse a model file; check its names and shapes",
     "Reads the file and its imports, expands the model, and proves the shapes. Prints `FILE: ok`, "
     "or all errors of the file.",
     "tenon check models/lenet.tn\n"},
    {"show", COMMAND_SHOW, "tenon show FILE [options]",
     "print layers, parameters, FLOPs and memory of a model",
     "Plans the training step without building a program. Needs no train block, but without one "
     "there is no memory plan. "
     "With --target cuda it prints the predicted launches, memory and time on a GPU; no GPU is "
     "needed.",
     "tenon show models/lenet.tn\n"
     "tenon show models/lenet.tn --cost\n"
     "tenon show models/lenet.tn --memory plan.svg\n"},
    {"build", COMMAND_BUILD, "tenon build FILE -o PROG [options]", "compile a model to a program",
     "Writes C, compiles it with the C compiler, and links one executable. The program trains, "
     "tests, predicts and measures. "
     "Objects and programs are stored in the cache directory, so that a second build compiles only "
     "what changed.",
     "tenon build models/lenet.tn -o lenet\n"
     "tenon build models/lenet.tn -o lenet --set optimizer.lr=0.01\n"},
    {"run", COMMAND_RUN, "tenon run FILE [options] [-- program options]",
     "build a program and run it at once",
     "The words after -- are those of the program. The exit code is that of the program.",
     "tenon run models/lenet.tn -- --epochs 1\n"},
    {"emit", COMMAND_EMIT, "tenon emit FILE [--to FORM] [-o DIR] [options]",
     "write the generated C or CUDA, a graph, a script for PyTorch, Keras or MXNet, or a Slurm job",
     "Writes one file and compiles nothing: the C or CUDA of the program, the graph, the same "
     "training as a Python script, or a job script. "
     "Without -o it goes to stdout.",
     "tenon emit models/lenet.tn --to c -o out\n"
     "tenon emit models/lenet.tn --to pytorch -o out\n"},
    {"ops", COMMAND_OPS, "tenon ops [NAME] [--example]",
     "list operations, losses, optimizers and all other words of a model file, or explain one",
     "Prints the operations of a model, the keys of a train block, and the forms of their values. "
     "With NAME it prints the arguments, shapes, formula, gradient and an example of one "
     "operation, or the arguments of one form.",
     "tenon ops\n"
     "tenon ops conv2d\n"
     "tenon ops adam\n"},
    {"fmt", COMMAND_FMT, "tenon fmt FILE.tn ... [--check]",
     "write model files in the one style",
     "Replaces each file by the same model in the one style, and prints the names of the files "
     "that have changed. "
     "A file with a syntax error stays as it is. "
     "The file - is standard input; its text goes to stdout.",
     "tenon fmt models/lenet.tn\n"
     "tenon fmt --check models/lenet.tn models/mlp.tn\n"
     "tenon fmt - < models/lenet.tn\n"},
    {"new", COMMAND_NEW, "tenon new NAME [--data DATA]",
     "write a model file to begin with",
     "Writes NAME.tn: a small network that fits the data, with its train block. The file builds "
     "and trains as it is. "
     "An existing file stays as it is, and the command ends with an error.",
     "tenon new digits\n"
     "tenon new tale --data tinyshakespeare\n"},
    {"sweep", COMMAND_SWEEP, "tenon sweep FILE.tn ...|FILE.sweep [options]",
     "measure models at several settings; keep the runs in a store",
     "Builds each model at each setting, runs the programs in shuffled order, and keeps every run "
     "in one SQLite file. "
     "Runs that are in the store are not made again, so the same command continues where it was "
     "stopped. "
     "`tenon sweep --help` lists its options.",
     "tenon sweep models/lenet.tn --batch 64,128 --threads 1,all\n"},
    {"results", COMMAND_RESULTS, "tenon results list|table|compare|report|...",
     "read a store: tables, comparisons, pictures, a report",
     "Reads the store that `tenon sweep` has filled. `tenon results --help` lists its commands and "
     "options.",
     "tenon results table\n"},
    {"watch", COMMAND_WATCH, "tenon watch LOG ... [--once] [--tensorboard DIR]",
     "draw curves of training from the logs of runs",
     "Reads files that programs write with --log, and draws loss and accuracy in the terminal. "
     "It draws again when there are new records, until all runs have ended. "
     "With --tensorboard it also writes event files for TensorBoard.",
     "tenon watch run.jsonl\n"
     "tenon watch a.jsonl b.jsonl --once\n"
     "tenon watch run.jsonl --once --tensorboard events\n"},
    {"completion", COMMAND_COMPLETION, "tenon completion bash|zsh|fish",
     "print a script that completes command lines of tenon in a shell",
     "Prints a script for one shell. It completes commands, options and their values, operations, "
     "and keys of a train block. "
     "bash reads the script from a line in ~/.bashrc, zsh from a file `_tenon` in a directory of "
     "$fpath, fish from ~/.config/fish/completions/tenon.fish.",
     "tenon completion bash > tenon.bash\n"
     "tenon completion fish > tenon.fish\n"},
    {"lsp", COMMAND_LSP, "tenon lsp [--stdio]", "start the language server, for editors",
     "Speaks the Language Server Protocol over standard input and output. An editor starts it: "
     "messages while you type, shapes at the end of lines, the manual and prices under the cursor.",
     "tenon lsp\n"},
    {"cache", COMMAND_CACHE, "tenon cache [--clear] [--limit SIZE]",
     "print the contents of the cache of builds",
     "Prints the cache directory, the number and size of its entries, and how often they were "
     "found.",
     "tenon cache\n"
     "tenon cache --limit 500M\n"},
    {0}};

#define AT(field) offsetof(Command, field)
const OptionRow option_table[] = {
    {"-o", "PATH", OPTION_TEXT, AT(output), BUILD | EMIT, false, NULL,
     "the output. build: the path of the program, required. emit: a directory; "
     "without it the text goes to stdout"},
    {"--to", "c|cuda|dot|pytorch|keras|mxnet|slurm", OPTION_WORD, AT(to), EMIT, false,
     "c, or cuda with --target cuda",
     "what to write. c, cuda: the program. dot: the graph, for Graphviz. pytorch, keras, mxnet: "
     "the same training as a Python script. "
     "slurm: a job script, with --target cuda for GPUs"},
    {"--as-written", NULL, OPTION_TRUE, AT(as_written), EMIT, false, NULL,
     "with --to dot: draw the calls of the model file with their arguments, and a frame for each "
     "block; no backward pass, nothing fused"},
    {"--model", "NAME", OPTION_TEXT, AT(front.model), MODEL, true,
     "the model that is trained, else the last one",
     "the model to use, if the file has several"},
    {"--batch", "N", OPTION_COUNT, AT(front.batch), MODEL, true, "the recipe's",
     "samples in a step"},
    {"--shards", "G", OPTION_COUNT, AT(front.shards), MODEL, true, "the recipe's",
     "number of equal parts of the batch; ranks share the parts. It divides the batch"},
    {"--set", "KEY=VALUE", OPTION_SETTING, 0, MODEL, true, NULL,
     "replace a key of the recipe, an argument of a key (--set optimizer.lr=0.1), or a parameter "
     "of the model (--set model.classes=100). "
     "May be given several times"},
    {"--dtype", "f32|f64|tf32|bf16|f16", OPTION_WORD, AT(front.dtype), MODEL, true, "the recipe's",
     "number type of the computation. bf16: factors of products, and values between products, have "
     "two bytes. tf32 and f16 need --target cuda. On a GPU, tf32, bf16 and f16 use NVIDIA's "
     "libraries"},
    {"--cpu", "native|x86-64-v3|x86-64-v4|armv8-a|generic", OPTION_WORD, AT(options.cpu),
     SHOW | MAKE, true, "$TENON_CPU, else native",
     "the processor of the program; native: this machine's"},
    {"--plain", NULL, OPTION_TRUE, AT(options.plain), SHOW | MAKE, true, NULL,
     "no optimisation: no optional pass, and kernels that are simple loops. Slow, but easy "
     "to read and to debug"},
    {"--exact", NULL, OPTION_FALSE, AT(options.fast), SHOW | MAKE, true, "on",
     "use only algorithms whose rounding errors are of the size of the textbook algorithm's"},
    {"--fast", NULL, OPTION_TRUE, AT(options.fast), SHOW | MAKE, true, NULL,
     "use also algorithms with larger rounding errors: Winograd's on tiles larger than 2 x 2; with "
     "bf16 on processors also instructions with other bits: AVX512_BF16 of AMD's"},
    {"--kernels", "own|blas|cudnn|persistent", OPTION_WORD, AT(kernels), SHOW | MAKE, true,
     "own; with tf32, bf16 and f16 cudnn",
     "the kernels to use. own: Tenon's. blas: OpenBLAS, on the processor. cudnn: on a GPU, cuDNN "
     "for convolutions and cuBLASLt for products. "
     "persistent: on a GPU, many steps in one launch of Tenon's kernels"},
    {"--target", "cpu|cuda", OPTION_WORD, AT(target), SHOW | MAKE, true, "cpu",
     "the device that the program runs on"},
    {"--arch", "sm_80|sm_90|sm_100", OPTION_WORD, AT(options.arch), SHOW | MAKE, true, "sm_90",
     "with --target cuda: the GPU. sm_80: A100. sm_90: H100 or H200. sm_100: B200. The program "
     "also runs on newer GPUs"},
    {"--comm", "none|mpi|nccl", OPTION_WORD, AT(comm), SHOW | MAKE, false, "none",
     "how several processes communicate. mpi: on processors; needs mpicc. nccl: with --target "
     "cuda, one process for each GPU"},
    {"--bucket", "SIZE", OPTION_SIZE, AT(options.bucket), SHOW | MAKE, true,
     "chosen by a model of the network; without --comm one bucket",
     "bytes of gradients in one all-reduce (500k, 4M), which runs during the backward pass"},
    {"--tune", NULL, OPTION_TRUE, AT(tune), SHOW | MAKE, false, NULL,
     "measure algorithms on this machine where their predicted times are close; store the "
     "result in the cache directory"},
    {"--memory-limit", "SIZE", OPTION_SIZE, AT(options.memory_limit), SHOW | MAKE, true, "no limit",
     "plan for at most this much memory (500M, 2G), with this machine's number of threads. The "
     "backward pass then recomputes values "
     "instead of keeping them; the results are the same to the bit"},
    {"--keep-all", NULL, OPTION_TRUE, AT(options.keep_all), SHOW | MAKE, true, NULL,
     "keep every value that the backward pass reads, even where recomputing it is cheap and "
     "saves much memory"},
    {"--ranks", "N", OPTION_COUNT, AT(ranks), SHOW, false, "1",
     "print the memory of one of N processes. N divides the shards"},
    {"--threads", "T", OPTION_COUNT, AT(threads), SHOW, false, "the processors of this machine",
     "print the memory and the predicted step of a program with T threads"},
    {"--cost", NULL, OPTION_TRUE, AT(cost), SHOW, false, NULL,
     "print also the bytes of each layer. Print the algorithm, FLOPs, bytes and predicted time of "
     "each call of a training step"},
    {"--all", NULL, OPTION_TRUE, AT(all), SHOW, false, NULL,
     "print a row for every layer; without it a long table has one row for each block"},
    {"--memory", "FILE.svg", OPTION_TEXT, AT(memory), SHOW, false, NULL,
     "draw the memory plan: the offset and the lifetime of each value"},
    {"--keep", "DIR", OPTION_TEXT, AT(keep), BUILD | RUN, false, NULL,
     "write the generated C to DIR as well"},
    {"--no-cache", NULL, OPTION_TRUE, AT(no_cache), SHOW | BUILD | RUN, false, NULL,
     "compile and plan everything again; read nothing from the cache"},
    {"--key", NULL, OPTION_TRUE, AT(key), BUILD | RUN, false, NULL,
     "build nothing; print a hash of all inputs of the program"},
    {"--verbose", NULL, OPTION_TRUE, AT(verbose), BUILD | RUN, false, NULL,
     "print the command lines of the C compiler"},
    {"--dump", "PASS", OPTION_TEXT, AT(options.dump), SHOW | MAKE, false, NULL,
     "print the graph to stderr, after the pass PASS or after each pass (all); calls: the calls of "
     "a GPU program"},
    {"--verify", NULL, OPTION_TRUE, AT(options.verify), SHOW | MAKE, false, NULL,
     "check the graph after every pass, and the plan of memory after pass plan too"},
    {"--driver", "VERSION", OPTION_TEXT, AT(driver), SHOW | BUILD | RUN, true, "13.0",
     "with --target cuda --kernels=cudnn: the CUDA version of the driver that cuDNN's graphs are "
     "planned for"},
    {"--example", NULL, OPTION_TRUE, AT(example), OPS, false, NULL,
     "print only the example of the operation, a complete model file"},
    {"--once", NULL, OPTION_TRUE, AT(once), WATCH, false, "if stdout is no terminal",
     "draw once, and do not wait for new records"},
    {"--tensorboard", "DIR", OPTION_TEXT, AT(tensorboard), WATCH, false, NULL,
     "write the records to event files in DIR/RUN, which TensorBoard reads; RUN is the name of a "
     "log"},
    {"--check", NULL, OPTION_TRUE, AT(check), FMT, false, NULL,
     "change no file; print the names of the files that would change, and exit with 1 if there are "
     "any"},
    {"--data", "DATA", OPTION_TEXT, AT(data), NEW, false, "mnist",
     "what the network learns from: mnist, cifar10, tinyshakespeare, a table (.csv, .tsv), a text "
     "file, or a directory with NumPy arrays, folders of images, a table, or labelled texts"},
    {"--learn", "COLUMN", OPTION_TEXT, AT(learn), NEW, false, "the last column",
     "the column of a table that the network learns"},
    {"--stdio", NULL, OPTION_TRUE, AT(stdio), LSP, false, "on",
     "use standard input and output. There is no other way; some editors add this option"},
    {"--clear", NULL, OPTION_TRUE, AT(clear), CACHE, false, NULL,
     "remove everything from the cache"},
    {"--limit", "SIZE", OPTION_TEXT, AT(limit), CACHE, false, "1G",
     "set the size of the cache (500M, 2G); it stays set. The entries that were not used for the "
     "longest time are removed first"},
    {"--color", "auto|always|never", OPTION_WORD, 0, ALL, false, "auto",
     "colours in messages, and in the charts of watch. auto: on a terminal"},
    {"--help", NULL, OPTION_HELP, 0, ALL | LSP, false, NULL, "print this text"},
    {0}};
#undef AT
/* clang-format on */

const CommandRow *command_row(CommandKind kind)
{
    for (const CommandRow *c = command_table; c->name; c++)
        if (c->kind == kind)
            return c;
    return NULL;
}

void help_text(const char *text, int column)
{
    int at = column;
    while (*(text += strspn(text, " "))) {
        const int n = (int)strcspn(text, " ");
        if (at > column && at + 1 + n > HELP_WIDTH)
            at = printf("\n%*s", column, "") - 1;
        at += printf("%s%.*s", at > column ? " " : "", n, text);
        text += n;
    }
    putchar('\n');
}

void help_row(const char *name, int column, const char *text)
{
    const int width = printf("  %s", name);
    if (width > column)
        printf("\n%*s", column + 1, "");
    else
        printf("%*s", column + 1 - width, "");
    help_text(text, column + 1);
}

/* The text of an option with its default. */
static const char *option_text(char *room, size_t size, const OptionRow *o)
{
    snprintf(room, size, "%s%s%s%s", o->help, o->fallback ? " (default: " : "",
             o->fallback ? o->fallback : "", o->fallback ? ")" : "");
    return room;
}

static void overview(void)
{
    puts(TENON_NAME ", a compiler from neural-network models to programs that train them\n");
    for (const CommandRow *c = command_table; c->name; c++)
        help_row(c->usage, 52, c->brief);
    puts("  tenon --help, tenon COMMAND --help, tenon --version\n\n"
         "  tenon build models/lenet.tn -o lenet && ./lenet --epochs 2\n\n"
         "Environment:");
    for (const Environment *e = environment_table; e->name; e++)
        if (e->user)
            help_row(e->name, 18, e->about);
    puts("\nExit code: 0 done, 1 error.");
}

int64_t option_most(const OptionRow *o)
{
    if (strcmp(o->name, "--threads") == 0)
        return RT_THREADS_MOST;
    for (const TrainKey *k = train_key_table; k->name; k++)
        if (strcmp(k->name, o->name + strlen("--")) == 0)
            return (int64_t)k->field.high;
    return INT32_MAX;
}

void command_help(CommandKind topic)
{
    enum { COLUMN = 30 }; /* where the explanations start */
    const CommandRow *c = command_row(topic);
    if (!c) {
        overview();
        return;
    }
    printf("%s\n%s\n\n", c->usage, c->brief);
    for (const OptionRow *o = option_table; o->name; o++) {
        if (!(o->commands & 1u << topic))
            continue;
        char name[120], text[600];
        snprintf(name, sizeof name, "%s %s", o->name, o->value ? o->value : "");
        help_row(name, COLUMN, option_text(text, sizeof text, o));
    }
    printf("\nExamples:\n\n");
    for (const char *line = c->example; *line; line += strcspn(line, "\n") + 1)
        printf("  %.*s\n", (int)strcspn(line, "\n"), line);
}
