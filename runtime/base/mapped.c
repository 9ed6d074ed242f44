/* mapped.c -- see mapped.h.
 *
 * The handler calls mmap, which is a plain system call, and writes two atomics; both are safe in a
 * signal handler.  A SIGBUS at any other address goes to the handler that was installed before.
 */
#define _GNU_SOURCE
#include "base/mapped.h"
#include "base/error.h"
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES = 32, MESSAGE = 1024 };

typedef struct Mapped {
    _Atomic(uintptr_t) at; /* 0: this entry is free */
    int64_t bytes;
    _Atomic(const char *) path;
} Mapped;

static Mapped file[FILES];
static _Atomic(const Mapped *) lost; /* the first file that the handler found broken */
static char wrong[MESSAGE];
static struct sigaction before;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
atomic_bool mapped_is_broken;

static Mapped *find_mapped(uintptr_t address)
{
    for (int i = 0; i < FILES; i++) {
        const uintptr_t at = atomic_load(&file[i].at);
        if (at && address >= at && address - at < (uintptr_t)file[i].bytes)
            return &file[i];
    }
    return NULL;
}

/* Replaces the mapping from this page to its end: the other pages are after the file's new end,
 * too, and a signal for each of them would be slow. */
static void on_bus_error(int number, siginfo_t *info, void *context)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), address = (uintptr_t)info->si_addr;
    Mapped *m = find_mapped(address);
    const Mapped *none = NULL;
    (void)number, (void)context;
    if (m) {
        const uintptr_t from = address / page * page,
                        end = atomic_load(&m->at) + (uintptr_t)m->bytes;
        if (mmap((void *)from, end - from, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED) {
            atomic_compare_exchange_strong(&lost, &none, m);
            atomic_store(&mapped_is_broken, true);
            return;
        }
    }
    sigaction(SIGBUS, &before, NULL); /* the instruction runs again; `before` gets its signal */
}

static void install(void)
{
    struct sigaction mine = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    sigemptyset(&mine.sa_mask);
    sigaction(SIGBUS, &mine, &before);
}

void mapped_watch(const void *at, int64_t bytes, const char *path)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install);
    pthread_mutex_lock(&lock);
    for (int i = 0; i < FILES; i++)
        if (!atomic_load(&file[i].at)) {
            file[i].bytes = bytes;
            file[i].path = path;
            atomic_store(&file[i].at, (uintptr_t)at);
            break;
        } /* if the table is full, the file is not watched: SIGBUS ends the process */
    pthread_mutex_unlock(&lock);
}

void mapped_leave(const void *at)
{
    for (int i = 0; i < FILES; i++)
        if (atomic_load(&file[i].at) == (uintptr_t)at) {
            if (atomic_load(&lost) == &file[i])
                mapped_check();
            atomic_store(&file[i].at, 0);
        }
}

void mapped_renamed(const void *at, const char *path)
{
    for (int i = 0; i < FILES; i++)
        if (atomic_load(&file[i].at) == (uintptr_t)at)
            atomic_store(&file[i].path, path);
}

void mapped_wrong(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    pthread_mutex_lock(&lock);
    if (!*wrong)
        vsnprintf(wrong, sizeof wrong, fmt, ap);
    pthread_mutex_unlock(&lock);
    va_end(ap);
    atomic_store(&mapped_is_broken, true);
}

const char *mapped_why(void)
{
    struct stat now;
    if (!mapped_broken())
        return NULL;
    const Mapped *m = atomic_load(&lost);
    if (!m)
        return wrong;
    if (stat(m->path, &now) != 0)
        return rt_format("%s was cut short while it was read, and is gone now: put it back",
                         m->path);
    if (now.st_size < m->bytes)
        return rt_format("%s holds %lld bytes now, and held %lld when it was opened: put it back "
                         "as it was",
                         m->path, (long long)now.st_size, (long long)m->bytes);
    return rt_format("%s could not be read: part of its %lld bytes was not there; check the disk, "
                     "and which programs write to it",
                     m->path, (long long)m->bytes);
}

void mapped_check(void)
{
    const char *why = mapped_why();
    if (why)
        rt_die("%s", why);
}
