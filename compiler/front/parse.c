/* parse.c -- decides which newlines end a statement, and which brackets belong together.
 *
 * A filter of tokens stands between the lexer and the grammar.  It drops a newline inside of ( )
 * and [ ], after an operator, and before |> or else, so a statement can continue on the next line
 * where it is clearly unfinished.  If a '{' is still open at the next declaration, the filter
 * reports it and closes it: a missing brace causes one error, not one for every later line.
 */
#include "front/parse.h"
#include "front/tokens.h"
#include "parser.h"
#include <string.h>

int yylex(YYSTYPE *value, Span *at, Parser *p);

/* The functions of the lexer (grammar/lexer.l): flex writes no header for them. */
typedef struct yy_buffer_state *LexBuffer;
int lex_lex_init_extra(Parser *p, void **scanner);
LexBuffer lex__scan_bytes(const char *bytes, int n, void *scanner);
int lex_lex_destroy(void *scanner);
int lex_lex(YYSTYPE *value, Span *at, void *scanner);

static bool continues_line(int token) /* a statement cannot end after this token */
{
    switch (token) {
    case 0:
    case NEWLINE:
    case '(':
    case '[':
    case '{':
    case ',':
    case '=':
    case ':':
    case ';':
    case PIPE:
    case DOTDOT:
    case FLOOR:
    case POW:
    case EQ:
    case NE:
    case LE:
    case GE:
    case '<':
    case '>':
    case '+':
    case '-':
    case '*':
    case '/':
    case '%':
    case '.':
    case AND:
    case OR:
    case NOT:
    case IN:
    case START_FILE:
        return true;
    default:
        return false;
    }
}

bool parse_declares(int token)
{
    return token == MODEL || token == BLOCK || token == TRAIN || token == IMPORT || token == OP;
}

static bool is_reserved(int token)
{
    return token >= MODEL && token <= FALSE;
}

static bool wants_name(int token) /* a name must follow */
{
    return token == FOR || token == SCAN || token == YIELD ||
           (parse_declares(token) && token != IMPORT);
}

static bool may_name(int token) /* a name can follow */
{
    return token == NEWLINE || token == '{' || token == '(' || token == ',' || token == ';';
}

static char innermost(const Parser *p)
{
    return p->depth ? p->bracket[p->depth - 1] : 0;
}

/* The next token of the text, or one that was read ahead. */
static int raw(Parser *p, YYSTYPE *value, Span *at)
{
    if (!p->nahead)
        return lex_lex(value, at, p->scanner);
    p->nahead--;
    *value = ((YYSTYPE *)p->ahead_value)[p->nahead];
    *at = p->ahead_span[p->nahead];
    return p->ahead[p->nahead];
}

static void put_back(Parser *p, int token, const YYSTYPE *value, Span at)
{
    p->ahead[p->nahead] = token;
    p->ahead_span[p->nahead] = at;
    ((YYSTYPE *)p->ahead_value)[p->nahead++] = *value;
}

/* Drops a newline if the statement continues after it.  Returns NEWLINE, or the token after a
 * dropped newline. */
static int newline(Parser *p, YYSTYPE *value, Span *at)
{
    Span next_at;
    YYSTYPE next_value;
    int next;
    do
        next = raw(p, &next_value, &next_at);
    while (next == NEWLINE);
    if (continues_line(p->last) || next == PIPE || next == ELSE) {
        *value = next_value;
        *at = next_at;
        return next;
    }
    if (next) /* not for the end of the text: the lexer returns it again */
        put_back(p, next, &next_value, next_at);
    return NEWLINE;
}

/* If a reserved word stands in the place of a name, reports it and returns it as a name.  Later
 * uses of the word as a name are returned as names, too. */
