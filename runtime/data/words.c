/* words.c -- the ends of words: at blanks and at ASCII signs other than the apostrophe.
 *
 * This is the rule of text_to_word_sequence in Keras, with which the IMDB data set was numbered
 * (with both rules its training reviews have 88,584 different words). Capital ASCII letters become
 * small; all bytes beyond ASCII belong to words.
 */
#include "data/vocab.h"

static bool in_word(char c)
{
    const unsigned char u = (unsigned char)c;
    const bool blank = u == ' ' || (u >= '\t' && u <= '\r'),
               sign = (u > ' ' && u < '0') || (u > '9' && u < 'A') || (u > 'Z' && u < 'a') ||
                      (u > 'z' && u < 127);
    return !blank && (!sign || u == '\'');
}

int32_t word_next(const char **at, const char *end, char word[WORD_MAX])
{
    const char *c = *at;
    int32_t n = 0;
    while (c < end && !in_word(*c))
        c++;
    for (; c < end && in_word(*c); c++)
        if (n < WORD_MAX)
            word[n++] = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
    *at = c;
    return n;
}
