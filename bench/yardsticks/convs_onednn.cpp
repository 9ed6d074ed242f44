/* convs_onednn.cpp -- a convolution by oneDNN's primitives, as its guide recommends: layouts that the library chooses (format
 * any), bias and relu in the forward primitive, reorders outside of the measured time, scratch allocated before.
 *
 * Two sides: direct (convolution_direct, which frameworks use), and Winograd F(4x4, 3x3) if the library offers it
 * (convolution_auto).
 */
#include "convs.h"
#include <cstring>
#include <dnnl.hpp>
#include <omp.h>
#include <string>
#include <unordered_map>

using namespace dnnl;
using Dims = memory::dims;

namespace
{
const auto F32 = memory::data_type::f32;
ConvShape shape;
engine cpu;
stream queue;
struct Side {
    primitive primitives[OPS];
    std::unordered_map<int, memory> arguments[OPS];
    std::string algorithms[OPS];
} direct, fast;

/* The plain layouts of convs.h as oneDNN sees them: logical dims, strides of ours. */
memory::desc plain_image(int c, int h)
{
    return {Dims{shape.n, c, h, h}, F32, Dims{(long)h * h * c, 1, (long)h * c, c}};
}
memory::desc plain_weights()
{
    const long g = shape.groups, o = shape.o / g, i = shape.c / g, r = shape.r;
    if (g == 1)
        return {Dims{o, i, r, r}, F32, Dims{r * r * i, 1, r * i, i}};
    return {Dims{g, o, i, r, r}, F32, Dims{o * r * r * i, r * r * i, 1, r * i, i}};
}
memory::desc any(const memory::desc &d)
{
    return {d.dims(), F32, memory::format_tag::any};
}

memory filled(const memory::desc &d, const memory::desc &plain, const float *from)
{
    memory to(d, cpu), m(plain, cpu, const_cast<float *>(from));
    reorder(m, to).execute(queue, m, to);
    queue.wait();
    return to;
}

void setup(Side &side, algorithm algorithm, ConvShape s, const float *x, const float *w,
           const float *b, const float *dy, int threads)
{
    omp_set_num_threads(threads); /* primitives keep the number they were made with */
    shape = s;
    if (!cpu)
        cpu = engine(engine::kind::cpu, 0), queue = stream(cpu);
    const auto xd = plain_image(s.c, s.h), yd = plain_image(s.o, s.oh), wd = plain_weights();
    const memory::desc bd(Dims{s.o}, F32, memory::format_tag::x);
    const Dims stride{s.stride, s.stride}, before{s.pad, s.pad};
    const int reach = (s.oh - 1) * s.stride + s.r - s.h - s.pad;
    const Dims behind{reach, reach};

    primitive_attr relu;
    post_ops post;
    post.append_eltwise(1.f, algorithm::eltwise_relu, 0, 0);
    relu.set_post_ops(post);
    const convolution_forward::primitive_desc f({prop_kind::forward_training, algorithm, any(xd),
                                                 any(wd), bd, any(yd), stride, before, behind},
                                                relu, cpu);
    const convolution_backward_data::primitive_desc d({algorithm, any(xd), any(wd), any(yd), stride,
                                                       before, behind},
                                                      cpu, f);
    const convolution_backward_weights::primitive_desc g({algorithm, any(xd), any(wd), any(yd),
                                                          stride, before, behind},
                                                         cpu, f);
    side.primitives[FORWARD] = convolution_forward(f);
    side.primitives[DATA] = convolution_backward_data(d);
    side.primitives[WEIGHTS] = convolution_backward_weights(g);
    side.algorithms[FORWARD] = f.impl_info_str();
    side.algorithms[DATA] = d.impl_info_str();
    side.algorithms[WEIGHTS] = g.impl_info_str();
    side.arguments[FORWARD] = {{DNNL_ARG_SRC, filled(f.src_desc(), xd, x)},
                               {DNNL_ARG_WEIGHTS, filled(f.weights_desc(), wd, w)},
                               {DNNL_ARG_BIAS, filled(bd, bd, b)},
                               {DNNL_ARG_DST, memory(f.dst_desc(), cpu)}};
    side.arguments[DATA] = {{DNNL_ARG_DIFF_DST, filled(d.diff_dst_desc(), yd, dy)},
                            {DNNL_ARG_WEIGHTS, filled(d.weights_desc(), wd, w)},
                            {DNNL_ARG_DIFF_SRC, memory(d.diff_src_desc(), cpu)}};
    side.arguments[WEIGHTS] = {{DNNL_ARG_SRC, filled(g.src_desc(), xd, x)},
                               {DNNL_ARG_DIFF_DST, filled(g.diff_dst_desc(), yd, dy)},
                               {DNNL_ARG_DIFF_WEIGHTS, memory(g.diff_weights_desc(), cpu)}};
}

void run(Side &side, int op)
{
    side.primitives[op].execute(queue, side.arguments[op]);
}

void result(Side &side, int op, float *to)
{
    static const int name[OPS] = {DNNL_ARG_DST, DNNL_ARG_DIFF_SRC, DNNL_ARG_DIFF_WEIGHTS};
    const memory::desc plain[OPS] = {plain_image(shape.o, shape.oh), plain_image(shape.c, shape.h),
                                     plain_weights()};
    memory from = side.arguments[op].at(name[op]), m(plain[op], cpu, to);
    reorder(from, m).execute(queue, from, m);
    queue.wait();
}

/* Where the library chooses as for direct, the second side has nothing to add. */
const char *fast_algorithm(int op)
{
    return fast.algorithms[op] == direct.algorithms[op] ? nullptr : fast.algorithms[op].c_str();
}
} // namespace

const ConvSide conv_onednn = {"oneDNN",
                              [](ConvShape s, const float *x, const float *w, const float *b,
                                 const float *dy, int threads) {
                                  setup(direct, algorithm::convolution_direct, s, x, w, b, dy,
                                        threads);
                              },
                              [](int op) { run(direct, op); },
                              [](int op, float *to) { result(direct, op, to); },
                              [](int op) { return direct.algorithms[op].c_str(); }};

const ConvSide conv_onednn_fast = {"oneDNN's fast algorithm",
                                   [](ConvShape s, const float *x, const float *w, const float *b,
                                      const float *dy, int threads) {
                                       setup(fast, algorithm::convolution_auto, s, x, w, b, dy,
                                             threads);
                                   },
                                   [](int op) { run(fast, op); },
                                   [](int op, float *to) { result(fast, op, to); }, fast_algorithm};
