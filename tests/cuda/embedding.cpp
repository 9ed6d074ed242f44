/* embedding.cpp -- both forms of an embedding's gradient on a GPU (cuda/embedding.cuh) have the bits of a loop over all tokens.
 *
 * The kernels run with a block for each part of their work, and with three blocks that take one part after another.  Tokens are all
 * equal, all different, few, mostly padding, or nothing else; one token is in each run that embedding_sort makes.  Status 0 if all bits
 * are equal, and if nothing is written before or after the results.
 */
#define RT_PERSISTENT /* a block takes several parts if there are fewer blocks */
#include "rt.h"
#include "fiber.h"
#include "cuda/launch.cuh"
#include "cuda/threads.cuh"
#include "cuda/embedding.cuh"
#include <stdio.h>
#include <vector>

cudaStream_t rt_cuda_stream; /* of LAUNCH, which this test does not use */

enum { PADDING = 3, WALL = 64, UNDEFINED = 0x5a, SCANNED = 300 /* a scan of more tokens takes long here */ };

/* n numbers with undefined contents, between two walls.  A wall is zeros: token 0, if it is taken for a sorted token. */
template <class T> struct Walled {
    std::vector<unsigned char> bytes;
    explicit Walled(size_t n) : bytes(n * sizeof(T) + 2 * WALL)
    {
        memset(at(), UNDEFINED, n * sizeof(T));
    }
    T *at()
    {
        return (T *)(bytes.data() + WALL);
    }
    bool whole() const
    {
        bool all = true;
        for (size_t i = 0; i < WALL; i++)
            all = all && !bytes[i] && !bytes[bytes.size() - 1 - i];
        return all;
    }
};

static int blocks_of(int parts, int most)
{
    return parts < most ? parts : most;
}

static std::vector<real> by_loop(std::vector<real> dw, const std::vector<int32_t> &token, const std::vector<real> &dy, Embedding e)
{
    for (int v = 0; v < (int)dw.size() / e.width; v++)
        for (int column = 0; v != e.padding && column < e.width; column++) {
            real sum = 0;
            for (int i = 0; i < e.rows; i++)
                if (token[i] == v)
                    sum += dy[(size_t)i * e.width + column];
            dw[(size_t)v * e.width + column] += sum;
        }
    return dw;
}

static void by_scan(real *dw, const int32_t *token, const real *dy, Embedding e, int most)
{
    fiber_run("embedding_dw", blocks_of(embedding_dw_blocks(e), most), THREADS, [=] { embedding_dw(dw, token, dy, e, false); });
}

static bool by_sort(real *dw, const int32_t *token, const real *dy, Embedding e, int most)
{
    const int each = blocks_of(each_blocks(e.rows), most);
    Walled<SortedToken> list[2] = {Walled<SortedToken>(e.rows), Walled<SortedToken>(e.rows)};
    SortedToken *from = list[0].at(), *to = list[1].at();
    fiber_run("embedding_sort", each, THREADS, [=] { embedding_sort(from, token, e.rows); });
    for (int run = THREADS; run < e.rows; run *= RT_MERGED) {
        fiber_run("embedding_merge", each, THREADS, [=] { embedding_merge(to, from, e.rows, run); });
        std::swap(from, to);
    }
    fiber_run("embedding_dw_sorted", blocks_of(embedding_dw_sorted_blocks(e), most), THREADS, [=] { embedding_dw_sorted(dw, from, dy, e); });
    return list[0].whole() && list[1].whole();
}

static bool same(const char *form, Walled<real> &dw, const std::vector<real> &want, Embedding e, int kind, int most)
{
    if (dw.whole() && !memcmp(dw.at(), want.data(), want.size() * sizeof(real)))
        return true;
    fprintf(stderr, "by a %s: %d tokens of kind %d, %d columns, at most %d blocks\n", form, e.rows, kind, e.width, most);
    return false;
}

static uint32_t random_bits(uint32_t &state)
{
    state ^= state << 13, state ^= state >> 17, state ^= state << 5;
    return state;
}

enum { EQUAL, DIFFERENT, ANY, IN_EACH_RUN, ONLY_PADDING, KINDS };

static int32_t token_of(int kind, int i, int rows, int vocab, uint32_t bits)
{
    return kind == EQUAL          ? vocab - 1
           : kind == DIFFERENT    ? rows - 1 - i
           : kind == ANY          ? (int32_t)(bits % vocab)
           : kind == ONLY_PADDING ? (int32_t)PADDING
           : i % THREADS == 77    ? 5
           : bits % 8             ? (int32_t)PADDING
                                  : (int32_t)(bits / 8 % vocab);
}

static bool check(int rows, int width, int vocab, int kind, int padding)
{
    const Embedding e = {rows, width, padding, false};
    uint32_t state = 2463534242u + (uint32_t)rows;
    std::vector<int32_t> token(rows);
    std::vector<real> dy((size_t)rows * width), start((size_t)(kind == DIFFERENT ? rows : vocab) * width);
    for (int i = 0; i < rows; i++)
        token[i] = token_of(kind, i, rows, vocab, random_bits(state));
    for (real &x : dy)
        x = (real)((int32_t)random_bits(state) * 0x1p-31);
    for (real &x : start)
        x = (real)((int32_t)random_bits(state) * 0x1p-31);
    const std::vector<real> want = by_loop(start, token, dy, e);
    bool fine = true;
    for (int most : {1 << 30, 3}) {
        Walled<real> dw(start.size());
        memcpy(dw.at(), start.data(), start.size() * sizeof(real));
        const bool walls = by_sort(dw.at(), token.data(), dy.data(), e, most);
        fine = same("sort", dw, want, e, kind, most) && walls && fine;
        if (rows > SCANNED)
            continue;
        memcpy(dw.at(), start.data(), start.size() * sizeof(real));
        by_scan(dw.at(), token.data(), dy.data(), e, most);
        fine = same("scan", dw, want, e, kind, most) && fine;
    }
    return fine;
}

int main()
{
    bool fine = true;
    for (int rows : {1, 31, 32, 33, 255, 256, 257, 1000, 2048, 2051})
        for (int kind = 0; kind < KINDS; kind++)
            fine = check(rows, rows < 1000 ? 33 : 5, kind == IN_EACH_RUN ? 40 : 7, kind, rows % 2 ? PADDING : -1) && fine;
    fine = check(1000, 5, 1, EQUAL, -1) && fine;
    fine = check(17000, 3, 11, ANY, PADDING) && fine; /* three launches of embedding_merge */
    fine = check(17000, 1, 300, IN_EACH_RUN, PADDING) && fine;
    return !fine;
}
