/* unpack.h -- the interface of a library for one kind of compressed file.
 *
 * A program names the kinds that its data can need (RtProgram.unpack_xz), and only such a program
 * is linked with the library. zlib is in every program (stream.c).
 */
#ifndef UNPACK_H
#define UNPACK_H
#include "rt.h"

enum { UNPACK_MORE, UNPACK_END, UNPACK_BROKEN };

struct RtUnpack {
    /* Size of the content according to a file of `bytes` bytes; -1: the file is damaged. */
    int64_t (*content)(int fd, int64_t bytes);
    void *(*open)(void); /* NULL: no memory */
    /* Reads in[0 .. have-1], writes out[0 .. room-1], and advances all four; BROKEN: *why is the
     * reason. */
    int (*step)(void *state, const uint8_t **in, size_t *have, uint8_t **out, size_t *room,
                const char **why);
    void (*close)(void *state);
};

#endif
