#!/usr/bin/env bash
# emitted.sh -- scripts of `tenon emit --to pytorch`, `--to keras` and `--to mxnet`: the scripts of all models are valid Python; from the
# same weights and batches, a framework's losses equal Tenon's in each step, in f64.
#
#   TENON_TORCH=PYTHON   an interpreter with torch and numpy (default: python3); without it the losses are skipped
#   TENON_KERAS=PYTHON   an interpreter with keras and at least one of tensorflow, jax, torch
#   TENON_MXNET=PYTHON   an interpreter with mxnet 1.9
#   TENON_LIMIT=SECONDS  how long a script may take (default 300), for a busy machine
set -euo pipefail
. "$(dirname "$0")/../common.sh"
torch=${TENON_TORCH:-python3} keras=${TENON_KERAS:-python3} mxnet=${TENON_MXNET:-python3}
export PYTHONDONTWRITEBYTECODE=1

for to in pytorch keras mxnet; do
    mkdir "$work/$to"
    for model in $(shipped_models) "$TENON_ROOT"/models/mobilenet_v2.tn; do
        name=$(basename "$model" .tn)
        "$TENON" emit "$model" --to $to -o "$work/$to" > /dev/null 2> "$work/err" && continue
        grep -q "error: --to $to" "$work/err" && ok || bad "$name: $(head -n 1 "$work/err")"
    done
    for name in lenet resnet56_cifar10 mobilenet_v2; do
        [ -s "$work/$to/$name.py" ] && ok || bad "$name has no script for $to"
    done
    if ! command -v python3 > /dev/null; then skip "scripts for $to: no python3"
    elif python3 -c 'import ast, sys; [ast.parse(open(f).read(), f) for f in sys.argv[1:]]' "$work/$to"/*.py 2> "$work/err"; then ok
    else bad "no Python: $(tail -n 4 "$work/err")"; fi
done

# Dropout of whole channels uses the framework's layer for that, not dropout of single numbers.
cat > "$work/channels.tn" <<'TN'
model channels(x: f32[2, 5, 5]) { return conv2d(x, 4, kernel = 3) |> dropout2d(0.2) |> flatten |> dense(3) }
train channels { data = synthetic(samples = 64, classes = 3); loss = softmax_cross_entropy; optimizer = sgd(lr = 0.1); batch = 16 }
TN
while IFS='|' read -r to line; do
    "$TENON" emit "$work/channels.tn" --to $to > "$work/script"
    grep -qF "$line" "$work/script" && ok || bad "dropout2d for $to: no line with $line"
done <<'LINES'
pytorch|F.dropout2d(self.conv1(x), 0.2, self.training)
keras|self.spatial1 = layers.SpatialDropout2D(0.2)
keras|self.spatial1(self.conv1(x), training=training)
mxnet|self.spatial1 = nn.Dropout(0.2, axes=(2, 3))
LINES

# The result of a block, which a transposed convolution reads behind its weights.
cat > "$work/up.tn" <<'TN'
block half(x) { return conv2d(x, 8, kernel = 2, stride = 2) |> relu }
model up(image: f32[3, 8, 8]) { return half(image) |> conv_transpose2d(4, kernel = 2, stride = 2) |> global_avg_pool |> dense(3) }
train up { data = synthetic(samples = 64, classes = 3); loss = softmax_cross_entropy; optimizer = sgd(lr = 0.1); batch = 16 }
TN
for to in pytorch keras; do
    succeeds "a block before a transposed convolution for $to" "$TENON" emit "$work/up.tn" --to $to
    grep -q "self.conv1(self.half1(image" "$work/out" && ok || bad "the block for $to: $(grep half1 "$work/out")"
done

# Names that a script defines differ from those of the model; names of a framework's classes are refused.
cat > "$work/names.tn" <<'TN'
model names(x: f32[6]) {
    dropout1 = dense(x, 5)
    output   = dense(dropout1, 4)
    half     = dense(output, 4)
    return dropout(half, 0.3)
}
train names { data = synthetic(samples = 64, classes = 4); loss = softmax_cross_entropy; optimizer = sgd(lr = 0.1); batch = 16 }
TN
"$TENON" emit "$work/names.tn" --to mxnet > "$work/script"
grep -qF "self.dropout2 = nn.Dropout(0.3)" "$work/script" && ok || bad "the name dropout1 is taken: $(grep Dropout "$work/script")"
refuses "a layer called half for pytorch" "names.tn:4:[0-9]+: error: --to pytorch has another meaning for 'half'" "$TENON" emit "$work/names.tn" --to pytorch
refuses "a layer called output for keras" "names.tn:3:[0-9]+: error: --to keras has another meaning for 'output'" "$TENON" emit "$work/names.tn" --to keras

# Names that Python cannot have: variables and classes get another name, layers and blocks are refused.
python=$(python3 -c 'import keyword; print(*keyword.kwlist)' 2> /dev/null || echo False None True and as assert async await break class continue def \
    del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield)
for word in $python; do
    printf 'model none(x: f32[6]) { %s = x * 2; y = dense(%s + tanh(%s), 4); f = dense(y, 4); return bias(f) }\n' "$word" "$word" "$word" > "$work/word.tn"
    "$TENON" check "$work/word.tn" > /dev/null 2>&1 || continue         # a keyword of Tenon, too
    printf 'train none { data = synthetic(samples = 64, classes = 4); loss = softmax_cross_entropy; optimizer = sgd(lr = 0.1); batch = 16 }\n' >> "$work/word.tn"
    "$TENON" emit "$work/word.tn" --to pytorch > "$work/script"
    grep -Eq "^ *(class )?$word( =|\()" "$work/script" && bad "$word is a variable of Python" || ok
    grep -qF 'model = None_()' "$work/script" && ok || bad "the class of the model none: $(grep 'model = ' "$work/script")"
    sed -i "s/ y = dense/ h = x * 2; $word = dense/; s/dense(y/dense($word/; s/{ $word = x/{ z = x/; s/($word + tanh($word)/(z + tanh(z)/" "$work/word.tn"
    for to in pytorch keras mxnet; do
        refuses "a layer called $word for $to" "word.tn:1:[0-9]+: error: --to $to cannot write '$word', a keyword of Python" "$TENON" emit "$work/word.tn" --to $to
    done
done
cat > "$work/net.tn" <<'TN'
block net_(x) { a = dense(x, 4); return a * 2 }
model net(x: f32[6]) { net = net_(x); return dense(net, 3) }
train net { data = synthetic(samples = 64, classes = 3); loss = softmax_cross_entropy; optimizer = sgd(lr = 0.1); batch = 16 }
TN
"$TENON" emit "$work/net.tn" --to pytorch > "$work/script"
grep -A 6 '^class Net(' "$work/script" | grep -q 'self.net = Net2()' && ok || bad "a block with the name of its model: $(grep Net "$work/script")"

# A pooling whose padding no framework has, with padded rows not counted.
cat > "$work/pool.tn" <<'TN'
model pool(x: f32[2, 9, 9]) { return avg_pool(x, 2, pad = "same") |> flatten |> dense(3) }
train pool { data = synthetic(samples = 64, classes = 3); loss = softmax_cross_entropy; optimizer = sgd(lr = 0.1); batch = 16 }
TN
for to in pytorch mxnet; do
    refuses "padding behind alone, for $to" "pool.tn:1:[0-9]+: error: --to $to cannot write avg_pool" "$TENON" emit "$work/pool.tn" --to $to
done

# Poolings with padding at the end only, or over half of a window; attention to earlier positions only; a value with
# more than eight readers.
cat > "$work/picky.tn" <<'TN'
model picky(image: f32[1, 28, 28]) {
    h = conv2d(image, 4, kernel = 3, stride = 2) |> tanh
    a = max_pool(h, 2, pad = "same") + avg_pool(h, 2, pad = "same", count_include_pad = true)
    b = max_pool(h, 3, stride = 1, pad = 2)
    s = softmax(3 * h - 1, mask = "causal")
    t = softmax(reshape(s, [52, 13]) |> dense(52), mask = "causal")
    g = reshape(slice(image, axis = 1, start = 8, size = 6), [6, 28]) |> dense(8)
    u = softmax(dense(g, 6), mask = "causal")
    v = sign(g) + softplus(g) + relu6(g) + 1 / (2 + g * g) + min(g, 0.5) + max(g, -0.5) - g
    w = 2 ** g + (g * g + 1) ** 0.5
    r = g * mean(g, axes = [1], keep = true) + sum(g, axes = [0], keep = true)
    head = dense(concat(flatten(v), flatten(w), flatten(r), flatten(u)), 10)
    return head + dense(concat(flatten(a), flatten(b), flatten(t)), 10) + flatten(amax(g, axes = [0, 1], keep = true))
}
train picky {
    data      = mnist
    loss      = softmax_cross_entropy
    optimizer = adam(lr = 0.002)
    batch     = 16
    epochs    = 2
}
TN

# A long expression gets a variable; no other variable may take its name while a later line still reads it.
cat > "$work/lines.tn" <<'TN'
model lines(x: f32[6, 4]) {
    h = dense(x, 4)
    one = dense(concat(flatten(exp(h)), flatten(tanh(h)), flatten(abs(h)), flatten(relu(h)), flatten(sigmoid(h))), 3)
    return one + dense(concat(flatten(softplus(h)), flatten(square(h)), flatten(-h), flatten(erf(h)), flatten(h)), 3) + dense(flatten(h), 3)
}
train lines { data = synthetic(samples = 64, classes = 3); loss = softmax_cross_entropy; optimizer = sgd(lr = 0.1); batch = 16 }
TN
for to in pytorch keras mxnet; do
    "$TENON" emit "$work/lines.tn" --to $to > "$work/script"
    grep -Eq 'self.one\(h2\) \+ self.dense1\(h3\)' "$work/script" && ok || bad "lines for $to: $(grep -E 'return.*dense1|h[0-9]* =' "$work/script")"
done

# Choices by value.
cat > "$work/drawn_choices.tn" <<'TN'
model drawn_choices(x: f32[6, 4]) {
    h = dense(x, 4)
    a = where(h > 0.1, sin(h), 0.5 * cos(h)) * (0.3 <= h) + clamp(h, -0.4, 0.6)
    b = where(h < x, x, 0) * (h != 0) * stop_gradient(h) + (h >= x) * h - (h == x)
    c = cumsum(h, axis = 0) - cumsum(h, reverse = true)
    return dense(concat(flatten(a + b + c), argmax(h), argmax(x, axis = 0)), 3)
}
train drawn_choices { data = synthetic(samples = 80, test_samples = 40, classes = 3); loss = softmax_cross_entropy; optimizer = sgd(lr = 0.1); batch = 16 }
TN

# Random numbers: the script draws those of the program, by normal_numbers.py.
cat > "$work/drawn_noise.tn" <<'TN'
model drawn_noise(x: f32[11]) {
    h = dense(x, 9) |> tanh
    y = dense(normal_like(h) * h + 0.5 * h, 7)
    return dense(y * (1 + 0.1 * normal_like(y)), 3)
}
train drawn_noise { data = synthetic(samples = 80, test_samples = 40, classes = 3); loss = softmax_cross_entropy; optimizer = sgd(lr = 0.1); batch = 16 }
TN

# Attention between two sequences, with a mask of the keys, and products of two values.
cat > "$work/drawn_asked.tn" <<'TN'
model drawn_asked(text: i32[7], vocab: int) {
    h = embedding(text, vocab, 6)
    q = dense(flatten(h), 12) |> reshape([3, 4])
    a = attention(q, dense(h, 4), dense(h, 8), heads = 2, mask = mask(text, padding = 2))
    b = matmul(h, tanh(h), transpose_a = true) |> matmul(dense(transpose(h, [1, 0]), 5))
    return dense(concat(flatten(a), flatten(b)), 3)
}
train drawn_asked { data = synthetic(samples = 80, test_samples = 40, classes = 3, vocab = 5); loss = softmax_cross_entropy; optimizer = sgd(lr = 0.1); batch = 16 }
TN

# Recurrent layers with masks; masks of other numbers than 0 and 1, for PyTorch.
cat > "$work/drawn_words.tn" <<'TN'
model drawn_words(text: i32[7], vocab: int) {
    words = mask(text, padding = 2)
    masked = words * (reshape(mean(embedding(text, vocab, 3), axes = [1]), [7]) > 0)
    h = embedding(text, vocab, 6) |> gru(5, all = true, bidirectional = true, mask = words)
    last = lstm(h, 4, mask = words) + rnn(h, 2, bidirectional = true, mask = masked) + gru(h, 4, mask = masked)
    free = lstm(h, 4, all = true, mask = masked) |> lstm(3, all = true) |> gru(4)
    return dense(flatten(lstm(h, 3, layers = 2, all = true, bidirectional = true, mask = masked)), 3) + dense(last, 3) + dense(free, 3)
}
train drawn_words { data = synthetic(samples = 80, test_samples = 40, classes = 3, vocab = 5); loss = softmax_cross_entropy; optimizer = sgd(lr = 0.1); batch = 16 }
TN
cat > "$work/drawn_shares.tn" <<'TN'
model drawn_shares(x: f32[6, 4]) {
    share = sigmoid(reshape(dense(x, 1), [6]))
    h = lstm(x, 5, all = true, bidirectional = true, mask = share) |> gru(4, all = true, mask = share)
    return dense(rnn(h, 3, activation = "relu", mask = share), 3)
}
train drawn_shares { data = synthetic(samples = 80, test_samples = 40, classes = 3); loss = softmax_cross_entropy; optimizer = sgd(lr = 0.1); batch = 16 }
TN
refuses "a mask of any numbers for keras" "drawn_shares.tn:3:9: error: --to keras cannot write lstm" "$TENON" emit "$work/drawn_shares.tn" --to keras
refuses "a mask for mxnet" "error: --to mxnet cannot write gru" "$TENON" emit <(sed 's/x, 5, all = true, bidirectional = true, mask = share/x, 5, all = true/' "$work/drawn_shares.tn") --to mxnet

# One block called several times, one call inside of another, and a block in it.
cat > "$work/drawn_calls.tn" <<'TN'
op softer(x) = x / (1 + abs(x))
block inner(x, width: int) { return dense(x, width) |> softer }
block tower(x, side) {
    h = inner(x + side, 5)
    return dense(h, 6) |> layer_norm
}
model drawn_calls(x: f32[6], classes: int = 3) {
    both = tower()
    return dense(abs(both(x, tanh(x)) - both(both(2 * x, x), dense(x, 6))), classes)
}
train drawn_calls { data = synthetic(samples = 80, test_samples = 40); loss = softmax_cross_entropy; optimizer = sgd(lr = 0.1); batch = 16 }
TN
"$TENON" emit "$work/drawn_calls.tn" --to pytorch > "$work/script"
same "the class of a block that is called three times" "$(grep -cE '^class (Tower|Inner)\(' "$work/script") $(grep -o 'self.both(' "$work/script" | wc -l)" "2 3"
cat > "$work/sizes.tn" <<'TN'
block part(x) { return conv2d(x, 2, kernel = 2, stride = 2, pad = "same") |> global_avg_pool }
model sizes(image: f32[1, 8, 8]) {
    p = part()
    return dense(p(image) + p(crop(image, [7, 7])), 3)
}
train sizes { data = synthetic(samples = 64, classes = 3); loss = softmax_cross_entropy; optimizer = sgd(lr = 0.1); batch = 16 }
TN
refuses "calls of a block that need two classes" "sizes.tn:1:.* error: --to pytorch cannot write the calls of p as one class" "$TENON" emit "$work/sizes.tn" --to pytorch
sed 's/image: f32\[1, 8, 8\]/image: f32[1, 8, 8], also: f32[4]/; s/return dense(p(image).*/return dense(p(image), 12) + dense(also, 12) |> reshape([4, 3])/; s/loss = /target = spots: class[4]; loss = /' "$work/sizes.tn" > "$work/spots.tn"
refuses "synthetic inputs with a class for each position" "--to pytorch makes no synthetic data of several inputs with a class" "$TENON" emit "$work/spots.tn" --to pytorch

