/* constants.h -- numbers, words and formulas that the compiler and the programs that it writes
 * share.
 *
 * The compiler plans and prices with these numbers; the runtime and generated code compute with
 * them.  The compiler includes this header as "runtime/constants.h", and rt.h as "constants.h".  A
 * constant that only one side uses does not belong here.
 */
#ifndef RT_CONSTANTS_H
#define RT_CONSTANTS_H
#include <stdbool.h>
#include <stdint.h>

/* Memory, in bytes. */
enum {
    RT_ALIGN = 64,      /* regions and buffers begin at multiples: a cache line, a vector */
    RT_STACK = 6 << 20, /* a thread's stack: a kernel's arrays of fixed size (at most 3.4 MB:
                                   conv2d_dw_update in f64), RT_STACK_GROWING, and the callers */
    RT_STACK_GROWING = 1 << 20, /* for arrays of a kernel that grow with the model's sizes */
};

/* Tables of a program (rt.h). */
enum {
    RT_TERMS = 8,          /* of a loss */
    RT_TARGETS = 4,        /* of a recipe */
    RT_CLASS_WEIGHTS = 64, /* classes of a loss with weights of classes */
    RT_OUTPUTS = 8,        /* outputs of a model */
    RT_MEASURES = 8,       /* metrics that a recipe writes as expressions */
    /* of a batch: the loss, its terms, up to three for each target, and those of the recipe */
    RT_METRICS = 1 + RT_TERMS + 3 * RT_TARGETS + RT_MEASURES,
    RT_INPUTS = 8,      /* inputs of a model */
    RT_STEPS_MOST = 64, /* steps of one launch */
    RT_DIMS = 6,        /* of a parameter */
    RT_LIST = 16,       /* numbers in a list of the recipe */
};

/* What random numbers are for, a counter of Philox: programs draw them, and scripts some of them,
 * too. */
enum {
    RT_PURPOSE_INIT = 1,
    RT_PURPOSE_SHUFFLE = 2,
    RT_PURPOSE_DATA = 3,
    RT_PURPOSE_AUGMENT = 4,
    RT_PURPOSE_GENERATE = 5,
    RT_PURPOSE_SPLIT = 6,
    RT_PURPOSE_DROPOUT = 16,    /* + index of the layer */
    RT_PURPOSE_NORMAL = 1 << 20 /* + index of the node */
};

/* The share of a table's rows for its test split, if neither data nor recipe say more. */
#define RT_TEST_SHARE 0.2

/* Kernels for processors (runtime/cpu). */
enum {
    RT_TILE_ROWS_MOST = 8,          /* rows of a register tile two vectors wide: tile.h */
    RT_CONV_NARROW = 512,           /* products of a position in a wide tile, at most: conv_box.h */
    RT_TAPS_POSITIONS = 256,        /* positions of a block: conv_dw_taps.h */
    RT_TAPS_FEW = 64,               /* positions of a sample, at most, for sums tap by tap */
    RT_DW_BLOCK_CHANNELS = 512,     /* channels of a unit of conv2d_dw_update: conv_dw_units.h */
    RT_DW_BLOCK_BYTES = 1024,       /* bytes of a unit's outputs */
    RT_BF16_FILTER_OUTPUTS = 64,    /* outputs of a unit of bf16_conv2d_dw_update, */
    RT_BF16_FILTER_SHARDS = 8,      /* shards, */
    RT_BF16_FILTER_SLICES = 8,      /* slices of a shard, and positions of a shard with the zeros */
    RT_BF16_FILTER_POSITIONS = 512, /* that fill blocks, at most: bf16_conv_update.h */
    RT_WINO_BYTES = 1280 * 1024,    /* bytes of scratch: winograd.h */
    RT_WINO_NEAR = 192 * 1024,      /* bytes of these to use if the filters stay in the L2 cache */
    RT_WINO_FAR = 1152 * 1024,      /* bytes of these to use if the filters do not */
    RT_WINO_BLOCK = 48,             /* tiles of a block, at most */
    RT_DENSE_DX_COLUMNS = 3,        /* inputs of a tile of dense_dx: dense.h */
    RT_DENSE_UNIT_TILES = 14,       /* tiles of a unit of dense_dw_update: dense_update.h */
    RT_BF16_UNIT_INPUTS = 64,       /* inputs of a unit of bf16_dense_dw_update, and panels: */
    RT_BF16_UNIT_PANELS = 4,        /* dense_update.h */
    RT_DENSE_INPUT_TILES = 4,       /* the same, of stored samples: dense_input.h */
    RT_DENSE_INPUT_MANY = 256,      /* samples of a shard from which units of half the outputs */
    RT_DENSE_INPUT_THREADS = 24,    /* are possible, and threads from which they are used */
    RT_DENSE_WIDE_PANELS = 2, /* panels of a unit of dense_wide, in the L2 cache: dense_wide.h */
    RT_SPARSE_WORD = 64,      /* inputs of a block: dense_sparse.h */
    RT_ATTENTION_ROWS = 32,   /* positions of a sequence at a time: attention.h */
    RT_ATTENTION_GROUP = 128, /* positions of a sequence at a time: bf16_attention.h */
    RT_EMBEDDING_LEVELS = 24, /* levels of the tree: embedding.h */
    RT_EMBEDDING_ROWS = 16,   /* rows of a unit, at least */
};

