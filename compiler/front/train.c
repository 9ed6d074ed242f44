/* train.c -- the train block: its keys, their forms, ranges and defaults. */
#include "front/train.h"
#include "base/text.h"
#include <math.h>
#include <stddef.h>
#include <string.h>

#define REQUIRED NAN

/* ---- forms: tables, a row a form and a field each */

/* clang-format off */
#define O(member) offsetof(Optimizer, member)
#define LR(fallback) {"lr", WANT_REAL, O(lr), fallback, 0, INFINITY, false, NULL, 0}
#define SHARE(name, member, fallback) {name, WANT_REAL, O(member), fallback, 0, 1, true, NULL, 0}
#define DECAY(fallback)                                                                            \
    {"weight_decay", WANT_REAL, O(weight_decay), fallback, 0, INFINITY, false, NULL, 0}
#define EPS(fallback) {"eps", WANT_REAL, O(eps), fallback, 0, INFINITY, false, NULL, 0}
static const Form optimizers[] = {
    {"sgd", OPT_SGD, {LR(REQUIRED), SHARE("momentum", momentum, 0), DECAY(0),
                      {"nesterov", WANT_FLAG, O(nesterov), 0, 0, 1, false, NULL, 0}}},
    {"rmsprop", OPT_RMSPROP, {LR(1e-3), SHARE("rho", rho, 0.9), SHARE("momentum", momentum, 0),
                              EPS(1e-7), DECAY(0)}},
    {"adam", OPT_ADAM, {LR(1e-3), SHARE("beta1", beta1, 0.9), SHARE("beta2", beta2, 0.999),
                        EPS(1e-8), DECAY(0)}},
    {"adamw", OPT_ADAMW, {LR(1e-3), SHARE("beta1", beta1, 0.9), SHARE("beta2", beta2, 0.999),
                          EPS(1e-8), DECAY(0.01)}},
    {0}};
#undef O
#undef LR
#undef SHARE
#undef DECAY
#undef EPS

#define O(member) offsetof(Schedule, member)
#define EPOCHS(name, fallback) {name, WANT_REAL, O(warmup), fallback, 0, 1e6, false, NULL, 0}
#define END {"end", WANT_REAL, O(end), 0, 0, 1, false, NULL, 0}
static const Form schedules[] = {
    {"constant", SCHED_CONSTANT, {EPOCHS("warmup", 0)}},
    {"step", SCHED_STEP, {{"at", WANT_RISING, O(at), REQUIRED, 0, 1e6, false, NULL, O(nat)},
                          {"factor", WANT_REAL, O(factor), 0.1, 0, INFINITY, false, NULL, 0},
                          EPOCHS("warmup", 0)}},
    {"cosine", SCHED_COSINE, {END, EPOCHS("warmup", 0)}},
    {"polynomial", SCHED_POLYNOMIAL, {{"power", WANT_REAL, O(power), 1, 0, 100, false, NULL, 0}, END,
                                      EPOCHS("warmup", 0)}},
    {"warmup", SCHED_CONSTANT, {EPOCHS("epochs", REQUIRED)}},
    {0}};
#undef O
#undef EPOCHS
#undef END

typedef struct InitForm { int dist, fan; double a, b; } InitForm;
static const char *const dist_words[] = {"uniform", "gaussian", "normal", NULL};
static const char *const fan_words[] = {"in", "out", "avg", NULL};
#define O(member) offsetof(InitForm, member)
#define DIST(fallback) {"dist", WANT_WORD, O(dist), fallback, 0, 0, false, dist_words, 0}
#define FANS(fallback) {"fan", WANT_WORD, O(fan), fallback, 0, 0, false, fan_words, 0}
#define REAL(name, member, fallback, low)                                                          \
    {name, WANT_REAL, O(member), fallback, low, INFINITY, false, NULL, 0}
static const Form inits[] = {
    {"xavier", INIT_XAVIER, {DIST(0), FANS(FAN_AVG), REAL("magnitude", a, 3, 0)}},
    {"glorot", INIT_GLOROT, {DIST(0)}},
    {"he", INIT_HE, {DIST(2), FANS(FAN_IN)}},
    {"lecun", INIT_LECUN, {DIST(2)}},
    {"orthogonal", INIT_ORTHOGONAL, {REAL("gain", a, 1, 0)}},
    {"uniform", INIT_UNIFORM, {REAL("low", a, -0.05, -INFINITY), REAL("high", b, 0.05, -INFINITY)}},
    {"normal", INIT_NORMAL, {REAL("mean", a, 0, -INFINITY), REAL("std", b, 0.01, 0)}},
    {"constant", INIT_CONSTANT, {REAL("value", a, REQUIRED, -INFINITY)}},
    {0}};
