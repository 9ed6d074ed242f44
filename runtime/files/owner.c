/* owner.c -- see owner.h; proc(5) has the formats. */
#include "files/owner.h"
#include "base/hash.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct Owner {
    unsigned long long host, start;
    int pid;
} Owner;

/* Reads the bytes of a small file; "" if it cannot be read. */
static void read_small_file(const char *path, char text[1024])
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? read(fd, text, 1023) : 0;
    text[n > 0 ? n : 0] = '\0';
    if (fd >= 0)
        close(fd);
}

static uint64_t host(void)
{
    char text[1024];
    struct stat space = {.st_ino = 0};
    Hash h = hash_new();
    read_small_file("/proc/sys/kernel/random/boot_id", text);
    if (!*text && gethostname(text, sizeof text) != 0)
        *text = '\0';
    text[sizeof text - 1] = '\0';
    hash_add(&h, text, strlen(text));
    if (stat("/proc/self/ns/pid", &space) == 0)
        hash_add(&h, &space.st_ino, sizeof space.st_ino);
    return hash_end(&h);
}

/* Start time of a process: field 22 of /proc/PID/stat, 0 if it cannot be read. ended: the process
 * has ended, but its parent has not waited for it. */
static unsigned long long start_of(int pid, bool *ended)
{
    char path[64], text[1024], state = 0;
    unsigned long long start = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    read_small_file(path, text);
    const char *name_end = strrchr(text, ')'); /* the name can contain any character */
    if (!name_end ||
        sscanf(name_end + 1,
               " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
               &state, &start) != 2)
        start = 0;
    *ended = state == 'Z' || state == 'X';
    return start;
}

static bool read_owner(const char *text, Owner *o, int *length)
{
    *length = 0;
    return sscanf(text, "%16llx-%9d-%20llu%n", &o->host, &o->pid, &o->start, length) == 3 &&
           *length > 0 && o->pid > 0;
}

void owner_text(char text[OWNER_TEXT])
{
    bool ended;
    const int pid = getpid();
    snprintf(text, OWNER_TEXT, "%016llx-%d-%llu", (unsigned long long)host(), pid,
             start_of(pid, &ended));
}

int owner_length(const char *text)
{
    Owner o;
    int length;
    return read_owner(text, &o, &length) ? length : 0;
}

bool owner_is_here(const char *text)
{
    Owner o;
    int length;
    return read_owner(text, &o, &length) && o.host == host();
}

bool owner_is_gone(const char *text)
{
    Owner o;
    int length;
    bool ended;
    if (!read_owner(text, &o, &length) || o.host != host())
        return false;
    const unsigned long long start = start_of(o.pid, &ended);
    return ended || (start && o.start && start != o.start) ||
           (kill(o.pid, 0) != 0 && errno == ESRCH);
}
