/* piece.c -- reads the tokens and comments of a model file, and decides the blanks between them.
 *
 * The tokens are those that the grammar gets (parse.c), so a line end that ends a statement is a
 * token, and one inside of a statement is not.
 */
#include "front/piece.h"
#include "parser.h"
#include <string.h>

bool piece_opens(int token)
{
    return token == '(' || token == '[' || token == '{';
}

bool piece_closes(int token)
{
    return token == ')' || token == ']' || token == '}';
}

static bool ends_value(int token)
{
    return token == NAME || token == INT || token == FLOAT || token == STRING || token == TRUE ||
           token == FALSE || piece_closes(token);
}

static bool is_sign(const Pieces *p, int i)
{
    return p->v[i].token == '-' && !(i > 0 && ends_value(p->v[i - 1].token));
}

int piece_operator(const Pieces *p, int i)
{
    switch (p->v[i].token) {
    case OR:
        return 2;
    case AND:
        return 3;
    case EQ:
    case NE:
    case LE:
    case GE:
    case '<':
    case '>':
        return 4;
    case '+':
    case '-':
        return is_sign(p, i) ? 0 : 5;
    case '*':
    case '/':
    case '%':
    case FLOOR:
        return 6;
    default:
        return 0;
    }
}

/* Whether a blank stands between pieces i - 1 and i on one line. */
static bool spaced(const Pieces *p, int i)
{
    const int before = p->v[i - 1].token, token = p->v[i].token;
    if (before == '(' || before == '[' || before == '.' || before == DOTDOT || is_sign(p, i - 1))
        return false;
    if (before == '{')
        return token != '}';
    switch (token) {
    case ')':
    case ']':
    case ',':
    case ':':
    case '.':
    case DOTDOT:
    case NEWLINE: /* ';' */
        return false;
    case '(':
    case '[':
        return !ends_value(before);
    default:
        return true;
    }
}

/* ---- reading */

/* Whether a separator has no meaning: it follows another separator or the beginning of a text or
 * block, or it precedes their end or a declaration. last: the index of the last piece before it
 * that is no comment, or -1. */
static bool empty_separator(const Pieces *p, int last, int next)
{
    return last < 0 || p->v[last].token == NEWLINE || p->v[last].token == '{' || next == 0 ||
           next == '}' || parse_declares(next);
}

static int characters(const char *text, int bytes)
{
    int n = 0;
    for (int i = 0; i < bytes; i++)
        n += (text[i] & 0xc0) != 0x80;
    return n;
}

/* The text of a lexeme.  *line is the beginning of line number *at; both advance to the line of the
 * lexeme. */
static Piece piece_of(const Source *s, const Lexeme *x, const char **line, int *at)
{
    const char *end = s->text + s->len;
    for (; *at < x->at.line; ++*at)
        *line = (const char *)memchr(*line, '\n', (size_t)(end - *line)) + 1;
    Piece p = {.token = x->token,
               .text = *line + x->at.col - 1,
               .bytes = x->at.end_col - x->at.col,
               .line = x->at.line,
               .partner = -1};
    if (p.token == LEXEME_COMMENT)
        while (p.text[p.bytes - 1] == ' ' || p.text[p.bytes - 1] == '\t' ||
               p.text[p.bytes - 1] == '\r')
            p.bytes--;
    p.width = characters(p.text, p.bytes);
    return p;
}

static bool separates(int token)
{
    return token == NEWLINE || token == ';';
}

static void collect(Arena *a, const Source *s, const Lexemes *x, Pieces *out)
{
    const char *line = s->text;
    int at = 1, next = 0, last = -1; /* the tokens after and before a separator and comments */
    out->v = arena_alloc(a, ((size_t)x->n + 1) * sizeof *out->v);
    for (int i = 0; i < x->n; i++) {
        const int token = x->v[i].token;
        next = next > i ? next : i + 1;
        while (next < x->n && (x->v[next].token == LEXEME_COMMENT || separates(x->v[next].token)))
            next++;
        if (separates(token) && empty_separator(out, last, next < x->n ? x->v[next].token : 0))
            continue;
        if (token != LEXEME_COMMENT)
            last = out->n;
        if (separates(token))
            out->v[out->n++] = (Piece){NEWLINE, ";", 1, 1, x->v[i].at.line, .partner = -1};
        else
            out->v[out->n++] = piece_of(s, &x->v[i], &line, &at);
    }
}

/* ---- structure */

static int before_comments(const Pieces *p, int i)
{
    while (i >= 0 && p->v[i].token == LEXEME_COMMENT)
        i--;
    return i;
}

