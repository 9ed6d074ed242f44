/* paths.h -- where the compiler's own things lie, found from where it lies itself. */
#ifndef PATHS_H
#define PATHS_H
#include "base/diag.h"

typedef struct Paths {
    const char *runtime; /* directory of rt.h */
    const char *library; /* libtenonrt.a */
    const char *cudnn;   /* libtenoncudnn.a, which may be missing */
    const char *data;    /* models/data: data sets by name */
    const char *cflags;  /* a sanitized build tree builds sanitized programs; "" otherwise */
} Paths;

/* A build tree (tenon, tenon.paths, lib/libtenonrt.a) or an installed one (bin/tenon, lib/tenon, share/tenon),
 * wherever it was moved to.  false after an error that lists the places tried. */
bool paths_find(Arena *a, Paths *p, Diag *d);

const char *paths_self(Arena *a); /* the compiler; NULL, errno set, when the system does not tell */
/* A program of ours: beside the compiler (a build tree) or in ../lib/tenon (an installed one); NULL when it is not there. */
const char *paths_program(Arena *a, const char *name);

#endif
