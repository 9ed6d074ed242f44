/* conv_dw_units.h -- how many units conv_dw_update.h has: all that the file of a step needs to know of it. */
#ifndef CPU_CONV_DW_UNITS_H
#define CPU_CONV_DW_UNITS_H
#include "cpu/tile.h"

enum {
    CONV_DW_DEPTH = 4, /* of the tree over at most eight shards: a sum each lies on the stack */
    CONV_DW_CHANNELS = RT_SQUARE_CHANNELS, /* whole panels: shorter stretches of the filters are no streams */
    CONV_DW_OUTPUTS = RT_SQUARE_BYTES / sizeof(real) / TILE_ROWS * TILE_ROWS,
    CONV_DW_SQUARE = CONV_DW_OUTPUTS * CONV_DW_CHANNELS
};
#define CONV_DW_O(o) (((o) + CONV_DW_OUTPUTS - 1) / CONV_DW_OUTPUTS)
#define CONV_DW_C(c) (((c) + CONV_DW_CHANNELS - 1) / CONV_DW_CHANNELS)
/* Units of o outputs, c channels and so many taps. */
#define CONV_DW_UNITS(o, c, taps) (CONV_DW_O(o) * CONV_DW_C(c) * (taps))

#endif
