/* recipe_forms.c -- tables of the values of a train block that are written as calls: sgd(lr = 0.1).
 *
 * A row describes a form with its fields, ranges and defaults.  The front end reads train blocks
 * with these tables, and the manual prints the tables.
 */
#include "front/train.h"
#include <math.h>
#include <stddef.h>

#define REQUIRED NAN
#define ANY      -INFINITY, INFINITY, false

/* clang-format off */
#define O(member) offsetof(Optimizer, member)
#define LR(fallback)                                                                               \
    {"lr", WANT_REAL, O(lr), fallback, 0, INFINITY, false, NULL, 0, "learning rate; 0 is allowed"}
#define SHARE(name, member, fallback, about)                                                       \
    {name, WANT_REAL, O(member), fallback, 0, 1, true, NULL, 0, about}
#define DECAY(fallback, about)                                                                     \
    {"weight_decay", WANT_REAL, O(weight_decay), fallback, 0, INFINITY, false, NULL, 0, about}
#define EPS(fallback)                                                                              \
    {"eps", WANT_REAL, O(eps), fallback, 0, INFINITY, false, NULL, 0, "added to the square root"}
#define L2 "weight decay, added to the gradient"
#define MOMENTS                                                                                    \
    SHARE("beta1", beta1, 0.9, "share of the mean that is kept"),                                  \
    SHARE("beta2", beta2, 0.999, "share of the mean square that is kept")
#define NESTEROV                                                                                   \
    {"nesterov", WANT_FLAG, O(nesterov), 0, 0, 1, false, NULL, 0,                                  \
     "Nesterov's momentum; needs a momentum above 0"}
const Form optimizer_forms[] = {
    {"sgd", OPT_SGD, {LR(REQUIRED),
                      SHARE("momentum", momentum, 0, "share of the last step that is kept"),
                      DECAY(0, L2),
                      NESTEROV},
     "stochastic gradient descent",
     "g += weight_decay w\nv = momentum v + g\nw -= lr v   nesterov: w -= lr (g + momentum v)"},
    {"rmsprop", OPT_RMSPROP, {LR(1e-3),
                              SHARE("rho", rho, 0.9, "share of the mean square that is kept"),
                              SHARE("momentum", momentum, 0, "share of the last step that is kept"),
                              EPS(1e-7), DECAY(0, L2)},
     "gradient divided by its running root mean square",
     "g += weight_decay w\ns = rho s + (1 - rho) g^2\nv = momentum v + g / (sqrt(s) + eps)\n"
     "w -= lr v"},
    {"adam", OPT_ADAM, {LR(1e-3), MOMENTS, EPS(1e-8), DECAY(0, L2)},
     "Adam, in PyTorch's form",
     "g += weight_decay w\nm = beta1 m + (1 - beta1) g\ns = beta2 s + (1 - beta2) g^2\n"
     "w -= lr (m / (1 - beta1^t)) / (sqrt(s / (1 - beta2^t)) + eps)   t = steps done, from 1"},
    {"adamw", OPT_ADAMW, {LR(1e-3), MOMENTS, EPS(1e-8),
                          DECAY(0.01, "weight decay, apart from the gradient")},
     "Adam with decoupled weight decay",
     "w -= lr weight_decay w   then adam without weight decay"},
    {"adagrad", OPT_ADAGRAD, {LR(1e-2), EPS(1e-10), DECAY(0, L2)},
     "gradient divided by the root of the sum of all squares",
     "g += weight_decay w\ns += g^2\nw -= lr g / (sqrt(s) + eps)"},
    {"lion", OPT_LION, {LR(1e-4), SHARE("beta1", beta1, 0.9, "share of the mean in the step"),
                        SHARE("beta2", beta2, 0.99, "share of the mean that is kept"),
                        DECAY(0, "weight decay, apart from the gradient")},
     "steps of one size, in the direction of a running mean: Chen et al. 2023",
     "w -= lr weight_decay w\nw -= lr sign(beta1 m + (1 - beta1) g)   sign(0) = 0\n"
     "m = beta2 m + (1 - beta2) g"},
    {"lars", OPT_LARS, {LR(REQUIRED),
                        SHARE("momentum", momentum, 0.9, "share of the last step that is kept"),
                        {"trust", WANT_REAL, O(trust), 1e-3, 0, INFINITY, true, NULL, 0,
                         "factor of the trust ratio q"},
                        DECAY(0, L2),
                        NESTEROV},
     "sgd for large batches, with a rate for each parameter: You et al. 2017",
     "q = trust |w| / (|g| + weight_decay |w|)   norms of the parameter; q = 1 if |w| or |g| is 0\n"
     "v = momentum v + q (g + weight_decay w)\nw -= lr v   nesterov: as in sgd\n"
     "q = 1 for biases and the parameters of normalization layers"},
    {"lamb", OPT_LAMB, {LR(1e-3), MOMENTS, EPS(1e-6),
                        DECAY(0.01, "weight decay, added to Adam's step")},
     "Adam for large batches, with a rate for each parameter: You et al. 2020",
     "u = adam's (m / (1 - beta1^t)) / (sqrt(s / (1 - beta2^t)) + eps) + weight_decay w\n"
     "q = |w| / |u|   norms of the parameter; q = 1 if |w| or |u| is 0\nw -= lr q u\n"
     "q = 1 for biases and the parameters of normalization layers"},
    {0}};
