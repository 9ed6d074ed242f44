/* gpus.h -- NVIDIA's GPUs of this machine, as the driver's management library (NVML) knows them; without it there are none. */
#ifndef SWEEP_GPUS_H
#define SWEEP_GPUS_H
#include "base/text.h"

/* A line a GPU is added: "gpu 0: NAME, 80 GiB, at most 1980 MHz". */
void gpus_look(Text *t);

/* What the first n GPUs that programs see ($CUDA_VISIBLE_DEVICES, where it has numbers) have used since the driver was loaded,
 * in J; NAN when one of them does not tell (before Volta). */
double gpus_joules(int n);

#endif
