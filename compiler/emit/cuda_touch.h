/* cuda_touch.h -- which memory a stage of a step that is one launch touches, and in which order (cuda_steps.h).
 *
 * A stage whose threads each take the numbers that they themselves have written, or that nobody else writes, need not wait for the
 * others.  So a touch says how its numbers are shared out, where that is known: all that follow one order belong to the same threads.
 */
#ifndef CUDA_TOUCH_H
#define CUDA_TOUCH_H
#include "emit/writer.h"

enum { MEMORY_FIXED, MEMORY_SCRATCH, MEMORY_SHARD, MEMORY_METRIC, MEMORY_SAMPLES, MEMORY_NEXT, MEMORIES, STAGE_ARGUMENTS = 24 };

/* MEMORY_SAMPLES: those of this step; MEMORY_NEXT: of the next one.  Bytes from .. to - 1 of one memory.  order: as the text that opens the loop over a thread's own, "FOR_EACH" or "dense_results(Dense{ .n = 64,
 * .k = 784, .o = 128 }", of so many numbers, which are all of it; NULL: no such order. */
typedef struct Touch {
    int memory;
    int64_t from, to, count;
    const char *order;
    bool writes;
} Touch;

/* What a statement of stages says of some of its arguments: bit i of which, that the i'th follows `order` of so many numbers. */
typedef struct Order {
    const char *text;
    int64_t count;
    unsigned which;
} Order;

/* What "LOCAL(real, DENSE1) + 64" names; false: no memory of the plan. */
bool touch_of(const Writer *w, const char *text, size_t len, Touch *t);
/* The same, of so many numbers in that order, if they are all of it. */
bool touch_in_order(const Writer *w, const char *text, size_t len, Order o, Touch *t);
/* Arguments or parameters, split at the commas outside of parentheses; their number. */
int touch_split(Arena *a, const char *list, const char *part[STAGE_ARGUMENTS]);
/* What the call at `s` touches: "dense_1_stage(y, a, b)", of whose arguments some follow one order, others another.  Their number. */
int touches_of(const Writer *w, const char *s, Order o, Order other, Touch touch[STAGE_ARGUMENTS]);
/* Is there a number that one of them writes and the other touches by another thread? */
bool touch_conflict(const Touch *a, const Touch *b);

#endif
