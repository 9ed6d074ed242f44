/* bpe.c -- byte-pair encoding: the most frequent pair of neighbouring tokens becomes a new token,
 * and so on.
 *
 * Pairs are counted inside pieces. A piece is a word with the blank before it, a run of digits, a
 * run of other signs, or a run of white space. A piece counts as often as it occurs. If pairs are
 * equally frequent, the pair with the smaller numbers is first, so a text has one vocabulary. To
 * encode a text, the earliest pair in the vocabulary is joined in each piece, until no pair is
 * left.
 *
 * Source: Sennrich, Haddow, Birch 2016, "Neural machine translation of rare words with subword
 * units"; pieces as in GPT-2.
 */
#define _GNU_SOURCE
#include "base/error.h"
#include "data/vocab.h"
#include <stdlib.h>
#include <string.h>

enum { BYTES = 256 };

/* ---- pieces */

static int kind_of(char c)
{
    const unsigned char u = (unsigned char)c;
    return u >= 128 || (u >= 'a' && u <= 'z') || (u >= 'A' && u <= 'Z') ? 1
           : u >= '0' && u <= '9'                                       ? 2
           : u == ' ' || (u >= '\t' && u <= '\r')                       ? 3
                                                                        : 4;
}

int32_t bpe_piece(const char *at, const char *end)
{
    const char *c = at;
    if (c < end && *c == ' ' && c + 1 < end && kind_of(c[1]) != 3)
        c++;
    const int kind = c < end ? kind_of(*c) : 0;
    while (c < end && kind_of(*c) == kind && c - at < WORD_MAX)
        c++;
    if (kind == 3 && c < end && c - at > 1 && c[-1] == ' ')
        c--; /* the last blank belongs to the word after it */
    return (int32_t)(c - at);
}

/* ---- pairs by hash */

typedef struct Pair {
    int32_t left, right;
    int64_t count;
} Pair;

typedef struct Pairs {
    Pair *pair;
    int32_t n, room;
    int32_t *slot; /* index + 1 */
    uint32_t slots;
} Pairs;

static uint32_t hash_pair(int32_t left, int32_t right)
{
    const uint64_t h = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9E3779B97F4A7C15u;
    return (uint32_t)(h >> 32);
}

static void *room_for(void *old, size_t bytes)
{
    void *p = realloc(old, bytes);
    if (!p)
        rt_die("out of memory for pairs of tokens");
    return p;
}

static uint32_t pair_slot(const Pairs *p, int32_t left, int32_t right)
{
    uint32_t s = hash_pair(left, right) & (p->slots - 1);
    while (p->slot[s] &&
           (p->pair[p->slot[s] - 1].left != left || p->pair[p->slot[s] - 1].right != right))
        s = (s + 1) & (p->slots - 1);
    return s;
}

static void grow_pairs(Pairs *p)
{
    p->room = p->room ? 2 * p->room : 1024;
    p->slots = 2 * (uint32_t)p->room;
    p->pair = room_for(p->pair, sizeof *p->pair * (size_t)p->room);
    p->slot = room_for(p->slot, sizeof *p->slot * p->slots);
    memset(p->slot, 0, sizeof *p->slot * p->slots);
    for (int32_t i = 0; i < p->n; i++)
        p->slot[pair_slot(p, p->pair[i].left, p->pair[i].right)] = i + 1;
}

static void count_pair(Pairs *p, int32_t left, int32_t right, int64_t times)
{
    if (p->n == p->room)
        grow_pairs(p);
    const uint32_t s = pair_slot(p, left, right);
    if (!p->slot[s]) {
        p->pair[p->n] = (Pair){left, right, 0};
        p->slot[s] = ++p->n;
    }
    p->pair[p->slot[s] - 1].count += times;
}

/* ---- training */

typedef struct Split {
    int32_t *token;
    int32_t n;
    int64_t count;
} Split;

static void count_all(Pairs *p, const Split *s, int64_t sign)
{
    for (int32_t i = 0; i + 1 < s->n; i++)
        count_pair(p, s->token[i], s->token[i + 1], sign * s->count);
}

static bool split_holds(const Split *s, const Pair *b)
{
    for (int32_t i = 0; i + 1 < s->n; i++)
        if (s->token[i] == b->left && s->token[i + 1] == b->right)
            return true;
    return false;
}

/* Replaces each pair (left, right) by `token`, from left to right; returns the new length. */
static int32_t join_pairs(int32_t *t, int32_t n, int32_t left, int32_t right, int32_t token)
{
    int32_t k = 0;
    for (int32_t i = 0; i < n; i++)
        if (i + 1 < n && t[i] == left && t[i + 1] == right)
            t[k++] = token, i++;
        else
            t[k++] = t[i];
    return k;
}

