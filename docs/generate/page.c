/* page.c -- Markdown or man macros from one description. */
#include "page.h"
#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#ifndef TENON_VERSION
#define TENON_VERSION "0"
#endif
#define MANUAL_DATE "2026-11-23" /* date of all man pages: the last change of their frame */

enum {
    WIDTH_MARKDOWN = 110, WIDTH_MAN = 78, /* columns at which text is wrapped */
    WIDTH_ALIGNED = 110,                              /* wider tables are not aligned */
    WIDTH_MAN_TABLE = 70, /* wider tables become definitions in a man page */
    HARD = 1 /* stands for a no-break space */
};

/* ---- growing strings */

typedef struct String {
    char  *s;
    size_t n, room;
} String;

static void add(String *t, const char *s, size_t n)
{
    if (t->n + n + 1 > t->room) {
        t->room = 2 * (t->n + n + 1);
        t->s = realloc(t->s, t->room);
        if (!t->s)
            abort();
    }
    memcpy(t->s + t->n, s, n);
    t->n += n;
    t->s[t->n] = '\0';
}

static void add_text(String *t, const char *s)
{
    add(t, s, strlen(s));
}

static void add_char(String *t, char c)
{
    add(t, &c, 1);
}

static _Noreturn void too_long(const Page *p, const char *what, const char *text)
{
    fprintf(stderr, "%s: %s is longer than %d columns: %s\n", p->name, what, PAGE_LINE, text);
    exit(1);
}

/* Columns of UTF-8 text, one a character. */
static int columns_of(const char *s)
{
    int n = 0;
    for (; *s; s++)
        n += (*s & 0xc0) != 0x80;
    return n;
}

/* ---- inline marks */

/* Adds one character as roff text; returns the number of bytes of s that it used. */
static int roff_char(String *t, const char *s, bool code)
{
    const unsigned char c = (unsigned char)*s;
    if (c >= 0xc0) {                                  /* UTF-8 becomes \[uXXXX] */
        const int more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
        unsigned u = c & (0x3f >> more);
        for (int i = 1; i <= more && s[i]; i++)
            u = u << 6 | ((unsigned char)s[i] & 0x3f);
        char word[16];
        snprintf(word, sizeof word, "\\[u%04X]", u);
        add_text(t, word);
        return 1 + more;
    }
    switch (*s) {
    case '\\': add_text(t, "\\e"); break;
    case '\'': add_text(t, "\\(aq"); break;
    case '`':  add_text(t, "\\(ga"); break;
    case '^':  add_text(t, "\\(ha"); break;
    case '~':  add_text(t, "\\(ti"); break;
    case '-':  add_text(t, code ? "\\-" : "-"); break;
    case ' ':  add_char(t, code ? HARD : ' '); break;
    default:   add_char(t, *s);
    }
    return 1;
}

/* `code`: a span of n bytes. */
static void code_span(String *t, PageForm form, const char *s, int n, bool cell)
{
    add_text(t, form == PAGE_MAN ? "\\fB" : "`");
    for (int i = 0; i < n;)
        if (form == PAGE_MAN) {
            i += roff_char(t, s + i, true);
        } else {
            if (cell && s[i] == '|') /* viewers differ in the handling of | inside code inside a table */
                add_text(t, "`, `");
            else
                add_char(t, s[i] == ' ' ? HARD : s[i]);
            i++;
        }
    add_text(t, form == PAGE_MAN ? "\\fR" : "`");
}

/* The length of the option or variable of Tenon at s, which needs no mark; 0: none. */
static int bare_code(const char *text, const char *s)
{
    if (s > text && !strchr(" (", s[-1]))
        return 0;
    const bool option = s[0] == '-' && s[1] == '-' && islower((unsigned char)s[2]);
    const bool variable = strncmp(s, "TENON_", 6) == 0;
    if (!option && !variable)
        return 0;
    int n = 2;
    while (isalnum((unsigned char)s[n]) || s[n] == '_' || (s[n] == '-' && isalnum((unsigned char)s[n + 1])))
        n++;
    if (option && s[n] == '=' && isalnum((unsigned char)s[n + 1]))
        for (n++; isalnum((unsigned char)s[n]) || (strchr("_-.", s[n]) && isalnum((unsigned char)s[n + 1]));)
            n++;
    return n;
}

/* If [words](target) is at s, sets the begin and the length of the target, and returns the length of words; else
 * returns -1. */
static int link_at(const char *s, int *begin, int *target)
{
    const char *close = *s == '[' ? strchr(s, ']') : NULL;
    const char *end = close && close[1] == '(' ? strchr(close, ')') : NULL;
    if (!end)
        return -1;
    *begin = (int)(close + 2 - s);
    *target = (int)(end - close - 2);
    return (int)(close - s - 1);
}

