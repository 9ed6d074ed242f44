/* safetensors.h -- weights and states in the format safetensors.
 *
 * Files of Tenon have the item "format": "tenon weights 2", "tenon gradients 2" or "tenon
 * checkpoint 1". These have a hash of the content. "tenon weights 1" and "tenon gradients 1", which
 * earlier versions wrote, have none.
 *
 * Format: 8 bytes length of the header, little-endian; the header, JSON: {"__metadata__": {text:
 * text}, name: {"dtype", "shape", "data_offsets"}, ...}; then the data. Source:
 * github.com/huggingface/safetensors, README.
 */
#ifndef SAFETENSORS_H
#define SAFETENSORS_H
#include "files/file.h"
#include "rt.h"

/* Largest number of bytes of a header: written headers obey the limit of the format; headers that
 * are read can be a little longer. Single strings have no limit. */
enum { ST_HEAD_WRITTEN = 100000000, ST_HEAD_READ = 100 << 20 };

/* --- writing: the list of tensors is prepared once; each write of it allocates nothing */

/* A tensor in a file: a parameter, its state or its gradient, in memory order at `from`. */
typedef struct StTensor {
    const char *name;
    const RtParam *param;
    const char *from;
} StTensor;

/* The tensor of bytes that holds a program's vocabulary (data/vocab.h). */
#define ST_VOCABULARY "vocabulary"
/* The tensor of bytes that holds the names of its classes (data/classes.h). */
#define ST_CLASSES "classes"
/* The tensor of bytes that describes the columns of its table (data/columns.h). */
#define ST_COLUMNS "columns"

/* An item of the metadata: each st_write reads its value, which has at most `most` bytes. */
typedef struct StItem {
    const char *key, *value;
    int64_t most;
} StItem;

enum { ST_ITEMS = 14 };
typedef struct StWriter {
    int real_bytes, n, items;
    StTensor *tensor;
    StItem item[ST_ITEMS];
    const char *extra, *extra_text; /* a tensor of bytes: name (NULL: there is none), content */
    int64_t extra_bytes;            /* bytes of the content */
    char *head;                     /* room for the whole header */
    int64_t room;
    File file;
    char back[FILE_PIECE]; /* for reading back */
} StWriter;

StWriter *st_writer_new(const RtProgram *p, int n);

/* `most`: largest number of bytes of the value; 0: its present number. */
void st_writer_item(StWriter *w, const char *key, const char *value, int64_t most);

/* To be called after the last tensor and item: allocates the header and checks it with the reader.
 * Dies, with `path` in the message, if the header is not valid. */
void st_writer_ready(StWriter *w, const char *path);

/* Replaces the file at `path`. The metadata begin with "content": a hash of the rest of the file.
 * The new file is read and compared before it replaces the old one. */
void st_write(StWriter *w, const char *path);

/* --- reading --- */

typedef struct StEntry {
    const char *name, *dtype;
    int rank;
    int64_t first; /* index of its first dimension in StFile.dims */
    const int64_t *dim;
    int64_t begin, end; /* bytes of the data */
} StEntry;
typedef struct StMeta {
    const char *key, *value;
} StMeta;
typedef struct StFile {
    const char *path, *bytes, *data;
    int64_t size, head, data_bytes;
    int64_t n, nmeta, ndim;
    StEntry *entry;
    StMeta *meta;
    int64_t *dims; /* dimensions of all entries */
    char *strings;
    int64_t used; /* bytes used of `strings`: the header's strings, decoded, and their final 0s */
} StFile;

/* NULL with a reason in `why` if there is no such file or if it is damaged. */
StFile *st_open(const char *path, char why[256]);
void st_close(StFile *f);
const char *st_meta(const StFile *f, const char *key); /* NULL: absent */
const StEntry *st_find(const StFile *f, const char *name);

/* Whether the hash of the content is right. Files of other programs and of earlier versions have no
 * hash: they count as intact, or, if `must` is set, as damaged. */
bool st_intact(const StFile *f, bool must);

/* Whether the reader accepts a header of this many bytes, with its length, before this many bytes
 * of data. */
bool st_readable(const char *head, int64_t head_bytes, int64_t data_bytes, char why[256]);

/* Reads a tensor to memory order at `to`, converted to the type of the program. The entry must have
 * the shape of the parameter. */
void st_load(const StFile *f, const StEntry *e, const RtParam *p, int real_bytes, char *to);
bool st_same_shape(const StEntry *e, const RtParam *p);
bool st_is_float(const StEntry *e); /* of a type that st_load converts */

/* The text of a header before the digits of the hash. */
#define ST_CONTENT "\"content\":\""
enum { ST_DIGITS = 16 };

#endif
