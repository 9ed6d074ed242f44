/* mlp_openblas.c -- a training step of a multilayer perceptron as matrix products of OpenBLAS; models/mlp.tn's network.
 *
 *   mlp_openblas mlp - BATCH THREADS 0 DIR        see yardstick.h
 *
 * Forward, softmax cross-entropy, backward, SGD with momentum and weight decay.  The batch is divided among the threads, and
 * each thread calls BLAS with one thread: for small matrices this is faster than one call with all threads.  Gradients of
 * weights are divided by rows.  This is a reference for speed, not a part of Tenon.
 *
 * Build: gcc -O3 -march=native -ffast-math -fopenmp mlp_openblas.c -lopenblas -lm
 * Source: Rumelhart, Hinton, Williams 1986, "Learning representations by back-propagating errors".
 */
#include "yardstick.h"
#include <cblas.h>
#include <omp.h>

void openblas_set_num_threads(int n);
char *openblas_get_config(void);

enum { LAYERS = 3, CLASSES = 10 };
static const int WIDTH[LAYERS + 1] = {784, 128, 64, CLASSES};

typedef struct Layer { /* y = w x + b; w (out, in) */
    int out, in;
    float *w, *b, *v, *vb, *dw, *y, *dy; /* v, vb: momentum; dy: gradient before the activation */
} Layer;

typedef struct Net {
    Job job;
    Layer layer[LAYERS];
    float *loss;
} Net;

static Layer layer(Job *j, int out, int in)
{
    const size_t n = (size_t)out * (size_t)in, batch = (size_t)j->batch;
    Layer l = {.out = out,
               .in = in,
               .w = floats(n),
               .b = floats((size_t)out),
               .v = floats(n),
               .vb = floats((size_t)out),
               .dw = floats(n),
               .y = floats(batch * (size_t)out),
               .dy = floats(batch * (size_t)out)};
    memcpy(l.w, take(j, n), n * sizeof *l.w);
    memcpy(l.b, take(j, (size_t)out), (size_t)out * sizeof *l.b);
    return l;
}

static void gemm(int ta, int tb, int m, int n, int k, const float *a, int lda, const float *b,
                 int ldb, float *c, int ldc)
{
    cblas_sgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans, m, n,
                k, 1, a, lda, b, ldb, 0, c, ldc);
}

/* ---- the step: samples [from, to), a barrier, then rows of each weight */

static void forward(Net *t, const float *x, int from, int to)
{
    for (int i = 0; i < LAYERS; i++) {
        Layer *l = &t->layer[i];
        gemm(0, 1, to - from, l->out, l->in, x + (size_t)from * (size_t)l->in, l->in, l->w, l->in,
             l->y + from * l->out, l->out);
        for (int n = from; n < to; n++)
            for (int k = 0; k < l->out; k++) {
                float *y = &l->y[n * l->out + k];
                *y += l->b[k];
                if (i < LAYERS - 1)
                    *y = *y > 0 ? *y : 0;
            }
        x = l->y;
    }
}

static void backward(Net *t, const int *label, int from, int to)
{
    Layer *last = &t->layer[LAYERS - 1];
    for (int n = from; n < to; n++)
        t->loss[n] = cross_entropy(last->dy + n * CLASSES, last->y + n * CLASSES, CLASSES, label[n],
                                   1 / (float)t->job.batch);
    for (int i = LAYERS - 1; i > 0; i--) {
        Layer *l = &t->layer[i], *below = l - 1;
        gemm(0, 0, to - from, l->in, l->out, l->dy + from * l->out, l->out, l->w, l->in,
             below->dy + from * l->in, l->in);
        for (int k = from * l->in; k < to * l->in; k++)
            below->dy[k] = below->y[k] > 0 ? below->dy[k] : 0;
    }
}

/* v = 0.9 v + (g + decay w), w -= 0.05 v */
static void sgd(float *w, float *v, const float *g, float decay, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        v[i] = 0.9f * v[i] + (g[i] + decay * w[i]);
        w[i] -= 0.05f * v[i];
    }
}

static void update(Net *t, Layer *l, const float *x, int id, int workers)
{
    const int from = l->out * id / workers, rows = l->out * (id + 1) / workers - from,
              batch = t->job.batch;
    const size_t at = (size_t)from * (size_t)l->in;
    float db[128] = {0};
    gemm(1, 0, rows, l->in, batch, l->dy + from, l->out, x, l->in, l->dw + at, l->in);
    sgd(l->w + at, l->v + at, l->dw + at, 1e-4f, (size_t)rows * (size_t)l->in);
    for (int n = 0; n < batch; n++)
        for (int k = 0; k < rows; k++)
            db[k] += l->dy[n * l->out + from + k];
    sgd(l->b + from, l->vb + from, db, 0, (size_t)rows);
}

static float step(void *net, int i)
{
    Net *t = net;
    const int batch = t->job.batch, workers = t->job.threads;
    const float *x = t->job.x + (size_t)i * (size_t)(batch * WIDTH[0]);
    float loss = 0;
#pragma omp parallel num_threads(workers)
    {
        const int id = omp_get_thread_num(), from = batch * id / workers,
                  to = batch * (id + 1) / workers;
        forward(t, x, from, to);
        backward(t, t->job.label + i * batch, from, to);
#pragma omp barrier
        for (int k = 0; k < LAYERS; k++)
            update(t, &t->layer[k], k ? t->layer[k - 1].y : x, id, workers);
    }
    for (int n = 0; n < batch; n++)
        loss += t->loss[n];
    return loss / (float)batch;
}

int main(int argc, char **argv)
{
    Net t = {.job = job_open(argc, argv, WIDTH[0])};
    if (strcmp(t.job.model, "mlp") != 0)
        die(t.job.model, "is not computed here");
    openblas_set_num_threads(1);
    for (int i = 0; i < LAYERS; i++)
        t.layer[i] = layer(&t.job, WIDTH[i + 1], WIDTH[i]);
    t.loss = floats((size_t)t.job.batch);
    return serve(&t.job, step, &t, "openblas", openblas_get_config());
}
