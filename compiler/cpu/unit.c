/* unit.c -- divides the program into files that compile in parallel: kernels, and the step that
 * calls them.
 *
 * A kernel is large if the C compiler needs at least 0.1 s for it; each large kernel has its own
 * file.  Small kernels of one header share files, because reading the headers takes longer than
 * compiling a small kernel (33 and 10 ms with gcc 12).  A file includes only the headers that it
 * needs.  A change of a kernel changes no other file.
 */
#include "cpu/cpu.h"
#include "cpu/parts.h"
#include <string.h>

/* The header of each kernel in runtime/, by the longest prefix of its name that has a row.  A row
 * is right if the header contains or includes each kernel of the row.  tests/layers.sh checks all
 * kernels with a plain version, and names a missing or wrong row. */
typedef struct Home {
    const char *prefix, *header;
    bool large; /* the head of this file says when; no test checks this column */
} Home;

static const Home home[] = {{"conv2d_winograd_dw", "cpu/winograd_dw.h", true},
                            {"conv2d_winograd", "cpu/winograd.h", true},
                            {"wino_pack", "cpu/winograd.h", false},
                            {"wino", "cpu/winograd.h", true},
                            {"conv2d_dw_update", "cpu/conv_dw_update.h", true},
                            {"conv2d_pack", "cpu/conv_pack.h", false},
                            {"conv2d_plain", "cpu/conv.h", true},
                            {"conv2d_dx_plain", "cpu/conv.h", true},
                            {"conv2d_dw_plain", "cpu/conv.h", true},
                            {"conv2d_pool_dw", "cpu/conv_pool_dw.h", true},
                            {"conv2d_pool_dx", "cpu/conv_pool_dx.h", true},
                            {"conv2d_pool", "cpu/conv_pool_forward.h", true},
                            {"conv2d_dw", "cpu/conv_dw.h", true},
                            {"conv2d_dx", "cpu/conv_dx.h", true},
                            {"conv2d", "cpu/conv_forward.h", true},
                            {"dense_dw_update_input", "cpu/dense_input.h", true},
                            {"dense_dw_update", "cpu/dense_update.h", true},
                            {"dense_wide", "cpu/dense_wide.h", true},
                            {"dense_sparse", "cpu/dense_sparse.h", true},
                            {"dense_transpose", "cpu/dense.h", false},
                            {"dense", "cpu/dense.h", true},
                            {"bf16_conv_pack", "cpu/bf16_pack.h", false},
                            {"bf16_conv2d_dw_update", "cpu/bf16_conv_update.h", true},
                            {"bf16_conv2d_dw", "cpu/bf16_conv_dw.h", true},
                            {"bf16_conv2d", "cpu/bf16_conv.h", true},
                            {"bf16_dense_pack", "cpu/bf16_pack.h", false},
                            {"bf16_dense_dw_update", "cpu/bf16_update.h", true},
                            {"bf16_dense", "cpu/bf16_dense.h", true},
                            {"bf16_attention", "cpu/bf16_attention.h", true},
                            {"bf16_token", "cpu/bf16_attention.h", true},
                            {"bf16_matmul", "cpu/bf16_gemm.h", true},
                            {"bf16_pack", "cpu/bf16_pack.h", false},
                            {"convert", "cpu/team.h", false},
                            {"sum_to", "cpu/channel_sum.h", false},
                            {"amax_to", "cpu/math.h", false},
                            {"reduce_update", "cpu/update.h", false},
                            {"grad_update", "cpu/update.h", false},
                            {"max_pool", "cpu/pool.h", false},
                            {"avg_pool", "cpu/pool.h", false},
                            {"global_avg_pool", "cpu/pool.h", false},
                            {"global_max_pool", "cpu/pool.h", false},
                            {"resize", "cpu/resize.h", false},
                            {"matmul", "cpu/gemm.h", true},
                            {"embedding", "cpu/embedding.h", false},
                            {"mask", "cpu/embedding.h", false},
                            {"gather", "cpu/gather.h", false},
                            {"rotary", "cpu/rotary.h", false},
                            {"sinusoidal", "cpu/rotary.h", false},
                            {"sigmoid_cross", "cpu/loss.h", false},
                            {"sigmoid_cross_entropy_numbers", "cpu/mask_loss.h", false},
                            {"numbers_accuracy", "cpu/mask_loss.h", false},
                            {"mask_overlap", "cpu/mask_loss.h", false},
                            {"mask_union", "cpu/mask_loss.h", false},
                            {"attention", "cpu/attention.h", true},
                            {"softmax", "cpu/loss.h", false},
                            {"layer_norm", "cpu/layer_norm.h", false},
                            {"group_norm", "cpu/group_norm.h", false},
                            {"accuracy", "cpu/loss.h", false},
                            {"one_hot", "cpu/loss.h", false},
                            {"l2", "cpu/loss.h", false},
                            {"mse", "cpu/loss.h", false},
                            {"l1", "cpu/robust_loss.h", false},
                            {"huber", "cpu/robust_loss.h", false},
                            {"binary_accuracy", "cpu/loss.h", false},
                            {"rt_input", "cpu/image.h", false},
                            {"rt_labels_moved", "cpu/image.h", false},
                            {"rt_target_moved", "cpu/image.h", false},
                            {"rt_labels_mixed", "cpu/image.h", false},
                            {"rt_target_mixed", "cpu/image.h", false},
                            {"rt_mix_weight", "cpu/image.h", false},
                            {"chw_from_hwc", "cpu/input.h", false},
                            {"hwc_from_chw", "cpu/input.h", false},
                            {"bias", "cpu/math.h", false},
                            {"batch", "cpu/batch_norm.h", false},
                            {"cumsum", "cpu/along.h", false},
                            {"argmax", "cpu/along.h", false},
                            {"dropout", "cpu/dropout.h", false},
                            {"normal_like", "cpu/normal.h", false},
                            {"scan", "cpu/scan.h", false},
                            {"token", "cpu/token.h", false},
                            {"time", "cpu/scan.h", false}};

