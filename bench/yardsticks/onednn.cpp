/* onednn.cpp -- training steps as chains of oneDNN's primitives: LeNet (lenet, lenet_relu) and the multilayer perceptron (mlp).
 *
 *   onednn MODEL - BATCH THREADS 0 DIR        see yardstick.h
 *
 * As the library's guide recommends: every primitive chooses its layouts (format_tag::any), weights stay in that
 * layout, activations are fused into what comes before, and all reorders are made once, when the chain is built.  Loss and update
 * are loops of our own, over the weights as they lie.  A yardstick, not part of Tenon.
 *
 * Build: g++ -O3 -march=native -ffast-math -fopenmp onednn.cpp -ldnnl -lm      (oneDNN 2, with its OpenMP runtime)
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

static const Dims UNIT = {1, 1}, TWO = {2, 2}, NONE = {0, 0};

static Desc any(const Dims &d)
{
    return Desc(d, memory::data_type::f32, Tag::any);
}
static Desc plain(const Dims &d) /* row-major */
{
    static const Tag tag[] = {Tag::undef, Tag::a, Tag::ab, Tag::abc, Tag::abcd};
    return Desc(d, memory::data_type::f32, tag[d.size()]);
}

struct Parameter {
    memory w, v, dw;
    float decay;
}; /* all in one layout; v: momentum */

/* What a layer leaves for its backward pass. */
struct Conv {
    convolution_forward::primitive_desc pd;
    memory x, w, b, y;
    Dims pad;
};
struct Pool {
    pooling_forward::primitive_desc pd;
    memory x, y, where;
};
struct Dense {
    inner_product_forward::primitive_desc pd;
    memory x, w, b, y;
};

struct Net {
    Job job;
    engine cpu{engine::kind::cpu, 0};
    stream queue{cpu};
    struct Call {
        primitive p;
        std::unordered_map<int, memory> args;
    };
    std::vector<Call> forward, backward, *chain = &forward; /* chain: the one that grows */
    std::vector<Parameter> parameter;
    algorithm active;
    float momentum, decay;
    memory x, score, dscore; /* the batch; (batch, 10), row-major */

    explicit Net(const Job &j) : job(j)
    {
    }

    void call(const primitive &p, const std::unordered_map<int, memory> &args)
    {
        chain->push_back({p, args});
    }

    memory zeros(const Desc &d)
    {
        memory m(d, cpu);
        memset(m.get_data_handle(), 0, d.get_size());
        return m;
    }

    /* m in the layout d: itself, or a copy made anew each step. */
    memory in_layout(const memory &m, const Desc &d)
    {
        if (m.get_desc() == d)
            return m;
        memory r(d, cpu);
        call(reorder(m, r), {{DNNL_ARG_FROM, m}, {DNNL_ARG_TO, r}});
        return r;
    }

    /* The next given weights, laid out for good. */
    memory given(const Dims &dims, const Desc &d)
    {
        memory from(plain(dims), cpu), to = zeros(d);
        size_t n = from.get_desc().get_size();
        memcpy(from.get_data_handle(), take(&job, n / sizeof(float)), n);
        reorder(from, to).execute(queue, from, to);
        queue.wait();
        return to;
    }

    primitive_attr fused(bool activation)
    {
        primitive_attr attr;
        post_ops after;
        if (activation)
            after.append_eltwise(1, active, 0, 0);
        attr.set_post_ops(after);
        return attr;
    }

    void learns(const memory &w, const memory &dw, float d)
    {
        parameter.push_back({w, zeros(w.get_desc()), in_layout(dw, w.get_desc()), d});
    }

    /* ---- forward */

    Conv conv(const memory &from, const Dims &xd, int filters, int pad)
    {
        Conv c;
        const Dims wd = {filters, xd[1], 5, 5},
                   yd = {xd[0], filters, xd[2] + 2 * pad - 4, xd[3] + 2 * pad - 4};
        c.pad = {pad, pad};
        c.pd = {{prop_kind::forward_training, algorithm::convolution_direct, any(xd), any(wd),
                 plain({filters}), any(yd), UNIT, c.pad, c.pad},
                fused(true),
                cpu};
        c.w = given(wd, c.pd.weights_desc());
        c.b = given({filters}, plain({filters}));
        c.x = in_layout(from, c.pd.src_desc());
        c.y = memory(c.pd.dst_desc(), cpu);
        call(convolution_forward(c.pd), {{DNNL_ARG_SRC, c.x},
                                         {DNNL_ARG_WEIGHTS, c.w},
                                         {DNNL_ARG_BIAS, c.b},
                                         {DNNL_ARG_DST, c.y}});
        return c;
    }

    Pool pool(const memory &x)
    {
        Pool p;
        const Dims xd = x.get_desc().dims(), yd = {xd[0], xd[1], xd[2] / 2, xd[3] / 2};
        p.pd = {{prop_kind::forward_training, algorithm::pooling_max, x.get_desc(), any(yd), TWO,
                 TWO, NONE, NONE},
                cpu};
        p.x = x;
        p.y = memory(p.pd.dst_desc(), cpu);
        p.where = memory(p.pd.workspace_desc(), cpu);
        call(pooling_forward(p.pd),
             {{DNNL_ARG_SRC, p.x}, {DNNL_ARG_DST, p.y}, {DNNL_ARG_WORKSPACE, p.where}});
        return p;
    }