# A constant with a shape is a number in a script, which has none.
for body in 'concat(dense(x, 4), zeros(4) + 0.5)' 'sum(dense(x, 1) + zeros(4), axes = [0], keep = true)' 'dense(x, 4) + softmax(zeros(4))' \
    'dense(x, 4) + relu(zeros(4))' 'dense(x, 4) + (zeros(4) < 1)' 'where(zeros(6) > 1, x, 2 * x)' 'where(zeros(6), x, 2 * x)'; do
    printf 'model still(x: f32[6]) { return %s |> dense(3) }\n' "$body" > "$work/still.tn"
    echo 'train still { data = synthetic(samples = 64, classes = 3); loss = softmax_cross_entropy; optimizer = sgd(lr = 0.1); batch = 16 }' >> "$work/still.tn"
    for to in pytorch keras mxnet; do
        refuses "$body for $to" "still.tn:1:[0-9]+: error: --to $to cannot write .+ of a value that depends on no input" "$TENON" emit "$work/still.tn" --to $to
    done
done
sed -i 's/return .* |> dense(3)/return dense(tanh(x) + zeros(6) + 0.5, 3)/' "$work/still.tn"
succeeds "a constant of the shape of the other operand" "$TENON" emit "$work/still.tn" --to pytorch

# A sign binds less tightly than a power.
cat > "$work/power.tn" <<'TN'
model power(x: f32[6]) { return dense(x, 5) }
train power {
    data      = synthetic(samples = 80)
    loss      = softmax_cross_entropy(output, label) ** 2
    optimizer = sgd(lr = 0.1)
    batch     = 16
}
TN
"$TENON" emit "$work/power.tn" --to mxnet > "$work/script"
grep -qF 'return (-F.pick(F.log_softmax(output), label)) ** 2' "$work/script" && ok || bad "a power of a loss: $(grep pick "$work/script")"

