/* pytorch_train.c -- what stands around the network in a PyTorch script: data, recipe, the loop and its log.
 *
 * The formulas of optimizers, schedules and losses are ours (runtime/cpu/update.h, runtime/schedule.c); so are the log's records.  The
 * draws (order, dropout, augmentation, initial weights without --weights) are PyTorch's.
 */
#include "scripts/pytorch.h"
#include "ops/op.h"
#include <math.h>
#include <string.h>

static const char *number(const Text *t, double v)
{
    return python_number(t->arena, v);
}

/* ---- the head */

static void helpers(const Graph *g, Text *t)
{
    bool scale = true, shift = true, bias = false;
    for (int i = 0; i < g->nnode; i++) {
        const Node *n = g->node[i];
        if (node_is(n, "batch_norm") || node_is(n, "layer_norm")) {
            scale &= node_bool(n, "scale") || !node_bool(n, "shift");
            shift &= node_bool(n, "shift") || !node_bool(n, "scale");
        }
        bias |= node_is(n, "bias") && !n->in[0]->op->layer;
    }
    const bool gru = python_calls(g, "gru");
    if (gru)
        text_add(t,
                 "\n\ndef candidate_bias(gru):\n"
                 "    \"\"\"Only the candidate's part of PyTorch's second bias is trained.\"\"\"\n"
                 "    nn.init.zeros_(gru.bias_hh_l0)\n"
                 "    gru.bias_hh_l0.register_hook(lambda g: torch.cat([torch.zeros_like(g[:2 * "
                 "gru.hidden_size]), g[2 * gru.hidden_size:]]))\n"
                 "    return gru\n");
    if (python_calls(g, "lstm") || python_calls(g, "rnn"))
        text_add(t, "\n\ndef one_bias(layer):\n"
                    "    \"\"\"PyTorch's second bias stays zero.\"\"\"\n"
                    "    nn.init.zeros_(layer.bias_hh_l0).requires_grad_(False)\n"
                    "    return layer\n");
    if (python_padded(g))
        text_add(t, "\n\nclass PaddedEmbedding(nn.Embedding):\n"
                    "    \"\"\"Zeros for the padding token.\"\"\"\n\n"
                    "    def forward(self, tokens):\n"
                    "        return super().forward(tokens) * (tokens != self.padding_idx)[..., "
                    "None]\n");
    if (python_reads_table(g))
        text_add(t, "\n\nclass Table(nn.Module):\n    def __init__(self, rows, width):\n"
                    "        super().__init__()\n"
                    "        self.weight = nn.Parameter(torch.zeros(rows, width))\n");
    if (python_has(g, "attention"))
        text_add(t,
                 "\n\ndef attention(x, heads, causal, scale):\n"
                 "    \"\"\"Queries, keys and values side by side: (N, T, 3 C) -> (N, T, "
                 "C).\"\"\"\n"
                 "    q, k, v = x.unflatten(2, (3, heads, -1)).permute(2, 0, 3, 1, 4)\n"
                 "    y = F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale)\n"
                 "    return y.transpose(1, 2).flatten(2)\n");
    if (!scale)
        text_add(t, "\n\ndef without_scale(norm):\n    norm.weight.requires_grad_(False)\n    "
                    "return norm\n");
    if (!shift)
        text_add(t, "\n\ndef without_shift(norm):\n    norm.bias.requires_grad_(False)\n    return "
                    "norm\n");
    if (bias)
        text_add(t, "\n\nclass Bias(nn.Module):\n    def __init__(self, count):\n        "
                    "super().__init__()\n"
                    "        self.bias = nn.Parameter(torch.zeros(count))\n\n    def forward(self, "
                    "x):\n"
                    "        return x + self.bias.reshape(-1, *[1] * (x.ndim - 2))\n");
}

