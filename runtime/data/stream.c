/* stream.c -- read, hash, inflate; see stream.h. */
#include "data/stream.h"
#include "error.h"
#include "hash.h"
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
    int64_t bytes;  /* of the file */
    bool gz, whole; /* whole: the end of the inflated content is seen */
    z_stream z;
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

static void keep(void *opaque, void *p)
{
    (void)opaque, (void)p;
}

/* Lines of SHA256SUMS: 64 hex digits, two signs, the name. */
static void find_checksum(Stream *s, const char *directory)
{
    const char *name = strrchr(s->path, '/') + 1;
    char *list = rt_format("%s/SHA256SUMS", directory), line[512];
    FILE *f = fopen(list, "re");
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\r\n")] = 0;
        if (strlen(line) > 66 && isspace((unsigned char)line[64]) && strcmp(line + 66, name) == 0)
            for (int i = 0; i < 64; i++)
                s->expected[i] = (char)tolower((unsigned char)line[i]);
    }
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
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno != ENOENT)
        rt_die("%s cannot be opened: %s", path, strerror(errno));
    return fd;
}

Stream *stream_open(const char *directory, const char *name)
{
    char *path = rt_format("%s/%s", directory, name);
    int fd = try_open(path);
    if (fd < 0)
        fd = try_open(path = rt_format("%s/%s.gz", directory, name));
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
    s->z.zfree = keep;
    s->z.opaque = s;
    if (s->gz && inflateInit2(&s->z, 16 + MAX_WBITS) != Z_OK)
        rt_die("%s: zlib could not start", path);
    return s;
}

const char *stream_path(const Stream *s)
{
    return s->path;
}

/* Deflate makes at most 1032 bytes of one. */
int64_t stream_room(const Stream *s)
{
    return s->gz ? s->bytes * 1032 : s->bytes;
}

static int64_t copy(Stream *s, uint8_t *to, int64_t bytes)
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

/* One call of inflate, with input; false at the end of the content. A .gz may hold several
 * members. */
static bool step(Stream *s)
{
    if (s->at == s->have)
        refill(s);
    if (s->have == 0)
        rt_die("%s is truncated: it ends after %lld bytes, inside its compressed data; fetch it "
               "again",
               s->path, (long long)s->bytes);
    s->z.next_in = s->piece + s->at;
    s->z.avail_in = (unsigned)(s->have - s->at);
    const int result = inflate(&s->z, Z_NO_FLUSH);
    s->at = s->have - s->z.avail_in;
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
        rt_die("%s is damaged: %s; fetch it again", s->path,
               s->z.msg ? s->z.msg : "not a gzip file");
    if (result != Z_STREAM_END)
        return true;
    if (s->at == s->have)
        refill(s);
    return s->have && s->piece[s->at] == 0x1f && inflateReset(&s->z) == Z_OK;
}

int64_t stream_read(Stream *s, void *to, int64_t bytes)
{
    if (!s->gz)
        return copy(s, to, bytes);
    int64_t done = 0;
    while (done < bytes && !s->whole) {
        const int64_t left = bytes - done;
        const unsigned n = left < (1 << 30) ? (unsigned)left : 1u << 30;
        s->z.next_out = (uint8_t *)to + done;
        s->z.avail_out = n;
        s->whole = !step(s);
        done += n - s->z.avail_out;
    }
    return done;
}

/* To the end of the content too, where zlib compares a checksum of its own. */
int64_t stream_end(Stream *s)
{
    char found[65];
    int64_t passed = 0, n;
    while ((n = stream_read(s, s->rest, PIECE)) > 0)
        passed += n;
    while (s->have)
        refill(s);
    close(s->fd);
    sha256_end(&s->sha, found);
    if (s->expected[0] && strcmp(found, s->expected) != 0)
        rt_die("%s is not the file that SHA256SUMS beside it lists: its SHA-256 is %s, not %s; "
               "fetch it again, or remove its line from the list",
               s->path, found, s->expected);
    return passed;
}
