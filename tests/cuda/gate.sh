# gate.sh -- sourced after common.sh: what nvcc makes of a program for a GPU.

# gate FILE ARCHITECTURES...: compiles the file for each architecture.  It has at least $least kernels (default 30).  No kernel spills, and the
# registers and the shared memory of two blocks fit on a multiprocessor.  A kernel that computes a whole loop over time (recurrence) has a
# multiprocessor alone, and so up to 255 registers.  Kernels that turn pairs by angles may use 40 bytes of stack: a sine in double keeps a
# table for large angles there.
gate() {
    local archs=() a file=$1; shift
    for a in "$@"; do archs+=(-gencode "arch=compute_$a,code=sm_$a"); done
    if ! nvcc -std=c++20 -O2 -fmad=false "${archs[@]}" -Xptxas -v -I runtime -c "$file" -o "$work/gate.o" > "$work/ptxas" 2>&1; then
        bad "nvcc on $file"; head -n 5 "$work/ptxas"; return
    fi
    if awk -v least="${least:-30}" '/Function properties/ { angles = /rotary|sinusoidal/; most = /recurrence/ ? 255 : 128 }
            /spill stores/ { if ((angles ? 0 : $1) + $5 + $9 > 0) bad = 1; seen++ }
            /Used [0-9]+ registers/ { for (i = 2; i <= NF; i++) if ($i ~ /^registers/ && $(i - 1) > most || $(i + 1) == "bytes" && $(i + 2) == "smem" && $i > 49152) bad = 1 }
            END { exit bad || seen < least }' "$work/ptxas"; then ok
    else bad "$file: spills, a stack, more than 128 registers (255 of a recurrence) or 48 KB: $(grep -B1 -E '[1-9][0-9]* bytes (stack|spill)' "$work/ptxas" | head -n 4)"; fi
}
