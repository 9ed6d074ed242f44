/* lenet_openblas.c -- LeNet's training step as in Caffe: im2col, then matrix products of OpenBLAS.
 *
 *   lenet_openblas lenet - BATCH THREADS 0 DIR        see yardstick.h
 *
 * The same network and the same step as models/lenet.tn: forward, softmax cross-entropy, backward, SGD with momentum and
 * weight decay.  The batch is divided among the threads, and each thread calls BLAS with one thread: for small matrices this
 * is faster than one call with all threads.  This is a reference for speed and shares no code with Tenon.
 *
 * Build: gcc -O3 -march=native -ffast-math -fopenmp lenet_openblas.c -lopenblas -lm
 * Source: Chellapilla, Puri, Simard 2006, "High Performance Convolutional Neural Networks for Document Processing".
 */
#include "yardstick.h"
#include <cblas.h>
#include <omp.h>

void openblas_set_num_threads(int n);
char *openblas_get_config(void);

enum {
    CLASSES = 10,
    HIDDEN = 500,
    R = 5, /* filters are 5 x 5, valid */
    C1 = 20,
    H0 = 28,
    H1 = 24,
    P1 = 12, /* conv1 (1, 28, 28) -> (20, 24, 24), pooled to 12 x 12 */
    C2 = 50,
    H2 = 8,
    P2 = 4, /* conv2 (20, 12, 12) -> (50, 8, 8), pooled to 4 x 4 */
    FLAT = C2 * P2 * P2,
    COL1 = R * R * H1 * H1,
    COL2 = C1 * R * R * H2 * H2
};

typedef struct Layer { /* y = w x + b */
    int out, in;
    float *w, *b, *v, *vb, *dw, *db; /* weights, momentum, gradients of the step */
} Layer;

typedef struct Scratch { /* of one thread */
    float *col, *dz, *dcol, *dp1, *dw1, *db1, *dw2, *db2;
} Scratch;

typedef struct Net {
    Job job;
    Layer conv1, conv2, dense1, dense2;
    const float *x;                        /* the current batch: (batch, 1, 28, 28) */
    const int *label;                      /* its labels: (batch) */
    float *a1, *p1, *a2, *p2, *a3, *logit; /* after tanh, after pooling */
    float *dlogit, *da3, *dp2, *loss;      /* loss: one number for each sample */
    unsigned char *i1, *i2;                /* corner of each maximum: 0 .. 3 */
    Scratch *scratch;                      /* one for each thread */
} Net;

static Layer layer(Job *j, int out, int in)
{
    Layer l = {.out = out, .in = in};
    const size_t n = (size_t)out * (size_t)in;
    l.w = floats(n), l.v = floats(n), l.dw = floats(n);
    l.b = floats((size_t)out), l.vb = floats((size_t)out), l.db = floats((size_t)out);
    memcpy(l.w, take(j, n), n * sizeof *l.w);
    memcpy(l.b, take(j, (size_t)out), (size_t)out * sizeof *l.b);
    return l;
}

/* ---- pieces */

/* tanh by Eigen's rational function of degree 13/6; loops over it become vectors. */
static inline float rational_tanh(float x)
{
    x = x > 7.9053111f ? 7.9053111f : x < -7.9053111f ? -7.9053111f : x;
    const float s = x * x;
    float p = s * -2.76076847742355e-16f + 2.00018790482477e-13f;
    p = p * s + -8.60467152213735e-11f;
    p = p * s + 5.12229709037114e-08f;
    p = p * s + 1.48572235717979e-05f;
    p = p * s + 6.37261928875436e-04f;
    p = p * s + 4.89352455891786e-03f;
    float q = s * 1.19825839466702e-06f + 1.18534705686654e-04f;
    q = q * s + 2.26843463243900e-03f;
    q = q * s + 4.89352518554385e-03f;
    return p * x / q;
}

