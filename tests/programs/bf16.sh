#!/usr/bin/env bash
# bf16.sh -- bf16 programs for processors: the same bits for each --cpu that this machine can run, and for any number of threads, groups
# and ranks, also after a stop; losses near those of f32; files of f32; less memory; and the messages where bf16 is impossible.
#
# Parts: messages lenet attention memory
# Deep parts: loops blocks ranks models
set -euo pipefail
. "$(dirname "$0")/../common.sh"
small_mnist "$work/mnist" 256 16 || true

# The processors whose programs run here; the first one is that of --cpu native.
forms="generic"
has() { grep -qw -- "$1" /proc/cpuinfo; }
if [ "$(uname -m)" = x86_64 ]; then
    ! { has avx2 && has fma && has bmi2; } || forms="x86-64-v3 $forms"
    ! { has avx512f && has avx512bw && has avx512vl && has avx512dq && has avx512cd; } || forms="x86-64-v4 $forms"
fi

# ./check compiles for the widest vectors and for none; those between them take as long to compile as both.
[ "$CHECK_DEEP" = 1 ] || [ "$forms" = generic ] || forms="${forms%% *} generic"

# bits PROGRAM OPTIONS...: the hash of the weights and the losses of an epoch
bits() {
    rm -f "$work/log"
    "$@" --epochs 1 --log-steps 1 --log "$work/log" > "$work/out" 2>&1 || { tail -n 5 "$work/out"; return; }
    echo "$(hashes "$work/log")$(field "$work/log" step train_loss)"
}

# compile FILE PROGRAM OPTIONS...: a pointer of the wrong type is an error.  LeNet and the small networks have all converts.
compile() {
    local file=$1 program=$2; shift 2
    TENON_CFLAGS="${TENON_CFLAGS:-} -Werror=incompatible-pointer-types" "$TENON" build "$file" -o "$program" --verify "$@" > "$work/out" 2>&1 && return
    bad "tenon build $file $*"; tail -n 5 "$work/out"; finish; exit 1
}

# equal NAME FILE OPTIONS...: all forms give the bits of the first one, with two threads.  Sets $want.
equal() {
    local name=$1 file=$2 form; shift 2
    want=
    for form in $forms; do
        compile "$file" "$work/p-$form" --dtype bf16 --cpu "$form" ${build_options:-}
        if [ -z "$want" ]; then want=$(bits "$work/p-$form" --threads 1 "$@")
        else same "$name, $form" "$(bits "$work/p-$form" --threads 2 "$@")" "$want"; fi
    done
    same "$name has two records" "$(wc -w <<< "$want" | awk '{ print ($1 > 1) }')" 1
}

# by_tiles NAME FILE: the form for AMX, with its instructions in plain C, gives the bits $want
by_tiles() {
    [ "${forms%% *}" = x86-64-v4 ] || { skip "AMX needs AVX-512"; return; }
    TENON_CFLAGS="-fno-strict-aliasing -I$TENON_ROOT/runtime -include $TENON_ROOT/tests/programs/tiles.h" compile "$2" "$work/tiles" --dtype bf16 --cpu x86-64-v4
    same "$1, by tiles" "$(bits "$work/tiles" --threads 2)" "$want"
    [ "$(nm "$work/tiles" | grep -c bf16_product_tiles)" -gt 0 ] && ok || bad "$1: no product by tiles"
}

# near NAME BOUND A B: losses of two runs differ by at most BOUND of their size, and are not the same
near() {
    paste <(tr ' ' '\n' <<< "$3" | grep .) <(tr ' ' '\n' <<< "$4" | grep .) | awk -v bound="$2" '
        { d = $1 - $2; d = d < 0 ? -d : d; far += d > bound * $2; differ += d > 0; n++ }
        END { exit !(n > 0 && NF == 2 && !far && differ) }' && ok || bad "$1: losses $3 and $4"
}
losses() { cut -d ' ' -f 2- <<< "$1"; }