static const Home *home_of(const Writer *w, const char *base)
{
    static const Home loop = {"", "cpu/math.h", false}, all = {"", "cpu/kernels.h", false};
    const Home *best = &all;
    const Op *op = op_find(base);

    if (op && (op->flags & OP_ELEMENTWISE || op->move))
        return &loop;
    for (size_t i = 0; i < sizeof home / sizeof *home && !w->in->options->blas; i++)
        if (strncmp(base, home[i].prefix, strlen(home[i].prefix)) == 0 &&
            strlen(home[i].prefix) > strlen(best->prefix))
            best = &home[i];
    return best;
}

/* Defines the constants of the step that kernels use. */
static void add_constants(const Writer *w, Text *t, unsigned uses)
{
    const Step *s = w->in->train->step;

    if (uses & USES_SLICES)
        text_printf(t, "enum { SLICES = %lld };\n", (long long)s->slices);
    if (uses & USES_SHARD)
        text_printf(t, "enum { SHARD = %lld };\n", (long long)s->shard);
}

/* A kernel in its file.  Its name ends in a hash of its text, so different kernels have different
 * names in all programs. */
typedef struct Part {
    const Kernel *kernel;
    const Home *home;
    const char *name; /* "conv2d_pool_5bdae5c3" */
    uint64_t hash;
} Part;

static void add_includes(Text *t, EmitHeaders *headers, const Home *h)
{
    emit_include(t, headers, "rt.h");
    emit_include(t, headers, "cpu/vec.h");
    emit_include(t, headers, "cpu/math.h");
    if (strcmp(h->header, "cpu/math.h") != 0)
        emit_include(t, headers, h->header);
}

static void add_variants(Text *t, const Kernel *k)
{
    if (k->variants)
        text_printf(t, "#define RT_VARIANTS (%s)\n#define RT_TILES_CALLED\n", k->variants);
}

static Part part_of(const Writer *w, const Kernel *k)
{
    Arena *a = w->arena;
    const Home *h = home_of(w, k->base);
    Text key = text_new(a);
    EmitHeaders headers = {0};

    add_variants(&key, k);
    add_includes(&key, &headers, h);
    add_constants(w, &key, k->uses);
    text_add(&key, k->key);
    const uint64_t hash = text_hash(key.s, strlen(key.s), 0);
    return (Part){k, h, arena_printf(a, "%s_%08x", k->base, (unsigned)hash), hash};
}

static void add_function(Text *t, const Part *p)
{
    text_printf(t, "\nvoid %s(%s);\n\nRT_FLATTEN void %s(%s)\n{\n%s}\n", p->name, p->kernel->params,
                p->name, p->kernel->params, p->kernel->body);
}

static EmitUnit large_unit(const Writer *w, const Part *p)
{
    Text text = text_new(w->arena);
    EmitHeaders headers = {0};
    /* a name of a model never contains '-' */
    const char *name = arena_printf(w->arena, "%s-%08x", p->kernel->base, (unsigned)p->hash);

    text_printf(&text, "/* %s.c -- made by tenon: one kernel of a program. */\n", name);
    add_variants(&text, p->kernel);
    add_includes(&text, &headers, p->home);
    add_constants(w, &text, p->kernel->uses);
    add_function(&text, p);
    return (EmitUnit){.name = name, .text = text.s, .headers = headers};
}

