/* lease.c -- see lease.h.
 *
 * A lease without an owner is made with O_EXCL. The lease of a dead run is replaced by rename. If
 * several runs do this at the same time, the last rename wins. Each of them waits until the others
 * have finished, and then reads the file again.
 */
#define _GNU_SOURCE
#include "files/lease.h"
#include "base/error.h"
#include "base/threads.h"
#include "base/whole.h"
#include "files/file.h"
#include "files/names.h"
#include "files/owner.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

enum { TEXT = 256, BEAT_DIGITS = 10 };
enum { LOOK_MS = 500, SETTLE_MS = 1000 };
enum { ENDING_MS = 5000 }; /* limit for the end of a run that was just killed */

struct Lease {
    char directory[PATH_MAX], path[PATH_MAX];
    char head[TEXT]; /* the text of the file before the number of the heartbeat */
    char host[65];
    int fd; /* descriptor of the file; -1: flock holds the directory */
    unsigned beat;
    bool end;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ends;
};

/* A signal, such as SIGTERM or those of a profiler, does not shorten the wait. */
static void wait_ms(int ms)
{
    struct timespec left = {ms / 1000, ms % 1000 * 1000000L};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

/* ---- the file */

typedef enum Found { GONE, READ, UNREADABLE } Found;

/* UNREADABLE: errno says why. */
static Found read_lease(const Lease *l, char text[TEXT])
{
    const int fd = open(l->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    const int64_t n = fd >= 0 ? whole_read(fd, text, TEXT - 1, 0) : -1;
    const int error = errno;
    text[n > 0 ? n : 0] = '\0';
    if (fd >= 0)
        close(fd);
    errno = error;
    return n >= 0 ? READ : fd < 0 && errno == ENOENT ? GONE : UNREADABLE;
}

static int write_lease(Lease *l, char text[TEXT])
{
    return snprintf(text, TEXT, "%s%0*u host %s\n", l->head, BEAT_DIGITS, l->beat, l->host);
}

/* Writes the text into the file of this run; false: errno says why. */
static bool put_lease(Lease *l)
{
    char text[TEXT];
    return whole_write(l->fd, text, write_lease(l, text), 0);
}

static const char *owner_of(const char *text)
{
    static const char head[] = "tenon lease ";
    return strncmp(text, head, sizeof head - 1) == 0 ? text + sizeof head - 1 : "";
}

/* Whether the lease was removed or belongs to another run. A read error, which can be temporary,
 * does not count. */
static bool is_lost(const Lease *l)
{
    char text[TEXT];
    const Found found = read_lease(l, text);
    return found == GONE || (found == READ && strncmp(text, l->head, strlen(l->head)) != 0);
}

static void __attribute__((noreturn)) lease_refuse(const Lease *l, const char *text)
{
    char host[65] = "another host";
    const char *dash = strchr(owner_of(text), '-'), *at = strstr(text, " host ");
    if (at)
        sscanf(at, " host %64s", host);
    rt_die("another run (process %d on %s) saves its checkpoints in %s: let it end, or give "
           "another directory",
           dash ? atoi(dash + 1) : 0, host, l->directory);
}

static void __attribute__((noreturn)) lease_fail(const Lease *l)
{
    rt_die("checkpoints cannot be written into %s: %s", l->directory, strerror(errno));
}

/* Waits until the run with this lease is dead, and returns true; false: meanwhile the file was
 * removed or replaced. Dies if the run lives. */
static bool outlive(const Lease *l, const char *was)
{
    const bool here = owner_is_here(owner_of(was));
    char now[TEXT];
    if (!here)
        rt_note("%s may belong to a run on another host: waiting %d s for a sign of that run",
                l->directory, LEASE_SILENT_MS / 1000);
    for (int ms = 0; ms < (here ? ENDING_MS : LEASE_SILENT_MS); ms += LOOK_MS) {
        if (here && owner_is_gone(owner_of(was)))
            return true;
        wait_ms(LOOK_MS);
        const Found found = read_lease(l, now);
        if (found == GONE)
            return false;
        if (found == READ && strcmp(now, was) != 0 && *owner_of(now))
            lease_refuse(l, now);
    }
    if (here)
        lease_refuse(l, was);
    return read_lease(l, now) == READ && strcmp(now, was) == 0;
}

/* Replaces the lease of a dead run. False: the lease has changed meanwhile, and is read again. */
static bool replace(Lease *l, const char *was)
{
    static File f;
    char text[TEXT];
    if (!file_try(&f, l->path))
        lease_fail(l);
    file_write(&f, text, write_lease(l, text));
    file_sync(&f);
    if (read_lease(l, text) != READ || strcmp(text, was) != 0) {
        file_abandon(&f);
        return false;
    }
    file_commit(&f);
    wait_ms(SETTLE_MS);
    if (!is_lost(l)) {
        l->fd = open(l->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
        return l->fd >= 0;
    }
    if (read_lease(l, text) == READ)
        lease_refuse(l, text);
    return false;
}

static void take_file(Lease *l)
{
    char text[TEXT];
    while (l->fd < 0) {
        l->fd = open(l->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (l->fd < 0 && errno != EEXIST)
            lease_fail(l);
        const Found found = l->fd < 0 ? read_lease(l, text) : GONE;
        if (found == UNREADABLE)
            lease_fail(l);
        if (found == READ && outlive(l, text))
            replace(l, text);
    }
    if (!put_lease(l) || fsync(l->fd) != 0)
        lease_fail(l);
    rt_unfinished_shared(l->path, l->fd);
}

/* ---- the heartbeat */

void lease_check(Lease *l)
{
    if (l->fd < 0 || !is_lost(l))
        return;
    rt_finished(l->path); /* the file belongs to another run, or is gone */
    rt_die("another run has taken %s, because this run was stopped for more than %d s, or its "
           "lease was removed: this run ends and saves nothing more there",
           l->directory, LEASE_SILENT_MS / 1000);
}

static void *lease_thread(void *arg)
{
    Lease *l = arg;
    pthread_mutex_lock(&l->lock);
    while (!l->end) {
        const struct timespec next = threads_after(1e-3 * LEASE_BEAT_MS);
        while (!l->end && pthread_cond_timedwait(&l->ends, &l->lock, &next) != ETIMEDOUT)
            ;
        if (l->end)
            break;
        lease_check(l);
        l->beat++;
        /* After a failed write, other runs see no heartbeat; lease_check finds a new owner. */
        if (put_lease(l))
            fdatasync(l->fd);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* Starts the thread of the heartbeat with all signals blocked: other threads handle them. */
static void start_beat(Lease *l)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_mutex_init(&l->lock, NULL);
    threads_condition(&l->ends);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    const int error = pthread_create(&l->thread, NULL, lease_thread, l);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (error)
        rt_die("the thread of the lease could not be started: %s", strerror(error));
}

/* ---- taking a lease, and giving it back */

/* True: the directory is locked; false: flock does not work on this file system. */
static bool lock_directory(const Lease *l)
{
    const int fd =
        open(l->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* open until the process ends */
    if (fd < 0)
        rt_die("%s cannot be opened: %s", l->directory, strerror(errno));
    for (int ms = 0; flock(fd, LOCK_EX | LOCK_NB) != 0; ms += 100) {
        if (errno != EWOULDBLOCK && errno != EINTR) {
            close(fd);
            return false;
        }
        if (ms >= ENDING_MS)
            rt_die("another run saves its checkpoints in %s: let it end, or give another directory",
                   l->directory);
        wait_ms(100);
    }
    return true;
}

/* Called if flock works on this host. A run on a host where flock does not work can own the
 * directory through the lease file: waits until that run is dead, and removes its file. */
static void look_for_file(const Lease *l)
{
    char text[TEXT];
    if (read_lease(l, text) == READ && outlive(l, text))
        unlink(l->path);
}

Lease *lease_take(const char *directory)
{
    char owner[OWNER_TEXT];
    Lease *l = rt_alloc(sizeof *l);
    l->fd = -1;
    snprintf(l->directory, sizeof l->directory, "%s", directory);
    if (snprintf(l->path, sizeof l->path, "%s/" FILE_LEASE, directory) >= (int)sizeof l->path)
        rt_die("the path %.60s... is too long", directory);
    owner_text(owner);
    snprintf(l->head, sizeof l->head, "tenon lease %s beat ", owner);
    if (gethostname(l->host, sizeof l->host - 1) != 0 || !*l->host)
        snprintf(l->host, sizeof l->host, "unknown");
    const bool locked = lock_directory(l);
    if (access(directory, W_OK | X_OK) != 0)
        lease_fail(l);
    if (locked) {
        look_for_file(l);
        return l;
    }
    take_file(l);
    start_beat(l);
    return l;
}

void lease_give(Lease *l)
{
    if (!l || l->fd < 0)
        return;
    pthread_mutex_lock(&l->lock);
    l->end = true;
    pthread_cond_signal(&l->ends);
    pthread_mutex_unlock(&l->lock);
    pthread_join(l->thread, NULL);
    rt_finished(l->path);
    if (!is_lost(l))
        unlink(l->path);
    close(l->fd);
    l->fd = -1;
}
