/* build.c -- from generated C to a program: the C compiler, the runtime library, the cache.
 *
 * Contraction is off: FMA happens where the generated code says so, and nowhere else, so that an update computed inside
 * the weight gradient and one computed after a reduction give the same bits.  errno and floating-point traps are not
 * looked at by any kernel; leaving them out lets loops become vectors.
 */
#define _GNU_SOURCE                                   /* environ, fexecve */
#include "tool/build.h"
#include "tool/cache.h"
#include "tool/file.h"
#include "tool/process.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const Span nowhere;
static const char FLAGS[] = "-std=gnu11 -O2 -ffp-contract=off -fno-math-errno -fno-trapping-math -DRT_KERNELS";

static const char *compiler(void)
{
    const char *cc = getenv("CC");
    return cc && *cc ? cc : "cc";
}

/* ---- what the cache key is made of */

static int by_name(const void *x, const void *y)
{
    return strcmp(*(const char *const *)x, *(const char *const *)y);
}

/* Every header that generated code can see, in the order of their names. */
static void key_headers(Arena *a, Key *k, const char *dir)
{
    DIR *d = opendir(dir);
    const char **name = NULL;
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d));)
        if (strlen(e->d_name) > 2 && strcmp(e->d_name + strlen(e->d_name) - 2, ".h") == 0)
            ARENA_PUSH(a, name, n, (const char *)arena_strdup(a, e->d_name));
    if (d)
        closedir(d);
    if (n)
        qsort(name, (size_t)n, sizeof *name, by_name);
    for (int i = 0; i < n; i++) {
        size_t len = 0;
        const char *bytes = file_read(a, path_join(a, dir, name[i]), &len);
        key_add(k, name[i], strlen(name[i]));
        key_add(k, bytes ? bytes : "", len);
    }
}

static void key_text(Key *k, const char *s)
{
    key_add(k, s, strlen(s));
}

/* The compiler is known by what it says of itself; one that cannot be started is reported here. */
static bool key_compiler(Arena *a, Key *k, Diag *d)
{
    Argv v = {0};
    Text version = text_new(a);
    argv_split(a, &v, compiler());
    argv_add(a, &v, "--version");
    argv_end(a, &v);
    if (process_run(&v, &version) >= 0) {
        key_text(k, version.s);
        return true;
    }
    diag_error(d, nowhere, "cannot run the C compiler '%s': %s", compiler(), strerror(errno));
    diag_help(d, "install one (Debian: apt-get install gcc libc6-dev), or name it: CC=clang tenon build ...");
    return false;
}

/* ---- the command */

static const char *flags_of(Arena *a, const BuildInput *in)
{
    const char *more = getenv("TENON_CFLAGS");
    return arena_printf(a, "%s %s%s%s%s %s %s", FLAGS, in->machine->cflags, strcmp(in->dtype, "f64") == 0 ? " -DRT_F64" : "",
                        in->command->options.plain ? " -g" : "", in->command->options.blas ? " -DRT_BLAS" : "", in->paths->cflags,
                        more ? more : "");
}

static Argv command_of(Arena *a, const BuildInput *in, const char *source, const char *program)
{
    Argv v = {0};
    argv_split(a, &v, compiler());
    argv_split(a, &v, flags_of(a, in));
    argv_add(a, &v, "-I");
    argv_add(a, &v, in->paths->runtime);
    argv_add(a, &v, "-o");
    argv_add(a, &v, program);
    argv_add(a, &v, source);
    argv_add(a, &v, in->paths->library);
    argv_split(a, &v, in->command->options.blas ? "-lz -lopenblas -lm -lpthread" : "-lz -lm -lpthread");
    argv_end(a, &v);
    return v;
}

static bool key_of(Arena *a, const BuildInput *in, Key *k, Diag *d)
{
    size_t len = 0;
    const char *library = file_read(a, in->paths->library, &len);
    *k = (Key){0, 0};
    key_text(k, TENON_NAME);
    key_text(k, in->name);
    key_text(k, in->text);
    key_text(k, compiler());
    key_text(k, flags_of(a, in));
    key_headers(a, k, in->paths->runtime);
    key_headers(a, k, path_join(a, in->paths->runtime, "cpu"));
    key_add(k, library ? library : "", len);
    return key_compiler(a, k, d);
}

/* ---- compiling */

static bool io_error(Diag *d, const char *what, const char *path, int error)
{
    diag_error(d, nowhere, "cannot write %s %s: %s", what, path, strerror(error));
    return false;
}

/* The generated C: into --keep, else into a directory of its own that goes away again. */
static const char *write_source(Arena *a, const BuildInput *in, const char **temporary, Diag *d)
{
    const char *dir = in->command->keep, *tmp = getenv("TMPDIR");
    *temporary = NULL;
    if (dir) {
        const int error = dir_make(a, dir);
        if (error)
            return io_error(d, "directory", dir, error), NULL;
    } else {
        char *made = arena_printf(a, "%s/tenon-XXXXXX", tmp && *tmp ? tmp : "/tmp");
        if (!mkdtemp(made))
            return io_error(d, "directory", made, errno), NULL;
        *temporary = dir = made;
    }
    const char *path = path_join(a, dir, arena_printf(a, "%s.c", in->name));
    const int error = file_write(a, path, in->text, strlen(in->text), 0666);
    if (!error)
        return path;
    if (*temporary)
        rmdir(*temporary);
    return io_error(d, "the generated C to", path, error), NULL;
}