static bool head(const Graph *g, const char *source, Text *t, Diag *d)
{
    if (!python_data_supported(g, "pytorch", d))
        return false;
    text_printf(t,
                "\"\"\"%s.py -- %s in PyTorch: the same network, data, loss, optimizer and "
                "schedule; made by tenon from %s.\n\n"
                "    python %s.py --data DIR [--weights initial.safetensors] [--epochs N] [--log "
                "FILE.jsonl] [--compile]\n\n"
                "--weights takes what Tenon's program writes with `--epochs 0 --save "
                "initial.safetensors` (or any checkpoint): parameters have the same\n"
                "names.  Records in the log are those of Tenon's programs.\n\"\"\"\n"
                "import argparse\n%simport gzip\nimport json\nimport lzma\nimport math\nimport "
                "os\n%simport resource\nimport time\n\n"
                "import numpy as np\nimport torch\nimport torch.nn.functional as F\nfrom torch "
                "import nn\n",
                g->name, g->name, quote_python_doc(t->arena, source), g->name, python_table(g) ? "import collections\n" : "",
                python_table(g) ? "import re\n" : "");
    if (strcmp(g->recipe.dtype, "f64") == 0)
        text_add(t, "\ntorch.set_default_dtype(torch.float64)\n");
    helpers(g, t);
    return true;
}

/* ---- data */

static const char ours[] =
    "\n\ndef ours(name):\n"
    "    \"\"\"Tenon's name of a parameter: those of recurrent layers have others here.\"\"\"\n"
    "    for word, theirs in (\"weight\", \"weight_ih_l0\"), (\"recurrent\", \"weight_hh_l0\"), "
    "(\"bias\", \"bias_ih_l0\"), "
    "(\"candidate_bias\", \"bias_hh_l0\"):\n"
    "        name = name.replace(theirs, word)\n"
    "    return name.replace(\"__\", \".\")\n";

static const char given[] =
    "\n\ndef given(model, path):\n"
    "    \"\"\"Weights and running averages from a safetensors file.\"\"\"\n"
    "    with open(path, \"rb\") as f:\n"
    "        data = f.read()\n"
    "    base = 8 + int.from_bytes(data[:8], \"little\")\n"
    "    entries = json.loads(data[8:base])\n"
    "    missing = [%s for n, p in model.named_parameters() if p.requires_grad and %s not in "
    "entries]\n"
    "    if missing:\n"
    "        raise SystemExit(f\"{path} is not of this network: it holds no {missing[0]}\")\n"
    "    for name, tensor in model.state_dict().items():\n"
    "%s"
    "        if name in entries:\n"
    "            first, last = entries[name][\"data_offsets\"]\n"
    "            kind = {\"F32\": \"<f4\", \"F64\": \"<f8\"}[entries[name][\"dtype\"]]\n"
    "            values = np.frombuffer(data[base + first:base + last], "
    "kind).reshape(entries[name][\"shape\"])\n"
    "            %s.copy_(torch.from_numpy(values.copy()))\n";

static void loading(const Graph *g, Text *t)
{
    const Recipe *r = &g->recipe;
    python_loaded(g, true, t);
    if (g->input->dtype != DT_REAL) {
        text_add(t, "    return torch.from_numpy(x).long(), torch.from_numpy(y).long()\n");
        return;
    }
    text_printf(t,
                "    dtype = torch.get_default_dtype()\n"
                "    x = torch.from_numpy(np.array(x)).reshape(-1, %s).to(dtype) * (%s if x.dtype "
                "== np.uint8 else 1)\n",
                python_list(t->arena, g->input->shape.dim, g->input->shape.rank, 0),
                python_scale(t->arena, &r->data));
    python_channels(&r->normalize, "torch.tensor", ".reshape(-1, 1, 1)", t);
    text_add(t, "    return x, torch.from_numpy(np.array(y)).long()\n");
}

