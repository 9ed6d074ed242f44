/* columns.cuh -- sums over the rows of a row-major matrix: over samples and pixels, for channels
 * that are innermost.
 *
 *   value (rows, columns)   sums (K, columns): a thread adds to K sums at the same time
 *
 * A block takes 32 columns; a warp takes every eighth row of a range of rows.  So the lanes of a
 * warp read adjacent addresses.  If PACK divides the number of columns, a lane takes PACK columns,
 * and a warp PACK rows at a time.  If one block for each 32 columns would leave the GPU half empty,
 * several blocks take a part of the rows each, and their sums are stored one after another.  A
 * second launch adds these: a warp has a column, and each of its lanes adds every 32nd part.
 */
#ifndef CUDA_COLUMNS_CUH
#define CUDA_COLUMNS_CUH

/* Only for programs with NVIDIA's libraries: their launches have a block for each part. */
#ifdef RT_PERSISTENT
#define ONE_PART_A_BLOCK(x) static_assert(sizeof(x) == 0, "no stage of a step that is one launch")
#else
#define ONE_PART_A_BLOCK(x) static_assert(true)
#endif

template <int K> struct TileSums {
    real of_warp[K][WARPS][WARP];
};

SIZE int column_tiles(int columns)
{
    return ceil_div(columns, WARP);
}

/* Calls store(column, sums) for the columns of the tile: adds the sums of all warps in order. */
template <int K, class Store>
DEVICE void column_join_warps(TileSums<K> &s, int tile, int columns, Store store)
{
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, column = tile * WARP + lane;
    block_sync(); /* the sums of all warps are complete */
    if (warp == 0 && column < columns) {
        real sum[K] = {};
        for (int k = 0; k < K; k++)
            for (int i = 0; i < WARPS; i++)
                sum[k] += s.of_warp[k][i][lane];
        store(column, sum);
    }
    block_sync(); /* no thread writes the next sums before these have been read */
}

/* Calls store(column, sums) for the columns of the tile, with sums over rows first .. end - 1:
 * add(load(row, column), sums) adds one row. */
template <int K, class Load, class Add, class Store>
DEVICE void column_sums(TileSums<K> &s, int tile, int columns, int64_t first, int64_t end,
                        Load load, Add add, Store store)
{
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, column = tile * WARP + lane;
    real sum[K] = {};
    if (column < columns)
        load_ahead<8>(
            first + warp, end, (int64_t)WARPS, [=](int64_t row) { return load(row, column); },
            [&](const auto &x) { add(x, sum); });
    for (int k = 0; k < K; k++)
        s.of_warp[k][warp][lane] = sum[k];
    column_join_warps(s, tile, columns, store);
}

/* The same with packs: load(row, column) reads columns column .. column + PACK - 1, and
 * add(known(column), load(row, column), i, sums) adds the i-th of them.  A thread loads 128 bytes
 * before it waits for the first of them. */
template <int K, class Known, class Load, class Add, class Store>
DEVICE void column_pack_sums(TileSums<K> &s, int tile, int columns, int64_t first, int64_t end,
                             Known known, Load load, Add add, Store store)
{
    constexpr int LANES = (int)WARP / (int)PACK, AHEAD = 128 / sizeof(load(0, 0));
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, from = lane % LANES * PACK,
              column = tile * WARP + from, row = warp * PACK + lane / LANES;
    real sum[PACK][K] = {};
    if (column < columns) {
        const auto all = known(column);
        load_ahead<AHEAD>(
            first + row, end, (int64_t)WARPS * PACK, [=](int64_t row) { return load(row, column); },
            [&](const auto &x) {
                RT_UNROLL
                for (int i = 0; i < PACK; i++)
                    add(all, x, i, sum[i]);
            });
    }
    RT_UNROLL
    for (int k = 0; k < K; k++) {
        RT_UNROLL
        for (int i = 0; i < PACK; i++) {
            real x = sum[i][k];
            for (int lanes = LANES; lanes < WARP; lanes *= 2)
                x += __shfl_xor_sync(0xffffffffu, x, lanes);
            if (lane < LANES)
                s.of_warp[k][warp][from + i] = x;
        }
    }
    column_join_warps(s, tile, columns, store);
}

