/* cache.c -- stores results of builds, and finds them by a hash of their inputs.
 *
 * One directory, one file for each entry, named by its key; the modification time is the time of
 * the last use.  Several compilers may use the directory at once: entries appear by rename and
 * never change.  An entry ends in a hash of its bytes, so an entry that a full disk or a crash has
 * damaged is not used.  A program also runs with this hash at its end.
 */
#include "tool/cache.h"
#include "base/environment.h"
#include "tool/file.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const Span nowhere;
static const char *const suffix[] = {"", ".o", ".plan"}, *const plural[] = {"programs", "objects",
                                                                            "plans"};

/* A hash of bytes by words of eight: text_hash of a program takes a millisecond a megabyte. */
static uint64_t words_hash(const void *bytes, size_t len, uint64_t seed)
{
    const char *p = bytes;
    uint64_t h = 0x9e3779b97f4a7c15u ^ seed, word;
    size_t i = 0;

    for (; i + sizeof word <= len; i += sizeof word) {
        memcpy(&word, p + i, sizeof word);
        h = (h ^ word) * 0xff51afd7ed558ccdu;
        h ^= h >> 32;
    }
    return text_hash(p + i, len - i, h);
}

void key_add(Key *k, const void *bytes, size_t len)
{
    k->a = text_hash(&len, sizeof len, words_hash(bytes, len, k->a));
    k->b = words_hash(bytes, len, text_hash(&k->a, sizeof k->a, k->b + 1));
}

void key_text(Key *k, const char *s)
{
    key_add(k, s, strlen(s));
}

/* ---- the directory */

static const char *cache_place(Arena *a)
{
    const char *own = environment(ENV_TENON_CACHE), *xdg = environment(ENV_XDG_CACHE_HOME),
               *home = environment(ENV_HOME);
    return own    ? own
           : xdg  ? path_join(a, xdg, "tenon")
           : home ? path_join(a, home, ".cache/tenon")
                  : NULL;
}

bool cache_open(Arena *a, Cache *c)
{
    *c = (Cache){.dir = cache_place(a)};
    if (c->dir && dir_make(a, c->dir) == 0 && access(c->dir, R_OK | X_OK) == 0)
        return true;
    c->dir = NULL;
    return false;
}

const char *cache_path(Arena *a, const Cache *c, CacheKind kind, Key k)
{
    return path_join(a, c->dir,
                     arena_printf(a, "%016" PRIx64 "%016" PRIx64 "%s", k.a, k.b, suffix[kind]));
}

/* ---- entries */

enum { SEAL = 22 }; /* "tenon:" and 16 digits */

static const char *seal(Arena *a, const char *bytes, size_t len)
{
    return arena_printf(a, "tenon:%016" PRIx64, words_hash(bytes, len, 0));
}

char *cache_get(Arena *a, Cache *c, CacheKind kind, Key k, size_t *len)
{
    size_t n = 0;
    if (!c->dir)
        return NULL;
    const char *path = cache_path(a, c, kind, k);
    char *bytes = file_read(a, path, &n);
    c->asked[kind]++;
    if (!bytes)
        return NULL;
    if (n <= SEAL || memcmp(bytes + n - SEAL, seal(a, bytes, n - SEAL), SEAL) != 0) {
        unlink(path);
        return NULL;
    }
    utimensat(AT_FDCWD, path, NULL, 0);
    c->hits[kind]++;
    *len = n - SEAL;
    return bytes;
}

bool cache_put(Arena *a, Cache *c, CacheKind kind, Key k, const char *bytes, size_t len)
{
    if (!c->dir)
        return false;
    char *all = arena_alloc(a, len + SEAL);
    memcpy(all, bytes, len);
    memcpy(all + len, seal(a, bytes, len), SEAL);
    c->written = true;
    return file_write(a, cache_path(a, c, kind, k), all, len + SEAL,
                      kind == CACHE_PROGRAM ? 0777 : 0666) == 0;
}

typedef struct Entry {
    const char *path;
    struct timespec used;
    int64_t bytes;
    CacheKind kind;
} Entry;

/* Whether a file of the directory is an entry, or the temporary file of an entry from a killed
 * compiler.  Only these may be removed, because the user can have other files in the directory. */
static bool is_entry(const char *name, CacheKind *kind)
{
    const size_t n = strspn(name, "0123456789abcdef");
    *kind = strncmp(name + n, ".o", 2) == 0      ? CACHE_OBJECT
            : strncmp(name + n, ".plan", 5) == 0 ? CACHE_PLAN
                                                 : CACHE_PROGRAM;
    return n == 32 && (name[n] == 0 || name[n] == '.');
}

static int entries(Arena *a, const char *dir, Entry **entry)
{
    DIR *d = opendir(dir);
    int n = 0;
    *entry = NULL;
    for (struct dirent *e; d && (e = readdir(d));) {
        struct stat s;
        Entry one = {.path = path_join(a, dir, e->d_name)};
        if (!is_entry(e->d_name, &one.kind) || stat(one.path, &s) != 0)
            continue;
        one.used = s.st_mtim;
        one.bytes = s.st_size;
        ARENA_PUSH(a, *entry, n, one);
    }
    if (d)
        closedir(d);
    return n;
}

/* ---- two more files of the directory: the counts and the limit */

typedef struct Counts {
    int64_t hits[CACHE_KINDS], asked[CACHE_KINDS];
} Counts;

static Counts read_counts(int fd)
{
    char text[300] = "";
    Counts n = {0};
    const char *line = pread(fd, text, sizeof text - 1, 0) > 0 ? text : NULL;
    for (int k = 0; line && k < CACHE_KINDS; k++) { /* an older compiler has written fewer kinds */
        if (sscanf(line, "%*s %" SCNd64 " of %" SCNd64, &n.hits[k], &n.asked[k]) != 2)
            break;
        line = strchr(line, '\n');
        line += line != NULL;
    }
    return n;
}

