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

/* The file `directory`/`name`, or that with ".gz" or ".xz" behind it; NULL when there is none. A file
 * SHA256SUMS in the same directory that knows the name makes stream_end compare. */
Stream     *stream_open(const RtProgram *p, const char *directory, const char *name);
const char *stream_path(const Stream *s);
int64_t     stream_room(const Stream *s);             /* bytes that the content cannot exceed */
int64_t     stream_content(const Stream *s);          /* bytes of the content, as the file says; dies when it cannot say */
int64_t     stream_read(Stream *s, void *to, int64_t bytes);  /* fewer than asked only at the end */

/* Reads on to the end, compares the checksums, closes; returns how many bytes were passed over. */
int64_t     stream_end(Stream *s);

#endif
