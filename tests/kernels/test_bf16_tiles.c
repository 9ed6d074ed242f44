/* test_bf16_tiles.c -- test_bf16.c with the kernels for the tiles of AMX, whose instructions are
 * computed by tiles.h. */
#include "tiles.h"

#include "test_bf16.c"