/* The most frequent pair; NULL when none occurs twice. */
static const Pair *best(const Pairs *p)
{
    const Pair *b = NULL;
    for (int32_t i = 0; i < p->n; i++) {
        const Pair *c = &p->pair[i];
        const bool wins = !b || c->count > b->count ||
                          (c->count == b->count &&
                           (c->left < b->left || (c->left == b->left && c->right < b->right)));
        if (c->count > 1 && wins)
            b = c;
    }
    return b;
}

static Split *split_all(const Table *seen)
{
    Split *s = room_for(NULL, sizeof *s * (size_t)(seen->n + 1));
    for (int32_t i = 0; i < seen->n; i++) {
        const Piece *p = &seen->piece[i];
        s[i] = (Split){room_for(NULL, sizeof(int32_t) * (size_t)(p->length + 1)), p->length,
                       seen->count[i]};
        for (int32_t k = 0; k < p->length; k++)
            s[i].token[k] = (uint8_t)p->bytes[k];
    }
    return s;
}

void bpe_train(Vocab *v, const Table *seen, int64_t tokens)
{
    Split *s = split_all(seen);
    Pairs pairs = {.n = 0};
    const Pair *b;
    for (int32_t i = 0; i < seen->n; i++)
        count_all(&pairs, &s[i], 1);
    v->pair = room_for(NULL, sizeof *v->pair * (size_t)(tokens > BYTES ? tokens - BYTES : 1));
    for (v->n = BYTES; v->n < tokens && (b = best(&pairs)); v->n++) {
        const Pair now = *b; /* a copy: count_pair can move it */
        v->pair[v->n - BYTES][0] = now.left;
        v->pair[v->n - BYTES][1] = now.right;
        for (int32_t i = 0; i < seen->n; i++)
            if (split_holds(&s[i], &now)) {
                count_all(&pairs, &s[i], -1);
                s[i].n = join_pairs(s[i].token, s[i].n, now.left, now.right, v->n);
                count_all(&pairs, &s[i], 1);
            }
    }
    for (int32_t i = 0; i < seen->n; i++)
        free(s[i].token);
    free(s);
    free(pairs.pair);
    free(pairs.slot);
}

/* ---- use */

static int32_t *find_pair(const Vocab *v, int32_t left, int32_t right)
{
    uint32_t s = hash_pair(left, right) & (v->pair_slots - 1);
    while (v->pair_slot[s] &&
           (v->pair[v->pair_slot[s] - 1][0] != left || v->pair[v->pair_slot[s] - 1][1] != right))
        s = (s + 1) & (v->pair_slots - 1);
    return &v->pair_slot[s];
}

/* The bytes of a, then those of b.  Different pairs can have the same bytes: "a" "bc", "ab" "c". */
static Piece joined(Piece a, Piece b)
{
    char *bytes = rt_alloc((size_t)(a.length + b.length));
    memcpy(bytes, a.bytes, (size_t)a.length);
    memcpy(bytes + a.length, b.bytes, (size_t)b.length);
    return (Piece){bytes, a.length + b.length};
}

void bpe_index(Vocab *v)
{
    static char byte[BYTES];
    v->piece = rt_alloc(sizeof *v->piece * (size_t)v->n);
    for (v->pair_slots = 1024; v->pair_slots < 4 * (uint32_t)v->n; v->pair_slots *= 2)
        ;
    v->pair_slot = rt_alloc(sizeof *v->pair_slot * v->pair_slots);
    for (int c = 0; c < BYTES; c++) {
        byte[c] = (char)c;
        v->piece[c] = (Piece){&byte[c], 1};
    }
    for (int32_t i = 0; i < v->n - BYTES; i++) {
        v->piece[BYTES + i] = joined(v->piece[v->pair[i][0]], v->piece[v->pair[i][1]]);
        *find_pair(v, v->pair[i][0], v->pair[i][1]) = i + 1;
    }
}

void bpe_encode(const Vocab *v, const char *bytes, int32_t n, Tokens *out)
{
    int32_t t[WORD_MAX + 1], first;
    for (int32_t i = 0; i < n; i++)
        t[i] = (uint8_t)bytes[i];
    do {
        first = INT32_MAX;
        for (int32_t i = 0; i + 1 < n; i++) {
            const int32_t k = *find_pair(v, t[i], t[i + 1]);
            first = k && k < first ? k : first;
        }
        if (first != INT32_MAX)
            n = join_pairs(t, n, v->pair[first - 1][0], v->pair[first - 1][1], BYTES + first - 1);
    } while (first != INT32_MAX);
    for (int32_t i = 0; i < n; i++)
        tokens_add(out, t[i]);
}
