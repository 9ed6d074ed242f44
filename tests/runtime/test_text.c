/* test_text.c -- windows of a text, vocabularies and byte pairs. */
#include "data/data.h"
#include "data/text.h"
#include "death.h"
#include "leaks.h"
#include "suite.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { T = 4, N = 103, TEST = N / 10 };
static char path[40];

/* Byte i of the text is i: a token tells where it stands. */
static RtProgram windows_of(int64_t labels, int64_t step)
{
    return (RtProgram){.model = "test",
                       .batch = 1,
                       .input_rank = 1,
                       .input_dim = {T},
                       .vocab = 256,
                       .classes = 256,
                       .labels = labels,
                       .outputs = labels * 256,
                       .recipe.text = {.unit = RT_TEXT_BYTE, .step = step}};
}

static void write_text(void)
{
    char bytes[N];
    for (int i = 0; i < N; i++)
        bytes[i] = (char)i;
    strcpy(path, "/tmp/tenon-text-XXXXXX");
    const int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, bytes, N), N);
    close(fd);
}

static int token(const void *x, int64_t stride, int64_t sample, int at)
{
    return ((const uint16_t *)((const char *)x + sample * stride))[at];
}

/* Checks every window of both splits: its tokens, and its labels, one token later. */
static void check_windows(const Data *d, const Batch *b, int first, int step, int labels)
{
    for (int64_t i = 0; i < d->n; i++)
        for (int k = 0; k < T; k++) {
            const int at = first + (int)i * step + k;
            ck_assert_int_eq(token(b->x, b->x_stride, i, k), at < N ? at : UINT16_MAX);
            if (labels > 1)
                ck_assert_int_eq(token(b->label, b->label_stride, i, k), at + 1 < N ? at + 1 : UINT16_MAX);
            else if (k == 0)
                ck_assert_int_eq(token(b->label, b->label_stride, i, 0), at + T);
        }
}

static Batch batch_of(const Data *d, int64_t epoch)
{
    static uint32_t sample[1];
    const Order order = {.by = {.n = 1}, .sample = sample};
    Batch b = {.seed = 7, .epoch = epoch};
    data_batch(d, NULL, &order, 0, 1, &b);
    return b;
}

/* Both splits of a text, whose tokens programs keep to the end. */
static void forget(Data *train, Data *test)
{
    free(train);
    free(test);
}

START_TEST(the_last_label_of_a_window_follows_it)
{
    write_text();
    const RtProgram p = windows_of(1, 3);
    Data *train = data_open(&p, path, "train", 0), *test = data_open(&p, path, "test", 0);
    unlink(path);
    ck_assert_int_eq(train->n, (N - TEST - 1 - T) / 3 + 1);
    ck_assert_int_eq(test->n, (TEST - 1 - T) / 3 + 1);
    for (int epoch = 0; epoch < 3; epoch++) {
        const Batch a = batch_of(train, epoch), b = batch_of(test, epoch);
        check_windows(train, &a, 0, 3, 1);
        check_windows(test, &b, N - TEST, 3, 1);
    }
    forget(train, test);
}
END_TEST

/* With a label a position each token of the last tenth is a label once; epochs begin at different places. */
START_TEST(every_token_of_the_test_split_is_scored_once)
{
    write_text();
    const RtProgram p = windows_of(T, 0);
    Data *train = data_open(&p, path, "train", 0), *test = data_open(&p, path, "test", 0);
    unlink(path);
    const Batch b = batch_of(test, 0), first = batch_of(train, 0);
    int seen[N] = {0}, shifts[T] = {0};
    check_windows(test, &b, N - TEST - 1, T, T);
    for (int64_t i = 0; i < test->n; i++)
        for (int k = 0; k < T; k++)
            if (token(b.label, b.label_stride, i, k) != UINT16_MAX)
                seen[token(b.label, b.label_stride, i, k)]++;
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(seen[i], i >= N - TEST);
    ck_assert_int_eq(test->scored, TEST);
    check_windows(train, &first, 0, T, T);
    for (int epoch = 1; epoch < 60; epoch++) {
        const Batch a = batch_of(train, epoch);
        const int shift = token(a.x, a.x_stride, 0, 0);
        ck_assert(shift >= 0 && shift < T);
        shifts[shift]++;
        check_windows(train, &a, shift, T, T);
        ck_assert_int_lt(token(a.label, a.label_stride, train->n - 1, T - 1), N - TEST);
    }
    for (int k = 0; k < T; k++)
        ck_assert_int_gt(shifts[k], 0);
    forget(train, test);
}
END_TEST

/* ---- byte pairs */

static RtProgram pairs(int64_t vocab)
{
    return (RtProgram){.model = "test", .vocab = vocab, .recipe.text.unit = RT_TEXT_BPE};
}

static const Vocab *trained(const RtProgram *p, const char *text)
{
    VocabMaker m = {.p = p};
    const Text t = {"text", text, (int64_t)strlen(text), 1};
    vocab_count(&m, &t);
    return vocab_make(&m, "text");
}

