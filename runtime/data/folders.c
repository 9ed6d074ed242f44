/* folders.c -- see folders.h. */
#define _GNU_SOURCE
#include "data/folders.h"
#include "base/error.h"
#include "base/hash.h"
#include "data/classes.h"
#include "data/data.h"
#include "data/split.h"
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

typedef struct Names {
    char **name;
    int64_t n, room;
} Names;

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void add_name(Names *s, char *name)
{
    if (s->n == s->room) {
        s->room = s->room ? 2 * s->room : 64;
        s->name = realloc(s->name, sizeof *s->name * (size_t)s->room);
        if (!s->name)
            rt_die("out of memory: the names of %lld images were needed", (long long)s->room);
    }
    s->name[s->n++] = name;
}

bool folders_is_image(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && (strcasecmp(dot, ".png") == 0 || strcasecmp(dot, ".jpg") == 0 ||
                   strcasecmp(dot, ".jpeg") == 0);
}

/* Lists the sorted entries of a directory: folders, or files with a name of an image. *others:
 * number of other entries; names that begin with a dot do not count. false: there is no such
 * directory. */
static bool list(const char *directory, bool folders, Names *s, int64_t *others)
{
    DIR *d = opendir(directory);
    if (!d && (errno == ENOENT || errno == ENOTDIR))
        return false;
    if (!d)
        rt_die("%s cannot be read: %s", directory, strerror(errno));
    *s = (Names){0};
    for (struct dirent *e; (errno = 0, e = readdir(d));) {
        struct stat info;
        char *path = rt_format("%s/%s", directory, e->d_name);
        const bool known = e->d_name[0] != '.';
        if (known && stat(path, &info) == 0 &&
            (folders ? S_ISDIR(info.st_mode)
                     : S_ISREG(info.st_mode) && folders_is_image(e->d_name)))
            add_name(s, rt_format("%s", e->d_name));
        else
            *others += known;
        free(path);
    }
    if (errno)
        rt_die("%s cannot be read: %s", directory, strerror(errno));
    closedir(d);
    if (s->n)
        qsort(s->name, (size_t)s->n, sizeof *s->name, by_name);
    return true;
}

/* Calls list() for a directory that was there a moment ago. */
static void must_list(const char *directory, bool folders, Names *s, int64_t *others)
{
    if (!list(directory, folders, s, others))
        rt_die("%s cannot be read: %s", directory, strerror(errno));
}

/* "cat, dog, ..." */
static char *list_names(const Names *s)
{
    char *text = rt_format("%s", s->n ? s->name[0] : "none");
    for (int64_t i = 1; i < s->n && i < 8; i++)
        text = rt_format("%s, %s", text, s->name[i]);
    return s->n > 8 ? rt_format("%s, ...", text) : text;
}

/* The folder with the classes of a split, and which of its images belong to the split: all, if
 * share->name is NULL.  Without folders train and test, it is the directory itself. */
static const char *find_share(const RtProgram *p, const char *directory, const char *split,
                              Split *share)
{
    char *own = rt_format("%s/%s", directory, split), *train = rt_format("%s/train", directory),
         *test = rt_format("%s/test", directory),
         *validation = rt_format("%s/validation", directory);
    *share = (Split){0};
    if (!find_is_directory(train) && find_is_directory(own))
        return own; /* the directory has this split alone */
    if (!shares_divide(p, directory, split, find_is_directory(test) ? test : NULL,
                       find_is_directory(validation) ? validation : NULL, 0, share))
        return own;
    return find_is_directory(train) ? train : directory;
}

/* Finds the classes: the folders of the training split or, without this split, those of the folder
 * `otherwise`. */
static bool find_classes(const RtProgram *p, const char *directory, const char *otherwise,
                         Names *class)
{
    int64_t others = 0;
    const char *path = rt_format("%s/train", directory);
    if (!list(path, true, class, &others)) {
        path = otherwise;
        if (!list(path, true, class, &others))
            return false;
    }
    if (class->n < 2)
        rt_die("%s holds %s: images need one folder a class, and at least two classes", path,
               class->n ? rt_format("one folder (%s)", class->name[0]) : "no folder");
    if (p->softmax_output ? class->n != p->classes : p->classes > 0 && class->n > p->classes)
        rt_die("%s holds %lld classes (%s), but %s has %lld: build it with the same number (--set "
               "model.classes=%lld, "
               "where it is a parameter)",
               path, (long long)class->n, list_names(class), p->model, (long long)p->classes,
               (long long)class->n);
    return true;
}

