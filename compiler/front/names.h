/* names.h -- the names of one declaration while sem.c walks over it. */
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
    Map gone;     /* were in scope inside a body that has ended */
    Map binds;    /* every name that a statement binds: Bound *, counting */
    Bound **live; /* stack of names in scope */
    int nlive;
    int loops, scans;
    bool broken; /* a statement was lost: its name may be the missing one */
    bool returns;
} Sem;

void names_declare(Sem *s, const char *name, Span at);
void names_check(Sem *s, Expr *e); /* e may be NULL */
void names_body(Sem *s, const Body *body);
/* How many calls in e make a layer or a block instance. */
int names_layers(const Sem *s, const Expr *e);
/* With so many errors nobody reads them all: searching for likely names would only cost time. */
bool names_too_many(const Unit *u);

#endif