/* The first lines of what the C compiler said: the rest rarely helps. */
static void note_output(Arena *a, const char *output, Diag *d)
{
    enum { LINES = 12 };
    for (int i = 0; *output && i < LINES; i++) {
        const size_t len = strcspn(output, "\n");
        diag_note(d, "%s", arena_strndup(a, output, len));
        output += len + (output[len] == '\n');
    }
}

static bool compile_error(Arena *a, const Argv *v, int status, const char *source, const char *output, Diag *d)
{
    diag_error(d, nowhere, "the C compiler '%s' failed on %s (exit code %d)", compiler(), source, status);
    note_output(a, output, d);
    diag_note(d, "the command was: %s", argv_text(a, v));
    if (strstr(output, "cblas.h") || strstr(output, "-lopenblas")) {
        diag_help(d, "--kernels=blas needs OpenBLAS and its headers (Debian: apt-get install libopenblas-dev)");
        return false;
    }
    diag_help(d, "the file is kept; if '%s' compiles other programs, this is a fault of tenon: please report it with the file", compiler());
    return false;
}

/* Runs the C compiler: text -> program.  The generated C is kept after a failure. */
static bool compile(Arena *a, const BuildInput *in, const char *program, Diag *d)
{
    const char *temporary, *source = write_source(a, in, &temporary, d);
    if (!source)
        return false;
    const Argv v = command_of(a, in, source, program);
    Text output = text_new(a);
    if (in->command->verbose)
        fprintf(stderr, "%s\n", argv_text(a, &v));
    file_volatile(program);
    const int status = process_run(&v, &output);
    file_volatile(NULL);
    if (status != 0) {
        unlink(program);
        return compile_error(a, &v, status, source, output.s, d);
    }
    if (temporary) {
        unlink(source);
        rmdir(temporary);
    }
    return true;
}

/* --keep with a cached program: the generated C is written all the same. */
static bool keep_source(Arena *a, const BuildInput *in, Diag *d)
{
    const char *temporary;
    return !in->command->keep || write_source(a, in, &temporary, d);
}

/* Finds the program in the cache or compiles it into it; *path is where it lies.
 * Without a usable cache it is compiled to a temporary file, and *owned says that it is ours to remove. */
static bool obtain(Arena *a, const BuildInput *in, const char **path, bool *owned, Diag *d)
{
    Key key;
    if (!key_of(a, in, &key, d))
        return false;
    const char *dir = cache_dir(a), *tmp = getenv("TMPDIR");
    *owned = !dir;
    if (dir) {
        *path = cache_path(a, dir, key);
        if (!in->command->no_cache && cache_has(*path))
            return keep_source(a, in, d);
    } else
        *path = arena_printf(a, "%s/tenon-%d", tmp && *tmp ? tmp : "/tmp", (int)getpid());

    const char *fresh = arena_printf(a, "%s.%d", *path, (int)getpid());
    if (!compile(a, in, fresh, d))
        return false;
    if (rename(fresh, *path) != 0) {
        unlink(fresh);
        return io_error(d, "the program to", *path, errno);
    }
    if (dir)
        cache_trim(a, dir, *path);
    return true;
}

bool build_output_ok(const Command *c, Diag *d)
{
    struct stat out, model;
    const char *path = c->output;
    const size_t n = strlen(path);
    const bool there = stat(path, &out) == 0;
    if (there && S_ISDIR(out.st_mode)) {
        diag_error(d, nowhere, "cannot write the program to %s: it is a directory", path);
        diag_help(d, "name the program: -o %s%sPROG", path, n && path[n - 1] == '/' ? "" : "/");
    } else if (there && !S_ISREG(out.st_mode))
        diag_error(d, nowhere, "cannot write the program to %s: it is not a file", path);
    else if ((n > 3 && strcmp(path + n - 3, ".tn") == 0) ||
             (there && stat(c->file, &model) == 0 && model.st_dev == out.st_dev && model.st_ino == out.st_ino))
        diag_error(d, nowhere, "refusing to write the program over the model file %s", path);
    else if (!n || path[n - 1] == '/')
        diag_error(d, nowhere, "cannot write the program to '%s': that names a directory", path);
    else
        return true;
    return false;
}

bool build_program(Arena *a, const BuildInput *in, Diag *d)
{
    const char *program;
    bool owned;
    if (!build_output_ok(in->command, d) || !obtain(a, in, &program, &owned, d))
        return false;
    const int error = file_copy(a, program, in->command->output, 0777);
    if (owned)
        unlink(program);
    return error ? io_error(d, "the program to", in->command->output, error) : true;
}

bool build_and_run(Arena *a, const BuildInput *in, Diag *d)
{
    const char *program;
    bool owned;
    if (!obtain(a, in, &program, &owned, d))
        return false;
    Argv v = {0};
    argv_add(a, &v, in->name);
    for (int i = 0; i < in->command->narguments; i++)
        argv_add(a, &v, in->command->argument[i]);
    argv_end(a, &v);
    const int fd = owned ? open(program, O_RDONLY | O_CLOEXEC) : -1;
    if (owned)
        unlink(program);                              /* the open file runs even when its name is gone */
    diag_print(d, stderr);
    fflush(NULL);
    if (owned)
        fexecve(fd, v.word, environ);
    else
        execv(program, v.word);
    diag_error(d, nowhere, "cannot run %s: %s", program, strerror(errno));
    return false;
}
