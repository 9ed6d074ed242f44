# runtime.cmake -- the library that each program of tenon is linked with, and the paths by which tenon finds it.
#
# Floating-point contraction is off, as in generated code: a result depends on the source, not on choices of the compiler.
file(GLOB runtime CONFIGURE_DEPENDS runtime/*.c runtime/*/*.c)
list(FILTER runtime EXCLUDE REGEX "/cuda/[^/]*$")       # compiled with a program for a GPU
list(FILTER runtime EXCLUDE REGEX "/comm/mpi\\.c$")     # compiled with a program, by its MPI's compiler
add_library(tenonrt STATIC ${runtime})
target_include_directories(tenonrt PRIVATE runtime)
target_compile_options(tenonrt PRIVATE -O2 -ffp-contract=off)
set_target_properties(tenonrt PROPERTIES ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
add_dependencies(tenon tenonrt)

# Programs for CIFAR-10 are linked with liblzma.  Without it, they report this when they open an .xz file.
find_package(LibLZMA QUIET)
if(LIBLZMA_FOUND)
    target_compile_definitions(tenonrt PRIVATE TENON_LZMA)
    target_compile_definitions(tenoncore PRIVATE TENON_LZMA)
    target_include_directories(tenonrt PRIVATE ${LIBLZMA_INCLUDE_DIRS})
else()
    message(STATUS "liblzma was not found (Debian: apt-get install liblzma-dev): programs will not read data packed with xz")
endif()

# Programs for folders of images are linked with libpng and libturbojpeg.  Without them, tenon build refuses such a
# recipe.
find_package(PNG QUIET)
find_path(TURBOJPEG_INCLUDE turbojpeg.h)
find_library(TURBOJPEG_LIBRARY turbojpeg)
if(PNG_FOUND AND TURBOJPEG_INCLUDE AND TURBOJPEG_LIBRARY)
    target_compile_definitions(tenonrt PRIVATE TENON_IMAGES)
    target_compile_definitions(tenoncore PRIVATE TENON_IMAGES)
    target_include_directories(tenonrt PRIVATE ${PNG_INCLUDE_DIRS} ${TURBOJPEG_INCLUDE})
else()
    message(STATUS "libpng or libturbojpeg was not found (Debian: apt-get install libpng-dev libturbojpeg0-dev): no imagefolder")
endif()

# nvcc compiles programs for GPUs when they are built; tenon itself does not need it.  OFF: --target cuda reports that
# it is missing.
set(WITH_CUDA AUTO CACHE STRING "programs for GPUs: AUTO (where nvcc is found), ON (nvcc must be there) or OFF")
if(NOT WITH_CUDA STREQUAL "OFF")
    find_program(TENON_NVCC nvcc HINTS ENV CUDA_PATH ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES bin)
    if(TENON_NVCC)
        target_compile_definitions(tenoncore PRIVATE TENON_NVCC="${TENON_NVCC}")
    elseif(WITH_CUDA STREQUAL "ON")
        message(FATAL_ERROR "WITH_CUDA=ON, but nvcc was not found: install NVIDIA's CUDA toolkit, or set TENON_NVCC to it")
    else()
        message(STATUS "nvcc was not found (NVIDIA's CUDA toolkit): tenon build --target cuda will say so; tenon emit --to cuda works")
    endif()
endif()

# The file tenon.paths beside the compiler means "this is a build tree, and its sources are there"; an installed tenon
# has none.
get_filename_component(here ${CMAKE_BINARY_DIR} REALPATH)
get_filename_component(there ${CMAKE_SOURCE_DIR} REALPATH)
file(RELATIVE_PATH relative ${here} ${there})
list(JOIN sanitize " " flags)
file(WRITE ${CMAKE_BINARY_DIR}/tenon.paths "source=${relative}\ncflags=${flags}\n")
