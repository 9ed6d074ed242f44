/* normal.cuh -- random numbers with the standard normal distribution, from the same uniform numbers
 * as on the processor (runtime/cpu/normal.h).  A thread takes the four numbers of a block of bits.
 */
#ifndef CUDA_NORMAL_CUH
#define CUDA_NORMAL_CUH

SIZE int normal_like_blocks(int, bool, int n, int k)
{
    return each_blocks(n * ceil_div(k, 4));
}
template <class Y>
DEVICE void normal_like(Y *y, const Rt *r, int purpose, int first, bool training, int n, int k)
{
    const int fours = ceil_div(k, 4);

    FOR_EACH(at, n * fours) {
        const int i = at / fours, e = at % fours * 4;
        uint32_t bits[4];
        rt_philox(bits, training ? r->seed : 0, (uint32_t)(e / 4),
                  (uint32_t)(RT_PURPOSE_NORMAL + purpose), r->index[first + i],
                  training ? (uint32_t)r->epoch : UINT32_MAX);
        RT_UNROLL
        for (int j = 0; j < 4; j++) {
            const real size =
                s_sqrt(-2 * s_log(((real)bits[j / 2 * 2] + (real)0.5) * (real)0x1p-32));
            const real angle = (real)bits[j / 2 * 2 + 1] * (real)(6.283185307179586 * 0x1p-32);
            if (e + j < k)
                y[(int64_t)i * k + e + j] = size * (j % 2 ? s_sin(angle) : s_cos(angle));
        }
    }
}

#endif
