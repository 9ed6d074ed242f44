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

/* A program opens its data once and keeps them. */
#define LEAKS_KEPT "leak:data_open\nleak:data_fill\n"
#include "leaks.h"

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

/* n images from number `first`: a label if there are labels, and bytes that repeat the number, low byte first. */
static void write_images(FILE *f, int first, int n, bool labels, int bytes)
{
    for (int i = first; i < first + n; i++) {
        if (labels)
            fputc(i % 10, f);
        for (int k = 0; k < bytes; k++)
            fputc(i >> k % 2 * 8 & 255, f);
    }
}

static FILE *new_file(const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    return f;
}

/* Opens a share of the images.  The others need no memory, not even while the files are read. */
static void keeps_its_images(const char *split, int images, const int64_t dim[3])
{
    const int64_t bytes = dim[0] * dim[1] * dim[2];
    const RtProgram p = {.model = "test", .batch = 1, .real_bytes = 4, .input_rank = 3, .input_dim = {dim[0], dim[1], dim[2]},
                         .labels = 1, .outputs = 10, .classes = 10, .softmax_output = true, .target_kind = RT_TARGET_CLASS,
                         .recipe = {.validation = 0.1, .seed = 3}};
    const Split share = split_of(3, split, 0, 0.1);
    const int64_t before = resident();
    Data *d = data_open(&p, directory, split, 0);
    data_fill(d, NULL);
    const int64_t more = memory_peak() - before, kept = d->n * bytes;
    int64_t row = 0;
    for (int64_t i = 0; i < d->n; i++, row++) {
        while (!split_takes(&share, (uint64_t)row))
            row++;
        const uint8_t *x = (const uint8_t *)d->x + i * d->stride;
        ck_assert_msg((x[0] | x[1] << 8) == row && x[bytes - 1] == row >> (bytes - 1) % 2 * 8 % 256 && d->label[i] == row % 10,
                      "sample %lld: image %d of class %d, not %lld", (long long)i, x[0] | x[1] << 8, d->label[i], (long long)row);
    }
    for (; row < images; row++)
        ck_assert(!split_takes(&share, (uint64_t)row));
    ck_assert_msg(more < kept + (4 << 20), "%s: a peak of %.1f MB more, for %.1f MB", split, (double)more / 1e6, (double)kept / 1e6);
}

static void remove_files(const char *const *name, int n)
{
    char path[64];
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, name[i]);
        unlink(path);
    }
    rmdir(directory);
}

START_TEST(images_of_mnist)
{
    static const char *const name[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte"};
    enum { IMAGES = 20000 };
    strcpy(directory, "/tmp/tenon-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    FILE *x = new_file(name[0]), *y = new_file(name[1]);
    fwrite("\0\0\10\3\0\0\116\40\0\0\0\34\0\0\0\34", 1, 16, x);
    fwrite("\0\0\10\1\0\0\116\40", 1, 8, y);
    write_images(x, 0, IMAGES, false, 28 * 28);
    write_images(y, 0, IMAGES, true, 0);
    fclose(x), fclose(y);
    keeps_its_images("validation", IMAGES, (const int64_t[]){1, 28, 28});
    keeps_its_images("train", IMAGES, (const int64_t[]){1, 28, 28});
    remove_files(name, 2);
}
END_TEST

START_TEST(images_of_cifar)
{
    static const char *const name[] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                                       "data_batch_5.bin"};
    enum { EACH = 1000 };
    strcpy(directory, "/tmp/tenon-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    for (int i = 0; i < 5; i++) {
        FILE *f = new_file(name[i]);
        write_images(f, i * EACH, EACH, true, 3 * 32 * 32);
        fclose(f);
    }
    keeps_its_images("validation", 5 * EACH, (const int64_t[]){3, 32, 32});
    keeps_its_images("train", 5 * EACH, (const int64_t[]){3, 32, 32});
    remove_files(name, 5);
}
END_TEST

TEST_MAIN("shares", one_input, an_input_of_several, images_of_mnist, images_of_cifar)
