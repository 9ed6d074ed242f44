# sass_loops.awk -- the innermost loop with the most multiply-adds of each kernel:  cuobjdump -sass FILE.cubin | awk -f sass_loops.awk
#
# Prints one line for each kernel:
#     KERNEL INSTRUCTIONS FFMA LDS LDS_BYTES LDG LDG_BYTES LOCAL
# of the loop: multiply-adds; loads from shared memory and their bytes; loads from memory, also asynchronous copies to shared memory, and
# their bytes; accesses to local memory, which are spills.  Without a loop with multiply-adds: of the whole kernel.  All are of one thread.
# A loop is a backward branch with the instructions from its target on; it is innermost if no other loop lies inside.

function bytes_of(op) {
    return op ~ /\.128/ ? 16 : op ~ /\.64/ ? 8 : op ~ /\.[US]16/ ? 2 : op ~ /\.[US]8/ ? 1 : 4
}

function flush_kernel(    i, k, j, inner, f, most, first, last, lds, ldsb, ldg, ldgb, local_) {
    if (name == "") return
    first = 1; last = n; most = 0
    for (i = 1; i <= loops; i++) {
        inner = 1
        for (k = 1; k <= loops; k++)
            if (k != i && from[k] >= from[i] && to[k] <= to[i] && !(from[k] == from[i] && to[k] == to[i])) inner = 0
        if (!inner) continue
        f = 0
        for (j = from[i]; j <= to[i]; j++) f += op[j] ~ /^(FFMA|DFMA)/
        if (f > most) { most = f; first = from[i]; last = to[i] }
    }
    f = 0
    for (j = first; j <= last; j++) {
        f += op[j] ~ /^(FFMA|DFMA)/
        if (op[j] ~ /^LDS(\.|$)/) { lds++; ldsb += bytes_of(op[j]) }
        if (op[j] ~ /^(LDG|LDGSTS)(\.|$)/) { ldg++; ldgb += bytes_of(op[j]) }
        local_ += op[j] ~ /^(LDL|STL)(\.|$)/
    }
    print name, last - first + 1, f, lds + 0, ldsb + 0, ldg + 0, ldgb + 0, local_ + 0
    n = loops = 0
}

/Function : / {
    flush_kernel()
    name = $3
    if (match(name, /^_Z[0-9]+/)) name = substr(name, RLENGTH + 1, substr(name, 3, RLENGTH - 2))
    split("", at)
}
/^ +\/\*[0-9a-f]+\*\/ / {
    match($0, /\/\*[0-9a-f]+\*\//)
    address = substr($0, RSTART + 2, RLENGTH - 4)
    sub(/^0+/, "", address)
    text = substr($0, RSTART + RLENGTH)
    sub(/^ +/, "", text); sub(/^@!?U?P[0-9T]+ +/, "", text); sub(/ *;.*/, "", text)
    at[address] = ++n
    split(text, word, " ")
    op[n] = text ~ /^LDS RZ, \[RZ\]/ ? "NOP" : word[1]       # ptxas puts three before an asynchronous copy after a load
    if (op[n] ~ /^BRA/ && match(text, /0x[0-9a-f]+$/)) {
        target = substr(text, RSTART + 2)
        if (target in at && at[target] < n) { loops++; from[loops] = at[target]; to[loops] = n }
    }
}
END { flush_kernel() }
