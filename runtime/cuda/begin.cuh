/* begin.cuh -- the first kernel of a launch of one or several steps: finds the samples of the
 * batches, and clears the metrics.
 *
 * The sample of a place is a function of (seed, epoch, place) (RtOrder in rt.h), so the host sends
 * nothing else.  A thread computes one place and stores 4 bytes.  If the gather computed it
 * instead, each number of a sample would compute it again, 150,528 times for an image of ImageNet,
 * and so would dropout and augmentation.  This takes no additional launch, because metrics must be
 * cleared anyway.
 */
#ifndef CUDA_BEGIN_CUH
#define CUDA_BEGIN_CUH

/* Entry i of batch s: place i of the RtPlaces at byte s * stride of `places`. */
KERNEL begin_steps(uint32_t *index, const RtPlaces *places, int64_t stride, int batch, int count,
                   int *clear, int words)
{
    FOR_EACH(at, count) {
        const RtPlaces *p = (const RtPlaces *)((const char *)places + at / batch * stride);
        index[at] = rt_order_at(&p->order, p->first + at % batch);
    }
    FOR_EACH(i, words)
        clear[i] = 0;
}

void rt_cuda_begin(uint32_t *index, const RtPlaces *places, int64_t stride, int batch, int n,
                   int *clear, int64_t bytes)
{
    const int words = (int)(bytes / (int64_t)sizeof *clear), count = n * batch;
    launch("begin_steps", begin_steps, each_blocks(count > words ? count : words), index, places,
           stride, batch, count, clear, words);
}

#endif