/* The example of Sennrich et al. 2016: low, lower, newest, widest; 5, 2, 6 and 3 times. */
START_TEST(byte_pairs_are_joined_by_frequency)
{
    static const char *const joined[] = {"es", "est", "lo", "low", "new", "newest"};
    const RtProgram p = pairs(256 + 10);
    const Vocab *v = trained(&p, "low\nlow\nlow\nlow\nlow\nlower\nlower\nnewest\nnewest\nnewest\n"
                                 "newest\nnewest\nnewest\nwidest\nwidest\nwidest\n");
    ck_assert_int_eq(v->n, 266);
    ck_assert(v->pair[0][0] == 'e' && v->pair[0][1] == 's');
    ck_assert(v->pair[1][0] == 256 && v->pair[1][1] == 't');
    for (size_t i = 0; i < sizeof joined / sizeof *joined; i++) {
        bool found = false;
        for (int k = 256; k < v->n; k++)
            found |= v->piece[k].length == (int)strlen(joined[i]) &&
                     memcmp(v->piece[k].bytes, joined[i], strlen(joined[i])) == 0;
        ck_assert_msg(found, "%s is no token", joined[i]);
    }
}
END_TEST

static void round_trip(const Vocab *v, const char *text, int64_t n)
{
    Tokens t = {.n = 0};
    int64_t at = 0;
    vocab_encode(v, &(Text){"text", text, n, 1}, &t);
    for (int64_t i = 0; i < t.n; at += v->piece[t.at[i++]].length)
        ck_assert_mem_eq(text + at, v->piece[t.at[i]].bytes, (size_t)v->piece[t.at[i]].length);
    ck_assert_int_eq(at, n);
    free(t.at);
}

START_TEST(encoded_texts_come_back)
{
    const RtProgram p = pairs(300);
    char noise[20000];
    uint32_t x = 1;
    for (size_t i = 0; i < sizeof noise; i++) {
        x = x * 1664525 + 1013904223;
        noise[i] = "ab \n1.,\xc3\xa4"[x >> 24 & 7];
    }
    const Vocab *v = trained(&p, "a bab ab ab  abba 11 1.1\n\nab, ab. \xc3\xa4 \xc3\xa4\xc3\xa4\n");
    round_trip(v, noise, sizeof noise);
    char *saved = strndup(v->text, (size_t)v->text_bytes);
    const uint64_t hash = v->hash;
    const int64_t bytes = v->text_bytes;
    vocab_take(&p, "saved", saved, bytes);
    ck_assert(vocab_now()->hash == hash);
    round_trip(vocab_now(), noise, sizeof noise);
    free(saved);
}
END_TEST

/* 30 tokens, each a pair of the token before, would stand for a gigabyte; with one more, the length would overflow an int. */
static void take_doubled(void)
{
    const RtProgram p = pairs(400);
    char text[1024];
    int n = sprintf(text, "tenon vocabulary 1 bpe %d\n97 97\n", 256 + 40);
    for (int i = 1; i < 40; i++)
        n += sprintf(text + n, "%d %d\n", 255 + i, 255 + i);
    vocab_take(&p, "doubled", text, n);
}

START_TEST(a_token_is_no_longer_than_a_piece)
{
    const char *said = last_words(take_doubled);
    ck_assert_msg(strstr(said, "its token 263 stands for 256 bytes, more than the 255"), "%s", said);
}
END_TEST

/* Words as Keras's imdb.load_data and pad_sequences have them: 1 begins a text, 2 is a word that is not among the most frequent, texts
 * are cut and padded in front.  (Keras leaves number 3 out; here it is the most frequent word.) */
static void check_sample(int64_t vocab, int64_t room, const char *text, const int32_t *want)
{
    const RtProgram p = {.model = "test", .input_rank = 1, .input_dim = {room}, .vocab = vocab,
                         .recipe.text = {.unit = RT_TEXT_WORD}};
    const Vocab *v = trained(&p, "the cat\nthe cat sat\nthe sat the cat\n");
    const Text t = {"text", text, (int64_t)strlen(text), 1};
    Tokens scratch = {.n = 0};
    int32_t sample[8];
    text_sample(&p, v, &t, &scratch, sample);
    for (int64_t i = 0; i < room; i++)
        ck_assert_int_eq(sample[i], want[i]);
    free(scratch.at);
}

START_TEST(words_are_cut_and_padded_in_front)
{
    const char *text = "A Cat, sat! (The)<br />";
    check_sample(20, 8, text, (const int32_t[]){-1, -1, 1, 2, 4, 5, 3, 2});
    check_sample(20, 6, text, (const int32_t[]){1, 2, 4, 5, 3, 2});
    check_sample(20, 4, text, (const int32_t[]){4, 5, 3, 2});
    check_sample(5, 8, text, (const int32_t[]){-1, -1, 1, 2, 4, 2, 3, 2});
    check_sample(20, 3, "", (const int32_t[]){-1, -1, 1});
}
END_TEST

int main(void)
{
    Suite *s = suite_create("text");
    TCase *t = tcase_create("text");
    tcase_add_test(t, the_last_label_of_a_window_follows_it);
    tcase_add_test(t, every_token_of_the_test_split_is_scored_once);
    tcase_add_test(t, byte_pairs_are_joined_by_frequency);
    tcase_add_test(t, a_token_is_no_longer_than_a_piece);
    tcase_add_test(t, encoded_texts_come_back);
    tcase_add_test(t, words_are_cut_and_padded_in_front);
    suite_add_tcase(s, t);
    return suite_run(s);
}
