/* conv_lanes.h -- samples of few channels, for cuDNN in two bytes a number: they lie as EIGHT channels, zeros behind their own.
 *
 * Its engines for bf16 read channels by eights.  Of three it makes such a copy at each call, in its workspace, or takes an engine without
 * tensor cores; bench/GPU.md and bench/first_convolutions.csv compare both.
 */
#ifndef CONV_LANES_H
#define CONV_LANES_H
#include "ir/readers.h"

enum { CONV_LANES = 8 };

/* Gives the samples of g the attribute `lanes` where that pays: numbers of a pixel in memory.  Returns the one convolution that reads
 * them, whose filters have to lie so, too; NULL: they lie as they are. */
Node *conv_lanes(Graph *g, const Readers *r, Half type);

#endif
