/* test_safetensors.c -- each written file can be read: names, metadata and sizes at all limits,
 * files of other programs, and files with a wrong bit. */
#define _GNU_SOURCE
#include "base/error.h"
#include "base/json.h"
#include "base/threads.h"
#include "files/safetensors.h"
#include "suite.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char scratch[64], path[128];

static void setup(void)
{
    snprintf(scratch, sizeof scratch, "/tmp/tenon-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(scratch));
    snprintf(path, sizeof path, "%s/w", scratch);
}

static void teardown(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", scratch);
    ck_assert_int_eq(system(command), 0);
}

static const RtProgram program = {.model = "test", .real_bytes = 4};

/* A text of n bytes: letters, or characters that JSON escapes, or characters of one to four bytes. */
static char *text(int64_t n, int kind)
{
    static const char *const piece[] = {"a", "\"\\\n\x01", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x99\x82z"};
    char *t = rt_alloc((size_t)n + 1);
    const size_t length = strlen(piece[kind]);
    for (int64_t i = 0; i < n; i++)
        t[i] = piece[kind][(size_t)i % length];
    while (kind == 2 && n % (int64_t)length)           /* whole characters only */
        t[--n] = '\0';
    return t;
}

/* Two tensors, one with a name of `name` bytes, and an item of metadata of `value` bytes: written and read back. */
static void goes_round(int64_t name, int64_t key, int64_t value, int kind)
{
    char why[256];
    const float x[] = {1.5f, -2, 3e38f, 0}, y[] = {7};
    const RtParam a = {.rank = 2, .dim = {2, 2}, .naxis = 1, .axis = {{4, 1, 1, 0}}, .count_memory = 4},
                  b = {.rank = 0, .naxis = 1, .axis = {{1, 1, 1, 0}}, .count_memory = 1};
    char *const of_a = text(name, kind), *const k = text(key, kind), *const v = text(value, kind);
    StWriter *w = st_writer_new(&program, 2);
    w->tensor[0] = (StTensor){of_a, &a, (const char *)x};
    w->tensor[1] = (StTensor){"scalar", &b, (const char *)y};
    st_writer_item(w, "format", "tenon weights 2", 0);
    st_writer_item(w, k, v, 0);
    st_writer_ready(w, path);
    st_write(w, path);
    StFile *f = st_open(path, why);
    ck_assert_msg(f != NULL, "name %lld, key %lld, value %lld, kind %d: %s", (long long)name, (long long)key, (long long)value,
                  kind, why);
    ck_assert(st_intact(f, true));
    ck_assert_str_eq(st_meta(f, k), v);
    const StEntry *e = st_find(f, of_a);
    ck_assert(e && st_same_shape(e, &a) && st_is_float(e));
    ck_assert_mem_eq(f->data + e->begin, x, sizeof x);
    e = st_find(f, "scalar");
    ck_assert(e && e->rank == 0);
    ck_assert_mem_eq(f->data + e->begin, y, sizeof y);
    st_close(f);
    free(of_a), free(k), free(v), free(w->head), free(w->tensor), free(w);
}

START_TEST(what_is_written_is_read)
{
    static const int64_t around[] = {1, 8, 32, 63, 64, 65, 120, 247, 256, 447, 448, 639, 640, 700, 1024, 4096, 8192, 65536, 1 << 20};
    for (size_t i = 0; i < sizeof around / sizeof *around; i++)
        for (int kind = 0; kind < 3; kind++)
            for (int64_t n = around[i] < 2 ? 1 : around[i] - 1; n <= around[i] + 1; n++) {
                if (around[i] > 8192 && n != around[i])
                    continue;
                const int64_t m = kind == 2 && n < 10 ? 10 : n;
                goes_round(m, 10, 10, kind);
                goes_round(10, m, 10, kind);
                goes_round(10, 10, m, kind);
            }
}
END_TEST

/* GPUs keep denormals in states; the processor's threads flush them in arithmetic, but a file that is loaded keeps its bits. */
START_TEST(denormals_go_round)
{
    char why[256];
    const uint32_t x[] = {1, 0x80000001, 0x007fffff, 0x00800000}; /* the smallest denormals, the largest, the smallest normal number */
    const RtParam p = {.rank = 1, .dim = {4}, .naxis = 1, .axis = {{4, 1, 1, 0}}, .count_memory = 4};
    uint32_t back[4] = {0};
    StWriter *w = st_writer_new(&program, 1);
    threads_flush_denormals();
    w->tensor[0] = (StTensor){"x", &p, (const char *)x};
    st_writer_ready(w, path);
    st_write(w, path);
    StFile *f = st_open(path, why);
    ck_assert_ptr_nonnull(f);
    st_load(f, st_find(f, "x"), &p, 4, (char *)back);
    ck_assert_mem_eq(back, x, sizeof x);
    st_close(f);
    free(w->head), free(w->tensor), free(w);
}
END_TEST

START_TEST(random_lengths_go_round)
{
    const char *deep = getenv("CHECK_DEEP");
    srand(5);
    for (int i = 0; i < (deep && *deep == '1' ? 5000 : 40); i++)
        goes_round(10 + rand() % 3000, 10 + rand() % 3000, 10 + rand() % 3000, rand() % 3);
}
END_TEST

/* A file with this header before `data` bytes of zeros. */
static void put(const char *header, int64_t length, int data)
{
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    for (int i = 0; i < 8; i++)
        fputc((int)(length >> 8 * i & 255), f);
    fwrite(header, 1, (size_t)length, f);
    for (int i = 0; i < data; i++)
        fputc(0, f);
    fclose(f);
}

static StFile *reads(const char *header, int data)
{
    char why[256];
    put(header, (int64_t)strlen(header), data);
    StFile *f = st_open(path, why);
    ck_assert_msg(f != NULL, "%.100s: %s", header, why);
    ck_assert(st_intact(f, false));
    return f;
}

#define ENTRY "\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]"

START_TEST(files_of_other_tools_are_read)
{
    static const char *const header[] = {
        "{\"__metadata__\":null,\"x\":{" ENTRY "}}", "{\"x\":{" ENTRY "},\"__metadata__\":{}}",
        "{\"__metadata__\":{\"format\":\"pt\"},\"x\":{" ENTRY "}}",
        "{\"__metadata__\":{\"format\":\"tenon weights 1\",\"model\":\"m\"},\"x\":{" ENTRY "}}",
        "{\"__metadata__\":{\"content\":\"weights of a network\"},\"x\":{" ENTRY "}}",
        "{\"x\":{" ENTRY ",\"unknown\":{\"a\":[1,-2.5e3,true,false,null,\"]}\\\"\"],\"b\":{}}}}",
        "{\"x\":{\"stride\":[],\"\":\"\"," ENTRY "}}   ", "{\"\\ud83d\\ude42\":{" ENTRY "},\"x\":{" ENTRY "}}",
        "{\"y\":{\"dtype\":\"F8_E4M3\",\"shape\":[2],\"data_offsets\":[0,2]},\"x\":{" ENTRY "}}",
        "{\"y\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1,1,2],\"data_offsets\":[0,2]},\"x\":{" ENTRY "}}"};
    for (size_t i = 0; i < sizeof header / sizeof *header; i++) {
        StFile *f = reads(header[i], 4);
        const StEntry *e = st_find(f, "x");
        ck_assert_msg(e && e->rank == 1 && e->dim[0] == 1 && st_is_float(e), "%s", header[i]);
        ck_assert(i != 7 || st_find(f, "\xf0\x9f\x99\x82"));
        st_close(f);
    }
}
END_TEST

START_TEST(what_is_no_header_is_refused)
{
    char why[256], deep[400] = "{\"x\":{\"k\":";
    static const char *const header[] = {
        "", "{", "[]", "null", "{\"x\":null}", "{\"x\":{\"dtype\":\"F32\"}}", "{\"x\":{\"shape\":[1],\"data_offsets\":[0,4]}}",
        "{\"x\":{\"dtype\":\"F32\",\"data_offsets\":[0,4,8],\"shape\":[1]}}", "{\"x\":{" ENTRY ",\"k\":}}", "{\"x\":{" ENTRY ",\"k\":nul}}",
        "{\"x\":{" ENTRY ",\"k\":[1,}}", "{\"x\":{" ENTRY ",\"k\":\"}}", "{\"x\":{" ENTRY ",\"k\":{1:2}}}", "{\"__metadata__\":1}",
        "{\"__metadata__\":{\"a\":1}}", "{\"__metadata__\":nul}", "{\"a\\u0000b\":{" ENTRY "}}", "{\"\\ud83d\":{" ENTRY "}}",
        "{\"\\ude42\":{" ENTRY "}}", "{\"\\ud83dx\":{" ENTRY "}}", "{\"x\":{" ENTRY "}},"};
    for (size_t i = 0; i < sizeof header / sizeof *header; i++) {
        put(header[i], (int64_t)strlen(header[i]), 8);
        ck_assert_msg(!st_open(path, why), "%s", header[i]);
        ck_assert_uint_gt(strlen(why), 0);
    }
    memset(deep + strlen(deep), '[', 300);
    put(deep, (int64_t)strlen(deep), 8);
    ck_assert(!st_open(path, why));
    ck_assert_ptr_nonnull(strstr(why, "too deep"));
}
END_TEST

/* A header of just the largest size is read, one that is longer is not; a writer makes none above the format's own limit. */
START_TEST(the_header_has_the_only_limit)
{
    char why[256];
    for (int over = 0; over < 2; over++) {
        const int64_t n = ST_HEAD_READ + over;
        char *header = rt_alloc((size_t)n + 1);
        memset(header, ' ', (size_t)n);
        memcpy(header, "{}", 2);
        put(header, n, 0);
        StFile *f = st_open(path, why);
        ck_assert_int_eq(f != NULL, !over);
        if (f)
            st_close(f);
        free(header);
    }
    const RtParam p = {.rank = 0, .naxis = 1, .axis = {{1, 1, 1, 0}}, .count_memory = 1};
    const pid_t pid = fork();
    if (pid == 0) {
        StWriter *w = st_writer_new(&program, 1);
        w->tensor[0] = (StTensor){text(ST_HEAD_WRITTEN, 0), &p, (const char *)&program};
        st_writer_ready(w, path);
        _exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(WEXITSTATUS(status), 1);
}
END_TEST

/* Each wrong bit of a file of Tenon is found: by the checksum, or because the file is no longer valid. */
START_TEST(a_wrong_bit_is_found)
{
    char bytes[4096], why[256];
    goes_round(10, 10, 10, 0);
    FILE *f = fopen(path, "rb");
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    ck_assert_uint_lt(n, sizeof bytes);
    for (size_t bit = 0; bit < 8 * n; bit++) {
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ 1 << bit % 8);
        f = fopen(path, "wb");
        fwrite(bytes, 1, n, f);
        fclose(f);
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ 1 << bit % 8);
        StFile *s = st_open(path, why);
        ck_assert_msg(!s || !st_intact(s, false), "bit %zu of byte %zu is wrong, and nobody sees it", bit % 8, bit / 8);
        if (s)
            st_close(s);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("safetensors");
    TCase *t = tcase_create("safetensors");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, what_is_written_is_read);
    tcase_add_test(t, random_lengths_go_round);
    tcase_add_test(t, denormals_go_round);
    tcase_add_test(t, files_of_other_tools_are_read);
    tcase_add_test(t, what_is_no_header_is_refused);
    tcase_add_test(t, the_header_has_the_only_limit);
    tcase_add_test(t, a_wrong_bit_is_found);
    suite_add_tcase(s, t);
    return suite_run(s);
}
