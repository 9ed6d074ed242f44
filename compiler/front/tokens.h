/* tokens.h -- the tokens of a text, for an editor: also of a text that does not parse. */
#ifndef TOKENS_H
#define TOKENS_H
#include "base/source.h"

typedef enum {
    TOKEN_NAME,
    TOKEN_RESERVED, /* model, for, true: text is the word */
    TOKEN_STRING,   /* also one that is not closed */
    TOKEN_VALUE,    /* a number, or what is meant to be one */
    TOKEN_NEWLINE,
    TOKEN_MARK /* an operator or a bracket */
} TokenKind;

typedef struct Token {
    TokenKind kind;
    char mark;        /* MARK: its character; '|' for |>, else the first one.  Otherwise 0 */
    bool single;      /* MARK: it has one character */
    const char *text; /* NAME, RESERVED */
    Span at;
} Token;

/* Whether t is this bracket or operator of one character, or this reserved word; t may be NULL. */
bool token_is(const Token *t, char mark);
bool token_reserved(const Token *t, const char *word);
int token_nests(const Token *t); /* 1: it opens a bracket; -1: it closes one; else 0 */

/* All tokens in order, without comments.  A text with a NUL byte has none. */
const Token *tokens_read(Arena *a, const Source *s, int *n);

#endif