if part messages; then
    refuses "--plain" "needs Tenon's kernels, and this program uses reference kernels" "$TENON" build "$TENON_ROOT/models/mlp.tn" -o "$work/x" --dtype bf16 --plain
    refuses "--kernels=blas" "needs Tenon's kernels, and this program uses a BLAS library" "$TENON" build "$TENON_ROOT/models/mlp.tn" -o "$work/x" --dtype bf16 --kernels=blas
    refuses "--tune" "nothing to choose with --dtype bf16" "$TENON" build "$TENON_ROOT/models/mlp.tn" -o "$work/x" --dtype bf16 --tune
    refuses "f16" "needs NVIDIA's libraries, and this program is for the processor" "$TENON" build "$TENON_ROOT/models/mlp.tn" -o "$work/x" --dtype f16
    refuses "bf16 of the recipe" "needs Tenon's kernels" "$TENON" build "$TENON_ROOT/models/mlp.tn" -o "$work/x" --set dtype=bf16 --plain
    refuses "a script" "writes a script in f32 or f64, and the type is bf16" "$TENON" emit "$TENON_ROOT/models/mlp.tn" --to pytorch --dtype bf16
    [ ! -e "$work/x" ] && ok || bad "a program is written after an error"
    emitted() { "$TENON" emit "$TENON_ROOT/models/$1.tn" "${@:2}" | grep -v '\.cpu = \|\.flags = ' | cksum; }
    same "recipe and option" "$(emitted mlp --set dtype=bf16)" "$(emitted mlp --dtype bf16)"
    # the plan does not depend on the processor
    for model in mlp lenet resnet20_cifar10 lstm_synthetic gpt_char; do
        want=$(emitted $model --dtype bf16 --verify --cpu x86-64-v4)
        for form in x86-64-v3 armv8-a generic; do same "$model for $form" "$(emitted $model --dtype bf16 --cpu $form)" "$want"; done
    done
fi

