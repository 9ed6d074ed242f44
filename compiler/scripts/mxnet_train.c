/* mxnet_train.c -- what stands around the network in a script for MXNet's Gluon: data, recipe, the loop and its log.
 *
 * The formulas of optimizers, schedules and losses are ours (runtime/cpu/update.h, runtime/schedule.c).  MXNet's own optimizers are used
 * where they can be made to say the same: its momentum holds the learning rate, so at a new rate the old momentum is scaled (Goyal et
 * al. 2017, remark 2), and its Adam adds epsilon to the uncorrected root.  Others are classes of a few lines.  The draws (order, dropout,
 * augmentation, initial weights without --weights) are MXNet's and NumPy's.
 */
#include "scripts/mxnet.h"
#include "ops/op.h"
#include <string.h>

static const char *number(const Text *t, double v)
{
    return python_number(t->arena, v);
}

static bool smooths(const Graph *g)
{
    for (int i = 0; i < g->nnode; i++) {
        const Attr *s = node_is(g->node[i], "softmax_cross_entropy")
                            ? node_attr(g->node[i], "smoothing")
                            : NULL;
        if (s && s->f > 0)
            return true;
    }
    return false;
}

static bool causal(const Graph *g)
{
    for (int i = 0; i < g->nnode; i++)
        if (node_is(g->node[i], "softmax") && python_causal(g->node[i]))
            return true;
    return false;
}

/* ---- the head */

static void blocks(const Graph *g, Text *t)
{
    bool bias = false;
    for (int i = 0; i < g->nnode; i++)
        bias |= node_is(g->node[i], "bias") && !g->node[i]->in[0]->op->layer;
    if (python_padded(g))
        text_add(t, "\n\nclass PaddedEmbedding(nn.Embedding):\n"
                    "    \"\"\"Zeros for the token `padding`.\"\"\"\n\n"
                    "    def __init__(self, vocab, width, padding, dtype):\n"
                    "        super().__init__(vocab, width, dtype)\n"
                    "        self.padding = padding\n\n"
                    "    def hybrid_forward(self, F, x, weight):\n"
                    "        there = F.cast(x != self.padding, DTYPE)\n"
                    "        return F.broadcast_mul(super().hybrid_forward(F, x, weight), "
                    "F.expand_dims(there, 2))\n");
    if (bias)
        text_add(t, "\n\nclass Bias(nn.HybridBlock):\n"
                    "    def __init__(self, count):\n"
                    "        super().__init__()\n"
                    "        self.bias = self.params.get(\"bias\", shape=(count,), "
                    "init=\"zeros\")\n\n"
                    "    def hybrid_forward(self, F, x, bias):\n"
                    "        return F.broadcast_add(x, F.reshape(bias, (1, -1, 1, 1)))\n");
}

static void helpers(const Graph *g, Text *t)
{
    blocks(g, t);
    if (python_has(g, "attention"))
        text_add(t,
                 "\n\ndef attention(F, x, heads, causal, scale):\n"
                 "    \"\"\"Queries, keys and values side by side: (N, T, 3 C) -> (N, T, "
                 "C).\"\"\"\n"
                 "    q, k, v = F.split(x, num_outputs=3, axis=2)\n"
                 "    q, k, v = (F.transpose(F.reshape(p, (0, 0, heads, -1)), (0, 2, 1, 3)) for p "
                 "in (q, k, v))\n"
                 "    score = F.linalg.gemm2(q, k, transpose_b=True) * scale\n"
                 "    if causal:\n"
                 "        at = F.contrib.arange_like(score, axis=3)\n"
                 "        behind = F.broadcast_greater(F.reshape(at, (1, -1)), F.reshape(at, (-1, "
                 "1)))\n"
                 "        score = F.broadcast_sub(score, F.expand_dims(F.expand_dims(behind, 0), "
                 "0) * 1e30)\n"
                 "    y = F.linalg.gemm2(F.softmax(score), v)\n"
                 "    return F.reshape(F.transpose(y, (0, 2, 1, 3)), (0, 0, -1))\n");
    if (causal(g))
        text_add(t, "\n\ndef causal(F, x, rank, size):\n"
                    "    \"\"\"Row i of scores (N, .., size, size) keeps columns 0 to i.\"\"\"\n"
                    "    at = F.arange(size, dtype=DTYPE)\n"
                    "    behind = F.broadcast_greater(F.reshape(at, (1, -1)), F.reshape(at, (-1, "
                    "1)))\n"
                    "    return F.broadcast_sub(x, F.reshape(behind, (1,) * (rank - 1) + (size, "
                    "size)) * 1e30)\n");
    if (python_has(g, "sigmoid_cross_entropy"))
        text_add(t, "\n\ndef binary_cross_entropy(F, output, label):\n"
                    "    return F.relu(output) - output * label + F.Activation(-F.abs(output), "
                    "act_type=\"softrelu\")\n");
    if (smooths(g))
        text_add(t, "\n\ndef smoothed(F, output, label, part):\n"
                    "    \"\"\"Cross entropy; `part` of each label belongs to all classes.\"\"\"\n"
                    "    p = F.log_softmax(output)\n"
                    "    return -F.pick(p, label) * (1 - part) - F.mean(p, axis=1) * part\n");
}