    Dense dense(const memory &from, int outputs, bool activation)
    {
        Dense l;
        const Dims xd = from.get_desc().dims(), yd = {xd[0], outputs};
        Dims wd = xd;
        wd[0] = outputs;
        l.pd = {{prop_kind::forward_training, any(xd), any(wd), plain({outputs}), any(yd)},
                fused(activation),
                cpu};
        l.w = given(wd, l.pd.weights_desc());
        l.b = given({outputs}, plain({outputs}));
        l.x = in_layout(from, l.pd.src_desc());
        l.y = memory(l.pd.dst_desc(), cpu);
        call(inner_product_forward(l.pd), {{DNNL_ARG_SRC, l.x},
                                           {DNNL_ARG_WEIGHTS, l.w},
                                           {DNNL_ARG_BIAS, l.b},
                                           {DNNL_ARG_DST, l.y}});
        return l;
    }

    /* ---- backward; dy is the gradient of the layer's output, after its activation */

    memory activation(const memory &y, const memory &from)
    {
        const Desc d = y.get_desc();
        const memory dy = in_layout(from, d), dx(d, cpu);
        const bool is_tanh = active == algorithm::eltwise_tanh;
        const eltwise_forward::primitive_desc hint({prop_kind::forward_training, active, d, 0.f},
                                                   cpu);
        const eltwise_backward::primitive_desc pd({is_tanh
                                                       ? algorithm::eltwise_tanh_use_dst_for_bwd
                                                       : algorithm::eltwise_relu_use_dst_for_bwd,
                                                   d, d, 0.f},
                                                  cpu, hint);
        call(eltwise_backward(pd),
             {{DNNL_ARG_DST, y}, {DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_DIFF_SRC, dx}});
        return dx;
    }

    memory unpool(const Pool &p, const memory &dy)
    {
        const pooling_backward::primitive_desc pd({algorithm::pooling_max, p.x.get_desc(),
                                                   p.y.get_desc(), TWO, TWO, NONE, NONE},
                                                  cpu, p.pd);
        const memory dx(p.x.get_desc(), cpu);
        call(pooling_backward(pd), {{DNNL_ARG_DIFF_DST, in_layout(dy, p.y.get_desc())},
                                    {DNNL_ARG_DIFF_SRC, dx},
                                    {DNNL_ARG_WORKSPACE, p.where}});
        return dx;
    }

    void conv_weights(const Conv &c, const memory &dy)
    {
        const Dims xd = c.x.get_desc().dims(), wd = c.w.get_desc().dims(),
                   yd = c.y.get_desc().dims();
        const convolution_backward_weights::primitive_desc pd({algorithm::convolution_direct,
                                                               any(xd), any(wd), plain({wd[0]}),
                                                               any(yd), UNIT, c.pad, c.pad},
                                                              cpu, c.pd);
        const memory dw(pd.diff_weights_desc(), cpu), db(plain({wd[0]}), cpu);
        call(convolution_backward_weights(pd),
             {{DNNL_ARG_SRC, in_layout(c.x, pd.src_desc())},
              {DNNL_ARG_DIFF_DST, in_layout(dy, pd.diff_dst_desc())},
              {DNNL_ARG_DIFF_WEIGHTS, dw},
              {DNNL_ARG_DIFF_BIAS, db}});
        learns(c.w, dw, decay);
        learns(c.b, db, 0);
    }

    memory conv_data(const Conv &c, const memory &dy)
    {
        const Dims xd = c.x.get_desc().dims(), wd = c.w.get_desc().dims(),
                   yd = c.y.get_desc().dims();
        const convolution_backward_data::primitive_desc pd({algorithm::convolution_direct, any(xd),
                                                            any(wd), any(yd), UNIT, c.pad, c.pad},
                                                           cpu, c.pd);
        const memory dx(pd.diff_src_desc(), cpu);
        call(convolution_backward_data(pd), {{DNNL_ARG_WEIGHTS, in_layout(c.w, pd.weights_desc())},
                                             {DNNL_ARG_DIFF_DST, in_layout(dy, pd.diff_dst_desc())},
                                             {DNNL_ARG_DIFF_SRC, dx}});
        return dx;
    }

    void dense_weights(const Dense &l, const memory &dy)
    {
        const Dims xd = l.x.get_desc().dims(), wd = l.w.get_desc().dims(),
                   yd = l.y.get_desc().dims();
        const inner_product_backward_weights::primitive_desc pd({any(xd), any(wd), plain({wd[0]}),
                                                                 any(yd)},
                                                                cpu, l.pd);
        const memory dw(pd.diff_weights_desc(), cpu), db(plain({wd[0]}), cpu);
        call(inner_product_backward_weights(pd),
             {{DNNL_ARG_SRC, in_layout(l.x, pd.src_desc())},
              {DNNL_ARG_DIFF_DST, in_layout(dy, pd.diff_dst_desc())},
              {DNNL_ARG_DIFF_WEIGHTS, dw},
              {DNNL_ARG_DIFF_BIAS, db}});
        learns(l.w, dw, decay);
        learns(l.b, db, 0);
    }

