/* whole.c -- see whole.h. */
#define _GNU_SOURCE
#include "base/whole.h"
#include <errno.h>
#include <unistd.h>

int64_t whole_read(int fd, void *to, int64_t n, int64_t at)
{
    int64_t have = 0;
    while (have < n) {
        const ssize_t some = pread(fd, (char *)to + have, (size_t)(n - have), at + have);
        if (some < 0 && errno == EINTR)
            continue;
        if (some < 0)
            return -1;
        if (some == 0)
            break;
        have += some;
    }
    return have;
}

bool whole_write(int fd, const void *from, int64_t n, int64_t at)
{
    for (int64_t done = 0; done < n;) {
        const char *rest = (const char *)from + done;
        const ssize_t some = at < 0 ? write(fd, rest, (size_t)(n - done))
                                    : pwrite(fd, rest, (size_t)(n - done), at + done);
        if (some < 0 && errno == EINTR)
            continue;
        if (some == 0)
            errno = ENOSPC; /* a device that takes nothing */
        if (some <= 0)
            return false;
        done += some;
    }
    return true;
}
