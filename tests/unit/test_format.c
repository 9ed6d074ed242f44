/* test_format.c -- the formatter keeps the tree, the graph and the comments of a model, and formatting again changes nothing.
 *
 * The models are those of the repository and random ones (tests/tools/random_model.c).  Each is also written with other blanks, line
 * ends, separators and comments, wherever the language allows them.  A printer of trees that knows nothing of the formatter compares.
 */
#include "front/format.h"
#include "base/text.h"
#include "front/front.h"
#include "front/piece.h"
#include "parser.h"
#include "suite.h"
#include <glob.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- random models, by the program of that test */

static FILE *random_out;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
#define main random_main
#define printf(...) fprintf(random_out, __VA_ARGS__)
#include "tools/random_model.c"
#undef printf
#undef main
#pragma GCC diagnostic pop

static char *random_model(Arena *a, int seed)
{
    char *text = NULL, number[20];
    size_t size = 0;
    snprintf(number, sizeof number, "%d", seed);
    random_out = open_memstream(&text, &size);
    ck_assert_int_eq(random_main(2, (char *[]){"random_model", number, NULL}), 0);
    fclose(random_out);
    char *copy = arena_strdup(a, text);
    free(text);
    return copy;
}

/* ---- trees as text, without places */

static void print_expr(Text *t, const Expr *e);

static void print_args(Text *t, const Args *args)
{
    for (int i = 0; i < args->n; i++) {
        text_printf(t, " %s:", args->v[i].name ? args->v[i].name : "");
        print_expr(t, args->v[i].value);
    }
}

static void print_expr(Text *t, const Expr *e)
{
    if (!e) {
        text_add(t, "()");
        return;
    }
    text_printf(t, "(%d ", e->kind);
    switch (e->kind) {
    case EX_BAD: break;
    case EX_INT:
    case EX_BOOL: text_printf(t, "%lld", (long long)e->i); break;
    case EX_FLOAT: text_printf(t, "%a", e->f); break;
    case EX_STRING:
    case EX_NAME: text_add(t, e->s); break;
    case EX_LIST:
        for (int i = 0; i < e->list.n; i++)
            print_expr(t, e->list.v[i]);
        break;
    case EX_IF:
        for (int i = 0; i < e->arms.n; i++)
            print_expr(t, e->arms.v[i].cond), print_expr(t, e->arms.v[i].value);
        break;
    case EX_UNARY:
    case EX_BINARY: text_add(t, operator_text(e->op)); /* fall through */
    case EX_INDEX:
        print_expr(t, e->a);
        if (e->kind != EX_UNARY)
            print_expr(t, e->b);
        break;
    case EX_FIELD:
        print_expr(t, e->a);
        text_add(t, e->field);
        break;
    case EX_CALL:
        print_expr(t, e->a);
        print_args(t, &e->args);
        break;
    case EX_TARGETS:
        for (int i = 0; i < e->list.n; i++)
            print_expr(t, e->list.v[i]);
        break;
    case EX_TYPED:
        text_printf(t, "%s: %s %d", e->typed->name, e->typed->type, e->typed->sized);
        for (int i = 0; i < e->typed->dims.n; i++)
            print_expr(t, e->typed->dims.v[i]);
        break;
    }
    text_add(t, ")");
}

static void print_body(Text *t, const Body *b)
{
    text_add(t, "{");
    for (int i = 0; i < b->n; i++) {
        const Stmt *s = b->v[i];
        text_printf(t, "\n%d %s ", s->kind, s->name ? s->name : "");
        print_expr(t, s->value);
        print_expr(t, s->to);
        for (int k = 0; k < s->items.n; k++)
            text_printf(t, " %s in ", s->items.v[k].name), print_expr(t, s->items.v[k].value);
        text_printf(t, "%s", s->marks.reversed ? "reversed" : "");
        print_expr(t, s->marks.every);
        print_body(t, &s->body);
        for (int k = 0; k < s->branches.n; k++)
            print_expr(t, s->branches.v[k].cond), print_body(t, &s->branches.v[k].body);
    }
    text_add(t, "}");
}

static void print_decl(Text *t, const Decl *d)
{
    text_printf(t, "%s %s", decl_word(d->kind), d->name);
    for (int i = 0; i < d->params.n; i++) {
        const ParamDecl *p = &d->params.v[i];
        text_printf(t, " %s: %d %d %s", p->name, p->type, p->tokens, p->type_name ? p->type_name : "");
        for (int k = 0; k < p->dims.n; k++)
            print_expr(t, p->dims.v[k]);
        print_expr(t, p->fallback);
    }
    print_body(t, &d->body);
    print_expr(t, d->formula);
    for (int i = 0; i < d->entries.n; i++)
        text_printf(t, "\n%s = ", d->entries.v[i].key), print_expr(t, d->entries.v[i].value);
    text_add(t, "\n");
}

