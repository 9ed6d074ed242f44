/* program.c -- writes the pages about programs (the output of `tenon build`) from the tables of the runtime:
 * program.md, log.md, files.md, exit-codes.md, the programs' chapters of environment.md and limits.md, and the man page
 * tenon-program.1. */
#include "comm/launch.h"
#include "comm/secret.h"
#include "data/decode.h"
#include "data/stream.h"
#include "data/vocab.h"
#include "files/names.h"
#include "files/lease.h"
#include "files/log.h"
#include "options/program_table.h"
#include "files/records.h"
#include "reference.h"
#include "files/safetensors.h"
#include "base/threads.h"
#include "measure/ticks.h"
#include "base/variables.h"
#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* A string that lives to the end of the generator. */
static const char *made(const char *format, ...) __attribute__((format(printf, 1, 2)));
static const char *made(const char *format, ...)
{
    va_list args;
    char *text = NULL;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        abort();
    va_end(args);
    return text;
}

/* "a sentence" -> "A sentence." */
static const char *sentence(const char *text)
{
    const char first = *text >= 'a' && *text <= 'z' ? (char)(*text - 'a' + 'A') : *text;
    return made("%c%s.", first, text + 1);
}

#define ROW(p, ...) page_row(p, (const char *const[]){__VA_ARGS__})
#define TABLE(p, ...) page_table(p, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), (const char *const[]){__VA_ARGS__})

/* ---- commands and options */

/* "build with --comm mpi" -> "build with `--comm mpi`"; "data = text(...)" likewise. */
static const char *coded(const char *text)
{
    const char *out = "";
    for (const char *s = text; *s;) {
        const bool option = strncmp(s, "--", 2) == 0, data = strncmp(s, "data = ", 7) == 0;
        int n = 1;
        if (option) {
            n = (int)strcspn(s, " ,");
            n += s[n] == ' ' ? 1 + (int)strcspn(s + n + 1, " ,") : 0;
        } else if (data) {
            n = (int)(strchr(s, ')') - s) + 1;
        }
        out = option || data ? made("%s`%.*s`", out, n, s) : made("%s%.*s", out, n, s);
        s += n;
    }
    return out;
}

/* A phrase for the programs that have an option, such as "programs for a GPU"; NULL: all programs. */
static const char *which(int needs)
{
    const char *text = NULL;
    for (int i = 0; i < NEEDS; i++)
        if (needs & (int)program_needs[i].need)
            text = made("%s%s%s", text ? text : "", text ? ", and " : "", coded(program_needs[i].which));
    return text;
}

static const char *commands_of(int commands)
{
    const char *text = "";
    if (commands == (1 << COMMANDS) - 1)
        return "all";
    for (int c = 0; c < COMMANDS; c++)
        if (commands >> c & 1)
            text = made("%s%s`%s`", text, *text ? ", " : "", program_commands[c].name);
    return text;
}

static const char *options_of(int command)
{
    const char *text = "", *last = "";
    for (int i = 0; i < program_option_count; i++)
        if (program_options[i].commands >> command & 1 && strcmp(last, program_options[i].name) != 0) {
            text = made("%s%s--%s", text, *text ? ", " : "", program_options[i].name);
            last = program_options[i].name;
        }
    return text;
}

/* "0.001", "65,536" or "10^9". */
static const char *number(double v)
{
    if (v >= 1e6 && v == __builtin_pow(10, __builtin_round(__builtin_log10(v))))
        return made("10^%.0f", __builtin_log10(v));
    if (v < 1000)
        return made("%.10g", v);
    const char *left = v < 1e6 ? made("%d", (int)(v / 1000)) : number(__builtin_floor(v / 1000));
    return made("%s,%03d", left, (int)__builtin_fmod(v, 1000));
}

static const char *range(const ProgramOption *t)
{
    switch (t->kind) {
    case OPTION_COUNT:
        return made(" A whole number from %s to %s.", number(t->low), number(t->high));
    case OPTION_EVERY:
        return made(" A whole number from %s to %s, with `s` after it for seconds.", number(t->low), number(t->high));
    case OPTION_REAL:
        return made(" A number from %s to %s.", number(t->low), number(t->high));
    case OPTION_SEED:
        return " A whole number from 0 to 2^64 - 1.";
    default:
        return "";
    }
}

/* Help, range, default, commands and programs of an option. */
static const char *option_text(const ProgramOption *t)
{
    const char *programs = which(t->needs), *text = sentence(t->help);
    if (t->ranks)
        text = made("%s In programs of several ranks, %s.", text, t->ranks);
    text = made("%s%s", text, range(t));
    if (t->otherwise)
        text = made("%s Default: %s.", text, t->otherwise);
    text = made("%s Commands: %s.", text, commands_of(t->commands));
    return programs ? made("%s Only in %s.", text, programs) : text;
}

