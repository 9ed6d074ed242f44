/* persistent.cuh -- many steps in one launch: its blocks stay resident, and a barrier stands where
 * a stage reads what another stage has written.
 *
 * A stage is what an ordinary program launches: the same device function, whose parts are divided
 * among the resident blocks (FOR_BLOCKS, FOR_ROWS, FOR_EACH).  The order inside each part is the
 * same, so the bits are those of the ordinary program.  All stages use the same shared memory of
 * the block (SHARED in threads.cuh).
 *
 * There are two barriers.  grid_barrier: as many blocks as fit on the GPU, started together (a
 * cooperative launch), count their arrivals in memory.  cluster_barrier: the barrier of one
 * cluster, from sm_90 on: far fewer multiprocessors, but a shorter wait.
 */
#ifndef CUDA_PERSISTENT_CUH
#define CUDA_PERSISTENT_CUH
#include "cuda/own.cuh"

/* Stages are separate functions: inlined into one kernel they would share its registers.  Two
 * blocks of the kernel fit on a multiprocessor. */
#define STAGE           static __device__ __noinline__ void
#define KERNEL_OF_STEPS static __global__ void __launch_bounds__(THREADS, RT_RESIDENT)

#ifndef RT_SHIM
#include "cuda/barriers.cuh"
#endif

/* Clears sums before a stage that adds to them. */
DEVICE void clear_stage(void *at, int64_t bytes)
{
    FOR_EACH(i, bytes / (int64_t)sizeof(int))
        ((int *)at)[i] = 0;
}

/* Parameters, the scratch, and the region of shard `unit`.  Their addresses are loaded again at
 * each use: else the compiler keeps all addresses derived from them, from the forward pass to the
 * backward pass and from step to step, in more registers than exist. */
static inline __host__ __device__ char *fixed_of(const Rt *r)
{
    return *(char *const volatile *)&r->fixed;
}
struct Scratch {
    const Rt *r;
    __device__ __forceinline__ operator char *() const
    {
        return *(char *const volatile *)&r->scratch;
    }
};
struct Region {
    const Rt *r;
    int unit;
    __device__ __forceinline__ operator char *() const
    {
        return *(char *const volatile *)&r->shard + unit * r->shard_bytes;
    }
};

/* The Rt of step i of the launch. */
DEVICE const Rt *step_of(const Rt *first, int64_t stride, int i)
{
    return (const Rt *)((const char *)first + i * stride);
}

/* ------------------------------------------------------------------------------- the launch */

typedef void Steps(const Rt *first, int64_t stride, int n, unsigned *arrived, Chip chip);

#ifdef RT_SHIM
/* The stand-in launches few blocks, and not as many as a cluster, so that most stages have more
 * parts than blocks. */
static void launch_together(const char *name, Steps *steps, int, const OwnLayout *layout,
                            const Rt *first, int64_t stride, int n, unsigned *arrived)
{
    const Chip chip = chip_of(layout, shim_blocks_together(), shim_chip_limit());
    shim_enqueue_together(rt_cuda_stream, name, THREADS, chip.bytes,
                          [=] { steps(first, stride, n, arrived, chip); });
}
#else
static int device_attribute(const char *name, cudaDeviceAttr a)
{
    int device = 0, value = 0;
    rt_cuda_check(cudaGetDevice(&device), name);
    rt_cuda_check(cudaDeviceGetAttribute(&value, a, device), name);
    return value;
}

/* Blocks that fit on one multiprocessor, if each has `bytes` of its own shared memory. */
static int blocks_at_once(const char *name, Steps *steps, int bytes)
{
    int blocks = 0;
    rt_cuda_check(cudaFuncSetAttribute((const void *)steps,
                                       cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
                  name);
    rt_cuda_check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, (const void *)steps,
                                                                THREADS, bytes),
                  name);
    return blocks;
}

/* Bytes that each of `blocks` blocks on a multiprocessor can have besides the shared memory of the
 * stages. */
