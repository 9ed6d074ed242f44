/* synthetic.c -- `data = synthetic` in a script: the very samples that Tenon's programs make up (runtime/data/synthetic.c),
 * in NumPy. */
#include "scripts/python.h"
#include "ops/op.h"

/* Random words, and numbers below n.  Source: Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3". */
static const char draws[] =
    "\n\ndef philox(kind, which, blocks):\n"
    "    \"\"\"(len(which), 4 blocks) random words by Philox4x32-10; kind 0 draws classes, 1 "
    "noise, "
    "2 prototypes.\"\"\"\n"
    "    c0, c2 = np.broadcast_arrays(np.arange(blocks, dtype=np.uint64), "
    "which.astype(np.uint64)[:, None])\n"
    "    c1, c3, k0, k1, low = np.uint64(3), np.uint64(kind), 20231, 0, np.uint64(2**32 - 1)\n"
    "    for _ in range(10):\n"
    "        a, b = c0 * np.uint64(0xD2511F53), c2 * np.uint64(0xCD9E8D57)\n"
    "        c0, c1 = (b >> np.uint64(32)) ^ c1 ^ np.uint64(k0), b & low\n"
    "        c2, c3 = (a >> np.uint64(32)) ^ c3 ^ np.uint64(k1), a & low\n"
    "        k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32\n"
    "    return np.stack([c0, c1, c2, c3], -1).astype(\"<u4\").reshape(len(which), -1)\n"
    "\n\ndef below(n, words):\n"
    "    return (words.astype(np.uint64) * np.uint64(n) >> np.uint64(32)).astype(np.int64)\n";

/* i: samples, or with a class a position their positions */
static const char numbers[] =
    "    y = below(%1$lld, philox(0, i, 1)[:, 0])\n"
    "    noise, own = (philox(kind, which, %2$lld).view(np.uint8)[:, :%3$lld] for kind, which in "
    "((1, i), (2, y)))\n"
    "    return (noise & own) + ((noise ^ own) >> 1), y                       # their mean, "
    "rounded down\n";
static const char tokens[] =
    "    y = below(%1$lld, philox(0, i, 1)[:, 0])\n"
    "    noise, own = (philox(kind, which, %2$lld)[:, :%3$lld] for kind, which in ((1, i), (2, "
    "y)))\n"
    "    return below(%4$lld, np.where(noise & 1, own, noise)), y\n";
static const char tokens_each[] =
    "    x = below(%4$lld, philox(1, i, %2$lld)[:, :%3$lld])\n"
    "    return x, below(%1$lld, philox(2, x.ravel(), 1)[:, 0]).reshape(x.shape)\n";

static int64_t classes(const Graph *g, int64_t labels)
{
    const int64_t outputs = shape_count(&g->output->shape);
    return python_has(g, "sigmoid_cross_entropy") && outputs == labels ? 2 : outputs / labels;
}

void python_drawn(const Graph *g, Text *t)
{
    const bool words = g->input->dtype != DT_REAL, each = python_labels_each(g);
    const long long labels = shape_count(&g->label->shape),
                    features = shape_count(&g->input->shape), vocab = g->recipe.data.vocab,
                    of_each = words ? features : features / labels,
                    block = words ? 4 : 16; /* numbers of a block of four random words */
    text_add(t, draws);
    text_printf(t,
                "\n\ndef made_up(i):\n"
                "    \"\"\"Samples of these numbers: the prototype of a random class, half covered "
                "by noise.\"\"\"\n");
    if (each && !words)
        text_printf(t, "    i = (i[:, None] * %lld + np.arange(%lld)).ravel()\n", labels, labels);
    text_printf(t,
                words && labels > 1 ? tokens_each
                : words       ? tokens
                              : numbers,
                (long long)classes(g, labels), (of_each + block - 1) / block, of_each, vocab);
}

void python_made_up(const Graph *g, Text *t)
{
    const DataSpec *data = &g->recipe.data;
    const long long features = shape_count(&g->input->shape), many = 4000000 / features;
    text_printf(t,
                "    if place is None:                                 # synthetic, as the recipe "
                "says\n"
                "        first, n = (0, %1$lld) if split == \"train\" else (%1$lld, %2$lld)\n"
                "        numbers = np.arange(first, first + min(n, limit or n))\n"
                "        parts = [made_up(numbers[at:at + %3$lld]) for at in range(0, "
                "len(numbers), %3$lld)]\n"
                "        x, y = (np.concatenate(part)%4$s for part in zip(*parts))\n"
                "    else:\n"
                "        x, y = read(place, split)\n",
                (long long)data->samples, (long long)data->test_samples, many > 1 ? many : 1,
                python_labels_each(g) ? ".reshape(len(numbers), -1)" : "");
}
