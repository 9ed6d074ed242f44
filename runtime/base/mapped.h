/* mapped.h -- mapped files that can change while a run reads them.
 *
 * If a mapped file becomes shorter, or its disk fails, the system sends SIGBUS to the thread that
 * reads.  The handler replaces the rest of that mapping by zeros, so that the current step can end,
 * and records the file.  Code that uses the results checks mapped_broken first: a training step
 * before its update, the other commands before they report.
 */
#ifndef MAPPED_H
#define MAPPED_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Watches `bytes` bytes at `at`, the mapping of file `path`; the string must stay valid.  Call
 * mapped_leave before the memory is unmapped: it dies if the file has broken. */
void mapped_watch(const void *at, int64_t bytes, const char *path);
void mapped_leave(const void *at);
void mapped_renamed(const void *at, const char *path); /* path: the file's new name */

/* Reports that a file is wrong; from any thread.  The first message is kept. */
void mapped_wrong(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The file, what was expected and what is there now; NULL: no file has broken. */
const char *mapped_why(void);
void mapped_check(void); /* dies with mapped_why's message if a file has broken */

extern atomic_bool mapped_is_broken;
static inline bool mapped_broken(void)
{
    return atomic_load_explicit(&mapped_is_broken, memory_order_relaxed);
}

#endif
