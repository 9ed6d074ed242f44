/* quote.c -- escapes user text for the language of the generated text. */
#include "base/quote.h"
#include <string.h>

/* Returns the replacement for a byte that is special in the target language; NULL: keep the
 * byte. */
typedef const char *Escape(Arena *a, unsigned char byte, const char *before);

static bool is_control(unsigned char c)
{
    return c < 32 || c == 127;
}

/* Adds s with each byte escaped.  Bytes that are not UTF-8 are escaped like control bytes. */
static void add(Text *t, const char *s, Escape *escape)
{
    const char *begin = s ? s : "";
    const size_t n = strlen(begin);
    for (size_t i = 0, step; i < n; i += step) {
        const int bytes = text_character(begin + i, n - i);
        const unsigned char c = (unsigned char)begin[i];
        const char *other = bytes > 1 ? NULL : escape(t->arena, c, i ? begin + i - 1 : "");
        step = bytes ? (size_t)bytes : 1;
        if (other)
            text_add(t, other);
        else
            text_addn(t, begin + i, step);
    }
}

static const char *within(Arena *a, const char *open, const char *s, Escape *escape,
                          const char *close)
{
    Text t = text_new(a);
    text_add(&t, open);
    add(&t, s, escape);
    text_add(&t, close);
    return t.s;
}

static const char *in_model(Arena *a, unsigned char c, const char *before)
{
    (void)before;
    return c == '"' || c == '\\' ? arena_printf(a, "\\%c", c) : NULL;
}

const char *quote_model(Arena *a, const char *s)
{
    return within(a, "\"", s, in_model, "\"");
}

/* Uses three octal digits, because a hexadecimal escape in C has no fixed length and would take
 * the digits that follow.  Escapes the second of two '?', because a trigraph begins with "??". */
static const char *in_c(Arena *a, unsigned char c, const char *before)
{
    if (c == '"' || c == '\\')
        return arena_printf(a, "\\%c", c);
    if (is_control(c) || c >= 128)
        return arena_printf(a, "\\%03o", c);
    return c == '?' && *before == '?' ? "\\?" : NULL;
}

const char *quote_c(Arena *a, const char *s)
{
    return within(a, "\"", s, in_c, "\"");
}

static const char *in_line(Arena *a, unsigned char c, const char *before)
{
    (void)a, (void)before;
    return (is_control(c) && c != '\t') || c >= 128 ? "?" : NULL;
}

/* Puts a space into each mark that begins or ends a comment. */
static const char *in_c_comment(Arena *a, unsigned char c, const char *before)
{
    if ((c == '/' && *before == '*') || (c == '*' && *before == '/'))
        return arena_printf(a, " %c", c);
    return in_line(a, c, before);
}

const char *quote_c_comment(Arena *a, const char *s)
{
    return within(a, "", s, in_c_comment, "");
}

const char *quote_line(Arena *a, const char *s)
{
    return within(a, "", s, in_line, "");
}

/* Writes a byte that is not UTF-8 as the lone surrogate that Python uses in file names (PEP
 * 383). */
static const char *in_python(Arena *a, unsigned char c, const char *before)
{
    (void)before;
    if (c == '"' || c == '\\')
        return arena_printf(a, "\\%c", c);
    if (c >= 128)
        return arena_printf(a, "\\udc%02x", c);
    return c == '\n' ? "\\n" : is_control(c) ? arena_printf(a, "\\x%02x", c) : NULL;
}

const char *quote_python(Arena *a, const char *s)
{
    return within(a, "\"", s, in_python, "\"");
}

static const char *in_python_doc(Arena *a, unsigned char c, const char *before)
{
    return c == '"' || c == '\\' ? arena_printf(a, "\\%c", c) : in_line(a, c, before);
}

const char *quote_python_doc(Arena *a, const char *s)
{
    return within(a, "", s, in_python_doc, "");
}

static const char *in_single_quotes(Arena *a, unsigned char c, const char *before)
{
    (void)a, (void)before;
    return c == '\'' ? "'\\''" : NULL;
}

/* Escapes a byte for $'...', the only quotes of the shell in which an escape can stand for a line
 * end. */
static const char *in_dollar_quotes(Arena *a, unsigned char c, const char *before)
{
    (void)before;
    if (c == '\'' || c == '\\')
        return arena_printf(a, "\\%c", c);
    return is_control(c) || c >= 128 ? arena_printf(a, "\\%03o", c) : NULL;
}

const char *quote_shell(Arena *a, const char *s)
{
    static const char bare[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./,:=+@%";
    const char *word = s ? s : "";
    bool control = false;
    if (*word && !word[strspn(word, bare)])
        return word;
    for (const char *p = word; *p; p++)
        control |= is_control((unsigned char)*p);
    return control ? within(a, "$'", word, in_dollar_quotes, "'")
                   : within(a, "'", word, in_single_quotes, "'");
}

/* Graphviz interprets escapes such as \n and \N in labels. */
static const char *in_dot(Arena *a, unsigned char c, const char *before)
{
    return c == '"' || c == '\\' ? arena_printf(a, "\\%c", c) : in_line(a, c, before);
}

const char *quote_dot(Arena *a, const char *s)
{
    return within(a, "", s, in_dot, "");
}

/* XML 1.0 cannot represent most control characters. */
static const char *in_xml(Arena *a, unsigned char c, const char *before)
{
    switch (c) {
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '&':
        return "&amp;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    case '\n':
        return NULL;
    default:
        return in_line(a, c, before);
    }
}

const char *quote_xml(Arena *a, const char *s)
{
    return within(a, "", s, in_xml, "");
}
