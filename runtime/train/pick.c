/* pick.c -- see pick.h. */
#define _GNU_SOURCE
#include "train/pick.h"
#include "base/error.h"
#include "base/glob.h"
#include "base/near.h"
#include "data/columns.h"
#include "data/vocab.h"
#include "files/safetensors.h"
#include "train/init.h"
#include "train/weights.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- patterns */

/* The patterns of an option, which commas separate. */
static RtNames split(const char *text)
{
    RtNames list = {0};
    if (!text)
        return list;
    int n = 1;
    for (const char *c = text; *c; c++)
        n += *c == ',';
    const char **name = rt_alloc(sizeof *name * (size_t)n);
    for (const char *c = text; list.n < n; list.n++) {
        const int length = (int)strcspn(c, ",");
        name[list.n] = rt_format("%.*s", length, c);
        c += length + 1;
    }
    list.name = name;
    return list;
}

static bool fits_any(const RtNames *list, const char *name)
{
    for (int i = 0; i < list->n; i++)
        if (glob_fits(list->name[i], name))
            return true;
    return false;
}

/* Whether the pattern fits what a file of weights holds beside parameters. */
static bool fits_words(const RtProgram *p, const char *pattern)
{
    return (p->recipe.text.unit && glob_fits(pattern, ST_VOCABULARY)) ||
           (p->recipe.table.given && glob_fits(pattern, ST_COLUMNS));
}

/* The nearest of: names of parameters, "LAYER.*" and "*.KIND".  NULL: none is near. */
static const char *nearest_pattern(const RtProgram *p, const char *pattern)
{
    const char *nearest = NULL;
    int best = near_most(strlen(pattern));
    for (int i = 0; i < p->nparam; i++) {
        const char *name = p->param[i].name, *first = strchr(name, '.'), *last = strrchr(name, '.');
        const char *word[3] = {name};
        if (first) {
            word[1] = rt_format("%.*s.*", (int)(first - name), name);
            word[2] = rt_format("*%s", last);
        }
        for (int k = 0; k < 3 && word[k]; k++) {
            const int d = near_distance(pattern, word[k]);
            if (d < best)
                best = d, nearest = word[k];
        }
    }
    return nearest;
}

/* which: "only" or "except", an argument of the recipe's start or an option. */
static void __attribute__((noreturn))
refuse_pattern(const RtProgram *p, bool recipe, const char *which, const char *pattern)
{
    const char *nearest = nearest_pattern(p, pattern), *dashes = recipe ? "" : "--",
               *place = recipe ? " in the recipe's start" : "";
    if (!*pattern)
        rt_die("--%s has a pattern that is empty: commas separate patterns, such as \"%s\"", which,
               p->nparam > 1 ? rt_format("%s,%s", p->param[0].name, p->param[1].name)
                             : "conv*,*.bias");
    if (nearest)
        rt_die("%s%s \"%s\"%s: no parameter of %s is called so, did you mean \"%s\"?", dashes,
               which, pattern, place, p->model, nearest);
    rt_die("%s%s \"%s\"%s: no parameter of %s is called so; `%s info` lists their names", dashes,
           which, pattern, place, p->model, program_invocation_short_name);
}

static void check_patterns(const RtProgram *p, const RtNames *list, bool recipe, const char *which,
                           bool words)
{
    for (int i = 0; i < list->n; i++) {
        bool fits = words && fits_words(p, list->name[i]);
        for (int k = 0; k < p->nparam; k++)
            fits |= glob_fits(list->name[i], p->param[k].name);
        if (!fits)
            refuse_pattern(p, recipe, which, list->name[i]);
    }
}

Pick pick_start(const RtProgram *p, const Options *o)
{
    Pick k = {.from = p->recipe.weights, .recipe = !o->weights && p->recipe.weights.file};
    if (o->weights)
        k.from = (RtStart){o->weights, split(o->only), split(o->except)};
    check_patterns(p, &k.from.only, k.recipe, "only", false);
    check_patterns(p, &k.from.except, k.recipe, "except", true);
    k.part = k.from.only.n > 0 || k.from.except.n > 0;
    bool *take = rt_alloc(sizeof *take * (size_t)(p->nparam + 1));
    for (int i = 0; k.from.file && i < p->nparam; i++) {
        const char *name = p->param[i].name;
        take[i] =
            (k.from.only.n == 0 || fits_any(&k.from.only, name)) && !fits_any(&k.from.except, name);
        *(take[i] ? &k.loaded : &k.initial) += 1;
    }
    if (k.from.file && p->nparam > 0 && k.loaded == 0)
        rt_die("the patterns of %s leave no parameter of %s to load from %s",
               k.recipe ? "the recipe's start" : "--only and --except", p->model, k.from.file);
    k.take = take;
    return k;
}

static int layer_length(const char *name)
{
    const char *last = strrchr(name, '.');
    return last ? (int)(last - name) : 0;
}

/* Whether b is of the layer of a. */
static bool same_layer(const char *a, const char *b)
{
    const int n = layer_length(a);
    return n > 0 && n == layer_length(b) && strncmp(a, b, (size_t)n) == 0;
}

/* Whether all parameters of the layer of parameter `head` are loaded: its outputs then mean what
 * they meant in the file. */
static bool layer_loaded(const RtProgram *p, const Pick *k, int head)
{
    bool all = head >= 0;
    for (int i = 0; i < p->nparam; i++)
        all = all && (k->take[i] || !same_layer(p->param[head].name, p->param[i].name));
    return all;
}

