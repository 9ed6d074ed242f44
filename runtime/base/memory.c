/* memory.c -- see memory.h.  Memory comes from the system once, in large pieces. */
#include "base/memory.h"
#include "base/error.h"
#include "base/mapped.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HUGE_FROM = 4 << 20 }; /* bytes; smaller mappings gain nothing from huge pages */

void *memory_map(int64_t bytes, bool touch, const char *what)
{
    const size_t size = (size_t)bytes + MEMORY_SLACK;
    char *p = bytes < 0 || bytes > INT64_MAX - MEMORY_SLACK
                  ? MAP_FAILED
                  : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        rt_die("no room for %s: %.1f MB", what, (double)bytes / 1e6);
    if (size >= HUGE_FROM)
        madvise(p, size, MADV_HUGEPAGE);
    if (touch)
        for (int64_t at = 0; at < bytes; at += 4096)
            *(volatile char *)(p + at) = 0;
    return p;
}

void memory_forget(const void *at, int64_t bytes)
{
    const uintptr_t page = 4096, first = ((uintptr_t)at + page - 1) / page * page,
                    end = ((uintptr_t)at + (uintptr_t)bytes) / page * page;
    if (end > first)
        madvise((void *)first, end - first, MADV_DONTNEED);
}

/* Maps the file over the front of a larger mapping, so that kernels may read past its end. */
void *memory_map_file(int fd, int64_t bytes, bool write, const char *what)
{
    const int access = write ? PROT_READ | PROT_WRITE : PROT_READ;
    char *at =
        mmap(NULL, (size_t)bytes + 2 * MEMORY_SLACK, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED ||
        (bytes && mmap(at, (size_t)bytes, access, (write ? MAP_SHARED : MAP_PRIVATE) | MAP_FIXED,
                       fd, 0) == MAP_FAILED))
        rt_die("%s cannot be read: %s", what, strerror(errno));
    mapped_watch(at, bytes, what);
    return at;
}

void memory_sync_file(void *at, int64_t bytes, const char *what)
{
    if (msync(at, (size_t)bytes, MS_SYNC) != 0)
        rt_die("%s cannot be written: %s", what, strerror(errno));
}

/* VmHWM of /proc/self/status, in kB there.  read() instead of stdio, which would allocate. */
int64_t memory_peak(void)
{
    char text[4096];
    const int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    const ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    const char *line = strstr(text, "VmHWM:");
    return line ? strtoll(line + 6, NULL, 10) * 1024 : 0;
}
