/* gpus.h -- the NVIDIA GPUs of this machine, from the driver's management library (NVML); without NVML there are none. */
#ifndef SWEEP_GPUS_H
#define SWEEP_GPUS_H
#include "base/text.h"

/* Adds a line for each GPU: "gpu 0: NAME, 80 GiB, at most 1980 MHz". */
void gpus_look(Text *t);

/* Energy in J that the first n GPUs visible to programs ($CUDA_VISIBLE_DEVICES, if it has numbers) have used since the driver
 * was loaded; NAN if one of them does not report it (before Volta). */
double gpus_joules(int n);

#endif
