/* lstm_onednn.cpp -- an LSTM layer alone, forward and backward, as oneDNN's primitive.
 *
 *   lstm_onednn MODEL T,I,H BATCH THREADS 0 DIR        see yardstick.h; gates i, f, g, o as ours
 *
 * What lstm_layer.tn asks for: all states h of T steps of x (N, T, I), and from dh = h / N the gradients of weights, bias and x.
 * Weights and x lie as the primitives like them best and stay there, dh is made once: what is timed is the two primitives and
 * the zeros that the backward one adds to.  Ours also converts the samples, and updates.  A yardstick, not part of Tenon.
 *
 * Build: g++ -O3 -march=native -ffast-math -fopenmp lstm_onednn.cpp -ldnnl -lm      (oneDNN 2, with its OpenMP runtime)
 */
#include "yardstick.h"
#include <dnnl.hpp>
#include <omp.h>
#include <unordered_map>
#include <vector>

using namespace dnnl;
using Dims = memory::dims;
using Desc = memory::desc;
using Tag = memory::format_tag;
using Args = std::unordered_map<int, memory>;

static Desc laid(const Dims &d, Tag tag)
{
    return Desc(d, memory::data_type::f32, tag);
}

struct Layer {
    Job job;
    engine cpu{engine::kind::cpu, 0};
    stream queue{cpu};
    long t, n, i, h;
    lstm_forward::primitive_desc fpd;
    lstm_backward::primitive_desc bpd;
    lstm_forward forward;
    lstm_backward backward;
    std::vector<memory> x;        /* (T, N, I) a batch */
    memory y, dy, dx, dw, du, db; /* y, dy (T, N, H) */
    Args fargs, bargs;

    memory zeros(const Desc &d)
    {
        memory m(d, cpu);
        memset(m.get_data_handle(), 0, d.get_size());
        return m;
    }

    memory in_layout(memory m, const Desc &d)
    {
        memory r(d, cpu);
        reorder(m, r).execute(queue, m, r);
        queue.wait();
        return r;
    }

    float *numbers(const memory &m)
    {
        return static_cast<float *>(m.get_data_handle());
    }

    /* The next given matrix (4 H, inputs), as (1, 1, inputs, 4, H). */
    memory weights(long inputs)
    {
        memory m = zeros(laid({1, 1, inputs, 4, h}, Tag::ldigo));
        const float *w = take(&job, (size_t)(4 * h * inputs));
        for (long o = 0; o < 4 * h; o++)
            for (long k = 0; k < inputs; k++)
                numbers(m)[k * 4 * h + o] = w[o * inputs + k];
        return m;
    }

    Desc states()
    {
        return laid({1, 1, n, h}, Tag::ldnc);
    }

    /* First and last states, which are not used: without them, oneDNN 2.6.3 computes the recurrent weights' gradient wrongly by 2 %. */
    void describe()
    {
        const Desc x = laid({t, n, i}, Tag::any), y = laid({t, n, h}, Tag::any),
                   w = laid({1, 1, i, 4, h}, Tag::any), u = laid({1, 1, h, 4, h}, Tag::any),
                   b = laid({1, 1, 4, h}, Tag::ldgo);
        const auto way = rnn_direction::unidirectional_left2right;
        const Desc s = states();
        fpd = {{prop_kind::forward_training, way, x, s, s, w, u, b, y, s, s}, cpu};
        bpd = {{prop_kind::backward, way, x, s, s, w, u, b, y, s, s, x, s, s, w, u, b, y, s, s},
               cpu,
               fpd};
        forward = lstm_forward(fpd);
        backward = lstm_backward(bpd);
    }

