/* command.c -- turns argv into a Command, by the table in option.c. */
#include "base/environment.h"
#include "tool/machine.h"
#include "tool/option.h"
#include "tool/paths.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const Span nowhere;

typedef struct Reader {
    Arena *arena;
    Diag *diag;
    char **argv;
    int argc, at;
    Command *command;
    Text flags;
    KeyValue *set; /* grows; front.set is const */
} Reader;

/* ---- options that exclude each other */

/* Reports the first option that programs for a GPU do not have yet. */
static bool supported_cuda(const Command *c, Diag *d)
{
    const struct {
        bool given;
        const char *option;
    } not_yet[] = {{c->options.blas, "--kernels=blas"},
                   {c->tune, "--tune"},
                   {c->options.fast, "--fast"},
                   {c->comm && strcmp(c->comm, "mpi") == 0, "--comm mpi"},
                   {c->options.memory_limit > 0, "--memory-limit"},
                   {c->options.bucket > 0 && !c->options.overlap, "--bucket without --comm nccl"},
                   {c->memory, "--memory"},
                   {c->ranks > 0, "--ranks"},
                   {c->threads > 0, "--threads"}};
    enum { COMM = 3 };
    for (size_t i = 0; i < sizeof not_yet / sizeof *not_yet; i++)
        if (not_yet[i].given) {
            diag_error(d, nowhere,
                       "%s is for programs on the processor; programs for a GPU do not have it yet",
                       not_yet[i].option);
            diag_help(d,
                      i == COMM
                          ? "use --comm nccl: one process for each GPU, started by mpirun or srun"
                          : "leave it out, or leave out --target cuda");
            return false;
        }
    return true;
}

/* --to c and --to cuda imply --target. */
static bool supported_to(const Command *c, Diag *d)
{
    const char *const other = c->options.cuda ? "c" : "cuda", *const target =
                                                                  c->options.cuda ? "cuda" : "cpu";
    if (strcmp(c->to, other) != 0)
        return true;
    diag_error(d, nowhere, "--to %s writes a program for %s, and --target %s is for %s", other,
               c->options.cuda ? "the processor" : "a GPU", target,
               c->options.cuda ? "a GPU" : "the processor");
    diag_help(d, "leave one of them out");
    return false;
}

/* Whether `word` is a CUDA version as tenon-plan reads it: "13.0". */
static bool is_driver(const char *word)
{
    int major = 0, minor = 0, end = 0;
    return sscanf(word, "%d.%d%n", &major, &minor, &end) == 2 && !word[end] && major >= 12 &&
           major <= 99 && minor >= 0 && minor <= 9;
}

