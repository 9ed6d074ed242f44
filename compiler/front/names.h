/* names.h -- the names of a declaration while sem.c visits it. */
#ifndef NAMES_H
#define NAMES_H
#include "front/sem.h"

typedef struct Bound {
    const char *name;
    Span at;
    int uses;
    bool in_loop;
    Stmt *stmt;
} Bound;

typedef struct Sem {
    Unit *u;
    Decl *decl;   /* NULL for a lone expression */
    Map names;    /* in scope here: Bound * */
    Map gone;     /* names of bodies that have ended, for messages */
    Map binds;    /* every name that a statement binds, with its count: Bound * */
    Bound **live; /* stack of names in scope */
    int nlive;
    int loops, scans;
    bool broken; /* a syntax error has removed a statement, which may bind a missing name */
    bool returns;
    const Stmt *first_return; /* NULL: none so far */
} Sem;

void names_declare(Sem *s, const char *name, Span at);
void names_check(Sem *s, Expr *e); /* e may be NULL */
void names_body(Sem *s, const Body *body);
/* The number of calls in e that make a layer or a block instance. */
int names_layers(const Sem *s, const Expr *e);
/* Whether there are so many errors that a search for likely names would only take time. */
bool names_too_many(const Unit *u);

#endif
