/* loader.h -- a background thread: reads the test set while training begins, and computes the next
 * epoch's order. */
#ifndef LOADER_H
#define LOADER_H

typedef struct Loader Loader;

Loader *loader_new(void);
void loader_wait(Loader *l); /* until all jobs are done */

/* Jobs run one after another, in the order of posting.  Waits while 4 jobs are pending. */
void loader_post(Loader *l, void (*job)(void *), void *arg);

#endif
