/* source.h -- model files as bytes, and places in them. */
#ifndef SOURCE_H
#define SOURCE_H
#include "arena.h"
#include "limits.h"
#include <stdbool.h>

typedef struct Source {
    const char *name; /* as the user wrote it, for messages */
    const char *path; /* canonical; finds repeated and cyclic imports */
    const char *text; /* NUL-terminated copy; CRLF kept, columns count bytes from 1 */
    size_t len;
    int order;    /* 0 = the file named on the command line; imports follow */
    bool shipped; /* comes with Tenon */
} Source;

/* A part of one file. source == NULL: no place in a file, because the compiler made the node. */
typedef struct Span {
    const Source *source;
    int line, col;         /* first byte, from 1 */
    int end_line, end_col; /* one past the last byte */
} Span;

/* Reads a whole file.  Returns NULL and sets *why (arena text) when the file cannot be read, is
 * larger than SOURCE_MAX bytes, or is a directory. */
const Source *source_read(Arena *a, const char *name, const char **why);
/* The same for standard input; messages call it `name`. */
const Source *source_read_stdin(Arena *a, const char *name, const char **why);

/* The unsaved text of an editor for the file `path`, which is canonical (source_canonical). */
typedef struct Unsaved {
    const char *path, *text;
    size_t len;
} Unsaved;
/* Whether there is a file of this name; it may be unreadable. */
bool source_exists(const char *name);
/* The names of the model files (.tn) in a directory, in order of their bytes. */
const char **source_list(Arena *a, const char *directory, int *n);
/* Like source_read, but reads the text of the list `unsaved` in place of its file, which need not
 * exist. */
const Source *source_open(Arena *a, const char *name, const Unsaved *unsaved, int n,
                          const char **why);
/* The absolute path without links, so that two paths to one file compare equal; `name` itself if
 * there is no such file. */
const char *source_canonical(Arena *a, const char *name);

Span span_join(Span a, Span b); /* from the start of a to the end of b */

/* "lenet.tn" of "models/lenet.tn". */
const char *source_base(const Source *s);

/* The text of a line without its line end, for messages and comments in generated code. */
const char *source_line(Arena *a, const Source *s, int line);

#endif
