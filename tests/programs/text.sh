#!/usr/bin/env bash
# text.sh -- programs that train on text: characters, bytes, words and byte pairs; labelled lines; the same bits in all ways to run; the
# vocabulary is saved with the weights; predict and generate; messages about wrong input name the line.
#
# TENON_TEST_DATA/imdb: IMDB's reviews, for a test of the whole set.
#
# Parts: next lstm reviews
# Deep parts: networks
set -euo pipefail
. "$(dirname "$0")/../common.sh"

# model FILE DATA LABELS: a window of 6 tokens, looked up and concatenated
model() {
    cat > "$1" <<END
model next(text: i32[time], vocab: int, time: int = 6) {
    return one_hot(text, vocab) |> flatten |> dense(32) |> relu |> dense($3)
}
train next {
    data      = $2
    loss      = softmax_cross_entropy
    optimizer = adam(lr = 0.01)
    batch     = 32
    epochs    = 3
}
END
}
weights_of() { hashes "$1" | tr ' ' '\n' | grep . | tail -n 1; }

# same_bits NAME GROUPS EPOCH STEP: "${run[@]}" gives the weights $want on two threads, in groups, and resumed at that
# step of that epoch
same_bits() {
    rm -rf "$work/bits.jsonl" "$work/ck"
    "${run[@]}" --log "$work/bits.jsonl" --threads 2 > /dev/null
    same "$1: two threads" "$want" "$(weights_of "$work/bits.jsonl")"
    rm "$work/bits.jsonl"
    "${run[@]}" --log "$work/bits.jsonl" --groups "$2" > /dev/null
    same "$1: $2 groups" "$want" "$(weights_of "$work/bits.jsonl")"
    rm "$work/bits.jsonl"
    "${run[@]}" --checkpoint "$work/ck" --checkpoint-every "$4" --epochs "$3" > /dev/null
    rm "$(ls "$work"/ck/step-*.safetensors | tail -n 1)"
    "${run[@]}" --checkpoint "$work/ck" --resume --log "$work/bits.jsonl" > /dev/null 2> "$work/err"
    grep -q "epoch $3, step $4" "$work/err" && ok || bad "$1: not resumed in the middle of an epoch: $(cat "$work/err")"
    same "$1: resumed in the middle of an epoch" "$want" "$(weights_of "$work/bits.jsonl")"
}

for _ in $(seq 250); do echo 'the quick brown fox jumps over the lazy dog'; done > "$work/fox.txt"
cp "$work/fox.txt" "$work/plain.txt"
text="text(\"$work/fox.txt\", unit = \"char\", vocab = 28)"
model "$work/next.tn" "$text" vocab
go_on() { "$1" generate --weights "$2" --prompt 'the quick' --length "$3" --temperature 2 --seed 4 "${@:4}" > "$work/went.$#"; } # continues to $work/went.N, where N is the number of arguments

if part next; then
    succeeds "build" "$TENON" build "$work/next.tn" -o "$work/next"
    succeeds "build, longer" "$TENON" build "$work/next.tn" -o "$work/long" --set model.time=12
    run=("$work/next" --limit-samples 3000)
    "${run[@]}" --log "$work/1.jsonl" --save "$work/w.safetensors" --threads 1 > "$work/out"
    grep -q 'test accuracy 1.0000' "$work/out" && ok || bad "a sentence is not learned: $(tail -1 "$work/out")"
    want=$(weights_of "$work/1.jsonl")
    same_bits "a text" 4 2 70
    sed 's/quick/quack/' "$work/fox.txt" > "$work/duck.txt"
    refuses "resumed with another text" "this run has data" "${run[@]}" --checkpoint "$work/ck" --resume --data "$work/duck.txt"
    gzip "$work/fox.txt"
    "${run[@]}" --log "$work/5.jsonl" > /dev/null
    same "packed with gzip" "$want" "$(weights_of "$work/5.jsonl")"

    # generate: one seed gives one text.
    w=(--weights "$work/w.safetensors")
    succeeds "test by weights" "$work/next" test "${w[@]}"
    "$work/next" generate "${w[@]}" --prompt 'the quick' --length 50 --temperature 0 > "$work/out"
    same "the likeliest text" 'the quick brown fox jumps over the lazy dog
