/* program_table.c -- see program_table.h. */
#include "options/program_table.h"
#include "base/error.h"
#include "base/machine.h"
#include "base/threads.h"
#include <string.h>

/* Texts that only the reference pages print; programs do not contain them. */
#ifdef PROGRAM_REFERENCE
#define PAGE(text) text
#else
#define PAGE(text) NULL
#endif

/* ---- programs */

static bool has_recipe(const RtProgram *p)
{
    return !p->trained;
}
static bool has_cpu(const RtProgram *p)
{
    return !p->device;
}
static bool has_gpu(const RtProgram *p)
{
    return p->device;
}
static bool has_ranks(const RtProgram *p)
{
    return p->transport;
}
static bool has_mpi(const RtProgram *p)
{
    return p->transport && !p->link;
}
static bool has_nccl(const RtProgram *p)
{
    return p->link;
}
static bool has_f16(const RtProgram *p)
{
    return p->scaling;
}
static bool has_f64(const RtProgram *p)
{
    return p->real_bytes == 8;
}
static bool has_names(const RtProgram *p)
{
    return p->recipe.table.given || p->decode;
}
static bool has_texts(const RtProgram *p)
{
    return p->recipe.text.unit != RT_TEXT_NONE;
}

static bool predicts_texts(const RtProgram *p)
{
    return has_texts(p) && p->labels == 1;
}

static bool has_next(const RtProgram *p)
{
    return has_texts(p) && !p->recipe.text.table && p->classes >= p->vocab &&
           (p->labels == 1 || p->labels == p->input_dim[0]);
}

static bool has_tiles(const RtProgram *p)
{
    return !p->device && p->products && p->isa == RT_ISA_X86_V4;
}

/* Whether p reports the metric `kind` of target k. */
static bool has_metric(const RtProgram *p, const char *kind, int k)
{
    const char *name = p->ntarget > 0 ? rt_format("%s_%s", kind, p->targets[k].name) : kind;
    bool found = false;
    for (int m = 0; m < p->nmetric; m++)
        found |= strcmp(p->metric[m], name) == 0;
    return found;
}

static bool has_accuracy(const RtProgram *p)
{
    return p->ntarget == 0 && has_metric(p, "accuracy", 0);
}

/* The targets of train/compared.h: all but next tokens and the input. */
static bool has_report(const RtProgram *p)
{
    bool found = false;
    for (int k = 0; k < (p->ntarget > 0 ? p->ntarget : 1) && !p->perplexity; k++)
        found |= (p->ntarget > 0 ? p->targets[k].kind : p->target_kind) != RT_TARGET_INPUT &&
                 (has_metric(p, "accuracy", k) || has_metric(p, "mae", k));
    return found;
}

const ProgramNeed program_needs[NEEDS] = {
    {NEED_RECIPE, "programs of a model with a train block",
     "build without --model, or give this model a train block", has_recipe},
    {NEED_CPU, "programs on the processor", "build without --target cuda", has_cpu},
    {NEED_GPU, "programs for a GPU", "build with --target cuda", has_gpu},
    {NEED_RANKS, "programs of several ranks",
     "build with --comm mpi, or for GPUs with --target cuda --comm nccl", has_ranks},
    {NEED_MPI, "programs built with --comm mpi", "build with --comm mpi, for the processor",
     has_mpi},
    {NEED_NCCL, "programs built with --comm nccl", "build with --target cuda --comm nccl",
     has_nccl},
    {NEED_F16, "programs built with --dtype f16", "build with --target cuda --dtype f16", has_f16},
    {NEED_F64, "programs built with --dtype f64", "build with --dtype f64", has_f64},
    {NEED_TEXTS, "programs that predict from texts",
     "build with data = tsv(...), or with one label a window; `generate` continues a text",
     predicts_texts},
    {NEED_NEXT, "networks that say which token comes next",
     "build with data = text(...) and one output a token of the "
     "vocabulary",
     has_next},
    {NEED_ACCURACY, "programs that report an accuracy",
     "build with a loss over classes or truths, and one target", has_accuracy},
    {NEED_REPORT, "programs that predict classes or numbers",
     "build with a loss that compares an output with classes or numbers that the data hold",
     has_report},
    {NEED_TILES, "programs in bf16 for x86-64-v4",
     "build with --dtype bf16 --cpu x86-64-v4, for the processor", has_tiles},
    {NEED_NAMES, "programs that read tables or files of images",
     "build with data = csv(...) or data = imagefolder(...)", has_names},
};