static int64_t chip_limit(const char *name, Steps *steps, int blocks)
{
    cudaFuncAttributes own;
    rt_cuda_check(cudaFuncGetAttributes(&own, (const void *)steps), name);
    const int most = device_attribute(name, cudaDevAttrMaxSharedMemoryPerBlockOptin),
              share = device_attribute(name, cudaDevAttrMaxSharedMemoryPerMultiprocessor) / blocks -
                      device_attribute(name, cudaDevAttrReservedSharedMemoryPerBlock);
    return (most < share ? most : share) - (int64_t)own.sharedSizeBytes;
}

/* The blocks of a launch: their number, and what stays on the chip. */
struct Together {
    int blocks;
    Chip chip;
};

/* As many blocks as the GPU holds at the same time. */
static Together all_together(const char *name, Steps *steps, const OwnLayout *layout)
{
    const int each = blocks_at_once(name, steps, 0),
              blocks = each * device_attribute(name, cudaDevAttrMultiProcessorCount);
    Together t = {blocks, chip_of(layout, blocks, chip_limit(name, steps, each))};
    if (blocks_at_once(name, steps, t.chip.bytes) < each) {
        t.chip = chip_of(layout, blocks, 0);
        blocks_at_once(name, steps, 0);
    }
    return t;
}

/* As many blocks as requested, or 8 if the GPU has no room for a larger cluster: all GPUs with
 * clusters support 8. */
static Together cluster_together(const char *name, Steps *steps, const OwnLayout *layout,
                                 cudaLaunchConfig_t c)
{
    const int64_t limit = chip_limit(name, steps, 1);
    int clusters = 0;
    Together t = {(int)c.gridDim.x, chip_of(layout, (int)c.gridDim.x, limit)};
    rt_cuda_check(cudaFuncSetAttribute((const void *)steps,
                                       cudaFuncAttributeNonPortableClusterSizeAllowed, 1),
                  name);
    blocks_at_once(name, steps, t.chip.bytes);
    c.dynamicSmemBytes = t.chip.bytes;
    if (cudaOccupancyMaxActiveClusters(&clusters, (const void *)steps, &c) == cudaSuccess &&
        clusters > 0)
        return t;
    cudaGetLastError(); /* clears the error, which has been handled */
    t = Together{8, chip_of(layout, 8, limit)};
    blocks_at_once(name, steps, t.chip.bytes);
    return t;
}

/* cluster: number of blocks of the cluster; 0: no cluster, all blocks that fit. */
static void launch_together(const char *name, Steps *steps, int cluster, const OwnLayout *layout,
                            const Rt *first, int64_t stride, int n, unsigned *arrived)
{
    static Together t;
    void *arguments[] = {&first, &stride, &n, &arrived, &t.chip};
    cudaLaunchAttribute attribute = {};
    cudaLaunchConfig_t config = {};
    config.blockDim = dim3(THREADS), config.gridDim = dim3(cluster), config.stream = rt_cuda_stream;
    config.attrs = &attribute, config.numAttrs = 1;
    attribute.id = cluster ? cudaLaunchAttributeClusterDimension : cudaLaunchAttributeCooperative;
    if (cluster)
        attribute.val.clusterDim.x = cluster,
        attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    else
        attribute.val.cooperative = 1;
    if (t.blocks == 0)
        t = cluster ? cluster_together(name, steps, layout, config)
                    : all_together(name, steps, layout);
    config.gridDim = dim3(t.blocks), config.dynamicSmemBytes = t.chip.bytes;
    if (cluster)
        attribute.val.clusterDim.x = t.blocks;
    rt_cuda_check(cudaLaunchKernelExC(&config, (const void *)steps, arguments), name);
}
#endif

/* Launches up to n steps: a step whose loss is not finite is the last. */
#define LAUNCH_STEPS(steps, cluster, layout, first, stride, n, arrived)                            \
    (rt_cuda_clear(arrived, sizeof *(arrived)),                                                    \
     launch_together(#steps, steps, cluster, layout, first, stride, n, arrived))

#endif
