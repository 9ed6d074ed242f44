/* tiles.h -- compiles the kernels of a bf16 program for AMX, on machines without it: the tile
 * instructions are those of tests/kernels/tiles.h.  bf16.sh includes this file first in each file of
 * a program.
 */
#ifndef PROGRAM_TILES_H
#define PROGRAM_TILES_H
#define RT_TILES_STAND_IN 1
#include "rt.h"
#include <string.h>

/* Each file of the program defines both; the linker keeps one. */
#pragma weak rt_tiles_stand_in
#pragma weak rt_tiles_begin_stand_in
#define rt_tiles       rt_tiles_stand_in
#define rt_tiles_begin rt_tiles_begin_stand_in

#include "cpu/vec.h"

#define KERNEL_TEST_H /* kernel_test.h is for tests that link a library for tests */
#define OPTIMISED
#include "../kernels/tiles.h"

#endif
