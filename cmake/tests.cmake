# tests.cmake -- one executable for each C file under tests/; ./check and ctest run them.
#
#   tests/unit     the directories of the compiler
#   tests/sweep    tenon-bench
#   tests/kernels  each file for each instruction set of this machine, in f32 and f64
#   tests/runtime  the runtime, with small programs that are written by hand
find_package(PkgConfig QUIET)
if(PKG_CONFIG_FOUND)
    pkg_check_modules(CHECK QUIET IMPORTED_TARGET check)
endif()
if(NOT CHECK_FOUND)
    message(STATUS "The library Check was not found (Debian: apt-get install check pkg-config): no tests are built")
    return()
endif()
enable_testing()

add_custom_target(tests_quick)                        # all tests except those of kernels: they compile in seconds
add_custom_target(tests_check)                        # what ./check runs without --deep
add_dependencies(tests_check tests_quick tenon tenonrt tenon-reference)
foreach(target tenon-bench tenon-lsp tenon-peak tenon-plan tenon-load tenoncudnn)
    if(TARGET ${target})
        add_dependencies(tests_check ${target})
    endif()
endforeach()

# tenon_test(NAME SOURCE LIBRARY...): an executable DIR/tests/NAME, a part of the target `all`
function(tenon_test name source)
    add_executable(${name} ${source})
    target_link_libraries(${name} PRIVATE ${ARGN} PkgConfig::CHECK m)
    target_include_directories(${name} PRIVATE tests)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
endfunction()

file(GLOB sources CONFIGURE_DEPENDS tests/unit/*.c)
foreach(source ${sources})
    get_filename_component(stem ${source} NAME_WE)
    tenon_test(unit_${stem} ${source} tenoncore)
    add_dependencies(tests_quick unit_${stem})
endforeach()

if(TARGET tenonbench)
    file(GLOB sources CONFIGURE_DEPENDS tests/sweep/*.c)
    foreach(source ${sources})
        get_filename_component(stem ${source} NAME_WE)
        tenon_test(unit_sweep_${stem} ${source} tenonbench)
        add_dependencies(tests_quick unit_sweep_${stem})
    endforeach()
    add_library(nvml_standin SHARED EXCLUDE_FROM_ALL tests/sweep/nvml/standin.c)
    set_target_properties(nvml_standin PROPERTIES PREFIX "" OUTPUT_NAME libnvidia-ml SUFFIX .so.1 LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/nvml)
    set_target_properties(unit_sweep_test_gpus PROPERTIES BUILD_RPATH ${CMAKE_BINARY_DIR}/tests/nvml)
    target_link_options(unit_sweep_test_gpus PRIVATE -Wl,--disable-new-dtags)   # so that dlopen also searches here under a sanitizer
    add_dependencies(unit_sweep_test_gpus nvml_standin)
endif()

file(GLOB sources CONFIGURE_DEPENDS tests/runtime/*.c)
foreach(source ${sources})
    get_filename_component(stem ${source} NAME_WE)
    tenon_test(runtime_${stem} ${source} tenonrt z)
    add_dependencies(tests_quick runtime_${stem})
    target_include_directories(runtime_${stem} PRIVATE runtime)
    target_compile_options(runtime_${stem} PRIVATE -ffp-contract=off)
endforeach()

set(machines generic)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND EXISTS /proc/cpuinfo)
    file(STRINGS /proc/cpuinfo cpu LIMIT_COUNT 1 REGEX "^flags")
    if(cpu MATCHES " avx2 .*" AND cpu MATCHES " fma ")
        list(APPEND machines x86-64-v3)
    endif()
    if(cpu MATCHES " avx512f " AND cpu MATCHES " avx512vl ")
        list(APPEND machines x86-64-v4)
    endif()
endif()

# Kernels are inlined into each case of a test, so tests of kernels take long to compile: 2 s with -O0, 30 s with -O2,
# as in generated code.  The widest instruction set of this machine in f32 is tested with both; the test with -O2 is
# for ./check --deep.  test_conv* and test_sequence are not compiled with -O2, because their sizes are known only at
# run time and they take minutes: tests of programs and bench/convs compare these kernels as compiled for use.
set(flags_generic)
set(flags_x86-64-v3 -march=x86-64-v3)
set(flags_x86-64-v4 -march=x86-64-v4 -mprefer-vector-width=512)
list(GET machines -1 widest)

# kernel_test(STEM MACHINE TYPE LEVEL SUFFIX): the executable DIR/tests/kernels_STEM_MACHINE_TYPESUFFIX
function(kernel_test stem machine type level suffix)
    set(name kernels_${stem}_${machine}_${type}${suffix})
    tenon_test(${name} tests/kernels/${stem}.c)
    target_sources(${name} PRIVATE runtime/base/team.c)
    if(EXISTS ${CMAKE_SOURCE_DIR}/tests/kernels/literal/${stem}.c) # kernels with sizes that the compiler knows
        target_sources(${name} PRIVATE tests/kernels/literal/${stem}.c)
        set_source_files_properties(tests/kernels/literal/${stem}.c PROPERTIES COMPILE_OPTIONS -O2)
    endif()
    if("${stem} ${machine}" STREQUAL "test_bf16 x86-64-v4") # kernels that use the tiles of this machine, if it has them
        target_sources(${name} PRIVATE runtime/base/tiles.c)
    endif()
    if("${stem} ${machine}" STREQUAL "test_bf16_tiles x86-64-v4" AND cpu MATCHES " avx512_bf16 ")
        target_compile_definitions(${name} PRIVATE BF16_CONVERTS=1 RT_FAST)
    endif()
    target_include_directories(${name} PRIVATE runtime)
    target_compile_options(${name} PRIVATE -ffp-contract=off -fno-math-errno -fno-trapping-math ${flags_${machine}} ${level})
    if(stem STREQUAL "test_math")                     # it computes with the bits of numbers as integers: an overflow traps (SIGILL), without a library
        target_compile_options(${name} PRIVATE -fsanitize=undefined -fsanitize-undefined-trap-on-error)
    endif()
    if(type STREQUAL f64)
        target_compile_definitions(${name} PRIVATE RT_F64)
    endif()
    if(level STREQUAL -O2)                            # functions of a test call kernels without RT_FLATTEN
        target_compile_definitions(${name} PRIVATE RT_NESTED)
    endif()
    if("${machine} ${type} ${suffix}" STREQUAL "${widest} f32 " OR "${machine} ${type}" STREQUAL "generic f64")
        add_dependencies(tests_check ${name})
    endif()
endfunction()

file(GLOB sources CONFIGURE_DEPENDS tests/kernels/*.c)
foreach(source ${sources})
    get_filename_component(stem ${source} NAME_WE)
    foreach(machine ${machines})
        kernel_test(${stem} ${machine} f32 -O0 "")
        if(NOT stem MATCHES "^test_bf16")             # factors in bf16 have sums in f32
            kernel_test(${stem} ${machine} f64 -O0 "")
        endif()
    endforeach()
    if(NOT stem MATCHES "^test_(conv|sequence)")
        kernel_test(${stem} ${widest} f32 -O2 _optimised)
    endif()
endforeach()