the quick brown' "$(cat "$work/out")"
    "$work/next" generate "${w[@]}" --length 200 --temperature 4 --seed 5 --threads 1 > "$work/g1"
    "$work/next" generate "${w[@]}" --length 200 --temperature 4 --seed 5 --threads 2 > "$work/g2"
    "$work/next" generate "${w[@]}" --length 200 --temperature 4 --seed 6 > "$work/g3"
    cmp -s "$work/g1" "$work/g2" && ok || bad "another text on two threads"
    cmp -s "$work/g1" "$work/g3" && bad "another seed, the same text" || ok
    "$work/next" generate "${w[@]}" --prompt 'the quick' --length 50 --temperature 4 --top-k 1 > "$work/g4"
    cmp -s "$work/out" "$work/g4" && ok || bad "the likeliest one of one is not the likeliest of all"
    same "what follows" r "$("$work/next" predict "${w[@]}" --text 'the quick b' | cut -f1)"

    # The units.
    for unit in 'byte", vocab = 256' 'word", vocab = 12' 'bpe", vocab = 270'; do
        name=${unit%%\"*}
        model "$work/$name.tn" "text(\"$work/plain.txt\", unit = \"$unit)" vocab
        succeeds "$name: build" "$TENON" build "$work/$name.tn" -o "$work/$name"
        succeeds "$name: train" "$work/$name" --epochs 4 --save "$work/$name.safetensors"
        "$work/$name" generate --weights "$work/$name.safetensors" --prompt 'the quick brown fox jumps over the' --length 1 --temperature 0 > "$work/out"
        grep -q '^the quick brown fox jumps over the l*' "$work/out" && ok || bad "$name goes on with $(cat "$work/out")"
        succeeds "$name: test by weights" "$work/$name" test --weights "$work/$name.safetensors"
        refuses "$name: weights of another unit" 'does not hold the weights|holds a vocabulary of' "$work/$name" test "${w[@]}"
    done
    same "words" 'tenon vocabulary 1 word 11|the|brown|dog|fox|jumps|lazy|over|quick' "$(grep -a -A 8 'tenon vocabulary' "$work/word.safetensors" | sed 's/.*tenon/tenon/' | tr '\n' '|' | sed 's/|$//')"

    # Wrong input.
    refuses "no text" "the text $work/none.txt does not exist" "${run[@]}" --data "$work/none.txt"
    mkdir "$work/no.text"
    refuses "a directory without a text" "no.text holds no text: neither no.text.txt nor input.txt" "${run[@]}" --data "$work/no.text"
    (cd "$work/no.text" && refuses "no text here" "[.] holds no text: no input.txt" "${run[@]}" --data .; [ $failed = 0 ]) && ok || bad "no text here"
    refuses "a text that is a device" "/dev/null is a device or a pipe, not a file" "${run[@]}" --data /dev/null
    : > "$work/empty.txt"
    refuses "an empty text" "empty.txt is empty" "${run[@]}" --data "$work/empty.txt"
    echo 'the quick' > "$work/short.txt"
    refuses "a text shorter than the window" "short.txt has 9 tokens to train on, too few for a window of 12 and the token after it" "$work/long" --data "$work/short.txt"
    printf 'the quick\nbr\377own' > "$work/latin.txt"
    refuses "a text that is no UTF-8" "latin.txt:2: byte 3 of the line, 0xFF, is not UTF-8" "${run[@]}" --data "$work/latin.txt"
    printf 'overlong \300\257' > "$work/latin.txt"
    refuses "an overlong form" "latin.txt:1: byte 10 of the line, 0xC0, is not UTF-8" "${run[@]}" --data "$work/latin.txt"
    tr 'a-z' 'A-Z' < "$work/plain.txt" | cat "$work/plain.txt" - > "$work/many.txt"
    refuses "more characters than the vocabulary" "has 54 different characters, more than the 28 of next: build it with --set data.vocab=54" "${run[@]}" --data "$work/many.txt"
    refuses "weights with another vocabulary" "many.txt:251: byte 1 of the line, the character 'T', is not one of the 28" "$work/next" test "${w[@]}" --data "$work/many.txt"
    refuses "an unknown character" "the character 'ü', is not one of the 28 in the vocabulary" "$work/next" generate "${w[@]}" --prompt 'für'
    refuses "a prompt that is no UTF-8" "prompt:1: byte 2 of the line, 0xFC, is not UTF-8" "$work/next" generate "${w[@]}" --prompt "$(printf 'f\374r')"
    head -c 3000 "$work/w.safetensors" > "$work/part.safetensors"
    refuses "generate with weights that are cut off" "part.safetensors cannot be read: it is truncated|part.safetensors cannot be read: its tensor" "$work/next" generate --weights "$work/part.safetensors"
    "$work/next" generate "${w[@]}" --length 30 --seed 5 > "$work/g1"
    "$work/next" generate "${w[@]}" --length 30 --seed 5 --prompt "" > "$work/g2"
    cmp -s "$work/g1" "$work/g2" && ok || bad "an empty prompt is not like none"
    refuses "generate without weights" "generate needs --weights" "$work/next" generate
fi

if part lstm; then
    # A label at every position: char_lstm with small sizes.
    build char_lstm "$work/lstm" --set model.width=32 --set model.time=16 --set data.vocab=28 --set epochs=6 --set 'expect=test_perplexity<=25'
    run=("$work/lstm" --data "$work/plain.txt")
    "${run[@]}" --log "$work/9.jsonl" --save "$work/l.safetensors" --threads 1 > "$work/out"
    want=$(weights_of "$work/9.jsonl")
    same_bits char_lstm 2 3 25
    "$work/lstm" test --weights "$work/l.safetensors" --data "$work/plain.txt" > "$work/out2"
    same "char_lstm: tested again" "$(field "$work/9.jsonl" epoch test_loss | awk '{ printf "%.4f", $NF }')" "$(sed -n 's/^test loss \([0-9.]*\).*/\1/p' "$work/out2")"
    for threads in 1 2; do
        "$work/lstm" generate --weights "$work/l.safetensors" --prompt 'the quick' --length 60 --threads $threads > "$work/t$threads"
    done
    cmp -s "$work/t1" "$work/t2" && ok || bad "char_lstm: another text on two threads"
    grep -Eq '^expected test_perplexity <= 25: [0-9.]+, met' "$work/out" && ok || bad "char_lstm: perplexity is not compared: $(tail -n 2 "$work/out")"
    same "char_lstm: perplexity" "$(field "$work/9.jsonl" epoch test_loss | awk '{ printf "%.4f", exp($NF) }')" "$(field "$work/9.jsonl" epoch test_perplexity | awk '{ printf "%.4f", $NF }')"
    same "char_lstm: perplexity of a test" "$(field "$work/9.jsonl" epoch test_loss | awk '{ printf "%.4g", exp($NF) }')" "$(sed -n 's/.*test perplexity //p' "$work/out2")"

    # Computing one token at a time, from stored states, equals computing the whole window.
    same "char_lstm: goes on" "generate: a token at a time" "$("$work/lstm" info | grep generate)"
    succeeds "char_lstm of long windows" "$TENON" build "$TENON_ROOT/models/char_lstm.tn" -o "$work/lstm_long" --set model.width=32 --set model.time=120 --set data.vocab=28
    go_on "$work/lstm" "$work/l.safetensors" 100
    # Ten times the tokens take about ten times the processor time: the time of a token does not grow with the text.
    seconds() { local TIMEFORMAT=%U; { time "$work/lstm" generate --weights "$work/l.safetensors" --length "$1" --threads 1 > "$work/went.long"; } 2>&1; }
    few=$(seconds 4000) many=$(seconds 40000)
    awk -v a="$few" -v b="$many" 'BEGIN { exit !(b < 20 * a + 0.2) }' && ok || bad "char_lstm: 4000 tokens took $few s, 40000 $many"
    go_on "$work/lstm_long" "$work/l.safetensors" 100 --anew
    cmp -s "$work/went.3" "$work/went.4" && ok || bad "char_lstm: a token at a time, another text than by whole windows"
    refuses "predict at every position" "--text is for programs that predict from texts: .*.generate. continues a text" "$work/lstm" predict --weights "$work/l.safetensors" --text 'the quick'
fi

if part networks; then
    # parts FILE BODY: a network with positions; all ways to compute a token
    parts() {
        printf 'model next(text: i32[time], vocab: int, time: int = 24) {\n    h = embedding(text, vocab, 16)\n%s\n    return dense(h, vocab)\n}\n' "$2" > "$1"
        sed -n '/^train/,/^}/p' "$work/next.tn" >> "$1"
    }
    parts "$work/gpt.tn" '    p = position(h) |> layer_norm |> dense(48) |> split(3, axis = -1)
    h = h + causal_attention(p[0], p[1], p[2], heads = 2)
    h = rms_norm(h) |> dense(32) |> gelu |> dense(16)'
    parts "$work/turned.tn" '    p = sinusoidal(h) |> dense(48) |> split(3, axis = -1)
    h = causal_attention(rotary(p[0], heads = 2), rotary(p[1], heads = 2), p[2], heads = 2, scale = 0.7)
    p = split(dense(h, 32), 2, axis = -1)
    h = concat([p[0] * softmax(p[1]), h], axis = -1)'
    parts "$work/own.tn" '    s = zeros(16)
    q = zeros(16)
    scan x in gru(h, 16, all = true), y in h {
        old = s
        s = tanh(dense(x, 16) + dense(s, 16)) * y
        q = old
        yield hs = s + 0.5 * q
    }
    h = rnn(hs, 16, all = true)'
    parts "$work/both.tn" '    h = lstm(h, 8, all = true, bidirectional = true)'
    parts "$work/none.tn" '    p = dense(h, 48) |> split(3, axis = -1)
    h = causal_attention(p[0], p[1], p[2], mask = "none") |> position'
    parts "$work/mixed.tn" '    h = h + (transpose(h, [1, 0]) |> dense(time) |> transpose([1, 0]))'
    networks="gpt own"
    ! deep "rotary and sinusoidal positions, a bidirectional lstm, attention without a mask, a product over time" || networks+=" both turned none mixed"
    for part in $networks; do
        succeeds "$part: build" "$TENON" build "$work/$part.tn" -o "$work/$part" --verify --dtype f64
        succeeds "$part: train" "$work/$part" --epochs 1 --limit-samples 64 --save "$work/$part.safetensors"
        case $part in gpt | turned) how=" a token at a time, 24 at most" ;; own) how=" a token at a time" ;; *) how= ;; esac
        same "$part: is known to look back only, or not" ".$how" ".$("$work/$part" info | sed -n 's/^generate://p')"
        go_on "$work/$part" "$work/$part.safetensors" 15
        go_on "$work/$part" "$work/$part.safetensors" 15 --anew
        cmp -s "$work/went.3" "$work/went.4" && ok || bad "$part: a token at a time, another text than by whole windows"
        go_on "$work/$part" "$work/$part.safetensors" 40
        same "$part: goes on behind the window" 50 "$(wc -c < "$work/went.3")"
        [ -n "$how" ] || continue
        succeeds "$part: plain" witness "$work/$part.tn" "$work/plain_$part" --dtype f64
        go_on "$work/plain_$part" "$work/$part.safetensors" 40 --threads 2
        cmp -s "$work/went.3" "$work/went.5" && ok || bad "$part: another text by the plain program"
    done
