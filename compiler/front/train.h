/* train.h -- the train block: applies --set, checks the keys, and makes a Recipe. */
#ifndef TRAIN_H
#define TRAIN_H
#include "front/front.h"
#include "front/lower.h"
#include "front/parse.h"

/* ---- settings.c */

typedef struct Settings {
    Override *model; /* --set model.KEY=value */
    int nmodel;
    Entry *train; /* all other settings, in order */
    int ntrain;
} Settings;

/* Parses the settings of the command line.  Each setting has its own source text, which messages
 * underline.  Returns false after errors. */
bool settings_read(Unit *u, const FrontOptions *o, Settings *out);
/* Applies settings to the entries of a train block. */
void settings_apply(Unit *u, const Settings *s, Decl *train);
/* Reports each model.KEY that is not a parameter of the model. */
void settings_check_model(Unit *u, const Settings *s, const Decl *model);

/* ---- train.c */

/* Checks every key; *loss is the value of that key, or NULL.  measure gets the expressions of
 * Recipe.measure.  Errors are reported. */
void train_read(Unit *u, Decl *train, Recipe *out, Expr **loss, Expr *measure[RT_MEASURES]);
/* The recipe without a train block. */
Recipe train_defaults(const char *model);
/* The names of the keys of a train block. */
const char *const *train_keys(int *n);

/* ---- data.c: the key `data` */

void data_read(Unit *u, DataSpec *d, Expr *e);
/* Names the columns of a table's targets if the recipe does not name them: the only column of a
 * target has the name of the target.  False after reporting. */
bool data_name_columns(const Unit *u, Graph *g);

/* ---- expect.c: the key `expect` */

extern const char *const expect_results[]; /* "test_accuracy", ..., NULL */
/* Which values of the result are better: of an accuracy, larger ones.  Metrics of the recipe r are
 * results, too; NULL: none. */
Better expect_better(const Recipe *r, const char *result);
void expect_read(Unit *u, Recipe *r, Expr *e);
/* Reports an expectation of a metric that the program does not have.  Perplexity is reported if the
 * loss is that of the next token. */
void expect_check(const Unit *u, const Graph *g);
/* The metric of a result: "mae_price" of "test_mae_price".  NULL: there is no such result. */
const char *expect_metric(const Recipe *r, const char *result);
/* Whether the program reports this metric. */
bool expect_reported(const Graph *g, const char *metric);

/* ---- measures.c: the key `metrics` */

/* Reads their names and which values are better; measure gets their expressions. */
void measures_read(Unit *u, Recipe *r, Expr *e, Expr *measure[RT_MEASURES]);
/* The metric of a result of a split, such as "test_near"; NULL: the recipe writes none with this
 * name. */
const Measure *measure_of(const Recipe *r, const char *result);
/* Appends the results SPLIT_NAME of the recipe's metrics to words, which end with NULL. */
const char **measure_results(Arena *a, const Recipe *r, const char *const *word, bool tests,
                             int *n);

/* ---- start.c: the key `start` */

struct Form;
void start_read(Unit *u, Recipe *r, Expr *e, const struct Form *forms);

/* ---- average.c: the key `average` */

void average_check(const Unit *u, const Graph *g); /* reports an average that does not fit */

/* ---- targets.c */

void targets_read(Unit *u, Recipe *r, Expr *e); /* the key `target` */

/* ---- factors.c */

void factors_read(Unit *u, Recipe *r, Expr *e); /* the keys `factors` and `freeze` */
void factors_read_freeze(Unit *u, Recipe *r, Expr *e);

/* ---- form.c: values that are written as a call, such as sgd(lr = 0.1) */

typedef enum {
    WANT_REAL,
    WANT_INT,
    WANT_FLAG,
    WANT_WORD,
    WANT_REALS,
    WANT_RISING,
    WANT_BOUNDS,
    WANT_TEXT,
    WANT_TEXTS,
    WANT_RESULT,
    WANT_METRIC /* NAME = EXPRESSION, several times: measures.c reads it */
} Want;
typedef struct Field {
    const char *name;
    Want want;
    /* offset in the target: double, int64_t, bool, int, double[], double[2], const char *, Texts; a
     * RESULT is a const char *, too; BOUNDS are 0 and 0 if they are not given */
    size_t at;
    double fallback;  /* NAN: required */
    double low, high; /* closed range; `open` excludes high */
    bool open;        /* high itself is not allowed */
    /* WORD: ended by NULL; the value is the index.  RESULT: the results without names of targets */
    const char *const *words;
    size_t count_at;   /* REALS, RISING: offset of the int with their number */
    const char *about; /* a phrase for the manual */
} Field;
enum { FORM_FIELDS = 11 };
typedef struct Form {
    const char *name;
    int tag;
    Field field[FORM_FIELDS];
    const char *about, *formula; /* for the manual: a phrase, and lines of formulas; NULL: none */
} Form;

