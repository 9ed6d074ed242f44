/* text.c -- one text as windows of T tokens, each with the token that follows.
 *
 *   one label for a sample      window i is tokens i S .. i S + T - 1, its label token i S + T
 *   a label for each position   window i the same; its labels are tokens i S + 1 .. i S + T
 *
 * S is the step of the recipe. The last tenth of the text is the test split; it begins with the
 * first token that is in no training window. With a label for each position, the test windows
 * follow each other (S = T), and positions that are not scored fill the last one: so each token is
 * scored once. In training with a label for each position, S = T is usual. From the second epoch
 * on, the windows begin at another token (data_batch), so that a token does not always follow the
 * same tokens.
 *
 * Nothing is copied: windows are overlapping rows of one array.
 */
#define _GNU_SOURCE
#include "data/text.h"
#include "base/error.h"
#include "base/memory.h"
#include "data/stream.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- reading */

static Text read_all(Stream *s)
{
    int64_t room = stream_content(s) + 1, n = 0, more;
    char *bytes = malloc((size_t)room);
    while (bytes && (more = stream_read(s, bytes + n, room - n)) > 0)
        if ((n += more) == room)
            bytes = realloc(bytes, (size_t)(room *= 2));
    if (!bytes)
        rt_die("%s is too large for the memory that is left", stream_path(s));
    const char *path = stream_path(s);
    stream_end(s, 0);
    free(s);
    return (Text){path, bytes, n, 1};
}

bool text_read(const RtProgram *p, const char *directory, const char *name, Text *out)
{
    Stream *s = stream_open(p, directory, name);
    if (s)
        *out = read_all(s);
    return s != NULL;
}

static const char *last_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Finds a text: a file, or a directory that holds NAME.txt or input.txt. */
static Text find_text(const RtProgram *p, const char *name)
{
    struct stat info;
    Text t;
    const char *base = last_name(name);
    const char *directory = base == name ? "." : rt_format("%.*s", (int)(base - name), name);
    const bool there = stat(name, &info) == 0;
    if (there && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))
        rt_die("the text %s is a device or a pipe, not a file", name);
    if (there ? S_ISREG(info.st_mode) : strchr(base, '.') != NULL) {
        if (text_read(p, directory, base, &t))
            return t;
        rt_die("the text %s does not exist", name);
    }
    directory = find_data(p, name);
    base = last_name(directory);
    const bool named = *base && strcmp(base, ".") != 0 && strcmp(base, "..") != 0;
    const char *own = rt_format("%s.txt", base);
    if ((named && text_read(p, directory, own, &t)) || text_read(p, directory, "input.txt", &t))
        return t;
    rt_die("%s holds no text: %s%s%s (plain or .gz)", directory, named ? "neither " : "no ",
           named ? own : "", named ? " nor input.txt" : "input.txt");
}

/* ---- the tokens of the text, read once for both splits */

typedef struct Corpus {
    const char *name; /* as the user gave it */
    const char *path; /* of the file that was found */
    char *x;
    int type;
    int64_t n;
} Corpus;
static Corpus corpus;

void text_store(Data *d, Tokens *t)
{
    const bool small = d->vocab <= UINT16_MAX;
    for (int64_t i = 0; small && i < t->n; i++)
        ((uint16_t *)t->at)[i] = (uint16_t)t->at[i]; /* in place: writes never overtake reads */
    d->type = small ? RT_U16 : RT_I32;
    const int64_t bytes = t->n * (small ? 2 : 4);
    d->x = realloc(t->at, (size_t)(bytes + MEMORY_SLACK));
    if (!d->x)
        rt_die("out of memory for %lld tokens", (long long)t->n);
}