fi

if part reviews; then
    # Labelled lines.
    reviews() { # N: N lines, whose class is that of one of their words
        awk -v n="$1" 'BEGIN { srand(3); split("a film that was really about two people and their dog", w, " ");
        for (i = 0; i < n; i++) { t = ""; at = int(rand() * 9); for (k = 0; k < 9; k++) t = t (k == at ? (i % 2 ? "Great," : "awful...") : w[1 + int(rand() * 11)]) " ";
            printf "%d\t%d\t%d\t%s<br />\n", i % 2, i % 10, i, t } }'
    }
    mkdir "$work/small"
    reviews 1200 > "$work/small/small_train.tsv"
    reviews 400 | gzip > "$work/small/small_test.tsv.gz"
    model "$work/reviews.tn" "tsv(\"$work/small\", vocab = 20)" 2
    sed -i 's/time: int = 6/time: int = 12/' "$work/reviews.tn"
    succeeds "reviews: build" "$TENON" build "$work/reviews.tn" -o "$work/reviews"
    "$work/reviews" --save "$work/r.safetensors" --log "$work/6.jsonl" --threads 1 > "$work/out"
    grep -Eq 'test accuracy (1.0000|0.9[0-9]*)' "$work/out" && ok || bad "reviews are not learned: $(tail -1 "$work/out")"
    "$work/reviews" --log "$work/7.jsonl" --threads 2 > /dev/null
    same "reviews: two threads" "$(weights_of "$work/6.jsonl")" "$(weights_of "$work/7.jsonl")"
    printf 'a great film\nan awful one about people\n' > "$work/lines.txt"
    same "reviews: predicted" "1 0" "$("$work/reviews" predict --weights "$work/r.safetensors" --input "$work/lines.txt" | cut -f1 | tr '\n' ' ' | sed 's/ $//')"
    same "reviews: one of them" 1 "$("$work/reviews" predict --weights "$work/r.safetensors" --text 'a great film' | cut -f1)"
    "$work/reviews" predict --weights "$work/r.safetensors" --input "$work/lines.txt" --output "$work/rows.csv"
    same "reviews: a row each" 2 "$(awk -F, '$1 + $2 > 0.9999 && $1 + $2 < 1.0001' "$work/rows.csv" | wc -l)"
    refuses "an empty text to predict from" "--text is empty" "$work/reviews" predict --weights "$work/r.safetensors" --text ""
    refuses "reviews do not go on" "generate is for networks that say which token comes next" "$work/reviews" generate --weights "$work/r.safetensors"

    table=$work/small/small_train.tsv
    cp "$table" "$work/good.tsv"
    { printf '\xef\xbb\xbf'; cat "$work/good.tsv"; } > "$table"
    succeeds "a byte order mark in front of a table" "$work/reviews" --epochs 1 --save "$work/marked.safetensors"
    cp "$work/good.tsv" "$table"
    succeeds "the same table without" "$work/reviews" --epochs 1 --save "$work/bare.safetensors"
    cmp -s "$work/marked.safetensors" "$work/bare.safetensors" && ok || bad "a byte order mark changes the weights"
    sed '7s/.*/a line without a label/' "$work/good.tsv" > "$table"
    refuses "a line without a tab" "small_train.tsv:7: a line is a label, a tab and a text" "$work/reviews"
    sed '9s/^[01]/good/' "$work/good.tsv" > "$table"
    refuses "a label that is no number" "small_train.tsv:9: a line begins with the number of its class, not 'good'" "$work/reviews"
    sed '11s/^[01]/2/' "$work/good.tsv" > "$table"
    refuses "a class too many" "small_train.tsv:11: class 2 is out of range: the classes are 0 to 1" "$work/reviews"
    sed '12s/^[01]/99999999999999999999999999999999999999/' "$work/good.tsv" > "$table"
    refuses "a class of 38 digits" "small_train.tsv:12: class 9999999999999999999999999999[.]{3} is out of range: the classes are 0 to 1" "$work/reviews"
    sed '5s/film/f\xffilm/;5s/$/\xff/' "$work/good.tsv" > "$table"
    refuses "a line that is no UTF-8" "small_train.tsv:5: byte" "$work/reviews"
    rm "$table"
    refuses "no table" "holds no labelled texts: neither train.tsv nor small_train.tsv" "$work/reviews"

    if [ -n "$TENON_TEST_DATA" ] && [ -d "$TENON_TEST_DATA/imdb" ]; then
        model "$work/imdb.tn" 'tsv("imdb", vocab = 1000)' 2
        succeeds "imdb: build" "$TENON" build "$work/imdb.tn" -o "$work/imdb" --set model.time=80
        TENON_DATA=$TENON_TEST_DATA "$work/imdb" --epochs 1 --log "$work/8.jsonl" > "$work/out"
        same "imdb: 25,000 reviews" '"samples":25000' "$(grep -o '"samples":25000' "$work/8.jsonl" | head -1)"
    else
        skip "IMDB's reviews: TENON_TEST_DATA has no imdb/"
    fi
fi
finish
