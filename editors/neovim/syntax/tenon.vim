" tenon.vim -- colours of model files.  The words are those of grammar/lexer.l.
if exists("b:current_syntax")
  finish
endif

syntax keyword tenonDeclaration model block op train nextgroup=tenonDeclared skipwhite
syntax keyword tenonInclude import
syntax keyword tenonRepeat for in scan yield
syntax keyword tenonConditional if else
syntax keyword tenonStatement return
syntax keyword tenonOperatorWord and or not
syntax keyword tenonBoolean true false
syntax match tenonDeclared "\<\h\w*\>" contained
syntax match tenonType ":\s*\zs\<\%(tensor\|int\|float\|bool\|string\|list\|f32\|i32\)\>"
syntax match tenonCall "\<\h\w*\>\ze("
syntax match tenonNumber "\<\d\+\%(\.\d\+\)\=\%([eE][+-]\=\d\+\)\=\>"
syntax match tenonOperator "|>" nextgroup=tenonPiped skipwhite skipempty
syntax match tenonPiped "\<\h\w*\>" contained
syntax region tenonString start=+"+ skip=+\\.+ end=+"+ oneline contains=tenonEscape
syntax match tenonEscape +\\[nt"\\]+ contained
syntax match tenonComment "#.*$" contains=@Spell

highlight default link tenonDeclaration Keyword
highlight default link tenonInclude Include
highlight default link tenonRepeat Repeat
highlight default link tenonConditional Conditional
highlight default link tenonStatement Statement
highlight default link tenonOperatorWord Operator
highlight default link tenonBoolean Boolean
highlight default link tenonDeclared Structure
highlight default link tenonType Type
highlight default link tenonCall Function
highlight default link tenonPiped Function
highlight default link tenonNumber Number
highlight default link tenonOperator Operator
highlight default link tenonString String
highlight default link tenonEscape SpecialChar
highlight default link tenonComment Comment

let b:current_syntax = "tenon"
