/* setting.h -- the table of a matrix's settings, for the code that reads values. */
#ifndef SWEEP_SETTING_H
#define SWEEP_SETTING_H
#include "sweep/plan.h"
#include "sweep/token.h"

typedef enum {
    SETTING_COUNTS, /* Counts: a list of whole numbers */
    SETTING_WORDS,  /* Words: a list of frameworks */
    SETTING_TEXTS,  /* Words: a list of texts */
    SETTING_AXES,   /* Words: a list of texts KEY=VALUE,VALUE (axis.c) */
    SETTING_COUNT,  /* int64_t */
    SETTING_TEXT,   /* const char * */
    SETTING_FLAG    /* bool: yes or no */
} SettingKind;

struct Setting {
    const char *name, *value; /* "batch", "LIST" */
    SettingKind kind;
    size_t field;    /* offset in Matrix */
    int least;       /* least allowed number */
    const char *all; /* a word for 0, or NULL */
    const char *help;
};

bool setting_read(Reader *r, Matrix *m, const Setting *s); /* after the '=' */

#endif
