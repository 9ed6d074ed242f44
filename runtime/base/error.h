/* error.h -- messages on stderr, the end of a program after an error, and memory.
 *
 * Functions that end the program print one message, remove unfinished files and exit.
 */
#ifndef ERROR_H
#define ERROR_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    EXIT_STOPPED = 75, /* stopped on request; a checkpoint is saved */
    EXIT_LOST = 76     /* another rank is lost; a restart from the last checkpoint can succeed */
};

/* Prints "PROG: error: ..." and exits with 1; from any thread. */
void rt_die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* The same, but exits with EXIT_LOST. */
void rt_lost(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* Ends with the exit code of rank `rank`, which has reported the reason; EXIT_LOST if code is not
 * 1 .. 125. */
void rt_follow(int code, int rank) __attribute__((noreturn));
/* Prints a message without "error: ", and returns. */
void rt_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Call before a normal exit: dies if standard output could not be written. */
void rt_said(void);

/* Writes progress of a run to standard output; one thread only.  If nobody reads it, the run
 * continues after one note. */
void rt_print(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Registers a file that is being written: rt_die, SIGHUP, SIGINT and SIGTERM remove it, until
 * rt_finished gets the same string.  The string must stay valid until then.  At most 64 files.  A
 * directory likewise: it is removed if it is empty then. */
void rt_unfinished(const char *path);
void rt_finished(const char *path);
/* The same for a name that another run can take: the file is removed only if it is still the one
 * of descriptor fd.  One file only. */
void rt_unfinished_shared(const char *path, int fd);
/* A signal handler: removes the registered files, then lets the signal have its default effect. */
void rt_end_by_signal(int number);

/* Says who speaks. who: put before each message ("rank 2 (node3): ").  notes: whether this process
 * prints notes, and errors that occur on all ranks. */
void rt_speaker(const char *who, bool notes);
/* Called when this process dies, to end the other processes of the run.  It has 5 seconds. */
void rt_at_death(void (*end)(int code));

/* From now on each message is also a record in this file, {"event":"message", ...}.  Notes that
 * this process does not print are recorded, too. */
void rt_keep_messages(int fd);

/* Returns zeroed memory, never NULL: dies if there is none.  To be called before the first step
 * only. */
void *rt_alloc(size_t bytes);

/* A formatted string in memory of its own; never NULL. */
char *rt_format(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
