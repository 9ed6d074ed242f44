/* info.c -- the command `info`: properties of a program, in lines of "key: value". */
#include "base/error.h"
#include "base/hash.h"
#include "base/processor.h"
#include "comm/transport.h"
#include "commands/commands.h"
#include "device/link.h"
#include "options/place.h"
#include "options/program_table.h"
#include "step/net.h"
#include <stdio.h>
#include <string.h>

/* Prints a text of the user on one line: control characters become '?'. */
static void line(const char *key, const char *text)
{
    printf("%s: ", key);
    for (; *text; text++)
        putchar((unsigned char)*text < 32 || *text == 127 ? '?' : *text);
    putchar('\n');
}

/* "base.safetensors; only: conv*, dense1.*" */
static const char *start_text(const RtStart *s)
{
    const char *text = rt_format("%s", s->file);
    for (int i = 0; i < s->only.n; i++)
        text = rt_format("%s%s %s", text, i ? "," : "; only:", s->only.name[i]);
    for (int i = 0; i < s->except.n; i++)
        text = rt_format("%s%s %s", text, i ? "," : "; except:", s->except.name[i]);
    return text;
}

static void print_dimensions(int rank, const int64_t *dim)
{
    for (int i = 0; i < rank; i++)
        printf(" %lld", (long long)dim[i]);
}

/* Prints "input: 1 28 28", or "inputs: left 1 28 28, words 20 tokens" */
static void print_inputs(const RtProgram *p)
{
    if (p->ninput == 0) {
        printf("input:");
        print_dimensions(p->input_rank, p->input_dim);
        return;
    }
    printf("inputs:");
    for (int k = 0; k < p->ninput; k++) {
        const RtInput *x = &p->input[k];
        printf("%s %s", k ? "," : "", x->name);
        print_dimensions(x->rank, x->dim);
        printf("%s", x->tokens ? " tokens" : "");
    }
}

static void print_names(const char *what, const RtNames *names, const char *otherwise)
{
    printf("; %s:", what);
    for (int i = 0; i < names->n; i++)
        printf("%s %s", i ? "," : "", names->name[i]);
    if (names->n == 0)
        printf(" %s", otherwise);
}

/* Bytes of a row of a table in memory: its inputs and targets. */
static int64_t row_bytes(const RtProgram *p)
{
    int64_t bytes = p->target_bytes;
    for (int k = 0; k < p->ninput; k++)
        bytes += data_count(&p->input[k]) * (p->input[k].tokens ? 4 : p->real_bytes);
    if (p->ninput == 0)
        bytes += data_features(p) * (p->vocab ? 4 : p->real_bytes);
    if (p->ntarget == 0)
        bytes += p->target_kind == RT_TARGET_CLASS ? 4 : data_targets(p) * p->real_bytes;
    return bytes;
}

/* Prints "table: 44 bytes a row in memory; inputs: all other columns; targets: progression" */
static void print_table(const RtProgram *p)
{
    const RtTable *t = &p->recipe.table;
    if (t->given) {
        printf("table: %lld bytes a row in memory", (long long)row_bytes(p));
        print_names("inputs", &t->input,
                    p->ninput ? "the columns with their names" : "all other columns");
        if (t->exclude.n > 0)
            print_names("excluded", &t->exclude, "");
        print_names("targets", &t->target, "none");
        if (t->category.n > 0)
            print_names("categories", &t->category, "");
        printf("; %s; missing: %s; unknown: %s\n", t->standardize ? "standardized" : "as they are",
               t->mean ? "mean" : "error", t->other ? "other" : "error");
    }
    if (p->recipe.test > 0)
        printf("test split: %g of the samples\n", p->recipe.test);
    if (p->recipe.validation > 0)
        printf("validation split: %g of the samples\n", p->recipe.validation);
}

/* Prints "target: price 1", with the dimensions, or "target: image, the input". */
static void print_target(const RtProgram *p)
{
    printf("\ntarget: %s%s", p->target_name,
           p->target_kind == RT_TARGET_INPUT ? ", the input" : "");
    print_dimensions(p->target_rank, p->target_dim);
    printf("\n");
}

/* Prints "outputs: digit 10, brightness 1", and "targets: digit 10 classes, brightness 1, image the
 * input" */
static void print_several(const RtProgram *p)
{
    for (int k = 0; k < p->noutput; k++) {
        printf("%s %s", k ? "," : "\noutputs:", p->output[k].name);
        print_dimensions(p->output[k].rank, p->output[k].dim);
    }
    for (int k = 0; k < p->ntarget; k++) {
        const RtTarget *t = &p->targets[k];
        printf("%s %s", k ? "," : "\ntargets:", t->name);
        print_dimensions(t->rank, t->dim);
        if (t->kind == RT_TARGET_CLASS)
            printf(" %lld classes", (long long)t->classes);
        else if (t->kind == RT_TARGET_INPUT)
            printf(" the input");
    }
    if (p->ntarget > 0)
        putchar('\n');
}

/* Indexed by rt_tiles_form(). */
static const char *const products_by[] = {
    [RT_TILES_READY] = "tiles of AMX",
    [RT_TILES_REFUSED] = "AVX-512",
    [RT_TILES_CHAINS] = "AVX512_BF16, with bits of its own",
};