static bool head(const Graph *g, const char *source, Text *t, Diag *d)
{
    if (!python_data_supported(g, "mxnet", d))
        return false;
    text_printf(t,
                "\"\"\"%s.py -- %s in MXNet 1.9 (Gluon): the same network, data, loss, optimizer "
                "and schedule; made by tenon from %s.\n\n"
                "    python %s.py --data DIR [--weights initial.safetensors] [--epochs N] [--log "
                "FILE.jsonl]\n\n"
                "--weights takes what Tenon's program writes with `--epochs 0 --save "
                "initial.safetensors` (or any checkpoint): parameters have the same\n"
                "names.  Records in the log are those of Tenon's programs.\n\"\"\"\n"
                "import argparse\n%simport gzip\nimport json\nimport lzma\nimport math\nimport "
                "os\n%simport resource\nimport time\n\n"
                "os.environ.setdefault(\"OMP_NUM_THREADS\", str(len(os.sched_getaffinity(0))))    "
                "   # MXNet's default is half of them\n"
                "os.environ.setdefault(\"MXNET_EXEC_INPLACE_GRAD_SUM_CAP\", \"1000000\")    # "
                "MXNet's default gives wrong gradients of values that more than 8 operations read\n"
                "import mxnet as mx\nimport numpy as np\nfrom mxnet import autograd, gluon, nd\n"
                "from mxnet.gluon import nn%s\n\nDTYPE = \"%s\"\n",
                g->name, g->name, quote_python_doc(t->arena, source), g->name, python_table(g) ? "import collections\n" : "",
                python_table(g) ? "import re\n" : "", g->nloop ? ", rnn" : "",
                strcmp(g->recipe.dtype, "f64") == 0 ? "float64" : "float32");
    helpers(g, t);
    return true;
}

/* ---- weights and data */

static void weights(const Graph *g, Text *t)
{
    const bool gru = python_calls(g, "gru");
    text_add(t, "\n\nNAMES = {\"gamma\": \"weight\", \"beta\": \"bias\"");
    if (g->nloop)
        text_add(t, ", \"i2h_weight\": \"weight\", \"i2h_bias\": \"bias\", \"h2h_weight\": "
                    "\"recurrent\", \"h2h_bias\": \"candidate_bias\"");
    text_printf(t,
                "}\n"
                "\n\ndef named(model):\n"
                "    \"\"\"Each parameter with Tenon's name for it.\"\"\"\n"
                "    for name, p in model._collect_params_with_prefix().items():\n"
                "        *path, last = name%s.split(\".\")\n"
                "        yield \".\".join(path + [NAMES.get(last, last)])%s, p\n"
                "\n\ndef given(model, path):\n"
                "    \"\"\"Weights and running averages from a safetensors file.\"\"\"\n"
                "    with open(path, \"rb\") as f:\n"
                "        data = f.read()\n"
                "    base = 8 + int.from_bytes(data[:8], \"little\")\n"
                "    entries = json.loads(data[8:base])\n"
                "    for name, p in named(model):\n"
                "        if name in entries:\n"
                "            first, last = entries[name][\"data_offsets\"]\n"
                "            kind = {\"F32\": \"<f4\", \"F64\": "
                "\"<f8\"}[entries[name][\"dtype\"]]\n"
                "            values = np.frombuffer(data[base + first:base + last], "
                "kind).reshape(entries[name][\"shape\"])\n"
                "            %s\n"
                "        elif p.grad_req != \"null\":\n"
                "            raise SystemExit(f\"{path} is not of this network: it holds no "
                "{name}\")\n",
                g->nloop ? ".replace(\"._unfused.0\", \"\")" : "",
                g->nloop ? ".replace(\"__\", \".\")" : "",
                gru ? "p.data()[-len(values):] = values.astype(DTYPE)             # only the "
                      "candidate's part of a gru's second bias"
                    : "p.set_data(nd.array(values, dtype=DTYPE))");
}

