/* cores.c -- reads the topology of sysfs; see cores.h.
 *
 * Source: Linux, Documentation/admin-guide/cputopology.rst, ABI/stable/sysfs-devices-system-cpu.
 */
#define _GNU_SOURCE
#include "base/cores.h"
#include "base/cgroup.h"
#include "base/error.h"
#include "base/hash.h"
#include "constants.h"
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT = 1 << 14, CACHES = 10 };

typedef struct Set {
    uint64_t bit[CORES_MOST / 64];
} Set;

static bool has(const Set *s, int i)
{
    return s->bit[i / 64] >> (i % 64) & 1;
}

static void put(Set *s, int i)
{
    s->bit[i / 64] |= UINT64_C(1) << (i % 64);
}

static int count(const Set *s)
{
    int n = 0;
    for (int i = 0; i < CORES_MOST / 64; i++)
        n += __builtin_popcountll(s->bit[i]);
    return n;
}

/* Reads a list such as "0-3,8". */
static Set parse_list(const char *text)
{
    Set s = {{0}};
    while (*text >= '0' && *text <= '9') {
        char *end;
        const long first = strtol(text, &end, 10),
                   last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        for (long i = first; i <= last && i < CORES_MOST; i++)
            put(&s, (int)i);
        text = *end == ',' ? end + 1 : end;
    }
    return s;
}

static int first_of(const Set *s)
{
    for (int i = 0; i < CORES_MOST; i++)
        if (has(s, i))
            return i;
    return -1;
}

/* ---- the mask */

/* The affinity mask.  sched_getaffinity fails if its set is shorter than the kernel's, so the set
 * has the size of the largest machine. */
static Set mask_of_process(const char *root)
{
    Set s = {{0}};
    char text[TEXT];
    if (!*root) {
        cpu_set_t *set = CPU_ALLOC(CORES_MOST);
        const size_t size = CPU_ALLOC_SIZE(CORES_MOST);
        if (set && sched_getaffinity(0, size, set) == 0)
            for (int i = 0; i < CORES_MOST; i++)
                if (CPU_ISSET_S(i, size, set))
                    put(&s, i);
        CPU_FREE(set);
    } else if (cgroup_file(root, "/proc/self/status", text, sizeof text)) {
        const char *line = strstr(text, "Cpus_allowed_list:");
        if (line)
            s = parse_list(line + strcspn(line, "0123456789"));
    }
    return s;
}

static Set online(const char *root)
{
    char text[TEXT];
    cgroup_file(root, "/sys/devices/system/cpu/online", text, sizeof text);
    return parse_list(text);
}

/* ---- a processor */

static bool read_of(const char *root, int number, const char *name, char *text)
{
    char path[128];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/%s", number, name);
    return cgroup_file(root, path, text, TEXT);
}

static int core_of(const char *root, int number)
{
    char text[TEXT];
    if (!read_of(root, number, "topology/core_cpus_list", text) &&
        !read_of(root, number, "topology/thread_siblings_list", text))
        return number;
    const Set s = parse_list(text);
    return has(&s, number) ? first_of(&s) : number;
}

/* The socket of a processor.  Some machines report -1: then there is one socket. */
static int socket_of(const char *root, int number)
{
    char text[TEXT];
    const int n = read_of(root, number, "topology/physical_package_id", text) ? atoi(text) : 0;
    return n > 0 ? n : 0;
}

/* The NUMA node: the processor's directory has a link with its name, such as node3. */
static int node_of(const char *root, int number)
{
    char path[4200];
    int node = 0;
    snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu%d", root, number);
    DIR *d = opendir(path);
    for (const struct dirent *e; d && (e = readdir(d));)
        if (sscanf(e->d_name, "node%d", &node) == 1)
            break;
    if (d)
        closedir(d);
    return node;
}

/* The first processor of those that share the last cache; -1: the cache is this core's own, or
 * there is no file. */
