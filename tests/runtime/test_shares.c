/* test_shares.c -- the samples of a split that the data do not have: each has its numbers and its target, and the other samples leave the
 * memory. */
#include "base/memory.h"
#include "data/data.h"
#include "data/npy.h"
#include "data/split.h"
#include "suite.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 4000, NUMBERS = 1024 };
static char directory[] = "/tmp/tenon-test-XXXXXX";

/* NAME.npy, whose row i has `numbers` numbers i. */
static void write_array(const char *name, int64_t numbers)
{
    char path[64], head[NPY_HEAD];
    float row[NUMBERS];
    snprintf(path, sizeof path, "%s/%s.npy", directory, name);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fwrite(head, 1, (size_t)npy_header(head, 4, ROWS, 1, &numbers), f);
    for (int i = 0; i < ROWS; i++) {
        for (int64_t k = 0; k < numbers; k++)
            row[k] = (float)i;
        fwrite(row, sizeof *row, (size_t)numbers, f);
    }
    ck_assert_int_eq(fclose(f), 0);
}

/* Bytes of memory in use. */
static int64_t resident(void)
{
    long long size, pages;
    FILE *f = fopen("/proc/self/statm", "r");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fscanf(f, "%lld %lld", &size, &pages), 2);
    fclose(f);
    return pages * 4096;
}

static void has_its_share(int inputs)
{
    static const RtInput input[] = {{.name = "x", .rank = 1, .dim = {NUMBERS}}};
    const RtProgram p = {.model = "test", .batch = 1, .real_bytes = 4, .input_rank = 1, .input_dim = {NUMBERS}, .ninput = inputs,
                         .input = input, .labels = 1, .outputs = 1, .target_kind = RT_TARGET_NUMBERS, .target_name = "y",
                         .target_rank = 1, .target_dim = {1}, .recipe = {.test = 0.5, .seed = 3}};
    const Split test = split_of(3, "test", 0.5, 0);
    strcpy(directory, "/tmp/tenon-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    write_array("x", NUMBERS);
    write_array("y", 1);
    const int64_t before = resident();
    Data *d = data_open(&p, directory, "test", 0);
    data_fill(d, NULL);
    const int64_t more = resident() - before, bytes = d->n * NUMBERS * 4;
    ck_assert_msg(d->n > ROWS / 3 && d->n < 2 * ROWS / 3, "%lld samples", (long long)d->n);
    for (int64_t i = 0, row = 0; i < d->n; i++, row++) {
        while (!split_takes(&test, (uint64_t)row))
            row++;
        const float *x = (const float *)(const void *)(d->x + i * d->stride), *y = (const float *)(const void *)data_label(d, i);
        ck_assert_msg(x[0] == row && x[NUMBERS - 1] == row && y[0] == row, "sample %lld: %g and %g, not %lld", (long long)i,
                      (double)x[0], (double)y[0], (long long)row);
    }
    ck_assert_msg(more < bytes + (4 << 20), "%d inputs: %.1f MB more in use, for %.1f MB", inputs, (double)more / 1e6, (double)bytes / 1e6);
    for (int k = 0; k < 2; k++) {
        char path[64];
        snprintf(path, sizeof path, "%s/%s.npy", directory, k ? "y" : "x");
        unlink(path);
    }
    rmdir(directory);
}

START_TEST(one_input)
{
    has_its_share(0);
}
END_TEST

START_TEST(an_input_of_several)
{
    has_its_share(1);
}
END_TEST

TEST_MAIN("shares", one_input, an_input_of_several)
