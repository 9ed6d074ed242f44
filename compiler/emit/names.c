/* names.c -- constants of the generated file: one a value, readable, unique. */
#include "emit/writer.h"
#include <ctype.h>
#include <string.h>

const char *name_upper(Arena *a, const char *s)
{
    char *t = arena_strdup(a, s);

    for (char *p = t; *p; p++)
        *p = isalnum((unsigned char)*p) ? (char)toupper((unsigned char)*p) : '_';
    return t;
}

/* The place of a name in the table, or the empty one where it belongs. */
static Name *find_name(const Writer *w, const char *text)
{
    uint64_t at = text_hash(text, strlen(text), 0);

    while (w->name[at &= w->room - 1].text && strcmp(w->name[at].text, text) != 0)
        at++;
    return &w->name[at];
}

static void widen_table(Writer *w)
{
    const Name *old = w->name;
    const uint64_t room = w->room;

    w->room = room ? 2 * room : 64;
    w->name = arena_alloc(w->arena, w->room * sizeof *w->name);
    for (uint64_t i = 0; i < room; i++)
        if (old[i].text)
            *find_name(w, old[i].text) = old[i];
}

/* False when it is taken already. */
static bool take_name(Writer *w, const char *text)
{
    if (2 * w->nname >= w->room)
        widen_table(w);
    Name *n = find_name(w, text);
    if (n->text)
        return false;
    *n = (Name){.text = text, .next = 2};
    w->nname++;
    return true;
}

/* What a generated file says itself, and what it includes: constants, types and macros of rt.h, of
 * the kernels' headers and of libc's and OpenBLAS's behind them.  A word that ends in _ stands for
 * all that begin so. */
static const char words[] =
    /* the file's own */
    " CHUNK SLICE SLICES SHARD FIXED LOCAL BATCH PARTIAL GRAD KERNEL TICK SCRATCH TEST_SCRATCH TOKEN_SCRATCH"
    /* of a file for a GPU, and of runtime/cuda's headers */
    " LAUNCH DEVICE SIZE SHARED STAGE STAGE_AND_KERNEL KERNEL_OF_STEPS LAUNCH_STEPS FOR_BLOCKS FOR_ROWS ONE_PART_A_BLOCK FOR_EACH THREADS WARP WARPS TILE STRIP SIDE FEW_BLOCKS ALONG_K ALONG_RESULT"
    " UPDATE_EACH UPDATE_LEVELS WORKSPACE APART CUDA_ CUDART_ CUBLAS_ CUBLASLT_"
    /* the runtime's */
    " ATTENTION_ROWS ATTENTION_SCORES ATTENTION_PART ATTENTION_BLOCK ATTENTION_ROOM ATTENTION_DX_ROOM EMBEDDING_LEVELS EMBEDDING_ROWS EMBEDDING_SIZE"
    " GEMM_DEPTH GEMM_PACKED GEMM_PANELS"
    " BLAS_COLUMNS BLAS_GEMM CONV_BLOCK CONV_DEPTH_HELD CONV_DEPTH_PLANE CONV_DEPTH_SUMS"
    " CONV_DW_C CONV_DW_CHANNELS CONV_DW_DEPTH CONV_DW_O CONV_DW_OUTPUTS CONV_DW_SQUARE CONV_DW_UNITS"
    " CONV_SCRATCH CONV_TILE_ARGUMENTS CONV_TILE_LINKAGE DENSE_DX_COLUMNS DENSE_DX_ROWS "
    "DENSE_DEPTH DENSE_FETCH_FROM DENSE_INPUT_COLUMNS DENSE_INPUT_TILES DENSE_INPUT_WORD DENSE_MANY DENSE_PAGE DENSE_SAMPLES"
    " DENSE_UNIT_SIZE DENSE_UNIT_TILES DENSE_WIDE_PANELS DENSE_X_TILE DW_BLOCK FEW_SCRATCH FLAT_LINE FRAME INPUT_FETCH_MOST LANES_ROW LANES_TILE NORM_BLOCK_BYTES"
    " NORM_WIDE P"
    " PATCHES PATCH_MAX PATCH_WINDOWS PHILOX_BLOCKS POOL_LIST RUN_MAX TAKEN_OUTPUTS TAKEN_WINDOWS TILE_FAR TILE_FAR_REALS TILE_MAX TILE_ROWS TILE_ROWS_1"
    " TILE_WINDOWS TREE_DEPTH V VH V_HIGH V_INTERLEAVE V_LOW RT_ CPU_ SPARSE_ TAPS_ WINO_"
    /* libraries' */
    " BLASLONG BLASULONG BUFSIZ EOF FILE FILENAME_MAX FLOATRET FOPEN_MAX FP_FAST_FMA"
    " FP_FAST_FMAF FP_ILOGB0 FP_ILOGBNAN FP_INFINITE FP_NAN FP_NORMAL FP_SUBNORMAL FP_ZERO"
    " HUGE_VAL HUGE_VALF HUGE_VALL I INFINITY INT16_MAX INT16_MIN INT32_MAX INT32_MIN"
    " INT64_MAX INT64_MIN INT8_MAX INT8_MIN INTMAX_MAX INTMAX_MIN INTPTR_MAX INTPTR_MIN"
    " INT_FAST16_MAX INT_FAST16_MIN INT_FAST32_MAX INT_FAST32_MIN INT_FAST64_MAX"
    " INT_FAST64_MIN INT_FAST8_MAX INT_FAST8_MIN INT_LEAST16_MAX INT_LEAST16_MIN"
    " INT_LEAST32_MAX INT_LEAST32_MIN INT_LEAST64_MAX INT_LEAST64_MIN INT_LEAST8_MAX"
    " INT_LEAST8_MIN MATH_ERREXCEPT MATH_ERRNO M_1_PI M_2_PI M_2_SQRTPI M_E M_LN10 M_LN2"
    " M_LOG10E M_LOG2E M_PI M_PI_2 M_PI_4 M_SQRT1_2 M_SQRT2 NAN NULL PTRDIFF_MAX PTRDIFF_MIN"
    " SCHED_FIFO SCHED_OTHER SCHED_RR SEEK_CUR SEEK_END SEEK_SET SIG_ATOMIC_MAX SIG_ATOMIC_MIN"
    " SIZE_MAX TMP_MAX UINT16_MAX UINT32_MAX UINT64_MAX UINT8_MAX UINTMAX_MAX UINTPTR_MAX"
    " UINT_FAST16_MAX UINT_FAST32_MAX UINT_FAST64_MAX UINT_FAST8_MAX UINT_LEAST16_MAX"
    " UINT_LEAST32_MAX UINT_LEAST64_MAX UINT_LEAST8_MAX WCHAR_MAX WCHAR_MIN WINT_MAX WINT_MIN"
    " BLASFUNC CBLAS_ OPENBLAS_"
    " ";

