/* vocab.c -- makes, saves, reads and uses a vocabulary; see vocab.h.  The saved form:
 *
 *   tenon vocabulary 1 char 65      the unit and the number of tokens; then a line for each token
 *   \n                              char, word: the piece; a backslash before n, r and backslash
 *   104 101                         bpe: the two tokens that a token after 255 joins
 */
#define _GNU_SOURCE
#include "data/vocab.h"
#include "base/error.h"
#include "base/hash.h"
#include "files/safetensors.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 256 };
static const char *const unit_name[] = {"none", "char", "byte", "word", "bpe"};
static Vocab now;

const Vocab *vocab_now(void)
{
    return now.n ? &now : NULL;
}

void tokens_add(Tokens *t, int32_t token)
{
    if (t->n == t->room) {
        t->room = t->room ? 2 * t->room : 1024;
        t->at = realloc(t->at, sizeof *t->at * (size_t)t->room);
        if (!t->at)
            rt_die("out of memory for %lld tokens", (long long)t->room);
    }
    t->at[t->n++] = token;
}

/* ---- characters */

/* Number of bytes of the character at c, 0 if there is no character: the table of RFC 3629, without
 * overlong forms and surrogates. */
static int utf8_length(const char *at, const char *end)
{
    const unsigned char *c = (const unsigned char *)at;
    const int n = *c < 0x80                 ? 1
                  : *c >= 0xC2 && *c < 0xE0 ? 2
                  : (*c & 0xF0) == 0xE0     ? 3
                  : *c >= 0xF0 && *c < 0xF5 ? 4
                                            : 0;
    if (n == 0 || end - at < n)
        return 0;
    for (int i = 1; i < n; i++)
        if ((c[i] & 0xC0) != 0x80)
            return 0;
    const bool wrong = (*c == 0xE0 && c[1] < 0xA0) || (*c == 0xED && c[1] > 0x9F) ||
                       (*c == 0xF0 && c[1] < 0x90) || (*c == 0xF4 && c[1] > 0x8F);
    return wrong ? 0 : n;
}

/* "tale.txt:12: " and the index of the byte in its line, for messages about the byte at `at`. */
static const char *place_in_text(const Text *t, const char *at)
{
    int64_t line = t->line;
    const char *begin = t->bytes;
    for (const char *c = t->bytes; c < at; c++)
        if (*c == '\n')
            line++, begin = c + 1;
    return rt_format("%s:%lld: byte %lld of the line", t->name, (long long)line,
                     (long long)(at - begin + 1));
}

void text_check_utf8(const Text *t)
{
    const char *const end = t->bytes + t->n;
    for (const char *c = t->bytes; c < end;) {
        const int n = utf8_length(c, end);
        if (n == 0)
            rt_die("%s, 0x%02X, is not UTF-8: convert the text (iconv -t UTF-8), or take unit = "
                   "\"byte\"",
                   place_in_text(t, c), (unsigned char)*c);
        c += n;
    }
}

/* ---- counting and making */

static void count(VocabMaker *m, const char *bytes, int32_t length)
{
    const int32_t i =
        table_add(&m->seen, bytes, length); /* first, because it can move the table's arrays */
    m->seen.count[i]++;
}

void vocab_count(VocabMaker *m, const Text *t)
{
    const char *c = t->bytes, *const end = c + t->n;
    char word[WORD_MAX];
    int32_t n;
    switch (m->p->recipe.text.unit) {
    case RT_TEXT_CHAR:
        for (; c < end; c += n)
            count(m, c, n = utf8_length(c, end));
        break;
    case RT_TEXT_WORD:
        while ((n = word_next(&c, end, word)))
            count(m, word, n);
        break;
    case RT_TEXT_BPE:
        for (; (n = bpe_piece(c, end)); c += n)
            count(m, c, n);
        break;
    default:
        break;
    }
}

/* For char and word: makes the pieces of `known` the tokens from `first` on. */
static void name_pieces(Vocab *v, int32_t first)
{
    v->n = first + v->known.n;
    v->piece = rt_alloc(sizeof *v->piece * (size_t)v->n);
    for (int32_t i = 0; i < v->known.n; i++)
        v->piece[first + i] = v->known.piece[i];
}

static void name_bytes(Vocab *v)
{
    v->n = BYTES;
    bpe_index(v);
}

