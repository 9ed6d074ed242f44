/* test_program.c -- whole programs: the same bits for any division and after any interruption,
 * wrong input, files that fail. */
#define _GNU_SOURCE
#include "leaks.h"
#include "mini.h"
#include "process.h"
#include "suite.h"
#include <dirent.h>
#include <signal.h>
#include <stdatomic.h>

static void write_file(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

/* An allocation after the first step ends the program.  Under sanitizers malloc is theirs. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__GLIBC__) && !defined(__clang__)
#define COUNT_ALLOCATIONS
static atomic_bool armed;
extern void *__libc_malloc(size_t n), *__libc_calloc(size_t n, size_t size), *__libc_realloc(void *p, size_t n);

static void refuse_when_armed(void)
{
    static const char message[] = "an allocation after the first step\n";
    if (!atomic_load_explicit(&armed, memory_order_relaxed))
        return;
    if (write(2, message, sizeof message - 1) > 0)
        _exit(99);
}
void *malloc(size_t n)
{
    refuse_when_armed();
    return __libc_malloc(n);
}
void *calloc(size_t n, size_t size)
{
    refuse_when_armed();
    return __libc_calloc(n, size);
}
void *realloc(void *p, size_t n)
{
    refuse_when_armed();
    return __libc_realloc(p, n);
}

/* Armed by the second step. */
static void arm(const Rt *r, int unit)
{
    static int steps;
    if (r->first_shard == 0 && unit == 0 && ++steps == 2)
        atomic_store(&armed, true);
}

START_TEST(nothing_is_allocated_after_the_first_step)
{
    mini_watch = arm;                                 /* says main, for the programs it starts */
    setenv("MINI_ARMED", "1", 1);
    succeeds("--epochs 3 --log %s --checkpoint %s --checkpoint-every 4 --save %s --threads 2", in_scratch("log"),
             in_scratch("c"), in_scratch("w"));
    succeeds("--epochs 3 --groups 4 --threads 3 --limit-samples 50");
    unsetenv("MINI_ARMED");
}
END_TEST
#endif

/* --- the same bits --- */

START_TEST(threads_and_groups_change_no_bit)
{
    char want[64];
    succeeds("--epochs 2 --threads 1 --log %s", in_scratch("log"));
    snprintf(want, sizeof want, "%s", last(in_scratch("log"), "weights_hash"));
    ck_assert_uint_eq(strlen(want), 18);
    for (int groups = 1; groups <= 4; groups *= 2)
        for (int threads = 1; threads <= 3; threads++) {
            succeeds("--epochs 2 --threads %d --groups %d --log %s", threads, groups, in_scratch("log"));
            ck_assert_str_eq(last(in_scratch("log"), "weights_hash"), want);
        }
    succeeds("--epochs 2 --seed 2 --log %s", in_scratch("log"));
    ck_assert_str_ne(last(in_scratch("log"), "weights_hash"), want);
    refuses("1, 2, 4", "--groups 3");
}
END_TEST

START_TEST(every_sample_counts_once)
{
    succeeds("--epochs 1 --log %s", in_scratch("log"));
    ck_assert_str_eq(last(in_scratch("log"), "samples"), "200");      /* in 13 batches of 16 */
    succeeds("--epochs 1 --limit-samples 5 --log %s", in_scratch("log"));
    ck_assert_str_eq(last(in_scratch("log"), "samples"), "5");
    const double accuracy = atof(last(in_scratch("log"), "train_accuracy")) * 5;
    ck_assert_double_eq_tol(accuracy, (int)(accuracy + 0.5), 1e-6);
    ck_assert_double_gt(atof(last(in_scratch("log"), "samples_per_s")), 0);
}
END_TEST

START_TEST(steps_are_recorded)
{
    char line[4096];
    double sum = 0, samples = 0;
    int records = 0;
    succeeds("--epochs 1 --log-steps 1 --log %s", in_scratch("log"));
    FILE *f = fopen(in_scratch("log"), "r");
    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof line, f)) {
        const char *loss = strstr(line, "\"train_loss\":"), *n = strstr(line, "\"samples\":");
        if (!strstr(line, "\"event\":\"step\""))
            continue;
        ck_assert(loss && n);
        records++;
        sum += atof(loss + 13) * atof(n + 10);
        samples += atof(n + 10);
    }
    fclose(f);
    ck_assert_int_eq(records, 13);                    /* the last of 8 samples: the mean is over those */
    ck_assert_double_eq(samples, 200);
    ck_assert_double_eq_tol(sum / samples, atof(last(in_scratch("log"), "train_loss")), 1e-6);
    succeeds("--epochs 1 --log-steps 5 --log %s", in_scratch("log"));
    f = fopen(in_scratch("log"), "r");
    for (records = 0; fgets(line, sizeof line, f);)
        records += strstr(line, "\"event\":\"step\"") != NULL;
    fclose(f);
    ck_assert_int_eq(records, 2);
    refuses("needs --log", "--log-steps 1");
}
END_TEST