    /* Weights in file order: the bias on x (zeros), w, b, u. */
    void allocate()
    {
        take(&job, (size_t)i);
        const memory w = weights(i);
        memory b = zeros(laid({1, 1, 4, h}, Tag::ldgo));
        memcpy(numbers(b), take(&job, (size_t)(4 * h)), sizeof(float) * (size_t)(4 * h));
        const memory u = weights(h);
        y = zeros(fpd.dst_layer_desc()), dy = zeros(bpd.diff_dst_layer_desc());
        dx = zeros(bpd.diff_src_layer_desc()), db = zeros(bpd.diff_bias_desc());
        dw = zeros(bpd.diff_weights_layer_desc()), du = zeros(bpd.diff_weights_iter_desc());
        const memory left = zeros(fpd.workspace_desc()), h0 = zeros(states()), c0 = zeros(states()),
                     ht = zeros(states()), ct = zeros(states());
        fargs = {{DNNL_ARG_WEIGHTS_LAYER, in_layout(w, fpd.weights_layer_desc())},
                 {DNNL_ARG_WEIGHTS_ITER, in_layout(u, fpd.weights_iter_desc())},
                 {DNNL_ARG_BIAS, b},
                 {DNNL_ARG_DST_LAYER, y},
                 {DNNL_ARG_WORKSPACE, left},
                 {DNNL_ARG_SRC_ITER, h0},
                 {DNNL_ARG_SRC_ITER_C, c0},
                 {DNNL_ARG_DST_ITER, ht},
                 {DNNL_ARG_DST_ITER_C, ct}};
        bargs = fargs;
        const Args more = {{DNNL_ARG_WEIGHTS_LAYER, in_layout(w, bpd.weights_layer_desc())},
                           {DNNL_ARG_WEIGHTS_ITER, in_layout(u, bpd.weights_iter_desc())},
                           {DNNL_ARG_DIFF_SRC_LAYER, dx},
                           {DNNL_ARG_DIFF_WEIGHTS_LAYER, dw},
                           {DNNL_ARG_DIFF_WEIGHTS_ITER, du},
                           {DNNL_ARG_DIFF_BIAS, db},
                           {DNNL_ARG_DIFF_DST_LAYER, dy},
                           {DNNL_ARG_DIFF_SRC_ITER, zeros(states())},
                           {DNNL_ARG_DIFF_SRC_ITER_C, zeros(states())},
                           {DNNL_ARG_DIFF_DST_ITER, zeros(states())},
                           {DNNL_ARG_DIFF_DST_ITER_C, zeros(states())}};
        for (const auto &one : more)
            bargs[one.first] = one.second;
    }

    void samples()
    {
        for (int k = 0; k < job.batches; k++) {
            memory m = zeros(laid({t, n, i}, Tag::ntc));
            memcpy(numbers(m), job.x + (size_t)k * (size_t)(n * t * i), m.get_desc().get_size());
            x.push_back(in_layout(m, fpd.src_layer_desc()));
        }
    }

    Layer(const Job &j, long steps, long inputs, long width)
        : job(j), t(steps), n(j.batch), i(inputs), h(width)
    {
        describe();
        allocate();
        samples();
        step(0);
        const memory states = in_layout(y, laid({t, n, h}, Tag::tnc));
        memory scaled = zeros(states.get_desc());
        for (long k = 0; k < t * n * h; k++)
            numbers(scaled)[k] = numbers(states)[k] / (float)n;
        reorder(scaled, dy).execute(queue, scaled, dy);
        queue.wait();
    }

    void step(int batch)
    {
        fargs[DNNL_ARG_SRC_LAYER] = bargs[DNNL_ARG_SRC_LAYER] = x[(size_t)batch];
        forward.execute(queue, fargs);
        for (const memory &m : {dw, du, db})
            memset(m.get_data_handle(), 0, m.get_desc().get_size());
        backward.execute(queue, bargs);
        queue.wait();
    }

    double squares(const memory &m, const Desc &plain)
    {
        const memory own = in_layout(m, plain);
        double sum = 0;
        for (size_t k = 0; k < plain.get_size() / sizeof(float); k++)
            sum += (double)numbers(own)[k] * numbers(own)[k];
        return sum;
    }
};

/* The mean over the samples of half the squares of all states. */
static float layer_step(void *net, int batch)
{
    Layer *l = static_cast<Layer *>(net);
    l->step(batch);
    return 0;
}
static float layer_loss(void *net, int batch)
{
    Layer *l = static_cast<Layer *>(net);
    l->step(batch);
    return (float)(0.5 * l->squares(l->y, laid({l->t, l->n, l->h}, Tag::tnc)) / (double)l->n);
}

/* Norm of the first batch's gradients, including that of the bias. */
static double layer_gradient(void *net)
{
    Layer *l = static_cast<Layer *>(net);
    l->step(0);
    double sum = l->squares(l->dw, laid({1, 1, l->i, 4, l->h}, Tag::ldigo)) +
                 l->squares(l->du, laid({1, 1, l->h, 4, l->h}, Tag::ldigo)) +
                 l->squares(l->db, laid({1, 1, 4, l->h}, Tag::ldgo));
    const memory dx = l->in_layout(l->dx, laid({l->t, l->n, l->i}, Tag::tnc));
    for (long k = 0; k < l->i; k++) {
        double one = 0;
        for (long row = 0; row < l->t * l->n; row++)
            one += l->numbers(dx)[row * l->i + k];
        sum += one * one;
    }
    return sqrt(sum);
}

int main(int argc, char **argv)
{
    long t, i, h;
    if (argc != 7 || sscanf(argv[2], "%ld,%ld,%ld", &t, &i, &h) != 3)
        die("usage", "lstm_onednn MODEL T,I,H BATCH THREADS 0 DIR");
    const Job job = job_open(argc, argv, (int)(t * i));
    omp_set_num_threads(job.threads);
    Layer layer(job, t, i, h);
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", dnnl_version()->major, dnnl_version()->minor,
             dnnl_version()->patch);
    return serve_checked(&job, layer_step, layer_loss, layer_gradient, &layer, "onednn", version);
}
