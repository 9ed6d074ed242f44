#!/usr/bin/env bash
# options.sh -- the command lines of tenon and of a program: every wrong word gets a message, and the cache works.
#
# Parts: words program examples
set -euo pipefail
. "$(dirname "$0")/../common.sh"

outer=${TENON_CACHE:-$work/cache}                 # other tests compile LeNet there, too
export TENON_CACHE=$work/cache
lenet=$TENON_ROOT/models/lenet.tn
mlp=$TENON_ROOT/models/mlp.tn

if part words; then
# Help and version.
for args in "--help" "--version" "" "check --help" "show --help" "build --help" "emit --help" "run --help" "ops --help" "ops" "ops conv2d"; do
    # shellcheck disable=SC2086
    succeeds "tenon $args" "$TENON" $args
    [ -s "$work/out" ] && ok || bad "tenon $args prints nothing"
done
grep -q filters <("$TENON" ops conv2d) && ok || bad "tenon ops conv2d does not name its arguments"

# tenon ops lists each key of a train block and each form of its values, as docs/reference/recipe.md does.
"$TENON" ops > "$work/ops"
key=''
while read -r mark word; do
    case $mark in
    "##") key=$word ;;
    "###") [ "$word" = "A name or a directory" ] && word=NAME
        grep -qE "^  $key = $word(\(| |$)" "$work/ops" && ok || bad "tenon ops does not list $key = $word"
        [ "$word" = NAME ] || succeeds "tenon ops $word" "$TENON" ops "$word"
        continue ;;
    *) continue ;;
    esac
    [ "$key" = "Override on the command line" ] && continue
    grep -q "^  $key =" "$work/ops" && ok || bad "tenon ops does not list the key $key"
    succeeds "tenon ops $key" "$TENON" ops "$key"
done < "$TENON_ROOT/docs/reference/recipe.md"
for word in "loss = mse" "expect = test_accuracy >= ..." "expect = test_auc >= ..." "expect = train_perplexity <= ..."; do grep -q "^  $word" "$work/ops" && ok || bad "tenon ops does not list $word"; done
"$TENON" ops step > "$work/out"
grep -q '^step(x)$' "$work/out" && grep -q '^schedule = step(at, factor = 0.1' "$work/out" && ok || bad "tenon ops step is not both: $(cat "$work/out")"
refuses "an example of a form" "only operations have an example" "$TENON" ops adam --example
refuses "a form with a wrong letter" "did you mean 'rmsprop'" "$TENON" ops rmsprp