static void loading(const Graph *g, Text *t)
{
    const Recipe *r = &g->recipe;
    python_loaded(g, true, t);
    if (g->input->dtype != DT_REAL) {
        text_add(t, "    return nd.array(x, dtype=\"int32\"), nd.array(y, dtype=DTYPE)\n");
        return;
    }
    text_printf(t, "    x = x.reshape(-1, %s) * (%s if x.dtype == np.uint8 else 1)\n",
                python_list(t->arena, g->input->shape.dim, g->input->shape.rank, 0),
                python_scale(t->arena, &r->data));
    python_channels(&r->normalize, "np.array", ".reshape(-1, 1, 1)", t);
    text_add(t, "    return nd.array(x, dtype=DTYPE), nd.array(y, dtype=DTYPE)\n");
}

static void augmenting(const Augment *u, Text *t)
{
    const long long shift = u->shift, cutout = u->cutout;
    text_add(t, "\n\ndef augmented(batch):\n    x, draw = batch.asnumpy(), np.random\n    n, c, h, "
                "w = x.shape\n");
    if (u->brightness > 0)
        text_printf(t, "    x = x * (1 + %s * (2 * draw.rand(n, 1, 1, 1) - 1))\n",
                    number(t, u->brightness));
    text_printf(t,
                "    rows = np.arange(h) + draw.randint(-%lld, %lld, (n, 1))\n"
                "    columns = np.arange(w) + draw.randint(-%lld, %lld, (n, 1))\n",
                shift, shift + 1, shift, shift + 1);
    if (u->flip)
        text_add(t, "    columns = np.where(draw.rand(n, 1) < 0.5, columns, columns[:, ::-1])\n");
    text_add(t, "    there = rows.clip(0, h - 1)[:, None, :, None], columns.clip(0, w - 1)[:, "
                "None, None, :]\n"
                "    y = x[np.arange(n)[:, None, None, None], np.arange(c)[:, None, None], "
                "there[0], there[1]]\n");
    if (u->shift && !u->edge)
        text_add(t, "    outside = ((rows < 0) | (rows >= h))[:, None, :, None] | ((columns < 0) | "
                    "(columns >= w))[:, None, None, :]\n"
                    "    y[np.broadcast_to(outside, y.shape)] = 0\n");
    if (u->cutout)
        text_printf(t,
                    "    top, left = draw.randint(0, h, (n, 1)) - %lld, draw.randint(0, w, (n, 1)) "
                    "- %lld\n"
                    "    tall = (np.arange(h) >= top) & (np.arange(h) < top + %lld)\n"
                    "    wide = (np.arange(w) >= left) & (np.arange(w) < left + %lld)\n"
                    "    y[np.broadcast_to(tall[:, None, :, None] & wide[:, None, None, :], "
                    "y.shape)] = 0\n",
                    cutout / 2, cutout / 2, cutout, cutout);
    text_add(t, "    return nd.array(y, dtype=DTYPE)\n");
}

/* ---- recipe */