static void commands(Page *p)
{
    page_paragraph(p, "The program of a model without a train block, which reads the weights of another model, has the commands "
                      "`predict` and `info` only.");
    for (int c = 0; c < COMMANDS; c++) {
        const ProgramCommand *t = &program_commands[c];
        page_subsection(p, t->name);
        page_paragraph(p, "%s", sentence(t->does));
        const int needs = t->needs & ~NEED_RECIPE; /* the section's first sentence names it */
        if (needs)
            page_paragraph(p, "Only in %s%s%s.", which(needs), t->why ? ": " : "", t->why ? t->why : "");
        page_code(p, "sh", made("./%s %s%s%s", t->needs & NEED_NEXT ? "char_lstm" : "lenet", t->name, t->example ? " " : "",
                                t->example ? t->example : ""));
        if (*options_of(c))
            page_paragraph(p, "Options: %s.", options_of(c));
    }
}

static void options(Page *p)
{
    page_paragraph(p, "An option is written `--name value` or `--name=value`. --help prints the options that the program has, "
                      "and --version its name, its hash and the version of Tenon.");
    for (int i = 0; i < program_option_count; i++) {
        const ProgramOption *t = &program_options[i];
        page_define(p, made("--%s", t->name), t->arg, option_text(t));
    }
}

static void kinds(Page *p)
{
    page_paragraph(p, "What a program can do is decided when it is built. Its --help lists only its own commands and options. "
                      "It answers other ones with an error that says what to build.");
    TABLE(p, "Kind", "How to build it");
    for (int i = 0; i < NEEDS; i++)
        ROW(p, coded(program_needs[i].which), coded(program_needs[i].build));
    page_table_end(p);
}

static void samples(Page *p)
{
    const char *arrays = ".npy (N, ...) or .csv, one row for each sample";
    page_paragraph(p, "The recipe decides what the samples of a program are. For each kind: what --data can name besides a name "
                      "to look up, what --input of `predict` can be, and what `predict` prints without --output. `(N, ...)` is "
                      "the shape of the input, with N samples.");
    for (int i = 0; i < SAMPLE_KINDS; i++) {
        const ProgramSample *s = &program_samples[i];
        const char *at = strstr(s->input, "%s");
        page_subsection(p, *s->recipe == 'd' ? coded(s->recipe) : made("%c%s", toupper((unsigned char)*s->recipe), s->recipe + 1));
        page_define(p, "--data", "DIR", sentence(s->data));
        page_define(p, "--input", "FILE", sentence(at ? made("%.*s%s%s", (int)(at - s->input), s->input, arrays, coded(at + 2)) : s->input));
        page_define(p, "predict", NULL, sentence(s->output));
    }
}

/* ---- exit codes */

static void exits(Page *p)
{
    for (int i = 0; i < EXITS; i++)
        page_define(p, made("%d", program_exits[i].code), NULL,
                    made("%s %s Commands: %s.%s", sentence(program_exits[i].brief), program_exits[i].when,
                         commands_of(program_exits[i].commands),
                         program_exits[i].needs ? made(" Only in %s.", which(program_exits[i].needs)) : ""));
}

/* ---- files */

typedef struct FileRow {
    const char *name, *text;
} FileRow;

