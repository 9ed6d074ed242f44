/* completion.h -- `tenon completion`: scripts that complete command lines in bash, zsh and fish. */
#ifndef COMPLETION_H
#define COMPLETION_H
#include "tool/command.h"

bool completion_print(const Command *c, Diag *d);

#endif
