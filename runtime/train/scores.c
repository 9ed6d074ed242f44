/* scores.c -- see scores.h.
 *
 *   area = (pairs in order + pairs of equal scores / 2) / pairs; a pair has a sample of each class
 *
 * Pairs are counted in integers, so the area does not depend on the order of the samples.  A heap
 * sorts in place, because nothing is allocated after the first step.
 */
#include "train/scores.h"
#include "base/error.h"
#include "base/memory.h"
#include "files/params.h"
#include "train/evaluate.h"
#include <math.h>

bool scores_reported(const RtProgram *p)
{
    return p->target_kind == RT_TARGET_CLASS && p->ntarget == 0 && p->noutput == 0 &&
           p->classes == 2 && p->outputs == 1;
}

Scores *scores_new(const RtProgram *p, Comm *c, int64_t samples)
{
    if (!scores_reported(p))
        return NULL;
    Scores *s = rt_alloc(sizeof *s);
    const int64_t each = evaluate_batches(p, samples) * (p->batch / c->size);
    s->comm = c;
    s->all = memory_map(each * c->size * (int64_t)sizeof *s->all, false, "the scores of a split");
    s->output = rt_alloc((size_t)p->batch * (size_t)p->real_bytes);
    return s;
}

void scores_begin(Scores *s)
{
    s->count = 0;
}

void scores_add(Scores *s, const RtProgram *p, const Batch *b, const char *output)
{
    const int each = p->batch / s->comm->size, first = s->comm->rank * each;
    for (int i = first; i < first + each; i++) {
        const char *row = (const char *)b->label + (int64_t)b->index[i] * b->label_stride;
        Score *one = &s->all[s->count++];
        one->score = params_real(output, p->real_bytes, i);
        one->positive = i < b->valid ? rt_integer_at(row, b->label_type, 0) : -1;
    }
}

/* Moves s[i] down in the heap of n scores, in which no score is larger than the one above. */
static void sift(Score *s, int64_t i, int64_t n)
{
    const Score moved = s[i];
    for (int64_t next; (next = 2 * i + 1) < n; i = next) {
        next += next + 1 < n && s[next + 1].score > s[next].score;
        if (!(s[next].score > moved.score))
            break;
        s[i] = s[next];
    }
    s[i] = moved;
}

static void sort(Score *s, int64_t n)
{
    for (int64_t i = n / 2 - 1; i >= 0; i--)
        sift(s, i, n);
    for (int64_t i = n - 1; i > 0; i--) {
        const Score last = s[i];
        s[i] = s[0];
        s[0] = last;
        sift(s, 0, i);
    }
}

double scores_area(Score *s, int64_t n)
{
    uint64_t negative = 0, positive = 0, halves = 0;
    for (int64_t i = 0; i < n; i++)
        if (isnan(s[i].score))
            return NAN;
    sort(s, n);
    for (int64_t i = 0, end; i < n; i = end) {
        uint64_t zeros = 0, ones = 0; /* of this score */
        for (end = i; end < n && !(s[end].score > s[i].score); end++)
            s[end].positive > 0 ? ones++ : zeros++;
        halves += ones * (2 * negative + zeros);
        negative += zeros;
        positive += ones;
    }
    return negative && positive ? (double)halves / 2 / ((double)negative * (double)positive) : NAN;
}

double scores_of_ranks(Comm *c, Score *all, int64_t count)
{
    int64_t n = 0;
    for (int64_t i = count - 1; c->rank > 0 && i >= 0; i--)
        all[c->rank * count + i] = all[i];
    comm_gather(c, all, count * (int64_t)sizeof *all, "the scores of a split");
    for (int64_t i = 0; i < count * c->size; i++)
        if (all[i].positive >= 0)
            all[n++] = all[i];
    return scores_area(all, n);
}

void scores_end(Scores *s)
{
    s->auc = scores_of_ranks(s->comm, s->all, s->count);
}
