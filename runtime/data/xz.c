/* xz.c -- .xz files, by liblzma: linked only into programs that name rt_unpack_xz.
 *
 * Format: The .xz file format 1.1.0, tukaani.org/xz/xz-file-format.txt. A stream ends in an index
 * of its blocks and a footer of 12 bytes with the length of the index. Without the library at build
 * time, each use ends with a message.
 */
#include "base/error.h"
#include "base/whole.h"
#include "data/unpack.h"

#ifdef TENON_LZMA
#include <lzma.h>
#include <stdlib.h>

/* Limit for the dictionary of a file and for its index: xz -9 needs 65 MiB, and a file can request
 * 4 GiB. */
#define MEMORY ((uint64_t)256 << 20)

static const char *text(lzma_ret r)
{
    return r == LZMA_MEM_ERROR ? "no memory is left to unpack it"
           : r == LZMA_MEMLIMIT_ERROR
               ? "it takes more than 256 MiB of memory to unpack it: pack it with xz -9"
           : r == LZMA_FORMAT_ERROR ? "this is not an .xz file"
           : r == LZMA_DATA_ERROR   ? "its compressed data are corrupt"
                                    : "it cannot be unpacked";
}

/* The index of a file that is one stream. */
static lzma_index *read_index(int fd, int64_t bytes)
{
    uint8_t footer[LZMA_STREAM_HEADER_SIZE];
    lzma_stream_flags flags;
    const int64_t at = bytes - LZMA_STREAM_HEADER_SIZE;
    if (at < LZMA_STREAM_HEADER_SIZE ||
        whole_read(fd, footer, sizeof footer, at) != (int64_t)sizeof footer ||
        lzma_stream_footer_decode(&flags, footer) != LZMA_OK ||
        (int64_t)flags.backward_size > at - LZMA_STREAM_HEADER_SIZE)
        return NULL;
    const size_t size = flags.backward_size;
    uint8_t *packed = rt_alloc(size);
    lzma_index *index = NULL;
    uint64_t memory = MEMORY;
    size_t pos = 0;
    if (whole_read(fd, packed, (int64_t)size, at - (int64_t)size) != (int64_t)size ||
        lzma_index_buffer_decode(&index, &memory, NULL, packed, &pos, size) != LZMA_OK)
        index = NULL;
    free(packed);
    return index;
}

static int64_t xz_content(int fd, int64_t bytes)
{
    lzma_index *index = read_index(fd, bytes);
    if (!index)
        return -1;
    const bool whole = (int64_t)lzma_index_file_size(index) == bytes;
    const int64_t n = whole ? (int64_t)lzma_index_uncompressed_size(index) : -1;
    lzma_index_end(index, NULL);
    return n;
}

static void *xz_begin(void)
{
    lzma_stream *s = rt_alloc(sizeof *s);
    *s = (lzma_stream)LZMA_STREAM_INIT;
    return lzma_stream_decoder(s, MEMORY, 0) == LZMA_OK ? s : NULL;
}

static int xz_decode(void *state, const uint8_t **in, size_t *have, uint8_t **out, size_t *room,
                     const char **why)
{
    lzma_stream *s = state;
    s->next_in = *in, s->avail_in = *have;
    s->next_out = *out, s->avail_out = *room;
    const lzma_ret r = lzma_code(s, LZMA_RUN);
    *in = s->next_in, *have = s->avail_in;
    *out = s->next_out, *room = s->avail_out;
    *why = text(r);
    return r == LZMA_STREAM_END                  ? UNPACK_END
           : r == LZMA_OK || r == LZMA_BUF_ERROR ? UNPACK_MORE
                                                 : UNPACK_BROKEN;
}

static void xz_end(void *state)
{
    lzma_end(state);
    free(state);
}
#else

static int64_t xz_content(int fd, int64_t bytes)
{
    (void)fd, (void)bytes;
    rt_die("this version of Tenon was built without liblzma and cannot read .xz: unpack the data "
           "with xz -d, or "
           "install the library (Debian: apt-get install liblzma-dev) and build Tenon again");
}

static void *xz_begin(void)
{
    return NULL;
}

static int xz_decode(void *state, const uint8_t **in, size_t *have, uint8_t **out, size_t *room,
                     const char **why)
{
    (void)state, (void)in, (void)have, (void)out, (void)room;
    *why = "there is no liblzma";
    return UNPACK_BROKEN;
}

static void xz_end(void *state)
{
    (void)state;
}
#endif

const RtUnpack rt_unpack_xz = {xz_content, xz_begin, xz_decode, xz_end};