# Formulas, reductions, crops, pads, shared layers, nested blocks, factors, clipping, a loss given as a formula.
cat > "$work/odd.tn" <<'TN'
block inner(x, width: int) {
    y = conv2d(x, width, kernel = [3, 1], stride = 2, pad = "same") |> batch_norm(momentum = 0.8, epsilon = 1e-3, scale = false) |> gelu
    return concat(y, amax(y, axes = [0], keep = true), max(y, 0.1 * y) - y ** 2 / (1 + abs(y)))
}
block outer(x) {
    a = inner(x, 3)
    b = inner(x, 3) + a
    return inner(crop(pad(b, 1, [2, 1]), [10, 12]), 4) * mean(b, axes = [0, 1, 2]) / 2
}
model odd(image: f32[1, 28, 28]) {
    h = outer(image)
    part = slice(h, axis = 0, start = 2, size = 4)
    fc = dense(7)
    h = transpose(part, [1, 2, 0]) |> flatten |> dense(7) |> tanh
    return fc(relu(fc(h) - -h)) |> layer_norm |> dense(10)
}
train odd {
    data      = mnist
    normalize = per_channel(mean = [0.13], std = [0.3])
    loss      = softmax_cross_entropy(output, label, smoothing = 0.1) + 0.001 * l2(output)
    optimizer = adamw(lr = 0.002, weight_decay = 0.01)
    schedule  = cosine(end = 0.1, warmup = 1)
    factors   = [lr("dense1.*", 3), decay("fc.bias", 1)]
    clip      = norm(0.5)
    init      = orthogonal
    batch     = 16
    epochs    = 2
}
TN
small_mnist "$work/mnist" 80 40 || true

