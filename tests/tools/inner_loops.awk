# inner_loops.awk -- stack traffic in the innermost loops of gcc's x86-64 assembly:  awk -f inner_loops.awk FILE.s ...
#
# A loop is the last backward jump to a label, with the instructions on the paths from this label to the jump.  Other instructions can
# stand between them: gcc places the end of a function, or the way back to an outer loop, inside of a loop.  A loop is innermost if
# no jump on these paths goes back to a later label.  A loop that is entered at two labels counts once.  Prints one line for each
# function with innermost loops that have fused multiply-adds:
#     FILE FUNCTION LOOPS FMAS VECTORS WORDS
# VECTORS and WORDS count operands on the stack, of vector instructions and of other instructions.  The stack is addressed by %rsp,
# or by %rbp if it is the frame pointer.
#
# For each 16 multiply-adds of a loop, one read of a word is not counted: gcc often leaves the end of an inner loop on the stack if
# outer loops have many variables.  Without such reads, beside 40 or 48 multiply-adds, seven kernels of convolutions and dense layers
# took 0.998 to 1.009 of the time (Zen 4, AVX2).

# in_loop[j]: instruction j lies on a path from `first` to the jump `last`
function find_paths(first, last,    j, reached, reaches) {
    split("", in_loop)
    reaches[last] = 1
    for (j = last - 1; j >= first; j--)
        if (j + 1 in reaches && !(j in ends) || j in goal && (goal[j] == first || goal[j] > j && goal[j] in reaches)) reaches[j] = 1
    reached[first] = 1
    for (j = first; j <= last; j++) {
        if (!(j in reached)) continue
        if (j in reaches) in_loop[j] = 1
        if (!(j in ends)) reached[j + 1] = 1
        if (j in goal && goal[j] > j) reached[goal[j]] = 1
    }
}

# whether an instruction with an operand on the stack writes it
function writes(line) {
    return line ~ /[)][ \t]*$/ && line !~ /^[ \t]+(cmp|test|bt|mul|imul|div|idiv|push|call|jmp|prefetch)/
}

function flush_function(    i, j, loops, fmas, vectors, words, f, v, s, r, inner, sum, counted) {
    for (j = 1; j <= n; j++) {
        sum[j] = sum[j - 1] + (text[j] ~ /vfn?m(add|sub)/)
        if (!(j in leads)) continue
        if (leads[j] in label) goal[j] = label[leads[j]]
    }
    for (j in goal) if (goal[j] <= j + 0 && j + 0 > last[goal[j]]) last[goal[j]] = j + 0
    for (i in last) {
        i += 0
        if (sum[last[i]] == sum[i - 1] + 0) continue
        find_paths(i, last[i])
        inner = 1
        for (j in in_loop) if (j in goal && goal[j] <= j + 0 && goal[j] > i) { inner = 0; break }
        if (!inner) continue
        f = v = s = r = 0
        for (j in in_loop) {
            if (j in counted) continue
            counted[j]
            f += text[j] ~ /vfn?m(add|sub)/
            if (text[j] !~ (frame ? "[(]%r[sb]p[,)]" : "[(]%rsp[,)]")) continue
            if (text[j] ~ /[xyz]mm/) v++
            else if (writes(text[j])) s++
            else if (text[j] !~ /^[ \t]+lea/) r++
        }
        if (r > int(f / 16)) s += r - int(f / 16)
        if (f) { loops++; fmas += f; vectors += v; words += s }
    }
    if (loops) print file, name, loops, fmas, vectors + 0, words + 0
    n = frame = 0; name = ""
    split("", label); split("", text); split("", leads); split("", goal); split("", ends); split("", last)
}

FNR == 1 { if (name != "") flush_function(); file = FILENAME; sub(/.*\//, "", file); sub(/\.s$/, "", file) }
/^[A-Za-z_][A-Za-z0-9_.]*:/ { if (name != "") flush_function(); name = $1; sub(/:.*/, "", name); next }
name == "" { next }
/^\.L[A-Za-z0-9_]*:/ { l = $1; sub(/:.*/, "", l); label[l] = n + 1; next }
/^[ \t]+[a-z]/ {
    text[++n] = $0
    if ($0 ~ /movq[ \t]+%rsp, %rbp/) frame = 1
    if ($1 ~ /^j/) leads[n] = $2
    if ($1 ~ /^(jmp|ret)$/) ends[n]
}
END { if (name != "") flush_function() }