/* What model.initialize takes; Xavier's bound is sqrt(magnitude / factor), as its deviation is. */
static const char *initializer(const Init *i, Text *t)
{
    static const char *const fans[] = {"in", "out", "avg"};
    Arena *a = t->arena;
    const char *kind = i->gaussian ? "gaussian" : "uniform", *fan = fans[i->fan];
    double magnitude = 0;
    switch (i->kind) {
    case INIT_XAVIER:
        magnitude = i->a;
        break;
    case INIT_GLOROT:
        magnitude = i->gaussian ? 1 : 3, fan = "avg";
        break;
    case INIT_HE:
        magnitude = i->gaussian ? 2 : 6;
        break;
    case INIT_LECUN:
        magnitude = i->gaussian ? 1 : 3, fan = "in";
        break;
    case INIT_ORTHOGONAL:
        return arena_printf(a, "mx.init.Orthogonal(%s)", number(t, i->a));
    case INIT_UNIFORM:
        return arena_printf(a, "Draw(mx.random.uniform, %s, %s)", number(t, i->a), number(t, i->b));
    case INIT_NORMAL:
        return arena_printf(a, "Draw(mx.random.normal, %s, %s)", number(t, i->a), number(t, i->b));
    default:
        return arena_printf(a, "mx.init.Constant(%s)", number(t, i->a));
    }
    return arena_printf(a, "mx.init.Xavier(\"%s\", \"%s\", %s)", kind, fan, number(t, magnitude));
}

static void draws(const Init *i, Text *t)
{
    if (i->kind == INIT_UNIFORM || i->kind == INIT_NORMAL)
        text_add(t, "\n\nclass Draw(mx.init.Initializer):\n"
                    "    def __init__(self, draw, a, b):\n"
                    "        super().__init__()\n"
                    "        self.draw, self.a, self.b = draw, a, b\n\n"
                    "    def _init_weight(self, name, array):\n"
                    "        self.draw(self.a, self.b, out=array)\n");
}

/* " and name not in (...)": second biases that are trained, of gru's candidates; "" without a gru. */
static const char *candidates(const Graph *g, Arena *a)
{
    Text t = text_new(a);
    for (int i = 0; i < g->nparam; i++)
        if (text_glob("*.candidate_bias", g->param[i]->name))
            text_printf(&t, "\"%s\", ", g->param[i]->name);
    return t.len ? arena_printf(a, " and name not in (%s)", t.s) : "";
}

/* Learning rates and decay that are not the usual, and what is not trained. */
static void factors(const Graph *g, Text *t)
{
    int n = 0;
    text_add(t, "\n\ndef set_factors(model):\n    \"\"\"Factors of learning rate and decay; None: not "
                "trained.\"\"\"\n    factors = {");
    for (int i = 0; i < g->nparam; i++) {
        const Param *p = g->param[i];
        const bool usual = p->lr == 1 && p->decay == (p->file.rank > 1 ? 1 : 0) && !p->frozen;
        if (!usual && !p->average)
            text_printf(t, "%s\n        \"%s\": (%s, %s)", n++ ? "," : "", p->name,
                        p->frozen ? "None" : number(t, p->lr), number(t, p->decay));
    }
    text_printf(t,
                "%s}\n"
                "    for name, p in named(model):\n"
                "        lr, decay = factors.get(name, (1, 1 if len(p.shape) > 1 else 0))\n",
                n ? "\n    " : "");
    if (g->nloop)
        text_printf(t,
                    "        if name.endswith(\"candidate_bias\")%s:\n"
                    "            lr = None                                                    # "
                    "MXNet's second bias stays zero\n",
                    candidates(g, t->arena));
    text_add(t, "        if lr is None:\n"
                "            p.grad_req = \"null\"\n"
                "        else:\n"
                "            p.lr_mult, p.wd_mult = lr, decay\n");
}

static bool own_optimizer(const Optimizer *o)
{
    return o->kind == OPT_RMSPROP || (o->kind == OPT_SGD && o->nesterov);
}

