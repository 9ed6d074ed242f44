/* test_text.c -- patterns of names. */
#include "base/text.h"
#include <check.h>
#include <stdlib.h>

START_TEST(patterns)
{
    static const struct {
        const char *pattern, *word;
        bool fits;
    } t[] = {{"a.b", "a.b", true},
             {"a.b", "a.bc", false},
             {"", "", true},
             {"*", "", true},
             {"*", "a.b", true},
             {"*.bias", "conv1.bias", true},
             {"*.bias", "a.b.bias", true},
             {"*.bias", "bias", false},
             {"stem.*", "stem.", true},
             {"stem.*", "stems.w", false},
             {"a*b*c", "aXbYbZc", true},
             {"a*b*c", "aXbYbZ", false},
             {"conv?.w", "conv1.w", true},
             {"conv?.w", "conv10.w", false},
             {"?", "", false},
             {"**a**", "bab", true}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        ck_assert_msg(text_glob(t[i].pattern, t[i].word) == t[i].fits, "%s, %s", t[i].pattern,
                      t[i].word);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("text");
    TCase *tests = tcase_create("text");
    tcase_add_test(tests, patterns);
    suite_add_tcase(s, tests);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
