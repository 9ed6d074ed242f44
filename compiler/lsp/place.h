/* place.h -- places in a text as the protocol counts them, and addresses of files.
 *
 * The protocol counts lines from 0, and in a line UTF-16 units from 0; the compiler counts both
 * from 1, and bytes.  A client can choose to count bytes, too.
 */
#ifndef LSP_PLACE_H
#define LSP_PLACE_H
#include "base/source.h"
#include "lsp/json.h"

/* A counted position. */
typedef struct LineCursor {
    int line, units; /* line from 0; units of the protocol before the offset */
    size_t offset;
} LineCursor;

typedef struct Lines {
    const char *text;
    size_t len;
    size_t *start; /* offset of each line */
    int n;
    bool bytes;         /* the client counts bytes */
    LineCursor *cursor; /* the position counted last: the next one often follows it in its line */
} Lines;

Lines lines_new(Arena *a, const char *text, size_t len, bool bytes);
/* Finds the offset of a position of the protocol, at most the end of its line; false if it is no
 * position. */
bool lines_offset(const Lines *l, const cJSON *position, size_t *offset);
/* The line and the column of an offset, as the compiler counts them. */
void lines_place(const Lines *l, size_t offset, int *line, int *col);
size_t lines_at(const Lines *l, int line, int col); /* the offset of a place of the compiler */

cJSON *position_json(const Lines *l, int line, int col);
cJSON *range_json(const Lines *l, Span at);
cJSON *edit_json(Arena *a, const Lines *l, Span at, const char *text); /* a TextEdit */
bool span_contains(Span s, int line, int col);                         /* its end counts, too */
bool span_same(Span a, Span b);

/* The path of a file: address; another address is its own path. */
const char *uri_path(Arena *a, const char *uri);
const char *uri_of(Arena *a, const char *path);

#endif