#undef O
#undef DIST
#undef FANS
#undef REAL

#define LIMIT(member)                                                                              \
    {"limit", WANT_REAL, offsetof(Recipe, member), REQUIRED, 0, INFINITY, false, NULL, 0}
static const Form clips[] = {
    {"norm", 0, {LIMIT(clip_norm)}},
    {"value", 1, {LIMIT(clip_value)}},
    {0}};
#undef LIMIT

#define O(member) offsetof(Normalize, member)
#define LIST(name, low) {#name, WANT_REALS, O(name), REQUIRED, low, INFINITY, false, NULL, O(n##name)}
static const Form normalizations[] = {
    {"per_channel", NORM_CHANNEL, {LIST(mean, -INFINITY), LIST(std, 1e-6)}},
    {"per_pixel_mean", NORM_PIXEL, {{0}}},
    {"none", NORM_NONE, {{0}}},
    {0}};
#undef O
#undef LIST

enum { AUGMENT_CROP, AUGMENT_SHIFT, AUGMENT_FLIP, AUGMENT_CUTOUT, AUGMENT_BRIGHTNESS, AUGMENTS };
#define O(member) offsetof(Augment, member)
#define PIXELS(name, member) {name, WANT_INT, O(member), REQUIRED, 1, 65536, false, NULL, 0}
static const Form augmentations[] = {
    {"random_crop", AUGMENT_CROP, {PIXELS("pad", shift)}},
    {"shift", AUGMENT_SHIFT, {PIXELS("pixels", shift)}},
    {"flip_horizontal", AUGMENT_FLIP, {{0}}},
    {"cutout", AUGMENT_CUTOUT, {PIXELS("size", cutout)}},
    {"brightness", AUGMENT_BRIGHTNESS, {{"range", WANT_REAL, O(brightness), REQUIRED, 0, 1, false, NULL, 0}}},
    {0}};
#undef O
#undef PIXELS

