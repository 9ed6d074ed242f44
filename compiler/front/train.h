/* train.h -- the train block: read, overridden by --set, checked, and turned into a Recipe. */
#ifndef TRAIN_H
#define TRAIN_H
#include "front/front.h"
#include "front/lower.h"
#include "front/parse.h"

/* ---- settings.c */

typedef struct Settings {
    Override *model;                                  /* --set model.KEY=value */
    int       nmodel;
    Entry    *train;                                  /* everything else, in order */
    int       ntrain;
} Settings;

/* The settings of the command line as trees; each has its own text for the caret.  false after
 * errors. */
bool settings_read(Unit *u, const FrontOptions *o, Settings *out);
/* Puts them over the entries of a train block. */
void settings_apply(Unit *u, const Settings *s, Decl *train);
/* Reports those model.KEY that no parameter took. */
void settings_check_model(Unit *u, const Settings *s, const Decl *model);

/* ---- train.c */

/* Checks every key; *loss is the value of that key, or NULL.  Errors are reported. */
void train_read(Unit *u, Decl *train, Recipe *out, Expr **loss);
/* What holds without a train block. */
Recipe train_defaults(const char *model);
/* The keys of a train block. */
const char *const *train_keys(int *n);

/* ---- factors.c */

void factors_read(Unit *u, Recipe *r, Expr *e);       /* the keys `factors` and `freeze` */
void factors_read_freeze(Unit *u, Recipe *r, Expr *e);

/* ---- form.c: values that are written as a call, such as sgd(lr = 0.1) */

typedef enum { WANT_REAL, WANT_INT, WANT_FLAG, WANT_WORD, WANT_REALS, WANT_RISING, WANT_TEXT } Want;
typedef struct Field {
    const char *name;
    Want        want;
    size_t      at;                 /* offset in the target: double, int64_t, bool, int, double[], const char * */
    double      fallback;                             /* NAN: must be given */
    double      low, high;                            /* closed range; see below */
    bool        open;                                 /* high itself is outside */
    const char *const *words;                      /* WORD: ended by NULL; the value is the index */
    size_t      count_at;                            /* REALS, RISING: offset of the int that counts them */
} Field;
enum { FORM_FIELDS = 8 };
typedef struct Form { const char *name; int tag; Field field[FORM_FIELDS]; } Form;

/* Finds e among the forms (ended by a NULL name), fills target from its arguments and their
 * defaults. The form, or NULL after reporting. */
const Form *form_read(Unit *u, Expr *e, const char *what, const Form *form, void *target);
void form_fields(Unit *u, Expr *e, const Form *form, void *target);   /* when the form is known */
const char *form_name(const Expr *e, Span *at);       /* of NAME or NAME(...), else NULL */
/* A number in [low, high] for key; false after reporting. */
bool form_number(Unit *u, Expr *e, const char *key, const Field *f, double *out);
/* One of the words of f, as its index; *out is left alone after an error. */
void form_word(Unit *u, Expr *e, const Field *f, int *out);

#endif
