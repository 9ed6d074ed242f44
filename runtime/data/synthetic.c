/* synthetic.c -- samples without a file: the prototype of a random class, half covered by noise.
 *
 *   numbers   byte e of sample i is (prototype[class(i)][e] + noise[i][e]) / 2, both uniform
 *             bytes; with a class for each position, each position has a part of the bytes, and
 *             this part is such a sample
 *   tokens    token e of sample i is prototype[class(i)][e] or a random token, with equal
 *             probability; with a class for each position, tokens are random and the class is a
 *             fixed function of the first token in the position's part
 *
 * The part of position p of P begins at element p F / P of F, rounded down.
 *
 * Several inputs are parts of such a sample: byte or token e of the sample is element e of all
 * inputs one after another.  With a class for each position, an element has the class of its
 * position, even if the element is a token.
 *
 * A target that is numbers has a random value between -1 and 1 for each class and number; such
 * samples have 10 classes.  With several targets, a target that is a class has the class of the
 * sample, modulo its number of classes.  The targets that are numbers divide the numbers of one
 * such target in order.  A linear model can learn these samples.  Each sample can be made without
 * the others.
 */
#include "data/data.h"

enum { SEED = 20231, CLASS = 0, NOISE = 1, PROTOTYPE = 2, TARGET = 3 };

/* Makes block `block` of 16 random bytes of sample or class `which`; kind: CLASS, NOISE or
 * PROTOTYPE. */
static void bytes16(uint32_t w[4], uint32_t kind, int64_t which, int64_t block)
{
    const uint32_t high = (uint32_t)(which >> 32) << 2 | kind;
    rt_philox(w, SEED, (uint32_t)block, RT_PURPOSE_DATA, (uint32_t)which, high);
}

/* Four bytes at a time: floor((a + b) / 2) of each byte (Dietz's average). */
static uint32_t average4(uint32_t a, uint32_t b)
{
    return (a & b) + (((a ^ b) & 0xFEFEFEFEu) >> 1);
}

/* A number below n, all equally likely. */
static int32_t below(uint32_t word, int64_t n)
{
    return (int32_t)(((uint64_t)word * (uint64_t)n) >> 32);
}

static int32_t class_of(const Data *d, int64_t i)
{
    uint32_t w[4];
    bytes16(w, CLASS, i, 0);
    return d->classes > 0 ? below(w[0], d->classes) : 0;
}

/* Makes `features` bytes of class `label`. */
static void synthetic_pixels(uint8_t *x, int64_t features, int32_t label, int64_t i)
{
    uint32_t w[4], proto[4];
    for (int64_t e = 0; e < features; e += 16) {
        bytes16(w, NOISE, i, e / 16);
        bytes16(proto, PROTOTYPE, label, e / 16);
        for (int64_t k = 0; k < 16 && e + k < features; k++)
            x[e + k] = (uint8_t)(average4(w[k / 4], proto[k / 4]) >> (k % 4 * 8));
    }
}

/* Makes one token: the lowest bit chooses between the two cases, the highest bits are the token.
 * of_class: false if all tokens are random. */
static int32_t token(const Data *d, bool of_class, int32_t label, int64_t i, int64_t e)
{
    uint32_t w[4], proto[4];
    bytes16(w, NOISE, i, e / 4);
    bytes16(proto, PROTOTYPE, label, e / 4);
    return below(of_class && w[e % 4] & 1 ? proto[e % 4] : w[e % 4], d->vocab);
}

static int32_t class_of_token(const Data *d, int32_t token)
{
    uint32_t w[4];
    bytes16(w, PROTOTYPE, token, 0);
    return below(w[0], d->classes);
}

/* The first element of a position's part of a sample. */
static int64_t part_begin(const Data *d, int64_t position)
{
    return position * d->features / d->labels;
}

/* Makes several inputs.  With a class for each position, the elements of each input are divided
 * among the positions. */