#define O(member) offsetof(DataSpec, member)
#define SCALE {"scale", WANT_REAL, O(scale), 1.0 / 255, -INFINITY, INFINITY, false, NULL, 0}
#define VOCAB {"vocab", WANT_INT, O(vocab), 0, 1, INT32_MAX, false, NULL, 0}
#define COUNT(member, fallback, low)                                                               \
    {#member, WANT_INT, O(member), fallback, low, INT32_MAX, false, NULL, 0}
static const Form synthetic = {"synthetic", 1, {COUNT(samples, 10000, 1), COUNT(test_samples, 1000, 1),
                                                COUNT(classes, 0, 1), SCALE, VOCAB}};
static const char *const fit_words[] = {"crop", "stretch", NULL};
static const Form imagefolder = {"imagefolder", 2, {{"directory", WANT_TEXT, O(name), REQUIRED, 0, 0, false, NULL, 0},
                                                    {"fit", WANT_WORD, O(fit), 0, 0, 0, false, fit_words, 0}, SCALE}};
static const char *const unit_words[] = {"char", "byte", "word", "bpe", NULL};
#define UNIT(fallback) {"unit", WANT_WORD, O(unit), fallback, 0, 0, false, unit_words, 0}
static const Form running_text = {"text", 0, {{"file", WANT_TEXT, O(name), REQUIRED, 0, 0, false, NULL, 0}, UNIT(0), VOCAB,
                                              {"step", WANT_INT, O(step), 0, 1, 1 << 24, false, NULL, 0}}};
static const Form labelled_text = {"tsv", 0, {{"directory", WANT_TEXT, O(name), REQUIRED, 0, 0, false, NULL, 0}, UNIT(2), VOCAB}};
#undef UNIT
static const Form named_data = {"data", 0, {SCALE, VOCAB}};
#undef O
#undef SCALE
#undef VOCAB
#undef COUNT

/* clang-format on */

/* ---- keys */

typedef struct Train {
    Unit *u;
    Recipe *r;
    Expr *loss;
} Train;

/* cifar10, or a directory of that name: programs for other data do without liblzma. */
static bool is_cifar10(const char *name)
{
    const char *slash = strrchr(name, '/');
    return strcmp(slash ? slash + 1 : name, "cifar10") == 0;
}

/* The words of `unit` are those of TextUnit less the first; bytes are 256 at least. */
static void read_text_data(Train *t, Expr *e, bool table)
{
    DataSpec *d = &t->r->data;
    form_fields(t->u, e, table ? &labelled_text : &running_text, d);
    d->unit++;
    d->table = table;
    d->span = e->span;
    d->name = d->name ? d->name : "";
    d->scale = 1;
    const int64_t least = d->unit == TEXT_WORD ? 4 : d->unit == TEXT_CHAR ? 1 : 256;
    if (d->vocab == 0 && d->unit == TEXT_BYTE)
        d->vocab = 256;
    if (d->vocab && d->vocab < least)
        diag_error(t->u->diag, e->span,
                   "a vocabulary of this unit has at least %lld tokens, not %lld", (long long)least,
                   (long long)d->vocab);
}

static void read_data(Train *t, Expr *e)
{
    const Expr *head = e->kind == EX_CALL ? e->a : e; /* mnist, "dir", mnist(...), "dir"(...) */
    const char *name = head->kind == EX_STRING || head->kind == EX_NAME ? head->s : NULL;
    DataSpec *d = &t->r->data;
    if (e->bad)
        return;
    if (!name || !*name) {
        diag_error(t->u->diag, e->span, "the data are a name or a directory");
        diag_help(t->u->diag, "write mnist, \"path/to/directory\" or synthetic(samples = 10000)");
        return;
    }
    if (head->kind == EX_NAME && (strcmp(name, "text") == 0 || strcmp(name, "tsv") == 0)) {
        read_text_data(t, e, strcmp(name, "tsv") == 0);
        return;
    }
    d->images = strcmp(name, "imagefolder") == 0 && head->kind == EX_NAME;
    d->span = e->span;
    if (d->images) {
        form_fields(t->u, e, &imagefolder, d);
        d->name = d->name ? d->name : "";
        return;
    }
    Form form = strcmp(name, "synthetic") == 0 && head->kind == EX_NAME ? synthetic : named_data;
    form.name = name;
    form_fields(t->u, e, &form, d);
    d->name = name;
    d->xz = is_cifar10(name);
}

static void read_loss(Train *t, Expr *e)
{
    static const char *const names[] = {"output", "label"};
    Callee c;
    t->loss = e;
    if (e->kind == EX_STRING) {
        diag_error(t->u->diag, e->span, "the loss is an op, this is a string");
        diag_help(t->u->diag, "write it without quotes: loss = %s", *e->s ? e->s : "mse");
        e->bad = true;
    } else if (e->kind != EX_NAME) {
        sem_expr(t->u, e, names, 2);
    } else if (!callee_find(t->u, e->s, &c)) {
        e->bad = true;
        if (t->u->decls.broken) /* it may be defined in what could not be read */
            return;
        const char **op = NULL;
        int n = 0;
        for (int i = 0; i < op_count(); i++)
            if (!(op_at(i)->flags & OP_HIDDEN))
                ARENA_PUSH(t->u->arena, op, n, op_at(i)->name);
        diag_error(t->u->diag, e->span, "there is no loss '%s'", e->s);
        if (text_nearest(e->s, op, n))
            diag_suggest(t->u->diag, e->s, op, n);
        else
            diag_help(t->u->diag, "losses are softmax_cross_entropy, sigmoid_cross_entropy, mse, or an op of yours that makes one number a sample of "
                                  "the output and the label; tenon ops explains them");
    }
}

static void read_optimizer(Train *t, Expr *e)
{
    const Form *f = form_read(t->u, e, "optimizer", optimizers, &t->r->optimizer);
    if (f)
        t->r->optimizer.kind = (OptKind)f->tag;
    if (f && t->r->optimizer.nesterov && t->r->optimizer.momentum == 0) {
        diag_error(t->u->diag, e->span, "nesterov needs a momentum above 0");
        diag_help(t->u->diag, "add momentum = 0.9");
    }
}

static void read_schedule(Train *t, Expr *e)
{
    const Form *f = form_read(t->u, e, "schedule", schedules, &t->r->schedule);
    if (f)
        t->r->schedule.kind = (SchedKind)f->tag;
}

static void read_init(Train *t, Expr *e)
{
    InitForm v = {0};
    const Form *f = form_read(t->u, e, "initialisation", inits, &v);
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
        const Form *f = form_read(t->u, one, "clipping", clips, t->r);
        if (f && f == first) {
            diag_error(t->u->diag, one->span, "clipping by %s is given twice", f->name);
        } else if (f && (f->tag ? t->r->clip_value : t->r->clip_norm) == 0) {
            diag_error(t->u->diag, one->span, "clipping by %s to 0 would leave no gradient", f->name);
            diag_help(t->u->diag, "give a limit above 0, or none at all: clip = []");
        }
        first = first ? first : f;
    }
}

