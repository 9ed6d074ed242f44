/* mapped.h -- files that are read where they are mapped, while a run goes on, and what happens when one of them changes.
 *
 * Where a mapped file has become shorter, or its disk fails, the system sends SIGBUS to the thread that reads.  Its handler
 * puts zeros in the place of the rest of that mapping, so that the step at hand can end, and notes the file.  Whoever uses
 * the results looks at mapped_broken first: train.c before it updates anything, the other commands before they report.
 */
#ifndef MAPPED_H
#define MAPPED_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* `path` lives on.  mapped_leave before the memory is unmapped; it dies when the file broke in the meantime. */
void mapped_watch(const void *at, int64_t bytes, const char *path);
void mapped_leave(const void *at);
void mapped_renamed(const void *at, const char *path);      /* the file has that name now */

/* Reports that a file is wrong; from any thread, the first message stays. */
void mapped_wrong(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

const char *mapped_why(void);  /* the file, what was expected and what is there; NULL: all is well */
void        mapped_check(void);                       /* dies with that */

extern atomic_bool mapped_is_broken;
static inline bool mapped_broken(void)
{
    return atomic_load_explicit(&mapped_is_broken, memory_order_relaxed);
}

#endif
