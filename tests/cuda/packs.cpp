/* packs.cpp -- loops over packs of adjacent numbers (cuda/pack.cuh) compute each number once, from its own index.
 *
 * Counts leave each possible rest, and results lie between two walls.  Numbers are real, Bf16 and F16; the results are also written over
 * an operand.  `convert` has so many numbers that it takes packs, and arrays that begin inside of a pack.  Status 0 if all numbers are
 * equal to those of a loop.
 */
#include "rt.h"
#include "fiber.h"
#include "cuda/launch.cuh"
#include "cuda/threads.cuh"
#include "cuda/pack.cuh"
#include "cuda/bf16.cuh"
#include "cuda/f16.cuh"
#include <stdio.h>
#include <vector>

cudaStream_t rt_cuda_stream; /* of LAUNCH, which this test does not use */

enum { WALL = 64 };

/* n numbers that begin `start` numbers after a multiple of 64 bytes. */
template <class T> struct Walled {
    std::vector<unsigned char> bytes;
    size_t n;
    int start;
    Walled(size_t count, int first) : bytes((count + first) * sizeof(T) + 3 * WALL, 0x5a), n(count), start(first)
    {
    }
    T *at()
    {
        return (T *)(((uintptr_t)bytes.data() + 2 * WALL - 1) / WALL * WALL) + start;
    }
    bool whole()
    {
        const unsigned char *begin = (unsigned char *)at(), *end = (unsigned char *)(at() + n);
        bool all = true;
        for (const unsigned char *p = bytes.data(); p < bytes.data() + bytes.size(); p++)
            all = all && ((p >= begin && p < end) || *p == 0x5a);
        return all;
    }
};

static bool check(bool good, const char *what, int count, int blocks)
{
    if (!good)
        printf("%s of %d numbers in %d blocks\n", what, count, blocks);
    return good;
}

/* y[i] = a[i] * 2 + b[i % 3] + i % 5, where y and a are packs and b is not; in place: y is a. */
template <class Y, class A> static bool loops(const char *what, int count, int blocks, bool in_place)
{
    Walled<Y> y(count, 0);
    Walled<A> a(count, 0);
    const float b[3] = {1, -3, 0.5f};
    for (int i = 0; i < count; i++)
        a.at()[i] = (float)(i % 7);
    Y *const to = in_place ? (Y *)a.at() : y.at();
    const A *const from = a.at();
    fiber_run("each_pack", blocks, THREADS, [=, &b] {
        each_pack(count, [=, &b](unsigned i, auto y, auto a) { y[i] = (float)a[i] * 2 + b[i % 3] + i % 5; }, to, from);
    });
    bool good = y.whole() && a.whole();
    for (int i = 0; i < count; i++)
        good = good && (float)to[i] == (i % 7) * 2 + b[i % 3] + i % 5;
    return check(good, what, count, blocks);
}

template <class Y, class X> static bool converts(const char *what, int count, int start_y, int start_x)
{
    Walled<Y> y(count, start_y);
    Walled<X> x(count, start_x);
    for (int i = 0; i < count; i++)
        x.at()[i] = (float)(i % 101 - 50);
    Y *const to = y.at();
    const X *const from = x.at();
    fiber_run("convert", convert_blocks(count), THREADS, [=] { convert(to, from, count); });
    bool good = y.whole();
    for (int i = 0; i < count; i++)
        good = good && (float)to[i] == (float)(i % 101 - 50);
    return check(good, what, count, convert_blocks(count));
}

int main(void)
{
    const int many = RT_FULL * RT_THREADS * RT_PACK;
    bool good = true;

    for (int count : {0, 1, 3, 4, 5, 6, 7, 8, 255, 1023, 1024, 1025, 2050, 3075, 4100})
        for (int blocks = 1; blocks <= 3; blocks++) {
            good &= loops<real, real>("reals from reals", count, blocks, false);
            good &= loops<Bf16, Bf16>("bf16 from bf16", count, blocks, false);
            good &= loops<Bf16, Bf16>("bf16 in place", count, blocks, true);
            good &= loops<F16, real>("f16 from reals", count, blocks, false);
            good &= loops<real, F16>("reals from f16", count, blocks, false);
        }
    good &= check(convert_blocks(many) == RT_FULL && convert_blocks(many - 1) == RT_FULL * RT_PACK, "blocks", many, convert_blocks(many));
    for (int start = 0; start < 2; start++) {
        good &= converts<Bf16, real>("bf16 from reals", many + 3, start, 0);
        good &= converts<real, Bf16>("reals from bf16", many + 3, 0, start);
        good &= converts<F16, real>("f16 from reals, a scalar each", many - 1, start, 0);
    }
    return !good;
}
