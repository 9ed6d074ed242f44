/* error.h -- one message on stderr, exit code 1; and memory that is asked for before the first
 * step only. */
#ifndef ERROR_H
#define ERROR_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    EXIT_STOPPED = 75, /* stopped on request, a checkpoint is saved */
    EXIT_LOST = 76     /* another rank is lost: the last checkpoint is worth another try */
};

/* "PROG: error: ..." on stderr, then exit 1; from any thread. Removes unfinished files. */
void rt_die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* The same with EXIT_LOST. */
void rt_lost(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* Ends like rank `rank`, which has reported the reason. */
void rt_follow(int code, int rank) __attribute__((noreturn));
void rt_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

void rt_said(void);            /* before a good end: dies when standard output could not be written */

/* Progress of a run on standard output, by one thread.  If nobody reads it, the run continues, with one note. */
void rt_print(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* A file that goes away when rt_die, SIGHUP, SIGINT or SIGTERM ends the program, because it is half
 * written, until rt_finished gets the same string, which must live on. A few at a time. */
void rt_unfinished(const char *path);
void rt_end_by_signal(int number); /* a handler: those files go, then the signal does what it does by default */
void rt_finished(const char *path);
/* One whose name others may take: it goes away only while it is the file of this descriptor. */
void rt_unfinished_shared(const char *path, int fd);

/* Who speaks, in front of every message ("rank 2 (node3): "), and whether notes, and errors that all
 * ranks make alike, are its business; what ends the other processes of a run when this one dies:
 * it may last, and may return. */
void rt_speaker(const char *who, bool notes);
void rt_at_death(void (*end)(int code));

/* Every message from here on is a record of this file, too, {"event":"message", ...}; also notes that are not this rank's business
 * to say. */
void rt_keep_messages(int fd);

void *rt_alloc(size_t bytes);  /* zeroed, never NULL; before the first step only */

/* A string of rt_alloc. */
char *rt_format(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
