# cycles.awk -- finds cycles of calls between C files: the largest sets of files in which each file reaches each other one by calls.
#
#   awk -f tests/cycles.awk most=4 FILE...      prints each set of more than `most` files: "5: a.c b.c c.c d.c e.c"
#
# A file calls another file if it names a function that the other file defines without `static`.
FNR == 1 { comment = 0 }
{
    line = $0
    if (comment) { if (!match(line, /\*\//)) next; line = substr(line, RSTART + 2); comment = 0 }
    gsub(/"([^"\\]|\\.)*"/, "", line)
    gsub(/\/\*([^*]|\*[^\/])*\*\//, "", line)
    if (match(line, /\/\*/)) { line = substr(line, 1, RSTART - 1); comment = 1 }
    gsub(/(->|[.])[A-Za-z_][A-Za-z0-9_]*/, "", line)
    if (line ~ /^[A-Za-z].*[(]/ && line !~ /;[ \t]*$/ && line !~ /^(typedef|extern|struct|enum)/) {
        name = line; sub(/[(].*/, "", name); sub(/.*[^A-Za-z0-9_]/, "", name)
        if (line ~ /^static/) own[FILENAME, name] = 1; else home[name] = FILENAME
    }
    if (!(FILENAME in seen)) { seen[FILENAME] = 1; file[++n] = FILENAME }
    while (match(line, /[A-Za-z_][A-Za-z0-9_]*/)) {
        word = substr(line, RSTART, RLENGTH); line = substr(line, RSTART + RLENGTH)
        if (!((FILENAME SUBSEP word) in named)) { named[FILENAME, word] = 1; use[++uses] = FILENAME SUBSEP word }
    }
}
function reaches(a, b) { return (a SUBSEP b) in calls }
END {
    for (i = 1; i <= uses; i++) {
        split(use[i], u, SUBSEP)
        if (u[2] in home && home[u[2]] != u[1] && !((u[1] SUBSEP u[2]) in own)) calls[u[1], home[u[2]]] = 1
    }
    for (k = 1; k <= n; k++)
        for (i = 1; i <= n; i++)
            if (reaches(file[i], file[k]))
                for (j = 1; j <= n; j++)
                    if (reaches(file[k], file[j]))
                        calls[file[i], file[j]] = 1
    for (i = 1; i <= n; i++) {
        if (file[i] in done || !reaches(file[i], file[i]))
            continue
        set = ""; size = 0
        for (j = 1; j <= n; j++)
            if (reaches(file[i], file[j]) && reaches(file[j], file[i])) {
                done[file[j]] = 1; set = set " " file[j]; size++
            }
        if (size > most)
            print size ":" set
    }
}
