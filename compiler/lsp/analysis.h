/* analysis.h -- what the compiler knows about one text: messages, tree, values of expressions,
 * tokens, and where each name stands. */
#ifndef LSP_ANALYSIS_H
#define LSP_ANALYSIS_H
#include "front/front.h"
#include "front/sem.h"
#include "front/tokens.h"
#include "front/trace.h"
#include "front/train.h"
#include "lsp/place.h"

typedef enum {
    SYMBOL_FUNCTION, /* a model, block or op: decl */
    SYMBOL_LOCAL,    /* a parameter or variable of decl */
    SYMBOL_OP,       /* an operation of Tenon: op */
    SYMBOL_NUMBER,   /* a function of numbers, such as len */
    SYMBOL_ARG,      /* an argument of op */
    SYMBOL_KEY,      /* a key of a train block: key */
    SYMBOL_FORM,     /* a value of a key: key and form */
    SYMBOL_FIELD,    /* an argument of a form */
    SYMBOL_IMPORT    /* the name of a file: file */
} SymbolKind;

typedef struct Symbol {
    SymbolKind kind;
    Span at;
    const char *name;
    bool defines;
    const Decl *decl;
    const Decl *in;         /* the declaration whose text has it; NULL: none, or a train block */
    const ParamDecl *param; /* LOCAL: the parameter with this name, or NULL */
    const Expr *e;          /* the call, or the value; NULL: none */
    const Op *op;
    const TrainKey *key;
    const Form *form;
    const Field *field;
    const Source *file;
} Symbol;

typedef struct Analysis {
    Arena *arena;
    const Source *source;
    Lines lines;
    Diag *diag;
    const DiagMessage *const *message;
    int nmessage;
    Front front;
    const Unit *unit;
    Trace trace;
    const Token *token;
    int ntoken;
    Symbol *symbol; /* of all files of the unit */
    int nsymbol;
    bool ok;     /* there is no error */
    bool broken; /* a part of the text was lost to a syntax error */
} Analysis;

/* Reads the file `path`, and its imports, with unsaved texts.  The analysis has its own arena. */
Analysis *analysis_new(const char *path, const Unsaved *unsaved, int n, bool bytes);
void analysis_free(Analysis *a); /* a may be NULL */
bool analysis_reads(const Analysis *a, const char *path);

/* symbols.c */
void symbols_find(Analysis *a);
/* The symbol of the analysed file at a place; NULL: none. */
const Symbol *symbol_at(const Analysis *a, int line, int col);
bool symbol_same(const Symbol *a, const Symbol *b);
/* The last value of an expression; NULL: none. */
const Traced *traced_of(const Analysis *a, const Expr *e);
const Traced *traced_before(const Analysis *a, const Traced *t);
/* "(N, 16, 5, 5)"; a number, a list, a layer; NULL: nothing worth showing. */
const char *value_text(Arena *arena, Value v);
bool value_tensors(Value v); /* a tensor, or a list of tensors */
/* The shapes of the values of e, which has at least one value: "(N, 64, 35, 35)", or "(N, 64, 35,
 * 35), 3 other shapes". */
const char *shapes_text(Arena *arena, const Analysis *a, const Expr *e);

#endif
