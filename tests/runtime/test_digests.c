/* test_digests.c -- digests: the examples of their standards, and streams in pieces. */
#include "base/hash.h"
#include "suite.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* RFC 4231, test cases 1, 2, 3 and 6: a short key, a word, 20 bytes of 0xaa, a key of more than a block. */
START_TEST(hmac_knows_its_examples)
{
    static const struct { int fill, key; const char *word; int data; const char *text, *want; } example[] = {
        {0x0b, 20, NULL, 0, "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
        {0, 4, "Jefe", 0, "what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
        {0xaa, 20, NULL, 50, NULL, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
        {0xaa, 131, NULL, 0, "Test Using Larger Than Block-Size Key - Hash Key First", "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"}};
    for (size_t i = 0; i < sizeof example / sizeof *example; i++) {
        uint8_t key[131], data[64], code[SHA256_BYTES];
        char hex[2 * SHA256_BYTES + 1];
        Hmac m, again;
        memset(key, example[i].fill, sizeof key);
        memset(data, 0xdd, sizeof data);
        hmac_new(&m, example[i].word ? (const void *)example[i].word : key, (size_t)example[i].key);
        again = m;
        for (int k = 0; k < 2; k++, m = again) {
            hmac_add(&m, example[i].text ? (const void *)example[i].text : data, example[i].text ? strlen(example[i].text) : (size_t)example[i].data);
            hmac_end(&m, code);
            for (int b = 0; b < SHA256_BYTES; b++)
                sprintf(hex + 2 * b, "%02x", code[b]);
            ck_assert_str_eq(hex, example[i].want);
        }
        code[31] ^= 1;
        ck_assert(!hmac_equal(code, key, 32) && hmac_equal(code, code, 32));
    }
}
END_TEST

START_TEST(sha256_knows_its_examples)
{
    static const struct { const char *text, *digest; } example[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"}};
    sha256_plain = _i;
    for (int i = 0; i < 3; i++) {
        Sha256 s;
        char hex[65];
        sha256_new(&s);
        for (const char *c = example[i].text; *c; c++)
            sha256_add(&s, c, 1);
        sha256_end(&s, hex);
        ck_assert_str_eq(hex, example[i].digest);
    }
}
END_TEST

/* Bytes of any number in pieces of any size, by the processor's own instructions where it has them, and without. */
START_TEST(sha256_is_the_same_both_ways)
{
    uint8_t bytes[1000], digest[2][SHA256_BYTES];
    unsigned seed = 1;
    for (int i = 0; i < 1000; i++)
        bytes[i] = (uint8_t)rand_r(&seed);
    for (int n = 0; n < 1000; n += 1 + n / 50) {
        for (int plain = 0; plain < 2; plain++) {
            Sha256 s;
            sha256_plain = plain;
            sha256_new(&s);
            for (int at = 0, piece; at < n; at += piece) {
                piece = 1 + rand_r(&seed) % (n - at);
                sha256_add(&s, bytes + at, (size_t)piece);
            }
            sha256_raw(&s, digest[plain]);
        }
        ck_assert_mem_eq(digest[0], digest[1], SHA256_BYTES);
    }
    sha256_plain = false;
}
END_TEST

START_TEST(a_hash_does_not_see_where_the_stream_is_cut)
{
    uint8_t bytes[1000];
    for (int i = 0; i < 1000; i++)
        bytes[i] = (uint8_t)(i * 7 + i / 13);
    Hash whole = hash_new();
    hash_add(&whole, bytes, 1000);
    for (size_t cut = 0; cut <= 40; cut++) {
        Hash h = hash_new();
        hash_add(&h, bytes, cut);
        hash_add(&h, bytes + cut, 3);
        hash_add(&h, bytes + cut + 3, 1000 - cut - 3);
        ck_assert_uint_eq(hash_end(&h), hash_end(&whole));
    }
    bytes[999] ^= 1;
    Hash other = hash_new();
    hash_add(&other, bytes, 1000);
    ck_assert_uint_ne(hash_end(&other), hash_end(&whole));
    ck_assert_uint_ne(hash_text(""), hash_text("a"));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("digests");
    TCase *t = tcase_create("digests");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, hmac_knows_its_examples);
    tcase_add_loop_test(t, sha256_knows_its_examples, 0, 2);
    tcase_add_test(t, sha256_is_the_same_both_ways);
    tcase_add_test(t, a_hash_does_not_see_where_the_stream_is_cut);
    suite_add_tcase(s, t);
    return suite_run(s);
}