/* Behind a changed learning rate the momentum that holds the old one. */
static bool rescales(const Recipe *r)
{
    const bool changes = r->schedule.kind != SCHED_CONSTANT || r->schedule.warmup > 0;
    return r->optimizer.kind == OPT_SGD && r->optimizer.momentum > 0 && !r->optimizer.nesterov &&
           changes;
}

/* A class with our formula; g has the decay in it. */
static void formula(const Optimizer *o, Text *t)
{
    const bool rms = o->kind == OPT_RMSPROP, two = rms && o->momentum > 0;
    text_printf(t,
                "\n\nclass Optimizer(mx.optimizer.Optimizer):\n"
                "    \"\"\"%s\"\"\"\n\n"
                "    def create_state(self, index, weight):\n"
                "        return nd.zeros_like(weight)%s\n\n"
                "    def update(self, index, w, g, %s):\n"
                "        self._update_count(index)\n"
                "        lr%s = self._get_lr(index)%s\n"
                "        g = g * self.rescale_grad + self._get_wd(index) * w\n",
                rms ? "RMSprop with epsilon beside the root; MXNet's has it inside."
                    : "Nesterov's momentum without the learning rate in it.",
                two ? ", nd.zeros_like(weight)" : "", two ? "state" : "v", two ? ", (v, m)" : "",
                two ? ", state" : "");
    if (!rms)
        text_printf(t, "        v[:] = %s * v + g\n        w -= lr * (g + %s * v)\n",
                    number(t, o->momentum), number(t, o->momentum));
    else
        text_printf(t, "        v[:] = %s * v + (1 - %s) * g.square()\n", number(t, o->rho),
                    number(t, o->rho));
    if (rms && !two)
        text_printf(t, "        w -= lr * g / (v.sqrt() + %s)\n", number(t, o->eps));
    if (two)
        text_printf(t, "        m[:] = %s * m + g / (v.sqrt() + %s)\n        w -= lr * m\n",
                    number(t, o->momentum), number(t, o->eps));
}

static void adam(const Optimizer *o, Text *t)
{
    text_printf(t,
                "\n\nclass Optimizer(mx.optimizer.Adam):\n"
                "    \"\"\"%s with epsilon beside the corrected root.\"\"\"\n\n"
                "    def update(self, index, weight, grad, state):\n"
                "        t = self._index_update_count.get(index, 0) + 1\n"
                "        self.epsilon = %s * math.sqrt(1 - self.beta2 ** t)\n",
                o->kind == OPT_ADAMW ? "AdamW" : "Adam", number(t, o->eps));
    if (o->kind == OPT_ADAMW)
        text_printf(t,
                    "        weight *= 1 - self._get_lr(index) * %s * "
                    "self.param_dict[index].wd_mult\n",
                    number(t, o->weight_decay));
    text_add(t, "        super().update(index, weight, grad, state)\n");
}

static const char *optimizer(const Optimizer *o, Text *t)
{
    const char *decay = o->weight_decay != 0 && o->kind != OPT_ADAMW
                            ? arena_printf(t->arena, ", wd=%s", number(t, o->weight_decay))
                            : "";
    if (own_optimizer(o))
        return arena_printf(t->arena, "Optimizer(learning_rate=LR%s)", decay);
    if (o->kind == OPT_SGD)
        return arena_printf(t->arena, "mx.optimizer.SGD(%s, learning_rate=LR%s)",
                            number(t, o->momentum), decay);
    return arena_printf(t->arena, "Optimizer(LR, %s, %s%s)", number(t, o->beta1),
                        number(t, o->beta2), decay);
}

/* ---- the loop */

