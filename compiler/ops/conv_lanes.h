/* conv_lanes.h -- stores samples of few channels with eight channels, padded with zeros, for
 * cuDNN with numbers of two bytes.
 *
 * The bf16 engines of cuDNN read groups of eight channels.  For three channels, cuDNN makes a
 * padded copy in its workspace at each call, or uses an engine without tensor cores;
 * bench/GPU.md and bench/first_convolutions.csv compare both.
 */
#ifndef CONV_LANES_H
#define CONV_LANES_H
#include "ir/readers.h"

enum { CONV_LANES = 8 };

/* Sets the attribute `lanes` (numbers of a pixel in memory) of the samples of g when padding pays.
 * only_large: it pays only for large windows (Target.reads_few_channels).  Returns the only
 * convolution that reads the samples; its filters need the same padding.  NULL: the samples are
 * not padded. */
Node *conv_lanes(Graph *g, const Readers *r, bool only_large);

#endif