/* With one thread, the steps of this small network take less time: two threads wait for each other. */
static void undisturbed(char hash[64], int epochs)
{
    succeeds("--epochs %d --threads 1 --log %s", epochs, in_scratch("log"));
    snprintf(hash, 64, "%s", last(in_scratch("log"), "weights_hash"));
}

START_TEST(a_killed_run_goes_on_to_the_same_bits)
{
    char want[64];
    undisturbed(want, 400);
    srand(1);
    for (int i = 0; i < 12; i++) {
        char arguments[512];
        snprintf(arguments, sizeof arguments, "--epochs 400 --resume --checkpoint-every 3 --checkpoint %s",
                 in_scratch("c"));
        const pid_t pid = start(arguments);
        usleep((useconds_t)(20000 + rand() % 60000));
        kill(pid, SIGKILL);
        finish(pid);
    }
    succeeds("--epochs 400 --resume --checkpoint %s --log %s", in_scratch("c"), in_scratch("log"));
    ck_assert_str_eq(last(in_scratch("log"), "weights_hash"), want);
}
END_TEST

/* Names in the checkpoint directory, sorted. */
static int list(const char *directory, char name[][64], int room)
{
    struct dirent **e;
    const int n = scandir(directory, &e, NULL, alphasort);
    int count = 0;
    for (int i = 0; i < n; i++) {
        if (e[i]->d_name[0] != '.' && count < room)
            snprintf(name[count++], 64, "%.63s", e[i]->d_name);
        free(e[i]);
    }
    free(e);
    return count;
}

START_TEST(two_checkpoints_stay)
{
    char name[8][64];
    succeeds("--epochs 5 --checkpoint %s --checkpoint-every 4", in_scratch("c"));
    ck_assert_int_eq(list(in_scratch("c"), name, 8), 2);
    ck_assert_str_eq(name[0], "step-00000064.safetensors");
    ck_assert_str_eq(name[1], "step-00000065.safetensors");
    refuses("--resume", "--epochs 5 --checkpoint %s", in_scratch("c"));
    refuses("seed", "--epochs 6 --resume --seed 9 --checkpoint %s", in_scratch("c"));
    refuses("shuffle", "--epochs 6 --resume --shuffle off --checkpoint %s", in_scratch("c"));
    refuses("limit-samples", "--epochs 6 --resume --limit-samples 100 --checkpoint %s", in_scratch("c"));
}
END_TEST

START_TEST(more_epochs_are_allowed)
{
    char want[64];
    undisturbed(want, 7);
    succeeds("--epochs 3 --checkpoint %s", in_scratch("c"));
    succeeds("--epochs 7 --resume --checkpoint %s --log %s", in_scratch("c"), in_scratch("log"));
    ck_assert_str_eq(last(in_scratch("log"), "weights_hash"), want);
    succeeds("--epochs 7 --resume --checkpoint %s", in_scratch("c"));         /* nothing is left to do */
    ck_assert_ptr_nonnull(strstr(said, "test accuracy"));
    succeeds("--epochs 1 --resume --checkpoint %s", in_scratch("new"));
    ck_assert_ptr_nonnull(strstr(said, "starting from the beginning"));
}
END_TEST