static bool supported(const Command *c, Diag *d)
{
    if (c->options.cuda && !supported_cuda(c, d))
        return false;
    if (c->options.arch && !c->options.cuda) {
        diag_error(d, nowhere,
                   "--arch is for programs on a GPU, and this program is for the processor");
        diag_help(d, "add --target cuda, or use --cpu");
        return false;
    }
    if (c->driver && !c->options.cuda) {
        diag_error(d, nowhere,
                   "--driver is for programs on a GPU, and this program is for the processor");
        diag_help(d, "add --target cuda --kernels=cudnn");
        return false;
    }
    if (c->driver && !is_driver(c->driver)) {
        diag_error(d, nowhere,
                   "--driver takes the CUDA version of a driver, from 12.0 on, such as 13.0, not "
                   "'%s'",
                   c->driver);
        return false;
    }
    if (c->options.libraries && !c->options.cuda) {
        diag_error(d, nowhere,
                   "--kernels=cudnn uses NVIDIA's libraries on a GPU, and this program is for the "
                   "processor");
        diag_help(d, "add --target cuda, or use --kernels=blas");
        return false;
    }
    if (c->options.persistent && !c->options.cuda) {
        diag_error(d, nowhere,
                   "--kernels=persistent runs many steps in one launch on a GPU, and this program "
                   "is for the processor");
        diag_help(d, "add --target cuda");
        return false;
    }
    if (c->options.libraries && c->options.plain) {
        diag_error(d, nowhere,
                   "--plain and --kernels=cudnn exclude each other: --plain uses no library");
        diag_help(d, "leave one of them out");
        return false;
    }
    if (c->options.blas && c->options.plain) {
        diag_error(d, nowhere,
                   "--plain and --kernels=blas exclude each other: --plain uses no library");
        diag_help(d, "leave one of them out");
        return false;
    }
    if (c->options.keep_all && c->options.memory_limit) {
        diag_error(d, nowhere,
                   "--keep-all and --memory-limit exclude each other: with a limit some values may "
                   "be computed again");
        diag_help(d, "leave one of them out");
        return false;
    }
    const char *dtype = c->front.dtype;
    if (c->comm && strcmp(c->comm, "nccl") == 0 && !c->options.cuda) {
        diag_error(d, nowhere,
                   "--comm nccl is for programs on GPUs, and this program is for the processor");
        diag_help(d, "add --target cuda, or use --comm mpi");
        return false;
    }
    if (c->tune && (c->options.blas || c->options.plain)) {
        diag_error(d, nowhere, "--tune has nothing to choose with %s",
                   c->options.plain ? "--plain" : "--kernels=blas");
        diag_help(d, "leave one of them out");
        return false;
    }
    if (dtype && strcmp(dtype, "bf16") == 0 && !c->options.cuda) {
        diag_error(d, nowhere, "--dtype bf16 needs Tenon's kernels, and this program uses %s",
                   c->options.plain ? "reference kernels (--plain)" : "a BLAS library");
        diag_help(d, "leave out %s, or use --dtype f32 or f64",
                  c->options.plain ? "--plain" : "--kernels=blas");
        return false;
    }
    if (c->tune && c->options.half && !c->options.cuda) {
        diag_error(d, nowhere, "--tune has nothing to choose with --dtype bf16");
        diag_help(d, "leave one of them out");
        return false;
    }
    if (dtype && strcmp(dtype, "f32") != 0 && strcmp(dtype, "f64") != 0) {
        diag_error(d, nowhere, "--dtype %s needs NVIDIA's libraries, and this program %s", dtype,
                   c->options.cuda ? "uses Tenon's own kernels" : "is for the processor");
        diag_help(d, "add %s--kernels=cudnn, or use --dtype f32 or f64",
                  c->options.cuda ? "" : "--target cuda ");
        return false;
    }
    if (c->as_written && strcmp(c->to, "dot") != 0) {
        diag_error(d, nowhere, "--as-written is for pictures of the graph, not for --to %s", c->to);
        diag_help(d, "add --to dot");
        return false;
    }
    return c->kind != COMMAND_EMIT || supported_to(c, d);
}

/* ---- values */

static bool take_count(Reader *r, const OptionRow *o, const char *value)
{
    char *end;
    errno = 0;
    const long long v = strtoll(value, &end, 10);
    if (end == value || *end || errno || v < 1 || v > option_most(o)) {
        diag_error(r->diag, nowhere, "%s needs a whole number from 1 to %lld, not '%s'", o->name,
                   (long long)option_most(o), value);
        return false;
    }
    *(int64_t *)((char *)r->command + o->field) = v;
    return true;
}

/* The words of "f32|f64" as a list. */
static int split_choices(Arena *a, const char *text, const char ***word)
{
    int n = 0;
    for (const char *s = text;; s++) {
        const size_t len = strcspn(s, "|");
        ARENA_PUSH(a, *word, n, (const char *)arena_strndup(a, s, len));
        s += len;
        if (!*s)
            return n;
    }
}

static bool take_word(Reader *r, const OptionRow *o, const char *value)
{
    const char **word = NULL;
    const int n = split_choices(r->arena, o->value, &word);
    for (int i = 0; i < n; i++) {
        if (strcmp(word[i], value) != 0)
            continue;
        if (o->field) /* --color has no field: see command_color */
            *(const char **)((char *)r->command + o->field) = word[i];
        return true;
    }
    diag_error(r->diag, nowhere, "%s takes %s, not '%s'", o->name, o->value, value);
    diag_suggest(r->diag, value, word, n);
    return false;
}

