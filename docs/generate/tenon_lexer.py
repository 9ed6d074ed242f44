"""tenon_lexer.py -- Tenon's language for Pygments: colours in ```tenon blocks of the site.

The words are those of grammar/lexer.l.  A name before "(" or after "|>" is a call; a name before "=" at the start of a line
of a train block is a key.  register() makes the lexer known under the names tenon and tenon-error.
"""
from pygments.lexer import RegexLexer, bygroups, words
from pygments.lexers import LEXERS
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Whitespace

__all__ = ["TenonLexer"]                   # Pygments asks for it when it loads the module


class TenonLexer(RegexLexer):
    name = "Tenon"
    aliases = ["tenon", "tenon-error"]
    filenames = ["*.tn"]

    tokens = {
        "root": [
            (r"(train)([ \t]+)([A-Za-z_]\w*)([ \t]*)(\{)",
             bygroups(Keyword.Declaration, Whitespace, Name.Class, Whitespace, Punctuation), ("recipe", "recipe-line")),
            (r"(model|block)([ \t]+)([A-Za-z_]\w*)", bygroups(Keyword.Declaration, Whitespace, Name.Class)),
            (r"(op)([ \t]+)([A-Za-z_]\w*)", bygroups(Keyword.Declaration, Whitespace, Name.Function)),
            (r"(import)\b", Keyword.Namespace),
            (r"\{", Punctuation, "#push"),
            (r"\}", Punctuation, "#pop"),
            (r"\n", Whitespace),
            (r"[ \t\r]+", Whitespace),
            (r"#[^\n]*", Comment.Single),
            (r'"([^"\\\n]|\\.)*"', String.Double),
            (words(("for", "in", "scan", "yield", "if", "else", "return"), suffix=r"\b"), Keyword),
            (words(("and", "or", "not"), suffix=r"\b"), Operator.Word),
            (words(("true", "false"), suffix=r"\b"), Keyword.Constant),
            (r"(:)([ \t]*)(int|float|bool|string|list)\b", bygroups(Punctuation, Whitespace, Keyword.Type)),
            (words(("f32", "f64", "i32", "tensor"), suffix=r"\b"), Keyword.Type),
            (r"\d+\.\d+([eE][+-]?\d+)?|\d+[eE][+-]?\d+", Number.Float),
            (r"\d+", Number.Integer),
            (r"(\|>)([ \t]*)([A-Za-z_]\w*)", bygroups(Operator, Whitespace, Name.Function)),
            (r"[A-Za-z_]\w*(?=\()", Name.Function),
            (r"[A-Za-z_]\w*", Name),
            (r"\|>|\.\.|//|\*\*|[=!<>]=|[-+*/%<>=]", Operator),
            (r"[.,:;()\[\]]", Punctuation),
            (r".", Name),
        ],
        "recipe-line": [
            (r"[ \t\r]+", Whitespace),
            (r"([A-Za-z_]\w*)([ \t]*)(=)(?!=)", bygroups(Name.Attribute, Whitespace, Operator), "#pop"),
            (r"", Whitespace, "#pop"),
        ],
        "recipe": [
            (r"\n", Whitespace, "recipe-line"),
            (r";", Punctuation, "recipe-line"),
            (r"\}", Punctuation, "#pop"),
        ],
    }
    tokens["recipe"] += [rule for rule in tokens["root"] if rule[0] not in (r"\n", r"\}")]


def register():
    LEXERS["TenonLexer"] = (__name__, TenonLexer.name, tuple(TenonLexer.aliases), tuple(TenonLexer.filenames), ())