static int reserved_name(Parser *p, int token, const YYSTYPE *value, Span at)
{
    Span next_at;
    YYSTYPE next_value;
    const unsigned bit = 1u << (token - MODEL);
    const int next = raw(p, &next_value, &next_at);
    if (next)
        put_back(p, next, &next_value, next_at);
    if (p->last == FOR && token == IN && next != IN) /* the name of the loop is missing */
        return token;
    if (wants_name(p->last) || (may_name(p->last) && (next == '=' || next == ':')) ||
        (p->last == '=' && next == ':')) { /* target = if: f32[1] */
        if (!(p->reserved & bit)) {
            diag_error(p->diag, at, "'%s' is a reserved word", value->s);
            diag_help(p->diag, "choose another name");
        }
        p->reserved |= bit;
        return NAME;
    }
    const bool use = (p->reserved & bit) &&
                     (parse_declares(token) || (token == IN && p->last != NAME)) && next != NAME &&
                     next != STRING && !is_reserved(next);
    return use ? NAME : token;
}

static int open_bracket(Parser *p, int token, Span at)
{
    if (p->depth == DEPTH_BRACKETS) {
        if (!p->fatal)
            diag_error(p->diag, at, "brackets are nested more than %d deep", DEPTH_BRACKETS);
        p->fatal = true;
        return 0;
    }
    p->opened[p->depth] = at;
    p->bracket[p->depth++] = (char)token;
    return token;
}

/* Removes the partner of a closing bracket; for '}', also the unclosed ( and [ inside. */
static void close_bracket(Parser *p, int token)
{
    const char partner = token == ')' ? '(' : token == ']' ? '[' : '{';
    if (token == '}')
        parse_recover(p);
    if (innermost(p) == partner)
        p->depth--;
}

void parse_recover(Parser *p)
{
    while (p->depth && innermost(p) != '{')
        p->depth--;
}

const Span *parse_open(const Parser *p, char *bracket)
{
    *bracket = innermost(p);
    return p->depth ? &p->opened[p->depth - 1] : NULL;
}

/* Called inside of an open '{', at a declaration or at the end of the text: reports the missing '}'
 * once, and closes the '{'. */
static int close_body(Parser *p, int token, const YYSTYPE *value, Span at)
{
    if (innermost(p) == '{' && !p->wanted_closer && !p->fatal) {
        diag_error(p->diag, at, "expected '}' before %s",
                   token ? arena_printf(p->arena, "'%s'", value->s) : "end of file");
        diag_note(p->diag, "'{' was opened on line %d", p->opened[p->depth - 1].line);
    }
    p->wanted_closer = true;
    if (token)
        put_back(p, token, value, at);
    close_bracket(p, '}');
    return '}';
}

/* Stores a lexeme at its place in the text.  The order of calls can differ from the text: a comment
 * is stored at once; a token that was read ahead is stored later, when the grammar gets it. */
static void keep(Parser *p, int token, Span at)
{
    Lexemes *l = &p->lexemes;
    if (!p->keeps)
        return;
    ARENA_PUSH(p->arena, l->v, l->n, ((Lexeme){token, at}));
    for (int i = l->n - 1; i > 0; i--) {
        const Span *before = &l->v[i - 1].at;
        if (before->line < at.line || (before->line == at.line && before->col <= at.col))
            break;
        l->v[i] = l->v[i - 1];
        l->v[i - 1] = (Lexeme){token, at};
    }
}

void parse_comment(Parser *p, Span at)
{
    keep(p, LEXEME_COMMENT, at);
}

/* The next token for the grammar. */
int yylex(YYSTYPE *value, Span *at, Parser *p)
{
    if (p->start) {
        const int token = p->start;
        *at = (Span){p->source, 1, 1, 1, 1};
        p->last = token;
        p->start = 0;
        return token;
    }
    int token = p->fatal ? 0 : raw(p, value, at);
    while (token == NEWLINE && (innermost(p) == '(' || innermost(p) == '['))
        token = raw(p, value, at);
    if (token == NEWLINE)
        token = newline(p, value, at);
    if (is_reserved(token))
        token = reserved_name(p, token, value, *at);
    if (token == '(' || token == '[' || token == '{')
        token = open_bracket(p, token, *at);
    if (token == 0)
        *at = (Span){p->source, p->line, p->col, p->line, p->col};
    if ((parse_declares(token) || token == 0) && p->depth && !p->fatal)
        token = close_body(p, token, value, *at);
    else if (token == ')' || token == ']' || token == '}')
        close_bracket(p, token);
    if (!p->depth)
        p->wanted_closer = false;
    if (token)
        keep(p, token, *at);
    return p->last = token;
}