static void augmenting(const Augment *u, Text *t)
{
    text_add(t, "\n\ndef augmented(x):\n    n, c, h, w = x.shape\n");
    if (u->brightness > 0)
        text_printf(t, "    x = x * (1 + %s * (2 * torch.rand(n, 1, 1, 1) - 1))\n",
                    number(t, u->brightness));
    text_printf(t,
                "    rows = torch.arange(h) + torch.randint(-%lld, %lld, (n, 1))\n    columns = "
                "torch.arange(w) + torch.randint(-%lld, %lld, (n, 1))\n",
                (long long)u->shift, (long long)u->shift + 1, (long long)u->shift,
                (long long)u->shift + 1);
    if (u->flip)
        text_add(t,
                 "    columns = torch.where(torch.rand(n, 1) < 0.5, columns, columns.flip(1))\n");
    text_add(t, "    there = rows.clamp(0, h - 1)[:, None, :, None], columns.clamp(0, w - 1)[:, "
                "None, None, :]\n"
                "    y = x[torch.arange(n)[:, None, None, None], torch.arange(c)[:, None, None], "
                "*there]\n");
    if (u->shift && !u->edge)
        text_add(t, "    outside = ((rows < 0) | (rows >= h))[:, :, None] | ((columns < 0) | "
                    "(columns >= w))[:, None, :]\n"
                    "    y = y.masked_fill(outside[:, None], 0)\n");
    if (u->cutout)
        text_printf(t,
                    "    top, left = torch.randint(0, h, (n, 1)) - %lld, torch.randint(0, w, (n, "
                    "1)) - %lld\n"
                    "    cut = ((torch.arange(h) >= top) & (torch.arange(h) < top + %lld))[:, :, "
                    "None]\n"
                    "    cut = cut & ((torch.arange(w) >= left) & (torch.arange(w) < left + "
                    "%lld))[:, None, :]\n"
                    "    y = y.masked_fill(cut[:, None], 0)\n",
                    (long long)u->cutout / 2, (long long)u->cutout / 2, (long long)u->cutout,
                    (long long)u->cutout);
    text_add(t, "    return y\n");
}

/* ---- recipe */

static void initial(const Graph *g, Text *t)
{
    static const char *const fans[] = {"fan_in", "fan_out", "(fan_in + fan_out) / 2"};
    const Init *i = &g->recipe.init;
    const char *fan = fans[i->fan];
    text_printf(t,
                "\n\ndef initialise(model):\n    for m in model.modules():\n        if not "
                "isinstance(m, (nn.Conv2d, nn.Linear%s%s%s)):\n            continue\n",
                g->nloop ? ", nn.RNNBase" : "", python_has(g, "embedding") ? ", nn.Embedding" : "",
                python_reads_table(g) ? ", Table" : "");
    if (g->nloop)
        text_add(t, "        recurrent = isinstance(m, nn.RNNBase)\n"
                    "        weight, bias = (m.weight_ih_l0, m.bias_ih_l0) if recurrent else "
                    "(m.weight, getattr(m, \"bias\", None))\n");
    else if (python_has(g, "embedding") || python_reads_table(g))
        text_add(t, "        weight, bias = m.weight, getattr(m, \"bias\", None)\n");
    else
        text_add(t, "        weight, bias = m.weight, m.bias\n");
    if (i->kind != INIT_ORTHOGONAL && i->kind != INIT_UNIFORM && i->kind != INIT_NORMAL &&
        i->kind != INIT_CONSTANT)
        text_add(t, "        fan_in, fan_out = nn.init._calculate_fan_in_and_fan_out(weight)\n");
    const char *gauss = "        nn.init.normal_(weight, 0, math.sqrt(%s / (%s)))\n",
               *even = "        bound = math.sqrt(%s / (%s))\n        nn.init.uniform_(weight, "
                       "-bound, bound)\n";
    switch (i->kind) {
    case INIT_XAVIER:
        text_printf(t, i->gaussian ? gauss : even, number(t, i->a), fan);
        break;
    case INIT_GLOROT:
        text_printf(t, i->gaussian ? gauss : even, i->gaussian ? "2" : "6", "fan_in + fan_out");
        break;
    case INIT_HE:
        text_printf(t, i->gaussian ? gauss : even, i->gaussian ? "2" : "6", fan);
        break;
    case INIT_LECUN:
        text_printf(t, i->gaussian ? gauss : even, i->gaussian ? "1" : "3", "fan_in");
        break;
    case INIT_ORTHOGONAL:
        text_printf(t, "        nn.init.orthogonal_(weight, %s)\n", number(t, i->a));
        break;
    case INIT_UNIFORM:
        text_printf(t, "        nn.init.uniform_(weight, %s, %s)\n", number(t, i->a),
                    number(t, i->b));
        break;
    case INIT_NORMAL:
        text_printf(t, "        nn.init.normal_(weight, %s, %s)\n", number(t, i->a),
                    number(t, i->b));
        break;
    default:
        text_printf(t, "        nn.init.constant_(weight, %s)\n", number(t, i->a));
    }
    text_add(t, "        if bias is not None:\n            nn.init.zeros_(bias)\n");
    if (g->nloop)
        text_add(t, "        if recurrent:\n"
                    "            nn.init.orthogonal_(m.weight_hh_l0)\n");
    for (int k = 0; k < g->nloop; k++)
        if (g->loop[k]->call && node_is(g->loop[k]->call, "lstm")) {
            text_printf(t,
                        "        if isinstance(m, nn.LSTM):\n            bias.data[m.hidden_size:2 "
                        "* m.hidden_size] = %s              # of the forget gate\n",
                        number(t, node_float(g->loop[k]->call, "forget_bias")));
            break;
        }
}

