/* stream.h -- a file that is read once from start to end, unpacked if it is a .gz or .xz, and
 * compared with its checksum.
 *
 * Nothing is allocated after stream_open, except by liblzma for a further block. Nothing of the
 * file is kept.
 */
#ifndef STREAM_H
#define STREAM_H
#include "rt.h"

typedef struct Stream Stream;

/* A packed file is refused if its content is longer than STREAM_RATIO times its bytes plus
 * STREAM_FREE bytes. Compression makes ordinary images, numbers and texts 2 to 20 times smaller. A
 * file that was made to fill the memory is 1000 times smaller than its content. */
#define STREAM_RATIO 100
#define STREAM_FREE  ((int64_t)64 << 20)

/* Opens the file `directory`/`name`, or the same with ".gz" or ".xz"; NULL if there is none. If a
 * file SHA256SUMS in the directory names it, stream_end compares the checksum. */
Stream *stream_open(const RtProgram *p, const char *directory, const char *name);
const char *stream_path(const Stream *s);
/* Upper bound of the bytes of the content: for a packed file, STREAM_RATIO times its bytes plus
 * STREAM_FREE.  A longer content is an error before memory is taken for it. */
int64_t stream_room(const Stream *s);
/* Bytes of the content, as the file states them; dies if it does not. */
int64_t stream_content(const Stream *s);
int64_t stream_read(Stream *s, void *to, int64_t bytes); /* fewer than asked only at the end */
/* Reads rows of `size` bytes one after the other to `to`, and skips the rows between them.  row: n
 * ascending indices, of which `first` is the next row of the file; NULL: the next n rows.  Returns
 * the number of bytes that it read and skipped. */
int64_t stream_rows(Stream *s, void *to, int64_t size, const uint32_t *row, int64_t n,
                    int64_t first);

/* Reads to the end, compares the checksums, and closes the file; returns the number of bytes that
 * it skipped. If this number exceeds `most`, it returns at once: the caller reports an error. */
int64_t stream_end(Stream *s, int64_t most);

#endif
