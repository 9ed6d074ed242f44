/* keras_train.c -- what stands around the network in a Keras script: data, recipe, fit and its log.
 *
 * Keras's own optimizers scale by the learning rate before the momentum and put eps elsewhere; the script's optimizer is a class with
 * our formulas (runtime/cpu/update.h).  The draws (order, dropout, augmentation, initial weights without --weights) are Keras's, and its
 * last batch of an epoch is a smaller one where ours is filled up from the front.  Windows of a text with a label a position begin at
 * the same places in every epoch, and what fills none is not tested.
 */
#include "scripts/keras.h"
#include "ops/op.h"
#include <string.h>

static const char *number(const Text *t, double v)
{
    return python_number(t->arena, v);
}

/* ---- the head */

static void helpers(const Graph *g, Text *t)
{
    bool max = false, average = false, bias = false;
    for (int i = 0; i < g->nnode; i++) {
        max |= node_is(g->node[i], "max_pool");
        average |= node_is(g->node[i], "avg_pool");
        bias |= node_is(g->node[i], "bias") && !g->node[i]->in[0]->op->layer;
    }
    if (max || average)
        text_add(t, "\n\ndef windows(x, rows, columns):\n"
                    "    \"\"\"Those that do not overlap, each in two dimensions of its own: JAX "
                    "is slow with any other form.\"\"\"\n"
                    "    _, h, w, c = x.shape\n"
                    "    x = x[:, :h // rows * rows, :w // columns * columns]\n"
                    "    return ops.reshape(x, (-1, h // rows, rows, w // columns, columns, c))\n");
    for (int i = 0; i < 2; i++)
        if (i == 0 ? max : average)
            text_printf(t,
                        "\n\ndef %s_pool(x, rows, columns):\n"
                        "    if keras.backend.backend() == \"jax\":\n"
                        "        return ops.%s(windows(x, rows, columns), (2, 4))\n"
                        "    return ops.%s_pool(x, (rows, columns), (rows, columns))\n",
                        i == 0 ? "max" : "average", i == 0 ? "max" : "mean",
                        i == 0 ? "max" : "average");
    if (python_padded(g))
        text_add(t, "\n\nclass PaddedEmbedding(layers.Embedding):\n"
                    "    \"\"\"Zeros for the token `padding`.\"\"\"\n\n"
                    "    def __init__(self, vocab, width, padding):\n"
                    "        super().__init__(vocab, width)\n"
                    "        self.padding = padding\n\n"
                    "    def call(self, tokens):\n"
                    "        h = super().call(tokens)\n"
                    "        return h * ops.cast(tokens != self.padding, h.dtype)[..., None]\n");
    if (python_calls(g, "gru"))
        text_add(t,
                 "\n\nclass GRUCell(layers.Layer):\n"
                 "    \"\"\"Gates r, z, n, the reset behind the product, as cuDNN has it; of the "
                 "state's product only the candidate has a bias.\"\"\"\n\n"
                 "    def __init__(self, width):\n"
                 "        super().__init__()\n"
                 "        self.state_size = self.output_size = width\n\n"
                 "    def build(self, shape):\n"
                 "        h = self.state_size\n"
                 "        self.kernel = self.add_weight(shape=(shape[-1], 3 * h), "
                 "name=\"kernel\")\n"
                 "        self.recurrent_kernel = self.add_weight(shape=(h, 3 * h), "
                 "initializer=\"orthogonal\", name=\"recurrent_kernel\")\n"
                 "        self.bias = self.add_weight(shape=(3 * h,), initializer=\"zeros\", "
                 "name=\"bias\")\n"
                 "        self.candidate_bias = self.add_weight(shape=(h,), "
                 "initializer=\"zeros\", name=\"candidate_bias\")\n\n"
                 "    def call(self, x, states):\n"
                 "        h, = states\n"
                 "        x = ops.split(ops.matmul(x, self.kernel) + self.bias, 3, axis=-1)\n"
                 "        u = ops.split(ops.matmul(h, self.recurrent_kernel), 3, axis=-1)\n"
                 "        r, z = ops.sigmoid(x[0] + u[0]), ops.sigmoid(x[1] + u[1])\n"
                 "        n = ops.tanh(x[2] + r * (u[2] + self.candidate_bias))\n"
                 "        h = n + z * (h - n)\n"
                 "        return h, [h]\n");
    if (python_reads_table(g))
        text_add(t, "\n\nclass Table(layers.Layer):\n"
                    "    def __init__(self, rows, width):\n"
                    "        super().__init__()\n"
                    "        self.weight = self.add_weight(shape=(rows, width), name=\"table\")\n");
    if (python_has(g, "attention"))
        text_add(t,
                 "\n\ndef attention(x, heads, causal, scale):\n"
                 "    \"\"\"Queries, keys and values side by side: (N, T, 3 C) -> (N, T, "
                 "C).\"\"\"\n"
                 "    _, t, c = x.shape\n"
                 "    parts = ops.reshape(x, (-1, t, 3, heads, c // 3 // heads))\n"
                 "    q, k, v = (ops.transpose(parts[:, :, i], (0, 2, 1, 3)) for i in range(3))\n"
                 "    score = ops.matmul(q, ops.transpose(k, (0, 1, 3, 2))) * scale\n"
                 "    if causal:\n"
                 "        score = ops.where(ops.tri(t, dtype=\"bool\"), score, -1e30)\n"
                 "    y = ops.matmul(ops.softmax(score), v)\n"
                 "    return ops.reshape(ops.transpose(y, (0, 2, 1, 3)), (-1, t, c // 3))\n");
    if (bias)
        text_add(t,
                 "\n\nclass Bias(layers.Layer):\n"
                 "    def build(self, shape):\n"
                 "        self.bias = self.add_weight(shape=shape[-1:], initializer=\"zeros\")\n\n"
                 "    def call(self, x):\n"
                 "        return x + self.bias\n");
}

