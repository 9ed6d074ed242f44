/* load.c -- the program of plans.sh: loads plans as a generated program does, for a described GPU.
 *
 *   load ARCH DRIVER PLAN DIR      prints the origin of the plan, its workspace, and milliseconds
 *
 * PLAN is a file of tenon-plan; its second line is the graph.  DIR "-": plans are not stored.
 */
#include "cuda/cudnn_load.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
    static char text[4 << 20];
    static const char *const from_text[] = {"embedded", "kept", "made"};
    char why[CUDNN_WHY], graph[8192];
    CudnnApi api;
    CudnnDevice device;
    CudnnPlan plan;
    CudnnFrom from;
    FILE *f = argc == 5 ? fopen(argv[3], "rb") : NULL;
    const size_t n = f ? fread(text, 1, sizeof text, f) : 0;
    if (n == 0 || sscanf(text, "%*[^\n]\n%8191[^\n]", graph) != 1)
        return fprintf(stderr, "load ARCH DRIVER PLAN DIR\n"), 2;
    fclose(f);
    if (!cudnn_open(&api, NULL, why) ||
        !cudnn_device_named(&device, &api, argv[1], atoi(argv[2]), why))
        return fprintf(stderr, "%s\n", why), 1;
    if (!cudnn_plan_load(&plan, &device, text, n))
        printf("%s\n", plan.why);
    cudnn_plan_free(&plan);
    const double start = now_ms();
    const CudnnPlanned planned = {.graph = graph, .plan = text, .bytes = n};
    if (!cudnn_load(&plan, &device, &planned, strcmp(argv[4], "-") ? argv[4] : NULL, true, &from))
        return fprintf(stderr, "%s\n", plan.why), 1;
    printf("%s workspace %lld %.1f ms\n", from_text[from], (long long)plan.workspace,
           now_ms() - start);
    cudnn_plan_free(&plan);
    cudnn_device_free(&device);
    cudnn_close(&api);
    return 0;
}