int info_run(const RtProgram *p, const Options *o)
{
    const RtRecipe *q = &p->recipe;
    printf("model: %s\n", p->model);
    line("source", p->source);
    printf("source hash: %s\n", p->source_hash);
    printf("compiler: %s\n", p->compiler);
    line("flags", p->flags && *p->flags ? p->flags : "none");
    printf("target: %s\n", p->target);
    printf("cpu: %s\n", p->cpu);
    printf("comm: %s\n", p->link ? p->link->name : p->transport ? p->transport->name : "none");
    const bool half = p->products && strcmp(p->products, "tf32") != 0;
    printf("dtype: %s%s%s\n", p->real_bytes == 8 ? "f64" : "f32",
           half          ? ", products and the values between them in "
           : p->products ? ", factors of products rounded to "
                         : "",
           p->products ? p->products : "");
    if (!program_lacks(p, NEED_TILES))
        printf("products: by %s\n", products_by[rt_tiles_form()]);
    if (processor_half_ratio(p) > 0)
        printf("time of a step divided by that in f32: %.1f predicted\n", processor_half_ratio(p));
    if (p->steps_most > 1)
        printf("steps: up to %d in one launch, by %s\n", p->steps_most, p->steps_how);
    if (p->scaling)
        printf("loss scale: 65536 at first (--loss-scale), then adapted to the gradients\n");
    print_inputs(p);
    print_several(p);
    if (p->ntarget == 0 && p->target_kind == RT_TARGET_CLASS)
        printf("\nclasses: %lld\n", (long long)p->classes);
    else if (p->trained)
        printf("\nweights: those of %s\n", p->trained);
    else if (p->ntarget == 0)
        print_target(p);
    line("data", q->data ? q->data : "none");
    print_table(p);
    printf("batch: %d\n", p->batch);
    printf("shards: %d\n", p->shards);
    printf("slices: %d\n", p->shards * p->slices);
    printf("chunk: %d\n", p->chunk);
    if (p->ntoken > 0 && p->window > 0)
        printf("generate: a token at a time, %lld at most\n", (long long)p->window);
    else if (p->ntoken > 0)
        printf("generate: a token at a time\n");
    if (!p->trained)
        printf("epochs: %lld\n", (long long)q->epochs);
    if (q->weights.file)
        line("start", start_text(&q->weights));
    if (q->average == RT_AVERAGE_EMA)
        printf("average: ema, decay %.10g\n", q->average_decay);
    if (q->average == RT_AVERAGE_SWA)
        printf("average: swa from epoch %lld\n", (long long)q->average_from);
    for (int m = p->nmetric - p->nmeasure; m < p->nmetric; m++)
        printf("%s%s%s", m == p->nmetric - p->nmeasure ? "metrics of the recipe: " : ", ",
               p->metric[m], m + 1 == p->nmetric ? "\n" : "");
    if (q->keep.result)
        printf("keep: the best %s\n", q->keep.result);
    if (q->stop.result)
        printf("stop: after %lld epoch%s without a better %s\n", (long long)q->stop.epochs,
               q->stop.epochs == 1 ? "" : "s", q->stop.result);
    if (!p->trained)
        printf("seed: %lld\n", (long long)q->seed);
    printf("parameters: %lld\n", (long long)p->parameters);
    printf("flops per sample: %.0f\n", p->flops_per_sample);
    if (p->products && !p->device)
        printf("flops in %s: %.0f, %.1f %%\n", p->products, p->flops_half,
               100 * p->flops_half / p->flops_per_sample);
    printf("cores: %d of %d, processors: %d, caches: %d, sockets: %d\n", o->cores.cores,
           o->cores.machine, o->cores.processors, o->cores.caches, o->cores.sockets);
    printf("threads: %s\n", place_text(o));
    const int regions = net_regions(p, o->threads, p->shards);
    printf("planned bytes: %lld (%d threads%s: %lld fixed, %lld a shard, %lld a thread%s%s)\n",
           (long long)(net_bytes_alone(p, o->threads) + p->average_bytes + p->kept_bytes),
           o->threads,
           p->device || regions == o->threads
               ? ""
               : rt_format(" share %d thread region%s", regions, regions == 1 ? "" : "s"),
           (long long)p->fixed_bytes, (long long)p->shard_bytes, (long long)p->thread_bytes,
           p->average_bytes > 0 ? rt_format(", %lld for averages", (long long)p->average_bytes)
                                : "",
           p->kept_bytes > 0 ? rt_format(", %lld for the best weights", (long long)p->kept_bytes)
                             : "");
    printf("algorithms: %016llx\n", (unsigned long long)hash_algorithms(p));
    for (int i = 0; i < p->ncall; i++)
        if (p->call[i].algorithm && *p->call[i].algorithm)
            printf("  %s (%s): %s\n", p->call[i].what, p->call[i].kernel, p->call[i].algorithm);
    printf("phases:\n");
    const RtPhase *phase = p->trained ? p->test : p->train;
    for (int i = 0; i < (p->trained ? p->ntest : p->ntrain); i++)
        printf("  %s\n", phase[i].what);
    printf("weights:\n");
    for (int i = 0; i < p->nparam; i++) {
        printf("  %s (", p->param[i].name);
        for (int k = 0; k < p->param[i].rank; k++)
            printf("%s%lld", k ? ", " : "", (long long)p->param[i].dim[k]);
        printf(")\n");
    }
    return 0;
}
