/* whole.h -- reads and writes of a file that go on after a part of their bytes.
 *
 * read and write can transfer less than they should, because of a signal or on a network file
 * system.  A write of the rest says why: for example, that the disk is full.
 */
#ifndef WHOLE_H
#define WHOLE_H
#include <stdbool.h>
#include <stdint.h>

/* The bytes read at offset `at`, fewer than n only if the file ends before; -1: errno says why. */
int64_t whole_read(int fd, void *to, int64_t n, int64_t at);
/* Writes n bytes at offset `at`, or at the file's own offset if at < 0; false: errno says why. */
bool whole_write(int fd, const void *from, int64_t n, int64_t at);

#endif
