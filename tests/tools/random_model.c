/* random_model.c -- writes a random model with its train block, to compare all ways to compile it.
 *
 *   random_model SEED        the same model for the same seed, on every machine
 *   random_model SEED task   a model with declared inputs, outputs and targets (random_task.h)
 *
 * Values of known shapes are made from one another, by every operation that fits: layers, shared
 * layers, moves, reductions, formulas, attention, recurrent layers, scans.  tanh and similar
 * functions keep results small, so that rounding errors stay small, too.  The last layer reads
 * every value that no other result has read.  The loss has a name or is a formula; half of the
 * operations in formulas are those of the model.  `tenon check` should accept every model.
 *
 * random_value.h has the values and the random numbers, and random_ops.h the operations.
 */
#include "random_task.h"
#include <stdlib.h>

static int layers; /* with parameters, so far */
static bool task;  /* the second argument */
static int extra;  /* inputs before the first one in the pool */

/* ---- statements */

/* Marks the values whose names stand in the text. */
static void mark_used(Pool *p, const char *text)
{
    for (int i = 0; i < p->count; i++) {
        const char *name = p->value[i].text, *at = text;
        const size_t len = strlen(name);
        while ((at = strstr(at, name)) && at[len] >= '0' && at[len] <= '9')
            at++;
        p->value[i].used |= at != NULL;
    }
}

/* Whether an operation of the text is a layer with parameters. */
static bool has_parameters(const char *text)
{
    static const char *const word[] = {"dense(", "conv2d(", "bias(", "position(", "lstm(", "gru(",
                                       "rnn(",   "fc0",     "fc1",   "fc2",       "table"};
    for (size_t i = 0; i < sizeof word / sizeof *word; i++)
        if (strstr(text, word[i]))
            return true;
    return false;
}

/* Writes a line h = .. with one more value; a model has no value of rank 0. */
static bool statement(Pool *p, const char *indent, int *names)
{
    Value y;
    char name[16];
    for (int i = 0; i < 20; i++)
        if (derive(p, &y) && y.rank > 0) {
            sprintf(name, "v%d", ++*names);
            printf("%s%s = %s\n", indent, name, y.text);
            mark_used(p, y.text);
            keep(p, &y, name);
            layers += has_parameters(y.text);
            return true;
        }
    return false;
}

/* A scan over a sequence of the pool, perhaps two: one state or two, and what each step yields. */
static void scan(Pool *p, int *names)
{
    Pool *body = calloc(1, sizeof *body);
    const Value *x = NULL, *also = NULL;
    for (int i = 0; i < 20 && !x; i++)
        x = any(p)->rank >= 2 ? any(p) : NULL, x = x && x->rank >= 2 ? x : NULL;
    if (!x) {
        free(body);
        return;
    }
    for (int i = 0; i < 10 && !also; i++) {
        const Value *c = any(p);
        also = c->rank >= 2 && c->dim[0] == x->dim[0] ? c : NULL;
    }
    also = chance(40) ? also : NULL;
    const int id = ++*names, width = from(1, 6), states = from(1, 2);
    Value item = *x, state = {.rank = 1, .dim = {width}}, y;
    for (int i = 0; i < states; i++) {
        const Value *first = any(p);
        if (first->rank == 1 && first->dim[0] == width)
            printf("    s%d_%d = %s\n", id, i, first->text);
        else
            printf(chance(80) ? "    s%d_%d = zeros(%d)\n" : "    s%d_%d = zeros(%d) + 0.5\n", id,
                   i, width);
    }
    printf("    scan e%d in %s", id, x->text);
    mark_used(p, x->text);
    if (also)
        printf(", f%d in %s", id, also->text), mark_used(p, also->text);
    if (chance(30))
        printf(" reversed");
    if (chance(25))
        printf(" recompute = every %d", from(1, x->dim[0]));
    printf(" {\n");
    body->weights = body->scan = true;
    char name[40];
    const Value *each[2] = {x, also};
    for (int i = 0; i < 2 && each[i]; i++) {
        item = *each[i];
        item.rank--;
        memmove(item.dim, item.dim + 1, 2 * sizeof *item.dim);
        sprintf(name, "%c%d", "ef"[i], id);
        keep(body, &item, name);
    }
    for (int i = 0; i < states; i++)
        sprintf(name, "s%d_%d", id, i), keep(body, &state, name);
    if (chance(40))
        for (int i = 0; i < 5; i++)
            if (any(p)->rank == 1 && p->value[i % p->count].rank == 1) {
                keep(body, &p->value[i % p->count], p->value[i % p->count].text);
                break;
            }
    for (int i = from(1, 4); i > 0; i--)
        statement(body, "        ", names);
    char sum[TEXT] = ""; /* of values of the step: each state depends on some of them */
    for (int i = 0; i < body->count; i++) {
        const Value *v = &body->value[i];
        if (v->rank > 0 && (!v->used || chance(30) || i == body->count - 1))
            sprintf(sum + strlen(sum),
                    v->rank == 1 ? "%sdense(%s, %d)" : "%sdense(flatten(%s), %d)",
                    *sum ? " + " : "", v->text, width);
    }
    for (int i = 0; i < states; i++)
        if (chance(70))
            printf("        s%d_%d = tanh(%s)\n", id, i, *sum ? sum : body->value[0].text);
        else
            printf("        s%d_%d = sigmoid(dense(flatten(e%d), %d)) * s%d_%d + 0.3 * tanh(%s)\n",
                   id, i, id, width, id, i, sum);
    y = body->value[below(body->count)];
    if (y.rank == 3)
        y = body->value[0];
    const bool yields = chance(60);
    if (yields)
        printf("        yield ys%d = %s\n", id, y.text);
    printf("    }\n");
    if (yields) {
        memmove(y.dim + 1, y.dim, 2 * sizeof *y.dim);
        y.dim[0] = x->dim[0], y.rank++;
        sprintf(name, "ys%d", id);
        if (size_of(&y) <= 4 * MOST)
            keep(p, &y, name);
    }
    for (int i = 0; i < states; i++)
        sprintf(name, "s%d_%d", id, i), keep(p, &state, name);
    free(body);
}

