/* diag.h -- messages: collected while compiling, printed once, in source order.
 *
 *   lenet5.tn:7:35: error: conv2d kernel 7x7 is larger than its input 5x5
 *       7 |     h3 = conv2d(h2, 120, kernel = 7)
 *         |                                   ^
 *         = note: the input is (N, 16, 5, 5), made by avg_pool on line 6
 *         = help: use kernel <= 5, or a larger pad
 *
 * The first line is complete without the notes.  It begins in lower case, has no full stop, and
 * gives the wrong size and the limit.  The help comes last.
 */
#ifndef DIAG_H
#define DIAG_H
#include "source.h"
#include <stdint.h>
#include <stdio.h>

typedef enum { DIAG_AUTO, DIAG_ALWAYS, DIAG_NEVER } DiagColor;
typedef struct Diag Diag;

Diag *diag_new(Arena *a, DiagColor color);
Arena *diag_arena(Diag *d);

void diag_error(Diag *d, Span at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void diag_warn(Diag *d, Span at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* These functions attach a note or a help to the last error or warning. */
void diag_note(Diag *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void diag_help(Diag *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Number of messages so far. */
int diag_count(const Diag *d);
/* Attaches a note to each message from number `since` on that is in another file than `call`: where
 * the op or block `name` of that file is called. */
void diag_note_call(Diag *d, int since, Span call, const char *name);
/* Adds the help "did you mean 'kernel'?" with the nearest candidate; adds nothing when no
 * candidate is near. */
void diag_suggest(Diag *d, const char *word, const char *const *candidate, int n);

/* Attaches a repair to the last error or warning: the underlined text `was` becomes `now`. */
void diag_replace(Diag *d, const char *was, const char *now);
/* The same for an int. */
void diag_replace_int(Diag *d, int64_t was, int64_t now);
/* Attaches a repair: the line `now` is added after the text at `after`. */
void diag_append(Diag *d, Span after, const char *now);

int diag_errors(const Diag *d); /* number of errors so far */
/* Prints all messages in source order (file order, line, column), and identical messages once.
 * After 100 errors, one line gives the number of the others.  Clears the list. */
void diag_print(Diag *d, FILE *f);

/* A message as data, for an editor. */
typedef struct DiagExtra {
    const char *kind, *text; /* "note" or "help" */
} DiagExtra;
typedef struct DiagRepair {
    const char *was, *now; /* was NULL: `now` is a new line after `at` */
    Span at;
} DiagRepair;
typedef struct DiagMessage {
    bool error;
    Span at;
    const char *text;
    DiagExtra *extra; /* notes and helps, in order */
    int nextra;
    DiagRepair *repair;
    int nrepair;
    int serial;
} DiagMessage;
/* All messages in source order, identical messages once.  They stay in the list of d. */
const DiagMessage *const *diag_list(Diag *d, int *n);

#endif