# Optimizers and schedules that no other model here has.
small_model() { printf 'model %s(image: f32[1, 28, 28]) { return flatten(image) |> dense(9) |> tanh |> dense(10) }
train %s { data = mnist; loss = softmax_cross_entropy; optimizer = %s; schedule = %s; batch = 16; epochs = 4 }\n' "$1" "$1" "$2" "$3" > "$work/$1.tn"; }
small_model signs 'lion(lr = 0.001, weight_decay = 0.1)' 'one_cycle(rise = 0.4)'
small_model squares 'adagrad(lr = 0.02, weight_decay = 0.01)' 'restarts(first = 1, factor = 2, end = 0.1, warmup = 0.5)'
small_model layerwise 'lars(lr = 1, weight_decay = 0.001, trust = 0.01, nesterov = true)' constant
small_model lamb 'lamb(lr = 0.02)' constant

# Layers that MXNet's scripts do not have.
cat > "$work/layers.tn" <<'TN'
model layers(image: f32[1, 28, 28]) {
    h = conv2d(image, 4, kernel = 3, stride = 2) |> tanh
    h = resize(h, [9, 20], mode = "bilinear") + group_norm(resize(h, [9, 20]), 2, shift = false)
    s = reshape(image, [28, 28]) |> conv1d(6, kernel = 5, stride = 2, pad = "same") |> instance_norm |> relu |> max_pool1d(2)
    s = conv1d(s, 4, kernel = 3, dilation = 2, groups = 2, bias = false) |> tanh |> avg_pool1d(2, stride = 1)
    h = prelu(h) |> conv_transpose2d(3, kernel = 3, stride = 2, pad = 1) |> tanh
    s = prelu(s) |> prelu(shared = true)
    return dense(flatten(h), 10) + dense(flatten(s), 10) + dense(global_max_pool(h), 10)
}
train layers {
    data      = mnist
    loss      = softmax_cross_entropy
    optimizer = adam(lr = 0.002)
    batch     = 16
    epochs    = 2
}
TN

# Recurrent layers, each on other sequences.
cat > "$work/recurrent.tn" <<'TN'
block two_ways(x) { return lstm(x, 7, all = true, bidirectional = true) }
model recurrent(x: f32[12, 6], classes: int = 5) {
    h = lstm(x, 8, all = true) |> two_ways |> rnn(9, activation = "relu")
    return dense(h, classes)
}
train recurrent {
    data      = "given with --data"
    loss      = softmax_cross_entropy
    optimizer = adam(lr = 0.01, weight_decay = 1e-3)
    batch     = 16
    epochs    = 2
}
TN
# sequences PYTHON DIR TIME FEATURES CLASSES: writes 80 and 40 sequences
sequences() {
    mkdir -p "$2"
    "$1" -c 'import numpy as np, sys
place, time, features, classes = sys.argv[1], *map(int, sys.argv[2:])
g = np.random.default_rng(3)
for split, n in ("train", 80), ("test", 40):
    np.save(f"{place}/{split}_x.npy", g.standard_normal((n, time, features)).astype("f4"))
    np.save(f"{place}/{split}_y.npy", g.integers(0, classes, n).astype("u1"))' "${@:2}"
}

# Tokens: characters with a class for each position, tied weights, positions, attention; reviews of words, read by a
# gru.
cat > "$work/letters.tn" <<'TN'
block mix(x) {
    h = layer_norm(x) |> dense(36) |> split(3, axis = -1)
    return x + causal_attention(h[0], h[1], h[2], heads = 3)
}
model letters(text: i32[time], vocab: int, time: int = 10) {
    tokens = embedding(vocab, 12)
    h = tokens(text) |> position |> mix |> mix
    return matmul(h, tokens.weight, transpose_b = true)
}
train letters {
    data      = text("letters", unit = "char", vocab = 32)
    loss      = softmax_cross_entropy
    optimizer = adamw(lr = 0.01)
    init      = normal(mean = 0, std = 0.1)
    batch     = 16
    epochs    = 1
}
TN
cat > "$work/words.tn" <<'TN'
model words(text: i32[time], vocab: int, time: int = 9) {
    h = embedding(text, vocab, 6, padding = 0)
    return concat(gru(h, 5), lstm(one_hot(text, vocab), 4), rnn(h, 3)) |> dense(1)
}
train words {
    data      = tsv("words", unit = "word", vocab = 40)
    loss      = sigmoid_cross_entropy
    optimizer = adam(lr = 0.01)
    init      = glorot
    batch     = 16
    epochs    = 1
}
TN
# Synthetic samples are the same in Tenon and in the script: tokens, and a class for each position.  (Numbers:
# lstm_synthetic.)
drawn() { # NAME INPUT NETWORK OPTIONS-OF-synthetic
    cat > "$work/$1.tn" <<TN
model $1($2) { return $3 }
train $1 {
    data      = synthetic(samples = 80, test_samples = 40$4)${5:-}
    loss      = softmax_cross_entropy
    optimizer = sgd(lr = 0.1)
    batch     = 16
    epochs    = 1
}
TN
}
drawn drawn_tokens "text: i32[9], vocab: int" "embedding(text, vocab, 6) |> flatten |> dense(4)" ", vocab = 30"
drawn drawn_each   "text: i32[9], vocab: int" "embedding(text, vocab, 6) |> dense(5)" ", vocab = 30"
drawn drawn_one    "text: i32[1], vocab: int" "embedding(text, vocab, 6) |> dense(5)" ", vocab = 30"
drawn drawn_rows   "x: f32[7, 5]" "lstm(x, 6, all = true) |> dense(3)" ""
# fewer or more classes than elements
answer='; target = answer: class'
drawn drawn_fewer  "text: i32[9], vocab: int" "embedding(text, vocab, 6) |> flatten |> dense(20) |> reshape([4, 5])" ", vocab = 30" "$answer[4]"
drawn drawn_parts  "x: f32[35]" "dense(x, 24) |> reshape([8, 3])" "" "$answer[8]"
drawn drawn_more   "x: f32[3]" "dense(x, 15) |> reshape([5, 3])" "" "$answer[5]"
mkdir "$work/letters-data" "$work/words-data"
awk 'BEGIN { srand(2); for (i = 0; i < 90; i++) { line = ""; for (k = 0; k < 24; k++) line = line sprintf("%c", 97 + int(rand() * 26)); print line } }' > "$work/letters-data/input.txt"
for split in train test; do
    awk -v many=$([ $split = train ] && echo 80 || echo 40) 'BEGIN { srand(many); for (i = 0; i < many; i++) {
        text = ""; for (k = 0; k < 3 + rand() * 12; k++) text = text sprintf("%s%s ", rand() < 0.2 ? "It'"'"'s-" : "", "w" int(rand() * 50)); print i % 2 "\t" text } }' > "$work/words-data/$split.tsv"
done

# Targets that are numbers, and a sample that is its own target, for PyTorch; the other scripts learn classes only.
numbered() { # NAME INPUT NETWORK TARGET LOSS
    cat > "$work/$1.tn" <<TN
model $1(x: $2) { return $3 }
train $1 {
    data      = synthetic(samples = 80, test_samples = 40)
    target    = $4
    loss      = $5
    optimizer = adam(lr = 0.01)
    batch     = 16
    epochs    = 1
}
TN
}
numbered number_mse "f32[6]" "dense(x, 8) |> tanh |> dense(1)" "y: f32[1]" "mean((output - y) ** 2, axes = [0])"
numbered number_losses "f32[6]" "dense(x, 8) |> tanh |> dense(6) |> reshape([2, 3])" "y: f32[2, 3]" "terms(linear = l1, both = 2 * huber(output, y, delta = 0.3), square = mse)"
numbered number_masks "f32[2, 5, 5]" "conv2d(x, 2, kernel = 3, pad = 1)" "y: f32[2, 5, 5]" "terms(mask = sigmoid_cross_entropy(positive_weight = 2.5), soft = 0.1 * sigmoid_cross_entropy(y, sigmoid(output)))"
numbered number_pixels "f32[2, 5, 5]" "conv2d(x, 4, kernel = 3, pad = 1)" "y: class[5, 5]" "softmax_cross_entropy(smoothing = 0.1)"
numbered number_own "f32[2, 5, 5]" "conv2d(x, 2, kernel = 3, pad = 1)" "x" "mse"
if command -v python3 > /dev/null; then
    for name in number_mse number_losses number_masks number_own; do
        "$TENON" emit "$work/$name.tn" --to pytorch > "$work/script"
        python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' "$work/script" && ok || bad "$name for pytorch is no Python"
        refuses "$name for keras" "--to keras writes scripts that learn classes" "$TENON" emit "$work/$name.tn" --to keras
    done
    # A sum over a dimension of one number keeps the samples apart.
    "$TENON" emit "$work/number_mse.tn" --to pytorch > "$work/script"
    grep -qF "sum((1, ), keepdim=True)" "$work/script" && ok || bad "a sum over one number: $(grep 'keepdim' "$work/script")"
fi

# Tables: numbers of which some are missing, a column of equal numbers, and a share of the rows as the test split; classes by name, and
# a table of its own for the test.
cat > "$work/table_numbers.tn" <<'TN'
model table_numbers(row: f32[3]) { return dense(row, 8) |> tanh |> dense(2) }
train table_numbers {
    data = csv("homes", input = ["size m2", "age", "rooms"], target = ["price", "days"], test = 0.25, missing = mean)
    target = costs: f32[2]
    loss = mse; optimizer = adam(lr = 0.01); batch = 16; epochs = 1; seed = 4000000000
}
TN
cat > "$work/table_classes.tn" <<'TN'
model table_classes(row: f32[2]) { return dense(row, 8) |> tanh |> dense(3) }
train table_classes { data = csv("kinds", target = "kind", standardize = false); loss = softmax_cross_entropy; optimizer = adam(lr = 0.01); batch = 16; epochs = 1 }
TN
mkdir "$work/table_numbers-data" "$work/table_classes-data"
awk 'BEGIN { srand(7); print "id;\"size m2\";age;price; days;rooms"
    for (i = 0; i < 120; i++) printf "%d;%s;%.3f;%.2f;%d;4\n", i, i % 9 ? 50 + i % 40 : "NA", rand() * 10, 10 * rand(), i % 7 }' > "$work/table_numbers-data/train.csv"
for split in train test; do
    awk -v many=$([ $split = train ] && echo 80 || echo 40) 'BEGIN { srand(many); print "kind,left,right"
        for (i = 0; i < many; i++) printf "%s,%.4f,%.4f\r\n", substr("10 9  b  ", i % 3 * 3 + 1, 2), rand() - i % 3, rand() }' | sed 's/,\([^,]*\)\r$/,"\1"\r/; s/ ,/,/' > "$work/table_classes-data/$split.csv"
