# compare.awk -- awk -f compare.awk PAGE PRINTED: whether an output agrees with the one that a page shows.
#
# Words are compared one by one; the number of blanks between them does not matter.  In the page
#
#   a line ...      stands for any number of lines
#   a word ...      stands for any number of words.  With other characters, as in step-..., it stands for one or more words that
#                   begin and end with these characters
#   a number        with a unit after it (s, ms, samples/s, MB, %, GFLOP/s) stands for any number: times and sizes differ
#   0.9842          with a point stands for any number that differs by at most a tenth, or by 0.02; an accuracy, by at most 0.02
#   12              without a point stands for itself
#
# Prints the first line of the page that does not agree, and the printed line; exit code 1.
FNR == 1        { part++ }
part == 1       { page[++n] = $0 }
part == 2       { printed[++m] = $0 }

function is_number(w)   { return w ~ /^[-+]?[0-9][0-9,]*(\.[0-9]+)?(e[-+]?[0-9]+)?$/ }
function is_unit(w)     { return w ~ /^(s|ms|samples\/s|kB|MB|GB|%|GFLOP\/s)[,;:.]?$/ }
function value(w)       { gsub(/,/, "", w); return w + 0 }
function size(x)        { return x < 0 ? -x : x }

function near(want, have, before,    d, most) {
    d = size(value(want) - value(have))
    most = before == "accuracy" ? 0 : size(value(want)) / 10
    return d <= (most > 0.02 ? most : 0.02)
}

# The characters at the end of a word that are not part of a number.
function tail(w)        { return match(w, /[,:;)"]+$/) ? substr(w, RSTART) : "" }
function head(w)        { return substr(w, 1, length(w) - length(tail(w))) }

function same_word(want, have, unit, before) {
    if (want == have)
        return 1
    if (tail(want) != tail(have))
        return 0
    want = head(want)
    have = head(have)
    sub(/^[("]+/, "", want)
    sub(/^[("]+/, "", have)
    if (!is_number(want) || !is_number(have))
        return 0
    return unit || (index(want, ".") && near(want, have, before))
}

function same_words(want, nwant, i, have, nhave, j,    k, at, behind) {
    for (; i <= nwant; i++) {
        if (want[i] == "...") {
            for (k = j; k <= nhave + 1; k++)
                if (same_words(want, nwant, i + 1, have, nhave, k))
                    return 1
            return 0
        }
        if (at = index(want[i], "...")) {
            behind = substr(want[i], at + 3)
            if (substr(have[j], 1, at - 1) != substr(want[i], 1, at - 1))
                return 0
            for (k = j; k <= nhave; k++)
                if (substr(have[k], length(have[k]) - length(behind) + 1) == behind && same_words(want, nwant, i + 1, have, nhave, k + 1))
                    return 1
            return 0
        }
        if (j > nhave || !same_word(want[i], have[j], i < nwant && is_unit(want[i + 1]), i > 1 ? want[i - 1] : ""))
            return 0
        j++
    }
    return j > nhave
}

function same_line(want, have,    a, b, na, nb) {
    na = split(want, a)
    nb = split(have, b)
    return same_words(a, na, 1, b, nb, 1)
}

function same_lines(i, j,    k) {
    for (; i <= n; i++) {
        if (page[i] ~ /^ *\.\.\. *$/) {
            for (k = j; k <= m + 1; k++)
                if (same_lines(i + 1, k))
                    return 1
            return 0
        }
        if (j > m || !same_line(page[i], printed[j])) {
            if (i > far) {
                far = i
                far_printed = j
            }
            return 0
        }
        j++
    }
    if (j <= m && n >= far) {
        far = n + 1
        far_printed = j
    }
    return j > m
}

END {
    if (part < 2)
        m = 0
    if (same_lines(1, 1))
        exit 0
    print "  page:    " (far > n ? "(ends here)" : page[far])
    print "  printed: " (far_printed > m ? "(nothing more)" : printed[far_printed])
    exit 1
}
