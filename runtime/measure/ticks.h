/* ticks.h -- the time of a step: the complete account of bench --layers, and the events of --trace.
 *
 * Each moment of a thread between the start and the end of a step belongs to exactly one entry: a
 * call; the rest of a unit; waiting in a phase (for its start, for the last unit of another thread,
 * for its end); the gathering of the batch; or the time between phases, in which one thread works
 * alone. So all entries add up to threads x wall.
 */
#ifndef TICKS_H
#define TICKS_H
#include "files/log.h"
#include "rt.h"

/* Entries after the calls, in this order. */
typedef enum {
    TICKS_OTHER,
    TICKS_FORK,
    TICKS_IDLE,
    TICKS_JOIN,
    TICKS_DATA,
    TICKS_ALONE,
    TICKS_WAITS
} Wait;

/* A time slice of a thread: entry k of [0, ncall + TICKS_WAITS), in nanoseconds. */
typedef struct Event {
    int64_t begin, end;
    int entry;
} Event;

/* Sums and events of a thread. first, end: times at which its first unit of the current phase began
 * and its last unit ended; 0: no unit yet. */
typedef struct Lane {
    int64_t *sum; /* [ncall + TICKS_WAITS] nanoseconds */
    int64_t first, end;
    Event *event; /* room for `room`; NULL: no trace */
    int64_t nevent, room;
    int64_t ncall;
    char gap[64]; /* lanes do not share a cache line */
} Lane;

typedef struct Ticks {
    const RtProgram *p;
    int threads;
    int64_t steps;   /* finished ones */
    int64_t began;   /* start of the step */
    int64_t phase;   /* start of the phase */
    int64_t between; /* start of the time in which one thread works alone */
    int64_t wall;    /* sum over steps */
    Lane *lane;
} Ticks;

enum { TRACE_STEPS = 20 }; /* --trace: at most */

/* traced: number of steps whose events are kept; 0: only sums are kept. */
Ticks *ticks_new(const RtProgram *p, int threads, int64_t traced);
void ticks_free(Ticks *t);

/* Called by the main thread: a step begins, its batch has been gathered, the step has ended. */
void ticks_step_begin(Ticks *t);
void ticks_batch_ready(Ticks *t);
void ticks_step_end(Ticks *t);

/* Called around a phase by the main thread, and around a unit by its thread; t may be NULL. */
void ticks_phase_begin(Ticks *t);
void ticks_phase_end(Ticks *t);
void ticks_unit_begin(Ticks *t, int thread);
void ticks_unit_end(Ticks *t, int thread);

/* "conv1", or "idle: no unit left". */
const char *ticks_name(const RtProgram *p, int entry);

/* Prints the account with the peak (GFLOP/s of all threads) and the prediction; also writes
 * records. */
void ticks_print(const Ticks *t, double peak);
void ticks_log(const Ticks *t, Log *log, double peak);

/* trace.c: writes the events in Chrome's trace-event JSON, a row for each thread (for Perfetto). */
void trace_write(const Ticks *t, const char *path);

#endif
