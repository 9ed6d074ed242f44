/* test_cores.c -- cores, quotas and caches of machines that are trees of files; the tree of threads
 * over them. */
#define _GNU_SOURCE
#include "base/cgroup.h"
#include "base/cores.h"
#include "base/error.h"
#include "base/fanout.h"
#include "leaks.h"
#include "options/place.h"
#include "suite.h"
#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* --- machines of files --- */

static char root[64];

/* Uses a file system in memory if there is one: a machine has up to 2,000 files. */
static void begin(void)
{
    strcpy(root, "/dev/shm/coresXXXXXX");
    if (mkdtemp(root))
        return;
    strcpy(root, "/tmp/coresXXXXXX");
    ck_assert(mkdtemp(root) != NULL);
}

static void end(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", root);
    ck_assert_int_eq(system(command), 0);
}

/* Writes the file root/path with one line of text, and makes its directories. */
static void file(const char *path, const char *format, ...)
{
    char name[512];
    va_list args;
    snprintf(name, sizeof name, "%s/%s", root, path);
    for (char *at = name + strlen(root) + 1; (at = strchr(at, '/')); *at++ = '/') {
        *at = 0;
        mkdir(name, 0777);
    }
    FILE *f = fopen(name, "w");
    ck_assert_msg(f != NULL, "%s", name);
    va_start(args, format);
    vfprintf(f, format, args);
    va_end(args);
    fputc('\n', f);
    fclose(f);
}

static void mask(const char *list)
{
    file("proc/self/status",
         "Name:\tlenet\nCpus_allowed:\tff\nCpus_allowed_list:\t%s\nMems_allowed:\t1", list);
}

/* A machine by numbers of sockets, caches of a socket, cores of a cache.  Linux numbers the cores first, then their siblings;
 * `mixed`: consecutive numbers are on different sockets, as on some machines. */
static void machine(int sockets, int caches, int cores, int siblings, bool mixed)
{
    const int all = sockets * caches * cores;
    char path[128], list[1 << 14];
    for (int i = 0; i < all * siblings; i++) {
        const int core = i % all, s = mixed ? core % sockets : core / (caches * cores),
                  in = mixed ? core / sockets : core % (caches * cores), cache = in / cores;
        const char *const at = "sys/devices/system/cpu/cpu";
        snprintf(path, sizeof path, "%s%d/topology/physical_package_id", at, i);
        file(path, "%d", s);
        snprintf(path, sizeof path, "%s%d/topology/thread_siblings_list", at, i);
        file(path, siblings == 2 ? "%d,%d" : "%d", core, core + all);
        snprintf(path, sizeof path, "%s%d/node%d/cpulist", at, i, s);
        file(path, "0");
        snprintf(path, sizeof path, "%s%d/cache/index0/level", at, i);
        file(path, "1");
        snprintf(path, sizeof path, "%s%d/cache/index0/shared_cpu_list", at, i);
        file(path, siblings == 2 ? "%d,%d" : "%d", core, core + all);
        snprintf(path, sizeof path, "%s%d/cache/index1/level", at, i);
        file(path, "3");
        *list = 0;
        for (int k = 0; k < cores; k++)
            for (int h = 0; h < siblings; h++)
                sprintf(list + strlen(list), "%s%d", *list ? "," : "",
                        h * all + (mixed ? (cache * cores + k) * sockets + s
                                         : (s * caches + cache) * cores + k));
        snprintf(path, sizeof path, "%s%d/cache/index1/shared_cpu_list", at, i);
        file(path, "%s", list);
    }
    snprintf(list, sizeof list, "0-%d", all * siblings - 1);
    file("sys/devices/system/cpu/online", "%s", list);
    mask(list);
}

static void group_v2(const char *path)
{
    file("proc/self/cgroup", "0::%s", path);
    file("proc/self/mountinfo",
         "25 30 0:23 / /sys rw - sysfs sysfs rw\n"
         "35 25 0:30 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw,nsdelegate");
}

static void group_v1(const char *path, const char *top)
{
    file("proc/self/cgroup", "12:cpuset:%s\n4:cpu,cpuacct:%s\n1:name=systemd:/else\n0::/else", path,
         path);
    file("proc/self/mountinfo",
         "33 31 0:29 %s /sys/fs/cgroup/cpuset ro master:11 - cgroup cgroup rw,cpuset\n"
         "32 31 0:29 %s /sys/fs/cgroup/cpu,cpuacct ro master:11 - cgroup cgroup rw,cpu,cpuacct",
         top, top);
}

static Cores cores(void)
{
    Cores c;
    cores_read(&c, root);
    ck_assert(!c.real);
    return c;
}

