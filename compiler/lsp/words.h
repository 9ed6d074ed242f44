/* words.h -- texts about declarations, operations and recipes, from the tables of the compiler. */
#ifndef LSP_WORDS_H
#define LSP_WORDS_H
#include "lsp/analysis.h"

const char *words_param(Arena *a, const ParamDecl *p);  /* "filters: int = 64" */
const char *words_declaration(Arena *a, const Decl *d); /* "block conv(x, filters: int)" */
const char *words_comment(Arena *a, const Decl *d);     /* the comment above it, or "" */
const char *words_field(Arena *a, const Field *f);      /* "momentum = 0" */
/* The text of a table without the targets of its links: "[factors](#factors)" is "factors". */
const char *words_plain(Arena *a, const char *text);
const char *words_argument(Arena *a, const OpArg *g); /* "pad = 0" */

#endif
