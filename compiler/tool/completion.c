/* completion.c -- writes a completion script from the tables of commands, options and words.
 *
 * A script has its words inside, so completing starts no program.  The rows of `tenon sweep` and
 * `tenon results` come from tenon-bench; without it, these two commands have no options.
 */
#include "tool/completion.h"
#include "front/train.h"
#include "tool/manual.h"
#include "tool/option.h"
#include "tool/paths.h"
#include "tool/process.h"
#include "tool/sample.h"
#include "tool/tool.h"
#include <stdio.h>
#include <string.h>

static const Span nowhere;

typedef enum {
    TAKES_NONE,  /* an option without a value */
    TAKES_ANY,   /* nothing is known of the value */
    TAKES_WORDS, /* one of `words` */
    TAKES_KEYS,  /* one of `words`, which end with '=' */
    TAKES_FILE,
    TAKES_DIRECTORY,
    TAKES_MODEL,
    TAKES_DATA /* one of `words`, or a file */
} Completion;

typedef struct Row {
    const char *name; /* "--batch"; "": words of the command that are no options */
    Completion value;
    const char *what;  /* "N" */
    const char *words; /* with blanks between them */
    const char *help;
} Row;

typedef struct Part { /* a command with its rows */
    const char *name, *help;
    Row *row;
    int n;
} Part;

typedef struct Parts {
    Arena *arena;
    Part *v;
    int n;
} Parts;

/* ---- what the tables say */

/* The first sentence: a line of a menu is short. */
static const char *first_sentence(Arena *a, const char *text)
{
    const char *end = strstr(text, ". ");
    return end ? arena_strndup(a, text, (size_t)(end - text)) : text;
}

static const char *joined(Arena *a, const char *const *word, int n)
{
    Text t = text_new(a);
    for (int i = 0; i < n; i++)
        text_printf(&t, "%s%s", i ? " " : "", word[i]);
    return t.s;
}

static const char *passes(Arena *a)
{
    int n;
    const char **name = tool_dump_names(a, &n);
    return joined(a, name, n);
}

/* "batch= optimizer= optimizer.lr= ...": keys of the recipe, and arguments of their forms. */
static const char *settings(Arena *a)
{
    Text t = text_new(a);
    for (const TrainKey *k = train_key_table; k->name; k++) {
        const char **seen = NULL;
        int n = 0;
        text_printf(&t, "%s%s=", t.len ? " " : "", k->name);
        for (const Form *f = k->forms; f && f->name; f++)
            for (const Field *g = f->field; g < f->field + FORM_FIELDS && g->name; g++) {
                int i = 0;
                while (i < n && strcmp(seen[i], g->name) != 0)
                    i++;
                if (i < n)
                    continue;
                ARENA_PUSH(a, seen, n, g->name);
                text_printf(&t, " %s.%s=", k->name, g->name);
            }
    }
    return t.s;
}

static const char *words_of_ops(Arena *a)
{
    int n;
    const char **name = manual_names(a, &n);
    return joined(a, name, n);
}

static const char *data_sets(Arena *a)
{
    const char **word = NULL;
    int n = 0;
    sample_names(a, &word, &n);
    return joined(a, word, n);
}

/* A row for an option whose value is described as `what`: "f32|f64", "FILE", NULL. */
static Row row_of(Arena *a, const char *name, const char *what, const char *help)
{
    static const struct {
        const char *what;
        Completion kind;
    } table[] = {{"PATH", TAKES_FILE},     {"FILE", TAKES_FILE},      {"FILE.svg", TAKES_FILE},
                 {"DIR", TAKES_DIRECTORY}, {"KEY=VALUE", TAKES_KEYS}, {"KEY=LIST", TAKES_KEYS},
                 {"PROGRAM", TAKES_FILE},  {"DATA", TAKES_DATA},      {"PASS", TAKES_WORDS}};
    Row r = {name, what ? TAKES_ANY : TAKES_NONE, what, "", first_sentence(a, help)};
    for (size_t i = 0; what && i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].what, what) == 0)
            r.value = table[i].kind;
    if (r.value == TAKES_KEYS)
        r.words = settings(a);
    else if (r.value == TAKES_DATA)
        r.words = data_sets(a);
    else if (r.value == TAKES_WORDS)
        r.words = passes(a);
    else if (r.value == TAKES_ANY && *what >= 'a' && *what <= 'z' && strchr(what, '|')) {
        char *words = arena_strdup(a, what);
        for (char *s = words; *s; s++)
            *s = *s == '|' ? ' ' : *s;
        r.value = TAKES_WORDS;
        r.words = words;
    }
    return r;
}

