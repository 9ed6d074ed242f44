/* relayout.cuh -- images in another order in memory: (C, HW) or (HW, C); a thread for each
 * number. */
#ifndef CUDA_RELAYOUT_CUH
#define CUDA_RELAYOUT_CUH

SIZE int hwc_from_chw_blocks(int n, int c, int hw)
{
    return each_blocks(n * c * hw);
}
template <class Y, class X> DEVICE void hwc_from_chw(Y *y, const X *x, int n, int c, int hw)
{
    FOR_EACH(at, n * c * hw)
        y[at] = x[(int64_t)(at / (c * hw)) * (c * hw) + at % c * hw + at / c % hw];
}

SIZE int chw_from_hwc_blocks(int n, int c, int hw)
{
    return each_blocks(n * c * hw);
}
template <class Y, class X> DEVICE void chw_from_hwc(Y *y, const X *x, int n, int c, int hw)
{
    FOR_EACH(at, n * c * hw)
        y[at] = x[(int64_t)(at / (c * hw)) * (c * hw) + at % hw * c + at / hw % c];
}

#endif
