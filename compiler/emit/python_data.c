/* python_data.c -- the parts of a training script that need no framework: reading the data as stored, the schedule. */
#include "emit/python.h"
#include "ops/op.h"
#include <math.h>
#include <string.h>

bool python_has(const Graph *g, const char *op)
{
    for (int i = 0; i < g->nnode; i++)
        if (node_is(g->node[i], op))
            return true;
    return false;
}

bool python_data_supported(const Graph *g, const char *to, Diag *d)
{
    const Recipe *r = &g->recipe;
    if (r->data.images || r->resize) {
        diag_error(d, r->data.images ? r->data.span : r->resize_span,
                   "--to %s reads .npy, IDX and CIFAR-10 files as they are: no image files, "
                   "no resize",
                   to);
        diag_help(d, "store the images as .npy arrays of the model's size");
        return false;
    }
    if (g->input->dtype != DT_REAL) {
        diag_error(d, g->input->span, "--to %s takes numbers as input, not tokens", to);
        return false;
    }
    return true;
}

static const char reading[] =
    "\n\ndef opened(path):\n"
    "    for name, way in (path, open), (path + \".gz\", gzip.open), (path + \".xz\", lzma.open):\n"
    "        if os.path.exists(name):\n"
    "            with way(name, \"rb\") as f:\n"
    "                return f.read()\n"
    "    return None\n"
    "\n\ndef idx(path):\n"
    "    data = opened(path)\n"
    "    rank = data[3]\n"
    "    shape = np.frombuffer(data, \">i4\", rank, 4)\n"
    "    return np.frombuffer(data, np.uint8, offset=4 + 4 * rank).reshape(shape)\n"
    "\n\ndef read(place, split):\n"
    "    \"\"\"Images or vectors as stored, and their classes: IDX files (MNIST), CIFAR-10's "
    "binary batches, or {split}_x.npy and {split}_y.npy.\"\"\"\n"
    "    name = {\"train\": \"train\", \"test\": \"t10k\"}[split]\n"
    "    if opened(f\"{place}/{name}-labels-idx1-ubyte\") is not None:\n"
    "        return idx(f\"{place}/{name}-images-idx3-ubyte\"), "
    "idx(f\"{place}/{name}-labels-idx1-ubyte\")\n"
    "    if opened(f\"{place}/test_batch.bin\") is not None:\n"
    "        files = [f\"data_batch_{i}.bin\" for i in range(1, 6)] if split == \"train\" else "
    "[\"test_batch.bin\"]\n"
    "        rows = np.concatenate([np.frombuffer(opened(f\"{place}/{f}\"), np.uint8).reshape(-1, "
    "3073) for f in files])\n"
    "        return rows[:, 1:], rows[:, 0]\n"
    "    return np.load(f\"{place}/{split}_x.npy\"), np.load(f\"{place}/{split}_y.npy\")\n";

void python_read(Text *t)
{
    text_add(t, reading);
}

void python_loaded(const Graph *g, Text *t)
{
    const DataSpec *data = &g->recipe.data;
    text_add(t, "\n\ndef loaded(place, split, limit=None):\n");
    if (strcmp(data->name, "synthetic") == 0)
        text_printf(t,
                    "    if place is None:                                 # made up, as the "
                    "recipe says\n"
                    "        n = %lld if split == \"train\" else %lld\n"
                    "        x, y = np.random.default_rng(1).random((n, %s)), np.arange(n) %% "
                    "%lld\n"
                    "    else:\n        x, y = read(place, split)\n",
                    (long long)data->samples, (long long)data->test_samples,
                    python_list(t->arena, g->input->shape.dim, g->input->shape.rank, 0),
                    (long long)g->output->shape.dim[0]);
    else
        text_add(t, "    x, y = read(place, split)\n");
    text_add(t, "    x, y = x[:limit], y[:limit]\n");
}

const char *python_scale(Arena *a, const DataSpec *data)
{
    return data->scale == 1.0 / 255 ? "1 / 255" : python_number(a, data->scale);
}

static void channel_list(Text *t, const char *name, const double *v, int n, const char *array,
                         const char *turn)
{
    text_printf(t, "    %s = %s([", name, array);
    for (int i = 0; i < n; i++)
        text_printf(t, "%s%s", i ? ", " : "", python_number(t->arena, v[i]));
    text_printf(t, "])%s\n", n > 1 ? turn : "");
}

void python_channels(const Normalize *n, const char *array, const char *turn, Text *t)
{
    if (n->kind != NORM_CHANNEL)
        return;
    channel_list(t, "mean", n->mean, n->nmean, array, turn);
    channel_list(t, "std", n->std, n->nstd, array, turn);
    text_add(t, "    x = (x - mean) / std\n");
}

bool python_augments(const Augment *u)
{
    return u->shift || u->flip || u->cutout || u->brightness > 0;
}

void python_main(const Recipe *r, Text *t)
{
    const char *name = r->data.name;
    text_add(t, "\n\ndef main():\n    a = argparse.ArgumentParser()\n");
    if (strcmp(name, "synthetic") == 0)
        text_add(t, "    a.add_argument(\"--data\")\n");
    else if (strchr(name, '/'))
        text_printf(t, "    a.add_argument(\"--data\", default=\"%s\")\n", name);
    else
        text_printf(t,
                    "    a.add_argument(\"--data\", "
                    "default=os.path.join(os.environ.get(\"TENON_DATA\", \".\"), \"%s\"))\n",
                    name);
}

void python_rate(const Recipe *r, Text *t)
{
    const Schedule *s = &r->schedule;
    text_add(t, "\n\ndef rate(step, steps):\n    \"\"\"The learning rate's factor; steps: of an "
                "epoch.\"\"\"\n");
    if (s->warmup > 0)
        text_printf(t,
                    "    rise = %s * steps\n    if step + 1 < rise:\n        return (step + 1) / "
                    "rise\n",
                    python_number(t->arena, s->warmup));
    if (s->kind == SCHED_CONSTANT) {
        text_add(t, "    return 1.0\n");
        return;
    }
    text_printf(t, s->warmup > 0 ? "    t = max(step / steps, %s)\n" : "    t = step / steps\n",
                python_number(t->arena, s->warmup));
    if (s->kind == SCHED_STEP) {
        text_printf(t, "    return %s ** sum(t >= at for at in (",
                    python_number(t->arena, s->factor));
        for (int i = 0; i < s->nat; i++)
            text_printf(t, "%s, ", python_number(t->arena, s->at[i]));
        text_add(t, "))\n");
        return;
    }
    text_printf(t, "    s = min((t - %s) / (%lld - %s), 1)\n", python_number(t->arena, s->warmup),
                (long long)r->epochs, python_number(t->arena, s->warmup));
    const char *end = python_number(t->arena, s->end), *rest = python_number(t->arena, 1 - s->end);
    if (s->kind == SCHED_COSINE)
        text_printf(t, "    return %s + %s * (1 + math.cos(math.pi * s)) / 2\n", end, rest);
    else
        text_printf(t, "    return %s + %s * (1 - s) ** %s\n", end, rest,
                    python_number(t->arena, s->power));
}