/* Returns the row for what a command takes beside options. */
static Row operand_of(Arena *a, const CommandRow *c)
{
    Row r = {"", TAKES_NONE, "NAME", "", ""};
    if (c->kind == COMMAND_OPS || c->kind == COMMAND_COMPLETION) {
        r.value = TAKES_WORDS;
        r.words = c->kind == COMMAND_OPS ? words_of_ops(a) : "bash zsh fish";
    } else if (c->kind == COMMAND_WATCH) {
        r.value = TAKES_FILE;
        r.what = "LOG";
    } else if (c->kind >= COMMAND_CHECK || c->kind == COMMAND_FMT || c->kind == COMMAND_SWEEP) {
        r.value = TAKES_MODEL;
        r.what = "FILE";
    }
    return r;
}

/* Adds the rows of tenon-bench: lines "sweep TAB --batch TAB LIST TAB help". */
static void add_bench(Parts *p)
{
    Arena *a = p->arena;
    const char *path = paths_program(a, "tenon-bench");
    Argv v = {0};
    if (!path)
        return;
    argv_add(a, &v, path);
    argv_add(a, &v, "tenon");
    argv_add(a, &v, "words");
    argv_end(a, &v);
    Process process = process_of(a, v);
    process_run(&process, NULL);
    for (char *s = process.output.s, *next; process.status == 0 && *s; s = next) {
        char *field[4];
        next = s + strcspn(s, "\n");
        if (*next)
            *next++ = 0;
        for (int i = 0; i < 4; i++) {
            field[i] = s;
            s += strcspn(s, "\t");
            if (*s)
                *s++ = 0;
        }
        for (int i = 0; i < p->n; i++) {
            Part *part = &p->v[i];
            if (strcmp(part->name, field[0]) != 0)
                continue;
            if (*field[1] == '-')
                ARENA_PUSH(a, part->row, part->n,
                           row_of(a, field[1], *field[2] ? field[2] : NULL, field[3]));
            else /* a command of tenon results */
                part->row[0] = (Row){"", TAKES_WORDS, "COMMAND",
                                     arena_printf(a, "%s%s%s", part->row[0].words,
                                                  *part->row[0].words ? " " : "", field[1]),
                                     ""};
        }
    }
}

static Parts read_tables(Arena *a)
{
    Parts p = {.arena = a};
    for (const CommandRow *c = command_table; c->name; c++) {
        Part part = {.name = c->name, .help = c->brief};
        ARENA_PUSH(a, part.row, part.n, operand_of(a, c));
        for (const OptionRow *o = option_table; o->name; o++)
            if (o->commands & 1u << c->kind)
                ARENA_PUSH(a, part.row, part.n, row_of(a, o->name, o->value, o->help));
        ARENA_PUSH(a, p.v, p.n, part);
    }
    add_bench(&p);
    return p;
}

/* ---- bash */

static void bash_value(const Row *r)
{
    switch (r->value) {
    case TAKES_WORDS:
        printf("_tenon_words \"%s\"", r->words);
        break;
    case TAKES_KEYS:
        printf("compopt -o nospace; _tenon_words \"%s\"", r->words);
        break;
    case TAKES_DATA:
        printf("_tenon_files; COMPREPLY+=($(compgen -W \"%s\" -- \"$cur\"))", r->words);
        break;
    case TAKES_FILE:
        printf("_tenon_files");
        break;
    case TAKES_DIRECTORY:
        printf("_tenon_files -d");
        break;
    case TAKES_MODEL:
        printf("_tenon_files -d; _tenon_files -f -X '!*.@(tn|sweep)'");
        break;
    case TAKES_NONE:
    case TAKES_ANY:
        printf(":");
        break;
    }
}