/* ------------------------------------------------------------------------------- in parts */

SIZE int column_blocks(int columns, int parts)
{
    return parts * column_tiles(columns);
}

/* part (parts, K, columns): the sums over each part of the rows.  of_rows(sums, tile, first, end,
 * store): column_sums, or column_pack_sums, of the rows first .. end - 1. */
template <int K, class OfRows>
DEVICE void column_ranges(real *part, int columns, int64_t rows, int parts, OfRows of_rows)
{
    ONE_PART_A_BLOCK(TileSums<K>);
    SHARED(TileSums<K>, sums);
    const int tiles = column_tiles(columns), p = blockIdx.x / tiles;
    const int64_t each = (rows + parts - 1) / parts, first = p * each,
                  end = first + each < rows ? first + each : rows;
    of_rows(sums, (int)(blockIdx.x % tiles), first, end, [=](int column, const real(&sum)[K]) {
        for (int k = 0; k < K; k++)
            part[((int64_t)p * K + k) * columns + column] = sum[k];
    });
}
template <int K, class Load, class Add>
DEVICE void column_parts(real *part, int columns, int64_t rows, int parts, Load load, Add add)
{
    column_ranges<K>(part, columns, rows, parts,
                     [=](TileSums<K> &s, int tile, int64_t first, int64_t end, auto store) {
                         column_sums(s, tile, columns, first, end, load, add, store);
                     });
}
template <int K, class Known, class Load, class Add>
DEVICE void column_pack_parts(real *part, int columns, int64_t rows, int parts, Known known,
                              Load load, Add add)
{
    column_ranges<K>(part, columns, rows, parts,
                     [=](TileSums<K> &s, int tile, int64_t first, int64_t end, auto store) {
                         column_pack_sums(s, tile, columns, first, end, known, load, add, store);
                     });
}

/* The second launch: calls store(column, sums) for each column, with the K sums over all parts. */
SIZE int column_join_blocks(int columns)
{
    return ceil_div(columns, WARPS);
}
template <int K> struct JoinedSums {
    real of[K];
};
template <int K, class Store>
DEVICE void column_join(const real *part, int columns, int parts, Store store)
{
    const int lane = threadIdx.x % WARP;
    FOR_ROWS(column, columns) {
        JoinedSums<K> sum = {};
        load_ahead<8>(
            lane, parts, (int)WARP,
            [=](int p) {
                JoinedSums<K> x;
                for (int k = 0; k < K; k++)
                    x.of[k] = part[((int64_t)p * K + k) * columns + column];
                return x;
            },
            [&](const JoinedSums<K> &x) {
                for (int k = 0; k < K; k++)
                    sum.of[k] += x.of[k];
            });
        for (int k = 0; k < K; k++)
            sum.of[k] = warp_sum(sum.of[k]);
        if (lane == 0)
            store((int)column, sum.of);
    }
}

/* y (columns): the sum over the rows of a, in two launches; added to y if `add`. */
template <class A>
DEVICE void column_total_parts(real *part, const A *a, int columns, int64_t rows, int parts)
{
    if (columns % PACK == 0 && pack_aligned(a))
        column_pack_parts<1>(
            part, columns, rows, parts, [](int) { return 0; },
            [=](int64_t row, int column) { return pack_read(a, row * columns + column); },
            [](int, const Pack<A> &x, int i, real(&sum)[1]) { sum[0] += x.at[i]; });
    else
        column_parts<1>(
            part, columns, rows, parts,
            [=](int64_t row, int column) { return (real)a[row * columns + column]; },
            [](real x, real(&sum)[1]) { sum[0] += x; });
}
DEVICE void column_total_join(real *y, const real *part, int columns, int parts, bool add)
{
    column_join<1>(part, columns, parts,
                   [=](int c, const real(&sum)[1]) { y[c] = (add ? y[c] : 0) + sum[0]; });
}

#endif
