/* mxnet.h -- the two parts of a script for MXNet's Gluon: its words (mxnet_ops.c), recipe and loop (mxnet_train.c). */
#ifndef MXNET_H
#define MXNET_H
#include "scripts/python.h"

extern const Dialect mxnet;

#endif
