/* format.c -- writes a model file in the one style.
 *
 *   blocks       four columns for each '{'; a block on one line stays there if it fits
 *   statements   one a line; a blank line stays, several become one
 *   train        the '=' of the keys stand in one column
 *   long lines   are broken before |>, then after commas, then after operators; a list whose last
 *                item has a comma has one item a line
 *   comments     stay at their statements; comments at the ends of adjacent lines stand in one
 *                column
 *
 * The tokens of a line and four properties of the source decide where the line is broken: a '{'
 * that ends a line, a |> that begins one, a comma before a closing bracket, and comments.  The
 * result keeps these four properties, so a second run changes nothing.
 *
 * Breaks are chosen as in Oppen 1980, "Prettyprinting": each possible break has a level, and a line
 * is broken where the text up to the next break of the same or an outer level does not fit.
 */
#include "front/format.h"
#include "base/text.h"
#include "front/piece.h"
#include "parser.h"
#include <limits.h>
#include <string.h>

enum {
    INDENT = 4,
    FAR = 60,   /* the contents of a bracket after this column are not aligned with it */
    LEVELS = 8, /* levels of breaks at each depth of brackets */
    NONE = INT_MAX
};

typedef struct Line {
    Text text;
    int column;          /* characters in the text */
    const char *comment; /* after the text, or NULL */
    bool gap;            /* a blank line stands before */
} Line;

typedef struct Format {
    Arena *arena;
    Pieces p;
    Line *line;
    int nline;
    int indent;                     /* of the line that is being written */
    int column[DEPTH_BRACKETS + 1]; /* by depth of brackets: where a broken line continues */
    int outer[DEPTH_BRACKETS + 1];  /* by depth: indentation of the line of the innermost bracket */
} Format;

/* ---- lines */

static Line *last_line(const Format *f)
{
    return &f->line[f->nline - 1];
}

static void begin_line(Format *f, int indent)
{
    const Line line = {.text = text_new(f->arena), .column = indent};
    ARENA_PUSH(f->arena, f->line, f->nline, line);
    text_printf(&last_line(f)->text, "%*s", indent, "");
    f->indent = indent;
}

static void write_piece(Format *f, const Piece *x)
{
    Line *l = last_line(f);
    text_addn(&l->text, x->text, (size_t)x->bytes);
    l->column += x->width;
}

static void write_blanks(Format *f, int n)
{
    if (n > 0)
        text_printf(&last_line(f)->text, "%*s", n, "");
    last_line(f)->column += n > 0 ? n : 0;
}

static bool trails(const Format *f, int i) /* whether a comment stands behind other text */
{
    return i > 0 && f->p.v[i - 1].line == f->p.v[i].line;
}

static void write_comment(Format *f, int i, int indent)
{
    const Piece *x = &f->p.v[i];
    if (trails(f, i) && !last_line(f)->comment) {
        last_line(f)->comment = arena_strndup(f->arena, x->text, (size_t)x->bytes);
        return;
    }
    begin_line(f, indent);
    write_piece(f, x);
}

/* ---- breaks of a long line */

/* Whether piece i is the first one in a bracket so far to the right that a break gains columns. */
static bool after_far_bracket(const Format *f, int i)
{
    const Piece *x = &f->p.v[i];
    return x->around == i - 1 && i > 0 && f->p.v[i - 1].token != '{' &&
           f->column[x->depth] == f->outer[x->depth] + 2 * INDENT;
}

/* Level of the break before piece i of a statement; NONE if the line cannot be broken there. */
static int level(const Pieces *p, int i, int first)
{
    const Piece *x = &p->v[i];
    const int depth = x->depth - p->v[first].depth;
    if (p->v[i - 1].token == ',')
        return LEVELS * depth;
    if (x->token == PIPE) {
        const Piece *around = x->around < 0 ? NULL : &p->v[x->around];
        return around && around->token == '{' && !around->broken ? NONE : LEVELS * depth + 1;
    }
    const int strength = piece_operator(p, i - 1);
    return strength ? LEVELS * depth + strength : NONE;
}