/* Parameters in groups of equal factors. */
static void groups(const Graph *g, Text *t)
{
    const Recipe *r = &g->recipe;
    text_add(t, "\n\ndef groups(model):\n    \"\"\"Groups of equal learning rate and decay, "
                "without frozen parameters.\"\"\"\n    found = {}\n    factors = {");
    int n = 0;
    for (int i = 0; i < g->nparam; i++) {
        const Param *p = g->param[i];
        const bool usual = p->lr == 1 && p->decay == (p->file.rank > 1 ? 1 : 0) && !p->frozen;
        if (!usual && !p->average)
            text_printf(t, "%s\n        \"%s\": (%s, %s)", n++ ? "," : "", p->name,
                        p->frozen ? "None" : number(t, p->lr), number(t, p->decay));
    }
    text_printf(t,
                "%s}\n"
                "    for name, p in model.named_parameters():\n"
                "        lr, decay = factors.get(%s, (1, 1 if p.ndim > 1 else 0))\n"
                "        p.requires_grad_(p.requires_grad and lr is not None)\n"
                "        if p.requires_grad:\n"
                "            found.setdefault((lr, decay), []).append(p)\n"
                "    return [{\"params\": ps, \"factor\": lr, \"lr\": %s, \"weight_decay\": %s * "
                "decay} for (lr, decay), ps in found.items()]\n",
                n ? "\n    " : "", g->nloop ? "ours(name)" : "name", number(t, r->optimizer.lr),
                number(t, r->optimizer.weight_decay));
}

static const char *optimizer(const Optimizer *o, Text *t)
{
    Arena *a = t->arena;
    if (o->kind == OPT_SGD)
        return arena_printf(a,
                            "torch.optim.SGD(groups(model), momentum=%s, nesterov=%s, fused=True)",
                            number(t, o->momentum), o->nesterov ? "True" : "False");
    if (o->kind == OPT_RMSPROP)
        return arena_printf(a,
                            "torch.optim.RMSprop(groups(model), alpha=%s, eps=%s, momentum=%s, "
                            "foreach=True)",
                            number(t, o->rho), number(t, o->eps), number(t, o->momentum));
    return arena_printf(a, "torch.optim.%s(groups(model), betas=(%s, %s), eps=%s, fused=True)",
                        o->kind == OPT_ADAM ? "Adam" : "AdamW", number(t, o->beta1),
                        number(t, o->beta2), number(t, o->eps));
}

