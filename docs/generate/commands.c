/* commands.c -- commands.md, tenon's chapters of environment.md and limits.md, and the manual pages, from the tables of the command line. */
#include "base/environment.h"
#include "base/limits.h"
#include "base/text.h"
#include "front/train.h"
#include "made.h"
#include "passes/pass.h"
#include "reference.h"
#include "sweep/words.h"
#include "tool/option.h"
#include <string.h>

#define ROW(p, ...) page_row(p, (const char *const[]){__VA_ARGS__})
#define TABLE(p, ...) page_table(p, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), (const char *const[]){__VA_ARGS__})

static const char sizes[] = "SIZE is a number with k, M or G: powers of 1000. An option is written `--name value` or `--name=value`.";
static const char exits[] = "0: done. 1: an error; the messages on stderr name file, line and column.";

/* ---- options */

static const char *with_default(const char *help, const char *fallback)
{
    return fallback ? made("%s Default: %s.", made_sentence(help), made_coded(fallback)) : made_sentence(help);
}

/* "show, build, run" */
static const char *commands_of(unsigned commands)
{
    const char *text = "";
    for (const CommandRow *c = command_table; c->name; c++)
        if (commands & 1u << c->kind)
            text = made("%s%s`%s`", text, *text ? ", " : "", c->name);
    return text;
}

static const char *passes(void)
{
    const char *text = "";
    for (const Pass *p = pass_table; p->name; p++)
        if (!p->cleans)
            text = made("%s%s`%s`", text, *text ? ", " : "", p->name);
    return text;
}

static const char *option_text(const OptionRow *o, bool names)
{
    const char *text = with_default(o->help, o->fallback);
    if (o->kind == OPTION_COUNT)
        text = made("%s A whole number from 1 to %lld.", text, (long long)option_most(o));
    if (strcmp(o->name, "--dump") == 0)
        text = made("%s The passes: %s.", text, passes());
    return names ? made("%s Commands: %s.", text, commands_of(o->commands)) : text;
}

static bool has_options(CommandKind command)
{
    unsigned all = 0;
    for (const OptionRow *o = option_table; o->name; o++)
        all |= o->commands;
    return all & 1u << command;
}

static void sweep_options(Page *p)
{
    char name[64];
    for (const Setting *s = setting_table; s->name; s++)
        page_define(p, setting_option_name(name, s), s->value, made_sentence(s->help));
    for (const SweepOption *o = sweep_option_table; o->name; o++)
        page_define(p, made("--%s", o->name), o->value, with_default(o->help, o->fallback));
}

static void results_options(Page *p)
{
    for (const ResultsCommand *c = results_command_table; c->name; c++)
        page_define(p, c->name, *c->words ? c->words : NULL, made_sentence(c->help));
    for (const ResultsOption *o = results_option_table; o->name; o++)
        page_define(p, o->name, o->value, with_default(o->help, o->fallback));
}

/* Writes the options of one command, with full descriptions. */
static void define_options(Page *p, CommandKind command)
{
    if (command == COMMAND_SWEEP)
        sweep_options(p);
    else if (command == COMMAND_RESULTS)
        results_options(p);
    else
        for (const OptionRow *o = option_table; o->name; o++)
            if (o->commands & 1u << command)
                page_define(p, o->name, o->value, option_text(o, false));
}

static const char *names_of_options(CommandKind command)
{
    const char *text = "";
    for (const OptionRow *o = option_table; o->name; o++)
        if (o->commands & 1u << command)
            text = made("%s%s`%s`", text, *text ? ", " : "", o->name);
    return text;
}

/* ---- commands.md */

static void command(Page *p, const CommandRow *c)
{
    page_section(p, c->name);
    page_code(p, "text", c->usage);
    page_paragraph(p, "%s %s", made_sentence(c->brief), made_coded(c->about));
    page_code(p, "sh", c->example);
    if (has_options(c->kind))
        page_paragraph(p, "Options: %s.", names_of_options(c->kind));
    else
        define_options(p, c->kind);
}

void reference_commands(Page *p)
{
    page_paragraph(p, "`tenon --help` prints the list of commands, `tenon COMMAND --help` the options of one, `tenon --version` the version. %s "
                      "[Exit codes](exit-codes.md) are 0 and 1; `tenon run` has those of the program. The [programs](program.md) that `tenon build` makes have "
                      "commands and options of their own.", sizes);
    TABLE(p, "Command", "What it does");
    for (const CommandRow *c = command_table; c->name; c++)
        ROW(p, made("[%s](#%s)", c->name, c->name), c->brief);
    page_table_end(p);
    for (const CommandRow *c = command_table; c->name; c++)
        command(p, c);
    page_section(p, "Options");
    page_paragraph(p, "The options of all commands but `sweep` and `results`, each with its default and the commands that take it.");
    for (const OptionRow *o = option_table; o->name; o++)
        page_define(p, o->name, o->value, option_text(o, true));
}

