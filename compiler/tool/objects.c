/* objects.c -- compiles the units of a program in parallel, and links them.
 *
 * A unit is one kernel or the step.  The key of an object is a hash of its inputs.  So a change of
 * a layer compiles only the kernels of the layer and the step, and all models share the cache.
 *
 * Contraction is off: a multiply-add is fused only where the generated code says so.  Therefore an
 * update inside of the weight gradient and an update after a reduction give the same bits.  No
 * kernel reads errno or floating-point traps; without them, more loops become vectors.
 */
#include "tool/objects.h"
#include "base/environment.h"
#include "tool/file.h"
#include "tool/process.h"
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const Span nowhere;
#ifndef TENON_NVCC
#define TENON_NVCC "" /* configured without CUDA */
#endif
static const char FLAGS[] = "-std=gnu11 -O2 -ffp-contract=off -fno-math-errno -fno-trapping-math";
/* for the file of the step: the file of ResNet-50 then compiles in 1.8 s, not in 2.9 s */
static const char ONCE[] = "-O1";
#ifdef TENON_LZMA
static const char LZMA[] = "-llzma ";
#else
static const char LZMA[] = ""; /* the runtime was built without liblzma, too */
#endif

#ifdef TENON_IMAGES
static const char IMAGES[] = "-lpng -lturbojpeg ";
#else
static const char IMAGES[] = "";
#endif

/* ---- the C compiler */

/* mpicc adds MPI's headers and libraries to the command line of the C compiler.  It compiles the
 * file that calls MPI, and links; so the other objects are those of a program without MPI. */
static const char *wrapper_of(const char *cc)
{
    const char *mpicc = environment(ENV_MPICC);
    setenv("OMPI_CC", cc, 1);
    setenv("MPICH_CC", cc, 1);
    return mpicc ? mpicc : "mpicc";
}

/* Finds nvcc, which compiles and links a program for a GPU. Also on a GPU, a multiply-add is fused
 * only where the source says so.  The GPU code is for --arch and, as PTX, for later GPUs.  CUDA's
 * runtime is linked statically, so that the program starts on any machine. */
static bool find_nvcc(Arena *a, const BuildInput *in, Toolchain *t, Diag *d)
{
    const char *nvcc = environment(ENV_NVCC), *more = environment(ENV_TENON_NVCCFLAGS),
               *arch = in->command->options.arch + strlen("sm_");
    t->cc = nvcc ? nvcc : TENON_NVCC;
    t->flags = arena_printf(a,
                            "-O2 -fmad=false -lineinfo -cudart static -gencode "
                            "arch=compute_%s,code=[sm_%s,compute_%s] -Xcompiler "
                            "-O2,-ffp-contract=off,-static-libstdc++,-static-libgcc%s %s",
                            arch, arch, arch, strcmp(in->dtype, "f64") == 0 ? " -DRT_F64" : "",
                            more ? more : "");
    t->once = "";
    t->libraries = arena_printf(a, "-Xlinker --as-needed -lz %s%s-lm -lpthread -ldl",
                                in->xz ? LZMA : "", in->images ? IMAGES : "");
    if (*t->cc)
        return true;
    diag_error(d, nowhere,
               "--target cuda needs nvcc, NVIDIA's CUDA compiler, and this " TENON_NAME
               " was configured without one");
    diag_help(d, "install the CUDA toolkit and configure tenon again, or set "
                 "NVCC=/usr/local/cuda/bin/nvcc; "
                 "tenon emit --to cuda needs no nvcc");
    return false;
}

/* Starts a compiler with one option.  False if it does not start; *output is what it prints. */
static bool ask(Arena *a, const char *cc, const char *option, const char **output, int *error)
{
    Argv v = {0};
    argv_split(a, &v, cc);
    argv_add(a, &v, option);
    argv_end(a, &v);
    Process p = process_of(a, v);
    process_run(&p, NULL);
    process_pass_on();
    *output = p.output.s ? p.output.s : "";
    *error = p.error;
    return p.status >= 0;
}

/* Asks for the version of mpicc and the options that it adds, for keys: two installed versions of
 * MPI can use the same C compiler, and /usr/bin/mpicc can be switched between them.  For a wrapper
 * without -show, the text is always the same. */
static bool ask_mpicc(Arena *a, Toolchain *t, int *error)
{
    const char *version, *options;
    if (!ask(a, t->mpicc, "--version", &version, error))
        return false;
    ask(a, t->mpicc, "-show", &options, error);
    t->mpi = arena_printf(a, "%s%s", version, options);
    return true;
}