if part lenet; then
    data=(--data "$work/mnist" --limit-samples 128)
    # LeNet's first and last layer: the mask of dense_dx is the result of a convolution in f32.
    model=$work/lenet.tn
    sed '/conv2d(h, 50/d; /dense(500)/d; s/return dense(h/return dense(flatten(h)/' "$TENON_ROOT/models/lenet.tn" > "$model"
    equal "two layers of lenet" "$model" "${data[@]}"
    if deep "LeNet"; then
        model=$TENON_ROOT/models/lenet.tn
        equal lenet "$model" "${data[@]}"
    fi
    first=$work/p-${forms%% *}
    for threads in 2 5; do same "$threads threads" "$(bits "$first" "${data[@]}" --threads $threads)" "$want"; done
    same "groups" "$(bits "$first" "${data[@]}" --groups 4 --threads 2)" "$want"
    grep -q "products and the values between them in bf16" <<< "$("$first" info)" && ok || bad "info: $("$first" info)"

    # Where bf16 is predicted to be slower than f32: build, start and info say by how much, with the prices of show --cost.
    total() { "$TENON" show "$TENON_ROOT/models/$1.tn" --cost --cpu x86-64-v4 "${@:2}" | awk '$1 == "total" { for (i = 1; i <= NF; i++) if ($i == "ms") print $(i - 1) }' | tail -n 1; }
    ratio() { awk -v bf16="$(total "$1" --dtype bf16)" -v f32="$(total "$1")" 'BEGIN { printf "%.1f", bf16 / f32 }'; }
    if [ "${forms%% *}" = x86-64-v4 ] && [ "$CHECK_DEEP" = 1 ]; then
        slower="in bf16, a step is predicted to take $(ratio lenet) times as long as in f32"
        compile "$TENON_ROOT/models/lenet.tn" "$work/said" --dtype bf16 --cpu x86-64-v4
        grep -q "warning: $slower on processors with AVX-512 and without AMX" "$work/out" && ok || bad "build does not say: $slower: $(cat "$work/out")"
        "$first" "${data[@]}" --epochs 1 --isa avx512 > "$work/out" 2>&1
        grep -q "$slower with AVX-512" "$work/out" && ok || bad "the start does not say: $slower"
        same "info of lenet" "$("$first" info --isa avx512 | grep "^time of a step")" "time of a step divided by that in f32: $(ratio lenet) predicted"
    fi

    # The instructions of products: --isa amx is an error on a machine without tiles; tiles and vectors have the same bits.
    if [ "${forms%% *}" = x86-64-v4 ]; then
        same "--isa avx512" "$(bits "$first" "${data[@]}" --isa avx512)" "$want"
        same "info --isa avx512" "$("$first" info --isa avx512 | grep '^products:')" "products: by AVX-512"
        if has amx_bf16; then
            same "--isa amx" "$(bits "$first" "${data[@]}" --isa amx)" "$want"
            same "info" "$("$first" info | grep '^products:')" "products: by tiles of AMX"
        else
            refuses "--isa amx" "this processor has no AMX, or the virtual machine hides it; leave it out, or choose --isa avx512" "$first" bench --isa amx
            same "info" "$("$first" info | grep '^products:')" "products: by AVX-512"
        fi
        refuses "--isa avx2" "--isa is amx, avx512 or avx512_bf16, not 'avx2'" "$first" info --isa avx2
    fi

    # --fast: products by AVX512_BF16 where this processor has it; the same bits for any number of threads, and near losses.
    if [ "${forms%% *}" = x86-64-v4 ] && has avx512_bf16 && deep "--fast"; then
        compile "$TENON_ROOT/models/lenet.tn" "$work/fast" --dtype bf16 --cpu x86-64-v4 --fast
        fast=$(bits "$work/fast" "${data[@]}" --isa avx512_bf16 --threads 1)
        same "--fast, 2 threads" "$(bits "$work/fast" "${data[@]}" --isa avx512_bf16 --threads 2)" "$fast"
        near "--fast" 0.002 "$(losses "$want")" "$(losses "$fast")"
        same "--fast --isa avx512" "$(bits "$work/fast" "${data[@]}" --isa avx512)" "$want"
        same "info of --fast" "$("$work/fast" info --isa avx512_bf16 | grep '^products:')" "products: by AVX512_BF16, with bits of its own"
        # A checkpoint of the one form, resumed by the other: the start says that the last bits will differ.
        other() { "$work/fast" "${data[@]}" --epochs "$2" --checkpoint "$work/isa" --isa "$1" --threads 2 "${@:3}" 2>&1; }
        other avx512_bf16 1 > /dev/null
        same "resumed by AVX-512" "$(other avx512 2 --resume | grep -c "with products by AVX512_BF16, and this run computes them by AVX-512 or AMX: .* will differ; --isa avx512_bf16 ")" 1
        same "resumed by AVX-512 again" "$(other avx512 3 --resume | grep -c "will differ")" 0
        same "resumed by AVX512_BF16" "$(other avx512_bf16 4 --resume | grep -c "with products by AVX-512 or AMX, and this run computes them by AVX512_BF16: .* will differ; --isa avx512 ")" 1
        refuses "--isa avx512_bf16 without --fast" "build it with --fast" "$first" info --isa avx512_bf16
    fi

    # A stop between two epochs.
    rm -f "$work/log"
    "$first" "${data[@]}" --epochs 2 --threads 2 --log "$work/log" > /dev/null
    whole=$(hashes "$work/log")
    "$first" "${data[@]}" --epochs 1 --threads 2 --checkpoint "$work/c" > /dev/null
    "$first" "${data[@]}" --epochs 2 --threads 2 --checkpoint "$work/c" --resume --log "$work/rest" > /dev/null 2>&1
    same "the second epoch after a stop" "$(hashes "$work/rest")" "$(cut -d ' ' -f 2 <<< "$whole") "

    # f32: near losses, more memory, and the same files.
    "$TENON" build "$model" -o "$work/f32" --cpu "${forms%% *}"
    near "lenet beside f32" 0.002 "$(losses "$want")" "$(losses "$(bits "$work/f32" "${data[@]}" --threads 2)")"
    [ "${forms%% *}" != x86-64-v4 ] || refuses "--isa of f32" "is for programs in bf16 for x86-64-v4: build with --dtype bf16" "$work/f32" info --isa avx512
    "$first" "${data[@]}" --epochs 1 --save "$work/w.safetensors" > /dev/null
    succeeds "f32 reads weights of bf16" "$work/f32" "${data[@]}" --epochs 1 --weights "$work/w.safetensors"
    "$work/f32" "${data[@]}" --epochs 1 --save "$work/f32.safetensors" > /dev/null
    same "bytes of the file" "$(stat -c %s "$work/w.safetensors")" "$(stat -c %s "$work/f32.safetensors")"
    succeeds "bf16 reads weights of f32" "$first" "${data[@]}" --epochs 1 --weights "$work/f32.safetensors"
fi