static bool take_size(Reader *r, const OptionRow *o, const char *value)
{
    const int64_t bytes = text_size(value);
    if (bytes <= 0) {
        diag_error(r->diag, nowhere, "%s needs a size, not '%s'", o->name, value);
        diag_help(r->diag, "for example %s 500M or %s 2G (powers of 1000)", o->name, o->name);
        return false;
    }
    *(int64_t *)((char *)r->command + o->field) = bytes;
    return true;
}

static bool take_setting(Reader *r, const char *value)
{
    const char *eq = strchr(value, '=');
    if (!eq || eq == value || !eq[1]) {
        diag_error(r->diag, nowhere, "--set needs KEY=VALUE, not '%s'", value);
        diag_help(r->diag, "for example --set optimizer.lr=0.1");
        return false;
    }
    FrontOptions *f = &r->command->front;
    const KeyValue s = {arena_strndup(r->arena, value, (size_t)(eq - value)), eq + 1};
    ARENA_PUSH(r->arena, r->set, f->nset, s);
    f->set = r->set;
    return true;
}

static bool take_option(Reader *r, const OptionRow *o, const char *value)
{
    char *field = (char *)r->command + o->field;
    switch (o->kind) {
    case OPTION_TRUE:
        *(bool *)field = true;
        return true;
    case OPTION_FALSE:
        *(bool *)field = false;
        return true;
    case OPTION_TEXT:
        *(const char **)field = value;
        return true;
    case OPTION_WORD:
        return take_word(r, o, value);
    case OPTION_COUNT:
        return take_count(r, o, value);
    case OPTION_SIZE:
        return take_size(r, o, value);
    case OPTION_SETTING:
        return take_setting(r, value);
    case OPTION_HELP:
        r->command->topic = r->command->kind;
        r->command->kind = COMMAND_HELP;
        return true;
    }
    return false;
}

/* ---- words of the command line */

/* Suggests the nearest word; if none is near, prints `look`. */
static void suggest(Diag *d, const char *word, const char *const *known, int n, const char *look)
{
    if (text_nearest(word, known, n))
        diag_suggest(d, word, known, n);
    else
        diag_help(d, "%s", look);
}

static const OptionRow *find_option(CommandKind kind, const char *name, size_t len)
{
    for (const OptionRow *o = option_table; o->name; o++)
        if (o->commands & 1u << kind && strlen(o->name) == len && strncmp(o->name, name, len) == 0)
            return o;
    return NULL;
}

/* "tenon emit", "tenon build, tenon run": the commands that have the option; NULL: none. */
static const char *commands_with(Reader *r, const char *name)
{
    Text t = text_new(r->arena);
    for (const OptionRow *o = option_table; o->name; o++)
        for (int i = 0; strcmp(o->name, name) == 0 && i < 32; i++)
            if (o->commands & 1u << i)
                text_printf(&t, "%stenon %s", t.len ? ", " : "", command_row((CommandKind)i)->name);
    return t.len ? t.s : NULL;
}

static bool unknown_option(Reader *r, const char *word)
{
    const CommandRow *c = command_row(r->command->kind);
    const char *const name = arena_strndup(r->arena, word, strcspn(word, "=")),
                      *elsewhere = commands_with(r, name);
    const char **known = NULL;
    int n = 0;
    for (const OptionRow *o = option_table; o->name; o++)
        if (o->commands & 1u << c->kind)
            ARENA_PUSH(r->arena, known, n, o->name);
    diag_error(r->diag, nowhere, "tenon %s has no option '%s'", c->name, name);
    if (c->kind == COMMAND_NEW && strcmp(name, "--target") == 0)
        diag_help(r->diag, "the column of a table that the network learns: --learn COLUMN");
    else if (elsewhere)
        diag_help(r->diag, "it is an option of %s", elsewhere);
    else
        suggest(r->diag, name, known, n,
                arena_printf(r->arena, "tenon %s --help lists them", c->name));
    if (c->kind == COMMAND_RUN)
        diag_help(r->diag, "options of the program follow --: tenon run FILE -- %s", name);
    return false;
}

/* Stores `--plain` or `--batch 64`, so that the program's command `info` can print it. */
static void remember_flag(Reader *r, const OptionRow *o, const char *value)
{
    if (o->shapes)
        text_printf(&r->flags, "%s%s%s%s", r->flags.len ? " " : "", o->name, value ? " " : "",
                    value ? value : "");
}

