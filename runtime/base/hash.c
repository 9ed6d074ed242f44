/* hash.c -- our digest of 64 bits: each word goes through a multiplication and a shift; the end is
 * the mixer of MurmurHash3 (Appleby, public domain). */
#include "base/hash.h"
#include "rt.h"
#include <string.h>

Hash hash_new(void)
{
    return (Hash){.h = 0x9E3779B97F4A7C15u};
}

static uint64_t mix(uint64_t h, uint64_t word)
{
    h = (h ^ word) * 0xFF51AFD7ED558CCDu;
    return h ^ h >> 32;
}

void hash_add(Hash *h, const void *data, size_t bytes)
{
    const uint8_t *p = data;
    for (; bytes && h->bytes % 8; bytes--) { /* complete the word of the last call */
        h->word |= (uint64_t)*p++ << h->bytes++ % 8 * 8;
        if (h->bytes % 8 == 0)
            h->h = mix(h->h, h->word), h->word = 0;
    }
    for (; bytes >= 8; p += 8, bytes -= 8, h->bytes += 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        h->h = mix(h->h, word);
    }
    for (; bytes; bytes--)
        h->word |= (uint64_t)*p++ << h->bytes++ % 8 * 8;
}

uint64_t hash_end(const Hash *h)
{
    uint64_t x = mix(mix(h->h, h->word), h->bytes);
    x = (x ^ x >> 33) * 0xC4CEB9FE1A85EC53u;
    return x ^ x >> 33;
}

/* Eight independent lanes: each multiplication waits only for the one before it in its own lane, so
 * the multiplier is always busy. */
uint64_t hash_block(const void *data, size_t bytes)
{
    enum { LANES = 8 };
    const char *p = data;
    size_t left = bytes;
    uint64_t h[LANES], word;
    for (int i = 0; i < LANES; i++)
        h[i] = 0x9E3779B97F4A7C15u * (uint64_t)(i + 1);
    for (; left >= sizeof h; p += sizeof h, left -= sizeof h)
#pragma GCC unroll 8
        for (int i = 0; i < LANES; i++) {
            memcpy(&word, p + sizeof word * (size_t)i, sizeof word);
            h[i] = mix(h[i], word);
        }
    Hash all = hash_new();
    hash_add(&all, h, sizeof h);
    hash_add(&all, p, left);
    hash_add(&all, &bytes, sizeof bytes);
    return hash_end(&all);
}

uint64_t hash_place(uint64_t hash, int64_t place)
{
    const uint64_t x = mix(hash, (uint64_t)place + 0x9E3779B97F4A7C15u);
    return (x ^ x >> 29) * 0xC4CEB9FE1A85EC53u;
}

uint64_t hash_text(const char *s)
{
    Hash h = hash_new();
    hash_add(&h, s, strlen(s));
    return hash_end(&h);
}

uint64_t hash_algorithms(const RtProgram *p)
{
    Hash h = hash_new();
    const int sizes[] = {p->isa, p->real_bytes, p->chunk, p->slices};
    hash_add(&h, sizes, sizeof sizes);
    for (int i = 0; i < p->ncall; i++) {
        const char *kernel = p->call[i].kernel, *number = strrchr(kernel, '_');
        const char *algorithm = p->call[i].algorithm ? p->call[i].algorithm : "";
        hash_add(&h, kernel, number ? (size_t)(number - kernel) : strlen(kernel));
        hash_add(&h, algorithm, strlen(algorithm) + 1);
    }
    return hash_end(&h);
}