/* x (c, h, h) -> col (c R R, o o), o = h - R + 1 */
static void im2col(float *col, const float *x, int c, int h)
{
    const int o = h - R + 1;
    for (int i = 0; i < c; i++)
        for (int r = 0; r < R; r++)
            for (int s = 0; s < R; s++)
                for (int y = 0; y < o; y++, col += o)
                    memcpy(col, x + i * h * h + (y + r) * h + s, (size_t)o * sizeof *col);
}

static void col2im(float *x, const float *col, int c, int h)
{
    const int o = h - R + 1;
    memset(x, 0, (size_t)(c * h * h) * sizeof *x);
    for (int i = 0; i < c; i++)
        for (int r = 0; r < R; r++)
            for (int s = 0; s < R; s++)
                for (int y = 0; y < o; y++, col += o) {
                    float *p = x + i * h * h + (y + r) * h + s;
                    for (int j = 0; j < o; j++)
                        p[j] += col[j];
                }
}

/* y = tanh(x + b), in place, rows of `n` for each of `c` channels */
static void bias_tanh(float *x, const float *b, int c, int n)
{
    for (int i = 0; i < c; i++)
        for (int j = 0; j < n; j++)
            x[i * n + j] = rational_tanh(x[i * n + j] + b[i]);
}

static void max_pool(float *y, unsigned char *index, const float *x, int c, int h)
{
    for (int i = 0; i < c; i++)
        for (int r = 0; r < h; r += 2)
            for (int s = 0; s < h; s += 2) {
                const float *p = x + i * h * h + r * h + s;
                const int top = p[1] > p[0], low = p[h + 1] > p[h];
                const float a = p[top], b = p[h + low];
                *index++ = (unsigned char)(b > a ? 2 + low : top);
                *y++ = b > a ? b : a;
            }
}

/* dx = gradient of z through y = max_pool(tanh(z)); x = tanh(z) */
static void unpool(float *dz, const float *dy, const unsigned char *index, const float *x, int c,
                   int h)
{
    memset(dz, 0, (size_t)(c * h * h) * sizeof *dz);
    for (int i = 0; i < c; i++)
        for (int r = 0; r < h; r += 2)
            for (int s = 0; s < h; s += 2) {
                const int k = *index++, at = i * h * h + (r + k / 2) * h + s + k % 2;
                dz[at] = *dy++ * (1 - x[at] * x[at]);
            }
}

/* C (m, n) = A B + beta C; ta, tb: transposed */
static void gemm(int ta, int tb, int m, int n, int k, const float *a, const float *b, float beta,
                 float *c)
{
    cblas_sgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans, m, n,
                k, 1, a, ta ? m : k, b, tb ? k : n, beta, c, n);
}

static void channel_sum(float *db, const float *dz, int c, int n)
{
    for (int i = 0; i < c; i++)
        for (int j = 0; j < n; j++)
            db[i] += dz[i * n + j];
}

/* v = 0.9 v + (g + 1e-4 w), w -= lr v; for elements [from, to) */
static void sgd(float *w, float *v, const float *g, float decay, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        v[i] = 0.9f * v[i] + (g[i] + decay * w[i]);
        w[i] -= 0.05f * v[i];
    }
}

/* ---- the step: three parallel phases with a barrier between two */

static void forward(Net *t, Scratch *s, int n)
{
    float *a1 = t->a1 + n * C1 * H1 * H1, *p1 = t->p1 + n * C1 * P1 * P1,
          *a2 = t->a2 + n * C2 * H2 * H2;
    im2col(s->col, t->x + n * H0 * H0, 1, H0);
    gemm(0, 0, C1, H1 * H1, R * R, t->conv1.w, s->col, 0, a1);
    bias_tanh(a1, t->conv1.b, C1, H1 * H1);
    max_pool(p1, t->i1 + n * C1 * P1 * P1, a1, C1, H1);
    im2col(s->col, p1, C1, P1);
    gemm(0, 0, C2, H2 * H2, C1 * R * R, t->conv2.w, s->col, 0, a2);
    bias_tanh(a2, t->conv2.b, C2, H2 * H2);
    max_pool(t->p2 + n * FLAT, t->i2 + n * FLAT, a2, C2, H2);
}

