/* unpack.h -- one kind of compressed file, behind functions.
 *
 * A program names the kinds that its data may need (RtProgram.unpack_xz): no other program is linked with the library
 * behind one.  zlib is always there (stream.c).
 */
#ifndef UNPACK_H
#define UNPACK_H
#include "rt.h"

enum { UNPACK_MORE, UNPACK_END, UNPACK_BROKEN };

struct RtUnpack {
    int64_t   (*content)(int fd, int64_t bytes);      /* bytes that the file of that size says to hold, -1: it is damaged */
    void     *(*open)(void);                          /* NULL: no memory */
    /* Takes from in[0 .. have-1], writes to out[0 .. room-1] and moves all four; BROKEN: *why says how. */
    int       (*step)(void *state, const uint8_t **in, size_t *have, uint8_t **out, size_t *room, const char **why);
    void      (*close)(void *state);
};

#endif