static void files(Page *p)
{
    const FileRow written[] = {
        {"--save FILE",
         "Weights: parameters and running statistics as safetensors, in the usual layouts (convolutions O, I, H, W; dense "
         "layers out, in). The header holds a hash of the content, the vocabulary of texts and the names of classes. No state "
         "of the optimizer."},
        {made("--checkpoint DIR: " FILE_CHECKPOINT, 12ll),
         "A checkpoint after so many steps, as safetensors: weights, states of the optimizer, position in the run. The last two "
         "are kept, and with keep = best(...) in the recipe that of the best epoch. --resume takes the newest intact one. --weights "
         "reads it, too."},
        {"--checkpoint DIR: " FILE_LEASE,
         made("The lease of the run that saves in DIR, on file systems without locks (`flock`). The run renews it every %d "
              "seconds and removes it at the end. Another run takes it over when it was not renewed for %d seconds.",
              LEASE_BEAT_MS / 1000, LEASE_SILENT_MS / 1000)},
        {"--log FILE", "Records, one JSON object on each line: [log records](log.md). `train` replaces the file, and adds to it after "
                       "--resume. `test` replaces it. `bench` adds to it. FILE can be a pipe."},
        {"test --report DIR: metrics.json, metrics.csv, confusion.csv, ...",
         "A report on the predictions: [its files](../how-to/reports.md#the-files). metrics.json lists them and is written last. The "
         "files of an earlier report are replaced or removed."},
        {"--trace FILE", "Trace events as JSON, for Perfetto or Chrome."},
        {"predict --output FILE", "All outputs, one row for each sample: .npy in the number type of the program, or .csv. Where the "
                                  "target is numbers, a row of .npy has the shape of the output, so masks are an array (N, C, H, W)."},
        {"grads --output FILE", "The loss and the gradient of each parameter as safetensors."},
        {made("DIR/" FILE_PACKED, "train", 3ll, 64ll, 64ll, ""),
         "Decoded images of a data set of folders, beside them: split, channels, height, width, and `-stretched` with `fit = "
         "\"stretch\"`. It is made again when an image changes."},
        {made("~/.cache/tenon/" FILE_IMAGES, 0x0123456789abcdefll, 3ll, 64ll, 64ll),
         "The same where the data directory cannot be written."},
        {made("~/.cache/tenon/plans/" FILE_PLAN, 0x0123456789abcdefll),
         "A plan of cuDNN that was made on this machine, because the plan in the program is for another GPU, driver or cuDNN. "
         "`" FILE_LOCK "` after the name: a process is making this plan, and others wait for it."},
        {"~/.config/" FILE_SECRET,
         "The secret by which ranks of programs built with --comm nccl recognise each other: mode 0600, made by the first "
         "process."},
        {"NAME" FILE_TEMPORARY "OWNER-N",
         "A file while it is written. It gets its name when it is whole and on the disk. A program removes it when it ends "
         "early; the next run removes what a killed run has left."},
    };
    const FileRow read[] = {
        {"train_x.npy, train_y.npy, test_x.npy, test_y.npy",
         "Arrays: x of type u8 (divided by 255), f32 or f64, or tokens of type u8, u16, i32 or i64; y integer classes from 0, or the "
         "numbers of the recipe's target: f32, f64, i32 or i64."},
        {"train_NAME.npy, test_NAME.npy", "Arrays of a model with several inputs, one for each: NAME is the input's name. train_y.npy and "
                                          "test_y.npy stand beside them. With several targets, also an array for each target, in place of "
                                          "train_y.npy and test_y.npy."},
        {"train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte",
         "MNIST's format, plain or .gz."},
        {"data_batch_1.bin to data_batch_5.bin, test_batch.bin", "CIFAR-10's binary format, plain or .gz; with `data = cifar10` "
                                                                 "also .xz."},
        {"train/CLASS/*.png, test/CLASS/*.jpg", "Images in folders. The folders of `train`, sorted, are the classes."},
        {"train.tsv, test.tsv", "Labelled texts, one on each line: class, tab, text. Plain or .gz. Also NAME_train.tsv and "
                                "NAME_test.tsv with the name of the directory."},
        {"input.txt", "A text, or NAME.txt with the name of its directory. Plain or .gz. Its last tenth is the test set."},
        {FILE_SUMS, "Checksums of files beside it, as `sha256sum` writes them. A data file that it lists is compared with it."},
        {"predict --input FILE", "Arrays (.npy, .csv), a text file with one sample in each line, or images: [samples](program.md#samples)."},
        {"--weights FILE", "safetensors with the names and shapes of this network: written by --save, a checkpoint, or made by "
                           "others."},
    };
    page_section(p, "Files that a program writes");
    page_paragraph(p, "A file appears whole or not at all: it is written under a temporary name, synced to the disk and "
                      "renamed. A link is followed; a device, a directory or a pipe is not replaced. The log and standard "
                      "output are the exception: they grow.");
    for (size_t i = 0; i < sizeof written / sizeof *written; i++)
        page_define(p, written[i].name, NULL, written[i].text);
    page_section(p, "Files that a program reads");
    page_paragraph(p, "A data set is a directory. Its name is looked up in TENON_DATA, in the directories of the Tenon that "
                      "built the program, in `./models/data` and in the current directory. A path, which holds a `/`, is taken "
                      "as it is.");
    for (size_t i = 0; i < sizeof read / sizeof *read; i++)
        page_define(p, read[i].name, NULL, read[i].text);
}

/* ---- log */

typedef struct FieldRow {
    const char *event, *name, *type, *unit, *where, *text;
} FieldRow;
static const FieldRow field[] = {
#define FIELD_ROW(event, name, type, unit, where, text) {#event, #name, type, unit, where, text},
    FIELDS(FIELD_ROW)
#undef FIELD_ROW
};