const ProgramNeed *program_lacks(const RtProgram *p, int needs)
{
    for (int i = 0; i < NEEDS; i++)
        if (needs & (int)program_needs[i].need && !program_needs[i].met(p))
            return &program_needs[i];
    return NULL;
}

/* ---- commands */

const ProgramCommand program_commands[COMMANDS] = {
    [TRAIN] = {"train", "train the network; this is the command when none is named", NEED_RECIPE,
               NULL,
               PAGE("--epochs 3 --save "
                    "w.safetensors")},
    [TEST] = {"test", "measure the loss and the other metrics of given weights on the test set",
              NEED_RECIPE, NULL, PAGE("--weights w.safetensors")},
    [PREDICT] = {"predict",
                 "compute the outputs for the samples of a file; classes as probabilities, targets "
                 "as numbers",
                 0, NULL, PAGE("--weights w.safetensors --input x.npy")},
    [GENERATE] = {"generate", "continue a text, token by token", NEED_RECIPE | NEED_NEXT, NULL,
                  PAGE("--weights w.safetensors --prompt \"ROMEO:\" --length 200")},
    [BENCH] = {"bench", "measure the time of a training step on samples in memory", NEED_RECIPE,
               NULL, PAGE("--layers")},
    [INFO] = {"info", "print what the program was built from and what it needs", 0, NULL, NULL},
    [GRADCHECK] = {"gradcheck", "compare the gradients of the first batch with central differences",
                   NEED_RECIPE | NEED_F64, "f32 is too coarse for differences",
                   PAGE("--samples 8")},
    [GRADS] = {"grads", "write the loss and the gradients of the first batch to a file",
               NEED_RECIPE, NULL, PAGE("--output g.safetensors")},
};

/* ---- options */

#define AT(field) offsetof(Options, field)
enum {
    T = 1 << TRAIN,
    E = 1 << TEST,
    P = 1 << PREDICT,
    G = 1 << GENERATE,
    B = 1 << BENCH,
    I = 1 << INFO,
    C = 1 << GRADCHECK,
    D = 1 << GRADS,
    RUNS = T | E | P | G | B | C | D
};

