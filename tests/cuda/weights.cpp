/* weights.cpp -- the products of a loop over time in one launch (Weights in runtime/cuda/recurrence.cuh) have the sums of a simple loop,
 * to the bit, and read no number outside of the weights' rows.
 *
 * Sums have one part or several, whose last can be shorter; weights lie in registers, in shared memory, or in both.  Rows that no thread
 * of an output may read are NaN, also after the last one.  Status 0 if all sums are right.
 */
#include <cmath>
#include <cstdio>
#include <vector>
#include "rt.h"
#include "cuda/kernels.cuh"
#include "fiber.h"

enum { SAMPLES_OF_ALL = 3, SAMPLES_OF_BLOCK = 2 };

/* Sums of part p of each output whose row of weights is a number. */
template <WeightOrder order, int outputs, int k, int parts> static bool right(const std::vector<real> &x, const std::vector<real> &w, const std::vector<real> &y)
{
    const int length = ceil_div(k, parts);
    for (int s = 0; s < SAMPLES_OF_ALL; s++)
        for (int p = 0; p < parts; p++)
            for (int o = 0; o < outputs; o++) {
                real sum = 0;
                for (int i = p * length; i < (p + 1) * length && i < k; i++)
                    sum = s_fma(x[s * k + i], w[order == STEPS_ADJACENT ? o * k + i : i * outputs + o], sum);
                const real got = y[(s * parts + p) * outputs + o];
                if (got != sum && !(std::isnan(got) && std::isnan(sum)))
                    return printf("Weights<%d, %d, %d>: sample %d, part %d, output %d is %g instead of %g\n", outputs, k, parts, s, p, o, (double)got, (double)sum), false;
            }
    return true;
}

template <WeightOrder order, int outputs, int k, int parts, int held> static bool product_is_right()
{
    using W = Weights<outputs, k, parts, held, false>;
    constexpr int at_weights = ceil_div(SAMPLES_OF_BLOCK * k, 4) * 4, numbers = at_weights + W::rest * W::chains * THREADS;
    std::vector<real> x(SAMPLES_OF_ALL * k), w(outputs * k + 8, (real)NAN), y(SAMPLES_OF_ALL * parts * outputs);
    for (int i = 0; i < (int)x.size(); i++)
        x[i] = (real)(i * 7 % 19 - 9) / 8;
    for (int i = 0; i < outputs * k; i++) /* every other row of an output is NaN */
        if (order == OUTPUTS_ADJACENT || i / k % 2 == 0)
            w[i] = (real)(i * 5 % 23 - 11) / 16;
    fiber_run("product", ceil_div(SAMPLES_OF_ALL, SAMPLES_OF_BLOCK), THREADS, [&] {
        const Samples<SAMPLES_OF_ALL, SAMPLES_OF_BLOCK> samples;
        real *const value = samples.value(0, k);
        W weights;
        weights.template begin<order>(recurrence_memory() + at_weights, w.data());
        recurrence_copy<k>(samples, value, x.data());
        block_sync();
        weights.product(samples, y.data(), value);
    }, numbers * (int)sizeof(real));
    return right<order, outputs, k, parts>(x, w, y);
}

/* The weights in shared memory, in registers, and in both. */
template <WeightOrder order, int outputs, int k, int parts> static int wrong()
{
    constexpr int length = ceil_div(k, parts);
    return !product_is_right<order, outputs, k, parts, 0>() + !product_is_right<order, outputs, k, parts, length>() + !product_is_right<order, outputs, k, parts, length / 2 / 4 * 4>();
}
template <int outputs, int k, int parts> static int wrong_orders()
{
    return wrong<STEPS_ADJACENT, outputs, k, parts>() + wrong<OUTPUTS_ADJACENT, outputs, k, parts>();
}

int main()
{
    const int n = wrong_orders<5, 24, 1>() + wrong_orders<300, 9, 1>() /* two sums of a thread */ + wrong_orders<6, 32, 4>() + wrong_orders<100, 26, 2>() +
                  wrong_orders<7, 60, 8>() /* eight steps of a part, read four at a time, and the last part has four */ + wrong_orders<5, 27, 4>();
    return n > 0;
}
