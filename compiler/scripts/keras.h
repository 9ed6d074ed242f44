/* keras.h -- the two parts of a Keras script: its words (keras_ops.c), recipe and loop (keras_train.c). */
#ifndef KERAS_H
#define KERAS_H
#include "scripts/python.h"

extern const Dialect keras;

#endif
