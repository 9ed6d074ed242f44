/* cublas.c -- products with cuBLASLt, which dlopen opens: an algorithm for each row, a check of
 * each status.
 *
 * The library is column-major, we are row-major: its D (columns x rows) is our y, its A our b, its
 * B our a; its bias for each row is our bias for each column.  Runs have the same bits: there is
 * one heuristic request a row, always the same, and its answer may not split a sum (split-K).  The
 * answer depends on the version of the library and on the GPU.
 *
 * Compiled with each program that needs it, like gpu.c.
 */
#include "cuda/cublas.h"
#include "base/error.h"
#include "base/variables.h"
#include "cuda/gpu.h"
#include "device/device.h"
#include <cublasLt.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define SYMBOLS(S)                                                                                 \
    S(GetVersion)                                                                                  \
    S(GetStatusString)                                                                             \
    S(Create)                                                                                      \
    S(MatmulDescCreate)                                                                            \
    S(MatmulDescSetAttribute)                                                                      \
    S(MatrixLayoutCreate)                                                                          \
    S(MatrixLayoutSetAttribute)                                                                    \
    S(MatmulPreferenceCreate)                                                                      \
    S(MatmulPreferenceSetAttribute)                                                                \
    S(MatmulPreferenceDestroy)                                                                     \
    S(MatmulAlgoGetHeuristic)                                                                      \
    S(Matmul)

/* The functions, without the prefix "cublasLt". */
static struct {
#define FIELD(name) __typeof__(cublasLt##name) *name;
    SYMBOLS(FIELD)
#undef FIELD
} api;

/* A row, prepared for the library. */
typedef struct Ready {
    cublasLtMatmulDesc_t how;
    cublasLtMatrixLayout_t a, b, y;
    cublasLtMatmulAlgo_t algorithm;
    /* The product of a and ones, which gives the sums if no algorithm also computes them; `sums`:
     * this product, prepared.  NULL: the algorithm computes the sums, or there are none. */
    RtProduct apart;
    struct Ready *sums;
    const void *ones;
    bool masked; /* the algorithm writes, or reads, the mask */
} Ready;

static const RtProduct *product;
static Ready *ready;
static cublasLtHandle_t handle;
static size_t room; /* of the workspace */

#ifdef RT_DOUBLE
static const cudaDataType type = CUDA_R_64F;
#else
static const cudaDataType type = CUDA_R_32F;
#endif

/* ---- the library */

enum { MAJOR = 13, CHANGES = 10000 }; /* version 130100 is 13.1.0 */

static void open_cublas(void)
{
    const char *named = getenv(VARIABLE(TENON_CUBLASLT));
    const char *path = named && *named ? named : "libcublasLt.so.13";
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL), *symbol;
    if (!library)
        rt_die("cuBLASLt 13 was not found: %s; this program computes its products with it: install "
               "it (CUDA 13's toolkit, PyPI: nvidia-cublas), or set "
               "TENON_CUBLASLT=/path/libcublasLt.so.13; built without --kernels=cudnn it needs no "
               "library",
               dlerror());
        /* memcpy as cast: ISO C has no other way from an object pointer to a function pointer */
