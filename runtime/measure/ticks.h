/* ticks.h -- where the time of a step goes: the closed account of bench --layers, and the events
 * of --trace.
 *
 * Every thread's time between the begin and the end of a step falls to exactly one entry: a call,
 * what a unit does outside its calls, waiting in a phase (for it to begin, for the last unit of
 * another thread, for its end to be seen), the gathering of the batch, or the time between phases,
 * when one thread works alone.  So all entries add up to threads x wall.
 */
#ifndef TICKS_H
#define TICKS_H
#include "files/log.h"
#include "rt.h"

/* Entries after the calls, in this order. */
typedef enum { TICKS_OTHER, TICKS_FORK, TICKS_IDLE, TICKS_JOIN, TICKS_DATA, TICKS_ALONE, TICKS_WAITS } Wait;

/* A slice of a thread's time: entry k of [0, ncall + TICKS_WAITS), nanoseconds. */
typedef struct Event { int64_t begin, end; int entry; } Event;

/* One thread's sums and events; `first` and `end` of its units in the current phase, 0: none yet. */
typedef struct Lane {
    int64_t *sum;                                     /* [ncall + TICKS_WAITS] nanoseconds */
    int64_t  first, end;
    Event   *event;                                   /* room for `room`; NULL: no trace */
    int64_t  nevent, room;
    int64_t  ncall;
    char     gap[64];                                 /* lanes do not share a cache line */
} Lane;

typedef struct Ticks {
    const RtProgram *p;
    int      threads;
    int64_t  steps;                                   /* finished ones */
    int64_t  began, phase, between, wall;             /* of the step, of the phase, since when one thread works alone; sum of steps */
    Lane    *lane;
} Ticks;

enum { TRACE_STEPS = 20 };                            /* --trace: at most */

/* Room for the events of `traced` steps; 0: sums only. */
Ticks *ticks_new(const RtProgram *p, int threads, int64_t traced);
void   ticks_free(Ticks *t);

/* The main thread, around a step: it begins, the batch has been gathered, it is over. */
void ticks_step_begin(Ticks *t);
void ticks_batch_ready(Ticks *t);
void ticks_step_end(Ticks *t);

/* Around a phase (main thread) and around a unit (its own thread); t may be NULL. */
void ticks_phase_begin(Ticks *t);
void ticks_phase_end(Ticks *t);
void ticks_unit_begin(Ticks *t, int thread);
void ticks_unit_end(Ticks *t, int thread);

/* "conv1", or "idle: no unit left". */
const char *ticks_name(const RtProgram *p, int entry);

/* The account beside the peak (GFLOP/s of all threads) and the prediction; and as records. */
void ticks_print(const Ticks *t, double peak);
void ticks_log(const Ticks *t, Log *log, double peak);

/* trace.c: the events as Chrome's trace-event JSON, a row a thread (opens in Perfetto). */
void trace_write(const Ticks *t, const char *path);

#endif
