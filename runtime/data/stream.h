/* stream.h -- a file read once from front to back, unpacked on the way when it is a .gz or .xz, and
 * compared with its checksum.
 *
 * No byte is allocated after stream_open, but what liblzma wants for a further block; nothing of the
 * file is kept.
 */
#ifndef STREAM_H
#define STREAM_H
#include "rt.h"

typedef struct Stream Stream;

/* Images, numbers and texts that people pack become 2 to 20 times smaller; files that are made to unpack to gigabytes, 1000 times. */
#define STREAM_RATIO 100
#define STREAM_FREE  ((int64_t)64 << 20)

/* The file `directory`/`name`, or that with ".gz" or ".xz" behind it; NULL when there is none. A file
 * SHA256SUMS in the same directory that knows the name makes stream_end compare. */
Stream     *stream_open(const RtProgram *p, const char *directory, const char *name);
const char *stream_path(const Stream *s);
int64_t     stream_room(const Stream *s);             /* bytes that the content cannot exceed: of a packed file STREAM_RATIO times its own, and
                                                       * STREAM_FREE; a longer one is an error, before it takes the memory */
int64_t     stream_content(const Stream *s);          /* bytes of the content, as the file says; dies when it cannot say */
int64_t     stream_read(Stream *s, void *to, int64_t bytes);  /* fewer than asked only at the end */

/* Reads on to the end, compares the checksums, closes; returns how many bytes were passed over.  Where that is more than `most` it
 * returns at once: the caller has an error to report. */
int64_t     stream_end(Stream *s, int64_t most);

#endif
