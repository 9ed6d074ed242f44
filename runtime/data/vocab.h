/* vocab.h -- the vocabulary of a program: the pieces of text that its tokens stand for.
 *
 *   char   the characters (code points) of the text, sorted
 *   byte   bytes 0 .. 255
 *   word   in lower case (words.c); 0 is padding, 1 begins a text, 2 is any unknown word; then the
 *          words of the training texts, the most frequent first, equally frequent ones by bytes
 *   bpe    bytes 0 .. 255, then pairs of tokens, the most frequent first (bpe.c)
 *
 * A vocabulary is made from the training text, or taken from a file of weights. In this file it is
 * the tensor "vocabulary": a line of text for each token, which people can read.
 */
#ifndef VOCAB_H
#define VOCAB_H
#include "data/table.h"
#include "rt.h"

enum { VOCAB_PADDING, VOCAB_BEGIN, VOCAB_UNKNOWN, VOCAB_WORDS }; /* of unit word */

typedef struct Vocab {
    int unit;     /* RT_TEXT_* */
    int32_t n;    /* tokens */
    Piece *piece; /* the piece of each token; empty for padding, VOCAB_BEGIN, VOCAB_UNKNOWN */
    Table known; /* char, word: finds a piece; the number of a word is its token less VOCAB_WORDS */
    int32_t (*pair)[2]; /* bpe: token 256 + i = pair[i] */
    int32_t *pair_slot;
    uint32_t pair_slots; /* bpe: finds a pair (bpe.c) */
    char *text;
    int64_t text_bytes; /* bytes of the text, which is the saved form */
    uint64_t hash;      /* of this text */
} Vocab;

typedef struct Tokens {
    int32_t *at;
    int64_t n, room;
} Tokens;
void tokens_add(Tokens *t, int32_t token);

/* A text in memory, its name in messages, and the number of its first line. */
typedef struct Text {
    const char *name, *bytes;
    int64_t n, line;
} Text;

void text_check_utf8(const Text *t); /* dies with line and byte */

/* The vocabulary of this process; a program has one. NULL before it is made or taken. */
const Vocab *vocab_now(void);

/* Counts the pieces of t; after the last text, vocab_make makes the vocabulary. Dies if there are
 * more characters than the vocabulary of the program has. */
typedef struct VocabMaker {
    const RtProgram *p;
    Table seen;
} VocabMaker;
void vocab_count(VocabMaker *m, const Text *t);
const Vocab *vocab_make(VocabMaker *m, const char *what);

/* Takes the vocabulary from its saved form; dies, with `path` in the message, if it is damaged or
 * of another program. */
void vocab_take(const RtProgram *p, const char *path, const char *text, int64_t bytes);
/* Takes the vocabulary from a file of weights; false if the file has none. */
bool vocab_of_weights(const RtProgram *p, const char *path);

/* Adds the tokens of t. Dies at a character that is not in the vocabulary. */
void vocab_encode(const Vocab *v, const Text *t, Tokens *out);

/* ---- words.c: copies the next word from *at to `word`, in lower case, cut if too long; 0: no word
 * is left */
enum { WORD_MAX = 255 };
int32_t word_next(const char **at, const char *end, char word[WORD_MAX]);

/* ---- bpe.c: length of the next piece, inside which pairs are counted: a word with the blank
 * before it, or other signs; 0 at the end */
int32_t bpe_piece(const char *at, const char *end);
void bpe_train(Vocab *v, const Table *seen, int64_t tokens);
void bpe_index(Vocab *v); /* after pair[] is filled: fills piece[] and finds pairs */
void bpe_encode(const Vocab *v, const char *bytes, int32_t n, Tokens *out);

#endif