/* ---- the loss: one number a sample */

/* A term of a loss formula. */
static Value term(Pool *p, const Value *out, bool labelled, bool each)
{
    Value y = *out, z;
    const int k = out->rank ? out->dim[out->rank - 1] : 1;
    y.rank = 0;
    if (labelled && !each && chance(30)) {
        static const char *const form[] = {
            "softmax_cross_entropy(output, label)",
            "softmax_cross_entropy(output, label, smoothing = 0.1)",
            "-log(gather(softmax(output), label) + 0.01)",
            "gather(output, label) * 0.5",
            "mse(output, one_hot(label, %d))",
            "mean((output - one_hot(label, %d)) ** 2, axes = [0])",
            "log(sum(exp(tanh(output)), axes = [0])) - gather(tanh(output), label)",
        };
        say(&y, form[below(7)], k);
        return y;
    }
    if (each && k > 1 && chance(50)) {
        static const char *const form[] = {"mse(output, one_hot(label, %d))",
                                           "softmax_cross_entropy(output, label)"};
        say(&y, form[chance(50)], k);
        return y;
    }
    z = *out;
    if (chance(60))
        say(&z, "tanh(%s)", out->text);
    for (int i = from(0, 3); i > 0; i--) {
        Pool *q = calloc(1, sizeof *q);
        *q = *p;
        keep(q, &z, NULL);
        Value next;
        if (derive(q, &next) && next.rank >= 0 && strlen(next.text) < 300)
            z = next;
        free(q);
    }
    const bool squared = z.rank && chance(30);
    const Value x = z;
    if (squared || (z.rank && chance(40)))
        say(&z, squared ? "(%s) ** 2" : "tanh(%s)", x.text);
    to_number(&z, squared);
    return z;
}

/* Writes a formula of one or two terms. */
static void loss(Pool *p, const Value *out, bool labelled, bool each)
{
    Value a = term(p, out, labelled, each), b = term(p, out, labelled, each);
    static const char *const one[] = {"%s",
                                      "%s * 2",
                                      "0.5 * (%s)",
                                      "tanh(%s) ** 2",
                                      "sqrt(1 + (%s) ** 2)",
                                      "1 - exp(-abs(%s))",
                                      "(%s) / 3"};
    static const char *const two[] = {"%s + %s",
                                      "%s + 0.1 * (%s)",
                                      "(%s) * tanh(%s)",
                                      "max(%s, %s)",
                                      "%s - 0.5 * tanh(%s)",
                                      "(%s) / (2 + tanh(%s))"};
    printf("    loss = ");
    if (chance(50))
        printf(one[below(7)], a.text);
    else
        printf(two[below(6)], a.text, b.text);
    printf("\n");
}

/* ---- a model */

