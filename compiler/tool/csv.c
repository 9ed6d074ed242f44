/* csv.c -- see csv.h. */
#include "tool/csv.h"
#include "tool/file.h"
#include <errno.h>
#include <string.h>

static const Span nowhere;

/* What the row has most, outside of quotes: semicolons, tabs or commas. */
static char find_separator(const char *row)
{
    int count[3] = {0};
    static const char separator[] = ";\t,";
    bool quoted = false;
    for (; *row && (quoted || *row != '\n'); row++) {
        quoted ^= *row == '"';
        const char *found = quoted ? NULL : strchr(separator, *row);
        if (found)
            count[found - separator]++;
    }
    if (count[0] && count[0] >= count[1] && count[0] >= count[2])
        return ';';
    return count[1] && count[1] >= count[2] ? '\t' : ',';
}

bool csv_fails(const Csv *c, const char *what, const char *help)
{
    diag_error(c->d, nowhere, "%s:%d: %s", c->path, c->line, what);
    if (help)
        diag_help(c->d, "%s", help);
    return false;
}

/* The empty text of the next field of a row. */
static Text *new_field(Csv *c)
{
    if (c->n == c->room) {
        const Text empty = text_new(c->arena);
        ARENA_PUSH(c->arena, c->field, c->room, empty);
    }
    Text *field = &c->field[c->n++];
    field->len = 0;
    field->s[0] = 0;
    return field;
}

/* Takes a field in quotes; false after an error. */
static bool take_quoted(Csv *c, Text *field, const char *blanks)
{
    for (c->at++; *c->at && (*c->at != '"' || c->at[1] == '"'); c->at++) {
        c->at += *c->at == '"';
        c->next += *c->at == '\n';
        text_addn(field, c->at, 1);
    }
    if (!*c->at)
        return csv_fails(c, arena_printf(c->arena, "the quote in column %d is not closed", c->n),
                         NULL);
    c->at++;
    c->at += strspn(c->at, blanks);
    return !*c->at || *c->at == '\n' || *c->at == c->separator ||
           csv_fails(c, arena_printf(c->arena, "column %d has text after its closing quote", c->n),
                     NULL);
}

/* Takes a field from c->at; stops at the separator or the end of the row.  false after an error. */
static bool take_field(Csv *c)
{
    Text *field = new_field(c);
    const char blanks[] = {' ', '\r', c->separator == '\t' ? ' ' : '\t', 0};
    c->at += strspn(c->at, blanks);
    if (*c->at == '"')
        return take_quoted(c, field, blanks);
    size_t n = 0;
    while (c->at[n] && c->at[n] != '\n' && c->at[n] != c->separator)
        n++;
    size_t kept = n;
    while (kept > 0 && strchr(blanks, c->at[kept - 1]))
        kept--;
    text_addn(field, c->at, kept);
    c->at += n;
    return true;
}

CsvRow csv_next(Csv *c)
{
    for (size_t n; n = strspn(c->at, " \t\r"), c->at[n] == '\n'; c->next++)
        c->at += n + 1;
    if (!c->at[strspn(c->at, " \t\r")])
        return CSV_END;
    if (!c->separator)
        c->separator = find_separator(c->at);
    c->n = 0;
    c->line = c->next++;
    for (bool more = true; more; c->at += *c->at != 0) {
        if (!take_field(c))
            return CSV_FAULTY;
        more = *c->at == c->separator;
    }
    return CSV_TAKEN;
}

/* Reports bytes that are no text in UTF-8. */
static bool check_bytes(Csv *c, size_t len)
{
    const char *zero = memchr(c->at, 0, len);
    if (len >= 2 && (memcmp(c->at, "\xFF\xFE", 2) == 0 || memcmp(c->at, "\xFE\xFF", 2) == 0)) {
        diag_error(c->d, nowhere, "%s is in UTF-16", c->path);
        diag_help(c->d, "save it as UTF-8");
        return false;
    }
    if (zero) {
        for (const char *at = c->at; at < zero; at++)
            c->line += *at == '\n';
        return csv_fails(c, "the row holds a byte of 0: this is not a text file", NULL);
    }
    if (strchr(c->at, '\r') && !strchr(c->at, '\n')) {
        diag_error(c->d, nowhere, "%s has lines that end in CR alone", c->path);
        diag_help(c->d, "save it with ends of lines LF or CR LF");
        return false;
    }
    for (size_t i = 0, n; i < len; i += n) {
        n = (size_t)text_character(c->at + i, len - i);
        if (n == 0)
            return csv_fails(c,
                             arena_printf(c->arena, "the byte 0x%02X is not UTF-8",
                                          (unsigned char)c->at[i]),
                             "save the table as UTF-8, or convert it: iconv -f LATIN1 -t UTF-8");
        c->line += c->at[i] == '\n';
    }
    c->line = 1;
    c->at += strncmp(c->at, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    return true;
}

bool csv_open(Csv *c, Arena *a, const char *path, Diag *d)
{
    size_t len = 0;
    *c = (Csv){.arena = a, .d = d, .path = path, .line = 1, .next = 1};
    c->at = file_read(a, path, &len);
    if (c->at)
        return check_bytes(c, len);
    diag_error(d, nowhere, "cannot read %s: %s", path, strerror(errno));
    return false;
}