static ImageFile describe_image(const char *folder, const char *name, int label, Hash *h)
{
    struct stat info;
    ImageFile f = {.path = rt_format("%s/%s", folder, name), .label = label};
    if (stat(f.path, &info) != 0)
        rt_die("%s cannot be read: %s", f.path, strerror(errno));
    f.bytes = info.st_size;
    f.changed = info.st_mtim.tv_sec * 1000000000LL + info.st_mtim.tv_nsec;
    const int64_t known[3] = {label, f.bytes, f.changed};
    hash_add(h, name, strlen(name) + 1);
    hash_add(h, known, sizeof known);
    return f;
}

/* Lists image k of every class before image k + 1 of any class. */
static void take_turns(Folders *out, const Names *class, const Names *file, const char *split)
{
    Hash h = hash_new();
    for (int64_t k = 0, left = out->n; left > 0; k++)
        for (int c = 0; c < class->n; c++)
            if (k < file[c].n) {
                char *folder = rt_format("%s/%s", split, class->name[c]);
                out->image[out->n - left--] = describe_image(folder, file[c].name[k], c, &h);
                free(folder);
            }
    out->hash = hash_end(&h);
}

/* Dies if a folder of the split is no class. */
static void check_folders(const Names *class, const char *path)
{
    Names here;
    int64_t others = 0;
    must_list(path, true, &here, &others);
    for (int64_t i = 0; i < here.n; i++)
        if (!bsearch(&here.name[i], class->name, (size_t) class->n, sizeof *class->name, by_name))
            rt_die("%s/%s: there is no class '%s' among the folders to train on (%s)", path,
                   here.name[i], here.name[i], list_names(class));
}

/* Keeps the images of a split.  The random number of an image depends on the names of its class and
 * its file, so no image moves when others are added. */
static void keep_share(const Split *share, const char *class, Names *file)
{
    int64_t n = 0;
    for (int64_t i = 0; share->name && i < file->n; i++) {
        char *name = rt_format("%s/%s", class, file->name[i]);
        if (split_takes(share, hash_text(name)))
            file->name[n++] = file->name[i];
        free(name);
    }
    file->n = share->name ? n : file->n;
}

static void say_left_out(const char *path, int64_t others)
{
    const char *what = others == 1 ? "entry is left out, which is not a file that ends"
                                   : "entries are left out, which are not files that end";
    rt_note("%s: %lld %s in .png, .jpg or .jpeg", path, (long long)others, what);
}

bool folders_list(const RtProgram *p, const char *directory, const char *split, Folders *out)
{
    Names class, *file;
    Split share;
    int64_t others = 0;
    const char *path = find_share(p, directory, split, &share);
    *out = (Folders){0};
    if (!find_is_directory(path) || !find_classes(p, directory, path, &class))
        return false;
    check_folders(&class, path);
    if (!classes_now() && p->target_kind == RT_TARGET_CLASS)
        classes_take(class.name, class.n);
    file = rt_alloc(sizeof *file * (size_t) class.n);
    for (int c = 0; c < class.n; c++) {
        const char *folder = rt_format("%s/%s", path, class.name[c]);
        if (!list(folder, false, &file[c], &others))
            rt_die("%s is missing: class '%s' has images to train on and none here", folder,
                   class.name[c]);
        if (file[c].n == 0)
            rt_die("%s holds no image: no file in it ends in .png, .jpg or .jpeg", folder);
        keep_share(&share, class.name[c], &file[c]);
        out->n += file[c].n;
    }
    if (out->n == 0)
        rt_die("the split '%s' of %s has no image: there are too few for its share%s", split, path,
               shares_advice());
    if (others)
        say_left_out(path, others);
    out->image = rt_alloc(sizeof *out->image * (size_t)out->n);
    take_turns(out, &class, file, path);
    return true;
}

void folders_input(const char *path, Folders *out)
{
    Names file;
    Hash h = hash_new();
    int64_t others = 0;
    struct stat info;
    *out = (Folders){0};
    if (stat(path, &info) != 0)
        rt_die("%s cannot be read: %s", path, strerror(errno));
    if (!S_ISDIR(info.st_mode)) {
        const char *slash = strrchr(path, '/');
        out->image = rt_alloc(sizeof *out->image);
        out->image[out->n++] =
            slash ? describe_image(rt_format("%.*s", (int)(slash - path), path), slash + 1, 0, &h)
                  : describe_image(".", path, 0, &h);
        out->image[0].path = rt_format("%s", path);
        return;
    }
    must_list(path, false, &file, &others);
    if (file.n == 0)
        rt_die("%s holds no image: no file in it ends in .png, .jpg or .jpeg%s", path,
               others ? ", and folders in it are not looked into" : "");
    if (others)
        say_left_out(path, others);
    out->image = rt_alloc(sizeof *out->image * (size_t)file.n);
    for (; out->n < file.n; out->n++)
        out->image[out->n] = describe_image(path, file.name[out->n], 0, &h);
}
