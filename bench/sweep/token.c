/* token.c -- divides a sweep file into words, numbers, quoted texts and signs. */
#include "sweep/token.h"
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static Span span(const Reader *r, size_t from, size_t to)
{
    const int col = (int)(from - r->line_start) + 1;
    return (Span){r->source, r->line, col, r->line, col + (int)(to - from)};
}

static void skip_blanks(Reader *r)
{
    const char *s = r->source->text;
    for (;; r->pos++) {
        if (s[r->pos] == '#')
            r->pos += strcspn(s + r->pos, "\n");
        if (s[r->pos] == '\n') {
            r->line++;
            r->line_start = r->pos + 1;
        } else if (!isspace((unsigned char)s[r->pos]))
            return;
    }
}

static size_t word_length(const char *s)
{
    size_t n = 0;
    while (isalnum((unsigned char)s[n]) || s[n] == '_' || s[n] == '.' || s[n] == '-')
        n++;
    return n;
}

static void number(Token *t)
{
    char *end;
    errno = 0;
    t->number = strtoll(t->text, &end, 10);
    t->kind = *end || errno ? TOKEN_BAD : TOKEN_NUMBER;
}

void reader_next(Reader *r)
{
    Token *t = &r->now;
    skip_blanks(r);
    const char *s = r->source->text + r->pos;
    size_t n = 1, skip = 0;

    *t = (Token){.kind = TOKEN_SIGN};
    if (!*s) {
        t->kind = TOKEN_END;
        n = 0;
    } else if (*s == '"') {
        skip = 1;
        n = strcspn(s + 1, "\"\n");
        t->kind = s[n + 1] == '"' ? TOKEN_TEXT : TOKEN_BAD;
        skip += t->kind == TOKEN_TEXT;
    } else if ((n = word_length(s))) {
        t->kind = isalpha((unsigned char)*s) || *s == '_' ? TOKEN_WORD : TOKEN_NUMBER;
    } else
        n = 1;
    t->text = arena_strndup(r->arena, s + (skip > 0), n);
    t->at = span(r, r->pos, r->pos + n + skip);
    if (t->kind == TOKEN_NUMBER)
        number(t);
    r->pos += n + skip;
}

void reader_begin(Reader *r, Arena *a, const Source *s, Diag *d)
{
    *r = (Reader){.arena = a, .diag = d, .source = s, .line = 1};
    reader_next(r);
}

bool reader_sign(Reader *r, char c)
{
    if (r->now.kind != TOKEN_SIGN || r->now.text[0] != c)
        return false;
    reader_next(r);
    return true;
}

void reader_expected(Reader *r, const char *what)
{
    if (r->now.kind == TOKEN_END)
        diag_error(r->diag, r->now.at, "%s is expected here, but the text ends", what);
    else
        diag_error(r->diag, r->now.at, "%s is expected here, not '%s'", what, r->now.text);
}
