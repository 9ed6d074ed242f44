# exports.awk -- finds functions that only their own file uses although a header declares them, and functions that nobody uses.  Prints
# "HEADER declares NAME" for each.
#
#   awk -f tests/exports.awk FILE...      headers and sources, with the tests
#
# A name in a comment does not count as a use.  A name in a string does: the compiler has the names of functions that generated code calls.
function without_comments(line,    quotes, before) {
    if (comment) {
        if (!match(line, /\*\//))
            return ""
        line = substr(line, RSTART + 2)
        comment = 0
    }
    while (match(line, /\/\*/)) {
        before = substr(line, 1, RSTART - 1)
        line = substr(line, RSTART + 2)
        quotes = before
        if (gsub(/"/, "", quotes) % 2) { # within a string
            line = before " " line
            continue
        }
        if (!match(line, /\*\//)) {
            comment = 1
            return before
        }
        line = before " " substr(line, RSTART + 2)
    }
    return line
}
FNR == 1 {
    comment = 0
    # kernels take some functions of the C library through R_MATH (runtime/cpu/scalar.h)
    header = FILENAME ~ /^(compiler|runtime|bench)\/.*\.h$/ && FILENAME != "runtime/cpu/library.h"
}
{
    line = without_comments($0)
    # a declaration begins in the first column, "Node *node_root(const Node *n"; a macro of the header can use it, too
    if (header && match(line, /^[A-Za-z][A-Za-z0-9_ ]*[ *]+[a-z][a-z0-9_]*\(/) && line ~ /[,;] *$/ &&
        line !~ /^(static|typedef|extern|RT_[A-Z]+|DEVICE|SIZE|return) /) {
        name = substr(line, 1, RLENGTH - 1)
        sub(/.*[ *]/, "", name)
        home[name] = FILENAME
    }
    n = split(line, word, /[^A-Za-z0-9_]+/)
    for (i = 1; i <= n; i++) {
        if (word[i] !~ /^[a-z]/)
            continue
        if (!((word[i], FILENAME) in seen))
            files[word[i]]++
        seen[word[i], FILENAME]++
    }
}
END {
    for (name in home)
        if (files[name] < 3 && seen[name, home[name]] == 1)
            print home[name] " declares " name
}
