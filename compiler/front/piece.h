/* piece.h -- a model file as a row of tokens and comments, for the formatter (format.c). */
#ifndef PIECE_H
#define PIECE_H
#include "front/parse.h"

typedef struct Piece {
    int token;        /* of the grammar, or LEXEME_COMMENT; both separators are NEWLINE */
    const char *text; /* as written; of a comment, without blanks at its end */
    int bytes, width; /* of the text: bytes, and characters */
    int line;         /* in the source */
    int partner;      /* bracket: index of the other one; else -1 */
    int depth;        /* number of open brackets around the piece */
    int around;       /* index of the innermost of these brackets; -1: none */
    bool space;       /* on one line, a blank stands before the piece */
    bool breaks; /* '|>': on a line of its own in the source, and no ( or [ is open around it */
    bool broken; /* opening bracket: its contents do not stand on the line of the bracket */
} Piece;

typedef struct Pieces {
    Piece *v;
    int n;
    int *flat;   /* [n + 1]: columns of the first pieces on one line */
    int *forced; /* [n + 1]: how many of the first pieces force a statement to several lines */
} Pieces;

/* Reads the pieces of a source.  Separators stand between two statements only.  false after a
 * syntax error. */
bool pieces_read(Arena *a, Diag *d, const Source *s, Pieces *out);
/* Whether both have the same tokens and comments. */
bool pieces_equal(const Pieces *a, const Pieces *b);

/* Columns of the pieces from..to - 1 on one line, without a blank before the first one. */
int pieces_width(const Pieces *p, int from, int to);
/* Marks a '{' that is not empty as broken. */
void pieces_break(Pieces *p, int brace);
bool piece_opens(int token);
bool piece_closes(int token);
/* Strength of a binary operator after which a line can end: from 2 (or) to 6; 0: none. */
int piece_operator(const Pieces *p, int i);

#endif