/* Predicted time of a step in bf16 over that in f32, by AVX-512 or AVX2; 0: not known.  Prices of
 * bf16 are those of AVX-512; AVX2 takes AVX2 times as long, measured on one thread of a Zen 4
 * (docs/explain/bf16.md).  Tiles of AMX and VDPBF16PS have no prices.  The compiler, and a program
 * at its start, report ratios from SLOWER on. */
#define RT_HALF_AVX2   2.2
#define RT_HALF_SLOWER 1.15
static inline double rt_half_ratio(int avx2, double us_f32, double us_half)
{
    return us_f32 > 0 ? (avx2 ? RT_HALF_AVX2 : 1) * us_half / us_f32 : 0;
}

enum { RT_THREADS_MOST = 1024 }; /* of a process: the most that --threads accepts */

/* Teams of threads that compute units of a slice phase together.  With T threads in g teams of
 * m = floor(T / g) members, and l = ceil(log2 m), U units take
 *
 *   ceil(U / g) (alone + (unit - alone) / (m E) + barriers * (C + 2 l L))
 *
 * where `alone` is what one member computes for all; E: mean part of a call, divided by the largest
 * part, EQUAL - UNEQUAL l; C: what a member does in each call in addition to its part; L: time to
 * move a cache line between cores of a socket.  Without teams, m = 1: units one after another.  The
 * compiler predicts with this formula, and programs choose with it.
 *
 * E and C were fitted to the simulated steps of bench/SCALING.md (Zen 4): parts of the small layers
 * of ResNet-50 reach E = 0.84 with 2 members and 0.5 to 0.6 with 28 to 56. */
#define RT_TEAM_EQUAL   0.91
#define RT_TEAM_UNEQUAL 0.06
#define RT_TEAM_CALL_US 0.3  /* C */
#define RT_TEAM_LINE_US 0.07 /* L */
static inline double rt_team_us(double unit_us, double alone_us, double barriers, int units,
                                int threads, int teams)
{
    const int members = threads / teams, rounds = (units + teams - 1) / teams;
    int levels = 0;
    for (int n = 1; n < members; n *= 2)
        levels++;
    const double equal = members * (RT_TEAM_EQUAL - RT_TEAM_UNEQUAL * levels);
    return members == 1 ? rounds * unit_us
                        : rounds * (alone_us + (unit_us - alone_us) / equal +
                                    barriers * (RT_TEAM_CALL_US + 2 * levels * RT_TEAM_LINE_US));
}
/* The number of teams, at most `most`, with the shortest time, which is *us. */
static inline int rt_team_best(double unit_us, double alone_us, double barriers, int units,
                               int threads, int most, double *us)
{
    int best = units < threads ? units : threads;
    best = best < most ? best : most;
    *us = best > 0 ? rt_team_us(unit_us, alone_us, barriers, units, threads, best) : 0;
    for (int teams = best - 1; teams > 0; teams--) {
        const double t = rt_team_us(unit_us, alone_us, barriers, units, threads, teams);
        if (t < *us)
            *us = t, best = teams;
    }
    return best;
}
/* The first `whole` units are computed by one thread each, the others by `teams` teams; us: the
 * time of all.  regions: number of thread regions, one for each unit that is computed at a time. */