static bool head(const Graph *g, const char *source, Text *t, Diag *d)
{
    const bool f64 = strcmp(g->recipe.dtype, "f64") == 0;
    if (!python_data_supported(g, "keras", d))
        return false;
    text_printf(t,
                "\"\"\"%s.py -- %s in Keras 3: the same network, data, loss, optimizer and "
                "schedule; made by tenon from %s.\n\n"
                "    KERAS_BACKEND=tensorflow|jax|torch python %s.py --data DIR [--weights "
                "initial.safetensors] [--epochs N] [--log FILE.jsonl]\n\n"
                "--weights takes what Tenon's program writes with `--epochs 0 --save "
                "initial.safetensors` (or any checkpoint).  Records in the log\n"
                "are those of Tenon's programs.\n\"\"\"\n"
                "import argparse\n%simport gzip\nimport json\nimport lzma\nimport math\nimport "
                "os\n%simport resource\nimport time\n\n%s"
                "import keras\nimport numpy as np\nfrom keras import layers, ops\n",
                g->name, g->name, quote_python_doc(t->arena, source), g->name, python_table(g) ? "import collections\n" : "",
                python_table(g) ? "import re\n" : "",
                f64 ? "os.environ[\"JAX_ENABLE_X64\"] = \"1\"\n" : "");
    if (f64)
        text_add(t, "\nkeras.config.set_floatx(\"float64\")\n"
                    "# Keras converts f64 to f32 when types are mixed, except with TensorFlow.\n"
                    "keras.src.backend.common.dtypes.BIT64_TO_BIT32_DTYPE[\"float64\"] = "
                    "\"float64\"\n");
    helpers(g, t);
    return true;
}

/* ---- weights and data */

