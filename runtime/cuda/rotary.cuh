/* rotary.cuh -- positions as angles: pairs of features are rotated, or waves are added; a thread
 * for each number of the result.
 *
 *   x, y (N, T, heads D); formulas: runtime/cpu/rotary.h.  Angles are in double: position times
 *   frequency loses no digits.
 */
#ifndef CUDA_ROTARY_CUH
#define CUDA_ROTARY_CUH

struct Rotary {
    int n, t, heads, d;
    bool back;
    double base;
};

DEVICE double rotary_angle(int step, int pair, Rotary r)
{
    return step * pow(r.base, -2.0 * pair / r.d);
}

SIZE int rotary_blocks(Rotary r)
{
    return each_blocks(r.n * r.t * r.heads * r.d);
}
DEVICE void rotary(real *y, const real *x, Rotary r)
{
    FOR_EACH(at, r.n * r.t * r.heads * r.d) {
        const int i = at % r.d, half = r.d / 2, pair = i < half ? i : i - half;
        const double angle = rotary_angle(at / (r.heads * r.d) % r.t, pair, r);
        const real c = (real)cos(angle), s = (real)(r.back ? -sin(angle) : sin(angle));
        y[at] = i < half ? x[at] * c - x[at + half] * s : x[at] * c + x[at - half] * s;
    }
}

SIZE int sinusoidal_blocks(Rotary r)
{
    return rotary_blocks(r);
}
DEVICE void sinusoidal(real *y, const real *x, Rotary r)
{
    FOR_EACH(at, r.n * r.t * r.d) {
        const int i = at % r.d;
        const double angle = rotary_angle(at / r.d % r.t, i / 2, r);
        y[at] = x[at] + (real)(i % 2 ? cos(angle) : sin(angle));
    }
}

#endif