typedef struct RtTeamPlan {
    int whole, teams;
    double us;
} RtTeamPlan;
static inline RtTeamPlan rt_team_plan(double unit_us, double alone_us, double barriers, int units,
                                      int threads, int regions)
{
    if (regions < units && regions < threads) {
        RtTeamPlan p = {0, 0, 0};
        p.teams = rt_team_best(unit_us, alone_us, barriers, units, threads, regions, &p.us);
        return p;
    }
    const int whole = units / threads * threads, rest = units - whole;
    const double rounds = whole / threads * unit_us;
    double all, part;
    const int teams = rt_team_best(unit_us, alone_us, barriers, units, threads, threads, &all),
              few = rt_team_best(unit_us, alone_us, barriers, rest, threads, threads, &part);
    if (teams < threads && all < rounds + part) {
        RtTeamPlan p = {0, teams, all};
        return p;
    }
    RtTeamPlan p = {rest == 0 || few == threads ? units : whole, few, rounds + part};
    return p;
}

/* Thread regions: a slice has one while it is computed.  With more threads than slices, each slice
 * could have its own.  Fewer and larger teams need less memory: eight slices can be two rounds of
 * four teams.  The number of rounds grows until the program has at most RT_REGIONS_GROWTH times the
 * bytes that it has with two threads.  Each slice keeps its region if the slice phases would
 * otherwise take more than RT_REGIONS_SLOWER times as long: a large team mostly waits in barriers
 * if its calls are small.
 *
 * `other`: bytes of the program outside of the thread regions; `scratch`: bytes of each thread if
 * threads outnumber regions; phase: the slice phases. */
#define RT_REGIONS_GROWTH 1.3
#define RT_REGIONS_SLOWER 1.15
typedef struct RtTeamCost {
    double unit_us, alone_us, barriers; /* as in rt_team_us */
} RtTeamCost;
static inline double rt_regions_us(const RtTeamCost *phase, int n, int units, int threads,
                                   int regions)
{
    double us = 0;
    for (int i = 0; i < n; i++)
        us += rt_team_plan(phase[i].unit_us, phase[i].alone_us, phase[i].barriers, units, threads,
                           regions)
                  .us;
    return us;
}
static inline int rt_regions(int64_t other, int64_t region, int64_t scratch, int slices,
                             int threads, const RtTeamCost *phase, int n)
{
    const int few = slices < 2 ? slices : 2;
    const double most = RT_REGIONS_GROWTH * (double)(other + few * region);
    int regions = slices;
    if (threads <= slices)
        return threads;
    for (int rounds = 2;
         regions > few && n > 0 && (double)(other + regions * region + threads * scratch) > most;
         rounds++)
        regions = (slices + rounds - 1) / rounds;
    const double us = rt_regions_us(phase, n, slices, threads, regions),
                 best = rt_regions_us(phase, n, slices, threads, slices);
    return us <= RT_REGIONS_SLOWER * best ? regions : slices;
}

/* Kernels for GPUs (runtime/cuda). */
enum {
    RT_THREADS = 256, /* threads of a block: launch.cuh */
    RT_WARP = 32,
    RT_RESIDENT = 2, /* blocks that a multiprocessor holds at a time: threads.cuh */
    RT_FULL = 256,   /* blocks that occupy a GPU: two on each multiprocessor of an H100 */
    RT_SHARED_SM_80 = 99 << 10, /* bytes for a block on each GPU that runs a program for sm_80 */
    RT_SHARED = 43008,          /* bytes of shared memory of a block: the strips of product.cuh; the
                              kernels of a launch use them in turn */
    RT_PACK = 4,                /* adjacent numbers that a thread reads at once: pack.cuh */
    RT_UPDATE_EACH = 1024,      /* numbers of a block: update.cuh */
    RT_HEAD_MOST = 256,         /* features of a head: attention.cuh */
    RT_MERGED = 8,              /* sorted runs that a launch merges: embedding.cuh */
};