static const char weights[] =
    "\n\nWORDS = {%s%s\"kernel\": \"weight\", \"gamma\": "
    "\"weight\", \"scale\": \"weight\", \"bias\": "
    "\"bias\", \"beta\": \"bias\",\n"
    "         \"moving_mean\": \"running_mean\", \"moving_variance\": \"running_var\"}\n"
    "\n\ndef named(layer, prefix=\"\"):\n"
    "    \"\"\"Each variable with Tenon's name for it.\"\"\"\n"
    "%s"
    "    for word, ours in WORDS.items():\n"
    "        if isinstance(getattr(layer, word, None), keras.Variable):\n"
    "            yield prefix + ours, getattr(layer, word)\n"
    "    for name, part in {**vars(layer), **getattr(layer, \"_modules\", {})}.items():   # "
    "PyTorch keeps layers there\n"
    "        if isinstance(part, layers.Layer) and not name.startswith(\"_\"):\n"
    "            yield from named(part, f\"{prefix}{name%s}.\")\n"
    "\n\ndef given(model, path):\n"
    "    \"\"\"Weights and running averages from a safetensors file.\"\"\"\n"
    "    with open(path, \"rb\") as f:\n"
    "        data = f.read()\n"
    "    base = 8 + int.from_bytes(data[:8], \"little\")\n"
    "    entries = json.loads(data[8:base])\n"
    "    for name, variable in named(model):\n"
    "        if name not in entries:\n"
    "            raise SystemExit(f\"{path} is not of this network: it holds no {name}\")\n"
    "        first, last = entries[name][\"data_offsets\"]\n"
    "        kind = {\"F32\": \"<f4\", \"F64\": \"<f8\"}[entries[name][\"dtype\"]]\n"
    "        values = np.frombuffer(data[base + first:base + last], "
    "kind).reshape(entries[name][\"shape\"])\n"
    "        as_ours = values.ndim == 1%s\n"
    "        variable.assign(values if as_ours else values.T if values.ndim == 2 else "
    "values.transpose(2, 3, 1, 0))\n";

static void loading(const Graph *g, Text *t)
{
    const Recipe *r = &g->recipe;
    python_loaded(g, false, t);
    if (g->input->dtype != DT_REAL) {
        text_add(t, "    return x.astype(np.int32), y.astype(np.int32)\n");
        return;
    }
    text_printf(t, "    x = x.reshape(-1, %s)%s * (%s if x.dtype == np.uint8 else 1)\n",
                python_list(t->arena, g->input->shape.dim, g->input->shape.rank, 0),
                g->input->shape.rank == 3 ? ".transpose(0, 2, 3, 1)" : "",
                python_scale(t->arena, &r->data));
    python_channels(&r->normalize, "np.array", "", t);
    text_add(t, "    return x.astype(keras.config.floatx()), y.astype(np.int32)\n");
}

static void augmenting(const Augment *u, Text *t)
{
    text_add(t, "\n\ndef augmented(x, draw=np.random.default_rng()):\n    n, h, w, c = x.shape\n");
    if (u->brightness > 0)
        text_printf(t, "    x = x * (1 + %s * (2 * draw.random((n, 1, 1, 1), x.dtype) - 1))\n",
                    number(t, u->brightness));
    text_printf(t,
                "    rows = np.arange(h) + draw.integers(-%lld, %lld, (n, 1))\n"
                "    columns = np.arange(w) + draw.integers(-%lld, %lld, (n, 1))\n",
                (long long)u->shift, (long long)u->shift + 1, (long long)u->shift,
                (long long)u->shift + 1);
    if (u->flip)
        text_add(t,
                 "    columns = np.where(draw.random((n, 1)) < 0.5, columns, columns[:, ::-1])\n");
    text_add(t, "    y = x[np.arange(n)[:, None, None], rows.clip(0, h - 1)[:, :, None], "
                "columns.clip(0, w - 1)[:, None, :]]\n");
    if (u->shift && !u->edge)
        text_add(t, "    y[((rows < 0) | (rows >= h))[:, :, None] | ((columns < 0) | (columns >= "
                    "w))[:, None, :]] = 0\n");
    if (u->cutout)
        text_printf(t,
                    "    top, left = draw.integers(0, h, (n, 1)) - %lld, draw.integers(0, w, (n, "
                    "1)) - %lld\n"
                    "    cut = ((np.arange(h) >= top) & (np.arange(h) < top + %lld))[:, :, None]\n"
                    "    y[cut & ((np.arange(w) >= left) & (np.arange(w) < left + %lld))[:, None, "
                    ":]] = 0\n",
                    (long long)u->cutout / 2, (long long)u->cutout / 2, (long long)u->cutout,
                    (long long)u->cutout);
    text_add(t, "    return y\n"
                "\n\nclass Batches(keras.utils.PyDataset):\n"
                "    def __init__(self, x, y, shuffle):\n"
                "        super().__init__(workers=2)\n"
                "        self.x, self.y, self.shuffle = x, y, shuffle\n"
                "        self.on_epoch_end()\n\n"
                "    def __len__(self):\n"
                "        return -(-len(self.x) // BATCH)\n\n"
                "    def __getitem__(self, i):\n"
                "        index = self.order[i * BATCH:(i + 1) * BATCH]\n"
                "        return augmented(self.x[index]), self.y[index]\n\n"
                "    def on_epoch_end(self):\n"
                "        self.order = np.random.permutation(len(self.x)) if self.shuffle else "
                "np.arange(len(self.x))\n");
}

