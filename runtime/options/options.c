/* options.c -- reads a command line by the tables of program_table.h; reports unknown words. */
#define _GNU_SOURCE
#include "options/options.h"
#include "base/error.h"
#include "base/near.h"
#include "base/variables.h"
#include "options/program_table.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT(field) offsetof(Options, field)

static const ProgramSample *sample_kind(const RtProgram *p)
{
    const ProgramSample *s = program_samples;
    while (!s->is(p))
        s++;
    return s;
}

/* ".npy (N, 1, 28, 28) or .csv, one row for each sample" */
static const char *arrays_of(const RtProgram *p)
{
    const char *dims = "N";
    for (int i = 0; i < p->input_rank; i++)
        dims = rt_format("%s, %lld", dims, (long long)p->input_dim[i]);
    return rt_format(".npy (%s) or .csv, one row for each sample", dims);
}

/* The help of an option for this program, with its default and, for data, the accepted kinds. */
static const char *help_of(const RtProgram *p, const ProgramOption *t, int command)
{
    const char *text = t->help, *otherwise = t->otherwise;
    if (t->at == AT(data))
        text =
            rt_format("%.*s, or %s", (int)(strrchr(text, ',') - text), text, sample_kind(p)->data);
    if (t->at == AT(input))
        text = rt_format(sample_kind(p)->input, arrays_of(p));
    if (t->at == AT(output) && command == PREDICT)
        otherwise = p->trained ? "standard output: CSV, one row for each sample" /* of numbers */
                               : sample_kind(p)->output;
    if (t->ranks && p->transport)
        text = rt_format("%s; %s", text, t->ranks);
    return otherwise ? rt_format("%s (default: %s)", text, otherwise) : text;
}

static bool offers(const RtProgram *p, const ProgramOption *t, int command)
{
    return t->commands >> command & 1 && !program_lacks(p, t->needs);
}

static const char *does_text(const RtProgram *p, int command)
{
    return p->trained && command == PREDICT ? "compute the outputs for the samples of a file"
                                            : program_commands[command].does;
}

static void usage(const RtProgram *p, int command)
{
    const char *name = program_invocation_short_name;
    if (command < 0) {
        printf("usage: %s [COMMAND] [OPTIONS]        %s, compiled by %s from %s\n\n", name,
               p->model, p->compiler, p->source);
        for (int c = 0; c < COMMANDS; c++)
            if (!program_lacks(p, program_commands[c].needs))
                printf("  %-10s %s\n", program_commands[c].name, does_text(p, c));
        command = p->trained ? PREDICT : TRAIN;
        printf("\nOptions of %s (%s COMMAND --help lists those of another command):\n",
               program_commands[command].name, name);
    } else
        printf("usage: %s %s [OPTIONS]        %s\n\n", name, program_commands[command].name,
               does_text(p, command));
    for (int i = 0; i < program_option_count; i++) {
        const ProgramOption *t = &program_options[i];
        if (offers(p, t, command)) {
            const char *word = rt_format("--%s %s", t->name, t->arg ? t->arg : "");
            printf("  %-26s %s\n", word, help_of(p, t, command));
        }
    }
    printf("  %-26s print this help\n  %-26s print the version\n\nExit codes:\n", "--help",
           "--version");
    for (int i = 0; i < EXITS; i++)
        if (program_exits[i].commands >> command & 1 && !program_lacks(p, program_exits[i].needs))
            printf("  %-3d %s\n", program_exits[i].code, program_exits[i].brief);
    rt_said();
    exit(0);
}

/* Dies because the program was built without what the user has asked for. */
static void __attribute__((noreturn))
lacking(const char *what, const ProgramNeed *n, const char *why)
{
    rt_die("%s is for %s%s%s: %s", what, n->which, why ? ", because " : "", why ? why : "",
           n->build);
}

