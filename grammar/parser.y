/* parser.y -- the grammar of Tenon: docs/reference/language.md says what it means.
 *
 * A syntax error loses one statement: the parser continues after the end of its line.  If the head
 * of a block is wrong, the parser continues inside of its braces.
 */
%require "3.8"
%define api.pure full
%define api.location.type {Span}
%define parse.error custom
%define parse.lac full
%locations
%param {struct Parser *p}
%expect 0

%code requires {
#include "front/parse.h"
}

%code {
#include "base/text.h"
#include <string.h>
#define YYMAXDEPTH 20000
#define YYLLOC_DEFAULT(at, rhs, n)                                                                \
    do {                                                                                          \
        (at) = (n) ? span_join(YYRHSLOC(rhs, 1), YYRHSLOC(rhs, n)) : YYRHSLOC(rhs, 0);            \
        if (!(n)) {                                                                               \
            (at).line = (at).end_line;                                                            \
            (at).col = (at).end_col;                                                              \
        }                                                                                         \
    } while (0)
#define PUSH(list, item) ARENA_PUSH(p->arena, (list).v, (list).n, item)

int yylex(YYSTYPE *value, Span *at, struct Parser *p);
static void yyerror(const Span *at, struct Parser *p, const char *msg);

static Decl *last(struct Parser *p)
{
    return p->decls.v[p->decls.n - 1];
}

static void set(struct Parser *p, const char *key, Span at, const char *sub, Span sub_at,
                Expr *value)
{
    p->setting = (Entry){key, sub, at, sub_at, value, true};
}
}

%initial-action { @$ = (Span){p->source, 1, 1, 1, 1}; }

%union {
    int64_t     i;
    double      f;
    const char *s;
    Expr       *expr;
    Exprs       exprs;
    Arg         arg;
    Args        args;
    Arms        arms;
    Stmt       *stmt;
    Body        body;
    Branches    branches;
    Items       items;
    Marks       marks;
    ParamDecl   param;
    ParamDecls  params;
    Entry       entry;
    Entries     entries;
}

%token START_FILE START_SETTING
%token END 0 "end of file" NEWLINE "end of line"
%token MODEL "model" BLOCK "block" OP "op" TRAIN "train" IMPORT "import"
%token FOR "for" IN "in" SCAN "scan" YIELD "yield" IF "if" ELSE "else" RETURN "return"
%token AND "and" OR "or" NOT "not" TRUE "true" FALSE "false"
%token PIPE "|>" DOTDOT ".." FLOOR "//" POW "**" EQ "==" NE "!=" LE "<=" GE ">="
%token <s> NAME "a name" STRING "a string"
%token <i> INT "an integer"
%token <f> FLOAT "a number"
%token BAD_VALUE "a value"

%left OR
%left AND
%precedence NOT
%nonassoc EQ NE '<' '>' LE GE
%left '+' '-'
%left '*' '/' FLOOR '%'
%precedence NEGATIVE
%right POW

%type <expr> expr pipe sum postfix primary arm typed target
%type <exprs> exprs targets
%type <arg> arg
%type <args> args arg_list
%type <arms> arms
%type <stmt> stmt output
%type <body> body stmts outputs
%type <branches> branches
%type <items> items
%type <marks> marks
%type <param> param
%type <params> params param_list
%type <entry> entry
%type <entries> entries

%%

start: START_FILE file
     | START_SETTING setting
     ;

file: %empty
    | file sep
    | file decl
    | file error                  { p->decls.broken = true; }
    ;

sep: NEWLINE
   | ';'
   ;

decl: MODEL NAME params body      { decl_add(p, DECL_MODEL, $2, @2)->params = $3;
                                    last(p)->body = $4; }
    | BLOCK NAME params body      { decl_add(p, DECL_BLOCK, $2, @2)->params = $3;
                                    last(p)->body = $4; }
    | OP NAME params '=' expr     { decl_add(p, DECL_OP, $2, @2)->params = $3;
                                    last(p)->formula = $5; }
    | TRAIN NAME '{' '}'          { decl_add(p, DECL_TRAIN, $2, @2); }
    | TRAIN NAME '{' entries '}'  { decl_add(p, DECL_TRAIN, $2, @2)->entries = $4; }
    | IMPORT STRING               { decl_add(p, DECL_IMPORT, $2, @2); }
    | MODEL error body            { p->decls.broken = true; }
    | BLOCK error body            { p->decls.broken = true; }
    | TRAIN error '{' entries '}'
    ;