/* Whether the text from piece i to the next break of level `own` or less fits into the line. */
static bool fits(const Format *f, int i, int own, int first, int end)
{
    const Pieces *p = &f->p;
    int k = i + 1;
    for (; k < end; k++) {
        const Piece *x = &p->v[k], *before = &p->v[k - 1];
        if ((piece_opens(before->token) && before->broken) ||
            (piece_closes(x->token) && p->v[x->partner].broken) || x->breaks ||
            before->token == LEXEME_COMMENT || x->token == LEXEME_COMMENT ||
            level(p, k, first) <= own)
            break;
    }
    return last_line(f)->column + p->v[i].space + pieces_width(p, i, k) <= FORMAT_WIDTH;
}

/* Whether piece i begins a line for one of the four reasons; *indent is that of the line. */
static bool must_break(const Format *f, int i, int *indent)
{
    const Piece *x = &f->p.v[i], *around = x->around < 0 ? NULL : &f->p.v[x->around];
    const int before = f->p.v[i - 1].token;
    if (piece_closes(x->token)) {
        *indent = f->outer[x->depth + 1];
        return f->p.v[x->partner].broken || before == LEXEME_COMMENT;
    }
    if (x->token == ELSE)
        *indent = f->indent;
    if (before == LEXEME_COMMENT || x->breaks)
        return true;
    return around && around->token != '{' && around->broken &&
           (before == ',' || x->around == i - 1);
}

static bool begins_line(const Format *f, int i, int first, int end, int *indent)
{
    *indent = f->column[f->p.v[i].depth];
    if (must_break(f, i, indent))
        return true;
    const int own = after_far_bracket(f, i) ? LEVELS * (f->p.v[i].depth - f->p.v[first].depth)
                                            : level(&f->p, i, first);
    return own != NONE && !fits(f, i, own, first, end);
}

static void open_bracket(Format *f, const Piece *x)
{
    const int inside = x->depth + 1, column = last_line(f)->column;
    f->outer[inside] = f->indent;
    f->column[inside] = x->token == '{' ? f->column[x->depth]
                        : x->broken     ? f->indent + INDENT
                        : column <= FAR ? column
                                        : f->indent + 2 * INDENT;
}

static void sequence(Format *f, int from, int to, int indent);

/* Writes the pieces from..to - 1 of one statement; `key` columns for its first piece. */
static void write_pieces(Format *f, int from, int to, int key)
{
    const int depth = f->p.v[from].depth, statement_indent = f->indent;
    for (int i = from; i < to; i++) {
        const Piece *x = &f->p.v[i];
        int indent = 0;
        if (x->token == LEXEME_COMMENT) {
            write_comment(f, i, f->column[x->depth]);
            continue;
        }
        if (i > from && begins_line(f, i, from, to, &indent))
            begin_line(f, indent);
        else if (i > from)
            write_blanks(f, x->space);
        write_piece(f, x);
        if (i == from)
            write_blanks(f, key - x->width);
        if (piece_opens(x->token))
            open_bracket(f, x);
        if (x->token == '{' && x->broken) {
            const int outer = x->depth > depth ? f->indent : statement_indent;
            sequence(f, i + 1, x->partner, outer + INDENT);
            begin_line(f, outer);
            i = x->partner;
            write_piece(f, &f->p.v[i]);
        }
    }
}

/* ---- statements */

/* Breaks all braces of a statement that are not inside of ( or [. */
static void break_braces(Format *f, int from, int to)
{
    for (int i = from; i < to; i++) {
        if (f->p.v[i].token == '{')
            pieces_break(&f->p, i);
        if (f->p.v[i].partner > i)
            i = f->p.v[i].partner;
    }
}

static void statement(Format *f, int from, int to, int indent, int key)
{
    const int depth = f->p.v[from].depth;
    const int wide = key > f->p.v[from].width ? key - f->p.v[from].width : 0;
    const bool forced = f->p.forced[to] > f->p.forced[from];
    if (forced || indent + wide + pieces_width(&f->p, from, to) > FORMAT_WIDTH)
        break_braces(f, from, to);
    begin_line(f, indent);
    f->column[depth] = indent + INDENT;
    write_pieces(f, from, to, key);
}

/* The end of the statement that begins with piece `from`. */
static int statement_end(const Pieces *p, int from, int to)
{
    int i = from;
    while (i < to && p->v[i].token != NEWLINE && (i == from || !parse_declares(p->v[i].token)))
        i = p->v[i].partner > i ? p->v[i].partner + 1 : i + 1;
    while (i > from && p->v[i - 1].token == LEXEME_COMMENT)
        i--;
    return i;
}