done
for refused in 'row: f32[4]|csv("t", categories = ["a"], target = "y")|categories' 'row: f32[2], more: f32[1]|csv("t", input = ["a", "b", "c"], target = "y")|several inputs' \
    'row: i32[2]|csv("t", vocab = 9, target = "y")|tokens'; do
    IFS='|' read -r inputs data what <<< "$refused"
    network="dense(row, 3)"
    [[ $inputs != *more* ]] || network+=" + dense(more, 3)"
    [[ $inputs != *i32* ]] || network="embedding(row, 9, 4) |> flatten |> dense(3)"
    printf 'model t(%s) { return %s }\ntrain t { data = %s; loss = softmax_cross_entropy; optimizer = sgd(lr = 0.1) }\n' "$inputs" "$network" "$data" > "$work/t.tn"
    refuses "a table with $what" "--to pytorch writes scripts that read no tables with $what" "$TENON" emit "$work/t.tn" --to pytorch
done

# Several inputs, for PyTorch: synthetic, and arrays of bytes, floats and tokens.
several_model() { # NAME INPUTS NETWORK DATA
    cat > "$work/$1.tn" <<TN
model $1($2) { return $3 }
train $1 { data = $4; loss = softmax_cross_entropy; optimizer = adam(lr = 0.01); batch = 16; epochs = 1 }
TN
}
three="left: f32[2, 5, 5], right: f32[9], age: f32[1]"
sum="dense(conv2d(left, 3, kernel = 3) |> relu |> flatten, 6) * dense(right, 6) + dense(age, 6)"
several_model several_made "$three" "dense($sum, 4)" "synthetic(samples = 80, test_samples = 40)"
several_model several_arrays "words: i32[4], vocab: int, $three" "dense($sum + dense(flatten(embedding(words, vocab, 3)), 6), 4)" '"given"(vocab = 300)'
# Several outputs and targets, for PyTorch: synthetic, and arrays; and two outputs with one label.
heads_model() { # NAME OUTPUTS TARGET LOSS DATA
    cat > "$work/$1.tn" <<TN
model $1(x: f32[2, 4, 4]) {
    h = conv2d(x, 3, kernel = 3) |> relu |> flatten |> dense(6) |> tanh
    return $2
}
train $1 { data = $5$3; loss = $4; optimizer = adam(lr = 0.01); batch = 16; epochs = 1 }
TN
}
four="logits = dense(h, 4), size = dense(h, 3), yes = dense(h, 1), again = dense(h, 32) |> reshape([2, 4, 4])"
three_targets="; target = (digit: class, sizes: f32[3], maybe: class, mask: f32[2, 4, 4])"
four_losses="terms(a = softmax_cross_entropy(logits, digit), b = 0.5 * mse(size, sizes), c = sigmoid_cross_entropy(yes, maybe), d = l1(again, mask))"
heads_model heads_made "$four" "$three_targets" "$four_losses" "synthetic(samples = 80, test_samples = 40)"
heads_model heads_arrays "$four" "$three_targets" "$four_losses" '"given"'
heads_model heads_one "early = dense(h, 3), late = dense(h, 9) |> tanh |> dense(3)" "" "softmax_cross_entropy(late, label) + 0.3 * softmax_cross_entropy(early, label)" "synthetic(samples = 80, test_samples = 40)"
heads_model heads_own "again = dense(h, 32) |> reshape([2, 4, 4]), mean = dense(h, 3)" "; target = x" "terms(fit = mse(again, x), small = 0.1 * sum(mean ** 2, axes = [0]))" "synthetic(samples = 80, test_samples = 40)"
heads_model heads_truths "yes = dense(h, 5), size = dense(h, 3)" "; target = several: f32[5]" "terms(fit = sigmoid_cross_entropy(yes, several), small = 0.1 * sum(size ** 2, axes = [0]))" "synthetic(samples = 80, test_samples = 40)"
# heads PYTHON DIR: 80 and 40 samples
heads() {
    mkdir -p "$2"
    "$1" -c 'import numpy as np, sys
g = np.random.default_rng(4)
for split, n in ("train", 80), ("test", 40):
    arrays = {"x": g.integers(0, 256, (n, 2, 4, 4)).astype("u1"), "digit": g.integers(0, 4, n), "sizes": g.standard_normal((n, 3)),
              "maybe": g.integers(0, 2, (n, 1)).astype("u1"), "mask": g.standard_normal((n, 2, 4, 4)).astype("f4")}
    for name, values in arrays.items():
        np.save(f"{sys.argv[1]}/{split}_{name}.npy", values)' "$2"
}
# several PYTHON DIR: 80 and 40 samples
several() {
    mkdir -p "$2"
    "$1" -c 'import numpy as np, sys
g = np.random.default_rng(4)
for split, n in ("train", 80), ("test", 40):
    arrays = {"words": g.integers(0, 300, (n, 4)).astype("u2"), "left": g.integers(0, 256, (n, 2, 5, 5)).astype("u1"),
              "right": g.standard_normal((n, 9)).astype("f4"), "age": g.standard_normal(n), "y": g.integers(0, 4, n)}
    for name, values in arrays.items():
        np.save(f"{sys.argv[1]}/{split}_{name}.npy", values)' "$2"
}

