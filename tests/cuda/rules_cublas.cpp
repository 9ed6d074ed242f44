/* rules_cublas.cpp -- breaks rules of cuBLASLt: see rules.h and fake_cublas.cpp.
 *
 * A product here is D (2 columns of 3 rows) = A (3, 4) B (4, 2), all numbers of A 1 and of B 2: each number of D is 8.
 */
#include "rules.h"
#include <cmath>
#include <cstring>
#include <cublasLt.h>

enum { ROWS = 3, DEPTH = 4, COLUMNS = 2, ROOM = 512, LEAD = 128 /* bits of a row of a mask */ };

struct Product {
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t how;
    cublasLtMatrixLayout_t la, lb, ld;
    cublasLtMatmulPreference_t like;
    cublasLtMatmulHeuristicResult_t found;
    cudaStream_t stream;
    float *a, *b, *d;
    unsigned char *workspace, *bits;

    explicit Product(cublasLtEpilogue_t epilogue)
    {
        const int64_t lead = LEAD;
        const uint64_t room = ROOM;
        const uint32_t align = 16, one_sequence = CUBLASLT_REDUCTION_SCHEME_NONE;
        int n;
        stream = new_stream();
        a = new_memory<float>(ROWS * DEPTH), b = new_memory<float>(DEPTH * COLUMNS), d = new_memory<float>(ROWS * COLUMNS);
        workspace = new_memory<unsigned char>(ROOM), bits = new_memory<unsigned char>(COLUMNS * LEAD / 8);
        for (int i = 0; i < ROWS * DEPTH; i++)
            a[i] = 1;
        for (int i = 0; i < DEPTH * COLUMNS; i++)
            b[i] = 2;
        for (int i = 0; i < ROWS * COLUMNS; i++)
            d[i] = 5;
        memset(bits, 0, COLUMNS * LEAD / 8);
        cublasLtCreate(&handle);
        cublasLtMatmulDescCreate(&how, CUBLAS_COMPUTE_32F, CUDA_R_32F);
        cublasLtMatmulDescSetAttribute(how, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
        cublasLtMatmulDescSetAttribute(how, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &bits, sizeof bits);
        cublasLtMatmulDescSetAttribute(how, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &lead, sizeof lead);
        cublasLtMatrixLayoutCreate(&la, CUDA_R_32F, ROWS, DEPTH, ROWS);
        cublasLtMatrixLayoutCreate(&lb, CUDA_R_32F, DEPTH, COLUMNS, DEPTH);
        cublasLtMatrixLayoutCreate(&ld, CUDA_R_32F, ROWS, COLUMNS, ROWS);
        cublasLtMatmulPreferenceCreate(&like);
        cublasLtMatmulPreferenceSetAttribute(like, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, sizeof room);
        cublasLtMatmulPreferenceSetAttribute(like, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &one_sequence, sizeof one_sequence);
        for (int i = 0; i < 4; i++)
            cublasLtMatmulPreferenceSetAttribute(like, (cublasLtMatmulPreferenceAttributes_t)(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES + i), &align, sizeof align);
        memset((void *)&found, 0, sizeof found);
        cublasLtMatmulAlgoGetHeuristic(handle, how, la, lb, ld, ld, like, 1, &found, &n);
        hold("an algorithm", n == 1);
    }
    void run(const void *from, float beta, void *to, void *scratch)
    {
        const float one = 1;
        const cublasStatus_t s = cublasLtMatmul(handle, how, &one, from, la, b, lb, &beta, to, ld, to, ld, &found.algo, scratch, ROOM, stream);
        hold("a product", s == CUBLAS_STATUS_SUCCESS);
        cudaStreamSynchronize(stream);
    }
    bool all(float want) const
    {
        for (int i = 0; i < ROWS * COLUMNS; i++)
            if (d[i] != want)
                return false;
        return true;
    }
};

static void outputs()
{
    Product p(CUBLASLT_EPILOGUE_DEFAULT);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        p.d[i] = NAN;
    p.run(p.a, 0, p.d, p.workspace);
    hold("beta 0 does not read D", p.all(8));
    p.run(p.a, 1, p.d, p.workspace);
    hold("beta 1 adds D, in place", p.all(16));
    p.run(p.a, 0, p.a, p.workspace);
    hold("D overlaps A", std::isnan(p.a[0]));
}

static void workspaces()
{
    Product p(CUBLASLT_EPILOGUE_DEFAULT);
    memset(p.workspace, 0, ROOM);
    p.run(p.a, 0, p.d, p.workspace);
    hold("numbers that are kept in a workspace", undefined(p.workspace, ROOM));
    unsigned char *both = new_memory<unsigned char>(ROOM);
    p.run(p.a, 0, both, both);
    hold("a workspace that overlaps D", undefined(both, sizeof(float) * ROWS * COLUMNS));
}

static void masks()
{
    Product p(CUBLASLT_EPILOGUE_RELU_AUX);
    p.run(p.a, 0, p.d, p.workspace);
    hold("bits behind a row of a mask", undefined(p.bits + 1, LEAD / 8 - 1) && (p.bits[0] & 0xf8) == 0xf8);
}

/* Results of the heuristics that were not counted. */
static void heuristics()
{
    Product p(CUBLASLT_EPILOGUE_DEFAULT);
    cublasLtMatmulHeuristicResult_t none = p.found;
    int n = 1;
    cublasLtMatmulAlgoGetHeuristic(p.handle, p.how, p.lb, p.la, p.ld, p.ld, p.like, 1, &none, &n);
    hold("an algorithm for sizes that do not fit", n == 0 && undefined(&none, sizeof none));
}

int main()
{
    outputs();
    workspaces();
    masks();
    heuristics();
    return unnoticed != 0;
}