/* ---- recipe */

static void initial(const Graph *g, Text *t)
{
    static const char *const fans[] = {"fan_in", "fan_out", "fan_avg"};
    const Init *i = &g->recipe.init;
    const char *draw = i->gaussian ? "untruncated_normal" : "uniform";
    double scale = 0;
    const char *fan = fans[i->fan];
    text_add(t, "\n\ndef initialise(model):\n    draw = keras.initializers.");
    switch (i->kind) { /* VarianceScaling: variance scale / fan, uniform or normal */
    case INIT_XAVIER:
        scale = i->gaussian ? i->a : i->a / 3;
        break;
    case INIT_GLOROT:
        scale = 1, fan = "fan_avg";
        break;
    case INIT_HE:
        scale = 2;
        break;
    case INIT_LECUN:
        scale = 1, fan = "fan_in";
        break;
    case INIT_ORTHOGONAL:
        text_printf(t, "Orthogonal(%s", number(t, i->a));
        break;
    case INIT_UNIFORM:
        text_printf(t, "RandomUniform(%s, %s", number(t, i->a), number(t, i->b));
        break;
    case INIT_NORMAL:
        text_printf(t, "RandomNormal(%s, %s", number(t, i->a), number(t, i->b));
        break;
    default:
        text_printf(t, "Constant(%s", number(t, i->a));
    }
    if (scale > 0)
        text_printf(t, "VarianceScaling(%s, \"%s\", \"%s\"", number(t, scale), fan, draw);
    text_printf(t,
                "%s)\n"
                "    for name, variable in named(model):\n"
                "        if variable.name == \"kernel\":\n"
                "            variable.assign(draw(variable.shape))\n%s",
                scale > 0 || i->kind == INIT_ORTHOGONAL || i->kind == INIT_UNIFORM ||
                        i->kind == INIT_NORMAL
                    ? ", seed=keras.random.SeedGenerator()"
                    : "",
                python_has(g, "embedding") || python_reads_table(g)
                    ? "        elif variable.name in (\"embeddings\", \"table\"):\n"
                      "            variable.assign(ops.transpose(draw(variable.shape[::-1])))\n"
                    : "");
}

/* FACTORS: of parameters whose learning rate or decay is not the usual; frozen ones are no longer trained. */
static void factors(const Graph *g, Text *t)
{
    int n = 0, frozen = 0;
    text_add(t, "\n\nFACTORS = {");
    for (int i = 0; i < g->nparam; i++) {
        const Param *p = g->param[i];
        const bool usual = p->lr == 1 && p->decay == (p->file.rank > 1 ? 1 : 0);
        frozen += p->frozen && !p->average;
        if (!usual && !p->average && !p->frozen)
            text_printf(t, "%s\n    \"%s\": (%s, %s)", n++ ? "," : "", p->name, number(t, p->lr),
                        number(t, p->decay));
    }
    text_printf(t,
                "%s}                                          # of learning rate and decay; "
                "default: 1, and decay 1 for matrices, 0 for vectors\n",
                n ? "\n" : "");
    text_add(t, "FROZEN = {");
    for (int i = 0, k = 0; i < g->nparam && frozen; i++)
        if (g->param[i]->frozen && !g->param[i]->average)
            text_printf(t, "%s\"%s\"", k++ ? ", " : "", g->param[i]->name);
    text_add(t, "}\n");
}

