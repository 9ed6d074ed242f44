/* columns.c -- see columns.h.
 *
 * The saved form is text.  Names and categories are lines, in which \n is the end of a line and \\
 * a backslash; numbers are hexadecimal, so that they are exact:
 *
 *   tenon columns 1 INPUTS COLUMNS
 *   number MEAN DEVIATION            or: category NUMBER
 *   NAME
 *   ROWS CATEGORY                    for each category
 */
#define _GNU_SOURCE
#include "data/columns.h"
#include "base/error.h"
#include "files/safetensors.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static Columns now;

const Columns *columns_now(void)
{
    return now.n ? &now : NULL;
}

bool columns_list_holds(const RtNames *list, const char *name)
{
    for (int i = 0; i < list->n; i++)
        if (strcmp(list->name[i], name) == 0)
            return true;
    return false;
}

int32_t columns_find(const Column *c, const char *text)
{
    return table_find(&c->value, text, (int32_t)strlen(text));
}

/* ---- writing */

static void put_line(FILE *f, const char *text, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (text[i] == '\n')
            fputs("\\n", f);
        else if (text[i] == '\\')
            fputs("\\\\", f);
        else
            putc(text[i], f);
    putc('\n', f);
}

static void put_column(FILE *f, const Column *c)
{
    if (c->category)
        fprintf(f, "category %d\n", c->value.n);
    else
        fprintf(f, "number %a %a\n", c->mean, c->deviation);
    put_line(f, c->name, (int64_t)strlen(c->name));
    for (int32_t i = 0; i < c->value.n; i++) {
        fprintf(f, "%lld ", (long long)c->value.count[i]);
        put_line(f, c->value.piece[i].bytes, c->value.piece[i].length);
    }
}

void columns_forget_target(int k)
{
    now.anew[k] = true;
}

void columns_take(const Columns *c)
{
    size_t bytes = 0;
    now = *c;
    FILE *f = open_memstream(&now.text, &bytes);
    if (!f)
        rt_die("out of memory for the columns of a table");
    fprintf(f, "tenon columns 1 %lld %lld\n", (long long)c->ninput, (long long)c->n);
    for (int64_t k = 0; k < c->n; k++)
        put_column(f, &c->at[k]);
    if (fclose(f) != 0)
        rt_die("out of memory for the columns of a table");
    now.text_bytes = (int64_t)bytes;
}

/* ---- reading */

typedef struct Saved {
    const char *at, *end;
    char *line; /* the current line, without its escapes */
} Saved;

/* Reads a line into s->line; false at the end. */
static bool next_line(Saved *s)
{
    char *to = s->line;
    if (s->at == s->end)
        return false;
    for (; s->at < s->end && *s->at != '\n'; s->at++) {
        char one = *s->at;
        if (one == '\\' && s->at + 1 < s->end && s->at[1] != '\n')
            one = *++s->at == 'n' ? '\n' : *s->at;
        *to++ = one;
    }
    s->at += s->at < s->end;
    *to = 0;
    return true;
}

static bool read_category(Saved *s, Column *c)
{
    if (!next_line(s))
        return false;
    char *end;
    const long long rows = strtoll(s->line, &end, 10);
    const int32_t k = c->value.n;
    if (end == s->line || *end != ' ' || rows < 1 ||
        table_add(&c->value, end + 1, (int32_t)strlen(end + 1)) != k)
        return false;
    c->value.count[k] = rows;
    return true;
}

static bool read_column(Saved *s, Column *c)
{
    int n = 0;
    if (!next_line(s))
        return false;
    c->category = sscanf(s->line, "category %d", &n) == 1;
    if (!c->category && (sscanf(s->line, "number %la %la", &c->mean, &c->deviation) != 2 ||
                         !isfinite(c->mean) || !(c->deviation >= 0)))
        return false;
    if (!next_line(s))
        return false;
    c->name = rt_format("%s", s->line);
    for (int i = 0; i < n; i++)
        if (!read_category(s, c))
            return false;
    return true;
}

static bool read_all(Saved *s, Columns *c)
{
    long long inputs, all;
    if (!next_line(s) || sscanf(s->line, "tenon columns 1 %lld %lld", &inputs, &all) != 2 ||
        inputs < 1 || all < inputs || all > s->end - s->at)
        return false;
    *c = (Columns){.at = rt_alloc(sizeof *c->at * (size_t)all), .ninput = inputs, .n = all};
    for (int64_t k = 0; k < all; k++)
        if (!read_column(s, &c->at[k]))
            return false;
    return s->at == s->end;
}

bool columns_read(const char *text, int64_t bytes)
{
    Columns c;
    Saved s = {text, text + bytes, rt_alloc((size_t)bytes + 1)};
    const bool ok = bytes > 0 && text[bytes - 1] == '\n' && read_all(&s, &c);
    free(s.line);
    if (ok)
        columns_take(&c);
    return ok;
}

bool columns_of_weights(const RtProgram *p, const char *path)
{
    char why[256];
    if (!p->recipe.table.given)
        return false;
    StFile *f = st_open(path, why);
    if (!f)
        rt_die("%s cannot be read: %s", path, why);
    const StEntry *e = st_find(f, ST_COLUMNS);
    if (e && !columns_read(f->data + e->begin, e->end - e->begin))
        rt_die("%s holds a description of columns that is damaged", path);
    st_close(f);
    return e != NULL;
}
