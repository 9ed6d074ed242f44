# links.awk -- FILES ANCHORS LINKS: prints the links whose target does not exist.  FILES has one path of the repository on each line.
BEGIN { FS = OFS = "\t" }
FNR == 1 { part++ }
part == 1 { there[$0] = 1; next }
FILENAME ~ /\/anchors$/ { anchor[$1, $2] = 1; next }
{
    target = $3
    path = target
    sub(/#.*/, "", path)
    hash = index(target, "#") ? substr(target, index(target, "#") + 1) : ""
    if (path ~ /^\//) { print $1 ":" $2 ": the link '" target "' is absolute: it works on one machine only"; next }
    full = path == "" ? $1 : join($1, path)
    if (full == "") full = "."
    if (!(full in there)) print $1 ":" $2 ": the link '" target "' leads to nothing: there is no " full
    else if (hash != "" && full ~ /\.md$/ && !((full, hash) in anchor)) print $1 ":" $2 ": the link '" target "': " full " has no heading #" hash
    else n++
}
END { print "ok " n + 0 }

# The path to which a link on a page leads, without . and ..
function join(page, path,    dir, part, n, i, out, m)
{
    dir = page
    if (!sub(/\/[^\/]*$/, "", dir)) dir = ""
    n = split(dir == "" ? path : dir "/" path, part, "/")
    m = 0
    for (i = 1; i <= n; i++) {
        if (part[i] == "" || part[i] == ".") continue
        if (part[i] == ".." && m && stack[m] != "..") { m--; continue }
        stack[++m] = part[i]
    }
    out = ""
    for (i = 1; i <= m; i++) out = out (i > 1 ? "/" : "") stack[i]
    return out
}