/* Finds the C compiler, and reports a compiler that does not start.  The version that the compiler
 * prints is a part of all keys. */
bool toolchain_find(Arena *a, const BuildInput *in, Toolchain *t, Diag *d)
{
    const char *cc = environment(ENV_CC), *more = environment(ENV_TENON_CFLAGS),
               *step = environment(ENV_TENON_STEP_CFLAGS);
    const Options *o = &in->command->options;
    int error = 0;
    t->cc = cc ? cc : "cc";
    t->mpicc = in->mpi ? wrapper_of(t->cc) : NULL;
    t->mpi = NULL;
    t->flags = arena_printf(a, "%s %s%s%s%s %s %s", FLAGS, in->machine->cflags,
                            strcmp(in->dtype, "f64") == 0 ? " -DRT_F64"
                            : options_half_chains(o)      ? " -DRT_BF16 -DRT_FAST"
                            : o->half                     ? " -DRT_BF16"
                                                          : "",
                            o->plain ? " -g" : "", o->blas ? " -DRT_BLAS" : "", in->paths->cflags,
                            more ? more : "");
    t->once = arena_printf(a, "%s %s %s", ONCE, more ? more : "", step ? step : "");
    t->libraries = arena_printf(a, "-lz %s%s%s-lm -lpthread", in->xz ? LZMA : "",
                                in->images ? IMAGES : "", o->blas ? "-lopenblas " : "");
    if (o->cuda && !find_nvcc(a, in, t, d))
        return false;
    if (in->images && !*IMAGES) {
        diag_error(d, nowhere,
                   "imagefolder needs libpng and libturbojpeg, and this " TENON_NAME
                   " was built without them");
        diag_help(d, "install them (Debian: apt-get install libpng-dev libturbojpeg0-dev) and "
                     "build tenon again, or save the "
                     "images as .npy files");
        return false;
    }
    const bool found = ask(a, t->cc, "--version", &t->version, &error);
    if (found && (!in->mpi || ask_mpicc(a, t, &error)))
        return true;
    diag_error(d, nowhere, "cannot run the %s compiler '%s': %s", o->cuda ? "CUDA" : "C",
               found ? t->mpicc : t->cc, strerror(error));
    if (o->cuda)
        diag_help(d, "install NVIDIA's CUDA toolkit, or set NVCC=/usr/local/cuda/bin/nvcc; tenon "
                     "emit --to cuda needs no nvcc");
    else if (found)
        diag_help(d, "--comm mpi needs an MPI: install one (Debian: apt-get install libopenmpi-dev "
                     "openmpi-bin), or set MPICC to its compiler");
    else
        diag_help(d, "install one (Debian: apt-get install gcc libc6-dev), or set CC to one: "
                     "CC=clang tenon build ...");
    return false;
}

/* ---- keys */

typedef struct Closure {
    Arena *arena;
    const char *dir;
    const char **name;
    int n;
    Key *key;
} Closure;

/* The headers that a file of the runtime includes, read from the file on disk; units that Tenon
 * writes state theirs (EmitUnit).  Lines under #ifdef RT_KERNELS are for programs in one file. */
static EmitHeaders headers_on_disk(Arena *a, const char *text)
{
    static const char include[] = "#include \"";
    EmitHeaders h = {0};
    bool skip = false;
    for (const char *s = text; s; s = strchr(s, '\n')) {
        s += *s == '\n';
        skip = strncmp(s, "#ifdef RT_KERNELS", 17) == 0 || (skip && strncmp(s, "#endif", 6) != 0);
        if (skip || strncmp(s, include, sizeof include - 1) != 0)
            continue;
        s += sizeof include - 1;
        ARENA_PUSH(a, h.name, h.n, arena_strndup(a, s, strcspn(s, "\"\n")));
    }
    return h;
}

/* Adds the headers, and those that they include, each once. */
static void add_headers(Closure *c, const EmitHeaders *h)
{
    for (int k = 0; k < h->n; k++) {
        const char *name = h->name[k];
        bool known = false;
        for (int i = 0; i < c->n; i++)
            known |= strcmp(c->name[i], name) == 0;
        if (known)
            continue;
        ARENA_PUSH(c->arena, c->name, c->n, name);
        size_t len = 0;
        const char *header = file_read(c->arena, path_join(c->arena, c->dir, name), &len);
        key_text(c->key, name);
        key_text(c->key, header ? header : "");
        const EmitHeaders inner = headers_on_disk(c->arena, header ? header : "");
        add_headers(c, &inner);
    }
}

void key_headers(Arena *a, const Paths *p, const EmitHeaders *h, Key *k)
{
    Closure c = {.arena = a, .dir = p->runtime, .key = k};
    add_headers(&c, h);
}

