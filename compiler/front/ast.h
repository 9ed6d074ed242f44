/* ast.h -- the tree of a model file, as written: no names resolved, nothing computed.
 *
 * Every part has the span that a message underlines.  `x |> f(a)` is the call f(x, a).
 */
#ifndef AST_H
#define AST_H
#include "base/diag.h"
#include "front/map.h"
#include <stdint.h>

typedef struct Expr Expr;
typedef struct Stmt Stmt;

typedef enum {
    EX_BAD, /* already reported; its value is poison */
    EX_INT,
    EX_FLOAT,
    EX_BOOL,
    EX_STRING,
    EX_NAME,
    EX_LIST, /* [item, ...] */
    EX_UNARY,
    EX_BINARY, /* op a, a op b */
    EX_INDEX,  /* a[b] */
    EX_FIELD,  /* a.s */
    EX_CALL,   /* a(arg, ...) */
    EX_IF,     /* if arm { } else if arm { } else { } */
    EX_TYPED,  /* name: type[dims], only as the value of a key of a recipe */
    EX_TARGETS /* (target, ...), only as the value of a key of a recipe */
} ExprKind;

typedef enum {
    DO_ADD,
    DO_SUB,
    DO_MUL,
    DO_DIV,
    DO_FLOOR,
    DO_MOD,
    DO_POW,
    DO_EQ,
    DO_NE,
    DO_LT,
    DO_LE,
    DO_GT,
    DO_GE,
    DO_AND,
    DO_OR,
    DO_NOT,
    DO_NEG
} Operator;

const char *operator_text(Operator op); /* "+", "and" */

typedef struct Arg {
    const char *name; /* NULL: positional */
    Span name_span;
    Expr *value;
    bool override; /* from --set: replaces the argument in the file */
} Arg;

typedef struct Exprs {
    Expr **v;
    int n;
} Exprs;
typedef struct Args {
    Arg *v;
    int n;
} Args;
typedef struct Arm {
    Expr *cond, *value;
} Arm; /* cond NULL: the last else */
typedef struct Arms {
    Arm *v;
    int n;
} Arms;

/* price: f32[1] */
typedef struct Typed {
    const char *name, *type;
    Span name_span, type_span;
    bool sized; /* has brackets */
    Exprs dims;
} Typed;

struct Expr {
    ExprKind kind;
    bool bad;   /* an error here is already reported: the value is poison */
    int depth;  /* 1 for a leaf */
    int traced; /* 1 + the index of its last value in the trace (trace.h); 0: none */
    Span span;
    union {
        int64_t i;     /* INT, BOOL */
        double f;      /* FLOAT */
        const char *s; /* STRING, NAME */
        Exprs list;    /* LIST, TARGETS */
        Arms arms;     /* IF */
        Typed *typed;  /* TYPED */
        struct {
            Expr *a; /* operand, or what is called */
            union {
                struct {
                    Expr *b;
                    Operator op;
                };                 /* UNARY, BINARY, INDEX */
                Args args;         /* CALL */
                const char *field; /* FIELD */
            };
        };
    };
};

typedef struct Body {
    Stmt **v;
    int n;
    bool broken;
} Body; /* broken: a statement was lost to a syntax error */
typedef struct Branch {
    Expr *cond;
    Body body;
} Branch; /* cond NULL: else */
typedef struct Branches {
    Branch *v;
    int n;
} Branches;

/* `item in value` in the head of a scan: each step gets one element of the sequence */
typedef struct Item {
    const char *name;
    Span span;
    Expr *value;
} Item;
typedef struct Items {
    Item *v;
    int n;
} Items;

/* The options of a scan, after its sequences: reversed, recompute = every k. */
typedef struct Marks {
    bool reversed;
    Expr *every;
} Marks;

typedef enum { ST_BIND, ST_FOR, ST_IF, ST_RETURN, ST_SCAN, ST_YIELD } StmtKind;
struct Stmt {
    StmtKind kind;
    Span span;        /* FOR, SCAN: its head */
    const char *name; /* BIND, FOR, YIELD */
    Span name_span;
    Expr *value;       /* BIND, YIELD, RETURN; FOR: the list, or the first number */
    Expr *to;          /* FOR: the number after the last one, or NULL */
    Body body;         /* FOR, SCAN; RETURN: a BIND for each of several outputs, value is NULL */
    Items items;       /* SCAN */
    Marks marks;       /* SCAN */
    Branches branches; /* IF */
    bool names_layer;  /* BIND: the value has exactly one layer, which gets `name` (sem.c) */
};

typedef enum {
    TYPE_TENSOR,
    TYPE_INT,
    TYPE_FLOAT,
    TYPE_BOOL,
    TYPE_STRING,
    TYPE_LIST,
    TYPE_INPUT, /* f32[1, 28, 28], i32[80]: the input of a model */
    TYPE_BAD
} Type;

typedef struct ParamDecl {
    const char *name;
    Span span;
    Type type;
    Span type_span;
    const char *type_name; /* NULL: the declaration has no type */
    Exprs dims;
    bool tokens;    /* INPUT: i32, indices of words or characters */
    Expr *fallback; /* NULL: required */
} ParamDecl;
typedef struct ParamDecls {
    ParamDecl *v;
    int n;
} ParamDecls;

typedef struct Entry { /* key = value, key.sub = value (--set only) */
    const char *key, *sub;
    Span key_span, sub_span;
    Expr *value;
    bool override; /* replaced by --set */
} Entry;
typedef struct Entries {
    Entry *v;
    int n;
    bool broken;
} Entries;

typedef struct Decl Decl;
typedef enum { DECL_MODEL, DECL_BLOCK, DECL_OP, DECL_TRAIN, DECL_IMPORT } DeclKind;
struct Decl {
    DeclKind kind;
    const char *name; /* IMPORT: the file, as written */
    Span name_span;
    ParamDecls params;
    Body body;       /* MODEL, BLOCK */
    Expr *formula;   /* OP */
    Entries entries; /* TRAIN */
    bool bad;        /* it has an error: calls of it are poison */
    int mark;        /* sem.c: 0 new, 1 being visited, 2 done */
    Map leaves;      /* sem.c: the bindings whose names become names of layers */
    Expr **calls;    /* sem.c: calls of other declarations */
    int ncalls;
};
/* broken: a declaration was lost to a syntax error */
typedef struct Decls {
    Decl **v;
    int n;
    bool broken;
} Decls;

const char *decl_word(DeclKind kind); /* "model", "block", ... */

#endif
