/* cgroup.h -- what the control group of this process allows: processor time and processors.
 *
 * Both functions read version 2 (cpu.max, cpuset.cpus.effective) and version 1
 * (cpu.cfs_quota_us, cpuset.effective_cpus).  The limits of all parents that are visible count.
 * Source: Linux, Documentation/admin-guide/cgroup-v2.rst, and scheduler/sched-bwc.rst.
 *
 * root: the directory that stands for "/"; "" for this machine.
 */
#ifndef CGROUP_H
#define CGROUP_H
#include <stdbool.h>
#include <stddef.h>

/* Seconds of processor time in each second: 4.0 with `docker run --cpus=4`; 0: no limit. */
double cgroup_quota(const char *root);

/* Stores the processors of the group as a list like "0-3,8"; "" if no file says it. */
void cgroup_cpuset(const char *root, char *list, size_t size);

/* Reads the first bytes of a file as a string without line feeds at its end; false and "" if the
 * file cannot be read.  The path is root, then `path`. */
bool cgroup_file(const char *root, const char *path, char *text, size_t size);

#endif
