/* output.h -- what leaves a slice: its share of the metrics, its rows of the output, the check for non-finite values. */
#ifndef CPU_OUTPUT_H
#define CPU_OUTPUT_H

/* Adds the values of the samples first .. first + n - 1 that count (below r->valid) to metric k of this slice, in double,
 * in the order of the samples. */
RT_INLINE void rt_metric(const Rt *r, int unit, int k, int first, int n, const real *value)
{
    double s = r->metric[unit * RT_METRICS + k];

    for (int i = 0; i < n && first + i < r->valid; i++)
        s += (double)value[i];
    r->metric[unit * RT_METRICS + k] = s;
}

/* Copies n rows of the network's output to where predict collects them. */
RT_INLINE void rt_output(const Rt *r, int first, int n, int outputs, const real *y)
{
    if (r->output)
        memcpy(r->output + (size_t)first * outputs, y, sizeof(real) * (size_t)n * outputs);
}

/* Are all values finite?  x - x is 0 for finite x and NaN for infinities and NaNs. */
RT_INLINE bool rt_finite(const real *x, int64_t count)
{
    real s = 0;

    for (int64_t i = 0; i < count; i++)
        s += x[i] - x[i];
    return s == 0;
}

#endif
