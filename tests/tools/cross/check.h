/* check.h -- the part of the library Check that tests/kernels use, for processors without this
 * library.
 *
 * Tests run one after another in one process; a failed assertion ends its test.  The last line is
 * like Check's: "100%: Checks: 94, Failures: 0, Errors: 0".  CHECK_EVERY=7 in the environment runs
 * the first and then each 7th round of a loop test: an emulator takes 30 times as long as a
 * processor.
 */
#ifndef CROSS_CHECK_H
#define CROSS_CHECK_H
#include <math.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void CheckFunction(int i);
typedef struct CheckTest { CheckFunction *run; const char *name; int from, to; } CheckTest;
typedef struct Suite { const char *name; CheckTest test[200]; int n; } Suite;
typedef Suite TCase;                                  /* one case a suite is all that is needed */
typedef struct SRunner { Suite *suite; int checks, failures; } SRunner;

static jmp_buf check_end;
static Suite check_suite;
static SRunner check_runner;

#define START_TEST(name) static void name(int _i) { (void)_i;
#define END_TEST }
#define ck_assert_msg(condition, ...)                                                                                  \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            printf("%s:%d: ", __FILE__, __LINE__);                                                                     \
            printf(__VA_ARGS__);                                                                                       \
            putchar('\n');                                                                                             \
            longjmp(check_end, 1);                                                                                     \
        }                                                                                                              \
    } while (0)
#define ck_abort_msg(...)                   ck_assert_msg(0, __VA_ARGS__)
#define ck_assert(condition)                ck_assert_msg(condition, "FAIL %s", #condition)
#define ck_assert_int_eq(a, b)              ck_assert((intmax_t)(a) == (intmax_t)(b))
#define ck_assert_int_gt(a, b)              ck_assert((intmax_t)(a) > (intmax_t)(b))
#define ck_assert_int_le(a, b)              ck_assert((intmax_t)(a) <= (intmax_t)(b))
#define ck_assert_int_lt(a, b)              ck_assert((intmax_t)(a) < (intmax_t)(b))
#define ck_assert_double_eq(a, b)           ck_assert((double)(a) == (double)(b))
#define ck_assert_double_eq_tol(a, b, tol)  ck_assert(fabs((double)(a) - (double)(b)) < (double)(tol))
#define ck_assert_mem_eq(a, b, n)           ck_assert(memcmp(a, b, n) == 0)
#define ck_assert_ptr_nonnull(p)            ck_assert((p) != NULL)

enum { CK_NORMAL };
#define tcase_add_test(c, fn)                 tcase_add_loop_test(c, fn, 0, 1)
#define CROSS_CHECK
#define tcase_add_loop_test(c, fn, low, high) ((c)->test[(c)->n++] = (CheckTest){fn, #fn, low, high})
static inline TCase *tcase_create(const char *name) { (void)name; return &check_suite; }
static inline void tcase_set_timeout(TCase *c, double seconds) { (void)c, (void)seconds; }
static inline Suite *suite_create(const char *name) { check_suite.name = name; return &check_suite; }
static inline void suite_add_tcase(Suite *s, TCase *c) { (void)s, (void)c; }
static inline SRunner *srunner_create(Suite *s) { check_runner.suite = s; return &check_runner; }
static inline int srunner_ntests_failed(SRunner *r) { return r->failures; }
static inline void srunner_free(SRunner *r) { (void)r; }
static inline void srunner_run_all(SRunner *r, int how)
{
    const char *every = getenv("CHECK_EVERY");
    const int step = every && atoi(every) > 0 ? atoi(every) : 1;
    (void)how;
    for (int t = 0; t < r->suite->n; t++)
        for (volatile int i = r->suite->test[t].from; i < r->suite->test[t].to; i += step) {
            r->checks++;
            if (setjmp(check_end) == 0)
                r->suite->test[t].run(i);
            else
                printf("FAIL %s:%d\n", r->suite->test[t].name, i), r->failures++;
        }
    printf("%d%%: Checks: %d, Failures: %d, Errors: 0\n", r->checks ? 100 * (r->checks - r->failures) / r->checks : 0, r->checks,
           r->failures);
}

#endif