static Key object_key(Arena *a, const BuildInput *in, const Toolchain *t, const EmitUnit *u)
{
    Key k = {0, 0};
    key_text(&k, TENON_NAME);
    key_text(&k, t->cc);
    key_text(&k, t->version);
    key_text(&k, t->flags);
    if (u->mpi) {
        key_text(&k, t->mpicc);
        key_text(&k, t->mpi);
    }
    if (u->once)
        key_text(&k, t->once);
    key_text(&k, u->text);
    key_headers(a, in->paths, &u->headers, &k);
    return k;
}

Key program_key(Arena *a, const BuildInput *in, const Toolchain *t)
{
    size_t len = 0;
    const char *library = file_read(a, in->paths->library, &len);
    Key k = {0, 0};
    key_text(&k, in->name);
    key_text(&k, t->libraries);
    key_add(&k, library ? library : "", len);
    library = in->cudnn ? file_read(a, in->paths->cudnn, &len) : NULL;
    key_add(&k, library ? library : "", library ? len : 0);
    for (int i = 0; i < in->nunit; i++) {
        const Key o = object_key(a, in, t, &in->unit[i]);
        key_add(&k, &o, sizeof o);
    }
    return k;
}

/* ---- files */

/* Adds "./" where needed: the C compiler takes a word that begins with '-' or '@' as an option or a
 * file of options. */
static const char *file_of(Arena *a, const char *dir, const char *name, const char *suffix)
{
    if (*dir == '-' || *dir == '@')
        dir = path_join(a, ".", dir);
    return path_join(a, dir, arena_printf(a, "%s%s", name, suffix));
}

static const char *suffix_of(const EmitUnit *u)
{
    return u->cuda ? ".cu" : ".c";
}

static bool write_text(Arena *a, const char *dir, const char *name, const char *suffix,
                       const char *text, Diag *d)
{
    const char *path = file_of(a, dir, name, suffix);
    const int error = file_write(a, path, text, strlen(text), 0666);
    return !error || file_failed(d, "the generated C to", path, error);
}

/* Removes the units of an earlier build, which can have other kernels.  Other files stay. */
static void remove_others(Arena *a, const char *dir, const BuildInput *in)
{
    DIR *d = opendir(dir);
    for (const struct dirent *e; d && (e = readdir(d));) {
        size_t len = 0;
        const char *path = file_of(a, dir, e->d_name, ""),
                   *begin = arena_printf(a, "/* %s -- made by tenon: ", e->d_name);
        bool ours = false;
        for (int i = 0; i < in->nunit; i++)
            ours |= strcmp(e->d_name,
                           arena_printf(a, "%s%s", in->unit[i].name, suffix_of(&in->unit[i]))) == 0;
        const char *text = ours || !strstr(e->d_name, ".c") ? NULL : file_read(a, path, &len);
        if (text && strncmp(text, begin, strlen(begin)) == 0)
            unlink(path);
    }
    if (d)
        closedir(d);
}

const char *objects_keep(Arena *a, const BuildInput *in, Diag *d)
{
    const char *keep = in->command->keep,
               *units = path_join(a, keep, arena_printf(a, "%s_units", in->name));
    const int error = dir_make(a, units);
    if (error)
        return file_failed(d, "directory", units, error), NULL;
    remove_others(a, units, in);
    bool ok = write_text(a, keep, in->name, in->command->options.cuda ? ".cu" : ".c", in->text, d);
    for (int i = 0; ok && i < in->nunit; i++)
        ok = write_text(a, units, in->unit[i].name, suffix_of(&in->unit[i]), in->unit[i].text, d);
    return ok ? units : NULL;
}

/* Adds a file of the runtime that is compiled with each program, because not every machine has its
 * headers.  Its name contains '-', so no model has the same name. */
static bool add_runtime(Arena *a, BuildInput *in, const char *file, const char *name, Diag *d)
{
    size_t len = 0;
    const char *path = path_join(a, in->paths->runtime, file);
    EmitUnit u = {.name = name,
                  .text = file_read(a, path, &len),
                  .cuda = strstr(file, ".cu") != NULL};
    if (!u.text) {
        diag_error(d, nowhere, "cannot read %s: %s", path, strerror(errno));
        return false;
    }
    u.headers = headers_on_disk(a, u.text);
    ARENA_PUSH(a, in->unit, in->nunit, u);
    return true;
}

bool objects_add_mpi(Arena *a, BuildInput *in, Diag *d)
{
    in->mpi = add_runtime(a, in, "comm/mpi.c", "comm-mpi", d);
    if (in->mpi)
        in->unit[in->nunit - 1].mpi = true;
    return in->mpi;
}