/* Columns of the longest key of a train block whose entries are from..to - 1. */
static int key_width(const Pieces *p, int from, int to)
{
    int most = 0;
    for (int i = from; i < to; i++) {
        if (p->v[i].token == LEXEME_COMMENT || p->v[i].token == NEWLINE)
            continue;
        most = p->v[i].width > most ? p->v[i].width : most;
        i = statement_end(p, i, to) - 1;
    }
    return most;
}

static bool has_gap(const Pieces *p, int i)
{
    int before = i - 1;
    while (before >= 0 && p->v[before].token == NEWLINE)
        before--;
    return before >= 0 && p->v[i].line - p->v[before].line > 1;
}

/* Separates two declarations if one of them has several lines: `after` is the first line after the
 * first declaration, and `begin` is the first line of the second declaration.  Comments between the
 * two belong to the second one. */
static void separate(Format *f, int after, int begin)
{
    bool gap = false;
    for (int i = after; i <= begin; i++)
        gap |= f->line[i].gap;
    f->line[after].gap |= !gap;
}

/* Writes the statements of a block, or the declarations of the file. */
static void sequence(Format *f, int from, int to, int indent)
{
    const Pieces *p = &f->p;
    const bool train = from > 2 && p->v[from - 3].token == TRAIN;
    const int key = train ? key_width(p, from, to) : 0, first = f->nline;
    int after = -1;    /* the first line after the previous declaration */
    bool tall = false; /* the previous declaration has several lines */
    for (int i = from, next; i < to; i = next) {
        const int begin = f->nline;
        const bool comment = p->v[i].token == LEXEME_COMMENT;
        next = comment || p->v[i].token == NEWLINE ? i + 1 : statement_end(p, i, to);
        if (comment)
            write_comment(f, i, indent);
        else if (p->v[i].token != NEWLINE)
            statement(f, i, next, indent, key);
        if (f->nline == begin) /* a separator, or a comment behind other text */
            continue;
        f->line[begin].gap = begin > first && has_gap(p, i);
        if (comment || from > 0)
            continue;
        const bool several = f->nline - begin > 1;
        if (after >= 0 && (tall || several))
            separate(f, after, begin);
        after = f->nline;
        tall = several;
    }
}

/* ---- the text */

/* Columns before the comments of the adjacent lines that begin with line i. */
static int comment_column(const Format *f, int i)
{
    int most = 0;
    for (int k = i; k < f->nline && f->line[k].comment && (k == i || !f->line[k].gap); k++)
        most = f->line[k].column > most ? f->line[k].column : most;
    return most + 2;
}

static const char *whole_text(const Format *f)
{
    Text out = text_new(f->arena);
    int column = 0;
    for (int i = 0; i < f->nline; i++) {
        const Line *l = &f->line[i];
        if (l->gap)
            text_add(&out, "\n");
        text_addn(&out, l->text.s, l->text.len);
        if (l->comment) {
            if (i == 0 || !f->line[i - 1].comment || l->gap)
                column = comment_column(f, i);
            text_printf(&out, "%*s%s", column - l->column, "", l->comment);
        }
        text_add(&out, "\n");
    }
    return out.s;
}

/* Whether the text has the pieces of the source: a fault of this file must not change a model. */
static bool same_pieces(Format *f, const Source *s, const char *text, Diag *d)
{
    const Source formatted = {.name = s->name, .path = s->path, .text = text, .len = strlen(text)};
    Pieces again;
    Diag *quiet = diag_new(f->arena, DIAG_NEVER);
    if (pieces_read(f->arena, quiet, &formatted, &again) && pieces_equal(&f->p, &again))
        return true;
    diag_error(d, (Span){s, 1, 1, 1, 1},
               "internal error: the formatted text would have another meaning");
    diag_help(d, "the file is as it was; report this with the file");
    return false;
}

const char *format_source(Arena *a, Diag *d, const Source *s)
{
    Format f = {.arena = a};
    if (!pieces_read(a, d, s, &f.p))
        return NULL;
    sequence(&f, 0, f.p.n, 0);
    const char *text = whole_text(&f);
    return same_pieces(&f, s, text, d) ? text : NULL;
}