static const char *counts_path(Arena *a, const Cache *c)
{
    return path_join(a, c->dir, "counts");
}

static void add_counts(Arena *a, const Cache *c)
{
    const int fd = open(counts_path(a, c), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return;
    flock(fd, LOCK_EX); /* held until the file is closed */
    Counts n = read_counts(fd);
    Text t = text_new(a);
    for (int k = 0; k < CACHE_KINDS; k++)
        text_printf(&t, "%s %" PRId64 " of %" PRId64 "\n", plural[k], n.hits[k] + c->hits[k],
                    n.asked[k] + c->asked[k]);
    if (pwrite(fd, t.s, t.len, 0) < 0 || ftruncate(fd, (off_t)t.len) != 0)
        unlink(counts_path(a, c)); /* the disk is full: counting starts again from 0 */
    close(fd);
}

static int64_t limit_of(Arena *a, const Cache *c)
{
    size_t len = 0;
    const char *text = file_read(a, path_join(a, c->dir, "limit"), &len);
    const int64_t bytes = text && len ? text_size(arena_strndup(a, text, strcspn(text, "\n"))) : -1;
    return bytes < 0 ? CACHE_LIMIT : bytes;
}

/* ---- keeping the limit */

static int by_age(const void *x, const void *y)
{
    const struct timespec *a = &((const Entry *)x)->used, *b = &((const Entry *)y)->used;
    if (a->tv_sec != b->tv_sec)
        return a->tv_sec < b->tv_sec ? -1 : 1;
    return (a->tv_nsec > b->tv_nsec) - (a->tv_nsec < b->tv_nsec);
}

static void trim(Arena *a, const char *dir, int64_t limit, const char *keep)
{
    Entry *entry;
    const int n = entries(a, dir, &entry);
    int64_t total = 0;
    for (int i = 0; i < n; i++)
        total += entry[i].bytes;
    if (n && total > limit)
        qsort(entry, (size_t)n, sizeof *entry, by_age);
    for (int i = 0; i < n && total > limit; i++)
        if ((!keep || strcmp(entry[i].path, keep) != 0) && unlink(entry[i].path) == 0)
            total -= entry[i].bytes;
}

void cache_close(Arena *a, const Cache *c, const char *keep)
{
    if (!c->dir)
        return;
    add_counts(a, c);
    if (c->written)
        trim(a, c->dir, limit_of(a, c), keep);
}

/* ---- the command */

static bool need(Arena *a, Cache *c, Diag *d)
{
    if (cache_open(a, c))
        return true;
    const char *dir = cache_place(a);
    if (dir)
        diag_error(d, nowhere, "cannot use the cache directory %s: %s", dir, strerror(errno));
    else
        diag_error(d, nowhere,
                   "there is no cache directory: TENON_CACHE, XDG_CACHE_HOME and HOME are not set");
    diag_help(d, "set TENON_CACHE=DIR; tenon build works without a cache");
    return false;
}

bool cache_report(Arena *a, Diag *d)
{
    Cache c;
    Entry *entry;
    Counts count = {0};
    int number[CACHE_KINDS] = {0};
    int64_t bytes[CACHE_KINDS] = {0};
    if (!need(a, &c, d))
        return false;
    const int n = entries(a, c.dir, &entry), fd = open(counts_path(a, &c), O_RDONLY | O_CLOEXEC);
    for (int i = 0; i < n; i++)
        number[entry[i].kind]++, bytes[entry[i].kind] += entry[i].bytes;
    if (fd >= 0) {
        count = read_counts(fd);
        close(fd);
    }
    printf("%s%s\n", c.dir, access(c.dir, W_OK) == 0 ? "" : "  (read-only)");
    for (int k = 0; k < CACHE_KINDS; k++) {
        printf("  %-10s %7d  %9s", plural[k], number[k], text_bytes(a, bytes[k]));
        if (count.asked[k])
            printf("   found %s of %s (%.0f %%)", text_commas(a, count.hits[k]),
                   text_commas(a, count.asked[k]),
                   100.0 * (double)count.hits[k] / (double)count.asked[k]);
        putchar('\n');
    }
    printf("  %-10s %7s  %9s of %s\n", "all", "", text_bytes(a, bytes[0] + bytes[1] + bytes[2]),
           text_bytes(a, limit_of(a, &c)));
    return true;
}

bool cache_clear(Arena *a, Diag *d)
{
    Cache c;
    Entry *entry;
    if (!need(a, &c, d))
        return false;
    const int n = entries(a, c.dir, &entry);
    for (int i = 0; i < n; i++)
        if (unlink(entry[i].path) != 0 && errno != ENOENT) {
            diag_error(d, nowhere, "cannot remove %s: %s", entry[i].path, strerror(errno));
            return false;
        }
    unlink(counts_path(a, &c));
    return true;
}

bool cache_limit(Arena *a, const char *size, Diag *d)
{
    Cache c;
    const int64_t bytes = text_size(size);
    if (bytes < 0) {
        diag_error(d, nowhere, "--limit needs a size, not '%s'", size);
        diag_help(d, "for example --limit 500M or --limit 2G (powers of 1000)");
        return false;
    }
    if (!need(a, &c, d))
        return false;
    const char *path = path_join(a, c.dir, "limit"),
               *text = arena_printf(a, "%" PRId64 "\n", bytes);
    const int error = file_write(a, path, text, strlen(text), 0666);
    if (error) {
        diag_error(d, nowhere, "cannot write %s: %s", path, strerror(error));
        return false;
    }
    trim(a, c.dir, bytes, NULL);
    return true;
}