static void markdown_char(String *t, const char *text, const char *s, bool cell)
{
    const bool inside = s > text && isalnum((unsigned char)s[-1]) && isalnum((unsigned char)s[1]);
    switch (*s) {
    case '<':  add_text(t, "&lt;"); break;
    case '&':  add_text(t, isalnum((unsigned char)s[1]) || s[1] == '#' ? "&amp;" : "&"); break;
    case '*':
    case '\\':
    case '`':
    case '[':
    case ']':  add_char(t, '\\'), add_char(t, *s); break;
    case '_':  add_text(t, inside ? "_" : "\\_"); break;
    case '|':  add_text(t, cell ? "\\|" : "|"); break;
    default:   add_char(t, *s);
    }
}

/* Converts text to the form (Markdown or man); blanks inside code become HARD. */
static char *render(PageForm form, const char *text, bool cell)
{
    String t = {0};
    add_text(&t, "");
    for (const char *s = text; *s;) {
        const char *end = *s == '`' ? strchr(s + 1, '`') : NULL;
        const int bare = bare_code(text, s);
        int begin = 0, target = 0;
        const int words = link_at(s, &begin, &target);
        if (end && end > s + 1) {
            code_span(&t, form, s + 1, (int)(end - s - 1), cell);
            s = end + 1;
        } else if (bare) {
            code_span(&t, form, s, bare, cell);
            s += bare;
        } else if (words >= 0 && form == PAGE_MARKDOWN) {
            add(&t, s, (size_t)(begin + target + 1));
            s += begin + target + 1;
        } else if (words >= 0) { /* a man page shows only the words */
            char *inner = strndup(s + 1, (size_t)words), *done = render(form, inner, cell);
            add_text(&t, done);
            free(inner);
            free(done);
            s += begin + target + 1;
        } else if (form == PAGE_MAN) {
            s += roff_char(&t, s, false);
        } else {
            markdown_char(&t, text, s, cell);
            s++;
        }
    }
    return t.s;
}

static void put_hard(FILE *out, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        putc(s[i] == HARD ? ' ' : s[i], out);
}

/* The characters to put before a word that would begin a list, a heading or a request at the beginning of a line. */
static const char *guard(PageForm form, const char *word, size_t n)
{
    if (form == PAGE_MAN)
        return *word == '.' ? "\\&" : "";
    const bool mark = n == 1 && strchr("-+*", *word);
    return mark || *word == '#' || *word == '>' ? "\\" : "";
}

/* Prints rendered text, wrapped; the first line begins at `column`, the others at `indent`. */
static void fill(Page *p, const char *s, int indent, int column)
{
    const int width = p->form == PAGE_MAN ? WIDTH_MAN : WIDTH_MARKDOWN;
    bool first = true, ended = false;
    while (*(s += strspn(s, " \n"))) {
        const size_t n = strcspn(s, " \n");
        char *word = strndup(s, n);
        const int w = columns_of(word);
        const bool sentence = ended && p->form == PAGE_MAN; /* in roff, each sentence begins on a new line */
        if (!first && (sentence || column + 1 + w > width)) {
            fprintf(p->out, "\n%*s%s", indent, "", guard(p->form, s, n));
            column = indent;
        } else if (!first) {
            putc(' ', p->out);
            column++;
        } else {
            fputs(guard(p->form, s, n), p->out);
        }
        if (column + w > PAGE_LINE)
            too_long(p, "a word", word);
        put_hard(p->out, s, n);
        column += w;
        first = false;
        ended = n > 1 && strchr(".:!?", s[n - 1]);
        s += n;
        free(word);
    }
    putc('\n', p->out);
}

static void fill_text(Page *p, const char *text, int indent, int column)
{
    char *t = render(p->form, text, false);
    fill(p, t, indent, column);
    free(t);
}

/* ---- the parts of a page */

/* Writes an empty line between two blocks of Markdown, but not between items of a list. */
static void gap(Page *p, int list)
{
    if (p->form == PAGE_MARKDOWN && !(list && p->list))
        putc('\n', p->out);
    p->list = list;
    p->fresh = 0;
}

/* The request for a new paragraph of a man page; none after a heading, which begins one. */
static const char *paragraph(const Page *p)
{
    return p->fresh ? "" : ".PP\n";
}

