/* page.h -- writes one description of a reference page as Markdown or as a man page.
 *
 * A text can contain two inline marks of Markdown: `code` and [words](target).  All other characters are literal: the
 * writer escapes those that Markdown or roff would interpret.  Words that begin with -- or TENON_ become code without a
 * mark, so that help texts of tables need no marks.  Text is wrapped, and no line is longer than PAGE_LINE columns;
 * code and rows of tables that would be longer end the program with a message.
 *
 *   Page p;
 *   page_begin(&p, out, PAGE_MAN, "tenon-build", "tenon build", "compile a model to a program");
 *   page_section(&p, "Options");
 *   page_define(&p, "--batch", "N", "number of samples in a step");
 *   page_end(&p);
 *
 * It needs only libc, so that the pages about the compiler and the pages about programs can share it.
 */
#ifndef PAGE_H
#define PAGE_H
#include <stdio.h>

enum { PAGE_LINE = 140, PAGE_COLUMNS = 8 };

typedef enum PageForm { PAGE_MARKDOWN, PAGE_MAN } PageForm;

typedef struct Page {
    FILE    *out;
    PageForm form;
    const char *name;                                 /* for messages */
    char   **cell; /* cells of the open table: headings, then rows; owned */
    int      columns, cells;
    int      list;                                    /* the last thing printed was an item of a list */
    int      fresh;                                   /* the last thing printed was a heading */
} Page;

/* Writes the head of a page.  `name` is for man pages ("tenon-build"), `title` is for Markdown ("tenon build").
 * `brief` is one phrase without a full stop: the NAME line of a man page, the first sentence of a Markdown page. */
void page_begin(Page *p, FILE *out, PageForm form, const char *name, const char *title, const char *brief);
void page_end(Page *p);

void page_section(Page *p, const char *title);        /* ##, .SH */
void page_subsection(Page *p, const char *title);     /* ###, .SS */

void page_paragraph(Page *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
void page_item(Page *p, const char *format, ...) __attribute__((format(printf, 2, 3))); /* of a list */

/* Defines `--batch N`.  `value` may be NULL; `text` has inline marks. */
void page_define(Page *p, const char *name, const char *value, const char *text);

/* Writes lines unchanged, each with a line break at its end.  `language` is "sh", "tenon", "c", "python" or "text". */
void page_code(Page *p, const char *language, const char *text);

/* A table: headings, then rows with as many cells, then the end.  Cells have inline marks; a | inside `code` of a cell
 * becomes a comma. */
void page_table(Page *p, int columns, const char *const *heading);
void page_row(Page *p, const char *const *cell);
void page_table_end(Page *p);

#endif