const ProgramOption program_options[] = {
    {"data", "NAME|DIR", OPTION_TEXT, AT(data), 0, 0, T | E | C | D, 0,
     "data set: a name to look up, or a directory", "the recipe's", NULL},
    {"data", "NAME|DIR", OPTION_TEXT, AT(data), 0, 0, B, 0,
     "data set whose first samples are taken: a name to look up, or a directory",
     "synthetic samples", NULL},
    {"epochs", "N", OPTION_COUNT, AT(epochs), 0, 1e9, T, 0,
     "number of epochs; the learning rates stay those of the recipe's schedule", "the recipe's",
     NULL},
    {"seed", "S", OPTION_SEED, AT(seed), 0, 0, T | B | C | D, 0,
     "seed of the initial weights, the order of samples, augmentation and dropout", "the recipe's",
     NULL},
    {"seed", "S", OPTION_SEED, AT(seed), 0, 0, G, 0,
     "seed of the drawn tokens; the same seed gives the same text", "the recipe's", NULL},
    {"prompt", "TEXT", OPTION_TEXT, AT(prompt), 0, 0, G, 0, "the text to continue", "a new line",
     NULL},
    {"length", "N", OPTION_COUNT, AT(length), 1, 1e9, G, 0, "number of tokens to generate", "500",
     NULL},
    {"temperature", "X", OPTION_REAL, AT(temperature), 0, 1000, G, 0,
     "divides the outputs before a token is drawn: below 1 likely tokens are drawn more often; 0 "
     "always takes the "
     "likeliest",
     "1", NULL},
    {"top-k", "K", OPTION_COUNT, AT(top_k), 1, 1e9, G, 0, "draw from the K likeliest tokens only",
     "all tokens", NULL},
    {"anew", NULL, OPTION_FLAG, AT(anew), 0, 0, G, 0,
     "compute the whole window for each token, even where computing the new token is enough", NULL,
     NULL},
    {"threads", "T", OPTION_COUNT, AT(threads), 1, RT_THREADS_MOST, RUNS | I, 0,
     "number of threads; no result depends on it",
     "one for each core that this process may use, at most the quota of its control group", NULL},
    {"pin", "none|cores", OPTION_CHOICE, AT(pin), 0, 0, RUNS, NEED_CPU,
     "cores: each thread stays on one processor, cores before hyper-threads, inside the affinity "
     "mask of the process",
     "cores, if the threads use all cores and these have several caches; else none", NULL},
    {"isa", "amx|avx512|avx512_bf16", OPTION_CHOICE, AT(isa), 0, 0, RUNS | I, NEED_TILES,
     "instructions of products: AMX and AVX-512 give the same bits; AVX512_BF16 gives other bits, "
     "and needs a program built with --fast",
     "amx, if the processor has tiles and the system gives permission; else avx512_bf16 with "
     "--fast "
     "on AMD's processors; else avx512",
     NULL},
    {"groups", "N", OPTION_COUNT, AT(groups), 1, 65536, T | D, NEED_CPU,
     "compute the shards as N ranks would, in one process, for tests", "1", NULL},
    {"timeout", "S", OPTION_REAL, AT(timeout), 1, 1e6, T | E | B, NEED_RANKS,
     "seconds that a rank may wait for another one", "300", NULL},
    {"timeout-start", "S", OPTION_REAL, AT(timeout_start), 1, 1e7, T | E | B, NEED_RANKS,
     "the same limit until the first step is done, which includes loading; with NCCL all ranks "
     "must join within --timeout",
     "3 times --timeout", NULL},
    {"wire", "f32|bf16", OPTION_CHOICE, AT(wire), 0, 0, T | B, NEED_MPI,
     "number format of gradients between ranks; bf16 halves the bytes, and the result then depends "
     "on the number of ranks",
     "f32", NULL},
    {"reduce", "tree|nccl", OPTION_CHOICE, AT(reduce), 0, 0, T | B, NEED_NCCL,
     "what adds the gradients of several GPUs; nccl leaves the order to NCCL, and the result then "
     "depends on the number of GPUs",
     "tree", NULL},
    {"loss-scale", "N", OPTION_REAL, AT(loss_scale), 1, RT_SCALE_MOST, T | B | D, NEED_F16,
     "initial loss scale: the factor on the gradient of the loss", "65536", NULL},
    {"loss-scale-steps", "N", OPTION_COUNT, AT(loss_scale_steps), 0, 1e6, T | B, NEED_F16,
     "number of steps in a row with finite gradients after which the loss scale doubles; a step "
     "with a gradient that is "
     "not finite is left out and halves it; 0: the scale is fixed",
     "2000", NULL},
    {"log", "FILE", OPTION_TEXT, AT(log), 0, 0, T | E | B, 0,
     "write records of the run, one JSON object on each line", NULL,
     "rank 0 writes it; with %r in FILE, each rank writes a file, and its number replaces %r"},
    {"log-steps", "N", OPTION_COUNT, AT(log_steps), 1, 1e12, T, 0,
     "with --log: write a record with the loss of every N-th step", "a record for each epoch",
     NULL},
    {"launch-steps", "N", OPTION_COUNT, AT(launch_steps), 1, RT_STEPS_MOST, T | B, NEED_GPU,
     "at most N steps in one launch, after which the program looks at signals; no result depends "
     "on it",
     "what `info` prints", NULL},
    {"samples-in", "gpu|host", OPTION_CHOICE, AT(samples_in), 0, 0, T | E | P | B, NEED_GPU,
     "where the samples are kept; with host, the samples of the next launch are copied to the GPU "
     "during each launch; no "
     "result depends on it",
     "gpu where they fit", NULL},
    {"limit-samples", "N", OPTION_COUNT, AT(limit), 1, 4e9, T, 0,
     "train on the first N training samples only", "all", NULL},
    {"shuffle", "on|off", OPTION_ON_OFF, AT(shuffle), 0, 0, T, 0,
     "on: a random order of the samples in each epoch; off: the order of the file", "on", NULL},
    {"checkpoint", "DIR", OPTION_TEXT, AT(checkpoint), 0, 0, T, 0,
     "save the state of the run to DIR after every epoch", NULL, NULL},
    {"checkpoint-every", "N|Ns", OPTION_EVERY, AT(every_steps), 1, 1e12, T, 0,
     "with --checkpoint: also save every N steps, or every N seconds", NULL, NULL},
    {"resume", NULL, OPTION_FLAG, AT(resume), 0, 0, T, 0,
     "with --checkpoint: continue from the newest checkpoint; the result has the same bits", NULL,
     NULL},
    {"weights", "FILE", OPTION_TEXT, AT(weights), 0, 0, T, 0,
     "start from these parameters (safetensors)", "the recipe's start", NULL},
    {"weights", "FILE", OPTION_TEXT, AT(weights), 0, 0, E | P | G | C | D, 0,
     "use these parameters (safetensors)", NULL, NULL},
    {"only", "PATTERNS", OPTION_TEXT, AT(only), 0, 0, T, 0,
     "with --weights: take these parameters only, such as \"conv*\"; commas separate patterns, * "
     "stands for any characters, ? for one; the others begin with their initial values",
     "all", NULL},
    {"except", "PATTERNS", OPTION_TEXT, AT(except), 0, 0, T, 0,
     "with --weights: do not take these parameters, such as \"head.*\"; they begin with their "
     "initial values",
     "none", NULL},
    {"save", "FILE", OPTION_TEXT, AT(save), 0, 0, T, 0,
     "write the parameters at the end (safetensors)", NULL, NULL},
    {"stop-at", "ACC", OPTION_REAL, AT(stop_at), 0, 1, T, NEED_ACCURACY,
     "stop after the epoch that reaches this accuracy, or this iou of masks, on the validation "
     "split, "
     "or on the test split if there is no validation split; exit code 1 when no epoch does",
     NULL, NULL},
    {"strict", NULL, OPTION_FLAG, AT(strict), 0, 0, T, 0,
     "exit code 1 when a full run misses the expectation of the recipe", NULL, NULL},
    {"all", NULL, OPTION_FLAG, AT(all), 0, 0, E, 0,
     "test all samples of data that have no test split of their own; without it, the share of the "
     "recipe, such as test = 0.2",
     NULL, NULL},
    {"report", "DIR", OPTION_TEXT, AT(report), 0, 0, E, NEED_REPORT,
     "write a report on the predictions: confusion matrix, classes, residuals, the samples with "
     "the "
     "highest loss; DIR is new, empty, or holds an earlier report",
     NULL, "rank 0 writes it"},
    {"input", "FILE", OPTION_TEXT, AT(input), 0, 0, P, 0, "the samples", NULL, NULL},
    {"text", "TEXT", OPTION_TEXT, AT(text), 0, 0, P, NEED_TEXTS, "one sample, instead of --input",
     NULL, NULL},
    {"id", "COLUMN", OPTION_TEXT, AT(id), 0, 0, P, NEED_NAMES,
     "repeat this column of the table in front of each row of the output; for images, `--id file` "
     "writes their paths there",
     "none", NULL},
    {"output", "FILE", OPTION_TEXT, AT(output), 0, 0, P, 0,
     "write all outputs to FILE, .npy or .csv", "standard output", NULL},
    {"output", "FILE", OPTION_TEXT, AT(output), 0, 0, D, 0,
     "the file for the loss and the gradients (safetensors)", NULL, NULL},
    {"steps", "N", OPTION_COUNT, AT(steps), 1, 1e9, B, 0, "measure N steps",
     "as many as make the median known to 1 %", NULL},
    {"seconds", "S", OPTION_REAL, AT(seconds), 0.01, 1e6, B, 0,
     "measure for at most S seconds, even if the median is not known to 1 % then", "20", NULL},
    {"layers", NULL, OPTION_FLAG, AT(layers), 0, 0, B, NEED_CPU,
     "also measure each call of a step; the times add up to the whole step", NULL, NULL},
    {"comm", NULL, OPTION_FLAG, AT(link), 0, 0, B, NEED_RANKS,
     "also measure the sum over ranks by size, and print the expected steps on more ranks", NULL,
     NULL},
    {"scale", "MS", OPTION_REAL, AT(scale), 1e-3, 1e9, B, NEED_RANKS,
     "measure nothing: print the step that the scale model expects on 1 to 1024 ranks and three "
     "networks, if one rank's own step takes MS ms",
     NULL, NULL},
    {"simulate", "THREADS", OPTION_COUNT, AT(simulate), 1, MACHINE_CORES_MOST, B, NEED_CPU,
     "time each unit of a step alone, and print the step of THREADS threads on another machine",
     NULL, NULL},
    {"machine", "NAME", OPTION_TEXT, AT(machine), 0, 0, B, NEED_CPU,
     "with --simulate: a machine of the table, such as 56-core",
     "the first machine with enough cores", NULL},
    {"trace", "FILE", OPTION_TEXT, AT(trace), 0, 0, T | B, NEED_CPU,
     "write the first 20 steps as trace events for Perfetto or Chrome (JSON), a row for each "
     "thread",
     NULL, "rank 0 writes it"},
    {"samples", "K", OPTION_COUNT, AT(samples), 1, 1e9, C, 0,
     "number of elements of each parameter that are compared", "24", NULL},
};
const int program_option_count = sizeof program_options / sizeof *program_options;