static bool read_option(Reader *r)
{
    const char *word = r->argv[r->at++], *eq = word[1] == '-' ? strchr(word, '=') : NULL;
    const OptionRow *o =
        find_option(r->command->kind, word, eq ? (size_t)(eq - word) : strlen(word));
    const char *value = eq ? eq + 1 : NULL;
    if (!o)
        return unknown_option(r, word);
    if (!o->value && value) {
        diag_error(r->diag, nowhere, "%s takes no value, but '%s' was given", o->name, value);
        return false;
    }
    if (o->value && !value) {
        if (r->at == r->argc) {
            diag_error(r->diag, nowhere, "%s needs a value: %s %s", o->name, o->name, o->value);
            return false;
        }
        value = r->argv[r->at++];
    }
    if (!take_option(r, o, value))
        return false;
    remember_flag(r, o, value);
    return true;
}

static bool read_word(Reader *r)
{
    Command *c = r->command;
    const char *word = r->argv[r->at++];
    if (c->kind == COMMAND_CACHE || c->kind == COMMAND_LSP) {
        diag_error(r->diag, nowhere, "tenon %s takes options only, not '%s'",
                   command_row(c->kind)->name, word);
        diag_help(r->diag, "%s", command_row(c->kind)->usage);
        return false;
    }
    if (c->kind == COMMAND_FMT || c->kind == COMMAND_WATCH) {
        ARENA_PUSH(r->arena, c->files, c->nfiles, word);
        return true;
    }
    if (c->file) {
        diag_error(r->diag, nowhere, "tenon %s takes one %s; '%s' is a second one after '%s'",
                   command_row(c->kind)->name,
                   c->kind == COMMAND_OPS || c->kind == COMMAND_NEW ? "name"
                   : c->kind == COMMAND_COMPLETION                  ? "shell"
                                                                    : "file",
                   word, c->file);
        if (c->kind == COMMAND_RUN)
            diag_help(r->diag, "write the options of the program after --");
        return false;
    }
    c->file = word;
    return true;
}

static bool read_command(Reader *r)
{
    const char *word = r->at < r->argc ? r->argv[r->at++] : "--help";
    const char **known = NULL;
    int n = 0;
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0)
        r->command->kind = r->command->topic = COMMAND_HELP;
    else if (strcmp(word, "--version") == 0)
        r->command->kind = COMMAND_VERSION;
    else {
        const CommandRow *c = command_table;
        for (; c->name && strcmp(c->name, word) != 0; c++)
            ARENA_PUSH(r->arena, known, n, c->name);
        if (!c->name) {
            diag_error(r->diag, nowhere, "tenon has no command '%s'", word);
            suggest(r->diag, word, known, n, "tenon --help lists the commands");
            return false;
        }
        r->command->kind = c->kind;
    }
    return true;
}

/* Whether, on a GPU, only NVIDIA's libraries have products of this type. */
static bool of_libraries(const char *dtype)
{
    return dtype &&
           (strcmp(dtype, "tf32") == 0 || strcmp(dtype, "bf16") == 0 || strcmp(dtype, "f16") == 0);
}

/* Whether Tenon's kernels for processors compute products of bf16.  Reference kernels and BLAS
 * libraries do not. */
static bool has_bf16(const Command *c)
{
    return !c->options.cuda && !c->options.plain && !c->options.blas;
}

/* Sets the type of products from --dtype, and the type of the program to f32.  Values of tf32 are
 * stored as f32; with bf16 and f16, pass narrow chooses the values that are stored in two bytes. */
static void take_dtype(Command *c)
{
    const char *t = c->front.dtype ? c->front.dtype : "f32";
    if (c->kind == COMMAND_CHECK && of_libraries(t)) /* `check` does not depend on the type */
        c->front.dtype = "f32";
    c->options.tf32 = c->options.libraries && strcmp(t, "tf32") == 0;
    if (strcmp(t, "bf16") == 0 && (c->options.libraries || has_bf16(c)))
        c->options.half = HALF_BF16;
    if (strcmp(t, "f16") == 0 && c->options.libraries)
        c->options.half = HALF_F16;
    if (c->options.tf32 || c->options.half)
        c->front.dtype = "f32";
}