static void damage(const char *path, long at)
{
    FILE *f = fopen(path, "r+b");
    ck_assert_ptr_nonnull(f);
    fseek(f, at, SEEK_SET);
    const int c = fgetc(f);
    fseek(f, at, SEEK_SET);
    fputc(c ^ 1, f);
    fclose(f);
}

START_TEST(a_damaged_checkpoint_is_left_out)
{
    char want[64], name[8][64], path[1024];
    undisturbed(want, 4);
    succeeds("--epochs 3 --checkpoint %s", in_scratch("c"));
    ck_assert_int_eq(list(in_scratch("c"), name, 8), 2);
    snprintf(path, sizeof path, "%s/%s", in_scratch("c"), name[1]);
    damage(path, 3000);
    succeeds("--epochs 4 --resume --checkpoint %s --log %s", in_scratch("c"), in_scratch("log"));
    ck_assert_ptr_nonnull(strstr(said, "damaged"));
    ck_assert_str_eq(last(in_scratch("log"), "weights_hash"), want);
    for (int i = list(in_scratch("c"), name, 8) - 1; i >= 0; i--) {
        snprintf(path, sizeof path, "%s/%s", in_scratch("c"), name[i]);
        ck_assert_int_eq(truncate(path, 100 + 500 * i), 0);
    }
    refuses("can be read", "--epochs 5 --resume --checkpoint %s", in_scratch("c"));
}
END_TEST

/* Waits until the program has a handler for the signal, according to /proc. */
static void wait_until_caught(pid_t pid, int signal)
{
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    for (int tries = 0; tries < 6000; tries++) {
        FILE *f = fopen(path, "r");
        unsigned long long caught = 0;
        while (f && fgets(line, sizeof line, f))
            if (sscanf(line, "SigCgt: %llx", &caught) == 1)
                break;
        if (f)
            fclose(f);
        if (caught >> (signal - 1) & 1)
            break;
        usleep(10000);
    }
    usleep(100000);                                   /* a few steps */
}

START_TEST(a_signal_saves_and_exits_75)
{
    char want[64], arguments[512];
    undisturbed(want, 1500);
    snprintf(arguments, sizeof arguments, "--epochs 1500 --checkpoint-every 3600s --checkpoint %s", in_scratch("c"));
    pid_t pid = start(arguments);
    wait_until_caught(pid, SIGTERM);
    kill(pid, SIGTERM);
    const int code = finish(pid);
    ck_assert_msg(code == 75, "exit code %d: %s", code, said);
    ck_assert_ptr_nonnull(strstr(said, "--resume"));
    succeeds("--epochs 1500 --threads 1 --resume --checkpoint %s --log %s", in_scratch("c"), in_scratch("log"));
    ck_assert_str_eq(last(in_scratch("log"), "weights_hash"), want);
    pid = start("--epochs 1000000 --threads 1");
    wait_until_caught(pid, SIGINT);
    kill(pid, SIGINT);
    ck_assert_int_eq(finish(pid), 1);
    ck_assert_ptr_nonnull(strstr(said, "--checkpoint"));
    ck_assert_ptr_nonnull(strstr(said, "SIGINT"));
}
END_TEST

START_TEST(a_full_disk_leaves_the_earlier_checkpoint)
{
    char name[8][64], before[2][1 << 13] = {{0}};
    succeeds("--epochs 2 --checkpoint %s", in_scratch("c"));
    const int n = list(in_scratch("c"), name, 8);
    ck_assert_int_eq(n, 2);
    for (int i = 0; i < 2; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", in_scratch("c"), name[i]);
        read_file(path, before[i], sizeof before[i]);
    }
    file_limit = 512;
    refuses("step-00000039.safetensors cannot be written", "--epochs 3 --resume --checkpoint %s", in_scratch("c"));
    refuses("cannot be written", "--epochs 1 --save %s", in_scratch("w"));
    file_limit = RLIM_INFINITY;
    ck_assert_int_eq(list(in_scratch("c"), name, 8), 2);
    for (int i = 0; i < 2; i++) {
        char path[1024], after[1 << 13] = {0};
        snprintf(path, sizeof path, "%s/%s", in_scratch("c"), name[i]);
        read_file(path, after, sizeof after);
        ck_assert_mem_eq(before[i], after, sizeof after);
    }
    ck_assert_int_ne(access(in_scratch("w"), F_OK), 0);
    succeeds("--epochs 3 --resume --checkpoint %s", in_scratch("c"));
}
END_TEST

