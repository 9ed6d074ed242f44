/* limits.h -- how many blocks of a kernel a multiprocessor holds at the same time, and which launches a GPU refuses.
 *
 * Sources: CUDA C++ Programming Guide, "Compute Capabilities", table "Technical Specifications per Compute Capability"; how registers
 * and shared memory are allocated: cuda_occupancy.h of the toolkit, with which rules.cpp compares these functions.
 */
#ifndef LIMITS_H
#define LIMITS_H
#include <algorithm>

enum { WARP_THREADS = 32, BLOCK_THREADS = 1024 };

/* Limits of a multiprocessor of sm_80, sm_90 and sm_100.  It has four parts, each with a quarter of the registers. */
enum { MULTI_WARPS = 64, MULTI_BLOCKS = 32, MULTI_REGISTERS = 65536, MULTI_PARTS = 4 };

/* Registers of a thread; registers of a warp are allocated in units, and so are bytes of a block. */
enum { THREAD_REGISTERS = 255, REGISTER_UNIT = 256, SHARED_UNIT = 128 };

/* Bytes of shared memory of a block: that CUDA takes; that a kernel has without cudaFuncSetAttribute. */
enum { SHARED_RESERVED = 1024, SHARED_PLAIN = 48 * 1024 };

/* Blocks of a cluster: that every GPU with clusters allows; with cudaFuncAttributeNonPortableClusterSizeAllowed. */
enum { CLUSTER_PORTABLE = 8, CLUSTER_MOST = 16 };

struct GpuLimits {
    int multiprocessors;
    int shared; /* bytes of a multiprocessor; a block can have all but SHARED_RESERVED */
    int group;  /* multiprocessors of a GPC, which holds all blocks of a cluster; 0: no clusters */
};
struct KernelLimits {
    int registers, threads; /* of a thread; at most in a block */
    int fixed, dynamic;     /* bytes of shared memory of a block: known at compile time; at most besides these */
    bool large_clusters;
};

static inline int units(int n, int unit)
{
    return (n + unit - 1) / unit;
}

/* The most registers that a compiler may give a thread so that `blocks` blocks of `threads` threads fit on a multiprocessor (Programming Guide, "Launch
 * Bounds"). */
static inline int registers_within(int threads, int blocks)
{
    const int warps = units(units(threads, WARP_THREADS), MULTI_PARTS) * MULTI_PARTS * blocks;
    return std::min<int>(THREAD_REGISTERS, MULTI_REGISTERS / (warps * WARP_THREADS) / 8 * 8);
}

/* Blocks on a multiprocessor at the same time, as cudaOccupancyMaxActiveBlocksPerMultiprocessor counts them; 0: a launch is refused.
 *
 * A limit k.dynamic that leaves a block below SHARED_PLAIN has no effect here (measured on an H100), unlike in cuda_occupancy.h; a launch
 * checks it. */
static inline int blocks_on_one(const GpuLimits &g, const KernelLimits &k, int threads, int dynamic)
{
    const int warps = units(threads, WARP_THREADS), each = units(k.registers * WARP_THREADS, REGISTER_UNIT) * REGISTER_UNIT,
              bytes = units(k.fixed + dynamic + SHARED_RESERVED, SHARED_UNIT) * SHARED_UNIT,
              most = std::max<int>(SHARED_PLAIN, k.fixed + k.dynamic);
    if (threads < 1 || threads > BLOCK_THREADS || threads > k.threads || k.registers > THREAD_REGISTERS)
        return 0;
    if (k.fixed + dynamic > most || bytes > g.shared)
        return 0;
    if (each * units(warps, MULTI_PARTS) * MULTI_PARTS > MULTI_REGISTERS)
        return 0;
    const int by_registers = each ? MULTI_REGISTERS / MULTI_PARTS / each * MULTI_PARTS / warps : MULTI_BLOCKS;
    return std::min({(int)MULTI_BLOCKS, MULTI_WARPS / warps, by_registers, g.shared / bytes});
}

/* Clusters of `size` blocks at the same time, each inside of one GPC (Programming Guide, "Thread Block Clusters"). */
static inline int clusters_at_once(const GpuLimits &g, int on_one, int size)
{
    const int rest = g.multiprocessors % g.group;
    return g.multiprocessors / g.group * (g.group * on_one / size) + rest * on_one / size;
}

#endif
