/* rotary.h -- positions as angles: pairs of features are rotated, or waves are added.
 *
 *   angle of pair i at position t: t base^(-2 i / D)
 *
 *   x, y (N, T, heads D)      rotary: a pair is i and i + D / 2 of a head; backward: -angle
 *                             sinusoidal: heads = 1; 2 i gets the sine, 2 i + 1 the cosine
 */
#ifndef CPU_ROTARY_H
#define CPU_ROTARY_H

typedef struct Rotary {
    int n, t, heads, d;
    bool back;
    double base;
} Rotary;

RT_INLINE double rotary_frequency(int i, Rotary r)
{
    return pow(r.base, -2.0 * i / r.d);
}

/* ------------------------------------------------------------------------------------ reference */
RT_INLINE void rotary_plain(real *y, const real *x, Rotary r)
{
    for (int row = 0; row < r.n * r.t; row++)
        for (int h = 0; h < r.heads; h++, x += r.d, y += r.d)
            for (int i = 0; i < r.d / 2; i++) {
                const double angle = row % r.t * rotary_frequency(i, r);
                const real c = (real)cos(angle), s = (real)(r.back ? -sin(angle) : sin(angle));
                const real a = x[i], b = x[i + r.d / 2];
                y[i] = a * c - b * s;
                y[i + r.d / 2] = b * c + a * s;
            }
}

RT_INLINE void sinusoidal_plain(real *y, const real *x, Rotary r)
{
    for (int row = 0; row < r.n * r.t; row++, x += r.d, y += r.d)
        for (int i = 0; i < r.d; i++) {
            const double angle = row % r.t * rotary_frequency(i / 2, r);
            y[i] = x[i] + (real)(i % 2 ? cos(angle) : sin(angle));
        }
}

/* ----------------------------------------------------------------------------------------- fast */

/* cos and sin of the angles of all pairs (c, s), and of the rotation from one position to the next
 * (dc, ds).  In double: each position takes a product of complex numbers instead of two
 * functions. */
RT_INLINE void rotary_begin(double *c, double *s, double *dc, double *ds, int pairs, Rotary r)
{
    for (int i = 0; i < pairs; i++) {
        const double angle = rotary_frequency(i, r);
        c[i] = 1, s[i] = 0, dc[i] = cos(angle), ds[i] = sin(angle);
    }
}

RT_INLINE void rotary_step(double *c, double *s, const double *dc, const double *ds, int pairs)
{
    for (int i = 0; i < pairs; i++) {
        const double a = c[i] * dc[i] - s[i] * ds[i];
        s[i] = s[i] * dc[i] + c[i] * ds[i];
        c[i] = a;
    }
}

RT_INLINE void rotary(real *restrict y, const real *restrict x, Rotary r)
{
    const int half = r.d / 2, width = r.heads * r.d;
    double c[half], s[half], dc[half], ds[half];
    real cosine[half], sine[half];
    const RtGrid part = team_grid(r.n, r.heads);
    const TeamRange samples = team_rows(part, r.n), heads = team_columns(part, r.heads);
    rotary_begin(c, s, dc, ds, half, r);
    for (int t = 0; t < r.t; t++, rotary_step(c, s, dc, ds, half)) {
        for (int i = 0; i < half; i++)
            cosine[i] = (real)c[i], sine[i] = (real)(r.back ? -s[i] : s[i]);
        for (int64_t n = samples.first; n < samples.end; n++)
            for (int h = (int)heads.first; h < heads.end; h++) {
                const int64_t at = (n * r.t + t) * width + h * r.d;
                const real *a = x + at, *b = a + half;
                real *u = y + at, *v = u + half;
                RT_MAP(half, const vec p = LOAD(a); const vec q = LOAD(b);
                       STORE(u, p * LOAD(cosine) - q * LOAD(sine));
                       STORE(v, q * LOAD(cosine) + p * LOAD(sine)));
            }
    }
}

RT_INLINE void sinusoidal(real *restrict y, const real *restrict x, Rotary r)
{
    const int pairs = (r.d + 1) / 2;
    double c[pairs], s[pairs], dc[pairs], ds[pairs];
    real wave[2 * pairs];
    const TeamRange samples = team_range(r.n);
    rotary_begin(c, s, dc, ds, pairs, r);
    for (int t = 0; t < r.t; t++, rotary_step(c, s, dc, ds, pairs)) {
        for (int i = 0; i < pairs; i++)
            wave[2 * i] = (real)s[i], wave[2 * i + 1] = (real)c[i];
        for (int64_t n = samples.first; n < samples.end; n++) {
            const int64_t at = (n * r.t + t) * r.d;
            RT_MAP(r.d, STORE(y + at, LOAD(x + at) + LOAD(wave)));
        }
    }
}

#endif
