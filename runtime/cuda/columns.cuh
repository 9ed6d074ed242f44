/* columns.cuh -- sums over the rows of a row-major matrix: over samples and pixels, for channels
 * that are innermost.
 *
 *   value (rows, columns)   sums (K, columns): a thread adds to K sums at the same time
 *
 * A block takes 32 columns; a warp takes every eighth row of a range of rows.  So the lanes of a
 * warp read adjacent addresses.  If one range a block would leave the GPU half empty, there are
 * several ranges: their sums are stored one after another, and a second launch adds them in order.
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
    block_sync(); /* the sums of all warps are complete */
    if (warp == 0 && column < columns) {
        for (int k = 0; k < K; k++) {
            sum[k] = 0;
            for (int i = 0; i < WARPS; i++)
                sum[k] += s.of_warp[k][i][lane];
        }
        store(column, sum);
    }
    block_sync(); /* no thread writes the next sums before these have been read */
}

/* ------------------------------------------------------------------------------- in parts */

SIZE int column_blocks(int columns, int parts)
{
    return parts * column_tiles(columns);
}

/* part (parts, K, columns): the sums over each part of the rows. */
template <int K, class Load, class Add>
DEVICE void column_parts(real *part, int columns, int64_t rows, int parts, Load load, Add add)
{
    ONE_PART_A_BLOCK(TileSums<K>);
    SHARED(TileSums<K>, sums);
    const int tiles = column_tiles(columns), p = blockIdx.x / tiles;
    const int64_t each = (rows + parts - 1) / parts, first = p * each,
                  end = first + each < rows ? first + each : rows;
    column_sums(sums, blockIdx.x % tiles, columns, first, end, load, add,
                [=](int column, const real(&sum)[K]) {
                    for (int k = 0; k < K; k++)
                        part[((int64_t)p * K + k) * columns + column] = sum[k];
                });
}

/* Sum k of K of a column: parts are added in order. */
DEVICE real column_sum(const real *part, int k, int all, int columns, int parts, int column)
{
    real sum = 0;
    load_ahead<16>(
        0, parts, 1, [=](int p) { return part[((int64_t)p * all + k) * columns + column]; },
        [&](real x) { sum += x; });
    return sum;
}

/* y (columns): the sum over the rows of a, in two launches; added to y if `add`. */
template <class A>
DEVICE void column_total_parts(real *part, const A *a, int columns, int64_t rows, int parts)
{
    column_parts<1>(
        part, columns, rows, parts,
        [=](int64_t row, int column) { return (real)a[row * columns + column]; },
        [](real x, real(&sum)[1]) { sum[0] += x; });
}
DEVICE void column_total_join(real *y, const real *part, int columns, int parts, bool add)
{
    FOR_EACH(c, columns)
        y[c] = (add ? y[c] : 0) + column_sum(part, 0, 1, columns, parts, c);
}

#endif
