/* faults.c -- LD_PRELOAD: a machine whose files or clock fail as the environment says.
 *
 *   FAULT_FLOCK=ERRNO     flock fails with this number, as on file systems without locks
 *   FAULT_WRITE=FILE      once FILE exists, one bit of the first large write is changed
 *   FAULT_GONE=DIRECTORY  opendir finds no such directory: another program has removed it after a look at it
 *   FAULT_READ=ERRNO      pread of a file fails with this number
 *   FAULT_SHORT=1         each read and write of a file transfers one half, as a signal can cause
 *   FAULT_SIGNALS=1       a signal interrupts each sleep after a millisecond
 *   FAULT_CLOCK=SECONDS   the system clock, as the program reads it, is ahead of the clock on which the kernel
 *                         ends waits: so it is after a step back
 *   FAULT_FSYNC=FILE      the first fsync of a file makes FILE and waits for a signal
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int flock(int fd, int how)
{
    const char *number = getenv("FAULT_FLOCK");
    int (*const real)(int, int) = (int (*)(int, int))dlsym(RTLD_NEXT, "flock");
    if (!number)
        return real(fd, how);
    errno = atoi(number);
    return -1;
}

DIR *opendir(const char *path)
{
    const char *gone = getenv("FAULT_GONE");
    DIR *(*const real)(const char *) = (DIR * (*)(const char *)) dlsym(RTLD_NEXT, "opendir");
    if (!gone || strcmp(path, gone) != 0)
        return real(path);
    errno = ENOENT;
    return NULL;
}

/* What a short read or write transfers of n bytes. */
static size_t some(int fd, size_t n)
{
    struct stat s;
    return n > 1 && getenv("FAULT_SHORT") && fstat(fd, &s) == 0 && S_ISREG(s.st_mode) ? n / 2 : n;
}

ssize_t read(int fd, void *bytes, size_t n)
{
    return syscall(SYS_read, fd, bytes, some(fd, n));
}

ssize_t pread(int fd, void *bytes, size_t n, off_t at)
{
    struct stat s;
    const char *number = getenv("FAULT_READ");
    if (!number || fstat(fd, &s) != 0 || !S_ISREG(s.st_mode))
        return syscall(SYS_pread64, fd, bytes, some(fd, n), at);
    errno = atoi(number);
    return -1;
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
    return syscall(SYS_pwrite64, fd, bytes, some(fd, n), at);
}

/* Large ones only: a small model's weights come in one piece, a line of a log is not meant. */
ssize_t write(int fd, const void *bytes, size_t n)
{
    static int writes;
    static char copy[1 << 17];
    const char *file = getenv("FAULT_WRITE");
    ssize_t (*const real)(int, const void *, size_t) = (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    if (!file || access(file, F_OK) != 0 || n < 500 || n > sizeof copy || fd < 3 || ++writes != 1)
        return real(fd, bytes, some(fd, n));
    memcpy(copy, bytes, n);
    copy[n / 2] ^= 4;
    return real(fd, copy, n);
}

int nanosleep(const struct timespec *wanted, struct timespec *left)
{
    const struct timespec t = *wanted, piece = {.tv_nsec = 1000000};
    const bool whole = !getenv("FAULT_SIGNALS") || (t.tv_sec == 0 && t.tv_nsec <= piece.tv_nsec);
    const int rc = (int)syscall(SYS_nanosleep, whole ? &t : &piece, left);
    if (whole || rc != 0)
        return rc;
    const long n = t.tv_nsec - piece.tv_nsec;
    if (left)
        *left = (struct timespec){n < 0 ? t.tv_sec - 1 : t.tv_sec, n < 0 ? n + 1000000000 : n};
    errno = EINTR;
    return -1;
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
    const char *seconds = getenv("FAULT_CLOCK");
    const int rc = (int)syscall(SYS_clock_gettime, clock, t);
    if (rc == 0 && seconds && clock == CLOCK_REALTIME)
        t->tv_sec += atoi(seconds);
    return rc;
}

int fsync(int fd)
{
    struct stat s;
    const char *file = getenv("FAULT_FSYNC");
    int (*const real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    if (file && fstat(fd, &s) == 0 && S_ISREG(s.st_mode)) {
        close(open(file, O_WRONLY | O_CREAT, 0666));
        for (;;)
            pause();
    }
    return real(fd);
}
