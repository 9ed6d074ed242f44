/* classes.h -- what the classes are called, where the data say so: the folders of images.
 *
 * The names go with the weights, as the tensor "classes": a line of text a class, so that predict knows them without the data.
 */
#ifndef CLASSES_H
#define CLASSES_H
#include "rt.h"

typedef struct Classes {
    int64_t n;
    const char **name;
    char *text; int64_t text_bytes;                   /* as it is saved */
} Classes;

/* The names of this process; NULL: there are none. */
const Classes *classes_now(void);

/* Takes the names, sorted as the classes are; a new line in one becomes a question mark. */
void classes_take(char *const *name, int64_t n);

/* From a file of weights; false when that has none.  Dies when they are not as many as p's. */
bool classes_of_weights(const RtProgram *p, const char *path);

#endif
