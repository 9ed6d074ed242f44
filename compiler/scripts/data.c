/* data.c -- the parts of a training script that need no framework: reading the data as stored, the schedule. */
#include "scripts/python.h"
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

bool python_calls(const Graph *g, const char *layer)
{
    for (int i = 0; i < g->nloop; i++)
        if (g->loop[i]->call && node_is(g->loop[i]->call, layer))
            return true;
    return false;
}

bool python_padded(const Graph *g)
{
    for (int i = 0; i < g->nnode; i++)
        if (node_is(g->node[i], "embedding") && node_attr(g->node[i], "padding"))
            return true;
    return false;
}

bool python_reads_table(const Graph *g)
{
    for (int i = 0; i < g->nnode; i++)
        if (node_is(g->node[i], "add") && g->node[i]->in[1]->param)
            return true;
    return false;
}

bool python_table(const Graph *g)
{
    return g->recipe.data.unit && g->recipe.data.table;
}

bool python_labels_each(const Graph *g)
{
    return g->label && g->label->shape.rank > 0;
}

int64_t python_step(const Graph *g)
{
    const int64_t given = g->recipe.data.step;
    return given ? given : python_labels_each(g) ? g->input->shape.dim[0] : 1;
}

static bool text_supported(const DataSpec *data, const char *to, Diag *d)
{
    if (data->unit != TEXT_BPE && (data->unit != TEXT_WORD) != data->table)
        return true;
    diag_error(d, data->span,
               "--to %s reads texts of characters or bytes, and labelled lines of words", to);
    diag_help(d, "the model can be trained with Tenon itself: tenon build");
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
    if (strcmp(r->data.name, "synthetic") == 0 && r->data.samples <= 0) {
        diag_error(d, r->data.span, "--to %s needs the number of synthetic samples", to);
        diag_help(d, "write it in the recipe: data = synthetic(samples = 1000)");
        return false;
    }
    return !r->data.unit || text_supported(&r->data, to, d);
}

static const char opening[] =
    "\n\ndef opened(path):\n"
    "    for name, way in (path, open), (path + \".gz\", gzip.open), (path + \".xz\", lzma.open):\n"
    "        if os.path.exists(name):\n"
    "            with way(name, \"rb\") as f:\n"
    "                return f.read()\n"
    "    return None\n";

static const char reading[] =
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
    "    if not os.path.exists(f\"{place}/{split}_x.npy\"):\n"
    "        raise SystemExit(f\"no data set in {place}: --data DIR names its directory\")\n"
    "    return np.load(f\"{place}/{split}_x.npy\"), np.load(f\"{place}/{split}_y.npy\")\n";

void python_opened(Text *t)
{
    text_add(t, opening);
}

void python_read(Text *t)
{
    python_opened(t);
    text_add(t, reading);
}

/* A text as tokens, and its windows as ours (runtime/data/text.c). */
static void windows(const Graph *g, bool fill, Text *t)
{
    const long long length = g->input->shape.dim[0], step = python_step(g);
    const bool each = python_labels_each(g);
    text_printf(t,
                "\n\ndef tokens(place):\n"
                "    \"\"\"%s of PLACE/NAME.txt or PLACE/input.txt.\"\"\"\n"
                "    data = opened(f\"{place}/{os.path.basename(os.path.abspath(place))}.txt\") or "
                "opened(f\"{place}/input.txt\")\n"
                "    if data is None:\n"
                "        raise SystemExit(f\"no text in {place}: --data DIR names its "
                "directory\")\n%s",
                g->recipe.data.unit == TEXT_BYTE ? "Bytes" : "Characters, numbered in order,",
                g->recipe.data.unit == TEXT_BYTE
                    ? "    return np.frombuffer(data, np.uint8).astype(np.int64)\n"
                    : "    points = np.frombuffer(data.decode().encode(\"utf-32-le\"), "
                      "np.uint32)\n    return np.unique(points, return_inverse=True)[1]\n");
    text_printf(t,
                "\n\ndef windows(text, step):\n"
                "    return np.lib.stride_tricks.sliding_window_view(text, %lld)[::step]\n"
                "\n\ndef loaded(place, split, limit=None%s):\n"
                "    \"\"\"Windows of %lld tokens, %lld apart, each with the token%s behind%s; the "
                "last tenth of the text is the test split.\"\"\"\n"
                "    text = tokens(place)\n"
                "    cut = len(text) - len(text) // 10\n",
                length, each ? ", shift=0" : "", length, step, each ? "s" : "",
                each ? " its own" : " it");
    if (!each)
        text_printf(t,
                    "    text = text[:cut] if split == \"train\" else text[cut:]\n"
                    "    x, y = windows(text[:-1], %lld), text[%lld::%lld]\n"
                    "    x, y = x[:limit if split == \"train\" else None], y[:limit if split == "
                    "\"train\" else None]\n",
                    step, length, step);
    else {
        text_printf(t,
                    "    if split == \"train\":\n"
                    "        count = (cut - %lld - %lld) // %lld + 1               # enough for any "
                    "shift\n"
                    "        x, y = (windows(text[at + shift:cut], %lld)[:count][:limit] for at in "
                    "(0, 1))\n"
                    "    else:\n"
                    "        text = text[cut - 1:]\n",
                    step, length, step, step);
        if (fill)
            text_printf(t,
                        "        text = np.append(text, np.full((1 - len(text)) %% %lld, -1))  # "
                        "every "
                        "token once; -1: not scored\n",
                        length);
        text_printf(t, "        x, y = windows(text[:-1], %lld)%s, windows(text[1:], %lld)\n",
                    length, fill ? ".clip(0)" : "", length);
    }
    text_add(t, "    x, y = np.array(x), np.array(y)\n");
}

