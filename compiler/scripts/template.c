/* template.c -- fills templates: functions for places, then for conditions, then for blocks of
 * lines. */
#include "scripts/template.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Filler {
    const Places *places;
    Text *out;
} Filler;

static void template_fail(const char *what, const char *name)
{
    fprintf(stderr, "tenon: internal error: template: %s %s\n", what, name);
    abort();
}

/* ---- lists of places */

void places_add(PlaceList *l, const char *name, const char *text)
{
    ARENA_PUSH(l->arena, l->place, l->n, ((PlaceText){name, text}));
}

void places_flag(PlaceList *l, const char *name, bool on)
{
    places_add(l, name, on ? "" : NULL);
}

void places_int(PlaceList *l, const char *name, int64_t value)
{
    places_add(l, name, arena_printf(l->arena, "%lld", (long long)value));
}

static const char *listed(const void *of, const char *name, const char *at)
{
    const PlaceList *l = of;
    (void)at;
    for (int i = 0; i < l->n; i++)
        if (strcmp(l->place[i].name, name) == 0)
            return l->place[i].text;
    template_fail("there is no place called", name);
    return NULL;
}

Places places_of(const PlaceList *l)
{
    return (Places){listed, l};
}

/* ---- conditions and places */

static size_t name_length(const char *s)
{
    size_t n = 0;
    while (islower((unsigned char)s[n]) || (n && (isdigit((unsigned char)s[n]) || s[n] == '_')))
        n++;
    return n;
}

/* The next word of a condition, from *s on; moves *s to its end. */
static const char *next_word(Arena *a, const char **s, const char *end)
{
    while (*s < end && **s == ' ')
        ++*s;
    const char *from = *s;
    *s += name_length(from);
    return arena_strndup(a, from, (size_t)(*s - from));
}

static bool holds(Arena *a, const Places *p, const char *s, const char *end)
{
    bool all = false, joined_by_and = false;
    for (const char *word = next_word(a, &s, end); *word; word = next_word(a, &s, end)) {
        const bool negated = strcmp(word, "not") == 0;
        if (negated)
            word = next_word(a, &s, end);
        const bool term = (p->value(p->of, word, NULL) != NULL) != negated;
        all = joined_by_and ? all && term : all || term;
        joined_by_and = strcmp(next_word(a, &s, end), "and") == 0;
    }
    return all;
}

bool template_holds(Arena *a, const char *condition, const Places *p)
{
    return holds(a, p, condition, condition + strlen(condition));
}

/* The first `stop` of s .. end outside parentheses, or end. */
static const char *find_outside(const char *s, const char *end, char stop)
{
    int depth = 0;
    for (; s < end; s++) {
        if (depth == 0 && *s == stop)
            return s;
        depth += (*s == '(') - (*s == ')');
    }
    return end;
}

static void fill(Filler *f, const char *s, const char *end);

static void put_value(Filler *f, const char *name, size_t length, const char *at)
{
    const char *own = arena_strndup(f->out->arena, name, length);
    const char *value = f->places->value(f->places->of, own, at);
    if (!value)
        template_fail("no value for the place", own);
    text_add(f->out, value);
}

/* Fills @(name), @(name?text) or @(name?text|other); s .. end is the text in the parentheses. */
static void put_choice(Filler *f, const char *s, const char *end)
{
    const char *text = find_outside(s, end, '?'), *other = find_outside(s, end, '|');
    if (text == end)
        put_value(f, s, (size_t)(end - s), s - 2);
    else if (holds(f->out->arena, f->places, s, text))
        fill(f, text + 1, other);
    else if (other < end)
        fill(f, other + 1, end);
}

static void fill(Filler *f, const char *s, const char *end)
{
    while (s < end) {
        const size_t length = *s == '@' ? name_length(s + 1) : 0;
        if (length) {
            put_value(f, s + 1, length, s);
            s += 1 + length;
        } else if (s[0] == '@' && s[1] == '(') {
            const char *close = find_outside(s + 2, end, ')');
            put_choice(f, s + 2, close);
            s = close + 1;
        } else
            text_addn(f->out, s++, 1);
    }
}

/* ---- lines */

static const char *line_end(const char *s)
{
    return s + strcspn(s, "\n");
}

static const char *next_line(const char *s)
{
    s = line_end(s);
    return *s ? s + 1 : s;
}

static bool begins(const char *s, const char *word)
{
    return strncmp(s, word, strlen(word)) == 0 && strchr(" \n", s[strlen(word)]);
}

/* Writes a line.  If the line is one place, writes the value as whole lines; else fills the places
 * of the text. */
static void put_line(Filler *f, const char *s)
{
    const char *end = line_end(s);
    const bool alone = *s == '@' && s[1] != '(' && s + 1 + name_length(s + 1) == end;
    if (!alone) {
        fill(f, s, next_line(s));
        return;
    }
    Arena *a = f->out->arena;
    const char *value =
        f->places->value(f->places->of, arena_strndup(a, s + 1, (size_t)(end - s - 1)), s);
    if (!value || !*value)
        return;
    text_add(f->out, value);
    if (*end && f->out->s[f->out->len - 1] != '\n')
        text_add(f->out, "\n");
}

static const char *put_lines(Filler *f, const char *s, bool wanted);

/* Writes the branches from the @if at s up to its @end; returns the line after @end. */
static const char *put_branches(Filler *f, const char *s, bool wanted)
{
    bool done = false;
    do {
        const bool otherwise = begins(s, "@else");
        const bool now =
            wanted && !done &&
            (otherwise || holds(f->out->arena, f->places, s + strcspn(s, " \n"), line_end(s)));
        done |= now;
        s = put_lines(f, next_line(s), now);
        if (!*s)
            template_fail("@if without", "@end");
    } while (!begins(s, "@end"));
    return next_line(s);
}

/* Writes the lines from s up to the end of their block. */
static const char *put_lines(Filler *f, const char *s, bool wanted)
{
    while (*s && !begins(s, "@elif") && !begins(s, "@else") && !begins(s, "@end")) {
        if (begins(s, "@if")) {
            s = put_branches(f, s, wanted);
            continue;
        }
        if (wanted)
            put_line(f, s);
        s = next_line(s);
    }
    return s;
}

void template_fill(const char *template, const Places *p, Text *out)
{
    Filler f = {p, out};
    const char *rest = put_lines(&f, template, true);
    if (*rest)
        template_fail("no @if before", arena_strndup(out->arena, rest, strcspn(rest, "\n")));
}

const char *template_part(Arena *a, const char *template, const char *name)
{
    const char *s = template;
    while (*s && !(begins(s, "@part") && begins(s + strlen("@part "), name)))
        s = next_line(s);
    if (!*s)
        template_fail("there is no part called", name);
    const char *from = next_line(s), *to = from;
    while (*to && !begins(to, "@part"))
        to = next_line(to);
    return arena_strndup(a, from, (size_t)(to - from));
}
