/* place.c -- see place.h. */
#include "options/place.h"
#include "base/error.h"
#include "base/threads.h"
#include "base/variables.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

HostShare place_share(const RankCores *rank, int ranks, int own)
{
    HostShare s = {.bound = -1};
    for (int r = ranks - 1; r >= 0; r--) {
        int here = 0, sharing = 0;
        for (int k = 0; k < ranks; k++) {
            const bool same = rank[k].host == rank[r].host;
            here += same;
            sharing += same && rank[k].mask == rank[r].mask;
            if (r == own && same && rank[k].mask == rank[r].mask)
                s.index += k < own;
        }
        if (rank[r].cores < rank[r].machine / here)
            s.bound = r, s.part = rank[r].machine / here;
        if (r == own)
            s.here = here, s.sharing = sharing;
    }
    return s;
}

static RankCores *exchange_cores(const Options *o, Comm *c)
{
    RankCores *all = rt_alloc(sizeof *all * (size_t)c->size);
    int host = 0;
    while (c->size > 1 && strcmp(comm_host(c, host), comm_host(c, c->rank)) != 0)
        host++;
    const int quota = (int)o->cores.quota, machine = o->cores.machine;
    all[c->rank] = (RankCores){o->cores.mask, host, o->cores.cores,
                               quota > 0 && quota < machine ? quota : machine};
    if (c->size > 1)
        comm_gather(c, all, sizeof *all, "the cores of each rank");
    return all;
}

/* ---- notes */

/* Launchers bind ranks to cores by default.  Open MPI binds each rank to one core if there are one
 * or two ranks.  Slurm binds each rank to the processors of --cpus-per-task; srun does not take
 * this option over from sbatch. */
static void note_binding(const RankCores *all, const HostShare *s, const Options *o, Comm *c)
{
    const bool mpirun = getenv(VARIABLE(OMPI_COMM_WORLD_SIZE)),
               srun = getenv(VARIABLE(SLURM_STEP_NUM_TASKS));
    if (s->bound < 0 || o->threads_given || (c->size == 1 && !mpirun))
        return;
    const RankCores *r = &all[s->bound];
    const char *who =
        c->size > 1 ? rt_format("rank %d (%s)", s->bound, comm_host(c, s->bound)) : "this process";
    rt_note("%s is bound to %d of %d cores: %s", who, r->cores, r->machine,
            mpirun ? rt_format("mpirun --bind-to none, or --map-by slot:PE=%d --bind-to core, "
                               "gives it %d",
                               s->part, s->part)
            : srun ? rt_format("srun --cpus-per-task with %d cores gives it more", s->part)
                   : rt_format("bind it to %d cores, or to none", s->part));
}

static void note_threads(const Options *o, int cores, double quota)
{
    if (!o->threads_given || o->command == INFO)
        return;
    if (o->threads > cores)
        rt_note("--threads %d: there %s %d core%s, and more threads compute no faster; without the "
                "option there is one thread for each core",
                o->threads, cores == 1 ? "is" : "are", cores, cores == 1 ? "" : "s");
    else if (quota > 0 && o->threads > ceil(quota))
        rt_note("--threads %d: the control group has a quota of %.3g processors, and Linux stops "
                "all threads that use more; without the option there are as many threads as the "
                "quota allows",
                o->threads, quota);
}

/* ---- threads */

static int at_least_1(int n)
{
    return n > 1 ? n : 1;
}

/* The order of turns that TENON_TURNS names. */
static int turns_of(const char *text)
{
    return !text ? 0 : strcmp(text, "-1") == 0 ? -1 : 1;
}

void place_threads(Options *o, const RtProgram *p, Comm *c)
{
    const Cores *k = &o->cores;
    RankCores *all = exchange_cores(o, c);
    const HostShare s = place_share(all, c->size, c->rank);
    const int cores = at_least_1(k->cores / s.sharing),
              room = at_least_1(k->processors / s.sharing);
    const double quota = k->quota / s.here;
    const int allowed = cores_threads(k, s.here), usual = allowed < cores ? allowed : cores;
    if (!o->threads_given)
        o->threads = usual;
    o->place = (Placement){.threads = o->threads,
                           .cores = k,
                           .first = s.index * cores + cores <= k->cores ? s.index * cores : 0,
                           .turns = turns_of(getenv(VARIABLE(TENON_TURNS))),
                           .room = quota > 0 && quota < room ? at_least_1((int)ceil(quota)) : room};
    const bool all_cores = o->threads == cores && usual == cores && s.sharing <= k->cores;
    const bool pin = o->pin && strcmp(o->pin, "cores") == 0;
    o->place.pin =
        o->pin ? pin && o->threads <= room : all_cores && (k->caches > 1 || k->sockets > 1);
    if (p->device || o->threads > o->place.room)
        o->place.pin = false;
    o->limited_by = o->threads_given        ? "option"
                    : usual < cores         ? "quota"
                    : s.sharing > 1         ? "ranks"
                    : k->cores < k->machine ? "affinity"
                                            : "none";
    if (pin && !o->place.pin)
        rt_note("--pin cores: %d threads are not pinned to %d processor%s", o->threads,
                o->place.room, o->place.room == 1 ? "" : "s");
    note_binding(all, &s, o, c);
    note_threads(o, cores, quota);
    free(all);
}

/* ---- words */

const char *place_limit(const Options *o)
{
    return o->limited_by;
}

const char *place_pin(const Options *o)
{
    return o->place.pin && o->cores.real ? "cores" : "none";
}

static const struct {
    const char *limit, *text;
} words[] = {{"option", ", set by --threads"},
             {"quota", ", limited by the quota of the control group"},
             {"ranks", ", shared with other ranks"},
             {"affinity", ", limited by the affinity mask"},
             {"none", ""}};

const char *place_text(const Options *o)
{
    int i = 0;
    while (strcmp(words[i].limit, o->limited_by) != 0)
        i++;
    const bool affinity = strcmp(o->limited_by, "affinity") == 0;
    const int cores = affinity ? o->cores.machine : o->cores.cores;
    const char *some = affinity ? rt_format("%d of ", o->cores.cores) : "";
    return rt_format("%d on %s%d core%s%s; %s", o->threads, some, cores, cores == 1 ? "" : "s",
                     words[i].text, o->place.pin && o->cores.real ? "pinned" : "not pinned");
}