/* The first `most` of a sorted table. */
static Table first_entries(const Table *seen, int64_t most)
{
    Table t = {.n = 0};
    for (int32_t i = 0; i < seen->n && i < most; i++)
        table_add(&t, seen->piece[i].bytes, seen->piece[i].length);
    return t;
}

static int64_t escaped(char *to, Piece p)
{
    int64_t n = 0;
    for (int32_t i = 0; i < p.length; i++) {
        const char c = p.bytes[i];
        if (c == '\n' || c == '\r' || c == '\\')
            to[n++] = '\\';
        to[n++] = c == '\n' ? 'n' : c == '\r' ? 'r' : c;
    }
    to[n++] = '\n';
    return n;
}

static void write_vocab(Vocab *v)
{
    int64_t room = 64;
    for (int32_t i = 0; i < v->known.n; i++)
        room += 2 * v->known.piece[i].length + 1;
    for (int32_t i = BYTES; v->pair && i < v->n; i++)
        room += 24;
    char *t = v->text = rt_alloc((size_t)room);
    t += sprintf(t, "tenon vocabulary 1 %s %d\n", unit_name[v->unit], v->n);
    for (int32_t i = 0; i < v->known.n; i++)
        t += escaped(t, v->known.piece[i]);
    for (int32_t i = BYTES; v->pair && i < v->n; i++)
        t += sprintf(t, "%d %d\n", v->pair[i - BYTES][0], v->pair[i - BYTES][1]);
    v->text_bytes = t - v->text;
    Hash h = hash_new();
    hash_add(&h, v->text, (size_t)v->text_bytes);
    v->hash = hash_end(&h);
}

/* Makes v the vocabulary of this process. */
static void take_vocab(const Vocab *v)
{
    for (int32_t i = BYTES; now.unit == RT_TEXT_BPE && i < now.n; i++)
        free((char *)now.piece[i].bytes);
    free(now.piece);
    free(now.pair);
    free(now.pair_slot);
    free(now.text);
    table_free(&now.known);
    now = *v;
}

const Vocab *vocab_make(VocabMaker *m, const char *what)
{
    const RtProgram *p = m->p;
    Vocab v = {.unit = p->recipe.text.unit};
    if (v.unit == RT_TEXT_CHAR && m->seen.n > p->vocab)
        rt_die("%s has %d different characters, more than the %lld of %s: build it with --set "
               "data.vocab=%d",
               what, m->seen.n, (long long)p->vocab, p->model, m->seen.n);
    if (v.unit == RT_TEXT_CHAR || v.unit == RT_TEXT_WORD) {
        const int32_t first = v.unit == RT_TEXT_WORD ? VOCAB_WORDS : 0;
        table_sort(&m->seen, v.unit == RT_TEXT_WORD);
        v.known = first_entries(&m->seen, p->vocab - first);
        name_pieces(&v, first);
    } else if (v.unit == RT_TEXT_BPE) {
        table_sort(&m->seen, 1);
        bpe_train(&v, &m->seen, p->vocab);
        bpe_index(&v);
    } else {
        name_bytes(&v);
    }
    table_free(&m->seen);
    write_vocab(&v);
    take_vocab(&v);
    return &now;
}

/* ---- reading a saved vocabulary */

/* Reads a line of the saved form, without its escapes, into `line`; -1 at the end. */
static int32_t read_line(const char **at, const char *end, char *line, int32_t room)
{
    int32_t n = 0;
    const char *c = *at;
    if (c == end)
        return -1;
    for (; c < end && *c != '\n'; c++) {
        char one = *c;
        if (one == '\\' && c + 1 < end)
            one = *++c == 'n' ? '\n' : *c == 'r' ? '\r' : *c;
        if (n < room)
            line[n++] = one;
    }
    *at = c < end ? c + 1 : end;
    return n;
}

static bool read_pieces(Vocab *v, const char *at, const char *end)
{
    char line[WORD_MAX + 1];
    const int32_t first = v->unit == RT_TEXT_WORD ? VOCAB_WORDS : 0;
    for (int32_t i = first, n; i < v->n; i++)
        if ((n = read_line(&at, end, line, WORD_MAX)) < 1 ||
            table_add(&v->known, line, n) != i - first)
            return false;
    name_pieces(v, first);
    return at == end;
}