params: '(' ')'                   { $$ = (ParamDecls){0}; }
      | '(' param_list ')'        { $$ = $2; }
      | '(' param_list ',' ')'    { $$ = $2; }
      ;

param_list: param                 { $$ = (ParamDecls){0}; PUSH($$, $1); }
          | param_list ',' param  { $$ = $1; PUSH($$, $3); }
          ;

param: NAME                       { $$ = param_make(p, $1, @1); }
     | NAME '=' expr              { $$ = param_make(p, $1, @1); $$.fallback = $3; }
     | NAME ':' NAME              { $$ = param_make(p, $1, @1); param_type(p, &$$, $3, @3, NULL); }
     | NAME ':' NAME '=' expr     { $$ = param_make(p, $1, @1);
                                    $$.fallback = $5;
                                    param_type(p, &$$, $3, @3, NULL); }
     | NAME ':' NAME '[' exprs ']'  { $$ = param_make(p, $1, @1); param_type(p, &$$, $3, @3, &$5); }
     ;

body: '{' '}'                     { $$ = (Body){0}; }
    | '{' stmts '}'               { $$ = $2; }
    ;

stmts: stmt                       { $$ = (Body){0}; PUSH($$, $1); }
     | stmts sep                  { $$ = $1; }
     | stmts sep stmt             { $$ = $1; PUSH($$, $3); }
     | error                      { $$ = (Body){.broken = true}; }
     | stmts error                { $$ = $1; $$.broken = true; }
     ;

stmt: NAME '=' expr               { $$ = stmt_bind(p, $1, @1, $3, @$); }
    | RETURN expr                 { $$ = stmt_return(p, $2, @$); }
    | RETURN outputs              { $$ = stmt_outputs(p, $2, @$); }
    | FOR NAME IN expr body       { $$ = stmt_for(p, $2, @2, $4, NULL, $5, span_join(@1, @4)); }
    | FOR NAME IN expr DOTDOT expr body
                                  { $$ = stmt_for(p, $2, @2, $4, $6, $7, span_join(@1, @6)); }
    | SCAN items marks body       { $$ = stmt_scan(p, $2, $3, $4, span_join(@1, @3)); }
    | YIELD NAME '=' expr         { $$ = stmt_yield(p, $2, @2, $4, @$); }
    | branches                    { $$ = stmt_if(p, $1, @$); }
    | branches ELSE body          { PUSH($1, ((Branch){NULL, $3})); $$ = stmt_if(p, $1, @$); }
    | NAME '=' error              { $$ = stmt_bind(p, $1, @1, expr_new(p, EX_BAD, @3), @$); }
    | RETURN error                { $$ = stmt_return(p, expr_new(p, EX_BAD, @2), @$); }
    | SCAN error body             { $3.broken = true;
                                    $$ = stmt_scan(p, (Items){0}, (Marks){0}, $3, @1); }
    | YIELD error                 { $$ = stmt_yield(p, "", @1, expr_new(p, EX_BAD, @2), @$); }
    | FOR error body              { $3.broken = true;
                                    Expr *from = expr_new(p, EX_BAD, @2);
                                    $$ = stmt_for(p, "", @1, from, NULL, $3, @1); }
    ;

/* One output without a name is the return above. */
outputs: NAME '=' expr            { $$ = (Body){0}; PUSH($$, stmt_bind(p, $1, @1, $3, @$)); }
       | expr ',' output          { $$ = (Body){0}; PUSH($$, stmt_output(p, $1)); PUSH($$, $3); }
       | outputs ',' output       { $$ = $1; PUSH($$, $3); }
       ;

output: NAME '=' expr             { $$ = stmt_bind(p, $1, @1, $3, @$); }
      | expr                      { $$ = stmt_output(p, $1); }
      ;

items: NAME IN expr               { $$ = (Items){0}; PUSH($$, ((Item){$1, @1, $3})); }
     | items ',' NAME IN expr     { $$ = $1; PUSH($$, ((Item){$3, @3, $5})); }
     ;

marks: %empty                     { $$ = (Marks){0}; }
     | marks NAME                 { $$ = $1; mark_reversed(p, &$$, $2, @2); }
     | marks NAME '=' NAME expr   { $$ = $1; mark_every(p, &$$, $2, @2, $4, @4, $5); }
     | marks NAME '=' INT         { $$ = $1; mark_number(p, $2, @2, $4, @4); }
     ;

