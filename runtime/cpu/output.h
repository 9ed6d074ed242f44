/* output.h -- the results of a slice: its part of the metrics, its rows of the output, and the
 * check for values that are not finite. */
#ifndef CPU_OUTPUT_H
#define CPU_OUTPUT_H

/* Adds the values of samples first .. first + n - 1 to metric k of this slice, in double, in the
 * order of the samples.  Samples from r->valid on do not count. */
RT_INLINE void rt_metric(const Rt *r, int unit, int k, int first, int n, const real *value)
{
    double s = r->metric[unit * RT_METRICS + k];

    for (int i = 0; i < n && first + i < r->valid; i++)
        s += (double)value[i];
    r->metric[unit * RT_METRICS + k] = s;
}

/* Copies n rows of the network's output to r->output. */
RT_INLINE void rt_output(const Rt *r, int first, int n, int outputs, const real *y)
{
    if (r->output)
        memcpy(r->output + (size_t)first * outputs, y, sizeof(real) * (size_t)n * outputs);
}

/* Whether all values are finite: x - x is 0 for finite x, and NaN for infinities and NaNs. */
RT_INLINE bool rt_finite(const real *x, int64_t count)
{
    real s = 0;

    for (int64_t i = 0; i < count; i++)
        s += x[i] - x[i];
    return s == 0;
}
#ifdef RT_BF16
RT_INLINE bool rt_finite_bf16(const bf16 *x, int64_t count)
{
    real s = 0;

    for (int64_t i = 0; i < count; i++)
        s += bf16_wide(x[i]) - bf16_wide(x[i]);
    return s == 0;
}
#define rt_finite(x, count)                                                                        \
    _Generic((x), bf16 *                                                                           \
             : rt_finite_bf16, const bf16 *                                                        \
             : rt_finite_bf16, default                                                             \
             : rt_finite)(x, count)
#endif

#endif
