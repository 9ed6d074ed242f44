/* output.h -- writing to places that may not take it: a full pipe, a pipe without a reader, a full disk. */
#ifndef OUTPUT_H
#define OUTPUT_H
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

/* Before the first open: descriptors 0, 1 and 2 that the process was started without are taken, so that no other file gets
 * them.  Writing to 1 or 2 fails as before (EBADF), reading from 0, too. */
void output_begin(void);

/* From here on, no write waits for long once *stop is not 0. */
void output_watch(const volatile sig_atomic_t *stop);
bool output_stopping(void);                           /* *stop is not 0 */
void output_hurry(void);                              /* the same from here on, stop or not: this process is ending */

/* Writes all n bytes; up to PIPE_BUF of them are one write.  Waits for a full pipe.  Otherwise false, and errno says why: EAGAIN
 * when the run was asked to stop and the pipe stayed full for a second. */
bool output_write(int fd, const char *bytes, size_t n);

#endif
