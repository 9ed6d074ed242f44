/* cache.c -- programs already compiled, found again by what they were made from.
 *
 * One directory, one file a program, named by its key; the time of modification is that of the last use.
 * Several compilers may work on it at once: entries appear by rename and are never changed.
 */
#include "tool/cache.h"
#include "tool/file.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void key_add(Key *k, const void *bytes, size_t len)
{
    k->a = text_hash(&len, sizeof len, text_hash(bytes, len, k->a));
    k->b = text_hash(bytes, len, text_hash(&k->a, sizeof k->a, k->b + 1));
}

const char *cache_dir(Arena *a)
{
    const char *own = getenv("TENON_CACHE"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    const char *dir = own && *own              ? own
                      : xdg && *xdg            ? path_join(a, xdg, "tenon")
                      : home && *home          ? path_join(a, home, ".cache/tenon")
                                               : NULL;
    return dir && dir_make(a, dir) == 0 && access(dir, W_OK | X_OK) == 0 ? dir : NULL;
}

const char *cache_path(Arena *a, const char *dir, Key k)
{
    return path_join(a, dir, arena_printf(a, "%016llx%016llx", (unsigned long long)k.a, (unsigned long long)k.b));
}

bool cache_has(const char *path)
{
    return file_exists(path) && access(path, X_OK) == 0 && utimensat(AT_FDCWD, path, NULL, 0) == 0;
}

typedef struct Entry { const char *path; struct timespec used; int64_t bytes; } Entry;

static int by_age(const void *x, const void *y)
{
    const struct timespec *a = &((const Entry *)x)->used, *b = &((const Entry *)y)->used;
    if (a->tv_sec != b->tv_sec)
        return a->tv_sec < b->tv_sec ? -1 : 1;
    return (a->tv_nsec > b->tv_nsec) - (a->tv_nsec < b->tv_nsec);
}

/* Only names that cache_path gives (and what a killed compiler left of one): the directory may be the user's own. */
static bool is_entry(const char *name)
{
    const size_t n = strspn(name, "0123456789abcdef");
    return n == 32 && (name[n] == 0 || name[n] == '.');
}

void cache_trim(Arena *a, const char *dir, const char *keep)
{
    DIR *d = opendir(dir);
    Entry *entry = NULL;
    int n = 0;
    int64_t total = 0;
    if (!d)
        return;
    for (struct dirent *e; (e = readdir(d));) {
        struct stat s;
        const char *path = path_join(a, dir, e->d_name);
        if (!is_entry(e->d_name) || stat(path, &s) != 0)
            continue;
        const Entry one = {path, s.st_mtim, s.st_size};
        total += one.bytes;
        ARENA_PUSH(a, entry, n, one);
    }
    closedir(d);
    if (n)
        qsort(entry, (size_t)n, sizeof *entry, by_age);
    for (int i = 0; i < n && total > CACHE_BYTES; i++)
        if (strcmp(entry[i].path, keep) != 0 && unlink(entry[i].path) == 0)
            total -= entry[i].bytes;
}
