/* train.c -- the train block: its keys, their forms, ranges and defaults. */
#include "front/train.h"
#include "base/text.h"
#include "front/terms.h"
#include <stddef.h>
#include <string.h>

/* ---- keys */

static const char *const resize_words[] = {"none", "bilinear", NULL};
static const char *const dtype_words[] = {"f32", "f64", "bf16", NULL};
static const char *const loss_names[] =
    {"softmax_cross_entropy", "sigmoid_cross_entropy", "mse", "l1", "huber", NULL};

struct Train {
    Unit *u;
    Recipe *r;
    Expr *loss, **measure;
    const TrainKey *key; /* the key that is read now */
    bool *done;          /* for each key: it is read */
};

static void read_data(Train *t, Expr *e)
{
    data_read(t->u, &t->r->data, e);
}

static void read_targets(Train *t, Expr *e)
{
    targets_read(t->u, t->r, e);
}

enum { LOSS_NAMES = RT_INPUTS + RT_OUTPUTS + RT_TARGETS };

/* The names that a loss can use: inputs, outputs and targets, with the targets last.  Returns their
 * number. */
static int loss_names_of(const Train *t, const char *name[LOSS_NAMES])
{
    const Decl *model = map_get(&t->u->functions, t->r->model);
    const Body outputs = sem_outputs(model);
    int n = 0;
    for (int i = 0; model && i < model->params.n && n < RT_INPUTS; i++)
        if (model->params.v[i].type == TYPE_INPUT)
            name[n++] = model->params.v[i].name;
    for (int i = 0; i < outputs.n && i < RT_OUTPUTS; i++)
        name[n++] = outputs.v[i]->name;
    if (outputs.n == 0)
        name[n++] = "output";
    for (int i = 0; i < t->r->ntarget; i++)
        name[n++] = target_name(&t->r->target[i]);
    return n;
}

/* Checks a loss, or a term of one: the name of an op, or an expression. */
static void check_loss(Train *t, Expr *e)
{
    const char *names[LOSS_NAMES];
    Callee c;
    if (e->kind == EX_STRING) {
        diag_error(t->u->diag, e->span, "the loss is an op, this is a string");
        diag_help(t->u->diag, "write it without quotes: loss = %s", *e->s ? e->s : "mse");
        diag_replace(t->u->diag, arena_printf(t->u->arena, "\"%s\"", e->s), *e->s ? e->s : "mse");
        e->bad = true;
    } else if (e->kind != EX_NAME) {
        sem_expr(t->u, e, names, loss_names_of(t, names));
    } else if (!callee_find(t->u, e->s, &c)) {
        e->bad = true;
        if (t->u->decls.broken) /* its definition may have a syntax error */
            return;
        const char **op = NULL;
        int n = 0;
        for (int i = 0; i < op_count(); i++)
            if (!(op_at(i)->flags & (OP_HIDDEN | OP_ELEMENTWISE)))
                ARENA_PUSH(t->u->arena, op, n, op_at(i)->name);
        diag_error(t->u->diag, e->span, "there is no loss '%s'", e->s);
        if (strcmp(e->s, "terms") == 0)
            diag_help(t->u->diag, "write its terms: terms(fit = mse, small = 0.001 * l2(output))");
        else if (suggest_loss(t->u, e->s))
            return;
        else if (text_nearest(e->s, op, n))
            diag_suggest(t->u->diag, e->s, op, n);
        else
            diag_help(t->u->diag,
                      "losses are softmax_cross_entropy, sigmoid_cross_entropy, mse, "
                      "l1, huber, or an op of your own that computes one number for "
                      "each sample from the output and the %s; tenon ops explains them",
                      t->r->target->kind ? "target" : "label");
    }
}

static void read_loss(Train *t, Expr *e)
{
    const Args *terms = terms_of(t->u, e);
    t->loss = e;
    if (!terms) {
        check_loss(t, e);
        return;
    }
    e->bad = !terms_check(t->u, e, terms);
    for (int i = 0; i < terms->n; i++) {
        check_loss(t, terms->v[i].value);
        e->bad |= terms->v[i].value->bad;
    }
}