static Source *source(Arena *a, const char *text)
{
    Source *s = arena_alloc(a, sizeof *s);
    *s = (Source){.name = "m.tn", .path = "m.tn", .text = text, .len = strlen(text)};
    return s;
}

/* The tree of a text; NULL after a syntax error. */
static const char *tree(Arena *a, const char *text)
{
    Diag *d = diag_new(a, DIAG_NEVER);
    const Decls decls = parse_file(a, d, source(a, text));
    Text t = text_new(a);
    for (int i = 0; i < decls.n; i++)
        print_decl(&t, decls.v[i]);
    return diag_errors(d) ? NULL : t.s;
}

/* The comments of a text, one a line, without blanks at their ends. */
static const char *comments(Arena *a, const char *text)
{
    Text t = text_new(a);
    bool quoted = false;
    for (const char *s = text; *s; s++) {
        if (*s == '\\' && quoted)
            s++;
        else if (*s == '"')
            quoted = !quoted;
        else if (*s == '#' && !quoted) {
            size_t n = strcspn(s, "\n");
            const char *next = s + n - 1;
            while (s[n - 1] == ' ' || s[n - 1] == '\t' || s[n - 1] == '\r')
                n--;
            text_printf(&t, "%.*s\n", (int)n, s);
            s = next;
        }
    }
    return t.s;
}

/* ---- the same model in another layout */

static uint64_t dice;

static int roll(int n)
{
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return (int)((dice >> 33) % (uint64_t)n);
}

/* A line end is allowed after this text, whatever follows. */
static bool open_ended(const char *s, int n)
{
    static const char *const word[] = {"(", "[", "{", ",", "=", ":", "|>", "..", "//", "**", "==", "!=", "<=", ">=", "<", ">",
                                       "+", "-", "*", "/", "%", ".", "and", "or", "not", "in", NULL};
    for (int i = 0; word[i]; i++)
        if ((int)strlen(word[i]) == n && strncmp(word[i], s, (size_t)n) == 0)
            return true;
    return false;
}

static void line_end(Text *t, int *ncomment)
{
    if (roll(3) == 0)
        text_printf(t, "%s# comment %d%s", roll(2) ? " " : "", ++*ncomment, roll(4) ? "" : " \t");
    text_add(t, roll(5) ? "\n" : roll(2) ? "\n\n" : "\r\n \n\n");
    text_printf(t, "%*s", roll(12), "");
}

static const char *mangled(Arena *a, const char *text)
{
    Lexemes x;
    Text t = text_new(a);
    Diag *d = diag_new(a, DIAG_NEVER);
    char bracket[DEPTH_BRACKETS + 1] = "{";
    int depth = 0, ncomment = 0;
    const int odds = 2 + roll(20); /* some files are close to the original */
    ck_assert(parse_lexemes(a, d, source(a, text), &x));
    const char **line = NULL;
    int nline = 0;
    for (const char *s = text; s; s = strchr(s, '\n') ? strchr(s, '\n') + 1 : NULL)
        ARENA_PUSH(a, line, nline, s);
    int last_end = 0, last_line = 0;
    for (int i = 0; i < x.n; i++) {
        const Span at = x.v[i].at;
        const int n = at.end_col - at.col;
        const char *word = line[at.line - 1] + at.col - 1;
        if (x.v[i].token == LEXEME_COMMENT)
            continue;
        if (x.v[i].token == NEWLINE || x.v[i].token == ';') {
            if (roll(odds) == 0)
                text_add(&t, roll(2) ? ";" : " ; ; ");
            else
                line_end(&t, &ncomment);
            last_line = 0;
            continue;
        }
        const bool glued = last_line == at.line && last_end == at.col;
        const bool within = bracket[depth] == '(' || bracket[depth] == '[';
        const bool joins = x.v[i].token == PIPE || x.v[i].token == ELSE;
        const bool open = i > 0 && x.v[i - 1].token != LEXEME_COMMENT && x.v[i - 1].token != NEWLINE &&
                          open_ended(line[x.v[i - 1].at.line - 1] + x.v[i - 1].at.col - 1, x.v[i - 1].at.end_col - x.v[i - 1].at.col);
        if ((within || joins || open) && roll(odds) == 0)
            line_end(&t, &ncomment);
        else if (!glued || roll(odds) == 0)
            text_printf(&t, "%*s", 1 + roll(3), "");
        if ((*word == ')' || *word == ']') && roll(3 * odds) == 0 && i > 0 && !open && x.v[i - 1].token != LEXEME_COMMENT)
            text_add(&t, ","); /* perhaps not allowed here: the caller looks */
        text_addn(&t, word, (size_t)n);
        if (*word == '(' || *word == '[' || *word == '{')
            bracket[++depth] = *word;
        else if (*word == ')' || *word == ']' || *word == '}')
            depth--;
        last_line = at.line;
        last_end = at.end_col;
    }
    return t.s;
}