static const struct {
    const char *event, *commands, *text;
} record[] = {
#define RECORD_ROW(event, commands, text) {#event, commands, text},
    RECORDS(RECORD_ROW)
#undef RECORD_ROW
};

static void records(Page *p)
{
    page_paragraph(p, "A record is one JSON object on one line. Its first field, `event`, is the kind of the record. `train`, "
                      "`test` and `bench` write records with `--log FILE`. A number that is not finite is `null`. Each record "
                      "is written in one piece.");
    page_code(p, "text", "{\"event\":\"test\",\"model\":\"lenet\",\"samples\":10000,\"seconds\":0.344577591,\n"
                         " \"test_loss\":0.651754412286,\"test_accuracy\":0.789}");
    page_paragraph(p, "The example is shown in two lines. With several ranks rank 0 writes the log; with `%%r` in FILE each "
                      "rank writes its own, and `%%r` stands for the number of the rank. A log that cannot be opened "
                      "is an error. A training goes on when its log cannot be written later. Types: a text, a count (a whole number) or a real number. METRIC stands for the name of "
                      "a metric, such as `loss` or `accuracy`. A term of the loss is `loss_TERM`; with several targets, the others are `accuracy_TARGET`, "
                      "`mae_TARGET`, `rmse_TARGET` and `r2_TARGET`.");
    for (int r = 0; r < RECORD_COUNT; r++) {
        page_section(p, record[r].event);
        page_paragraph(p, "Written by %s. %s", record[r].commands, record[r].text);
        TABLE(p, "Field", "Type", "Unit", "Only in", "Meaning");
        for (int f = 0; f < FIELD_COUNT; f++)
            if (strcmp(field[f].event, record[r].event) == 0)
                ROW(p, made("`%s`", field[f].name), field[f].type, field[f].unit, field[f].where, field[f].text);
        page_table_end(p);
    }
}

/* ---- environment */

static const struct {
    const char *name, *value, *group, *text;
} variable[] = {
#define VARIABLE_ROW(name, value, group, text) {#name, value, #group, text},
    VARIABLES(VARIABLE_ROW)
#undef VARIABLE_ROW
};

void reference_program_environment(Page *p)
{
    static const struct {
        const char *group, *title, *text;
    } groups[] = {
        {"ANY", "Every program", NULL},
        {"RANKS", "Ranks without a launcher", NULL},
        {"LAUNCHER", "Set by launchers",
         "A program looks at them in this order: those of Tenon, Open MPI, MPICH, Slurm. The first launcher that has started "
         "more than one process counts. A program built with --comm none refuses to be one of several processes."},
        {"MPI", "Programs built with --comm mpi", NULL},
        {"NCCL", "Programs built with --comm nccl", NULL},
        {"LIBRARIES", "Programs that use NVIDIA's libraries", NULL},
    };
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
        page_subsection(p, groups[g].title);
        if (groups[g].text)
            page_paragraph(p, "%s", groups[g].text);
        for (int v = 0; v < VARIABLE_COUNT; v++)
            if (strcmp(variable[v].group, groups[g].group) == 0)
                page_define(p, made("%s=%s", variable[v].name, variable[v].value), NULL, variable[v].text);
    }
}

/* ---- limits */

void reference_program_limits(Page *p)
{
    TABLE(p, "Limit", "Value");
    ROW(p, "Threads of a process", number(RT_THREADS_MOST));
    ROW(p, "Ranks of a run", number(LAUNCH_RANKS));
    ROW(p, "Ranks with `--wire bf16`", made("%s, a power of two", number(WIRE_RANKS)));
    ROW(p, "Samples of a data set", "2^32, less two batches");
    ROW(p, "Images of a data set of folders", "2^31 - 1");
    ROW(p, "Pixels of an image file", number(DECODE_PIXELS));
    ROW(p, "Dimensions of a parameter", "6");
    ROW(p, "Bytes of a word or token of a vocabulary", number(WORD_MAX));
    ROW(p, "Unpacked size of a .gz or .xz file",
        made("%d times the file's size, and %d MiB more", STREAM_RATIO, (int)(STREAM_FREE >> 20)));
    ROW(p, "Inputs of a model", number(RT_INPUTS));
    ROW(p, "Outputs of a model", number(RT_OUTPUTS));
    ROW(p, "Targets of a recipe", number(RT_TARGETS));
    ROW(p, "Terms of a loss", number(RT_TERMS));
    ROW(p, "Metrics", number(RT_METRICS));
    ROW(p, "Header of a safetensors file that is read", made("%d MiB", ST_HEAD_READ >> 20));
    ROW(p, "Header of a safetensors file that is written", made("%d MB", ST_HEAD_WRITTEN / 1000000));
    ROW(p, "A record of the log, and a message", made("%s bytes", number(sizeof((Log *)0)->line)));
    ROW(p, "A secret of ranks", made("%d to %s bytes", SECRET_LEAST, number(SECRET_MOST)));
    ROW(p, "Steps of one launch on a GPU", number(RT_STEPS_MOST));
    ROW(p, "Loss scale in f16", made("%s to %s", number(RT_SCALE_LEAST), number(RT_SCALE_MOST)));
    ROW(p, "Steps in a trace", number(TRACE_STEPS));
    ROW(p, "Stack of a thread", made("%d MiB, and what the kernels of the program need beyond it", RT_STACK >> 20));
    page_table_end(p);
    page_paragraph(p, "The values that options accept:");
    TABLE(p, "Option", "From", "To", "Commands");
    for (int i = 0; i < program_option_count; i++) {
        const ProgramOption *t = &program_options[i];
        if (t->kind == OPTION_COUNT || t->kind == OPTION_REAL || t->kind == OPTION_EVERY)
            ROW(p, made("--%s", t->name), number(t->low), number(t->high), commands_of(t->commands));
        if (t->kind == OPTION_SEED)
            ROW(p, made("--%s", t->name), "0", "2^64 - 1", commands_of(t->commands));
    }
    page_table_end(p);
}

