/* sample.c -- what a data set holds: kind and sizes of its samples, and the number of classes.
 *
 * The forms are those of docs/how-to/own-data.md that need no other program.  The runtime reads the
 * same files completely and checks them; this file reads what a model depends on.
 */
#include "tool/sample.h"
#include "base/quote.h"
#include "tool/file.h"
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const Span nowhere;

/* Data sets whose names a recipe knows without a path. */
static const struct {
    const char *name;
    Sample sample;
} known[] = {
    {"mnist", {.kind = SAMPLE_IMAGE, .data = "mnist", .dim = {1, 28, 28}, .classes = 10}},
    {"cifar10", {.kind = SAMPLE_IMAGE, .data = "cifar10", .dim = {3, 32, 32}, .classes = 10}},
    {"tinyshakespeare",
     {.kind = SAMPLE_TEXT,
      .data = "text(\"tinyshakespeare\", unit = \"char\", vocab = 65)",
      .dim = {64},
      .classes = 65,
      .vocab = 65}},
};
enum { KNOWN = sizeof known / sizeof *known, MOST_CLASSES = 1 << 20 };

void sample_names(Arena *a, const char ***name, int *n)
{
    for (int i = 0; i < KNOWN; i++)
        ARENA_PUSH(a, *name, *n, known[i].name);
}

/* ---- NumPy arrays */

enum { HEAD = 1 << 16 }; /* bytes of a file that hold the head of an array */

typedef struct Array {
    char type[8]; /* "u1", "f4" */
    int64_t dim[4];
    int rank;
    const unsigned char *bytes; /* of the elements */
    int64_t nbytes;
} Array;

/* Reads an array, or its head only, as the module numpy.lib.format of NumPy describes it. */
static bool read_array(Arena *a, const char *path, size_t most, Array *out)
{
    size_t len = 0;
    const char *file = file_read_head(a, path, most, &len);
    if (!file || len < 12 || memcmp(file, "\x93NUMPY", 6) != 0)
        return false;
    const unsigned char *u = (const unsigned char *)file + 8;
    const bool old = file[6] == 1;
    const size_t begin = old ? 10 : 12;
    const size_t head = old ? u[0] + 256u * u[1] : u[0] + 256u * u[1] + 65536u * u[2];
    if (head > len - begin)
        return false;
    const char *text = arena_strndup(a, file + begin, head);
    const char *type = strstr(text, "'descr': '"), *shape = strstr(text, "'shape': (");
    if (!type || !shape || sscanf(type, "'descr': '%*1[<|]%7[a-z0-9]'", out->type) != 1)
        return false;
    char *end = (char *)shape + strlen("'shape': (");
    for (out->rank = 0; out->rank < 4 && *end != ')'; out->rank++) {
        const char *from = end;
        out->dim[out->rank] = strtoll(from, &end, 10);
        if (end == from || out->dim[out->rank] < 1 || out->dim[out->rank] > INT32_MAX)
            return false;
        end += strspn(end, ", ");
    }
    out->bytes = (const unsigned char *)file + begin + head;
    out->nbytes = (int64_t)(len - begin - head);
    return *end == ')' && out->rank > 0;
}

/* One more than the largest class of an array of integers; 0: it has none, or a number that is no
 * class. */
static int count_classes(const Array *y)
{
    const int size = y->type[0] == 'u' || y->type[0] == 'i' ? y->type[1] - '0' : 0;
    int64_t most = -1;
    for (int64_t at = 0; size > 0 && at + size <= y->nbytes; at += size) {
        uint64_t v = 0;
        for (int i = size - 1; i >= 0; i--)
            v = v << 8 | y->bytes[at + i];
        const bool negative = y->type[0] == 'i' && v >> (8 * size - 1);
        if (negative || v >= MOST_CLASSES)
            return 0;
        most = (int64_t)v > most ? (int64_t)v : most;
    }
    return (int)most + 1;
}

static double real_at(const Array *y, int64_t i)
{
    float half = 0;
    double whole = 0;
    if (y->type[1] == '4')
        memcpy(&half, y->bytes + 4 * i, 4);
    else
        memcpy(&whole, y->bytes + 8 * i, 8);
    return y->type[1] == '4' ? (double)half : whole;
}

/* Takes an array of real numbers as targets; false: it is none, or holds a number that is not
 * finite. */
static bool take_targets(const Array *y, Sample *out)
{
    const int64_t n = y->dim[0] * (y->rank == 2 ? y->dim[1] : 1);
    double sum = 0, far = 0;
    if ((strcmp(y->type, "f4") != 0 && strcmp(y->type, "f8") != 0) || y->rank > 2 ||
        y->nbytes < n * (y->type[1] - '0'))
        return false;
    for (int64_t i = 0; i < n; i++)
        sum += real_at(y, i);
    for (int64_t i = 0; i < n; i++)
        far += (real_at(y, i) - sum / (double)n) * (real_at(y, i) - sum / (double)n);
    out->targets = y->rank == 2 ? (int)y->dim[1] : 1;
    out->mean = sum / (double)n;
    out->spread = far > 0 ? sqrt(far / (double)n) : 1;
    return isfinite(out->mean) && isfinite(out->spread);
}