bool objects_add_plans(Arena *a, BuildInput *in, const char *plans, Diag *d)
{
    const EmitUnit u = {.name = arena_printf(a, "%s_plans", in->name), .text = plans};
    in->cudnn = true;
    if (!file_exists(in->paths->cudnn)) {
        diag_error(d, nowhere,
                   "convolutions with --kernels=cudnn need a " TENON_NAME
                   " that was built with cuDNN's headers and the CUDA toolkit");
        diag_help(d, "configure tenon again with -DWITH_CUDNN=ON, or leave out --kernels=cudnn");
        return false;
    }
    if (*plans)
        ARENA_PUSH(a, in->unit, in->nunit, u);
    return true;
}

bool objects_add_nccl(Arena *a, BuildInput *in, Diag *d)
{
    return add_runtime(a, in, "cuda/nccl.c", "cuda-nccl", d) &&
           add_runtime(a, in, "cuda/nccl_api.c", "cuda-nccl-api", d) &&
           add_runtime(a, in, "cuda/rank_sum.cu", "cuda-rank-sum", d);
}

bool objects_add_cuda(Arena *a, BuildInput *in, EmitUnit program, Diag *d)
{
    ARENA_PUSH(a, in->unit, in->nunit, program);
    return add_runtime(a, in, "cuda/gpu.c", "cuda-gpu", d) &&
           (!program.products || add_runtime(a, in, "cuda/cublas.c", "cuda-cublas", d));
}

/* ---- messages */

/* Adds the first lines of the output of the C compiler as notes: the rest rarely helps. */
static void note_output(Arena *a, const char *output, Diag *d)
{
    enum { LINES = 12 };
    for (int i = 0; *output && i < LINES; i++) {
        const size_t len = strcspn(output, "\n");
        diag_note(d, "%s", arena_strndup(a, output, len));
        output += len + (output[len] == '\n');
    }
}

/* The way out if the output of the C compiler names a missing library, or NULL. */
static const char *missing_package(const char *output)
{
    static const char blas[] = "--kernels=blas needs OpenBLAS and its headers (Debian: apt-get "
                               "install libopenblas-dev)",
                      xz[] = "programs for data that may be compressed with xz need liblzma "
                             "(Debian: apt-get install liblzma-dev)",
                      images[] = "imagefolder needs libpng and libturbojpeg (Debian: apt-get "
                                 "install libpng-dev libturbojpeg0-dev)",
                      zlib[] = "programs need zlib (Debian: apt-get install zlib1g-dev)";
    static const struct {
        const char *text, *way_out;
    } table[] = {{"cblas.h", blas}, {"-lopenblas", blas},  {"lzma", xz},
                 {"-lpng", images}, {"turbojpeg", images}, {"cannot find -lz", zlib}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strstr(output, table[i].text))
            return table[i].way_out;
    return NULL;
}

/* Reports a failed compilation.  `source` is the file with the error, or NULL if linking failed. */
static bool compile_error(Arena *a, const char *cc, const Process *p, const char *source, Diag *d)
{
    const char *output = p->output.s;
    if (p->status < 0) {
        diag_error(d, nowhere, "cannot run the C compiler '%s': %s", cc, strerror(p->error));
        return false;
    }
    if (source)
        diag_error(d, nowhere, "the C compiler '%s' failed on %s (exit code %d)", cc, source,
                   p->status);
    else
        diag_error(d, nowhere, "the C compiler '%s' failed to link the program (exit code %d)", cc,
                   p->status);
    note_output(a, output, d);
    diag_note(d, "the command was: %s", argv_text(a, &p->command));
    const char *way_out = missing_package(output);
    if (way_out)
        diag_help(d, "%s", way_out);
    else if (source)
        diag_help(d,
                  "the file is kept; if '%s' compiles other programs, this is a fault in tenon: "
                  "please report it, with the file",
                  cc);
    return false;
}

/* ---- compiling */

static const char *compiler_of(const Toolchain *t, const EmitUnit *u)
{
    return u->mpi ? t->mpicc : t->cc;
}

/* Keeps the name of the directory out of the object, so that equal sources give equal objects in
 * any directory.  With --keep, the name stays, for debuggers. */