/* The row of an option. Two commands can have rows of the same name. */
static const ProgramOption *find_option(const RtProgram *p, const char *word, size_t length,
                                        Command command)
{
    const char *nearest = NULL, *of = program_commands[command].name;
    const ProgramOption *elsewhere = NULL;
    int best = near_most(length);
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)(length < 60 ? length : 60), word);
    for (int i = 0; i < program_option_count; i++) {
        const ProgramOption *t = &program_options[i];
        const bool here = t->commands >> command & 1;
        const int d = near_distance(name, t->name);
        const ProgramNeed *lacks = d == 0 && here ? program_lacks(p, t->needs) : NULL;
        if (lacks)
            lacking(rt_format("--%s", name), lacks, NULL);
        if (d == 0 && here)
            return t;
        if (d == 0)
            elsewhere = t;
        if (d < best && offers(p, t, command))
            best = d, nearest = t->name;
    }
    if (elsewhere)
        rt_die("--%s is not an option of %s: `%s %s --help` lists them", name, of,
               program_invocation_short_name, of);
    if (nearest)
        rt_die("unknown option --%s, did you mean --%s?", name, nearest);
    rt_die("unknown option --%s: `%s %s --help` lists the options", name,
           program_invocation_short_name, of);
}

static Command command_of(const RtProgram *p, const char *word)
{
    int best = near_most(strlen(word)), nearest = -1;
    for (int c = 0; c < COMMANDS; c++) {
        const int d = near_distance(word, program_commands[c].name);
        const ProgramNeed *lacks = program_lacks(p, program_commands[c].needs);
        if (d == 0 && lacks)
            lacking(word, lacks, lacks->need == NEED_RECIPE ? NULL : program_commands[c].why);
        if (d == 0)
            return (Command)c;
        if (d < best && !lacks)
            best = d, nearest = c;
    }
    if (nearest >= 0)
        rt_die("unknown command %s, did you mean %s?", word, program_commands[nearest].name);
    rt_die("unknown command %s: `%s --help` lists the commands", word,
           program_invocation_short_name);
}

static double option_number(const ProgramOption *t, const char *value, const char *end_with,
                            double low, double high)
{
    char *end;
    errno = 0;
    const double v = strtod(value, &end);
    if (end == value || strcmp(end, end_with) != 0 || errno || !(v >= low && v <= high) ||
        (t->kind != OPTION_REAL && v != floor(v)))
        rt_die("--%s needs %s from %.15g to %.15g, not '%s'", t->name,
               t->kind == OPTION_REAL ? "a number" : "a whole number", low, high, value);
    return v;
}

/* Reads decimal numbers, also with leading zeros as from `seq -w`, and hexadecimal ones after
 * 0x. */
static uint64_t seed_of(const char *value)
{
    const bool hex = strncmp(value, "0x", 2) == 0;
    char *end;
    errno = 0;
    const uint64_t v = strtoull(value, &end, hex ? 16 : 10);
    if (*value < '0' || *value > '9' || *end || errno)
        rt_die("--seed needs a whole number from 0 to 2^64 - 1, not '%s'", value);
    return v;
}

static void every(Options *o, const ProgramOption *t, const char *value)
{
    const size_t n = strlen(value);
    const bool seconds = n > 0 && value[n - 1] == 's';
    const double v = option_number(t, value, seconds ? "s" : "", t->low, t->high);
    o->every_seconds = seconds ? v : 0;
    o->every_steps = seconds ? 0 : (int64_t)v;
}

/* One of the words of "tree|nccl", or of three words. */
static const char *choice(const ProgramOption *t, const char *value)
{
    char words[64];
    const size_t length = strlen(value);
    for (const char *word = t->arg; word; word = strchr(word, '|') ? strchr(word, '|') + 1 : NULL)
        if (strcspn(word, "|") == length && strncmp(word, value, length) == 0)
            return value;
    snprintf(words, sizeof words, "%s", t->arg);
    char *last = strrchr(words, '|'), *first = strchr(words, '|');
    *last = 0;
    if (first != last)
        *first = 0;
    rt_die("--%s is %s%s%s or %s, not '%s'", t->name, words, first == last ? "" : ", ",
           first == last ? "" : first + 1, last + 1, value);
}

static void set_option(Options *o, const ProgramOption *t, const char *value)
{
    void *field = (char *)o + t->at;
    switch (t->kind) {
    case OPTION_TEXT:
        if (!*value && t->at == AT(text))
            rt_die("--text is empty: there is nothing to predict from");
        if (!*value && t->at != AT(prompt))
            rt_die("--%s needs %s", t->name, t->arg);
        *(const char **)field = value;
        break;
    case OPTION_FLAG:
        *(bool *)field = true;
        break;
    case OPTION_ON_OFF:
        *(bool *)field = strcmp(choice(t, value), "on") == 0;
        break;
    case OPTION_CHOICE:
        *(const char **)field = choice(t, value);
        break;
    case OPTION_SEED:
        *(uint64_t *)field = seed_of(value);
        break;
    case OPTION_REAL:
        *(double *)field = option_number(t, value, "", t->low, t->high);
        break;
    case OPTION_EVERY:
        every(o, t, value);
        break;
    case OPTION_COUNT:
        if (t->at == AT(threads) || t->at == AT(groups))
            *(int *)field = (int)option_number(t, value, "", t->low, t->high);
        else
            *(int64_t *)field = (int64_t)option_number(t, value, "", t->low, t->high);
        o->epochs_given |= t->at == AT(epochs);
        o->threads_given |= t->at == AT(threads);
    }
}

