/* test_npy.c -- headers of .npy files that are cut at any byte: each gives an error, and under the
 * address sanitizer no byte after the end is read. */
#include "data/npy.h"
#include "death.h"
#include "suite.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char path[] = "/tmp/tenon-test-XXXXXX";
static const char whole[] = "{'fortran_order': False, 'shape': (2, 4), 'descr': '<f4";

static void map(void)
{
    Npy a;
    npy_map(&a, path);
}

/* A header of the first `length` letters. */
static void write_head(size_t length)
{
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    fprintf(f, "\x93NUMPY\x01%c%c%c%.*s", 0, (int)length, 0, (int)length, whole);
    for (int i = 0; i < 64; i++)
        putc(0, f);
    ck_assert_int_eq(fclose(f), 0);
}

START_TEST(a_header_that_ends_anywhere_is_an_error)
{
    const int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
    for (size_t n = 0; n < sizeof whole; n++) {
        write_head(n);
        const char *said = last_words(map);
        ck_assert_msg(strstr(said, path) != NULL, "%zu letters: %s", n, said);
    }
    unlink(path);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("npy");
    TCase *t = tcase_create("npy");
    tcase_add_test(t, a_header_that_ends_anywhere_is_an_error);
    suite_add_tcase(s, t);
    return suite_run(s);
}
