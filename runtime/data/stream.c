/* stream.c -- read, hash, unpack; see stream.h. */
#include "data/stream.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/whole.h"
#include "data/unpack.h"
#include "files/names.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { PIECE = 1 << 16, INFLATE_ROOM = 1 << 16 };

struct Stream {
    char *path;
    int fd;
    int64_t bytes; /* of the file */
    int64_t unpacked;
    bool gz, whole; /* whole: the end of the unpacked content has been reached */
    z_stream z;
    const RtUnpack *xz; /* NULL: the file is not an .xz */
    void *unxz;
    Sha256 sha;
    char expected[65]; /* checksum, or "" */
    uint8_t piece[PIECE], rest[PIECE];
    size_t have, at;                      /* bytes in piece, and how many are used */
    _Alignas(16) char room[INFLATE_ROOM]; /* what zlib allocates */
    size_t used;
};

static void *give(void *opaque, unsigned items, unsigned size)
{
    Stream *s = opaque;
    const size_t bytes = ((size_t)items * size + 15) / 16 * 16;
    if (bytes > sizeof s->room - s->used)
        return NULL;
    s->used += bytes;
    return s->room + s->used - bytes;
}

static void keep_memory(void *opaque, void *p)
{
    (void)opaque, (void)p;
}

/* Lines of SHA256SUMS: 64 hex digits, two signs, the name. */
static void find_checksum(Stream *s, const char *directory)
{
    const char *name = strrchr(s->path, '/') + 1;
    char *list = rt_format("%s/" FILE_SUMS, directory), line[512];
    FILE *f = fopen(list, "re");
    if (!f && errno != ENOENT)
        rt_die("%s cannot be opened: %s", list, strerror(errno));
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\r\n")] = 0;
        if (strlen(line) > 66 && isspace((unsigned char)line[64]) && strcmp(line + 66, name) == 0)
            for (int i = 0; i < 64; i++)
                s->expected[i] = (char)tolower((unsigned char)line[i]);
    }
    if (f && ferror(f))
        rt_die("%s cannot be read: %s", list, strerror(errno));
    if (f)
        fclose(f);
}

static void refill(Stream *s)
{
    ssize_t n;
    do
        n = read(s->fd, s->piece, PIECE);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        rt_die("%s cannot be read: %s", s->path, strerror(errno));
    s->have = (size_t)n;
    s->at = 0;
    if (s->expected[0])
        sha256_add(&s->sha, s->piece, s->have);
}

static int try_open(const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno != ENOENT)
        rt_die("%s cannot be opened: %s", path, strerror(errno));
    return fd;
}

/* Opens the first of NAME, NAME.gz and NAME.xz that exists; *path is its path. */
static int open_any(const char *directory, const char *name, char **path)
{
    static const char *const ending[] = {"", ".gz", ".xz"};
    int fd = -1;
    for (int i = 0; fd < 0 && i < 3; i++)
        fd = try_open(*path = rt_format("%s/%s%s", directory, name, ending[i]));
    return fd;
}

/* Makes a first step without room for its result, so that liblzma allocates its memory now. */
static void begin_xz(Stream *s, const RtProgram *p)
{
    static const uint8_t magic[6] = {0xFD, '7', 'z', 'X', 'Z', 0};
    const uint8_t *in = s->piece;
    uint8_t *out = s->rest;
    size_t room = 0;
    const char *why;
    if (s->have < sizeof magic || memcmp(s->piece, magic, sizeof magic) != 0)
        return;
    if (!p->unpack_xz)
        rt_die("%s is packed with xz, which this program cannot read: unpack it with xz -d, or "
               "build the program with data = cifar10",
               s->path);
    s->xz = p->unpack_xz;
    s->unxz = s->xz->content(s->fd, s->bytes) < 0 ? NULL : s->xz->open();
    if (!s->unxz)
        rt_die("%s is truncated or damaged: it does not end as an .xz file does; fetch it again",
               s->path);
    if (s->xz->step(s->unxz, &in, &s->have, &out, &room, &why) == UNPACK_BROKEN)
        rt_die("%s is damaged: %s; fetch it again", s->path, why);
    s->at = (size_t)(in - s->piece);
    s->have += s->at;
}

Stream *stream_open(const RtProgram *p, const char *directory, const char *name)
{
    char *path;
    const int fd = open_any(directory, name, &path);
    struct stat info;
    if (fd < 0)
        return NULL;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
        rt_die("%s is not a file", path);
    Stream *s = rt_alloc(sizeof *s);
    s->path = path;
    s->fd = fd;
    s->bytes = info.st_size;
    sha256_new(&s->sha);
    find_checksum(s, directory);
    refill(s);
    s->gz = s->have >= 2 && s->piece[0] == 0x1f && s->piece[1] == 0x8b;
    s->z.zalloc = give;
    s->z.zfree = keep_memory;
    s->z.opaque = s;
    if (s->gz && inflateInit2(&s->z, 16 + MAX_WBITS) != Z_OK)
        rt_die("%s: zlib could not start", path);
    begin_xz(s, p);
    return s;
}

const char *stream_path(const Stream *s)
{
    return s->path;
}

int64_t stream_room(const Stream *s)
{
    return s->xz || s->gz ? s->bytes * STREAM_RATIO + STREAM_FREE : s->bytes;
}