static const char beginning[] =
    "    a.add_argument(\"--weights\")\n"
    "    a.add_argument(\"--epochs\", type=int, default=%lld)\n"
    "    a.add_argument(\"--seed\", type=int, default=%lld)\n"
    "    a.add_argument(\"--shuffle\", choices=(\"on\", \"off\"), default=\"on\")\n"
    "    a.add_argument(\"--limit-samples\", type=int)\n"
    "    a.add_argument(\"--log\", default=os.devnull)\n"
    "    a.add_argument(\"--log-steps\", type=int, default=0)\n"
    "    o = a.parse_args()\n"
    "    mx.random.seed(o.seed)\n"
    "    np.random.seed(o.seed)\n"
    "    x, y = loaded(o.data, \"train\", o.limit_samples)\n"
    "    test_x, test_y = loaded(o.data, \"test\")\n"
    "%s"
    "    model, losses_of = %s(), nn.HybridLambda(losses)\n"
    "    model.initialize(%s)\n"
    "    model.cast(DTYPE)\n"
    "    set_factors(model)\n"
    "    if o.weights:\n"
    "        given(model, o.weights)\n"
    "    for block in model, losses_of:\n"
    "        block.hybridize(static_alloc=True, static_shape=True)\n"
    "    trained = [p for p in model.collect_params().values() if p.grad_req != \"null\"]\n"
    "    optimizer = %s\n"
    "    trainer = gluon.Trainer(trained, optimizer, kvstore=None)\n"
    "    steps = -(-len(x) // BATCH)\n"
    "    with open(o.log, \"a\") as log:\n"
    "        print(json.dumps({\"event\": \"start\", \"target\": f\"MXNet {mx.__version__}\", "
    "\"batch\": BATCH, \"seed\": o.seed, \"samples\": len(x),\n"
    "                          \"parameters\": sum(p.data().size for p in trained)}), file=log, "
    "flush=True)\n"
    "        for epoch in range(1, o.epochs + 1):\n"
    "%s"
    "            order = np.random.permutation(len(x)) if o.shuffle == \"on\" else "
    "np.arange(len(x))\n"
    "            order = np.resize(order, steps * BATCH)                              # the last "
    "batch is filled with the first samples\n"
    "            began, total, hits = time.perf_counter(), 0.0, 0\n"
    "            for i in range(steps):\n"
    "                index = nd.array(order[i * BATCH:(i + 1) * BATCH], dtype=\"int32\")\n"
    "                batch, label = %s, y.take(index)\n";

static const char stepping[] =
    "                step = (epoch - 1) * steps + i\n"
    "%s"
    "                with autograd.record():\n"
    "                    output = model(batch)\n"
    "                    loss = losses_of(output, label)\n"
    "                loss.backward()\n"
    "%s"
    "                fresh = min(BATCH, len(x) - i * BATCH)                           # samples "
    "that this epoch has not counted yet\n"
    "                total += loss[:fresh].sum().asscalar()\n"
    "                hits += right(output, label)[:fresh].sum().asscalar()\n"
    "                if o.log_steps and (step + 1) %% o.log_steps == 0:\n"
    "                    print(json.dumps({\"event\": \"step\", \"step\": step + 1, \"samples\": "
    "fresh, \"train_loss\": float(loss[:fresh].mean().asscalar())}), file=log, flush=True)\n"
    "            seconds = time.perf_counter() - began\n"
    "            output = nd.concat(*[model(test_x[i:i + BATCH]) for i in range(0, len(test_x), "
    "BATCH)], dim=0)\n"
    "            record = {\"event\": \"epoch\", \"epoch\": epoch, \"samples\": len(x), "
    "\"seconds\": seconds, \"samples_per_s\": len(x) / seconds,\n"
    "                      \"train_loss\": float(total / len(x)), \"train_accuracy\": float(hits / "
    "%s),\n"
    "                      \"test_loss\": float(%s),\n"
    "                      \"test_accuracy\": float(%s),\n"
    "                      \"peak_bytes\": 1024 * "
    "resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}\n"
    "            print(json.dumps(record), file=log, flush=True)\n"
    "            print(\"epoch {epoch}: {seconds:.2f} s, {samples_per_s:.0f} samples/s, loss "
    "{train_loss:.4f}, test accuracy {test_accuracy:.4f}\".format(**record))\n"
    "\n\nif __name__ == \"__main__\":\n"
    "    main()\n";

