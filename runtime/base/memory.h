/* memory.h -- large memory, mapped once at the start, and the peak of memory in use. */
#ifndef MEMORY_H
#define MEMORY_H
#include <stdbool.h>
#include <stdint.h>

#include "constants.h"

enum { MEMORY_SLACK = 4096 }; /* readable bytes after every mapping */

static inline int64_t memory_round(int64_t bytes)
{
    return (bytes + RT_ALIGN - 1) / RT_ALIGN * RT_ALIGN;
}

/* Maps zeroed pages, followed by MEMORY_SLACK readable bytes.  touch: make the pages resident now,
 * so that a plan that does not fit fails here and not in the middle of a step.  Dies and names
 * `what` if there is no room. */
void *memory_map(int64_t bytes, bool touch, const char *what);

/* Maps the first `bytes` bytes of a file, followed by MEMORY_SLACK readable bytes or more.  write:
 * changes go to the file, at the latest in memory_sync_file.  On an error, both functions die and
 * name `what`.  The string must stay valid, because mapped.h uses it in later messages. */
void *memory_map_file(int fd, int64_t bytes, bool write, const char *what);
void memory_sync_file(void *at, int64_t bytes, const char *what);

/* Gives the pages inside these bytes back to the system.  Pages of a file are read again when they
 * are needed; others become zero. */
void memory_forget(const void *at, int64_t bytes);

int64_t memory_peak(void); /* largest resident set so far, in bytes; 0: unknown */

#endif
