/* new.h -- `tenon new`: writes a model file to begin with. */
#ifndef NEW_H
#define NEW_H
#include "tool/command.h"

bool new_model(const Command *c, Diag *d);

#endif
