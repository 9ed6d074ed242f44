/* sweepfile.c -- reads a sweep file.
 *
 *   repeat = 5                              settings above a block hold for all blocks below
 *   sweep "../models/lenet.tn", "../models/mlp.tn" {
 *       batch   = [64, 128]
 *       threads = [1, all]
 *   }
 *
 *   file    = (setting | "sweep" text {"," text} "{" {setting} "}")
 *   setting = name "=" value
 *
 * Paths of model files are relative to the sweep file.  All errors of a file are reported in one run.
 */
#include "base/text.h"
#include "sweep/setting.h"
#include "tool/file.h"
#include <string.h>

typedef struct SweepFile {
    Reader reader;
    Plan *plan;
    const char *dir;
    int errors;
} SweepFile;

static bool is_word(const Reader *r, const char *word)
{
    return r->now.kind == TOKEN_WORD && strcmp(r->now.text, word) == 0;
}

/* After an error: skips to the next line that begins with a name, or to a brace. */
static void recover(Reader *r)
{
    const int line = r->now.at.line;
    while (r->now.kind != TOKEN_END && !(r->now.kind == TOKEN_SIGN && strchr("{}", *r->now.text)) &&
           !(r->now.kind == TOKEN_WORD && r->now.at.line > line))
        reader_next(r);
}

/* The settings of a block that have been read. */
typedef struct Given {
    const Setting **v;
    int n;
} Given;

static bool is_given(const Given *g, const Setting *s)
{
    for (int i = 0; i < g->n; i++)
        if (g->v[i] == s)
            return true;
    return false;
}

/* given NULL: a setting above the blocks, which can be repeated between blocks. */
static bool setting(Reader *r, Matrix *m, Given *given)
{
    const Token name = r->now;
    if (name.kind != TOKEN_WORD)
        return reader_expected(r, "a setting, NAME = VALUE,"), false;
    const Setting *s = setting_find(name.text);
    if (!s) {
        const char **known = NULL;
        const int n = setting_names(r->arena, &known);
        diag_error(r->diag, name.at, "sweeps have no setting '%s'", name.text);
        if (text_nearest(name.text, known, n))
            diag_suggest(r->diag, name.text, known, n);
        else
            diag_help(r->diag, "tenon sweep --help lists them");
        return false;
    }
    if (given && is_given(given, s)) {
        diag_error(r->diag, name.at, "the setting '%s' is given twice", name.text);
        return false;
    }
    if (given)
        ARENA_PUSH(r->arena, given->v, given->n, s);
    reader_next(r);
    if (!reader_sign(r, '='))
        return reader_expected(r, "'='"), false;
    return setting_read(r, m, s);
}

static bool file_name(SweepFile *f, const char **name)
{
    Reader *r = &f->reader;
    if (r->now.kind != TOKEN_TEXT)
        return reader_expected(r, "a model file in quotes"), false;
    *name = *r->now.text == '/' ? r->now.text : path_join(r->arena, f->dir, r->now.text);
    if (!file_exists(*name)) {
        diag_error(r->diag, r->now.at, "there is no model file %s", *name);
        diag_help(r->diag, "files are looked for beside the sweep file");
        return false;
    }
    reader_next(r);
    return true;
}

static bool block_head(SweepFile *f, Words *files)
{
    Reader *r = &f->reader;
    const char **file = NULL, *name;
    int n = 0;
    do {
        if (!file_name(f, &name))
            return false;
        ARENA_PUSH(r->arena, file, n, name);
    } while (reader_sign(r, ','));
    *files = (Words){.v = file, .n = n};
    return true;
}

static void block(SweepFile *f, const Matrix *above)
{
    Reader *r = &f->reader;
    Matrix m = *above;
    Given given = {0};
    const Span at = r->now.at;
    reader_next(r);
    if (!block_head(f, &m.file)) {
        f->errors++;
        recover(r);
    }
    if (!reader_sign(r, '{')) {
        reader_expected(r, "'{'");
        f->errors++;
        return;
    }
    while (r->now.kind != TOKEN_END && !(r->now.kind == TOKEN_SIGN && *r->now.text == '}'))
        if (!setting(r, &m, &given)) {
            f->errors++;
            if (r->now.kind == TOKEN_SIGN && *r->now.text == '{') /* the error was reported already */
                reader_next(r);
            recover(r);
        }
    if (!reader_sign(r, '}')) {
        diag_error(r->diag, at, "this sweep has no '}'");
        f->errors++;
    }
    ARENA_PUSH(r->arena, f->plan->matrix, f->plan->nmatrix, m);
}

/* A text has no NUL byte: what follows it would not be read. */
static bool has_nul(const Source *s, Diag *d)
{
    const char *line = s->text, *nul = memchr(line, 0, s->len), *end;
    int n = 1;
    if (!nul)
        return false;
    for (; (end = memchr(line, '\n', (size_t)(nul - line))); line = end + 1)
        n++;
    const int col = (int)(nul - line) + 1;
    diag_error(d, (Span){s, n, col, n, col + 1}, "the file has a NUL byte here");
    diag_help(d, "is this really a sweep file?");
    return true;
}

bool sweep_file_read(Arena *a, const char *path, Plan *p, Diag *d)
{
    const char *why, *slash = strrchr(path, '/');
    const Source *s = source_read(a, path, &why);
    SweepFile f = {.plan = p};
    Matrix above;
    if (!s) {
        diag_error(d, (Span){0}, "cannot read %s: %s", path, why);
        return false;
    }
    if (has_nul(s, d))
        return false;
    f.dir = slash ? arena_strndup(a, path, (size_t)(slash - path)) : ".";
    reader_begin(&f.reader, a, s, d);
    matrix_default(&above);
    while (f.reader.now.kind != TOKEN_END) {
        if (is_word(&f.reader, "sweep"))
            block(&f, &above);
        else if (!setting(&f.reader, &above, NULL)) {
            f.errors++;
            recover(&f.reader);
            while (reader_sign(&f.reader, '{') || reader_sign(&f.reader, '}'))
                ;
        }
    }
    if (!f.errors && !p->nmatrix) {
        diag_error(d, (Span){0}, "%s sweeps nothing", path);
        diag_help(d, "add a block: sweep \"model.tn\" { batch = [64, 128] }");
        f.errors++;
    }
    return !f.errors;
}
