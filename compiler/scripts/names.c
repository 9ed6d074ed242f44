/* names.c -- names in Python: those that are taken, and names of classes. */
#include "scripts/python.h"
#include <ctype.h>
#include <string.h>

bool python_has_word(const char *words, const char *word)
{
    const size_t n = strlen(word);
    for (const char *w = words; (w = strstr(w, word)); w += n)
        if ((w == words || w[-1] == ' ') && (w[n] == ' ' || !w[n]))
            return true;
    return false;
}

/* Python's keywords, which cannot be names of anything; keyword.kwlist of Python 3.13. */
static const char keywords[] =
    "False None True and as assert async await break class continue def del elif else except "
    "finally for from global if import in is lambda nonlocal not or pass raise return try while "
    "with yield";
/* Classes and names in capitals that the scripts of some framework use. */
static const char classes[] =
    "BATCH Batches Bias DTYPE Draw F FACTORS FROZEN GRUCell LR Lion NAMES WORDS Log Optimizer "
    "PReLU PaddedEmbedding SystemExit Table";
/* Names that expressions in a method or in the function of losses use. */
static const char variables[] =
    "attention average_pool binary_cross_entropy causal float gluon keras label layers math "
    "masked max_pool mx nd nn np ops output rnn self smoothed torch training";

const char *python_class(Arena *a, const char *name)
{
    char *s = arena_strdup(a, name), *to = s;
    for (const char *from = s; *from; from++)
        if (*from != '_')
            *to++ = (char)(from == s || from[-1] == '_' ? toupper((unsigned char)*from) : *from);
    *to = 0;
    return python_keyword(s) || python_has_word(classes, s) ? arena_printf(a, "%s_", s) : s;
}

bool python_keyword(const char *s)
{
    return python_has_word(keywords, s);
}

bool python_reserved(const char *s)
{
    return python_keyword(s) || python_has_word(classes, s) || python_has_word(variables, s);
}