# steps LOG: its losses, one on each line
steps() { sed -n 's/.*"event": *"step".*"train_loss": *\([-0-9.e]*\).*/\1/p' "$1"; }

# against TO PYTHON SAMPLES MODEL [BACKEND]: compares ten steps of Tenon and of the script
against() {
    local to=$1 python=$2 model=$4 name; name=$(basename "$4" .tn)
    local data=(--data "$work/mnist" --limit-samples "$3") options=("${settings[@]}") epochs=2 run
    case $name in
        recurrent) sequences "$python" "$work/recurrent-data" 12 6 5 ;;
        lstm_synthetic) data=(--limit-samples "$3") options+=(--set "data=synthetic(samples=80, test_samples=40, classes=60)") ;;
        several_arrays) several "$python" "$work/several_arrays-data" ;;
        heads_arrays) heads "$python" "$work/heads_arrays-data" ;;
        drawn_* | number_* | several_made | heads_made | heads_one | heads_own | heads_truths) data=(--limit-samples "$3") ;;
        dates) data=(--limit-samples "$3") options+=(--set "data=synthetic(samples=80, test_samples=40, classes=11, vocab=41)") ;;
        resnet20_cifar10) [ -d "$work/$name-data" ] || small_cifar "$work/$name-data" 16 20; options+=(--set "augment=[]") ;;
        letters) epochs=1 data[3]=160 ;;        # from the second epoch on, windows begin at another token
    esac
    [ ! -d "$work/$name-data" ] || data[1]=$work/$name-data
    if [ ! -e "$work/$name.w" ]; then
        "$TENON" build "$model" "${options[@]}" -o "$work/$name"
        "$work/$name" "${data[@]}" --epochs 0 --save "$work/$name.w" > /dev/null
    fi
    run=("${data[@]}" --weights "$work/$name.w" --epochs $epochs --shuffle off --log-steps 1)
    "$TENON" emit "$model" "${options[@]}" --to "$to" -o "$work/$to" > /dev/null
    rm -f "$work/ours" "$work/theirs"
    "$work/$name" "${run[@]}" --log "$work/ours" > /dev/null
    local script=("$work/$to/$name.py")
    [ $name != drawn_noise ] || script=("$TENON_ROOT/tests/peers/normal_numbers.py" 2 "${script[@]}")
    KERAS_BACKEND=${5:-} succeeds "$name.py for $to ${5:-} runs" timeout "${TENON_LIMIT:-300}" "$python" "${script[@]}" "${run[@]}" --log "$work/theirs"
    # Keras keeps the mean of the losses, and parts of batch_norm, in f32; MXNet keeps learning rates in f32.
    local most=1e-8; [ "$to" = pytorch ] || most=1e-5
    apart=$(paste <(steps "$work/ours") <(steps "$work/theirs") | awk -v most=$most '{ d = ($1 - $2) / $1; d = d < 0 ? -d : d; if (d > m) m = d } END { print NR == 10 && m < most ? "close" : NR " steps, " m }')
    same "$name for $to ${5:-}: the losses of ten steps, apart by at most $most" "$apart" close
}

