/* samples.cuh -- reads samples and labels from data in the GPU's memory, by the index of the batch;
 * writes metrics and outputs.
 *
 * Stored samples are rows of u8, f32 or f64; sample i of the batch is row index[i], so a new order
 * moves no data.  If data stay in the host's memory (feed.h), the GPU has only the rows of the
 * batch, and sample i is row i.
 */
#ifndef CUDA_SAMPLES_CUH
#define CUDA_SAMPLES_CUH

DEVICE const char *stored(const void *rows, int64_t stride, const Rt *r, int i)
{
    return (const char *)rows + (r->in_order ? i : (int64_t)r->index[i]) * stride;
}

/* Element i of a row of numbers of this type. */
DEVICE real rt_number_of(const Rt *r, int type, const char *row, int i)
{
    return type == RT_U8    ? (real)((const uint8_t *)row)[i] * (real)r->x_scale
           : type == RT_F32 ? (real)((const float *)row)[i]
                            : (real)((const double *)row)[i];
}

/* Element i of stored sample `row`. */
DEVICE real rt_number(const Rt *r, const char *row, int i)
{
    return rt_number_of(r, r->x_type, row, i);
}

/* y (N, F): samples first .. first + n - 1 of the batch. */
template <class T> DEVICE void rt_input(T *y, const Rt *r, int first, int n, int f)
{
    FOR_EACH(at, n * f)
        y[at] = rt_number(r, stored(r->x, r->x_stride, r, first + at / f), at % f);
}

/* The same for images whose channels are innermost: y (N, HW, C), stored (C, HW). */
template <class T> DEVICE void rt_input_last(T *y, const Rt *r, int first, int n, int c, int hw)
{
    FOR_EACH(at, n * c * hw)
        y[at] = rt_number(r, stored(r->x, r->x_stride, r, first + at / (c * hw)),
                          at % c * hw + at / c % hw);
}

/* The same with zeros after the channels of each pixel: y (N, HW, lanes). */
template <class T>
DEVICE void rt_input_padded(T *y, const Rt *r, int first, int n, int c, int hw, int lanes)
{
    FOR_EACH(at, n * hw * lanes) {
        const int k = at % lanes, pixel = at / lanes;
        y[at] = k < c ? rt_number(r, stored(r->x, r->x_stride, r, first + pixel / hw),
                                  k * hw + pixel % hw)
                      : 0;
    }
}

/* Part `part` of the stored row of sample i, for a model with several inputs. */
DEVICE const char *stored_part(const Rt *r, int part, int i)
{
    return stored(r->x, r->x_stride, r, i) + r->part[part].at;
}

/* As rt_input and rt_input_last, from this part of the stored rows. */
template <class T> DEVICE void rt_input_part(T *y, const Rt *r, int first, int n, int f, int part)
{
    FOR_EACH(at, n * f)
        y[at] = rt_number_of(r, r->part[part].type, stored_part(r, part, first + at / f), at % f);
}
template <class T>
DEVICE void rt_input_part_last(T *y, const Rt *r, int first, int n, int c, int hw, int part)
{
    FOR_EACH(at, n * c * hw)
        y[at] = rt_number_of(r, r->part[part].type, stored_part(r, part, first + at / (c * hw)),
                             at % c * hw + at / c % hw);
}

/* Token `at` of a row.  Padding becomes token 0, and so does a number that is no token, so that
 * each token can be looked up. */
DEVICE int32_t token_at(const Rt *r, const char *row, int type, int at)
{
    const int32_t token = rt_integer_at(row, type, at);
    return token >= 0 && token < r->vocab ? token : 0;
}

/* y (N, T): the tokens of the same samples. */
DEVICE void rt_tokens(int32_t *y, const Rt *r, int first, int n, int t)
{
    FOR_EACH(at, n * t)
        y[at] = token_at(r, stored(r->x, r->x_stride, r, first + at / t), r->x_type, at % t);
}

DEVICE void rt_tokens_part(int32_t *y, const Rt *r, int first, int n, int t, int part)
{
    FOR_EACH(at, n * t)
        y[at] = token_at(r, stored_part(r, part, first + at / t), r->part[part].type, at % t);
}

/* y (N, T): the classes of the same samples; 0 if there are no labels, as in predict, which
 * computes no loss.  One of several targets lies `start` bytes after the start of a row of
 * labels. */
DEVICE void rt_labels_at(int32_t *y, const Rt *r, int first, int n, int t, int start)
{
    FOR_EACH(at, n * t)
        y[at] = r->label
                    ? rt_integer_at(stored(r->label, r->label_stride, r, first + at / t) + start,
                                    r->label_type, at % t)
                    : 0;
}

DEVICE void rt_labels(int32_t *y, const Rt *r, int first, int n, int t)
{
    rt_labels_at(y, r, first, n, t, 0);
}

/* y (N, K): the numbers that the same samples' outputs are compared with; 0 if there are none.
 * `start`: as above. */
DEVICE void rt_target_at(real *y, const Rt *r, int first, int n, int k, int start)
{
    FOR_EACH(at, n * k)
        y[at] = r->label ? ((const real *)(stored(r->label, r->label_stride, r, first + at / k) +
                                           start))[at % k]
                         : 0;
}

DEVICE void rt_target(real *y, const Rt *r, int first, int n, int k)
{
    rt_target_at(y, r, first, n, k, 0);
}

/* Writes metric `metric` of shard `unit`: the sum over the samples that count, in double.  The
 * first block computes it. */
DEVICE void rt_metric(const Rt *r, int unit, int metric, int first, int n, const real *value)
{
    SHARED(Parts<double>, parts);
    double sum = 0;
    if (blockIdx.x > 0)
        return;
    for (int i = threadIdx.x; i < n && first + i < r->valid; i += THREADS)
        sum += (double)value[i];
    sum = block_sum(parts, sum);
    if (threadIdx.x == 0)
        r->metric[unit * RT_METRICS + metric] = sum;
}

/* Copies n rows of the network's output to r->output. */
DEVICE void rt_output(const Rt *r, int first, int n, int outputs, const real *y)
{
    if (r->output)
        FOR_EACH(at, n * outputs)
            r->output[(int64_t)first * outputs + at] = y[at];
}

#endif
