/* fake_cublas.cpp -- a stand-in for cuBLASLt: products by plain loops, in the stream of fake.cpp;
 * it rejects what the library would reject.
 *
 * A shared library that programs open through TENON_CUBLASLT.  tf32, bf16 and f16 round factors as
 * tensor cores do, so a program with these types gives other results.  Whatever a product leaves
 * undefined is NaN (undefine).
 *
 *   FAKE_CUBLAS=old | start | none | fails | wrong      another version; cannot start; has no
 *                      algorithm; a product fails; a product is computed wrongly
 *   FAKE_CUBLAS=alone | bits | undo      has no algorithm that also sums a factor; that writes the
 *                      mask of a relu; that applies such a mask
 *   FAKE_LOG=1         prints products to stderr
 */
#include "shim.h"
#include "rounded.h"
#include <cstdio>
#include <cstdlib>
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <vector>

struct FakeBlas {
    int nothing;
};
struct FakeProduct {
    cublasComputeType_t compute;
    cudaDataType scale;
    cublasOperation_t transpose_a, transpose_b;
    cublasLtEpilogue_t epilogue;
    const void *bias;
    unsigned char *bits; /* mask of a relu */
    int64_t bits_lead;   /* bits from one column to the next */
};
struct FakeMatrix {
    cudaDataType type;
    int64_t rows, columns, lead, next;
    int32_t count;
};
struct FakePreference {
    uint64_t workspace;
    uint32_t reduction, align[4];
};

