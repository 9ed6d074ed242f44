/* unit.c -- the program in files that compile on their own: a kernel each, and the step that calls them.
 *
 * A file of a kernel holds its one function and includes only the headers that it needs: 25 instead of
 * 40 ms of every compilation, and a change of other kernels leaves it alone.
 */
#include "emit/writer.h"
#include "ops/elementwise.h"
#include <string.h>

/* Where kernels stand in runtime/, by the first letters of their names; `large` ones take the C
 * compiler 0.1 s and more. */
typedef struct Home {
    const char *prefix, *header;
    bool large;
} Home;

static const Home home[] = {{"conv2d_winograd_dw", "cpu/winograd_dw.h", true},
                            {"conv2d_winograd", "cpu/winograd.h", true},
                            {"wino", "cpu/winograd.h", true},
                            {"conv2d_dw_update", "cpu/conv_dw_update.h", true},
                            {"conv2d", "cpu/conv.h", true},
                            {"dense_dw_update_input", "cpu/dense_input.h", true},
                            {"dense_dw_update", "cpu/dense_update.h", true},
                            {"dense_wide", "cpu/dense_wide.h", true},
                            {"dense_sparse", "cpu/dense_sparse.h", true},
                            {"dense", "cpu/dense.h", true},
                            {"sum_to", "cpu/conv.h", false},
                            {"amax_to", "cpu/math.h", false},
                            {"reduce_update", "cpu/update.h", false},
                            {"grad_update", "cpu/update.h", false},
                            {"max_pool", "cpu/pool.h", false},
                            {"avg_pool", "cpu/pool.h", false},
                            {"global_avg_pool", "cpu/pool.h", false},
                            {"matmul", "cpu/gemm.h", true},
                            {"embedding", "cpu/embedding.h", false},
                            {"mask", "cpu/embedding.h", false},
                            {"gather", "cpu/gather.h", false},
                            {"rotary", "cpu/rotary.h", false},
                            {"sinusoidal", "cpu/rotary.h", false},
                            {"sigmoid_cross", "cpu/loss.h", false},
                            {"attention", "cpu/attention.h", true},
                            {"softmax", "cpu/loss.h", false},
                            {"layer_norm", "cpu/layer_norm.h", false},
                            {"accuracy", "cpu/loss.h", false},
                            {"rt_input", "cpu/image.h", false},
                            {"batch", "cpu/batch_norm.h", false},
                            {"dropout", "cpu/dropout.h", false},
                            {"scan", "cpu/scan.h", false},
                            {"token", "cpu/token.h", false},
                            {"time", "cpu/scan.h", false},
                            {"", "cpu/kernels.h", false}}; /* all of them */

static const Home *home_of(const Writer *w, const char *base)
{
    static const Home loop = {"", "cpu/math.h", false};
    const Home *h = home;
    const Op *op = op_find(base);

    if (op && (op->flags & OP_ELEMENTWISE || op->move))
        return &loop;
    while (strncmp(base, h->prefix, strlen(h->prefix)) != 0 || (w->in->options->blas && *h->prefix))
        h++;
    return h;
}

/* The constants of the step that a kernel mentions. */
static void add_constants(const Writer *w, Text *t, const char *body)
{
    const Step *s = w->in->train->step;
    const struct {
        const char *name;
        int64_t value;
    } constant[] = {{"CHUNK", s->chunk}, {"SLICES", s->slices}, {"SHARD", s->shard}};

    for (size_t i = 0; i < sizeof constant / sizeof *constant; i++)
        if (strstr(body, constant[i].name))
            text_printf(t, "enum { %s = %lld };\n", constant[i].name, (long long)constant[i].value);
}

static EmitUnit kernel_unit(const Writer *w, const Kernel *k)
{
    Arena *a = w->arena;
    Text head = text_new(a), text = text_new(a);

    if (k->ways)
        text_printf(&head, "#define RT_WAYS (%s)\n#define RT_TILES_CALLED\n", k->ways);
    text_printf(&head, "#include \"rt.h\"\n#include \"cpu/vec.h\"\n#include \"cpu/math.h\"\n");
    if (strcmp(home_of(w, k->base)->header, "cpu/math.h") != 0)
        text_printf(&head, "#include \"%s\"\n", home_of(w, k->base)->header);
    add_constants(w, &head, k->body);
    const char *key = arena_printf(a, "%s%s", head.s, k->key);
    const char *name =
        arena_printf(a, "%s_%08x", k->base, (unsigned)text_hash(key, strlen(key), 0));

    text_printf(&text,
                "/* %s.c -- made by tenon: one kernel of a program. */\n%s\nvoid %s(%s);\n\nvoid "
                "%s(%s)\n{\n%s}\n",
                name, head.s, name, k->params, name, k->params, k->body);
    return (EmitUnit){.name = name, .called = k->name, .text = text.s};
}

/* The register tiles that direct convolutions call: of no sizes, so once for all programs. */
static EmitUnit tiles_unit(void)
{
    return (EmitUnit){.name = "conv-tiles", /* no name of a model */
                      .text =
                          "/* conv-tiles.c -- made by tenon: what the convolutions of a program "
                          "call. */\n#define RT_TILES_HERE\n#include \"rt.h\"\n#include "
                          "\"cpu/vec.h\"\n#include \"cpu/conv_sum.h\"\n"};
}

static bool calls_tiles(const Writer *w)
{
    bool some = false;
    for (int i = 0; i < w->nkernel; i++)
        some |= w->kernel[i].ways != NULL;
    return some;
}

int emit_units(const EmitInput *in, Arena *a, EmitUnit **unit)
{
    Writer w;
    int n = 0;
    Text kernels = text_new(a), step = text_new(a);

    program_open(&w, in, a);
    EmitUnit *all = arena_alloc(a, (size_t)(w.nkernel + 2) * sizeof *all), *own = &all[n++];
    text_add(&kernels, "/* ---- kernels: each in a file of its own ---- */\n\n");
    if (calls_tiles(&w))
        all[n++] = tiles_unit();
    for (int large = 1; large >= 0; large--)
        for (int i = 0; i < w.nkernel; i++)
            if (home_of(&w, w.kernel[i].base)->large == (large == 1))
                all[n++] = kernel_unit(&w, &w.kernel[i]);
    for (int i = 0; i < w.nkernel; i++)
        for (int k = 1; k < n; k++)
            if (all[k].called == w.kernel[i].name)
                text_printf(&kernels, "#define %s %s\nvoid %s(%s);\n", all[k].called, all[k].name,
                            all[k].called, w.kernel[i].params);
    text_add(&kernels, "\n");
    program_text(&w,
                 "#include \"cpu/vec.h\"\n#include \"cpu/math.h\"\n#include "
                 "\"cpu/input.h\"\n#include "
                 "\"cpu/output.h\"\n#include \"cpu/dense_input.h\"\n#include \"cpu/dense_wide.h\"\n#include \"cpu/conv_dw_units.h\"\n",
                 kernels.s, &step);
    *own = (EmitUnit){.name = in->train->name, .text = step.s, .once = true};
    *unit = all;
    return n;
}
