/* place.c -- places in a text as the protocol counts them, and addresses of files. */
#include "lsp/place.h"
#include "base/text.h"
#include <ctype.h>
#include <string.h>

Lines lines_new(Arena *a, const char *text, size_t len, bool bytes)
{
    Lines l = {.text = text, .len = len, .bytes = bytes};
    l.cursor = arena_alloc(a, sizeof *l.cursor);
    ARENA_PUSH(a, l.start, l.n, 0);
    for (size_t i = 0; i < len; i++)
        if (text[i] == '\n')
            ARENA_PUSH(a, l.start, l.n, i + 1);
    return l;
}

/* The offset of the end of a line, before its line end. */
static size_t line_end(const Lines *l, int line)
{
    size_t end = line + 1 < l->n ? l->start[line + 1] - 1 : l->len;
    if (end > l->start[line] && line + 1 < l->n && l->text[end - 1] == '\r')
        end--;
    return end;
}

/* The bytes of the character at an offset, and its UTF-16 units. */
static int character(const Lines *l, size_t at, size_t end, int *units)
{
    const int n = text_character(&l->text[at], end - at);
    *units = l->bytes ? (n ? n : 1) : n == 4 ? 2 : 1;
    return n ? n : 1;
}

bool lines_offset(const Lines *l, const cJSON *position, size_t *offset)
{
    int line, wanted, units = 0;
    if (!json_int_at(position, "line", &line) || !json_int_at(position, "character", &wanted))
        return false;
    if (line >= l->n) {
        *offset = l->len;
        return true;
    }
    const size_t end = line_end(l, line);
    size_t at = l->start[line];
    while (at < end && wanted > 0) {
        at += (size_t)character(l, at, end, &units);
        wanted -= units;
    }
    *offset = at;
    return true;
}

void lines_place(const Lines *l, size_t offset, int *line, int *col)
{
    int low = 0, high = l->n - 1;
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (l->start[middle] <= offset)
            low = middle;
        else
            high = middle - 1;
    }
    *line = low + 1;
    *col = (int)(offset - l->start[low]) + 1;
}

size_t lines_at(const Lines *l, int line, int col)
{
    if (line < 1)
        return 0;
    if (line > l->n)
        return l->len;
    const size_t at = l->start[line - 1] + (size_t)(col > 1 ? col - 1 : 0),
                 end = line_end(l, line - 1);
    return at < end ? at : end;
}

cJSON *position_json(const Lines *l, int line, int col)
{
    const size_t to = lines_at(l, line, col);
    const int n = line < 1 ? 0 : line > l->n ? l->n - 1 : line - 1;
    const size_t end = line_end(l, n);
    LineCursor m = *l->cursor;
    if (m.line != n || m.offset < l->start[n] || m.offset > to)
        m = (LineCursor){.line = n, .offset = l->start[n]};
    for (int units = 0; m.offset < to; m.units += units)
        m.offset += (size_t)character(l, m.offset, end, &units);
    *l->cursor = m;
    cJSON *p = cJSON_CreateObject();
    cJSON_AddNumberToObject(p, "line", n);
    cJSON_AddNumberToObject(p, "character", m.units);
    return p;
}

cJSON *range_json(const Lines *l, Span at)
{
    cJSON *r = cJSON_CreateObject();
    const bool none = !at.source || at.line < 1; /* the whole file is meant: its first line */
    cJSON_AddItemToObject(r, "start", position_json(l, none ? 1 : at.line, none ? 1 : at.col));
    cJSON_AddItemToObject(r, "end",
                          position_json(l, none ? 1 : at.end_line, none ? 1 : at.end_col));
    return r;
}

cJSON *edit_json(Arena *a, const Lines *l, Span at, const char *text)
{
    cJSON *e = cJSON_CreateObject();
    cJSON_AddItemToObject(e, "range", range_json(l, at));
    json_add_text(a, e, "newText", text);
    return e;
}

bool span_contains(Span s, int line, int col)
{
    return (line > s.line || (line == s.line && col >= s.col)) &&
           (line < s.end_line || (line == s.end_line && col <= s.end_col));
}

bool span_same(Span a, Span b)
{
    return a.source && b.source && a.line == b.line && a.col == b.col &&
           strcmp(a.source->path, b.source->path) == 0;
}

/* ---- addresses */

const char *uri_path(Arena *a, const char *uri)
{
    static const char scheme[] = "file://";
    if (strncmp(uri, scheme, sizeof scheme - 1) != 0)
        return uri;
    const char *s = strchr(uri + sizeof scheme - 1, '/'); /* after the name of the machine */
    if (!s)
        return uri;
    char *path = arena_strdup(a, s), *w = path;
    for (; *s; s++)
        if (*s == '%' && json_hex(s[1]) >= 0 && json_hex(s[2]) >= 0 &&
            (s[1] != '0' || s[2] != '0')) {
            *w++ = (char)(16 * json_hex(s[1]) + json_hex(s[2]));
            s += 2;
        } else {
            *w++ = *s;
        }
    *w = 0;
    return path;
}

const char *uri_of(Arena *a, const char *path)
{
    if (path[0] != '/')
        return path;
    Text t = text_new(a);
    text_add(&t, "file://");
    for (const char *s = path; *s; s++)
        if (isalnum((unsigned char)*s) || strchr("/-._~", *s))
            text_addn(&t, s, 1);
        else
            text_printf(&t, "%%%02X", (unsigned char)*s);
    return t.s;
}
