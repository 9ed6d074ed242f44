/* cuda_group.h -- a launch of several kernels: what follows one another and need not wait for other threads (cuda_touch.h). */
#ifndef CUDA_GROUP_H
#define CUDA_GROUP_H
#include "emit/cuda_stage.h"

/* From here on, until group_close, statements are stages, which wait for what comes behind them; `times`: how often the function that is being
 * written runs in a step. */
void group_open(Writer *w, int64_t times);
void group_close(Writer *w);

/* A statement under its comment, and what it is of (NULL: no node). */
void group_write(Writer *w, const Node *n, const char *comment, const char *statement, const char *indent);

/* A call of a phase: under its comment, when its turn comes. */
void group_call(Writer *w, const Node *n, int *line, const char *indent);

/* What waits is launched. */
void group_settle(Writer *w);

#endif
