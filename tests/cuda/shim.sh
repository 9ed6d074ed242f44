# shim.sh -- sourced after common.sh: a GPU's program as one for the processor, over the CUDA runtime of fake.cpp and the fibers of shim.h.
#
#   shim_runtime                        once, before the first program
#   shim NAME MODEL OPTIONS...          $work/NAME/gpu, and $work/NAME/cpu of the same model in plain C
shim_sources=$TENON_ROOT/tests/cuda
shim_libraries="-lz -lpthread"
for l in lzma png turbojpeg; do echo 'int main(void) { return 0; }' | gcc -x c - -o "$work/has" -l$l 2> /dev/null && shim_libraries+=" -l$l" || true; done

shim_runtime() {
    gcc -O1 -Wall -Wextra -Werror -I "$shim_sources/include" -I "$TENON_ROOT/runtime" -c "$TENON_ROOT/runtime/cuda/gpu.c" -o "$work/gpu.o"
    for file in fiber fake; do g++ -std=c++20 -O2 -Wall -Wextra -Werror -I "$shim_sources/include" -c "$shim_sources/$file.cpp" -o "$work/$file.o"; done
}

shim() {
    local dir=$work/$1 model=$2; shift 2
    mkdir -p "$dir"
    "$TENON" emit "$model" --to cuda -o "$dir" "$@"
    "$TENON" build "$model" -o "$dir/cpu" --cpu generic --plain "$@"  # compiles at once
    g++ -std=c++20 -O1 -ffp-contract=off -Wall -Wextra -Werror -Wno-missing-field-initializers -Wno-unused-function -x c++ -DRT_SHIM \
        -include "$shim_sources/shim.h" -I "$shim_sources/include" -I "$TENON_ROOT/runtime" -c "$dir"/*.cu -o "$dir/program.o"
    g++ -o "$dir/gpu" "$dir/program.o" "$work"/{gpu,fiber,fake}.o "$(dirname "$TENON")/lib/libtenonrt.a" $shim_libraries
}