/* Breaks all braces around a piece that does not stand on the line of the text before it. */
static void break_around(Pieces *p, const Piece *x)
{
    for (int i = x->around; i >= 0; i = p->v[i].around)
        p->v[i].broken |= p->v[i].token == '{';
}

/* Finds partners and depths, and marks what the source breaks: braces, pipes, and lists that end
 * with a comma.  Such a break or a comment also breaks all braces around it. */
static void match(Pieces *p)
{
    int open[DEPTH_BRACKETS], n = 0;
    for (int i = 0; i < p->n; i++) {
        Piece *x = &p->v[i];
        if (piece_closes(x->token)) {
            x->partner = open[--n];
            p->v[x->partner].partner = i;
        }
        x->depth = n;
        x->around = n ? open[n - 1] : -1;
        const bool in_brace = n && p->v[x->around].token == '{';
        const bool starts_line = i > 0 && p->v[i - 1].line < x->line;
        x->breaks = x->token == PIPE && starts_line && (!n || in_brace);
        const bool first = in_brace && x->around == i - 1 && starts_line;
        const bool list =
            (x->token == ')' || x->token == ']') && p->v[before_comments(p, i - 1)].token == ',';
        if (list)
            p->v[x->partner].broken = true;
        if (x->breaks || first || list || x->token == LEXEME_COMMENT)
            break_around(p, x);
        if (piece_opens(x->token))
            open[n++] = i;
    }
}

/* The '{' of the next branch of an if; -1: there is none. */
static int next_branch(const Pieces *p, int brace)
{
    int i = p->v[brace].partner + 1;
    while (i < p->n && p->v[i].token == LEXEME_COMMENT)
        i++;
    if (i >= p->n || p->v[i].token != ELSE)
        return -1;
    while (p->v[i].token != '{')
        i = p->v[i].partner > i ? p->v[i].partner : i + 1;
    return i;
}

/* Breaks all branches of an if if one of them is broken. */
static void join_branches(Pieces *p)
{
    for (int i = 0; i < p->n; i++) {
        bool broken = false;
        if (p->v[i].token != '{')
            continue;
        for (int k = i; k >= 0; k = next_branch(p, k))
            broken |= p->v[k].broken;
        for (int k = i; k >= 0 && broken; k = next_branch(p, k))
            pieces_break(p, k);
    }
}

void pieces_break(Pieces *p, int brace)
{
    p->v[brace].broken |= p->v[brace].partner > brace + 1;
}

static void measure(Arena *a, Pieces *p)
{
    p->flat = arena_alloc(a, ((size_t)p->n + 1) * sizeof *p->flat);
    p->forced = arena_alloc(a, ((size_t)p->n + 1) * sizeof *p->forced);
    for (int i = 0; i < p->n; i++) {
        Piece *x = &p->v[i];
        x->space = i > 0 && spaced(p, i);
        p->flat[i + 1] = p->flat[i] + x->space + x->width;
        p->forced[i + 1] = p->forced[i] + (x->breaks || x->broken || x->token == LEXEME_COMMENT);
    }
}

int pieces_width(const Pieces *p, int from, int to)
{
    return to > from ? p->flat[to] - p->flat[from] - p->v[from].space : 0;
}

bool pieces_read(Arena *a, Diag *d, const Source *s, Pieces *out)
{
    Lexemes x;
    *out = (Pieces){0};
    if (!parse_lexemes(a, d, s, &x))
        return false;
    collect(a, s, &x, out);
    match(out);
    join_branches(out);
    measure(a, out);
    return true;
}

/* ---- comparison */

static int next_of(const Pieces *p, int i, bool comments)
{
    while (i < p->n && (p->v[i].token == LEXEME_COMMENT) != comments)
        i++;
    return i;
}

static bool equal_pieces(const Pieces *a, const Pieces *b, bool comments)
{
    int i = next_of(a, 0, comments), k = next_of(b, 0, comments);
    for (; i < a->n && k < b->n; i = next_of(a, i + 1, comments), k = next_of(b, k + 1, comments))
        if (a->v[i].token != b->v[k].token || a->v[i].bytes != b->v[k].bytes ||
            memcmp(a->v[i].text, b->v[k].text, (size_t)a->v[i].bytes) != 0)
            return false;
    return i >= a->n && k >= b->n;
}

bool pieces_equal(const Pieces *a, const Pieces *b)
{
    return equal_pieces(a, b, false) && equal_pieces(a, b, true);
}