static void read_resize(Train *t, Expr *e)
{
    static const char *const words[] = {"none", "bilinear", NULL};
    static const Field field = {.name = "resize", .words = words};
    int i = 0;
    form_word(t->u, e, &field, &i);
    t->r->resize = i == 1;
    t->r->resize_span = e->span;
}

static void read_normalize(Train *t, Expr *e)
{
    const Form *f = form_read(t->u, e, "normalization", normalizations, &t->r->normalize);
    if (f)
        t->r->normalize.kind = (NormKind)f->tag;
    t->r->normalize.span = e->span;
}

static void read_augment(Train *t, Expr *e)
{
    const int n = e->kind == EX_LIST ? e->list.n : 1;
    const Form *seen[AUGMENTS] = {0};
    Augment *a = &t->r->augment;
    for (int i = 0; i < n; i++) {
        Expr *one = e->kind == EX_LIST ? e->list.v[i] : e;
        const Form *f = form_read(t->u, one, "augmentation", augmentations, a);
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
    a->span = e->span;
}

/* An accuracy is a share: some comparisons hold for none. */
static void check_possible(Unit *u, const Expect *x, Span at)
{
    const double v = x->value;
    const bool above = x->op[0] == '>', equal = x->op[1] == '=';
    if (strstr(x->metric, "accuracy") && (above ? v > 1 || (v == 1 && !equal) : v < 0 || (v == 0 && !equal)))
        diag_error(u->diag, at, "%s is from 0 to 1, never %s %.10g", x->metric, x->op, v);
}

static void read_expect(Train *t, Expr *e)
{
    static const char *const metric[] = {"test_accuracy", "test_loss",       "train_accuracy",
                                         "train_loss",    "test_perplexity", "train_perplexity"};
    enum { METRICS = sizeof metric / sizeof *metric };
    static const Field any = {"expect", WANT_REAL, 0, 0, -INFINITY, INFINITY, false, NULL, 0};
    int i = 0;
    if (e->bad)
        return;
    if (e->kind != EX_BINARY || e->op < DO_LT || e->op > DO_GE || e->a->kind != EX_NAME) {
        diag_error(t->u->diag, e->span, "'expect' compares a result with a number");
        diag_help(t->u->diag, "write test_accuracy >= 0.99");
        return;
    }
    while (i < METRICS && strcmp(metric[i], e->a->s) != 0)
        i++;
    if (i == METRICS) {
        diag_error(t->u->diag, e->a->span, "there is no result '%s'", e->a->s);
        suggest(t->u->diag, e->a->s, metric, METRICS, "the results");
    } else if (form_number(t->u, e->b, "expect", &any, &t->r->expect.value)) {
        t->r->expect.metric = metric[i];
        t->r->expect.span = e->a->span;
        t->r->expect.op = operator_text(e->op);
        check_possible(t->u, &t->r->expect, e->span);
    }
}

static void read_dtype(Train *t, Expr *e)
{
    static const char *const words[] = {"f32", "f64", NULL};
    static const Field field = {.name = "dtype", .words = words};
    int i = 0;
    form_word(t->u, e, &field, &i);
    t->r->dtype = words[i];
}

static void whole(Train *t, Expr *e, const char *key, double low, double high, int64_t *out)
{
    const Field f = {.name = key, .want = WANT_INT, .low = low, .high = high};
    double v;
    if (form_number(t->u, e, key, &f, &v))
        *out = (int64_t)v;
}

/* clang-format off */
static void read_batch(Train *t, Expr *e) { whole(t, e, "batch", 1, 1 << 24, &t->r->batch); }
static void read_shards(Train *t, Expr *e) { whole(t, e, "shards", 1, 1 << 16, &t->r->shards); }
static void read_epochs(Train *t, Expr *e) { whole(t, e, "epochs", 1, 1e6, &t->r->epochs); }
static void read_seed(Train *t, Expr *e) { whole(t, e, "seed", 0, 4294967295.0, &t->r->seed); }

static void read_factors(Train *t, Expr *e) { factors_read(t->u, t->r, e); }
static void read_freeze(Train *t, Expr *e) { factors_read_freeze(t->u, t->r, e); }

static const struct Key {
    const char *name;
    void      (*read)(Train *t, Expr *e);
    const char *example;                              /* NULL: may be left out */
} keys[] = {
    {"data", read_data, "data = mnist"},
    {"normalize", read_normalize, NULL},
    {"augment", read_augment, NULL},
    {"resize", read_resize, NULL},
    {"loss", read_loss, "loss = softmax_cross_entropy"},
    {"optimizer", read_optimizer, "optimizer = sgd(lr = 0.05)"},
    {"schedule", read_schedule, NULL},
    {"init", read_init, NULL},
    {"factors", read_factors, NULL},
    {"freeze", read_freeze, NULL},
    {"clip", read_clip, NULL},
    {"batch", read_batch, NULL},
    {"shards", read_shards, NULL},
    {"epochs", read_epochs, NULL},
    {"seed", read_seed, NULL},
    {"dtype", read_dtype, NULL},
    {"expect", read_expect, NULL},
};
/* clang-format on */
enum { KEYS = sizeof keys / sizeof *keys };

const char *const *train_keys(int *n)
{
    static const char *name[KEYS];
    for (int i = 0; i < KEYS; i++)
        name[i] = keys[i].name;
    *n = KEYS;
    return name;
}

/* ---- the block */

Recipe train_defaults(const char *model)
{
    return (Recipe){.model = model,
                    .batch = 128,
                    .epochs = 12,
                    .seed = 1,
                    .dtype = "f32",
                    .init = {.kind = INIT_XAVIER, .fan = FAN_AVG, .a = 3},
                    .data = {.scale = 1.0 / 255}};
}

static int key_index(const char *name)
{
    int i = 0;
    while (i < KEYS && strcmp(keys[i].name, name) != 0)
        i++;
    return i < KEYS ? i : -1;
}

/* -1 after reporting; a key that was likely meant is not missed a second time. */
static int find_key(Unit *u, const Entry *e, bool *meant)
{
    const int i = key_index(e->key);
    if (i >= 0)
        return i;
    int n;
    const char *const *name = train_keys(&n);
    diag_error(u->diag, e->key_span, "a train block has no key '%s'", e->key);
    if (strcmp(e->key, "vocab") == 0)
        diag_help(u->diag, "it is said of the data: data = \"directory\"(vocab = 65)");
    else
        suggest(u->diag, e->key, name, n, "its keys");
    const char *near = text_nearest(e->key, name, n);
    if (near)
        meant[key_index(near)] = true;
    return -1;
}

/* batch = shards * n: the help names what fits. */
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

void train_read(Unit *u, Decl *train, Recipe *out, Expr **loss)
{
    const Entry *given[KEYS] = {0};
    bool meant[KEYS] = {0};
    Train t = {u, out, NULL};
    *out = train_defaults(train->name);
    out->present = true;
    out->span = train->name_span;
    for (int i = 0; i < train->entries.n; i++) {
        const Entry *e = &train->entries.v[i];
        const int k = find_key(u, e, meant);
        if (k >= 0 && given[k]) {
            diag_error(u->diag, e->key_span, "the key '%s' is given twice", e->key);
            diag_note(u->diag, "the first one is on line %d", given[k]->key_span.line);
        } else if (k >= 0) {
            given[k] = e;
            keys[k].read(&t, e->value);
        }
    }
    for (int k = 0; k < KEYS; k++)
        if (!given[k] && !meant[k] && keys[k].example && !train->entries.broken) {
            diag_error(u->diag, train->name_span, "the train block of '%s' has no '%s'",
                       train->name, keys[k].name);
            diag_help(u->diag, "add a line such as: %s", keys[k].example);
        }
    for (int k = 0; k < KEYS; k++)
        if (given[k] && strcmp(keys[k].name, "shards") == 0)
            check_shards(u, out, given[k]->value->span);
        else if (given[k] && strcmp(keys[k].name, "schedule") == 0 &&
                 out->schedule.warmup > (double)out->epochs)
            diag_warn(u->diag, given[k]->value->span,
                      "a warm-up of %g epochs does not end in a run of %lld", out->schedule.warmup,
                      (long long)out->epochs);
    *loss = t.loss;
}
