/* tsv.c -- labelled texts: one text in each line, fields separated by tabs; the first field is the
 * class, the last one the text.
 *
 * A text of words begins with the token VOCAB_BEGIN. A text longer than the input loses its first
 * tokens; a shorter one gets padding before it, which is the default of pad_sequences in Keras. The
 * vocabulary is that of the training texts.
 */
#define _GNU_SOURCE
#include "base/error.h"
#include "base/memory.h"
#include "data/text.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* One line of a table. */
typedef struct Row {
    int64_t label;
    char number[32]; /* the label as it is written, or its first digits */
    Text text;
} Row;

static const char *directory_base(const char *directory)
{
    const char *slash = strrchr(directory, '/');
    return slash && slash[1] ? slash + 1 : directory;
}

static Text find_table(const RtProgram *p, const char *directory, const char *split)
{
    Text t;
    const char *long_name = rt_format("%s_%s.tsv", directory_base(directory), split),
               *name = rt_format("%s.tsv", split);
    if (!text_read(p, directory, name, &t) && !text_read(p, directory, long_name, &t))
        rt_die("%s holds no labelled texts: neither %s nor %s (plain or .gz)", directory, name,
               long_name);
    if (t.n == 0)
        rt_die("%s is empty", t.name);
    if (t.n >= 3 && memcmp(t.bytes, "\xEF\xBB\xBF", 3) ==
                        0) { /* a byte order mark is no part of the first label */
        t.n -= 3;
        memmove((char *)t.bytes, t.bytes + 3, (size_t)t.n);
    }
    if (p->recipe.text.unit != RT_TEXT_BYTE)
        text_check_utf8(&t);
    return t;
}

/* Reads the line at *at, and advances *at to the next line. Returns false at the end. Skips blank
 * lines. */
static bool next_row(const Text *t, const char **at, int64_t *line, Row *row)
{
    const char *const end = t->bytes + t->n, *c = *at, *stop;
    for (;; c = stop + 1, ++*line) {
        if (c >= end)
            return false;
        stop = memchr(c, '\n', (size_t)(end - c));
        stop = stop ? stop : end;
        if (stop > c && !(stop == c + 1 && *c == '\r'))
            break;
    }
    char *number_end, *const number = row->number;
    const char *tab = memchr(c, '\t', (size_t)(stop - c)),
               *last = memrchr(c, '\t', (size_t)(stop - c));
    if (!tab)
        rt_die("%s:%lld: a line is a label, a tab and a text; this one has no tab", t->name,
               (long long)*line);
    const size_t most = sizeof row->number - 1, length = (size_t)(tab - c);
    const size_t digits = length < most ? length : most;
    memcpy(number, c, digits);
    number[digits] = 0;
    if (length > most)
        memcpy(number + most - 3, "...", 3);
    errno = 0;
    row->label = strtoll(number, &number_end, 10);
    if (number_end == number || (*number_end && !(errno == ERANGE && length > most)))
        rt_die("%s:%lld: a line begins with the number of its class, not '%s'", t->name,
               (long long)*line, number);
    row->text = (Text){t->name, last + 1, stop - last - 1 - (stop[-1] == '\r'), *line};
    *at = stop + 1;
    ++*line;
    return true;
}

static void make_vocab(const RtProgram *p, const Text *t)
{
    VocabMaker m = {.p = p};
    const char *at = t->bytes;
    int64_t line = 1;
    Row row;
    while (next_row(t, &at, &line, &row))
        vocab_count(&m, &row.text);
    vocab_make(&m, t->name);
}

static int64_t count_rows(const Text *t)
{
    const char *at = t->bytes;
    int64_t line = 1, n = 0;
    Row row;
    while (next_row(t, &at, &line, &row))
        n++;
    return n;
}

void tsv_open(const RtProgram *p, const char *directory, const char *split, int64_t limit, Data *d)
{
    const int64_t room = p->input_dim[0];
    if (!vocab_now()) {
        const Text train = find_table(p, directory, "train");
        make_vocab(p, &train);
        free((char *)train.bytes);
    }
    const Text t = find_table(p, directory, split);
    const int64_t all = count_rows(&t);
    Tokens scratch = {.n = 0}, tokens = {.n = 0};
    const char *at = t.bytes;
    int64_t line = 1;
    Row row;
    int32_t *sample = rt_alloc(sizeof *sample * (size_t)room);
    d->label = memory_map(all * (int64_t)sizeof *d->label, false, t.name);
    while ((limit <= 0 || d->n < limit) && next_row(&t, &at, &line, &row)) {
        if (row.label < 0 || row.label >= d->classes)
            rt_die("%s:%lld: class %s is out of range: the classes are 0 to %lld", t.name,
                   (long long)line - 1, row.number, (long long)d->classes - 1);
        d->label[d->n++] = (int32_t)row.label;
        text_sample(p, vocab_now(), &row.text, &scratch, sample);
        for (int64_t i = 0; i < room; i++)
            tokens_add(&tokens, sample[i]);
    }
    if (d->n == 0)
        rt_die("%s holds no text", t.name);
    text_store(d, &tokens);
    d->stride = room * (d->type == RT_U16 ? 2 : 4);
    free(scratch.at);
    free(sample);
    free((char *)t.bytes);
}
