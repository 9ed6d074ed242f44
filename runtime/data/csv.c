/* csv.c -- see csv.h.
 *
 * A field can have quotes and blanks around it, and two quotes together are one quote of the text.
 * A row can end in CR LF.  Fields are cut in place: no field is copied.  Debian's libcsv is not
 * used: it does not say on which line a row begins, and every program would depend on this library.
 *
 * Source: RFC 4180, and files that spreadsheets write.
 */
#include "data/csv.h"
#include "base/error.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { FIRST_ROOM = 1 << 16 };

static void *grown(const Csv *c, void *old, int64_t bytes)
{
    void *p = realloc(old, (size_t)bytes);
    if (!p)
        rt_die("out of memory for %s", c->path);
    return p;
}

/* The whole file, also from a pipe, with a 0 at its end.  Returns its size. */
static int64_t read_file(Csv *c)
{
    FILE *f = fopen(c->path, "re");
    int64_t n = 0, room = FIRST_ROOM;
    if (!f)
        rt_die("%s cannot be opened: %s", c->path, strerror(errno));
    c->bytes = grown(c, NULL, room);
    for (size_t got; (got = fread(c->bytes + n, 1, (size_t)(room - n - 1), f)) > 0;) {
        n += (int64_t)got;
        if (n == room - 1)
            c->bytes = grown(c, c->bytes, room *= 2);
    }
    if (ferror(f))
        rt_die("%s cannot be read: %s", c->path, strerror(errno));
    fclose(f);
    c->bytes[n] = 0;
    return n;
}

/* Dies if the file has a byte of 0, which would end it too early. */
static void check_zeros(const Csv *c, int64_t n)
{
    const char *zero = memchr(c->bytes, 0, (size_t)n);
    int64_t line = 1;
    if (!zero)
        return;
    for (const char *at = c->bytes; at < zero; at++)
        line += *at == '\n';
    rt_die("%s:%lld: the row holds a byte of 0: this is not a text file", c->path, (long long)line);
}

void csv_open(Csv *c, const char *path)
{
    *c = (Csv){.path = path, .next = 1};
    const int64_t n = read_file(c);
    c->at = c->bytes;
    if (n >= 2 && (memcmp(c->at, "\xFF\xFE", 2) == 0 || memcmp(c->at, "\xFE\xFF", 2) == 0))
        rt_die("%s is in UTF-16: save it as UTF-8", path);
    check_zeros(c, n);
    if (strchr(c->at, '\r') && !strchr(c->at, '\n'))
        rt_die("%s has lines that end in CR alone: save it with ends of lines LF or CR LF", path);
    if (n >= 3 && memcmp(c->at, "\xEF\xBB\xBF", 3) == 0)
        c->at += 3;
}

void csv_close(Csv *c)
{
    free(c->bytes);
    free(c->field);
}

const char *csv_shown(const char *text)
{
    enum { MOST = 60 };
    const size_t n = strlen(text);
    int kept = n > MOST ? MOST : (int)n;
    while (n > MOST && kept > 0 && ((unsigned char)text[kept] & 0xC0) == 0x80)
        kept--; /* the first byte of a character in UTF-8 */
    char *shown = rt_format("%.*s%s", kept, text, n > MOST ? "..." : "");
    for (char *c = shown; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = '?';
    return shown;
}

static bool is_end(char c)
{
    return c == 0 || c == '\n';
}

static bool is_blank(const Csv *c, char at)
{
    return at == ' ' || at == '\r' || (at == '\t' && c->separator != '\t');
}

static char find_separator(const Csv *c, bool names)
{
    int64_t semicolons = 0, commas = 0, tabs = 0;
    bool quoted = false;
    for (const char *at = c->at; *at && (*at != '\n' || (quoted && c->lines)); at++) {
        quoted ^= *at == '"';
        semicolons += !quoted && *at == ';';
        commas += !quoted && *at == ',';
        tabs += !quoted && *at == '\t';
    }
    if (!names)
        return semicolons ? ';' : tabs && !commas ? '\t' : ',';
    if (semicolons > 0 && semicolons >= commas && semicolons >= tabs)
        return ';';
    return tabs > 0 && tabs >= commas ? '\t' : ',';
}

/* Moves the text of a quoted field, which begins at `at`, to its place without doubled quotes.
 * *end: the end of the text.  Returns the position after the closing quote. */
static char *cut_quoted(Csv *c, char *at, char **end)
{
    char *to = at;
    for (; *at && (c->lines || *at != '\n'); at++) {
        if (*at == '"' && *++at != '"') {
            *end = to;
            return at;
        }
        c->next += *at == '\n';
        *to++ = *at;
    }
    rt_die("%s:%lld: the quote in column %lld is not closed%s", c->path, (long long)c->line,
           (long long)c->n + 1, c->lines ? "" : " in its row");
}

/* Returns the text of the field at c->at, and moves c->at to the separator or the end of the row.
 * *end: where the text ends. */
static char *cut_field(Csv *c, char **end)
{
    char *at = c->at, *text;
    while (is_blank(c, *at))
        at++;
    if (*at == '"') {
        text = at + 1;
        at = cut_quoted(c, text, end);
        while (is_blank(c, *at))
            at++;
        if (!is_end(*at) && *at != c->separator)
            rt_die("%s:%lld: column %lld has text after its closing quote", c->path,
                   (long long)c->line, (long long)c->n + 1);
    } else {
        text = at;
        while (!is_end(*at) && *at != c->separator)
            at++;
        *end = at;
        while (*end > text && is_blank(c, (*end)[-1]))
            --*end;
    }
    c->at = at;
    return text;
}

bool csv_number(const char *text, double *value)
{
    char *stop;
    *value = strtod(text, &stop);
    return stop != text && !*stop;
}

bool csv_has_comma(const char *text)
{
    static const char digit[] = "0123456789";
    const size_t n = strlen(text), sign = strspn(text, "+-");
    return n > sign && strchr(text, ',') && strchr(digit, text[sign]) &&
           strchr(digit, text[n - 1]) && sign + strspn(text + sign, "0123456789.,") == n;
}

static void add_field(Csv *c, char *text)
{
    if (c->n == c->room) {
        c->room = c->room ? 2 * c->room : 32;
        c->field = grown(c, c->field, c->room * (int64_t)sizeof *c->field);
    }
    c->field[c->n++] = text;
}

static void skip_blank_rows(Csv *c)
{
    for (;;) {
        char *end = c->at + strspn(c->at, " \t\r");
        if (*end != '\n') {
            c->at = *end ? c->at : end;
            return;
        }
        c->at = end + 1;
        c->next++;
    }
}

bool csv_next(Csv *c, bool names)
{
    skip_blank_rows(c);
    if (!*c->at)
        return false;
    c->line = c->next;
    c->n = 0;
    if (!c->separator)
        c->separator = find_separator(c, names);
    for (bool more = true; more; c->at++) {
        char *end;
        add_field(c, cut_field(c, &end));
        const char after = *c->at;
        *end = 0;
        more = after == c->separator;
        if (after == 0)
            return true;
    }
    c->next++;
    return true;
}

bool csv_is_missing(const char *text)
{
    static const char *const word[] = {"na", "n/a", "#n/a", "nan", "null", "?"};
    const bool possible = strchr("nN#?", *text) != NULL;
    for (size_t i = 0; possible && i < sizeof word / sizeof *word; i++)
        if (strcasecmp(word[i], text) == 0)
            return true;
    return !*text;
}