/* ---- what holds for every text */

static const char *formatted(Arena *a, const char *text, const char *what)
{
    Diag *d = diag_new(a, DIAG_NEVER);
    const char *out = format_source(a, d, source(a, text));
    if (!out)
        diag_print(d, stderr);
    ck_assert_msg(out != NULL, "%s cannot be formatted:\n%s", what, text);
    return out;
}

/* No line ends with a blank or begins with a tab, and no two empty lines are adjacent. */
static void check_lines(const char *text, const char *what)
{
    int empty = 1;
    for (const char *s = text; *s; s += strcspn(s, "\n") + 1) {
        const int n = (int)strcspn(s, "\n");
        empty = n ? 0 : empty + 1;
        ck_assert_msg(empty < 2 && (!n || (s[n - 1] != ' ' && s[n - 1] != '\t')) && *s != '\t' && !memchr(s, '\r', (size_t)n),
                      "%s: the line '%.*s' in\n%s", what, n, s, text);
    }
    ck_assert_msg(empty == 0 || !*text, "%s ends with an empty line:\n%s", what, text);
}

static void check_text(const char *text, const char *what)
{
    Arena *a = arena_new();
    const char *before = tree(a, text), *out = formatted(a, text, what), *after = tree(a, out);
    ck_assert_msg(before && after && strcmp(before, after) == 0, "%s: the tree changes; the text was\n%s\nand becomes\n%s", what, text, out);
    ck_assert_msg(strcmp(comments(a, text), comments(a, out)) == 0, "%s: comments change; the text was\n%s\nand becomes\n%s", what, text, out);
    const char *again = formatted(a, out, what);
    ck_assert_msg(strcmp(out, again) == 0, "%s: a second run changes\n%s\nto\n%s\nfrom\n%s", what, out, again, text);
    check_lines(out, what);
    arena_free(a);
}

static void check_layouts(const char *text, const char *what, int n)
{
    Arena *a = arena_new();
    const char *original = tree(a, text);
    for (int i = 0; i < n; i++) {
        const char *other = mangled(a, text), *same = tree(a, other);
        if (!same) /* a comma where none is allowed */
            continue;
        ck_assert_msg(strcmp(original, same) == 0, "the test has changed %s to\n%s", what, other);
        check_text(other, what);
    }
    arena_free(a);
}

/* Sanitizers take 8 times as long: with 10,000 files, a busy machine exceeds the time limit of 600 s. */
#ifdef __SANITIZE_ADDRESS__
enum { DEEP_FILES = 2000 };
#else
enum { DEEP_FILES = 10000 };
#endif

static int random_files(void)
{
    const char *deep = getenv("CHECK_DEEP");
    return deep && *deep == '1' ? DEEP_FILES : 300;
}

START_TEST(random_models)
{
    int layouts = 0;
    for (int seed = 1; seed <= random_files(); seed++) {
        Arena *a = arena_new();
        const char *text = random_model(a, seed), *what = arena_printf(a, "random model %d", seed);
        dice = (uint64_t)seed;
        check_text(text, what);
        for (int i = 0; i < 3; i++)
            layouts += tree(a, mangled(a, text)) != NULL;
        check_layouts(text, what, 3);
        arena_free(a);
    }
    ck_assert_int_gt(layouts, random_files()); /* most layouts are allowed */
}
END_TEST