static Process compiling(Arena *a, const BuildInput *in, const Toolchain *t, const EmitUnit *u,
                         const char *source, const char *object, const char *dir)
{
    Argv v = {0};
    argv_split(a, &v, compiler_of(t, u));
    argv_split(a, &v, t->flags);
    if (u->once)
        argv_split(a, &v, t->once);
    if (u->cuda)
        argv_add(a, &v, "-std=c++20");
    argv_add(a, &v, "-I");
    argv_add(a, &v, in->paths->runtime);
    if (!in->command->keep && !in->command->options.cuda)
        argv_add(a, &v, arena_printf(a, "-ffile-prefix-map=%s=.", dir));
    argv_add(a, &v, "-c");
    argv_add(a, &v, "-o");
    argv_add(a, &v, object);
    argv_add(a, &v, source);
    argv_end(a, &v);
    return process_of(a, v);
}

typedef struct Job {
    Key key;
    const char *cc;
    const char *source, *object;
} Job;

/* Copies an object from the cache, because another build can remove it from there at any time. */
static bool from_cache(Arena *a, const BuildInput *in, Cache *cache, const Job *j)
{
    size_t len = 0;
    const bool skip = in->command->no_cache || in->command->keep;
    const char *bytes = skip ? NULL : cache_get(a, cache, CACHE_OBJECT, j->key, &len);
    return bytes && file_write(a, j->object, bytes, len, 0666) == 0;
}

static void to_cache(Arena *a, const BuildInput *in, Cache *cache, const Job *j)
{
    size_t len = 0;
    const char *bytes = in->command->keep ? NULL : file_read(a, j->object, &len);
    if (bytes)
        cache_put(a, cache, CACHE_OBJECT, j->key, bytes, len);
}

/* Compiles every unit to DIR/NAME.o. */
static bool compile_units(Arena *a, const BuildInput *in, const Toolchain *t, Cache *cache,
                          const char *dir, Diag *d)
{
    const char *sources = in->command->keep ? objects_keep(a, in, d) : dir;
    Job *job = arena_alloc(a, (size_t)in->nunit * sizeof *job);
    Process *process = arena_alloc(a, (size_t)in->nunit * sizeof *process);
    int n = 0;
    for (int i = 0; sources && i < in->nunit; i++) {
        const EmitUnit *u = &in->unit[i];
        Job j = {.key = object_key(a, in, t, u),
                 .cc = compiler_of(t, u),
                 .source = file_of(a, sources, u->name, suffix_of(u)),
                 .object = file_of(a, dir, u->name, ".o")};
        if (from_cache(a, in, cache, &j))
            continue;
        if (sources == dir && !write_text(a, dir, u->name, suffix_of(u), u->text, d))
            return false;
        process[n] = compiling(a, in, t, u, j.source, j.object, dir);
        if (in->command->verbose)
            fprintf(stderr, "%s\n", argv_text(a, &process[n].command));
        job[n++] = j;
    }
    if (!sources)
        return false;
    const int bad = process_run_all(process, n, process_cores(), "compiling");
    for (int i = 0; i < n; i++) {
        if (process[i].status == 0 && bad < 0 && !process_signal)
            to_cache(a, in, cache, &job[i]);
        if (i != bad && sources == dir)
            unlink(job[i].source);
    }
    return bad < 0 ? !process_signal
                   : compile_error(a, job[bad].cc, &process[bad], job[bad].source, d);
}

static const char *link_program(Arena *a, const BuildInput *in, const Toolchain *t, const char *dir,
                                Diag *d)
{
    const char *program = file_of(a, dir, in->name, ""), *cc = t->mpicc ? t->mpicc : t->cc;
    Argv v = {0};
    argv_split(a, &v, cc);
    argv_split(a, &v, t->flags);
    argv_add(a, &v, "-o");
    argv_add(a, &v, program);
    for (int i = 0; i < in->nunit; i++)
        argv_add(a, &v, file_of(a, dir, in->unit[i].name, ".o"));
    if (in->cudnn)
        argv_add(a, &v, in->paths->cudnn);
    argv_add(a, &v, in->paths->library);
    argv_split(a, &v, t->libraries);
    argv_end(a, &v);
    Process p = process_of(a, v);
    if (in->command->verbose)
        fprintf(stderr, "%s\n", argv_text(a, &v));
    process_run(&p, "linking");
    if (p.status == 0 && !process_signal)
        return program;
    if (!process_signal)
        compile_error(a, cc, &p, NULL, d);
    return NULL;
}

const char *objects_program(Arena *a, const BuildInput *in, const Toolchain *t, Cache *cache,
                            const char *dir, Diag *d)
{
    const char *program =
        compile_units(a, in, t, cache, dir, d) ? link_program(a, in, t, dir, d) : NULL;
    for (int i = 0; i < in->nunit; i++)
        unlink(file_of(a, dir, in->unit[i].name, ".o"));
    return program;
}
