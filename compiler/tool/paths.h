/* paths.h -- where the files of the compiler are, found from the place of its executable. */
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

/* Finds a build tree (tenon, tenon.paths, lib/libtenonrt.a) or an installed one (bin/tenon,
 * lib/tenon, share/tenon), wherever it was moved.  Returns false after an error that lists the
 * places tried. */
bool paths_find(Arena *a, Paths *p, Diag *d);

const char *paths_self(Arena *a); /* the compiler; NULL, errno set, if the system does not tell */
/* A program of Tenon: beside the compiler (build tree) or in ../lib/tenon (installed); NULL if
 * there is none. */
const char *paths_program(Arena *a, const char *name);

#endif