/* Writes the head of the model and its named layers; its input is the first value. */
static void inputs(Pool *p, int *vocab)
{
    static const int kinds[] = {0, 0, 1, 1, 2, 2, 2, 3};
    const char *name = task ? "given" : "x"; /* "x" is a part of other words */
    Value x = {0};
    const int kind = kinds[below(8)];
    *vocab = 0;
    tokens = NULL;
    switch (kind) {
    case 0:
        x.rank = 1, x.dim[0] = from(1, 12);
        break;
    case 1:
        x.rank = 2, x.dim[0] = from(1, 6), x.dim[1] = from(1, 6);
        break;
    case 2:
        x.rank = 3, x.dim[0] = from(1, 4), x.dim[1] = from(2, 6), x.dim[2] = from(2, 6);
        break;
    default:
        x.rank = 1, x.dim[0] = from(1, 6), *vocab = from(2, 9);
        break;
    }
    steps = kind == 1 || kind == 3 ? x.dim[0] : 0;
    printf("model random(%s: %s%s", name, *vocab ? "i32" : "f32", list(x.dim, x.rank));
    if (task)
        extra = more_inputs(p);
    printf(*vocab ? ", vocab: int) {\n" : ") {\n");
    for (int i = 0; i < SHARED; i++) {
        shared[i].in = 0, shared[i].out = from(1, 6);
        printf("    fc%d = dense(%d%s)\n", i, shared[i].out, chance(20) ? ", bias = false" : "");
    }
    if (!*vocab) {
        keep(p, &x, name);
        return;
    }
    tokens = name;
    x.rank = 2, x.dim[1] = from(1, 6);
    printf("    table = embedding(vocab, %d%s)\n    v0 = table(%s)\n", x.dim[1],
           chance(40) ? ", padding = 0" : "", name);
    keep(p, &x, "v0");
    if (chance(40)) {
        printf("    w0 = one_hot(%s, vocab)\n", name);
        x.dim[1] = *vocab;
        keep(p, &x, "w0");
    }
}

static bool froze; /* fc0 is called, and so is another layer */

/* The values that nothing has read: "flatten(v3), flatten(x)". */
static const char *unread(const Pool *p)
{
    static char parts[TEXT];
    *parts = 0;
    for (int i = p->count - 1; i >= 0 && strlen(parts) < TEXT / 2; i--)
        if (!p->value[i].used || i == p->count - 1)
            sprintf(parts + strlen(parts), "%sflatten(%s)", *parts ? ", " : "", p->value[i].text);
    return parts;
}

/* The last line of the model, which reads all values that nothing else has read. */
static Value output(Pool *p)
{
    Value out = {.text = "output", .rank = 1};
    const Value *last = &p->value[p->count - 1];
    const char *parts = unread(p);
    out.dim[0] = from(2, 6);
    const int way = layers ? below(10) : 9;
    froze = shared[0].in && way >= 5;
    if (way < 2 && last->rank > 0) { /* any value, unchanged */
        out.rank = last->rank;
        memcpy(out.dim, last->dim, sizeof out.dim);
        printf("    return %s\n}\n", last->text);
    } else if (way < 5 && steps && last->rank == 2 && last->dim[0] == steps) {
        out.rank = 2, out.dim[0] = steps, out.dim[1] = from(2, 5);
        printf("    return dense(%s, %d)\n}\n", last->text, out.dim[1]);
    } else if (way < 6) {
        out.dim[0] = 1;
        printf("    return concat(%s) |> dense(1)\n}\n", parts);
    } else {
        printf("    return concat(%s) |> dense(%d)\n}\n", parts, out.dim[0]);
    }
    return out;
}

typedef struct Batch {
    int size, shards;
} Batch;

static Batch batch(void)
{
    static const Batch all[] = {{8, 1}, {8, 2},  {8, 4},  {12, 2}, {12, 3},
                                {9, 1}, {16, 2}, {10, 5}, {34, 1}};
    return ONE_OF(all);
}

