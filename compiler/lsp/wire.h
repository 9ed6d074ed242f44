/* wire.h -- messages of the Language Server Protocol over two descriptors: a header with the
 * length, then JSON. */
#ifndef LSP_WIRE_H
#define LSP_WIRE_H
#include "base/arena.h"
#include <stdbool.h>
#include <stdint.h>

enum { WIRE_LARGEST = 64 << 20, WIRE_HEADER = 8 << 10 }; /* bytes of a message, of its header */

typedef struct Wire {
    int in, out;
    char bytes[1 << 16]; /* bytes that were read, and not used */
    size_t from, to;
    bool ended; /* the client has closed its end */
} Wire;

typedef enum {
    WIRE_MESSAGE,
    WIRE_HUGE, /* the message was larger than WIRE_LARGEST, and was skipped */
    WIRE_BAD,  /* the header has no length: the next message cannot be found */
    WIRE_END   /* no further message */
} WireKind;

/* Waits for a message; its text ends with NUL. */
WireKind wire_read(Wire *w, Arena *a, char **text, size_t *len);
/* Writes a message.  false if the client reads no more. */
bool wire_write(Wire *w, const char *text);
/* Waits until the client has sent something, or `other` (-1: none) can be read, or the time is
 * over; negative: no limit.  Returns whether the client has sent something, or has ended. */
bool wire_wait(const Wire *w, int other, int milliseconds);

bool wire_ready(int fd);  /* something can be read, or its writer has ended */
int64_t wire_clock(void); /* milliseconds since a fixed moment in the past */

#endif