/* Tiles: the rows and columns of the results that a block of a product computes
 * (runtime/cuda/product.cuh).  RT_TILE_PERCENT is the share of the peak of multiply-adds that a
 * block reaches: in a larger tile, a thread does more multiply-adds for each number that it
 * loads. */
enum {
    RT_TILE_128_128,
    RT_TILE_64_128,
    RT_TILE_32_128,
    RT_TILE_64_64,
    RT_TILE_32_32,
    RT_TILE_16_16,
    RT_TILES
};
#define RT_TILE_NAMES                                                                              \
    "RT_TILE_128_128", "RT_TILE_64_128", "RT_TILE_32_128", "RT_TILE_64_64", "RT_TILE_32_32",       \
        "RT_TILE_16_16"
#define RT_TILE_ROWS(tile)                                                                         \
    ((tile) == RT_TILE_128_128                             ? 128                                   \
     : (tile) == RT_TILE_64_128 || (tile) == RT_TILE_64_64 ? 64                                    \
     : (tile) == RT_TILE_16_16                             ? 16                                    \
                                                           : 32)
#define RT_TILE_COLUMNS(tile) ((tile) <= RT_TILE_32_128 ? 128 : RT_TILE_ROWS(tile))
/* terms of each sum in a strip, which shared memory holds */
#define RT_TILE_DEPTH(tile) (1024 / RT_TILE_COLUMNS(tile))
#define RT_TILE_PERCENT(tile)                                                                      \
    ((tile) == RT_TILE_128_128  ? 95                                                               \
     : (tile) == RT_TILE_64_128 ? 90                                                               \
     : (tile) == RT_TILE_32_32  ? 45                                                               \
     : (tile) == RT_TILE_16_16  ? 20                                                               \
                                : 80)

#ifdef __cplusplus
#define RT_FORMULA static constexpr __host__ __device__
#else
#define RT_FORMULA static inline
#endif

/* Whether a loop over `count` numbers occupies a GPU if each thread has a pack of them. */
RT_FORMULA bool rt_fills_packs(int64_t count)
{
    return count >= (int64_t)RT_FULL * RT_THREADS * RT_PACK;
}

RT_FORMULA int64_t rt_tile_blocks(int tile, int64_t m, int64_t n)
{
    return ((m + RT_TILE_ROWS(tile) - 1) / RT_TILE_ROWS(tile)) *
           ((n + RT_TILE_COLUMNS(tile) - 1) / RT_TILE_COLUMNS(tile));
}
/* A step that is one launch has no registers for the larger tiles, except in gradients of weights
 * (parts.c). */
enum { RT_TILE_ONE_LAUNCH = RT_TILE_32_128 };
/* conv2d_dx keeps more parts of addresses in registers than the largest tile leaves. */
enum { RT_TILE_DX = RT_TILE_64_128 };
/* The tile, `first` or a smaller one, with which m x n results take the shortest time.  The time is
 * that of all blocks; fewer blocks than RT_FULL take the time of RT_FULL blocks. */
RT_FORMULA int rt_tile(int first, int64_t m, int64_t n)
{
#ifdef RT_TILE_ONLY /* a test: one tile for all products */
    return RT_TILE_ONLY;
#endif
    int best = first;
    int64_t least = INT64_MAX;
    for (int tile = first; tile < RT_TILES; tile++) {
        const int64_t blocks = rt_tile_blocks(tile, m, n),
                      time = (blocks > RT_FULL ? blocks : (int64_t)RT_FULL) * RT_TILE_ROWS(tile) *
                             RT_TILE_COLUMNS(tile) * 100 / RT_TILE_PERCENT(tile);
        if (time < least)
            least = time, best = tile;
    }
    return best;
}

/* A product with a long sum and few results: several blocks take a part of the sum each, and the
 * parts are added in order.  The number of parts depends on the sizes only, so the bits are the
 * same on all GPUs.  parts = 1: one block takes the whole sum.  groups: such products in one
 * call; first: the largest tile. */