/* ---- watch.c: results that the keys `keep`, `stop` and `schedule` watch */

extern const char *const watch_results[];   /* "validation_accuracy", ..., NULL */
extern const char *const plateau_results[]; /* the same, and "test_accuracy", ... */
/* Reads the name of such a result; *out is unchanged after an error. */
void watch_read(Unit *u, const Expr *e, const Field *f, const char **out);
/* Completes keep, stop and schedule of the recipe, and reports a result that the program does not
 * have. */
void watch_check(const Unit *u, Graph *g);

/* ---- recipe_forms.c: the tables, each ended by a row without a name */

enum {
    AUGMENT_CROP,
    AUGMENT_SHIFT,
    AUGMENT_FLIP,
    AUGMENT_UPSIDE,
    AUGMENT_ROTATE,
    AUGMENT_SCALE,
    AUGMENT_RESIZED_CROP,
    AUGMENT_CUTOUT,
    AUGMENT_ERASE,
    AUGMENT_BRIGHTNESS,
    AUGMENT_CONTRAST,
    AUGMENT_SATURATION,
    AUGMENT_HUE,
    AUGMENT_MIXUP,
    AUGMENT_CUTMIX,
    AUGMENTS
};
enum { DATA_NAMED, DATA_SYNTHETIC, DATA_IMAGES, DATA_TEXT, DATA_TABLE, DATA_COLUMNS };
typedef struct InitForm {
    int dist, fan;
    double a, b;
} InitForm;
extern const Form optimizer_forms[], schedule_forms[], init_forms[], clip_forms[],
    normalize_forms[], augment_forms[], data_forms[], factor_forms[], start_forms[],
    average_forms[], keep_forms[], stop_forms[], measure_forms[];

/* The keys of a train block: train.c. */
typedef struct Train Train;
typedef struct TrainKey {
    const char *name;
    void (*read)(Train *t, Expr *e);
    const char *example; /* required key: a line such as "batch = 64"; NULL: an optional key */
    const Form *forms;   /* the forms that its value can have, or NULL */
    Field field;         /* the range or the words of a key that is a number or a word */
    const char *const *losses; /* operations that its value can name, or NULL */
    const char *fallback;      /* the default, as words; NULL: that of `field`, or required */
    bool bound;                /* --resume requires the same value */
    const char *about;         /* sentences for the manual */
} TrainKey;
extern const TrainKey train_key_table[];
const TrainKey *train_key_find(const char *name); /* NULL: there is no such key */
const Form *form_find(const Form *form,
                      const char *name); /* form may be NULL; NULL: no such form */
/* The form for a call in the value of a key: the form with this name, else the form NAME, which
 * stands for any name, and for a string if name is NULL. NULL: there is none. */
const Form *form_called(const Form *form, const char *name);
/* The names of a table of forms; returns their number. */
enum { FORM_NAMES = 16 };
int form_names(const Form *form, const char *name[FORM_NAMES]);

/* ---- form.c: reading the forms */

const char *
form_range(Arena *a, const Field *f); /* "at least 0 and below 1", "at least 1", NULL: any number */

/* Finds e among the forms (ended by a NULL name); fills target from its arguments and their
 * defaults.  Returns the form, or NULL after reporting. */
const Form *form_read(Unit *u, Expr *e, const char *what, const Form *form, void *target);
/* the same, when the form is known */
void form_fields(Unit *u, Expr *e, const Form *form, void *target);
const char *form_name(const Expr *e, Span *at); /* NAME, if e is NAME or NAME(...); else NULL */
/* Reads a number in [low, high] for key; false after reporting. */
bool form_number(Unit *u, Expr *e, const char *key, const Field *f, double *out);
/* One of the words of f, as its index; *out is unchanged after an error. */
void form_word(Unit *u, Expr *e, const Field *f, int *out);

/* ---- form_manual.c: the tables as text; words get a mark on both sides, such as "`" */

const char *form_number_text(Arena *a, double v);
const char *form_words(Arena *a, const char *const *word, const char *mark); /* "a, b or c" */
/* The values of a field: "a number, at least 0". */
const char *form_values(Arena *a, const Field *f, const char *mark);
/* The default, as written in a model file; NULL: the field is required, or `about` describes the
 * default. */
const char *form_fallback(Arena *a, const Field *f);
bool form_required(const Field *f);
/* "sgd(lr, momentum = 0, [step])": a field in brackets may be left out.  Lines have `width` columns
 * at most. */
const char *form_signature(Arena *a, const Form *form, int width);

#endif