static void check_content(const Stream *s, int64_t content, const char *what)
{
    if (content > stream_room(s))
        rt_die("%s is damaged: it %s %lld bytes, more than %d times its own %lld bytes plus %lld; "
               "if this is right, unpack the file with %s -d",
               s->path, what, (long long)content, STREAM_RATIO, (long long)s->bytes,
               (long long)STREAM_FREE, s->xz ? "xz" : "gzip");
}

/* The size of the content of a .gz file, which stands at its end: 32 bits, the lowest byte
 * first. */
static int64_t gzip_content(const Stream *s)
{
    uint8_t b[4];
    if (s->xz)
        return s->xz->content(s->fd, s->bytes);
    if (!s->gz)
        return s->bytes;
    if (s->bytes < 18 || whole_read(s->fd, b, 4, s->bytes - 4) != 4)
        rt_die("%s is truncated: a gzip file has more than %lld bytes; fetch it again", s->path,
               (long long)s->bytes);
    return (int64_t)b[3] << 24 | b[2] << 16 | b[1] << 8 | b[0];
}

int64_t stream_content(const Stream *s)
{
    const int64_t bytes = gzip_content(s);
    check_content(s, bytes, "says that it holds");
    return bytes;
}

static int64_t copy_bytes(Stream *s, uint8_t *to, int64_t bytes)
{
    int64_t done = 0;
    while (done < bytes && s->have) {
        if (s->at == s->have) {
            refill(s);
            continue;
        }
        const int64_t left = (int64_t)(s->have - s->at),
                      n = bytes - done < left ? bytes - done : left;
        memcpy(to + done, s->piece + s->at, (size_t)n);
        s->at += (size_t)n;
        done += n;
    }
    return done;
}

/* Calls inflate once, with input, for *out; false at the end of the content. A .gz file can have
 * several members. */
static bool inflate_step(Stream *s, uint8_t **out, size_t *room)
{
    s->z.next_in = s->piece + s->at;
    s->z.avail_in = (unsigned)(s->have - s->at);
    s->z.next_out = *out;
    s->z.avail_out = (unsigned)*room;
    const int result = inflate(&s->z, Z_NO_FLUSH);
    s->at = s->have - s->z.avail_in;
    *out = s->z.next_out;
    *room = s->z.avail_out;
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
        rt_die("%s is damaged: %s; fetch it again", s->path,
               s->z.msg ? s->z.msg : "not a gzip file");
    if (result != Z_STREAM_END)
        return true;
    if (s->at == s->have)
        refill(s);
    return s->have && s->piece[s->at] == 0x1f && inflateReset(&s->z) == Z_OK;
}

static bool xz_step(Stream *s, uint8_t **out, size_t *room)
{
    const uint8_t *in = s->piece + s->at;
    size_t left = s->have - s->at;
    const char *why = "";
    const int result = s->xz->step(s->unxz, &in, &left, out, room, &why);
    s->at = s->have - left;
    if (result == UNPACK_BROKEN)
        rt_die("%s is damaged: %s; fetch it again", s->path, why);
    return result == UNPACK_MORE;
}

int64_t stream_read(Stream *s, void *to, int64_t bytes)
{
    if (!s->gz && !s->xz)
        return copy_bytes(s, to, bytes);
    uint8_t *out = to, *const end = out + bytes;
    while (out < end && !s->whole) {
        const int64_t left = end - out;
        const uint8_t *before = out;
        size_t room = left < (1 << 30) ? (size_t)left : 1u << 30;
        if (s->at == s->have)
            refill(s);
        if (s->have == 0)
            rt_die("%s is truncated: it ends after %lld bytes, inside its compressed data; fetch "
                   "it again",
                   s->path, (long long)s->bytes);
        s->whole = !(s->xz ? xz_step : inflate_step)(s, &out, &room);
        s->unpacked += out - before;
        check_content(s, s->unpacked, "holds at least");
    }
    return out - (uint8_t *)to;
}

static int64_t skip(Stream *s, int64_t bytes)
{
    int64_t passed = 0, n = 1;
    for (; passed < bytes && n > 0; passed += n)
        n = stream_read(s, s->rest, bytes - passed < PIECE ? bytes - passed : PIECE);
    return passed;
}

int64_t stream_rows(Stream *s, void *to, int64_t size, const uint32_t *row, int64_t n,
                    int64_t first)
{
    int64_t bytes = 0, next = first; /* the next row of the file */
    if (!row)
        return stream_read(s, to, n * size);
    for (int64_t i = 0, run; i < n; i += run, next = row[i - 1] + 1) {
        for (run = 1; i + run < n && row[i + run] == row[i] + run;)
            run++;
        bytes += skip(s, (row[i] - next) * size);
        bytes += stream_read(s, (char *)to + i * size, run * size);
    }
    return bytes;
}

/* Reads to the end of the content, where zlib and liblzma compare their own checksums. */
int64_t stream_end(Stream *s, int64_t most)
{
    char found[65];
    const int64_t passed = skip(s, most + 1);
    while (passed <= most && s->have)
        refill(s);
    close(s->fd);
    if (s->xz)
        s->xz->close(s->unxz);
    if (passed > most)
        return passed;
    sha256_end(&s->sha, found);
    if (s->expected[0] && strcmp(found, s->expected) != 0)
        rt_die("%s is not the file that SHA256SUMS beside it lists: its SHA-256 is %s, not %s; "
               "fetch it again, or remove its line from the list",
               s->path, found, s->expected);
    return passed;
}
