/* conv_dw_units.h -- the number of units of conv_dw_update.h, which is all that the file of a step
 * needs. */
#ifndef CPU_CONV_DW_UNITS_H
#define CPU_CONV_DW_UNITS_H
#include "cpu/tile.h"

enum {
    /* levels of the tree of at most eight shards; the stack holds one sum for each level */
    CONV_DW_DEPTH = 4,
    /* a whole number of panels; shorter rows of filters are read more slowly */
    CONV_DW_CHANNELS = RT_DW_BLOCK_CHANNELS,
    CONV_DW_OUTPUTS = RT_DW_BLOCK_BYTES / sizeof(real) / TILE_ROWS * TILE_ROWS,
    CONV_DW_BLOCK = CONV_DW_OUTPUTS * CONV_DW_CHANNELS
};
#define CONV_DW_O(o) (((o) + CONV_DW_OUTPUTS - 1) / CONV_DW_OUTPUTS)
#define CONV_DW_C(c) (((c) + CONV_DW_CHANNELS - 1) / CONV_DW_CHANNELS)
/* Units for o outputs, c channels and `taps` taps. */
#define CONV_DW_UNITS(o, c, taps) (CONV_DW_O(o) * CONV_DW_C(c) * (taps))
/* The same for bf16_conv_update.h. */
enum { BF16_FILTER_OUTPUTS = RT_BF16_FILTER_OUTPUTS };
#define BF16_FILTER_UNITS(o, c, taps)                                                              \
    (((o) + BF16_FILTER_OUTPUTS - 1) / BF16_FILTER_OUTPUTS * CONV_DW_C(c) * (taps))

#endif