/* ---- samples */

static bool are_folders(const RtProgram *p)
{
    return p->decode;
}
static bool are_columns(const RtProgram *p)
{
    return p->recipe.table.given;
}
static bool are_rows(const RtProgram *p)
{
    return has_texts(p) && p->recipe.text.table;
}
static bool are_several(const RtProgram *p)
{
    return p->ninput > 0;
}
static bool are_tokens(const RtProgram *p)
{
    return p->vocab > 0;
}
static bool are_images(const RtProgram *p)
{
    return p->input_rank == 3;
}
static bool are_numbers(const RtProgram *p)
{
    return p != NULL;
}

#define IMAGES                                                                                     \
    "standard output: file, class and probability with tabs between, one line for each image; "    \
    "for arrays CSV"
#define TEXTS                                                                                      \
    "standard output: class and probability with a tab between, one line for each text; for "      \
    "arrays CSV"
#define ROWS   "standard output: CSV, one row for each sample"
#define ARRAYS "a directory with train_x.npy, train_y.npy, test_x.npy and test_y.npy"
const ProgramSample program_samples[SAMPLE_KINDS] = {
    {PAGE("data = csv(...)"),
     "a table with a row of names, or a directory with train.csv and test.csv",
     "a table with a row of names, which has the columns of the inputs",
     "standard output: CSV with the names of the targets, one row for each sample", are_columns},
    {PAGE("data = imagefolder(...)"), "a directory with train/CLASS/*.png or .jpg, and test/",
     "images: a PNG or JPEG file, "
     "or a folder of them; or %s",
     IMAGES, are_folders},
    {PAGE("data = tsv(...)"), "a directory with train.tsv and test.tsv: labels and texts",
     "texts, one on each line; or tokens, %s", TEXTS, are_rows},
    {PAGE("data = text(...), one label a window"),
     "a directory with input.txt, or with NAME.txt of the directory's own name",
     "texts, one on each line; or tokens, %s", TEXTS, predicts_texts},
    {PAGE("data = text(...), one label a position"),
     "a directory with input.txt, or with NAME.txt of the directory's own name", "tokens: %s", ROWS,
     has_texts},
    {PAGE("several inputs"),
     "a directory with train_NAME.npy and test_NAME.npy for each input, train_y.npy and test_y.npy",
     "a directory with NAME.npy for each input; without tokens also the numbers of all inputs: %s",
     ROWS, are_several},
    {PAGE("other data, an input of tokens"), ARRAYS "; train_x and test_x hold tokens",
     "tokens: %s", ROWS, are_tokens},
    {PAGE("other data, an input of three dimensions"),
     ARRAYS ", with MNIST's IDX files, or with CIFAR-10's binary batches",
     "images as numbers: %s; PNG and JPEG files where the program is built with data = "
     "imagefolder(...)",
     ROWS, are_images},
    {PAGE("other data"), ARRAYS ", with MNIST's IDX files, or with CIFAR-10's binary batches",
     "samples: %s", ROWS, are_numbers},
};

/* ---- exit codes */

const ProgramExit program_exits[EXITS] = {
    {0, T | E | P | G | B | I | C | D, 0, "done", PAGE("The program has done what was asked.")},
    {1, T | E | P | G | B | I | C | D, 0, "error",
     PAGE("An error; one message on standard error says which. Also: `--stop-at` was not reached, "
          "`--strict` and the "
          "expectation was missed, "
          "`gradcheck` found a wrong gradient, or the log of `test` or `bench` could not be "
          "written.")},
    {EXIT_STOPPED, T, 0, "stopped on request, a checkpoint is saved",
     PAGE("SIGTERM or SIGINT has stopped a training with `--checkpoint DIR`; the state is saved, "
          "and `--resume` continues. "
          "Without `--checkpoint` "
          "the exit code is 1.")},
    {EXIT_LOST, T | E | B, NEED_RANKS, "another rank is lost",
     PAGE("A rank has ended, does not answer, or was late for longer than `--timeout`. The message "
          "names the rank and its "
          "host. `--resume` continues "
          "from the last checkpoint.")},
};
