/* slurm.c -- a job script for Slurm (slurm.sbatch.in).
 *
 * One program runs as any number of ranks that divides the shards: processes over MPI, or one
 * process for each GPU.  The job queues itself again at its time limit.
 */
#include "base/quote.h"
#include "ir/step.h"
#include "scripts/scripts.h"
#include "scripts/template.h"

/* Whether this number of ranks can run.  On a GPU, the shards of a rank must form one node of the
 * tree of sums. */
static bool ranks_fit(int64_t shards, int64_t ranks, bool gpus)
{
    const int64_t each = shards / ranks;
    return shards % ranks == 0 && (!gpus || ranks == 1 || (each & (each - 1)) == 0);
}

/* "ranks: 1, 2, 4 or 8, which ..." */
static const char *rank_counts(Arena *a, int64_t shards, bool gpus)
{
    Text t = text_new(a);
    if (shards == 1)
        return "only 1 divides the one shard of a batch; --shards makes more";
    text_add(&t, "ranks: ");
    for (int64_t n = 1; n <= shards; n++)
        if (ranks_fit(shards, n, gpus))
            text_printf(&t, "%s%lld", n == 1 ? "" : n == shards ? " or " : ", ", (long long)n);
    text_printf(&t, ", which divide the %lld shards of a batch%s", (long long)shards,
                gpus ? " into 1, 2, 4, 8 ... each" : "");
    return t.s;
}

void script_slurm(const Graph *g, const char *source, bool gpus, Text *out)
{
    Arena *a = out->arena;
    PlaceList l = {.arena = a};
    places_add(&l, "name", g->name);
    places_add(&l, "source_line", quote_line(a, source));
    places_add(&l, "source_word", quote_shell(a, source));
    places_int(&l, "shards", g->step->shards);
    places_int(&l, "sockets", ranks_fit(g->step->shards, 2, gpus) ? 2 : 1);
    places_add(&l, "divisors", rank_counts(a, g->step->shards, gpus));
    places_flag(&l, "gpus", gpus);
    const Places p = places_of(&l);
    template_fill(template_slurm, &p, out);
}