namespace {

bool wrong(const char *what)
{
    const char *how = getenv("FAKE_CUBLAS");
    return how && !strcmp(how, what);
}

/* Copies an attribute, which must have exactly that size. */
template <class T> cublasStatus_t take(T *to, const void *v, size_t bytes)
{
    if (bytes != sizeof *to)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(to, v, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

bool beside(cublasLtEpilogue_t e) /* whether it has a bias, or sums of B */
{
    return e & (CUBLASLT_EPILOGUE_BIAS | CUBLASLT_EPILOGUE_BGRADB);
}

constexpr int BITS = 128;
bool masks(cublasLtEpilogue_t e) /* whether it writes or reads a mask */
{
    return e & BITS;
}
bool undoes(cublasLtEpilogue_t e)
{
    return e == CUBLASLT_EPILOGUE_DRELU;
}
/* Whether the mask is valid: aligned to 16 bytes, with columns a multiple of 128 bits apart. */
bool masks_well(const FakeProduct *p, const FakeMatrix *d)
{
    return !masks(p->epilogue) || (p->bits && (uintptr_t)p->bits % 16 == 0 && p->bits_lead % BITS == 0 && p->bits_lead >= d->rows && d->count == 1);
}

/* Whether the sizes, counts and types of D = op(A) op(B) are valid for the library. */
bool fits(const FakeProduct *p, const FakeMatrix *a, const FakeMatrix *b, const FakeMatrix *d)
{
    const int64_t m = p->transpose_a ? a->columns : a->rows, k = p->transpose_a ? a->rows : a->columns;
    const int64_t n = p->transpose_b ? b->rows : b->columns, depth = p->transpose_b ? b->columns : b->rows;
    const cudaDataType of = p->compute == CUBLAS_COMPUTE_64F ? CUDA_R_64F : CUDA_R_32F;
    const bool half = (a->type == CUDA_R_16BF || a->type == CUDA_R_16F) && b->type == a->type && p->compute == CUBLAS_COMPUTE_32F &&
                      (d->type == a->type || d->type == CUDA_R_32F);
    return m == d->rows && n == d->columns && k == depth && a->count == b->count && b->count == d->count &&
           (half || (a->type == of && b->type == of && d->type == of)) && p->scale == of;
}

double at(cudaDataType type, const void *a, int64_t i)
{
    return type == CUDA_R_64F ? ((const double *)a)[i] : type == CUDA_R_16BF ? bf16_at(a, i) : type == CUDA_R_16F ? f16_at(a, i) : ((const float *)a)[i];
}
void put(cudaDataType type, void *a, int64_t i, double x)
{
    if (type == CUDA_R_64F)
        ((double *)a)[i] = x;
    else if (type == CUDA_R_16BF)
        bf16_put(a, i, (float)x);
    else if (type == CUDA_R_16F)
        f16_put(a, i, (float)x);
    else
        ((float *)a)[i] = (float)x;
}
/* Matrix number i as rounded factors, in the order of the sums. */
std::vector<double> factors(cublasComputeType_t how, const FakeMatrix &l, const void *from, int64_t i, bool along_rows)
{
    std::vector<double> v;
    v.reserve((size_t)(l.rows * l.columns));
    for (int64_t of = 0; of < (along_rows ? l.columns : l.rows); of++)
        for (int64_t k = 0; k < (along_rows ? l.rows : l.columns); k++) {
            const double x = at(l.type, from, i * l.next + (along_rows ? of * l.lead + k : k * l.lead + of));
            v.push_back(how == CUBLAS_COMPUTE_32F_FAST_TF32 ? tf32((float)x)
                        : how == CUBLAS_COMPUTE_32F_FAST_16BF ? bf16((float)x)
                        : how == CUBLAS_COMPUTE_32F_FAST_16F ? f16((float)x) : x);
        }
    return v;
}

constexpr int UNDEFINED = 0xff; /* NaN in each type, and each bit of a mask */

/* The old D, which only a beta other than 0 reads. */
std::vector<double> old_result(const FakeMatrix &ld, double beta, const void *d)
{
    std::vector<double> v;
    for (int64_t i = 0; beta != 0 && i < ld.count * ld.columns * ld.rows; i++)
        v.push_back(at(ld.type, d, i / (ld.rows * ld.columns) * ld.next + i / ld.rows % ld.columns * ld.lead + i % ld.rows));
    return v;
}

/* Outputs are undefined until the product has written them.
 *
 *   D     the library writes it while it reads A, B and the bias, so D may not overlap them.  Only "C == D" is in place, and C is no input if beta is 0
 *         (cuBLAS, cublasLtMatmul(): "in-place matrix multiplication (C == D and Cdesc == Ddesc)"; cublas<t>gemm(): "If beta == 0, C does not have to
 *         be a valid input")
 *   sums  of B: an output (cublasLtEpilogue_t, CUBLASLT_EPILOGUE_BGRADB)
 *   mask  of a relu: rows of AUX_LD bits, of which the first are defined, one for each row of D (cublasLtMatmulDescAttributes_t,
 *         CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD: "divisible by 128 and no less than the number of rows in the output matrix")
 */
void undefine(const FakeProduct &p, const FakeMatrix &ld, void *d)
{
    const int64_t each = ld.type == CUDA_R_64F ? 8 : ld.type == CUDA_R_32F ? 4 : 2;
    for (int64_t i = 0; i < ld.count * ld.columns; i++)
        memset((char *)d + each * (i / ld.columns * ld.next + i % ld.columns * ld.lead), UNDEFINED, (size_t)(each * ld.rows));
    if (p.epilogue & CUBLASLT_EPILOGUE_BGRADB)
        memset((void *)p.bias, UNDEFINED, (size_t)(each * ld.columns));
    if (masks(p.epilogue) && !undoes(p.epilogue))
        memset(p.bits, UNDEFINED, (size_t)(ld.columns * p.bits_lead / 8));
}

void multiply(FakeProduct p, FakeMatrix la, FakeMatrix lb, FakeMatrix ld, double alpha, const void *a, const void *b, double beta, void *d)
{
    const int64_t depth = p.transpose_a ? la.rows : la.columns;
    const bool off = wrong("wrong");
    const std::vector<double> old = old_result(ld, beta, d);
    undefine(p, ld, d);
    for (int64_t i = 0; i < ld.count; i++) {
        const std::vector<double> x = factors(p.compute, la, a, i, p.transpose_a), y = factors(p.compute, lb, b, i, !p.transpose_b);
        for (int64_t column = 0; column < ld.columns; column++)
            for (int64_t row = 0; row < ld.rows; row++) {
                double sum = off;
                for (int64_t k = 0; k < depth; k++)
                    sum += x[(size_t)(row * depth + k)] * y[(size_t)(column * depth + k)];
                const int64_t to = i * ld.next + column * ld.lead + row;
                double all = alpha * sum + (beta != 0 ? beta * old[(size_t)((i * ld.columns + column) * ld.rows + row)] : 0);
                if (p.epilogue & CUBLASLT_EPILOGUE_BIAS)
                    all += at(ld.type, p.bias, row);
                unsigned char *byte = masks(p.epilogue) ? p.bits + (column * p.bits_lead + row) / 8 : nullptr;
                const unsigned char bit = (unsigned char)(1 << row % 8); /* the order of the real library is not documented */
                const bool open = undoes(p.epilogue) ? *byte & bit : !(p.epilogue & CUBLASLT_EPILOGUE_RELU) || all > 0;
                if (byte && !undoes(p.epilogue))
                    *byte = (unsigned char)(open ? *byte | bit : *byte & ~bit);
                put(ld.type, d, to, open ? all : 0);
            }
        for (int64_t column = 0; p.epilogue & CUBLASLT_EPILOGUE_BGRADB && column < ld.columns; column++) {
            double sum = off;
            for (int64_t k = 0; k < depth; k++)
                sum += y[(size_t)(column * depth + k)];
            put(ld.type, (void *)p.bias, column, sum);
        }
    }
}

} // namespace

extern "C" {

size_t cublasLtGetVersion(void)
{
    return wrong("old") ? 120803 : 130100;
}

const char *cublasLtGetStatusString(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_NOT_INITIALIZED ? "the library was not initialized" : "an error of the fake cuBLASLt";
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    *handle = new FakeBlas{};
    return wrong("start") ? CUBLAS_STATUS_NOT_INITIALIZED : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute, cudaDataType scale)
{
    *desc = new FakeProduct{compute, scale, CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, nullptr, nullptr, 0};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t name, const void *v, size_t bytes)
{
    switch (name) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        return take(&d->transpose_a, v, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
        return take(&d->transpose_b, v, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return take(&d->epilogue, v, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return take(&d->bias, v, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
        return take(&d->bits, v, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
        return take(&d->bits_lead, v, bytes);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *l, cudaDataType type, uint64_t rows, uint64_t columns, int64_t lead)
{
    *l = new FakeMatrix{type, (int64_t)rows, (int64_t)columns, lead, 0, 1};
    return lead >= (int64_t)rows ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t l, cublasLtMatrixLayoutAttribute_t name, const void *v, size_t bytes)
{
    return name == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT ? take(&l->count, v, bytes) : take(&l->next, v, bytes);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *p)
{
    *p = new FakePreference{0, 7, {256, 256, 256, 256}};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p, cublasLtMatmulPreferenceAttributes_t name, const void *v, size_t bytes)
{
    if (name == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
        return take(&p->workspace, v, bytes);
    if (name == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)
        return take(&p->reduction, v, bytes);
    return take(&p->align[name - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES], v, bytes);
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p)
{
    delete p;
    return CUBLAS_STATUS_SUCCESS;
}

/* An algorithm of this library is the alignment that it assumes and the workspace that it may use. */
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t p, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t like, int most,
                                              cublasLtMatmulHeuristicResult_t *r, int *n)
{
    *n = 0;
    if (most > 0) /* only the first *n results are defined (cuBLAS, cublasLtMatmulAlgoGetHeuristic(), returnAlgoCount) */
        memset((void *)r, UNDEFINED, (size_t)most * sizeof *r);
    if (!fits(p, a, b, d) || c->rows != d->rows || like->reduction != CUBLASLT_REDUCTION_SCHEME_NONE || most < 1)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (beside(p->epilogue) && (!p->bias || (uintptr_t)p->bias % like->align[0]))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (p->epilogue & CUBLASLT_EPILOGUE_BGRADB && (d->count != 1 || wrong("alone")))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (!masks_well(p, d))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (wrong("none") || (masks(p->epilogue) && (wrong("bits") || (wrong("undo") && undoes(p->epilogue)))))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    *r = {};
    r->algo.data[0] = like->align[0];
    r->algo.data[1] = r->workspaceSize = like->workspace;
    *n = 1;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t p, const void *alpha, const void *a, cublasLtMatrixLayout_t la, const void *b,
                              cublasLtMatrixLayout_t lb, const void *beta, const void *c, cublasLtMatrixLayout_t, void *d,
                              cublasLtMatrixLayout_t ld, const cublasLtMatmulAlgo_t *algo, void *workspace, size_t bytes, cudaStream_t stream)
{
    const uintptr_t places = (uintptr_t)a | (uintptr_t)b | (uintptr_t)d | (beside(p->epilogue) ? (uintptr_t)p->bias : 0);
    if (wrong("fails"))
        return CUBLAS_STATUS_EXECUTION_FAILED;
    if (!masks_well(p, ld) || c != d || places % algo->data[0] || bytes < algo->data[1] || (uintptr_t)workspace % 256)
        return CUBLAS_STATUS_INVALID_VALUE;
    const FakeProduct how = *p;
    const FakeMatrix xa = *la, xb = *lb, xd = *ld;
    const char *const tf = how.compute == CUBLAS_COMPUTE_32F_FAST_TF32 ? " in tf32"
                           : how.compute == CUBLAS_COMPUTE_32F_FAST_16BF || xa.type == CUDA_R_16BF ? " in bf16"
                           : how.compute == CUBLAS_COMPUTE_32F_FAST_16F || xa.type == CUDA_R_16F ? " in f16" : "";
    const double one = at(how.scale, alpha, 0), before = at(how.scale, beta, 0); /* in host memory, read now */
    shim_work(stream, [=] {
        if (getenv("FAKE_LOG"))
            fprintf(stderr, "fake: a product, %lld x %lld%s%s%s%s%s\n", (long long)xd.columns, (long long)xd.rows, tf,
                    how.epilogue & CUBLASLT_EPILOGUE_BIAS ? " + bias" : "", how.epilogue & CUBLASLT_EPILOGUE_RELU ? " relu" : "",
                    undoes(how.epilogue) ? " a relu undone" : masks(how.epilogue) ? " and bits" : "", how.epilogue & CUBLASLT_EPILOGUE_BGRADB ? " and sums" : "");
        memset(workspace, UNDEFINED, bytes); /* the product writes it, before, while and after it writes D */
        multiply(how, xa, xb, xd, one, a, b, before, d);
        memset(workspace, UNDEFINED, bytes);
    });
    return CUBLAS_STATUS_SUCCESS;
}

} // extern "C"