static void read_metrics(Train *t, Expr *e)
{
    const char *names[LOSS_NAMES];
    const int n = loss_names_of(t, names);
    measures_read(t->u, t->r, e, t->measure);
    for (int i = 0; i < t->r->nmeasure; i++) {
        const Measure *m = &t->r->measure[i];
        for (int k = 0; k < n; k++)
            if (strcmp(m->name, names[k]) == 0) {
                diag_error(t->u->diag, m->span, "'%s' is an input, output or target", m->name);
                diag_help(t->u->diag, "give the metric another name: own_%s", m->name);
                break;
            }
        sem_expr(t->u, t->measure[i], names, n);
    }
}

static void read_optimizer(Train *t, Expr *e)
{
    const Form *f = form_read(t->u, e, "optimizer", t->key->forms, &t->r->optimizer);
    if (f)
        t->r->optimizer.kind = (OptKind)f->tag;
    if (f && t->r->optimizer.nesterov && t->r->optimizer.momentum == 0) {
        diag_error(t->u->diag, e->span, "nesterov needs a momentum above 0");
        diag_help(t->u->diag, "add momentum = 0.9");
    }
    if (f && f->tag == OPT_LARS && t->r->optimizer.trust == 0) {
        diag_error(t->u->diag, e->span, "with trust = 0, no matrix would change");
        diag_help(t->u->diag, "give a factor above 0, or leave it out: its default is 0.001");
    }
}

static void read_schedule(Train *t, Expr *e)
{
    const Form *f = form_read(t->u, e, "schedule", t->key->forms, &t->r->schedule);
    if (f)
        t->r->schedule.kind = (SchedKind)f->tag;
    t->r->schedule.watch.span = e->span;
}

static void read_init(Train *t, Expr *e)
{
    InitForm v = {0};
    const Form *f = form_read(t->u, e, "initialisation", t->key->forms, &v);
    if (!f)
        return;
    t->r->init = (Init){.kind = (InitKind)f->tag,
                        .gaussian = v.dist != 0,
                        .fan = (Fan)v.fan,
                        .a = v.a,
                        .b = v.b};
    if (f->tag == INIT_UNIFORM && v.a > v.b)
        diag_error(t->u->diag, e->span, "uniform's low %g is above its high %g", v.a, v.b);
}

static void read_clip(Train *t, Expr *e)
{
    const int n = e->kind == EX_LIST ? e->list.n : 1;
    const Form *first = NULL;
    for (int i = 0; i < n; i++) {
        Expr *one = e->kind == EX_LIST ? e->list.v[i] : e;
        const Form *f = form_read(t->u, one, "clipping", t->key->forms, t->r);
        if (f && f == first) {
            diag_error(t->u->diag, one->span, "clipping by %s is given twice", f->name);
        } else if (f && (f->tag ? t->r->clip_value : t->r->clip_norm) == 0) {
            diag_error(t->u->diag, one->span, "clipping by %s to 0 would leave no gradient",
                       f->name);
            diag_help(t->u->diag, "give a limit above 0, or none at all: clip = []");
        }
        first = first ? first : f;
    }
}

static void read_resize(Train *t, Expr *e)
{
    int i = 0;
    form_word(t->u, e, &t->key->field, &i);
    t->r->resize = i == 1;
    t->r->resize_span = e->span;
}

static void read_normalize(Train *t, Expr *e)
{
    const Form *f = form_read(t->u, e, "normalization", t->key->forms, &t->r->normalize);
    if (f)
        t->r->normalize.kind = (NormKind)f->tag;
    t->r->normalize.span = e->span;
}

static void complete(double *bound, double low, double high)
{
    if (bound[1] == 0)
        bound[0] = low, bound[1] = high;
}

static void read_augment(Train *t, Expr *e)
{
    const int n = e->kind == EX_LIST ? e->list.n : 1;
    const Form *seen[AUGMENTS] = {0};
    Augment *a = &t->r->augment;
    for (int i = 0; i < n; i++) {
        Expr *one = e->kind == EX_LIST ? e->list.v[i] : e;
        const Form *f = form_read(t->u, one, "augmentation", t->key->forms, a);
        if (f && seen[f->tag])
            diag_error(t->u->diag, one->span, "%s is given twice", f->name);
        else if (f)
            seen[f->tag] = f;
    }
    if (seen[AUGMENT_CROP] && seen[AUGMENT_SHIFT])
        diag_error(t->u->diag, e->span,
                   "random_crop and shift both move the image: give one of them");
    a->given = n > 0;
    a->edge = seen[AUGMENT_SHIFT] != NULL;
    a->flip = seen[AUGMENT_FLIP] != NULL;
    a->upside = seen[AUGMENT_UPSIDE] != NULL;
    a->crop = seen[AUGMENT_RESIZED_CROP] != NULL;
    complete(a->crop_area, 0.08, 1);
    complete(a->crop_ratio, 3.0 / 4, 4.0 / 3);
    complete(a->erase_area, 0.02, 0.33);
    complete(a->erase_aspect, 0.3, 3.3);
    a->span = e->span;
}

