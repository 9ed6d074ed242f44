/* page.h -- writes one description of a reference page as Markdown or as a man page.
 *
 * A text may hold two inline marks, those of Markdown: `code` and [words](target).  Every other character stands for
 * itself: the writer escapes what Markdown or roff would interpret.  Words that begin with -- or TENON_ become code
 * without a mark, so that help texts of the programs' tables need none.  Text is wrapped, and no line is longer than
 * PAGE_LINE columns; code and rows of tables that would be longer end the program with a message.
 *
 *   Page p;
 *   page_begin(&p, out, PAGE_MAN, "tenon-build", "tenon build", "compile a model to a program");
 *   page_section(&p, "Options");
 *   page_define(&p, "--batch", "N", "number of samples in a step");
 *   page_end(&p);
 *
 * Needs only libc, so that generators of the compiler's half and of the programs' half can share it.
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
    char   **cell;                                    /* the open table: headings, then rows; owned */
    int      columns, cells;
    int      list;                                    /* the last thing printed was an item of a list */
} Page;

/* The head of a page.  `name` is the man page's ("tenon-build"), `title` the Markdown page's ("tenon build").
 * `brief` is one phrase without a full stop: the NAME line of a man page, the first sentence of a Markdown page. */
void page_begin(Page *p, FILE *out, PageForm form, const char *name, const char *title, const char *brief);
void page_end(Page *p);

void page_section(Page *p, const char *title);        /* ##, .SH */
void page_subsection(Page *p, const char *title);     /* ###, .SS */

void page_paragraph(Page *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
void page_item(Page *p, const char *format, ...) __attribute__((format(printf, 2, 3))); /* of a list */

/* `--batch N` and what it means.  `value` may be NULL; `text` has inline marks. */
void page_define(Page *p, const char *name, const char *value, const char *text);

/* Lines as they are, with a line break at the end of each.  `language` is "sh", "tenon", "c", "python" or "text". */
void page_code(Page *p, const char *language, const char *text);

/* A table: headings, then rows with as many cells, then the end.  Cells have inline marks; a | inside `code` of a cell
 * becomes a comma. */
void page_table(Page *p, int columns, const char *const *heading);
void page_row(Page *p, const char *const *cell);
void page_table_end(Page *p);

#endif