branches: IF expr body            { $$ = (Branches){0}; PUSH($$, ((Branch){$2, $3})); }
        | IF error body           { $$ = (Branches){0};
                                    PUSH($$, ((Branch){expr_new(p, EX_BAD, @2), $3})); }
        | branches ELSE IF expr body  { $$ = $1; PUSH($$, ((Branch){$4, $5})); }
        ;

entries: entry                    { $$ = (Entries){0}; PUSH($$, $1); }
       | entries sep              { $$ = $1; }
       | entries sep entry        { $$ = $1; PUSH($$, $3); }
       | error                    { $$ = (Entries){.broken = true}; }
       | entries error            { $$ = $1; $$.broken = true; }
       ;

entry: NAME '=' expr              { $$ = (Entry){.key = $1, .key_span = @1, .value = $3}; }
     | NAME '=' typed             { $$ = (Entry){.key = $1, .key_span = @1, .value = $3}; }
     | NAME '=' '(' targets ')'    { $$ = (Entry){.key = $1, .key_span = @1};
                                    $$.value = expr_targets(p, $4, span_join(@3, @5)); }
     | NAME '=' error             { $$ = (Entry){.key = $1, .key_span = @1};
                                    $$.value = expr_new(p, EX_BAD, @3); }
     ;

/* One name in parentheses is an expression. */
targets: typed                    { $$ = (Exprs){0}; PUSH($$, $1); }
       | expr ',' target          { $$ = (Exprs){0}; PUSH($$, $1); PUSH($$, $3); }
       | targets ',' target       { $$ = $1; PUSH($$, $3); }
       ;

target: typed
      | expr
      ;

typed: NAME ':' NAME              { $$ = expr_typed(p, $1, @1, $3, @3, NULL, @$); }
     | NAME ':' NAME '[' exprs ']'  { $$ = expr_typed(p, $1, @1, $3, @3, &$5, @$); }
     ;

setting: NAME '=' expr            { set(p, $1, @1, NULL, @1, $3); }
       | NAME '=' typed           { set(p, $1, @1, NULL, @1, $3); }
       | NAME '=' '(' targets ')'  { set(p, $1, @1, NULL, @1,
                                        expr_targets(p, $4, span_join(@3, @5))); }
       | MODEL '.' NAME '=' expr  { set(p, "model", @1, $3, @3, $5); }
       | NAME '.' NAME '=' expr   { set(p, $1, @1, $3, @3, $5); }
       ;

expr: pipe
    ;

pipe: sum
    | pipe PIPE postfix           { $$ = expr_pipe(p, $1, $3); }
    ;

sum: postfix
   | sum OR sum                   { $$ = expr_binary(p, DO_OR, $1, $3, @$); }
   | sum AND sum                  { $$ = expr_binary(p, DO_AND, $1, $3, @$); }
   | NOT sum                      { $$ = expr_unary(p, DO_NOT, $2, @$); }
   | sum EQ sum                   { $$ = expr_binary(p, DO_EQ, $1, $3, @$); }
   | sum NE sum                   { $$ = expr_binary(p, DO_NE, $1, $3, @$); }
   | sum '<' sum                  { $$ = expr_binary(p, DO_LT, $1, $3, @$); }
   | sum '>' sum                  { $$ = expr_binary(p, DO_GT, $1, $3, @$); }
   | sum LE sum                   { $$ = expr_binary(p, DO_LE, $1, $3, @$); }
   | sum GE sum                   { $$ = expr_binary(p, DO_GE, $1, $3, @$); }
   | sum '+' sum                  { $$ = expr_binary(p, DO_ADD, $1, $3, @$); }
   | sum '-' sum                  { $$ = expr_binary(p, DO_SUB, $1, $3, @$); }
   | sum '*' sum                  { $$ = expr_binary(p, DO_MUL, $1, $3, @$); }
   | sum '/' sum                  { $$ = expr_binary(p, DO_DIV, $1, $3, @$); }
   | sum FLOOR sum                { $$ = expr_binary(p, DO_FLOOR, $1, $3, @$); }
   | sum '%' sum                  { $$ = expr_binary(p, DO_MOD, $1, $3, @$); }
   | '-' sum %prec NEGATIVE       { $$ = expr_unary(p, DO_NEG, $2, @$); }
   | sum POW sum                  { $$ = expr_binary(p, DO_POW, $1, $3, @$); }
   ;