static void read_average(Train *t, Expr *e)
{
    const Form *f = form_read(t->u, e, "average", t->key->forms, &t->r->average);
    if (f)
        t->r->average.kind = (AverageKind)f->tag;
    t->r->average.span = e->span;
}

static void read_keep(Train *t, Expr *e)
{
    form_read(t->u, e, "choice of weights", t->key->forms, &t->r->keep);
    t->r->keep.span = e->span;
}

static void read_stop(Train *t, Expr *e)
{
    form_read(t->u, e, "end of training", t->key->forms, &t->r->stop);
    t->r->stop.span = e->span;
}

static void read_expect(Train *t, Expr *e)
{
    expect_read(t->u, t->r, e);
}

static void read_dtype(Train *t, Expr *e)
{
    int i = 0;
    form_word(t->u, e, &t->key->field, &i);
    t->r->dtype = dtype_words[i];
}

static void read_whole(Train *t, Expr *e)
{
    const Field *f = &t->key->field;
    double v;
    if (form_number(t->u, e, t->key->name, f, &v))
        *(int64_t *)(void *)((char *)t->r + f->at) = (int64_t)v;
}

static void read_start(Train *t, Expr *e)
{
    start_read(t->u, t->r, e, t->key->forms);
}

static void read_factors(Train *t, Expr *e)
{
    factors_read(t->u, t->r, e);
}

static void read_freeze(Train *t, Expr *e)
{
    factors_read_freeze(t->u, t->r, e);
}

