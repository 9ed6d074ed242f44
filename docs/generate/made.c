/* made.c -- strings for pages, in one arena. */
#include "made.h"
#include "base/text.h"
#include "tool/option.h"
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Arena *made_arena(void)
{
    static Arena *a;
    return a = a ? a : arena_new();
}

const char *made(const char *format, ...)
{
    va_list args;
    char *text = NULL;
    va_start(args, format);
    const int n = vasprintf(&text, format, args);
    va_end(args);
    const char *kept = arena_strndup(made_arena(), n < 0 ? "" : text, n < 0 ? 0 : (size_t)n);
    free(text);
    return kept;
}

/* The length of the value of option o at s, with the blank or = before it; 0: no value. */
static size_t value_at(const OptionRow *o, const char *s)
{
    const char *word = o->value;
    if (o->kind == OPTION_SETTING)
        return *s == ' ' && strchr(s + 1, '=') ? 1 + strcspn(s + 1, " ,);") : 0;
    if (o->kind != OPTION_WORD || (*s != ' ' && *s != '='))
        return 0;
    for (size_t n; *word; word += n + (word[n] == '|')) {
        n = strcspn(word, "|");
        if (strncmp(s + 1, word, n) == 0 && !isalnum((unsigned char)s[1 + n]) && s[1 + n] != '_')
            return 1 + n;
    }
    return 0;
}

const char *made_coded(const char *text)
{
    Text t = text_new(made_arena());
    bool inside = false; /* inside code that is marked already */
    for (const char *s = text; *s;) {
        size_t n = 0;
        inside ^= *s == '`';
        for (const OptionRow *o = option_table; o->name && !inside && !n && strncmp(s, "--", 2) == 0; o++)
            if (strncmp(s, o->name, strlen(o->name)) == 0 && value_at(o, s + strlen(o->name)))
                n = strlen(o->name) + value_at(o, s + strlen(o->name));
        if (n)
            text_printf(&t, "`%.*s`", (int)n, s);
        else
            text_addn(&t, s, 1);
        s += n ? n : 1;
    }
    return t.s;
}

const char *made_sentence(const char *text)
{
    text = made_coded(text);
    const size_t n = strlen(text);
    return made("%c%s%s", toupper((unsigned char)*text), text + 1, n && text[n - 1] == '.' ? "" : ".");
}
