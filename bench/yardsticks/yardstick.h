/* yardstick.h -- shared by the reference programs in C and C++: the command line, the data, and the protocol with bench/run,
 * which bench/peers/common.py describes:
 *
 *   PROG MODEL MODE BATCH THREADS DROPOUT DIR      then lines "check N" or "time S" on stdin
 *
 * DIR has train_x.npy (bytes), train_y.npy (int32) and weights.npy (float32, all parameters in file order).  A program defines
 * its step and passes it to `serve`.  This file is valid C and C++, and not a part of Tenon.
 */
#ifndef YARDSTICK_H
#define YARDSTICK_H
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct Job {
    const char *model;
    int batch, threads, batches, features; /* features: numbers of a sample */
    float *x;                              /* (batches, batch, features), 0 .. 1 */
    int *label;                            /* (batches, batch) */
    float *weights;                        /* the weights that `take` has not returned yet */
    size_t left;
} Job;

static inline void die(const char *what, const char *about)
{
    fprintf(stderr, "%s: %s\n", what, about);
    exit(1);
}

static inline float *floats(size_t n) /* zeros, on a cache line */
{
    float *p = (float *)aligned_alloc(64, (n * sizeof *p + 63) / 64 * 64);
    if (!p)
        die("out of memory", "floats");
    memset(p, 0, n * sizeof *p);
    return p;
}

/* The elements of DIR/name, `size` bytes each (format version 1: bytes 8 and 9 are the length of the header). */
static inline char *npy(const char *dir, const char *name, size_t size, size_t *count)
{
    char path[4096];
    unsigned char head[10];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "rb");
    if (!f || fread(head, 1, 10, f) != 10 || fseek(f, 0, SEEK_END) != 0)
        die("cannot read", path);
    const size_t skip = 10 + head[8] + 256u * head[9], bytes = (size_t)ftell(f) - skip;
    char *data = (char *)malloc(bytes);
    if (!data || fseek(f, (long)skip, SEEK_SET) != 0 || fread(data, 1, bytes, f) != bytes)
        die("cannot read", path);
    fclose(f);
    *count = bytes / size;
    return data;
}

static inline Job job_open(int argc, char **argv, int features)
{
    Job j;
    size_t pixels, labels;
    if (argc != 7)
        die("usage", "PROG MODEL MODE BATCH THREADS DROPOUT DIR");
    j.model = argv[1], j.batch = atoi(argv[3]), j.threads = atoi(argv[4]), j.features = features;
    unsigned char *byte = (unsigned char *)npy(argv[6], "train_x.npy", 1, &pixels);
    j.label = (int *)npy(argv[6], "train_y.npy", sizeof *j.label, &labels);
    j.weights = (float *)npy(argv[6], "weights.npy", sizeof *j.weights, &j.left);
    j.batches = (int)(labels / (size_t)j.batch);
    if (j.batches < 1 || pixels != labels * (size_t)features)
        die(argv[6], "is not for this model and batch");
    j.x = floats(pixels);
    for (size_t i = 0; i < pixels; i++)
        j.x[i] = (float)byte[i] * (1.0f / 255);
    free(byte);
    return j;
}

/* The next n given weights, in file order. */
static inline const float *take(Job *j, size_t n)
{
    const float *w = j->weights;
    if (n > j->left)
        die("weights.npy", "is too short");
    j->weights += n, j->left -= n;
    return w;
}

/* Softmax cross-entropy of one sample: d = (softmax - one_hot) * scale; returns the loss, unscaled. */
static inline float cross_entropy(float *d, const float *score, int classes, int label, float scale)
{
    float most = score[0], sum = 0;
    for (int i = 1; i < classes; i++)
        most = score[i] > most ? score[i] : most;
    for (int i = 0; i < classes; i++)
        sum += d[i] = expf(score[i] - most);
    for (int i = 0; i < classes; i++)
        d[i] = (d[i] / sum - (i == label ? 1.0f : 0.0f)) * scale;
    return logf(sum) + most - score[label];
}

static inline double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Makes one step on batch i; returns the mean loss before the update. */
typedef float Step(void *net, int i);

static inline double steps_take(const Job *j, Step *step, void *net, int n)
{
    const double began = seconds_now();
    for (int i = 0; i < n; i++)
        step(net, i % j->batches);
    return seconds_now() - began;
}

/* Returns the norm of the gradients of the first batch. */
typedef double Norm(void *net);

/* Answers requests until the input ends.  A measurement doubles the steps of its warm-up until it takes an eighth of the time.
 * loss: makes a step and returns its loss; norm: NULL if it is never requested. */
static inline int serve_checked(const Job *j, Step *step, Step *loss, Norm *norm, void *net,
                                const char *library, const char *version)
{
    char word[16];
    double number;
    printf("ready {\"%s\": \"%s\"}\n", library, version);
    fflush(stdout);
    while (scanf("%15s %lf", word, &number) == 2) {
        if (strcmp(word, "check") == 0) {
            printf("losses");
            for (int i = 0; i < (int)number; i++)
                printf(" %.9g", (double)loss(net, i));
            printf("\n");
        } else if (norm && strcmp(word, "gradient") == 0) {
            printf("norm %.9g\n", norm(net));
        } else {
            int steps = 1;
            double spent;
            while ((spent = steps_take(j, step, net, steps)) < number / 8)
                steps *= 2;
            steps = (int)(steps * number / spent + 0.5);
            steps = steps > 1 ? steps : 1;
            printf("time %d %.6f\n", steps, steps_take(j, step, net, steps));
        }
        fflush(stdout);
    }
    return 0;
}

static inline int serve(const Job *j, Step *step, void *net, const char *library,
                        const char *version)
{
    return serve_checked(j, step, step, NULL, net, library, version);
}

#endif