static void print_bash(const Parts *p)
{
    puts("# bash completion for tenon, written by: tenon completion bash\n"
         "_tenon_words() { mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$cur\"); }\n"
         "_tenon_files() { # OPTIONS of compgen\n"
         "    local found\n"
         "    compopt -o filenames 2> /dev/null\n"
         "    mapfile -t found < <(shopt -s extglob; compgen \"${@:--f}\" -- \"$cur\")\n"
         "    COMPREPLY+=(\"${found[@]}\")\n"
         "}\n"
         "_tenon() {\n"
         "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
         "    COMPREPLY=()\n"
         "    # bash splits --option=value at the '='\n"
         "    if [[ $cur == = ]]; then\n"
         "        cur=\n"
         "    elif [[ $prev == = ]] && (( COMP_CWORD > 2 )); then\n"
         "        prev=${COMP_WORDS[COMP_CWORD-2]}\n"
         "    fi\n"
         "    if (( COMP_CWORD == 1 )); then");
    printf("        _tenon_words \"--help --version");
    for (int i = 0; i < p->n; i++)
        printf(" %s", p->v[i].name);
    puts("\"\n        return\n    fi\n    case ${COMP_WORDS[1]} in");
    for (int i = 0; i < p->n; i++) {
        const Part *part = &p->v[i];
        printf("    %s)\n        case $prev in\n", part->name);
        for (const Row *r = part->row + 1; r < part->row + part->n; r++)
            if (r->value != TAKES_NONE) {
                printf("        %s) ", r->name);
                bash_value(r);
                puts("; return ;;");
            }
        printf("        esac\n        case $cur in\n        -*) _tenon_words \"");
        for (const Row *r = part->row + 1; r < part->row + part->n; r++)
            printf("%s%s", r > part->row + 1 ? " " : "", r->name);
        printf("\" ;;\n        *) ");
        bash_value(&part->row[0]);
        puts(" ;;\n        esac ;;");
    }
    puts("    esac\n}\ncomplete -F _tenon tenon");
}

/* ---- zsh */

/* The text inside of '...' in a specification of _arguments. */
static const char *zsh_text(Arena *a, const char *text)
{
    Text t = text_new(a);
    for (const char *s = text; *s; s++) {
        if (*s == '\'')
            text_add(&t, "'\\''");
        else
            text_printf(&t, "%s%c", strchr("[]:\\", *s) ? "\\" : "", *s);
    }
    return t.s;
}

static const char *zsh_action(Arena *a, const Row *r)
{
    switch (r->value) {
    case TAKES_WORDS:
        return arena_printf(a, "(%s)", r->words);
    case TAKES_KEYS:
        return arena_printf(a, "{compadd -S \"\" -- %s}", r->words);
    case TAKES_DATA:
        return "_tenon_data";
    case TAKES_FILE:
        return "_files";
    case TAKES_DIRECTORY:
        return "_files -/";
    case TAKES_MODEL:
        return "_files -g \"*.(tn|sweep)\"";
    case TAKES_NONE:
    case TAKES_ANY:
        break;
    }
    return " ";
}

