/* loader.h -- a thread beside the training ones: reads the test set while training begins,
 * lists the next epoch's order. */
#ifndef LOADER_H
#define LOADER_H

typedef struct Loader Loader;

Loader *loader_new(void);
void    loader_wait(Loader *l);                       /* until all jobs are done */

/* Jobs are done in the order of posting; at most 4 wait. */
void    loader_post(Loader *l, void (*job)(void *), void *arg);

#endif