/* Chooses the libraries: --kernels, or what the type needs on a GPU. */
static void take_libraries(Command *c)
{
    c->options.libraries = c->kernels ? strcmp(c->kernels, "cudnn") == 0
                                      : c->options.cuda && of_libraries(c->front.dtype);
}

bool command_take_recipe(Command *c, const char **dtype, Diag *d)
{
    if (!of_libraries(*dtype)) /* a type that needs no pass */
        return true;
    c->front.dtype = *dtype;
    take_libraries(c);
    take_dtype(c);
    *dtype = c->front.dtype;
    return supported(c, d);
}

static bool complete_command(Reader *r)
{
    Command *c = r->command;
    const CommandRow *row = command_row(c->kind);
    c->options.cuda = strcmp(c->target ? c->target : c->to ? c->to : "cpu", "cuda") == 0;
    if (!c->to)
        c->to = c->options.cuda ? "cuda" : "c";
    if (c->options.cuda && !c->options.arch)
        c->options.arch = "sm_90";
    if (c->options.cuda && !c->comm && c->to && strcmp(c->to, "slurm") == 0) {
        c->comm = "nccl"; /* a job for Slurm has several processes */
        c->options.overlap = true;
    }
    c->options.blas = c->kernels && strcmp(c->kernels, "blas") == 0;
    take_libraries(c);
    c->options.persistent = c->kernels && strcmp(c->kernels, "persistent") == 0;
    if (c->threads)
        c->options.threads = (int)c->threads;
    if (c->kind < COMMAND_CHECK)
        return true;
    take_dtype(c);
    if (!c->file)
        diag_error(r->diag, nowhere, "tenon %s needs a model file", row->name);
    else if (c->kind == COMMAND_BUILD && !c->output && !c->key)
        diag_error(r->diag, nowhere, "tenon build needs the path of the program: -o PROG");
    else
        return supported(c, r->diag);
    diag_help(r->diag, "%s", row->usage);
    return false;
}

DiagColor command_color(int argc, char **argv)
{
    DiagColor color = DIAG_AUTO;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const char *v = strncmp(argv[i], "--color", 7) != 0 ? ""
                        : argv[i][7] == '='                 ? argv[i] + 8
                        : i + 1 < argc                      ? argv[i + 1]
                                                            : "";
        color = !strcmp(v, "always")  ? DIAG_ALWAYS
                : !strcmp(v, "never") ? DIAG_NEVER
                : !strcmp(v, "auto")  ? DIAG_AUTO
                                      : color;
    }
    return color;
}

bool command_parse(Arena *a, int argc, char **argv, Command *c, Diag *d)
{
    Reader r = {.arena = a,
                .diag = d,
                .argv = argv,
                .argc = argc,
                .at = 1,
                .command = c,
                .flags = text_new(a)};
    *c = (Command){.color = command_color(argc, argv)};
    c->options.cpu = environment(ENV_TENON_CPU) ? environment(ENV_TENON_CPU) : "native";
    c->options.threads = machine_threads();
    c->front.shipped = paths_models(a);
#ifndef NDEBUG
    c->options.verify = true;
#endif
    if (!read_command(&r))
        return false;
    if (c->kind == COMMAND_SWEEP ||
        c->kind == COMMAND_RESULTS) { /* tenon-bench reads its own options */
        c->argument = argv + r.at;
        c->narguments = argc - r.at;
        return true;
    }
    while (r.at < argc && c->kind > COMMAND_VERSION) {
        const char *word = argv[r.at];
        if (strcmp(word, "--") == 0) {
            if (c->kind != COMMAND_RUN)
                return unknown_option(&r, word);
            c->argument = argv + r.at + 1;
            c->narguments = argc - r.at - 1;
            break;
        }
        if (!(word[0] == '-' && word[1] ? read_option(&r) : read_word(&r)))
            return false;
    }
    c->flags = r.flags.s;
    c->options.overlap = c->comm && strcmp(c->comm, "none") != 0;
    return complete_command(&r);
}
