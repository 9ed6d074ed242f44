/* launch.c -- see launch.h. */
#include "comm/launch.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/variables.h"
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The variables of each launcher.  here: number of ranks on this host; hosts: number of hosts.
 * strict: the rank is never set without the size.  Slurm is not strict: it numbers the processes of
 * a batch script and of an allocation, too. */
static const struct {
    const char *size, *rank, *here, *hosts;
    bool strict;
} launcher[] = {{VARIABLE(TENON_RANKS), VARIABLE(TENON_RANK), NULL, NULL, true},
                {VARIABLE(OMPI_COMM_WORLD_SIZE), VARIABLE(OMPI_COMM_WORLD_RANK),
                 VARIABLE(OMPI_COMM_WORLD_LOCAL_SIZE), NULL, true},
                {VARIABLE(PMI_SIZE), VARIABLE(PMI_RANK), VARIABLE(MPI_LOCALNRANKS), NULL, false},
                {VARIABLE(SLURM_STEP_NUM_TASKS), VARIABLE(SLURM_PROCID), NULL,
                 VARIABLE(SLURM_STEP_NUM_NODES), false}};

/* Variables that identify this run among others. */
static const char *const job[] = {VARIABLE(PMIX_NAMESPACE), VARIABLE(SLURM_JOB_ID),
                                  VARIABLE(SLURM_STEP_ID), VARIABLE(SLURM_RESTART_COUNT)};

enum { PORTS = 12000, FIRST_PORT = 20000 }; /* below the kernel's range of ephemeral ports */

static bool is_set(const char *variable)
{
    const char *text = variable ? getenv(variable) : NULL;
    return text && *text;
}

/* The value of a variable; `otherwise` if it is empty or not set.  Dies if the value is no decimal
 * number or is less than `least`. */
static int launch_number(const char *variable, int least, int otherwise)
{
    if (!is_set(variable))
        return otherwise;
    const char *text = getenv(variable);
    char *end;
    errno = 0;
    const long n = strtol(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || errno || n < least || n > LAUNCH_RANKS)
        rt_die("%s=%s in the environment: a whole number from %d to %d is wanted", variable, text,
               least, LAUNCH_RANKS);
    return (int)n;
}

/* Reads the ranks as launcher i numbers them; false: it has started no process. */
static bool started_by(size_t i, Launch *l)
{
    const char *size = launcher[i].size, *rank = launcher[i].rank;
    if (!is_set(size) && is_set(rank) && launcher[i].strict)
        rt_die("%s=%s in the environment without %s, the number of ranks: set both or none", rank,
               getenv(rank), size);
    if (!is_set(size))
        return false;
    *l = (Launch){size, launch_number(rank, 0, -1), launch_number(size, 1, 1), true};
    if (l->rank < 0 && (l->size > 1 || launcher[i].strict))
        rt_die("%s=%s in the environment without %s, the number of this rank: set both or none",
               size, getenv(size), rank);
    if (l->rank >= l->size)
        rt_die("%s=%s with %s=%s in the environment: ranks are numbered from 0 to %d", rank,
               getenv(rank), size, getenv(size), l->size - 1);
    l->one_host = launch_number(launcher[i].here, 1, l->size) == l->size &&
                  launch_number(launcher[i].hosts, 1, 1) == 1;
    return true;
}

Launch launch_read(void)
{
    Launch l;
    for (size_t i = 0; i < sizeof launcher / sizeof *launcher; i++)
        if (started_by(i, &l) && l.size > 1)
            return l;
    return (Launch){.word = "", .size = 1, .one_host = true};
}

/* Finds the first host of a list: "node[03-05,7]" -> "node03"; "a1,b2" -> "a1". */
static bool first_host(const char *list, char host[256])
{
    if (!list || !*list)
        return false;
    const size_t head = strcspn(list, "[,");
    const bool many = list[head] == '[';
    snprintf(host, 256, "%.*s%.*s", (int)head, list,
             many ? (int)strcspn(list + head + 1, "-,]") : 0, list + head + many);
    return true;
}

static void hash_word(Hash *h, const char *text)
{
    hash_add(h, text, strlen(text) + 1);
}

/* Hash of the job's variables.  Without such variables, the parent process identifies the job: it
 * is the same for all processes of one mpiexec on one host. */
static uint64_t job_hash(const Launch *l)
{
    Hash h = hash_new();
    bool named = false;
    char parent[32];
    for (size_t i = 0; i < sizeof job / sizeof *job; i++)
        if (getenv(job[i])) {
            hash_word(&h, getenv(job[i]));
            named = true;
        }
    snprintf(parent, sizeof parent, "%d of %d", named ? 0 : (int)getppid(), l->size);
    hash_word(&h, parent);
    return hash_end(&h);
}

/* Splits "node1:21000" or "[fd00::1]:21000"; false: the text has neither form. */
static bool split_place(const char *place, char host[256], int *port)
{
    const bool six = *place == '[';
    const char *from = place + six, *to = strchr(from, six ? ']' : ':');
    const char *colon = to ? to + six : NULL;
    char *end;
    if (!colon || to == from || to - from > 255 || *colon != ':' ||
        !isdigit((unsigned char)colon[1]))
        return false;
    const long number = strtol(colon + 1, &end, 10);
    *port = (int)number;
    snprintf(host, 256, "%.*s", (int)(to - from), from);
    return !*end && number >= 1 && number <= 65535;
}

void launch_meeting(const Launch *l, char host[256], int *port, uint64_t *job)
{
    const char *place = getenv(VARIABLE(TENON_MEET));
    if (place && *place) {
        Hash h = hash_new();
        hash_word(&h, place);
        *job = hash_end(&h) + (uint64_t)l->size;
        if (!split_place(place, host, port))
            rt_die("TENON_MEET needs HOST:PORT, where rank 0 waits for the others, or "
                   "[ADDRESS]:PORT with an address of IPv6, not '%s'",
                   place);
        return;
    }
    *job = job_hash(l);
    *port = FIRST_PORT + (int)(*job % PORTS);
    if (l->one_host)
        snprintf(host, 256, "127.0.0.1");
    else if (!first_host(getenv(VARIABLE(SLURM_STEP_NODELIST)), host))
        rt_die("%d tasks (%s) on several hosts need an address at which they meet: set "
               "TENON_MEET=HOST:PORT for all of them, HOST being that of rank 0 (mpirun -x "
               "TENON_MEET=node1:21000)",
               l->size, l->word);
}