/* Reports a NUL byte.  A text has no NUL bytes, and flex is slow in a sequence of NUL bytes, so the
 * parser stops. */
static bool has_nul(Parser *p)
{
    const char *text = p->source->text, *nul = memchr(text, 0, p->source->len);
    if (!nul)
        return false;
    int line = 1;
    for (const char *s = text; (s = memchr(s, '\n', (size_t)(nul - s))); s++, text = s)
        line++;
    const int col = (int)(nul - text) + 1;
    diag_error(p->diag, (Span){p->source, line, col, line, col + 1},
               "the file has a NUL byte here");
    diag_help(p->diag, "is this really a model file?");
    p->decls.broken = true;
    return true;
}

static void parse(Parser *p)
{
    YYSTYPE ahead[2];
    if (has_nul(p))
        return;
    p->ahead_value = ahead;
    p->line = p->col = 1;
    if (lex_lex_init_extra(p, &p->scanner) != 0)
        return;
    lex__scan_bytes(p->source->text, (int)p->source->len, p->scanner);
    yyparse(p);
    lex_lex_destroy(p->scanner);
}

Decls parse_file(Arena *a, Diag *d, const Source *s)
{
    Parser p = {.arena = a, .diag = d, .source = s, .start = START_FILE};
    parse(&p);
    return p.decls;
}

bool parse_lexemes(Arena *a, Diag *d, const Source *s, Lexemes *out)
{
    Parser p = {.arena = a, .diag = d, .source = s, .start = START_FILE, .keeps = true};
    const int before = diag_errors(d);
    parse(&p);
    *out = p.lexemes;
    return diag_errors(d) == before;
}

bool parse_setting(Arena *a, Diag *d, const Source *s, Entry *out)
{
    Parser p = {.arena = a, .diag = d, .source = s, .start = START_SETTING};
    const int before = diag_errors(d);
    parse(&p);
    *out = p.setting;
    return diag_errors(d) == before && out->key;
}

/* ---- tokens without a tree */

bool token_is(const Token *t, char mark)
{
    return t && t->kind == TOKEN_MARK && t->single && t->mark == mark;
}

bool token_reserved(const Token *t, const char *word)
{
    return t && t->kind == TOKEN_RESERVED && strcmp(t->text, word) == 0;
}

int token_nests(const Token *t)
{
    if (token_is(t, '(') || token_is(t, '[') || token_is(t, '{'))
        return 1;
    return token_is(t, ')') || token_is(t, ']') || token_is(t, '}') ? -1 : 0;
}

static Token token_of(const Source *s, int token, const YYSTYPE *value, Span at, const char *text)
{
    Token t = {.at = at};
    if (token == NAME || is_reserved(token)) {
        t.kind = token == NAME ? TOKEN_NAME : TOKEN_RESERVED;
        t.text = value->s;
    } else if (token == STRING || (token == BAD_VALUE && *text == '"')) {
        t.kind = TOKEN_STRING;
    } else if (token == INT || token == FLOAT || token == BAD_VALUE) {
        t.kind = TOKEN_VALUE;
    } else if (token == NEWLINE) {
        t.kind = TOKEN_NEWLINE;
        t.at = (Span){s, at.line, at.col, at.line, at.col};
    } else {
        t.kind = TOKEN_MARK;
        t.mark = *text;
        t.single = at.end_col - at.col == 1;
    }
    return t;
}

const Token *tokens_read(Arena *a, const Source *s, int *n)
{
    Parser p = {.arena = a, .diag = diag_new(a, DIAG_NEVER), .source = s, .line = 1, .col = 1};
    Token *list = NULL;
    YYSTYPE value;
    Span at;
    int token, line = 1;
    const char *begin = s->text; /* of the line */
    *n = 0;
    if (has_nul(&p) || lex_lex_init_extra(&p, &p.scanner) != 0)
        return NULL;
    lex__scan_bytes(s->text, (int)s->len, p.scanner);
    while ((token = lex_lex(&value, &at, p.scanner))) {
        for (; line < at.line; line++)
            begin = strchr(begin, '\n') + 1;
        ARENA_PUSH(a, list, *n, token_of(s, token, &value, at, begin + at.col - 1));
    }
    lex_lex_destroy(p.scanner);
    return list;
}