#define BIND(name)                                                                                 \
    if (!(symbol = dlsym(library, "cublasLt" #name)))                                              \
        rt_die("%s is no cuBLASLt 13: it has no cublasLt" #name, path);                            \
    memcpy(&api.name, &symbol, sizeof symbol);
    SYMBOLS(BIND)
#undef BIND
    const size_t version = api.GetVersion();
    if (version / CHANGES != MAJOR)
        rt_die("%s is cuBLASLt %zu.%zu, and this program needs version 13", path, version / CHANGES,
               version / 100 % 100);
}

static void cublas_check(cublasStatus_t s, const RtProduct *p, const char *what)
{
    if (s != CUBLAS_STATUS_SUCCESS)
        rt_die("cuBLASLt failed at %s, %s: %s", p->layer, what, api.GetStatusString(s));
}

/* ---- preparing a row */

static void set_attribute(const RtProduct *p, Ready *r, cublasLtMatmulDescAttributes_t name,
                          const void *v, size_t bytes)
{
    cublas_check(api.MatmulDescSetAttribute(r->how, name, v, bytes), p, "describing the product");
}

static cublasComputeType_t compute_of(const RtProduct *p, RtRounding rounding)
{
    if (type == CUDA_R_64F)
        return CUBLAS_COMPUTE_64F;
    return p->factors_half       ? CUBLAS_COMPUTE_32F /* type of the sums */
           : rounding == RT_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32
           : rounding == RT_BF16 ? CUBLAS_COMPUTE_32F_FAST_16BF
           : rounding == RT_F16  ? CUBLAS_COMPUTE_32F_FAST_16F
                                 : CUBLAS_COMPUTE_32F;
}

static cublasLtEpilogue_t epilogue_of(const RtProduct *p)
{
    return p->sums              ? CUBLASLT_EPILOGUE_BGRADB /* our a */
           : p->undoes          ? CUBLASLT_EPILOGUE_DRELU
           : p->bias && p->mask ? CUBLASLT_EPILOGUE_RELU_AUX_BIAS
           : p->mask            ? CUBLASLT_EPILOGUE_RELU_AUX
           : p->bias && p->relu ? CUBLASLT_EPILOGUE_RELU_BIAS
           : p->bias            ? CUBLASLT_EPILOGUE_BIAS
           : p->relu            ? CUBLASLT_EPILOGUE_RELU
                                : CUBLASLT_EPILOGUE_DEFAULT;
}

static void describe_mask(const RtProduct *p, Ready *r)
{
    enum { BITS = 128, ALIGN = RT_ALIGN }; /* planned memory is aligned to RT_ALIGN */
    const int64_t row = (p->columns + BITS - 1) / BITS * BITS;
    const uintptr_t like = ALIGN;
    set_attribute(p, r, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &row, sizeof row);
    set_attribute(p, r, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &like, sizeof like);
}

static void describe_product(const RtProduct *p, Ready *r, RtRounding rounding)
{
    const cublasComputeType_t compute = compute_of(p, rounding);
    const cublasOperation_t as_it_is = CUBLAS_OP_N, transposed = CUBLAS_OP_T;
    const cublasLtEpilogue_t epilogue = epilogue_of(p);
    cublas_check(api.MatmulDescCreate(&r->how, compute, type), p, "describing the product");
    set_attribute(p, r, CUBLASLT_MATMUL_DESC_TRANSA, p->transpose_b ? &transposed : &as_it_is,
                  sizeof transposed);
    set_attribute(p, r, CUBLASLT_MATMUL_DESC_TRANSB, p->transpose_a ? &transposed : &as_it_is,
                  sizeof transposed);
    set_attribute(p, r, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    if (p->bias || p->sums) { /* the heuristics use only the alignment of the address */
        const uintptr_t like = (uintptr_t)p->align;
        set_attribute(p, r, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &like, sizeof like);
    }
    if (p->mask || p->undoes)
        describe_mask(p, r);
}

/* `count` matrices, one after another. */
static cublasLtMatrixLayout_t layout(const RtProduct *p, cudaDataType of, int64_t rows,
                                     int64_t columns)
{
    cublasLtMatrixLayout_t l;
    const int32_t count = p->count;
    const int64_t next = rows * columns;
    cublasStatus_t s = api.MatrixLayoutCreate(&l, of, (uint64_t)rows, (uint64_t)columns, rows);
    if (!s)
        s = api.MatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                         sizeof count);
    if (!s)
        s = api.MatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &next,
                                         sizeof next);
    cublas_check(s, p, "describing a matrix");
    return l;
}

static cublasLtMatmulPreference_t preference(const RtProduct *p)
{
    static const cublasLtMatmulPreferenceAttributes_t alignment[] =
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
         CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    const uint64_t most = room;
    const uint32_t one_sequence = CUBLASLT_REDUCTION_SCHEME_NONE, bytes = (uint32_t)p->align;
    cublasLtMatmulPreference_t like;
    cublasStatus_t s = api.MatmulPreferenceCreate(&like);
    if (!s)
        s = api.MatmulPreferenceSetAttribute(like, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most,
                                             sizeof most);
    if (!s)
        s = api.MatmulPreferenceSetAttribute(like, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                             &one_sequence, sizeof one_sequence);
    for (int i = 0; !s && i < 4; i++)
        s = api.MatmulPreferenceSetAttribute(like, alignment[i], &bytes, sizeof bytes);
    cublas_check(s, p, "saying what algorithms may do");
    return like;
}

/* Finds an algorithm; false: the library has none, and there is another way. */
static bool settle(const RtProduct *p, Ready *r)
{
    cublasLtMatmulHeuristicResult_t found;
    cublasLtMatmulPreference_t like = preference(p);
    int n = 0;
    const cublasStatus_t s =
        api.MatmulAlgoGetHeuristic(handle, r->how, r->a, r->b, r->y, r->y, like, 1, &found, &n);
    api.MatmulPreferenceDestroy(like);
    const bool spare = p->sums || p->mask || p->undoes; /* another way exists */
    if (s == CUBLAS_STATUS_NOT_SUPPORTED || (s && spare) || (!s && (n == 0 || found.state)))
        return false;
    cublas_check(s, p, "choosing an algorithm");
    r->algorithm = found.algo;
    return true;
}

static bool make_ready(const RtProduct *p, Ready *r, RtRounding rounding)
{
    const cudaDataType half = rounding == RT_F16 ? CUDA_R_16F : CUDA_R_16BF,
                       of = p->factors_half ? half : type;
    describe_product(p, r, rounding);
    r->a =
        p->transpose_b ? layout(p, of, p->depth, p->columns) : layout(p, of, p->columns, p->depth);
    r->b = p->transpose_a ? layout(p, of, p->rows, p->depth) : layout(p, of, p->depth, p->rows);
    r->y = layout(p, p->half ? half : type, p->columns, p->rows);
    return settle(p, r);
}

/* A vector of ones of a's type on the GPU, never freed. */
static const void *ones(const RtProduct *p, RtRounding rounding)
{
    const int bytes = p->factors_half ? 2 : (int)sizeof(real);
    const uint16_t one = rounding == RT_F16 ? 0x3c00 : 0x3f80;
    char *here = rt_alloc((size_t)(bytes * p->depth));
    for (int i = 0; i < p->depth; i++)
        if (p->factors_half)
            ((uint16_t *)here)[i] = one;
        else
            ((real *)here)[i] = 1;
    void *there = rt_cuda.memory(bytes * p->depth, "a row of ones");
    rt_cuda.put(there, here, bytes * p->depth);
    return there;
}

/* Prepares the sums as a product of its own: y (rows, 1) = a ones.  f32 in memory is not
 * rounded. */
static bool take_apart(const RtProduct *p, Ready *r, RtRounding rounding)
{
    RtProduct alone = *p;
    alone.sums = false;
    r->apart = alone;
    r->apart.columns = 1, r->apart.transpose_b = false, r->apart.half = false;
    r->ones = ones(p, rounding);
    r->sums = rt_alloc(sizeof *r->sums);
    return make_ready(&alone, r, rounding) &&
           make_ready(&r->apart, r->sums, p->factors_half ? rounding : RT_EXACT);
}

static void __attribute__((noreturn)) has_none(const RtProduct *p)
{
    rt_die("cuBLASLt has no algorithm for %s, %d x %d sums of %d products, %d times: build "
           "without --kernels=cudnn",
           p->layer, p->rows, p->columns, p->depth, p->count);
}

/* Prepares the row without the mask: another kernel computes the relu's gradient. */
static bool unmask(const RtProduct *p, Ready *r, RtRounding rounding)
{
    RtProduct alone = *p;
    alone.mask = false, alone.undoes = 0;
    r->masked = false;
    return make_ready(&alone, r, rounding);
}

static bool settle_row(const RtProduct *p, Ready *r, RtRounding rounding)
{
    const bool written = !p->undoes || ready[p->undoes - 1].masked;
    r->masked = (p->mask || p->undoes) && written && make_ready(p, r, rounding);
    if (p->mask || p->undoes)
        return r->masked || unmask(p, r, rounding);
    return make_ready(p, r, rounding) || (p->sums && take_apart(p, r, rounding));
}

/* Whether the mask of a row is useless: the library can write it, but cannot read it in the row
 * that needs it. */
static bool is_in_vain(const RtProduct *p, int n, int row)
{
    bool read = false;
    for (int i = 0; i < n; i++)
        read |= p[i].undoes == row + 1 && ready[i].masked;
    return p[row].mask && ready[row].masked && !read;
}

static void note_missing(const RtProduct *p, int n)
{
    int relus = 0, inside = 0;
    for (int i = 0; i < n; i++)
        relus += p[i].undoes > 0, inside += p[i].undoes > 0 && ready[i].masked;
    if (inside < relus)
        rt_note("cuBLASLt computes the gradients of %d of %d relus inside products: Tenon's "
                "kernels compute the others",
                inside, relus);
}

void rt_products_open(const RtProduct *p, int n, RtRounding rounding, int64_t workspace)
{
    open_cublas();
    product = p, room = (size_t)workspace;
    if (rounding == RT_TF32)
        rt_note("products in tf32: factors are rounded to 10 fraction bits, sums are f32");
    if (rounding == RT_BF16 || rounding == RT_F16)
        rt_note("products and the values between them in %s fraction bits; sums, weights, their "
                "updates, statistics and losses are f32",
                rounding == RT_F16 ? "f16, 10" : "bf16, 7");
    ready = rt_alloc((size_t)n * sizeof *ready);
    cublas_check(api.Create(&handle), p, "starting the library");
    for (int i = 0; i < n; i++)
        if (!settle_row(&p[i], &ready[i], rounding))
            has_none(&p[i]);
    for (int i = 0; i < n; i++)
        if (is_in_vain(p, n, i) && !unmask(&p[i], &ready[i], rounding))
            has_none(&p[i]);
    note_missing(p, n);
}

/* ---- a call */

static void multiply(const RtProduct *p, Ready *r, void *y, const void *a, const void *b,
                     const void *beside, void *workspace)
{
    const real one = 1, before = p->add ? 1 : 0;
    if (((uintptr_t)y | (uintptr_t)a | (uintptr_t)b | (uintptr_t)beside) % (uintptr_t)p->align)
        rt_die("%s: the address of an operand of its product is not a multiple of %d bytes",
               p->layer, p->align);
    if (p->bias || (p->sums && !r->sums))
        set_attribute(p, r, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &beside, sizeof beside);
    cublas_check(api.Matmul(handle, r->how, &one, b, r->a, a, r->b, &before, y, r->y, y, r->y,
                            &r->algorithm, workspace, room, rt_cuda_stream),
                 p, "the product");
}

void rt_product(int which, void *y, const void *a, const void *b, const void *beside,
                void *workspace)
{
    Ready *r = &ready[which];
    multiply(&product[which], r, y, a, b, beside, workspace);
    if (r->sums)
        multiply(&r->apart, r->sums, (void *)beside, a, r->ones, NULL, workspace);
}

bool rt_product_masked(int which, void *y, const void *a, const void *b, const void *beside,
                       void *mask, void *workspace)
{
    Ready *r = &ready[which];
    if (r->masked)
        set_attribute(&product[which], r, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &mask,
                      sizeof mask);
    rt_product(which, y, a, b, beside, workspace);
    return r->masked;
}
