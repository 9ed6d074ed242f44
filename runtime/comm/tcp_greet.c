/* tcp_greet.c -- see tcp_greet.h. */
#define _GNU_SOURCE
#include "comm/tcp_greet.h"
#include "base/error.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

static const char MAGIC[8] = "tenon-2"; /* version of the messages of a greeting */
static const uint64_t LAST = UINT64_MAX;

const Proof greet_refusal;

_Static_assert(sizeof(Hello) == 8 + 8 + 6 * 4 + 64 + NONCE_BYTES, "a Hello has no gaps");

static void draw_nonce(uint8_t nonce[NONCE_BYTES])
{
    for (size_t have = 0; have < NONCE_BYTES;) {
        const ssize_t n = getrandom(nonce + have, NONCE_BYTES - have, 0);
        if (n < 0 && errno != EINTR)
            rt_die("no random numbers: %s", strerror(errno));
        have += n > 0 ? (size_t)n : 0;
    }
}

Hello greet_hello(uint64_t job, int size, int from, int to, int line, int port, const char *host)
{
    Hello h = {.job = job, .size = size, .from = from, .to = to, .line = line, .port = port};
    memcpy(h.magic, MAGIC, sizeof h.magic);
    snprintf(h.host, sizeof h.host, "%s", host);
    draw_nonce(h.nonce);
    return h;
}

Challenge greet_challenge(void)
{
    Challenge c;
    memcpy(c.magic, MAGIC, sizeof c.magic);
    draw_nonce(c.nonce);
    return c;
}

bool greet_hello_fits(const Hello *h, uint64_t job, int size, int to)
{
    return memcmp(h->magic, MAGIC, sizeof h->magic) == 0 && h->job == job && h->size == size &&
           h->to == to && h->from > to && h->from < size;
}

bool greet_challenge_fits(const Challenge *c)
{
    return memcmp(c->magic, MAGIC, sizeof c->magic) == 0;
}

/* Computes the HMAC over the purpose (`use`), the Hello and the Challenge. */
static void code_of(const Hmac *secret, const char *use, const Hello *h, const Challenge *c,
                    uint8_t code[SHA256_BYTES])
{
    Hmac m = *secret;
    hmac_add(&m, use, strlen(use) + 1);
    hmac_add(&m, h, sizeof *h);
    hmac_add(&m, c, sizeof *c);
    hmac_end(&m, code);
}

Proof greet_proof(const Hmac *secret, const char *who, const Hello *h, const Challenge *c)
{
    Proof p;
    code_of(secret, who, h, c, p.code);
    return p;
}

bool greet_proof_holds(const Hmac *secret, const char *who, const Hello *h, const Challenge *c,
                       const Proof *p)
{
    const Proof want = greet_proof(secret, who, h, c);
    return hmac_equal(want.code, p->code, sizeof want.code);
}

/* ---- messages */

Seal seal_new(const Hmac *secret, const Hello *h, const Challenge *c, bool caller)
{
    uint8_t calls[SHA256_BYTES], answers[SHA256_BYTES];
    Seal s = {.sent = 0};
    code_of(secret, "key of the caller", h, c, calls);
    code_of(secret, "key of the answerer", h, c, answers);
    hmac_new(&s.send, caller ? calls : answers, SHA256_BYTES);
    hmac_new(&s.receive, caller ? answers : calls, SHA256_BYTES);
    return s;
}

static Hmac begin_code(const Hmac *key, uint64_t number, Head h)
{
    Hmac m = *key;
    hmac_add(&m, &number, sizeof number);
    hmac_add(&m, &h, sizeof h);
    return m;
}

static void end_code(Hmac *m, uint8_t code[CODE_BYTES])
{
    uint8_t whole[SHA256_BYTES];
    hmac_end(m, whole);
    memcpy(code, whole, CODE_BYTES);
}

void seal_send(Seal *s, Head h, const void *bytes, uint8_t code[CODE_BYTES])
{
    Hmac m = begin_code(&s->send, s->sent++, h);
    hmac_add(&m, bytes, (size_t)h.bytes);
    end_code(&m, code);
}

Hmac seal_begin(const Seal *s, Head h)
{
    return begin_code(&s->receive, s->received, h);
}

bool seal_holds(Seal *s, Hmac *m, const uint8_t code[CODE_BYTES])
{
    uint8_t want[CODE_BYTES];
    end_code(m, want);
    s->received++;
    return hmac_equal(want, code, CODE_BYTES);
}

void seal_last(const Seal *s, Head h, uint8_t code[CODE_BYTES])
{
    Hmac m = begin_code(&s->send, LAST, h);
    end_code(&m, code);
}

bool seal_last_holds(const Seal *s, Head h, const uint8_t code[CODE_BYTES])
{
    uint8_t want[CODE_BYTES];
    Hmac m = begin_code(&s->receive, LAST, h);
    end_code(&m, want);
    return hmac_equal(want, code, CODE_BYTES);
}