/* The learning rate of a step. */
static const char *rates(const Recipe *r, Text *t)
{
    if (!rescales(r))
        return "                trainer.set_learning_rate(LR * rate(step, steps))\n";
    return arena_printf(t->arena,
                        "                lr = LR * rate(step, steps)\n"
                        "                optimizer.momentum = %s * (lr / trainer.learning_rate)    "
                        "       # MXNet's "
                        "momentum holds the learning rate\n"
                        "                trainer.set_learning_rate(lr)\n",
                        number(t, r->optimizer.momentum));
}

/* From gradients, sums over the batch, to new weights. */
static const char *update(const Graph *g, Text *t)
{
    const Recipe *r = &g->recipe;
    Text c = text_new(t->arena);
    if (python_calls(g, "gru"))
        text_add(&c, "                for name, p in named(model):\n"
                     "                    if name.endswith(\"candidate_bias\") and p.grad_req != "
                     "\"null\":\n"
                     "                        p.grad()[:p.shape[0] // 3 * 2] = 0               # "
                     "the gates have one bias\n");
    if (r->clip_norm > 0)
        text_printf(&c,
                    "                gradients = [p.grad() for p in trained]\n"
                    "                norm = nd.add_n(*[g.square().sum() for g in "
                    "gradients]).sqrt() / BATCH\n"
                    "                for g in gradients:\n"
                    "                    g *= nd.minimum(%s / norm, 1)\n",
                    number(t, r->clip_norm));
    if (r->clip_value > 0)
        text_printf(&c,
                    "                for p in trained:\n"
                    "                    nd.clip(p.grad(), -%s * BATCH, %s * BATCH, "
                    "out=p.grad())\n",
                    number(t, r->clip_value), number(t, r->clip_value));
    text_add(&c, "                trainer.step(BATCH)\n");
    return c.s;
}

static void loop(const Graph *g, Text *t)
{
    const Recipe *r = &g->recipe;
    const bool each = python_labels_each(g);
    text_printf(t, beginning, (long long)r->epochs, (long long)r->seed,
                r->normalize.kind == NORM_PIXEL
                    ? "    mean = x.mean(axis=0, keepdims=True)\n    x, test_x = x - mean, test_x "
                      "- mean\n"
                    : "",
                python_class(t->arena, g->name), initializer(&r->init, t),
                optimizer(&r->optimizer, t),
                each && r->data.unit
                    ? arena_printf(t->arena,
                                   "            if epoch > 1:                                      "
                                   "              # windows begin elsewhere\n"
                                   "                x, y = loaded(o.data, \"train\", "
                                   "o.limit_samples, np.random.randint(%lld))\n",
                                   (long long)python_step(g))
                    : "",
                python_augments(&r->augment) ? "augmented(x.take(index))" : "x.take(index)");
    text_printf(t, stepping, rates(r, t), update(g, t), each ? "y.size" : "len(x)",
                each ? "((losses_of(output, test_y) * (test_y >= 0).sum(axis=1)).sum() / (test_y "
                       ">= 0).sum()).asscalar()"
                     : "losses_of(output, test_y).mean().asscalar()",
                each ? "(right(output, test_y).sum() / (test_y >= 0).sum()).asscalar()"
                     : "right(output, test_y).mean().asscalar()");
}

static void train(const Graph *g, Text *t)
{
    const Recipe *r = &g->recipe;
    if (!r->data.unit)
        python_read(t);
    else
        python_opened(t);
    weights(g, t);
    loading(g, t);
    if (python_augments(&r->augment))
        augmenting(&r->augment, t);
    draws(&r->init, t);
    factors(g, t);
    if (own_optimizer(&r->optimizer))
        formula(&r->optimizer, t);
    else if (r->optimizer.kind != OPT_SGD)
        adam(&r->optimizer, t);
    python_rate(r, t);
    python_right(g, "output.argmax(axis=-1)", t);
    text_printf(t, "\n\nBATCH, LR = %lld, %s\n", (long long)r->batch, number(t, r->optimizer.lr));
    python_main(r, t);
    loop(g, t);
}

bool script_mxnet(const Graph *g, const char *source, Text *out, Diag *d)
{
    if (!head(g, source, out, d) || !python_network(g, &mxnet, out, d))
        return false;
    train(g, out);
    return true;
}
