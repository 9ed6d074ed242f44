/* classes.h -- names of the classes, which folders of images have.
 *
 * A file of weights has the names as the tensor "classes", one line of text for each class, so
 * predict needs no data set for them.
 */
#ifndef CLASSES_H
#define CLASSES_H
#include "rt.h"

typedef struct Classes {
    int64_t n;
    const char **name;
    char *text;
    int64_t text_bytes; /* bytes of the text, which is in the saved form */
} Classes;

/* The names of this process; NULL: there are none. */
const Classes *classes_now(void);

/* Takes the names in the order of the classes; replaces a new line in a name by a question mark. */
void classes_take(char *const *name, int64_t n);

/* Takes the names from a file of weights; false if it has none. Dies if their number is not that of
 * the classes of p. */
bool classes_of_weights(const RtProgram *p, const char *path);

#endif