static void heading(Page *p, const char *title, const char *markdown, const char *man)
{
    if (p->form == PAGE_MARKDOWN) {
        gap(p, 0);
        fprintf(p->out, "%s ", markdown);
        fill_text(p, title, 0, 0);
        return;
    }
    String upper = {0};
    for (const char *s = title; *s; s++)
        add_char(&upper, strcmp(man, ".SH") == 0 ? (char)toupper((unsigned char)*s) : *s);
    char *t = render(PAGE_MAN, upper.s, false);
    fprintf(p->out, "%s ", man);
    put_hard(p->out, t, strlen(t));
    putc('\n', p->out);
    p->fresh = 1;
    p->list = 0;
    free(t);
    free(upper.s);
}

void page_begin(Page *p, FILE *out, PageForm form, const char *name, const char *title, const char *brief)
{
    *p = (Page){.out = out, .form = form, .name = name};
    if (form == PAGE_MARKDOWN) {
        fprintf(out, "# %s\n\n<!-- Made by docs/generate/update from the programs' own tables: change those, then run it. -->\n\n", title);
        char *sentence = NULL;
        if (asprintf(&sentence, "%c%s.", toupper((unsigned char)*brief), brief + 1) < 0)
            abort();
        fill_text(p, sentence, 0, 0);
        free(sentence);
        return;
    }
    fputs(".\\\" Made by tenon-reference from the programs' own tables.\n.TH ", out);
    for (const char *s = name; *s; s++)
        putc(toupper((unsigned char)*s), out);
    fprintf(out, " 1 %s \"Tenon %s\" \"Tenon manual\"\n.SH NAME\n", MANUAL_DATE, TENON_VERSION);
    for (const char *s = name; *s; s++)
        fputs(*s == '-' ? "\\-" : (char[]){*s, 0}, out);
    fputs(" \\- ", out);
    char *t = render(form, brief, false);
    put_hard(out, t, strlen(t));
    putc('\n', out);
    free(t);
}

void page_end(Page *p)
{
    if (p->cell) {
        fprintf(stderr, "%s: a table is not ended\n", p->name);
        exit(1);
    }
}

void page_section(Page *p, const char *title)
{
    heading(p, title, "##", ".SH");
}

void page_subsection(Page *p, const char *title)
{
    heading(p, title, "###", ".SS");
}

static char *formatted(const char *format, va_list args)
{
    char *text = NULL;
    if (vasprintf(&text, format, args) < 0)
        abort();
    return text;
}

void page_paragraph(Page *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = formatted(format, args);
    va_end(args);
    if (p->form == PAGE_MAN)
        fputs(paragraph(p), p->out);
    gap(p, 0);
    fill_text(p, text, 0, 0);
    free(text);
}

void page_item(Page *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = formatted(format, args);
    va_end(args);
    gap(p, 1);
    fputs(p->form == PAGE_MAN ? ".IP \\(bu 2\n" : "- ", p->out);
    fill_text(p, text, p->form == PAGE_MAN ? 0 : 2, 2);
    free(text);
}

void page_define(Page *p, const char *name, const char *value, const char *text)
{
    gap(p, 1);
    String t = {0};
    if (p->form == PAGE_MAN) {
        add_text(&t, "\\fB");
        for (const char *s = name; *s;)
            s += roff_char(&t, s, true);
        add_text(&t, "\\fR");
        if (value) {
            add_text(&t, " \\fI");
            for (const char *s = value; *s;)
                s += roff_char(&t, s, true);
            add_text(&t, "\\fR");
        }
        fputs(".TP\n", p->out);
        put_hard(p->out, t.s, t.n);
        putc('\n', p->out);
        fill_text(p, *text ? text : "\\&", 0, 0);
        free(t.s);
        return;
    }
    add_text(&t, "`");
    add_text(&t, name);
    if (value) {
        add_text(&t, " ");
        add_text(&t, value);
    }
    add_text(&t, "`: ");
    if (columns_of(t.s) + 2 > PAGE_LINE)
        too_long(p, "a definition's name", t.s);
    fprintf(p->out, "- %s", t.s);
    fill_text(p, text, 2, 2 + columns_of(t.s));
    free(t.s);
}

void page_code(Page *p, const char *language, const char *text)
{
    const char *begin = paragraph(p);
    gap(p, 0);
    if (p->form == PAGE_MAN)
        fprintf(p->out, "%s.in +4n\n.nf\n", begin);
    else
        fprintf(p->out, "```%s\n", language);
    for (const char *line = text; *line;) {
        const size_t n = strcspn(line, "\n");
        char *one = strndup(line, n);
        if (columns_of(one) > PAGE_LINE)
            too_long(p, "a line of code", one);
        if (p->form == PAGE_MAN) {
            String t = {0};
            add_text(&t, *one == '.' ? "\\&" : "");
            for (const char *s = one; *s;)
                s += roff_char(&t, s, true);
            put_hard(p->out, t.s, t.n);
            free(t.s);
        } else {
            fputs(one, p->out);
        }
        putc('\n', p->out);
        free(one);
        line += n + (line[n] == '\n');
    }
    fputs(p->form == PAGE_MAN ? ".fi\n.in\n" : "```\n", p->out);
}

