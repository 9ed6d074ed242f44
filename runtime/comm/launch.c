/* launch.c -- see launch.h. */
#include "comm/launch.h"
#include "error.h"
#include "hash.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* here: how many of them are on this host, or on how many hosts they are. */
static const struct {
    const char *size, *rank, *here, *hosts;
} launcher[] = {{"TENON_RANKS", "TENON_RANK", NULL, NULL},
                {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
                 NULL},
                {"PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS", NULL},
                {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", NULL, "SLURM_STEP_NUM_NODES"}};

/* What tells this run from others. */
static const char *const job[] = {"PMIX_NAMESPACE", "SLURM_JOB_ID", "SLURM_STEP_ID",
                                  "SLURM_RESTART_COUNT"};

enum { PORTS = 12000, FIRST_PORT = 20000 }; /* below those that the kernel gives away */

static int number_in(const char *variable, int otherwise)
{
    const char *text = variable ? getenv(variable) : NULL;
    return text && *text ? atoi(text) : otherwise;
}

Launch launch_read(void)
{
    for (size_t i = 0; i < sizeof launcher / sizeof *launcher; i++) {
        const int size = number_in(launcher[i].size, 1);
        if (size <= 1)
            continue;
        const bool here = !launcher[i].here || number_in(launcher[i].here, size) == size;
        const bool hosts = !launcher[i].hosts || number_in(launcher[i].hosts, 1) == 1;
        return (Launch){launcher[i].size, number_in(launcher[i].rank, -1), size, here && hosts};
    }
    return (Launch){.word = "", .size = 1, .one_host = true};
}

/* "node[03-05,7]" -> "node03"; "a1,b2" -> "a1". */
static bool first_of(const char *list, char host[256])
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

/* Of mpiexec's processes on one host their parent is the same. */
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

void launch_meeting(const Launch *l, char host[256], int *port, uint64_t *key)
{
    const char *place = getenv("TENON_MEET"), *colon = place ? strrchr(place, ':') : NULL;
    if (place && *place) {
        Hash h = hash_new();
        hash_word(&h, place);
        *key = hash_end(&h) + (uint64_t)l->size;
        *port = colon ? atoi(colon + 1) : 0;
        if (*port < 1 || *port > 65535 || colon == place)
            rt_die("TENON_MEET wants HOST:PORT, where rank 0 waits for the others, not '%s'",
                   place);
        snprintf(host, 256, "%.*s", (int)(colon - place), place);
        return;
    }
    *key = job_hash(l);
    *port = FIRST_PORT + (int)(*key % PORTS);
    if (l->one_host)
        snprintf(host, 256, "127.0.0.1");
    else if (!first_of(getenv("SLURM_STEP_NODELIST"), host))
        rt_die("%d tasks (%s) on several hosts need a place to meet: TENON_MEET=HOST:PORT in the "
               "environment of all, HOST being that of rank 0 (mpirun -x TENON_MEET=node1:21000)",
               l->size, l->word);
}
