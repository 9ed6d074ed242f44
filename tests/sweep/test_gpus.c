/* test_gpus.c -- data of GPUs from NVML, by a stand-in with two GPUs, which lies where this program
 * searches for libraries. */
#include "sweep/gpus.h"
#include "sweep/host.h"
#include "suite.h"
#include <check.h>
#include <math.h>
#include <stdlib.h>

START_TEST(gpus_are_described)
{
    Arena *a = arena_new();
    Text t = text_new(a);
    gpus_look(&t);
    ck_assert_str_eq(t.s, "gpu 0: Stand-in A, 80 GiB, at most 1980 MHz\n"
                          "gpu 1: Stand-in B, 81 GiB, at most 1981 MHz\n");
    arena_free(a);
}
END_TEST

START_TEST(the_first_gpus_energy_is_added)
{
    unsetenv("CUDA_VISIBLE_DEVICES");
    const double one = gpus_joules(1);
    ck_assert_double_eq_tol(gpus_joules(1) - one, 5, 1e-6);
    const double both = gpus_joules(2);
    ck_assert_double_eq_tol(gpus_joules(2) - both, 705, 1e-6);
    ck_assert_double_eq(gpus_joules(0), 0);
    ck_assert(isnan(gpus_joules(3))); /* there is no third GPU */
}
END_TEST

START_TEST(visible_devices_are_counted)
{
    setenv("CUDA_VISIBLE_DEVICES", "1,0", 1);
    double from = gpus_joules(1);
    ck_assert_double_eq_tol(gpus_joules(1) - from, 700, 1e-6);
    setenv("CUDA_VISIBLE_DEVICES", "GPU-8a56a4bc", 1); /* no number: the first */
    from = gpus_joules(1);
    ck_assert_double_eq_tol(gpus_joules(1) - from, 5, 1e-6);
    unsetenv("CUDA_VISIBLE_DEVICES");
}
END_TEST

/* The energy of a run on GPUs includes theirs: between the same two moments, only its counter contains what they used. */
START_TEST(a_meter_holds_the_gpus_of_its_run)
{
    const Meter from = host_meter(2), to = host_meter(2);
    ck_assert_double_ge(to.joules - from.joules, 704); /* and the energy of RAPL, if it is known */
    const Meter none = host_meter(0), after = host_meter(0);
    ck_assert(isnan(none.joules) || after.joules - none.joules < 100);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("gpus");
    TCase *t = tcase_create("nvml");
    tcase_add_test(t, gpus_are_described);
    tcase_add_test(t, the_first_gpus_energy_is_added);
    tcase_add_test(t, visible_devices_are_counted);
    tcase_add_test(t, a_meter_holds_the_gpus_of_its_run);
    suite_add_tcase(s, t);
    return suite_run(s);
}