typedef struct RtSplit {
    int tile, parts;
} RtSplit;
RT_FORMULA int64_t rt_split_clocks(RtSplit s, int64_t groups, int64_t m, int64_t n, int64_t k)
{
    enum { EACH_CLOCK = 128, JOIN = 3000, JOIN_A_PART = 40, JOINED_EACH_CLOCK = 256 };
    const int64_t blocks = groups * rt_tile_blocks(s.tile, m, n) * s.parts,
                  each = (k + s.parts - 1) / s.parts;
    return (blocks > RT_FULL ? blocks : (int64_t)RT_FULL) * RT_TILE_ROWS(s.tile) *
               RT_TILE_COLUMNS(s.tile) / (RT_FULL / RT_RESIDENT) * each / EACH_CLOCK * 100 /
               RT_TILE_PERCENT(s.tile) +
           (s.parts > 1 ? JOIN + s.parts * (JOIN_A_PART + groups * m * n / JOINED_EACH_CLOCK) : 0);
}
RT_FORMULA RtSplit rt_split(int first, int64_t groups, int64_t m, int64_t n, int64_t k)
{
    enum { PARTS_MOST = 512, STEPS_LEAST = 64 };
    RtSplit best = {first, 1};
    for (int tile = first; tile < RT_TILES; tile++)
        for (int parts = 1; parts <= PARTS_MOST && (parts == 1 || k / parts >= STEPS_LEAST);
             parts *= 2) {
            const RtSplit s = {tile, parts};
            if (rt_split_clocks(s, groups, m, n, k) < rt_split_clocks(best, groups, m, n, k))
                best = s;
        }
    return best;
}

/* Words in capitals that cannot be the name of a constant in a generated file, because the file
 * itself or a file that it includes uses them.  A word that ends in _ stands for all words that
 * begin with it. */