/* --- weights, test, predict --- */

START_TEST(weights_are_saved_and_read)
{
    char saved[64];
    succeeds("--epochs 2 --save %s --log %s", in_scratch("w.safetensors"), in_scratch("log"));
    snprintf(saved, sizeof saved, "%s", last(in_scratch("log"), "test_loss"));
    succeeds("test --weights %s --log %s", in_scratch("w.safetensors"), in_scratch("log"));
    ck_assert_str_eq(last(in_scratch("log"), "test_loss"), saved);
    ck_assert_str_eq(last(in_scratch("log"), "samples"), "40");
    succeeds("--epochs 0 --weights %s --save %s", in_scratch("w.safetensors"), in_scratch("v.safetensors"));
    char a[1 << 13] = {0}, b[1 << 13] = {0};
    read_file(in_scratch("w.safetensors"), a, sizeof a);
    read_file(in_scratch("v.safetensors"), b, sizeof b);
    ck_assert_mem_eq(a, b, sizeof a);
}
END_TEST

/* A safetensors file of f32 zeros with this header. */
static void zeros(const char *path, const char *header, size_t data)
{
    static char bytes[1 << 14];
    memset(bytes, 0, sizeof bytes);
    const size_t n = strlen(header);
    bytes[0] = (char)n, bytes[1] = (char)(n >> 8);
    memcpy(bytes + 8, header, n);
    write_file(path, bytes, 8 + n + data);
}

START_TEST(wrong_weights_are_listed)
{
    char w[256];
    snprintf(w, sizeof w, "%s", in_scratch("w"));
    zeros(w, "{\"hidden.weight\":{\"dtype\":\"F32\",\"shape\":[16,8],\"data_offsets\":[0,512]},"
             "\"hidden.bias\":{\"dtype\":\"I32\",\"shape\":[8],\"data_offsets\":[512,544]},"
             "\"odd\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[544,548]}}", 548);
    refuses("hidden.weight is (16, 8) in the file, but (8, 16) in the program", "test --weights %s", w);
    ck_assert_ptr_nonnull(strstr(said, "hidden.bias is of type I32"));
    ck_assert_ptr_nonnull(strstr(said, "missing:  out.weight (4, 8)"));
    ck_assert_ptr_nonnull(strstr(said, "missing:  out.bias"));
    ck_assert_ptr_nonnull(strstr(said, "unknown:  odd"));
    static const char *const broken[] = {
        "", "{", "[]", "{\"a\":1}", "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[99999999999,99999999999],\"data_offsets\":[0,4]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[996,1000]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}",
        "{\"a\":{\"dtype\":\"Q\",\"shape\":[1],\"data_offsets\":[0,4]}}", "{\"a\\u12\":{}}", "{\"__metadata__\":[]}",
        "{} x", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1,],\"data_offsets\":[0,4]}}"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        zeros(w, broken[i], 16);
        refuses("cannot be read", "test --weights %s", w);
    }
    refuses("No such file", "test --weights %s", in_scratch("nowhere"));
    write_file(w, "\xff\xff\xff\xff\xff\xff\xff\x7f", 8);
    refuses("truncated", "test --weights %s", w);
}
END_TEST