    memory dense_data(const Dense &l, const memory &dy)
    {
        const Dims xd = l.x.get_desc().dims(), wd = l.w.get_desc().dims(),
                   yd = l.y.get_desc().dims();
        const inner_product_backward_data::primitive_desc pd({any(xd), any(wd), any(yd)}, cpu,
                                                             l.pd);
        const memory dx(pd.diff_src_desc(), cpu);
        call(inner_product_backward_data(pd),
             {{DNNL_ARG_WEIGHTS, in_layout(l.w, pd.weights_desc())},
              {DNNL_ARG_DIFF_DST, in_layout(dy, pd.diff_dst_desc())},
              {DNNL_ARG_DIFF_SRC, dx}});
        return dx;
    }

    /* ---- the networks */

    void scores(const memory &y) /* the forward chain ends, the backward one begins */
    {
        score = in_layout(y, plain(y.get_desc().dims()));
        dscore = memory(score.get_desc(), cpu);
        chain = &backward;
    }

    void lenet(int pad)
    {
        x = memory(plain({job.batch, 1, 28, 28}), cpu);
        const Conv c1 = conv(x, x.get_desc().dims(), 20, pad);
        const Pool p1 = pool(c1.y);
        const Conv c2 = conv(p1.y, p1.y.get_desc().dims(), 50, pad);
        const Pool p2 = pool(c2.y);
        const Dense l1 = dense(p2.y, 500, true), l2 = dense(l1.y, 10, false);
        scores(l2.y);
        dense_weights(l2, dscore);
        const memory d1 = activation(l1.y, dense_data(l2, dscore));
        dense_weights(l1, d1);
        const memory d2 = activation(c2.y, unpool(p2, dense_data(l1, d1)));
        conv_weights(c2, d2);
        conv_weights(c1, activation(c1.y, unpool(p1, conv_data(c2, d2))));
    }

    void mlp()
    {
        x = memory(plain({job.batch, 784}), cpu);
        const Dense l1 = dense(x, 128, true), l2 = dense(l1.y, 64, true),
                    l3 = dense(l2.y, 10, false);
        scores(l3.y);
        dense_weights(l3, dscore);
        const memory d2 = activation(l2.y, dense_data(l3, dscore));
        dense_weights(l2, d2);
        dense_weights(l1, activation(l1.y, dense_data(l2, d2)));
    }

    /* ---- the step */

    float loss(const int *label)
    {
        const float *s = (const float *)score.get_data_handle();
        float *d = (float *)dscore.get_data_handle(), sum = 0;
        const float scale = 1 / (float)job.batch;
#pragma omp parallel for reduction(+ : sum)
        for (int i = 0; i < job.batch; i++)
            sum += cross_entropy(d + 10 * i, s + 10 * i, 10, label[i], scale);
        return sum * scale;
    }

    void update() /* v = momentum v + (g + decay w), w -= 0.05 v */
    {
#pragma omp parallel
        for (const Parameter &p : parameter) {
            float *w = (float *)p.w.get_data_handle(), *v = (float *)p.v.get_data_handle();
            const float *g = (const float *)p.dw.get_data_handle(), d = p.decay, m = momentum;
            const long n = (long)(p.w.get_desc().get_size() / sizeof(float));
#pragma omp for simd nowait
            for (long i = 0; i < n; i++) {
                v[i] = m * v[i] + (g[i] + d * w[i]);
                w[i] -= 0.05f * v[i];
            }
        }
    }

    float step(int i)
    {
        x.set_data_handle(job.x + (size_t)i * (size_t)job.batch * (size_t)job.features);
        for (const Call &c : forward)
            c.p.execute(queue, c.args);
        const float mean = loss(job.label + i * job.batch);
        for (const Call &c : backward)
            c.p.execute(queue, c.args);
        queue.wait();
        update();
        return mean;
    }
};

static float step(void *net, int i)
{
    return ((Net *)net)->step(i);
}

int main(int argc, char **argv)
{
    Net t(job_open(argc, argv, 784));
    const bool relu_net = strcmp(t.job.model, "lenet_relu") == 0;
    char version[32];
    omp_set_num_threads(t.job.threads);
    t.active =
        strcmp(t.job.model, "lenet") == 0 ? algorithm::eltwise_tanh : algorithm::eltwise_relu;
    t.momentum = relu_net ? 0 : 0.9f, t.decay = relu_net ? 0 : 1e-4f;
    if (strcmp(t.job.model, "mlp") == 0)
        t.mlp();
    else if (relu_net || strcmp(t.job.model, "lenet") == 0)
        t.lenet(relu_net ? 2 : 0);
    else
        die(t.job.model, "is not computed here");
    snprintf(version, sizeof version, "%d.%d.%d", dnnl_version()->major, dnnl_version()->minor,
             dnnl_version()->patch);
    return serve(&t.job, step, &t, "onednn", version);
}