postfix: primary
       | postfix '(' args ')'     { $$ = expr_call(p, $1, $3, @$); }
       | postfix '[' expr ']'     { $$ = expr_index(p, $1, $3, @$); }
       | postfix '.' NAME         { $$ = expr_field(p, $1, $3, @$); }
       ;

primary: NAME                     { $$ = expr_new(p, EX_NAME, @1); $$->s = $1; }
       | INT                      { $$ = expr_new(p, EX_INT, @1); $$->i = $1; }
       | FLOAT                    { $$ = expr_new(p, EX_FLOAT, @1); $$->f = $1; }
       | STRING                   { $$ = expr_new(p, EX_STRING, @1); $$->s = $1; }
       | TRUE                     { $$ = expr_new(p, EX_BOOL, @1); $$->i = 1; }
       | FALSE                    { $$ = expr_new(p, EX_BOOL, @1); }
       | BAD_VALUE                { $$ = expr_new(p, EX_BAD, @1); }
       | '(' expr ')'             { $$ = $2; }
       | '[' ']'                  { $$ = expr_list(p, (Exprs){0}, @$); }
       | '[' exprs ']'            { $$ = expr_list(p, $2, @$); }
       | '[' exprs ',' ']'        { $$ = expr_list(p, $2, @$); }
       | arms ELSE arm            { PUSH($1, ((Arm){NULL, $3})); $$ = expr_if(p, $1, @$); }
       ;

arms: IF expr arm                 { $$ = (Arms){0}; PUSH($$, ((Arm){$2, $3})); }
    | arms ELSE IF expr arm       { $$ = $1; PUSH($$, ((Arm){$4, $5})); }
    ;

arm: '{' lines expr lines '}'     { $$ = $3; }
   ;

lines: %empty
     | lines sep
     ;

exprs: expr                       { $$ = (Exprs){0}; PUSH($$, $1); }
     | exprs ',' expr             { $$ = $1; PUSH($$, $3); }
     ;

args: %empty                      { $$ = (Args){0}; }
    | arg_list
    | arg_list ','
    ;

arg_list: arg                     { $$ = (Args){0}; PUSH($$, $1); }
        | arg_list ',' arg        { $$ = $1; PUSH($$, $3); }
        ;

arg: expr                         { $$ = (Arg){.value = $1}; }
   | NAME '=' expr                { $$ = (Arg){.name = $1, .name_span = @1, .value = $3}; }
   ;

%%

/* Bison calls it only if its stack is full. */
static void yyerror(const Span *at, struct Parser *p, const char *msg)
{
    (void)msg;
    if (!p->fatal)
        diag_error(p->diag, *at, "this is nested too deep");
    p->fatal = true;
}

static bool word_listed(const char *name, const char *const *list)
{
    while (*list && strcmp(*list, name) != 0)
        list++;
    return *list != NULL;
}

/* The tokens that are possible here, as words, at most `room`.  All tokens that can begin a value
 * become one word, "a value"; operators, which can follow any value, are omitted. */
static int expected_words(const yypcontext_t *context, struct Parser *p, const char **word,
                          int room, bool *ended)
{
    static const char *const begins[] = {"a name", "an integer", "a number", "a string", "true",
                                         "false", "not", "if", "'-'", "'('", "'['", NULL};
    static const char *const follows[] = {"'+'", "'-'", "'*'", "'/'", "'%'", "'<'", "'>'", "'.'",
                                          "'['", "'('", "','", "//", "**", "==", "!=", "<=", ">=",
                                          "and", "or", "|>", NULL};
    static const char *const silent[] = {"a value", "';'", "error", "invalid token", NULL};
    static const char *const bare[] = {"a name", "an integer", "a number", "a string",
                                       "end of file", "end of line", NULL};
    yysymbol_kind_t symbol[YYNTOKENS];
    const int n = yypcontext_expected_tokens(context, symbol, YYNTOKENS);
    bool value = false, after = false, closer = false, top = false;
    for (int i = 0; i < n; i++) {
        const char *name = yysymbol_name(symbol[i]);
        value |= symbol[i] == YYSYMBOL_INT;
        after |= symbol[i] == YYSYMBOL_PIPE;
        top |= symbol[i] == YYSYMBOL_MODEL;
        closer |= symbol[i] == YYSYMBOL_NEWLINE || strchr(")]{}", name[1]);
    }
    int count = 0;
    *ended = after && !value;
    if (value)
        word[count++] = "a value";
    for (int i = 0; i < n && count < room; i++) {
        const char *name = yysymbol_name(symbol[i]);
        if (word_listed(name, silent) || (value && word_listed(name, begins)) ||
            (after && closer && word_listed(name, follows)) ||
            (value && symbol[i] == YYSYMBOL_NEWLINE) ||
            (top && (symbol[i] == YYSYMBOL_NEWLINE || symbol[i] == YYSYMBOL_YYEOF)))
            continue;
        const bool whole = name[0] == '\'' || word_listed(name, bare);
        word[count++] = whole ? name : arena_printf(p->arena, "'%s'", name);
    }
    return count;
}