START_TEST(predictions_are_probabilities)
{
    char text[4096] = "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p\n";
    for (int i = 0; i < 19; i++)
        strcat(text, "0.1,0.2,0.3,1,0,0,0,0,0.5,0.5,1,1,1,0,0,0.25\n");
    write_file(in_scratch("in.csv"), text, strlen(text));
    succeeds("--epochs 1 --save %s", in_scratch("w"));
    succeeds("predict --weights %s --input %s --output %s", in_scratch("w"), in_scratch("in.csv"), in_scratch("out.csv"));
    read_file(in_scratch("out.csv"), text, sizeof text);
    int rows = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), rows++) {
        double v[4];
        ck_assert_int_eq(sscanf(line, "%lf,%lf,%lf,%lf", v, v + 1, v + 2, v + 3), 4);
        ck_assert_double_eq_tol(v[0] + v[1] + v[2] + v[3], 1, 1e-6);
    }
    ck_assert_int_eq(rows, 19);
    succeeds("predict --weights %s --input %s --output %s", in_scratch("w"), in_scratch("in.csv"), in_scratch("out.npy"));
    struct stat info;
    ck_assert_int_eq(stat(in_scratch("out.npy"), &info), 0);
    ck_assert_int_eq(info.st_size, 128 + 19 * 4 * 4);
    write_file(in_scratch("bad.csv"), "1,2,3\n", 6);
    refuses("bad.csv:1: 3 numbers", "predict --weights %s --input %s", in_scratch("w"), in_scratch("bad.csv"));
    refuses("out.txt", "predict --weights %s --input %s --output %s", in_scratch("w"), in_scratch("in.csv"),
            in_scratch("out.txt"));
}
END_TEST

/* --- data --- */

static void idx(const char *name, int rank, int n, const void *bytes, size_t count)
{
    uint8_t head[16] = {0, 0, 8, (uint8_t)rank, 0, 0, (uint8_t)(n >> 8), (uint8_t)n, 0, 0, 0, 4, 0, 0, 0, 4};
    char all[1 << 13];
    const size_t h = 4 + 4 * (size_t)rank;
    memcpy(all, head, h);
    memcpy(all + h, bytes, count);
    write_file(in_scratch(name), all, h + count);
}

static void idx_files(int label)
{
    static uint8_t x[40 * X], y[40];
    mkdir(in_scratch("d"), 0700);
    for (int i = 0; i < 40; i++) {
        y[i] = (uint8_t)(i % O);
        for (int k = 0; k < X; k++)
            x[i * X + k] = (uint8_t)(k % O == i % O ? 200 + i : i);
    }
    y[17] = (uint8_t)label;
    idx("d/train-images-idx3-ubyte", 3, 40, x, sizeof x);
    idx("d/train-labels-idx1-ubyte", 1, 40, y, sizeof y);
    idx("d/t10k-images-idx3-ubyte", 3, 40, x, sizeof x);
    y[17] = 1;
    idx("d/t10k-labels-idx1-ubyte", 1, 40, y, sizeof y);
}

START_TEST(idx_files_are_read_and_checked)
{
    char d[128];
    snprintf(d, sizeof d, "%s", in_scratch("d"));
    idx_files(1);
    succeeds("--epochs 8 --data %s --log %s", d, in_scratch("log"));
    ck_assert_double_gt(atof(last(in_scratch("log"), "test_accuracy")), 0.9);
    idx_files(O);
    refuses("train-labels-idx1-ubyte: label 4 of sample 17 is out of range", "--epochs 1 --data %s", d);
    idx_files(1);
    ck_assert_int_eq(truncate(in_scratch("d/train-images-idx3-ubyte"), 600), 0);
    refuses("train-images-idx3-ubyte is truncated", "--epochs 1 --data %s", d);
    ck_assert_int_eq(truncate(in_scratch("d/train-images-idx3-ubyte"), 6), 0);
    refuses("train-images-idx3-ubyte is truncated", "--epochs 1 --data %s", d);
    idx_files(1);
    damage(in_scratch("d/t10k-labels-idx1-ubyte"), 2);
    refuses("t10k-labels-idx1-ubyte is not the IDX file", "--epochs 1 --data %s", d);
    idx_files(1);
    unlink(in_scratch("d/train-labels-idx1-ubyte"));
    refuses("has no labels", "--epochs 1 --data %s", d);
    unlink(in_scratch("d/train-images-idx3-ubyte"));
    refuses("holds no train data", "--epochs 1 --data %s", d);
    refuses("does not exist", "--epochs 1 --data %s", in_scratch("nowhere"));
    refuses("./models/data/nothing_of_this_name", "--epochs 1 --data nothing_of_this_name");
}
END_TEST