/* Smallest r with 2^r >= n. */
static int log_of(int n)
{
    int r = 0;
    while (1 << r < n)
        r++;
    return r;
}

/* Number of consecutive messages after which each of threads 0 .. n - 1 has received one. */
static int fanout_rounds(const Fanout *f, int n)
{
    int last = 0, *round = rt_alloc(sizeof *round * (size_t)n);
    for (int t = 0; t < n; t++)
        for (int i = 0, sent = 0; i < f->nchild[t]; i++)
            if (f->child[t][i] < n) {
                const int at = round[t] + ++sent;
                round[f->child[t][i]] = at;
                last = at > last ? at : last;
            }
    free(round);
    return last;
}

static const struct {
    int sockets, caches, cores, siblings;
    bool mixed;
} machines[] = {{1, 1, 2, 1, false},  {1, 2, 8, 2, false}, {1, 8, 4, 2, false},
                {2, 1, 56, 2, false}, {2, 1, 56, 2, true}, {1, 12, 8, 2, true},
                {2, 12, 8, 2, false}, {1, 1, 64, 1, false}};
enum { MACHINES = sizeof machines / sizeof *machines };

/* The bound of the barrier: ceil(log2 T) messages there, and as many back. */
static void check_tree(const Cores *all)
{
    const Cores c = *all;
    Fanout f;
    fanout_plan(&f, c.processor, c.cores);
    ck_assert_int_eq(fanout_rounds(&f, c.cores), log_of(c.cores));
    int crossings = 0;
    for (int t = 1; t < c.cores; t++) {
        const Processor *a = &c.processor[t], *b = &c.processor[f.parent[t]];
        ck_assert_int_lt(f.parent[t], t);
        ck_assert_int_le(fanout_rounds(&f, t), log_of(t) + 2);
        crossings += a->socket != b->socket || a->cache != b->cache;
    }
    ck_assert_int_eq(crossings, c.caches - 1);
    for (int g = 0; g < f.groups; g++) {
        ck_assert_int_le(f.part[g].end - f.part[g].first, FANOUT_GROUP);
        for (int t = f.part[g].first; t < f.part[g].end; t++) {
            ck_assert_int_eq(f.group[t], g);
            ck_assert_int_eq(c.processor[t].cache, f.part[g].cache);
        }
    }
    fanout_free(&f);
}

START_TEST(siblings_compute_nothing_and_the_tree_is_flat)
{
    const int all = machines[_i].sockets * machines[_i].caches * machines[_i].cores;
    machine(machines[_i].sockets, machines[_i].caches, machines[_i].cores, machines[_i].siblings,
            machines[_i].mixed);
    const Cores c = cores();
    ck_assert_int_eq(c.machine, all);
    ck_assert_int_eq(c.processors, all * machines[_i].siblings);
    ck_assert_int_eq(c.cores, all);
    ck_assert_int_eq(c.sockets, machines[_i].sockets);
    ck_assert_int_eq(c.caches, machines[_i].sockets * machines[_i].caches);
    ck_assert_double_eq(c.quota, 0);
    ck_assert_int_eq(cores_threads(&c, 1), all);
    for (int i = 0; i < c.processors; i++) {
        const Processor *p = &c.processor[i];
        ck_assert_int_eq(p->sibling, i / all);
        if (i % all == 0)
            continue;
        ck_assert_int_ge(p->socket, p[-1].socket); /* neighbours are adjacent */
        ck_assert(p->socket != p[-1].socket || p->cache >= p[-1].cache);
    }
    check_tree(&c);
}
END_TEST

/* Any number of threads, also siblings, forms a tree. */
START_TEST(every_thread_has_one_parent)
{
    machine(2, 3, 5, 2, false);
    const Cores c = cores();
    for (int n = 1; n <= c.processors; n++) {
        int seen[64] = {0};
        Fanout f;
        fanout_plan(&f, n % 2 ? c.processor : NULL, n);
        for (int t = 0; t < n; t++)
            for (int i = 0; i < f.nchild[t]; i++) {
                ck_assert_int_gt(f.child[t][i], t);
                ck_assert(i == 0 || f.child[t][i] < f.child[t][i - 1]);
                seen[f.child[t][i]]++;
            }
        for (int t = 1; t < n; t++)
            ck_assert_int_eq(seen[t], 1);
        ck_assert_int_le(fanout_rounds(&f, n), log_of(n) + 4);
        fanout_free(&f);
    }
}
END_TEST

