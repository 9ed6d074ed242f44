/* output.h -- writes that can fail or block: a full pipe, a pipe without a reader, a full disk. */
#ifndef OUTPUT_H
#define OUTPUT_H
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

/* Call before the first open.  Opens descriptors 0, 1 and 2 if the process was started without
 * them, so that no other file gets these numbers.  Writing to 1 or 2 still fails (EBADF), and so
 * does reading from 0. */
void output_begin(void);

/* From now on, writes stop waiting 1 s after *stop is not 0. */
void output_watch(const volatile sig_atomic_t *stop);
bool output_stopping(void); /* whether *stop is not 0 */
void output_hurry(void);    /* the same limit of 1 s from now on: this process is ending */

/* Writes n bytes and waits while a pipe is full; up to PIPE_BUF bytes are one write.  Returns false
 * after a failure, with errno; EAGAIN: the time limit of output_watch or output_hurry is over. */
bool output_write(int fd, const char *bytes, size_t n);

#endif