/* States that the optimizer keeps, and its step: g has the decay in it but for adamw. */
static void formula(const Optimizer *o, Text *states, Text *step)
{
    Arena *a = step->arena;
    const char *decayed = "        g = g + self.decay[i] * w\n";
    switch (o->kind) {
    case OPT_SGD:
        text_add(step, decayed);
        if (o->momentum > 0) {
            text_add(states, "v");
            text_printf(step, "        self.assign(v, %s * v + g)\n",
                        python_number(a, o->momentum));
        }
        text_printf(step, "        self.assign_sub(w, lr * %s)\n",
                    o->momentum <= 0 ? "g"
                    : o->nesterov ? arena_printf(a, "(g + %s * v)", python_number(a, o->momentum))
                                  : "v");
        return;
    case OPT_RMSPROP:
        text_add(states, o->momentum > 0 ? "v m" : "v");
        text_printf(step, "%s        self.assign(v, %s * v + (1 - %s) * g * g)\n", decayed,
                    python_number(a, o->rho), python_number(a, o->rho));
        if (o->momentum > 0)
            text_printf(step,
                        "        self.assign(m, %s * m + g / (ops.sqrt(v) + %s))\n        "
                        "self.assign_sub(w, lr * m)\n",
                        python_number(a, o->momentum), python_number(a, o->eps));
        else
            text_printf(step, "        self.assign_sub(w, lr * g / (ops.sqrt(v) + %s))\n",
                        python_number(a, o->eps));
        return;
    default:
        text_add(states, "m v");
        text_add(step, o->kind == OPT_ADAM
                           ? decayed
                           : "        self.assign_sub(w, lr * self.decay[i] * w)\n");
        text_printf(step,
                    "        t = ops.cast(self.iterations + 1, w.dtype)\n"
                    "        self.assign(m, %s * m + (1 - %s) * g)\n"
                    "        self.assign(v, %s * v + (1 - %s) * g * g)\n"
                    "        self.assign_sub(w, lr * (m / (1 - %s ** t)) / (ops.sqrt(v / (1 - %s "
                    "** t)) + %s))\n",
                    python_number(a, o->beta1), python_number(a, o->beta1),
                    python_number(a, o->beta2), python_number(a, o->beta2),
                    python_number(a, o->beta1), python_number(a, o->beta2),
                    python_number(a, o->eps));
    }
}

static void optimizer(const Recipe *r, Text *t)
{
    static const char *const names[] =
        {[OPT_SGD] = "SGD", [OPT_RMSPROP] = "RMSprop", [OPT_ADAM] = "Adam", [OPT_ADAMW] = "AdamW"};
    Text states = text_new(t->arena), step = text_new(t->arena);
    formula(&r->optimizer, &states, &step);
    text_printf(t,
                "\n\nclass Optimizer(keras.optimizers.Optimizer):\n"
                "    \"\"\"%s as PyTorch and Tenon have it.\"\"\"\n\n"
                "    def __init__(self, names):\n"
                "        super().__init__(LR",
                names[r->optimizer.kind]);
    if (r->clip_norm > 0)
        text_printf(t, ", global_clipnorm=%s", number(t, r->clip_norm));
    if (r->clip_value > 0)
        text_printf(t, ", clipvalue=%s", number(t, r->clip_value));
    text_printf(t,
                ")\n"
                "        self.names = names                                               # by a "
                "variable's id\n\n"
                "    def build(self, variables):\n"
                "        super().build(variables)\n"
                "        factors = [FACTORS.get(self.names[id(w)], (1, 1 if len(w.shape) > 1 else "
                "0)) for w in variables]\n"
                "        self.rates = [lr for lr, _ in factors]\n"
                "        self.decay = [%s * decay for _, decay in factors]\n",
                number(t, r->optimizer.weight_decay));
    if (states.len)
        text_printf(t,
                    "        self.states = [[self.add_variable_from_reference(w, s) for s in "
                    "\"%s\".split()] for w in variables]\n",
                    states.s);
    text_add(t, "\n    def update_step(self, g, w, lr):\n"
                "        i = self._get_variable_index(w)\n"
                "        lr = ops.cast(lr, w.dtype) * self.rates[i]\n");
    if (states.len == 1)
        text_printf(t, "        %s, = self.states[i]\n", states.s);
    else if (states.len)
        text_printf(t, "        %c, %c = self.states[i]\n", states.s[0], states.s[2]);
    text_add(t, step.s);
}

