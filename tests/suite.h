/* suite.h -- main of a test program: runs a suite of the library Check.
 *
 * The library prints one line with the numbers of checks, failures and errors.
 */
#ifndef TESTS_SUITE_H
#define TESTS_SUITE_H
#include <check.h>

/* Frees the suite.  Returns the exit code: 1 if a test failed. */
static inline int suite_run(Suite *s)
{
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    const int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}

/* main() of a test program with one case: its tests, in a row. */
#define TEST_MAIN(name, ...)                                                                       \
    int main(void)                                                                                 \
    {                                                                                              \
        const TTest *const test[] = {__VA_ARGS__};                                                 \
        Suite *s = suite_create(name);                                                             \
        TCase *c = tcase_create(name);                                                             \
        for (size_t i = 0; i < sizeof test / sizeof *test; i++)                                    \
            tcase_add_test(c, test[i]);                                                            \
        suite_add_tcase(s, c);                                                                     \
        return suite_run(s);                                                                       \
    }

#endif
