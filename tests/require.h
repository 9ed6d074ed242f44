/* require.h -- an assertion for loops over elements.
 *
 * Each ck_assert of the library Check writes its line to a pipe, also if it holds: 1.5 million of them took
 * 16 of the 18 s of test_order.  REQUIRE(condition, format, ...) writes only if the condition is false.
 */
#ifndef TESTS_REQUIRE_H
#define TESTS_REQUIRE_H
#include <check.h>

#define REQUIRE(condition, ...)                                                                    \
    do {                                                                                           \
        if (!(condition))                                                                          \
            ck_abort_msg(__VA_ARGS__);                                                             \
    } while (0)

#endif