START_TEST(checksums_are_compared)
{
    char d[128];
    const char *wrong = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef  train-labels-idx1-ubyte\n";
    snprintf(d, sizeof d, "%s", in_scratch("d"));
    idx_files(1);
    write_file(in_scratch("d/SHA256SUMS"), wrong, strlen(wrong));
    refuses("train-labels-idx1-ubyte is not the file that SHA256SUMS", "--epochs 1 --data %s", d);
}
END_TEST

static void npy(const char *name, const char *descr, const char *shape, const void *data, size_t bytes)
{
    char all[1 << 13], dictionary[118];
    const int n = snprintf(dictionary, sizeof dictionary, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr,
                           shape);
    memset(all, ' ', 128);
    memcpy(all, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(all + 10, dictionary, (size_t)n);
    all[127] = '\n';
    memcpy(all + 128, data, bytes);
    write_file(in_scratch(name), all, 128 + bytes);
}

static void npy_files(float first)
{
    static float x[40 * X];
    static int64_t y[40];
    mkdir(in_scratch("n"), 0700);
    for (int i = 0; i < 40; i++) {
        y[i] = i % O;
        for (int k = 0; k < X; k++)
            x[i * X + k] = k % O == i % O;
    }
    x[0] = first;
    npy("n/train_x.npy", "<f4", "(40, 4, 4)", x, sizeof x);
    npy("n/train_y.npy", "<i8", "(40,)", y, sizeof y);
    x[0] = 1;
    npy("n/test_x.npy", "<f4", "(40, 16)", x, sizeof x);
    npy("n/test_y.npy", "<i8", "(40, 1)", y, sizeof y);
}

START_TEST(npy_files_are_read_and_checked)
{
    static const double zero[40 * X];
    char d[128];
    snprintf(d, sizeof d, "%s", in_scratch("n"));
    npy_files(1);
    succeeds("--epochs 8 --data %s --log %s", d, in_scratch("log"));
    ck_assert_double_gt(atof(last(in_scratch("log"), "test_accuracy")), 0.9);
    static const struct { const char *name, *descr, *shape; size_t bytes; const char *what; } wrong[] = {
        {"n/train_x.npy", "<f4", "(40, 4, 5)", 40 * 20 * 4, "takes 1 x 4 x 4"},
        {"n/train_x.npy", "<f4", "(41, 4, 4)", 41 * X * 4, "41 samples"},
        {"n/train_x.npy", "<f8", "(80, 4, 4)", 40 * X * 8, "truncated"},
        {"n/train_x.npy", "<f4", "(40, 4, 4)", 40 * X * 8, "longer than its array"},
        {"n/train_x.npy", ">f4", "(40, 4, 4)", 40 * X * 4, "big-endian"},
        {"n/train_x.npy", "<i4", "(40, 4, 4)", 40 * X * 4, "f32, f64 or u8"},
        {"n/train_x.npy", "<f4", "(40, 4, 4", 40 * X * 4, "shape"},
        {"n/train_x.npy", "<f4", "(99999999999, 99999999999)", 40 * X * 4, "shape"},
        {"n/train_x.npy", "|O", "(40, 4, 4)", 40 * X * 8, "type"},
        {"n/train_x.npy", "<f4", "(0, 4, 4)", 0, "no sample"},
        {"n/train_y.npy", "<f4", "(40,)", 40 * 4, "integer classes"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        npy_files(1);
        npy(wrong[i].name, wrong[i].descr, wrong[i].shape, zero, wrong[i].bytes);
        refuses(wrong[i].what, "--epochs 1 --data %s", d);
    }
    npy_files(1);
    write_file(in_scratch("n/train_x.npy"), "text", 4);
    refuses("not a .npy file", "--epochs 1 --data %s", d);
}
END_TEST

START_TEST(a_loss_that_is_not_finite_is_placed)
{
    npy_files(NAN);
    refuses("the samples hold numbers that are not finite: in epoch 1, step 1 of 3",
            "--epochs 1 --shuffle off --data %s", in_scratch("n"));
}
END_TEST

/* --- options and figures --- */

START_TEST(wrong_words_have_an_answer)
{
    refuses("did you mean --epochs", "--epoch 3");
    refuses("did you mean predict", "predcit");
    refuses("is not an option of info", "info --epochs 3");
    refuses("whole number from 1 to 1024", "--threads many");
    refuses("whole number", "--epochs 1.5");
    refuses("--seed needs", "--seed -1");
    refuses("on or off", "--shuffle maybe");
    refuses("--epochs needs N", "--epochs");
    refuses("takes no value", "--strict=3");
    refuses("needs --checkpoint", "--resume");
    refuses("needs --checkpoint", "--checkpoint-every 5");
    refuses("whole number", "--checkpoint %s --checkpoint-every 5m", in_scratch("c"));
    refuses("needs --weights", "test");
    refuses("needs --input", "predict --weights x");
    succeeds("--help");
    succeeds("bench --help");
    succeeds("info");
    ck_assert_ptr_nonnull(strstr(said, "parameters: 172"));
    setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
    refuses("OMPI_COMM_WORLD_SIZE=4 in the environment without OMPI_COMM_WORLD_RANK", "--epochs 1");
    setenv("OMPI_COMM_WORLD_RANK", "1", 1);
    refuses("--comm mpi", "--epochs 1");
    unsetenv("OMPI_COMM_WORLD_SIZE");
    unsetenv("OMPI_COMM_WORLD_RANK");
}
END_TEST

START_TEST(expectations_are_compared)
{
    succeeds("--epochs 1 --strict");                  /* not a full run: nothing to compare */
    ck_assert_ptr_null(strstr(said, "expected"));
    succeeds("--strict");
    ck_assert_ptr_nonnull(strstr(said, "expected test_accuracy >= 0.9: "));
    succeeds("--stop-at 0.5 --epochs 1000");
    ck_assert_ptr_null(strstr(said, "epoch 999/"));
    refuses("stayed below", "--stop-at 1 --epochs 1");
}
END_TEST

START_TEST(bench_reports_all_its_figures)
{
    static const char *const key[] = {"step_ms_mean", "step_ms_median", "step_ms_min", "first_step_ms", "samples_per_s", "gflops",
                                      "fma_peak_gflops", "share_of_peak"};
    succeeds("bench --steps 3 --layers --log %s", in_scratch("log"));
    for (size_t i = 0; i < sizeof key / sizeof *key; i++)
        ck_assert_double_gt(atof(last(in_scratch("log"), key[i])), 0);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "mini") == 0) {
#ifdef COUNT_ALLOCATIONS
        if (getenv("MINI_ARMED"))
            mini_watch = arm;
#endif
        return rt_main(&mini, argc - 1, argv + 1);
    }
    Suite *s = suite_create("program");
    TCase *t = tcase_create("program");
    tcase_add_checked_fixture(t, process_setup, process_teardown);
    tcase_set_timeout(t, 600);
#ifdef COUNT_ALLOCATIONS
    tcase_add_test(t, nothing_is_allocated_after_the_first_step);
#endif
    tcase_add_test(t, threads_and_groups_change_no_bit);
    tcase_add_test(t, every_sample_counts_once);
    tcase_add_test(t, steps_are_recorded);
    tcase_add_test(t, a_killed_run_goes_on_to_the_same_bits);
    tcase_add_test(t, two_checkpoints_stay);
    tcase_add_test(t, more_epochs_are_allowed);
    tcase_add_test(t, a_damaged_checkpoint_is_left_out);
    tcase_add_test(t, a_signal_saves_and_exits_75);
    tcase_add_test(t, a_full_disk_leaves_the_earlier_checkpoint);
    tcase_add_test(t, weights_are_saved_and_read);
    tcase_add_test(t, wrong_weights_are_listed);
    tcase_add_test(t, predictions_are_probabilities);
    tcase_add_test(t, idx_files_are_read_and_checked);
    tcase_add_test(t, checksums_are_compared);
    tcase_add_test(t, npy_files_are_read_and_checked);
    tcase_add_test(t, a_loss_that_is_not_finite_is_placed);
    tcase_add_test(t, wrong_words_have_an_answer);
    tcase_add_test(t, expectations_are_compared);
    tcase_add_test(t, bench_reports_all_its_figures);
    suite_add_tcase(s, t);
    return suite_run(s);
}
