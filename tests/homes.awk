# homes.awk -- each plain kernel of runtime/cpu has a row in home[] of compiler/cpu/unit.c, whose header contains or
# includes the kernel.  Prints a line for each kernel without such a row.
#
#   awk -f tests/homes.awk compiler/cpu/unit.c runtime/cpu/*.h
FILENAME ~ /unit\.c$/ {
    if (match($0, /\{"[a-z_0-9]+", "cpu\/[a-z_0-9]+\.h"/)) {
        split(substr($0, RSTART, RLENGTH), part, "\"")
        prefix[++rows] = part[2]
        header[rows] = part[4]
    }
    next
}
FNR == 1 { file = FILENAME; sub(/.*\//, "cpu/", file) }
/^#include "cpu\// { split($0, part, "\""); includes[file] = includes[file] " " part[2] }
/^RT_INLINE void [a-z_0-9]+_plain\(/ { split($3, part, "("); home[part[1]] = file }

function reaches(from, to, seen,    list, n, i) {
    if (from == to)
        return 1
    if (from in seen)
        return 0
    seen[from]
    n = split(includes[from], list, " ")
    for (i = 1; i <= n; i++)
        if (reaches(list[i], to, seen))
            return 1
    return 0
}

END {
    for (name in home) {
        best = 0
        for (i = 1; i <= rows; i++)
            if (index(name, prefix[i]) == 1 && (!best || length(prefix[i]) > length(prefix[best])))
                best = i
        split("", seen)
        if (best && reaches(header[best], home[name], seen))
            continue
        own = name
        sub(/_plain$/, "", own)
        printf("%s of runtime/%s %s: add {\"%s\", \"%s\", false}\n", name, home[name],
               best ? "gets " header[best] " by the row \"" prefix[best] "\" of home[]" : "has no row in home[]",
               own, home[name])
    }
}
