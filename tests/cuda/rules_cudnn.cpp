/* rules_cudnn.cpp -- breaks rules of cuDNN: see rules.h and fake_cudnn.cpp.
 *
 * A convolution here is of one image with 4 x 4 numbers, all 1, and a filter of one number, 2; what is added to it is 3.
 */
#include "rules.h"
#include <cmath>
#include <cstring>
#include <vector>
extern "C" {
#include "cuda/cudnn_load.h"
}

enum { NUMBERS = 16, ROOM = 4096 };

static CudnnApi api;
static CudnnDevice device;
static cudnnHandle_t handle;
static cudaStream_t stream;
static unsigned char *workspace;
static float *w;

static float *filled(float x)
{
    float *v = new_memory<float>(NUMBERS);
    for (int i = 0; i < NUMBERS; i++)
        v[i] = x;
    return v;
}

static void run(const char *text, const std::vector<void *> &data, void *scratch)
{
    static const int64_t id[] = {1, 2, 3, 4, 5};
    CudnnGraph g;
    CudnnPlan p;
    const CudnnRules exact = {true, false};
    const bool made = cudnn_graph_read(&g, &api, text) && cudnn_plan_make(&p, &g, &device, &exact);
    hold(made ? text : "a plan", made && cudnn_plan_run(&p, handle, (int)data.size(), id, data.data(), scratch));
    cudaStreamSynchronize(stream);
}

static const char plain[] = "x f32 1 1 4 4 row; w f32 1 1 1 1 row; y f32 1 1 4 4 row; conv x w y",
                  added[] = "x f32 1 1 4 4 row; w f32 1 1 1 1 row; y f32 1 1 4 4 row; r f32 1 1 4 4 row; s f32 1 1 4 4 row virtual; conv x w s; add s r y",
                  sums[] = "x f32 1 1 4 4 row; w f32 1 1 1 1 row; y f32 1 1 4 4 row; u f32 1 1 1 1 row; v f32 1 1 1 1 row; conv x w y; genstats y u v";

static void outputs()
{
    float *x = filled(1), *y = filled(NAN), *r = filled(3);
    run(plain, {x, w, y}, workspace);
    hold("y is written and not read", y[0] == 2 && y[NUMBERS - 1] == 2);
    run(added, {x, w, y, r}, workspace);
    hold("a tensor is added", y[0] == 5 && y[NUMBERS - 1] == 5);
    run(plain, {x, w, x}, workspace);
    hold("y overlaps x", std::isnan(x[0]));
    x = filled(1);
    run(added, {x, w, r, r}, workspace);
    hold("y overlaps the tensor that is added", std::isnan(r[0]));
}

static void workspaces()
{
    float *x = filled(1), *y = (float *)workspace;
    memset(workspace, 0, ROOM);
    run(plain, {x, w, filled(0)}, workspace);
    hold("numbers that are kept in a workspace", undefined(workspace, ROOM));
    run(plain, {x, w, y}, workspace);
    hold("a workspace that overlaps y", undefined(workspace, ROOM));
}

/* Sums whose buffer has room for more numbers: only those of the tensor are written. */
static void of_sums()
{
    float *u = filled(7), *v = filled(7);
    run(sums, {filled(1), w, filled(0), u, v}, workspace);
    hold("sums", u[0] == 32 && v[0] == 64 && u[1] == 7 && v[1] == 7);
    run(sums, {u, w, filled(0), u, v}, workspace);
    hold("sums that overlap x", std::isnan(u[0]));
}

int main()
{
    char why[CUDNN_WHY];
    if (!cudnn_open(&api, NULL, why) || !cudnn_device_present(&device, &api, 0, why) || api.Create(&handle))
        return puts(why), 1;
    stream = new_stream();
    api.SetStream(handle, stream);
    workspace = new_memory<unsigned char>(ROOM);
    w = filled(2);
    outputs();
    workspaces();
    of_sums();
    return unnoticed != 0;
}