static void read_corpus(const RtProgram *p, const char *name, Data *d)
{
    const Text t = find_text(p, name);
    Tokens tokens = {.n = 0};
    if (t.n == 0)
        rt_die("%s is empty", t.name);
    if (p->recipe.text.unit != RT_TEXT_BYTE)
        text_check_utf8(&t);
    if (!vocab_now()) {
        VocabMaker m = {.p = p};
        vocab_count(&m, &t);
        vocab_make(&m, t.name);
    }
    vocab_encode(vocab_now(), &t, &tokens);
    free((char *)t.bytes);
    corpus = (Corpus){name, t.name, NULL, 0, tokens.n};
    for (int64_t i = 0; i < p->input_dim[0]; i++) /* the last window can end after the text */
        tokens_add(&tokens, -1);
    text_store(d, &tokens);
    corpus.x = d->x;
    corpus.type = d->type;
}

static int64_t windows(int64_t tokens, int64_t length, int64_t step)
{
    return tokens < length ? 0 : (tokens - length) / step + 1;
}

void text_open(const RtProgram *p, const char *name, const char *split, int64_t limit, Data *d)
{
    const bool test = strcmp(split, "test") == 0, each = p->labels > 1;
    const int64_t t = p->input_dim[0];
    int64_t step = p->recipe.text.step ? p->recipe.text.step : each ? t : 1;
    if (!corpus.name || strcmp(corpus.name, name) != 0)
        read_corpus(p, name, d);
    const int64_t train = corpus.n - corpus.n / 10, size = corpus.type == RT_U16 ? 2 : 4;
    const int64_t least = t + (each ? step : 1);
    if (train < least)
        rt_die("%s has %lld tokens to train on, too few for a window of %lld and the token after "
               "it%s: at least %lld are needed",
               corpus.path, (long long)train, (long long)t,
               least > t + 1 ? " (windows begin elsewhere in each epoch)" : "", (long long)least);
    d->place = corpus.path;
    d->type = corpus.type;
    d->scored = 0;
    if (!test) {
        d->n = windows(train - 1 - (each ? step - 1 : 0), t, step);
        d->shift = each ? step : 1;
    } else if (each) {
        step = t;
        d->scored = corpus.n - train;
        d->n = (d->scored + t - 1) / t;
    } else {
        d->n = windows(corpus.n - train - 1, t, step);
    }
    if (d->n < 1)
        rt_die("%s has %lld tokens to test on (a tenth), fewer than a window of %lld and the token "
               "after it",
               corpus.path, (long long)(corpus.n - train), (long long)t);
    if (!test && limit > 0 && limit < d->n)
        d->n = limit;
    d->stride = step * size;
    d->x = corpus.x + (test ? train - each : 0) * size;
    d->next = d->x + (each ? 1 : t) * size;
}

/* ---- a sample for each text */

void text_sample(const RtProgram *p, const Vocab *v, const Text *t, Tokens *scratch,
                 int32_t *sample)
{
    const int64_t room = p->input_dim[0];
    scratch->n = 0;
    if (v->unit == RT_TEXT_WORD)
        tokens_add(scratch, VOCAB_BEGIN);
    vocab_encode(v, t, scratch);
    const int64_t n = scratch->n < room ? scratch->n : room;
    for (int64_t i = 0; i < room - n; i++)
        sample[i] = -1;
    memcpy(sample + room - n, scratch->at + scratch->n - n, sizeof *sample * (size_t)n);
}

Data *text_lines(const RtProgram *p, Data *d, const Text *t)
{
    Tokens scratch = {.n = 0}, all = {.n = 0};
    const char *const end = t->bytes + t->n;
    int32_t *sample = rt_alloc(sizeof *sample * (size_t)p->input_dim[0]);
    int64_t line = t->line;
    for (const char *c = t->bytes, *next; c < end; c = next + 1, line++) {
        next = memchr(c, '\n', (size_t)(end - c));
        next = next ? next : end;
        const Text one = {t->name, c, next - c - (next > c && next[-1] == '\r'), line};
        text_sample(p, vocab_now(), &one, &scratch, sample);
        for (int64_t i = 0; i < p->input_dim[0]; i++)
            tokens_add(&all, sample[i]);
        d->n++;
    }
    if (d->n == 0)
        rt_die("%s holds no text", t->name);
    free(scratch.at);
    free(sample);
    text_store(d, &all);
    d->stride = p->input_dim[0] * (d->type == RT_U16 ? 2 : 4);
    return d;
}