# trained MODEL: prints its train block, an epoch of two steps
trained() {
    cat <<END
train $1 {
    data      = synthetic(samples = 64, test_samples = 16, classes = 3)
    loss      = softmax_cross_entropy
    optimizer = sgd(lr = 0.1)
    batch     = 32
    shards    = 4
    epochs    = 1
}
END
}
# resumes NAME: the second epoch of $first has the same bits after a stop
resumes() {
    local whole
    rm -f "$work/log"
    "$first" --epochs 2 --threads 2 --log "$work/log" > /dev/null
    whole=$(hashes "$work/log")
    "$first" --epochs 1 --threads 2 --checkpoint "$work/$1" > /dev/null
    "$first" --epochs 2 --threads 1 --checkpoint "$work/$1" --resume --log "$work/rest.$1" > /dev/null 2>&1
    same "$1, the second epoch after a stop" "$(hashes "$work/rest.$1")" "$(cut -d ' ' -f 2 <<< "$whole") "
}
# network BODY: writes a network over sequences to looped.tn
network() {
    cat > "$work/looped.tn" <<END
model looped(x: f32[time, features], time: int = 9, features: int = 5, width: int = 37) {
$1
}
$(trained looped)
END
}
# every_loop RECOMPUTE: each recurrent layer, and a scan with two states, of which a product reads one
every_loop() {
    network "
    h = lstm(x, width, all = true, bidirectional = true$1)
    h = gru(h, width, all = true$1) |> gru(width, reset = \"before\", all = true$1) |> rnn(width, all = true, activation = \"relu\"$1)
    s = zeros(width)
    c = zeros(width)
    scan step in h${1:+ recompute = every 4} {
        c = 0.5 * c + tanh(dense(concat(step, s, axis = 0), width))
        s = relu(dense(c, width)) + 0.1 * s
    }
    return dense(concat(s, c, axis = 0), 3)"
}
if part loops; then
    if [ "$CHECK_DEEP" = 1 ]; then every_loop ""; else network "return dense(lstm(x, width), 3)"; fi
    equal looped "$work/looped.tn"
    first=$work/p-${forms%% *}
    same "looped, 5 threads" "$(bits "$first" --threads 5)" "$want"
    same "looped, groups" "$(bits "$first" --groups 4 --threads 2)" "$want"
    resumes looped
    same "looped, info" "$("$first" info | grep -c "^flops in bf16: [0-9]*, 100.0 %$")" 1
    # Every product of these networks has factors in bf16.
    for model in lstm_synthetic lstm_imdb lstm_text char_lstm gru_imdb; do
        "$TENON" emit "$TENON_ROOT/models/$model.tn" --dtype bf16 --cpu x86-64-v4 > "$work/looped.c"
        same "$model: products in f32" "$(grep -c '^    dense[a-z_]*(\|^    matmul' "$work/looped.c")" 0
        grep -q '^    bf16_dense_dx_f32(' "$work/looped.c" && ok || bad "$model: no product of a loop in bf16"
        flops() { sed -n "s/.*\.flops_$1 = \([0-9]*\),.*/\1/p" "$work/looped.c"; }
        same "$model: FLOPs in bf16" "$(flops half)" "$(flops per_sample)"
    done
fi
if part loops && deep "loops: beside f32, with recomputed values, and texts"; then
    compile "$work/looped.tn" "$work/f32" --cpu "${forms%% *}"
    near "looped beside f32" 0.01 "$(losses "$want")" "$(losses "$(bits "$work/f32")")"
    by_tiles looped "$work/looped.tn"
    every_loop ", recompute = 4"
    compile "$work/looped.tn" "$work/again" --dtype bf16 --cpu "${forms%% *}"
    same "looped, recomputed" "$(bits "$work/again")" "$want"
    cat > "$work/looped.tn" <<'END'
model looped(text: i32[time], vocab: int, time: int = 40) {
    h = embedding(text, vocab, 20) |> lstm(24, all = true) |> gru(20, all = true)
    s = zeros(19)
    scan x in h {
        p = relu(dense(x, 19))
        s = tanh(dense(concat(p, s, axis = 0), 19) + p * s) + 0.5 * s
        yield y = s
    }
    return dense(relu(y), vocab)
}
train looped {
    data      = text("$TENON_TEXT", unit = "char", vocab = 40, step = 3)
    loss      = softmax_cross_entropy
    optimizer = adam(lr = 0.01)
    batch     = 16
}
END
    for i in {1..200}; do echo "$i times $((i * i)), a line of text with a number;"; done > "$work/looped.txt"
    sed -i "s|\$TENON_TEXT|$work/looped.txt|" "$work/looped.tn"
    compile "$work/looped.tn" "$work/text" --dtype bf16
    "$work/text" --epochs 1 --limit-samples 320 --save "$work/text.safetensors" > /dev/null 2>&1
    for seed in 1 2 3; do
        words() { "$work/text" generate --weights "$work/text.safetensors" --length 36 --seed $seed "$@" | cksum; }
        same "looped, text $seed token by token" "$(words)" "$(words --anew)"
    done
fi

# heads MASK: a head has 37 features, and the sequence 37 steps
heads() {
    cat > "$work/heads.tn" <<END
model heads(x: f32[time, features], time: int = 37, features: int = 9, width: int = 74) {
    p = dense(x, 3 * width) |> split(3, axis = -1)
    h = causal_attention(p[0], p[1], p[2], heads = 2, mask = "$1")
    return flatten(h) |> dense(3)
}
$(trained heads)
END
}
# ./check runs one form here: tests/kernels/test_bf16.c compares each form of attention with its definition.
if part attention; then
    heads causal
    first=$work/p-${forms%% *}
    if [ "$CHECK_DEEP" = 1 ]; then equal heads "$work/heads.tn"
    else compile "$work/heads.tn" "$first" --dtype bf16 --cpu "${forms%% *}"; want=$(bits "$first" --threads 1); fi
    same "heads has two records" "$(wc -w <<< "$want" | awk '{ print ($1 > 1) }')" 1
    for threads in 2 5; do same "heads, $threads threads" "$(bits "$first" --threads $threads)" "$want"; done
    same "heads, groups" "$(bits "$first" --groups 4 --threads 2)" "$want"
    resumes heads
    if [ "${forms%% *}" = x86-64-v4 ]; then # no message where bf16 is about as fast
        compile "$work/heads.tn" "$work/said" --dtype bf16 --cpu x86-64-v4
        same "info of heads" "$("$first" info --isa avx512 | grep -c "^time of a step divided by that in f32: [01]\.[0-9] predicted")" 1
        same "heads: warnings" "$(grep -c warning "$work/out")" 0
    fi
    "$TENON" emit "$TENON_ROOT/models/gpt_char.tn" --dtype bf16 --cpu x86-64-v4 > "$work/gpt.c"
    of_gpt() { sed -n "s/.*\.flops_$1 = \([0-9]*\),.*/\1/p" "$work/gpt.c"; }
    same "gpt_char: FLOPs in bf16" "$(of_gpt half)" "$(of_gpt per_sample)"
    same "gpt_char: attention in f32" "$(grep -c '^    attention' "$work/gpt.c")" 0
fi
if part attention && deep "attention: by tiles, beside f32, without a mask, and texts"; then
    by_tiles heads "$work/heads.tn"
    compile "$work/heads.tn" "$work/f32" --cpu "${forms%% *}"
    near "heads beside f32" 0.01 "$(losses "$want")" "$(losses "$(bits "$work/f32")")"
    heads none
    equal "heads without a mask" "$work/heads.tn"
    by_tiles "heads without a mask" "$work/heads.tn"
    for i in {1..200}; do echo "$i times $((i * i)), a line of text with a number;"; done > "$work/gpt.txt"
    cat > "$work/gpt.tn" <<END
model gpt(text: i32[time], vocab: int, width: int = 48, time: int = 150) {
    h = embedding(text, vocab, width) |> position
    p = dense(h, 3 * width) |> split(3, axis = -1)
    h = h + dense(causal_attention(p[0], p[1], p[2], heads = 3), width)
    p = dense(h, 3 * width) |> split(3, axis = -1)
    h = h + causal_attention(rotary(p[0], heads = 2), rotary(p[1], heads = 2), p[2], heads = 2)
    return dense(h, vocab)
}
train gpt {
    data      = text("$work/gpt.txt", unit = "char", vocab = 40, step = 30)
    loss      = softmax_cross_entropy
    optimizer = adam(lr = 0.01)
    batch     = 16
}
END
    equal gpt "$work/gpt.tn"
    by_tiles gpt "$work/gpt.tn"
    cp "$first" "$work/text"
    "$work/text" --epochs 2 --save "$work/gpt.safetensors" > /dev/null 2>&1
    for seed in 1 2 3; do
        words() { "$work/text" generate --weights "$work/gpt.safetensors" --length 140 --seed $seed "$@" | cksum; }
        same "gpt, text $seed token by token" "$(words)" "$(words --anew)"
    done
fi

# All converts: a concat, pools, normalisations, dropout, groups, few channels, and a loop over time with attention.
if part blocks && deep "networks with an operation of each kind"; then
    equal narrow "$TENON_ROOT/tests/cuda/narrow.tn"
    compile "$TENON_ROOT/tests/cuda/narrow.tn" "$work/f32" --cpu "${forms%% *}"
    near "narrow beside f32" 0.01 "$(losses "$want")" "$(losses "$(bits "$work/f32")")"
    equal sequence "$TENON_ROOT/tests/cuda/sequence.tn"
    by_tiles sequence "$TENON_ROOT/tests/cuda/sequence.tn"
    "$TENON" emit "$TENON_ROOT/tests/cuda/sequence.tn" --dtype bf16 --cpu x86-64-v4 > "$work/looped.c"
    same "sequence: matmul in bf16 and in f32" "$(grep -c '^    bf16_matmul' "$work/looped.c") $(grep -c '^    matmul' "$work/looped.c")" "3 0"
    equal geometry "$TENON_ROOT/tests/cuda/geometry.tn"
fi
# Filters of more than 1 MB over few positions: gradient and update are one kernel, also in groups of ranks.
if part blocks && deep "filters that are updated with their gradient"; then
    for norm in "" "|> batch_norm"; do
        cat > "$work/filters.tn" <<END
model filters(image: f32[20, 4, 4]) {
    h = conv2d(image, 64, kernel = 3, pad = 1) $norm |> relu
    h = conv2d(h, 560, kernel = 3, stride = 2, pad = 1) $norm |> relu
    h = conv2d(h, 520, kernel = 1, bias = false)
    return flatten(relu(h)) |> dense(3)
}
$(trained filters)
END
        [ -z "$norm" ] || sed -i 's/shards    = 4/shards    = 1/' "$work/filters.tn"
        equal "filters $norm" "$work/filters.tn"
        by_tiles "filters $norm" "$work/filters.tn"
        [ -n "$norm" ] || same "filters, groups" "$(bits "$work/p-${forms%% *}" --groups 4 --threads 2)" "$want"
        "$TENON" emit "$work/filters.tn" --dtype bf16 --cpu x86-64-v4 > "$work/filters.c"
        same "filters $norm: kernels with the update" "$(grep -c '^    bf16_conv2d_dw_update(' "$work/filters.c")" 2
    done
fi

# planned MODEL OPTIONS...: kilobytes of the plan
planned() {
    local model=$1; shift
    "$TENON" show "$TENON_ROOT/models/$model.tn" --cpu x86-64-v4 "$@" | awk '$1 == "planned" { print int($2 * ($3 == "GB" ? 1e6 : $3 == "MB" ? 1e3 : 1)) }'
}
if part memory; then
    for model in resnet20_cifar10 resnet56_cifar10; do
        f32=$(planned $model) bf16=$(planned $model --dtype bf16)
        [ "${bf16:-0}" -gt 0 ] && [ "$bf16" -lt "${f32:-0}" ] && ok || bad "$model: $bf16 kB in bf16, $f32 kB in f32"
    done
fi

# Several processes, with the bits of one.
if part ranks && deep "ranks"; then
    if command -v mpicc > /dev/null && command -v mpirun > /dev/null; then
        export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
        export OMPI_MCA_btl_vader_single_copy_mechanism=none
        compile "$TENON_ROOT/models/mlp.tn" "$work/mpi" --dtype bf16 --comm mpi --shards 4
        data=(--data "$work/mnist" --limit-samples 256)
        want=$(bits "$work/mpi" "${data[@]}" --threads 1)
        for ranks in 2 4; do same "$ranks ranks" "$(bits timeout -k 5 120 mpirun -n $ranks --bind-to none "$work/mpi" "${data[@]}" --threads 1)" "$want"; done
    else
        skip "no mpicc and mpirun"
    fi
fi

# Shipped models, a step each where a step is long.
if part models && deep "shipped models on each processor"; then
    small_cifar "$work/cifar" 40 20
    build_options="--batch 32" equal resnet20 "$TENON_ROOT/models/resnet20_cifar10.tn" --data "$work/cifar" --limit-samples 64
    equal mlp "$TENON_ROOT/models/mlp.tn" --data "$work/mnist"
    build_options="--set data.samples=128 --set data.test_samples=32 --batch 64" equal lstm_synthetic "$TENON_ROOT/models/lstm_synthetic.tn"
    # Token by token, a text is that of whole windows: a state has the same type in both graphs.
    compile "$TENON_ROOT/models/char_lstm.tn" "$work/text" --dtype bf16
    "$work/text" --epochs 1 --limit-samples 64 --save "$work/text.safetensors" > /dev/null 2>&1
    words() { "$work/text" generate --weights "$work/text.safetensors" --length 40 --seed 1 "$@" | cksum; }
    same "a text, token by token" "$(words)" "$(words --anew)"
fi
finish