START_TEST(a_cpuset_limits_the_cores)
{
    machine(1, 1, 8, 2, false);
    group_v2("/job");
    file("sys/fs/cgroup/job/cpuset.cpus.effective", "0-3,8-11");
    mask("0-3,8-11");
    Cores c = cores();
    ck_assert_int_eq(c.cores, 4);
    ck_assert_int_eq(c.machine, 4);
    ck_assert_int_eq(c.processors, 8);
    mask("1,9"); /* bound to one core inside the cpuset */
    Cores bound = cores();
    ck_assert_int_eq(bound.cores, 1);
    ck_assert_int_eq(bound.machine, 4);
    ck_assert(bound.mask != c.mask);
    mask("9-11"); /* siblings alone are cores */
    c = cores();
    ck_assert_int_eq(c.cores, 3);
    ck_assert_int_eq(c.processor[0].number, 9);
    ck_assert_int_eq(c.processor[0].sibling, 0);
}
END_TEST

START_TEST(a_quota_limits_the_threads)
{
    machine(1, 8, 8, 1, false);
    group_v2("/pod/container");
    ck_assert_double_eq(cgroup_quota(root), 0);
    file("sys/fs/cgroup/pod/container/cpu.max", "max 100000");
    ck_assert_double_eq(cgroup_quota(root), 0);
    file("sys/fs/cgroup/pod/cpu.max", "400000 100000"); /* of the parent */
    ck_assert_double_eq(cgroup_quota(root), 4);
    Cores c = cores();
    ck_assert_int_eq(c.cores, 64);
    ck_assert_int_eq(cores_threads(&c, 1), 4);
    ck_assert_int_eq(cores_threads(&c, 2), 2);
    ck_assert_int_eq(cores_threads(&c, 9), 1);
    file("sys/fs/cgroup/pod/container/cpu.max", "150000 100000");
    c = cores();
    ck_assert_double_eq(c.quota, 1.5);
    ck_assert_int_eq(cores_threads(&c, 1), 1);
    file("sys/fs/cgroup/cpu.max", "20000 100000"); /* of the mount */
    c = cores();
    ck_assert_int_eq(cores_threads(&c, 1), 1);
    file("sys/fs/cgroup/pod/cpu.max", "12800000 100000"); /* more than the machine has */
    file("sys/fs/cgroup/pod/container/cpu.max", "max 100000");
    file("sys/fs/cgroup/cpu.max", "max 100000");
    c = cores();
    ck_assert_int_eq(cores_threads(&c, 1), 64);
}
END_TEST

/* Of a container without a namespace of its own: the mount shows the group, its path is longer. */
START_TEST(version_1_has_quotas_too)
{
    machine(1, 1, 16, 1, false);
    group_v1("/docker/1f", "/docker/1f");
    file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1");
    file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
    ck_assert_double_eq(cgroup_quota(root), 0);
    file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "250000");
    ck_assert_double_eq(cgroup_quota(root), 2.5);
    group_v1("/slurm/job/step", "/");
    ck_assert_double_eq(cgroup_quota(root), 2.5);
    file("sys/fs/cgroup/cpu,cpuacct/slurm/job/cpu.cfs_quota_us", "50000");
    file("sys/fs/cgroup/cpu,cpuacct/slurm/job/cpu.cfs_period_us", "25000");
    ck_assert_double_eq(cgroup_quota(root), 2);
    file("sys/fs/cgroup/cpuset/slurm/job/cpuset.effective_cpus", "2-5");
    const Cores c = cores();
    ck_assert_int_eq(c.machine, 16); /* the mask is wider, and counts */
    mask("2-3");
    ck_assert_int_eq(cores().machine, 4);
    group_v2("/../../outside");
    file("sys/fs/cgroup/cpu.max", "300000 100000");
    ck_assert_double_eq(cgroup_quota(root), 3);
}
END_TEST

START_TEST(without_sysfs_a_processor_is_a_core)
{
    Cores c = cores(); /* no files: the system's own numbers */
    ck_assert_int_ge(c.cores, 1);
    ck_assert_int_ge(cores_threads(&c, 1), 1);
    mask("0-5");
    c = cores();
    ck_assert_int_eq(c.cores, 6);
    ck_assert_int_eq(c.caches, 1);
    ck_assert_int_eq(c.sockets, 1);
    ck_assert_int_eq(c.machine, 6);
}
END_TEST

/* --- ranks --- */