static void print_zsh(const Parts *p)
{
    Arena *a = p->arena;
    printf("#compdef tenon\n# zsh completion for tenon, written by: tenon completion zsh\n"
           "_tenon_data() { _alternative 'names:data set:(%s)' 'files:file:_files'; }\n",
           data_sets(a));
    puts("_tenon() {\n"
         "    local -a commands\n    commands=(");
    for (int i = 0; i < p->n; i++)
        printf("        '%s:%s'\n", p->v[i].name, zsh_text(a, p->v[i].help));
    puts("    )\n"
         "    if (( CURRENT == 2 )); then\n"
         "        _describe -t commands command commands\n"
         "        compadd -- --help --version\n"
         "        return\n"
         "    fi\n"
         "    shift words\n"
         "    (( CURRENT-- ))\n"
         "    case $words[1] in");
    for (int i = 0; i < p->n; i++) {
        const Part *part = &p->v[i];
        printf("    %s)\n        _arguments", part->name);
        for (const Row *r = part->row + 1; r < part->row + part->n; r++) {
            const bool again = r->value == TAKES_KEYS;
            printf(" \\\n            '%s%s%s[%s]", again ? "*" : "", r->name,
                   r->value != TAKES_NONE && r->name[1] == '-' ? "=" : "", zsh_text(a, r->help));
            if (r->value != TAKES_NONE)
                printf(":%s:%s", zsh_text(a, r->what), zsh_action(a, r));
            printf("'");
        }
        printf(" \\\n            '*:%s:%s'", part->row[0].what, zsh_action(a, &part->row[0]));
        puts(" ;;");
    }
    puts("    esac\n}\n"
         "if [[ $funcstack[1] == _tenon ]]; then _tenon \"$@\"; else compdef _tenon tenon; fi");
}

/* ---- fish */

static const char *fish_text(Arena *a, const char *text)
{
    Text t = text_new(a);
    for (const char *s = text; *s; s++)
        text_printf(&t, "%s%c", *s == '\'' || *s == '\\' ? "\\" : "", *s);
    return t.s;
}

static const char *fish_value(Arena *a, const Row *r)
{
    switch (r->value) {
    case TAKES_WORDS:
    case TAKES_KEYS:
        return arena_printf(a, " -x -a '%s'", r->words);
    case TAKES_DATA:
        return arena_printf(a, " -r -F -a '%s'", r->words);
    case TAKES_FILE:
        return " -r -F";
    case TAKES_DIRECTORY:
        return " -x -a '(__fish_complete_directories)'";
    case TAKES_MODEL:
        return " -k -a '(__fish_complete_suffix .tn)'";
    case TAKES_ANY:
        return " -x";
    case TAKES_NONE:
        break;
    }
    return "";
}

static void print_fish(const Parts *p)
{
    Arena *a = p->arena;
    puts("# fish completion for tenon, written by: tenon completion fish\n"
         "complete -c tenon -f\n"
         "complete -c tenon -n __fish_use_subcommand -l help -d 'print the list of commands'\n"
         "complete -c tenon -n __fish_use_subcommand -l version -d 'print the version'");
    for (int i = 0; i < p->n; i++)
        printf("complete -c tenon -n __fish_use_subcommand -a %s -d '%s'\n", p->v[i].name,
               fish_text(a, p->v[i].help));
    for (int i = 0; i < p->n; i++)
        for (const Row *r = p->v[i].row; r < p->v[i].row + p->v[i].n; r++) {
            const bool operand = !*r->name;
            if (operand && r->value == TAKES_NONE)
                continue;
            printf("complete -c tenon -n '__fish_seen_subcommand_from %s'", p->v[i].name);
            if (!operand)
                printf(" -%c %s", r->name[1] == '-' ? 'l' : 's', r->name + 1 + (r->name[1] == '-'));
            if (operand && r->value == TAKES_WORDS)
                printf(" -a '%s'", r->words);
            else
                printf("%s", fish_value(a, r));
            if (*r->help)
                printf(" -d '%s'", fish_text(a, r->help));
            puts("");
        }
}

bool completion_print(const Command *c, Diag *d)
{
    static const struct {
        const char *shell;
        void (*print)(const Parts *p);
    } table[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    const Parts p = read_tables(diag_arena(d));
    for (size_t i = 0; c->file && i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].shell, c->file) == 0) {
            table[i].print(&p);
            return true;
        }
    if (c->file)
        diag_error(d, nowhere, "tenon completion is for bash, zsh and fish, not '%s'", c->file);
    else
        diag_error(d, nowhere, "tenon completion needs the name of a shell: bash, zsh or fish");
    diag_help(d, "%s", command_row(c->kind)->usage);
    return false;
}
