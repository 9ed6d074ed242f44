/* best.h -- the best epoch of a run so far, by a result of the validation split: the keys `keep`
 * and `stop` of the recipe.
 *
 * keep = best(...) keeps a copy of the weights of the best epoch, in the host's memory.  The copy
 * replaces the weights after the last epoch.
 */
#ifndef BEST_H
#define BEST_H
#include "step/net.h"
#include "train/expect.h"

/* The best epoch by one result.  value NaN: no epoch since `epoch` had a value. */
typedef struct Mark {
    int64_t epoch; /* finished epochs, with this one */
    int64_t total; /* finished steps of the run at the end of the epoch; -1: no value */
    double value;
} Mark;

typedef struct Best {
    const RtProgram *p;
    Mark keep, stop;
    char *weights; /* [kept_bytes], in the layout of `fixed`; NULL: the recipe has no `keep` */
} Best;

/* Dies if the recipe has `keep` or `stop`, and the data have no validation split. */
void best_check(const RtProgram *p, const char *data, bool validated);
void best_open(Best *b, const RtProgram *p);

/* To be called after an epoch and its evaluation.  `fixed` holds the weights of this epoch. */
void best_compare(Best *b, const Result *r, const char *fixed, int64_t epoch, int64_t total);
/* best_waited: number of epochs without a new best value of the result of `stop`. best_ends:
 * whether training ends because of them. */
int64_t best_waited(const Best *b, int64_t epoch);
bool best_ends(const Best *b, int64_t epoch);

/* After the last epoch: puts the kept weights into the network.  False if the network has them
 * already, or if none are kept. */
bool best_restore(const Best *b, Net *n, int64_t epoch);

/* Writes a mark as text, for a checkpoint: "validation_loss 3 1407 0x1.8p-3". */
void best_mark_text(const RtWatch *w, const Mark *m, char *text, size_t room);
/* False if the text is no mark of this result. */
bool best_mark_read(const RtWatch *w, const char *text, Mark *m);

#endif