/* clang-format off */
#define WHOLE(key, fallback, low, high)                                                            \
    {#key, WANT_INT, offsetof(Recipe, key), fallback, low, high, false, NULL, 0, NULL}
#define WORDS(key, list) {.name = #key, .want = WANT_WORD, .words = list}
const TrainKey train_key_table[] = {
    {.name = "data", .read = read_data, .example = "data = mnist", .forms = data_forms,
     .bound = true,
     .about = "The data set. The program's --data replaces its name or directory. [Own "
              "data](../how-to/own-data.md) describes the files."},
    {.name = "target", .read = read_targets, .bound = true,
     .fallback = "a class for each sample, or for each position: the name `label` in a loss",
     .about = "What the output is compared with. `price: f32[1]` declares one number for each "
              "sample, and `mask: f32[1, 64, 64]` an image: name and shape. The data hold these "
              "numbers beside the samples. The name of an input, such as `image`, makes the "
              "sample itself the target (autoencoder). `digit: class` gives the label another "
              "name, and `mask: class[64, 64]` is a class for each pixel. `(digit: class, "
              "brightness: f32[1])` declares several targets, each with its own array: [several "
              "outputs and targets](../how-to/several-outputs.md)."},
    {.name = "normalize", .read = read_normalize, .forms = normalize_forms, .bound = true,
     .fallback = "`none`",
     .about = "Normalisation of the samples, in training, tests and predictions."},
    {.name = "augment", .read = read_augment, .forms = augment_forms, .bound = true,
     .fallback = "`[]`",
     .about = "One form, or a list of forms: random changes of images, in training only. They are "
              "drawn anew for each sample and epoch, from the seed. "
              "random_crop and shift exclude each other. The order of the list does not matter: "
              "random_resized_crop, rotate and scale, random_crop or shift, flips, brightness, "
              "contrast, saturation, hue, cutout, erase. Those before brightness move pixels, and "
              "move a target that is an image or mask of the same height and width in the same "
              "way: [masks](../how-to/masks.md#augmentations). No number is cut off to the range "
              "of 0 to 1. mixup and cutmix come last: [mixtures](../how-to/images.md#mixtures)."},
    {.name = "resize", .read = read_resize, .field = WORDS(resize, resize_words), .bound = true,
     .fallback = "`none`",
     .about = "With `bilinear`, images of any height and width are stretched to the size of the "
              "input, before everything else. "
              "Sampling is at half pixels, as in PyTorch without antialiasing. Not together with "
              "per_pixel_mean."},
    {.name = "loss", .read = read_loss, .example = "loss = softmax_cross_entropy",
     .losses = loss_names, .bound = true,
     .about = "The number that training minimises: an operation of the model's output and the "
              "label or target, or an expression over `output`, inputs and `label` (or the target "
              "by its name) that has one number for each sample. The program's loss is the mean "
              "over the batch. `terms(fit = mse, small = 0.001 * l2(output))` is the sum of named "
              "terms, and each term is reported as `loss_fit`, `loss_small`. With several outputs "
              "or targets, the loss names what it compares: `mse(size, area)`."},
    {.name = "metrics", .read = read_metrics, .fallback = "`[]`", .forms = measure_forms,
     .about = "One of `larger(NAME = EXPRESSION)`, `smaller(...)` and `report(...)`, or a list of "
              "them: metrics of your own, up to 8. Each is the mean over the samples of an "
              "expression over outputs, inputs and targets that has one number for each sample, "
              "as a loss. "
              "Evaluations compute and report it as `test_NAME` and `validation_NAME`; a training "
              "step does not. The form says which values are better for `keep`, `stop` and "
              "`plateau`: larger ones, smaller ones, or neither. [Metrics of your "
              "own](language.md#metrics-of-your-own) has an example."},
    {.name = "optimizer", .read = read_optimizer, .example = "optimizer = sgd(lr = 0.05)",
     .forms = optimizer_forms, .bound = true,
     .about = "The update of a parameter w by g, the gradient of the mean loss. By default "
              "parameters of one dimension have no weight decay: "
              "biases, and scales and shifts of norms. See [factors](#factors)."},
    {.name = "schedule", .read = read_schedule, .forms = schedule_forms, .bound = true,
     .fallback = "`constant`",
     .about = "The learning rate after t finished epochs; t has fractions. cosine and polynomial "
              "end after the recipe's epochs. "
              "The program's --epochs makes a run shorter or longer and changes no rate; after the "
              "last of the recipe's epochs the rate stays at its end."},
    {.name = "init", .read = read_init, .forms = init_forms, .bound = true,
     .fallback = "`xavier(dist = \"uniform\", fan = \"avg\", magnitude = 3)`",
     .about = "The initial values of weights of two or more dimensions. Fans of a convolution (O, "
              "I, H, W): in = I H W, out = O H W. "
              "Of a dense layer (O, I): in = I, out = O. Biases begin at 0, scales of norms at 1, "
              "the forget gate's bias of lstm at forget_bias."},
    {.name = "start", .read = read_start, .forms = start_forms, .fallback = "`initial`",
     .about = "The weights with which a run begins: [fine-tuning](../how-to/fine-tuning.md). In "
              "patterns of parameter names, `*` matches any characters, `?` one. A pattern that "
              "fits no parameter is an error. The program's --weights replaces this key, and a "
              "resumed run continues with the weights of its checkpoint."},
    {.name = "factors", .read = read_factors, .forms = factor_forms, .bound = true,
     .fallback = "`decay(\"*\", 0)` for parameters of one dimension",
     .about = "One form, or a list of forms. Of several that fit a parameter, the last one counts. "
              "A pattern that fits no parameter is an error."},
    {.name = "freeze", .read = read_freeze, .bound = true, .fallback = "`[]`",
     .about = "A pattern of parameter names as a string, or a list of such patterns. These "
              "parameters are not trained, and no gradient is computed for them. "
              "Running averages of batch_norm go on."},
    {.name = "clip", .read = read_clip, .forms = clip_forms, .bound = true, .fallback = "`[]`",
     .about = "One form, or a list of both: bounds of the gradients, before the update."},
    {.name = "batch", .read = read_whole, .field = WHOLE(batch, 128, 1, 1 << 24), .bound = true,
     .about = "Samples in a step, over all shards and ranks."},
    {.name = "shards", .read = read_whole, .field = WHOLE(shards, 0, 1, 1 << 16), .bound = true,
     .fallback = "1 with batch_norm without sync = true; else the largest of 8, 4, 2, 1 whose "
                 "shards have 8 samples or more",
     .about = "Equal parts of the batch; it divides the batch. Ranks share the shards. batch_norm "
              "takes its statistics over a shard. So another number of shards "
              "is another training."},
    {.name = "epochs", .read = read_whole, .field = WHOLE(epochs, 12, 1, 1e6),
     .about = "Passes over the training set. The program's --epochs replaces it for a run."},
    {.name = "seed", .read = read_whole, .field = WHOLE(seed, 1, 0, 4294967295.0), .bound = true,
     .about = "Seed of the initial values, the order of samples, dropout and augmentation. The "
              "program's --seed replaces it for a run."},
    {.name = "dtype", .read = read_dtype, .field = WORDS(dtype, dtype_words), .bound = true,
     .fallback = "`f32`",
     .about = "The number type of the computation. bf16: factors of products and values between "
              "products have two bytes. --dtype of tenon build has further types for GPUs."},
    {.name = "average", .read = read_average, .forms = average_forms, .bound = true,
     .fallback = "no average: the trained weights themselves",
     .about = "Averages of the trained weights, beside the weights. Evaluations, `--save` and "
              "`predict` use the averages, and training goes on with the weights: [averaged "
              "weights](../how-to/own-data.md#averaged-weights)."},
    {.name = "keep", .read = read_keep, .forms = keep_forms,
     .fallback = "the weights of the last epoch",
     .about = "Which weights a run leaves. With `best`, the program keeps a copy of the weights of "
              "the best epoch; `--save` writes them, and the last test evaluates them. The data "
              "need a validation split: [choose the best "
              "epoch](../how-to/own-data.md#choose-the-best-epoch)."},
    {.name = "stop", .read = read_stop, .forms = stop_forms,
     .fallback = "training ends after all epochs",
     .about = "When training ends before its last epoch. The data need a validation split. A "
              "resumed run continues the counts of its checkpoint."},
    {.name = "expect", .read = read_expect, .field = WORDS(expect, expect_results),
     .fallback = "no expectation",
     .about = "The result that a full run must reach: a metric, one of `> >= < <=`, and a number. "
              "It is compared at the end of a run without --epochs and --limit-samples; "
              "the program's --strict makes a miss exit code 1. Perplexity exists for data = "
              "text(...) with the plain softmax_cross_entropy, accuracy for classes, auc (the area "
              "under the ROC curve) for one output with two classes, mae and rmse for a target "
              "that is numbers, and r2 if such a target is a number or a vector. Accuracy also "
              "exists for truths, the numbers from 0 to 1 that sigmoid_cross_entropy compares; "
              "iou and dice exist for a mask of truths. With several targets, the name of a "
              "metric ends in the name of its target: "
              "`test_accuracy_digit`."},
    {0}};
#undef WHOLE
#undef WORDS
/* clang-format on */
enum { KEYS = sizeof train_key_table / sizeof *train_key_table - 1 };

const char *const *train_keys(int *n)
{
    static const char *name[KEYS];
    for (int i = 0; i < KEYS; i++)
        name[i] = train_key_table[i].name;
    *n = KEYS;
    return name;
}

/* ---- the block */

Recipe train_defaults(const char *model)
{
    Recipe r = {.model = model,
                .ntarget = 1,
                .dtype = dtype_words[0],
                .init = {.kind = INIT_XAVIER, .fan = FAN_AVG, .a = 3},
                .data = {.scale = 1.0 / 255}};
    for (const TrainKey *k = train_key_table; k->name; k++)
        if (k->field.want == WANT_INT)
            *(int64_t *)(void *)((char *)&r + k->field.at) = (int64_t)k->field.fallback;
    return r;
}

static int key_index(const char *name)
{
    int i = 0;
    while (i < KEYS && strcmp(train_key_table[i].name, name) != 0)
        i++;
    return i < KEYS ? i : -1;
}

const TrainKey *train_key_find(const char *name)
{
    const int i = key_index(name);
    return i < 0 ? NULL : &train_key_table[i];
}

/* The index of a key; -1 after an error.  If the word is probably a misspelt key, sets meant[] of
 * that key, so that the key is not reported as missing. */
static int find_key(Unit *u, const Entry *e, bool *meant)
{
    const int i = key_index(e->key);
    if (i >= 0)
        return i;
    int n;
    const char *const *name = train_keys(&n);
    diag_error(u->diag, e->key_span, "a train block has no key '%s'", e->key);
    if (strcmp(e->key, "vocab") == 0)
        diag_help(u->diag, "it is an argument of the data: data = \"directory\"(vocab = 65)");
    else
        suggest(u->diag, e->key, name, n, "its keys");
    const char *near = text_nearest(e->key, name, n);
    if (near)
        meant[key_index(near)] = true;
    return -1;
}

/* Checks batch = shards * n; the help names numbers of shards that fit. */
static void check_shards(Unit *u, const Recipe *r, Span at)
{
    if (!r->shards || r->batch % r->shards == 0)
        return;
    const char *fits = "1";
    for (int64_t g = 2, shown = 1; g <= r->batch && shown < 10; g++)
        if (r->batch % g == 0) {
            fits = arena_printf(u->arena, "%s, %lld", fits, (long long)g);
            shown++;
        }
    diag_error(u->diag, at, "%lld shards do not divide a batch of %lld", (long long)r->shards,
               (long long)r->batch);
    diag_help(u->diag, "these fit: %s", fits);
}

/* Reads the value of a key, once. */
static void read_key(Train *t, const TrainKey *key, Expr *e)
{
    t->key = key;
    if (t->done[key - train_key_table])
        return;
    t->done[key - train_key_table] = true;
    if ((e->kind != EX_TYPED && e->kind != EX_TARGETS) || key->read == read_targets) {
        key->read(t, e);
        return;
    }
    e->bad = true;
    if (e->kind == EX_TARGETS) {
        diag_error(t->u->diag, e->span, "'%s' is one value, and these are several", key->name);
        diag_help(t->u->diag, "only targets are given in parentheses: target = (digit: class, "
                              "size: f32[1])");
        return;
    }
    diag_error(t->u->diag, e->span, "'%s' is a value, and this declares '%s'", key->name,
               e->typed->name);
    diag_help(t->u->diag, "only a target is declared: target = %s: %s[1]", e->typed->name,
              e->typed->type);
}

/* Reads the first entry of this key before all others. */
static void read_first(Train *t, const Decl *train, const char *key)
{
    for (int i = 0; i < train->entries.n; i++)
        if (strcmp(train->entries.v[i].key, key) == 0) {
            read_key(t, train_key_find(key), train->entries.v[i].value);
            return;
        }
}

void train_read(Unit *u, Decl *train, Recipe *out, Expr **loss, Expr *measure[RT_MEASURES])
{
    const Entry *given[KEYS] = {0};
    bool meant[KEYS] = {0}, done[KEYS] = {0};
    Train t = {.u = u, .r = out, .measure = measure, .done = done};
    *out = train_defaults(train->name);
    out->present = true;
    out->span = train->name_span;
    u->recipe = out;
    read_first(&t, train, "target");  /* the loss uses the name of the target */
    read_first(&t, train, "metrics"); /* expect, keep, stop and schedule use names of metrics */
    for (int i = 0; i < train->entries.n; i++) {
        const Entry *e = &train->entries.v[i];
        const int k = find_key(u, e, meant);
        if (k >= 0 && given[k]) {
            diag_error(u->diag, e->key_span, "the key '%s' is given twice", e->key);
            diag_note(u->diag, "the first one is on line %d", given[k]->key_span.line);
        } else if (k >= 0) {
            given[k] = e;
            read_key(&t, &train_key_table[k], e->value);
        }
    }
    for (int k = 0; k < KEYS; k++)
        if (!given[k] && !meant[k] && train_key_table[k].example && !train->entries.broken) {
            diag_error(u->diag, train->name_span, "the train block of '%s' has no '%s'",
                       train->name, train_key_table[k].name);
            diag_help(u->diag, "add a line such as: %s", train_key_table[k].example);
            if (train->entries.n)
                diag_append(u->diag, train->entries.v[train->entries.n - 1].value->span,
                            train_key_table[k].example);
        }
    for (int k = 0; k < KEYS; k++)
        if (given[k] && strcmp(train_key_table[k].name, "shards") == 0)
            check_shards(u, out, given[k]->value->span);
        else if (given[k] && strcmp(train_key_table[k].name, "schedule") == 0 &&
                 out->schedule.warmup > (double)out->epochs)
            diag_warn(u->diag, given[k]->value->span,
                      "a warm-up of %g epochs does not end in a run of %lld", out->schedule.warmup,
                      (long long)out->epochs);
    *loss = t.loss;
    u->recipe = NULL;
}
