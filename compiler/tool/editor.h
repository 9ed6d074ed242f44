/* editor.h -- `tenon lsp`, which the program tenon-lsp executes. */
#ifndef EDITOR_H
#define EDITOR_H
#include "tool/command.h"

/* Replaces this process by tenon-lsp.  Returns only after an error, with false. */
bool editor_start(const Command *c, Diag *d);

#endif
