/* screen.h -- curves of training as text for a terminal. */
#ifndef SWEEP_SCREEN_H
#define SWEEP_SCREEN_H
#include "sweep/curves.h"

typedef struct Screen {
    int columns, rows; /* rows: 0 = any number */
    bool utf8;         /* points as dots of Braille characters, eight in a character */
    bool color;        /* a colour for each run */
} Screen;

/* The size and the abilities of standard output.  $COLUMNS goes before the terminal's width.  The
 * width is 100 if nothing says it. */
Screen screen_of_stdout(bool color);
/* Adds two lines for each run, and charts of the loss and of up to two more metrics.  Runs are told apart by
 * colours, else by letters: small for the training set, capital for the test set. */
void screen_draw(Text *t, const Screen *s, const RunLog *run, int n);

#endif