/* clang-format off */
#define RT_RESERVED_WORDS \
    /* a generated file */                                                                        \
    " CHUNK SLICE SLICES SHARD FIXED LOCAL BATCH PARTIAL GRAD KERNEL TICK SCRATCH TEST_SCRATCH"   \
    " TOKEN_SCRATCH OWN ALONE TEAM_"                                                              \
    /* a file for a GPU, and the headers of runtime/cuda */                                       \
    " LAUNCH DEVICE SIZE SHARED STAGE STAGE_AND_KERNEL KERNEL_OF_STEPS LAUNCH_STEPS FOR_BLOCKS"   \
    " FOR_ROWS ONE_PART_A_BLOCK FOR_EACH THREADS WARP WARPS TILE STRIP SIDE FEW_BLOCKS ALONG_K"   \
    " ALONG_RESULT UPDATE_EACH UPDATE_LEVELS WORKSPACE APART CUDA_ CUDART_ CUBLAS_ CUBLASLT_"     \
    " FOR_CHANNELS FOR_BLOCKS_LAST SAMPLES SCALAR ATTENTION_EACH ATTENTION_STRIPS CLIP_PARTS"     \
    " OWN_FETCH OWN_UPDATE OWN_PUT TREE_LEVELS PACK RECURRENCE LAUNCH_RECURRENCE FOR_SAMPLES"     \
    " STEPS_ADJACENT OUTPUTS_ADJACENT"                                                            \
    /* rt.h and the headers of runtime/cpu */                                                     \
    " ATTENTION_ROWS ATTENTION_SCORES ATTENTION_PART ATTENTION_BLOCK ATTENTION_ROOM"              \
    " ATTENTION_DX_ROOM EMBEDDING_LEVELS EMBEDDING_ROWS EMBEDDING_SIZE GEMM_DEPTH GEMM_PACKED"    \
    " GEMM_PANELS BLAS_COLUMNS BLAS_GEMM CONV_BLOCK CONV_DEPTH_HELD CONV_DEPTH_PLANE"             \
    " CONV_DEPTH_SUMS CONV_DW_BLOCK CONV_DW_C CONV_DW_CHANNELS CONV_DW_DEPTH CONV_DW_O"           \
    " CONV_DW_OUTPUTS CONV_DW_UNITS CONV_SCRATCH CONV_TILE_ARGUMENTS CONV_TILE_LINKAGE"           \
    " DENSE_DX_COLUMNS DENSE_DX_ROWS DENSE_DEPTH DENSE_FETCH_FROM DENSE_INPUT_COLUMNS"            \
    " DENSE_INPUT_TILES DENSE_INPUT_WORD DENSE_MANY DENSE_PAGE DENSE_SAMPLES DENSE_UNIT_SIZE"     \
    " DENSE_UNIT_TILES DENSE_WIDE_PANELS DENSE_X_TILE DW_BLOCK FEW_SCRATCH FLAT_LINE FRAME"       \
    " INPUT_FETCH_MOST INPUT_POSITIONS LANES_ROW LANES_TILE NORM_BLOCK_BYTES NORM_ROOM NORM_WIDE"  \
    " LOSS_DX LOSS_DX_PLAIN LOSS_MEAN LOSS_MEAN_PLAIN"                                             \
    " P PATCHES PATCH_MAX TILE_BEGIN"                                                             \
    " PATCH_WINDOWS PHILOX_BLOCKS POOL_LIST RUN_MAX TAKEN_OUTPUTS TAKEN_WINDOWS TILE_FAR"         \
    " TILE_FAR_REALS TILE_MAX TILE_ROWS TILE_ROWS_1 TILE_WINDOWS TREE_DEPTH V VH V_HIGH"          \
    " V_INTERLEAVE V_LOW RT_ CPU_ SPARSE_ TAPS_ WINO_ BF16_ BV B_HIGH B_LOW"                      \
    /* the C library, CUDA's libraries and OpenBLAS */                                            \
    " BLASLONG BLASULONG BUFSIZ EOF FILE FILENAME_MAX FLOATRET FOPEN_MAX FP_FAST_FMA"             \
    " FP_FAST_FMAF FP_ILOGB0 FP_ILOGBNAN FP_INFINITE FP_NAN FP_NORMAL FP_SUBNORMAL FP_ZERO"       \
    " HUGE_VAL HUGE_VALF HUGE_VALL I INFINITY INT16_MAX INT16_MIN INT32_MAX INT32_MIN"            \
    " INT64_MAX INT64_MIN INT8_MAX INT8_MIN INTMAX_MAX INTMAX_MIN INTPTR_MAX INTPTR_MIN"          \
    " INT_FAST16_MAX INT_FAST16_MIN INT_FAST32_MAX INT_FAST32_MIN INT_FAST64_MAX"                 \
    " INT_FAST64_MIN INT_FAST8_MAX INT_FAST8_MIN INT_LEAST16_MAX INT_LEAST16_MIN"                 \
    " INT_LEAST32_MAX INT_LEAST32_MIN INT_LEAST64_MAX INT_LEAST64_MIN INT_LEAST8_MAX"             \
    " INT_LEAST8_MIN MATH_ERREXCEPT MATH_ERRNO M_1_PI M_2_PI M_2_SQRTPI M_E M_LN10 M_LN2"         \
    " M_LOG10E M_LOG2E M_PI M_PI_2 M_PI_4 M_SQRT1_2 M_SQRT2 NAN NULL PTRDIFF_MAX PTRDIFF_MIN"     \
    " SCHED_FIFO SCHED_OTHER SCHED_RR SEEK_CUR SEEK_END SEEK_SET SIG_ATOMIC_MAX SIG_ATOMIC_MIN"   \
    " SIZE_MAX TMP_MAX UINT16_MAX UINT32_MAX UINT64_MAX UINT8_MAX UINTMAX_MAX UINTPTR_MAX"        \
    " UINT_FAST16_MAX UINT_FAST32_MAX UINT_FAST64_MAX UINT_FAST8_MAX UINT_LEAST16_MAX"            \
    " UINT_LEAST32_MAX UINT_LEAST64_MAX UINT_LEAST8_MAX WCHAR_MAX WCHAR_MIN WINT_MAX WINT_MIN"    \
    " BLASFUNC CBLAS_ OPENBLAS_"                                                                  \
    " "
/* clang-format on */

#endif