static int cache_of(const char *root, int number, int core)
{
    char name[64], text[TEXT];
    int best = 0, cache = -1;
    for (int i = 0; i < CACHES; i++) {
        snprintf(name, sizeof name, "cache/index%d/level", i);
        if (!read_of(root, number, name, text))
            break;
        const int level = atoi(text);
        snprintf(name, sizeof name, "cache/index%d/shared_cpu_list", i);
        if (level <= best || !read_of(root, number, name, text))
            continue;
        const Set s = parse_list(text);
        best = level;
        cache = -1;
        for (int k = 0; k < CORES_MOST && cache < 0; k++)
            if (has(&s, k) && core_of(root, k) != core)
                cache = first_of(&s);
    }
    return cache;
}

/* ---- all of them */

static int compare_places(const void *a, const void *b)
{
    const Processor *x = a, *y = b;
    const int order[] = {x->sibling - y->sibling, x->socket - y->socket, x->node - y->node,
                         x->cache - y->cache,     x->core - y->core,     x->number - y->number};
    for (int i = 0; i < 6; i++)
        if (order[i])
            return order[i];
    return 0;
}

/* Number of cores of the processors in a set. */
static int cores_of_set(const char *root, const Set *s)
{
    int n = 0;
    Set seen = {{0}};
    for (int i = 0; i < CORES_MOST; i++)
        if (has(s, i)) {
            const int core = core_of(root, i);
            n += !has(&seen, core);
            put(&seen, core);
        }
    return n;
}

static void read_processors(Cores *c, const char *root, const Set *mask)
{
    int n = 0;
    uint8_t *siblings = rt_alloc(CORES_MOST);
    for (int i = 0; i < CORES_MOST; i++)
        if (has(mask, i)) {
            Processor *p = &c->processor[n++];
            *p = (Processor){.number = i,
                             .core = core_of(root, i),
                             .socket = socket_of(root, i),
                             .node = node_of(root, i)};
            p->cache = cache_of(root, i, p->core);
            p->sibling = siblings[p->core]++;
        }
    free(siblings);
    qsort(c->processor, (size_t)n, sizeof *c->processor, compare_places);
}

/* Counts cores, caches and sockets.  The processors of a cache or a socket are neighbours in the
 * sorted array, so a new cache or socket begins where its number changes. */
static void count_things(Cores *c)
{
    const Processor *last = NULL;
    for (int i = 0; i < c->processors && c->processor[i].sibling == 0; i++) {
        const Processor *p = &c->processor[i];
        c->cores++;
        c->sockets += !last || p->socket != last->socket;
        c->caches += !last || p->socket != last->socket || p->cache != last->cache;
        last = p;
    }
}

void cores_read(Cores *c, const char *root)
{
    char text[TEXT];
    Set mask = mask_of_process(root), all = online(root);
    if (count(&mask) == 0)
        mask = all;
    if (count(&mask) == 0) {
        const long n = sysconf(_SC_NPROCESSORS_ONLN);
        for (int i = 0; i < (n > 0 ? n : 1) && i < CORES_MOST; i++)
            put(&mask, i);
    }
    cgroup_cpuset(root, text, sizeof text);
    const Set group = parse_list(text);
    *c = (Cores){.processors = count(&mask), .quota = cgroup_quota(root), .real = !*root};
    c->processor = rt_alloc(sizeof *c->processor * (size_t)c->processors);
    read_processors(c, root, &mask);
    count_things(c);
    c->machine = cores_of_set(root, count(&group) > 0 ? &group : count(&all) > 0 ? &all : &mask);
    if (c->machine < c->cores)
        c->machine = c->cores;
    Hash h = hash_new();
    hash_add(&h, &mask, sizeof mask);
    c->mask = hash_end(&h);
}

int cores_threads(const Cores *c, int ranks)
{
    const double most = (c->quota + 1e-6) / ranks;
    const int n = c->quota > 0 && most < c->cores ? (int)most : c->cores;
    return n < 1 ? 1 : n < RT_THREADS_MOST ? n : RT_THREADS_MOST;
}
