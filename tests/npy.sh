# npy.sh -- sourced after common.sh: arrays that $work/arrays.py makes, with tests/npy.py.
#
#   arrays PYTHON                          runs statements with the functions of arrays.py
#   wrong_arrays NAME TEXT PATTERN PYTHON  ./NAME-cpu refuses the arrays of directory NAME after a change of the copy d
arrays() { (cd "$work" && PYTHONPATH=$TENON_ROOT/tests python3 -B arrays.py "$1"); }
wrong_arrays() {
    rm -rf d; cp -r "$1" d
    arrays "$4"
    refuses "$2" "$3" "./$1-cpu" train --data ./d --epochs 1
}
