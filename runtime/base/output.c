/* output.c -- see output.h.
 *
 * Each write follows a poll.  A blocking write to a full pipe lasts until somebody reads, and a
 * signal handler cannot end it safely: a signal just before the write is missed.  Descriptors keep
 * the mode in which they were inherited, because other processes share the mode.  poll reports that
 * a pipe has room for PIPE_BUF bytes.
 */
#include "base/output.h"
#include "base/clock.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

enum { TICK = 100 }; /* ms between two checks of the flag: another thread can get the signal */
static const double PATIENCE = 1; /* seconds that all writes may wait after a request to stop */

static const volatile sig_atomic_t *stop_flag;
static atomic_bool hurry;
static _Atomic double give_up; /* time of the limit; 0: no write has waited since the request */

void output_begin(void)
{
    int fd = 0;
    while (fd >= 0 && fd <= 2) {
        fd = open("/dev/null", O_WRONLY); /* gets the lowest free descriptor */
        if (fd == 1 || fd == 2) {
            close(fd);
            fd = open("/dev/null", O_RDONLY);
        }
    }
    if (fd > 2)
        close(fd);
}

void output_watch(const volatile sig_atomic_t *stop)
{
    stop_flag = stop;
}

bool output_stopping(void)
{
    return stop_flag && *stop_flag;
}

void output_hurry(void)
{
    atomic_store(&hurry, true);
}

static bool out_of_patience(void)
{
    double at = 0;
    if (!output_stopping() && !atomic_load(&hurry))
        return false;
    const double now = clock_now();
    if (atomic_compare_exchange_strong(&give_up, &at, now + PATIENCE))
        return false;
    return now >= at;
}

/* Waits until fd can be written; false: gave up.  True for a bad descriptor: write reports it. */
static bool output_ready(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    for (;;) {
        const int n = poll(&p, 1, TICK);
        if (n > 0 || (n < 0 && errno != EINTR))
            return true;
        if (out_of_patience())
            return false;
    }
}

bool output_write(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        if (!output_ready(fd)) {
            errno = EAGAIN;
            return false;
        }
        const ssize_t done = write(fd, bytes, n < PIPE_BUF ? n : PIPE_BUF);
        if (done > 0) {
            bytes += done;
            n -= (size_t)done;
            continue;
        }
        if (done == 0)
            errno = ENOSPC; /* a device that takes nothing */
        if (errno != EINTR && errno != EAGAIN)
            return false;
        if (out_of_patience()) {
            errno = EAGAIN;
            return false;
        }
        if (errno == EAGAIN) /* another writer was faster */
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return true;
}
