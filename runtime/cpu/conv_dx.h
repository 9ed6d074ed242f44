/* conv_dx.h -- gradient of a convolution's images; with a fused max-pool: conv_pool_dx.h. */
#ifndef CPU_CONV_DX_H
#define CPU_CONV_DX_H
#include "cpu/conv_dw.h"

/* dx += g times the output's weights p (R, run). */
RT_INLINE void conv_dx_position(real *dx, const real *p, real g, Conv c, int oy, int ox)
{
    const int inputs = c.c / c.groups;
    for (int r = 0; r < c.r; r++)
        for (int s = 0; s < c.s; s++) {
            const int iy = oy * c.stride_h - c.pad_h + r * c.dil_h,
                      ix = ox * c.stride_w - c.pad_w + s * c.dil_w;
            if (iy >= 0 && iy < c.h && ix >= 0 && ix < c.w)
                conv_add(dx + ((int64_t)iy * c.w + ix) * c.c, p + r * CONV_RUN(c) + s * inputs, g,
                         inputs);
        }
}

/* ------------------------------------------------------------------------------------- the kernel
 *     dx[iy][ix] = sum over r, s of w[r][s] dy[oy][ox]
 *                  with oy stride = iy + pad - r dil, ox likewise */
RT_INLINE ConvGather conv_back(Conv c)
{
    const int64_t in = c.o, out = c.c;
    return (ConvGather){
        {c.oh, c.h, c.r, c.stride_h, c.pad_h, c.dil_h, true},
        {c.ow, c.w, c.s, c.stride_w, c.pad_w, c.dil_w, true},
        {in, c.ow * in, c.oh * c.ow * in},
        {out, c.w * out, c.h * c.w * out},
        c.o / c.groups,
        c.c / c.groups,
        c.groups,
    };
}

/* dx = mask(w^T dy, y); p from conv2d_pack_back.  y (N, H, W, C): the output of the activation
 * whose derivative `mask` applies, or NULL. */
RT_INLINE void conv2d_dx(real *restrict dx, const real *restrict p, const real *restrict dy,
                         Mask mask, const real *restrict y, Conv c)
{
    RT_NEEDS(CHANNELS, CONV_DEPTHWISE(c));
    if (RT_VARIANT(CHANNELS) && CONV_DEPTHWISE(c))
        conv_depthwise_dx(dx, p, dy, mask, y, conv_back(c), c);
    else
        conv_gather(dx, dy, p, NULL, y, v_identity, mask, conv_back(c), c.n);
}

#endif