/* ---- the loop */

static const char arguments[] =
    "    a.add_argument(\"--weights\")\n"
    "    a.add_argument(\"--epochs\", type=int, default=%lld)\n"
    "    a.add_argument(\"--seed\", type=int, default=%lld)\n"
    "    a.add_argument(\"--threads\", type=int, default=len(os.sched_getaffinity(0)))\n"
    "    a.add_argument(\"--shuffle\", choices=(\"on\", \"off\"), default=\"on\")\n"
    "    a.add_argument(\"--limit-samples\", type=int)\n"
    "    a.add_argument(\"--log\", default=os.devnull)\n"
    "    a.add_argument(\"--log-steps\", type=int, default=0)\n"
    "    a.add_argument(\"--compile\", action=\"store_true\")\n"
    "    o = a.parse_args()\n"
    "    torch.manual_seed(o.seed)\n"
    "    torch.set_num_threads(o.threads)\n"
    "    torch.set_flush_denormal(True)\n"
    "    x, y = loaded(o.data, \"train\", o.limit_samples)\n"
    "    test_x, test_y = loaded(o.data, \"test\")\n"
    "%s"
    "    model = %s()\n"
    "    initialise(model)\n"
    "    if o.weights:\n"
    "        given(model, o.weights)\n"
    "%s"
    "    optimizer = %s\n"
    "    network = torch.compile(model) if o.compile else model\n"
    "    steps = -(-len(x) // BATCH)\n"
    "    with open(o.log, \"a\") as log:\n"
    "        print(json.dumps({\"event\": \"start\", \"target\": f\"PyTorch {torch.__version__}\", "
    "\"batch\": BATCH, \"seed\": o.seed, \"samples\": len(x),\n"
    "                          \"parameters\": sum(p.numel() for p in model.parameters())}), "
    "file=log, flush=True)\n"
    "        for epoch in range(1, o.epochs + 1):\n"
    "%s"
    "            order = torch.randperm(len(x)) if o.shuffle == \"on\" else torch.arange(len(x))\n"
    "            order = order.repeat(-(-BATCH // len(x)) + 1)[:steps * BATCH]        # the last "
    "batch is filled with the first samples\n"
    "            began, total, hits = time.perf_counter(), 0.0, 0\n"
    "            model.train()\n"
    "            for i in range(steps):\n"
    "                index = order[i * BATCH:(i + 1) * BATCH]\n"
    "                step = (epoch - 1) * steps + i\n"
    "                for g in optimizer.param_groups:\n"
    "                    g[\"lr\"] = LR * g[\"factor\"] * rate(step, steps)\n"
    "                output = network(%s)\n"
    "                loss = losses(output, y[index])\n"
    "                optimizer.zero_grad(set_to_none=True)\n"
    "                loss.mean().backward()\n"
    "%s"
    "                optimizer.step()\n"
    "                fresh = min(BATCH, len(x) - i * BATCH)                           # samples "
    "that this epoch has not counted yet\n"
    "                total += loss[:fresh].sum().item()\n"
    "                hits += right(output, y[index])[:fresh].sum().item()\n"
    "                if o.log_steps and (step + 1) %% o.log_steps == 0:\n"
    "                    print(json.dumps({\"event\": \"step\", \"step\": step + 1, \"samples\": "
    "fresh, \"train_loss\": loss[:fresh].mean().item()}), file=log, flush=True)\n"
    "            seconds = time.perf_counter() - began\n"
    "            model.eval()\n"
    "            with torch.no_grad():\n"
    "                parts = [model(b) for b in test_x.split(BATCH)]\n"
    "            output = torch.cat(parts)\n"
    "            record = {\"event\": \"epoch\", \"epoch\": epoch, \"samples\": len(x), "
    "\"seconds\": seconds, \"samples_per_s\": len(x) / seconds,\n"
    "                      \"train_loss\": total / len(x), \"train_accuracy\": hits / %s,\n"
    "                      \"test_loss\": %s, \"test_accuracy\": %s,\n"
    "                      \"peak_bytes\": 1024 * "
    "resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}\n"
    "            print(json.dumps(record), file=log, flush=True)\n"
    "            print(\"epoch {epoch}: {seconds:.2f} s, {samples_per_s:.0f} samples/s, loss "
    "{train_loss:.4f}, test accuracy {test_accuracy:.4f}\".format(**record))\n"
    "\n\nif __name__ == \"__main__\":\n"
    "    main()\n";

