/* folders.h -- folders of images: DIR/train/CLASS/any name.png, DIR/test/CLASS/... */
#ifndef FOLDERS_H
#define FOLDERS_H
#include "rt.h"

typedef struct ImageFile {
    char *path; /* DIR/train/cat/17.png */
    int32_t label;
    int64_t bytes, changed; /* nanoseconds since 1970 */
} ImageFile;

typedef struct Folders {
    ImageFile *image; /* the classes take turns, so that the first N images have all classes */
    int64_t n;
    uint64_t hash; /* of names, sizes and times of the files */
} Folders;

/* Lists the images of a split. The folders of the training split, sorted by name, are the classes
 * 0, 1, ... Returns false if there is no folder `split`; dies if it is no data set with the classes
 * of p. */
bool folders_list(const RtProgram *p, const char *directory, const char *split, Folders *out);

/* Lists images to predict, without labels: one file, or the sorted files of a folder; dies if there
 * are none. */
void folders_input(const char *path, Folders *out);

bool folders_is_image(const char *name); /* by the end of the name */

#endif