#undef O
#undef LR
#undef SHARE
#undef DECAY
#undef EPS
#undef MOMENTS
#undef NESTEROV

#define O(member) offsetof(Schedule, member)
#define EPOCHS(name, fallback)                                                                     \
    {name, WANT_REAL, O(warmup), fallback, 0, 1e6, false, NULL, 0,                                 \
     "epochs in which the rate grows linearly from 0 to lr"}
#define END {"end", WANT_REAL, O(end), 0, 0, 1, false, NULL, 0, "share of lr at the end"}
const Form schedule_forms[] = {
    {"constant", SCHED_CONSTANT, {EPOCHS("warmup", 0)}, "the same rate in every step", "lr"},
    {"step", SCHED_STEP, {{"at", WANT_RISING, O(at), REQUIRED, 0, 1e6, false, NULL, O(nat),
                           "finished epochs after which the rate falls"},
                          {"factor", WANT_REAL, O(factor), 0.1, 0, INFINITY, false, NULL, 0,
                           "factor of the rate at each of these epochs"},
                          EPOCHS("warmup", 0)},
     "a rate that falls at given epochs",
     "lr factor^k   k = how many of the epochs in at are finished"},
    {"cosine", SCHED_COSINE, {END, EPOCHS("warmup", 0)},
     "a rate that falls along half a cosine",
     "lr (end + (1 - end) (1 + cos(pi s)) / 2)   s = (t - warmup) / (epochs - warmup)"},
    {"polynomial", SCHED_POLYNOMIAL, {{"power", WANT_REAL, O(power), 1, 0, 100, false, NULL, 0,
                                       "the exponent"},
                                      END, EPOCHS("warmup", 0)},
     "a rate that falls along a power",
     "lr (end + (1 - end) (1 - s)^power)   s = (t - warmup) / (epochs - warmup)"},
    {"one_cycle", SCHED_ONE_CYCLE, {{"rise", WANT_REAL, O(rise), 0.3, 0, 1, true, NULL, 0,
                                     "share of the epochs in which the rate grows"},
                                    {"start", WANT_REAL, O(start), 0.04, 0, 1, false, NULL, 0,
                                     "share of lr at the beginning"},
                                    {"end", WANT_REAL, O(end), 4e-6, 0, 1, false, NULL, 0,
                                     "share of lr at the end"}},
     "a rate that grows along half a cosine, and then falls along another",
     "s = t / epochs   s < rise: lr (1 + (start - 1) (1 + cos(pi s / rise)) / 2)\n"
     "else: lr (end + (1 - end) (1 + cos(pi (s - rise) / (1 - rise))) / 2)"},
    {"restarts", SCHED_RESTARTS, {{"first", WANT_REAL, O(first), REQUIRED, 1, 1e6, false, NULL, 0,
                                   "epochs of the first cycle"},
                                  {"factor", WANT_REAL, O(factor), 1, 1, 1e6, false, NULL, 0,
                                   "number of epochs of a cycle, divided by that of the "
                                   "cycle before"},
                                  END, EPOCHS("warmup", 0)},
     "a rate that falls along half a cosine in each cycle, and starts again at lr",
     "lr (end + (1 - end) (1 + cos(pi c)) / 2)   c = share of the cycle that is over"},
    {"plateau", SCHED_PLATEAU, {{"result", WANT_RESULT, O(watch.result), 0, 0, 0, false,
                                 plateau_results, 0,
                                 "what is watched, with several targets also with the name of one; "
                                 "default: validation_loss"},
                                {"factor", WANT_REAL, O(factor), 0.1, 0, 1, true, NULL, 0,
                                 "factor of the rate at each fall"},
                                {"patience", WANT_INT, O(watch.epochs), 10, 0, 1e6, false, NULL, 0,
                                 "epochs in a row without an improvement that the rate survives"},
                                {"threshold", WANT_REAL, O(threshold), 1e-4, 0, 1, true, NULL, 0,
                                 "relative change of the best value that counts as an "
                                 "improvement"},
                                {"cooldown", WANT_INT, O(cooldown), 0, 0, 1e6, false, NULL, 0,
                                 "epochs after a fall that are not counted"},
                                {"end", WANT_REAL, O(end), 0, 0, 1, false, NULL, 0,
                                 "share of lr below which the rate does not fall"},
                                EPOCHS("warmup", 0)},
     "a rate that falls when a result does not improve for more than `patience` epochs",
     "after an epoch with the result r: improved if r < best - threshold |best|\n"
     "(r > best + threshold |best| if a larger result is better); else bad += 1\n"
     "bad > patience: lr = max(lr factor, end lr0), bad = 0   lr0 = the recipe's lr"},
    {"warmup", SCHED_CONSTANT, {EPOCHS("epochs", REQUIRED)},
     "the same as `constant(warmup = epochs)`", NULL},
    {0}};
