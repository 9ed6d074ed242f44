# npy.sh -- sourced after common.sh: arrays that $work/arrays.py makes, with tests/npy.py, and programs that learn from them.  Without
# python3 the test ends, and counts as skipped.
#
# A network NAME has the model NAME.tn, the arrays of directory NAME and the program ./NAME-cpu, all in the current directory, $work.
#
#   arrays PYTHON                          runs statements with the functions of arrays.py
#   equal_bits NAME EPOCHS METRIC OTHER    ./NAME-cpu, whose recipe has EPOCHS, reaches the same weights, train_METRIC and test_METRIC in
#                                          each epoch with 1, 2 and 16 threads, in two groups, after a resume and as two MPI ranks; a
#                                          resume refuses the arrays of directory OTHER.  The run of one thread leaves one.log,
#                                          one.safetensors and its output one.out
#   make NAME PROGRAM OPTIONS...           builds NAME.tn; the test ends if that fails
#   equal_bf16_bits NAME                   the network in bf16 has the same weights with 1 and 2 threads
#   like_plain NAME METRIC...              in f64, the network has the same values in epochs without any optional pass: train_loss.  Leaves
#                                          ./double, and its log double.log
#   same_values TEXT RECORD A B METRIC...  the logs A and B have equal values in these records, but for the last digits
#   wrong_arrays NAME TEXT PATTERN PYTHON  ./NAME-cpu refuses the arrays of directory NAME after a change of the copy d
command -v python3 > /dev/null || { skip "no python3 that writes arrays"; finish; exit; }
arrays() { (cd "$work" && PYTHONPATH=$TENON_ROOT/tests python3 -B arrays.py "$1"); }
wrong_arrays() {
    rm -rf d; cp -r "$1" d
    arrays "$4"
    refuses "$2" "$3" "./$1-cpu" train --data ./d --epochs 1
}
make() { "$TENON" build "$work/$1.tn" -o "${@:2}" > "$work/out" 2>&1 || { bad "tenon build $*"; cat "$work/out"; finish; exit 1; }; }
digits() { tr ' ' '\n' | awk 'NF { printf "%.9f ", $1 }'; }
same_values() {
    local text=$1 record=$2 a=$3 b=$4 name; shift 4
    for name in "$@"; do same "$text: $name" "$(field "$a" "$record" "$name" | digits)" "$(field "$b" "$record" "$name" | digits)"; done
}
like_plain() {
    local name=$1; shift
    make "$name" double --dtype f64
    succeeds "$name in f64" ./double train --log double.log
    witness "$work/$name.tn" plain --dtype f64
    succeeds "$name, plain" ./plain train --log plain.log
    same_values "$name, plain" epoch double.log plain.log "$@"
}
equal_bf16_bits() {
    make "$1" half --dtype bf16
    succeeds "bf16" ./half train --log half.log --threads 1
    succeeds "bf16, two threads" ./half train --log half2.log --threads 2
    same "bf16: threads" "$(hashes half.log)" "$(hashes half2.log)"
}
equal_bits() {
    local program=./$1-cpu epochs=$2 metric=$3 other=$4 way
    succeeds "train" "$program" train --threads 1 --log one.log --save one.safetensors
    cp out one.out
    for way in "--threads 2" "--threads 16" "--groups 2"; do
        # shellcheck disable=SC2086
        succeeds "$way" "$program" train $way --log many.log
        same_epochs "$way" many.log "$metric"
    done
    succeeds "stopped" "$program" train --epochs $((epochs / 2)) --checkpoint c --log resumed.log
    succeeds "resumed" "$program" train --epochs "$epochs" --checkpoint c --resume --log resumed.log
    same_epochs "resumed" resumed.log "$metric"
    refuses "resumed with other data" "cannot be resumed by this run: it was made with data .*: the training samples have changed; give the earlier ones, or begin a new run with --weights" \
        "$program" train --epochs $((epochs + 1)) --checkpoint c --resume --data "./$other"
    if command -v mpicc > /dev/null && command -v mpirun > /dev/null; then
        export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
        succeeds "two ranks: build" "$TENON" build "$1.tn" -o ranks-cpu --comm mpi
        succeeds "two ranks" timeout -k 5 120 mpirun -n 2 --bind-to none ./ranks-cpu train --threads 1 --log ranks.log
        same_epochs "two ranks" ranks.log "$metric"
    else
        skip "two ranks: no mpicc and mpirun"
    fi
}
# same_epochs TEXT LOG METRIC: LOG has the epochs of one.log
same_epochs() {
    local name
    for name in weights_hash "train_$3" "test_$3"; do
        same "$1: $name" "$(field one.log epoch "$name")" "$(field "$2" epoch "$name")"
    done
}