/* Number of units for n small kernels of one header. */
static uint64_t small_units(int n)
{
    enum { TOGETHER = 8 };
    return (uint64_t)(n + TOGETHER - 1) / TOGETHER;
}

/* Writes the small kernels of one header to units of about TOGETHER kernels.  The hash of a kernel
 * chooses its unit, so a change of one kernel leaves the other units unchanged. */
static int add_small_units(const Writer *w, const Part *part, int n, const char *header,
                           EmitUnit *unit)
{
    Arena *a = w->arena;
    const char *slash = strrchr(header, '/'), *base = slash ? slash + 1 : header;
    int count = 0, made = 0;

    for (int i = 0; i < n; i++)
        count += !part[i].home->large && strcmp(part[i].home->header, header) == 0;
    for (uint64_t u = 0; u < small_units(count); u++) {
        Text functions = text_new(a), text = text_new(a);
        EmitHeaders headers = {0};
        unsigned uses = 0;
        const Home *home = NULL;
        for (int i = 0; i < n; i++)
            if (!part[i].home->large && strcmp(part[i].home->header, header) == 0 &&
                part[i].hash % small_units(count) == u) {
                home = part[i].home;
                uses |= part[i].kernel->uses;
                add_function(&functions, &part[i]);
            }
        if (!home)
            continue;
        const char *name = arena_printf(a, "%.*s-%d", (int)strcspn(base, "."), base, (int)u);
        text_printf(&text, "/* %s.c -- made by tenon: small kernels of a program. */\n", name);
        add_includes(&text, &headers, home);
        add_constants(w, &text, uses);
        text_add(&text, functions.s);
        unit[made++] = (EmitUnit){.name = name, .text = text.s, .headers = headers};
    }
    return made;
}

/* The register tiles that direct convolutions call.  They have no literal sizes, so all programs
 * share them. */
static EmitUnit tiles_unit(Arena *a)
{
    EmitUnit u = {.name = "conv-tiles"};
    Text text = text_new(a);

    text_add(&text,
             "/* conv-tiles.c -- made by tenon: what the convolutions of a program call. */\n"
             "#define RT_TILES_HERE\n");
    emit_include(&text, &u.headers, "rt.h");
    emit_include(&text, &u.headers, "cpu/vec.h");
    emit_include(&text, &u.headers, "cpu/conv_sum.h");
    u.text = text.s;
    return u;
}

static bool calls_tiles(const Writer *w)
{
    bool some = false;
    for (int i = 0; i < w->nkernel; i++)
        some |= w->kernel[i].variants != NULL;
    return some;
}

int emit_units(const EmitInput *in, Arena *a, EmitUnit **unit)
{
    static const char *const header[] = {"cpu/vec.h",          "cpu/math.h",
                                         "cpu/input.h",        "cpu/output.h",
                                         "cpu/dense_input.h",  "cpu/dense_wide.h",
                                         "cpu/conv_dw_units.h"};
    Writer w;
    int n = 0;
    Text kernels = text_new(a);

    program_open(&w, in, a);
    EmitUnit *all = arena_alloc(a, (size_t)(w.nkernel + 2) * sizeof *all), *own = &all[n++];
    Part *part = arena_alloc(a, (size_t)(w.nkernel + 1) * sizeof *part);
    text_add(&kernels, "/* ---- kernels: in files of their own ---- */\n\n");
    if (calls_tiles(&w))
        all[n++] = tiles_unit(a);
    for (int i = 0; i < w.nkernel; i++) {
        const Kernel *k = &w.kernel[i];
        part[i] = part_of(&w, k);
        text_printf(&kernels, "#define %s %s\nvoid %s(%s);\n", k->name, part[i].name, k->name,
                    k->params);
        if (part[i].home->large)
            all[n++] = large_unit(&w, &part[i]);
    }
    /* the first kernel of a header writes all kernels of the header */
    for (int i = 0; i < w.nkernel; i++) {
        bool first = !part[i].home->large;
        for (int k = 0; k < i; k++)
            first &= part[k].home->large || strcmp(part[k].home->header, part[i].home->header) != 0;
        if (first)
            n += add_small_units(&w, part, w.nkernel, part[i].home->header, &all[n]);
    }
    text_add(&kernels, "\n");
    *own = program_unit(&w, header, sizeof header / sizeof *header, kernels.s);
    own->once = true;
    *unit = all;
    return n;
}