/* Labelled lines of words, numbered and cut as ours (runtime/data/tsv.c, words.c). */
static void lines(const Graph *g, Text *t)
{
    const long long length = g->input->shape.dim[0], vocab = g->recipe.data.vocab;
    text_printf(
        t,
        "\n\ndef lines(place, split):\n"
        "    name = os.path.basename(os.path.abspath(place))\n"
        "    data = opened(f\"{place}/{split}.tsv\") or opened(f\"{place}/{name}_{split}.tsv\")\n"
        "    rows = [line.rstrip(b\"\\r\").split(b\"\\t\") for line in data.split(b\"\\n\") if "
        "line.rstrip(b\"\\r\")]\n"
        "    return [(int(row[0]), words(row[-1])) for row in rows]\n"
        "\n\ndef words(text):\n"
        "    \"\"\"Split at blanks and at ASCII signs other than the apostrophe.\"\"\"\n"
        "    return [w[:255].lower() for w in re.findall(rb\"[^\\t-\\r -&(-/:-@\\[-`{-~]+\", "
        "text)]\n"
        "\n\ndef loaded(place, split, limit=None):\n"
        "    \"\"\"The last %lld tokens of each text: 0 is padding in front, 1 begins a text, 2 "
        "any "
        "unknown word, then words by their frequency.\"\"\"\n"
        "    seen = collections.Counter(w for _, text in lines(place, \"train\") for w in text)\n"
        "    known = sorted(seen, key=lambda w: (-seen[w], w))[:%lld]\n"
        "    number = {w: 3 + i for i, w in enumerate(known)}\n"
        "    rows = lines(place, split)[:limit]\n"
        "    x, y = np.zeros((len(rows), %lld), np.int64), np.array([label for label, _ in rows])\n"
        "    for row, (_, text) in zip(x, rows):\n"
        "        sample = ([1] + [number.get(w, 2) for w in text])[-%lld:]\n"
        "        row[-len(sample):] = sample\n",
        length, vocab - 3, length, length);
}

void python_loaded(const Graph *g, bool fill, Text *t)
{
    const DataSpec *data = &g->recipe.data;
    if (data->unit) {
        if (data->table)
            lines(g, t);
        else
            windows(g, fill, t);
        return;
    }
    const bool drawn = strcmp(data->name, "synthetic") == 0;
    if (drawn)
        python_drawn(g, t);
    text_add(t, "\n\ndef loaded(place, split, limit=None):\n");
    if (drawn)
        python_made_up(g, t);
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

void python_right(const Graph *g, const char *likeliest, Text *t)
{
    const bool binary = g->output->shape.rank == 1 && g->output->shape.dim[0] == 1;
    text_printf(t, "\n\ndef right(output, label):\n    return %s == label\n",
                binary ? "(output[:, 0] > 0)" : likeliest);
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

/* argparse formats a help text: %% is a percent sign. */
static const char *data_help(Arena *a, const char *name)
{
    Text t = text_new(a);
    text_add(&t, "directory of the data set; default: ");
    for (; *name; name++)
        text_addn(&t, *name == '%' ? "%%" : name, *name == '%' ? 2 : 1);
    text_add(&t, " in $TENON_DATA, in models/data, or here");
    return t.s;
}

void python_main(const Recipe *r, Text *t)
{
    const char *name = r->data.name;
    text_add(t, "\n\ndef main():\n    a = argparse.ArgumentParser()\n");
    if (strcmp(name, "synthetic") == 0)
        text_add(t, "    a.add_argument(\"--data\")\n");
    else if (strchr(name, '/'))
        text_printf(t, "    a.add_argument(\"--data\", default=%s)\n", quote_python(t->arena, name));
    else
        text_printf(t,
                    "    places = [os.path.join(at, %s) for at in "
                    "(os.environ.get(\"TENON_DATA\", \".\"), \"models/data\", \".\")]\n"
                    "    a.add_argument(\"--data\", default=next(filter(os.path.isdir, places), "
                    "places[0]),\n"
                    "                   help=%s)\n",
                    quote_python(t->arena, name), quote_python(t->arena, data_help(t->arena, name)));
}

void python_rate(const Recipe *r, Text *t)
{
    const Schedule *s = &r->schedule;
    text_add(t, "\n\ndef rate(step, steps):\n    \"\"\"Factor of the learning rate; steps: in an "
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