/* ---- the loop */

static const char logging[] =
    "\n\nclass Log(keras.callbacks.Callback):\n"
    "    \"\"\"Learning rates before each step; Tenon's records after steps and epochs.\"\"\"\n\n"
    "    def __init__(self, file, every, samples):\n"
    "        super().__init__()\n"
    "        self.file, self.every, self.samples, self.steps = file, every, samples, -(-samples // "
    "BATCH)\n\n"
    "    def write(self, **record):\n"
    "        print(json.dumps(record), file=self.file, flush=True)\n\n"
    "    def on_epoch_begin(self, epoch, logs=None):\n"
    "        self.epoch, self.sum, self.began = epoch, 0.0, time.perf_counter()\n\n"
    "    def on_train_batch_begin(self, i, logs=None):\n"
    "        lr = LR * rate(self.epoch * self.steps + i, self.steps)\n"
    "        if lr != getattr(self, \"lr\", LR):\n"
    "            self.model.optimizer.learning_rate = lr\n"
    "        self.lr = lr\n\n"
    "    def on_train_batch_end(self, i, logs=None):\n"
    "        step = self.epoch * self.steps + i + 1\n"
    "        if self.every:\n"
    "            done = min((i + 1) * BATCH, self.samples)\n"
    "            total, before = float(logs[\"loss\"]) * done, self.sum                 # Keras "
    "has the mean since the epoch began\n"
    "            self.sum = total\n"
    "            if step % self.every == 0:\n"
    "                self.write(event=\"step\", step=step, samples=done - i * BATCH, "
    "train_loss=(total - before) / (done - i * BATCH))\n\n"
    "    def on_test_begin(self, logs=None):\n"
    "        self.seconds = time.perf_counter() - self.began\n\n"
    "    def on_epoch_end(self, epoch, logs=None):\n"
    "        loss, accuracy, test_loss, test_accuracy = (float(logs[k]) for k in (\"loss\", "
    "\"accuracy\", \"val_loss\", \"val_accuracy\"))\n"
    "        self.write(event=\"epoch\", epoch=epoch + 1, samples=self.samples, "
    "seconds=self.seconds, samples_per_s=self.samples / self.seconds,\n"
    "                   train_loss=loss, train_accuracy=accuracy, test_loss=test_loss, "
    "test_accuracy=test_accuracy,\n"
    "                   peak_bytes=1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    "        print(f\"epoch {epoch + 1}: {self.seconds:.2f} s, {self.samples / self.seconds:.0f} "
    "samples/s, loss {loss:.4f}, \"\n"
    "              f\"test accuracy {test_accuracy:.4f}\")\n";

static const char running[] =
    "    a.add_argument(\"--weights\")\n"
    "    a.add_argument(\"--epochs\", type=int, default=%lld)\n"
    "    a.add_argument(\"--seed\", type=int, default=%lld)\n"
    "    a.add_argument(\"--shuffle\", choices=(\"on\", \"off\"), default=\"on\")\n"
    "    a.add_argument(\"--limit-samples\", type=int)\n"
    "    a.add_argument(\"--log\", default=os.devnull)\n"
    "    a.add_argument(\"--log-steps\", type=int, default=0)\n"
    "    a.add_argument(\"--compile\", action=\"store_true\", help=\"XLA behind TensorFlow, "
    "inductor behind PyTorch; JAX always compiles\")\n"
    "    o = a.parse_args()\n"
    "    keras.utils.set_random_seed(o.seed)\n"
    "    x, y = loaded(o.data, \"train\", o.limit_samples)\n"
    "    test_x, test_y = loaded(o.data, \"test\")\n"
    "%s"
    "    model = %s()\n"
    "    model(x[:1])                                                             # makes the "
    "variables\n"
    "    names = {id(variable): name for name, variable in named(model)}\n"
    "    for name, variable in named(model):\n"
    "        variable.trainable = variable.trainable and name not in FROZEN\n"
    "    initialise(model)\n"
    "    if o.weights:\n"
    "        given(model, o.weights)\n"
    "    model.compile(Optimizer(names), losses, "
    "metrics=[keras.metrics.%s],\n"
    "                  jit_compile=o.compile or keras.backend.backend() == \"jax\")\n"
    "    with open(o.log, \"a\") as log:\n"
    "        print(json.dumps({\"event\": \"start\", \"target\": f\"Keras {keras.__version__} on "
    "{keras.backend.backend()}\", "
    "\"batch\": BATCH, \"seed\": o.seed, \"samples\": len(x),\n"
    "                          \"parameters\": model.count_params()}), file=log, flush=True)\n"
    "        model.fit(%s, batch_size=%s, epochs=o.epochs, verbose=0,%s\n"
    "                  validation_data=(test_x, test_y), validation_batch_size=BATCH, "
    "callbacks=[Log(log, o.log_steps, len(x))])\n"
    "\n\nif __name__ == \"__main__\":\n"
    "    main()\n";

static void train(const Graph *g, Text *t)
{
    const Recipe *r = &g->recipe;
    const bool drawn = python_augments(&r->augment);
    if (!r->data.unit)
        python_read(t);
    else
        python_opened(t);
    const bool tables = python_has(g, "embedding") || python_reads_table(g);
    text_printf(t, weights, tables ? "\"embeddings\": \"weight\", \"weight\": \"weight\", " : "",
                !g->nloop                ? ""
                : python_calls(g, "gru") ? "\"recurrent_kernel\": \"recurrent\", "
                                           "\"candidate_bias\": \"candidate_bias\", "
                                         : "\"recurrent_kernel\": \"recurrent\", ",
                g->nloop ? "    layer = layer.cell if isinstance(layer, layers.RNN) else layer\n"
                         : "",
                g->nloop ? ".replace('__', '.')" : "",
                tables ? " or variable.name in (\"embeddings\", \"table\")" : "");
    loading(g, t);
    if (drawn)
        augmenting(&r->augment, t);
    initial(g, t);
    factors(g, t);
    text_printf(t, "BATCH, LR = %lld, %s\n", (long long)r->batch, number(t, r->optimizer.lr));
    optimizer(r, t);
    python_rate(r, t);
    text_add(t, logging);
    python_main(r, t);
    text_printf(t, running, (long long)r->epochs, (long long)r->seed,
                r->normalize.kind == NORM_PIXEL
                    ? "    mean = x.mean(0)\n    x, test_x = x - mean, test_x - mean\n"
                    : "",
                python_class(t->arena, g->name),
                g->output->shape.rank == 1 && g->output->shape.dim[0] == 1
                    ? "BinaryAccuracy(\"accuracy\", threshold=0)"
                    : "SparseCategoricalAccuracy(\"accuracy\")",
                drawn ? "Batches(x, y, o.shuffle == \"on\")" : "x, y", drawn ? "None" : "BATCH",
                drawn ? "" : " shuffle=o.shuffle == \"on\",");
}

bool script_keras(const Graph *g, const char *source, Text *out, Diag *d)
{
    if (!head(g, source, out, d) || !python_network(g, &keras, out, d))
        return false;
    train(g, out);
    return true;
}
