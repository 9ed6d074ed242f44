/* options.c -- a table of commands, a table of options, and what to say when a word is in
 * neither. */
#define _GNU_SOURCE
#include "options.h"
#include "error.h"
#include "threads.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *does;
} commands[COMMANDS] = {
    [TRAIN] = {"train", "train the network (the command that needs no name)"},
    [TEST] = {"test", "loss and accuracy of given weights on the test set"},
    [PREDICT] = {"predict",
                 "outputs (class probabilities) for samples of a file: numbers, texts or images"},
    [GENERATE] = {"generate", "goes on with a text, for networks that say which token comes next"},
    [BENCH] = {"bench", "the time of a training step, on input in memory: synthetic, or of --data"},
    [INFO] = {"info", "what this program was made from, and what it needs"},
    [GRADCHECK] = {"gradcheck", "gradients against central differences (build with --dtype f64)"},
    [GRADS] = {"grads", "loss and gradients of the first batch, as a safetensors file"},
};

typedef enum { TEXT, FLAG, COUNT, SEED, REAL, ON_OFF, EVERY } Kind;

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

static const struct Option {
    const char *name, *arg, *help;
    int commands; /* bits of those that take it */
    Kind kind;
    size_t at;
    double low, high;
} options[] = {
    {"data", "NAME|DIR", NULL /* data_help() */, T | E | C | D | B, TEXT, AT(data), 0, 0},
    {"epochs", "N", "instead of the recipe's", T, COUNT, AT(epochs), 0, 1e9},
    {"seed", "S", "of weights, order and dropout, instead of the recipe's", T | B | C | D, SEED,
     AT(seed), 0, 0},
    {"seed", "S", "of what is drawn, instead of the recipe's: one seed, one text", G, SEED,
     AT(seed), 0, 0},
    {"prompt", "TEXT", "what to go on with (default: a new line)", G, TEXT, AT(prompt), 0, 0},
    {"length", "N", "tokens to make (default 500)", G, COUNT, AT(length), 1, 1e9},
    {"temperature", "X",
     "below 1 the likely ones are drawn more often, 0: always the likeliest (default 1)", G, REAL,
     AT(temperature), 0, 1000},
    {"top-k", "K", "draw from the K likeliest only (default: all)", G, COUNT, AT(top_k), 1, 1e9},
    {"anew", NULL, "look at the whole window for each token, not at the new one alone", G, FLAG,
     AT(anew), 0, 0},
    {"threads", "T", "default: the processors of this process; no result depends on it", RUNS,
     COUNT, AT(threads), 1, 1024},
    {"groups", "N", "compute the shards as N ranks would, in one process (for tests)", T | D, COUNT,
     AT(groups), 1, 65536},
    {"timeout", "S", "with several ranks: seconds that one may wait for another (default 300)",
     T | E | B, REAL, AT(timeout), 1, 1e6},
    {"timeout-start", "S",
     "the same until the first step is done, which includes loading (default: 3 times --timeout)",
     T | E | B, REAL, AT(timeout_start), 1, 1e7},
    {"wire", "f32|bf16",
     "how gradients travel between ranks: bf16 halves the bytes, and is not equal to the bit",
     T | B, TEXT, AT(wire), 0, 0},
    {"reduce", "tree|nccl",
     "who adds gradients of several GPUs: nccl is NCCL itself, and not equal to the bit", T | B,
     TEXT, AT(reduce), 0, 0},
    {"loss-scale", "N",
     "of programs in f16: the loss's gradient is multiplied by it, at first (default 65536)",
     T | B | D, REAL, AT(loss_scale), 1, 16777216},
    {"loss-scale-steps", "N",
     "of these: it doubles after N steps (default 2000), and is halved, the step left out, where a "
     "gradient is not finite; 0: it stays as it is",
     T | B, COUNT, AT(loss_scale_steps), 0, 1e6},
    {"log", "FILE",
     "records of the run, one JSON object a line; of rank 0, or with %r in FILE of each rank, which "
     "%r stands for, and its messages",
     T | E | B, TEXT, AT(log), 0, 0},
    {"log-steps", "N", "with --log: a record with the loss of every N-th step", T, COUNT,
     AT(log_steps), 1, 1e12},
    {"launch-steps", "N",
     "on a GPU: at most N steps are one launch, after which the program looks at signals (default: "
     "what `info` says); no result depends on it",
     T | B, COUNT, AT(launch_steps), 1, RT_STEPS_MOST},
    {"samples-in", "gpu|host",
     "on a GPU: where the samples lie; host: in this machine's memory, and those of each launch go over while the one "
     "before runs (default: gpu where they fit); no result depends on it",
     T | E | P | B, TEXT, AT(samples_in), 0, 0},
    {"limit-samples", "N", "only the first N training samples", T, COUNT, AT(limit), 1, 4e9},
    {"shuffle", "on|off", "off: samples in file order", T, ON_OFF, AT(shuffle), 0, 0},
    {"checkpoint", "DIR", "save the state of the run there after every epoch", T, TEXT,
     AT(checkpoint), 0, 0},
    {"checkpoint-every", "N|Ns", "and every N steps, or every N seconds", T, EVERY, AT(every_steps),
     1, 1e12},
    {"resume", NULL, "go on from the newest checkpoint, to the same bits", T, FLAG, AT(resume), 0,
     0},
    {"weights", "FILE", "take these parameters (safetensors)", T | E | P | G | C | D, TEXT,
     AT(weights), 0, 0},
    {"save", "FILE", "write the parameters at the end (safetensors)", T, TEXT, AT(save), 0, 0},
    {"stop-at", "ACC", "stop after the epoch that reaches this test accuracy; exit 1 below it", T,
     REAL, AT(stop_at), 0, 1},
    {"strict", NULL, "exit 1 when a full run misses the recipe's expectation", T, FLAG, AT(strict),
     0, 0},
    {"input", "FILE",
     NULL, /* input_help() */
     P, TEXT, AT(input), 0, 0},
    {"text", "TEXT", "one sample, where samples are texts", P, TEXT, AT(text), 0, 0},
    {"output", "FILE",
     "all outputs, .npy or .csv (default: CSV on stdout; of texts and images class, tab, "
     "probability)",
     P, TEXT, AT(output), 0, 0},
    {"output", "FILE", "loss and gradients (safetensors)", D, TEXT, AT(output), 0, 0},
    {"steps", "N", "measured steps (default 200)", B, COUNT, AT(steps), 1, 1e9},
    {"layers", NULL, "the time of each call of the step as well, adding up to all of it", B, FLAG,
     AT(layers), 0, 0},
    {"comm", NULL, "the sum over ranks by size, and the steps of more ranks that follow", B, FLAG,
     AT(link), 0, 0},
    {"scale", "MS",
     "instead of measuring: what the scale model makes of a rank's own step of MS ms on 1 to 1024 "
     "ranks and three networks",
     B, REAL, AT(scale), 1e-3, 1e9},
    {"trace", "FILE",
     "the first 20 steps as Chrome or Perfetto trace events (JSON), a row a thread; of rank 0",
     T | B, TEXT, AT(trace), 0, 0},
    {"samples", "K", "checked elements of each parameter (default 24)", C, COUNT, AT(samples), 1,
     1e9},
};
enum { OPTIONS = sizeof options / sizeof *options };