START_TEST(ranks_share_a_host)
{
    const RankCores same[] = {{7, 0, 16, 16}, {7, 0, 16, 16}, {7, 2, 16, 16}, {7, 0, 16, 16}};
    HostShare s = place_share(same, 4, 3);
    ck_assert_int_eq(s.here, 3);
    ck_assert_int_eq(s.sharing, 3);
    ck_assert_int_eq(s.index, 2);
    ck_assert_int_eq(s.bound, -1);
    s = place_share(same, 4, 2);
    ck_assert_int_eq(s.here, 1);
    ck_assert_int_eq(s.sharing, 1);
    ck_assert_int_eq(s.index, 0);
    const RankCores sockets[] = {{1, 0, 56, 112}, {2, 0, 56, 112}};
    s = place_share(sockets, 2, 1);
    ck_assert_int_eq(s.sharing, 1);
    ck_assert_int_eq(s.bound, -1);
    const RankCores core_each[] = {{1, 0, 1, 16}, {2, 0, 1, 16}};
    ck_assert_int_eq(place_share(core_each, 2, 1).bound, 0);
    const RankCores small[] = {{1, 0, 1, 2}, {2, 0, 1, 2}};
    ck_assert_int_eq(place_share(small, 2, 1).bound, -1);
    const RankCores many[] = {{1, 0, 1, 2}, {1, 0, 1, 2}, {1, 0, 1, 2}};
    ck_assert_int_eq(place_share(many, 3, 1).bound, -1);
    const RankCores uneven[] = {{7, 0, 16, 16},
                                {1, 1, 1, 16},
                                {2, 1, 1, 16},
                                {4, 1, 1, 16},
                                {8, 1, 1, 16}};
    s = place_share(uneven, 5, 0); /* alone on its host; the bound rank is one of four */
    ck_assert_int_eq(s.here, 1);
    ck_assert_int_eq(s.bound, 1);
    ck_assert_int_eq(s.part, 4);
}
END_TEST

/* Cores and quota of the machine of files, and the options; ranks: this process is the only one. */
static Options place(const char *threads, const char *pin)
{
    static const RtProgram program;
    static Comm alone = {.size = 1, .local_size = 1};
    Options o = {.pin = pin,
                 .threads_given = threads != NULL,
                 .threads = threads ? atoi(threads) : 0};
    cores_read(&o.cores, root);
    o.cores.real = true;
    place_threads(&o, &program, &alone);
    return o;
}

START_TEST(threads_follow_cores_and_options)
{
    machine(2, 1, 4, 2, false);
    Options o = place(NULL, NULL);
    ck_assert_str_eq(place_text(&o), "8 on 8 cores; pinned");
    ck_assert_str_eq(place_limit(&o), "none");
    ck_assert_int_eq(o.place.room, 16);
    o = place(NULL, "none");
    ck_assert_str_eq(place_text(&o), "8 on 8 cores; not pinned");
    o = place("3", NULL);
    ck_assert_str_eq(place_text(&o), "3 on 8 cores, set by --threads; not pinned");
    o = place("3", "cores");
    ck_assert_str_eq(place_text(&o), "3 on 8 cores, set by --threads; pinned");
    o = place("16", "cores");
    ck_assert_str_eq(place_pin(&o), "cores");
    o = place("17", "cores");
    ck_assert_str_eq(place_pin(&o), "none");
    mask("0-2,8");
    o = place(NULL, NULL);
    ck_assert_str_eq(place_text(&o), "3 on 3 of 8 cores, limited by the affinity mask; not pinned");
    mask("3");
    o = place(NULL, NULL);
    ck_assert_str_eq(place_text(&o), "1 on 1 of 8 cores, limited by the affinity mask; not pinned");
    o = place("1", NULL);
    ck_assert_str_eq(place_text(&o), "1 on 1 core, set by --threads; not pinned");
    mask("0-1,4-5");
    o = place(NULL, NULL);
    ck_assert_str_eq(place_text(&o), "4 on 4 of 8 cores, limited by the affinity mask; pinned");
    mask("0-15");
    group_v2("/pod");
    file("sys/fs/cgroup/pod/cpu.max", "250000 100000");
    o = place(NULL, NULL);
    ck_assert_str_eq(place_text(&o),
                     "2 on 8 cores, limited by the quota of the control group; not pinned");
    ck_assert_int_eq(o.place.room, 3);
    ck_assert_str_eq(place_limit(&o), "quota");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cores");
    TCase *m = tcase_create("machines");
    tcase_add_checked_fixture(m, begin, end);
    tcase_set_timeout(m, 60);
    tcase_add_loop_test(m, siblings_compute_nothing_and_the_tree_is_flat, 0, MACHINES);
    tcase_add_test(m, every_thread_has_one_parent);
    tcase_add_test(m, a_cpuset_limits_the_cores);
    tcase_add_test(m, a_quota_limits_the_threads);
    tcase_add_test(m, version_1_has_quotas_too);
    tcase_add_test(m, without_sysfs_a_processor_is_a_core);
    tcase_add_test(m, ranks_share_a_host);
    tcase_add_test(m, threads_follow_cores_and_options);
    suite_add_tcase(s, m);
    return suite_run(s);
}