static void complete(const Options *o, const RtProgram *p)
{
    if ((o->command == TEST || o->command == PREDICT || o->command == GENERATE) && !o->weights)
        rt_die("%s needs --weights FILE, written by `%s --save FILE`",
               program_commands[o->command].name,
               p->trained ? p->trained : program_invocation_short_name);
    if (o->command == PREDICT && !o->input && !o->text)
        rt_die("predict needs --input FILE%s; %s",
               program_lacks(p, NEED_TEXTS) ? "" : " or --text TEXT",
               rt_format(sample_kind(p)->input, arrays_of(p)));
    if (o->input && o->text)
        rt_die("--input and --text are both given: predict takes one of them");
    if (o->command == GRADS && !o->output)
        rt_die("grads needs --output FILE.safetensors");
    if ((o->only || o->except) && !o->weights)
        rt_die("--%s needs --weights FILE%s", o->only ? "only" : "except",
               p->recipe.weights.file ? ": the recipe's start has patterns of its own" : "");
    if (o->resume && !o->checkpoint)
        rt_die("--resume needs --checkpoint DIR, where the run was saved");
    if ((o->every_steps || o->every_seconds > 0) && !o->checkpoint)
        rt_die("--checkpoint-every needs --checkpoint DIR");
    if (o->machine && !o->simulate)
        rt_die("--machine needs --simulate THREADS");
    if (o->steps && o->seconds > 0)
        rt_die("--steps and --seconds are both given: bench measures either %lld steps or until "
               "the median is known",
               (long long)o->steps);
    if (o->simulate && (o->steps || o->seconds > 0))
        rt_die("--simulate takes medians of its own number of steps: leave out %s",
               o->steps ? "--steps" : "--seconds");
    if (o->simulate && (o->threads_given || o->pin || o->trace || o->scale > 0))
        rt_die("--simulate times units on one thread, and its value is the number of threads: "
               "leave out %s",
               o->threads_given ? "--threads"
               : o->pin         ? "--pin"
               : o->trace       ? "--trace"
                                : "--scale");
    if (o->log_steps && !o->log)
        rt_die("--log-steps needs --log FILE");
}

void options_parse(Options *o, const RtProgram *p, int argc, char **argv)
{
    *o = (Options){.command = p->trained ? PREDICT : TRAIN,
                   .epochs = p->recipe.epochs,
                   .seed = (uint64_t)p->recipe.seed,
                   .groups = 1,
                   .timeout = 300,
                   .wire = "f32",
                   .reduce = "tree",
                   .loss_scale_steps = -1,
                   .shuffle = true,
                   .length = 500,
                   .temperature = 1,
                   .samples = 24};
    const char *machine = getenv(VARIABLE(TENON_MACHINE));
    cores_read(&o->cores, machine ? machine : "");
    o->threads = cores_threads(&o->cores, 1);
    int i = 1;
    const bool named = argc > 1 && argv[1][0] != '-';
    if (named)
        o->command = command_of(p, argv[i++]);
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
            rt_die("'%s' is not an option: `%s --help` lists them", word,
                   program_invocation_short_name);
        const char *equals = strchr(word, '=');
        const size_t length = equals ? (size_t)(equals - word - 2) : strlen(word + 2);
        const ProgramOption *t = find_option(p, word + 2, length, o->command);
        if (!t->arg && equals)
            rt_die("--%s takes no value", t->name);
        if (t->arg && !equals && i + 1 == argc)
            rt_die("--%s needs %s", t->name, t->arg);
        set_option(o, t, !t->arg ? "" : equals ? equals + 1 : argv[++i]);
    }
    complete(o, p);
    o->seconds = o->seconds > 0 ? o->seconds : 20;
    if (o->timeout_start == 0)
        o->timeout_start = 3 * o->timeout;
}