/* How many letters must be put in, taken out or changed to make b of a (Levenshtein 1965). */
static int distance(const char *a, const char *b)
{
    enum { LONG = 40 };
    int row[LONG + 1];
    const int n = (int)strlen(b);
    if (n > LONG || strlen(a) > LONG)
        return LONG;
    for (int k = 0; k <= n; k++)
        row[k] = k;
    for (int i = 0; a[i]; i++) {
        int corner = row[0]++;
        for (int k = 1; k <= n; k++) {
            const int change = corner + (a[i] != b[k - 1]);
            corner = row[k];
            const int shift = (row[k] < row[k - 1] ? row[k] : row[k - 1]) + 1;
            row[k] = change < shift ? change : shift;
        }
    }
    return row[n];
}

/* What --data of this program can name: its data are of one kind. */
static const char *data_help(const RtProgram *p)
{
    return p->decode               ? "data set: a name to look up, or a directory with train/CLASS/*.png or .jpg, and test/"
           : p->recipe.text.table  ? "data set: a name to look up, or a directory with train.tsv and test.tsv: labels and texts"
           : p->recipe.text.unit   ? "data set: a name to look up, or a directory with input.txt or NAME.txt of its own name"
           : p->vocab              ? "data set: a name to look up, or a directory with train_x.npy (tokens), train_y.npy, test_x.npy, test_y.npy"
                                   : "data set: a name to look up, or a directory with train_x.npy, train_y.npy, test_x.npy, test_y.npy, with "
                                     "MNIST's IDX files, or with CIFAR-10's binary batches";
}