# Wrong words.
refuses "unknown command" "did you mean 'build'" "$TENON" biuld x
refuses "unknown option" "did you mean '--batch'" "$TENON" build "$lenet" -o p --bacth 3
refuses "option of another command" "no option '--ranks'" "$TENON" build "$lenet" -o p --ranks 3
refuses "no value" "needs a value" "$TENON" build "$lenet" -o
refuses "a value where none is wanted" "takes no value" "$TENON" build "$lenet" -o p --plain=3
refuses "not a number" "whole number" "$TENON" build "$lenet" -o p --batch many
refuses "batch 0" "whole number" "$TENON" build "$lenet" -o p --batch 0
refuses "batch beyond 2^24" "from 1 to 16777216, not '16777217'" "$TENON" build "$lenet" -o p --batch 16777217
refuses "shards beyond 2^16" "from 1 to 65536, not '65537'" "$TENON" build "$lenet" -o p --shards 65537
refuses "batch beyond 2^64" "whole number" "$TENON" build "$lenet" -o p --batch 99999999999999999999
refuses "unknown word" "--dtype takes f32" "$TENON" build "$lenet" -o p --dtype f23
refuses "TENON_CPU of no processor" "TENON_CPU=x86-64-v9: there is no such processor" env TENON_CPU=x86-64-v9 "$TENON" build "$lenet" -o "$work/no"
[ ! -e "$work/no" ] && ok || bad "TENON_CPU=x86-64-v9 leaves a program behind"
price_on() { "$TENON" show "$lenet" --cost "$@" | grep '^price of a step'; }
same "TENON_CPU is what --cpu is unless it is given" "$(TENON_CPU=generic price_on)" "$(price_on --cpu generic)"
same "--cpu goes before TENON_CPU" "$(TENON_CPU=generic price_on --cpu x86-64-v3)" "$(price_on --cpu x86-64-v3)"
refuses "two files" "takes one file" "$TENON" check "$lenet" "$mlp"
refuses "no file" "needs a model file" "$TENON" check
refuses "no output" "-o PROG" "$TENON" build "$lenet"
refuses "a file that is not there" "nowhere.tn" "$TENON" check "$work/nowhere.tn"
refuses "a directory as file" "models" "$TENON" check "$TENON_ROOT/models"
refuses "--set without a value" "KEY=VALUE" "$TENON" check "$lenet" --set optimizer.lr
refuses "--set of a large seed" "'seed' is between 0 and 4294967295, this is 9007199254740993" "$TENON" check "$lenet" --set seed=9007199254740993
refuses "--set of an unknown key" "did you mean" "$TENON" check "$lenet" --set optimizer.lrr=1
refuses "shards that do not divide" "divide" "$TENON" check "$lenet" --shards 7
refuses "an unknown pass" "did you mean 'fuse'" "$TENON" emit "$lenet" --dump fues
refuses "calls of a program for a processor" "add --target cuda" "$TENON" show "$lenet" --dump calls
refuses "an unknown operation" "did you mean 'conv2d'" "$TENON" ops conv2
# The library is listed with its files and blocks, and a loss of it leads to its file.
"$TENON" ops > "$work/ops"
for file in "$TENON_ROOT"/models/library/*.tn; do
    grep -q "^  ${file##*/} " "$work/ops" && ok || bad "tenon ops does not list ${file##*/}"
    blocks=$(sed -n 's/^block \([a-z_]*\)(.*/\1/p' "$file")
    same "blocks of ${file##*/}" "$blocks" "$(for name in $blocks; do grep -o "\<$name(" "$work/ops" | head -n 1 | tr -d '('; done)"
done
grep -q "focal(output, label, \[gamma\])" "$work/ops" && ok || bad "tenon ops does not show the arguments of focal"
refuses "a loss of the library" "import .losses.tn. has the loss 'dice'" "$TENON" ops dice_loss
refuses "an operation like no other" "tenon ops. lists them" "$TENON" ops nosuch
refuses "ranks that do not divide" "3 ranks" "$TENON" show "$lenet" --ranks 3
refuses "--dtype f16 of our own kernels" "f16 needs NVIDIA.s libraries, and this program uses Tenon.s own kernels" "$TENON" build "$lenet" -o "$work/p" --dtype f16 --target cuda --kernels=own
succeeds "check in a type of NVIDIA's libraries" "$TENON" check "$lenet" --dtype bf16
refuses "--to c of a GPU" "--to c writes a program for the processor, and --target cuda is for a GPU" "$TENON" emit "$lenet" --to c --target cuda
refuses "--to cuda of a processor" "--to cuda writes a program for a GPU, and --target cpu is for the processor" "$TENON" emit "$lenet" --to cuda --target cpu
refuses "what no program for a GPU does, written" "with --comm nccl, GPUs add their gradients in the middle" "$TENON" emit "$lenet" --target cuda --kernels=persistent --comm nccl
same "emit --target cuda" "$("$TENON" emit "$mlp" --to cuda | sed "s/flags = \"[^\"]*\"//" | cksum)" "$("$TENON" emit "$mlp" --target cuda | sed "s/flags = \"[^\"]*\"//" | cksum)"
for option in "--memory $work/plan.svg" "--ranks 2"; do
    # shellcheck disable=SC2086
    refuses "show $option of a GPU" "${option%% *} is for programs on the processor" "$TENON" show "$lenet" --target cuda $option
done
for driver in x 13 13.0.1 11.8 13.; do
    refuses "the driver $driver" "--driver takes the CUDA version of a driver, .* not '$driver'" "$TENON" build "$mlp" -o "$work/p" --target cuda --kernels=cudnn --driver "$driver"
done
refuses "a driver without a GPU" "--driver is for programs on a GPU" "$TENON" build "$lenet" -o "$work/p" --driver 13.0
refuses "ranks of one shard" "2 ranks cannot share 1 shard equally" "$TENON" show "$lenet" --shards 1 --ranks 2
refuses "--comm nccl on processors" "add --target cuda, or use --comm mpi" "$TENON" build "$lenet" -o "$work/p" --comm nccl
succeeds "--set of a known key" "$TENON" check "$lenet" --set optimizer.lr=0 --set model.classes=100 --set batch=64
succeeds "a warm-up longer than the run" "$TENON" check "$lenet" --set epochs=2 --set 'schedule=cosine(warmup=3)'
grep -q "warning: a warm-up of 3 epochs does not end in a run of 2" "$work/out" && ok || bad "no word of a warm-up that does not end"
succeeds "a warm-up as long as the run" "$TENON" check "$lenet" --set epochs=3 --set 'schedule=cosine(warmup=3)'
grep -q warm-up "$work/out" && bad "a warm-up that ends is warned of" || ok
succeeds "check" "$TENON" check "$lenet"
same "check says so" "$(cat "$work/out")" "$lenet: ok"

# show: well-known figures.
"$TENON" show "$lenet" --cost > "$work/show"
grep -q "total .*431,080" "$work/show" && ok || bad "tenon show lenet does not count 431,080 parameters"
same "headings of the price" "prepare forward backward sums over samples, update" "$(grep -xE '[a-z]+|sums over samples, update' "$work/show" | grep -v '^all$' | paste -sd ' ')"
grep -q "2,293,000" "$work/show" && ok || bad "tenon show lenet does not count 2,293,000 multiply-adds"
# A layer that becomes several operations has one row: prelu, with its slopes.
cat > "$work/prelu.tn" << 'END'
model slopes(image: f32[1, 5, 5]) {
    h = conv2d(image, 3, kernel = 3) |> prelu |> prelu(shared = true)
    return flatten(h) |> prelu |> dense(2)
}
END
"$TENON" show "$work/prelu.tn" | awk '{ $1 = $1 } /prelu|total/' > "$work/show"
printf '%s\n' '2 prelu1 prelu (N, 3, 3, 3) 3' '2 prelu2 prelu (N, 3, 3, 3) 1' '3 prelu3 prelu (N, 27) 27' 'total 117 297 594' > "$work/expected"
same "rows of prelu" "$(cat "$work/expected")" "$(cat "$work/show")"
# The row of a transposed convolution has its weights, its bias and its multiply-adds: 4 x 4 pixels, 2 x 3 x 3 x 3 filters.
cat > "$work/transposed.tn" << 'END'
model larger(image: f32[2, 4, 4]) {
    return conv_transpose2d(image, 3, kernel = 3) |> conv_transpose2d(2, kernel = 1, bias = false) |> flatten |> dense(2)
}
END
"$TENON" show "$work/transposed.tn" | awk '{ $1 = $1 } /transpose|total/' > "$work/show"
printf '%s\n' '2 conv1 conv_transpose2d (N, 3, 6, 6) 57 864 1,728' '2 conv2 conv_transpose2d (N, 2, 6, 6) 6 216 432' 'total 209 1,224 2,448' > "$work/expected"
same "rows of conv_transpose2d" "$(cat "$work/expected")" "$(cat "$work/show")"
same "products with transposed weights" "total 627 2,297 5,594" "$("$TENON" show "$TENON_ROOT/tests/cuda/products.tn" | awk '/total/ { $1 = $1; print }')"
printf 'model m(x: f32[4]) {\n    return dense(x, 2)\n}\n' > "$work/m.tn"
succeeds "show without a train block" "$TENON" show "$work/m.tn"
refuses "build without a train block" "no train block" "$TENON" build "$work/m.tn" -o "$work/p"
succeeds "emit dot" "$TENON" emit "$mlp" --to dot -o "$work/dot"
grep -q digraph "$work/dot/mlp.dot" && ok || bad "emit --to dot writes no graph"
succeeds "emit slurm" "$TENON" emit "$mlp" --to slurm -o "$work/slurm"
printf 'model m(x: f32[4]) { return dense(x, 3) }\n' > "$work/m.tn"
refuses "a job for nothing" "no train block" "$TENON" emit "$work/m.tn" --to slurm
succeeds "the job script is a script" bash -n "$work/slurm/mlp.sbatch"
grep -q "^#SBATCH --ntasks=2 .* 1, 2, 4 or 8, which divide the 8 shards" "$work/slurm/mlp.sbatch" && ok || bad "emit --to slurm does not know the shards"
grep -q "^#SBATCH --hint=nomultithread" "$work/slurm/mlp.sbatch" && ok || bad "emit --to slurm asks for hyper-threads"
# The script on a node: srun gets the cores of the job, or the cores of the node for each rank.
mkdir "$work/node"
printf '#!/bin/sh\necho "srun $*"\n' > "$work/node/srun"
printf '#!/bin/sh\nprintf "# CORE,SOCKET\\n0,0\\n0,0\\n1,0\\n2,1\\n3,1\\n"\n' > "$work/node/lscpu"
chmod +x "$work/node/srun" "$work/node/lscpu"
job() { env PATH="$work/node:$PATH" SLURM_JOB_ID=1 "$@" bash "$work/slurm/mlp.sbatch" | grep -o 'cpus-per-task=[0-9]*'; }
same "two ranks on four cores" "$(job SLURM_NTASKS=2 SLURM_JOB_NUM_NODES=1)" cpus-per-task=2
same "eight ranks on four cores" "$(job SLURM_NTASKS=8 SLURM_JOB_NUM_NODES=1)" cpus-per-task=1
same "what the job asks for" "$(job SLURM_NTASKS=2 SLURM_CPUS_PER_TASK=3)" cpus-per-task=3
"$TENON" emit "$mlp" --to slurm --shards 3 --batch 60 > "$work/odd"
grep -q "^#SBATCH --ntasks=1 .* 1 or 3, which divide the 3 shards" "$work/odd" && ok || bad "two ranks of three shards: $(grep ntasks "$work/odd")"

refuses "a job whose number is forgotten" "^--max-restarts needs a number, not '--data'" env SLURM_JOB_ID=1 bash "$work/slurm/mlp.sbatch" --max-restarts --data x
refuses "a job whose number is the end" "^--max-restarts needs a number, not ''" env SLURM_JOB_ID=1 bash "$work/slurm/mlp.sbatch" --max-restarts
succeeds "a job for GPUs" "$TENON" emit "$mlp" --to slurm --target cuda --shards 6 --batch 60 -o "$work/slurm-gpu"
succeeds "it is a script" bash -n "$work/slurm-gpu/mlp.sbatch"
grep -q "^#SBATCH --ntasks=6 .* 1, 3 or 6, which divide the 6 shards" "$work/slurm-gpu/mlp.sbatch" && grep -q "^#SBATCH --gpus-per-task=1" "$work/slurm-gpu/mlp.sbatch" &&
    grep -q "^srun --mpi=none --gpus-per-task=1" "$work/slurm-gpu/mlp.sbatch" && grep -q -- "--target cuda --comm nccl" "$work/slurm-gpu/mlp.sbatch" && ok || bad "a job for GPUs: $(cat "$work/slurm-gpu/mlp.sbatch")"
"$TENON" emit "$mlp" --to slurm --target cuda --comm nccl --shards 6 --batch 60 > "$work/slurm-nccl"
cmp -s "$work/slurm-nccl" "$work/slurm-gpu/mlp.sbatch" && ok || bad "--comm nccl makes another job for GPUs"

# Invariants between passes, for every model and for the layers with which the CUDA target is tested.
for model in $(shipped_models) "$TENON_ROOT"/tests/cuda/*.tn; do
    succeeds "--verify $model" "$TENON" show "$model" --verify
done

# Statistics of one number.
sed 's/|> relu/|> batch_norm |> relu/' "$mlp" > "$work/norm.tn"
grep -q batch_norm "$work/norm.tn" && ok || bad "models/mlp.tn has no place for batch_norm"
refuses "batch_norm of one number a channel" "use a larger batch" "$TENON" show "$work/norm.tn" --batch 1
refuses "batch_norm of one number a channel in a shard" "fewer shards than 4" "$TENON" show "$work/norm.tn" --batch 4 --shards 4
succeeds "batch_norm of two numbers a channel" "$TENON" show "$work/norm.tn" --batch 4 --shards 2

# More numbers in a chunk than its kernels can count.
printf 'model m(x: f32[3, 20000, 20000]) {\n    return global_avg_pool(relu(x)) |> dense(2)\n}\n' > "$work/large.tn"
printf 'train m {\n    data = synthetic\n    loss = mse\n    optimizer = adam\n    batch = 4\n}\n' >> "$work/large.tn"
refuses "2^31 numbers in a chunk" "a chunk is 4 samples of a batch of 4" "$TENON" show "$work/large.tn"
succeeds "1.2e9 numbers in a chunk" "$TENON" show "$work/large.tn" --shards 4

# Output that cannot be written: a full disk, a closed stdout.
if [ -c /dev/full ]; then
    for command in "show $lenet" "emit $lenet" "emit $lenet --to dot" "check $lenet" ops cache --help; do
        # shellcheck disable=SC2086
        "$TENON" $command > /dev/full 2> "$work/err" && bad "tenon $command > /dev/full: exit code 0" || ok
        grep -q "output could not be written" "$work/err" && ok || bad "tenon $command > /dev/full says '$(cat "$work/err")'"
    done
fi
"$TENON" emit "$lenet" >&- 2> "$work/err" && bad "tenon emit >&-: exit code 0" || ok

# Paths that cannot be written.
refuses "output is a directory" "is a directory" "$TENON" build "$mlp" -o "$work"
if mknod "$work/device" c 1 3 2> /dev/null; then
    refuses "output is a device" "not a file" "$TENON" build "$mlp" -o "$work/device"
    [ -c "$work/device" ] && ok || bad "a device was replaced"
fi
refuses "output in a directory that is not there" "No such file" "$TENON" build "$mlp" -o "$work/no/p"
cp "$mlp" "$work/mine.tn"; cp "$mlp" "$work/mine"
refuses "output over a model" "over the model file" "$TENON" build "$work/mine.tn" -o "$work/mine.tn"
refuses "output over its own model" "over the model file" "$TENON" build "$work/mine" -o "$work/mine"
cmp -s "$mlp" "$work/mine.tn" && cmp -s "$mlp" "$work/mine" && ok || bad "a model file was overwritten"
fi

if part program; then
flags=${TENON_CFLAGS:-}
export TENON_CFLAGS=-O0                               # until a program runs
net=$work/mlp.tn                                      # compiles in half a second
cat > "$net" << 'END'
model mlp(x: f32[10], classes: int = 10) { return layer_norm(x) }
train mlp { data = synthetic(samples = 64, test_samples = 32); loss = softmax_cross_entropy; optimizer = sgd(lr = 0.1); batch = 32; epochs = 1 }
END
# A program for a debugger: convolutions compile without optimisation, and have the same bits.
if deep "a convolution with -O0 and -O1"; then
cat > "$work/conv.tn" << 'END'
model conv(image: f32[3, 6, 7]) { return conv2d(image, 9, kernel = 3, pad = 1) |> tanh |> flatten |> dense(3) }
train conv { data = synthetic(samples = 8, test_samples = 4, classes = 3); loss = softmax_cross_entropy; optimizer = sgd(lr = 0.1); batch = 8; epochs = 1 }
END
for level in -O0 -O1; do
    TENON_CFLAGS=$level succeeds "a convolution with $level" "$TENON" build "$work/conv.tn" -o "$work/conv"
    succeeds "its program with $level" "$work/conv" --log "$work/conv$level.jsonl"
done
same "bits with -O0 and -O1" "$(hashes "$work/conv-O0.jsonl")" "$(hashes "$work/conv-O1.jsonl")"
fi
# The C compiler.
refuses "no C compiler" "cannot run the C compiler 'nosuchcc'" env CC=nosuchcc "$TENON" build "$net" -o "$work/q"
printf '#!/bin/sh\ncase $1 in --version) echo fake 1 ;; *) echo "fake: it hurts" >&2; exit 3 ;; esac\n' > "$work/fakecc"
chmod +x "$work/fakecc"
refuses "a C compiler that fails" "it hurts" env CC="$work/fakecc" TMPDIR="$work" "$TENON" build "$net" -o "$work/q"
kept=$(sed -n 's/.* failed on \([^ ]*\) .*/\1/p' "$work/err")
[ -s "$kept" ] && ok || bad "the generated C is not kept after a failure: '$kept'"
[ ! -e "$work/q" ] && ok || bad "a failed build leaves a program"
printf '#!/bin/sh\ncase "$*" in *-lz\ *) echo "/usr/bin/ld: cannot find -lz: No such file" >&2; exit 1 ;; *) exec cc "$@" ;; esac\n' > "$work/nozlib"
chmod +x "$work/nozlib"
refuses "a system without zlib" "help: programs need zlib \(Debian: apt-get install zlib1g-dev\)" env CC="$work/nozlib" "$TENON" build "$net" -o "$work/q"

# The cache: the second build starts no compiler, another flag does (more: cache.sh).
printf '#!/bin/sh\necho x >> %s\nexec cc "$@"\n' "$work/count" > "$work/countcc"
chmod +x "$work/countcc"
calls() { local n; n=$(wc -l < "$work/count"); rm "$work/count"; echo "$n"; }
countcc() { CC=$work/countcc "$TENON" build "$net" -o "$work/p" "$@"; calls; }
first=$(countcc)
same "a second build only asks the compiler's version" "$(countcc)" 1
same "--keep with a cached program" "$(countcc --keep "$work/keep")" 1
units=$(find "$work/keep/mlp_units" -name '*.c' | wc -l)
same "a first build asks, compiles each unit, and links" "$first" $((units + 2))
[ "$(countcc --batch 64)" -gt 1 ] && ok || bad "another batch does not compile"
same "--no-cache compiles all" "$(countcc --no-cache)" $((units + 2))
same "a kept directory is what was compiled" "$(countcc --keep "$work/keep" --no-cache)" $((units + 2))
[ -s "$work/keep/mlp.c" ] && ok || bad "--keep leaves no C file"
succeeds "no cache at all" env -u TENON_CACHE -u XDG_CACHE_HOME -u HOME "$TENON" build "$net" -o "$work/p2"
cmp -s "$work/p" "$work/p2" && ok || bad "a cached program differs from one made without the cache"
echo mine > "$work/keep/mlp_units/mine.c"
for kept in keep keep2; do countcc --keep "$work/$kept" --plain > "$work/n"; done
same "--keep removes the units of an earlier build, and no other file" "$(ls "$work/keep/mlp_units")" "$(cd "$work/keep2/mlp_units"; touch mine.c; ls)"
[ -z "$(find "$work" -maxdepth 1 -name 'p.*')" ] && ok || bad "temporary files stay beside the program"

# tenon run passes its arguments on and returns the program's exit code.
same "tenon run" "$("$TENON" run "$net" -- info | grep -c mlp | head -n 1 | sed 's/[1-9][0-9]*/some/')" some
refuses "tenon run with an option of the program" "options of the program follow --" "$TENON" run "$net" --epochs 3
refuses "tenon run with a wrong program option" "--epochs" "$TENON" run "$net" -- --epoch 3

# The program.
TENON_CFLAGS=$flags TENON_CACHE=$outer "$TENON" build "$mlp" -o "$work/p"
for command in train test predict bench info; do succeeds "$command --help" "$work/p" $command --help; done
succeeds "program --help" "$work/p" --help
if [ -c /dev/full ]; then
    for word in --help --version info; do
        "$work/p" $word > /dev/full 2> "$work/err" && bad "program $word > /dev/full: exit code 0" || ok
        grep -q "output could not be written" "$work/err" && ok || bad "program $word > /dev/full says '$(cat "$work/err")'"
    done
fi
refuses "program: unknown option" "--epochs" "$work/p" --epcohs 3
refuses "program: unknown command" "predict" "$work/p" predcit
refuses "program: not a number" "threads" "$work/p" --threads many
refuses "program: one of several tasks" "--comm mpi" env OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=1 "$work/p" --epochs 1
succeeds "bench" "$work/p" bench --steps 6 --threads 2 --log "$work/bench.jsonl"
for name in model batch threads step_ms_mean step_ms_median step_ms_low step_ms_high step_ms_min first_step_ms samples_per_s gflops fma_peak_gflops share_of_peak; do
    [ -n "$(field "$work/bench.jsonl" bench $name)" ] && ok || bad "bench record without $name"
done
succeeds "bench on a data set" "$work/p" bench --steps 2 --data mnist
mkdir "$work/two"
{ printf '\0\0\10\3\0\0\0\2\0\0\0\34\0\0\0\34'; head -c 1568 /dev/zero; } > "$work/two/train-images-idx3-ubyte"
printf '\0\0\10\1\0\0\0\2\0\0' > "$work/two/train-labels-idx1-ubyte"
refuses "bench on two samples" "2 training samples are less than a batch" "$work/p" bench --steps 2 --data "$work/two"
refuses "bench on no data set" "nowhere" "$work/p" bench --steps 2 --data "$work/nowhere"
succeeds "train one epoch" "$work/p" --epochs 1 --limit-samples 512 --log "$work/train.jsonl" --save "$work/w.safetensors"
for name in model target batch shards ranks threads parameters flops_per_sample planned_bytes; do
    [ -n "$(field "$work/train.jsonl" start $name)" ] && ok || bad "start record without $name"
done
for name in epoch samples seconds samples_per_s train_loss train_accuracy test_loss test_accuracy peak_bytes weights_hash; do
    [ -n "$(field "$work/train.jsonl" epoch $name)" ] && ok || bad "epoch record without $name"
done
same "distinct samples" "$(field "$work/train.jsonl" epoch samples)" "512 "
# A path that is not a file is never replaced (not tested with /dev/null: a program that replaced it as root would
# break the machine).
mkfifo "$work/pipe"; : > "$work/target"; ln -s target "$work/link"
refuses "--save into a directory that is not there" "No such file" "$work/p" --epochs 1 --limit-samples 512 --save "$work/nowhere/w"
[ -s "$work/out" ] && bad "--save into nowhere is found out after the training only" || ok
refuses "--save over a pipe" "not a file" "$work/p" --epochs 1 --limit-samples 512 --save "$work/pipe"
[ -p "$work/pipe" ] && ok || bad "--save replaced a pipe"
succeeds "--save over a link" "$work/p" --epochs 1 --limit-samples 512 --save "$work/link"
[ -L "$work/link" ] && [ -s "$work/target" ] && ok || bad "--save replaced a link"
succeeds "test" "$work/p" test --weights "$work/w.safetensors"
cp "$TENON_ROOT/models/data/mnist/t10k-images-idx3-ubyte.gz" "$work/images.gz"; cp "$work/w.safetensors" "$work/weights.npy"
refuses "predict over its weights" "is the file that is read" "$work/p" predict --weights "$work/weights.npy" --input "$work/images.gz" --output "$work/weights.npy"
cmp -s "$work/w.safetensors" "$work/weights.npy" && ok || bad "predict replaced its weights"
refuses "made-up samples without a number" "does not say how many samples" "$work/p" --data synthetic --epochs 1
refuses "predict without input" "--input" "$work/p" predict --weights "$work/w.safetensors"
sed 's/dense(h, 64)/dense(h, 63)/' "$mlp" > "$work/other.tn"
TENON_CFLAGS=$flags TENON_CACHE=$outer "$TENON" build "$work/other.tn" -o "$work/other"
refuses "weights of another network" "dense2.weight" "$work/other" test --weights "$work/w.safetensors"
[ "$(stat -c %s "$work/p")" -lt 3000000 ] && ok || bad "the program is larger than 3 MB"
fi

if part examples; then
# Every command that a help text shows as an example.
cd "$TENON_ROOT"
for command in "" check show build run emit ops sweep results cache; do "$TENON" $command --help 2> /dev/null; done |
    grep -E '^ +tenon .*models/' | sort -u > "$work/examples"
[ "$(wc -l < "$work/examples")" -ge 1 ] && ok || bad "no help text has an example"
mkdir "$work/here" && ln -s "$TENON_ROOT/models" "$work/here/models" && cd "$work/here"     # files that the examples write stay in this directory
while read -r example; do
    case $example in
    "tenon sweep "*) example="$example --dry-run --store $work/examples.db" ;;
    "tenon run "*) example="$example --limit-samples 128" ;;
    *" && ./lenet "*) example="${example/-o lenet/-o $work/lenet}"; example="${example/.\/lenet/$work/lenet} --limit-samples 128" ;;
    esac
    succeeds "the example: $example" env TENON_CACHE="$outer" bash -c "tenon() { '$TENON' \"\$@\"; }; $example"
done < "$work/examples"
cd - > /dev/null
"$work/lenet" predict --help > "$work/help"
grep -q -- '--input FILE  *images as numbers: .npy (N, 1, 28, 28) .*PNG and JPEG' "$work/help" && ok || bad "predict --help of LeNet does not say what images can be"
fi
finish
