/* context.h -- where a place of a text is: in which declaration, call and argument.
 *
 * The search uses tokens, not the tree, so that it works while a statement is being typed.
 */
#ifndef LSP_CONTEXT_H
#define LSP_CONTEXT_H
#include "lsp/analysis.h"

typedef struct Frame {  /* an open bracket */
    char mark;          /* ( [ { */
    const char *word;   /* {: the last reserved word before it, such as "train"; else NULL */
    const char *callee; /* (: the name before it, or NULL */
    bool piped;         /* (: a value is passed on to the call: its first argument */
    int argument;       /* commas before the place */
    const char *key;    /* NAME of "NAME =" in the current argument or statement, or NULL */
    const char **given; /* (: names of the arguments so far */
    int ngiven;
} Frame;

enum { CONTEXT_DEPTH = 64 };
typedef struct Context {
    Frame frame[CONTEXT_DEPTH];
    int depth;
    const Token *before; /* the last token before the word at the place, or NULL */
    const Token *word;   /* the name or reserved word that ends at the place or contains it */
    const Token *string; /* that contains the place, or NULL */
    bool comment;
    const char *decl; /* reserved word of the declaration: "model"; NULL: top level */
    Map names;        /* names that the declaration binds before the place */
} Context;

Context context_at(Arena *a, const Analysis *n, int line, int col);
/* The innermost call around the place; NULL: none. */
const Frame *context_call(const Context *c);

#endif