/* And what --input of predict can be. */
static const char *input_help(const RtProgram *p)
{
    const char *dims = "N";
    for (int i = 0; i < p->input_rank; i++)
        dims = rt_format("%s, %lld", dims, (long long)p->input_dim[i]);
    const char *arrays = rt_format(".npy (%s) or .csv, a row a sample", dims);
    return p->decode ? rt_format("images: a PNG or JPEG file, or a folder of them; or %s", arrays)
           : p->recipe.text.unit && p->labels == 1 ? rt_format("texts, one a line; or tokens, %s", arrays)
           : p->vocab             ? rt_format("tokens: %s", arrays)
           : p->input_rank == 3   ? rt_format("images as numbers: %s; PNG and JPEG files where the program is built with "
                                              "data = imagefolder(...)", arrays)
                                  : rt_format("samples: %s", arrays);
}

/* The help of an option as it is for this program; NULL: it has no use there. */
static const char *help_of(const RtProgram *p, const struct Option *t)
{
    return t->at == AT(data)                            ? data_help(p)
           : t->at == AT(input)                         ? input_help(p)
           : t->at == AT(text) && !p->recipe.text.unit ? NULL
                                                        : t->help;
}

static void usage(const RtProgram *p, int command)
{
    const char *name = program_invocation_short_name;
    if (command < 0) {
        printf("usage: %s [COMMAND] [OPTIONS]        %s, compiled by %s from %s\n\n", name,
               p->model, p->compiler, p->source);
        for (int c = 0; c < COMMANDS; c++)
            printf("  %-10s %s\n", commands[c].name, commands[c].does);
        printf("\nOptions of train (%s COMMAND --help shows those of another):\n", name);
        command = TRAIN;
    } else
        printf("usage: %s %s [OPTIONS]        %s\n\n", name, commands[command].name,
               commands[command].does);
    for (int i = 0; i < OPTIONS; i++)
        if (options[i].commands >> command & 1 && help_of(p, &options[i])) {
            char word[64];
            snprintf(word, sizeof word, "--%s %s", options[i].name,
                     options[i].arg ? options[i].arg : "");
            printf("  %-26s %s\n", word, help_of(p, &options[i]));
        }
    printf("  %-26s %s\n", "--help, --version", "");
    printf("\nExit code: 0 done, 1 error, 75 stopped on request with a checkpoint saved, 76 "
           "another rank is lost.\n");
    rt_said();
    exit(0);
}

static const struct Option *find(const char *word, size_t length, Command command)
{
    const char *nearest = NULL;
    bool elsewhere = false;
    int best = 4;
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)(length < 60 ? length : 60), word);
    for (int i = 0; i < OPTIONS; i++) {
        const bool here = options[i].commands >> command & 1;
        if (strcmp(options[i].name, name) == 0 && here)
            return &options[i];
        const int d = distance(name, options[i].name);
        elsewhere |= d == 0;
        if (here && d < best)
            best = d, nearest = options[i].name;
    }
    if (elsewhere)
        rt_die("--%s is no option of %s: `%s %s --help` lists them", name, commands[command].name,
               program_invocation_short_name, commands[command].name);
    if (nearest)
        rt_die("unknown option --%s, did you mean --%s?", name, nearest);
    rt_die("unknown option --%s: `%s %s --help` lists those there are", name,
           program_invocation_short_name, commands[command].name);
}

static Command command_of(const char *word)
{
    int best = 4, nearest = -1;
    for (int c = 0; c < COMMANDS; c++) {
        const int d = distance(word, commands[c].name);
        if (d == 0)
            return (Command)c;
        if (d < best)
            best = d, nearest = c;
    }
    if (nearest >= 0)
        rt_die("unknown command %s, did you mean %s?", word, commands[nearest].name);
    rt_die("unknown command %s: `%s --help` lists those there are", word,
           program_invocation_short_name);
}

static double number(const struct Option *t, const char *value, const char *end_with, double low,
                     double high)
{
    char *end;
    errno = 0;
    const double v = strtod(value, &end);
    if (end == value || strcmp(end, end_with) != 0 || errno || !(v >= low && v <= high) ||
        (t->kind != REAL && v != floor(v)))
        rt_die("--%s wants %s from %g to %g, not '%s'", t->name,
               t->kind == REAL ? "a number" : "a whole number", low, high, value);
    return v;
}

static uint64_t seed_of(const char *value)
{
    char *end;
    errno = 0;
    const uint64_t v = strtoull(value, &end, 0);
    if (*value < '0' || *value > '9' || *end || errno)
        rt_die("--seed wants a whole number from 0 to 2^64 - 1, not '%s'", value);
    return v;
}

static void every(Options *o, const struct Option *t, const char *value)
{
    const size_t n = strlen(value);
    const bool seconds = n > 0 && value[n - 1] == 's';
    const double v = number(t, value, seconds ? "s" : "", t->low, t->high);
    o->every_seconds = seconds ? v : 0;
    o->every_steps = seconds ? 0 : (int64_t)v;
}