/* ---- pages */

void reference_program(Page *p)
{
    page_paragraph(p, "`tenon build` makes a program from a model file. The program trains the network, tests and uses the "
                      "weights, and measures itself. Neither Tenon nor a C compiler is needed to run it.");
    page_code(p, "sh", "tenon build models/lenet.tn -o lenet\n./lenet --epochs 1 --save w.safetensors\n./lenet test --weights "
                       "w.safetensors\n"
                       "./lenet --help");
    page_paragraph(p, "A command line is `PROGRAM [COMMAND] [OPTIONS]`. See also [log records](log.md), [files](files.md), "
                      "[exit codes](exit-codes.md), [environment](environment.md) and [limits](limits.md).");
    page_section(p, "Kinds of programs");
    kinds(p);
    page_section(p, "Commands");
    commands(p);
    page_section(p, "Options");
    options(p);
    page_section(p, "Samples");
    samples(p);
}

void reference_program_log(Page *p)
{
    records(p);
}

void reference_program_files(Page *p)
{
    files(p);
}

void reference_program_exits(Page *p)
{
    page_section(p, "Programs");
    exits(p);
    page_paragraph(p, "A process that a signal has ended has no exit code of its own: a shell shows 128 and the number of the "
                      "signal. Open MPI's `mpirun` has codes of its own: 137 when a rank was killed, and 205 when a host is "
                      "lost.");
    page_section(p, "tenon");
    page_define(p, "0", NULL, "Done.");
    page_define(p, "1", NULL, "An error; messages on standard error name file, line and column. Also: `tenon results compare` "
                              "found a result that is slower.");
    page_paragraph(p, "`tenon run` ends with the exit code of the program.");
}

bool reference_program_manual(const char *dir)
{
    Page p;
    FILE *out = reference_open(dir, "tenon-program.1");
    if (!out)
        return false;
    page_begin(&p, out, PAGE_MAN, "tenon-program", "tenon-program", "a program that `tenon build` has made");
    page_section(&p, "Synopsis");
    page_code(&p, "sh", "PROGRAM [COMMAND] [OPTIONS]");
    page_section(&p, "Description");
    page_paragraph(&p, "A program trains the network that it was built from, tests and uses the weights, and measures itself.");
    kinds(&p);
    page_section(&p, "Commands");
    commands(&p);
    page_section(&p, "Options");
    options(&p);
    page_section(&p, "Samples");
    samples(&p);
    files(&p);
    page_section(&p, "Environment");
    reference_program_environment(&p);
    page_section(&p, "Limits");
    reference_program_limits(&p);
    page_section(&p, "Exit status");
    exits(&p);
    page_section(&p, "Log records");
    for (int r = 0; r < RECORD_COUNT; r++) {
        const char *fields = "";
        for (int f = 0; f < FIELD_COUNT; f++)
            if (strcmp(field[f].event, record[r].event) == 0)
                fields = made("%s%s%s", fields, *fields ? ", " : "", field[f].name);
        page_define(&p, record[r].event, NULL, made("%s Fields: %s.", record[r].text, fields));
    }
    page_section(&p, "See also");
    page_paragraph(&p, "`tenon(1)`, `tenon-build(1)`");
    page_end(&p);
    return fclose(out) == 0;
}
