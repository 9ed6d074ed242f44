/* plateau.h -- schedule = plateau(...): the learning rate falls when a result does not improve.
 *
 * After each epoch, as in PyTorch's ReduceLROnPlateau with its threshold_mode "rel":
 *
 *   improved if r < best - threshold |best|, or r > best + threshold |best| if a larger r is better
 *   improved: best = r, bad = 0; else bad += 1.  In a cooldown: cooldown -= 1, bad = 0.
 *   bad > patience: rate = max(rate factor, end lr), cooldown = that of the recipe, bad = 0
 *
 * A result that is no number is no improvement.
 */
#ifndef PLATEAU_H
#define PLATEAU_H
#include "train/expect.h"

typedef struct Plateau {
    double rate;           /* of the next epoch, before warm-up */
    double best;           /* NaN: no epoch had a value */
    int64_t bad, cooldown; /* epochs */
} Plateau;

/* The state before the first epoch.  With another schedule, the rate stays the recipe's. */
Plateau plateau_new(const RtRecipe *r);

/* Dies if the schedule watches the validation split, and the data have none. */
void plateau_check(const RtProgram *p, const char *data, bool validated);

/* To be called after an epoch and its evaluation; true if the rate has fallen. */
bool plateau_epoch(Plateau *s, const RtProgram *p, const Result *result);

/* The state as text, for a checkpoint: "validation_loss 0x1.8p-3 0x1p-7 2 0". */
enum { PLATEAU_ROOM = 128 }; /* bytes of the text after the name of the result */
void plateau_text(const Plateau *s, const RtRecipe *r, char *text, size_t room);
/* False if the text is no state of this schedule. */
bool plateau_read(Plateau *s, const RtRecipe *r, const char *text);

#endif
