/* parts.cuh -- products with few results and long sums: gradients of weights and biases, whose sums
 * go over all samples or pixels of a batch; layers with many channels and small images.
 *
 * One block for each tile of the results would leave most of a GPU idle.  So several blocks take a
 * part of the sum each.  The compiler chooses tile and parts (rt_split in constants.h).  The parts
 * are stored one after another, and a second launch adds them in order.
 *
 *   part (parts, results)
 */
#ifndef CUDA_PARTS_CUH
#define CUDA_PARTS_CUH

/* Computes block `block` of the m x n results by product_of, over one part of the k steps.
 * index(i, j): the place of a result; stride: numbers from one part to the next. */
template <class A, class B, class Index>
DEVICE void product_part(int block, real *part, int64_t stride, int m, int n, int k, RtSplit split,
                         A a, B b, Index index)
{
    const int tiles = (int)rt_tile_blocks(split.tile, m, n), p = block / tiles,
              each = ceil_div(k, split.parts), first = p * each,
              end = first + each < k ? first + each : k;
    real *const to = part + p * stride;
    for_tile(split.tile, [=]<int tile>() {
        product_of<tile>(block % tiles, m, n, first, end, a, b,
                         [=](int i, int j, real sum, int) { to[index(i, j)] = sum; });
    });
}

/* y (count): the sum of the parts; added to y unless `write`. */
DEVICE void parts_join(real *y, const real *part, int count, int parts, bool write)
{
    FOR_EACH(i, count) {
        real sum = write ? 0 : y[i];
        RT_UNROLL_16
        for (int p = 0; p < parts; p++)
            sum += part[(int64_t)p * count + i];
        y[i] = sum;
    }
}

/* part (parts, kept): `kept` sums of `summed` numbers value(at, of), in parts of a block each. */
template <class Value>
DEVICE void block_sum_parts(real *part, int kept, int summed, int parts, Value value)
{
    SHARED(Parts<real>, s);
    const int each = ceil_div(summed, parts);
    FOR_BLOCKS_LAST(block, kept * parts) {
        const int at = block / parts, first = block % parts * each,
                  count = summed - first < each ? summed - first : each;
        real sum = 0;
        load_ahead<16>((int)threadIdx.x, count, (int)THREADS,
                       [=](int of) { return (real)value(at, first + of); },
                       [&](real x) { sum += x; });
        sum = block_sum(s, sum);
        if (threadIdx.x == 0)
            part[block % parts * kept + at] = sum;
    }
}

/* Blocks of a product of m x n results. */
SIZE int product_parts(int m, int n, int tile, int parts)
{
    return (int)rt_tile_blocks(tile, m, n) * parts;
}
/* The index of a result in a row-major matrix. */
DEVICE auto matrix_index(int width)
{
    return [=](int i, int j) { return (int64_t)i * width + j; };
}
/* The same as product_part, of a row-major matrix. */
template <class A, class B>
DEVICE void matrix_part(int block, real *part, int m, int n, int k, RtSplit split, A a, B b)
{
    product_part(block, part, (int64_t)m * n, m, n, k, split, a, b, matrix_index(n));
}

/* ------------------------------------------------------------------------------- dense layers */

/* Each function computes the same as its namesake in dense.cuh.  Gradients of weights take the last
 * blocks of a launch, and run beside dx. */
SIZE int dense_parts_blocks(Dense d, int tile, int parts)
{
    return product_parts(d.n, d.o, tile, parts);
}
DEVICE void dense_parts(real *part, const real *x, const real *w, Dense d, int tile, int parts)
{
    FOR_BLOCKS(block, dense_parts_blocks(d, tile, parts))
        matrix_part(block, part, d.n, d.o, d.k, RtSplit{tile, parts}, matrix<ALONG_K>(x, d.k),
                    matrix<ALONG_K>(w, d.k));
}
SIZE int dense_dx_parts_blocks(Dense d, int tile, int parts)
{
    return product_parts(d.n, d.k, tile, parts);
}
DEVICE void dense_dx_parts(real *part, const real *w, const real *dy, Dense d, int tile, int parts)
{
    FOR_BLOCKS(block, dense_dx_parts_blocks(d, tile, parts))
        matrix_part(block, part, d.n, d.k, d.o, RtSplit{tile, parts}, matrix<ALONG_K>(dy, d.o),
                    matrix<ALONG_RESULT>(w, d.k));
}
SIZE int dense_dw_parts_blocks(Dense d, int tile, int parts)
{
    return product_parts(d.o, d.k, tile, parts);
}
DEVICE void dense_dw_parts(real *part, const real *x, const real *dy, Dense d, int tile, int parts)
{
    FOR_BLOCKS_LAST(block, dense_dw_parts_blocks(d, tile, parts))
        matrix_part(block, part, d.o, d.k, d.n, RtSplit{tile, parts}, matrix<ALONG_RESULT>(dy, d.o),
                    matrix<ALONG_RESULT>(x, d.k));
}

/* ------------------------------------------------------------------------------- convolutions */

