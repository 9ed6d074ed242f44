/* begin.cuh -- what a launch of one step or several begins with: which samples its batches are, and metrics of 0.
 *
 * A place's sample is a function (RtOrder in rt.h), so nothing but (seed, epoch, place) comes from the host.  A thread a place: inside of the
 * gather each number of a sample would ask again, 150,528 times an image of ImageNet, and dropout and augmentation besides, for what is 4 bytes
 * to read.  It takes no launch of its own either, for it stands where metrics were cleared before.
 */
#ifndef CUDA_BEGIN_CUH
#define CUDA_BEGIN_CUH

/* Entry i of batch s: place i of the RtPlaces that lie s * stride bytes behind `places`. */
KERNEL begin_steps(uint32_t *index, const RtPlaces *places, int64_t stride, int batch, int count, int *clear, int words)
{
    FOR_EACH(at, count) {
        const RtPlaces *p = (const RtPlaces *)((const char *)places + at / batch * stride);
        index[at] = rt_order_at(&p->order, p->first + at % batch);
    }
    FOR_EACH(i, words)
        clear[i] = 0;
}

void rt_cuda_begin(uint32_t *index, const RtPlaces *places, int64_t stride, int batch, int n, int *clear, int64_t bytes)
{
    const int words = (int)(bytes / (int64_t)sizeof *clear), count = n * batch;
    launch("begin_steps", begin_steps, each_blocks(count > words ? count : words), index, places, stride, batch, count, clear, words);
}

#endif
