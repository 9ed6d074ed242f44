/* text.h -- samples that are text: windows of one text, or labelled lines. */
#ifndef TEXT_H
#define TEXT_H
#include "data/data.h"
#include "data/vocab.h"

/* The recipe's text, or the directory of tables, by name or path; both splits at once, which share tokens and vocabulary. */
void text_open(const RtProgram *p, const char *name, const char *split, int64_t limit, Data *d);

/* tsv.c: DIR/NAME_train.tsv and DIR/NAME_test.tsv, or train.tsv and test.tsv. */
void tsv_open(const RtProgram *p, const char *directory, const char *split, int64_t limit, Data *d);

/* The tokens of one text as a sample of p->input_dim[0]: the last ones of a longer text; a shorter one stands at the end, behind
 * padding. */
void text_sample(const RtProgram *p, const Vocab *v, const Text *t, Tokens *scratch, int32_t *sample);

/* All of directory/name (or that with .gz or .xz); false: there is none. */
bool text_read(const RtProgram *p, const char *directory, const char *name, Text *out);

/* Puts the tokens where a Data has its samples, in two bytes each where the vocabulary allows it; frees t. */
void text_store(Data *d, Tokens *t);

/* Samples to predict: the lines of a file, or one text. */
Data *text_lines(const RtProgram *p, Data *d, const Text *t);

#endif
