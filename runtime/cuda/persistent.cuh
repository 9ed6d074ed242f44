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

/* The blocks of a launch: their number, and what stays on the chip.  Results do not depend on
 * it. */
struct Together {
    int blocks;
    Chip chip;
};

/* `blocks` blocks, `each` on a multiprocessor. */
static Together together(const char *name, Steps *steps, const OwnLayout *layout, int blocks,
                         int each)
{
    Together t = {blocks, chip_of(layout, blocks, chip_limit(name, steps, each))};
    if (blocks_at_once(name, steps, t.chip.bytes) < each) {
        t.chip = chip_of(layout, blocks, 0);
        blocks_at_once(name, steps, 0);
    }
    return t;
}

/* A launch of t.blocks blocks: one cluster, or a cooperative launch. */
struct Launch {
    cudaLaunchConfig_t config;
    cudaLaunchAttribute attribute;
    Launch(bool cluster, const Together &t) : config(), attribute()
    {
        config.blockDim = dim3(THREADS), config.gridDim = dim3(t.blocks);
        config.dynamicSmemBytes = t.chip.bytes, config.stream = rt_cuda_stream;
        config.attrs = &attribute, config.numAttrs = 1;
        attribute.id =
            cluster ? cudaLaunchAttributeClusterDimension : cudaLaunchAttributeCooperative;
        if (cluster)
            attribute.val.clusterDim.x = t.blocks,
            attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
        else
            attribute.val.cooperative = 1;
    }
};

/* Whether the GPU has room for the blocks as one cluster.  All GPUs with clusters have room for 8,
 * unless the process has only a part of one (MIG). */
static bool cluster_fits(Steps *steps, const Together &t)
{
    const Launch launch(true, t);
    int clusters = 0;
    if (cudaOccupancyMaxActiveClusters(&clusters, (const void *)steps, &launch.config) ==
            cudaSuccess &&
        clusters > 0)
        return true;
    cudaGetLastError(); /* clears the error, which has been handled */
    return false;
}

/* Returns as many blocks as requested or, if the GPU has no room for these, a half, a quarter ...
 * of them. */
static Together cluster_together(const char *name, Steps *steps, const OwnLayout *layout,
                                 int cluster)
{
    Together t;
    rt_cuda_check(cudaFuncSetAttribute((const void *)steps,
                                       cudaFuncAttributeNonPortableClusterSizeAllowed, 1),
                  name);
    t = together(name, steps, layout, cluster, 1);
    while (t.blocks > 1 && !cluster_fits(steps, t))
        t = together(name, steps, layout, t.blocks / 2, 1);
    if (t.blocks < cluster)
        rt_cuda_fewer(cluster, t.blocks);
    return t;
}

/* Returns as many blocks as the GPU holds at the same time. */
static Together all_together(const char *name, Steps *steps, const OwnLayout *layout)
{
    const int each = blocks_at_once(name, steps, 0),
              blocks = each * device_attribute(name, cudaDevAttrMultiProcessorCount);
    return together(name, steps, layout, blocks, each);
}

/* cluster: number of blocks of the cluster; 0: no cluster, all blocks that fit.  A process that
 * shares the GPU (MPS) can have fewer multiprocessors than CUDA reports: then fewer blocks run. */
static void launch_together(const char *name, Steps *steps, int cluster, const OwnLayout *layout,
                            const Rt *first, int64_t stride, int n, unsigned *arrived)
{
    static Together t;
    if (t.blocks == 0)
        t = cluster ? cluster_together(name, steps, layout, cluster)
                    : all_together(name, steps, layout);
    for (;;) {
        const Launch launch(cluster != 0, t);
        const cudaError_t error =
            cudaLaunchKernelEx(&launch.config, steps, first, stride, n, arrived, t.chip);
        if (error != cudaErrorCooperativeLaunchTooLarge || t.blocks == 1) {
            rt_cuda_check(error, name);
            return;
        }
        cudaGetLastError();
        rt_cuda_fewer(t.blocks, (t.blocks + 1) / 2);
        t = together(name, steps, layout, (t.blocks + 1) / 2, 1);
    }
}

/* Launches up to n steps: a step whose loss is not finite is the last. */
#define LAUNCH_STEPS(steps, cluster, layout, first, stride, n, arrived)                            \
    (rt_cuda_clear(arrived, sizeof *(arrived)),                                                    \
     launch_together(#steps, steps, cluster, layout, first, stride, n, arrived))

#endif
