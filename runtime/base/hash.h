/* hash.h -- two digests: a fast one of 64 bits for our own files, and SHA-256 for the files of
 * others, and, with a key, for what ranks tell each other. */
#ifndef HASH_H
#define HASH_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 64 bits over a stream of bytes, eight at a time; the same however the stream is cut. */
typedef struct Hash { uint64_t h, bytes, word; } Hash;
Hash     hash_new(void);
void     hash_add(Hash *h, const void *data, size_t bytes);
uint64_t hash_end(const Hash *h);
uint64_t hash_text(const char *s);

/* Of one piece of memory, eight words side by side: 0.12 s a GiB on a core of 2.6 GHz, which is what reading it takes; `Hash`
 * takes 0.43 s.  hash_place goes with where the piece stands, so that pieces can be added in any order. */
uint64_t hash_block(const void *data, size_t bytes);
uint64_t hash_place(uint64_t hash, int64_t place);

/* How a program computes: its kernels without their numbers, their algorithms, its chunks and its instructions.  Programs
 * that agree in it and were made by the same compiler add every sum in the same order. */
struct RtProgram;
uint64_t hash_algorithms(const struct RtProgram *p);

/* SHA-256 (FIPS 180-4). */
enum { SHA256_BYTES = 32 };
typedef struct Sha256 { uint32_t h[8]; uint64_t bytes; uint8_t block[64]; } Sha256;
void     sha256_new(Sha256 *s);
void     sha256_add(Sha256 *s, const void *data, size_t bytes);
void     sha256_raw(Sha256 *s, uint8_t digest[SHA256_BYTES]);
void     sha256_end(Sha256 *s, char hex[65]);                   /* the same in hexadecimal digits */
extern bool sha256_plain;                                       /* without the processor's own instructions, where it has them: for tests */

/* HMAC-SHA-256 (RFC 2104): a code of some bytes that only who knows the key can make.  A copy of what hmac_new leaves starts another
 * code under the same key. */
typedef struct Hmac { Sha256 inner, outer; } Hmac;
void     hmac_new(Hmac *m, const void *key, size_t bytes);
void     hmac_add(Hmac *m, const void *data, size_t bytes);
void     hmac_end(Hmac *m, uint8_t code[SHA256_BYTES]);
bool     hmac_equal(const uint8_t *a, const uint8_t *b, size_t bytes);   /* in a time that does not depend on the bytes */

#endif