/* ---- tables: stored until their end, when the widths of columns are known */

void page_table(Page *p, int columns, const char *const *heading_text)
{
    if (columns > PAGE_COLUMNS)
        abort();
    p->columns = columns;
    p->cells = 0;
    page_row(p, heading_text);
}

void page_row(Page *p, const char *const *cell)
{
    p->cell = realloc(p->cell, (size_t)(p->cells + p->columns) * sizeof *p->cell);
    if (!p->cell)
        abort();
    for (int i = 0; i < p->columns; i++)
        p->cell[p->cells++] = render(p->form, cell[i] ? cell[i] : "", true);
}

/* Columns that a cell takes in the output: an escape of roff takes none or one. */
static int width_of(PageForm form, const char *s)
{
    if (form == PAGE_MARKDOWN)
        return columns_of(s);
    int n = 0;
    while (*s)
        if (*s != '\\') {
            n++, s++;
        } else if (s[1] == 'f') {
            s += 3;
        } else {
            s += s[1] == '(' ? 4 : s[1] == '[' ? (int)strcspn(s, "]") + 1 : 2;
            n++;
        }
    return n;
}

/* Writes each row as a definition: the first cell, then the others with their headings. */
static void rows_as_definitions(Page *p)
{
    for (int at = p->columns; at < p->cells; at += p->columns) {
        fputs(".TP\n", p->out);
        put_hard(p->out, p->cell[at], strlen(p->cell[at]));
        putc('\n', p->out);
        for (int c = 1, said = 0; c < p->columns; c++) {
            if (!*p->cell[at + c])
                continue;
            fputs(said++ ? ".br\n" : "", p->out);
            String t = {0};
            if (p->columns > 2) {
                add_text(&t, p->cell[c]);
                add_text(&t, ": ");
            }
            add_text(&t, p->cell[at + c]);
            fill(p, t.s, 0, 0);
            free(t.s);
        }
    }
}

static void print_row(Page *p, const int *width, int row)
{
    const bool markdown = p->form == PAGE_MARKDOWN;
    String t = {0};
    add_text(&t, markdown ? "|" : "");
    for (int c = 0; c < p->columns; c++) {
        const char *s = p->cell[row * p->columns + c];
        const bool last = c == p->columns - 1;
        add_text(&t, markdown ? " " : "");
        add_text(&t, s);
        for (int pad = (width ? width[c] : 0) - width_of(p->form, s); pad > 0 && (markdown || !last); pad--)
            add_char(&t, ' ');
        add_text(&t, markdown ? " |" : last ? "" : "  ");
    }
    if (markdown && columns_of(t.s) > PAGE_LINE)
        too_long(p, "a row of a table", t.s);
    put_hard(p->out, t.s, t.n);
    putc('\n', p->out);
    free(t.s);
}

static void print_table(Page *p)
{
    int width[PAGE_COLUMNS] = {0}, total = 1;
    for (int i = 0; i < p->cells; i++) {
        const int w = width_of(p->form, p->cell[i]);
        width[i % p->columns] = w > width[i % p->columns] ? w : width[i % p->columns];
    }
    for (int c = 0; c < p->columns; c++)
        total += width[c] + 3;
    const char *begin = paragraph(p);
    gap(p, 0);
    if (p->form == PAGE_MAN && total > WIDTH_MAN_TABLE) {
        rows_as_definitions(p);
        return;
    }
    const bool aligned = p->form == PAGE_MAN || total <= WIDTH_ALIGNED;
    if (p->form == PAGE_MAN)
        fprintf(p->out, "%s.nf\n", begin);
    for (int row = 0; row < p->cells / p->columns; row++) {
        print_row(p, aligned ? width : NULL, row);
        if (row > 0 || p->form == PAGE_MAN)
            continue;
        putc('|', p->out);
        for (int c = 0; c < p->columns; c++) {
            for (int i = 0; i < (aligned ? width[c] + 2 : 3); i++)
                putc('-', p->out);
            putc('|', p->out);
        }
        putc('\n', p->out);
    }
    if (p->form == PAGE_MAN)
        fputs(".fi\n", p->out);
}

void page_table_end(Page *p)
{
    print_table(p);
    for (int i = 0; i < p->cells; i++)
        free(p->cell[i]);
    free(p->cell);
    p->cell = NULL;
    p->cells = 0;
}