/* Writes the keys of the recipe after the loss. */
static void recipe(Batch b)
{
    static const char *const optimizer[] = {"sgd(lr = 0.01)",
                                            "sgd(lr = 0.01, momentum = 0.9)",
                                            "sgd(lr = 0.01, weight_decay = 0.01)",
                                            "sgd(lr = 0.01, momentum = 0.9, nesterov = true)",
                                            "adam(lr = 0.002)",
                                            "rmsprop(lr = 0.002)",
                                            "adamw(lr = 0.002)",
                                            "adagrad(lr = 0.01)",
                                            "lion(lr = 0.001)",
                                            "lars(lr = 0.5)",
                                            "lamb(lr = 0.002)"};
    printf("    optimizer = %s\n    batch = %d\n    shards = %d\n    epochs = 2\n",
           ONE_OF(optimizer), b.size, b.shards);
    if (chance(15))
        printf("    clip = %s\n", chance(50) ? "norm(1.0)" : "value(0.05)");
    if (chance(10) && froze)
        printf("    freeze = [\"fc0.*\"]\n");
    if (chance(10))
        printf("    factors = [lr(\"*\", 2), decay(\"*\", 1)]\n");
    printf("}\n");
}

/* Writes the train block; p holds the output, and one_hot(label) if the output can be classes. */
static void train(Pool *p, const Value *out, int vocab)
{
    const Batch b = batch();
    const bool each = steps && out->rank == 2 && out->dim[0] == steps;
    const bool labelled = out->rank == 1 || each;
    const int two = out->dim[0] > 1 ? out->dim[0] : 2;
    const int classes = each ? out->dim[1] : out->rank == 1 ? two : 3;
    printf("train random {\n    data = synthetic(samples = %d, test_samples = 11, classes = %d",
           b.size + from(1, 15), classes);
    if (vocab)
        printf(", vocab = %d", vocab);
    printf(")\n");
    if (out->rank == 1 && out->dim[0] == 1 && chance(50))
        printf("    loss = sigmoid_cross_entropy\n");
    else if (labelled && out->dim[out->rank - 1] > 1 && chance(25))
        printf("    loss = %s\n", chance(50)   ? "softmax_cross_entropy"
                                  : chance(50) ? "mse"
                                               : "softmax_cross_entropy(smoothing = 0.1)");
    else
        loss(p, out, labelled && out->dim[out->rank - 1] > 1, each);
    recipe(b);
}

/* Writes the train block of a task; x: the first input if it is numbers, else NULL. */
static void train_task(const Task *t, Pool *q, const Value *x, int vocab)
{
    const Batch b = batch();
    printf("train random {\n    data = synthetic(samples = %d, test_samples = 11",
           b.size + from(1, 15));
    if (task_classes(t))
        printf(", classes = %d", task_classes(t));
    if (vocab)
        printf(", vocab = %d", vocab);
    printf(")\n");
    task_targets(t, q, x);
    task_loss(t, q, x);
    recipe(b);
}

/* Writes the end of a model with one output, and its recipe. */
static void write_model(Pool *p, Pool *q, int vocab)
{
    const Value out = output(p);
    const bool each = steps && out.rank == 2 && out.dim[0] == steps;
    keep(q, &out, NULL);
    q->weights = chance(10); /* a loss may have parameters, too */
    if ((out.rank == 1 || each) && out.dim[out.rank - 1] > 1) {
        Value hot = out;
        say(&hot, "one_hot(label, %d)", out.dim[out.rank - 1]);
        keep(q, &hot, NULL);
    }
    train(q, &out, vocab);
}

static void write_task(Pool *p, Pool *q, int vocab)
{
    Task t;
    const Value *x = vocab ? NULL : &p->value[extra];
    task_outputs(&t, p, unread(p), x);
    for (int i = 0; i < t.count; i++)
        keep(q, &t.output[i], NULL);
    train_task(&t, q, x, vocab);
}

int main(int argc, char **argv)
{
    Pool *p = calloc(2, sizeof *p);
    int vocab, names = 0;
    task = argc == 3 && strcmp(argv[2], "task") == 0;
    if (argc != 2 + task || !p) {
        fprintf(stderr, "usage: random_model SEED [task]\n");
        return 1;
    }
    state = strtoull(argv[1], NULL, 10);
    layers = 0;
    below(2);
    printf("# %s %s of tests/tools/random_model.c\n"
           "op bell(x, w: float = 0.5) = exp(-w * x * x)\n"
           "op mixed(a, b) = tanh(a) * b + a / (2 + b * b)\n"
           "op sin3(x) = tanh(x) - tanh(x) ** 3 / 6\n",
           task ? "task" : "model", argv[1]);
    inputs(p, &vocab);
    p->weights = true;
    for (int i = from(1, chance(20) ? 14 : 7); i > 0; i--)
        if (chance(12))
            scan(p, &names);
        else
            statement(p, "    ", &names);
    Pool *q = p + 1;
    q->loss = true;
    if (task)
        write_task(p, q, vocab);
    else
        write_model(p, q, vocab);
    free(p);
    return 0;
}
