# read.awk -- reads documents; prints lines that are too long, and writes into the directory `work`
#
#   links           FILE LINE TARGET, for relative links (separated by tabs)
#   anchors         FILE ANCHOR, as repository viewers make them from headings
#   examples/list   KIND PLACE DIR NAME MESSAGE of each ```tenon block that is checked; the block itself is DIR/NAME
#   commands        FILE LINE, then the words of a command of a ```sh block; an empty word stands for quoted text

BEGIN { OFS = "\t"; printf "" > (work "/links"); printf "" > (work "/anchors"); printf "" > (work "/commands")
        printf "" > (work "/examples/list") }

FNR == 1 {
    if (fence) print last ":" opened ": the block is not closed"
    if (last != "") print "ok 1"
    fence = ""; mark = ""; last = FILENAME; here = ""
    dir = work "/examples/" ++pages
}

# The length in characters: awk counts bytes.
{
    line = $0
    gsub(/[\200-\277]/, "", line)
    if (length(line) > 140) print FILENAME ":" FNR ": " length(line) " characters, more than 140"
}

# ---- fenced blocks

fence == "" && /^[ \t]*(```|~~~)/ {
    match($0, /(```+|~~~+)/)
    fence = substr($0, RSTART, RLENGTH)
    opened = FNR
    language = $1
    sub(/^(```+|~~~+)/, "", language)
    if (language == "" && NF > 1) language = $2
    begin_block()
    next
}
fence != "" {
    closing = $0
    gsub(/[ \t]/, "", closing)
    if (closing == fence) { end_block(); fence = ""; mark = "" } else block_line($0)
    next
}

# ---- text

/^[ \t]*<!--.*-->[ \t]*$/ { mark = $0; sub(/^[ \t]*<!--[ \t]*/, "", mark); sub(/[ \t]*-->[ \t]*$/, "", mark) }
!/^[ \t]*(<!--.*-->)?[ \t]*$/ { mark = "" }

/^#+ / { print FILENAME, slug($0) > (work "/anchors") }
{
    text = $0
    gsub(/``[^`]+(`[^`]+)*``/, "", text)
    gsub(/`[^`]*`/, "", text)
    html = text
    while (match(text, /\]\([^)]*\)/)) {
        link(substr(text, RSTART + 2, RLENGTH - 3))
        text = substr(text, RSTART + RLENGTH)
    }
    while (match(html, /(href|src|srcset|id|name)="[^"]*"/)) {
        word = substr(html, RSTART, RLENGTH)
        value = word
        sub(/^[a-z]*="/, "", value)
        sub(/"$/, "", value)
        if (word ~ /^(id|name)/) print FILENAME, value > (work "/anchors"); else link(value)
        html = substr(html, RSTART + RLENGTH)
    }
    if (match($0, /^ ? ? ?\[[^]]+\]: +[^ ]+/)) {
        value = substr($0, RSTART, RLENGTH)
        sub(/^[^]]*\]: +/, "", value)
        link(value)
    }
}

END { if (fence) print last ":" opened ": the block is not closed"; print "ok 1" }

# ---- functions

function link(target)
{
    sub(/[ \t]+"[^"]*"[ \t]*$/, "", target)
    gsub(/[<> \t]/, "", target)
    if (target !~ /^[A-Za-z][A-Za-z0-9+.-]*:/ && target !~ /^\/\//)
        print FILENAME, FNR, target > (work "/links")
}

function slug(s)
{
    sub(/^#+[ \t]+/, "", s)
    sub(/[ \t]+#*[ \t]*$/, "", s)
    gsub(/<[^>]*>/, "", s)
    while (match(s, /\[[^]]*\]\([^)]*\)/)) {
        inner = substr(s, RSTART + 1, RLENGTH - 1)
        sub(/\]\(.*/, "", inner)
        s = substr(s, 1, RSTART - 1) inner substr(s, RSTART + RLENGTH)
    }
    s = tolower(s)
    gsub(/[^a-z0-9_ \200-\377-]/, "", s)
    gsub(/ /, "-", s)
    return s
}

function begin_block()
{
    kind = language == "tenon" || language == "tenon-error" ? "tenon" : language == "sh" || language == "bash" || language == "console" ? "sh" : ""
    body = ""; complete = 0; says = ""; joined = ""; heredoc = ""
    name = "line" FNR ".tn"
    named = match($0, /(file|title)="?[^ \t"]+/)
    if (named) { name = substr($0, RSTART, RLENGTH); sub(/^[a-z]*="?/, "", name) }
}

function block_line(s)
{
    if (kind == "tenon") {
        body = body s "\n"
        if (s ~ /^[ \t]*model[ \t]/) complete = 1
        if (s ~ /^[ \t]*# error: /) { says = s; sub(/^[ \t]*# error: /, "", says) }
    } else if (kind == "sh" && mark !~ /^(fragment|error)/)
        sh_line(s)
}

function end_block()
{
    if (kind == "sh" && joined != "") { sh_words(joined, joined_at); joined = "" }
    if (kind != "tenon" || mark ~ /^fragment/) return
    if (mark ~ /^error: /) { says = mark; sub(/^error: /, "", says) }
    wrong = language == "tenon-error" || mark ~ /^error: /
    if (!complete && !wrong && !named) return
    if (here == "") { system("mkdir -p '" dir "'"); here = dir }
    printf "%s", body > (dir "/" name)
    close(dir "/" name)
    print (wrong ? "error" : "good"), FILENAME ":" opened, dir, name, says > (work "/examples/list")
}

# A line of shell: joins continued lines, and skips here-documents.
function sh_line(s)
{
    if (heredoc != "") { if (s ~ "^[ \t]*" heredoc "[ \t]*$") heredoc = ""; return }
    sub(/^[ \t]*\$ /, "", s)
    if (joined == "") joined_at = FNR
    joined = joined s
    if (joined ~ /\\$/) { sub(/\\$/, " ", joined); return }
    sh_words(joined, joined_at)
    joined = ""
}

# The words of a line; a command ends at | & ; ( ) and at the end of the line.
function sh_words(s, at,    n, i, c, quote, word, any, out)
{
    n = length(s)
    for (i = 1; i <= n; i++) {
        c = substr(s, i, 1)
        if (quote != "") {
            if (c == quote) quote = ""; else word = word (c ~ /[ \t]/ ? "_" : c)
        } else if (c == "'" || c == "\"") {
            quote = c; any = 1
        } else if (c == "\\") {
            word = word substr(s, ++i, 1); any = 1
        } else if (c == "#" && word == "" && !any) {
            break
        } else if (c ~ /[ \t]/) {
            if (word != "" || any) out = out "\t" word
            word = ""; any = 0
        } else if (c == "<" && substr(s, i, 2) == "<<" && substr(s, i, 3) != "<<<") {
            heredoc = substr(s, i + 2)
            sub(/^-?[ \t]*/, "", heredoc)
            gsub(/["'\\]/, "", heredoc)
            sub(/[^A-Za-z0-9_].*/, "", heredoc)
            i++
        } else if (c ~ /[|&;()]/) {
            if (c == "&" && substr(s, i - 1, 1) == ">") continue
            if (word != "" || any) out = out "\t" word
            if (out != "") print FILENAME, at out > (work "/commands")
            out = word = ""; any = 0
        } else
            word = word c
    }
    if (word != "" || any) out = out "\t" word
    if (out != "") print FILENAME, at out > (work "/commands")
}