static bool is_word(const char *s, size_t n)
{
    for (const char *p = words; (p = strchr(p, ' ')) && p[1]; p++)
        if (strncmp(p + 1, s, n) == 0 && p[1 + n] == ' ')
            return true;
    return false;
}

static bool reserved(const char *name)
{
    const char *end = strchr(name, '_');

    return is_word(name, strlen(name)) || (end && is_word(name, (size_t)(end + 1 - name)));
}

static const char *unique(Writer *w, const char *base)
{
    const char *name = base;

    if (reserved(base))
        take_name(w, base); /* so that a number follows */
    while (!take_name(w, name) || (name != base && is_word(name, strlen(name))))
        name = arena_printf(w->arena, "%s_%d", base, find_name(w, base)->next++);
    return name;
}

static const char *state_name(const Writer *w, const char *param, int k)
{
    return arena_printf(w->arena, "%s_STATE%d", param, k);
}

/* Each of "a.b.weight", "a_b.weight" and "A_b.weight" becomes a constant of its own, and so do
 * its states.  The table keeps it under the parameter's name, which has a dot: no constant has. */
void name_params(Writer *w, const Graph *g)
{
    for (int i = 0; i < g->nparam; i++) {
        const char *base = name_upper(w->arena, g->param[i]->name), *name = unique(w, base);

        while (!take_name(w, state_name(w, name, 0)) || !take_name(w, state_name(w, name, 1)))
            name = unique(w, base);
        take_name(w, g->param[i]->name);
        find_name(w, g->param[i]->name)->param = name;
    }
}

const char *name_of_param(const Writer *w, const Param *p)
{
    return find_name(w, p->name)->param;
}

const char *name_of_state(const Writer *w, const Param *p, int k)
{
    return state_name(w, name_of_param(w, p), k);
}

const char *name_of(Writer *w, const Node *n)
{
    const char **slot = &w->of_node[writer_graph(w)][n->id];
    const char *stem = n->name ? n->name : n->op->name;

    if (*slot)
        return *slot;
    if (node_is(n, "param")) /* one copy serves both graphs */
        return *slot = name_of_param(w, n->param);
    if (node_is(n, "side"))
        stem = arena_printf(w->arena, node_is(n->in[0], "dense") ? "%s_open" : "%s_index",
                            n->in[0]->name ? n->in[0]->name : "pool");
    else if (node_is(n, "conv2d_pack"))
        stem = arena_printf(w->arena, "%s_%s", n->in[0]->name,
                            node_int(n, "dx") ? "packed_dx" : "packed");
    else if (node_is(n, "dense_turn"))
        stem = arena_printf(w->arena, "%s_turned", n->in[0]->name);
    else if (n->backward && !n->name)
        stem = arena_printf(w->arena, "d_%s", stem);
    return *slot = unique(w, arena_printf(w->arena, "%s%s", w->prefix, name_upper(w->arena, stem)));
}