/* Reads the pairs, and checks the lengths of their tokens.  A token from a training text is a part
 * of a piece, so it has at most WORD_MAX bytes. A damaged vocabulary could have tokens of
 * gigabytes, if each one doubles the one before. */
static bool read_pairs(Vocab *v, const char *path, const char *at, const char *end)
{
    char line[64];
    if (v->n < BYTES)
        return false;
    int32_t *length = rt_alloc(sizeof *length * (size_t)v->n);
    for (int32_t i = 0; i < BYTES; i++)
        length[i] = 1;
    v->pair = rt_alloc(sizeof *v->pair * (size_t)(v->n - BYTES + 1));
    for (int32_t i = BYTES, n; i < v->n; i++) {
        int32_t *pair = v->pair[i - BYTES];
        if ((n = read_line(&at, end, line, 60)) < 1)
            return false;
        line[n] = 0;
        if (sscanf(line, "%d %d", &pair[0], &pair[1]) != 2 || pair[0] < 0 || pair[1] < 0 ||
            pair[0] >= i || pair[1] >= i)
            return false;
        length[i] = length[pair[0]] + length[pair[1]];
        if (length[i] > WORD_MAX)
            rt_die("%s holds a vocabulary that is damaged: its token %d stands for %d bytes, more "
                   "than the %d that are "
                   "possible; use the file that the training has written",
                   path, i, length[i], WORD_MAX);
    }
    free(length);
    bpe_index(v);
    return at == end;
}

void vocab_take(const RtProgram *p, const char *path, const char *text, int64_t bytes)
{
    Vocab v = {.unit = p->recipe.text.unit};
    const char *at = text, *const end = text + bytes;
    char head[128], unit[16] = "";
    const int32_t n = read_line(&at, end, head, 120);
    head[n < 0 ? 0 : n] = 0;
    if (sscanf(head, "tenon vocabulary 1 %15s %d", unit, &v.n) != 2 || v.n < 1)
        rt_die("%s holds a vocabulary that is damaged", path);
    if (strcmp(unit, unit_name[v.unit]) != 0 || v.n > p->vocab)
        rt_die("%s holds a vocabulary of %d tokens of unit \"%s\", but %s takes at most %lld of "
               "unit \"%s\"",
               path, v.n, unit, p->model, (long long)p->vocab, unit_name[v.unit]);
    bool ok = true;
    if (v.unit == RT_TEXT_BYTE)
        name_bytes(&v);
    else
        ok = v.unit == RT_TEXT_BPE ? read_pairs(&v, path, at, end) : read_pieces(&v, at, end);
    if (!ok)
        rt_die("%s holds a vocabulary that is damaged", path);
    write_vocab(&v);
    take_vocab(&v);
}

bool vocab_of_weights(const RtProgram *p, const char *path)
{
    char why[256];
    StFile *f = p->recipe.text.unit ? st_open(path, why) : NULL;
    const StEntry *e = f ? st_find(f, ST_VOCABULARY) : NULL;
    if (e)
        vocab_take(p, path, f->data + e->begin, e->end - e->begin);
    if (f)
        st_close(f);
    return e != NULL;
}

/* ---- encoding */

static void __attribute__((noreturn))
unknown(const Vocab *v, const Text *t, const char *at, int32_t n)
{
    rt_die("%s, the character '%.*s', is not one of the %d in the vocabulary that the weights were "
           "trained with",
           place_in_text(t, at), n, at, v->n);
}

void vocab_encode(const Vocab *v, const Text *t, Tokens *out)
{
    const char *c = t->bytes, *const end = c + t->n;
    char word[WORD_MAX];
    int32_t n;
    switch (v->unit) {
    case RT_TEXT_CHAR:
        for (; c < end; c += n) {
            const int32_t token = table_find(&v->known, c, n = utf8_length(c, end));
            if (token < 0)
                unknown(v, t, c, n);
            tokens_add(out, token);
        }
        break;
    case RT_TEXT_WORD:
        while ((n = word_next(&c, end, word))) {
            const int32_t known = table_find(&v->known, word, n);
            tokens_add(out, known < 0 ? VOCAB_UNKNOWN : known + VOCAB_WORDS);
        }
        break;
    case RT_TEXT_BPE:
        for (; (n = bpe_piece(c, end)); c += n)
            bpe_encode(v, c, n, out);
        break;
    default:
        for (; c < end; c++)
            tokens_add(out, (uint8_t)*c);
    }
}