/* The unexpected token, as users know it. */
static const char *found(struct Parser *p, int symbol, const Span *at)
{
    if (symbol == YYSYMBOL_YYEOF || symbol == YYSYMBOL_NEWLINE || symbol == YYSYMBOL_STRING)
        return yysymbol_name(symbol);
    const char *line = source_line(p->arena, p->source, at->line);
    const int n = at->end_col - at->col;
    if (at->col + n - 1 > (int)strlen(line))
        return yysymbol_name(symbol);
    return arena_printf(p->arena, "'%.*s'", n > 40 ? 40 : n, line + at->col - 1);
}

/* Adds a help for habits from other languages.  ended: a complete value stands before the token. */
static void advise(struct Parser *p, int symbol, const Span *at, bool ended)
{
    static const char *const comparison[] = {"'<'", "'>'", "<=", ">=", "==", "!=", NULL};
    static const char *const binary[] = {"'+'", "'-'", "'*'", "'/'", "//", "'%'", "**", NULL};
    const char *line = source_line(p->arena, p->source, at->line), *name = yysymbol_name(symbol);
    const char *first = line + strspn(line, " \t"), *slashes = strstr(line, " // ");
    if (strncmp(first, "let ", 4) == 0 || strncmp(first, "var ", 4) == 0)
        diag_help(p->diag, "a binding is written name = value, without '%.3s'", first);
    else if (strncmp(first, "def ", 4) == 0 || strncmp(first, "fn ", 3) == 0)
        diag_help(p->diag, "write block NAME(x, ...) { ... } or op NAME(x) = formula");
    else if (strncmp(first, "/*", 2) == 0)
        diag_help(p->diag, "a comment begins with '#' and ends with its line");
    else if (slashes && slashes - line < at->col)
        diag_help(p->diag, "'//' divides and rounds down; a comment begins with '#'");
    else if (symbol == YYSYMBOL_ELSE)
        diag_help(p->diag, "write 'else' after the '}' of an 'if'");
    else if (ended && strcmp(name, "'='") == 0) {
        diag_help(p->diag, "equality is written '=='");
        diag_replace(p->diag, "=", "==");
    } else if (ended && word_listed(name, comparison))
        diag_help(p->diag, "comparisons do not chain: write a < b and b < c, of tensors "
                            "(a < b) * (b < c)");
    else if (ended && word_listed(name, binary))
        diag_help(p->diag, "an operator after '|>' needs parentheses: (x |> f) %.*s y",
                  at->end_col - at->col, line + at->col - 1);
}

static int yyreport_syntax_error(const yypcontext_t *context, struct Parser *p)
{
    enum { WORDS = 8 };
    const char *word[WORDS];
    bool ended = false;
    const Span *at = yypcontext_location(context);
    const int symbol = yypcontext_token(context);
    const int n = expected_words(context, p, word, WORDS, &ended);
    if (diag_errors(p->diag) > ERRORS_MAX)
        p->fatal = true; /* the text is probably not a model file */
    if (!p->fatal && at->line != p->odd_line) {
        Text text = text_new(p->arena);
        for (int i = 0; i < n && n < WORDS; i++)
            text_printf(&text, "%s%s", i == 0 ? "expected " : i == n - 1 ? " or " : ", ", word[i]);
        text_printf(&text, "%s%s", text.len ? " before " : "unexpected ", found(p, symbol, at));
        diag_error(p->diag, *at, "%s", text.s);
        char bracket = 0;
        const Span *open = parse_open(p, &bracket);
        if (open && open->line != at->line && bracket != '{')
            diag_note(p->diag, "'%c' was opened on line %d", bracket, open->line);
        if (n == 1 && strcmp(word[0], "'='") == 0 && strcmp(yysymbol_name(symbol), "'('") == 0)
            diag_help(p->diag, "a statement binds its value to a name: h = relu(x)");
        else
            advise(p, symbol, at, ended);
    }
    parse_recover(p);
    return 0;
}