/* ---- environment.md, limits.md */

void reference_tenon_environment(Page *p)
{
    for (const Environment *e = environment_table; e->name; e++)
        page_define(p, e->name, NULL, with_default(e->about, e->fallback));
}

void reference_tenon_limits(Page *p)
{
    Arena *a = made_arena();
    page_paragraph(p, "The compiler reports an error with its place where a model file exceeds one of these bounds. So no file can hang or crash it.");
    TABLE(p, "Quantity", "At most");
    for (const Limit *l = limit_table; l->what; l++)
        ROW(p, l->what, text_commas(a, l->most));
    page_table_end(p);
    page_paragraph(p, "These keys of a train block are whole numbers. [Recipe](recipe.md) has the ranges of all arguments.");
    TABLE(p, "Key", "From", "To");
    for (const TrainKey *k = train_key_table; k->name; k++)
        if (k->field.want == WANT_INT && k->field.name)
            ROW(p, made("`%s`", k->name), text_commas(a, (int64_t)k->field.low), text_commas(a, (int64_t)k->field.high));
    page_table_end(p);
}

/* ---- manual pages */

static FILE *begin(Page *p, const char *dir, const char *name, const char *brief)
{
    FILE *out = reference_open(dir, made("%s.1", name));
    if (out)
        page_begin(p, out, PAGE_MAN, name, name, brief);
    return out;
}

static void environment_of(Page *p)
{
    page_section(p, "Environment");
    for (const Environment *e = environment_table; e->name; e++)
        if (e->user)
            page_define(p, e->name, NULL, with_default(e->about, e->fallback));
}

static bool end(Page *p, const char *see)
{
    page_section(p, "See also");
    page_paragraph(p, "%s", see);
    page_end(p);
    return fclose(p->out) == 0;
}

static bool manual_of(const char *dir, const CommandRow *c)
{
    Page p;
    if (!begin(&p, dir, made("tenon-%s", c->name), c->brief))
        return false;
    page_section(&p, "Synopsis");
    page_code(&p, "text", c->usage);
    page_section(&p, "Description");
    page_paragraph(&p, "%s", made_coded(c->about));
    if (c->kind == COMMAND_RESULTS)
        page_section(&p, "Commands and options");
    else
        page_section(&p, "Options");
    page_paragraph(&p, "%s", sizes);
    define_options(&p, c->kind);
    if (has_options(c->kind))
        environment_of(&p);
    page_section(&p, "Exit status");
    page_paragraph(&p, "%s", c->kind == COMMAND_RUN     ? "That of the program; 1 when it could not be built."
                             : c->kind == COMMAND_SWEEP ? "0: done. 1: an error, or failed runs. 75: stopped on request."
                             : c->kind == COMMAND_LSP   ? "0: the client ended the server as the protocol says. 1: otherwise."
                                                        : exits);
    page_section(&p, "Examples");
    page_code(&p, "sh", c->example);
    return end(&p, c->kind == COMMAND_BUILD || c->kind == COMMAND_RUN ? "`tenon`(1), `tenon-program`(1)" : "`tenon`(1)");
}

static bool manual_of_all(const char *dir)
{
    const char *see = "";
    Page p;
    if (!begin(&p, dir, "tenon", "compiler from neural-network models to programs that train them"))
        return false;
    page_section(&p, "Synopsis");
    page_code(&p, "text", "tenon COMMAND ...\ntenon --help\ntenon COMMAND --help\ntenon --version");
    page_section(&p, "Description");
    page_paragraph(&p, "Tenon reads a model file, which describes a network and its training. It proves the shapes, derives the gradients, plans the "
                       "memory, writes C or CUDA, and compiles that to one program. The program trains, tests, predicts and measures.");
    page_section(&p, "Commands");
    for (const CommandRow *c = command_table; c->name; c++) {
        page_define(&p, c->name, NULL, made_sentence(c->brief));
        see = made("%s%s`tenon-%s`(1)", see, *see ? ", " : "", c->name);
    }
    environment_of(&p);
    page_section(&p, "Exit status");
    page_paragraph(&p, "%s", exits);
    page_section(&p, "Examples");
    page_code(&p, "sh", "tenon build models/lenet.tn -o lenet\n./lenet --epochs 2");
    return end(&p, made("%s, `tenon-program`(1)", see));
}

bool reference_manuals(const char *dir)
{
    bool good = manual_of_all(dir);
    for (const CommandRow *c = command_table; c->name && good; c++)
        good = manual_of(dir, c);
    return good;
}
