# plant.sh -- sourced by bench/alarms and tests/programs/sweep.sh: plants a slow-down of one layer in a copy of Tenon.
#
#   root: the repository;  TENON: the tenon that is copied

# plant DIR PERCENT: copies Tenon to DIR.  There, the layer dense1 of the MLP repeats its work, and so takes PERCENT % longer: with 10,
# in every tenth call.
plant() {
    local header=$1/runtime/cpu/dense_sparse.h
    mkdir -p "$1"
    cp -r "$(dirname "$TENON")"/{tenon,tenon-bench,tenon-peak,lib} "$root"/{runtime,models} "$1"
    printf 'source=.\ncflags=\n' > "$1/tenon.paths"
    sed -i 's/^RT_INLINE void dense_sparse(/RT_INLINE void dense_once(/; $d' "$header"
    cat >> "$header" << END
RT_INLINE void dense_sparse(real *y, const real *x, const real *w, const real *bias, Act act, Dense d)
{
    static int due; /* percent of a call that are still to be done */
    dense_once(y, x, w, bias, act, d);
    for (due += d.k == 784 ? $2 : 0; due >= 100; due -= 100)
        dense_once(y, x, w, bias, act, d);
}
#endif
END
}
