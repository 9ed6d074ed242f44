/* host.c -- the machine, from /proc and /sys. */
#define _GNU_SOURCE
#include "sweep/host.h"
#include "sweep/child.h"
#include "sweep/gpus.h"
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* The first line of a small file, or NULL. */
static const char *line_of(Arena *a, const char *path)
{
    char line[512];
    FILE *f = fopen(path, "re");
    const bool read = f && fgets(line, sizeof line, f);
    if (f)
        fclose(f);
    return read ? arena_strndup(a, line, strcspn(line, "\n")) : NULL;
}

/* The text after "key ... :" in the first line of a file that begins with key, or NULL. */
static const char *value_in(Arena *a, const char *path, const char *key)
{
    char line[512];
    const char *value = NULL;
    FILE *f = fopen(path, "re");
    while (f && !value && fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, key, strlen(key)) == 0 && colon) {
            colon += 1 + strspn(colon + 1, " \t");
            value = arena_strndup(a, colon, strcspn(colon, "\n"));
        }
    }
    if (f)
        fclose(f);
    return value;
}

static void add(Text *t, const char *key, const char *value)
{
    if (value && *value)
        text_printf(t, "%s: %s\n", key, value);
}

static void caches(Arena *a, Text *t)
{
    for (int i = 0; i < 8; i++) {
        const char *dir = arena_printf(a, "/sys/devices/system/cpu/cpu0/cache/index%d", i);
        const char *level = line_of(a, arena_printf(a, "%s/level", dir));
        const char *type = line_of(a, arena_printf(a, "%s/type", dir));
        if (level && type)
            add(t,
                arena_printf(a, "L%s%s", level,
                             *type == 'D'   ? "d"
                             : *type == 'I' ? "i"
                                            : ""),
                line_of(a, arena_printf(a, "%s/size", dir)));
    }
}

static int processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

/* Energy of all packages since a fixed moment, in J; if a counter wraps, a difference can be negative. */
static double packages_joules(void)
{
    double sum = 0;
    bool any = false;
    for (int i = 0; i < 16; i++) {
        char path[96];
        double uj;
        snprintf(path, sizeof path, "/sys/class/powercap/intel-rapl:%d/energy_uj", i);
        FILE *f = fopen(path, "re");
        if (f && fscanf(f, "%lf", &uj) == 1) {
            sum += 1e-6 * uj;
            any = true;
        }
        if (f)
            fclose(f);
    }
    return any ? sum : NAN;
}

static double energy(int gpus)
{
    const double packages = packages_joules(), cards = gpus > 0 ? gpus_joules(gpus) : NAN;
    return isnan(packages) ? cards : isnan(cards) ? packages : packages + cards;
}

/* The sources of the energy that a run has used. */
static const char *told_by(void)
{
    const bool packages = !isnan(packages_joules()), cards = !isnan(gpus_joules(1));
    return packages && cards ? "RAPL, NVML" : packages ? "RAPL" : cards ? "NVML" : NULL;
}

void host_look(Arena *a, Host *h)
{
    struct utsname u;
    char name[256] = "";
    Text t = text_new(a);
    uname(&u);
    gethostname(name, sizeof name - 1);
    h->cpu = value_in(a, "/proc/cpuinfo", "model name");
    h->cpu = h->cpu ? h->cpu : u.machine[0] ? arena_strdup(a, u.machine) : "unknown";
    h->processors = processors();
    add(&t, "cpu", h->cpu);
    add(&t, "processors", arena_printf(a, "%d", h->processors));
    caches(a, &t);
    add(&t, "memory", value_in(a, "/proc/meminfo", "MemTotal"));
    add(&t, "governor", line_of(a, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
    add(&t, "highest clock, kHz",
        line_of(a, "/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"));
    add(&t, "gpu driver", line_of(a, "/proc/driver/nvidia/version"));
    gpus_look(&t);
    add(&t, "energy reported by", told_by());
    add(&t, "system", arena_printf(a, "%s %s %s", u.sysname, u.release, u.machine));
    add(&t, "host", name);
    h->text = t.s;
}

Meter host_meter(int gpus)
{
    Meter m = {.now = child_now(), .joules = energy(gpus)};
    double user = 0, nice = 0, system = 0, idle, wait, irq = 0, soft = 0, steal = 0;
    FILE *f = fopen("/proc/stat", "re");
    if (f && fscanf(f, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &user, &nice, &system, &idle, &wait,
                    &irq, &soft, &steal) == 8) {
        const double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
        m.busy = tick * (user + nice + system + irq + soft);
        m.stolen = tick * steal;
    }
    if (f)
        fclose(f);
    return m;
}

double host_mhz(void)
{
    char line[256];
    double most = NAN, mhz;
    FILE *f = fopen("/proc/cpuinfo", "re");
    while (f && fgets(line, sizeof line, f)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "cpu MHz", 7) == 0 && colon && sscanf(colon + 1, "%lf", &mhz) == 1)
            most = fmax(most, mhz);
    }
    if (f)
        fclose(f);
    return most;
}

double host_peak(Arena *a, const char *program, const char *output, int threads, bool memory)
{
    Child c = {.output = output, .timeout = 60};
    double peak = NAN;
    child_word(a, &c, program);
    child_word(a, &c, arena_printf(a, "%d", threads));
    if (memory)
        child_word(a, &c, "memory");
    FILE *f = child_run(a, &c) ? fopen(output, "re") : NULL;
    if (f && fscanf(f, "%lf", &peak) != 1)
        peak = NAN;
    if (f)
        fclose(f);
    return peak;
}
