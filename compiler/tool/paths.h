/* paths.h -- finds the files of the compiler from the path of its executable. */
#ifndef PATHS_H
#define PATHS_H
#include "base/diag.h"

typedef struct Paths {
    const char *runtime; /* directory of rt.h */
    const char *library; /* libtenonrt.a */
    const char *cudnn;   /* libtenoncudnn.a, which may be missing */
    const char *data;    /* models/data: data sets by name */
    /* flags for programs: a build tree with sanitizers builds programs with sanitizers; else "" */
    const char *cflags;
} Paths;

/* Finds a build tree (tenon, tenon.paths, lib/libtenonrt.a) or an installed one (bin/tenon,
 * lib/tenon, share/tenon), in any directory.  Returns false after an error that lists the paths
 * tried. */
bool paths_find(Arena *a, Paths *p, Diag *d);

/* Directory of the model files that come with Tenon and that every model can import; NULL: there is
 * none. */
const char *paths_models(Arena *a);
/* path of the running compiler; NULL, with errno, if it is unknown */
const char *paths_self(Arena *a);
/* The path of a program of Tenon: in the directory of the compiler (build tree) or in ../lib/tenon
 * (installed).  NULL if there is none. */
const char *paths_program(Arena *a, const char *name);

#endif
