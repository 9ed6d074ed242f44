/* format.c -- formatting: the style of `tenon fmt`. */
#include "front/format.h"
#include "lsp/server.h"
#include <string.h>

/* The bytes at the beginning of both texts that are equal, up to the end of a line. */
static size_t equal_lines(const char *a, const char *b)
{
    size_t whole = 0;
    for (size_t i = 0; a[i] && a[i] == b[i]; i++)
        if (a[i] == '\n')
            whole = i + 1;
    return whole;
}

/* The bytes at the end of both texts that are equal, from the beginning of a line, without the
 * first `used` bytes. */
static size_t equal_end(const char *a, size_t m, const char *b, size_t n, size_t used)
{
    size_t whole = 0;
    for (size_t i = 0; i < m - used && i < n - used && a[m - 1 - i] == b[n - 1 - i]; i++)
        if (i + 1 < m && a[m - 2 - i] == '\n')
            whole = i + 1;
    return whole;
}

/* One edit of the lines that differ.  A text with syntax errors has no style: no result. */
cJSON *answer_formatting(Server *s, const cJSON *params)
{
    Document *d = document_of(s, params);
    if (!d)
        return NULL;
    const Analysis *a = document_analysis(s, d);
    const char *new =
        a->unit ? format_source(s->arena, diag_new(s->arena, DIAG_NEVER), a->source) : NULL;
    if (!new)
        return NULL;
    const char *old = a->source->text;
    const size_t m = a->source->len, n = strlen(new), first = equal_lines(old, new),
                 last = equal_end(old, m, new, n, first);
    cJSON *list = cJSON_CreateArray();
    if (m == n && first == n)
        return list;
    Span at = {.source = a->source};
    lines_place(&a->lines, first, &at.line, &at.col);
    lines_place(&a->lines, m - last, &at.end_line, &at.end_col);
    const char *text = arena_strndup(s->arena, &new[first], n - last - first);
    cJSON_AddItemToArray(list, edit_json(s->arena, &a->lines, at, text));
    return list;
}