/* A text with some bytes removed, doubled or inserted.  Most such texts have errors. */
static const char *damaged(Arena *a, const char *text)
{
    static const char *const piece[] = {" ", "\n", "#", "# x\n", ";", ",", "(", ")", "[", "]", "{", "}", "|>", "-", "..", "=", "if a { b } else { c }",
                                        "\r\n", "\t", "not ", "# long ", "................................................................................\n"};
    size_t n = strlen(text);
    for (int i = 1 + roll(3); i > 0 && n > 2; i--) {
        const size_t at = (size_t)roll((int)n), len = (size_t)roll(3) == 0 ? (size_t)roll(8) : 0;
        const char *more = roll(3) ? piece[roll((int)(sizeof piece / sizeof *piece))] : "";
        const size_t end = at + len < n ? at + len : n;
        text = arena_printf(a, "%.*s%s%s", (int)at, text, more, text + end);
        n = strlen(text);
    }
    return text;
}

START_TEST(damaged_models)
{
    int good = 0, n = 3 * random_files();
    for (int i = 1; i <= n; i++) {
        Arena *a = arena_new();
        dice = (uint64_t)i * 77;
        const char *text = damaged(a, mangled(a, random_model(a, 1 + i % 200)));
        if (tree(a, text)) {
            check_text(text, arena_printf(a, "damaged model %d", i));
            good++;
        } else {
            Diag *d = diag_new(a, DIAG_NEVER);
            ck_assert_msg(!format_source(a, d, source(a, text)) && diag_errors(d) > 0, "a damaged model is formatted:\n%s", text);
        }
        arena_free(a);
    }
    ck_assert_int_gt(good, n / 20);
}
END_TEST

static void each_file(const char *pattern, void (*check)(const char *path, const char *text))
{
    glob_t found;
    ck_assert_int_eq(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        Arena *a = arena_new();
        const char *why;
        const Source *s = source_read(a, found.gl_pathv[i], &why);
        ck_assert_msg(s != NULL, "%s: %s", found.gl_pathv[i], why);
        check(found.gl_pathv[i], s->text);
        arena_free(a);
    }
    globfree(&found);
}

static void check_model(const char *path, const char *text)
{
    Arena *a = arena_new();
    if (tree(a, text)) {
        check_text(text, path);
        dice = 1;
        check_layouts(text, path, random_files() > 1000 ? 20 : 6);
    }
    arena_free(a);
}

START_TEST(models_of_the_repository)
{
    static const char *const pattern[] = {"models/*.tn", "tests/passes/*.tn", "tests/cuda/*.tn", "tests/random/*.tn",
                                          "tests/programs/cost/*.tn", "tests/errors/*.tn"};
    for (size_t i = 0; i < sizeof pattern / sizeof *pattern; i++)
        each_file(pattern[i], check_model);
}
END_TEST

/* A text with an error is not formatted, and the messages are those of the parser. */
static void check_error(const char *path, const char *text)
{
    Arena *a = arena_new();
    Diag *d = diag_new(a, DIAG_NEVER), *parser = diag_new(a, DIAG_NEVER);
    const Source *s = source(a, text);
    parse_file(a, parser, s);
    const char *out = format_source(a, d, s);
    ck_assert_msg(!out == (diag_errors(parser) > 0), "%s: %d errors of the parser", path, diag_errors(parser));
    ck_assert_int_eq(diag_errors(d), diag_errors(parser));
    arena_free(a);
}

START_TEST(files_with_errors)
{
    each_file("tests/errors/*.tn", check_error);
}
END_TEST

/* The graph of a text, as --dump prints it. */
static char *graph(Arena *a, const char *text)
{
    char name[] = "/tmp/tenon-format-XXXXXX", *out = NULL;
    size_t size = 0;
    FILE *f = fdopen(mkstemp(name), "w");
    char here[4096];
    ck_assert(getcwd(here, sizeof here) != NULL);
    static const char word[] = "import \""; /* names a file of models/ */
    const char *import = strstr(text, word);
    const size_t head = import ? (size_t)(import - text) + strlen(word) : 0;
    fprintf(f, "%.*s%s%s%s", (int)head, text, import ? here : "", import ? "/models/" : "", text + head);
    fclose(f);
    Diag *d = diag_new(a, DIAG_NEVER);
    Front front;
    const bool loads = front_load(a, name, NULL, d, &front);
    unlink(name);
    diag_print(d, stderr);
    ck_assert(loads);
    f = open_memstream(&out, &size);
    if (front.train)
        graph_dump(front.train, f);
    graph_dump(front.test, f);
    fclose(f);
    char *copy = arena_strdup(a, out), *to = copy; /* without the places: NAME:LINE at the end of a line */
    for (const char *s = copy, *end; *s; s = end + 1) {
        end = s + strcspn(s, "\n");
        const char *place = end;
        while (place > s && place[-1] != ' ')
            place--;
        const size_t n = (size_t)((strncmp(place, name + 5, strlen(name + 5)) == 0 ? place : end) - s);
        memmove(to, s, n);
        to += n;
        *to++ = '\n';
    }
    *to = 0;
    free(out);
    return copy;
}

