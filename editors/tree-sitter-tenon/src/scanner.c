/* scanner.c -- the words of Tenon, and the line ends that end a statement, for tree-sitter.
 *
 * A statement continues on the next line if the grammar expects more, or if the next line begins
 * with |> or else: then a line end is no token.  compiler/front/parse.c has nearly the same rules:
 * it reports a line end after some words and names, such as `return`, where the scanner goes on.
 * The scanner keeps no state.
 */
#include "tree_sitter/parser.h"
#include <string.h>

enum Token { END, NAME, FIRST_WORD }; /* externals of grammar.js */

static const char *const words[] = {"model", "block", "op",    "train", "import", "for",
                                    "in",    "scan",  "yield", "if",    "else",   "return",
                                    "and",   "or",    "not",   "true",  "false"};
enum { WORDS = sizeof words / sizeof *words, LONGEST = 8 };

void *tree_sitter_tenon_external_scanner_create(void)
{
    return NULL;
}

void tree_sitter_tenon_external_scanner_destroy(void *none)
{
    (void)none;
}

unsigned tree_sitter_tenon_external_scanner_serialize(void *none, char *buffer)
{
    (void)none, (void)buffer;
    return 0;
}

void tree_sitter_tenon_external_scanner_deserialize(void *none, const char *buffer, unsigned n)
{
    (void)none, (void)buffer, (void)n;
}

static bool begins_word(int32_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Reads a word.  Returns its token. */
static int read_word(TSLexer *lexer)
{
    char text[LONGEST] = "";
    size_t n = 0;
    for (; begins_word(lexer->lookahead) || (lexer->lookahead >= '0' && lexer->lookahead <= '9');
         lexer->advance(lexer, false), n++)
        if (n < sizeof text - 1)
            text[n] = (char)lexer->lookahead;
    for (int i = 0; i < WORDS; i++)
        if (n < sizeof text && strcmp(text, words[i]) == 0)
            return FIRST_WORD + i;
    return NAME;
}

static bool is_else(int token)
{
    return token >= FIRST_WORD && strcmp(words[token - FIRST_WORD], "else") == 0;
}

static bool skip_blanks(TSLexer *lexer, bool as_text) /* whether there was a line end */
{
    bool line_end = false;
    for (; lexer->lookahead == ' ' || lexer->lookahead == '\t' || lexer->lookahead == '\r' ||
           lexer->lookahead == '\n';
         lexer->advance(lexer, !as_text))
        line_end |= lexer->lookahead == '\n';
    return line_end;
}

/* Whether the statement continues on a line that begins here, perhaps after comments. */
static bool continues(TSLexer *lexer)
{
    while (lexer->lookahead == '#') {
        while (lexer->lookahead != '\n' && !lexer->eof(lexer))
            lexer->advance(lexer, false);
        skip_blanks(lexer, true);
    }
    if (lexer->lookahead == '|') {
        lexer->advance(lexer, false);
        return lexer->lookahead == '>';
    }
    return begins_word(lexer->lookahead) && is_else(read_word(lexer));
}

bool tree_sitter_tenon_external_scanner_scan(void *none, TSLexer *lexer, const bool *valid)
{
    (void)none;
    const bool ends = skip_blanks(lexer, false) && valid[END];
    lexer->mark_end(lexer); /* the token END is empty and stands before the next line's text */
    lexer->result_symbol = END;
    if (!begins_word(lexer->lookahead))
        return ends && !continues(lexer);
    const int token = read_word(lexer);
    if (ends && !is_else(token))
        return true;
    lexer->mark_end(lexer);
    lexer->result_symbol = (TSSymbol)token;
    return valid[token];
}
