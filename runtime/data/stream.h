/* stream.h -- a file read once from front to back, inflated on the way when it is a .gz, and
 * compared with its checksum.
 *
 * No byte is allocated after stream_open; nothing of the file is kept.
 */
#ifndef STREAM_H
#define STREAM_H
#include <stdint.h>

typedef struct Stream Stream;

/* The file `directory`/`name`, or that with ".gz" behind it; NULL when there is neither. A file
 * SHA256SUMS in the same directory that knows the name makes stream_end compare. */
Stream     *stream_open(const char *directory, const char *name);
const char *stream_path(const Stream *s);
int64_t     stream_room(const Stream *s);             /* bytes that the content cannot exceed */
int64_t     stream_read(Stream *s, void *to, int64_t bytes);  /* fewer than asked only at the end */

/* Reads on to the end, compares the checksums, closes; returns how many bytes were passed over. */
int64_t     stream_end(Stream *s);

#endif