/* The products of all groups: product_part with a(group), b(group) and index(group, i, j). */
template <class A, class B, class Index>
DEVICE void group_parts(real *part, int groups, int64_t stride, int m, int n, int k, RtSplit split,
                        A a, B b, Index index)
{
    const int blocks = product_parts(m, n, split.tile, split.parts);
    FOR_BLOCKS(block, groups * blocks) {
        const int group = block / blocks;
        product_part(block % blocks, part, stride, m, n, k, split, a(group), b(group),
                     [=](int i, int j) { return index(group, i, j); });
    }
}

/* Forward and dx: each function computes the same as its namesake in conv.cuh. */
SIZE int conv2d_parts_blocks(Conv c, int tile, int parts)
{
    return c.groups * product_parts(conv_outputs(c), c.n * c.oh * c.ow, tile, parts);
}
DEVICE void conv2d_parts(real *part, const real *x, const real *w, Conv c, int tile, int parts)
{
    const int places = c.n * c.oh * c.ow;
    group_parts(
        part, c.groups, (int64_t)places * c.o, conv_outputs(c), places, conv_inputs(c) * c.r * c.s,
        RtSplit{tile, parts}, [=](int group) { return conv2d_filters(w, c, group); },
        [=](int group) { return conv2d_windows(x, c, group); },
        [=](int group, int o, int at) { return conv2d_index(c, group, o, at); });
}
SIZE int conv2d_dx_parts_blocks(Conv c, int tile, int parts)
{
    return c.groups * product_parts(conv_inputs(c), c.n * c.h * c.w, tile, parts);
}
DEVICE void conv2d_dx_parts(real *part, const real *w, const real *dy, Conv c, int tile, int parts)
{
    const int pixels = c.n * c.h * c.w;
    const ConvTapRows rows = {0, c.r};
    group_parts(
        part, c.groups, (int64_t)pixels * c.c, conv_inputs(c), pixels, conv_outputs(c) * c.r * c.s,
        RtSplit{tile, parts}, [=](int group) { return conv2d_dx_filters(w, c, group, rows); },
        [=](int group) { return conv2d_dx_outputs(dy, c, group, rows); },
        [=](int group, int i, int at) { return conv2d_dx_index(c, group, i, at); });
}

/* The sizes of the product of dw for one group: filters, numbers of a filter, positions of all
 * images. */
SIZE int conv2d_dw_columns(Conv c)
{
    return conv_inputs(c) * c.r * c.s;
}
SIZE int conv2d_dw_group_parts(Conv c, int tile, int parts)
{
    return product_parts(conv_outputs(c), conv2d_dw_columns(c), tile, parts);
}
SIZE int conv2d_dw_parts_blocks(Conv c, int tile, int parts)
{
    return c.groups * conv2d_dw_group_parts(c, tile, parts);
}

/* dw[o][i][r][s] = sum over (n, oy, ox) of dy[n][o][oy][ox] x[n][i][iy][ix].  Rows: a group's
 * filters.  Columns: the numbers of a filter, in w's order.  along: the direction in which dy and x
 * are contiguous. */
template <Along along, class X, class D>
DEVICE void conv2d_dw_part(unsigned block, real *part, const X *x, const D *dy, Conv c,
                           RtSplit split)
{
    const int places = c.oh * c.ow, columns = conv2d_dw_columns(c), k = c.n * places,
              blocks = conv2d_dw_group_parts(c, split.tile, split.parts), group = block / blocks;
    const int o0 = group * conv_outputs(c), i0 = group * conv_inputs(c);

    const auto outputs =
        operand<along>([=](int o) { return kept(dy + conv_y(c, 0, o0 + o, 0)); },
                       [=](int at) { return conv_y(c, at / places, 0, at % places); },
                       [](const D *filter, int64_t at) {
                           return Number<D>{filter + at, true};
                       });
    const auto windows = operand<along>(
        [=](int j) {
            const int tap = c.last ? j / conv_inputs(c) : j % (c.r * c.s),
                      i = c.last ? j % conv_inputs(c) : j / (c.r * c.s);
            return conv_from(x, conv_tap(c, i0 + i, tap));
        },
        [=](int at) { return conv_position(c, at); },
        [=](ConvPlace<const X *> tap, ConvPlace<int64_t> at) { return conv_number(c, tap, at); });
    product_part(block % blocks, part + (int64_t)o0 * columns, (int64_t)c.o * columns,
                 conv_outputs(c), columns, k, split, outputs, windows, matrix_index(columns));
}
template <class X, class D>
DEVICE void conv2d_dw_parts(real *part, const X *x, const D *dy, Conv c, int tile, int parts)
{
    FOR_BLOCKS_LAST(block, conv2d_dw_parts_blocks(c, tile, parts)) {
        if (c.last)
            conv2d_dw_part<ALONG_RESULT>(block, part, x, dy, c, RtSplit{tile, parts});
        else
            conv2d_dw_part<ALONG_K>(block, part, x, dy, c, RtSplit{tile, parts});
    }
}

#endif
