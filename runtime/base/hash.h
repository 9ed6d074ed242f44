/* hash.h -- two digests: a fast one of 64 bits for our own files; SHA-256 for files from elsewhere
 * and, with a key, for messages between ranks. */
#ifndef HASH_H
#define HASH_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 64 bits over a stream of bytes; they do not depend on its division into pieces. */
typedef struct Hash {
    uint64_t h, bytes, word;
} Hash;
Hash hash_new(void);
void hash_add(Hash *h, const void *data, size_t bytes);
uint64_t hash_end(const Hash *h);
uint64_t hash_text(const char *s);

/* 64 bits of one piece of memory, with eight words at a time: 0.12 s for a GiB on a core of 2.6
 * GHz, which is the time to read the memory; `Hash` takes 0.43 s. */
uint64_t hash_block(const void *data, size_t bytes);
/* Combines the hash of a piece with the piece's position, so that the results of all pieces can be
 * added in any order. */
uint64_t hash_place(uint64_t hash, int64_t place);

/* Digest of how a program computes: its kernels without their numbers, algorithms, chunk, slices
 * and instruction set.  Two programs of one compiler with equal digests add every sum in the same
 * order, if the form of their products in bf16 is the same (rt_tiles_form). */
struct RtProgram;
uint64_t hash_algorithms(const struct RtProgram *p);

/* SHA-256 (FIPS 180-4). */
enum { SHA256_BYTES = 32 };
typedef struct Sha256 {
    uint32_t h[8];
    uint64_t bytes;
    uint8_t block[64];
} Sha256;
void sha256_new(Sha256 *s);
void sha256_add(Sha256 *s, const void *data, size_t bytes);
void sha256_raw(Sha256 *s, uint8_t digest[SHA256_BYTES]);
void sha256_end(Sha256 *s, char hex[65]); /* the same in hexadecimal digits */
extern bool sha256_plain; /* for tests: do not use the processor's SHA instructions */

/* HMAC-SHA-256 (RFC 2104): a code over bytes, which only a holder of the key can compute.  A copy
 * of the state after hmac_new starts another code with the same key. */
typedef struct Hmac {
    Sha256 inner, outer;
} Hmac;
void hmac_new(Hmac *m, const void *key, size_t bytes);
void hmac_add(Hmac *m, const void *data, size_t bytes);
void hmac_end(Hmac *m, uint8_t code[SHA256_BYTES]);
/* Compares in constant time: the time does not depend on the bytes. */
bool hmac_equal(const uint8_t *a, const uint8_t *b, size_t bytes);

#endif