#undef O
#undef EPOCHS
#undef END

static const char *const dist_words[] = {"uniform", "gaussian", "normal", NULL};
static const char *const fan_words[] = {"in", "out", "avg", NULL};
#define O(member) offsetof(InitForm, member)
#define DIST(fallback)                                                                             \
    {"dist", WANT_WORD, O(dist), fallback, 0, 0, false, dist_words, 0,                             \
     "the distribution; gaussian and normal are the same"}
#define FANS(fallback)                                                                             \
    {"fan", WANT_WORD, O(fan), fallback, 0, 0, false, fan_words, 0,                                \
     "the numbers that enter, the numbers that leave, or their mean"}
#define REAL(name, member, fallback, low, about)                                                   \
    {name, WANT_REAL, O(member), fallback, low, INFINITY, false, NULL, 0, about}
const Form init_forms[] = {
    {"xavier", INIT_XAVIER, {DIST(0), FANS(FAN_AVG),
                             REAL("magnitude", a, 3, 0, "variance times fan of a gaussian")},
     "as in MXNet",
     "uniform: bound sqrt(magnitude / fan)   gaussian: standard deviation sqrt(magnitude / fan)"},
    {"glorot", INIT_GLOROT, {DIST(0)},
     "from Glorot & Bengio 2010, as in Keras",
     "uniform: bound sqrt(6 / (in + out))   normal: standard deviation sqrt(2 / (in + out))"},
    {"he", INIT_HE, {DIST(2), FANS(FAN_IN)},
     "from He et al. 2015",
     "normal: standard deviation sqrt(2 / fan)   uniform: bound sqrt(6 / fan)"},
    {"lecun", INIT_LECUN, {DIST(2)},
     "from LeCun et al. 1998",
     "normal: standard deviation sqrt(1 / in)   uniform: bound sqrt(3 / in)"},
    {"orthogonal", INIT_ORTHOGONAL, {REAL("gain", a, 1, 0, "factor of the matrix")},
     "orthogonal rows or columns, from Saxe et al. 2014",
     "gain Q   Q of the QR decomposition of a gaussian matrix"},
    {"uniform", INIT_UNIFORM, {REAL("low", a, -0.05, -INFINITY, "smallest value"),
                               REAL("high", b, 0.05, -INFINITY, "largest value, at least low")},
     "uniform between two numbers", NULL},
    {"normal", INIT_NORMAL, {REAL("mean", a, 0, -INFINITY, "the mean"),
                             REAL("std", b, 0.01, 0, "the standard deviation")},
     "normal distribution", NULL},
    {"constant", INIT_CONSTANT, {REAL("value", a, REQUIRED, -INFINITY, "the number")},
     "one number everywhere", NULL},
    {0}};
#undef O
#undef DIST
#undef FANS
#undef REAL