static void check_graph(const char *path, const char *text)
{
    Arena *a = arena_new();
    const char *before = graph(a, text), *after = graph(a, formatted(a, text, path));
    ck_assert_msg(strstr(before, "input") && strcmp(before, after) == 0, "the graph of %s changes", path);
    arena_free(a);
}

START_TEST(graphs_stay)
{
    each_file("models/*.tn", check_graph);
}
END_TEST

/* ---- layouts that a person decided */

static void becomes(const char *text, const char *want)
{
    Arena *a = arena_new();
    ck_assert_str_eq(formatted(a, text, "the text"), want);
    arena_free(a);
}

START_TEST(blanks)
{
    becomes("op f( x,y:float=- 1.5e-3 )=exp( -x*  x )+ - y** -2\n", "op f(x, y: float = -1.5e-3) = exp(-x * x) + -y ** -2\n");
    becomes("model m(x : f32 [ 8 ]){return x . y [ 0 ]( 1 )}", "model m(x: f32[8]) { return x.y[0](1) }\n");
    becomes("block b(x) { for i in 0 .. n-1 { x=f( x )|>g } }", "block b(x) { for i in 0..n - 1 { x = f(x) |> g } }\n");
    becomes("block b(x) { y = not (a) and -[1 , -2][0]<b }", "block b(x) { y = not (a) and -[1, -2][0] < b }\n");
    becomes("train t{}", "train t {}\n");
    becomes("", "");
    becomes("\xef\xbb\xbf\r\n# a \r\n\r\n\r\n\r\n# b", "# a\n\n# b\n");
}
END_TEST

START_TEST(blocks)
{
    becomes("block b(x) {\n\n\nh = x;  g = h\n\n\nreturn g\n\n}", "block b(x) {\n    h = x\n    g = h\n\n    return g\n}\n");
    becomes("block b(x) { if a { h = 1 } else if b {\nh = 2 } else { h = 3 } }",
            "block b(x) {\n    if a {\n        h = 1\n    } else if b {\n        h = 2\n    } else {\n        h = 3\n    }\n}\n");
    becomes("op a(x) = x op b(x) = x block c(x) {\nreturn x }\n# d\nop d(x) = x",
            "op a(x) = x\nop b(x) = x\n\nblock c(x) {\n    return x\n}\n\n# d\nop d(x) = x\n");
    becomes("train t { a = 1 # one\n# own\n long_key = 2 # two\n b=3 }",
            "train t {\n    a        = 1  # one\n    # own\n    long_key = 2  # two\n    b        = 3\n}\n");
}
END_TEST

START_TEST(long_lines)
{
    becomes("block b(x) {\nh = conv(x, 64) |> first(x, \"........................................\") |> second(x, \"..........\") |> third\n}",
            "block b(x) {\n    h = conv(x, 64) |> first(x, \"........................................\")\n"
            "        |> second(x, \"..........\") |> third\n}\n");
    becomes("model m(a: int = 1000000000, b: int = 1000000000, c: int = 1000000000, d: int = 1000000000) { return x }",
            "model m(a: int = 1000000000, b: int = 1000000000, c: int = 1000000000, d: int = 1000000000) {\n    return x\n}\n");
    becomes("model m(a: int = 1000000000, b: int = 1000000000, c: int = 1000000000, d: int = 1000000000, epsilon) { return x }",
            "model m(a: int = 1000000000, b: int = 1000000000, c: int = 1000000000, d: int = 1000000000,\n"
            "        epsilon) {\n    return x\n}\n");
    becomes("block b(x) { y = f(a, b,)\n|> g }", "block b(x) {\n    y = f(\n        a,\n        b,\n    )\n        |> g\n}\n");
    becomes("block b(x) { y = f(if a {\n1 } else { 2 }, 3) }",
            "block b(x) {\n    y = f(if a {\n        1\n    } else {\n        2\n    }, 3)\n}\n");
    becomes("op f(x) = 1000000000000000 * x + 1000000000000000 * x + 1000000000000000 * x + 1000000000000000 * x + 1",
            "op f(x) = 1000000000000000 * x + 1000000000000000 * x + 1000000000000000 * x +\n    1000000000000000 * x + 1\n");
}
END_TEST

TEST_MAIN("format", blanks, blocks, long_lines, models_of_the_repository, files_with_errors, graphs_stay, random_models, damaged_models)