static void set(Options *o, const struct Option *t, const char *value)
{
    void *field = (char *)o + t->at;
    switch (t->kind) {
    case TEXT:
        if (!*value && t->at == AT(text))
            rt_die("--text is empty: there is nothing to predict from");
        if (!*value && t->at != AT(prompt))
            rt_die("--%s wants %s", t->name, t->arg);
        *(const char **)field = value;
        break;
    case FLAG:
        *(bool *)field = true;
        break;
    case ON_OFF:
        if (strcmp(value, "on") != 0 && strcmp(value, "off") != 0)
            rt_die("--%s is on or off, not '%s'", t->name, value);
        *(bool *)field = value[1] == 'n';
        break;
    case SEED:
        *(uint64_t *)field = seed_of(value);
        break;
    case REAL:
        *(double *)field = number(t, value, "", t->low, t->high);
        break;
    case EVERY:
        every(o, t, value);
        break;
    case COUNT:
        if (t->at == AT(threads) || t->at == AT(groups))
            *(int *)field = (int)number(t, value, "", t->low, t->high);
        else
            *(int64_t *)field = (int64_t)number(t, value, "", t->low, t->high);
        o->epochs_given |= t->at == AT(epochs);
        o->threads_given |= t->at == AT(threads);
    }
}

static void complete(const Options *o)
{
    if ((o->command == TEST || o->command == PREDICT || o->command == GENERATE) && !o->weights)
        rt_die("%s needs --weights FILE, written by `%s --save FILE`", commands[o->command].name,
               program_invocation_short_name);
    if (o->command == PREDICT && !o->input && !o->text)
        rt_die("predict needs --input FILE (.npy or .csv, a row a sample; of texts a line each, or "
               "--text TEXT)");
    if (o->input && o->text)
        rt_die("--input and --text say what to predict twice: give one of them");
    if (strcmp(o->wire, "f32") != 0 && strcmp(o->wire, "bf16") != 0)
        rt_die("--wire is f32 or bf16, not '%s'", o->wire);
    if (strcmp(o->reduce, "tree") != 0 && strcmp(o->reduce, "nccl") != 0)
        rt_die("--reduce is tree or nccl, not '%s'", o->reduce);
    if (o->samples_in && strcmp(o->samples_in, "gpu") != 0 && strcmp(o->samples_in, "host") != 0)
        rt_die("--samples-in is gpu or host, not '%s'", o->samples_in);
    if (o->command == GRADS && !o->output)
        rt_die("grads needs --output FILE.safetensors");
    if (o->resume && !o->checkpoint)
        rt_die("--resume needs --checkpoint DIR, where the run was saved");
    if ((o->every_steps || o->every_seconds > 0) && !o->checkpoint)
        rt_die("--checkpoint-every needs --checkpoint DIR");
    if (o->log_steps && !o->log)
        rt_die("--log-steps needs --log FILE");
}

void options_parse(Options *o, const RtProgram *p, int argc, char **argv)
{
    *o = (Options){.command = TRAIN,
                   .epochs = p->recipe.epochs,
                   .seed = (uint64_t)p->recipe.seed,
                   .threads = threads_available(),
                   .groups = 1,
                   .timeout = 300,
                   .wire = "f32",
                   .reduce = "tree",
                   .loss_scale_steps = -1,
                   .shuffle = true,
                   .steps = 200,
                   .length = 500,
                   .temperature = 1,
                   .samples = 24};
    int i = 1;
    const bool named = argc > 1 && argv[1][0] != '-';
    if (named)
        o->command = command_of(argv[i++]);
    for (; i < argc; i++) {
        const char *word = argv[i];
        if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
            usage(p, named ? (int)o->command : -1);
        if (strcmp(word, "--version") == 0) {
            printf("%s %s, compiled by %s\n", p->model, p->source_hash, p->compiler);
            rt_said();
            exit(0);
        }
        if (strncmp(word, "--", 2) != 0 || !word[2])
            rt_die("'%s' is no option: `%s --help` lists them", word,
                   program_invocation_short_name);
        const char *equals = strchr(word, '=');
        const size_t length = equals ? (size_t)(equals - word - 2) : strlen(word + 2);
        const struct Option *t = find(word + 2, length, o->command);
        if (!t->arg && equals)
            rt_die("--%s takes no value", t->name);
        if (t->arg && !equals && i + 1 == argc)
            rt_die("--%s wants %s", t->name, t->arg);
        set(o, t, !t->arg ? "" : equals ? equals + 1 : argv[++i]);
    }
    complete(o);
    if (o->timeout_start == 0)
        o->timeout_start = 3 * o->timeout;
}