static void dense_part(Net *t, int from, int to)
{
    const int n = to - from;
    float *a3 = t->a3 + from * HIDDEN, *logit = t->logit + from * CLASSES,
          *d = t->dlogit + from * CLASSES;
    float *da3 = t->da3 + from * HIDDEN;
    gemm(0, 1, n, HIDDEN, FLAT, t->p2 + from * FLAT, t->dense1.w, 0, a3);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < HIDDEN; j++)
            a3[i * HIDDEN + j] = rational_tanh(a3[i * HIDDEN + j] + t->dense1.b[j]);
    gemm(0, 1, n, CLASSES, HIDDEN, a3, t->dense2.w, 0, logit);
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < CLASSES; j++)
            logit[i * CLASSES + j] += t->dense2.b[j];
        t->loss[from + i] = cross_entropy(d + i * CLASSES, logit + i * CLASSES, CLASSES,
                                          t->label[from + i], 1 / (float)t->job.batch);
    }
    gemm(0, 0, n, HIDDEN, CLASSES, d, t->dense2.w, 0, da3);
    for (int i = 0; i < n * HIDDEN; i++)
        da3[i] *= 1 - a3[i] * a3[i];
    gemm(0, 0, n, FLAT, HIDDEN, da3, t->dense1.w, 0, t->dp2 + from * FLAT);
}

static void backward(Net *t, Scratch *s, int n)
{
    const float *p1 = t->p1 + n * C1 * P1 * P1;
    unpool(s->dz, t->dp2 + n * FLAT, t->i2 + n * FLAT, t->a2 + n * C2 * H2 * H2, C2, H2);
    im2col(s->col, p1, C1, P1);
    gemm(0, 1, C2, C1 * R * R, H2 * H2, s->dz, s->col, 1, s->dw2);
    channel_sum(s->db2, s->dz, C2, H2 * H2);
    gemm(1, 0, C1 * R * R, H2 * H2, C2, t->conv2.w, s->dz, 0, s->dcol);
    col2im(s->dp1, s->dcol, C1, P1);
    unpool(s->dz, s->dp1, t->i1 + n * C1 * P1 * P1, t->a1 + n * C1 * H1 * H1, C1, H1);
    im2col(s->col, t->x + n * H0 * H0, 1, H0);
    gemm(0, 1, C1, R * R, H1 * H1, s->dz, s->col, 1, s->dw1);
    channel_sum(s->db1, s->dz, C1, H1 * H1);
}

/* Worker `id` of `workers`: rows [from, to) of the first dense layer's gradient, then their update. */
static void dense_update(Net *t, int id, int workers)
{
    const int from = HIDDEN * id / workers, to = HIDDEN * (id + 1) / workers, batch = t->job.batch;
    Layer *l = &t->dense1;
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, to - from, FLAT, batch, 1, t->da3 + from,
                HIDDEN, t->p2, FLAT, 0, l->dw + (size_t)from * FLAT, FLAT);
    sgd(l->w, l->v, l->dw, 1e-4f, (size_t)from * FLAT, (size_t)to * FLAT);
    for (int j = from; j < to; j++) {
        l->db[j] = 0;
        for (int i = 0; i < batch; i++)
            l->db[j] += t->da3[i * HIDDEN + j];
    }
    sgd(l->b, l->vb, l->db, 0, (size_t)from, (size_t)to);
}

static void last_update(Net *t)
{
    Layer *l = &t->dense2;
    gemm(1, 0, CLASSES, HIDDEN, t->job.batch, t->dlogit, t->a3, 0, l->dw);
    for (int j = 0; j < CLASSES; j++) {
        l->db[j] = 0;
        for (int i = 0; i < t->job.batch; i++)
            l->db[j] += t->dlogit[i * CLASSES + j];
    }
    sgd(l->w, l->v, l->dw, 1e-4f, 0, CLASSES * HIDDEN);
    sgd(l->b, l->vb, l->db, 0, 0, CLASSES);
}

