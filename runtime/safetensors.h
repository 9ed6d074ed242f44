/* safetensors.h -- weights and states in files that everyone can read.
 *
 * Format: 8 bytes length of the header, little-endian; the header, JSON: {"__metadata__": {text:
 * text}, name: {"dtype", "shape", "data_offsets"}, ...}; then the data. Source:
 * github.com/huggingface/safetensors, README.
 */
#ifndef SAFETENSORS_H
#define SAFETENSORS_H
#include "file.h"
#include "rt.h"

/* --- writing: a list of tensors prepared once, written as often as wanted without an allocation
 * --- */

/* A tensor in a file: a parameter, its state or its gradient, in memory order at `from`. */
typedef struct StTensor { const char *name; const RtParam *param; const char *from; } StTensor;

/* The metadata item in whose place st_write puts a hash over the rest of the file. */
#define ST_CONTENT "\"content\":\"0000000000000000\""

/* The tensor of bytes that holds a program's vocabulary (data/vocab.h). */
#define ST_VOCABULARY "vocabulary"
/* and the one that holds the names of its classes (data/classes.h) */
#define ST_CLASSES "classes"

typedef struct StWriter {
    int       real_bytes, n;
    StTensor *tensor;
    const char *extra, *extra_text; int64_t extra_bytes; /* a tensor of bytes: its name, NULL: none; its content */
    char     *head;                                   /* room for the whole header */
    int64_t   room;
    File      file;
} StWriter;

/* metadata_room: bytes that the metadata may need. */
StWriter *st_writer_new(const RtProgram *p, int n, int64_t metadata_room);

/* metadata: the items of the JSON object, "\"a\":\"b\",\"c\":\"d\"", or "". */
void      st_write(StWriter *w, const char *path, const char *metadata);

/* --- reading --- */

typedef struct StEntry {
    char    name[256], dtype[8];
    int     rank;
    int64_t dim[8], begin, end;                       /* bytes of the data */
} StEntry;
typedef struct StFile {
    const char *path, *bytes, *data;
    int64_t     size, head, data_bytes;
    int         n, nmeta;
    StEntry    *entry;
    struct { char key[64], value[448]; } *meta;
} StFile;

/* NULL with a reason in `why` when there is no such file or it is broken in any way. */
StFile     *st_open(const char *path, char why[256]);
void        st_close(StFile *f);
const char *st_meta(const StFile *f, const char *key);            /* NULL: absent */
const StEntry *st_find(const StFile *f, const char *name);
bool        st_intact(const StFile *f);  /* its "content" hash, if it has one, is right */

/* Into memory order at `to`, converted to the program's type. The entry must have the
 * parameter's shape. */
void        st_load(const StFile *f, const StEntry *e, const RtParam *p, int real_bytes, char *to);
bool        st_same_shape(const StEntry *e, const RtParam *p);

#endif
