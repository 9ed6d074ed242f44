/* context.c -- finds the declaration, call and argument around a place of a text, from its
 * tokens. */
#include "lsp/context.h"
#include <string.h>

static Frame *top(Context *c)
{
    return c->depth ? &c->frame[c->depth - 1] : NULL;
}

static void open_frame(Context *c, const Token *first, const Token *t, const char *head)
{
    if (c->depth == CONTEXT_DEPTH)
        return;
    Frame *f = &c->frame[c->depth++];
    *f = (Frame){.mark = t->mark, .word = t->mark == '{' ? head : NULL};
    if (t->mark != '(' || t == first || t[-1].kind != TOKEN_NAME)
        return;
    f->callee = t[-1].text;
    const Token *p = t - 1;
    f->piped = p > first && p[-1].kind == TOKEN_MARK && p[-1].mark == '|' && !p[-1].single;
}

static void close_frame(Context *c, char mark)
{
    const char partner = mark == ')' ? '(' : mark == ']' ? '[' : '{';
    int i = c->depth;
    while (i > 0 && c->frame[i - 1].mark != partner)
        i--;
    if (i > 0)
        c->depth = i - 1;
}

static bool declares(const Token *t)
{
    static const char *const word[] = {"model", "block", "op", "train", "import"};
    for (size_t i = 0; i < sizeof word / sizeof *word; i++)
        if (token_reserved(t, word[i]))
            return true;
    return false;
}

/* Whether this token binds a name: a parameter, a variable, or the variable of a loop. */
static bool binds(const Context *c, const Token *first, const Token *t, const Token *end)
{
    const Token *before = t > first ? t - 1 : NULL;
    const bool assigned = t + 1 < end && token_is(t + 1, '=');
    if (t->kind != TOKEN_NAME || !before)
        return false;
    if (token_reserved(before, "for") || token_reserved(before, "scan") ||
        token_reserved(before, "yield"))
        return true;
    if (c->depth == 1 && c->frame[0].mark == '(') /* the head */
        return token_is(before, '(') || token_is(before, ',');
    return assigned &&
           (before->kind == TOKEN_NEWLINE || token_is(before, '{') || token_is(before, ';'));
}

static bool ends_before(const Token *t, int line, int col)
{
    return t->at.end_line < line || (t->at.end_line == line && t->at.end_col < col);
}

static bool begins_before(const Token *t, int line, int col)
{
    return t->at.line < line || (t->at.line == line && t->at.col < col);
}

static void set_key(Arena *a, Frame *f, const Token *name)
{
    f->key = name->text;
    if (f->mark == '(')
        ARENA_PUSH(a, f->given, f->ngiven, name->text);
}

/* Updates c by a token that lies before the place. */
static void pass_token(Arena *a, Context *c, const Token *first, const Token *t, const Token *end,
                       const char **head)
{
    Frame *f = top(c);
    if (declares(t)) {
        c->depth = 0;
        c->decl = *head = t->text;
        c->names = map_new(a);
        return;
    }
    if (c->decl && binds(c, first, t, end))
        map_set(&c->names, t->text, (void *)t);
    if (t->kind == TOKEN_RESERVED)
        *head = t->text;
    if (token_nests(t) > 0) {
        open_frame(c, first, t, *head);
    } else if (token_nests(t) < 0) {
        close_frame(c, t->mark);
        if (!c->depth && t->mark == '}')
            c->decl = NULL;
    } else if (f && token_is(t, ',')) {
        f->argument++;
        f->key = NULL;
    } else if (f && f->mark == '{' && (t->kind == TOKEN_NEWLINE || token_is(t, ';'))) {
        f->key = NULL;
    } else if (f && token_is(t, '=') && t > first && t[-1].kind == TOKEN_NAME) {
        set_key(a, f, t - 1);
    }
}

/* Whether a comment begins in the line between the last token and the place. */
static bool in_comment(const Analysis *n, const Token *last, int line, int col)
{
    const int from = last && last->at.end_line == line ? last->at.end_col : 1;
    const size_t at = lines_at(&n->lines, line, from), to = lines_at(&n->lines, line, col);
    return to > at && memchr(&n->lines.text[at], '#', to - at);
}

Context context_at(Arena *a, const Analysis *n, int line, int col)
{
    Context c = {.names = map_new(a)};
    const char *head = NULL;
    const Token *first = n->token, *end = n->token + n->ntoken, *t = first;
    for (; t < end && ends_before(t, line, col); t++)
        pass_token(a, &c, first, t, end, &head);
    if (t < end && begins_before(t, line, col)) { /* the token ends at the place or contains it */
        const bool inside = t->at.end_line > line || t->at.end_col > col;
        const Span s = t->at;
        if (t->kind == TOKEN_NAME || t->kind == TOKEN_RESERVED) {
            c.word = t;
        } else if (t->kind == TOKEN_STRING) {
            const char last = n->lines.text[lines_at(&n->lines, s.end_line, s.end_col) - 1];
            c.string = inside || last != '"' || s.end_col - s.col == 1 ? t : NULL;
        } else if (!inside) {
            pass_token(a, &c, first, t, end, &head);
            t++;
        }
    }
    c.before = t > first ? t - 1 : NULL;
    c.comment = !c.word && !c.string && in_comment(n, c.before, line, col);
    return c;
}

const Frame *context_call(const Context *c)
{
    for (int i = c->depth; i > 0 && c->frame[i - 1].mark != '{'; i--)
        if (c->frame[i - 1].mark == '(' && c->frame[i - 1].callee)
            return &c->frame[i - 1];
    return NULL;
}
