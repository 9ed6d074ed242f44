/* text.h -- samples that are texts: windows of one text, or labelled lines. */
#ifndef TEXT_H
#define TEXT_H
#include "data/data.h"
#include "data/vocab.h"

/* Opens the text of the recipe, or the directory of tables, by name or path: both splits, which
 * share tokens and vocabulary. */
void text_open(const RtProgram *p, const char *name, const char *split, int64_t limit, Data *d);

/* tsv.c: opens DIR/NAME_train.tsv and DIR/NAME_test.tsv, or train.tsv and test.tsv. */
void tsv_open(const RtProgram *p, const char *directory, const char *split, int64_t limit, Data *d);

/* Writes the tokens of one text as a sample of p->input_dim[0] tokens: the last ones of a longer
 * text; padding before a shorter one. */
void text_sample(const RtProgram *p, const Vocab *v, const Text *t, Tokens *scratch,
                 int32_t *sample);

/* Reads all of directory/name (or the same with .gz or .xz); false: there is no such file. */
bool text_read(const RtProgram *p, const char *directory, const char *name, Text *out);

/* Moves the tokens to the samples of a Data, with two bytes each if the vocabulary allows it; frees
 * t. */
void text_store(Data *d, Tokens *t);

/* Samples to predict: the lines of a file, or one text. */
Data *text_lines(const RtProgram *p, Data *d, const Text *t);

#endif
