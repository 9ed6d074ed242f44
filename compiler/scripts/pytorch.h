/* pytorch.h -- the two parts of a PyTorch script: its words (pytorch_ops.c), recipe and loop (pytorch_train.c). */
#ifndef PYTORCH_H
#define PYTORCH_H
#include "scripts/python.h"

extern const Dialect pytorch;

#endif
