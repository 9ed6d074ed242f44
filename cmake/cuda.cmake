# cuda.cmake -- tenon-plan, which plans cuDNN's graphs, and tenon-load, which loads plans.  Both need headers that can be missing.
#
#   WITH_CUDNN = AUTO   if the toolkit and cuDNN's headers are found (the default)       ON   or stop       OFF   never
#
# cuDNN's headers are searched beside the toolkit's.  The library itself is opened at run time; nothing is linked with it.
set(WITH_CUDNN AUTO CACHE STRING "planning of cuDNN graphs: AUTO (where its headers are found), ON (they must be there) or OFF")
set_property(CACHE WITH_CUDNN PROPERTY STRINGS AUTO ON OFF)
if(WITH_CUDNN STREQUAL "OFF" OR WITH_CUDA STREQUAL "OFF")
    return()
endif()

find_package(CUDAToolkit 13.0 QUIET)
find_path(CUDNN_INCLUDE cudnn_graph.h HINTS ${CUDAToolkit_INCLUDE_DIRS} $ENV{CUDNN_HOME}/include)
set(cudnn_minor 0)
if(CUDNN_INCLUDE AND EXISTS ${CUDNN_INCLUDE}/cudnn_version.h)
    file(STRINGS ${CUDNN_INCLUDE}/cudnn_version.h line REGEX "define CUDNN_(MAJOR|MINOR) ")
    string(REGEX REPLACE ".*MAJOR ([0-9]+).*MINOR ([0-9]+).*" "\\1.\\2" cudnn_minor "${line}")
endif()
if(NOT CUDAToolkit_FOUND OR cudnn_minor VERSION_LESS 9.8)
    set(missing "the CUDA toolkit 13.0 or the headers of cuDNN 9.8 or later were not found (CUDACXX=/path/nvcc, CUDNN_HOME=/path)")
    if(WITH_CUDNN STREQUAL "ON")
        message(FATAL_ERROR "WITH_CUDNN=ON, but ${missing}")
    endif()
    message(STATUS "No planning of cuDNN graphs: ${missing}")
    return()
endif()

# The sources that use cuDNN: for the planner, and for programs.
file(GLOB sources CONFIGURE_DEPENDS runtime/cuda/cudnn_*.c)
add_library(tenoncudnn STATIC ${sources})
target_include_directories(tenoncudnn PUBLIC runtime SYSTEM PUBLIC ${CUDNN_INCLUDE} ${CUDAToolkit_INCLUDE_DIRS})
target_link_libraries(tenoncudnn PUBLIC ${CMAKE_DL_LIBS})
set_target_properties(tenoncudnn PROPERTIES ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

# tenon-plan, and the stand-in for the driver that it loads.
add_executable(tenon-plan runtime/cuda/planner/main.c)
target_link_libraries(tenon-plan PRIVATE tenoncudnn)
add_library(tenonstandin SHARED runtime/cuda/planner/standin.c)
target_include_directories(tenonstandin SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
target_link_options(tenonstandin PRIVATE -Wl,-soname,libcuda.so.1)
set_target_properties(tenonstandin PROPERTIES NO_SONAME ON LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
add_dependencies(tenon-plan tenonstandin)
add_dependencies(tenon tenon-plan)

# The program with which tests/cuda/plans.sh loads plans.
add_executable(tenon-load EXCLUDE_FROM_ALL tests/cuda/load.c)
target_link_libraries(tenon-load PRIVATE tenoncudnn)
set_target_properties(tenon-load PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
if(TENON_TESTS)
    set_target_properties(tenon-load PROPERTIES EXCLUDE_FROM_ALL OFF)
endif()
