/* cgroup.c -- finds the control group of this process, and walks from its directory to the root. */
#include "base/cgroup.h"
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT = 1 << 16, PATH = 4096 };

bool cgroup_file(const char *root, const char *path, char *text, size_t size)
{
    char name[2 * PATH];
    size_t n = 0;
    snprintf(name, sizeof name, "%s%s", root, path);
    const int fd = open(name, O_RDONLY | O_CLOEXEC);
    for (ssize_t k = 1; fd >= 0 && k > 0 && n<size - 1; n += k> 0 ? (size_t)k : 0)
        k = read(fd, text + n, size - 1 - n);
    if (fd >= 0)
        close(fd);
    while (n > 0 && text[n - 1] == '\n')
        n--;
    text[n] = 0;
    return fd >= 0;
}

/* Whether `word` is in a list whose words are separated by commas. */
static bool in_list(const char *list, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = list; at; at = strchr(at, ','), at = at ? at + 1 : NULL)
        if (strncmp(at, word, n) == 0 && (at[n] == ',' || !at[n]))
            return true;
    return false;
}

/* Finds the group of the controller in proc/self/cgroup, whose lines are
 * "4:cpu,cpuacct:/docker/1f"; version 2 has the line "0::/user.slice".  controller NULL: version
 * 2. */
static bool find_group(const char *root, const char *controller, char *path)
{
    static _Thread_local char text[TEXT];
    cgroup_file(root, "/proc/self/cgroup", text, sizeof text);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char *list = strchr(line, ':'), *group = list ? strchr(list + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = 0;
        if (controller ? in_list(list + 1, controller) : !list[1]) {
            snprintf(path, PATH, "%s", group);
            return true;
        }
    }
    return false;
}

/* Finds the place where the groups of the controller are mounted, and the group at that place.  A
 * line of proc/self/mountinfo is "32 31 0:29 GROUP PLACE rw - cgroup cgroup rw,cpu". */
static bool find_mount(const char *root, const char *controller, char *place, char *top)
{
    static _Thread_local char text[TEXT];
    cgroup_file(root, "/proc/self/mountinfo", text, sizeof text);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char type[32], options[512];
        const char *rest = strstr(line, " - ");
        if (!rest || sscanf(line, "%*s %*s %*s %4095s %4095s", top, place) != 2 ||
            sscanf(rest, " - %31s %*s %511s", type, options) != 2)
            continue;
        if (controller ? strcmp(type, "cgroup") == 0 && in_list(options, controller)
                       : strcmp(type, "cgroup2") == 0)
            return true;
    }
    return false;
}

/* Finds the directory of this process's group. path: this directory; its first *mount bytes are the
 * mount point.  If the process is outside of its namespace, the path of its group has "..": then
 * path is the mount point alone. */
static bool find_directory(const char *root, const char *controller, char *path, size_t *mount)
{
    char group[PATH], place[PATH], top[PATH];
    if (!find_group(root, controller, group) || !find_mount(root, controller, place, top))
        return false;
    const size_t n = strcmp(top, "/") == 0 ? 0 : strlen(top);
    const char *below = strncmp(group, top, n) == 0 ? group + n : group;
    *mount = strlen(place);
    snprintf(path, 2 * PATH, "%s%s", place, strstr(below, "..") || !below[1] ? "" : below);
    return true;
}

/* Changes `path` to the parent group.  False: `path` is the mount point, the highest group. */
static bool go_up(char *path, size_t mount)
{
    char *slash = strrchr(path, '/');
    if (strlen(path) <= mount || !slash)
        return false;
    path[(size_t)(slash - path) > mount ? (size_t)(slash - path) : mount] = 0;
    return true;
}

static bool group_file(const char *root, const char *path, const char *name, char *text)
{
    char file[2 * PATH + 64];
    snprintf(file, sizeof file, "%s/%s", path, name);
    return cgroup_file(root, file, text, 256);
}

/* The quota of one group, without its parents; 0: no limit.  cpu.max is "400000 100000", which are
 * microseconds of processor time and of the period, or "max 100000". */
static double own_quota(const char *root, const char *path, bool v2)
{
    char text[256], period[256];
    double time = 0, each = 0;
    if (v2 && group_file(root, path, "cpu.max", text) && sscanf(text, "%lf %lf", &time, &each) != 2)
        return 0;
    if (!v2 && group_file(root, path, "cpu.cfs_quota_us", text) &&
        group_file(root, path, "cpu.cfs_period_us", period))
        time = atof(text), each = atof(period);
    return time > 0 && each > 0 ? time / each : 0;
}

double cgroup_quota(const char *root)
{
    double least = 0;
    for (int v2 = 0; v2 < 2; v2++) {
        char path[2 * PATH];
        size_t mount;
        if (!find_directory(root, v2 ? NULL : "cpu", path, &mount))
            continue;
        do {
            const double quota = own_quota(root, path, v2);
            if (quota > 0 && (least == 0 || quota < least))
                least = quota;
        } while (go_up(path, mount));
    }
    return least;
}

void cgroup_cpuset(const char *root, char *list, size_t size)
{
    *list = 0;
    for (int v2 = 0; v2 < 2 && !*list; v2++) {
        char path[2 * PATH], file[2 * PATH + 64];
        size_t mount;
        if (!find_directory(root, v2 ? NULL : "cpuset", path, &mount))
            continue;
        do {
            snprintf(file, sizeof file, "%s/%s", path,
                     v2 ? "cpuset.cpus.effective" : "cpuset.effective_cpus");
            cgroup_file(root, file, list, size);
        } while (!*list && go_up(path, mount));
    }
}
