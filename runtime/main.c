/* main.c -- rt_main: is this the right machine, what is asked for, do it. */
#include "error.h"
#include "options.h"
#include "train.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void rt_check_processor(const RtProgram *p)
{
    const char *missing = NULL;
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi2");
    const bool v4 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl");
    if (p->isa == RT_ISA_X86_V3 && !v3)
        missing = "AVX2 and FMA (x86-64-v3)";
    if (p->isa == RT_ISA_X86_V4 && !(v3 && v4))
        missing = "AVX-512 (x86-64-v4)";
#else
    (void)p; /* every processor that starts the program has what it needs */
#endif
    if (missing)
        rt_die("this program needs a processor with %s, which this machine has not: build it here "
               "with --cpu native, or anywhere with --cpu generic",
               missing);
}

static int number_in(const char *variable)
{
    const char *text = getenv(variable);
    return text ? atoi(text) : 0;
}

/* Several copies that know nothing of each other would each train the whole network. */
static void check_alone(void)
{
    static const char *const size[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"};
    for (size_t i = 0; i < sizeof size / sizeof *size; i++)
        if (number_in(size[i]) > 1)
            rt_die("this is one of %d tasks (%s), but the program was built with --comm none: "
                   "build it with --comm mpi, or start one task",
                   number_in(size[i]), size[i]);
}

int rt_main(const RtProgram *p, int argc, char **argv)
{
    static char buffer[1 << 14];
    static Options o;
    static int (*const run[COMMANDS])(const RtProgram *, const Options *) =
        {[TRAIN] = train_run, [TEST] = test_run, [PREDICT] = predict_run,
         [BENCH] = bench_run, [INFO] = info_run, [GRADCHECK] = gradcheck_run,
         [GRADS] = grads_run};
    setvbuf(stdout, buffer, _IOLBF, sizeof buffer);
    options_parse(&o, p, argc, argv);
    if (o.command != INFO) {
        rt_check_processor(p);
        check_alone();
    }
    const int code = run[o.command](p, &o);
    if (fflush(stdout) != 0 || ferror(stdout))
        rt_die("the output could not be written");
    fflush(stderr);
    _exit(code); /* the other threads need no farewell */
}
