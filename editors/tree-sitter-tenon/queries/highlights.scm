; highlights.scm -- colours of model files, with the usual names of captures.  A later pattern decides.

(name) @variable
(comment) @comment
(string) @string
(escape) @string.escape
[(integer) (float)] @number
[(true) (false)] @boolean

["model" "block" "op" "train" "import" "for" "in" "scan" "yield" "if" "else" "return"] @keyword
["and" "or" "not"] @keyword.operator
["+" "-" "*" "/" "//" "%" "**" "==" "!=" "<" "<=" ">" ">=" "=" "|>" ".."] @operator
["(" ")" "[" "]" "{" "}"] @punctuation.bracket
["," ";" ":" "."] @punctuation.delimiter

(type (name) @type)
(model name: (name) @function)
(block name: (name) @function)
(op name: (name) @function)
(train name: (name) @function)
(call function: (name) @function.call)
(pipe function: (name) @function.call)
(parameter name: (name) @variable.parameter)
(argument name: (name) @variable.parameter)
(mark name: (name) @keyword)
(entry key: (name) @property)
(field name: (name) @property)
