# inner_loops.awk -- stack traffic in the innermost loops of gcc's x86-64 assembly:  awk -f inner_loops.awk FILE.s ...
#
# A loop is a backward jump.  It is innermost if its body contains no other backward jump (except to the same target).  Prints one
# line for each function with innermost loops that have fused multiply-adds:
#     FILE FUNCTION LOOPS FMAS VECTORS WORDS
# VECTORS and WORDS count operands on the stack, of vector instructions and of other instructions.  The stack is addressed by %rsp,
# or by %rbp if it is the frame pointer.

function flush_function(    i, j, loops, fmas, vectors, words, f, v, s, inner) {
    for (i = 1; i <= jumps; i++) {
        inner = 1
        for (j = 1; j <= jumps; j++)
            if (from[j] >= to[i] && from[j] < from[i] && to[j] != to[i] || to[j] == to[i] && from[j] > from[i]) inner = 0
        if (!inner) continue
        f = v = s = 0
        for (j = to[i]; j <= from[i]; j++) {
            f += text[j] ~ /vfn?m(add|sub)/
            if (text[j] ~ (frame ? "[(]%r[sb]p[,)]" : "[(]%rsp[,)]")) { if (text[j] ~ /[xyz]mm/) v++; else s++ }
        }
        if (f) { loops++; fmas += f; vectors += v; words += s }
    }
    if (loops) print file, name, loops, fmas, vectors + 0, words + 0
    n = jumps = frame = 0; name = ""
    delete label; delete text; delete to; delete from
}

FNR == 1 { if (name != "") flush_function(); file = FILENAME; sub(/.*\//, "", file); sub(/\.s$/, "", file) }
/^[A-Za-z_][A-Za-z0-9_.]*:/ { if (name != "") flush_function(); name = $1; sub(/:.*/, "", name); next }
name == "" { next }
/^\.L[A-Za-z0-9_]*:/ { l = $1; sub(/:.*/, "", l); label[l] = n + 1; next }
/^[ \t]+[a-z]/ {
    text[++n] = $0
    if ($0 ~ /movq[ \t]+%rsp, %rbp/) frame = 1
    if ($1 ~ /^j/ && $2 in label) { jumps++; to[jumps] = label[$2]; from[jumps] = n }
}
END { if (name != "") flush_function() }
