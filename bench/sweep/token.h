/* token.h -- words of a sweep file, each with its place. */
#ifndef SWEEP_TOKEN_H
#define SWEEP_TOKEN_H
#include "base/diag.h"
#include <stdint.h>

typedef enum { TOKEN_END, TOKEN_WORD, TOKEN_NUMBER, TOKEN_TEXT, TOKEN_SIGN, TOKEN_BAD } TokenKind;

typedef struct Token {
    TokenKind kind;
    const char *text; /* as written; TEXT: without its quotes */
    int64_t number;
    Span at;
} Token;

typedef struct Reader {
    Arena *arena;
    Diag *diag;
    const Source *source;
    size_t pos;
    int line;
    size_t line_start;
    Token now; /* the next token */
} Reader;

void reader_begin(Reader *r, Arena *a, const Source *s, Diag *d);
void reader_next(Reader *r);
bool reader_sign(Reader *r, char c); /* whether the next token is c; if so, takes it */
/* Reports "NUMBER is expected here, not 'x'" at the next token. */
void reader_expected(Reader *r, const char *what);

#endif