#define LIMIT_OF(member, about)                                                                    \
    {"limit", WANT_REAL, offsetof(Recipe, member), REQUIRED, 0, INFINITY, false, NULL, 0, about}
const Form clip_forms[] = {
    {"norm", 0, {LIMIT_OF(clip_norm, "largest norm of all gradients together, not 0")},
     "scale all gradients by one factor", "g *= min(1, limit / sqrt(sum of all g^2))"},
    {"value", 1, {LIMIT_OF(clip_value, "largest absolute value of a gradient, not 0")},
     "bound each number of a gradient", "g = min(max(g, -limit), limit)"},
    {0}};
#undef LIMIT_OF

#define O(member) offsetof(Normalize, member)
#define LIST(name, low, about)                                                                     \
    {#name, WANT_REALS, O(name), REQUIRED, low, INFINITY, false, NULL, O(n##name), about}
const Form normalize_forms[] = {
    {"per_channel", NORM_CHANNEL, {LIST(mean, -INFINITY,
                                        "one number for each channel, or one for all"),
                                   LIST(std, 1e-6, "one number for each channel, or one for all")},
     "given numbers for each channel, after `scale`", "y = (x - mean) / std"},
    {"per_pixel_mean", NORM_PIXEL, {{0}},
     "the mean image of the training set, which is kept with the weights", "y = x - mean"},
    {"none", NORM_NONE, {{0}}, "samples stay as they are", NULL},
    {0}};
#undef O
#undef LIST

#define O(member) offsetof(Augment, member)
#define PIXELS(name, member, about)                                                                \
    {name, WANT_INT, O(member), REQUIRED, 1, 65536, false, NULL, 0, about}
#define CHANGE(member, high, about)                                                                \
    {"range", WANT_REAL, O(member), REQUIRED, 0, high, false, NULL, 0, about}
#define BOUNDS(name, member, low, high, about)                                                     \
    {name, WANT_BOUNDS, O(member), 0, low, high, false, NULL, 0, about}
#define MIX(member)                                                                                \
    {"alpha", WANT_REAL, O(member), REQUIRED, 0.001, 1000, false, NULL, 0,                         \
     "parameter of the distribution of weights: a small one leaves most images nearly alone"},     \
        {"p", WANT_REAL, O(member##_p), 1, 0, 1, false, NULL, 0, "the probability"}
const Form augment_forms[] = {
    {"random_crop", AUGMENT_CROP, {PIXELS("pad", shift, "largest distance in pixels")},
     "move the image in each direction by a random number of pixels; new pixels are 0", NULL},
    {"shift", AUGMENT_SHIFT, {PIXELS("pixels", shift, "largest distance in pixels")},
     "the same, but the edge of the image is repeated", NULL},
    {"flip_horizontal", AUGMENT_FLIP, {{0}}, "mirror an image left to right with probability 1/2",
     NULL},
    {"flip_vertical", AUGMENT_UPSIDE, {{0}}, "mirror an image top to bottom with probability 1/2",
     NULL},
    {"rotate", AUGMENT_ROTATE, {{"degrees", WANT_REAL, O(degrees), REQUIRED, 0, 180, false, NULL, 0,
                                 "largest angle in each direction"}},
     "turn the image around its centre, bilinear; new pixels are 0, or repeat the edge with "
     "`shift`",
     "angle from -degrees to degrees"},
    {"scale", AUGMENT_SCALE, {{"range", WANT_REAL, O(zoom), REQUIRED, 0, 1, true, NULL, 0,
                               "largest change"}},
     "enlarge or shrink the image around its centre, bilinear; new pixels as for rotate",
     "factor from 1 - range to 1 + range"},
    {"random_resized_crop", AUGMENT_RESIZED_CROP,
     {BOUNDS("scale", crop_area, 0, 1,
             "smallest and largest share of the area; default: 0.08 and 1"),
      BOUNDS("ratio", crop_ratio, 0.001, 1000,
             "smallest and largest width / height; default: 3/4 and 4/3")},
     "cut out a random part of the image and stretch it to the image's size, bilinear: Szegedy et "
     "al. 2015. After ten tries that do not fit, the largest part in the middle is taken",
     "area = H W u   u uniform within scale\nwidth / height = exp(v)   v uniform within "
     "the logarithms of ratio"},
    {"cutout", AUGMENT_CUTOUT, {PIXELS("size", cutout, "side of the square in pixels")},
     "set a square around a random pixel to 0", NULL},
    {"erase", AUGMENT_ERASE,
     {{"p", WANT_REAL, O(erase), 0.5, 0, 1, false, NULL, 0, "the probability"},
      BOUNDS("area", erase_area, 0, 1,
             "smallest and largest share of the area; default: 0.02 and 0.33"),
      BOUNDS("aspect", erase_aspect, 0.001, 1000,
             "smallest and largest height / width; default: 0.3 and 3.3")},
     "set a random rectangle to 0: random erasing, Zhong et al. 2017",
     "area = H W u   u uniform within area\nheight / width = exp(v)   v uniform within the "
     "logarithms of aspect"},
    {"brightness", AUGMENT_BRIGHTNESS, {CHANGE(brightness, 1, "largest change")},
     "multiply the image by a random factor, before `normalize`",
     "factor from 1 - range to 1 + range"},
    {"contrast", AUGMENT_CONTRAST, {CHANGE(contrast, 1, "largest change")},
     "move each number away from the mean grey of the image, or towards it, before `normalize`",
     "y = g + f (x - g)   f from 1 - range to 1 + range, g = mean of 0.2989 red + 0.587 green + "
     "0.114 blue"},
    {"saturation", AUGMENT_SATURATION, {CHANGE(saturation, 1, "largest change")},
     "move each number away from the grey of its pixel, or towards it, before `normalize`",
     "y = g + f (x - g)   f from 1 - range to 1 + range, g = 0.2989 red + 0.587 green + "
     "0.114 blue"},
    {"hue", AUGMENT_HUE, {CHANGE(hue, 0.5, "largest change, as a share of the circle of colours")},
     "turn the hue (HSV), before `normalize`",
     "hue += f   f from -range to range; the circle is 1"},
    {"mixup", AUGMENT_MIXUP, {MIX(mixup)},
     "mix the image with another one of the batch, and compare with both targets: Zhang et al. "
     "2018. Together with cutmix, each sample takes one of them with probability 1/2",
     "x = v own + (1 - v) other   loss = v loss(own target) + (1 - v) loss(other target)\n"
     "v of distribution Beta(alpha, alpha)"},
    {"cutmix", AUGMENT_CUTMIX, {MIX(cutmix)},
     "replace a random rectangle by that of another image of the batch, and compare with both "
     "targets: Yun et al. 2019",
     "sides sqrt(1 - u) H and sqrt(1 - u) W, cut off at the edge   u of distribution Beta(alpha, "
     "alpha)\nv = 1 - area / (H W)   loss = v loss(own target) + (1 - v) loss(other target)"},
    {0}};
#undef MIX
#undef O
#undef PIXELS
#undef CHANGE
#undef BOUNDS

static const char *const fit_words[] = {"crop", "stretch", NULL};
static const char *const missing_words[] = {"error", "mean", NULL};
static const char *const unknown_words[] = {"error", "other", NULL};
static const char *const unit_words[] = {"char", "byte", "word", "bpe", NULL};
#define O(member) offsetof(DataSpec, member)
#define SCALE                                                                                      \
    {"scale", WANT_REAL, O(scale), 1.0 / 255, ANY, NULL, 0,                                        \
     "factor of stored bytes; other numbers are taken as they are"}
#define VOCAB(about) {"vocab", WANT_INT, O(vocab), 0, 1, INT32_MAX, false, NULL, 0, about}
#define TOKENS VOCAB("samples are tokens from 0 to vocab - 1; default: samples are numbers")
#define ENTRIES                                                                                    \
    VOCAB("largest size of the vocabulary, which the program makes from the training text. The "   \
    "default is 256 for bytes; other units need a number. Words need at least 4, byte pairs 256")
#define COUNT(member, fallback, low, about)                                                        \
    {#member, WANT_INT, O(member), fallback, low, INT32_MAX, false, NULL, 0, about}
#define UNIT(fallback)                                                                             \
    {"unit", WANT_WORD, O(unit), fallback, 0, 0, false, unit_words, 0,                             \
     "what a token is: a code point, a byte, a word, or a byte pair"}
#define SHARE(member, about)                                                                       \
    {#member, WANT_REAL, O(member), 0, 1e-6, 1, true, NULL, 0, about}
#define NAMES(name, member, about)                                                                 \
    {name, WANT_TEXTS, O(member), 0, 0, 0, false, NULL, 0, about}
#define TEST                                                                                       \
    SHARE(test, "share of the samples for the test split, where the data have no such split")
#define VALIDATION                                                                                 \
    SHARE(validation, "share of the samples for a validation split, where the data have no such "  \
                      "split; default: no such split")
const Form data_forms[] = {
    [DATA_NAMED] = {"NAME", 0, {SCALE, TOKENS, TEST, VALIDATION},
                    "a name to look up, such as `mnist` or `cifar10`, or a directory as a string, "
                    "such as `\"./mine\"`. "
                    "The arguments are optional: `mnist(scale = 1)`, `\"./mine\"(vocab = 65)`",
                    NULL},
    [DATA_SYNTHETIC] = {"synthetic", 1, {COUNT(samples, 10000, 1, "training samples"),
                                         COUNT(test_samples, 1000, 1, "test samples"),
                                         COUNT(classes, 0, 1,
                                               "classes; default: the number of the model's "
                                               "outputs"), SCALE, TOKENS},
                        "random samples that the program generates; for measurements and tests",
                        NULL},
    [DATA_IMAGES] = {"imagefolder", 2, {{"directory", WANT_TEXT, O(name), REQUIRED, 0, 0, false,
                                         NULL, 0, "holds train/CLASS/ and test/CLASS/, or only "
                                         "CLASS/ with test = 0.2"},
                                        {"fit", WANT_WORD, O(fit), 0, 0, 0, false, fit_words, 0,
                                         "`crop` scales the image to cover the input and takes its "
                                         "middle; `stretch` scales each side by itself"}, SCALE,
                                        TEST, VALIDATION},
                     "PNG and JPEG files, a folder for each class", NULL},
    [DATA_TEXT] = {"text", 0, {{"file", WANT_TEXT, O(name), REQUIRED, 0, 0, false, NULL, 0,
                                "a file, or a name to look up"}, UNIT(0), ENTRIES,
                               {"step", WANT_INT, O(step), 0, 1, 1 << 24, false, NULL, 0,
                                "tokens from the start of a window to the start of the next; "
                                "default: 1; with a label for each position: the length of a "
                                "window"}},
                   "one text; the network learns the next token. The last tenth of the text is the "
                   "test set", NULL},
    [DATA_TABLE] = {"tsv", 0, {{"directory", WANT_TEXT, O(name), REQUIRED, 0, 0, false, NULL, 0,
                                "holds train.tsv and test.tsv"}, UNIT(2), ENTRIES},
                    "labelled texts, one a line: class, tab, text", NULL},
    [DATA_COLUMNS] = {"csv", 0, {{"file", WANT_TEXT, O(name), REQUIRED, 0, 0, false, NULL, 0,
                                  "a file, or a name to look up; or a directory with train.csv and "
                                  "test.csv"},
                                 NAMES("input", input, "the columns of the inputs, in order; "
                                       "default: all columns that are no target; with several "
                                       "inputs, the columns with the names of the inputs"),
                                 NAMES("target", target, "the columns of the targets, in order; "
                                       "default: the names of the targets"),
                                 NAMES("categories", category, "columns of inputs that hold "
                                       "categories, although these look like numbers"),
                                 {"standardize", WANT_FLAG, O(standardize), 1, 0, 1, false, NULL,
                                  0, "subtract the mean of a column of numbers, and divide by its "
                                  "standard deviation, both over the training split"},
                                 {"missing", WANT_WORD, O(missing), 0, 0, 0, false, missing_words,
                                  0, "a missing value of an input is an `error`, or becomes the "
                                  "`mean` of its column"},
                                 {"unknown", WANT_WORD, O(unknown), 0, 0, 0, false, unknown_words,
                                  0, "a category that the training split does not have is an "
                                  "`error`, or counts as `other`: all its numbers are 0"},
                                 SHARE(test, "share of the rows for the test split, where the data "
                                       "have no such split; default: 0.2"), VALIDATION,
                                 VOCAB("largest total number of categories of an input of tokens, "
                                       "i32[...]"),
                                 NAMES("exclude", exclude, "columns that are no inputs, such as "
                                       "the number of a customer; without `input`")},
                      "a table with a row of names, separated by commas, semicolons or tabs; see "
                      "[tables](../how-to/tables.md)", NULL},
    {0}};
#undef O
#undef SCALE
#undef VOCAB
#undef COUNT
#undef UNIT
#undef SHARE
#undef NAMES
#undef TEST
#undef VALIDATION

#define O(field) offsetof(StartSpec, field)
#define PATTERNS(name, about)                                                                      \
    {#name, WANT_TEXTS, O(name), 0, 0, 0, false, NULL, 0, about}
const Form start_forms[] = {
    {"initial", 0, {{0}}, "the initial values of `init`, drawn from the seed", NULL},
    {"weights", 1, {{"file", WANT_TEXT, O(file), REQUIRED, 0, 0, false, NULL, 0,
                     "a safetensors file, written by `--save` or by another tool; its path begins "
                     "at the working directory"},
                    PATTERNS(only, "patterns of the parameters that are loaded; default: all"),
                    PATTERNS(except, "patterns of parameters that keep their initial values; "
                             "default: none")},
     "the parameters of a file. With `only` or `except`, the file may lack the other parameters, "
     "and may have tensors that the network lacks",
     NULL},
    {0}};
#undef O
#undef PATTERNS
const Form average_forms[] = {
    {"ema", AVERAGE_EMA, {{"decay", WANT_REAL, offsetof(AverageSpec, decay), REQUIRED, 0, 1, true,
                           NULL, 0, "share of the average that a step keeps"}},
     "an exponential moving average, after each step",
     "a = w after the first step\na += (1 - decay) (w - a) after each later step"},
    {"swa", AVERAGE_SWA, {{"from", WANT_INT, offsetof(AverageSpec, from), REQUIRED, 1, 1e6, false,
                           NULL, 0, "the first epoch whose weights are in the average"}},
     "the mean of the weights at the ends of epochs", "a += (w - a) / (n + 1)   n = epochs in a"},
    {0}};
#define RESULT(fallback, about)                                                                    \
    {"result", WANT_RESULT, offsetof(Watch, result), fallback, 0, 0, false, watch_results, 0, about}
#define WITH_TARGET ", with several targets also with the name of one: `validation_r2_brightness`"
const Form keep_forms[] = {
    {"best", 0, {RESULT(REQUIRED, "what is compared" WITH_TARGET)},
     "the weights of the epoch with the best value; if several epochs are equal, those of the "
     "first one. A loss, perplexity, mae and rmse are better when they are smaller, other results "
     "of Tenon when they are larger; a metric of the recipe says it itself",
     NULL},
    {0}};
const Form stop_forms[] = {
    {"patience", 0, {{"epochs", WANT_INT, offsetof(Watch, epochs), REQUIRED, 1, 1e6, false, NULL, 0,
                      "number of epochs in a row without a new best value"},
                     RESULT(0, "what is compared; default: that of `keep`, else validation_loss")},
     "end after this number of epochs without a new best value", NULL},
    {0}};
#undef RESULT
#undef WITH_TARGET

#define METRIC                                                                                     \
    {"NAME = EXPRESSION", WANT_METRIC, 0, REQUIRED, 0, 0, false, NULL, 0,                          \
     "a name of yours, and what the metric computes; several are separated by commas"}
const Form measure_forms[] = {
    {"larger", BETTER_LARGER, {METRIC}, "metrics whose larger values are better", NULL},
    {"smaller", BETTER_SMALLER, {METRIC}, "metrics whose smaller values are better", NULL},
    {"report", BETTER_NEITHER, {METRIC},
     "metrics that are only reported: `keep`, `stop` and `plateau` refuse them", NULL},
    {0}};
#undef METRIC

#define PATTERN                                                                                    \
    {"pattern", WANT_TEXT, offsetof(Factor, pattern), REQUIRED, 0, 0, false, NULL, 0,              \
     "names of parameters; `*` matches any characters, `?` matches one character"}
#define FACTOR                                                                                     \
    {"factor", WANT_REAL, offsetof(Factor, factor), REQUIRED, 0, INFINITY, false, NULL, 0,         \
     "the factor"}
const Form factor_forms[] = {
    {"lr", FACTOR_LR, {PATTERN, FACTOR}, "multiply the learning rate of these parameters", NULL},
    {"decay", FACTOR_DECAY, {PATTERN, FACTOR}, "multiply the weight decay of these parameters",
     NULL},
    {0}};
/* clang-format on */