static const char *clipping(const Recipe *r, Text *t)
{
    Text c = text_new(t->arena);
    if (r->clip_norm > 0) /* clip_grad_norm_ divides by norm + 1e-6: gradients 2e-6 too small */
        text_printf(&c,
                    "                grads = [p.grad for p in model.parameters() if p.grad is not "
                    "None]\n"
                    "                norm = torch.sqrt(sum((g.double() ** 2).sum() for g in "
                    "grads)).item()\n"
                    "                if norm > %s:\n"
                    "                    for g in grads:\n"
                    "                        g *= %s / norm\n",
                    number(t, r->clip_norm), number(t, r->clip_norm));
    if (r->clip_value > 0)
        text_printf(&c, "                nn.utils.clip_grad_value_(model.parameters(), %s)\n",
                    number(t, r->clip_value));
    return c.s;
}

static void train(const Graph *g, Text *t)
{
    const Recipe *r = &g->recipe;
    const bool images = python_has(g, "conv2d") && g->input->shape.rank == 3;
    const bool each = python_labels_each(g);
    if (!r->data.unit)
        python_read(t);
    else
        python_opened(t);
    if (g->nloop)
        text_add(t, ours);
    text_printf(t, given, g->nloop ? "ours(n)" : "n", g->nloop ? "ours(n)" : "n",
                g->nloop ? "        name = ours(name)\n" : "",
                python_calls(g, "gru") ? "tensor[-len(values):]" : "tensor");
    loading(g, t);
    if (python_augments(&r->augment))
        augmenting(&r->augment, t);
    initial(g, t);
    groups(g, t);
    python_rate(r, t);
    python_right(g, "output.argmax(-1)", t);
    text_printf(t, "\n\nBATCH, LR = %lld, %s\n", (long long)r->batch, number(t, r->optimizer.lr));
    python_main(r, t);
    text_printf(t, arguments, (long long)r->epochs, (long long)r->seed,
                r->normalize.kind == NORM_PIXEL
                    ? "    mean = x.mean(0)\n    x, test_x = x - mean, test_x - mean\n"
                    : "",
                python_class(t->arena, g->name),
                images ? "    model = model.to(memory_format=torch.channels_last)\n    x, test_x = "
                         "(v.contiguous(memory_format=torch.channels_last) for v in (x, test_x))\n"
                       : "",
                optimizer(&r->optimizer, t),
                each && r->data.unit
                    ? arena_printf(t->arena,
                                   "            if epoch > 1:                                      "
                                   "              # windows begin elsewhere\n"
                                   "                x, y = loaded(o.data, \"train\", "
                                   "o.limit_samples, torch.randint(%lld, ()).item())\n",
                                   (long long)python_step(g))
                    : "",
                python_augments(&r->augment) ? "augmented(x[index])" : "x[index]", clipping(r, t),
                each ? "y.numel()" : "len(x)",
                each ? "(losses(output, test_y) * (test_y >= 0).sum(1)).sum().item() / (test_y >= "
                       "0).sum().item()"
                     : "losses(output, test_y).mean().item()",
                each ? "right(output, test_y).sum().item() / (test_y >= 0).sum().item()"
                     : "right(output, test_y).double().mean().item()");
}

bool script_pytorch(const Graph *g, const char *source, Text *out, Diag *d)
{
    if (!head(g, source, out, d) || !python_network(g, &pytorch, out, d))
        return false;
    train(g, out);
    return true;
}
