/* parse.h -- turns text into a tree; declarations that the lexer, the token filter and the grammar
 * share. */
#ifndef PARSE_H
#define PARSE_H
#include "front/ast.h"

/* A token as the grammar gets it, or a comment. */
typedef struct Lexeme {
    int token; /* a token of the grammar, or LEXEME_COMMENT */
    Span at;
} Lexeme;

enum { LEXEME_COMMENT = -1 };

typedef struct Lexemes {
    Lexeme *v; /* in the order of the text */
    int n;
} Lexemes;

typedef struct Parser {
    Arena *arena;
    Diag *diag;
    const Source *source;
    void *scanner; /* the state of flex */
    int line, col; /* of the next byte */

    int start;  /* first token, which selects the grammar; 0: it has been read */
    int last;   /* last token for the grammar */
    int nahead; /* tokens read ahead; the last one is the next token */
    int ahead[2];
    Span ahead_span[2];
    void *ahead_value; /* the values of these tokens: YYSTYPE[2] */
    unsigned reserved; /* bits of the reserved words that were used as names and reported */
    /* line where the lexer dropped a character and reported it: no syntax error is reported
     * there */
    int odd_line;
    bool wanted_closer; /* an unclosed '{' was reported: further ones are not */

    char bracket[DEPTH_BRACKETS];
    Span opened[DEPTH_BRACKETS];
    int depth;
    bool fatal; /* no more messages about this text */
    bool keeps; /* every token and comment is stored in `lexemes` */
    Lexemes lexemes;

    Decls decls; /* the results */
    Entry setting;
} Parser;

/* The declarations of a file.  Errors go to d; the tree has the statements without a syntax
 * error. */
Decls parse_file(Arena *a, Diag *d, const Source *s);
/* The tokens and comments of a file, for the formatter.  Reports syntax errors; false after an
 * error. */
bool parse_lexemes(Arena *a, Diag *d, const Source *s, Lexemes *out);
/* Parses the text of one --set: "optimizer.lr=0.1".  false after an error. */
bool parse_setting(Arena *a, Diag *d, const Source *s, Entry *out);

/* Constructors of tree nodes, which the grammar calls. */
Expr *expr_new(Parser *p, ExprKind kind, Span at);
Expr *expr_binary(Parser *p, Operator op, Expr *a, Expr *b, Span at);
Expr *expr_unary(Parser *p, Operator op, Expr *a, Span at);
Expr *expr_index(Parser *p, Expr *a, Expr *b, Span at);
Expr *expr_field(Parser *p, Expr *a, const char *field, Span at);
Expr *expr_targets(Parser *p, Exprs items, Span at);
/* dims NULL: without brackets */
Expr *expr_typed(Parser *p, const char *name, Span name_at, const char *type, Span type_at,
                 const Exprs *dims, Span at);
Expr *expr_list(Parser *p, Exprs items, Span at);
Expr *expr_if(Parser *p, Arms arms, Span at);
Expr *expr_call(Parser *p, Expr *callee, Args args, Span at);
Expr *expr_pipe(Parser *p, Expr *x, Expr *into); /* x |> into */
Stmt *stmt_bind(Parser *p, const char *name, Span at, Expr *value, Span whole);
Stmt *stmt_return(Parser *p, Expr *value, Span whole);
/* Several outputs, each a BIND.  stmt_output: an output that is written without NAME =; it is a
 * variable, and has the name of this variable. */
Stmt *stmt_outputs(Parser *p, Body outputs, Span whole);
Stmt *stmt_output(Parser *p, Expr *value);
/* `to` is NULL for a loop over the list `from`; messages underline `head` */
Stmt *stmt_for(Parser *p, const char *name, Span at, Expr *from, Expr *to, Body body, Span head);
Stmt *stmt_scan(Parser *p, Items items, Marks marks, Body body, Span head);
/* These functions set the options of a scan, which follow its sequences.  Any other word is an
 * error. */
void mark_reversed(Parser *p, Marks *m, const char *word, Span at);
void mark_every(Parser *p, Marks *m, const char *key, Span key_at, const char *word, Span at,
                Expr *steps);
void mark_number(Parser *p, const char *key, Span key_at, int64_t steps,
                 Span at); /* reports a number without 'every' */
Stmt *stmt_yield(Parser *p, const char *name, Span at, Expr *value, Span whole);
Stmt *stmt_if(Parser *p, Branches branches, Span whole);
Decl *decl_add(Parser *p, DeclKind kind, const char *name, Span at);
ParamDecl param_make(Parser *p, const char *name, Span at);
void param_type(Parser *p, ParamDecl *param, const char *type, Span at, const Exprs *dims);

/* Called by the lexer for each comment. */
void parse_comment(Parser *p, Span at);
/* Whether a declaration begins with this token. */
bool parse_declares(int token);
/* Called by the grammar after a syntax error: closes the brackets ( and [ of the lost statement, so
 * that newlines end statements again. */
void parse_recover(Parser *p);
/* The innermost open bracket, or NULL. */
const Span *parse_open(const Parser *p, char *bracket);

#endif