static void conv_update(Layer *l, Scratch *s, int second, int workers)
{
    const size_t n = (size_t)l->out * (size_t)l->in, o = (size_t)l->out;
    memset(l->dw, 0, n * sizeof *l->dw);
    memset(l->db, 0, o * sizeof *l->db);
    for (int k = 0; k < workers; k++) {
        cblas_saxpy((int)n, 1, second ? s[k].dw2 : s[k].dw1, 1, l->dw, 1);
        cblas_saxpy((int)o, 1, second ? s[k].db2 : s[k].db1, 1, l->db, 1);
    }
    sgd(l->w, l->v, l->dw, 1e-4f, 0, n);
    sgd(l->b, l->vb, l->db, 0, 0, o);
}

static void batch_step(Net *t)
{
    const int workers = t->job.threads, batch = t->job.batch;
#pragma omp parallel num_threads(workers)
    {
        const int id = omp_get_thread_num(), from = batch * id / workers,
                  to = batch * (id + 1) / workers;
        Scratch *s = &t->scratch[id];
        for (int n = from; n < to; n++)
            forward(t, s, n);
        dense_part(t, from, to);
        memset(s->dw1, 0, C1 * R * R * sizeof(float)), memset(s->db1, 0, C1 * sizeof(float));
        memset(s->dw2, 0, C2 * C1 * R * R * sizeof(float)), memset(s->db2, 0, C2 * sizeof(float));
        for (int n = from; n < to; n++)
            backward(t, s, n);
#pragma omp barrier
        dense_update(t, id, workers);
        if (id == 0) {
            last_update(t);
            conv_update(&t->conv1, t->scratch, 0, workers);
        }
        if (id == workers - 1)
            conv_update(&t->conv2, t->scratch, 1, workers);
    }
}

static float step(void *net, int i)
{
    Net *t = net;
    const int batch = t->job.batch;
    float loss = 0;
    t->x = t->job.x + (size_t)i * (size_t)(batch * H0 * H0);
    t->label = t->job.label + i * batch;
    batch_step(t);
    for (int n = 0; n < batch; n++)
        loss += t->loss[n];
    return loss / (float)batch;
}

static Scratch scratch_new(void)
{
    const int col = COL1 > COL2 ? COL1 : COL2;
    return (Scratch){.col = floats((size_t)col),
                     .dz = floats(C1 * H1 * H1),
                     .dcol = floats(COL2),
                     .dp1 = floats(C1 * P1 * P1),
                     .dw1 = floats(C1 * R * R),
                     .db1 = floats(C1),
                     .dw2 = floats(C2 * C1 * R * R),
                     .db2 = floats(C2)};
}

static Net net_new(Job job)
{
    Net t = {.job = job};
    const size_t batch = (size_t)job.batch;
    t.conv1 = layer(&t.job, C1, R * R), t.conv2 = layer(&t.job, C2, C1 * R * R);
    t.dense1 = layer(&t.job, HIDDEN, FLAT), t.dense2 = layer(&t.job, CLASSES, HIDDEN);
    t.a1 = floats(batch * C1 * H1 * H1), t.p1 = floats(batch * C1 * P1 * P1),
    t.a2 = floats(batch * C2 * H2 * H2);
    t.p2 = floats(batch * FLAT), t.a3 = floats(batch * HIDDEN), t.logit = floats(batch * CLASSES);
    t.dlogit = floats(batch * CLASSES), t.da3 = floats(batch * HIDDEN),
    t.dp2 = floats(batch * FLAT), t.loss = floats(batch);
    t.i1 = calloc(batch, C1 * P1 * P1), t.i2 = calloc(batch, FLAT);
    t.scratch = calloc((size_t)job.threads, sizeof *t.scratch);
    if (!t.i1 || !t.i2 || !t.scratch)
        die("out of memory", "net_new");
    for (int i = 0; i < job.threads; i++)
        t.scratch[i] = scratch_new();
    return t;
}

int main(int argc, char **argv)
{
    Net t = net_new(job_open(argc, argv, H0 * H0));
    if (strcmp(t.job.model, "lenet") != 0)
        die(t.job.model, "is not computed here");
    openblas_set_num_threads(1);
    return serve(&t.job, step, &t, "openblas", openblas_get_config());
}