void pick_words(const RtProgram *p, Pick *k)
{
    const RtStart *s = &k->from;
    if (!s->file)
        return;
    if (k->recipe && (p->recipe.text.unit || p->recipe.table.given) && access(s->file, R_OK) != 0)
        rt_die("%s cannot be read: %s; the recipe's start reads the data with its %s", s->file,
               strerror(errno), p->recipe.table.given ? "columns" : "vocabulary");
    k->vocabulary = !fits_any(&s->except, ST_VOCABULARY) && vocab_of_weights(p, s->file);
    k->columns = !fits_any(&s->except, ST_COLUMNS) && columns_of_weights(p, s->file);
    for (int i = 0; k->columns && i < RT_TARGETS; i++)
        if (!layer_loaded(p, k, p->head[i]))
            columns_forget_target(i);
}

/* ---- names for people */

enum { ITEMS = 12 }; /* names and layers that are printed, at most */

/* The names i with in[i] == want; in NULL: all.  The names of a whole layer become "LAYER.*". */
static const char *list_names(const char *const *name, const bool *in, bool want, int n)
{
    char *text = rt_format("%s", "");
    int items = 0, left = 0;
    for (int i = 0; i < n; i++)
        left += !in || in[i] == want;
    for (int i = 0; i < n && items < ITEMS; i++) {
        if (in && in[i] != want)
            continue;
        int of_layer = 0, others = 0;
        bool before = false;
        for (int k = 0; k < n; k++) {
            const bool same = same_layer(name[i], name[k]), wanted = !in || in[k] == want;
            of_layer += same && wanted;
            others += same && !wanted;
            before |= same && wanted && k < i;
        }
        const bool whole = of_layer > 1 && others == 0;
        if (whole && before)
            continue;
        char *longer = rt_format("%s%s%.*s%s", text, items++ ? ", " : "",
                                 whole ? layer_length(name[i]) : 80, name[i], whole ? ".*" : "");
        free(text);
        text = longer;
        left -= whole ? of_layer : 1;
    }
    for (char *c = text; *c; c++) /* names of a file can have any characters */
        *c = (unsigned char)*c < 32 || *c == 127 ? '?' : *c;
    return left > 0 ? rt_format("%s and %d more", text, left) : text;
}

/* ---- loading */

/* The way out for parameters that the file lacks, or has in another shape: the patterns of
 * `except`, and one for each layer of these parameters.  "": the file has none of the
 * parameters. */
static const char *way_out(const Pick *k, const RtProgram *p, const bool *fits)
{
    enum { LAYERS = 4 };
    const char *pattern = "", *mark = k->recipe ? "\", \"" : ",";
    int layers = 0, bad = 0;
    for (; layers < k->from.except.n; layers++)
        pattern = rt_format("%s%s%s", pattern, layers ? mark : "", k->from.except.name[layers]);
    const int given = layers;
    for (int i = 0; i < p->nparam; i++) {
        bool before = fits[i];
        bad += !fits[i];
        for (int j = 0; j < i && !before; j++)
            before = !fits[j] && same_layer(p->param[i].name, p->param[j].name);
        if (before)
            continue;
        const char *name = p->param[i].name;
        const int n = layer_length(name);
        pattern = rt_format("%s%s%.*s%s", pattern, layers++ ? mark : "", n ? n : 200, name,
                            n ? ".*" : "");
    }
    if (bad == k->loaded)
        return "";
    if (bad == 0)
        return k->recipe
                   ? rt_format("\n  only = \"*\" in the recipe's start leaves out tensors that "
                               "%s does not have",
                               p->model)
                   : rt_format("\n  --only \"*\" leaves out tensors that %s does not have",
                               p->model);
    if (layers - given > LAYERS)
        pattern = k->recipe ? "PATTERN\", \"PATTERN" : "PATTERN,PATTERN";
    return rt_format(k->recipe ? "\n  except = [\"%s\"] in the recipe's start keeps the initial "
                                 "values of these parameters"
                               : "\n  --except \"%s\" keeps the initial values of these parameters",
                     pattern);
}

void pick_load(Pick *k, Net *n, const Data *train, Pool *pool, uint64_t seed)
{
    const RtProgram *p = n->p;
    if (!k->from.file || k->initial > 0) {
        init_params(p, n->fixed, seed, pool);
        data_mean(train, p, pool, n->fixed);
    }
    if (!k->from.file)
        return;
    bool *fits = rt_alloc(sizeof *fits * (size_t)(p->nparam + 1));
    const char **name = rt_alloc(sizeof *name * (size_t)(p->nparam + 1));
    StFile *f = weights_open(k->from.file);
    if (!weights_fit(f, p, k->take, k->part, fits))
        weights_refuse(f, p, k->take, k->part, way_out(k, p, fits));
    const char **unused;
    k->unused = weights_unused(f, p, &unused);
    weights_take(n, f, k->take);
    for (int i = 0; i < p->nparam; i++)
        name[i] = p->param[i].name;
    k->loaded_names = list_names(name, k->take, true, p->nparam);
    k->initial_names = list_names(name, k->take, false, p->nparam);
    k->unused_names = list_names(unused, NULL, true, (int)k->unused);
    k->done = true;
    st_close(f);
    free(unused);
    free(name);
    free(fits);
}

void pick_say(const Pick *k, const RtProgram *p)
{
    if (!k->done || (!k->part && !k->recipe))
        return;
    const long long initial = k->initial, unused = k->unused;
    rt_print("%lld of %d parameters are those of %s\n", (long long)k->loaded, p->nparam,
             k->from.file);
    rt_print("  loaded:  %s\n", k->loaded_names);
    if (initial)
        rt_print("  initial: %s\n", k->initial_names);
    if (unused)
        rt_print("  unused:  %s\n", k->unused_names);
    if (k->vocabulary)
        rt_print("  the texts are read with the vocabulary of the file\n");
    if (k->columns)
        rt_print("  the %s of the table are read with those of the file\n",
                 initial ? "inputs" : "columns");
}