# imports PYTHON MODULES: whether the interpreter has them; each interpreter is asked once
declare -A imported=()
imports() {
    [ -n "${imported[$*]:-}" ] || imported[$*]=$("$1" -c "import $2" 2> /dev/null && echo yes || echo no)
    [ "${imported[$*]}" = yes ]
}

settings=(--dtype f64 --batch 16 --shards 1)
models=()
for name in lenet mlp resnet20_cifar10 lstm_synthetic dates; do models+=("$TENON_ROOT/models/$name.tn"); done
for model in "$work"/table_numbers.tn "$work"/number_{mse,losses,masks,pixels,own}.tn "$work"/several_{made,arrays}.tn "$work"/heads_{made,arrays,one,own,truths}.tn "$work"/drawn_{choices,noise,asked,shares}.tn; do
    if imports "$torch" "torch, numpy"; then against pytorch "$torch" 72 "$model"
    else skip "$(basename "$model") for pytorch: $torch has no torch (TENON_TORCH names an interpreter that has)"; fi
done
for model in "${models[@]}" "$work"/{odd,signs,squares,layerwise,lamb,picky,layers,recurrent,letters,words,drawn_words,drawn_calls,drawn_tokens,drawn_each,drawn_one,drawn_rows,drawn_fewer,drawn_parts,drawn_more,table_classes}.tn; do
    name=$(basename "$model" .tn)
    if imports "$torch" "torch, numpy"; then against pytorch "$torch" 72 "$model"      # the last batch is not full
    else skip "$(basename "$model") for pytorch: $torch has no torch (TENON_TORCH names an interpreter that has)"; fi
    for backend in tensorflow jax torch; do
        if KERAS_BACKEND=$backend imports "$keras" "keras, $backend"; then against keras "$keras" 80 "$model" $backend
        else skip "$(basename "$model") for keras: $keras has no $backend or no keras (TENON_KERAS names an interpreter that has)"; fi
    done
    if [ "$name" = letters ]; then
        refuses "positions in MXNet" "letters.tn:[0-9]+:[0-9]+: error: --to mxnet has no form for a table that is read as numbers: position1.weight" \
            "$TENON" emit "$model" --to mxnet -o "$work/mxnet"
    elif [ "$name" = layers ]; then
        refuses "resize in MXNet" "layers.tn:3:[0-9]+: error: --to mxnet cannot write resize" "$TENON" emit "$model" --to mxnet -o "$work/mxnet"
    elif [[ $name == dates || $name == drawn_words ]]; then
        refuses "masks in MXNet" "$name.tn:[0-9]+:[0-9]+: error: --to mxnet cannot write mask" "$TENON" emit "$model" --to mxnet -o "$work/mxnet"
    elif imports "$mxnet" mxnet; then against mxnet "$mxnet" 72 "$model"
    else skip "$(basename "$model") for mxnet: $mxnet has no mxnet (TENON_MXNET names an interpreter that has)"; fi