static bool find_arrays(Arena *a, const char *data, Sample *out, Diag *d)
{
    Array x = {0}, y = {0};
    const char *images = path_join(a, data, "train_x.npy"), *own = "train_y.npy";
    if (!file_exists(images)) {
        images = path_join(a, data, "x.npy");
        own = "y.npy";
    }
    if (!read_array(a, images, HEAD, &x) || !read_array(a, path_join(a, data, own), SIZE_MAX, &y)) {
        diag_error(d, nowhere, "%s and %s are not two arrays of numbers", images, own);
        diag_help(d, "save them with numpy.save");
        return false;
    }
    const bool numbers =
        strcmp(x.type, "f4") == 0 || strcmp(x.type, "f8") == 0 || strcmp(x.type, "u1") == 0;
    if (x.rank == 4 && y.rank >= 3 && y.dim[0] == x.dim[0]) {
        diag_error(d, nowhere, "%s holds masks: tenon new writes no models for them",
                   path_join(a, data, own));
        diag_help(d, "docs/how-to/masks.md has models to begin with");
        return false;
    }
    const bool targets = take_targets(&y, out);
    out->classes = targets ? 0 : count_classes(&y);
    if (!numbers || x.rank < 2 || (out->classes < 2 && !targets)) {
        diag_error(d, nowhere,
                   "%s: tenon new writes models for numbers and classes: the samples "
                   "are %s of %d dimension%s, with %d class%s",
                   data, x.type, x.rank - 1, x.rank == 2 ? "" : "s", out->classes,
                   out->classes == 1 ? "" : "es");
        diag_help(d, "samples are f4, f8 or u1 with 1 to 3 dimensions; at least two classes are "
                     "integers from 0, and targets are f4 or f8, finite");
        return false;
    }
    if (targets && y.dim[0] != x.dim[0]) {
        diag_error(d, nowhere, "%s has %lld samples, but %s %lld targets", images,
                   (long long)x.dim[0], own, (long long)y.dim[0]);
        diag_help(d, "save one row of numbers for each sample");
        return false;
    }
    if (!targets && (y.dim[0] != x.dim[0] || y.rank > 2 || (y.rank == 2 && y.dim[1] != 1))) {
        diag_error(d, nowhere, "%s has %lld samples, but %s is no list of %lld classes", images,
                   (long long)x.dim[0], own, (long long)x.dim[0]);
        if (y.rank > 2 && y.dim[0] == x.dim[0])
            diag_help(d,
                      "masks are declared in the recipe, as target = mask: class[64, 64] or mask: "
                      "f32[1, 64, 64]: see docs/how-to/masks.md");
        else
            diag_help(d, "save one integer for each sample");
        return false;
    }
    out->kind = x.rank == 4 ? SAMPLE_IMAGE : x.rank == 3 ? SAMPLE_SEQUENCE : SAMPLE_ROW;
    for (int i = 1; i < x.rank; i++)
        out->dim[i - 1] = (int)x.dim[i];
    return true;
}

/* ---- directories and texts */

static int count_directories(Arena *a, const char *path)
{
    DIR *dir = opendir(path);
    int n = 0;
    for (const struct dirent *e; dir && (e = readdir(dir));)
        n += e->d_name[0] != '.' && dir_exists(path_join(a, path, e->d_name));
    if (dir)
        closedir(dir);
    return n;
}

static bool find_labelled(Arena *a, const char *path, Sample *out, Diag *d)
{
    size_t len = 0;
    const char *text = file_read(a, path, &len);
    long most = -1;
    if (!text) {
        diag_error(d, nowhere, "cannot read %s: %s", path, strerror(errno));
        return false;
    }
    for (const char *s = text; *s; s += strcspn(s, "\n"), s += *s == '\n') {
        char *end;
        const long label = strtol(s, &end, 10);
        if (end == s || *end != '\t' || label < 0 || label >= MOST_CLASSES) {
            diag_error(d, nowhere, "%s: a line is the number of a class, a tab and a text", path);
            return false;
        }
        most = label > most ? label : most;
    }
    if (most < 1) {
        diag_error(d, nowhere, "%s has no texts of at least two classes, counted from 0", path);
        return false;
    }
    out->kind = SAMPLE_TEXTS;
    out->classes = (int)most + 1;
    return true;
}

