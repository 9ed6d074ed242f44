/* tcp_greet.h -- the greeting, by which two ranks prove that they know the job's secret, and the
 * codes of their messages afterwards.
 *
 *   caller -> answerer   Hello       ranks of both ends, the line, and 32 random bytes
 *   answerer -> caller   Challenge   32 random bytes
 *   caller -> answerer   Proof       HMAC(secret, "caller" Hello Challenge)
 *   answerer -> caller   Proof       HMAC(secret, "answerer" Hello Challenge)
 *
 * The caller proves itself first: a process that only knows the address of a rank gets nothing from
 * which it could guess the secret.  Both sides add random bytes, so that a recorded greeting is of
 * no use later.  Two keys are derived from Hello and Challenge, one for each direction of the line.
 * Each message carries a code over its number in that direction, its head and its bytes.  A message
 * that was changed, left out, repeated or sent by another process ends the run.  Nothing is
 * encrypted: whoever can read the network can read the messages.
 */
#ifndef COMM_TCP_GREET_H
#define COMM_TCP_GREET_H
#include "base/hash.h"

enum { NONCE_BYTES = 32, CODE_BYTES = 16 };

typedef struct Hello {
    char magic[8];
    uint64_t job;                       /* distinguishes runs; no secret */
    int32_t size, from, to, line, port; /* ranks; port: where the caller listens */
    uint32_t zero;
    char host[64];
    uint8_t nonce[NONCE_BYTES];
} Hello;

typedef struct Challenge {
    char magic[8];
    uint8_t nonce[NONCE_BYTES];
} Challenge;
typedef struct Proof {
    uint8_t code[SHA256_BYTES];
} Proof;

Hello greet_hello(uint64_t job, int size, int from, int to, int line, int port, const char *host);
Challenge greet_challenge(void);
/* Whether a Hello is from a rank of this run to rank `to`. */
bool greet_hello_fits(const Hello *h, uint64_t job, int size, int to);
bool greet_challenge_fits(const Challenge *c);

/* who: "caller" or "answerer". */
Proof greet_proof(const Hmac *secret, const char *who, const Hello *h, const Challenge *c);
bool greet_proof_holds(const Hmac *secret, const char *who, const Hello *h, const Challenge *c,
                       const Proof *p);

/* What an answerer sends instead of a proof to a caller with another secret. */
extern const Proof greet_refusal;

/* Keys and counts of messages of both directions of a line. */
typedef struct Seal {
    Hmac send, receive;
    uint64_t sent, received;
} Seal;
Seal seal_new(const Hmac *secret, const Hello *h, const Challenge *c, bool caller);

/* The head of a message; its bytes and its code follow it. */
typedef struct Head {
    int32_t tag, bytes;
} Head;
/* End notices (TAG_BYE, TAG_END) have neither bytes nor a number; `bytes` of TAG_END is the exit
 * code. */
enum { TAG_BYE = -1, TAG_END = -2, TAG_PLACES = -3 };

/* seal_send computes the code of the next message to be sent.  For a received message: seal_begin,
 * then hmac_add for each piece, then seal_holds compares it with the received code. */
void seal_send(Seal *s, Head h, const void *bytes, uint8_t code[CODE_BYTES]);
Hmac seal_begin(const Seal *s, Head h);
bool seal_holds(Seal *s, Hmac *m, const uint8_t code[CODE_BYTES]);

/* The same for end notices.  They have no number, because a rank that ends at once cannot wait for
 * its other messages. */
void seal_last(const Seal *s, Head h, uint8_t code[CODE_BYTES]);
bool seal_last_holds(const Seal *s, Head h, const uint8_t code[CODE_BYTES]);

#endif