done

# Averages of the weights, and running averages of batch_norm beside them: the losses of the tests.
cat > "$work/averaged.tn" <<'TN'
model averaged(x: f32[12], norm: int = 0) { h = dense(x, 16) |> tanh; y = if norm == 1 { batch_norm(h) } else { h }; return dense(y, 3) }
train averaged { data = synthetic(samples = 120, test_samples = 64, classes = 3); loss = softmax_cross_entropy; optimizer = adam(lr = 0.01); batch = 16; epochs = 5 }
TN
tests_of() { sed -n 's/.*"event": *"epoch".*"test_loss": *\([-0-9.e]*\).*/\1/p' "$1"; }
while IFS='|' read -r average norm; do
    options=(--dtype f64 --shards 1 --set "average=$average" --set "model.norm=$norm")
    if ! "$torch" -c 'import torch, numpy' 2> /dev/null; then skip "$average for pytorch: $torch has no torch (TENON_TORCH names an interpreter that has)"; continue; fi
    succeeds "$average: build" "$TENON" build "$work/averaged.tn" "${options[@]}" -o "$work/averaged"
    "$work/averaged" --epochs 0 --save "$work/averaged.w" > /dev/null 2>&1
    "$TENON" emit "$work/averaged.tn" "${options[@]}" --to pytorch > "$work/averaged.py"
    rm -f "$work/ours" "$work/theirs"
    succeeds "$average: train" "$work/averaged" --weights "$work/averaged.w" --shuffle off --log "$work/ours"
    succeeds "$average: the script runs" "$torch" "$work/averaged.py" --weights "$work/averaged.w" --shuffle off --log "$work/theirs"
    apart=$(paste <(tests_of "$work/ours") <(tests_of "$work/theirs") | awk '{ d = ($1 - $2) / $1; d = d < 0 ? -d : d; if (d > m) m = d } END { print NR == 5 && m < 1e-8 ? "close" : NR " epochs, " m }')
    same "$average for pytorch: the losses of five tests" "$apart" close
done <<'AVERAGES'
ema(0.9)|0
ema(0.9)|1
swa(from = 3)|0
AVERAGES
finish