/* Counts the characters that occur in a text. */
static bool find_text(Arena *a, const char *path, Sample *out, Diag *d)
{
    size_t len = 0;
    const char *text = file_read(a, path, &len);
    bool *seen = arena_alloc(a, 0x110000);
    if (!text) {
        diag_error(d, nowhere, "cannot read %s: %s", path, strerror(errno));
        return false;
    }
    for (size_t i = 0, n; i < len; i += n) {
        n = (size_t)text_character(text + i, len - i);
        if (n == 0) {
            diag_error(d, nowhere, "%s is not a text: byte %zu is not UTF-8", path, i);
            diag_help(d, "a directory holds arrays, images or labelled texts: "
                         "docs/how-to/own-data.md");
            return false;
        }
        const unsigned char *u = (const unsigned char *)text + i;
        unsigned code = n == 1 ? u[0] : u[0] & (0x7f >> n);
        for (size_t k = 1; k < n; k++)
            code = code << 6 | (u[k] & 0x3f);
        out->vocab += !seen[code];
        seen[code] = true;
    }
    if (len < 1000) {
        diag_error(d, nowhere, "%s has %zu bytes, too few to learn from", path, len);
        return false;
    }
    if (out->vocab < 2) {
        diag_error(d, nowhere, "%s has one character only: there is nothing to learn", path);
        return false;
    }
    out->kind = SAMPLE_TEXT;
    out->classes = out->vocab;
    out->dim[0] = 64;
    return true;
}

/* A path as the language writes a string.  A path without '/' would be looked up as a name. */
static const char *string_of(Arena *a, const char *path)
{
    return quote_model(a, strchr(path, '/') ? path : arena_printf(a, "./%s", path));
}

static bool find_directory(Arena *a, const char *data, const char *learn, Sample *out, Diag *d)
{
    const char *path = string_of(a, data), *table = path_join(a, data, "train.tsv"),
               *columns = path_join(a, data, "train.csv");
    const int classes = count_directories(a, path_join(a, data, "train"));
    if (file_exists(path_join(a, data, "train_x.npy")) ||
        file_exists(path_join(a, data, "x.npy"))) {
        const bool divided = file_exists(path_join(a, data, "test_x.npy"));
        out->data = divided ? path : arena_printf(a, "%s(test = 0.2)", path);
        return find_arrays(a, data, out, d);
    }
    if (file_exists(table)) {
        out->data = arena_printf(a, "tsv(%s, unit = \"word\", vocab = 10000)", path);
        return find_labelled(a, table, out, d);
    }
    if (file_exists(columns)) {
        const char *csv = path_join(a, data, "test.csv"), *tsv = path_join(a, data, "test.tsv");
        const char *tested = file_exists(csv) ? csv : file_exists(tsv) ? tsv : NULL;
        return sample_table(a, &(TableFile){columns, path, tested, learn}, out, d);
    }
    if (classes >= 2) {
        *out = (Sample){.kind = SAMPLE_IMAGE,
                        .data = arena_printf(a, "imagefolder(%s)", path),
                        .dim = {3, 64, 64},
                        .classes = classes};
        return true;
    }
    diag_error(d, nowhere,
               "%s holds neither train_x.npy, nor train.csv, nor train.tsv, nor train/CLASS/ of at "
               "least two classes",
               data);
    diag_help(d, "docs/how-to/own-data.md describes these files");
    return false;
}

bool sample_find(Arena *a, const char *data, const char *learn, Sample *out, Diag *d)
{
    const char **name = NULL;
    int n = 0;
    sample_names(a, &name, &n);
    for (int i = 0; i < KNOWN; i++)
        if (strcmp(known[i].name, data) == 0) {
            *out = known[i].sample;
            return true;
        }
    *out = (Sample){0};
    const size_t len = strlen(data);
    for (size_t i = 0, bytes; i < len; i += bytes) {
        const bool control = (unsigned char)data[i] < ' ' || data[i] == 127;
        bytes = (size_t)text_character(data + i, len - i);
        if (control || bytes == 0) {
            diag_error(d, nowhere, "--data: a path with %s cannot be written in a model file",
                       control ? "a control character" : "a byte that is not UTF-8");
            return false;
        }
    }
    if (dir_exists(data))
        return find_directory(a, data, learn, out, d);
    if (file_exists(data) && (text_glob("*.csv", data) || text_glob("*.tsv", data)))
        return sample_table(a, &(TableFile){data, string_of(a, data), NULL, learn}, out, d);
    if (file_exists(data)) {
        if (!find_text(a, data, out, d))
            return false;
        out->data = arena_printf(a, "text(%s, unit = \"char\", vocab = %d)", string_of(a, data),
                                 out->vocab);
        return true;
    }
    diag_error(d, nowhere,
               "--data: '%s' is no file, no directory and no data set that tenon new "
               "knows",
               data);
    diag_suggest(d, data, name, n);
    const char *all = "";
    for (int i = 0; i < n; i++)
        all = arena_printf(a, "%s%s%s", all, i == 0 ? "" : i == n - 1 ? " and " : ", ", name[i]);
    diag_help(d, "the data sets are %s", all);
    return false;
}