static void synthetic_parts(const Data *d, char *x, const int32_t *label, int64_t i)
{
    uint32_t w[4] = {0}, proto[4] = {0};
    int64_t e = 0;
    for (int k = 0; k < d->ninput; k++) {
        const int64_t count = data_count(&d->input[k]);
        char *part = x + d->row_part[k].at;
        int32_t made = -1; /* class of the 16 bytes in w and proto */
        for (int64_t j = 0; j < count; j++, e++) {
            const int32_t class = label[j * d->labels / count];
            if (d->input[k].tokens) {
                ((int32_t *)(void *)part)[j] = token(d, true, class, i, e);
                continue;
            }
            if (made != class || e % 16 == 0) {
                bytes16(w, NOISE, i, e / 16);
                bytes16(proto, PROTOTYPE, class, e / 16);
                made = class;
            }
            part[j] = (char)(average4(w[e % 16 / 4], proto[e % 16 / 4]) >> (e % 4 * 8));
        }
    }
}

void synthetic_sample(const Data *d, void *x, int32_t *label, int64_t i)
{
    if (d->ninput > 0) {
        for (int64_t e = 0; e < d->labels; e++)
            label[e] = class_of(d, i * d->labels + e);
        synthetic_parts(d, x, label, i);
        return;
    }
    if (d->labels == 1)
        *label = class_of(d, i);
    for (int64_t e = 0; d->vocab && e < d->features; e++)
        ((int32_t *)x)[e] = token(d, d->labels == 1, *label, i, e);
    for (int64_t p = 0; d->vocab && d->labels > 1 && p < d->labels; p++)
        label[p] = class_of_token(d, ((const int32_t *)x)[part_begin(d, p)]);
    for (int64_t p = 0; !d->vocab && p < d->labels; p++) {
        const int64_t begin = part_begin(d, p), end = part_begin(d, p + 1);
        label[p] = class_of(d, i * d->labels + p);
        synthetic_pixels((uint8_t *)x + begin, end - begin, label[p], i * d->labels + p);
    }
}

/* Makes numbers first .. first + n - 1 of the target of a class: 24 random bits, so that an f32 has
 * the exact value; truths are 0 or 1, the first of these bits. */
static void numbers_of(const Data *d, void *y, bool truths, int32_t class, int64_t first, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const int64_t k = first + i;
        uint32_t w[4];
        bytes16(w, TARGET, class, k / 4);
        const double any = (double)(int32_t)(w[k % 4] >> 8) / (1 << 23) - 1;
        const double v = truths ? any >= 0 : any;
        if (d->real_bytes == 8)
            ((double *)y)[i] = v;
        else
            ((float *)y)[i] = (float)v;
    }
}

void synthetic_target(const Data *d, void *y, int64_t i)
{
    const int32_t class = class_of(d, i);
    numbers_of(d, y, d->truths, class, 0, d->targets);
    int64_t first = 0;
    for (int t = 0; t < d->ntarget; t++) {
        const RtTarget *r = &d->row_target[t];
        char *at = (char *)y + r->at;
        if (r->kind == RT_TARGET_CLASS)
            *(int32_t *)(void *)at = class % (int32_t)r->classes;
        numbers_of(d, at, r->truths, class, first, target_count(r));
        first += target_count(r);
    }
}

typedef struct Making {
    const Data *d;
    const uint32_t *order;
    int first; /* index of the sample of unit 0 */
} Making;

static void make_sample(void *arg, int thread, int unit)
{
    (void)thread;
    const Making *m = arg;
    const Data *d = m->d;
    const int at = m->first + unit;
    const int64_t sample = d->first + (m->order ? m->order[at] : (uint32_t)at);
    int32_t class;
    if (d->targets || d->ntarget) {
        synthetic_sample(d, d->x + at * d->stride, &class, sample);
        synthetic_target(d, data_label(d, at), sample);
    } else {
        synthetic_sample(d, d->x + at * d->stride, d->label + at * d->labels, sample);
    }
}

void synthetic_fill(const Data *d, Pool *pool, const uint32_t *order, int first, int n)
{
    Making m = {.d = d, .order = order, .first = first};
    pool_run(pool, make_sample, &m, n);
}
