/* format.h -- the one style of model files: `tenon fmt`, and formatting in editors. */
#ifndef FORMAT_H
#define FORMAT_H
#include "base/diag.h"

enum { FORMAT_WIDTH = 100 }; /* columns; a longer line is broken where the language allows it */

/* The text of a model file in the one style, in the arena.  Reads no other file, and no name has
 * to be known.  Reports syntax errors at their places, and returns NULL after an error.
 *
 * The result has the same tokens and the same comments as the source.  Formatting the result again
 * changes nothing. */
const char *format_source(Arena *a, Diag *d, const Source *s);

#endif
