/* memory.h -- large memory: mapped once at the start, and how much of it was ever in use. */
#ifndef MEMORY_H
#define MEMORY_H
#include <stdbool.h>
#include <stdint.h>

#include "constants.h"

enum { MEMORY_SLACK = 4096 };                         /* readable bytes after every mapping */

static inline int64_t memory_round(int64_t bytes)
{
    return (bytes + RT_ALIGN - 1) / RT_ALIGN * RT_ALIGN;
}

/* Zeroed pages, followed by MEMORY_SLACK readable bytes; `touch`: resident at once, so that a
 * plan that cannot be kept fails here and not in the middle of a step. Dies, naming `what`, when
 * there is no room. */
void *memory_map(int64_t bytes, bool touch, const char *what);

/* The first `bytes` of a file, followed by as much as above; `write`: what is written there reaches the file, at the latest by
 * memory_sync_file.  They die, naming `what`, which lives on: a file that breaks later is reported by it (mapped.h). */
void *memory_map_file(int fd, int64_t bytes, bool write, const char *what);
void  memory_sync_file(void *at, int64_t bytes, const char *what);

int64_t memory_peak(void);                            /* largest resident set so far, in bytes */

#endif
