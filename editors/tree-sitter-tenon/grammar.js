/* grammar.js -- the grammar of Tenon for tree-sitter.
 *
 * It follows grammar/parser.y, which decides; docs/reference/language.md says what the language means.  src/scanner.c reads all words,
 * because the reserved words are never names, and it decides which line ends are the ends of statements.
 */
const words = ['model', 'block', 'op', 'train', 'import', 'for', 'in', 'scan', 'yield', 'if', 'else', 'return', 'and', 'or', 'not',
               'true', 'false'];

// The precedences of parser.y, the weakest first.
const OR = 1, AND = 2, NOT = 3, COMPARE = 4, ADD = 5, MULTIPLY = 6, NEGATE = 7, POWER = 8;

// A reserved word is a node of its own text.
const word = ($, text) => alias($['_' + text], text);
const list = (item) => seq(item, repeat(seq(',', item)));
const closed = (item) => seq(list(item), optional(','));

module.exports = grammar({
  name: 'tenon',

  // In the order of enum Token in src/scanner.c.
  externals: $ => [$._end, $.name, ...words.map(text => $['_' + text])],
  extras: $ => [/\s/, $.comment],
  supertypes: $ => [$.declaration, $.statement],
  // Expanded, so that a conflict is between two operators, whose precedences decide.
  inline: $ => [$._sum, $._conjunction, $._condition, $._operand, $._number],

  rules: {
    file: $ => repeat(choice($._separator, $.declaration)),

    comment: _ => token(/#[^\n]*/),
    _separator: $ => choice($._end, ';'),

    declaration: $ => choice($.model, $.block, $.op, $.train, $.import),
    model: $ => seq(word($, 'model'), field('name', $.name), field('parameters', $.parameters), field('body', $.body)),
    block: $ => seq(word($, 'block'), field('name', $.name), field('parameters', $.parameters), field('body', $.body)),
    op: $ => seq(word($, 'op'), field('name', $.name), field('parameters', $.parameters), '=', field('formula', $._expression)),
    train: $ => seq(word($, 'train'), field('name', $.name), '{', optional(lines($, $.entry)), '}'),
    import: $ => seq(word($, 'import'), field('path', $.string)),

    parameters: $ => seq('(', optional(closed($.parameter)), ')'),
    parameter: $ => seq(field('name', $.name),
                        optional(choice(seq('=', field('default', $._expression)),
                                        seq(':', field('type', $.type), '=', field('default', $._expression)),
                                        seq(':', field('type', choice($.type, $.tensor_type)))))),
    type: $ => $.name,
    tensor_type: $ => seq(field('element', $.type), '[', list(field('size', $._expression)), ']'),

    entry: $ => seq(field('key', $.name), '=', field('value', choice($._expression, $.typed_name, $.targets))),
    // One expression in parentheses is no list.
    targets: $ => seq('(', choice($.typed_name,
                                  seq(choice($._expression, $.typed_name), ',', list(choice($._expression, $.typed_name)))), ')'),
    typed_name: $ => seq(field('name', $.name), ':', field('type', choice($.type, $.tensor_type))),

    body: $ => seq('{', optional(lines($, $.statement)), '}'),
    statement: $ => choice($.binding, $.return, $.for, $.scan, $.yield, $.if),
    binding: $ => seq(field('name', $.name), '=', field('value', $._expression)),
    return: $ => seq(word($, 'return'),
                     choice(field('value', $._expression),
                            $.output,
                            seq(choice(field('value', $._expression), $.output), ',', list(choice(field('value', $._expression), $.output))))),
    output: $ => seq(field('name', $.name), '=', field('value', $._expression)),
    for: $ => seq(word($, 'for'), field('name', $.name), word($, 'in'), field('from', $._expression),
                  optional(seq('..', field('to', $._expression))), field('body', $.body)),
    scan: $ => seq(word($, 'scan'), list($.item), repeat($.mark), field('body', $.body)),
    item: $ => seq(field('name', $.name), word($, 'in'), field('value', $._expression)),
    mark: $ => choice(field('name', $.name),
                      seq(field('name', $.name), '=', field('value', $.integer)),
                      seq(field('name', $.name), '=', field('what', $.name), field('value', $._expression))),
    yield: $ => seq(word($, 'yield'), field('name', $.name), '=', field('value', $._expression)),
    if: $ => seq(word($, 'if'), field('condition', $._expression), field('body', $.body),
                 repeat(seq(word($, 'else'), word($, 'if'), field('condition', $._expression), field('body', $.body))),
                 optional(seq(word($, 'else'), field('body', $.body)))),

    _expression: $ => choice($.pipe, $._sum),
    pipe: $ => seq(field('value', $._expression), '|>', field('function', $._postfix)),

    // What can stand beside each operator; comparisons do not chain.
    _sum: $ => choice($.or, $._conjunction),
    _conjunction: $ => choice($.and, $._condition),
    _condition: $ => choice($.not, $.comparison, $._number),
    _operand: $ => choice($.not, $._number),
    _number: $ => choice($.arithmetic, $.negative, $._postfix),
    or: $ => prec.left(OR, seq($._sum, word($, 'or'), $._conjunction)),
    and: $ => prec.left(AND, seq($._conjunction, word($, 'and'), $._condition)),
    not: $ => prec(NOT, seq(word($, 'not'), $._condition)),
    comparison: $ => prec(COMPARE, seq($._number, choice('==', '!=', '<', '>', '<=', '>='), $._operand)),
    arithmetic: $ => choice(prec.left(ADD, seq($._number, choice('+', '-'), $._operand)),
                            prec.left(MULTIPLY, seq($._number, choice('*', '/', '//', '%'), $._operand)),
                            prec.right(POWER, seq($._number, '**', $._operand))),
    negative: $ => prec(NEGATE, seq('-', $._operand)),

    _postfix: $ => choice($.call, $.index, $.field, $._primary),
    call: $ => seq(field('function', $._postfix), '(', optional(closed(choice($._expression, $.argument))), ')'),
    argument: $ => seq(field('name', $.name), '=', field('value', $._expression)),
    index: $ => seq(field('value', $._postfix), '[', field('index', $._expression), ']'),
    field: $ => seq(field('value', $._postfix), '.', field('name', $.name)),

    _primary: $ => choice($.name, $.integer, $.float, $.string, $.true, $.false, $.list, $.parenthesized, $.if_expression),
    true: $ => word($, 'true'),
    false: $ => word($, 'false'),
    parenthesized: $ => seq('(', $._expression, ')'),
    list: $ => seq('[', optional(closed($._expression)), ']'),
    if_expression: $ => seq(word($, 'if'), field('condition', $._expression), field('value', $.arm),
                            repeat(seq(word($, 'else'), word($, 'if'), field('condition', $._expression), field('value', $.arm))),
                            word($, 'else'), field('value', $.arm)),
    arm: $ => seq('{', repeat($._separator), $._expression, repeat($._separator), '}'),

    integer: _ => /[0-9]+/,
    float: _ => /[0-9]+(\.[0-9]+([eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)/,
    string: $ => seq('"', repeat(choice($.escape, token.immediate(prec(1, /[^"\\\n]+/)))), token.immediate('"')),
    escape: _ => token.immediate(/\\[nt"\\]/),
  },
});

// Statements or entries, each on a line or after a ';'.
function lines($, item) {
  return seq(item, repeat(seq(repeat1($._separator), item)), repeat($._separator));
}
